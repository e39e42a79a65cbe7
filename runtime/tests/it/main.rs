//! The public face of the runtime: functions, loops, branches, variables.

mod functions;
mod loops;
mod support;
mod variables;

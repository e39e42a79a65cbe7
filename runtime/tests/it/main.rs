//! The public face of the runtime: functions, loops, branches, variables.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod aliasing;
mod attention;
mod budgets;
mod collectives;
mod dense_lists;
mod depthwise;
mod devices;
mod eager;
mod functions;
mod gather;
mod hoisting;
mod hostile;
mod lists;
mod loops;
mod moving_views;
mod outlining;
mod pools;
mod products;
mod regions;
mod row_calls;
mod stack_updates;
mod strides;
mod support;
mod transposes;
mod variables;

//! The macros, by what they make.

mod changing;
mod derives;
mod errors;
mod functions;
mod generic;
mod methods;
mod options;
mod own_errors;
mod passing;
mod recursion;

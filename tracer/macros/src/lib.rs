//! The macros of `ferroflow-tracer`, which re-exports them and documents them with examples.
//!
//! They are thin: what they make calls public functions of that crate, which work without them.
//!
//! - [`macro@function`]: `item` takes the function apart, `parameter` says how each argument is
//!   passed, `options` and `input_signature` read the attribute; `free` and `method` write the code.
//! - `autograph`: control flow in bodies whose conditions are tensors.
//! - [`macro@Nest`], [`macro@TraceType`], [`macro@HasFunctions`], [`macro@Trackable`]:
//!   a file each.
//!
//! # Invariants
//!
//! - Bodies without control flow that may be that of graphs are left as they are, token by token; what
//!   users wrote keeps its spans in any case.
//! - Code that is made has the span of the attribute, so that lints do not look at it; what may not
//!   fit the types of the user has the span of these.

#![forbid(unsafe_code)]

mod autograph;
mod changing;
mod crate_path;
mod dtype;
mod expand;
#[cfg(test)]
mod expansions;
mod free;
mod generics;
mod has_functions;
mod input_signature;
mod item;
mod method;
mod nest;
mod options;
mod parameter;
mod results;
mod source_methods;
mod trace_type;
mod trackable;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a function or method of Rust code that is traced once for each type of arguments.
#[proc_macro_attribute]
pub fn function(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(options.into(), item.into()).into()
}

/// A closure whose control flow is that of graphs where a tensor decides.
#[proc_macro]
pub fn autograph(closure: TokenStream) -> TokenStream {
    written(autograph::closure(closure.into()))
}

/// Implements `Nest` for a structure or enum whose fields are nests.
#[proc_macro_derive(Nest)]
pub fn nest(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    written(nest::expand(&input))
}

/// Implements `Nest` for objects that are no structure of tensors: told apart by their Rust type, or
/// by their value.
#[proc_macro_derive(TraceType, attributes(trace))]
pub fn trace_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    written(trace_type::expand(&input))
}

/// Implements `HasFunctions` for a structure with one field of type `Functions`.
#[proc_macro_derive(HasFunctions)]
pub fn has_functions(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    written(has_functions::expand(&input))
}

/// Implements `Trackable` for a structure whose fields are the objects it leads to.
#[proc_macro_derive(Trackable, attributes(trackable))]
pub fn trackable(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    written(trackable::expand(&input))
}

fn written(code: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    code.unwrap_or_else(syn::Error::into_compile_error).into()
}

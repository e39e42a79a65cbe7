//! Control flow in bodies: constructs whose condition may be a tensor become calls of
//! `ferroflow_tracer::autograph`, which tells how it works.
//!
//! - `syntax`: conditions that are plainly `bool`, and where jumps lead; `uses`: what code changes.
//! - `rewrite` walks over a body, with the constructs around the place at hand; `choice`, `repeat`,
//!   `jump` and `logic` write what becomes of each construct, of the pieces in `written`.
//!
//! Bodies without such constructs are left as they are, token by token.

mod arms;
mod choice;
mod copies;
mod jump;
mod logic;
mod repeat;
mod rewrite;
mod syntax;
mod uses;
mod written;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Block, ReturnType};

/// The body of a function with its control flow rewritten; nothing if it has none, or is wrong: that
/// is told by the compiler, where it stands.
pub(crate) fn rewritten(body: &Group, output: &ReturnType) -> Option<TokenStream> {
    let tokens = TokenStream::from(TokenTree::Group(body.clone()));
    let block = syn::parse2::<Block>(tokens).ok()?;
    if !rewrite::is_needed(&block) {
        return None;
    }
    let output = match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    Some(rewrite::function(block, &output))
}

/// The attribute of functions whose control flow is rewritten: code for graphs is never reached by
/// the types of Rust, and the other way round.
pub(crate) fn lints() -> TokenStream {
    quote! {
        #[allow(
            unreachable_code,
            unused_assignments,
            unused_labels,
            unused_mut,
            unused_parens,
            clippy::all,
            reason = "of the code that control flow becomes"
        )]
    }
}

//! Control flow in bodies: constructs whose condition may be a tensor become calls of
//! `ferroflow_tracer::autograph`, which tells how it works.
//!
//! - `syntax`: conditions that are plainly `bool`, and where jumps lead; `uses`: what code changes.
//! - `rewrite` walks over a body, with the constructs around the place at hand; `choice`, `repeat`,
//!   `jump` and `logic` write what becomes of each construct, of the pieces in `written`.
//!
//! - `operators` takes tensors out of what operators give, where other operators follow.
//!
//! Bodies without such constructs are left as they are, token by token.

mod arms;
mod choice;
mod copies;
mod jump;
mod logic;
mod operators;
mod repeat;
mod rewrite;
mod syntax;
mod uses;
mod written;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Block, Expr, ExprBlock, ExprClosure, ReturnType, Stmt};

/// A body that is not as it was written.
pub(crate) struct Rewritten {
    pub(crate) code: TokenStream,
    /// Whether its control flow is that of graphs.
    pub(crate) has_control_flow: bool,
}

/// The body of a function with its control flow and operators rewritten; nothing if there is nothing
/// to rewrite, or it is wrong: that is told by the compiler, where it stands.
pub(crate) fn rewritten(body: &Group, output: &ReturnType) -> Option<Rewritten> {
    let tokens = TokenStream::from(TokenTree::Group(body.clone()));
    let block = syn::parse2::<Block>(tokens).ok()?;
    let output = match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    of_block(block, &output)
}

/// A body rewritten; nothing if there is nothing to rewrite.
fn of_block(mut block: Block, output: &TokenStream) -> Option<Rewritten> {
    let has_joined = operators::join(&mut block);
    if !rewrite::is_needed(&block) {
        let code = has_joined.then(|| block.into_token_stream())?;
        return Some(Rewritten { code, has_control_flow: false });
    }
    Some(Rewritten { code: rewrite::function(block, output), has_control_flow: true })
}

/// A closure with its control flow rewritten.
pub(crate) fn closure(closure: TokenStream) -> syn::Result<TokenStream> {
    let mut closure: ExprClosure = syn::parse2(closure)?;
    let body = match *closure.body {
        Expr::Block(ExprBlock { attrs, label: None, block }) if attrs.is_empty() => block,
        other => Block { brace_token: Default::default(), stmts: vec![Stmt::Expr(other, None)] },
    };
    let output = match &closure.output {
        ReturnType::Default => quote!(_),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let rewritten = of_block(body.clone(), &output);
    let code = rewritten.map_or_else(|| body.into_token_stream(), |rewritten| rewritten.code);
    *closure.body = Expr::Verbatim(code);
    Ok(closure.into_token_stream())
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

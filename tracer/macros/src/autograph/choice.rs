//! `if`.

use super::{
    copies, jump,
    rewrite::{EnclosingConstruct, Rewriter, condition, jumps},
    syntax::Jumps,
    uses::{Places, Uses},
    written::{at, carried, checked, failed, flow, frame, gated, held, label, variable},
};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprBlock, ExprIf, spanned::Spanned, visit_mut::VisitMut};

/// Code of an `if`; nothing if a macro may jump out of it, which could not be seen.
pub(super) fn code(rewriter: &mut Rewriter, code: &mut ExprIf) -> Option<TokenStream> {
    let then =
        Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block: code.then_branch.clone() });
    let mut branches = vec![&then];
    let otherwise = code.else_branch.as_ref().map(|(_, branch)| (**branch).clone());
    branches.extend(&otherwise);
    let jumps = jumps(&branches);
    if jumps.in_macro {
        return None;
    }
    let uses = Uses::of(branches.iter().copied(), []);
    let id = rewriter.next_id();
    condition(rewriter, &mut code.cond);
    let (unset, state) = rewriter.split_unset(&uses.assigned);
    let n_held = uses.called.len();
    let around = EnclosingConstruct::If { id, state: state.clone(), unset: unset.clone(), n_held };
    rewriter.inside(around, |rewriter| {
        copies::of_tail(rewriter, &mut code.then_branch);
        let then = rewriter.beside(|r| r.visit_block_mut(&mut code.then_branch));
        if let Some((_, otherwise)) = &mut code.else_branch {
            if let Expr::Block(block) = &mut **otherwise {
                copies::of_tail(rewriter, &mut block.block);
            }
            rewriter.visit_expr_mut(otherwise);
        }
        rewriter.remain_unset(&then);
    });
    Some(written(rewriter, code, &uses, [&state, &unset], id, &jumps))
}

fn written(
    rewriter: &Rewriter,
    code: &ExprIf,
    uses: &Uses,
    [state, unset]: [&Places; 2],
    id: u32,
    jumps: &Jumps,
) -> TokenStream {
    let (condition, then) = (&code.cond, &code.then_branch);
    let otherwise = code.else_branch.as_ref().map(|(_, branch)| match &**branch {
        Expr::Block(block) => quote!(else #block),
        branch => quote!(else { #branch }),
    });
    let span = Span::call_site().located_at(condition.span());
    let (at_condition, flow, frame) = (flow(condition.span()), flow(Span::call_site()), frame());
    let (control, slot) = (at(&variable("if", id), code.if_token.span), variable("slot", id));
    let (rounds, branch) = (label("if", id), label("branch", id));
    // What has no value before the branches has one after them.
    let vars = carried(&control, state.values());
    let vars_after = carried(&control, state.values().chain(unset.values()));
    let (hold, let_go) = held(&control, uses, id);
    let error = variable("failed", id);
    let fail = failed(&control, &error);
    let given = variable("state", id);
    let begin = quote! {
        let #given = #vars;
        #flow::If::begin(&mut #control, #frame.flows(), #given)
    };
    let begin = checked(&control, &quote!({ #begin }));
    let end = {
        let at_if = Span::call_site().located_at(code.if_token.span);
        let flow = super::written::flow(code.if_token.span);
        let end = quote_spanned! {at_if=>
            #flow::Ends::end(&mut #control, #frame.flows(), #given, &mut #slot)
        };
        checked(&control, &quote!({ let #given = #vars_after; #end }))
    };
    let after = jump::after(rewriter, &control, jumps);
    let (begin, end) = (
        gated(&control, &begin),
        gated(
            &control,
            &quote! {
                match #end {
                    #flow::Next::Again => continue #rounds,
                    #after
                }
            },
        ),
    );
    let made = quote_spanned!(span=> #at_condition::if_(#condition));
    quote!({
        let mut #control = #made;
        if let ::core::option::Option::Some(#error) = #flow::If::error(&mut #control) {
            return #fail;
        }
        let mut #slot = #flow::ValueSlot::new();
        #rounds: loop {
            if false {
                #flow::never();
                break #rounds #slot.take();
            }
            #begin
            #branch: {
                #hold
                #slot.put(if #flow::If::test(&#control) #then #otherwise);
                #let_go
            }
            #end
            break #rounds #slot.take();
        }
    })
}

//! `if`.

use super::{
    copies, jump,
    rewrite::{Around, Rewriter, condition, jumps},
    syntax::Jumps,
    uses::Uses,
    written::{at, carried, checked, failed, flow, frame, gated, held, label, variable},
};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprBlock, ExprIf, spanned::Spanned, visit_mut::VisitMut};

/// What an `if` becomes; nothing if a macro may jump out of it, which could not be seen.
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
    let around = Around::If { id, state: uses.assigned.clone(), n_held: uses.called.len() };
    rewriter.inside(around, |rewriter| {
        copies::of_tail(rewriter, &mut code.then_branch);
        rewriter.visit_block_mut(&mut code.then_branch);
        if let Some((_, otherwise)) = &mut code.else_branch {
            if let Expr::Block(block) = &mut **otherwise {
                copies::of_tail(rewriter, &mut block.block);
            }
            rewriter.visit_expr_mut(otherwise);
        }
    });
    Some(written(rewriter, code, &uses, id, &jumps))
}

fn written(rewriter: &Rewriter, code: &ExprIf, uses: &Uses, id: u32, jumps: &Jumps) -> TokenStream {
    let (condition, then) = (&code.cond, &code.then_branch);
    let otherwise = code.else_branch.as_ref().map(|(_, branch)| match &**branch {
        Expr::Block(block) => quote!(else #block),
        branch => quote!(else { #branch }),
    });
    let span = Span::call_site().located_at(condition.span());
    let (at_condition, flow, frame) = (flow(condition.span()), flow(Span::call_site()), frame());
    let (control, slot) = (at(&variable("if", id), code.if_token.span), variable("slot", id));
    let (rounds, branch) = (label("if", id), label("branch", id));
    let vars = carried(&control, &uses.assigned);
    let (hold, let_go) = held(&control, uses, id);
    let error = variable("failed", id);
    let fail = failed(&control, &error);
    let state = variable("state", id);
    let begin = quote! {
        let #state = #vars;
        #flow::If::begin(&mut #control, #frame.flows(), #state)
    };
    let begin = checked(&control, &quote!({ #begin }));
    let end = {
        let at_if = Span::call_site().located_at(code.if_token.span);
        let flow = super::written::flow(code.if_token.span);
        let end = quote_spanned! {at_if=>
            #flow::Ends::end(&mut #control, #frame.flows(), #state, &mut #slot)
        };
        checked(&control, &quote!({ let #state = #vars; #end }))
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
        let mut #slot = #flow::Slot::new();
        #rounds: loop {
            if false {
                #flow::gate(&#control);
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

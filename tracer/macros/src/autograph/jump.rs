//! `break`, `continue` and `return`, and what follows constructs that they may leave.

use super::{
    copies,
    rewrite::{EnclosingConstruct, Rewriter},
    syntax::{Jumps, is_error},
    written::{at as located, checked, flow, frame, gated, variable},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprReturn, Lifetime, visit_mut::VisitMut};

/// Code of `break` or `continue`; nothing where it is Rust's in any case.
pub(super) fn code(rewriter: &mut Rewriter, jump: &mut Expr) -> Option<TokenStream> {
    let (label, is_break, span, value) = match jump {
        Expr::Break(jump) => {
            if let Some(value) = &mut jump.expr {
                copies::of_returned(rewriter, value);
                rewriter.visit_expr_mut(value);
            }
            (jump.label.clone(), true, jump.break_token.span, jump.expr.as_ref())
        }
        Expr::Continue(jump) => (jump.label.clone(), false, jump.continue_token.span, None),
        _ => return None,
    };
    let target = target(rewriter, label.as_ref())?;
    let checks = checks(rewriter, target, span);
    let (flow, frame) = (flow(Span::call_site()), frame());
    let (name, code, live, slot) = match &rewriter.around[target] {
        EnclosingConstruct::Loop { id, name, .. } => {
            let (kind, code) = (variable("kind", *id), 2 * id + u32::from(!is_break));
            (name, code, quote!(#flow::live(&#kind)), Some(variable("slot", *id)))
        }
        EnclosingConstruct::Host { name, .. } => (name, 0, quote!(false), None),
        EnclosingConstruct::If { .. } | EnclosingConstruct::Operand { .. } => return None,
    };
    let given = Ident::new("__given", Span::mixed_site());
    let value = value.map(|value| match slot {
        Some(slot) => quote!(#slot.typed(#value)),
        None => quote!(#value),
    });
    let keep = value.as_ref().map(|value| quote!(let #given = #value;));
    let taken = keep.as_ref().map(|_| &given);
    let real = if is_break { quote!(break #name #taken;) } else { quote!(continue #name;) };
    let ties = ties(rewriter, target);
    let mut leave = TokenStream::new();
    for around in rewriter.around[target..].iter().rev() {
        if let (Some(control), Some(end)) = (around.control(), around.end()) {
            let jump = match (taken, &rewriter.around[target]) {
                (Some(given), EnclosingConstruct::Loop { .. }) => {
                    let at_jump = located(&control, span);
                    let given = quote_spanned!(Span::call_site().located_at(span)=>
                        #flow::broken(&#at_jump, #given));
                    quote!(#frame.flows().jump_with(#code, #live, #given))
                }
                _ => quote!(#frame.flows().jump(#code, #live)),
            };
            let jump = checked(&control, &jump);
            leave.extend(gated(&control, &quote!(#jump; break #end;)));
        }
    }
    Some(quote!({ #checks #ties #keep #leave #real }))
}

/// The number of the construct that a jump leads to.
fn target(rewriter: &Rewriter, label: Option<&Lifetime>) -> Option<usize> {
    rewriter.around.iter().rposition(|around| {
        let (name, is_loop) = match around {
            EnclosingConstruct::Loop { name, .. } => (name, true),
            EnclosingConstruct::Host { name, is_loop } => (name, *is_loop),
            EnclosingConstruct::If { .. } | EnclosingConstruct::Operand { .. } => return false,
        };
        match label {
            None => is_loop,
            Some(label) => name.ident == label.ident,
        }
    })
}

/// The number of the outermost construct that these jumps lead to. It is staged if they are, so that
/// what stands around it is not concerned.
fn furthest(rewriter: &Rewriter, jumps: &Jumps) -> usize {
    if jumps.returns {
        return 0;
    }
    let targets = jumps.targets.iter().map(|label| target(rewriter, label.as_ref()).unwrap_or(0));
    targets.min().unwrap_or(0)
}

/// Checks that the constructs between a jump and where it leads may be left.
fn checks(rewriter: &Rewriter, target: usize, span: Span) -> TokenStream {
    let at = Span::call_site().located_at(span);
    let flow = flow(span);
    let to = match &rewriter.around[target] {
        EnclosingConstruct::Loop { id, .. } => {
            let kind = located(&variable("kind", *id), span);
            quote_spanned!(at=> &#kind)
        }
        _ => quote_spanned!(at=> &#flow::Host),
    };
    let between = rewriter.around[target + 1..].iter().map(|around| {
        let control = located(&around.control()?, span);
        let to = match around {
            EnclosingConstruct::Operand { .. } => quote_spanned!(at=> &#flow::Host),
            _ => to.clone(),
        };
        Some(quote_spanned!(at=> #flow::may_leave(&#control, #to);))
    });
    between.flatten().collect()
}

/// Tells loops whose kind is that of the jumps out of them of what kind these are.
fn ties(rewriter: &mut Rewriter, target: usize) -> TokenStream {
    let flow = flow(Span::call_site());
    let controls: Vec<Option<Ident>> =
        rewriter.around.iter().map(EnclosingConstruct::control).collect();
    let mut code = TokenStream::new();
    for (index, around) in rewriter.around.iter_mut().enumerate().skip(target) {
        if let EnclosingConstruct::Loop { id, ties: Some(ties), .. } = around {
            for control in controls[index + 1..].iter().flatten() {
                let tied = variable(&format!("tied_{ties}"), *id);
                *ties += 1;
                code.extend(quote!(#flow::tie(&#control, &#tied);));
            }
        }
    }
    code
}

/// Code of `return`.
pub(super) fn return_code(rewriter: &mut Rewriter, code: &mut ExprReturn) -> TokenStream {
    let (flow, frame, span) = (flow(code.return_token.span), frame(), code.return_token.span);
    let at = Span::call_site().located_at(span);
    let mut checks = TokenStream::new();
    for control in rewriter.around.iter().filter_map(EnclosingConstruct::control) {
        let control = located(&control, span);
        if code.expr.as_deref().is_some_and(is_error) {
            checks.extend(quote_spanned!(at=> #flow::returns_error(&#control);));
        }
        if rewriter.assigns_captures {
            checks.extend(quote_spanned!(at=> #flow::changes_captures(&#control);));
        }
    }
    let operands = rewriter
        .around
        .iter()
        .filter(|around| matches!(around, EnclosingConstruct::Operand { .. }));
    for control in operands.filter_map(EnclosingConstruct::control) {
        checks.extend(quote_spanned!(at=> #flow::may_leave(&#control, &#flow::Host);));
    }
    let ties = ties(rewriter, 0);
    let value = match &mut code.expr {
        Some(value) => {
            copies::of_returned(rewriter, value);
            rewriter.visit_expr_mut(value);
            quote!(#value)
        }
        None => quote!(()),
    };
    let kept = Ident::new("__returned", Span::mixed_site());
    let failure = Ident::new("__failure", Span::mixed_site());
    let mut leave = TokenStream::new();
    for around in rewriter.around.iter().rev() {
        if let (Some(control), Some(end)) = (around.control(), around.end()) {
            let located = located(&control, span);
            let keep = quote_spanned!(at=> #frame.keep(&#located, #kept));
            leave.extend(gated(
                &control,
                &quote! {
                    if let ::core::option::Option::Some(#failure) = #keep {
                        return #failure;
                    }
                    break #end;
                },
            ));
        }
    }
    quote!({
        #checks
        #ties
        let #kept = #frame.typed(#value);
        #leave
        return #frame.close(#kept);
    })
}

/// The arms for what comes after a construct that was staged.
pub(super) fn after(rewriter: &Rewriter, control: &Ident, jumps: &Jumps) -> TokenStream {
    let flow = flow(Span::call_site());
    if !jumps.leave() {
        return quote! {
            #flow::Next::Value | #flow::Next::Guard(_) | #flow::Next::Leave(_) => {}
        };
    }
    let (frame, way) = (frame(), Ident::new("__way", Span::mixed_site()));
    let (mut guard, mut leave) = (TokenStream::new(), TokenStream::new());
    for (index, around) in rewriter.around.iter().enumerate().skip(furthest(rewriter, jumps)).rev()
    {
        let (Some(outer), Some(end)) = (around.control(), around.end()) else { continue };
        let (vars, hidden) = rewriter.saved(index);
        let opened = checked(&outer, &quote!(#frame.flows().guard(#way, #vars)));
        let released = rewriter.released_inside(index);
        guard.extend(quote! {
            if #flow::live(&#outer) {
                #flow::gate(&#outer);
                #released
                #hidden
                #opened
            } else
        });
        leave.extend(gated(&outer, &quote!(#frame.flows().pass_on(#way); break #end;)));
    }
    let outermost = checked(control, &quote!(#frame.flows().guard(#way, &mut [])));
    quote! {
        #flow::Next::Value => {}
        #flow::Next::Guard(#way) => { #guard { #outermost } }
        #flow::Next::Leave(#way) => {
            #leave
            return #frame.returned(#way);
        }
    }
}

//! `while`, `for` and `loop`.

use super::{
    jump,
    rewrite::{EnclosingConstruct, Rewriter, condition},
    syntax::{Jumps, bare, may_be_tensor},
    uses::{Uses, declared},
    written::{at, checked, failed, flow, frame, gated, held, label, state_variables, variable},
};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Block, Expr, ExprBlock, ExprForLoop, ExprLoop, ExprRange, ExprWhile, Label, Lifetime, Pat,
    RangeLimits, spanned::Spanned, visit_mut::VisitMut,
};

/// Whether a `for` is Rust's by its syntax: it counts between numbers of Rust.
pub(super) fn is_plain(code: &ExprForLoop) -> bool {
    match bare(&code.expr) {
        Expr::Range(range) => between(range).is_none(),
        _ => false,
    }
}

/// The bounds of `start..end`, where one of them may be a tensor.
fn between(range: &ExprRange) -> Option<(&Expr, &Expr)> {
    let (Some(start), RangeLimits::HalfOpen(_), Some(end)) =
        (&range.start, &range.limits, &range.end)
    else {
        return None;
    };
    (may_be_tensor(start) || may_be_tensor(end)).then_some((start, end))
}

/// Code of the value that is looped over: ranges ask by their types whether they are those of Rust,
/// and `range` takes two or three numbers as one tuple.
fn over(expr: &Expr) -> TokenStream {
    match bare(expr) {
        Expr::Range(range) => match between(range) {
            Some((start, end)) => {
                let span = Span::call_site().located_at(expr.span());
                let flow = flow(expr.span());
                quote_spanned!(span=> #flow::Between(#start, #end).range())
            }
            None => quote!(#expr),
        },
        Expr::Call(call) if is_range(&call.func) && (2..=3).contains(&call.args.len()) => {
            let (range, numbers) = (&call.func, &call.args);
            let span = Span::call_site().located_at(expr.span());
            quote_spanned!(span=> #range((#numbers)))
        }
        _ => quote!(#expr),
    }
}

fn is_range(function: &Expr) -> bool {
    match function {
        Expr::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "range"),
        _ => false,
    }
}

/// The parts that the code of all loops is made of.
struct Parts {
    id: u32,
    name: Lifetime,
    /// `let mut loop = ..;`
    made: TokenStream,
    vars: TokenStream,
    /// The body, and what closes it.
    body: TokenStream,
    ties: u32,
}

/// Properties that tell loops apart.
struct Shape<'a> {
    repeats: &'static str,
    label: Option<&'a Label>,
    /// Condition that is evaluated in every iteration beside the body.
    condition: Option<&'a Expr>,
    pattern: Option<&'a Pat>,
    /// Whether its kind is that of the jumps out of it.
    is_tied: bool,
    span: Span,
}

fn parts(rewriter: &mut Rewriter, shape: Shape<'_>, body: &mut Block) -> Parts {
    let jumps = Jumps::of_loop(shape.label, body);
    let id = rewriter.next_id();
    let made_name = || label("loop", id);
    let name = shape.label.map_or_else(made_name, |label| label.name.clone());
    let code = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block: body.clone() });
    let uses = Uses::of(shape.condition.into_iter().chain([&code]), shape.pattern);
    let state = uses.assigned.clone();
    let ties = shape.is_tied.then_some(0);
    let n_held = uses.called.len();
    let around =
        EnclosingConstruct::Loop { id, name: name.clone(), state: state.clone(), n_held, ties };
    rewriter.note_assigned(&uses.assigned);
    rewriter.around.push(around);
    rewriter.bound(shape.pattern, |rewriter| rewriter.visit_block_mut(body));
    let ties = match rewriter.around.pop() {
        Some(EnclosingConstruct::Loop { ties: Some(ties), .. }) => ties,
        _ => 0,
    };
    let (flow, frame) = (flow(Span::call_site()), frame());
    let (kind, of, end) =
        (at(&variable("kind", id), shape.span), variable("loop", id), label("body", id));
    let vars = state_variables(&kind, state.values());
    let (hold, let_go) = held(&kind, &uses, id);
    let (ends, continues) = (2 * id, 2 * id + 1);
    let finish = checked(&kind, &quote!(#of.finish(#frame.flows(), #vars, #ends, #continues)));
    let after = jump::after(rewriter, &kind, &jumps);
    let slot = variable("slot", id);
    let value = jumps
        .has_value
        .then(|| checked(&kind, &quote!(#flow::AutographLoop::value(&mut #of, &#kind, &#slot))));
    let slot = jumps.has_value.then(|| quote!(let mut #slot = #flow::ValueSlot::new();));
    let finish = gated(
        &kind,
        &quote! {
            match #finish {
                #flow::Next::Again => continue #name,
                #after
            }
            break #name #value;
        },
    );
    let repeats = syn::Ident::new(shape.repeats, Span::call_site());
    let may_exit = jumps.end || jumps.leave();
    let span = Span::call_site().located_at(shape.span);
    let made =
        quote_spanned!(span=> #flow::AutographLoop::new(#flow::Repeats::#repeats, #may_exit));
    Parts {
        id,
        name,
        made: quote!(let mut #of = #made; #slot),
        vars,
        body: quote! {
            #end: {
                #hold
                #body
                #let_go
            }
            #finish
        },
        ties,
    }
}

impl Rewriter {
    fn bound(&mut self, pattern: Option<&Pat>, visit: impl FnOnce(&mut Rewriter)) {
        let names = pattern.map(declared).unwrap_or_default();
        self.declared(names, visit);
    }
}

/// Code of a `while`.
pub(super) fn while_code(rewriter: &mut Rewriter, code: &mut ExprWhile) -> TokenStream {
    let written = (*code.cond).clone();
    condition(rewriter, &mut code.cond);
    let shape = Shape {
        repeats: "While",
        label: code.label.as_ref(),
        condition: Some(&written),
        pattern: None,
        is_tied: false,
        span: code.while_token.span,
    };
    let Parts { id, name, made, vars, body, .. } = parts(rewriter, shape, &mut code.body);
    let (at_condition, flow, frame) = (flow(written.span()), flow(Span::call_site()), frame());
    let kind = at(&variable("kind", id), code.while_token.span);
    let (of, error) = (variable("loop", id), variable("failed", id));
    let fail = failed(&kind, &error);
    let (condition, span) = (&code.cond, Span::call_site().located_at(written.span()));
    let iteration = quote_spanned!(span=> #at_condition::while_(#condition, &mut #of));
    let enter =
        checked(&kind, &quote!(#flow::While::enter(&#kind, &mut #of, #frame.flows(), #vars)));
    let enter = gated(&kind, &quote!(if #enter { continue #name; }));
    quote!({
        #made
        #name: loop {
            #of.before_condition();
            let mut #kind = #iteration;
            if let ::core::option::Option::Some(#error) = #flow::While::error(&mut #kind) {
                return #fail;
            }
            if #flow::While::ends(&#kind) {
                break #name;
            }
            #enter
            #body
        }
    })
}

/// Code of a `for`.
pub(super) fn for_code(rewriter: &mut Rewriter, code: &mut ExprForLoop) -> TokenStream {
    rewriter.visit_expr_mut(&mut code.expr);
    let shape = Shape {
        repeats: "For",
        label: code.label.as_ref(),
        condition: None,
        pattern: Some(&code.pat),
        is_tied: false,
        span: code.for_token.span,
    };
    let Parts { id, name, made, vars, body, .. } = parts(rewriter, shape, &mut code.body);
    let (at_items, flow, frame) = (flow(code.expr.span()), flow(Span::call_site()), frame());
    let kind = at(&variable("kind", id), code.for_token.span);
    let (of, items) = (variable("loop", id), variable("items", id));
    let item = variable("item", id);
    let (over, pattern, span) =
        (over(&code.expr), &code.pat, Span::call_site().located_at(code.expr.span()));
    let iterate = quote_spanned!(span=> #at_items::Over::new(#over).iterate());
    let start =
        checked(&kind, &quote!(#flow::Iterate::start(&#items, &mut #of, #frame.flows(), #vars)));
    let (start, next) = (gated(&kind, &start), checked(&kind, &quote!(#item)));
    quote!({
        #[allow(unused_imports, reason = "values of Rust need it")]
        use #flow::{DatasetIterate as _, HostBetween as _, HostIterate as _};
        #made
        let mut #items = #iterate;
        let #kind = #flow::Iterate::control(&#items);
        #start
        #name: loop {
            let #pattern = (match #flow::Iterate::next(&mut #items, &#of) {
                ::core::option::Option::Some(#item) => #next,
                ::core::option::Option::None => break #name,
            });
            #body
        }
    })
}

/// Code of a `loop`.
pub(super) fn loop_code(rewriter: &mut Rewriter, code: &mut ExprLoop) -> TokenStream {
    let shape = Shape {
        repeats: "Loop",
        label: code.label.as_ref(),
        condition: None,
        pattern: None,
        is_tied: true,
        span: code.loop_token.span,
    };
    let Parts { id, name, made, vars, body, ties } = parts(rewriter, shape, &mut code.body);
    let (flow, frame) = (flow(Span::call_site()), frame());
    let (kind, of) = (variable("kind", id), variable("loop", id));
    let tied: Vec<_> = (0..ties).map(|tie| variable(&format!("tied_{tie}"), id)).collect();
    let joined = tied.iter().fold(
        quote!(#flow::tied::<#flow::Host>()),
        |joined, tied| quote!(#flow::join(&#joined, &#tied)),
    );
    let enter = checked(&kind, &quote!(#flow::enter_loop(&mut #of, #frame.flows(), #vars)));
    let enter = gated(&kind, &enter);
    quote!({
        #(let #tied = #flow::tied();)*
        #made
        let #kind = #flow::loop_of(&#joined);
        #enter
        #name: loop {
            #body
        }
    })
}

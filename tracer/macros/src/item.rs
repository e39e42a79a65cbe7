//! The function a macro stands on: its parts, and what it must be like.

use crate::{
    autograph,
    options::Options,
    parameter::{FunctionParameter, check_owned, ungrouped},
    results,
};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Meta, PathArguments, Receiver, ReturnType,
    Signature, Token, Type, TypeGroup, TypeParen, Visibility, WherePredicate, ext::IdentExt,
    parse::Parse, parse::ParseStream, spanned::Spanned,
};

/// A function or method, with its body as it is written.
#[derive(Clone)]
pub(crate) struct FunctionItem {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

/// A function that can be traced.
pub(crate) struct Definition {
    pub(crate) item: FunctionItem,
    pub(crate) parameters: Vec<FunctionParameter>,
    /// Type of its value when it does not fail.
    pub(crate) output: Type,
    pub(crate) options: Options,
}

impl Parse for FunctionItem {
    fn parse(input: ParseStream<'_>) -> syn::Result<FunctionItem> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let is_function = input.fork().parse::<Signature>();
        if input.peek(Token![struct]) || input.peek(Token![impl]) || input.peek(Token![trait]) {
            return Err(input.error("`#[function]` stands on functions, and on methods one by one"));
        }
        is_function?;
        let sig = input.parse()?;
        match input.parse()? {
            TokenTree::Group(body) => Ok(FunctionItem { attrs, vis, sig, body }),
            other => Err(syn::Error::new(other.span(), "a function that is traced has a body")),
        }
    }
}

impl ToTokens for FunctionItem {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let FunctionItem { attrs, vis, sig, body } = self;
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

/// All that is wrong with a function, told at once.
#[derive(Default)]
struct Problems(Option<syn::Error>);

impl Problems {
    fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    fn at(&mut self, tokens: &impl ToTokens, problem: &str) {
        self.add(syn::Error::new_spanned(tokens, problem));
    }
}

impl Definition {
    /// Parameters, results and options of `item`. Takes the attributes of its parameters that are
    /// ours.
    pub(crate) fn of(
        item: &mut FunctionItem,
        options: TokenStream,
    ) -> syn::Result<(Vec<FunctionParameter>, Type, Options)> {
        let mut problems = Problems::default();
        check_qualifiers(&item.sig, &mut problems);
        check_generics(&item.sig, &mut problems);
        let mut parameters = Vec::new();
        for argument in &mut item.sig.inputs {
            match argument {
                FnArg::Receiver(receiver) => check_receiver(receiver, &mut problems),
                FnArg::Typed(written) => {
                    parameters.extend(problems.take(FunctionParameter::of(written)));
                }
            }
        }
        check_count(&item.sig, &mut problems);
        let output = problems.take(output(&item.sig));
        let options = problems.take(syn::parse2::<Options>(options));
        if let Some(options) = &options {
            problems.take(options.check(&item.sig));
        }
        match (problems.0, output, options) {
            (None, Some(output), Some(options)) => Ok((parameters, output, options)),
            (problems, ..) => Err(problems.unwrap_or_else(|| {
                syn::Error::new_spanned(&item.sig, "this function cannot be traced")
            })),
        }
    }
}

/// The most arguments that `Args` is implemented for.
const MAX_PARAMETERS: usize = 16;

pub(crate) fn n_parameters(sig: &Signature) -> usize {
    sig.inputs.iter().filter(|argument| matches!(argument, FnArg::Typed(_))).count()
}

fn check_count(sig: &Signature, problems: &mut Problems) {
    let is_argument = |argument: &&FnArg| match argument {
        FnArg::Typed(_) => true,
        FnArg::Receiver(receiver) => receiver.mutability.is_some(),
    };
    let mut arguments = sig.inputs.iter().filter(is_argument);
    if let Some(extra) = arguments.nth(MAX_PARAMETERS) {
        let problem = format!(
            "a traced function has {MAX_PARAMETERS} parameters at most: gather some in a structure \
             with `#[derive(Nest)]`"
        );
        problems.at(extra, &problem);
    }
}

fn check_qualifiers(sig: &Signature, problems: &mut Problems) {
    if let Some(token) = &sig.constness {
        problems.at(token, "a traced function runs when the program does: leave out `const`");
    }
    if let Some(token) = &sig.asyncness {
        problems.at(
            token,
            "a trace is made in one go, it cannot wait: leave out `async`, and await before the \
             call",
        );
    }
    if let Some(token) = &sig.unsafety {
        problems.at(token, "a traced function is called by safe code: leave out `unsafe`");
    }
    if let Some(abi) = &sig.abi {
        problems.at(abi, "a traced function is called from Rust: leave out `extern`");
    }
    if let Some(variadic) = &sig.variadic {
        problems.at(variadic, "a traced function takes any number of tensors as `&[Tensor]`");
    }
}

/// Methods are of one type each: their traces are found by their names.
fn check_generics(sig: &Signature, problems: &mut Problems) {
    if sig.receiver().is_none() {
        return;
    }
    for parameter in &sig.generics.params {
        match parameter {
            GenericParam::Lifetime(_) => {}
            GenericParam::Type(_) | GenericParam::Const(_) => problems.at(
                parameter,
                "a traced method is one method, not one for each type: a `Tensor` is of any dtype, a \
                 `NestedValue` of any structure; functions may be generic",
            ),
        }
    }
}

fn check_receiver(receiver: &Receiver, problems: &mut Problems) {
    let is_plain = receiver.colon_token.is_none() && receiver.reference.is_some();
    if !is_plain {
        problems.at(
            receiver,
            "a traced method takes `&self`, and its traces are kept in the object, or `&mut self` of \
             an object made of tensors",
        );
    }
}

/// `T` of the `Result<T>` that is returned.
fn output(sig: &Signature) -> syn::Result<Type> {
    const RESULT: &str = "a traced function returns `Result<T>`, or `Result<T, E>` where `E` is \
                          made `From` the tracer's `Error`: tracing and running may fail";
    let ty = match &sig.output {
        ReturnType::Default => {
            let end = sig.paren_token.span.close();
            return Err(syn::Error::new(end, format!("{RESULT}; here `Result<()>`")));
        }
        ReturnType::Type(_, ty) => ungrouped(ty),
    };
    let output = result_types(ty).next().ok_or_else(|| syn::Error::new_spanned(ty, RESULT))?;
    check_owned(output, "the result of a traced function")?;
    results::check(output)?;
    Ok(output.clone())
}

/// The types in `Result<..>`.
fn result_types(ty: &Type) -> impl Iterator<Item = &Type> {
    let last = match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let arguments = match last.map(|last| (last.ident == "Result", &last.arguments)) {
        Some((true, PathArguments::AngleBracketed(arguments))) => Some(&arguments.args),
        _ => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Changes `T` of the `Result<T>` that is returned.
pub(crate) fn change_result(sig: &mut Signature, change: impl FnOnce(&Type) -> Type) {
    let ReturnType::Type(_, ty) = &mut sig.output else { return };
    let mut ty = &mut **ty;
    while let Type::Group(TypeGroup { elem, .. }) | Type::Paren(TypeParen { elem, .. }) = ty {
        ty = elem;
    }
    let Type::Path(path) = ty else { return };
    let last = path.path.segments.last_mut().map(|last| &mut last.arguments);
    let Some(PathArguments::AngleBracketed(arguments)) = last else { return };
    let result = arguments.args.iter_mut().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    if let Some(ty) = result {
        *ty = change(ty);
    }
}

/// The name without what makes it a raw identifier.
pub(crate) fn name_of(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The attributes of a function, told apart by what they are about.
pub(crate) struct FunctionAttrs<'a> {
    /// Those that say whether it exists.
    pub(crate) conditions: Vec<&'a Attribute>,
    /// Those about lints; what is expected is allowed, as it is found once only.
    pub(crate) lints: Vec<Attribute>,
    /// The rest.
    pub(crate) others: Vec<&'a Attribute>,
}

/// The body of a function as it is compiled.
pub(crate) struct FunctionBody {
    /// The attribute of the function it belongs to.
    pub(crate) lints: Option<TokenStream>,
    pub(crate) code: TokenStream,
}

impl FunctionItem {
    /// The body, with control flow for graphs if that is asked for.
    pub(crate) fn body(&self, autograph: bool) -> FunctionBody {
        let body = &self.body;
        match autograph.then(|| autograph::rewritten(body, &self.sig.output)).flatten() {
            Some(rewritten) => FunctionBody {
                lints: rewritten.has_control_flow.then(autograph::lints),
                code: rewritten.code,
            },
            None => FunctionBody { lints: None, code: quote!(#body) },
        }
    }

    /// The function as callers see it, with a body that calls the traces.
    pub(crate) fn calling(&self, bounds: &[WherePredicate], body: &TokenStream) -> TokenStream {
        let FunctionAttrs { conditions, lints, others } = self.attrs();
        let (vis, outer, bounded) = (&self.vis, outer(&self.sig, bounds), bounded(bounds));
        quote! {
            #(#conditions)*
            #(#others)*
            #(#lints)*
            #bounded
            #[track_caller]
            #vis #outer {
                #body
            }
        }
    }

    /// The method of this name with the body that is traced, which assumes the bounds.
    pub(crate) fn traced_method(
        &self,
        name: &Ident,
        bounds: &[WherePredicate],
        autograph: bool,
    ) -> TokenStream {
        let FunctionAttrs { conditions, lints, .. } = self.attrs();
        let FunctionBody { lints: of_body, code: body } = self.body(autograph);
        let (mut sig, bounded, said_once) = (self.sig.clone(), bounded(bounds), said_once());
        sig.ident = name.clone();
        add_bounds(&mut sig, bounds);
        quote! {
            #(#conditions)*
            #said_once
            #(#lints)*
            #bounded
            #[doc(hidden)]
            #of_body
            #sig #body
        }
    }

    pub(crate) fn attrs(&self) -> FunctionAttrs<'_> {
        let (mut conditions, mut lints, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for attr in &self.attrs {
            let name = attr.path().get_ident().map(Ident::to_string).unwrap_or_default();
            match name.as_str() {
                "cfg" => conditions.push(attr),
                "allow" | "warn" | "deny" | "forbid" => lints.push(attr.clone()),
                "expect" => lints.push(allowed(attr)),
                "track_caller" => {}
                _ => others.push(attr),
            }
        }
        FunctionAttrs { conditions, lints, others }
    }
}

fn allowed(attr: &Attribute) -> Attribute {
    let mut attr = attr.clone();
    if let Meta::List(list) = &mut attr.meta {
        list.path = Ident::new("allow", list.path.span()).into();
    }
    attr
}

/// The signature as callers see it: its parameters have plain names.
fn outer(sig: &Signature, bounds: &[WherePredicate]) -> Signature {
    let mut sig = sig.clone();
    for argument in &mut sig.inputs {
        if let FnArg::Typed(written) = argument {
            written.attrs.clear();
            if let syn::Pat::Ident(pattern) = &mut *written.pat {
                pattern.mutability = None;
            }
        }
    }
    add_bounds(&mut sig, bounds);
    sig
}

fn add_bounds(sig: &mut Signature, bounds: &[WherePredicate]) {
    if !bounds.is_empty() {
        sig.generics.make_where_clause().predicates.extend(bounds.iter().cloned());
    }
}

/// The bounds, and those that are written on the method.
pub(crate) fn assumed(sig: &Signature, bounds: &[WherePredicate]) -> Vec<WherePredicate> {
    let written = sig.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    written.chain(bounds).cloned().collect()
}

/// The attribute of code that assumes such bounds; they speak of types, not of parameters.
pub(crate) fn bounded(bounds: &[WherePredicate]) -> Option<TokenStream> {
    let allowed =
        || quote!(#[allow(trivial_bounds, reason = "whether types are nests is told once")]);
    (!bounds.is_empty()).then(allowed)
}

/// The attribute of the function with the body: what lints say of signatures is said once.
pub(crate) fn said_once() -> TokenStream {
    quote!(#[allow(clippy::too_many_arguments, reason = "said of the function that is called")])
}

/// Requirement on the type of errors, told where that type stands.
pub(crate) struct Failing {
    /// The method that calls a function whose errors are its own.
    pub(crate) call_fallible: Ident,
    /// The function that makes the tracer's errors of them.
    pub(crate) host_error: TokenStream,
}

pub(crate) fn failing(sig: &Signature, macros: &TokenStream) -> Failing {
    let span = match &sig.output {
        ReturnType::Type(_, ty) => result_types(ungrouped(ty)).last().unwrap_or(ty).span(),
        ReturnType::Default => sig.ident.span(),
    };
    Failing {
        call_fallible: Ident::new("call_fallible", Span::call_site().located_at(span)),
        host_error: quote_spanned!(span=> #macros::Error::host),
    }
}

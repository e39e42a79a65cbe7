//! `#[function(name = "f", reduce_retracing)]`: how a function is traced.

use crate::{
    crate_path,
    input_signature::{self, Spec},
    item,
    parameter::FunctionParameter,
};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{
    Expr, LitBool, LitStr, Signature, Token,
    parse::{Parse, ParseStream},
};

/// The options of a function, from the attribute.
pub(crate) struct Options {
    /// Whether control flow in the body may be that of graphs.
    pub(crate) autograph: bool,
    name: Option<LitStr>,
    input_signature: Option<Vec<Spec>>,
    /// The other fields of `FunctionOptions`.
    fields: Vec<TokenStream>,
    given: Vec<Ident>,
}

const OPTIONS: &str = "the options are `name = \"..\"`, `input_signature = [..]`, \
                       `infer_signature_from_first_call`, `reduce_retracing`, \
                       `autograph = false`, `max_traces = N` and `retrace_policy = error` or `warn`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Options> {
        let mut options = Options {
            autograph: true,
            name: None,
            input_signature: None,
            fields: Vec::new(),
            given: Vec::new(),
        };
        while !input.is_empty() {
            options.parse_one(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    fn parse_one(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let option: Ident =
            input.parse().map_err(|error| syn::Error::new(error.span(), OPTIONS))?;
        let wrong = |problem: String| Err(syn::Error::new(option.span(), problem));
        if self.given.contains(&option) {
            return wrong(format!("the option `{option}` is given twice"));
        }
        match option.to_string().as_str() {
            "name" => self.name = Some(value(input)?),
            "autograph" => self.autograph = value::<LitBool>(input)?.value,
            "input_signature" => {
                input.parse::<Token![=]>()?;
                self.input_signature = Some(input_signature::specs(input)?);
            }
            "infer_signature_from_first_call" | "reduce_retracing" => {
                self.fields.push(quote!(#option: true));
            }
            "max_traces" => {
                let traces: Expr = value(input)?;
                self.fields.push(quote!(#option: #traces));
            }
            "retrace_policy" => {
                let policy = policy(&value(input)?)?;
                self.fields.push(quote!(#option: #policy));
            }
            _ => return wrong(format!("unknown option `{option}`: {OPTIONS}")),
        }
        self.given.push(option);
        Ok(())
    }

    /// The number of specs must fit that of the parameters, and a signature that is passed is not
    /// to be inferred.
    pub(crate) fn check(&self, sig: &Signature) -> syn::Result<()> {
        let Some(specs) = &self.input_signature else { return Ok(()) };
        if let Some(receiver) = sig.receiver().filter(|receiver| receiver.mutability.is_some()) {
            let problem = "a method that changes its object has it as an argument, and no input \
                           signature";
            return Err(syn::Error::new_spanned(receiver, problem));
        }
        let n_parameters = item::n_parameters(sig);
        if let Some(extra) = specs.get(n_parameters) {
            let (n_specs, s) = (specs.len(), if n_parameters == 1 { "" } else { "s" });
            let problem = format!("{n_specs} specs for {n_parameters} parameter{s}");
            return Err(syn::Error::new(extra.span, problem));
        }
        match self.given.iter().find(|option| **option == "infer_signature_from_first_call") {
            Some(option) => {
                let problem = "the input signature is given: there is none to infer";
                Err(syn::Error::new(option.span(), problem))
            }
            None => Ok(()),
        }
    }

    /// An expression of type `FunctionOptions`.
    pub(crate) fn code(&self, function: &Ident, parameters: &[FunctionParameter]) -> TokenStream {
        self.code_with(None, function, parameters)
    }

    /// The same where the object of a method is the first argument.
    pub(crate) fn code_of_changing(
        &self,
        function: &Ident,
        parameters: &[FunctionParameter],
    ) -> TokenStream {
        self.code_with(Some("self"), function, parameters)
    }

    fn code_with(
        &self,
        object: Option<&str>,
        function: &Ident,
        parameters: &[FunctionParameter],
    ) -> TokenStream {
        let macros = crate_path::macros();
        let name = match &self.name {
            Some(name) => quote!(#name),
            None => {
                let name = item::name_of(function);
                quote!(#name)
            }
        };
        let object = object.map(|name| quote!(#macros::ParameterSpec::new(#name)));
        let parameters = parameters.iter().map(|parameter| parameter.spec(&macros));
        let parameters = object.into_iter().chain(parameters);
        let signature = self.input_signature.as_ref().map(|specs| {
            let specs = specs.iter().map(|spec| &spec.code);
            quote!(input_signature: ::core::option::Option::Some(::std::vec![#(#specs),*]),)
        });
        let fields = &self.fields;
        quote!(#macros::FunctionOptions {
            name: ::std::convert::Into::into(#name),
            parameters: ::std::vec![#(#parameters),*],
            #signature
            #(#fields,)*
            ..::core::default::Default::default()
        })
    }
}

fn value<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn policy(name: &Ident) -> syn::Result<TokenStream> {
    let macros = crate_path::macros();
    match name.to_string().as_str() {
        "error" => Ok(quote!(#macros::RetracePolicy::Error)),
        "warn" => Ok(quote!(#macros::RetracePolicy::Warn)),
        other => {
            let problem = format!("unknown policy `{other}`: there are `error` and `warn`");
            Err(syn::Error::new(name.span(), problem))
        }
    }
}

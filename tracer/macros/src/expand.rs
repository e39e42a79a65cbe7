//! `#[function]` by kind: a free function, a method, a method that changes its object.

use crate::{
    changing, free,
    item::{Definition, FunctionItem},
    method,
};
use proc_macro2::TokenStream;
use quote::quote;

/// The code for a function with this attribute.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut item: FunctionItem = match syn::parse2(item.clone()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#error #item);
        }
    };
    match Definition::of(&mut item, options) {
        Ok((parameters, output, options)) => {
            let changes_object = item.sig.receiver().map(|receiver| receiver.mutability.is_some());
            let definition = Definition { item, parameters, output, options };
            match changes_object {
                None => free::code(&definition),
                Some(false) => method::code(&definition),
                Some(true) => changing::code(&definition),
            }
        }
        // The function stays what it is, so that its callers are not told of other errors.
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#item #error)
        }
    }
}

//! Dtypes by name.

use proc_macro2::{Ident, Span};

/// The name as Rust's own types have it, TensorFlow's, and that of the variant of `DType`.
const DTYPES: &[(&str, &str, &str)] = &[
    ("bool", "bool", "Bool"),
    ("i8", "int8", "I8"),
    ("i16", "int16", "I16"),
    ("i32", "int32", "I32"),
    ("i64", "int64", "I64"),
    ("u8", "uint8", "U8"),
    ("u16", "uint16", "U16"),
    ("u32", "uint32", "U32"),
    ("u64", "uint64", "U64"),
    ("f16", "float16", "F16"),
    ("bf16", "bfloat16", "BF16"),
    ("f32", "float32", "F32"),
    ("f64", "float64", "F64"),
    ("c64", "complex64", "C64"),
    ("c128", "complex128", "C128"),
    ("string", "string", "String"),
    ("variant", "variant", "Variant"),
];

/// The variant of `DType` with this name.
pub(crate) fn variant(name: &Ident) -> syn::Result<Ident> {
    let is_meant = |names: &&(&str, &str, &str)| name == names.0 || name == names.1;
    match DTYPES.iter().find(is_meant) {
        Some((_, _, variant)) => Ok(Ident::new(variant, Span::call_site())),
        None => {
            let known: Vec<String> = DTYPES
                .iter()
                .map(|(rust, tensorflow, _)| match rust == tensorflow {
                    true => rust.to_string(),
                    false => format!("{rust} or {tensorflow}"),
                })
                .collect();
            let known = known.join(", ");
            Err(syn::Error::new(name.span(), format!("unknown dtype `{name}`; there are {known}")))
        }
    }
}

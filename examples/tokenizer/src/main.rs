//! A model whose first op is a tokenizer of Hugging Face.
//!
//! The file of the model knows the op by its name. Whoever loads the model registers the op with a
//! tokenizer, which the closure keeps; texts go in, numbers of tokens go on to the rest of the graph.
//!
//! ```sh
//! cargo run --manifest-path examples/tokenizer/Cargo.toml -- \
//!     examples/tokenizer/tokenizer.json "The cats sat." "On the mat"
//! ```

use ferroflow::{
    Checkpoint, Tensor, function,
    ir::{
        Attrs, DType, HostTensor, Lowering, OpDef, PartialShape, Shape, infer::OpContext,
        op::arg_of,
    },
    ops,
    runtime::{
        Context, EagerTensor,
        ops::{RuntimeCall, one},
    },
    save,
    saved_model::{LoadOptions, SaveOptions, load},
    spec,
    tracer::{Result as TraceResult, with_context},
};
use std::{collections::BTreeMap, error::Error, path::Path};
use tokenizers::{PaddingParams, Tokenizer};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Tokens of texts: `[n]` → `[n, longest]`, short rows padded.
const TOKENIZE: OpDef = OpDef {
    name: "HuggingFace>Tokenize",
    summary: "Tells the numbers of the tokens of each text.",
    inputs: &[arg_of("texts", DType::String)],
    outputs: &[arg_of("ids", DType::I64)],
    infer: rows_of_tokens,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

/// The shape function: as many rows as texts, of a length that the texts tell.
fn rows_of_tokens(call: &mut OpContext<'_>) -> ferroflow::ir::Result<()> {
    call.check_rank(0, 1)?;
    call.set_all(&PartialShape::ranked([call.shape(0).dim(0), None]));
    Ok(())
}

/// The numbers of the tokens of the texts of a call.
fn tokenize(tokenizer: &Tokenizer, call: &RuntimeCall<'_>) -> Outcome<HostTensor> {
    let texts = call.host(0)?.strings()?;
    let texts = texts.iter().map(|text| Ok(std::str::from_utf8(text)?.to_string()));
    let texts: Vec<String> = texts.collect::<Outcome<_>>()?;
    let n_rows = texts.len();
    let rows = tokenizer.encode_batch(texts, true)?;
    let longest = rows.first().map_or(0, tokenizers::Encoding::len);
    let ids: Vec<i64> =
        rows.iter().flat_map(|row| row.get_ids()).map(|&id| i64::from(id)).collect();
    Ok(HostTensor::from_slice(Shape::new([n_rows, longest])?, &ids)?)
}

/// A context in which models call this tokenizer.
fn context_with(mut tokenizer: Tokenizer) -> Outcome<(Context, &'static OpDef)> {
    tokenizer.with_padding(Some(PaddingParams::default()));
    let context = Context::new();
    let op = context.register_op(TOKENIZE, move |call| {
        let ids = tokenize(&tokenizer, call).map_err(|error| {
            ferroflow::ir::Error::argument(call.op.name, "texts", "texts that it can split", error)
        })?;
        one(ids)
    })?;
    Ok((context, op))
}

/// Saves a model that tells the tokens of texts, and how many tokens of each are no padding.
fn save_model(context: &Context, op: &'static OpDef, folder: &Path) -> Outcome {
    with_context(context, || {
        let count = function(move |texts: Tensor| -> TraceResult<Vec<Tensor>> {
            let ids = ops::raw(op, Attrs::new(), &[&texts])?.remove(0);
            let is_token = ids.not_equal(0i64)?.cast(DType::I64)?;
            Ok(vec![ids, is_token.sum(&[1])?])
        });
        let count = count.with_parameters(["texts"]);
        let count = count.with_input_signature([spec(DType::String, [None])]);
        let mut options = SaveOptions::default().signature(&count)?;
        options.op_namespaces = Some(vec!["HuggingFace".into()]);
        save(&Checkpoint::new().with("count", &count), folder, &options)?;
        Ok(())
    })
}

/// Answers of the model in a folder: the tokens of texts, and the number of them for each text.
fn answers(context: &Context, folder: &Path, texts: &[&str]) -> Outcome<[HostTensor; 2]> {
    let model = load(context, folder, &LoadOptions::default())?;
    let strings = texts.iter().map(|text| text.to_string().into()).collect();
    let texts = HostTensor::from_strings(Shape::new([texts.len()])?, strings)?;
    let inputs = BTreeMap::from([("texts".to_string(), EagerTensor::from(texts))]);
    let mut outputs = model.call_signature("serving_default", &inputs)?;
    let mut output = |name: &str| -> Outcome<HostTensor> {
        Ok(outputs.remove(name).ok_or("the model has this output")?.into_host()?)
    };
    Ok([output("output_0")?, output("output_1")?])
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, texts @ ..] = &arguments[..] else {
        return Err("usage: tokenizer TOKENIZER.json TEXT...".into());
    };
    let (context, op) = context_with(Tokenizer::from_file(file)?)?;
    let folder = std::env::temp_dir().join(format!("tokenizer-{}", std::process::id()));
    save_model(&context, op, &folder)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = answers(&context, &folder, &texts);
    std::fs::remove_dir_all(&folder)?;
    let [ids, counts] = found?;
    println!("{ids}\n{counts} tokens");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_call_the_tokenizer_of_their_context() -> Outcome {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tokenizer.json");
        let (context, op) = context_with(Tokenizer::from_file(file)?)?;
        let folder = tempfile::tempdir()?;
        save_model(&context, op, folder.path())?;
        let [ids, counts] = answers(&context, folder.path(), &["The cats sat.", "On mats"])?;
        assert_eq!(ids.shape().dims(), [2, 7]);
        let expected = [2i64, 4, 5, 7, 6, 10, 3, 2, 8, 9, 7, 3, 0, 0];
        assert_eq!(ids.as_slice::<i64>()?, expected);
        assert_eq!(counts.as_slice::<i64>()?, [7, 5]);
        // Elsewhere the op has no meaning.
        let error = answers(&Context::new(), folder.path(), &["The cat"]).unwrap_err().to_string();
        assert!(error.contains("HuggingFace>Tokenize"), "{error}");
        Ok(())
    }
}

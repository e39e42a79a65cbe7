//! Word pieces by a model: `FastWordpieceTokenizeWithOffsets`, `TFText>FastWordpieceDetokenize`.
//!
//! The trie of the vocabulary carries failure links as in "Fast WordPiece Tokenization" (Song et
//! al., 2021, algorithms 1 and 2): where no child fits, the pieces matched so far are given out
//! and matching goes on from where their rest ends in the trie.

mod model;
pub mod table;
mod tokenize;

use super::{failed, model::Loaded, put_splits, put_texts, rows};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error};
use model::WordpieceModel;
use std::sync::Arc;
use tokenize::FoundPieces;

const DETOKENIZE: &str = "TFText>FastWordpieceDetokenize";

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("FastWordpieceTokenizeWithOffsets", tokenize), (DETOKENIZE, detokenize)];

fn tokenize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let loaded = Loaded::<WordpieceModel>::new(call, 1)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let model = loaded.get(io)?;
        let texts = io.strings(0)?;
        let (mut pieces, mut splits) = (FoundPieces::of(io, texts)?, vec![0]);
        for text in texts {
            model.tokenize(text, &mut pieces).map_err(|_| damaged())?;
            splits.push(pieces.ids.len());
        }
        pieces.ids.put(io, 1)?;
        put_splits(io, 2, DType::I64, &splits)?;
        pieces.tokens.put(io)
    })))
}

fn damaged() -> Error {
    let op = "FastWordpieceTokenizeWithOffsets";
    Error::argument(op, "wp_model", "a model whose links lead somewhere", "another one")
}

fn detokenize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let loaded = Loaded::<WordpieceModel>::new(call, 2)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let model = loaded.get(io)?;
        let ids: &[i32] = io.input(0);
        let sentences = rows(DETOKENIZE, io.input(1), ids.len())?.into_iter();
        let sentences = sentences.map(|row| sentence(&model, &ids[row])).collect::<Result<_>>()?;
        put_texts(io, 0, sentences)
    })))
}

/// Words, with spaces between them.
fn sentence(model: &WordpieceModel, ids: &[i32]) -> Result<Bytes> {
    let Some(vocabulary) = &model.vocabulary else {
        return Err(failed(DETOKENIZE, Code::FailedPrecondition, "the model is not made for it"));
    };
    let mut sentence = Vec::new();
    for (place, &id) in ids.iter().enumerate() {
        let piece = usize::try_from(id).ok().and_then(|id| vocabulary.get(id));
        let Some((piece, is_suffix)) = piece else {
            let detail = format!("piece {id} is not one of the {}", vocabulary.len());
            return Err(failed(DETOKENIZE, Code::OutOfRange, detail));
        };
        match (place, is_suffix) {
            (0, true) => sentence.extend_from_slice(&model.suffix_indicator),
            (0, false) | (_, true) => {}
            (_, false) => sentence.push(b' '),
        }
        sentence.extend_from_slice(piece);
    }
    Ok(sentence.into())
}

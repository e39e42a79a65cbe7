//! Phrases by a model: `PhraseTokenize`, `TFText>PhraseDetokenize`.

use super::{
    failed,
    flatbuffer::{DamagedBuffer, FlatTable},
    model::{Loaded, Recent, TensorModel},
    put_splits, put_texts, put_vector, rows,
    trie::Trie,
    whitespace::{Spaces, words},
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, entropy::unforeseen};
use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

const DETOKENIZE: &str = "TFText>PhraseDetokenize";

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("PhraseTokenize", tokenize), (DETOKENIZE, detokenize)];

/// Ends of words that are words of their own.
const ENDS: [&[u8]; 11] =
    [b"'t", b"'s", b".", b",", b"!", b"?", b"'m", b"'re", b"'ll", b"'d", b"'ve"];

/// A vocabulary of phrases, a FlatBuffer (`PhraseTokenizerConfig`).
struct PhraseModel {
    /// Probability that a phrase is taken although a longer one fits, in percent.
    short: i32,
    unknown: Bytes,
    unknown_id: i64,
    vocabulary: Option<Vec<Bytes>>,
    trie: Trie,
    spaces: Vec<u8>,
    split_ends: bool,
}

impl TensorModel for PhraseModel {
    const INPUT: &'static str = "phrase_model";

    fn read(bytes: &[u8]) -> Result<PhraseModel, DamagedBuffer> {
        let table = FlatTable::root(bytes)?;
        let trie = table.table(5)?.ok_or(DamagedBuffer)?;
        let phrases =
            |phrases: Vec<&[u8]>| phrases.into_iter().map(Bytes::copy_from_slice).collect();
        let vocabulary =
            table.flag(3)?.then(|| table.strings(4)?.ok_or(DamagedBuffer)).transpose()?;
        Ok(PhraseModel {
            short: table.int(0, 0)?,
            unknown: Bytes::copy_from_slice(table.bytes(1)?.unwrap_or_default()),
            unknown_id: table.int(2, 0)?.into(),
            vocabulary: vocabulary.map(phrases),
            trie: Trie::new(trie.vector::<4>(0)?.unwrap_or_default()),
            spaces: table.bytes(6)?.ok_or(DamagedBuffer)?.to_vec(),
            split_ends: table.flag(7)?,
        })
    }

    fn recent() -> &'static Recent<PhraseModel> {
        static RECENT: Recent<PhraseModel> = Recent::new();
        &RECENT
    }
}

impl PhraseModel {
    /// The words of a text with one space between them, ends split off.
    fn spaced(&self, text: &[u8]) -> Bytes {
        let mut spaced = Vec::with_capacity(text.len() + 8);
        let words: Vec<_> = words(text, &Spaces::new(&self.spaces)).collect();
        for (place, word) in words.iter().enumerate() {
            let word = &text[word.clone()];
            // No end is the end of another, so that their order does not matter.
            let end = ENDS.iter().find(|end| self.split_ends && word.ends_with(end));
            let (before, end) = word.split_at(word.len() - end.map_or(0, |end| end.len()));
            spaced.extend_from_slice(before);
            if !end.is_empty() {
                spaced.push(b' ');
                spaced.extend_from_slice(end);
            }
            if place + 1 < words.len() {
                spaced.push(b' ');
            }
        }
        spaced.into()
    }

    /// The bytes and the number of the phrase that a text begins with, if it begins with any.
    fn first(&self, text: &[u8], chance: &mut Chance) -> Option<(usize, i64)> {
        let (mut taken, mut decided) = (None, false);
        self.trie.prefixes(text, |length, id| {
            if !decided && text.get(length).is_none_or(|next| *next == b' ') {
                taken = Some((length, i64::from(id)));
                decided = chance.of(self.short);
            }
        });
        taken
    }
}

/// Chance decisions.
struct Chance {
    key: u64,
    n: u64,
}

impl Chance {
    /// Whether something happens that is this likely, in percent.
    fn of(&mut self, percent: i32) -> bool {
        match percent {
            ..=0 => false,
            100.. => true,
            _ => {
                self.n += 1;
                let hasher = BuildHasherDefault::<DefaultHasher>::default();
                hasher.hash_one((self.key, self.n)) % 100 < percent as u64
            }
        }
    }
}

fn tokenize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let loaded = Loaded::<PhraseModel>::new(call, 1)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let model = loaded.get(io)?;
        let mut chance = Chance { key: unforeseen(), n: 0 };
        let (mut phrases, mut ids, mut splits) = (Vec::new(), Vec::new(), vec![0]);
        for text in io.strings(0)? {
            let text = model.spaced(text);
            let mut at = 0;
            while at < text.len() {
                if let Some((length, id)) = model.first(&text[at..], &mut chance) {
                    phrases.push(text.slice(at..at + length));
                    ids.push(id);
                    at += length + 1;
                    continue;
                }
                phrases.push(model.unknown.clone());
                ids.push(model.unknown_id);
                let space = text[at..].iter().position(|byte| *byte == b' ');
                at = space.map_or(text.len(), |space| at + space + 1);
            }
            splits.push(ids.len());
        }
        put_texts(io, 0, phrases)?;
        put_vector(io, 1, DType::I64, &ids)?;
        put_splits(io, 2, DType::I64, &splits)
    })))
}

fn detokenize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let loaded = Loaded::<PhraseModel>::new(call, 2)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let model = loaded.get(io)?;
        let ids: &[i32] = io.input(0);
        let sentences = rows(DETOKENIZE, io.input(1), ids.len())?.into_iter();
        let sentences = sentences.map(|row| sentence(&model, &ids[row])).collect::<Result<_>>()?;
        put_texts(io, 0, sentences)
    })))
}

/// Phrases, with spaces between them; ends join the word before.
fn sentence(model: &PhraseModel, ids: &[i32]) -> Result<Bytes> {
    let Some(vocabulary) = &model.vocabulary else {
        return Err(failed(DETOKENIZE, Code::FailedPrecondition, "the model is not made for it"));
    };
    let mut sentence = Vec::new();
    for (place, &id) in ids.iter().enumerate() {
        let phrase = usize::try_from(id).ok().and_then(|id| vocabulary.get(id));
        let Some(phrase) = phrase else {
            let detail = format!("phrase {id} is not one of the {}", vocabulary.len());
            return Err(failed(DETOKENIZE, Code::OutOfRange, detail));
        };
        let first = if model.split_ends { sentence.is_empty() } else { place == 0 };
        if !(first || model.split_ends && ENDS.contains(&&phrase[..])) {
            sentence.push(b' ');
        }
        sentence.extend_from_slice(phrase);
    }
    Ok(sentence.into())
}

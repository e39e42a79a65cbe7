//! BERT's normalization by a table: `FastBertNormalize`.

use super::{
    flatbuffer::{DamagedBuffer, FlatTable},
    model::{Loaded, Recent, TensorModel},
    put_splits, put_vector,
    shared::SharedTexts,
    trie::Trie,
    utf8,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, HostTensor};
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("FastBertNormalize", normalize)];

/// Replacements of characters, a FlatBuffer (`FastBertNormalizerModel`). A value of the trie has
/// bit 30 set where the character changes; then bits 6 to 29 are a place in the pool and the lower
/// ones a length.
struct BertModel {
    trie: Trie,
    pool: Box<[u8]>,
    /// The value of the character 0, which the trie has none for.
    zero: u32,
    /// The byte that each byte becomes; [`OTHER`] for those that do not become one byte.
    bytes: [u8; 256],
}

/// A byte of no character by itself, or of one that does not become a character of ASCII.
const OTHER: u8 = 0xff;

/// The most bytes that are mapped before it is looked whether all of them become one byte.
const MAPPED: usize = 64;

impl BertModel {
    fn changed(&self, value: u32) -> Option<&[u8]> {
        if value >> 30 & 1 == 0 {
            return None;
        }
        let (start, length) = ((value as usize & 0x3fff_ffff) >> 6, value as usize & 0x3f);
        Some(self.pool.get(start..start + length).unwrap_or_default())
    }

    /// The replacement of a character; `None` if it stays.
    fn look_up(&self, character: &[u8]) -> Option<&[u8]> {
        if character == [0] {
            return self.changed(self.zero);
        }
        let node = self.trie.descend(self.trie.root()?, character)?;
        self.changed(self.trie.value(node)?)
    }
}

impl TensorModel for BertModel {
    const INPUT: &'static str = "fast_bert_normalizer_model";

    fn read(bytes: &[u8]) -> Result<BertModel, DamagedBuffer> {
        let table = FlatTable::root(bytes)?;
        let trie = Trie::new(table.vector::<4>(1)?.ok_or(DamagedBuffer)?);
        let pool = table.bytes(3)?.ok_or(DamagedBuffer)?.into();
        let mut model = BertModel { trie, pool, zero: table.uint(2)?, bytes: [OTHER; 256] };
        for code in 0..128u8 {
            model.bytes[usize::from(code)] = match model.look_up(&[code]) {
                None => code,
                Some(&[by]) if by.is_ascii() => by,
                Some(_) => OTHER,
            };
        }
        Ok(model)
    }

    fn recent() -> &'static Recent<BertModel> {
        static RECENT: Recent<BertModel> = Recent::new();
        &RECENT
    }
}

/// A text that is being normalized, and its result.
struct Normalized<'a> {
    text: &'a [u8],
    /// The result so far is its end.
    out: &'a mut Vec<u8>,
    /// For each byte of the result, the byte of the text that it comes from.
    offsets: Option<&'a mut Vec<i64>>,
}

impl Normalized<'_> {
    fn run(mut self, model: &BertModel) {
        let mut at = 0;
        while at < self.text.len() {
            if model.bytes[usize::from(self.text[at])] != OTHER {
                at = self.map_bytes(at, model);
                continue;
            }
            let (_, end) = utf8::next(self.text, at);
            match model.look_up(&self.text[at..end]) {
                Some(by) => self.replace(at, by),
                None => self.keep(at..end),
            }
            at = end;
        }
        if let Some(offsets) = &mut self.offsets {
            // The end of the result is the end of the text.
            offsets.push(self.text.len() as i64);
        }
    }

    /// Writes bytes from one on that become one byte, and returns where they end.
    fn map_bytes(&mut self, start: usize, model: &BertModel) -> usize {
        let (rest, before) = (&self.text[start..], self.out.len());
        let mut n = rest.len().min(MAPPED);
        // All of them first, as most texts have no others.
        let mut is_any_other = false;
        self.out.extend(rest[..n].iter().map(|byte| {
            let mapped = model.bytes[usize::from(*byte)];
            is_any_other |= mapped == OTHER;
            mapped
        }));
        if is_any_other {
            n = self.out[before..].iter().position(|byte| *byte == OTHER).unwrap_or(n);
            self.out.truncate(before + n);
        }
        self.tell(start..start + n);
        start + n
    }

    fn keep(&mut self, range: Range<usize>) {
        self.out.extend_from_slice(&self.text[range.clone()]);
        self.tell(range);
    }

    fn replace(&mut self, start: usize, by: &[u8]) {
        self.out.extend_from_slice(by);
        if let Some(offsets) = &mut self.offsets {
            offsets.extend(by.iter().map(|_| start as i64));
        }
    }

    fn tell(&mut self, range: Range<usize>) {
        if let Some(offsets) = &mut self.offsets {
            offsets.extend(range.start as i64..range.end as i64);
        }
    }
}

fn normalize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let loaded = Loaded::<BertModel>::new(call, 1)?;
    let (shape, get_offsets) = (call.shape(0).clone(), call.attrs.bool("get_offsets")?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (model, inputs) = (loaded.get(io)?, io.strings(0)?);
        let mut texts = SharedTexts::with_room(inputs.len())?;
        let (mut offsets, mut splits) = (Vec::new(), vec![0]);
        for text in inputs {
            let start = texts.buffer.len();
            texts.buffer.reserve(text.len());
            let offsets_of = get_offsets.then_some(&mut offsets);
            Normalized { text, out: &mut texts.buffer, offsets: offsets_of }.run(&model);
            if texts.buffer[start..] == **text {
                texts.buffer.truncate(start);
                texts.push(text.clone());
            } else {
                texts.push_written();
            }
            splits.push(offsets.len());
        }
        io.put(0, HostTensor::from_strings(shape.clone(), texts.finish())?)?;
        put_vector(io, 1, DType::I64, &offsets)?;
        put_splits(io, 2, DType::I64, &splits)
    })))
}

//! Text as code points: `UnicodeDecode`, `UnicodeDecodeWithOffsets`, `UnicodeEncode`,
//! `UnicodeTranscode`.

use super::{
    Mapped,
    encoding::{Encoding, OutputEncoding},
    put_mapped, put_strings,
};
use crate::{
    cpu::{
        Build,
        growing::GrowingVector,
        index::{integers, put_integers},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("UnicodeDecode", decode),
    ("UnicodeDecodeWithOffsets", decode),
    ("UnicodeEncode", encode),
    ("UnicodeTranscode", transcode),
];

/// Treatment of malformed text.
#[derive(Debug, Clone, Copy)]
enum Malformed {
    Fail,
    Skip,
    Replace(char),
}

impl Malformed {
    fn of(call: &OpCall<'_>) -> Result<Malformed> {
        Ok(match call.attrs.string("errors")? {
            "strict" => Malformed::Fail,
            "ignore" => Malformed::Skip,
            _ => Malformed::Replace(replacement(call)?),
        })
    }

    /// The character that stands for a malformed part, if any.
    fn character(self) -> Result<Option<char>> {
        match self {
            Malformed::Replace(replacement) => Ok(Some(replacement)),
            Malformed::Skip => Ok(None),
            Malformed::Fail => {
                let (expected, found) = ("well-formed text", "something else");
                Err(Error::argument("unicode", "input", expected, found).into())
            }
        }
    }
}

/// The character that stands for what is malformed.
fn replacement(call: &OpCall<'_>) -> Result<char> {
    let code = u32::try_from(call.attrs.int("replacement_char")?).ok();
    Ok(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Reader of strings.
#[derive(Debug, Clone)]
struct Reader {
    encoding: Encoding,
    malformed: Malformed,
    /// Replacement of control characters, if they do not pass.
    controls: Option<Malformed>,
}

impl Reader {
    fn new(call: &OpCall<'_>) -> Result<Reader> {
        let name = call.attrs.string("input_encoding")?;
        let encoding = Encoding::find(name)
            .ok_or_else(|| call.wrong("input_encoding", "a known encoding", name))?;
        let malformed = Malformed::of(call)?;
        let controls = call.attrs.bool("replace_control_characters")?.then_some(malformed);
        Ok(Reader { encoding, malformed, controls })
    }

    /// Passes on each character of a text, and the byte it begins at.
    fn read(&self, text: &[u8], mut take: impl FnMut(usize, char)) -> Result<()> {
        let mut pass = |(start, character): (usize, Option<char>)| {
            let shown = match (character, self.controls) {
                (Some('\0'..='\x1f'), Some(controls)) => controls.character()?,
                (Some(character), _) => Some(character),
                (None, _) => self.malformed.character()?,
            };
            if let Some(character) = shown {
                take(start, character);
            }
            Ok(())
        };
        if matches!(self.encoding, Encoding::Utf8)
            && let Ok(text) = str::from_utf8(text)
        {
            // As nearly all texts are, without a list of the characters.
            let mut characters = text.char_indices();
            return characters.try_for_each(|(start, character)| pass((start, Some(character))));
        }
        self.encoding.decode(text).into_iter().try_for_each(pass)
    }
}

fn decode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (mut reader, splits_dtype) = (Reader::new(call)?, call.outputs[0].dtype);
    if let Some(Malformed::Fail) = reader.controls {
        // Unlike malformed text, a control character is no reason to fail here.
        reader.controls = Some(Malformed::Replace(replacement(call)?));
    }
    let with_offsets = call.outputs.len() > 2;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let texts = io.strings(0)?;
        let with_offsets = with_offsets && io.is_read(2);
        let room = texts.iter().map(|text| text.len()).sum::<usize>().min(1 << 20);
        let mut characters = GrowingVector::with_room(DType::I32, room)?;
        let mut offsets =
            GrowingVector::with_room(DType::I64, if with_offsets { room } else { 0 })?;
        let mut splits = vec![0];
        for text in texts {
            reader.read(text, |start, character| {
                characters.push(character as i32);
                if with_offsets {
                    offsets.push(start as i64);
                }
            })?;
            splits.push(characters.len());
        }
        put_integers(io, 0, splits_dtype, &Shape::new([splits.len()])?, splits.into_iter())?;
        characters.put(io, 1)?;
        if with_offsets { offsets.put(io, 2) } else { Ok(()) }
    })))
}

fn transcode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (mapped, reader, output) = (Mapped::new(call), Reader::new(call)?, output_encoding(call)?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        put_mapped(io, &mapped, |text| {
            let mut written = Vec::with_capacity(text.len());
            reader.read(text, |_, character| output.encode(character, &mut written))?;
            Ok(Bytes::from(written))
        })
    })))
}

fn output_encoding(call: &OpCall<'_>) -> Result<OutputEncoding> {
    let name = call.attrs.string("output_encoding")?;
    OutputEncoding::find(name)
        .ok_or_else(|| call.wrong("output_encoding", "a known encoding", name))
}

fn encode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (malformed, output) = (Malformed::of(call)?, output_encoding(call)?);
    let (n, dtype) = (call.shape(0)[0], call.dtype(1));
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (codes, splits): (&[i32], _) = (io.input(0), integers(io, 1, dtype));
        if splits[0] != 0 || splits[splits.len() - 1] != n as i64 || !splits.is_sorted() {
            let (expected, found) = (format!("from 0 to {n}, rising"), format!("{splits:?}"));
            return Err(Error::argument("UnicodeEncode", "input_splits", expected, found).into());
        }
        // All texts are parts of one.
        let (mut text, mut limits) = (Vec::with_capacity(n), Vec::with_capacity(splits.len()));
        limits.push(0);
        for ends in splits.windows(2) {
            for &code in &codes[ends[0] as usize..ends[1] as usize] {
                let character = match u32::try_from(code).ok().and_then(char::from_u32) {
                    Some(character) => Some(character),
                    None => malformed.character()?,
                };
                if let Some(character) = character {
                    output.encode(character, &mut text);
                }
            }
            limits.push(text.len());
        }
        let text = Bytes::from(text);
        let texts: Vec<Bytes> =
            limits.windows(2).map(|ends| text.slice(ends[0]..ends[1])).collect();
        put_strings(io, 0, &Shape::new([texts.len()])?, texts)
    })))
}

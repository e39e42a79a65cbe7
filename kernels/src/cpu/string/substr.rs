//! Parts of strings, counted in bytes or UTF-8 characters: `StringLength`, `Substr`.

use super::{Mapped, continues, put_mapped, put_strings};
use crate::{
    cpu::{Build, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::broadcast::positions,
};
use bytes::Bytes;
use ferroflow_ir::Error;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("StringLength", length), ("Substr", substr)];

/// Unit in which strings are counted.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Bytes,
    Characters,
}

impl Unit {
    fn of(call: &OpCall<'_>) -> Result<Unit> {
        Ok(match call.attrs.string("unit")? {
            "UTF8_CHAR" => Unit::Characters,
            _ => Unit::Bytes,
        })
    }

    fn length(self, text: &[u8]) -> usize {
        match self {
            Unit::Bytes => text.len(),
            Unit::Characters => text.iter().filter(|&&byte| !continues(byte)).count(),
        }
    }

    /// The byte at which unit `n` begins; the end if there are no more.
    fn start(self, text: &[u8], n: usize) -> usize {
        match self {
            Unit::Bytes => n.min(text.len()),
            Unit::Characters => {
                let mut starts = (0..text.len()).filter(|&at| !continues(text[at]));
                starts.nth(n).unwrap_or(text.len())
            }
        }
    }

    /// The part of `length` units from unit `position` on; from the end where that is negative.
    fn part(self, text: &Bytes, position: i64, length: i64) -> Result<Bytes> {
        let own = self.length(text) as i64;
        let first = if position < 0 { position + own } else { position };
        if !(0..=own).contains(&first) {
            let (what, low, high) = ("position".into(), -own, own + 1);
            return Err(Error::Index { what, index: position, low, high }.into());
        }
        let end = match (self, length) {
            (Unit::Bytes, ..0) => own,
            (Unit::Characters, ..0) => first,
            (_, length) => first.saturating_add(length),
        };
        let start = self.start(text, first as usize);
        let end = self.start(text, usize::try_from(end).unwrap_or(usize::MAX));
        Ok(text.slice(start..end))
    }
}

fn length(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (mapped, unit) = (Mapped::new(call), Unit::of(call)?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        put_mapped(io, &mapped, |text| Ok(unit.length(text) as i32))
    })))
}

fn substr(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (unit, dtype, shape) = (Unit::of(call)?, call.dtype(1), call.output_shape(0)?);
    let texts = positions(call.shape(0), &shape);
    let positions = positions(call.shape(1), &shape);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let own = io.strings(0)?;
        let (starts, lengths) = (integers(io, 1, dtype), integers(io, 2, dtype));
        let parts: Result<Vec<Bytes>> = texts
            .iter()
            .zip(&positions)
            .map(|(&text, &place)| unit.part(&own[text], starts[place], lengths[place]))
            .collect();
        put_strings(io, 0, &shape, parts?)
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_text() {
        let text = Bytes::from_static("w\u{f6}rld".as_bytes());
        let check = |unit: Unit, position, length, expected: &str| {
            assert_eq!(unit.part(&text, position, length).unwrap(), expected);
        };
        check(Unit::Characters, 1, 2, "\u{f6}r");
        check(Unit::Characters, -2, 9, "ld");
        check(Unit::Bytes, -3, 2, "rl");
        check(Unit::Characters, 5, 1, "");
        assert!(Unit::Characters.part(&text, 6, 1).is_err());
        assert!(Unit::Bytes.part(&text, -7, 1).is_err());
    }
}

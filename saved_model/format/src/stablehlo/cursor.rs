//! The primitives of MLIR bytecode: bytes, variable-width integers, sections.
//!
//! Every count is checked against the bytes that are left, as each thing counted takes one at
//! least: memory in use is bounded by the length of the artifact.

use ferroflow_ir::{Error, Result};

/// A position in the bytes of an artifact.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begins in the artifact.
    base: usize,
}

/// A part of the artifact with an identifier.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) id: u8,
    pub(super) data: Cursor<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, base: 0 }
    }

    /// The error that something at this position breaks a rule.
    pub(super) fn damaged(&self, rule: impl Into<String>) -> Error {
        let node = format!("byte {} of a StableHLO artifact", self.base + self.at);
        Error::Malformed { node, rule: rule.into().into() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.damaged("it ends within a value"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// The next `count` bytes as a cursor of their own.
    pub(super) fn part(&mut self, count: usize) -> Result<Cursor<'a>> {
        let base = self.base + self.at;
        Ok(Cursor { bytes: self.take(count)?, at: 0, base })
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// An unsigned integer: the zeros below the lowest set bit of the first byte count the bytes
    /// that come after it.
    pub(super) fn varint(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let extra = first.trailing_zeros() as usize;
        if extra >= 8 {
            let mut all = [0; 8];
            all.copy_from_slice(self.take(8)?);
            return Ok(u64::from_le_bytes(all));
        }
        let mut all = [0; 8];
        all[0] = first;
        all[1..=extra].copy_from_slice(self.take(extra)?);
        Ok(u64::from_le_bytes(all) >> (extra + 1))
    }

    /// A signed integer in zigzag encoding.
    pub(super) fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// An integer with a flag in its lowest bit.
    pub(super) fn flagged(&mut self) -> Result<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// A count of things that take one byte each at least.
    pub(super) fn count(&mut self) -> Result<usize> {
        let count = self.varint()?;
        self.check_count(count)
    }

    pub(super) fn check_count(&self, count: u64) -> Result<usize> {
        let count = usize::try_from(count).ok().filter(|&count| count <= self.remaining());
        count.ok_or_else(|| self.damaged("it counts more than it has"))
    }

    /// An index below `limit`.
    pub(super) fn index(&mut self, limit: usize) -> Result<usize> {
        let index = self.varint()?;
        self.check_index(index, limit)
    }

    pub(super) fn check_index(&self, index: u64, limit: usize) -> Result<usize> {
        let index = usize::try_from(index).ok().filter(|&index| index < limit);
        index.ok_or_else(|| self.damaged("it refers to something that is not there"))
    }

    /// Bytes up to a zero, which is passed.
    pub(super) fn terminated(&mut self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == 0);
        let length = length.ok_or_else(|| self.damaged("a string has no end"))?;
        let text = self.take(length)?;
        self.at += 1;
        Ok(text)
    }

    /// A section, its alignment passed over.
    pub(super) fn section(&mut self) -> Result<Section<'a>> {
        let head = self.byte()?;
        let length = self.varint()?;
        if head & 0x80 != 0 {
            let alignment = self.varint()?;
            if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
                return Err(self.damaged("the alignment of a section is a power of two"));
            }
            let past = (self.base + self.at) as u64 % alignment;
            if past > 0 {
                self.take((alignment - past) as usize)?;
            }
        }
        let length = self.check_count(length)?;
        Ok(Section { id: head & 0x7f, data: self.part(length)? })
    }
}

/// No section asks for more.
const MAX_ALIGNMENT: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width() {
        for (bytes, expected) in [
            (&[0x01][..], 0),
            (&[0xff], 127),
            (&[0x02, 0x02], 128),
            (&[0xfe, 0xff], (1 << 14) - 1),
            (&[0x80, 1, 0, 0, 0, 0, 0, 0], 1),
            (&[0, 1, 0, 0, 0, 0, 0, 0, 0x80], (1 << 63) + 1),
        ] {
            let mut cursor = Cursor::new(bytes);
            assert_eq!(cursor.varint().unwrap(), expected);
            assert!(cursor.is_empty());
        }
        assert!(Cursor::new(&[0x00, 1, 2]).varint().is_err());
        let signed = |byte: u8| Cursor::new(&[byte << 1 | 1]).signed().unwrap();
        assert_eq!([0, 1, 2, 3].map(signed), [0, -1, 1, -2]);
    }

    #[test]
    fn counts_are_bounded_by_what_is_left() {
        let mut cursor = Cursor::new(&[0x07, 0, 0]);
        let message = cursor.count().unwrap_err().to_string();
        assert!(message.contains("byte 1 of a StableHLO artifact"), "{message}");
    }
}

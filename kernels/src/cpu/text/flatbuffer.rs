//! Reading FlatBuffers, the format of models in tensors. Whatever is outside of the bytes is an
//! error; numbers of fields count from 0 in the order of the schema.

/// Bytes that are no such buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DamagedBuffer;

/// A table of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlatTable<'a> {
    buffer: &'a [u8],
    at: usize,
    /// Where the positions of the fields are listed, and how many bytes of them.
    fields: usize,
    n_fields: usize,
}

fn bytes<const N: usize>(buffer: &[u8], at: usize) -> Result<[u8; N], DamagedBuffer> {
    buffer.get(at..).and_then(|rest| rest.first_chunk().copied()).ok_or(DamagedBuffer)
}

/// A position that is told relative to where it is told.
fn referred(buffer: &[u8], at: usize) -> Result<usize, DamagedBuffer> {
    let distance = u32::from_le_bytes(bytes(buffer, at)?) as usize;
    at.checked_add(distance).filter(|at| *at < buffer.len()).ok_or(DamagedBuffer)
}

/// The elements of a vector, each of `size` bytes.
fn vector(buffer: &[u8], at: usize, size: usize) -> Result<&[u8], DamagedBuffer> {
    let n = u32::from_le_bytes(bytes(buffer, at)?) as usize;
    let length = n.checked_mul(size).ok_or(DamagedBuffer)?;
    buffer.get(at + 4..).and_then(|rest| rest.get(..length)).ok_or(DamagedBuffer)
}

impl<'a> FlatTable<'a> {
    /// The root table of a buffer.
    pub(super) fn root(buffer: &'a [u8]) -> Result<FlatTable<'a>, DamagedBuffer> {
        FlatTable::new(buffer, referred(buffer, 0)?)
    }

    fn new(buffer: &'a [u8], at: usize) -> Result<FlatTable<'a>, DamagedBuffer> {
        let back = i64::from(i32::from_le_bytes(bytes(buffer, at)?));
        let start = usize::try_from(at as i64 - back).map_err(|_| DamagedBuffer)?;
        let length = usize::from(u16::from_le_bytes(bytes(buffer, start)?));
        let fields = start + 4;
        Ok(FlatTable { buffer, at, fields, n_fields: length.saturating_sub(4) / 2 })
    }

    /// Where a field is, if it is there.
    fn field(&self, field: usize) -> Result<Option<usize>, DamagedBuffer> {
        if field >= self.n_fields {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(bytes(self.buffer, self.fields + 2 * field)?);
        Ok((offset != 0).then(|| self.at + usize::from(offset)))
    }

    fn number<const N: usize>(&self, field: usize) -> Result<Option<[u8; N]>, DamagedBuffer> {
        self.field(field)?.map(|at| bytes(self.buffer, at)).transpose()
    }

    /// A flag; false if absent.
    pub(super) fn flag(&self, field: usize) -> Result<bool, DamagedBuffer> {
        Ok(self.number(field)?.is_some_and(|[byte]| byte != 0))
    }

    /// A signed integer of 32 bits.
    pub(super) fn int(&self, field: usize, default: i32) -> Result<i32, DamagedBuffer> {
        Ok(self.number(field)?.map_or(default, i32::from_le_bytes))
    }

    /// An integer of 32 bits; 0 if absent.
    pub(super) fn uint(&self, field: usize) -> Result<u32, DamagedBuffer> {
        Ok(self.number(field)?.map_or(0, u32::from_le_bytes))
    }

    /// A float; 0 if absent.
    pub(super) fn float(&self, field: usize) -> Result<f32, DamagedBuffer> {
        Ok(self.number(field)?.map_or(0.0, f32::from_le_bytes))
    }

    /// A signed byte; 0 if absent.
    pub(super) fn byte(&self, field: usize) -> Result<i8, DamagedBuffer> {
        Ok(self.number(field)?.map_or(0, i8::from_le_bytes))
    }

    /// The bytes of a string or a vector of bytes, if there is one.
    pub(super) fn bytes(&self, field: usize) -> Result<Option<&'a [u8]>, DamagedBuffer> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        vector(self.buffer, referred(self.buffer, at)?, 1).map(Some)
    }

    /// The elements of a vector of `N` bytes each, if there is one.
    pub(super) fn vector<const N: usize>(
        &self,
        field: usize,
    ) -> Result<Option<&'a [[u8; N]]>, DamagedBuffer> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        let elements = vector(self.buffer, referred(self.buffer, at)?, N)?;
        Ok(Some(elements.as_chunks().0))
    }

    /// A vector of strings, if there is one.
    pub(super) fn strings(&self, field: usize) -> Result<Option<Vec<&'a [u8]>>, DamagedBuffer> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        let start = referred(self.buffer, at)?;
        let n = vector(self.buffer, start, 4)?.len() / 4;
        let one =
            |index: usize| vector(self.buffer, referred(self.buffer, start + 4 + 4 * index)?, 1);
        (0..n).map(one).collect::<Result<Vec<_>, DamagedBuffer>>().map(Some)
    }

    /// A table inside of this one, if there is one.
    pub(super) fn table(&self, field: usize) -> Result<Option<FlatTable<'a>>, DamagedBuffer> {
        let Some(at) = self.field(field)? else { return Ok(None) };
        FlatTable::new(self.buffer, referred(self.buffer, at)?).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table of a number, a string and a field that is absent.
    const BUFFER: &[u8] = &[
        16, 0, 0, 0, // the root is at 16
        0, 0, 10, 0, 12, 0, 4, 0, 8, 0, 0, 0, // at 6: ten bytes of fields, twelve of table
        10, 0, 0, 0, // the fields are ten bytes before
        7, 0, 0, 0, // the number
        4, 0, 0, 0, // the string is at 28
        2, 0, 0, 0, b'a', b'b', 0, 0,
    ];

    #[test]
    fn fields_are_found() {
        let table = FlatTable::root(BUFFER).unwrap();
        assert_eq!(table.int(0, 1), Ok(7));
        assert_eq!(table.bytes(1), Ok(Some(&b"ab"[..])));
        assert_eq!(table.int(2, 5), Ok(5));
        assert_eq!(table.int(9, 5), Ok(5));
        assert!(FlatTable::root(&BUFFER[..17]).is_err());
    }

    proptest! {
        #[test]
        fn damage_is_an_error(at in 0..BUFFER.len(), byte: u8, length in 0..=BUFFER.len()) {
            let mut damaged = BUFFER.to_vec();
            damaged[at] = byte;
            damaged.truncate(length);
            if let Ok(table) = FlatTable::root(&damaged) {
                for field in 0..4 {
                    let _ = (table.int(field, 0), table.bytes(field), table.vector::<8>(field));
                    let _ = (table.strings(field), table.table(field).map(|_| ()));
                }
            }
        }
    }
}

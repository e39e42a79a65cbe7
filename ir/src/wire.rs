//! The wire format of protocol buffers, for messages that are elements of string tensors.
//!
//! Numbers of fields are those of TensorFlow's `.proto` files.

pub(crate) mod tensor;

/// A message that is cut off or makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WireValue<'a> {
    /// An integer, a flag or an enum.
    Varint(u64),
    /// A double or a 64-bit integer.
    Fixed64([u8; 8]),
    /// A message, a string, bytes or packed numbers.
    Bytes(&'a [u8]),
    /// A float or a 32-bit integer.
    Fixed32([u8; 4]),
}

impl<'a> WireValue<'a> {
    /// The bytes of a message or a string.
    pub(crate) fn bytes(self) -> Result<&'a [u8], Damaged> {
        match self {
            WireValue::Bytes(bytes) => Ok(bytes),
            WireValue::Varint(_) | WireValue::Fixed64(_) | WireValue::Fixed32(_) => Err(Damaged),
        }
    }

    /// An integer.
    pub(crate) fn varint(self) -> Result<u64, Damaged> {
        match self {
            WireValue::Varint(value) => Ok(value),
            WireValue::Bytes(_) | WireValue::Fixed64(_) | WireValue::Fixed32(_) => Err(Damaged),
        }
    }

    /// The integers of a repeated field, packed or not, one after the other.
    pub(crate) fn each_varint(self, mut take: impl FnMut(u64)) -> Result<(), Damaged> {
        let mut packed = match self {
            WireValue::Varint(value) => {
                take(value);
                return Ok(());
            }
            WireValue::Bytes(packed) => packed,
            WireValue::Fixed64(_) | WireValue::Fixed32(_) => return Err(Damaged),
        };
        while !packed.is_empty() {
            take(take_varint(&mut packed)?);
        }
        Ok(())
    }

    /// The bytes of the numbers in a repeated field of fixed size, packed or not.
    pub(crate) fn fixed<const SIZE: usize>(&self) -> Result<&[[u8; SIZE]], Damaged> {
        let bytes: &[u8] = match self {
            WireValue::Fixed64(bytes) if SIZE == 8 => bytes,
            WireValue::Fixed32(bytes) if SIZE == 4 => bytes,
            WireValue::Bytes(packed) => packed,
            WireValue::Varint(_) | WireValue::Fixed64(_) | WireValue::Fixed32(_) => {
                return Err(Damaged);
            }
        };
        match bytes.as_chunks() {
            (numbers, []) => Ok(numbers),
            _ => Err(Damaged),
        }
    }
}

/// The fields of a message, with their numbers, in order.
#[derive(Debug, Clone)]
pub(crate) struct WireFields<'a>(&'a [u8]);

/// The fields of a message.
pub(crate) fn fields(message: &[u8]) -> WireFields<'_> {
    WireFields(message)
}

impl<'a> WireFields<'a> {
    fn take(&mut self) -> Result<(u64, WireValue<'a>), Damaged> {
        let key = take_varint(&mut self.0)?;
        let field = match key & 7 {
            0 => WireValue::Varint(take_varint(&mut self.0)?),
            1 => WireValue::Fixed64(
                *self.0.split_off(..8).and_then(<[u8]>::first_chunk).ok_or(Damaged)?,
            ),
            2 => {
                let length = usize::try_from(take_varint(&mut self.0)?).map_err(|_| Damaged)?;
                WireValue::Bytes(self.0.split_off(..length).ok_or(Damaged)?)
            }
            5 => WireValue::Fixed32(
                *self.0.split_off(..4).and_then(<[u8]>::first_chunk).ok_or(Damaged)?,
            ),
            _ => return Err(Damaged),
        };
        if key >> 3 == 0 { Err(Damaged) } else { Ok((key >> 3, field)) }
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u64, WireValue<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.take();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn take_varint(rest: &mut &[u8]) -> Result<u64, Damaged> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = *rest.split_off_first().ok_or(Damaged)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Damaged)
}

/// Appends an integer.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends an integer field; 0 stands for itself by being absent.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        put_varint(out, field << 3);
        put_varint(out, value);
    }
}

/// Appends a field of bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_written() {
        let mut message = Vec::new();
        put_number(&mut message, 1, 300);
        put_number(&mut message, 2, 0);
        put_bytes(&mut message, 3, b"abc");
        let read: Result<Vec<_>, Damaged> = fields(&message).collect();
        assert_eq!(read, Ok(vec![(1, WireValue::Varint(300)), (3, WireValue::Bytes(b"abc"))]));
        assert_eq!(fields(&message[..message.len() - 1]).last(), Some(Err(Damaged)));
    }

    #[test]
    fn repeated_numbers_may_be_packed() {
        let mut values = Vec::new();
        WireValue::Bytes(&[1, 0x80, 1]).each_varint(|value| values.push(value)).unwrap();
        WireValue::Varint(7).each_varint(|value| values.push(value)).unwrap();
        assert_eq!(values, [1, 128, 7]);
        assert_eq!(WireValue::Bytes(&[0; 8]).fixed::<4>(), Ok(&[[0u8; 4]; 2][..]));
        assert_eq!(WireValue::Bytes(&[0; 7]).fixed::<4>(), Err(Damaged));
    }
}

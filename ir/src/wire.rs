//! The wire format of protocol buffers, for messages that are elements of string tensors or attributes.
//!
//! Numbers of fields are those of TensorFlow's `.proto` files.
//!
//! ```
//! use ferroflow_ir::wire::{WireValue, fields, put_number};
//! let mut message = Vec::new();
//! put_number(&mut message, 1, 300);
//! let read: Result<Vec<_>, _> = fields(&message).collect();
//! assert_eq!(read.unwrap(), [(1, WireValue::Varint(300))]);
//! assert!(fields(&[8]).next().unwrap().is_err());
//! ```

/// A message that is cut off or makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedMessage;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WireValue<'a> {
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
    ///
    /// # Errors
    ///
    /// When it is a number.
    pub fn bytes(self) -> Result<&'a [u8], DamagedMessage> {
        match self {
            WireValue::Bytes(bytes) => Ok(bytes),
            WireValue::Varint(_) | WireValue::Fixed64(_) | WireValue::Fixed32(_) => {
                Err(DamagedMessage)
            }
        }
    }

    /// An integer.
    ///
    /// # Errors
    ///
    /// When it is anything else.
    pub fn varint(self) -> Result<u64, DamagedMessage> {
        match self {
            WireValue::Varint(value) => Ok(value),
            WireValue::Bytes(_) | WireValue::Fixed64(_) | WireValue::Fixed32(_) => {
                Err(DamagedMessage)
            }
        }
    }

    /// The integers of a repeated field, packed or not, one after the other.
    ///
    /// # Errors
    ///
    /// When it is damaged, or of numbers of fixed size.
    pub fn each_varint(self, mut take: impl FnMut(u64)) -> Result<(), DamagedMessage> {
        let mut packed = match self {
            WireValue::Varint(value) => {
                take(value);
                return Ok(());
            }
            WireValue::Bytes(packed) => packed,
            WireValue::Fixed64(_) | WireValue::Fixed32(_) => return Err(DamagedMessage),
        };
        while !packed.is_empty() {
            take(take_varint(&mut packed)?);
        }
        Ok(())
    }

    /// The bytes of the numbers in a repeated field of fixed size, packed or not.
    ///
    /// # Errors
    ///
    /// When it is damaged, or of numbers of another size.
    pub fn fixed<const SIZE: usize>(&self) -> Result<&[[u8; SIZE]], DamagedMessage> {
        let bytes: &[u8] = match self {
            WireValue::Fixed64(bytes) if SIZE == 8 => bytes,
            WireValue::Fixed32(bytes) if SIZE == 4 => bytes,
            WireValue::Bytes(packed) => packed,
            WireValue::Varint(_) | WireValue::Fixed64(_) | WireValue::Fixed32(_) => {
                return Err(DamagedMessage);
            }
        };
        match bytes.as_chunks() {
            (numbers, []) => Ok(numbers),
            _ => Err(DamagedMessage),
        }
    }
}

/// The fields of a message, with their numbers, in order.
#[derive(Debug, Clone)]
pub struct WireFields<'a>(&'a [u8]);

/// The fields of a message.
pub fn fields(message: &[u8]) -> WireFields<'_> {
    WireFields(message)
}

impl<'a> WireFields<'a> {
    fn take(&mut self) -> Result<(u64, WireValue<'a>), DamagedMessage> {
        let key = take_varint(&mut self.0)?;
        let field = match key & 7 {
            0 => WireValue::Varint(take_varint(&mut self.0)?),
            1 => WireValue::Fixed64(
                *self.0.split_off(..8).and_then(<[u8]>::first_chunk).ok_or(DamagedMessage)?,
            ),
            2 => {
                let length =
                    usize::try_from(take_varint(&mut self.0)?).map_err(|_| DamagedMessage)?;
                WireValue::Bytes(self.0.split_off(..length).ok_or(DamagedMessage)?)
            }
            5 => WireValue::Fixed32(
                *self.0.split_off(..4).and_then(<[u8]>::first_chunk).ok_or(DamagedMessage)?,
            ),
            _ => return Err(DamagedMessage),
        };
        if key >> 3 == 0 { Err(DamagedMessage) } else { Ok((key >> 3, field)) }
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u64, WireValue<'a>), DamagedMessage>;

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

/// Takes an integer from the front.
///
/// # Errors
///
/// When it is cut off or has more than ten bytes.
pub fn take_varint(rest: &mut &[u8]) -> Result<u64, DamagedMessage> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = *rest.split_off_first().ok_or(DamagedMessage)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DamagedMessage)
}

/// Appends an integer.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends an integer field; 0 stands for itself by being absent.
pub fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        put_varint(out, field << 3);
        put_varint(out, value);
    }
}

/// Appends a field of bytes.
pub fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
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
        let read: Result<Vec<_>, DamagedMessage> = fields(&message).collect();
        assert_eq!(read, Ok(vec![(1, WireValue::Varint(300)), (3, WireValue::Bytes(b"abc"))]));
        assert_eq!(fields(&message[..message.len() - 1]).last(), Some(Err(DamagedMessage)));
    }

    #[test]
    fn repeated_numbers_may_be_packed() {
        let mut values = Vec::new();
        WireValue::Bytes(&[1, 0x80, 1]).each_varint(|value| values.push(value)).unwrap();
        WireValue::Varint(7).each_varint(|value| values.push(value)).unwrap();
        assert_eq!(values, [1, 128, 7]);
        assert_eq!(WireValue::Bytes(&[0; 8]).fixed::<4>(), Ok(&[[0u8; 4]; 2][..]));
        assert_eq!(WireValue::Bytes(&[0; 7]).fixed::<4>(), Err(DamagedMessage));
    }
}

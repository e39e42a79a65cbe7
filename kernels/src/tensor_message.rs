//! Tensors as messages: `TensorProto` (`tensorflow/core/framework/tensor.proto`).

use bytes::Bytes;
use ferroflow_ir::{
    DType, HostTensor, Shape,
    wire::{DamagedMessage, fields, put_bytes, put_number, put_varint, take_varint},
};

/// Numbers of the fields.
mod field {
    pub(super) const DTYPE: u64 = 1;
    pub(super) const SHAPE: u64 = 2;
    pub(super) const CONTENT: u64 = 4;
    pub(super) const STRINGS: u64 = 8;
    /// In a shape, one dimension.
    pub(super) const DIM: u64 = 2;
    /// In a dimension, its size.
    pub(super) const SIZE: u64 = 1;
}

/// Encodings of the strings of a tensor; other elements have one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strings {
    /// A field for each.
    Listed,
    /// Their lengths, then their bytes, in one field.
    Packed,
}

/// The message of a tensor of plain elements.
pub(crate) fn write_plain(dtype: DType, shape: &Shape, elements: &[u8]) -> Bytes {
    let mut message = head(dtype, shape);
    if !elements.is_empty() {
        put_bytes(&mut message, field::CONTENT, elements);
    }
    message.into()
}

/// The message of a tensor of strings.
pub(crate) fn write_strings(shape: &Shape, elements: &[Bytes], form: Strings) -> Bytes {
    let mut message = head(DType::String, shape);
    match form {
        Strings::Listed => {
            elements.iter().for_each(|text| put_bytes(&mut message, field::STRINGS, text));
        }
        Strings::Packed => {
            let mut packed = Vec::new();
            elements.iter().for_each(|text| put_varint(&mut packed, text.len() as u64));
            elements.iter().for_each(|text| packed.extend_from_slice(text));
            if !packed.is_empty() {
                put_bytes(&mut message, field::CONTENT, &packed);
            }
        }
    }
    message.into()
}

fn head(dtype: DType, shape: &Shape) -> Vec<u8> {
    let mut message = Vec::new();
    put_number(&mut message, field::DTYPE, dtype.number() as u64);
    let mut dims = Vec::new();
    for &size in shape.iter() {
        let mut dim = Vec::new();
        put_number(&mut dim, field::SIZE, size as u64);
        put_bytes(&mut dims, field::DIM, &dim);
    }
    put_bytes(&mut message, field::SHAPE, &dims);
    message
}

/// A message, taken apart: its elements are still those of one of the lists.
#[derive(Debug)]
pub(crate) struct TensorMessage<'a> {
    /// The dtype.
    pub(crate) dtype: DType,
    /// The shape.
    pub(crate) shape: Shape,
    content: &'a [u8],
    strings: Vec<&'a [u8]>,
    /// The bytes of the elements in the list of the dtype.
    listed: Vec<u8>,
}

/// Takes a message apart.
pub(crate) fn read(message: &[u8]) -> Result<TensorMessage<'_>, DamagedMessage> {
    let (mut dtype, mut dims) = (0, Vec::new());
    let mut content: &[u8] = &[];
    let mut strings = Vec::new();
    for part in fields(message) {
        match part? {
            (field::DTYPE, value) => dtype = value.varint()?,
            (field::SHAPE, value) => read_dims(value.bytes()?, &mut dims)?,
            (field::CONTENT, value) => content = value.bytes()?,
            (field::STRINGS, value) => strings.push(value.bytes()?),
            _ => {}
        }
    }
    let dtype = i32::try_from(dtype).ok().and_then(DType::from_number).ok_or(DamagedMessage)?;
    let shape = Shape::from_i64(&dims).map_err(|_| DamagedMessage)?;
    let listed = read_list(message, dtype)?;
    Ok(TensorMessage { dtype, shape, content, strings, listed })
}

fn read_dims(message: &[u8], dims: &mut Vec<i64>) -> Result<(), DamagedMessage> {
    for part in fields(message) {
        let (field::DIM, dim) = part? else { continue };
        let mut size = 0;
        for part in fields(dim.bytes()?) {
            if let (field::SIZE, value) = part? {
                size = value.varint()? as i64;
            }
        }
        dims.push(size);
    }
    Ok(())
}

/// The elements in the list of the dtype, as bytes.
fn read_list(message: &[u8], dtype: DType) -> Result<Vec<u8>, DamagedMessage> {
    let Some(size) = dtype.size() else { return Ok(Vec::new()) };
    let list = list(dtype);
    let mut bytes = Vec::new();
    for part in fields(message) {
        let (number, value) = part?;
        match list {
            Some(List { field, form: Encoding::Varint }) if field == number => {
                value.each_varint(|value| bytes.extend_from_slice(&value.to_le_bytes()[..size]))?;
            }
            Some(List { field, form: Encoding::Fixed32 }) if field == number => {
                value.fixed::<4>()?.iter().for_each(|number| bytes.extend_from_slice(number));
            }
            Some(List { field, form: Encoding::Fixed64 }) if field == number => {
                value.fixed::<8>()?.iter().for_each(|number| bytes.extend_from_slice(number));
            }
            Some(_) | None => {}
        }
    }
    Ok(bytes)
}

/// The field that lists elements of a dtype.
struct List {
    field: u64,
    form: Encoding,
}

enum Encoding {
    Varint,
    Fixed32,
    Fixed64,
}

fn list(dtype: DType) -> Option<List> {
    use DType::*;
    let (field, form) = match dtype {
        F32 => (5, Encoding::Fixed32),
        F64 => (6, Encoding::Fixed64),
        I32 | I16 | U16 | I8 | U8 | QI8 | QU8 | QI16 | QU16 | QI32 | I4 | U4 | I2 | U2 => {
            (7, Encoding::Varint)
        }
        C64 => (9, Encoding::Fixed32),
        I64 => (10, Encoding::Varint),
        Bool => (11, Encoding::Varint),
        C128 => (12, Encoding::Fixed64),
        F16 | BF16 => (13, Encoding::Varint),
        U32 => (16, Encoding::Varint),
        U64 => (17, Encoding::Varint),
        String | Resource | Variant | F8E5M2 | F8E4M3FN | F8E4M3FNUZ | F8E4M3B11FNUZ
        | F8E5M2FNUZ | F4E2M1FN => return None,
    };
    Some(List { field, form })
}

impl TensorMessage<'_> {
    /// The tensor. Elements are those of the content, or of the list, whose last one repeats; none
    /// are zeros. The caller has checked that there is room for it.
    pub(crate) fn tensor(&self) -> Result<HostTensor, DamagedMessage> {
        match (self.dtype.size(), self.content) {
            (None, content) if self.dtype == DType::String => self.string_tensor(content),
            (None, _) => Err(DamagedMessage),
            (Some(size), []) => {
                let mut tensor = HostTensor::zeros(self.dtype, self.shape.clone())
                    .map_err(|_| DamagedMessage)?;
                let last = self.listed.len().checked_sub(size).map(|at| &self.listed[at..]);
                if let Some(last) = last {
                    let listed = self.listed.chunks_exact(size).chain(std::iter::repeat(last));
                    let elements = tensor.bytes_mut().chunks_exact_mut(size);
                    elements
                        .zip(listed)
                        .for_each(|(element, listed)| element.copy_from_slice(listed));
                    self.dtype.normalize(tensor.bytes_mut());
                }
                Ok(tensor)
            }
            (Some(_), content) => HostTensor::from_bytes(self.dtype, self.shape.clone(), content)
                .map_err(|_| DamagedMessage),
        }
    }

    fn string_tensor(&self, mut content: &[u8]) -> Result<HostTensor, DamagedMessage> {
        let n = self.shape.num_elements();
        let mut texts = Vec::new();
        if content.is_empty() {
            texts.extend(self.strings.iter().take(n).map(|text| Bytes::copy_from_slice(text)));
        } else {
            let lengths: Result<Vec<u64>, DamagedMessage> =
                (0..n).map(|_| take_varint(&mut content)).collect();
            for length in lengths? {
                let length = usize::try_from(length).map_err(|_| DamagedMessage)?;
                let text = content.split_off(..length).ok_or(DamagedMessage)?;
                texts.push(Bytes::copy_from_slice(text));
            }
        }
        let last = texts.last().cloned().unwrap_or_default();
        texts.resize(n, last);
        HostTensor::from_strings(self.shape.clone(), texts).map_err(|_| DamagedMessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_back_as_they_were_written() {
        let shape = Shape::new([2]).unwrap();
        let plain = write_plain(DType::F32, &shape, &[1; 8]);
        assert_eq!(read(&plain).unwrap().tensor().unwrap().bytes(), [1; 8]);
        for form in [Strings::Listed, Strings::Packed] {
            let texts = [Bytes::from_static(b"a"), Bytes::from_static(b"bcd")];
            let message = write_strings(&shape, &texts, form);
            assert_eq!(read(&message).unwrap().tensor().unwrap().strings().unwrap(), texts);
        }
    }

    #[test]
    fn the_last_listed_element_repeats() {
        // dtype: int32, shape: [3], int_val: [5, -1]
        let message =
            [8, 3, 18, 4, 18, 2, 8, 3, 58, 11, 5, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        let tensor = read(&message).unwrap().tensor().unwrap();
        assert_eq!(tensor.as_slice::<i32>().unwrap(), [5, -1, -1]);
        assert!(read(&message[..message.len() - 1]).is_err());
    }
}

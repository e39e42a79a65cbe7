//! Elements of columns, without the lists around them.

use crate::error::{Error, Result};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, cast::AsArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, Shape};

/// The dtype of a tensor of a column, whatever lists are around its elements; `None` where there is
/// none, as for dates, decimals and structures. Text and bytes are strings.
pub fn element_dtype(ty: &DataType) -> Option<DType> {
    Some(match ty {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            return element_dtype(item.data_type());
        }
        DataType::Dictionary(_, values) => return element_dtype(values),
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Boolean => DType::Bool,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DType::String,
        DataType::FixedSizeBinary(_) => DType::String,
        _ => return None,
    })
}

/// A tensor of elements, none of which is missing.
pub(crate) fn tensor_of_elements(elements: &ArrayRef, shape: Shape) -> Result<HostTensor> {
    let found = || Error::Type { found: elements.data_type().clone() };
    let dtype = element_dtype(elements.data_type()).ok_or_else(found)?;
    Ok(match dtype {
        DType::String => HostTensor::from_strings(shape, strings(elements))?,
        DType::Bool => {
            let bools: Vec<bool> = elements.as_boolean().values().iter().collect();
            HostTensor::from_bools(shape, &bools)?
        }
        _ => {
            let size = dtype.size().ok_or_else(found)?;
            HostTensor::from_bytes(dtype, shape, block(elements, size).as_slice())?
        }
    })
}

/// The bytes of the elements of a column of numbers.
fn block(elements: &ArrayRef, size: usize) -> Buffer {
    let data = elements.to_data();
    data.buffers()[0].slice_with_length(data.offset() * size, data.len() * size)
}

/// The elements of a column of text or bytes. Those with offsets share one block of memory.
fn strings(elements: &ArrayRef) -> Vec<Bytes> {
    match elements.data_type() {
        DataType::Utf8 => {
            let text = elements.as_string::<i32>();
            ranges(text.values(), text.offsets())
        }
        DataType::LargeUtf8 => {
            let text = elements.as_string::<i64>();
            ranges(text.values(), text.offsets())
        }
        DataType::Binary => {
            let bytes = elements.as_binary::<i32>();
            ranges(bytes.values(), bytes.offsets())
        }
        DataType::LargeBinary => {
            let bytes = elements.as_binary::<i64>();
            ranges(bytes.values(), bytes.offsets())
        }
        DataType::Utf8View => {
            let text = elements.as_string_view().iter();
            text.map(|text| copied(text.map(str::as_bytes))).collect()
        }
        DataType::BinaryView => elements.as_binary_view().iter().map(copied).collect(),
        _ => elements.as_fixed_size_binary().iter().map(copied).collect(),
    }
}

/// A value that is there, as was checked.
fn copied(bytes: Option<&[u8]>) -> Bytes {
    Bytes::copy_from_slice(bytes.unwrap_or(&[]))
}

fn ranges<O: OffsetSizeTrait>(values: &Buffer, offsets: &OffsetBuffer<O>) -> Vec<Bytes> {
    let all = Bytes::from_owner(SharedBytes(values.clone()));
    let range = |ends: &[O]| all.slice(ends[0].as_usize()..ends[1].as_usize());
    offsets.windows(2).map(range).collect()
}

/// Memory of a column, as the owner of bytes.
struct SharedBytes(Buffer);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

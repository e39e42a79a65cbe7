//! Tensors of columns.
//!
//! Numbers lie in a column as they lie in a tensor: they are copied as one block, whatever lists
//! are around them. Strings of a column with offsets are shared with the tensor.

use crate::error::{Error, Result};
use bytes::Bytes;
use datafusion::arrow::{
    array::{Array, ArrayRef, AsArray, OffsetSizeTrait},
    buffer::{Buffer, OffsetBuffer},
    compute::cast,
    datatypes::DataType,
};
use ferroflow_ir::{DType, HostTensor, PartialShape, Shape, TensorSpec};
use std::ops::Range;

/// A column with the input of the signature that it is for.
#[derive(Debug, Clone)]
pub(crate) struct InputColumn<'a> {
    pub(crate) input: &'a str,
    pub(crate) column: &'a str,
    pub(crate) spec: &'a TensorSpec,
    pub(crate) values: ArrayRef,
}

impl InputColumn<'_> {
    pub(crate) fn slice(&self, rows: Range<usize>) -> Self {
        InputColumn { values: self.values.slice(rows.start, rows.len()), ..self.clone() }
    }

    fn wrong_type(&self, found: &DataType) -> Error {
        Error::ColumnType {
            column: self.column.into(),
            input: self.input.into(),
            expected: self.spec.dtype,
            found: found.clone(),
        }
    }
}

/// The tensor of a column: `[rows, …]` of the input's dtype and shape. Errors count rows from
/// `first_row`.
pub(crate) fn tensor(column: &InputColumn<'_>, first_row: u64) -> Result<HostTensor> {
    let n_rows = column.values.len();
    let mut rows = Rows { column, first_row, per_row: 1, dims: Vec::new() };
    let leaf = rows.leaf(column.values.clone())?;
    rows.check_nulls(&leaf)?;
    let shape = row_shape(&column.spec.shape, &rows.dims).ok_or_else(|| Error::ColumnShape {
        column: column.column.into(),
        input: column.input.into(),
        expected: Box::new(column.spec.shape.clone()),
        found: Box::new(Shape::new(rows.dims.iter().copied()).unwrap_or_else(|_| Shape::scalar())),
    })?;
    let shape = Shape::new([n_rows].into_iter().chain(shape)).map_err(tensor_error(column))?;
    elements(column, &leaf, shape)
}

/// Checks a column's type against an input, as far as it can be told before there are rows.
pub(crate) fn check_type(
    input: &str,
    column: &str,
    spec: &TensorSpec,
    found: &DataType,
) -> Result<()> {
    match leaf_dtype(found) {
        Some(dtype) if dtype == spec.dtype => Ok(()),
        _ => Err(Error::ColumnType {
            column: column.into(),
            input: input.into(),
            expected: spec.dtype,
            found: found.clone(),
        }),
    }
}

/// The dtype of what is inside of all lists.
fn leaf_dtype(ty: &DataType) -> Option<DType> {
    Some(match ty {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            return leaf_dtype(item.data_type());
        }
        DataType::Dictionary(_, values) => return leaf_dtype(values),
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

/// The way from the rows of a column through its lists to its elements.
struct Rows<'a> {
    column: &'a InputColumn<'a>,
    first_row: u64,
    /// Elements of a row, down to here.
    per_row: usize,
    /// Lengths of the lists so far.
    dims: Vec<usize>,
}

impl Rows<'_> {
    /// The elements of all rows, one after the other.
    fn leaf(&mut self, values: ArrayRef) -> Result<ArrayRef> {
        match values.data_type() {
            DataType::Dictionary(_, inner) => self.leaf(cast(&values, inner)?),
            DataType::FixedSizeList(_, length) => {
                self.check_nulls(&values)?;
                let length = usize::try_from(*length).unwrap_or(0);
                let lists = values.as_fixed_size_list();
                let first = lists.value_offset(0) as usize;
                self.enter(length, lists.values().slice(first, values.len() * length))
            }
            DataType::List(_) => self.lists::<i32>(&values),
            DataType::LargeList(_) => self.lists::<i64>(&values),
            _ => Ok(values),
        }
    }

    fn lists<O: OffsetSizeTrait>(&mut self, values: &ArrayRef) -> Result<ArrayRef> {
        self.check_nulls(values)?;
        let lists = values.as_list::<O>();
        let expected = self.common_length(lists.offsets())?;
        let first = lists.offsets()[0].as_usize();
        self.enter(expected, lists.values().slice(first, values.len() * expected))
    }

    fn common_length<O: OffsetSizeTrait>(&self, offsets: &OffsetBuffer<O>) -> Result<usize> {
        let mut lengths = offsets.lengths();
        let expected = lengths.next().unwrap_or(0);
        match lengths.enumerate().find(|&(_, length)| length != expected) {
            None => Ok(expected),
            Some((index, found)) => {
                let (column, row) = (self.column.column.into(), self.row(index + 1));
                Err(Error::ListLength { column, row, expected, found })
            }
        }
    }

    fn enter(&mut self, length: usize, values: ArrayRef) -> Result<ArrayRef> {
        self.dims.push(length);
        self.per_row = self.per_row.saturating_mul(length);
        self.leaf(values)
    }

    fn check_nulls(&self, values: &ArrayRef) -> Result<()> {
        let nulls = values.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let Some(index) = nulls.and_then(|nulls| nulls.iter().position(|valid| !valid)) else {
            return Ok(());
        };
        Err(Error::Null { column: self.column.column.into(), row: self.row(index) })
    }

    /// The row that an element is of.
    fn row(&self, element: usize) -> u64 {
        self.first_row + (element / self.per_row.max(1)) as u64
    }
}

/// The shape of a row: as it is where the input takes it, otherwise that of the input, if it has as
/// many elements.
fn row_shape(spec: &PartialShape, found: &[usize]) -> Option<Vec<usize>> {
    let Some([_, inner @ ..]) = spec.dims() else {
        return Some(found.to_vec());
    };
    let fits = |(dim, found): (&Option<usize>, &usize)| dim.is_none_or(|dim| dim == *found);
    if inner.len() == found.len() && inner.iter().zip(found).all(fits) {
        return Some(found.to_vec());
    }
    let n_elements = found.iter().fold(1, |n: usize, &dim| n.saturating_mul(dim));
    let known = inner.iter().flatten().fold(1, |n: usize, &dim| n.saturating_mul(dim));
    let unknown = match inner.iter().filter(|dim| dim.is_none()).count() {
        0 if known == n_elements => 1,
        1 if known > 0 && n_elements.is_multiple_of(known) => n_elements / known,
        _ => return None,
    };
    Some(inner.iter().map(|dim| dim.unwrap_or(unknown)).collect())
}

fn elements(column: &InputColumn<'_>, leaf: &ArrayRef, shape: Shape) -> Result<HostTensor> {
    let dtype = leaf_dtype(leaf.data_type()).filter(|&dtype| dtype == column.spec.dtype);
    let dtype = dtype.ok_or_else(|| column.wrong_type(column.values.data_type()))?;
    let tensor = match dtype {
        DType::String => HostTensor::from_strings(shape, strings(leaf)),
        DType::Bool => {
            let bools: Vec<bool> = leaf.as_boolean().values().iter().collect();
            HostTensor::from_bools(shape, &bools)
        }
        _ => {
            HostTensor::from_bytes(dtype, shape, block(leaf, dtype.size().unwrap_or(0)).as_slice())
        }
    };
    tensor.map_err(tensor_error(column))
}

/// The bytes of the elements of a column of numbers.
fn block(leaf: &ArrayRef, size: usize) -> Buffer {
    let data = leaf.to_data();
    data.buffers()[0].slice_with_length(data.offset() * size, data.len() * size)
}

/// The elements of a column of text or bytes. Those with offsets share one block of memory.
fn strings(leaf: &ArrayRef) -> Vec<Bytes> {
    match leaf.data_type() {
        DataType::Utf8 => {
            ranges(leaf.as_string::<i32>().values(), leaf.as_string::<i32>().offsets())
        }
        DataType::LargeUtf8 => {
            ranges(leaf.as_string::<i64>().values(), leaf.as_string::<i64>().offsets())
        }
        DataType::Binary => {
            ranges(leaf.as_binary::<i32>().values(), leaf.as_binary::<i32>().offsets())
        }
        DataType::LargeBinary => {
            ranges(leaf.as_binary::<i64>().values(), leaf.as_binary::<i64>().offsets())
        }
        DataType::Utf8View => {
            let copy = |text: Option<&str>| Bytes::copy_from_slice(text.unwrap_or("").as_bytes());
            leaf.as_string_view().iter().map(copy).collect()
        }
        DataType::BinaryView => {
            let copy = |bytes: Option<&[u8]>| Bytes::copy_from_slice(bytes.unwrap_or(&[]));
            leaf.as_binary_view().iter().map(copy).collect()
        }
        _ => {
            let copy = |bytes: Option<&[u8]>| Bytes::copy_from_slice(bytes.unwrap_or(&[]));
            leaf.as_fixed_size_binary().iter().map(copy).collect()
        }
    }
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

fn tensor_error(column: &InputColumn<'_>) -> impl FnOnce(ferroflow_ir::Error) -> Error {
    let column = column.column.into();
    |source| Error::Tensor { column, source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: &[i64], found: &[usize], expected: Option<&[usize]>) {
        let spec = PartialShape::from_i64(spec).unwrap();
        assert_eq!(row_shape(&spec, found).as_deref(), expected);
    }

    #[test]
    fn rows_take_the_shape_of_the_input() {
        check(&[-1, 8], &[8], Some(&[8]));
        check(&[-1, 8], &[7], None);
        check(&[-1], &[], Some(&[]));
        check(&[-1, 1], &[], Some(&[1]));
        check(&[-1, 2, 3], &[6], Some(&[2, 3]));
        check(&[-1, -1, 3], &[6], Some(&[2, 3]));
        check(&[-1, -1, 3], &[7], None);
        check(&[-1, -1, -1], &[6], None);
        check(&[-1, -1], &[5], Some(&[5]));
        check(&[-1, 0], &[4], None);
    }
}

//! Columns of tensors.
//!
//! A column of numbers keeps the memory of its tensor; bools are packed and strings copied.

use crate::{
    error::{Error, Result},
    options::StringColumns,
};
use bytes::Bytes;
use datafusion::arrow::{
    array::{
        Array, ArrayData, ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, ListArray,
        StringArray, make_array, new_empty_array,
    },
    buffer::{BooleanBuffer, Buffer, OffsetBuffer},
    datatypes::{DataType, Field, FieldRef},
    error::ArrowError,
};
use ferroflow_ir::{DType, HostTensor, PartialShape, ValueType};
use std::sync::Arc;

/// The column that an output becomes.
///
/// The first dimension is that of rows. An output `[rows]` or `[rows, 1]` is a column of elements;
/// every other dimension is a fixed-size list where the signature says its size, otherwise a list.
/// Where not even the rank is known, all elements of a row are in one list.
#[derive(Debug, Clone)]
pub(crate) struct OutputColumn {
    field: FieldRef,
    dtype: DType,
    /// Types of the lists, from the outside.
    lists: Lists,
}

#[derive(Debug, Clone)]
enum Lists {
    /// Elements, one for each row.
    None,
    /// The rank is known.
    Nested(Vec<Option<i32>>),
    /// All elements of a row.
    Flat,
}

impl OutputColumn {
    /// The column of an output of a signature.
    pub(crate) fn new(
        signature: &str,
        name: String,
        ty: Option<ValueType>,
        strings: StringColumns,
    ) -> Result<OutputColumn> {
        let found = ty
            .as_ref()
            .map_or("of unknown dtype".into(), |ty| format!("{} {:?}", ty.dtype, ty.shape));
        let unsuited = || Error::OutputType {
            signature: signature.into(),
            output: name.clone(),
            found: found.clone(),
        };
        let ty = ty.ok_or_else(unsuited)?;
        let leaf = leaf_type(ty.dtype, strings).ok_or_else(unsuited)?;
        let lists = lists(&ty.shape).ok_or_else(unsuited)?;
        let column = match &lists {
            Lists::None => leaf,
            Lists::Nested(sizes) => sizes.iter().rev().fold(leaf, |item, size| list(item, *size)),
            Lists::Flat => list(leaf, None),
        };
        let field = Arc::new(Field::new(name, column, false));
        Ok(OutputColumn { field, dtype: ty.dtype, lists })
    }

    /// Name and type of the column.
    pub(crate) fn field(&self) -> &FieldRef {
        &self.field
    }

    /// The column without rows.
    pub(crate) fn empty(&self) -> ArrayRef {
        new_empty_array(self.field.data_type())
    }

    /// The column of a result of the signature.
    pub(crate) fn array(&self, result: Option<HostTensor>, n_rows: usize) -> Result<ArrayRef> {
        let fits = |tensor: &HostTensor| {
            tensor.dtype() == self.dtype
                && tensor.shape().first() == Some(&n_rows)
                && self.dims_fit(&tensor.shape()[1..])
        };
        let wrong = |found: String| Error::OutputRows {
            output: self.field.name().clone(),
            rows: n_rows,
            found,
        };
        let tensor = result.ok_or_else(|| wrong("missing".into()))?;
        if !fits(&tensor) {
            return Err(wrong(format!("{}{}", tensor.dtype(), tensor.shape())));
        }
        let dims = tensor.shape()[1..].to_vec();
        self.wrapped(self.leaf(tensor, n_rows)?, n_rows, &dims)
    }

    /// Whether rows of this shape are what the signature says of them.
    fn dims_fit(&self, dims: &[usize]) -> bool {
        let fits = |(size, &dim): (&Option<i32>, &usize)| {
            size.is_none_or(|size| usize::try_from(size) == Ok(dim))
        };
        match &self.lists {
            Lists::None => dims.iter().all(|&dim| dim == 1),
            Lists::Nested(sizes) => sizes.len() == dims.len() && sizes.iter().zip(dims).all(fits),
            Lists::Flat => true,
        }
    }

    fn leaf(&self, tensor: HostTensor, n_rows: usize) -> Result<ArrayRef> {
        match leaf_of(self.field.data_type()) {
            DataType::Boolean => {
                let bools = tensor.bytes();
                let packed = BooleanBuffer::collect_bool(bools.len(), |index| bools[index] != 0);
                Ok(Arc::new(BooleanArray::new(packed, None)))
            }
            DataType::Utf8 => self.text(&tensor, n_rows),
            DataType::Binary => {
                let strings = texts_of(&tensor)?;
                Ok(Arc::new(BinaryArray::from_iter_values(strings)))
            }
            ty => numbers(ty, tensor),
        }
    }

    fn text(&self, tensor: &HostTensor, n_rows: usize) -> Result<ArrayRef> {
        let per_row = (tensor.len() / n_rows.max(1)).max(1);
        let strings = texts_of(tensor)?;
        let not_text = |index: usize| Error::NotText {
            output: self.field.name().clone(),
            row: index / per_row,
        };
        for (index, string) in strings.iter().enumerate() {
            std::str::from_utf8(string).map_err(|_| not_text(index))?;
        }
        let texts = strings.iter().map(|string| std::str::from_utf8(string).unwrap_or_default());
        Ok(Arc::new(StringArray::from_iter_values(texts)))
    }

    /// Elements inside of the lists that the column has.
    fn wrapped(&self, leaf: ArrayRef, n_rows: usize, dims: &[usize]) -> Result<ArrayRef> {
        let flat = [leaf.len() / n_rows.max(1)];
        let (dims, sizes) = match &self.lists {
            Lists::None => return Ok(leaf),
            Lists::Nested(sizes) => (dims, &sizes[..]),
            Lists::Flat => (&flat[..], &[None][..]),
        };
        let mut array = leaf;
        for (depth, size) in sizes.iter().enumerate().rev() {
            let n_lists = dims[..depth].iter().fold(n_rows, |n, &dim| n.saturating_mul(dim));
            let item = Arc::new(Field::new_list_field(array.data_type().clone(), false));
            array = match size {
                Some(size) => Arc::new(FixedSizeListArray::try_new(item, *size, array, None)?),
                None => {
                    check_offsets(n_lists.saturating_mul(dims[depth]))?;
                    let offsets = OffsetBuffer::from_repeated_length(dims[depth], n_lists);
                    Arc::new(ListArray::try_new(item, offsets, array, None)?)
                }
            };
        }
        Ok(array)
    }
}

/// The type of elements of a dtype.
fn leaf_type(dtype: DType, strings: StringColumns) -> Option<DataType> {
    Some(match dtype {
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::Bool => DataType::Boolean,
        DType::String => match strings {
            StringColumns::Text => DataType::Utf8,
            StringColumns::Binary => DataType::Binary,
        },
        _ => return None,
    })
}

/// The lists around the elements of a row; `None` where there is no dimension for rows.
fn lists(shape: &PartialShape) -> Option<Lists> {
    let Some(dims) = shape.dims() else { return Some(Lists::Flat) };
    let (_, inner) = dims.split_first()?;
    // A list of fixed size 0 would not tell how many there are.
    let size = |dim: &Option<usize>| dim.and_then(|dim| i32::try_from(dim).ok()).filter(|&n| n > 0);
    Some(match inner {
        [] | [Some(1)] => Lists::None,
        inner => Lists::Nested(inner.iter().map(size).collect()),
    })
}

fn list(item: DataType, size: Option<i32>) -> DataType {
    let item = Arc::new(Field::new_list_field(item, false));
    match size {
        Some(size) => DataType::FixedSizeList(item, size),
        None => DataType::List(item),
    }
}

/// The type inside of all lists.
fn leaf_of(ty: &DataType) -> &DataType {
    match ty {
        DataType::FixedSizeList(item, _) | DataType::List(item) => leaf_of(item.data_type()),
        leaf => leaf,
    }
}

/// The elements of a string tensor that fit into one column.
fn texts_of(tensor: &HostTensor) -> Result<&[Bytes]> {
    let strings =
        tensor.strings().map_err(|error| ArrowError::from_external_error(Box::new(error)))?;
    check_offsets(strings.iter().map(Bytes::len).fold(0, usize::saturating_add))?;
    Ok(strings)
}

/// Checks that a column of lists or text can count so many elements or bytes.
fn check_offsets(n: usize) -> Result<()> {
    match i32::try_from(n) {
        Ok(_) => Ok(()),
        Err(_) => Err(ArrowError::OffsetOverflowError(n).into()),
    }
}

fn numbers(ty: &DataType, tensor: HostTensor) -> Result<ArrayRef> {
    let n_elements = tensor.len();
    let memory = Buffer::from(Bytes::from_owner(TensorMemory(tensor)));
    let data = ArrayData::builder(ty.clone())
        .len(n_elements)
        .add_buffer(memory)
        .align_buffers(true)
        .build()?;
    Ok(make_array(data))
}

/// The memory of a tensor, as the owner of bytes.
struct TensorMemory(HostTensor);

impl AsRef<[u8]> for TensorMemory {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

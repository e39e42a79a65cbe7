//! Tensors of columns, as the inputs of a signature.

use crate::error::{Error, Result};
use datafusion::{
    arrow::{array::ArrayRef, datatypes::DataType},
    common::DataFusionError,
};
use ferroflow_arrow::{element_dtype, tensor_of_column};
use ferroflow_ir::{HostTensor, PartialShape, Shape, TensorSpec};
use std::{iter, ops::Range};

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

    fn fault(&self, error: ferroflow_arrow::Error) -> Error {
        let column = self.column.into();
        match error {
            ferroflow_arrow::Error::Null { row } => Error::Null { column, row },
            ferroflow_arrow::Error::ListLength { row, expected, found } => {
                Error::ListLength { column, row, expected, found }
            }
            ferroflow_arrow::Error::Tensor(source) => {
                Error::Tensor { column, source: Box::new(source) }
            }
            error => DataFusionError::External(Box::new(error)).into(),
        }
    }
}

/// The tensor of a column: `[rows, …]` of the input's dtype and shape. Errors count rows from
/// `first_row`.
pub(crate) fn tensor(column: &InputColumn<'_>, first_row: u64) -> Result<HostTensor> {
    check_type(column.input, column.column, column.spec, column.values.data_type())?;
    let tensor =
        tensor_of_column(&column.values, first_row).map_err(|error| column.fault(error))?;
    let Some((&n_rows, found)) = tensor.shape().dims().split_first() else { return Ok(tensor) };
    let Some(shape) = row_shape(&column.spec.shape, found) else {
        return Err(Error::ColumnShape {
            column: column.column.into(),
            input: column.input.into(),
            expected: Box::new(column.spec.shape.clone()),
            found: Box::new(Shape::new(found.iter().copied()).unwrap_or_else(|_| Shape::scalar())),
        });
    };
    let shape = Shape::new(iter::once(n_rows).chain(shape));
    shape.and_then(|shape| tensor.reshaped(shape)).map_err(|error| column.fault(error.into()))
}

/// Checks a column's type against an input, as far as it can be told before there are rows.
pub(crate) fn check_type(
    input: &str,
    column: &str,
    spec: &TensorSpec,
    found: &DataType,
) -> Result<()> {
    match element_dtype(found) {
        Some(dtype) if dtype == spec.dtype => Ok(()),
        _ => Err(Error::ColumnType {
            column: column.into(),
            input: input.into(),
            expected: spec.dtype,
            found: found.clone(),
        }),
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

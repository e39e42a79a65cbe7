//! The way from the rows of a column through its lists to its elements.

use crate::{
    elements::tensor_of_elements,
    error::{Error, Result},
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, cast::AsArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use arrow_select::take::take;
use ferroflow_ir::{HostTensor, Shape};
use std::iter;

/// The tensor of a column, `[rows, …]`. Errors count rows from `first_row`.
///
/// # Errors
///
/// [`Error::Null`] for a value that is missing, [`Error::ListLength`] for lists of different lengths,
/// [`Error::Type`] for types that tensors do not have.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, types::Int64Type, ListArray};
/// use ferroflow_arrow::tensor_of_column;
/// use std::sync::Arc;
///
/// let rows = [Some(vec![Some(1), Some(2)]), Some(vec![Some(3)])];
/// let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
/// let error = tensor_of_column(&lists, 100).unwrap_err();
/// assert_eq!(error.to_string(), "row 101: a list of 1 elements, where 2 are expected");
/// ```
pub fn tensor_of_column(column: &ArrayRef, first_row: u64) -> Result<HostTensor> {
    let mut rows = ColumnRows { first_row, per_row: 1, dims: Vec::new() };
    let elements = rows.elements(column.clone())?;
    rows.check_nulls(&elements)?;
    let shape = Shape::new(iter::once(column.len()).chain(rows.dims))?;
    tensor_of_elements(&elements, shape)
}

struct ColumnRows {
    first_row: u64,
    /// Elements of a row, down to here.
    per_row: usize,
    /// Lengths of the lists so far.
    dims: Vec<usize>,
}

impl ColumnRows {
    /// The elements of all rows, one after the other.
    fn elements(&mut self, values: ArrayRef) -> Result<ArrayRef> {
        match values.data_type() {
            DataType::Dictionary(..) => {
                self.check_nulls(&values)?;
                let dictionary = values.as_any_dictionary();
                self.elements(take(dictionary.values(), dictionary.keys(), None)?)
            }
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
                Err(Error::ListLength { row: self.row(index + 1), expected, found })
            }
        }
    }

    fn enter(&mut self, length: usize, values: ArrayRef) -> Result<ArrayRef> {
        self.dims.push(length);
        self.per_row = self.per_row.saturating_mul(length);
        self.elements(values)
    }

    fn check_nulls(&self, values: &ArrayRef) -> Result<()> {
        let nulls = values.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        match nulls.and_then(|nulls| nulls.iter().position(|valid| !valid)) {
            Some(index) => Err(Error::Null { row: self.row(index) }),
            None => Ok(()),
        }
    }

    /// The row that an element is of.
    fn row(&self, element: usize) -> u64 {
        self.first_row + (element / self.per_row.max(1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BooleanArray, DictionaryArray, FixedSizeListArray, Float16Array, Int64Array, ListArray,
        NullArray, StringArray, StringViewArray,
        types::{Int8Type, Int64Type},
    };
    use arrow_schema::Field;
    use std::sync::Arc;

    fn tensor(column: impl Array + 'static) -> Result<HostTensor> {
        let column: ArrayRef = Arc::new(column);
        tensor_of_column(&column, 0)
    }

    fn error(column: impl Array + 'static) -> String {
        tensor(column).unwrap_err().to_string()
    }

    #[test]
    fn parts_of_columns_have_their_own_elements() {
        let bools = tensor(BooleanArray::from(vec![true, false, true]).slice(1, 2)).unwrap();
        assert_eq!(
            bools,
            HostTensor::from_bools(Shape::new([2]).unwrap(), &[false, true]).unwrap()
        );
        let pairs = ListArray::from_iter_primitive::<Int64Type, _, _>(
            (0..4i64).map(|n| Some([Some(n), Some(-n)])),
        );
        let pairs = tensor(pairs.slice(2, 2)).unwrap();
        assert_eq!(pairs.shape().dims(), [2, 2]);
        assert_eq!(pairs.as_slice::<i64>().unwrap(), [2, -2, 3, -3]);
        let halves = Float16Array::from(vec![half::f16::ONE; 3]);
        let item = Arc::new(Field::new("item", DataType::Float16, true));
        let triples = FixedSizeListArray::try_new(item, 3, Arc::new(halves), None).unwrap();
        assert_eq!(tensor(triples).unwrap().shape().dims(), [1, 3]);
    }

    #[test]
    fn text_is_text_whatever_holds_it() {
        let expected = ["a", "", "bc"];
        let dictionary: DictionaryArray<Int8Type> = expected.into_iter().collect();
        for column in [
            Arc::new(StringArray::from(expected.to_vec())) as ArrayRef,
            Arc::new(StringViewArray::from(expected.to_vec())),
            Arc::new(dictionary),
        ] {
            let tensor = tensor_of_column(&column, 0).unwrap();
            assert_eq!(tensor.strings().unwrap(), expected);
        }
    }

    #[test]
    fn columns_without_rows_are_empty_tensors() {
        let none = ListArray::from_iter_primitive::<Int64Type, Vec<Option<i64>>, _>([]);
        assert_eq!(tensor(none).unwrap().shape().dims(), [0, 0]);
    }

    #[test]
    fn what_is_no_tensor_is_told_by_its_row() {
        let missing = "row 1: a value is missing (null)";
        assert_eq!(error(Int64Array::from(vec![Some(1), None])), missing);
        let inside = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(1), None]),
        ]);
        assert_eq!(error(inside), missing);
        let dictionary: DictionaryArray<Int8Type> = vec![Some("a"), None].into_iter().collect();
        assert_eq!(error(dictionary), missing);
        assert_eq!(error(NullArray::new(2)), "row 0: a value is missing (null)");
        let dates = arrow_array::Date32Array::from(vec![1]);
        assert_eq!(error(dates), "values of Date32 are no elements of tensors");
    }
}

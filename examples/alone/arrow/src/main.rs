//! A column of Arrow becomes a tensor, by `ferroflow-arrow` alone.

use arrow_array::{ListArray, types::Int32Type};
use ferroflow_arrow::{ArrayRef, Result, tensor_of_column};
use std::sync::Arc;

fn main() -> Result<()> {
    let rows = [[Some(1), Some(2)], [Some(3), Some(4)]].map(Some);
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
    let tensor = tensor_of_column(&lists, 0)?;
    assert_eq!(tensor.shape().dims(), [2, 2]);
    assert_eq!(tensor.as_slice::<i32>()?, [1, 2, 3, 4]);
    Ok(())
}

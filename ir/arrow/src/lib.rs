//! Columns of [Arrow](https://arrow.apache.org) as tensors.
//!
//! A column of `n` rows is a tensor `[n]`; one of lists of the same length is `[n, length]`, and so on
//! for lists of lists. Numbers lie in a column as they lie in a tensor: they are copied as one block,
//! whatever lists are around them. Strings of a column with offsets are shared with the tensor.
//!
//! ```
//! use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array};
//! use arrow_schema::{DataType, Field};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let item = Arc::new(Field::new("item", DataType::Float32, false));
//! let numbers = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
//! let pairs: ArrayRef = Arc::new(FixedSizeListArray::try_new(item, 2, numbers, None)?);
//! let tensor = ferroflow_arrow::tensor_of_column(&pairs, 0)?;
//! assert_eq!(tensor.shape().dims(), [3, 2]);
//! assert_eq!(tensor.as_slice::<f32>()?[..2], [1.0, 2.0]);
//! # Ok(())
//! # }
//! ```

mod elements;
mod error;
mod rows;

pub use arrow_array::ArrayRef;
pub use arrow_schema::DataType;
pub use elements::element_dtype;
pub use error::{Error, Result};
pub use rows::tensor_of_column;

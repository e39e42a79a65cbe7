//! Arrays of tensors that grow element by element, as loops fill them.

use crate::{
    error::{Error, Result},
    nest::Nest,
    ops::{self, IntoOperand},
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::{DType, PartialShape, trace_type::Literal};
use std::borrow::Borrow;

/// Options of an array.
#[derive(Clone, Debug, Default)]
pub struct TensorArrayOptions {
    /// Shape of every element, as far as it is known.
    pub element_shape: PartialShape,
    /// Whether writing behind the last element makes the array longer.
    pub dynamic_size: bool,
    /// Whether [`take`](TensorArray::take) gives each element once only.
    pub clear_after_read: bool,
}

/// An array of tensors of one dtype, whose elements are written and read one by one.
///
/// Arrays are values: writing gives a new array, and leaves the old one as it is. Elements that were
/// never written are zeros.
///
/// ```
/// use ferroflow_tracer::{DType, Result, Tensor, TensorArray};
/// # fn main() -> Result<()> {
/// let array = TensorArray::new(DType::I32, 3)?;
/// let array = array.write(0, 5)?.write(2, 7)?;
/// assert_eq!(array.read(2)?.to_scalar::<i32>()?, 7);
/// assert_eq!(array.stack()?.to_vec::<i32>()?, [5, 0, 7]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TensorArray {
    dtype: DType,
    options: TensorArrayOptions,
    list: Tensor,
    /// Elements that were not taken yet, where each may be read only once.
    left: Option<Tensor>,
}

impl TensorArray {
    /// An array of `size` elements.
    ///
    /// # Errors
    ///
    /// When the size is not a number.
    #[track_caller]
    pub fn new(dtype: DType, size: impl IntoOperand) -> Result<TensorArray> {
        TensorArray::with_options(dtype, size, TensorArrayOptions::default())
    }

    /// An array of `size` elements that behaves so.
    ///
    /// # Errors
    ///
    /// As [`new`](TensorArray::new).
    #[track_caller]
    pub fn with_options(
        dtype: DType,
        size: impl IntoOperand,
        options: TensorArrayOptions,
    ) -> Result<TensorArray> {
        let size = number(size)?;
        let list = ops::tensor_list_reserve(&shape_of_rows(&options.element_shape), &size, dtype)?;
        let left = if options.clear_after_read {
            Some(ops::fill(&size.reshape(&[1])?, &Tensor::from(true))?)
        } else {
            None
        };
        Ok(TensorArray { dtype, options, list, left })
    }

    /// The array of the rows of a tensor.
    ///
    /// # Errors
    ///
    /// When it is a scalar.
    #[track_caller]
    pub fn unstack(tensor: &Tensor) -> Result<TensorArray> {
        let element_shape = match tensor.shape().dims() {
            Some([_, rest @ ..]) => PartialShape::ranked(rest.iter().copied()),
            Some([]) | None => PartialShape::Unknown,
        };
        let list = ops::tensor_list_from_tensor(tensor, &shape_of_rows(&element_shape))?;
        let options = TensorArrayOptions { element_shape, ..TensorArrayOptions::default() };
        Ok(TensorArray { dtype: tensor.dtype(), options, list, left: None })
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of elements.
    ///
    /// # Errors
    ///
    /// Those of the calls of ops.
    #[track_caller]
    pub fn size(&self) -> Result<Tensor> {
        ops::tensor_list_length(&self.list)
    }

    /// The array with another element at `index`.
    ///
    /// # Errors
    ///
    /// When there is no such place, or dtype or shape do not fit; in a trace some of that is told
    /// when it runs.
    #[track_caller]
    pub fn write(&self, index: impl IntoOperand, value: impl IntoOperand) -> Result<TensorArray> {
        let (index, value) = (number(index)?, value.into_operand(self.dtype)?);
        let value = value.borrow();
        if value.dtype() != self.dtype {
            let expected = format!("an element of dtype {}", self.dtype);
            return Err(Error::Conversion { expected, found: value.to_string() });
        }
        let attrs = ops::TensorListSetItemAttrs {
            resize_if_index_out_of_bounds: self.options.dynamic_size,
        };
        let list = ops::tensor_list_set_item_with(&self.list, &index, value, &attrs)?;
        Ok(TensorArray { list, ..self.clone() })
    }

    /// The element at `index`.
    ///
    /// # Errors
    ///
    /// When there is none; in a trace that is told when it runs.
    #[track_caller]
    pub fn read(&self, index: impl IntoOperand) -> Result<Tensor> {
        let index = number(index)?;
        let shape = shape_of_rows(&self.options.element_shape);
        ops::tensor_list_get_item(&self.list, &index, &shape, self.dtype)
    }

    /// The element at `index`, and the array after it was read: where elements are cleared after
    /// that, this one is not read again.
    ///
    /// # Errors
    ///
    /// As [`read`](TensorArray::read); when the element was taken already.
    #[track_caller]
    pub fn take(&self, index: impl IntoOperand) -> Result<(Tensor, TensorArray)> {
        let index = number(index)?;
        let Some(left) = &self.left else { return Ok((self.read(&index)?, self.clone())) };
        let element = self.read(&index)?;
        let message = "Could not read an element of a TensorArray twice: it was cleared after a \
                       previous read. Its index:";
        ops::assert(&left.gather(&index)?, &[&Tensor::from(message), &index])?;
        let left =
            ops::tensor_scatter_update(left, &index.reshape(&[1, 1])?, &Tensor::from(vec![false]))?;
        Ok((element, TensorArray { left: Some(left), ..self.clone() }))
    }

    /// All elements as one tensor, of which they are the rows.
    ///
    /// # Errors
    ///
    /// When their shapes differ.
    #[track_caller]
    pub fn stack(&self) -> Result<Tensor> {
        let shape = shape_of_rows(&self.options.element_shape);
        ops::tensor_list_stack(&self.list, &shape, self.dtype)
    }

    /// The elements at these indices as one tensor, of which they are the rows.
    ///
    /// # Errors
    ///
    /// When there is no such element, or their shapes differ.
    #[track_caller]
    pub fn gather(&self, indices: &Tensor) -> Result<Tensor> {
        let shape = shape_of_rows(&self.options.element_shape);
        ops::tensor_list_gather(&self.list, indices, &shape, self.dtype)
    }

    /// The rows of all elements as one tensor.
    ///
    /// # Errors
    ///
    /// When the shapes of rows differ.
    #[track_caller]
    pub fn concat(&self) -> Result<Tensor> {
        let shape = shape_of_rows(&self.options.element_shape);
        let lengths = Tensor::from(Vec::<i64>::new());
        let [tensor, _] = ops::tensor_list_concat_v2(&self.list, &shape, &lengths, self.dtype)?;
        Ok(tensor)
    }
}

fn number(value: impl IntoOperand) -> Result<Tensor> {
    let number = value.into_operand(DType::I32)?;
    let number = number.borrow();
    match number.dtype() {
        DType::I32 => Ok(number.clone()),
        _ => number.cast(DType::I32),
    }
}

/// The shape of elements as an argument of ops on lists.
pub(super) fn shape_of_rows(shape: &PartialShape) -> Tensor {
    let size = |dim: &Option<usize>| dim.and_then(|dim| i32::try_from(dim).ok()).unwrap_or(-1);
    match shape.dims() {
        Some(dims) => Tensor::from(dims.iter().map(size).collect::<Vec<i32>>()),
        None => Tensor::from(-1),
    }
}

const NAME: &str = "TensorArray";

impl Nest for TensorArray {
    fn to_value(&self) -> NestedValue {
        let TensorArrayOptions { element_shape, dynamic_size, .. } = &self.options;
        let fields = [
            ("dtype", NestedValue::Literal(Literal::DType(self.dtype))),
            ("element_shape", NestedValue::Literal(Literal::Shape(element_shape.clone()))),
            ("dynamic_size", (*dynamic_size).into()),
            ("list", (&self.list).into()),
            ("left", self.left.as_ref().map_or(NestedValue::None, Into::into)),
        ];
        crate::structs::value(NAME, fields)
    }

    fn from_value(value: NestedValue) -> Result<TensorArray> {
        let part = |name: &str| value.get(name).cloned().unwrap_or_default();
        if !matches!(&value, NestedValue::Struct(name, _) if **name == *NAME) {
            return Err(value.is_not("a TensorArray"));
        }
        let left = Option::<Tensor>::from_value(part("left"))?;
        Ok(TensorArray {
            dtype: DType::from_value(part("dtype"))?,
            options: TensorArrayOptions {
                element_shape: PartialShape::from_value(part("element_shape"))?,
                dynamic_size: bool::from_value(part("dynamic_size"))?,
                clear_after_read: left.is_some(),
            },
            list: Tensor::from_value(part("list"))?,
            left,
        })
    }
}

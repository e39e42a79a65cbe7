//! Sources and results of gradients.

use crate::{
    error::{Error, Result},
    ops::{self, NamedOp},
    tensor::Tensor,
    value::NestedValue,
    variable::Variable,
};
use ferroflow_ir::{Attrs, DType, ops::names};

/// Options of a gradient.
#[derive(Debug, Clone, Default)]
pub struct GradientOptions {
    /// The gradient of each target, in order: what its elements are weighted with; ones for `None`.
    pub output_gradients: Option<Vec<Option<Tensor>>>,
    /// Whether sources that the target does not depend on get zeros in place of nothing.
    pub zero_unconnected: bool,
}

/// The gradient of a tensor.
#[derive(Debug, Clone)]
pub enum TensorGradient {
    /// A tensor of the same shape.
    Dense(Tensor),
    /// Rows, for some indices.
    Slices(Box<IndexedSlices>),
}

impl TensorGradient {
    /// The gradient as a tensor of the shape of what it is a gradient of.
    ///
    /// # Errors
    ///
    /// When the rows do not fit.
    #[track_caller]
    pub fn dense(self) -> Result<Tensor> {
        match self {
            TensorGradient::Dense(tensor) => Ok(tensor),
            TensorGradient::Slices(slices) => slices.dense(),
        }
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            TensorGradient::Dense(tensor) => tensor.dtype(),
            TensorGradient::Slices(slices) => slices.values.dtype(),
        }
    }

    /// The elements that are stored: all, or the rows.
    pub fn values(&self) -> &Tensor {
        match self {
            TensorGradient::Dense(tensor) => tensor,
            TensorGradient::Slices(slices) => &slices.values,
        }
    }

    /// The gradient with other elements, such as those of a range.
    ///
    /// # Errors
    ///
    /// Those of `change`.
    pub fn map_values(
        &self,
        change: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<TensorGradient> {
        Ok(match self {
            TensorGradient::Dense(tensor) => TensorGradient::Dense(change(tensor)?),
            TensorGradient::Slices(slices) => {
                let values = change(&slices.values)?;
                TensorGradient::Slices(Box::new(IndexedSlices { values, ..(**slices).clone() }))
            }
        })
    }
}

/// Rows for some indices in the first dimension of a tensor, zeros elsewhere. An index that occurs
/// more than once has the sum of its rows.
#[derive(Debug, Clone)]
pub struct IndexedSlices {
    /// The rows.
    pub values: Tensor,
    /// Their indices, a vector.
    pub indices: Tensor,
    /// The tensor, or the handle of the variable, that has these rows.
    pub(crate) like: Tensor,
}

impl IndexedSlices {
    /// Rows for some indices of `like`, a tensor or the handle of a variable.
    pub fn new(values: Tensor, indices: Tensor, like: Tensor) -> IndexedSlices {
        IndexedSlices { values, indices, like }
    }

    /// The same rows, each index once.
    ///
    /// # Errors
    ///
    /// When the rows do not fit.
    #[track_caller]
    pub fn summed(&self) -> Result<(Tensor, Tensor)> {
        let [unique_indices, positions] = ops::unique(&self.indices)?;
        let rows =
            ops::unsorted_segment_sum(&self.values, &positions, &ops::size(&unique_indices)?)?;
        Ok((rows, unique_indices))
    }

    /// The tensor of these rows.
    ///
    /// # Errors
    ///
    /// When the rows do not fit.
    #[track_caller]
    pub fn dense(self) -> Result<Tensor> {
        static SUM: NamedOp = NamedOp::new(names::UNSORTED_SEGMENT_SUM);
        static SHAPE: NamedOp = NamedOp::new(names::VARIABLE_SHAPE);
        let like = &self.like;
        let shape = match like.dtype() {
            DType::Resource => {
                ops::one(&SHAPE, Attrs::new().with("out_type", DType::I32), &[like])?
            }
            _ => like.shape_tensor()?,
        };
        let rows = shape.gather(&Tensor::from(0i32))?;
        ops::one(&SUM, Attrs::new(), &[&self.values, &self.indices, &rows])
    }
}

/// Sources that gradients can be taken with respect to: tensors, variables, and lists and tuples of
/// them.
pub trait Sources {
    /// The gradients, in the same structure; `None` for a source that is not connected.
    type Gradients;

    /// Appends the tensors, and the handles of variables.
    fn flatten(&self, list: &mut Vec<Tensor>);

    /// The gradients in this structure, taken one by one.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when the structure cannot hold them.
    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<Self::Gradients>;
}

impl Sources for Tensor {
    type Gradients = Option<Tensor>;

    fn flatten(&self, list: &mut Vec<Tensor>) {
        list.push(self.clone());
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<Option<Tensor>> {
        Ok(next())
    }
}

impl Sources for Variable {
    type Gradients = Option<Tensor>;

    fn flatten(&self, list: &mut Vec<Tensor>) {
        list.push(self.handle());
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<Option<Tensor>> {
        Ok(next())
    }
}

impl<S: Sources + ?Sized> Sources for &S {
    type Gradients = S::Gradients;

    fn flatten(&self, list: &mut Vec<Tensor>) {
        S::flatten(self, list);
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<S::Gradients> {
        S::rebuild(self, next)
    }
}

impl<S: Sources> Sources for [S] {
    type Gradients = Vec<S::Gradients>;

    fn flatten(&self, list: &mut Vec<Tensor>) {
        self.iter().for_each(|source| source.flatten(list));
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<Vec<S::Gradients>> {
        self.iter().map(|source| source.rebuild(next)).collect()
    }
}

impl<S: Sources> Sources for Vec<S> {
    type Gradients = Vec<S::Gradients>;

    fn flatten(&self, list: &mut Vec<Tensor>) {
        self[..].flatten(list);
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<Vec<S::Gradients>> {
        self[..].rebuild(next)
    }
}

impl<S: Sources, const N: usize> Sources for [S; N] {
    type Gradients = [S::Gradients; N];

    fn flatten(&self, list: &mut Vec<Tensor>) {
        self[..].flatten(list);
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<[S::Gradients; N]> {
        let found = self[..].rebuild(next)?;
        Ok(found.try_into().unwrap_or_else(|_| unreachable!("as many gradients as sources")))
    }
}

macro_rules! tuples {
    ($($($name:ident $index:tt),+;)*) => {$(
        impl<$($name: Sources),+> Sources for ($($name,)+) {
            type Gradients = ($($name::Gradients,)+);

            fn flatten(&self, list: &mut Vec<Tensor>) {
                $(self.$index.flatten(list);)+
            }

            fn rebuild(
                &self,
                next: &mut dyn FnMut() -> Option<Tensor>,
            ) -> Result<Self::Gradients> {
                Ok(($(self.$index.rebuild(next)?,)+))
            }
        }
    )*};
}

tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
}

/// Values of any structure: what is neither a tensor nor a variable stays as it is.
impl Sources for NestedValue {
    type Gradients = NestedValue;

    fn flatten(&self, list: &mut Vec<Tensor>) {
        match self {
            NestedValue::None | NestedValue::Literal(_) | NestedValue::Custom(_) => {}
            NestedValue::Tensor(tensor) => list.push(tensor.clone()),
            NestedValue::Variable(variable) => list.push(variable.handle()),
            NestedValue::List(items) | NestedValue::Tuple(items) => {
                items.iter().for_each(|item| item.flatten(list));
            }
            NestedValue::Struct(_, fields) => {
                fields.iter().for_each(|(_, field)| field.flatten(list))
            }
            NestedValue::Dict(entries) => entries.values().for_each(|entry| entry.flatten(list)),
        }
    }

    fn rebuild(&self, next: &mut dyn FnMut() -> Option<Tensor>) -> Result<NestedValue> {
        let mut all = |items: &[NestedValue]| -> Result<Vec<NestedValue>> {
            items.iter().map(|item| item.rebuild(next)).collect()
        };
        Ok(match self {
            NestedValue::None | NestedValue::Literal(_) | NestedValue::Custom(_) => self.clone(),
            NestedValue::Tensor(_) | NestedValue::Variable(_) => {
                next().map_or(NestedValue::None, NestedValue::Tensor)
            }
            NestedValue::List(items) => NestedValue::List(all(items)?),
            NestedValue::Tuple(items) => NestedValue::Tuple(all(items)?),
            NestedValue::Struct(name, fields) => {
                let rebuilt =
                    fields.iter().map(|(key, field)| Ok((key.clone(), field.rebuild(next)?)));
                NestedValue::Struct(name.clone(), rebuilt.collect::<Result<_, Error>>()?)
            }
            NestedValue::Dict(entries) => {
                let rebuilt =
                    entries.iter().map(|(key, value)| Ok((key.clone(), value.rebuild(next)?)));
                NestedValue::Dict(rebuilt.collect::<Result<_, Error>>()?)
            }
        })
    }
}

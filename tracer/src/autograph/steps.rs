//! Steps of a `for` that is staged: a variable of the graph's loop beside those of the code.

use crate::{
    error::Result,
    ops::{iterator_get_next_as_optional, make_iterator, optional_get_value, optional_has_value},
    tensor::Tensor,
};
use ferroflow_ir::{DType, HostTensor, PartialShape, Shape, ValueType};

/// Kinds of steps.
#[derive(Debug)]
pub(super) enum Steps {
    /// Numbers from 0 to below this one.
    Count(Tensor),
    /// Elements of a data set, each as an optional, the last of which is empty.
    Elements(DatasetSteps),
}

/// Elements that an iterator of the graph goes through.
#[derive(Debug)]
pub(super) struct DatasetSteps {
    iterator: Tensor,
    dtypes: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl DatasetSteps {
    /// The elements of a data set, whose components have these types; begins with the first one.
    pub(super) fn of(dataset: &Tensor, types: &[ValueType]) -> Result<DatasetSteps> {
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        let shapes: Vec<PartialShape> = types.iter().map(|ty| ty.shape.clone()).collect();
        let iterator = crate::ops::anonymous_iterator_v3(&dtypes, &shapes)?;
        make_iterator(dataset, &iterator)?;
        Ok(DatasetSteps { iterator, dtypes, shapes })
    }

    fn next(&self) -> Result<Tensor> {
        iterator_get_next_as_optional(&self.iterator, &self.dtypes, &self.shapes)
    }

    /// The components of the element of a step.
    pub(super) fn components(&self, step: &Tensor) -> Result<Vec<Tensor>> {
        Ok(optional_get_value(step, &self.dtypes, &self.shapes)?.into_iter().collect())
    }
}

impl Steps {
    /// The type of the variable.
    pub(super) fn value_type(&self) -> ValueType {
        let dtype = match self {
            Steps::Count(end) => end.dtype(),
            Steps::Elements(_) => DType::Variant,
        };
        ValueType::new(dtype, PartialShape::scalar())
    }

    /// The first step, in the graph around the loop.
    pub(super) fn first(&self) -> Result<Tensor> {
        match self {
            // A constant, which is not part of the graph at hand.
            Steps::Count(end) => Ok(HostTensor::zeros(end.dtype(), Shape::scalar())?.into()),
            Steps::Elements(elements) => elements.next(),
        }
    }

    /// Whether there is an iteration at this step.
    pub(super) fn goes_on(&self, step: &Tensor) -> Result<Tensor> {
        match self {
            Steps::Count(end) => step.less(end),
            Steps::Elements(_) => optional_has_value(step),
        }
    }

    /// The step after this one, in the body of the loop.
    pub(super) fn next(&self, step: &Tensor) -> Result<Tensor> {
        match self {
            Steps::Count(_) => step + 1,
            Steps::Elements(elements) => elements.next(),
        }
    }

    /// The elements, if the steps are those of a data set.
    pub(super) fn elements(&self) -> Option<&DatasetSteps> {
        match self {
            Steps::Count(_) => None,
            Steps::Elements(elements) => Some(elements),
        }
    }
}

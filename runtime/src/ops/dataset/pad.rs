//! Data sets of elements padded to one shape and stacked to batches.

use super::{
    Cardinality, Components, Dataset, DatasetSource, Stream,
    batch::{Batching, batches},
};
use crate::{
    context::Context,
    eager_tensor::Results,
    error::{Error, Result},
    ops::RuntimeCall,
    rows::stacked,
};
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape};
use ferroflow_kernels::check_size;
use std::sync::Arc;

/// Padding of a component.
#[derive(Debug)]
struct PadTo {
    /// The shape to pad to; the largest of a batch where a dimension is `None`.
    shape: Vec<Option<usize>>,
    value: HostTensor,
}

#[derive(Debug)]
struct PaddedBatch {
    input: Dataset,
    op: &'static str,
    batches: Batching,
    paddings: Arc<Vec<PadTo>>,
}

impl DatasetSource for PaddedBatch {
    fn stream(&self) -> Stream {
        let (mut input, batches, op) = (self.input.stream(), self.batches, self.op);
        let paddings = self.paddings.clone();
        Stream::new(move |scope| {
            let Some(elements) = batches.next(scope, &mut input)? else { return Ok(None) };
            let padded = paddings.iter().enumerate().map(|(index, padding)| {
                let tensors = elements.iter().map(|element: &Components| {
                    let missing = || wrong(op, format!("component {index}"), "fewer");
                    element.get(index).ok_or_else(missing)
                });
                padding.stack(scope.context, op, &tensors.collect::<Result<Vec<_>>>()?)
            });
            padded.collect::<Result<_>>().map(Some)
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.batches.cardinality(self.input.cardinality())
    }
}

fn wrong(op: &'static str, expected: String, found: impl std::fmt::Display) -> Error {
    IrError::argument(op, "elements", expected, found).into()
}

impl PadTo {
    /// The tensors at the beginning of rows of one shape.
    fn stack(
        &self,
        context: &Context,
        op: &'static str,
        tensors: &[&HostTensor],
    ) -> Result<HostTensor> {
        let shape = self.padded_shape(op, tensors)?;
        let dtype = self.value.dtype();
        let whole = stacked(tensors.len(), &shape)?;
        check_size(dtype, &whole, context.limits().tensor_bytes)?;
        let n = shape.num_elements();
        let rows = tensors.iter().enumerate().flat_map(|(index, tensor)| {
            offsets(tensor.shape(), &shape).map(move |place| index * n + place)
        });
        match dtype {
            DType::String => {
                let value = self.value.strings()?[0].clone();
                let mut strings = vec![value; whole.num_elements()];
                let elements = tensors.iter().map(|tensor| Ok(tensor.strings()?));
                let elements = elements.collect::<Result<Vec<_>>>()?;
                for (place, string) in rows.zip(elements.into_iter().flatten()) {
                    strings[place] = string.clone();
                }
                Ok(HostTensor::from_strings(whole, strings)?)
            }
            _ => {
                let size = dtype.size().unwrap_or(1).max(1);
                let mut bytes = self.value.bytes().repeat(whole.num_elements());
                let elements = tensors.iter().flat_map(|tensor| tensor.bytes().chunks_exact(size));
                for (place, element) in rows.zip(elements) {
                    bytes[place * size..][..size].copy_from_slice(element);
                }
                Ok(HostTensor::from_bytes(dtype, whole, &bytes)?)
            }
        }
    }

    /// The shape that all tensors are padded to.
    fn padded_shape(&self, op: &'static str, tensors: &[&HostTensor]) -> Result<Shape> {
        let mut dims: Vec<usize> = self.shape.iter().map(|dim| dim.unwrap_or(0)).collect();
        for tensor in tensors {
            tensor.check(self.value.dtype())?;
            let shape = tensor.shape();
            let fits = |(size, dim): (&usize, &Option<usize>)| dim.is_none_or(|dim| *size <= dim);
            if shape.rank() != dims.len() || !shape.iter().zip(&self.shape).all(fits) {
                return Err(wrong(op, format!("no larger than {:?}", self.shape), shape));
            }
            dims.iter_mut().zip(shape.iter()).for_each(|(dim, size)| *dim = (*dim).max(*size));
        }
        Ok(Shape::new(dims)?)
    }
}

/// The positions of the elements of a tensor in a larger one of the same rank.
fn offsets(own: &Shape, whole: &Shape) -> impl Iterator<Item = usize> + use<> {
    let (own, whole) = (own.to_vec(), whole.to_vec());
    let n: usize = own.iter().product();
    (0..n).map(move |mut index| {
        let (mut offset, mut stride) = (0, 1);
        for (own, whole) in own.iter().zip(&whole).rev() {
            offset += index % own * stride;
            index /= own;
            stride *= whole;
        }
        offset
    })
}

pub(super) fn padded_batch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let batches = batches(call, 1)?;
    let n = call.attrs.types("Toutput_types")?.len();
    let tensors = call.tensors()?;
    let (shapes, values) = (tensors.get(2..2 + n), tensors.get(2 + n..2 + 2 * n));
    let Some((shapes, values)) = shapes.zip(values) else {
        let expected = format!("{n} shapes and values");
        return Err(wrong(call.op.name, expected, call.inputs.len()));
    };
    let padding = |(shape, value): (&HostTensor, &HostTensor)| {
        if value.len() != 1 || !(value.is_plain() || value.dtype() == DType::String) {
            return Err(wrong(call.op.name, "a scalar to pad with".into(), value.shape()));
        }
        let shape = shape.to_i64s()?.into_iter().map(|dim| match dim {
            -1 => Ok(None),
            dim => usize::try_from(dim)
                .map(Some)
                .map_err(|_| wrong(call.op.name, "shapes of dimensions of -1 or more".into(), dim)),
        });
        Ok(PadTo { shape: shape.collect::<Result<_>>()?, value: value.clone() })
    };
    let paddings = Arc::new(shapes.iter().zip(values).map(padding).collect::<Result<_>>()?);
    let (input, op) = (call.input_dataset(0)?, call.op.name);
    call.dataset(PaddedBatch { input, op, batches, paddings })
}

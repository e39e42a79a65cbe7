//! Batches of tensors of different shapes, as sparse tensors.

use super::{Cardinality, Components, Dataset, DatasetSource, KeptBytes, Stream};
use crate::{
    eager_tensor::Results, error::Result, execute::execute, ops::RuntimeCall, scope::Scope,
};
use ferroflow_ir::{Attrs, DType, Error as IrError, Handle, HostTensor, Shape, workspace};
use std::sync::Arc;

#[derive(Debug)]
struct DenseToSparse {
    input: Dataset,
    op: &'static str,
    batch_size: usize,
    /// The largest sizes of an element; nothing where the batch tells.
    row: Vec<Option<usize>>,
}

impl DatasetSource for DenseToSparse {
    fn stream(&self) -> Stream {
        let (mut input, op) = (self.input.stream(), self.op);
        let (batch_size, row) = (self.batch_size, self.row.clone());
        Stream::new(move |scope| {
            let (mut elements, mut kept) = (Vec::new(), KeptBytes::default());
            while elements.len() < batch_size {
                let Some(element) = input.next(scope)? else { break };
                kept.add(scope, &element)?;
                elements.extend(element.into_iter().next());
            }
            if elements.is_empty() {
                return Ok(None);
            }
            batch(scope, op, &elements, &row).map(Some)
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|n| n.div_ceil(self.batch_size as u64))
    }
}

/// The elements as one sparse tensor: coordinates, elements and sizes in a vector of dtype variant.
fn batch(
    scope: Scope<'_>,
    op: &'static str,
    elements: &[HostTensor],
    row: &[Option<usize>],
) -> Result<Components> {
    let mut sizes: Vec<usize> = row.iter().map(|size| size.unwrap_or(0)).collect();
    for element in elements {
        let dims = element.shape().dims();
        let fits = |(&size, &most): (&usize, &Option<usize>)| most.is_none_or(|most| size <= most);
        if dims.len() != row.len() || !dims.iter().zip(row).all(fits) {
            let expected = format!("shapes within {row:?}");
            return Err(IrError::argument(op, "element", expected, element.shape()).into());
        }
        sizes.iter_mut().zip(dims).for_each(|(size, &own)| *size = own.max(*size));
    }
    let n: usize = elements.iter().map(HostTensor::len).sum();
    let rank = row.len() + 1;
    let mut indices = workspace::reserve(n.saturating_mul(rank))?;
    for (number, element) in elements.iter().enumerate() {
        let strides = element.shape().strides();
        for position in 0..element.len() {
            indices.push(number as i64);
            let dims = element.shape().dims().iter().zip(&strides);
            indices.extend(dims.map(|(&size, &stride)| (position / stride % size) as i64));
        }
    }
    let indices = HostTensor::from_slice(Shape::new([n, rank])?, &indices)?;
    let flat = elements.iter().map(|element| {
        let shape = Shape::new([element.len()])?;
        Ok(element.clone().reshaped(shape)?.into())
    });
    let flat = flat.collect::<Result<Vec<_>>>()?;
    let values = joined(scope, flat)?;
    let dims = [elements.len()].into_iter().chain(sizes).map(|size| size as i64);
    let dims = HostTensor::vector(&dims.collect::<Vec<_>>())?;
    let parts: Vec<Arc<dyn Handle>> = vec![Arc::new(indices), Arc::new(values), Arc::new(dims)];
    Ok(vec![HostTensor::from_handles(DType::Variant, Shape::new([3])?, parts)?])
}

/// Vectors one after another.
fn joined(scope: Scope<'_>, mut parts: Vec<crate::EagerTensor>) -> Result<HostTensor> {
    if let [_] = parts[..] {
        return parts.remove(0).into_host();
    }
    let n = parts.len() as i64;
    parts.push(HostTensor::scalar(0i32).into());
    let attrs = Attrs::new().with("N", n);
    execute(scope.context, "ConcatV2", attrs, &parts)?.remove(0).into_host()
}

pub(super) fn dense_to_sparse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let batch_size = call.count(1, "batch_size")?;
    let row = call.host(2)?.to_i64s()?;
    let size = |&size: &i64| match size {
        -1 => Ok(None),
        size => usize::try_from(size)
            .map(Some)
            .map_err(|_| IrError::argument(call.op.name, "row_shape", "-1, or not negative", size)),
    };
    let row = row.iter().map(size).collect::<std::result::Result<_, _>>()?;
    let (input, op) = (call.input_dataset(0)?, call.op.name);
    call.dataset(DenseToSparse { input, op, batch_size, row })
}

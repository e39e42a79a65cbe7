//! Buckets: gradients that travel between processes as one tensor.
//!
//! A call of a collective between processes costs a round trip for each member; a model has hundreds of
//! small gradients. So they are joined, the last ones first, as they are computed in this order. Replicas
//! that are threads of one process gain nothing by that.

use super::{ReduceOp, ReplicaContext};
use crate::{error::Result, ops, tensor::Tensor};
use ferroflow_ir::host_tensor::byte_len;

/// The sums of tensors over all replicas.
pub(super) fn sums(replica: &ReplicaContext, tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let Some(most) = replica.bucket_bytes() else {
        return tensors.iter().map(|tensor| replica.all_reduce(ReduceOp::Sum, tensor)).collect();
    };
    let sizes: Vec<Option<usize>> = tensors.iter().map(bytes).collect();
    let mut sums: Vec<Option<Tensor>> = vec![None; tensors.len()];
    for bucket in buckets(&tensors, &sizes, most) {
        let parts: Vec<&Tensor> = bucket.iter().map(|&index| &tensors[index]).collect();
        for (index, sum) in bucket.iter().zip(sums_of_bucket(replica, &parts)?) {
            sums[*index] = Some(sum);
        }
    }
    Ok(sums.into_iter().flatten().collect())
}

/// The size of a tensor, if its shape is known.
fn bytes(tensor: &Tensor) -> Option<usize> {
    byte_len(tensor.dtype(), &tensor.shape().known()?).ok()
}

/// The numbers of the tensors of each bucket: neighbours of one dtype and known size, of `most` bytes or less.
fn buckets(tensors: &[Tensor], sizes: &[Option<usize>], most: usize) -> Vec<Vec<usize>> {
    let mut buckets: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for index in (0..tensors.len()).rev() {
        let fits = |last: &&mut Vec<usize>| tensors[last[0]].dtype() == tensors[index].dtype();
        match (sizes[index], buckets.last_mut().filter(fits)) {
            (Some(size), Some(last)) if size <= room => {
                last.push(index);
                room -= size;
            }
            (size, _) => {
                buckets.push(vec![index]);
                // A tensor of unknown size is a bucket of its own.
                room = size.map_or(0, |size| most.saturating_sub(size));
            }
        }
    }
    buckets
}

fn sums_of_bucket(replica: &ReplicaContext, parts: &[&Tensor]) -> Result<Vec<Tensor>> {
    if let [part] = parts {
        return Ok(vec![replica.all_reduce(ReduceOp::Sum, part)?]);
    }
    let flat = parts.iter().map(|part| part.reshape(&[-1])).collect::<Result<Vec<Tensor>>>()?;
    let flat: Vec<&Tensor> = flat.iter().collect();
    let joined = ops::concat_v2(&flat, &Tensor::from(0i32))?;
    let sum = replica.all_reduce(ReduceOp::Sum, &joined)?;
    let shapes: Vec<Vec<i64>> = parts.iter().map(|part| dims(part)).collect();
    let sizes: Vec<i64> = shapes.iter().map(|dims| dims.iter().product()).collect();
    let (sizes, axis) = (Tensor::from(&sizes[..]), Tensor::from(0i32));
    let sums = ops::split_v(&sum, &sizes, &axis, parts.len() as i64)?;
    sums.into_iter().zip(&shapes).map(|(sum, dims)| sum.reshape(dims)).collect()
}

/// The sizes of a tensor of known shape.
fn dims(tensor: &Tensor) -> Vec<i64> {
    let shape = tensor.shape().known();
    shape.iter().flat_map(|shape| shape.dims()).map(|&size| size as i64).collect()
}

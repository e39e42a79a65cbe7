//! Reductions of sparse tensors: `SparseReduceSum`, `SparseReduceMax`, and their sparse forms.

use super::{Coordinates, SparseInputs, put_coordinates, put_dims, put_values};
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_number, with_real},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
};
use ferroflow_ir::{Shape, infer::kept_axes};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("SparseReduceMax", max),
    ("SparseReduceMaxSparse", max),
    ("SparseReduceSum", sum),
    ("SparseReduceSumSparse", sum),
];

fn sum(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let keep = call.attrs.bool("keep_dims")?;
    Ok(with_number!(call.dtype(1), T => kernel::<T>(call, keep, |a, b| a.plus(b))))
}

fn max(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let keep = call.attrs.bool("keep_dims")?;
    Ok(with_real!(call.dtype(1), T => kernel::<T>(call, keep, largest::<T>)))
}

fn largest<T: Ordered<Acc: Ordered>>(a: T::Acc, b: T::Acc) -> T::Acc {
    a.larger(b)
}

fn kernel<T: Number + Cell>(
    call: &OpCall<'_>,
    keep: bool,
    combine: fn(T::Acc, T::Acc) -> T::Acc,
) -> Arc<dyn Kernel> {
    let (inputs, dtype, sparse) =
        (SparseInputs::new(call, 0), call.dtype(1), call.outputs.len() > 1);
    Arc::new(move |io: &mut Io<'_>| {
        let (coordinates, values): (Coordinates<'_>, &[T]) =
            (inputs.coordinates(io), io.input(inputs.values));
        let axes: Vec<i64> = io.input::<i32>(3).iter().map(|&axis| axis.into()).collect();
        let kept = kept_axes(&axes, inputs.rank)?;
        coordinates.check()?;
        let groups = groups(&coordinates, &kept)?;
        let results: Vec<T> = groups
            .iter()
            .map(|(_, elements)| {
                let parts = elements.iter().map(|&n| values[n].to_acc());
                T::from_acc(parts.reduce(combine).unwrap_or(T::Acc::ZERO))
            })
            .collect();
        let shape = reduced_shape(coordinates.dims, &kept, keep)?;
        if sparse {
            let rank = shape.rank();
            let strides = shape.strides();
            let unravelled = |position: usize| {
                strides
                    .iter()
                    .zip(shape.iter())
                    .map(move |(&stride, &size)| (position / stride % size.max(1)) as i64)
            };
            let indices: Vec<i64> =
                groups.iter().flat_map(|(position, _)| unravelled(*position)).collect();
            put_coordinates(io, 0, rank, &indices, groups.len())?;
            put_values(io, 1, dtype, &results)?;
            return put_dims(io, 2, &shape.to_i64());
        }
        T::write(io, 0, dtype, &shape, |out| {
            out.fill(T::ZERO);
            for ((position, _), &result) in groups.iter().zip(&results) {
                out[*position] = result;
            }
            Ok(())
        })
    })
}

/// The elements that fall together when only some dimensions are kept, with their position in what
/// remains; in the order of these.
fn groups(places: &Coordinates<'_>, kept: &[bool]) -> Result<Vec<(usize, Vec<usize>)>> {
    let shape = reduced_shape(places.dims, kept, false)?;
    let position = |place: &[i64]| {
        let own = place.iter().zip(kept).filter(|(_, kept)| **kept).map(|(&index, _)| index);
        own.zip(shape.iter()).fold(0, |sum, (index, &size)| sum * size + index as usize)
    };
    let mut tagged: Vec<(usize, usize)> =
        places.iter().enumerate().map(|(n, place)| (position(place), n)).collect();
    tagged.sort_unstable();
    let runs = tagged.chunk_by(|a, b| a.0 == b.0);
    Ok(runs.map(|run| (run[0].0, run.iter().map(|&(_, n)| n).collect())).collect())
}

/// The shape of what remains.
fn reduced_shape(dims: &[i64], kept: &[bool], keep: bool) -> Result<Shape> {
    let sizes = dims.iter().zip(kept).filter_map(|(&size, &kept)| match kept {
        true => Some(size),
        false => keep.then_some(1),
    });
    Ok(Shape::from_i64(&sizes.collect::<Vec<i64>>())?)
}

//! Arithmetic on shapes and positions that come as data: `BroadcastArgs`, `BroadcastGradientArgs`,
//! `ConcatOffset`, `InvertPermutation`, `UnravelIndex`.

use super::{
    Build,
    index::{integer, integers, put_integers},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, PartialShape, Shape, infer::normalize_axis, workspace};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("BroadcastArgs", broadcast_args),
    ("BroadcastGradientArgs", broadcast_gradient_args),
    ("ConcatOffset", concat_offset),
    ("InvertPermutation", invert_permutation),
    ("UnravelIndex", unravel_index),
];

fn vector(io: &mut Io<'_>, output: usize, dtype: DType, values: &[usize]) -> Result<()> {
    put_integers(io, output, dtype, &Shape::new([values.len()])?, values.iter().copied())
}

fn broadcast_args(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(0);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let shape = |input| Shape::from_i64(&integers(io, input, dtype));
        let joined = shape(0)?.broadcast(&shape(1)?)?;
        vector(io, 0, dtype, &joined)
    })))
}

fn broadcast_gradient_args(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(0);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (a, b) = (integers(io, 0, dtype), integers(io, 1, dtype));
        let [left, right] = repeated_axes(&a, &b)?;
        vector(io, 0, dtype, &left)?;
        vector(io, 1, dtype, &right)
    })))
}

/// For each of two shapes that broadcast, the axes of the result along which it is repeated
/// (`tensorflow/core/util/bcast.h`). An axis of size 1 on both sides counts for both, unless the
/// shapes are equal.
fn repeated_axes(a: &[i64], b: &[i64]) -> Result<[Vec<usize>; 2]> {
    let mut axes = [Vec::new(), Vec::new()];
    if a == b {
        return Ok(axes);
    }
    let rank = a.len().max(b.len());
    let at = |shape: &[i64], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    for axis in 0..rank {
        let (a, b) = (at(a, axis), at(b, axis));
        if a != b && a != 1 && b != 1 {
            let one = |size: i64| PartialShape::vector(usize::try_from(size).ok());
            return Err(Error::broadcast(one(a), one(b)).into());
        }
        if a == 1 {
            axes[0].push(axis);
        }
        if b == 1 {
            axes[1].push(axis);
        }
    }
    Ok(axes)
}

fn concat_offset(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, n) = (call.outputs[0].dtype, call.outputs.len());
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let shapes: Vec<Vec<i64>> =
            (0..n).map(|index| integers(io, index + 1, dtype).into_owned()).collect();
        let rank = shapes[0].len();
        let axis = normalize_axis(integer(io, 0, DType::I32), rank)?;
        let mut offset = 0i64;
        for (index, shape) in shapes.iter().enumerate() {
            let others_differ = (0..rank).any(|d| d != axis && shape[d] != shapes[0][d]);
            if others_differ {
                let expected = format!("like {:?} but for axis {axis}", shapes[0]);
                let found = format!("{shape:?}");
                return Err(Error::argument("ConcatOffset", "shape", expected, found).into());
            }
            let mut offsets = vec![0; rank];
            offsets[axis] = offset as usize;
            vector(io, index, dtype, &offsets)?;
            offset = offset.wrapping_add(shape[axis]);
        }
        Ok(())
    })))
}

fn invert_permutation(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(0);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let permutation = integers(io, 0, dtype);
        let n = permutation.len();
        let mut positions = workspace::filled(n, n)?;
        for (position, &index) in permutation.iter().enumerate() {
            let slot = usize::try_from(index).ok().and_then(|index| positions.get_mut(index));
            match slot {
                Some(place) if *place == n => *place = position,
                Some(_) => {
                    let op = "InvertPermutation";
                    return Err(Error::argument(op, "x", "without repetitions", index).into());
                }
                None => {
                    let (what, high) = ("element".into(), n as i64);
                    return Err(Error::Index { what, index, low: 0, high }.into());
                }
            }
        }
        vector(io, 0, dtype, &positions)
    })))
}

fn unravel_index(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, shape) = (call.dtype(0), call.output_shape(0)?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (indices, dims) = (integers(io, 0, dtype), integers(io, 1, dtype));
        let size = Shape::from_i64(&dims)?.num_elements() as i64;
        if dims.contains(&0) {
            let found = format!("{dims:?}");
            return Err(Error::argument("UnravelIndex", "dims", "without 0", found).into());
        }
        for &index in indices.iter() {
            if !(0..size).contains(&index) {
                return Err(
                    Error::Index { what: "position".into(), index, low: 0, high: size }.into()
                );
            }
        }
        let n = indices.len();
        let mut coordinates = workspace::filled(0usize, dims.len() * n)?;
        for (column, &index) in indices.iter().enumerate() {
            let mut rest = index;
            for (row, &dim) in dims.iter().enumerate().rev() {
                coordinates[row * n + column] = (rest % dim) as usize;
                rest /= dim;
            }
        }
        put_integers(io, 0, dtype, &shape, coordinates.into_iter())
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_size_one_are_repeated() {
        let check = |a: &[i64], b: &[i64], left: &[usize], right: &[usize]| {
            assert_eq!(repeated_axes(a, b).unwrap(), [left.to_vec(), right.to_vec()]);
        };
        check(&[2, 1], &[3], &[1], &[0]);
        check(&[1, 1], &[1], &[0, 1], &[0, 1]);
        check(&[1, 1], &[1, 1], &[], &[]);
        check(&[], &[2], &[0], &[]);
        assert!(repeated_axes(&[2], &[3]).is_err());
    }
}

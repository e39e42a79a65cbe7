//! Moving the elements of sparse tensors: `SparseReorder`, `SparseReshape`, `SparseSlice`,
//! `SparseSplit`, `SparseConcat`.

use super::{Coordinates, SparseInputs, put_coordinates, put_dims, put_values};
use crate::{
    cpu::{Build, cell::Cell, dispatch::with_cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, budget, infer::normalize_axis, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("SparseConcat", concat),
    ("SparseReorder", reorder),
    ("SparseReshape", reshape),
    ("SparseSlice", slice),
    ("SparseSplit", split),
];

fn reorder(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (coordinates, values) = (form.coordinates(io), T::read(io, form.values)?);
            let order = coordinates.sorted();
            let indices: Vec<i64> =
                order.iter().flat_map(|&n| coordinates.get(n)).copied().collect();
            let values: Vec<T> = order.iter().map(|&n| values[n].clone()).collect();
            put_coordinates(io, 0, form.rank, &indices, form.n)?;
            put_values(io, 1, dtype, &values)
        })
    }
    let (sparse, dtype) = (SparseInputs::new(call, 0), call.dtype(1));
    Ok(with_cell!(dtype, T => kernel::<T>(sparse, dtype)))
}

fn reshape(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (n, rank) = (call.shape(0)[0], call.shape(0)[1]);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (indices, dims): (&[i64], &[i64]) = (io.input(0), io.input(1));
        let before = Shape::from_i64(dims)?;
        let after = resolve(io.input(2), &before)?;
        if n > 0 && before.num_elements() == 0 {
            let found = format!("{n} elements");
            return Err(Error::argument("SparseReshape", "input", "empty", found).into());
        }
        let (from, to) = (before.strides(), after.strides());
        let mut moved = workspace::reserve(n * after.rank())?;
        for place in indices.chunks_exact(rank.max(1)).take(n) {
            let steps = place.iter().zip(&from);
            let position = steps.fold(0i64, |sum, (&index, &stride)| {
                sum.wrapping_add(index.wrapping_mul(stride as i64))
            });
            let mut rest = position;
            for &stride in &to {
                moved.push(rest / stride as i64);
                rest %= stride as i64;
            }
        }
        if rank == 0 {
            moved = workspace::filled(0, n * after.rank())?;
        }
        put_coordinates(io, 0, after.rank(), &moved, n)?;
        put_dims(io, 1, &after.to_i64())
    })))
}

/// The shape that `sizes` asks for, in which one -1 stands for what the others leave.
fn resolve(sizes: &[i64], before: &Shape) -> Result<Shape> {
    let wrong = || {
        let found = format!("{sizes:?} for {before}");
        crate::Error::from(Error::argument("SparseReshape", "new_shape", "of that size", found))
    };
    let open = sizes.iter().filter(|&&size| size == -1).count();
    let known: Vec<i64> = sizes.iter().copied().filter(|&size| size != -1).collect();
    let (known, whole) = (Shape::from_i64(&known)?.num_elements(), before.num_elements());
    if open > 1 || (open == 1 && known == 0) {
        return Err(wrong());
    }
    let rest = if open == 1 { whole / known } else { 1 };
    let after = Shape::new(sizes.iter().map(|&size| usize::try_from(size).unwrap_or(rest)))?;
    if after.num_elements() == whole { Ok(after) } else { Err(wrong()) }
}

fn slice(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (coordinates, values) = (form.coordinates(io), T::read(io, form.values)?);
            let (start, size): (&[i64], &[i64]) = (io.input(3), io.input(4));
            let mut dims = workspace::reserve(form.rank)?;
            for ((&dim, &start), &size) in coordinates.dims.iter().zip(start).zip(size) {
                if size < 0 {
                    let error = Error::argument("SparseSlice", "size", "not negative", size);
                    return Err(error.into());
                }
                dims.push(dim.saturating_sub(start).min(size).max(0));
            }
            let inside = |place: &[i64]| {
                let mut sides = place.iter().zip(start).zip(&dims);
                sides.all(|((&index, &start), &size)| {
                    index >= start && index.saturating_sub(start) < size
                })
            };
            let kept: Vec<usize> = (0..form.n).filter(|&n| inside(coordinates.get(n))).collect();
            let shift = |&n: &usize| {
                coordinates.get(n).iter().zip(start).map(|(index, start)| index - start)
            };
            let indices: Vec<i64> = kept.iter().flat_map(shift).collect();
            let values: Vec<T> = kept.iter().map(|&n| values[n].clone()).collect();
            put_coordinates(io, 0, form.rank, &indices, kept.len())?;
            put_values(io, 1, dtype, &values)?;
            put_dims(io, 2, &dims)
        })
    }
    let (sparse, dtype) = (SparseInputs::new(call, 0), call.dtype(1));
    Ok(with_cell!(dtype, T => kernel::<T>(sparse, dtype)))
}

/// Parts of an axis, the first of which may be one step longer than the others.
struct Parts {
    size: i64,
    n: i64,
}

impl Parts {
    /// The part that a coordinate falls into.
    fn of(&self, index: i64) -> i64 {
        let (short, longer) = (self.size / self.n, self.size % self.n);
        let edge = longer * (short + 1);
        if index < edge { index / (short + 1) } else { longer + (index - edge) / short }
    }

    /// Where a part begins.
    fn start(&self, part: i64) -> i64 {
        part * (self.size / self.n) + part.min(self.size % self.n)
    }
}

fn split(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(form: SparseInputs, dtype: DType, n: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (coordinates, values) = (form.coordinates(io), T::read(io, form.values)?);
            let axis = normalize_axis(io.scalar(0), form.rank)?;
            let parts = Parts { size: coordinates.dims[axis], n: n as i64 };
            if parts.size < parts.n {
                let expected = format!("at most {}", parts.size);
                return Err(Error::argument("SparseSplit", "num_split", expected, n).into());
            }
            coordinates.check()?;
            for part in 0..n {
                budget::tick();
                let (start, end) = (parts.start(part as i64), parts.start(part as i64 + 1));
                let own =
                    |&element: &usize| parts.of(coordinates.get(element)[axis]) == part as i64;
                let own: Vec<usize> = (0..form.n).filter(own).collect();
                let mut indices: Vec<i64> =
                    own.iter().flat_map(|&element| coordinates.get(element)).copied().collect();
                indices.iter_mut().skip(axis).step_by(form.rank).for_each(|index| *index -= start);
                let values: Vec<T> = own.iter().map(|&element| values[element].clone()).collect();
                let mut dims = coordinates.dims.to_vec();
                dims[axis] = end - start;
                put_coordinates(io, part, form.rank, &indices, own.len())?;
                put_values(io, n + part, dtype, &values)?;
                put_dims(io, 2 * n + part, &dims)?;
            }
            Ok(())
        })
    }
    let (sparse, dtype) = (SparseInputs::new(call, 1), call.dtype(2));
    Ok(with_cell!(dtype, T => kernel::<T>(sparse, dtype, call.outputs.len() / 3)))
}

fn concat(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(forms: Vec<SparseInputs>, dtype: DType, axis: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let rank = forms[0].rank;
            let mut dims = forms[0].coordinates(io).dims.to_vec();
            dims[axis] = 0;
            let (mut indices, mut all): (Vec<i64>, Vec<T>) = (Vec::new(), Vec::new());
            for form in &forms {
                let coordinates = form.coordinates(io);
                if (0..rank).any(|d| d != axis && coordinates.dims[d] != dims[d]) {
                    let expected = format!("like {dims:?} but for axis {axis}");
                    let found = format!("{:?}", coordinates.dims);
                    return Err(Error::argument("SparseConcat", "shapes", expected, found).into());
                }
                let first = indices.len();
                indices.extend_from_slice(coordinates.indices);
                let moved = indices[first..].iter_mut().skip(axis).step_by(rank);
                moved.for_each(|index| *index = index.wrapping_add(dims[axis]));
                all.extend_from_slice(T::read(io, form.values)?);
                dims[axis] = dims[axis].saturating_add(coordinates.dims[axis]);
            }
            let joined = Coordinates { indices: &indices, rank, n: all.len(), dims: &dims };
            let order = joined.sorted();
            let indices: Vec<i64> = order.iter().flat_map(|&n| joined.get(n)).copied().collect();
            let values: Vec<T> = order.iter().map(|&n| all[n].clone()).collect();
            put_coordinates(io, 0, rank, &indices, values.len())?;
            put_values(io, 1, dtype, &values)?;
            put_dims(io, 2, &dims)
        })
    }
    let n = call.inputs.len() / 3;
    let inputs: Vec<SparseInputs> =
        (0..n).map(|index| SparseInputs::at(call, index, n + index, 2 * n + index)).collect();
    let axis = normalize_axis(call.attrs.int("concat_dim")?, inputs[0].rank)?;
    let dtype = call.dtype(n);
    Ok(with_cell!(dtype, T => kernel::<T>(inputs, dtype, axis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parts_are_longer() {
        let parts = Parts { size: 7, n: 3 };
        assert_eq!((0..4).map(|part| parts.start(part)).collect::<Vec<_>>(), [0, 3, 5, 7]);
        assert_eq!((0..7).map(|index| parts.of(index)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 2, 2]);
    }
}

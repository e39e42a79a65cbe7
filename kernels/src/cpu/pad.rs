//! Rows around tensors: `Pad`, `PadV2`, `MirrorPad`, `MirrorPadGrad`.

use super::{
    Build,
    cell::Cell,
    dispatch::{with_cell, with_number},
    nontemporal::RunCopies,
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("MirrorPad", mirror_pad), ("MirrorPadGrad", mirror_pad_grad), ("Pad", pad), ("PadV2", pad)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// A dimension of the tensor inside, and the number of steps around it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Dim {
    size: usize,
    before: usize,
    after: usize,
}

impl Dim {
    fn padded(self) -> usize {
        self.before + self.size + self.after
    }

    /// The step inside that step `n` of the padded dimension is.
    fn inside(self, n: usize) -> Option<usize> {
        n.checked_sub(self.before).filter(|&step| step < self.size)
    }

    /// The step inside that step `n` of the padded dimension is or mirrors; `own` is 1 where the
    /// outermost step itself is not repeated.
    fn mirrored(self, n: usize, own: usize) -> usize {
        match n.checked_sub(self.before) {
            None => self.before - n - (1 - own),
            Some(step) if step < self.size => step,
            Some(step) => 2 * self.size - 1 - own - step,
        }
    }
}

/// A padded tensor as rows: outer dimensions, the innermost one that is padded, and how many
/// elements one of its steps has.
#[derive(Debug, Clone, PartialEq)]
struct Plan {
    outer: SmallVec<[Dim; 4]>,
    row: Dim,
    inner: usize,
}

impl Plan {
    /// The plan for an inside of this shape; neighbouring dimensions that are not padded are one.
    fn new(shape: &[usize], pairs: &[[i64; 2]]) -> Plan {
        let mut dims: SmallVec<[Dim; 4]> = SmallVec::new();
        for (&size, &[before, after]) in shape.iter().zip(pairs) {
            let (before, after) = (before as usize, after as usize);
            match dims.last_mut() {
                Some(last) if last.padded() == last.size && before + after == 0 => {
                    last.size *= size;
                }
                _ => dims.push(Dim { size, before, after }),
            }
        }
        let mut inner = 1;
        if dims.len() > 1 && dims.last().is_some_and(|dim| dim.padded() == dim.size) {
            inner = dims.pop().map_or(1, |dim| dim.size);
        }
        let row = dims.pop().unwrap_or(Dim { size: 1, before: 0, after: 0 });
        Plan { outer: dims, row, inner }
    }

    /// Index of row `n` of the padded tensor among the rows inside, where `step` tells it for a
    /// dimension.
    fn row(&self, n: usize, step: impl Fn(Dim, usize) -> Option<usize>) -> Option<usize> {
        let (mut rest, mut row, mut rows) = (n, 0, 1);
        for &dim in self.outer.iter().rev() {
            row += step(dim, rest % dim.padded())? * rows;
            rest /= dim.padded();
            rows *= dim.size;
        }
        Some(row)
    }
}

fn pairs(call: &OpCall<'_>) -> Result<Vec<[i64; 2]>> {
    Ok(call.ints(1)?.as_chunks().0.to_vec())
}

fn pad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, shape: Shape, plan: Plan) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let source = T::read(io, 0)?;
            let value = if io.n_inputs() > 2 { T::read(io, 2)?[0].clone() } else { T::blank() };
            let threads = io.threads();
            let (from, to) = (plan.row.size * plan.inner, plan.row.padded() * plan.inner);
            let before = plan.row.before * plan.inner;
            T::write(io, 0, dtype, &shape, |out| {
                let (rows_per_piece, len) = ((PIECE / to.max(1)).max(1), out.len());
                threads.for_each_piece(out, rows_per_piece * to, |start, out| {
                    let copies = RunCopies::to::<T>(len);
                    for (n, out) in out.chunks_exact_mut(to).enumerate() {
                        let Some(row) = plan.row(start / to + n, Dim::inside) else {
                            out.fill(value.clone());
                            continue;
                        };
                        out[..before].fill(value.clone());
                        copies.copy(&source[row * from..][..from], &mut out[before..before + from]);
                        out[before + from..].fill(value.clone());
                    }
                });
                Ok(())
            })
        })
    }
    let plan = Plan::new(call.shape(0), &pairs(call)?);
    let (dtype, shape) = (call.dtype(0), call.output_shape(0)?);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, shape, plan)))
}

/// 1 where the outermost step is not repeated in the mirror.
fn own(call: &OpCall<'_>) -> Result<usize> {
    Ok(usize::from(call.attrs.string("mode")? == "REFLECT"))
}

fn mirror_pad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, shape: Shape, plan: Plan, own: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let source = T::read(io, 0)?;
            let threads = io.threads();
            let (row, inner) = (plan.row, plan.inner);
            let (from, to) = (row.size * inner, row.padded() * inner);
            T::write(io, 0, dtype, &shape, |out| {
                let rows_per_piece = (PIECE / to.max(1)).max(1);
                threads.for_each_piece(out, rows_per_piece * to, |start, out| {
                    for (n, out) in out.chunks_exact_mut(to).enumerate() {
                        let mirrored = |dim: Dim, n| Some(dim.mirrored(n, own));
                        let number = plan.row(start / to + n, mirrored).unwrap_or(0);
                        let source = &source[number * from..][..from];
                        let (before, rest) = out.split_at_mut(row.before * inner);
                        let (middle, after) = rest.split_at_mut(from);
                        let mirror = |first: usize, out: &mut [T]| {
                            for (n, out) in out.chunks_exact_mut(inner).enumerate() {
                                let step = row.mirrored(first + n, own);
                                out.clone_from_slice(&source[step * inner..][..inner]);
                            }
                        };
                        mirror(0, before);
                        middle.clone_from_slice(source);
                        mirror(row.before + row.size, after);
                    }
                });
                Ok(())
            })
        })
    }
    let plan = Plan::new(call.shape(0), &pairs(call)?);
    let (dtype, shape, own) = (call.dtype(0), call.output_shape(0)?, own(call)?);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, shape, plan, own)))
}

fn mirror_pad_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number>(plan: Plan, own: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (source, out): (&[T], &mut [T]) = (io.input(0), io.output(0));
            let (row, inner) = (plan.row, plan.inner);
            let (to, from) = (row.size * inner, row.padded() * inner);
            out.fill(T::ZERO);
            if out.is_empty() {
                return Ok(());
            }
            for (n, source) in source.chunks_exact(from).enumerate() {
                let mirrored = |dim: Dim, n| Some(dim.mirrored(n, own));
                let number = plan.row(n, mirrored).unwrap_or(0);
                let out = &mut out[number * to..][..to];
                for (n, source) in source.chunks_exact(inner).enumerate() {
                    let out = &mut out[row.mirrored(n, own) * inner..][..inner];
                    out.iter_mut().zip(source).for_each(|(out, x)| *out = out.plus(*x));
                }
            }
            Ok(())
        })
    }
    let plan = Plan::new(&call.output_shape(0)?, &pairs(call)?);
    let own = own(call)?;
    Ok(with_number!(call.dtype(0), T => kernel::<T>(plan, own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_without_padding_are_merged() {
        let plan = Plan::new(&[2, 3, 4, 5], &[[0, 0], [0, 0], [1, 1], [0, 0]]);
        assert_eq!(plan.outer.as_slice(), [Dim { size: 6, before: 0, after: 0 }]);
        assert_eq!((plan.row, plan.inner), (Dim { size: 4, before: 1, after: 1 }, 5));
    }

    #[test]
    fn mirrors_repeat_the_edge_or_not() {
        let dim = Dim { size: 3, before: 2, after: 2 };
        let steps = |own| (0..7).map(|n| dim.mirrored(n, own)).collect::<Vec<_>>();
        assert_eq!(steps(1), [2, 1, 0, 1, 2, 1, 0]);
        assert_eq!(steps(0), [1, 0, 0, 1, 2, 2, 1]);
    }
}

//! Joining and filling: `ConcatV2`, `Pack`, `Fill`, `Empty`.

use super::{Build, cell::Cell, dispatch::with_cell, nontemporal::RunCopies};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Shape, infer::normalize_axis};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("ConcatV2", concat_v2), ("Empty", empty), ("Fill", fill), ("Pack", pack)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// Tensors that are joined: each returns `rows` runs of its own length.
struct Plan {
    dtype: DType,
    shape: Shape,
    /// The inputs with the length of a run in elements.
    parts: Vec<(usize, usize)>,
}

impl Plan {
    /// Joins the tensors at the positions `inputs` along an axis.
    fn new(call: &OpCall<'_>, inputs: std::ops::Range<usize>, axis: usize) -> Result<Plan> {
        let run =
            |index: usize| call.shape(index)[axis.min(call.shape(index).rank())..].iter().product();
        let parts = inputs.map(|index| (index, run(index))).collect();
        Ok(Plan { dtype: call.outputs[0].dtype, shape: call.output_shape(0)?, parts })
    }
}

/// A kernel that joins tensors.
fn join<T: Cell>(plan: Plan) -> Arc<dyn Kernel> {
    let row: usize = plan.parts.iter().map(|(_, run)| run).sum();
    Arc::new(move |io: &mut Io<'_>| {
        let sources: Vec<(&[T], usize)> = plan
            .parts
            .iter()
            .map(|&(input, run)| Ok((T::read(io, input)?, run)))
            .collect::<Result<_>>()?;
        let threads = io.threads();
        T::write(io, 0, plan.dtype, &plan.shape, |out| {
            let (rows_per_piece, n) = ((PIECE / row.max(1)).max(1), out.len());
            threads.for_each_piece(out, rows_per_piece * row, |start, out| {
                let (first, copies) = (start / row.max(1), RunCopies::to::<T>(n));
                for (index, out) in out.chunks_mut(row).enumerate() {
                    let mut rest = out;
                    for (source, run) in &sources {
                        let (own, later) = rest.split_at_mut(*run);
                        copies.copy(&source[(first + index) * run..][..*run], own);
                        rest = later;
                    }
                }
            });
            Ok(())
        })
    })
}

fn concat_v2(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let n = call.inputs.len() - 1;
    let axis = normalize_axis(call.ints(n)?[0], call.shape(0).rank())?;
    let plan = Plan::new(call, 0..n, axis)?;
    Ok(with_cell!(call.dtype(0), T => join::<T>(plan)))
}

fn pack(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let axis = normalize_axis(call.attrs.int("axis")?, call.shape(0).rank() + 1)?;
    let plan = Plan::new(call, 0..call.inputs.len(), axis)?;
    Ok(with_cell!(call.dtype(0), T => join::<T>(plan)))
}

fn fill(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    filled(call, Some(1))
}

fn empty(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    filled(call, None)
}

/// Every element is the only one of input `value`, or zero.
fn filled(call: &OpCall<'_>, value: Option<usize>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, shape: Shape, value: Option<usize>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let value = match value {
                Some(input) => T::read(io, input)?[0].clone(),
                None => T::blank(),
            };
            let threads = io.threads();
            T::write(io, 0, dtype, &shape, |out| {
                threads.for_each_piece(out, PIECE, |_, out| out.fill(value.clone()));
                Ok(())
            })
        })
    }
    let (dtype, shape) = (call.outputs[0].dtype, call.output_shape(0)?);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, shape, value)))
}

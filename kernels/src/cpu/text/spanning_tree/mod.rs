//! `MaxSpanningTree`: for each directed graph of a batch, the spanning tree of the highest score.

mod solve;

use super::failed;
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytemuck::Pod;
use ferroflow_ir::{Code, DType, Error, Shape, workspace};
use solve::{Score, Solver};
use std::sync::Arc;

const OP: &str = "MaxSpanningTree";

pub(crate) const KERNELS: &[(&str, Build)] = &[(OP, max_spanning_tree)];

fn max_spanning_tree(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let forest = call.attrs.bool("forest")?;
    let shape = call.shape(1).clone();
    let kernel: Arc<dyn Kernel> = match call.dtype(1) {
        DType::I32 => Arc::new(move |io: &mut Io<'_>| run::<i32>(io, &shape, forest)),
        DType::F32 => Arc::new(move |io: &mut Io<'_>| run::<f32>(io, &shape, forest)),
        DType::F64 => Arc::new(move |io: &mut Io<'_>| run::<f64>(io, &shape, forest)),
        _ => return Ok(None),
    };
    Ok(Some(kernel))
}

fn run<T: Score + Cell + Pod>(io: &mut Io<'_>, shape: &Shape, forest: bool) -> Result<()> {
    let (counts, scores): (&[i32], &[T]) = (io.input(0), io.input(1));
    let (batch, nodes) = (shape[0], shape[1]);
    let mut totals = workspace::reserve(batch)?;
    let mut sources = workspace::filled(-1, batch * nodes)?;
    for (number, &count) in counts.iter().enumerate() {
        let n = usize::try_from(count).ok().filter(|n| (1..=nodes.min(32766)).contains(n));
        let Some(n) = n else {
            let expected = format!("from 1 to {}", nodes.min(32766));
            return Err(Error::argument(OP, "num_nodes", expected, count).into());
        };
        io.check_size(DType::U8, &Shape::new([n + 1, 2 * n, Solver::<T>::ARC])?)?;
        let scores = &scores[number * nodes * nodes..][..nodes * nodes];
        let out = &mut sources[number * nodes..][..n];
        let score = |target: usize, source: usize| scores[target * nodes + source];
        if !Solver::new(n, forest, score).solve(out) {
            let detail = format!("graph {number} of the batch has no spanning tree");
            return Err(failed(OP, Code::FailedPrecondition, detail));
        }
        let chosen = out.iter().enumerate();
        let chosen = chosen.map(|(target, source)| score(target, *source as usize));
        totals.push(chosen.fold(T::ZERO, T::plus));
    }
    put(io, &totals, &Shape::new([batch])?)?;
    i32::write(io, 1, DType::I32, &Shape::new([batch, nodes])?, |out| {
        out.copy_from_slice(&sources);
        Ok(())
    })
}

fn put<T: Score + Cell + Copy>(io: &mut Io<'_>, totals: &[T], shape: &Shape) -> Result<()> {
    T::write(io, 0, T::DTYPE, shape, |out| {
        out.copy_from_slice(totals);
        Ok(())
    })
}

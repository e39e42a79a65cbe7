//! Distributions with parameters: the result ends with the shape to which they broadcast.

use super::{PIECE, generator};
use crate::{
    cpu::dispatch::with_real,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    philox::Philox,
    plan::{
        broadcast::{InputAccess, access},
        strided,
    },
};
use bytemuck::Pod;
use ferroflow_ir::{DType, Shape};
use num_traits::AsPrimitive;
use smallvec::SmallVec;
use std::sync::Arc;

/// The parameters of a call, an element of each for every batch.
pub(super) struct BatchParameters {
    first: usize,
    accesses: Vec<InputAccess>,
    n_batches: usize,
}

impl BatchParameters {
    /// The inputs of a call from `first` on.
    pub(super) fn new(call: &OpCall<'_>, first: usize) -> Result<BatchParameters> {
        let shapes = || call.inputs[first..].iter().map(|input| &input.shape);
        let batches = shapes().try_fold(Shape::scalar(), |all, shape| all.broadcast(shape))?;
        let accesses = shapes().map(|shape| access(shape, &batches)).collect();
        Ok(BatchParameters { first, accesses, n_batches: batches.num_elements() })
    }

    pub(super) fn n_batches(&self) -> usize {
        self.n_batches
    }

    /// Parameter `index`, element by element for each batch.
    pub(super) fn read<T: Pod>(&self, io: &Io<'_>, index: usize) -> Vec<T> {
        let source = io.input::<T>(self.first + index);
        match &self.accesses[index] {
            InputAccess::Contiguous => source.to_vec(),
            InputAccess::Scalar => vec![source[0]; self.n_batches],
            InputAccess::Strided(view) => {
                let mut all = vec![T::zeroed(); self.n_batches];
                strided::read(view, source, 0, &mut all);
                all
            }
        }
    }

    /// Parameter `index`, of this dtype, as `f64`.
    fn read_f64(&self, io: &Io<'_>, index: usize, dtype: DType) -> Vec<f64> {
        with_real!(dtype, T => self.read::<T>(io, index).into_iter().map(AsPrimitive::as_).collect())
            .unwrap_or_default()
    }
}

/// A kernel that makes each number by `draw` from a place in the sequence and the parameters of
/// its batch; the places are `blocks` apart.
pub(super) fn each_number(
    call: &OpCall<'_>,
    blocks: u64,
    draw: impl Fn(Philox, &[f64]) -> f64 + Send + Sync + 'static,
) -> Result<Option<Arc<dyn Kernel>>> {
    each_number_of(call, move |generator, number, parameters| {
        let place = generator.skipped(u128::from(blocks) * u128::from(number));
        draw(place, parameters)
    })
}

/// A kernel that makes each number by `draw` from the start of the sequence, the number's place in
/// the order of batches, and the parameters of its batch. Parameters are the inputs from 4 on.
pub(super) fn each_number_of(
    call: &OpCall<'_>,
    draw: impl Fn(Philox, u64, &[f64]) -> f64 + Send + Sync + 'static,
) -> Result<Option<Arc<dyn Kernel>>> {
    const FIRST: usize = 4;
    let (op, parameters) = (call.op.name, BatchParameters::new(call, FIRST)?);
    let dtypes: Vec<DType> = call.inputs[FIRST..].iter().map(|input| input.dtype).collect();
    let run = move |io: &mut Io<'_>| -> Result<(Philox, Vec<Vec<f64>>)> {
        let read = |(index, &dtype)| parameters.read_f64(io, index, dtype);
        Ok((generator(io, op, 1)?, dtypes.iter().enumerate().map(read).collect()))
    };
    Ok(with_real!(call.outputs[0].dtype, T => filling::<T>(run, draw)))
}

/// Fills a result, in which the batches are the innermost dimension.
fn filling<T>(
    read: impl Fn(&mut Io<'_>) -> Result<(Philox, Vec<Vec<f64>>)> + Send + Sync + 'static,
    draw: impl Fn(Philox, u64, &[f64]) -> f64 + Send + Sync + 'static,
) -> Arc<dyn Kernel>
where
    T: Number,
    f64: AsPrimitive<T>,
{
    Arc::new(move |io: &mut Io<'_>| {
        let (generator, parameters) = read(io)?;
        let out = io.output::<T>(0);
        let n_batches = parameters[0].len().max(1);
        let n_samples = out.len() / n_batches;
        io.threads().for_each_piece(out, PIECE, |start, out| {
            for (position, out) in (start..).zip(out) {
                let (sample, batch) = (position / n_batches, position % n_batches);
                let of_batch: SmallVec<[f64; 2]> =
                    parameters.iter().map(|all| all[batch]).collect();
                let number = (batch * n_samples + sample) as u64;
                *out = draw(generator, number, &of_batch).as_();
            }
        });
        Ok(())
    })
}

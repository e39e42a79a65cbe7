//! Classes by the probabilities of logits: `_StatelessMultinomialV2`.

use super::generator;
use crate::{
    cpu::dispatch::{with_index, with_real},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    philox::Words,
};
use ferroflow_ir::workspace;
use num_traits::AsPrimitive;
use std::sync::Arc;

pub(super) fn multinomial(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn drawing<T, O>(op: &'static str, n_classes: usize) -> Arc<dyn Kernel>
    where
        T: Number + AsPrimitive<f64>,
        O: Number,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let mut words = Words::new(generator(io, op, 2)?);
            let logits = io.input::<T>(0);
            let out = io.output::<O>(0);
            let n_rows = logits.len() / n_classes.max(1);
            let n_samples = out.len() / n_rows.max(1);
            let mut sums = workspace::filled(0.0, n_classes)?;
            let rows = logits.chunks(n_classes.max(1)).zip(out.chunks_mut(n_samples.max(1)));
            for (logits, out) in rows {
                let total = running_sums(logits, &mut sums);
                for out in out {
                    let target = words.next_f64() * total;
                    *out = O::count(sums.partition_point(|&sum| sum <= target));
                }
            }
            Ok(())
        })
    }
    let (op, n_classes) = (call.op.name, call.shape(0)[1]);
    let kernel = with_index!(call.outputs[0].dtype, O => {
        with_real!(call.dtype(0), T => drawing::<T, O>(op, n_classes))
    });
    Ok(kernel.flatten())
}

/// The running sums of the exponentials of finite logits, less the largest; returns the last.
fn running_sums<T: AsPrimitive<f64>>(logits: &[T], sums: &mut [f64]) -> f64 {
    let finite = || logits.iter().map(|logit| logit.as_()).filter(|logit: &f64| logit.is_finite());
    let largest = finite().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for (sum, logit) in sums.iter_mut().zip(logits) {
        let logit: f64 = logit.as_();
        if logit.is_finite() {
            total += (logit - largest).exp();
        }
        *sum = total;
    }
    total
}

//! Long short-term memory: `LSTMBlockCell`, `BlockLSTM`, `BlockLSTMV2`.
//!
//! The formulas are those of `tensorflow/core/kernels/rnn/lstm_ops.h`. Sums are kept in `f32`, also
//! for `f16`. The inputs of all steps are multiplied by their weights at once, the outputs of each
//! step when they are known.

use super::{
    Build,
    exp::Exp,
    gemm::{GemmOutput, GemmSizes, Matrix, gemm},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    scratch::Scratch,
    wide::WideElement,
};
use ferroflow_ir::{DType, Error};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("BlockLSTM", |call| block_lstm(call, INPUT_FIRST)),
    ("BlockLSTMV2", |call| block_lstm(call, FORGET_FIRST)),
    ("LSTMBlockCell", |call| build(call, 0, 1, INPUT_FIRST)),
];

/// Where the columns of a gate are: of the input gate, the new state, the forget gate, the output
/// gate.
type Order = [usize; 4];

const INPUT_FIRST: Order = [0, 1, 2, 3];

const FORGET_FIRST: Order = [0, 2, 1, 3];

#[derive(Debug, Clone, Copy)]
struct Plan {
    op: &'static str,
    /// The input that holds `x`; the others come after it.
    first: usize,
    steps: usize,
    batch: usize,
    inputs: usize,
    cells: usize,
    order: Order,
    forget_bias: f32,
    /// The largest magnitude of a state.
    clip: f32,
    peephole: bool,
}

fn block_lstm(call: &OpCall<'_>, order: Order) -> Result<Option<Arc<dyn Kernel>>> {
    build(call, 1, call.shape(1)[0], order)
}

fn build(
    call: &OpCall<'_>,
    first: usize,
    steps: usize,
    order: Order,
) -> Result<Option<Arc<dyn Kernel>>> {
    let (x, state) = (call.shape(first), call.shape(first + 1));
    let clip = call.attrs.float("cell_clip")?;
    let plan = Plan {
        op: call.op.name,
        first,
        steps,
        batch: state[0],
        inputs: x[x.rank() - 1],
        cells: state[1],
        order,
        forget_bias: match call.attrs.get("forget_bias") {
            Some(_) => call.attrs.float("forget_bias")?,
            None => 0.0,
        },
        clip: if clip > 0.0 { clip } else { f32::INFINITY },
        peephole: call.attrs.bool("use_peephole")?,
    };
    Ok(match call.dtype(first) {
        DType::F16 => Some(kernel::<half::f16>(plan)),
        DType::F32 => Some(kernel::<f32>(plan)),
        _ => None,
    })
}

fn kernel<T: WideElement<Acc = f32>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let last = plan.last_step(io)?;
        let at = |index: usize| T::widen(io.input::<T>(plan.first + index));
        let (x, w, b) = (at(0), at(3), at(7));
        let (mut state, mut output) = (at(1).into_owned(), at(2).into_owned());
        let peepholes = [at(4), at(5), at(6)];
        let peepholes = plan.peephole.then(|| peepholes.each_ref().map(|weights| &weights[..]));
        let gates = 4 * plan.cells;
        let mut sums = Scratch::<f32>::new(last * plan.batch * gates)?;
        sums.chunks_mut(gates.max(1)).for_each(|sums| sums.copy_from_slice(&b));
        let (of_inputs, of_outputs) = w.split_at(plan.inputs * gates);
        let sizes = GemmSizes { m: last * plan.batch, k: plan.inputs, n: gates };
        let (a, weights) = (Matrix::row_major(&x, sizes.k), Matrix::row_major(of_inputs, gates));
        let gate_sums = GemmOutput { data: &mut sums, row_stride: gates, accumulate: true };
        gemm(io.threads(), sizes, a, weights, gate_sums);

        let results: [&mut [T]; 7] = std::array::from_fn(|index| io.output(index));
        let mut results = results.map(|result| result.chunks_mut((plan.step_len()).max(1)));
        for step in 0..plan.steps {
            let results = results.each_mut().map(|chunks| chunks.next().unwrap_or_default());
            if step >= last {
                // TensorFlow leaves gates of steps that do not run unset.
                results.into_iter().for_each(|result| result.fill(T::zeroed()));
                continue;
            }
            let sums = &mut sums[step * plan.batch * gates..][..plan.batch * gates];
            let sizes = GemmSizes { m: plan.batch, k: plan.cells, n: gates };
            let (h, weights) =
                (Matrix::row_major(&output, sizes.k), Matrix::row_major(of_outputs, gates));
            let gate_sums = GemmOutput { data: sums, row_stride: gates, accumulate: true };
            gemm(io.threads(), sizes, h, weights, gate_sums);
            plan.step(sums, peepholes, &mut state, &mut output, results);
        }
        Ok(())
    })
}

/// Values of a cell in a step.
struct Values {
    input: f32,
    state: f32,
    forget: f32,
    output: f32,
    candidate: f32,
    squashed: f32,
}

impl Plan {
    fn step_len(&self) -> usize {
        self.batch * self.cells
    }

    /// The number of steps that run.
    fn last_step(&self, io: &Io<'_>) -> Result<usize> {
        if self.first == 0 {
            return Ok(self.steps);
        }
        let last: i64 = io.scalar(0);
        match usize::try_from(last) {
            Ok(last) if last <= self.steps => Ok(last),
            _ => {
                let expected = format!("between 0 and {}", self.steps);
                Err(Error::argument(self.op, "seq_len_max", expected, last).into())
            }
        }
    }

    /// Runs all cells once. `state` and `output` are those of the step before, and then of this.
    fn step<T: WideElement<Acc = f32>>(
        &self,
        sums: &[f32],
        peepholes: Option<[&[f32]; 3]>,
        state: &mut [f32],
        output: &mut [f32],
        results: [&mut [T]; 7],
    ) {
        let [i, cs, f, o, ci, co, h] = results;
        for (index, (state, output)) in state.iter_mut().zip(output).enumerate() {
            let (row, cell) = (index / self.cells, index % self.cells);
            let sums = self.order.map(|gate| sums[(row * 4 + gate) * self.cells + cell]);
            let values = self.cell(sums, peepholes.map(|all| all.map(|w| w[cell])), *state);
            (*state, *output) = (values.state, values.output * values.squashed);
            i[index] = T::from_acc(values.input);
            cs[index] = T::from_acc(values.state);
            f[index] = T::from_acc(values.forget);
            o[index] = T::from_acc(values.output);
            ci[index] = T::from_acc(values.candidate);
            co[index] = T::from_acc(values.squashed);
            h[index] = T::from_acc(*output);
        }
    }

    fn cell(&self, sums: [f32; 4], peepholes: Option<[f32; 3]>, before: f32) -> Values {
        // Without peepholes states do not count at all: those that are not numbers would otherwise.
        let peephole = |state: f32, gate: usize| peepholes.map_or(0.0, |w| state * w[gate]);
        let input = sigmoid(sums[0] + peephole(before, 0));
        let candidate = sums[1].tanh();
        let forget = sigmoid(sums[2] + self.forget_bias + peephole(before, 1));
        // What is not a number stays that.
        let state = (candidate * input + before * forget).clamp(-self.clip, self.clip);
        let output = sigmoid(sums[3] + peephole(state, 2));
        Values { input, state, forget, output, candidate, squashed: state.tanh() }
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + Exp::exp(-x))
}

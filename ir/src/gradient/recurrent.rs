//! Gradients of long short-term memory over sequences.
//!
//! As in TensorFlow (`tensorflow/core/kernels/rnn/lstm_ops.h`) states and outputs of the cell have
//! gradients, the gates do not, and where the state is clipped its gradient goes on unchanged.

use super::{Backprop, Grads};
use crate::{
    attr::Attrs,
    emit::{Composite, Value, calls_with},
};

/// The indices of the gates, and of the new input, among the columns of the weights.
#[derive(Clone, Copy)]
struct Order {
    input: i64,
    new: i64,
    forget: i64,
    output: i64,
}

/// The order of `BlockLSTM`.
const FIRST: Order = Order { input: 0, new: 1, forget: 2, output: 3 };

/// The order of `BlockLSTMV2`.
const SECOND: Order = Order { input: 0, forget: 1, new: 2, output: 3 };

/// A run of a cell over a sequence: `x` are the inputs of `BlockLSTM`.
#[derive(Clone, Copy)]
struct Run<'a, 'e> {
    x: &'a [Value<'e>],
    states: Value<'e>,
    outputs: Value<'e>,
    by_states: Value<'e>,
    by_outputs: Value<'e>,
    peepholes: bool,
    order: Order,
}

/// The values of the gates at all steps.
struct Gates<'e> {
    input: Value<'e>,
    forget: Value<'e>,
    output: Value<'e>,
    new: Value<'e>,
}

/// The sizes of a run.
#[derive(Clone, Copy)]
struct Extents {
    steps: i64,
    batch: i64,
    inputs: i64,
    cells: i64,
}

pub(crate) fn block_lstm<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let bias = b.float("forget_bias");
    sequence(b, FIRST, bias)
}

pub(crate) fn block_lstm_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    sequence(b, SECOND, 0.0)
}

/// `BlockLSTMGrad` as a formula: the gates are inputs.
pub(crate) fn block_lstm_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    run_back(c, FIRST)
}

/// `BlockLSTMGradV2` as a formula: the gates are inputs.
pub(crate) fn block_lstm_grad_v2<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    run_back(c, SECOND)
}

fn run_back<'e>(c: &Composite<'e>, order: Order) -> Vec<Value<'e>> {
    let run = Run {
        x: c.inputs(),
        states: c.x(10),
        outputs: c.x(15),
        by_states: c.x(16),
        by_outputs: c.x(17),
        peepholes: c.flag("use_peephole"),
        order,
    };
    let gates = Gates { input: c.x(9), forget: c.x(11), output: c.x(12), new: c.x(13) };
    match run.extents() {
        Some(extents) if extents.steps > 0 => run.back(extents, &gates),
        _ => c.inputs()[1..9].iter().map(|x| x.zeros_like()).collect(),
    }
}

/// The gates are computed once more, so that gradients go through what they are made of.
fn sequence<'e>(b: &Backprop<'e>, order: Order, forget_bias: f64) -> Grads<'e> {
    let run = Run {
        x: b.xs(),
        states: b.y(1),
        outputs: b.y(6),
        by_states: b.dy(1),
        by_outputs: b.dy(6),
        peepholes: b.flag("use_peephole"),
        order,
    };
    let Some(extents) = run.extents() else {
        return b.postponed("its gradient needs a known shape");
    };
    if extents.steps == 0 {
        return b.xs().iter().map(|x| Some(x.zeros_like().into())).collect();
    }
    let found = run.back(extents, &run.gates(extents, forget_bias));
    std::iter::once(None).chain(found.into_iter().map(|x| Some(x.into()))).collect()
}

impl<'e> Run<'_, 'e> {
    fn extents(&self) -> Option<Extents> {
        let [steps, batch, inputs] = sizes(self.x[1])?;
        let [_, columns] = sizes(self.x[4])?;
        Some(Extents { steps, batch, inputs, cells: columns / 4 })
    }

    /// The state before each step: the first, and all but the last.
    fn before(&self, extents: Extents, first: Value<'e>, all: Value<'e>) -> Value<'e> {
        let rest = all.slice(&[0, 0, 0], &[extents.steps - 1, -1, -1]);
        Value::concat(&[first.reshape(&[1, extents.batch, extents.cells]), rest], 0)
    }

    fn old_states(&self, extents: Extents) -> Value<'e> {
        self.before(extents, self.x[2], self.states)
    }

    /// The inputs and the outputs of the step before, a row for each step and sequence.
    fn rows(&self, extents: Extents) -> Value<'e> {
        let Extents { steps, batch, inputs, cells } = extents;
        let seen = [self.x[1], self.before(extents, self.x[3], self.outputs)];
        Value::concat(&seen, 2).reshape(&[steps * batch, inputs + cells])
    }

    /// With a peephole of this number, `sum` and what it sees.
    fn looking(&self, sum: Value<'e>, index: usize, at: Value<'e>) -> Value<'e> {
        if self.peepholes { sum + at * self.x[5 + index] } else { sum }
    }

    fn gates(&self, extents: Extents, forget_bias: f64) -> Gates<'e> {
        let Extents { steps, batch, cells, .. } = extents;
        let sums = self.rows(extents).matmul(self.x[4], false, false) + self.x[8];
        let sums = sums.reshape(&[steps, batch, 4 * cells]);
        let gate = |place: i64| sums.slice(&[0, 0, place * cells], &[-1, -1, cells]);
        let (order, old) = (self.order, self.old_states(extents));
        Gates {
            input: self.looking(gate(order.input), 0, old).sigmoid(),
            forget: self.looking(gate(order.forget) + forget_bias, 1, old).sigmoid(),
            output: self.looking(gate(order.output), 2, self.states).sigmoid(),
            new: gate(order.new).tanh(),
        }
    }

    /// The gradients of the inputs but the first. What each step hands to the one before it is
    /// found step by step; all else at once.
    fn back(&self, extents: Extents, gates: &Gates<'e>) -> Vec<Value<'e>> {
        let Extents { steps, batch, inputs, cells } = extents;
        let (x, w, order) = (self.x[1], self.x[4], self.order);
        let old_states = self.old_states(extents);
        let (by_gates, by_state, by_hidden) = self.steps_back(extents, gates, old_states);
        let rows = self.rows(extents);
        let flat = by_gates.reshape(&[steps * batch, 4 * cells]);
        let by_x = flat.matmul(w.slice(&[0, 0], &[inputs, -1]), false, true).reshape_like(x);
        let at = |place: i64| by_gates.slice(&[0, 0, place * cells], &[-1, -1, cells]);
        let by_peephole = |index: usize, place: i64, seen: Value<'e>| match self.peepholes {
            true => (at(place) * seen).sum(&[0, 1], false),
            false => self.x[5 + index].zeros_like(),
        };
        vec![
            by_x,
            by_state,
            by_hidden,
            rows.matmul(flat, true, false),
            by_peephole(0, order.input, old_states),
            by_peephole(1, order.forget, old_states),
            by_peephole(2, order.output, self.states),
            flat.sum(&[0], false),
        ]
    }

    /// The gradients of the sums in the gates at all steps, and of the first state and output.
    fn steps_back(
        &self,
        extents: Extents,
        gates: &Gates<'e>,
        old_states: Value<'e>,
    ) -> (Value<'e>, Value<'e>, Value<'e>) {
        let Extents { steps, inputs, .. } = extents;
        let (order, one) = (self.order, 1.0);
        let squashed = self.states.tanh();
        let slope = |gate: Value<'e>| gate * (one - gate);
        let numbers = super::shapes::range(squashed.literal(steps));
        let is_real = numbers.less(self.x[0]).cast(squashed.dtype()).reshape(&[steps, 1, 1]);
        let per_step = |value: Value<'e>| {
            let attrs = Attrs::new().with("axis", 0i64).with("num", steps);
            calls_with("Unpack", attrs, &[value]).values().to_vec()
        };
        let by_output = per_step(squashed * slope(gates.output));
        let by_squashed = per_step(gates.output * (one - squashed.square()));
        let by_input = per_step(gates.new * slope(gates.input));
        let by_new = per_step(gates.input * (one - gates.new.square()));
        let by_forget = per_step(old_states * slope(gates.forget));
        let (forget, is_real) = (per_step(gates.forget), per_step(is_real));
        let (dstates, doutputs) = (per_step(self.by_states), per_step(self.by_outputs));
        let recurrent = self.x[4].slice(&[inputs, 0], &[-1, -1]);
        let mut found: Vec<Value<'e>> = Vec::new();
        let mut later: Option<(Value<'e>, Value<'e>)> = None;
        for step in (0..steps as usize).rev() {
            let (mut ds, mut dh) = (dstates[step], doutputs[step]);
            if let Some((state, output)) = later {
                (ds, dh) = (ds + state, dh + output);
            }
            let doutput = dh * by_output[step];
            ds = self.looking(ds + dh * by_squashed[step], 2, doutput);
            let (dinput, dforget) = (ds * by_input[step], ds * by_forget[step]);
            let mut parts = [(order.input, dinput), (order.forget, dforget)].to_vec();
            parts.extend([(order.new, ds * by_new[step]), (order.output, doutput)]);
            parts.sort_by_key(|(place, _)| *place);
            let parts: Vec<Value<'e>> = parts.into_iter().map(|(_, part)| part).collect();
            let sums = Value::concat(&parts, 1) * is_real[step];
            let state = self.looking(self.looking(ds * forget[step], 0, dinput), 1, dforget);
            later = Some((state * is_real[step], sums.matmul(recurrent, false, true)));
            found.push(sums);
        }
        found.reverse();
        let all = calls_with("Pack", Attrs::new().with("axis", 0i64), &found).at(0);
        let (by_state, by_hidden) = later.unwrap_or((self.x[2], self.x[3]));
        (all, by_state, by_hidden)
    }
}

fn sizes<const N: usize>(x: Value<'_>) -> Option<[i64; N]> {
    x.dims()?.try_into().ok()
}

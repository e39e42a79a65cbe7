//! Gradients of long short-term memory over sequences.
//!
//! As in TensorFlow (`tensorflow/core/kernels/rnn/lstm_ops.h`) states and outputs of the cell have
//! gradients, the gates do not, and where the state is clipped its gradient goes on unchanged.

use super::{Backprop, Grads};
use crate::{
    attr::Attrs,
    emit::{Value, calls_with},
};

/// The places of the gates, and of the new input, among the columns of the weights.
#[derive(Clone, Copy)]
struct Order {
    input: i64,
    new: i64,
    forget: i64,
    output: i64,
}

pub(crate) fn block_lstm<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let bias = b.float("forget_bias");
    sequence(b, Order { input: 0, new: 1, forget: 2, output: 3 }, bias)
}

pub(crate) fn block_lstm_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    sequence(b, Order { input: 0, forget: 1, new: 2, output: 3 }, 0.0)
}

/// What each step hands to the one before it is found step by step; all else at once.
fn sequence<'e>(b: &Backprop<'e>, order: Order, forget_bias: f64) -> Grads<'e> {
    let (x, w) = (b.x(1), b.x(4));
    let (Some([steps, batch, inputs]), Some([_, columns])) = (sizes(x), sizes(w)) else {
        return b.postponed("its gradient needs a known shape");
    };
    if steps == 0 {
        return b.xs().iter().map(|x| Some(x.zeros_like().into())).collect();
    }
    let cells = columns / 4;
    let (peepholes, peephole) = (b.flag("use_peephole"), |index: usize| b.x(5 + index));
    let (states, outputs) = (b.y(1), b.y(6));
    let before = |first: Value<'e>, all: Value<'e>| {
        let rest = all.slice(&[0, 0, 0], &[steps - 1, -1, -1]);
        Value::concat(&[first.reshape(&[1, batch, cells]), rest], 0)
    };
    let old_states = before(b.x(2), states);
    let seen = Value::concat(&[x, before(b.x(3), outputs)], 2);
    let rows = seen.reshape(&[steps * batch, inputs + cells]);
    let sums = (rows.matmul(w, false, false) + b.x(8)).reshape(&[steps, batch, columns]);
    let gate = |place: i64| sums.slice(&[0, 0, place * cells], &[-1, -1, cells]);
    let looking = |sum: Value<'e>, index: usize, at: Value<'e>| match peepholes {
        true => sum + at * peephole(index),
        false => sum,
    };
    let input = looking(gate(order.input), 0, old_states).sigmoid();
    let forget = looking(gate(order.forget) + forget_bias, 1, old_states).sigmoid();
    let output = looking(gate(order.output), 2, states).sigmoid();
    let new = gate(order.new).tanh();
    let squashed = states.tanh();
    let slope = |gate: Value<'e>| gate * (1.0 - gate);
    let numbers = super::shapes::range(x.literal(steps));
    let is_real = numbers.less(b.x(0)).cast(x.dtype()).reshape(&[steps, 1, 1]);
    let per_step = |value: Value<'e>| {
        let attrs = Attrs::new().with("axis", 0i64).with("num", steps);
        calls_with("Unpack", attrs, &[value]).values().to_vec()
    };
    let by_output = per_step(squashed * slope(output));
    let by_squashed = per_step(output * (1.0 - squashed.square()));
    let by_input = per_step(new * slope(input));
    let by_new = per_step(input * (1.0 - new.square()));
    let by_forget = per_step(old_states * slope(forget));
    let (forget, is_real) = (per_step(forget), per_step(is_real));
    let (dstates, doutputs) = (per_step(b.dy(1)), per_step(b.dy(6)));
    let recurrent = w.slice(&[inputs, 0], &[-1, -1]);
    let mut found: Vec<Value<'e>> = Vec::new();
    let mut carried: Option<(Value<'e>, Value<'e>)> = None;
    for step in (0..steps as usize).rev() {
        let (mut ds, mut dh) = (dstates[step], doutputs[step]);
        if let Some((state, output)) = carried {
            (ds, dh) = (ds + state, dh + output);
        }
        let doutput = dh * by_output[step];
        ds = ds + dh * by_squashed[step];
        ds = looking(ds, 2, doutput);
        let (dinput, dforget) = (ds * by_input[step], ds * by_forget[step]);
        let mut gates = [(order.input, dinput), (order.forget, dforget)].to_vec();
        gates.extend([(order.new, ds * by_new[step]), (order.output, doutput)]);
        gates.sort_by_key(|(place, _)| *place);
        let gates: Vec<Value<'e>> = gates.into_iter().map(|(_, gate)| gate).collect();
        let gates = Value::concat(&gates, 1) * is_real[step];
        let state = looking(looking(ds * forget[step], 0, dinput), 1, dforget) * is_real[step];
        carried = Some((state, gates.matmul(recurrent, false, true)));
        found.push(gates);
    }
    found.reverse();
    let gates = calls_with("Pack", Attrs::new().with("axis", 0i64), &found).at(0);
    let flat = gates.reshape(&[steps * batch, columns]);
    let by_x = flat.matmul(w.slice(&[0, 0], &[inputs, -1]), false, true).reshape_like(x);
    let (by_state, by_hidden) = carried.unwrap_or((b.x(2), b.x(3)));
    let at = |place: i64| gates.slice(&[0, 0, place * cells], &[-1, -1, cells]);
    let by_peephole = |index: usize, place: i64, seen: Value<'e>| match peepholes {
        true => (at(place) * seen).sum(&[0, 1], false),
        false => peephole(index).zeros_like(),
    };
    vec![
        None,
        Some(by_x.into()),
        Some(by_state.into()),
        Some(by_hidden.into()),
        Some(rows.matmul(flat, true, false).into()),
        Some(by_peephole(0, order.input, old_states).into()),
        Some(by_peephole(1, order.forget, old_states).into()),
        Some(by_peephole(2, order.output, states).into()),
        Some(flat.sum(&[0], false).into()),
    ]
}

fn sizes<const N: usize>(x: Value<'_>) -> Option<[i64; N]> {
    x.dims()?.try_into().ok()
}

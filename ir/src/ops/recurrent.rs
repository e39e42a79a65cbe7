//! Long short-term memory and gated recurrent units in one op.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    emit::{Composite, Value},
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
};

/// A cell that runs once; ops over sequences build on it.
const CELL: OpDef = OpDef {
    inputs: &[
        arg("x", "T"),
        arg("cs_prev", "T"),
        arg("h_prev", "T"),
        arg("w", "T"),
        arg("wci", "T"),
        arg("wcf", "T"),
        arg("wco", "T"),
        arg("b", "T"),
    ],
    outputs: &[
        arg("i", "T"),
        arg("cs", "T"),
        arg("f", "T"),
        arg("o", "T"),
        arg("ci", "T"),
        arg("co", "T"),
        arg("h", "T"),
    ],
    attrs: &[
        float_or("forget_bias", 1.0),
        float_or("cell_clip", 3.0),
        flag("use_peephole", false),
        ty("T", F16_F32),
    ],
    infer: |context| {
        let [batch, inputs] = context.dims::<2>(0)?;
        let cells = cells(context, 1, batch, inputs)?;
        context.set_all(&PartialShape::ranked([batch, cells]));
        Ok(())
    },
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
};

const SEQUENCE: OpDef = OpDef {
    inputs: &[
        arg_of("seq_len_max", DType::I64),
        arg("x", "T"),
        arg("cs_prev", "T"),
        arg("h_prev", "T"),
        arg("w", "T"),
        arg("wci", "T"),
        arg("wcf", "T"),
        arg("wco", "T"),
        arg("b", "T"),
    ],
    infer: |context| {
        context.check_rank(0, 0)?;
        let [steps, batch, inputs] = context.dims::<3>(1)?;
        let cells = cells(context, 2, batch, inputs)?;
        context.set_all(&PartialShape::ranked([steps, batch, cells]));
        Ok(())
    },
    ..CELL
};

/// The gradient of a run over a sequence, from what the run returned.
const SEQUENCE_GRAD: OpDef = OpDef {
    inputs: &[
        SEQUENCE.inputs[0],
        SEQUENCE.inputs[1],
        SEQUENCE.inputs[2],
        SEQUENCE.inputs[3],
        SEQUENCE.inputs[4],
        SEQUENCE.inputs[5],
        SEQUENCE.inputs[6],
        SEQUENCE.inputs[7],
        SEQUENCE.inputs[8],
        CELL.outputs[0],
        CELL.outputs[1],
        CELL.outputs[2],
        CELL.outputs[3],
        CELL.outputs[4],
        CELL.outputs[5],
        CELL.outputs[6],
        arg("cs_grad", "T"),
        arg("h_grad", "T"),
    ],
    outputs: &[
        arg("x_grad", "T"),
        arg("cs_prev_grad", "T"),
        arg("h_prev_grad", "T"),
        arg("w_grad", "T"),
        arg("wci_grad", "T"),
        arg("wcf_grad", "T"),
        arg("wco_grad", "T"),
        arg("b_grad", "T"),
    ],
    attrs: &[required_flag("use_peephole"), ty("T", F16_F32)],
    infer: |context| {
        context.check_rank(0, 0)?;
        let [steps, batch, inputs] = context.dims::<3>(1)?;
        let cells = cells(context, 2, batch, inputs)?;
        for index in 9..18 {
            let [own_steps, own_batch, own_cells] = context.dims::<3>(index)?;
            context.same("the steps", steps, own_steps)?;
            context.same("the batch", batch, own_batch)?;
            context.same("the cells", cells, own_cells)?;
        }
        for index in 0..8 {
            context.set(index, context.shape(index + 1).clone());
        }
        Ok(())
    },
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BlockLSTM",
        summary: "Runs a cell of long short-term memory over a sequence.",
        gradient: Gradient::Rule(gradient::recurrent::block_lstm),
        ..SEQUENCE
    },
    OpDef {
        name: "BlockLSTMGrad",
        summary: "Gradient of `BlockLSTM`.",
        lowering: Lowering::Composite(gradient::recurrent::block_lstm_grad),
        ..SEQUENCE_GRAD
    },
    OpDef {
        name: "BlockLSTMGradV2",
        summary: "Gradient of `BlockLSTMV2`.",
        lowering: Lowering::Composite(gradient::recurrent::block_lstm_grad_v2),
        ..SEQUENCE_GRAD
    },
    OpDef {
        name: "BlockLSTMV2",
        summary: "As `BlockLSTM`, with the gates in another order and no bias of its own.",
        attrs: &[float_or("cell_clip", 0.0), flag("use_peephole", false), ty("T", F16_F32)],
        gradient: Gradient::Rule(gradient::recurrent::block_lstm_v2),
        ..SEQUENCE
    },
    OpDef {
        name: "GRUBlockCell",
        summary: "Runs a gated recurrent unit for one step.",
        inputs: GRU,
        outputs: &[arg("r", "T"), arg("u", "T"), arg("c", "T"), arg("h", "T")],
        attrs: &[ty("T", &[DType::F32])],
        infer: |context| {
            let [batch, cells, _] = gru_sizes(context)?;
            context.set_all(&PartialShape::ranked([batch, cells]));
            Ok(())
        },
        lowering: Lowering::Composite(gru),
        ..OpDef::PURE
    },
    OpDef {
        name: "GRUBlockCellGrad",
        summary: "Gradient of `GRUBlockCell`.",
        inputs: &[
            GRU[0],
            GRU[1],
            GRU[2],
            GRU[3],
            GRU[4],
            GRU[5],
            arg("r", "T"),
            arg("u", "T"),
            arg("c", "T"),
            arg("d_h", "T"),
        ],
        outputs: &[
            arg("d_x", "T"),
            arg("d_h_prev", "T"),
            arg("d_c_bar", "T"),
            arg("d_r_bar_u_bar", "T"),
        ],
        attrs: &[ty("T", &[DType::F32])],
        infer: |context| {
            let [batch, cells, inputs] = gru_sizes(context)?;
            for index in 6..10 {
                let [own, same] = context.dims::<2>(index)?;
                context.same("the batch", batch, own)?;
                context.same("the cells", cells, same)?;
            }
            context.set(0, PartialShape::ranked([batch, inputs]));
            context.set(1, PartialShape::ranked([batch, cells]));
            context.set(2, PartialShape::ranked([batch, cells]));
            let gates = cells.and_then(|cells| cells.checked_mul(2));
            context.set(3, PartialShape::ranked([batch, gates]));
            Ok(())
        },
        lowering: Lowering::Composite(gru_grad),
        ..OpDef::PURE
    },
    OpDef {
        name: "LSTMBlockCell",
        summary: "Runs a cell of long short-term memory for one step.",
        ..CELL
    },
    OpDef {
        name: "LSTMBlockCellGrad",
        summary: "Gradient of `LSTMBlockCell`.",
        inputs: &[
            CELL.inputs[0],
            CELL.inputs[1],
            CELL.inputs[2],
            CELL.inputs[3],
            CELL.inputs[4],
            CELL.inputs[5],
            CELL.inputs[6],
            CELL.inputs[7],
            CELL.outputs[0],
            CELL.outputs[1],
            CELL.outputs[2],
            CELL.outputs[3],
            CELL.outputs[4],
            CELL.outputs[5],
            arg("cs_grad", "T"),
            arg("h_grad", "T"),
        ],
        outputs: &[
            arg("cs_prev_grad", "T"),
            arg("dicfo", "T"),
            arg("wci_grad", "T"),
            arg("wcf_grad", "T"),
            arg("wco_grad", "T"),
        ],
        attrs: &[required_flag("use_peephole"), ty("T", F16_F32)],
        infer: |context| {
            let [batch, inputs] = context.dims::<2>(0)?;
            let cells = cells(context, 1, batch, inputs)?;
            for index in 8..16 {
                let [own, same] = context.dims::<2>(index)?;
                context.same("the batch", batch, own)?;
                context.same("the cells", cells, same)?;
            }
            context.set(0, PartialShape::ranked([batch, cells]));
            let four = cells.and_then(|cells| cells.checked_mul(4));
            context.set(1, PartialShape::ranked([batch, four]));
            (2..5).for_each(|index| context.set(index, context.shape(index + 2).clone()));
            Ok(())
        },
        lowering: Lowering::Composite(lstm_grad),
        ..OpDef::PURE
    },
];

/// Arguments of a gated recurrent unit.
const GRU: &[ArgDef] = &[
    arg("x", "T"),
    arg("h_prev", "T"),
    arg("w_ru", "T"),
    arg("w_c", "T"),
    arg("b_ru", "T"),
    arg("b_c", "T"),
];

/// The batch, the cells and the inputs of a gated recurrent unit.
fn gru_sizes(context: &OpContext<'_>) -> Result<[Dim; 3]> {
    let [batch, inputs] = context.dims::<2>(0)?;
    let [state_batch, cells] = context.dims::<2>(1)?;
    context.same("the batch of h_prev", batch, state_batch)?;
    let total = inputs.zip(cells).and_then(|(inputs, cells)| inputs.checked_add(cells));
    let two = cells.and_then(|cells| cells.checked_mul(2));
    for (index, columns) in [(2, two), (3, cells)] {
        let [rows, own] = context.dims::<2>(index)?;
        context.same("the rows of weights", total, rows)?;
        context.same("the columns of weights", columns, own)?;
        let [biases] = context.dims::<1>(index + 2)?;
        context.same("the size of a bias", columns, biases)?;
    }
    Ok([batch, cells, inputs])
}

/// Both gates look at inputs and state, the new state at inputs and what the first gate leaves of
/// the state (`tensorflow/core/kernels/rnn/gru_ops.h`).
fn gru<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, old) = (c.x(0), c.x(1));
    let cells = old.shape()[1] as i64;
    let gates = (Value::concat(&[x, old], 1).matmul(c.x(2), false, false) + c.x(4)).sigmoid();
    let reset = gates.slice(&[0, 0], &[-1, cells]);
    let update = gates.slice(&[0, cells], &[-1, cells]);
    let seen = Value::concat(&[x, old * reset], 1);
    let new = (seen.matmul(c.x(3), false, false) + c.x(5)).tanh();
    vec![reset, update, new, update * old + (1.0 - update) * new]
}

fn gru_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, old, reset, update, new, dh) = (c.x(0), c.x(1), c.x(6), c.x(7), c.x(8), c.x(9));
    let (inputs, cells) = (x.shape()[1] as i64, old.shape()[1] as i64);
    let dnew = dh * (1.0 - update) * (1.0 - new.square());
    let dupdate = dh * (old - new) * update * (1.0 - update);
    let by_seen = dnew.matmul(c.x(3), false, true);
    let by_left = by_seen.slice(&[0, inputs], &[-1, cells]);
    let dreset = by_left * old * reset * (1.0 - reset);
    let dgates = Value::concat(&[dreset, dupdate], 1);
    let by_both = dgates.matmul(c.x(2), false, true);
    let part = |of: Value<'e>| of.slice(&[0, 0], &[-1, inputs]);
    let by_old = by_both.slice(&[0, inputs], &[-1, cells]);
    vec![part(by_both) + part(by_seen), by_old + by_left * reset + dh * update, dnew, dgates]
}

/// Formula of `LSTMBlockCellBprop` in `tensorflow/core/kernels/rnn/lstm_ops.h`: gradients of the
/// gates before they are squashed, of the old state and of the peepholes.
fn lstm_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (old, ds, dh) = (c.x(1), c.x(14), c.x(15));
    let [input, state, forget, output, new, squashed] = [8, 9, 10, 11, 12, 13].map(|at| c.x(at));
    let has_peepholes = c.flag("use_peephole");
    let slope = |gate: Value<'e>| gate * (1.0 - gate);
    let doutput = slope(output) * dh * squashed;
    let ds = (1.0 - squashed.square()) * dh * output + ds;
    let ds = if has_peepholes { ds + doutput * c.x(6) } else { ds };
    let dnew = (1.0 - new.square()) * ds * input;
    let dforget = slope(forget) * ds * old;
    let dinput = slope(input) * ds * new;
    let gates = Value::concat(&[dinput, dnew, dforget, doutput], 1);
    let dold = ds * forget;
    if !has_peepholes {
        let none = [4, 5, 6].map(|at| c.x(at).zeros_like());
        return vec![dold, gates, none[0], none[1], none[2]];
    }
    let sum = |x: Value<'e>| x.sum(&[0], false);
    vec![
        dold + dinput * c.x(4) + dforget * c.x(5),
        gates,
        sum(dinput * old),
        sum(dforget * old),
        sum(doutput * state),
    ]
}

/// Checks state, weights and biases, which begin at input `first`, and returns the number of cells.
fn cells(context: &OpContext<'_>, first: usize, batch: Dim, inputs: Dim) -> Result<Dim> {
    let [state_batch, cells] = context.dims::<2>(first)?;
    context.same("the batch of cs_prev", batch, state_batch)?;
    let [state_batch, outputs] = context.dims::<2>(first + 1)?;
    context.same("the batch of h_prev", batch, state_batch)?;
    context.same("the cells of h_prev", cells, outputs)?;
    let [rows, gates] = context.dims::<2>(first + 2)?;
    let total = inputs.zip(cells).and_then(|(inputs, cells)| inputs.checked_add(cells));
    context.same("the rows of w", total, rows)?;
    let four = cells.and_then(|cells| cells.checked_mul(4));
    context.same("the columns of w", four, gates)?;
    if context.attrs.bool("use_peephole")? {
        for index in first + 3..first + 6 {
            let [weights] = context.dims::<1>(index)?;
            context.same("the size of a peephole", cells, weights)?;
        }
    }
    let [biases] = context.dims::<1>(first + 6)?;
    context.same("the size of b", four, biases)?;
    Ok(cells)
}

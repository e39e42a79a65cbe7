//! Long short-term memory in one op.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
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
    lowering: Lowering::Kernel,
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

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BlockLSTM",
        summary: "Runs a cell of long short-term memory over a sequence.",
        gradient: Gradient::Rule(gradient::recurrent::block_lstm),
        ..SEQUENCE
    },
    OpDef {
        name: "BlockLSTMV2",
        summary: "As `BlockLSTM`, with the gates in another order and no bias of its own.",
        attrs: &[float_or("cell_clip", 0.0), flag("use_peephole", false), ty("T", F16_F32)],
        gradient: Gradient::Rule(gradient::recurrent::block_lstm_v2),
        ..SEQUENCE
    },
    OpDef {
        name: "LSTMBlockCell",
        summary: "Runs a cell of long short-term memory for one step.",
        ..CELL
    },
];

/// Checks state, weights and biases, which begin at input `first`, and gives the number of cells.
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

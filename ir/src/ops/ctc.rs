//! Connectionist temporal classification: sequences of labels out of scores per time step.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    emit::{Composite, Value, calls_with},
    error::{Code, Error, Result},
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "CTCBeamSearchDecoder",
        summary: "Searches the most probable sequences of labels.",
        inputs: &[arg("inputs", "T"), arg_of("sequence_length", DType::I32)],
        outputs: &[
            args_of("decoded_indices", "top_paths", DType::I64),
            args_of("decoded_values", "top_paths", DType::I64),
            args_of("decoded_shape", "top_paths", DType::I64),
            arg("log_probability", "T"),
        ],
        attrs: &[
            int("beam_width").at_least(1),
            int("top_paths").at_least(1),
            flag("merge_repeated", true),
            ty_or("T", F32_F64, DType::F32),
        ],
        infer: |context| {
            let [_, batch, _] = scores(context, 1)?;
            let paths = (context.n_outputs() - 1) / 3;
            for path in 0..paths {
                decoded(context, [path, paths + path, 2 * paths + path]);
            }
            context.set(3 * paths, PartialShape::ranked([batch, Some(paths)]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Sequential),
        ..OpDef::PURE
    },
    OpDef {
        name: "CTCGreedyDecoder",
        summary: "Takes the best label of each time step.",
        inputs: &[arg("inputs", "T"), arg_of("sequence_length", DType::I32)],
        outputs: &[
            arg_of("decoded_indices", DType::I64),
            arg_of("decoded_values", DType::I64),
            arg_of("decoded_shape", DType::I64),
            arg("log_probability", "T"),
        ],
        attrs: &[
            flag("merge_repeated", false),
            int_or("blank_index", -1),
            ty_or("T", F32_F64, DType::F32),
        ],
        infer: |context| {
            let [_, batch, classes] = scores(context, 1)?;
            if let Some(classes) = classes {
                context.axis(context.attrs.int("blank_index")?, classes)?;
            }
            decoded(context, [0, 1, 2]);
            context.set(3, PartialShape::ranked([batch, Some(1)]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Sequential),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "CTCLoss",
        summary: "Computes how improbable sequences of labels are, and the gradient by the scores.",
        inputs: &[
            arg("inputs", "T"),
            arg_of("labels_indices", DType::I64),
            arg_of("labels_values", DType::I32),
            arg_of("sequence_length", DType::I32),
        ],
        outputs: &[arg("loss", "T"), arg("gradient", "T")],
        attrs: &[
            flag("preprocess_collapse_repeated", false),
            flag("ctc_merge_repeated", true),
            flag("ignore_longer_outputs_than_inputs", false),
            ty_or("T", F32_F64, DType::F32),
        ],
        infer: loss,
        lowering: Lowering::HostKernel(HostReason::Sequential),
        gradient: Gradient::Rule(gradient::nn::ctc_loss),
        ..OpDef::PURE
    },
    OpDef {
        name: "CTCLossV2",
        summary: "As `CTCLoss`, where class 0 stands for no label.",
        inputs: &[
            arg_of("inputs", DType::F32),
            arg_of("labels_indices", DType::I64),
            arg_of("labels_values", DType::I32),
            arg_of("sequence_length", DType::I32),
        ],
        outputs: &[arg_of("loss", DType::F32), arg_of("gradient", DType::F32)],
        attrs: &[
            flag("preprocess_collapse_repeated", false),
            flag("ctc_merge_repeated", true),
            flag("ignore_longer_outputs_than_inputs", false),
        ],
        infer: loss,
        lowering: Lowering::Composite(loss_of_blank_first),
        gradient: Gradient::Rule(gradient::nn::ctc_loss),
        ..OpDef::PURE
    },
];

fn loss(context: &mut OpContext<'_>) -> Result<()> {
    let [time, batch, classes] = scores(context, 3)?;
    let ([n, coordinates], [n_values]) = (context.dims::<2>(1)?, context.dims::<1>(2)?);
    context.same("the coordinates of a label", coordinates, Some(2))?;
    context.same("the number of labels", n, n_values)?;
    context.set(0, PartialShape::vector(batch));
    context.set(1, PartialShape::ranked([time, batch, classes]));
    Ok(())
}

/// The loss of scores whose first class is moved behind the others.
fn loss_of_blank_first<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let split = |x: Value<'e>, at: i64| {
        [x.slice(&[0, 0, 0], &[-1, -1, at]), x.slice(&[0, 0, at], &[-1, -1, -1])]
    };
    let [blank, others] = split(c.x(0), 1);
    let last = c.x(0).shape().last().map_or(0, |&classes| classes as i64 - 1);
    let attrs = c.attrs.clone().with("T", DType::F32);
    let inputs = [Value::concat(&[others, blank], 2), c.x(1), c.x(2) - 1.0, c.x(3)];
    let found = calls_with("CTCLoss", attrs, &inputs);
    let [others, blank] = split(found.at(1), last);
    vec![found.at(0), Value::concat(&[blank, others], 2)]
}

/// The sizes of scores `[time, batch, classes]`, whose lengths in time are in another input.
fn scores(context: &OpContext<'_>, lengths: usize) -> Result<[Dim; 3]> {
    let sizes @ [time, batch, classes] = context.dims::<3>(0)?;
    if time == Some(0) || classes == Some(0) {
        return Err(context.wrong(0, "scores of one time step or more", context.shape(0)));
    }
    let [count] = context.dims::<1>(lengths)?;
    match (batch, count) {
        (Some(batch), Some(count)) if batch != count => {
            let detail = format!("{count} sequence lengths for a batch of {batch}");
            let code = Code::FailedPrecondition;
            Err(Error::Status { code, op: context.op.name.into(), detail })
        }
        _ => Ok(sizes),
    }
}

/// The results at these positions are the parts of a sparse matrix.
fn decoded(context: &mut OpContext<'_>, [indices, values, shape]: [usize; 3]) {
    context.set(indices, PartialShape::ranked([None, Some(2)]));
    context.set(values, PartialShape::vector(None));
    context.set(shape, PartialShape::vector(Some(2)));
}

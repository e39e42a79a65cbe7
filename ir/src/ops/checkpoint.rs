//! Ops that read checkpoints.

use crate::{dtype::DType, error::Result, infer::OpContext, op::*};

pub(super) static OPS: &[OpDef] = &[OpDef {
    name: "RestoreV2",
    summary: "Reads tensors of a checkpoint, whole ones or slices.",
    inputs: &[
        arg_of("prefix", DType::String),
        arg_of("tensor_names", DType::String),
        arg_of("shape_and_slices", DType::String),
    ],
    outputs: &[args_list("tensors", "dtypes")],
    attrs: &[types("dtypes").at_least(1)],
    infer: restore,
    lowering: Lowering::Runtime,
    ..OpDef::READS
}];

fn restore(context: &mut OpContext<'_>) -> Result<()> {
    let n_results = context.attrs.types("dtypes")?.len();
    for index in [1, 2] {
        let found = context.input(index).ty.shape.dim(0);
        if let Some(found) = found.filter(|&found| found != n_results) {
            let expected = format!("a vector of {n_results} strings");
            return Err(context.wrong(index, expected, format!("{found}")));
        }
    }
    Ok(())
}

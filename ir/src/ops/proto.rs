//! Fields of protocol buffers as tensors.

use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "DecodeJSONExample",
        summary: "Reads examples that are JSON, and writes them as messages.",
        inputs: &[arg_of("json_examples", DType::String)],
        outputs: &[arg_of("binary_examples", DType::String)],
        infer: infer::unchanged,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "DecodeProtoV2",
        summary: "Takes fields out of serialized messages.",
        inputs: &[arg_of("bytes", DType::String)],
        outputs: &[arg_of("sizes", DType::I32), args_list("values", "output_types")],
        attrs: &[
            string("message_type"),
            strings("field_names"),
            types("output_types").at_least(0),
            string_or("descriptor_source", "local://"),
            string_or("message_format", "binary"),
            flag("sanitize", false),
        ],
        infer: |context| {
            let Some(dims) = context.shape(0).dims() else { return Ok(()) };
            let beside = |size: Dim| PartialShape::ranked(dims.iter().copied().chain([size]));
            let n = context.n_outputs() - 1;
            context.set_all(&beside(None));
            context.set(0, beside(Some(n)));
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "EncodeProto",
        summary: "Serializes messages with these fields.",
        inputs: &[arg_of("sizes", DType::I32), args_list("values", "Tinput_types")],
        outputs: &[arg_of("bytes", DType::String)],
        attrs: &[
            strings("field_names"),
            string("message_type"),
            string_or("descriptor_source", "local://"),
            types("Tinput_types").at_least(1),
        ],
        infer: encoded,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
];

/// A message for each vector of sizes.
fn encoded(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    (1..context.n_inputs()).try_for_each(|index| context.check_rank_at_least(index, 2))?;
    if let Some([messages @ .., _]) = context.shape(0).dims() {
        context.set(0, PartialShape::ranked(messages.iter().copied()));
    }
    Ok(())
}

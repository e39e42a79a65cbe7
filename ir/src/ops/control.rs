//! Ops that exist for what happens around them: assertions, positions in the order of execution,
//! printing, the time.

use crate::{
    dtype::DType,
    error::Result,
    gradient::{Gradient, only},
    infer::{self, OpContext},
    op::*,
    ops::names,
    xla::total,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Assert",
        summary: "Fails, and shows tensors, if a condition does not hold.",
        inputs: &[arg_of("condition", DType::Bool), args_list("data", "T")],
        attrs: &[types("T").at_least(1), int_or("summarize", 3)],
        infer: assertion,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        compiled: XlaFormula::Of(total::unasserted),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ControlTrigger",
        summary: "Does nothing; other ops may wait for it.",
        lowering: Lowering::Composite(|_| Vec::new()),
        ..OpDef::PURE
    },
    OpDef {
        name: "LoopCond",
        summary: "Passes on whether a loop of TensorFlow 1 goes round once more.",
        inputs: &[arg_of("input", DType::Bool)],
        outputs: &[arg_of("output", DType::Bool)],
        infer: |context| {
            context.check_rank(0, 0)?;
            infer::scalar(context)
        },
        lowering: Lowering::Alias(AliasKind::Identity),
        ..OpDef::PURE
    },
    OpDef {
        name: "NoOp",
        summary: "Does nothing; other ops may wait for it.",
        lowering: Lowering::Composite(|_| Vec::new()),
        ..OpDef::PURE
    },
    OpDef {
        name: "Print",
        summary: "Passes a tensor on, and prints others.",
        inputs: &[arg("input", "T"), args_list("data", "U")],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            types("U").at_least(0),
            string_or("message", ""),
            int_or("first_n", -1),
            int_or("summarize", 3),
        ],
        infer: infer::unchanged,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(|b| only(0, b.dy(0))),
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "PrintV2",
        summary: "Prints a text.",
        inputs: &[arg_of("input", DType::String)],
        attrs: &[string_or("output_stream", "stderr"), string_or("end", "\n")],
        infer: |context| context.check_rank(0, 0),
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "Timestamp",
        summary: "Gives the seconds since 1970.",
        outputs: &[arg_of("ts", DType::F64)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    // Functions compiled by XLA keep it: without it an imported program would go on with wrong
    // numbers. Files hold it as an `Assert`.
    OpDef {
        name: names::REQUIRE,
        summary: "Fails, and shows tensors, if a condition of an import does not hold.",
        inputs: &[arg_of("condition", DType::Bool), args_list("data", "T")],
        attrs: &[types("T").at_least(1), int_or("summarize", 3)],
        infer: assertion,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::STATEFUL
    },
];

fn assertion(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 0)
}

//! Steps of optimizers on variables behind handles.

use super::sets::*;
use crate::{dtype::DType, error::Result, infer::OpContext, op::*};

/// Changes a variable and its slots by a gradient.
const STEP: OpDef = OpDef { infer: step, lowering: Lowering::Runtime, ..OpDef::WRITES };

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ResourceApplyAdaMax",
        summary: "Makes a step of AdaMax.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("m", DType::Resource),
            arg_of("v", DType::Resource),
            arg("beta1_power", "T"),
            arg("lr", "T"),
            arg("beta1", "T"),
            arg("beta2", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAdadelta",
        summary: "Makes a step of Adadelta.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg_of("accum_update", DType::Resource),
            arg("lr", "T"),
            arg("rho", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAdagrad",
        summary: "Makes a step of Adagrad.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false), flag("update_slots", true)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAdagradDA",
        summary: "Makes a step of Adagrad with dual averaging.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("gradient_accumulator", DType::Resource),
            arg_of("gradient_squared_accumulator", DType::Resource),
            arg("grad", "T"),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg_of("global_step", DType::I64),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAdagradV2",
        summary: "Makes a step of Adagrad with an epsilon.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false), flag("update_slots", true)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAdam",
        summary: "Makes a step of Adam.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("m", DType::Resource),
            arg_of("v", DType::Resource),
            arg("beta1_power", "T"),
            arg("beta2_power", "T"),
            arg("lr", "T"),
            arg("beta1", "T"),
            arg("beta2", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false), flag("use_nesterov", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAdamWithAmsgrad",
        summary: "Makes a step of Adam with the largest second moment.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("m", DType::Resource),
            arg_of("v", DType::Resource),
            arg_of("vhat", DType::Resource),
            arg("beta1_power", "T"),
            arg("beta2_power", "T"),
            arg("lr", "T"),
            arg("beta1", "T"),
            arg("beta2", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyAddSign",
        summary: "Makes a step of AddSign.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("m", DType::Resource),
            arg("lr", "T"),
            arg("alpha", "T"),
            arg("sign_decay", "T"),
            arg("beta", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyCenteredRMSProp",
        summary: "Makes a step of centred RMSProp.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("mg", DType::Resource),
            arg_of("ms", DType::Resource),
            arg_of("mom", DType::Resource),
            arg("lr", "T"),
            arg("rho", "T"),
            arg("momentum", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyFtrl",
        summary: "Makes a step of FTRL.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg_of("linear", DType::Resource),
            arg("grad", "T"),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("lr_power", "T"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            flag("use_locking", false),
            flag("multiply_linear_by_lr", false),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyFtrlV2",
        summary: "Makes a step of FTRL with shrinkage.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg_of("linear", DType::Resource),
            arg("grad", "T"),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("l2_shrinkage", "T"),
            arg("lr_power", "T"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            flag("use_locking", false),
            flag("multiply_linear_by_lr", false),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyGradientDescent",
        summary: "Makes a step of gradient descent.",
        inputs: &[arg_of("var", DType::Resource), arg("alpha", "T"), arg("delta", "T")],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyKerasMomentum",
        summary: "Makes a step of momentum as Keras has it.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("grad", "T"),
            arg("momentum", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false), flag("use_nesterov", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyMomentum",
        summary: "Makes a step of momentum.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("grad", "T"),
            arg("momentum", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false), flag("use_nesterov", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyPowerSign",
        summary: "Makes a step of PowerSign.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("m", DType::Resource),
            arg("lr", "T"),
            arg("logbase", "T"),
            arg("sign_decay", "T"),
            arg("beta", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyProximalAdagrad",
        summary: "Makes a step of Adagrad with penalties.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyProximalGradientDescent",
        summary: "Makes a step of gradient descent with penalties.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg("alpha", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("delta", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceApplyRMSProp",
        summary: "Makes a step of RMSProp.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("ms", DType::Resource),
            arg_of("mom", DType::Resource),
            arg("lr", "T"),
            arg("rho", "T"),
            arg("momentum", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
        ],
        attrs: &[ty("T", NUMBERS), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyAdadelta",
        summary: "Makes a step of Adadelta in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg_of("accum_update", DType::Resource),
            arg("lr", "T"),
            arg("rho", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyAdagrad",
        summary: "Makes a step of Adagrad in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", INDEX),
            flag("use_locking", false),
            flag("update_slots", true),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyAdagradDA",
        summary: "Makes a step of Adagrad with dual averaging in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("gradient_accumulator", DType::Resource),
            arg_of("gradient_squared_accumulator", DType::Resource),
            arg("grad", "T"),
            arg("indices", "Tindices"),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg_of("global_step", DType::I64),
        ],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyAdagradV2",
        summary: "Makes a step of Adagrad with an epsilon in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", INDEX),
            flag("use_locking", false),
            flag("update_slots", true),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyCenteredRMSProp",
        summary: "Makes a step of centred RMSProp in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("mg", DType::Resource),
            arg_of("ms", DType::Resource),
            arg_of("mom", DType::Resource),
            arg("lr", "T"),
            arg("rho", "T"),
            arg("momentum", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyFtrl",
        summary: "Makes a step of FTRL in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg_of("linear", DType::Resource),
            arg("grad", "T"),
            arg("indices", "Tindices"),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("lr_power", "T"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", INDEX),
            flag("use_locking", false),
            flag("multiply_linear_by_lr", false),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyFtrlV2",
        summary: "Makes a step of FTRL with shrinkage in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg_of("linear", DType::Resource),
            arg("grad", "T"),
            arg("indices", "Tindices"),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("l2_shrinkage", "T"),
            arg("lr_power", "T"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", INDEX),
            flag("use_locking", false),
            flag("multiply_linear_by_lr", false),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyKerasMomentum",
        summary: "Makes a step of momentum as Keras has it in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
            arg("momentum", "T"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", INDEX),
            flag("use_locking", false),
            flag("use_nesterov", false),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyMomentum",
        summary: "Makes a step of momentum in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
            arg("momentum", "T"),
        ],
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", INDEX),
            flag("use_locking", false),
            flag("use_nesterov", false),
        ],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyProximalAdagrad",
        summary: "Makes a step of Adagrad with penalties in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("accum", DType::Resource),
            arg("lr", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyProximalGradientDescent",
        summary: "Makes a step of gradient descent with penalties in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg("alpha", "T"),
            arg("l1", "T"),
            arg("l2", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), flag("use_locking", false)],
        ..STEP
    },
    OpDef {
        name: "ResourceSparseApplyRMSProp",
        summary: "Makes a step of RMSProp in the rows of a variable that indices name.",
        inputs: &[
            arg_of("var", DType::Resource),
            arg_of("ms", DType::Resource),
            arg_of("mom", DType::Resource),
            arg("lr", "T"),
            arg("rho", "T"),
            arg("momentum", "T"),
            arg("epsilon", "T"),
            arg("grad", "T"),
            arg("indices", "Tindices"),
        ],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), flag("use_locking", false)],
        ..STEP
    },
];

/// Handles and all that says how large a step is are scalars.
fn step(context: &mut OpContext<'_>) -> Result<()> {
    for (index, arg) in context.op.inputs.iter().enumerate() {
        match arg.name {
            "grad" | "delta" => {}
            "indices" => context.check_rank(index, 1)?,
            _ => context.check_rank(index, 0)?,
        }
    }
    Ok(())
}

//! Ops that TensorFlow's runtime and graph optimiser put into graphs: dumped graphs have them.
//!
//! Source: TensorFlow's `core/ops/functional_ops.cc`, `function_ops.cc`, `math_ops.cc` and
//! `resource_variable_ops.cc` for the interfaces; what they compute was found by running them.

use super::{functional, sets::*, state};
use crate::{
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    error::{Error, Result},
    gradient::Gradient,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    spec::TensorSpec,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "_ArrayToList",
        summary: "Passes tensors of one dtype on as a list.",
        inputs: &[args("input", "N", "T")],
        outputs: &[args_list("output", "out_types")],
        attrs: &[any_ty("T"), int("N").at_least(1), types("out_types").at_least(1)],
        ..PASSED_ON
    },
    OpDef {
        name: "_DeviceRetval",
        summary: "Marks a result of a function; it is in no memory but the host's.",
        inputs: &[arg("input", "T")],
        attrs: &[any_ty("T"), int("index").at_least(0)],
        lowering: Lowering::Composite(|_| Vec::new()),
        ..OpDef::PURE
    },
    OpDef {
        name: "_EagerConst",
        summary: "Gives its input.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Same,
        ..OpDef::PURE
    },
    OpDef {
        name: "_HostCast",
        summary: "As `Cast`, in the memory of the host.",
        inputs: &[arg("x", "SrcT")],
        outputs: &[arg("y", "DstT")],
        attrs: &[any_ty("SrcT"), any_ty("DstT"), flag("Truncate", false)],
        infer: infer::unchanged,
        lowering: Lowering::Composite(|c| c.renamed("Cast")),
        ..OpDef::PURE
    },
    OpDef {
        name: "_If",
        summary: "Calls one function or the other.",
        inputs: &[arg("cond", "Tcond"), args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            any_ty("Tcond"),
            types("Tin").at_least(1),
            types("Tout").at_least(1),
            func("then_branch"),
            func("else_branch"),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::If,
        ..OpDef::PURE
    },
    OpDef {
        name: "_ListToArray",
        summary: "Passes a list of tensors of one dtype on.",
        inputs: &[args_list("input", "Tin")],
        outputs: &[args("output", "N", "T")],
        attrs: &[types("Tin").at_least(1), any_ty("T"), int("N").at_least(1)],
        ..PASSED_ON
    },
    OpDef {
        name: "_ReadVariablesOp",
        summary: "Reads variables.",
        inputs: &[args_of("resources", "N", DType::Resource)],
        outputs: &[args_list("values", "dtypes")],
        attrs: &[int("N").at_least(0), types("dtypes").at_least(1)],
        same_length: &[&["N", "dtypes"]],
        infer: |context| {
            for index in 0..context.n_outputs() {
                if let Some(spec) = context.input(index).ty.pointee.as_deref() {
                    context.set(index, spec.shape.clone());
                }
            }
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "_Retval",
        summary: "Marks a result of a function.",
        inputs: &[arg("input", "T")],
        attrs: &[any_ty("T"), int("index").at_least(0)],
        lowering: Lowering::Composite(|_| Vec::new()),
        ..OpDef::PURE
    },
    OpDef {
        name: "_TensorToHashBucketFast",
        summary: "Hashes integers, written as text, to integers below `num_buckets`.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("output", DType::I64)],
        attrs: &[ty("T", INTS), int("num_buckets").at_least(1)],
        infer: infer::unchanged,
        lowering: Lowering::Composite(|c| {
            let text = call("AsString", [c.x(0)]);
            vec![call_with("StringToHashBucketFast", c.attrs.clone(), [text])]
        }),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "_UnaryOpsComposition",
        summary: "Applies functions of one argument, one after the other.",
        inputs: &[arg("x", "T")],
        outputs: &[arg("y", "T")],
        attrs: &[ty("T", &[DType::F32, DType::F16, DType::F64]), strings("op_names")],
        infer: |context| {
            let names = context.attrs.strings("op_names")?;
            if names.is_empty() {
                return Err(context.wrong_attr("op_names", "names of ops", "none"));
            }
            let is_known = |name: &[u8]| UNARY.iter().any(|known| known.as_bytes() == name);
            if let Some(name) = names.iter().find(|name| !is_known(name)) {
                let found = String::from_utf8_lossy(name).into_owned();
                return Err(context.wrong_attr("op_names", format!("among {UNARY:?}"), found));
            }
            infer::unchanged(context)
        },
        lowering: Lowering::Composite(composition),
        ..OpDef::PURE
    },
    OpDef {
        name: "_VarHandlesOp",
        summary: "Makes the handles of variables, and the variables that are not there.",
        outputs: &[args_of("resources", "N", DType::Resource)],
        attrs: &[
            strings("containers"),
            strings("shared_names"),
            int("N").at_least(0),
            types("dtypes"),
            shapes("shapes"),
        ],
        same_length: &[&["N", "containers", "shared_names", "dtypes", "shapes"]],
        infer: |context| {
            let dtypes = context.attrs.types("dtypes")?.to_vec();
            let shapes = context.attrs.shapes("shapes")?.to_vec();
            context.set_all(&PartialShape::scalar());
            for (index, (dtype, shape)) in dtypes.into_iter().zip(shapes).enumerate() {
                context.set_pointee(index, TensorSpec::new(dtype, shape));
            }
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "_While",
        summary: "Calls `body` on its own results while `cond` is true.",
        ..functional::LOOP
    },
    OpDef {
        name: "_XlaAotOnlyVarHandleOp",
        summary: "Makes the handle of a variable, and the variable if it is not there.",
        outputs: &[arg_of("resource", DType::Resource)],
        attrs: &[
            string_or("container", ""),
            string_or("shared_name", ""),
            string_or("debug_name", ""),
            any_ty("dtype"),
            shape("shape"),
        ],
        infer: state::var_handle,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
];

/// Returns its inputs, in the same order.
const PASSED_ON: OpDef = OpDef {
    infer: |context| {
        check_passed(context)?;
        (0..context.n_inputs()).for_each(|index| context.set(index, context.shape(index).clone()));
        Ok(())
    },
    lowering: Lowering::Composite(|c| c.inputs().to_vec()),
    ..OpDef::PURE
};

/// Checks that there are as many results as inputs, of the same dtypes.
fn check_passed(context: &OpContext<'_>) -> Result<()> {
    if context.n_inputs() != context.n_outputs() {
        let expected = format!("{} tensors", context.n_outputs());
        return Err(Error::argument(context.op.name, "input", expected, context.n_inputs()));
    }
    let differs = |index: &usize| context.dtype(*index) != context.output_dtype(*index);
    match (0..context.n_inputs()).find(differs) {
        None => Ok(()),
        Some(index) => {
            let expected = format!("of dtype {}", context.output_dtype(index));
            Err(context.wrong(index, expected, context.dtype(index)))
        }
    }
}

/// The functions that a composition may be made of. Source: `unary_ops_composition.cc`.
const UNARY: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Elu",
    "Exp",
    "Expm1",
    "Floor",
    "Inv",
    "Log",
    "Log1p",
    "Neg",
    "Reciprocal",
    "Relu",
    "Relu6",
    "Rint",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Sqrt",
    "Square",
    "Tan",
    "Tanh",
];

fn composition<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let names = c.attrs.strings("op_names").unwrap_or_default();
    let known = names
        .iter()
        .filter_map(|name| UNARY.iter().copied().find(|known| known.as_bytes() == &name[..]));
    vec![known.fold(c.x(0), |x, name| call(name, [x]))]
}

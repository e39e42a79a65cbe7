//! Random numbers from a generator whose state is a variable: the counter, two elements, and the
//! key, one.

use super::{
    random::{COUNTS, check_limits, ends_with_parameters, shape_in},
    sets::*,
};
use crate::{
    dtype::DType, error::Result, gradient::Gradient, infer::OpContext, op::*, shape::PartialShape,
};

/// Numbers of a distribution without parameters.
const DRAW: OpDef = OpDef {
    inputs: &[
        arg_of("resource", DType::Resource),
        arg_of("algorithm", DType::I64),
        arg("shape", "shape_dtype").host(),
    ],
    outputs: &[arg("output", "dtype")],
    attrs: &[
        any_ty("dtype").or(AttrDefault::Type(DType::F32)),
        any_ty("shape_dtype").or(AttrDefault::Type(DType::I64)),
    ],
    infer: draw,
    lowering: Lowering::Runtime,
    gradient: Gradient::Zero,
    ..OpDef::WRITES
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "RngReadAndSkip",
        summary: "Moves a generator on by 256 blocks for each of `delta` numbers; gives the state it had.",
        inputs: &[
            arg_of("resource", DType::Resource),
            arg_of("alg", DType::I32),
            arg_of("delta", DType::U64),
        ],
        outputs: &[arg_of("value", DType::I64)],
        attrs: &[],
        infer: |context| {
            check_limits(context, 1)?;
            context.set(0, PartialShape::vector(Some(3)));
            Ok(())
        },
        ..DRAW
    },
    OpDef {
        name: "RngSkip",
        summary: "Moves a generator on by 256 blocks for each of `delta` numbers.",
        inputs: &[
            arg_of("resource", DType::Resource),
            arg_of("algorithm", DType::I64),
            arg_of("delta", DType::I64),
        ],
        outputs: &[],
        attrs: &[],
        infer: |context| check_limits(context, 1),
        ..DRAW
    },
    OpDef {
        name: "StatefulRandomBinomial",
        summary: "Draws numbers of successes among `counts` trials.",
        inputs: &[
            arg_of("resource", DType::Resource),
            arg_of("algorithm", DType::I64),
            arg("shape", "S").host(),
            arg("counts", "T"),
            arg("probs", "T"),
        ],
        attrs: &[
            ty("S", INDEX),
            ty_or("T", COUNTS, DType::F64),
            ty_or("dtype", COUNTS, DType::I64),
        ],
        infer: |context| {
            ends_with_parameters(context, 2, 3)?;
            draw(context)
        },
        ..DRAW
    },
    OpDef {
        name: "StatefulStandardNormal",
        summary: "Draws numbers of the standard normal distribution; the state names its algorithm.",
        inputs: &[arg_of("resource", DType::Resource), arg("shape", "shape_dtype").host()],
        infer: |context| {
            let shape = shape_in(context, 1)?;
            context.set(0, shape);
            Ok(())
        },
        ..DRAW
    },
    OpDef {
        name: "StatefulStandardNormalV2",
        summary: "Draws numbers of the standard normal distribution.",
        ..DRAW
    },
    OpDef {
        name: "StatefulTruncatedNormal",
        summary: "Draws normal numbers closer to 0 than 2.",
        ..DRAW
    },
    OpDef { name: "StatefulUniform", summary: "Draws numbers from [0, 1).", ..DRAW },
    OpDef {
        name: "StatefulUniformFullInt",
        summary: "Draws integers of random bits.",
        attrs: &[
            any_ty("dtype").or(AttrDefault::Type(DType::U64)),
            any_ty("shape_dtype").or(AttrDefault::Type(DType::I64)),
        ],
        ..DRAW
    },
    OpDef {
        name: "StatefulUniformInt",
        summary: "Draws integers from `minval` to before `maxval`.",
        inputs: &[
            arg_of("resource", DType::Resource),
            arg_of("algorithm", DType::I64),
            arg("shape", "shape_dtype").host(),
            arg("minval", "dtype"),
            arg("maxval", "dtype"),
        ],
        attrs: &[
            any_ty("dtype").or(AttrDefault::Type(DType::I64)),
            any_ty("shape_dtype").or(AttrDefault::Type(DType::I64)),
        ],
        infer: |context| {
            check_limits(context, 3)?;
            draw(context)
        },
        ..DRAW
    },
];

/// The result has the shape in input 2.
fn draw(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 0)?;
    let shape = shape_in(context, 2)?;
    context.set(0, shape);
    Ok(())
}

//! Grey-scale dilation of images.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    error::Result,
    infer::OpContext,
    op::*,
    shape::PartialShape,
    window::{ImageLayout, WindowSteps, steps},
};

const ATTRS: &[AttrDef] = &[
    ty("T", REALS),
    ints("strides").at_least(4),
    ints("rates").at_least(4),
    one_of("padding", &["SAME", "VALID"]),
];

const GRADIENT: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("filter", "T"), arg("out_backprop", "T")],
    attrs: ATTRS,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Dilation2D",
        summary: "Takes the largest sum of an element and the filter in each window.",
        inputs: &[arg("input", "T"), arg("filter", "T")],
        outputs: &[arg("output", "T")],
        attrs: ATTRS,
        infer: |context| {
            let shape = dilated(context)?;
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::conv::dilation),
        ..OpDef::PURE
    },
    OpDef {
        name: "Dilation2DBackpropFilter",
        summary: "Gradient of `Dilation2D` by the filter.",
        outputs: &[arg("filter_backprop", "T")],
        infer: |context| gradient_of(context, 1),
        ..GRADIENT
    },
    OpDef {
        name: "Dilation2DBackpropInput",
        summary: "Gradient of `Dilation2D` by the input.",
        outputs: &[arg("in_backprop", "T")],
        infer: |context| gradient_of(context, 0),
        ..GRADIENT
    },
];

/// Steps of the windows of a dilation.
///
/// # Errors
///
/// When an attribute is out of range.
fn windows(context: &OpContext<'_>) -> Result<WindowSteps> {
    let layout = ImageLayout { spatial: 2, channels_last: true };
    steps(context.op.name, context.attrs, layout, "rates")
}

fn dilated(context: &OpContext<'_>) -> Result<PartialShape> {
    let [batch, height, width, channels] = context.dims::<4>(0)?;
    let [rows, columns, depth] = context.dims::<3>(1)?;
    let channels = context.same("channels", channels, depth)?;
    let windows = windows(context)?;
    let height = windows[0].output(height, rows)?;
    let width = windows[1].output(width, columns)?;
    Ok(PartialShape::ranked([batch, height, width, channels]))
}

/// The gradient by input `index`.
fn gradient_of(context: &mut OpContext<'_>, index: usize) -> Result<()> {
    let (expected, found) = (dilated(context)?, context.shape(2));
    if !expected.is_compatible_with(found) {
        return Err(context.wrong(2, format!("of shape {expected}"), found));
    }
    context.set(0, context.shape(index).clone());
    Ok(())
}

//! Composite tensors behind a handle of dtype variant.

use crate::gradient::{self, Gradient};
use crate::{dtype::DType, infer, op::*};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "CompositeTensorVariantFromComponents",
        summary: "Makes a value of the components of a composite tensor.",
        inputs: &[args_list("components", "Tcomponents")],
        outputs: &[arg_of("encoded", DType::Variant)],
        attrs: &[string("metadata"), types("Tcomponents").at_least(0)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::composite::from_components),
        ..OpDef::PURE
    },
    OpDef {
        name: "CompositeTensorVariantToComponents",
        summary: "Gives the components of a composite tensor.",
        inputs: &[arg_of("encoded", DType::Variant)],
        outputs: &[args_list("components", "Tcomponents")],
        attrs: &[string("metadata"), types("Tcomponents").at_least(0)],
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::composite::to_components),
        ..OpDef::PURE
    },
];

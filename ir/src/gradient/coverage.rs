//! Ops that TensorFlow differentiates and that have a gradient here.

use super::Gradient;
use crate::{
    op::{CallKind, Lowering},
    registry,
};

/// The ops for which `ops.gradient_registry` of TensorFlow 2.21 has a function.
const TENSORFLOW: &str = include_str!("tensorflow.txt");

/// Those whose function gives nothing, or an error, in TensorFlow.
const WITHOUT: &[&str] = &[
    "ArgMax",              // Gives no gradient.
    "ArgMin",              // Gives no gradient.
    "LoopCond",            // Gives no gradient.
    "PreventGradient",     // Refuses.
    "SparseSparseMaximum", // Refuses.
    "SparseSparseMinimum", // Refuses.
];

#[test]
fn what_tensorflow_differentiates_has_a_gradient() {
    let missing: Vec<&str> = TENSORFLOW
        .lines()
        .filter_map(registry::find)
        .filter(|op| matches!(op.gradient, Gradient::Missing) && op.call == CallKind::None)
        .filter(|op| !matches!(op.lowering, Lowering::Composite(_) | Lowering::Interface))
        .map(|op| op.name)
        .collect();
    assert_eq!(missing, WITHOUT);
}

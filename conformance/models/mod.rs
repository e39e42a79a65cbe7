//! Models written in Rust, saved for TensorFlow to load: those of TensorFlow's own RFC, and others
//! with what they leave out.

mod checkpoints;
mod control;
mod layers;
mod networks;
mod recorder;
mod rfc;
mod state;

use crate::outcome::CaseOutcome;
use anyhow::Result;
use recorder::Recorder;
use serde_json::{Value, json};
use std::path::Path;

type Model = fn(&mut Recorder) -> Result<()>;

const MODELS: &[(&str, Model)] = &[
    ("rust_rfc_functions", rfc::functions),
    ("rust_rfc_methods", rfc::methods),
    ("rust_rfc_literals", rfc::literals),
    ("rust_rfc_nests", rfc::nests),
    ("rust_rfc_signature_single", rfc::signature_single),
    ("rust_rfc_signature_given", rfc::signature_given),
    ("rust_rfc_signature_implicit", rfc::signature_implicit),
    ("rust_rfc_text_embedding", rfc::text_embedding),
    ("rust_rfc_reexport", rfc::reexport),
    ("rust_dense_layers", layers::dense),
    ("rust_convolution", layers::convolution),
    ("rust_containers", layers::containers),
    ("rust_constants", layers::constants),
    ("rust_dtypes", layers::dtypes),
    ("rust_nested_calls", layers::nested_calls),
    ("rust_nn_images", networks::images),
    ("rust_nn_trained", networks::trained),
    ("rust_nn_sequences", networks::sequences),
    ("rust_counter", state::counter),
    ("rust_mutable_table", state::mutable_table),
    ("rust_momentum", state::momentum),
    ("rust_shared_objects", state::shared_objects),
    ("rust_newton", control::newton),
    ("rust_walker", control::walker),
    ("rust_recurrent", control::recurrent),
    ("rust_lazy_variable", control::lazy),
    ("rust_checkpoint_tree", checkpoints::tree),
    ("rust_checkpoint_adam", checkpoints::adam),
    ("rust_checkpoint_keras", networks::keras),
    ("rust_checkpoint_keras_adam", checkpoints::keras_adam),
    ("rust_checkpoint_saver_adam", checkpoints::saver_adam),
];

/// Builds and saves all models: cases below `cases`, models below `models`. One result for each.
pub(crate) fn run(
    cases: &Path,
    models: &Path,
    report: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    for (name, build) in MODELS {
        let outcome = CaseOutcome::of(std::panic::AssertUnwindSafe(|| {
            let mut recorder = Recorder::new(name, cases, models)?;
            build(&mut recorder)?;
            recorder.finish()?;
            Ok(CaseOutcome::Passed)
        }));
        report(outcome.report(json!({ "case": name, "kind": "model" })))?;
    }
    Ok(())
}

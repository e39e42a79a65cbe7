//! Summaries: what a training tells TensorBoard.
//!
//! A call of [`scalar`] and its like names a tag, a value and a step. Where it goes is not the
//! call's business but that of the code around it: the writer is that of the innermost
//! [`with_writer`], and whether anything is written that of the innermost [`record_if`].
//!
//! Inside a function both are taken from the surroundings of each *call*, not of the trace
//! ([`Ambient`]): they are arguments that nobody gives. One trace serves callers that write and
//! callers that do not; where nothing is written, nothing is computed for it either.
//!
//! ```
//! use ferroflow_tracer::{Result, Tensor, function, summary};
//!
//! # fn main() -> Result<()> {
//! let step = function(|x: Tensor| -> Result<Tensor> {
//!     let loss = x.square()?;
//!     summary::scalar("loss", &loss, 1)?;
//!     Ok(loss)
//! });
//! step.call((3.0f32,))?; // Nobody listens.
//! # Ok(())
//! # }
//! ```
//!
//! Event files are made by a crate above: `ferroflow::summary::create_file_writer`.

pub use crate::capture::Ambient;
use crate::{
    context::{self, SummaryScope},
    control_flow::cond,
    error::Result,
    ops::{self, IntoOperand},
    tensor::Tensor,
};
use ferroflow_ir::{DType, HostTensor};
use std::borrow::Borrow;

/// Runs `body` with a writer for the summaries of the calls in it: a tensor of a resource.
pub fn with_writer<R>(writer: &Tensor, body: impl FnOnce() -> R) -> R {
    let _guard = context::enter_summaries(SummaryScope::Writer(writer.clone()));
    body()
}

/// Runs `body`, the calls in which write summaries only if `condition` is true: a `bool`, or a
/// tensor of one.
pub fn record_if<R>(condition: impl Into<Tensor>, body: impl FnOnce() -> R) -> R {
    let _guard = context::enter_summaries(SummaryScope::RecordIf(condition.into()));
    body()
}

/// Tells a number, such as a loss: any dtype, one element.
///
/// The step is an `i64` or a tensor of one.
///
/// # Errors
///
/// When the value is not one number, or the file cannot be written.
#[track_caller]
pub fn scalar(tag: &str, value: &Tensor, step: impl IntoOperand) -> Result<()> {
    recorded(step, |writer, step| {
        let value = ops::cast(&value.reshape(&[])?, DType::F32)?;
        ops::write_summary(writer, step, &value, &tag.into(), &metadata("scalars"))
    })
}

/// Tells a text: a string tensor of any shape; of rank 2 a table.
///
/// # Errors
///
/// When the values are not strings, or the file cannot be written.
#[track_caller]
pub fn text(tag: &str, value: &Tensor, step: impl IntoOperand) -> Result<()> {
    recorded(step, |writer, step| {
        ops::write_summary(writer, step, value, &tag.into(), &metadata("text"))
    })
}

/// Tells the distribution of numbers, of any shape.
///
/// # Errors
///
/// When one of them is not finite, or the file cannot be written.
#[track_caller]
pub fn histogram(tag: &str, values: &Tensor, step: impl IntoOperand) -> Result<()> {
    recorded(step, |writer, step| ops::write_histogram_summary(writer, step, &tag.into(), values))
}

/// Shows the first three images of a batch `[n, height, width, channels]`: bytes, or floats that
/// are scaled so that the largest is white.
///
/// # Errors
///
/// When the images are of another shape, or the file cannot be written.
#[track_caller]
pub fn image(tag: &str, images: &Tensor, step: impl IntoOperand) -> Result<()> {
    recorded(step, |writer, step| {
        let no_number = Tensor::from(vec![255u8, 0, 0, 255]);
        ops::write_image_summary(writer, step, &tag.into(), images, &no_number)
    })
}

/// Shows a graph: a GraphDef, as bytes.
///
/// # Errors
///
/// When the file cannot be written.
#[track_caller]
pub fn graph(graph_def: &Tensor, step: impl IntoOperand) -> Result<()> {
    recorded(step, |writer, step| ops::write_graph_summary(writer, step, graph_def))
}

/// Writes any tensor, with the encoded `SummaryMetadata` that says what TensorBoard makes of it.
///
/// # Errors
///
/// When the metadata is no such message, or the file cannot be written.
#[track_caller]
pub fn write(tag: &str, tensor: &Tensor, step: impl IntoOperand, metadata: &[u8]) -> Result<()> {
    recorded(step, |writer, step| {
        let metadata = HostTensor::scalar_string(metadata.to_vec()).into();
        ops::write_summary(writer, step, tensor, &tag.into(), &metadata)
    })
}

/// An encoded `SummaryMetadata` that names a plugin: field 1 is the plugin's data, whose field 1 is
/// its name (`tensorflow/core/framework/summary.proto`).
fn metadata(plugin: &str) -> Tensor {
    let field = |content: &[u8]| {
        let mut field = vec![0x0a, u8::try_from(content.len()).expect("names are short")];
        field.extend_from_slice(content);
        field
    };
    HostTensor::scalar_string(field(&field(plugin.as_bytes()))).into()
}

/// Calls `write` with writer and step, if summaries are recorded.
#[track_caller]
fn recorded(
    step: impl IntoOperand,
    write: impl FnOnce(&Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    let step = step.into_operand(DType::I64)?;
    let step = ops::cast(step.borrow(), DType::I64)?;
    let condition = Ambient::SummaryCondition.tensor()?;
    let writer = Ambient::SummaryWriter.tensor()?;
    cond(&condition, || write(&writer, &step), || Ok(()))
}

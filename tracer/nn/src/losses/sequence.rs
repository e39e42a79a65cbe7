//! Losses of labels without positions.

use ferroflow_ir::DType;
use ferroflow_tracer::{Result, Tensor, ops};

/// The negative logarithm of the probability of the labels under connectionist temporal
/// classification (Graves et al. 2006): targets `[n, labels]` are numbers of classes from 1 on,
/// then zeros; predictions `[n, steps, classes]` are logits, the class 0 being the blank.
///
/// # Errors
///
/// When the shapes are not these, or there are more labels than steps.
#[track_caller]
pub fn ctc(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let target = target.cast(DType::I32)?;
    // The op has its blank at the end.
    let logits = prediction.cast(DType::F32)?.transpose(&[1, 0, 2])?;
    let logits = ops::roll(&logits, &Tensor::from(-1i32), &Tensor::from(2i32))?;
    let coordinates = ops::where_(&target.not_equal(0)?)?;
    let labels = (ops::gather_nd(&target, &coordinates)? - 1)?;
    let size = prediction.shape_tensor()?;
    let steps = ops::slice(&size, &Tensor::from([1i32]), &Tensor::from([1i32]))?;
    let rows = ops::slice(&size, &Tensor::from([0i32]), &Tensor::from([1i32]))?;
    let lengths = ops::fill(&rows, &steps.reshape(&[])?)?;
    let [loss, _] = ops::ctc_loss(&logits, &coordinates, &labels, &lengths)?;
    Ok(loss)
}

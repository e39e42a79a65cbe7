//! Figures of trainings for TensorBoard.

use crate::summary::{self, SummaryWriter};
use ferroflow_nn::train::{Callback, CallbackResult, Logs, Training};
use ferroflow_tracer::Tensor;
use std::{ops::ControlFlow, path::Path};

/// Writes the figures of each epoch as scalars: `epoch_loss` and so on, those of training and of
/// validation as two runs, `train` and `validation`, as Keras does. They are in the files when the next
/// epoch begins.
#[derive(Debug)]
pub struct TensorBoard {
    train: SummaryWriter,
    validation: SummaryWriter,
}

impl TensorBoard {
    /// Event files in the folders `train` and `validation` of this one.
    ///
    /// # Errors
    ///
    /// When they cannot be made.
    pub fn new(folder: impl AsRef<Path>) -> Result<TensorBoard, ferroflow_tracer::Error> {
        let writer = |run| summary::create_file_writer(folder.as_ref().join(run));
        Ok(TensorBoard { train: writer("train")?, validation: writer("validation")? })
    }
}

impl Callback for TensorBoard {
    fn epoch_end(&mut self, _: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        for (name, figure) in logs.iter() {
            let (writer, name) = match name.strip_prefix("val_") {
                Some(name) => (&self.validation, name),
                None => (&self.train, name),
            };
            let (tag, figure) = (format!("epoch_{name}"), Tensor::from(figure as f32));
            writer.with(|| summary::scalar(&tag, &figure, epoch as i64))?;
        }
        self.train.flush()?;
        self.validation.flush()?;
        Ok(ControlFlow::Continue(()))
    }
}

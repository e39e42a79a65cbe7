//! Progress of trainings on the terminal.

use crate::data::Progress;
use ferroflow_nn::train::{Callback, CallbackResult, Logs, Training};
use std::ops::ControlFlow;

/// Shows a bar for each epoch, with the loss of the last batch, on standard error where that is a
/// terminal; and a line for each epoch that is finished, with all figures, on standard output.
#[derive(Debug, Default)]
pub struct ProgressBar {
    bar: Option<Progress>,
}

impl ProgressBar {
    /// A bar.
    pub fn new() -> ProgressBar {
        ProgressBar::default()
    }
}

impl Callback for ProgressBar {
    fn epoch_begin(
        &mut self,
        _: &Training,
        epoch: u64,
        n_batches: Option<usize>,
    ) -> CallbackResult {
        self.bar = n_batches.map(|n| Progress::new(&format!("epoch {:2}", epoch + 1), n));
        Ok(ControlFlow::Continue(()))
    }

    fn batch_end(&mut self, _: &Training, _: usize, loss: f64) -> CallbackResult {
        if let Some(bar) = &self.bar {
            bar.step(&[("loss", loss)]);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn epoch_end(&mut self, _: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        self.bar = None;
        println!("epoch {:2}: {logs}", epoch + 1);
        Ok(ControlFlow::Continue(()))
    }
}

//! Signs of life for what takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Time in which nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two drawings.
const TICK: Duration = Duration::from_millis(100);

/// Does `work`. If it takes longer than a second, standard error shows what it is and for how long
/// it has been running, where standard error is a terminal.
pub(super) fn during<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || show(what, &waiting));
        let result = work();
        drop(done);
        result
    })
}

fn show(what: &str, waiting: &mpsc::Receiver<()>) {
    let began = Instant::now();
    if waiting.recv_timeout(PATIENCE) != Err(mpsc::RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::default_spinner());
    while waiting.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
        bar.set_message(format!("{what} … {} s", began.elapsed().as_secs()));
        bar.tick();
    }
    bar.finish_and_clear();
}

/// A bar over `n` steps, drawn once the steps have taken a second.
pub(super) struct StepProgress {
    bar: ProgressBar,
    began: Instant,
}

impl StepProgress {
    pub(super) fn new(what: &str, n: usize) -> StepProgress {
        let bar = ProgressBar::with_draw_target(Some(n as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta} left") {
            bar.set_style(style);
        }
        bar.set_message(what.to_string());
        StepProgress { bar, began: Instant::now() }
    }

    /// Counts a further step.
    pub(super) fn step(&self) {
        if self.bar.is_hidden() && self.began.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }
}

impl Drop for StepProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

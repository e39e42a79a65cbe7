//! Progress of a training, on the terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write as _;

/// A bar over the steps of a training: how many there were, their rate, the time left and the
/// latest figures. It is drawn on standard error, where that is a terminal, and is gone afterwards.
///
/// ```
/// use ferroflow::data::Progress;
/// let progress = Progress::new("epoch 1", 100);
/// for step in 0..100 {
///     progress.step(&[("loss", 1.0 / (step as f64 + 1.0))]);
/// }
/// ```
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of `n_steps` steps.
    pub fn new(what: &str, n_steps: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(n_steps as u64), ProgressDrawTarget::stderr());
        let template = "{prefix} {wide_bar} {pos}/{len} · {rate} · {eta} left{msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("rate", rate));
        }
        bar.set_prefix(what.to_string());
        Progress { bar }
    }

    /// Counts a further step, with these figures.
    pub fn step(&self, figures: &[(&str, f64)]) {
        let mut text = String::new();
        for (name, figure) in figures {
            // Writing to a string cannot fail.
            let _ = write!(text, " · {name} {figure:.4}");
        }
        self.bar.set_message(text);
        self.bar.inc(1);
    }
}

/// Steps in a second, to three digits or more.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let rate = state.per_sec();
    let decimals = if rate < 10.0 { 2 } else { usize::from(rate < 100.0) };
    // Writing to the line of a terminal cannot fail.
    let _ = write!(out, "{rate:.decimals$}/s");
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

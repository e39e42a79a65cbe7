//! Progress bar: rows, and rows per second.

use ferroflow_batch::BatchProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const WITH_LENGTH: &str = "{msg} {wide_bar} {human_pos}/{human_len} rows, {per_sec}, {eta} left";
const WITHOUT_LENGTH: &str = "{msg} {spinner} {human_pos} rows, {per_sec}";

/// A line on standard error that is drawn over, if that is a terminal.
pub(super) struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    pub(super) fn new() -> ProgressLine {
        ProgressLine { bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()) }
    }

    pub(super) fn step(&self, step: BatchProgress) {
        match step {
            BatchProgress::Planned { rows, done } => {
                let template = if rows.is_some() { WITH_LENGTH } else { WITHOUT_LENGTH };
                if let Ok(style) = ProgressStyle::with_template(template) {
                    self.bar.set_style(style);
                }
                if let Some(rows) = rows {
                    self.bar.set_length(rows);
                }
                self.bar.set_message("predicting");
                // Rows of an earlier process do not count for the speed.
                self.bar.set_position(done);
                self.bar.reset_eta();
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            BatchProgress::Rows(rows) => self.bar.inc(rows),
            BatchProgress::Repeated(rows) => self.bar.dec(rows),
            BatchProgress::Joining => self.bar.set_message("joining"),
            _ => {}
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

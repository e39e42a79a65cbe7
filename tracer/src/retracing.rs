//! Notices functions that are traced too often, and says why.
//!
//! The thresholds are those of TensorFlow's detector
//! (`tensorflow/python/eager/polymorphic_function/tf_method_target.py` and its neighbours): five
//! traces within ten calls warn, twice at most.

use ferroflow_ir::TraceType;
use std::collections::VecDeque;
use tracing::{dispatcher, subscriber::NoSubscriber};

/// Number of the last calls among which traces count.
const HISTORY: u64 = 10;
/// Number of traces within them that are too many.
const THRESHOLD: usize = 5;
/// Number of warnings of a function.
const MAX_WARNINGS: usize = 2;

/// The traces of one function over its calls.
#[derive(Default, Debug)]
pub(crate) struct Detector {
    /// The numbers of the calls that were traced, of late.
    traced: VecDeque<u64>,
    warnings: Vec<String>,
}

impl Detector {
    /// Notes that call `call` was traced; returns a warning if that happens too often.
    pub(crate) fn traced(&mut self, function: &str, call: u64, cause: &str) -> Option<&str> {
        self.traced.push_back(call);
        while self.traced.front().is_some_and(|&first| call - first >= HISTORY) {
            self.traced.pop_front();
        }
        if self.traced.len() < THRESHOLD || self.warnings.len() == MAX_WARNINGS {
            return None;
        }
        let first = self.traced.front().copied().unwrap_or(call);
        self.warnings.push(format!(
            "{} of the last {} calls of function `{function}` were traced anew; the last time {cause}. \
             Tracing is slow: give tensors in place of values that change, unknown sizes in an input \
             signature, or `reduce_retracing`",
            self.traced.len(),
            call - first + 1,
        ));
        self.warnings.last().map(String::as_str)
    }

    /// The warnings so far.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Tells a warning to the subscriber of `tracing`, and to standard error where there is none: a
/// program that listens to nothing would stay slow without a word.
pub(crate) fn warn(function: &str, warning: &str) {
    tracing::warn!(function, "{warning}");
    if dispatcher::get_default(|subscriber| subscriber.is::<NoSubscriber>()) {
        eprintln!("warning: {warning}");
    }
}

/// Reason why arguments of these types are new, compared with those of the last trace.
pub(crate) fn cause(names: &[String], before: Option<&[TraceType]>, now: &[TraceType]) -> String {
    let Some(before) = before else { return "it had no trace yet".into() };
    if before.len() != now.len() {
        return format!("{} arguments followed {}", now.len(), before.len());
    }
    let changed = before.iter().zip(now).enumerate().find(|(_, (before, now))| before != now);
    match changed {
        Some((index, (before, now))) => {
            let name = names.get(index).map_or("?", String::as_str);
            format!("argument `{name}` was {now}, after {before}")
        }
        None => "an object it was traced for had been dropped".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: 31, 93, b31
    #[test]
    fn five_traces_in_ten_calls_warn_twice_at_most() {
        let mut detector = Detector::default();
        let every = |step: usize, detector: &mut Detector| {
            (0..40).step_by(step).filter(|&call| detector.traced("f", call, "c").is_some()).count()
        };
        assert_eq!(every(1, &mut detector), 2);
        let mut detector = Detector::default();
        assert_eq!(every(2, &mut detector), 2);
        let mut detector = Detector::default();
        assert_eq!(every(3, &mut detector), 0);
    }
}

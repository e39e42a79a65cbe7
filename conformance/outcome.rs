//! Outcome of a case.

use ferroflow::ir::Code;
use serde_json::{Value, json};
use std::panic;

/// Outcome of a case.
#[derive(Debug)]
pub(crate) enum CaseOutcome {
    /// It ended as recorded.
    Passed,
    /// It did not, and why.
    Failed(String),
    /// It needs something that is not there, by name.
    Unsupported(String),
}

impl CaseOutcome {
    /// Outcome of `case`; a panic or an error of the case itself is a failure.
    pub(crate) fn of(
        case: impl FnOnce() -> anyhow::Result<CaseOutcome> + panic::UnwindSafe,
    ) -> CaseOutcome {
        let outcome = panic::catch_unwind(case);
        let outcome = outcome.unwrap_or_else(|_| Ok(CaseOutcome::Failed("panic".into())));
        outcome.unwrap_or_else(|error| CaseOutcome::Failed(format!("{error:#}")))
    }

    /// Outcome of an error that was not recorded.
    pub(crate) fn of_error(code: Code, message: String) -> CaseOutcome {
        match code {
            Code::Unimplemented => CaseOutcome::Unsupported(message),
            _ => CaseOutcome::Failed(message),
        }
    }

    /// Adds status and reason to a result.
    pub(crate) fn report(self, mut result: Value) -> Value {
        let (status, why) = match self {
            CaseOutcome::Passed => ("pass", String::new()),
            CaseOutcome::Failed(why) => ("fail", why),
            CaseOutcome::Unsupported(why) => ("unsupported", why),
        };
        result["status"] = json!(status);
        result["why"] = json!(why);
        result
    }
}

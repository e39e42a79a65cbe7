//! Hook that fetches tensors at the end.

use crate::{error::Result, monitored::hook::SessionRunHook, session::Session};
use ferroflow_runtime::EagerTensor;

/// Fetches tensors when the session ends.
#[derive(Debug, Clone, Default)]
pub struct FinalOpsHook {
    fetches: Vec<String>,
    feeds: Vec<(String, EagerTensor)>,
    values: Option<Vec<EagerTensor>>,
}

impl FinalOpsHook {
    /// A hook that fetches these tensors.
    pub fn new<N: Into<String>>(fetches: impl IntoIterator<Item = N>) -> FinalOpsHook {
        let fetches = fetches.into_iter().map(Into::into).collect();
        FinalOpsHook { fetches, ..FinalOpsHook::default() }
    }

    /// Feeds these values meanwhile.
    #[must_use]
    pub fn feeding(self, feeds: Vec<(String, EagerTensor)>) -> FinalOpsHook {
        FinalOpsHook { feeds, ..self }
    }

    /// The values, once the session has ended.
    pub fn values(&self) -> Option<&[EagerTensor]> {
        self.values.as_deref()
    }
}

impl SessionRunHook for FinalOpsHook {
    fn end(&mut self, session: &Session) -> Result<()> {
        let fetches: Vec<&str> = self.fetches.iter().map(String::as_str).collect();
        let feeds = self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone()));
        self.values = Some(session.run(&feeds.collect::<Vec<_>>(), &fetches, &[])?);
        Ok(())
    }
}

//! Hook that feeds tensors.

use crate::{
    error::Result,
    monitored::hook::{SessionRunArgs, SessionRunContext, SessionRunHook},
};
use ferroflow_runtime::EagerTensor;
use std::fmt;

/// Feeds the values that a function returns before each run.
pub struct FeedFnHook<F>(F);

impl<F> fmt::Debug for FeedFnHook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedFnHook").finish_non_exhaustive()
    }
}

impl<F: FnMut() -> Result<Vec<(String, EagerTensor)>>> FeedFnHook<F> {
    /// A hook with a function of names and values.
    pub fn new(feed_fn: F) -> FeedFnHook<F> {
        FeedFnHook(feed_fn)
    }
}

impl<F: FnMut() -> Result<Vec<(String, EagerTensor)>>> SessionRunHook for FeedFnHook<F> {
    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        Ok(SessionRunArgs::feeding((self.0)()?))
    }
}

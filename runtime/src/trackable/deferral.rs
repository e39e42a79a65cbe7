//! Values that wait for objects which do not exist yet.

use super::{ObjectGraph, Trackable};
use crate::{error::Result, sync::Mutex};
use std::{fmt, sync::Arc};

/// Where a restored checkpoint waits for what an object makes later: an optimizer makes its slot
/// variables when it first steps. The object tells it in its description
/// ([`Description::deferral`](super::Description::deferral)), and calls
/// [`appeared`](Deferral::appeared) when there is more of it. Clones are the same place.
#[derive(Clone, Default)]
pub struct Deferral(Arc<Mutex<Option<Arc<dyn DeferredRestore>>>>);

/// Values of a checkpoint for an object and what it leads to.
pub trait DeferredRestore: Send + Sync {
    /// Assigns the objects of a graph, whose root the values wait for, those that they have not
    /// taken over yet. Whether more may be waiting.
    ///
    /// # Errors
    ///
    /// When a value does not fit or cannot be read.
    fn restore(&self, graph: &ObjectGraph) -> Result<bool>;
}

impl Deferral {
    /// Waits with these values in place of others; with none if there are none.
    pub fn wait_with(&self, values: Option<Arc<dyn DeferredRestore>>) {
        *self.0.lock() = values;
    }

    /// Assigns the object, which leads to more than before, the values that wait.
    ///
    /// # Errors
    ///
    /// When a value does not fit or cannot be read.
    pub fn appeared(&self, object: &dyn Trackable) -> Result<()> {
        let Some(values) = self.0.lock().clone() else { return Ok(()) };
        if !values.restore(&ObjectGraph::of(object)?)? {
            self.wait_with(None);
        }
        Ok(())
    }
}

impl fmt::Debug for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.lock().is_some() { "<values wait>" } else { "<nothing waits>" })
    }
}

//! Updates of slices of a stack, stacked again, become updates of the stack.
//!
//! A cache of keys and values is one tensor of all layers. A step of a generating loop takes the slice of
//! a layer, puts the new keys into it, and stacks the slices of all layers again: as it is written, each
//! step copies the cache twice (KerasHub's `generate` does so). Here the updates are made on the stack, one
//! after the other, as values that a plan keeps in one place; readers of an updated slice read it from the
//! stack as it then is.
//!
//! Only where all that reads a slice has run before the next update does the stack stay in its place, so
//! other graphs are left as they are. Calls are on the host; devices copy what they update.

mod chain;
mod picks;
mod rewrite;
#[cfg(test)]
mod tests;

use super::{rebuild::rebuild, specialize::Specialized};
use crate::error::Result;
use rewrite::Rewrite;

/// Updates stacks where slices of them were updated and stacked.
///
/// # Errors
///
/// None on a well-formed body.
pub fn update_stacks(body: &mut Specialized) -> Result<()> {
    let chains = chain::find(body);
    if chains.is_empty() {
        return Ok(());
    }
    let mut rewrite = Rewrite::of(&chains);
    rebuild(body, |rebuilt, source, id, _| rewrite.add(rebuilt, source, id))
}

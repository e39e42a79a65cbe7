//! Slices of a stack: one index of some of its axes.

use smallvec::SmallVec;

/// For each axis of a stack the index that a slice has of it; none where the slice has all of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Picks(SmallVec<[Option<usize>; 6]>);

impl Picks {
    /// The whole of a stack.
    pub(super) fn whole(rank: usize) -> Picks {
        Picks(SmallVec::from_elem(None, rank))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// A slice of this one: an index of one of its axes.
    pub(super) fn picked(&self, axis: usize, index: usize) -> Option<Picks> {
        let mut picks = self.clone();
        *picks.0.iter_mut().filter(|pick| pick.is_none()).nth(axis)? = Some(index);
        Some(picks)
    }

    /// The slice of which these slices are, in this order, all that a new axis of the stack's `sizes` holds.
    pub(super) fn stacked(slices: &[&Picks], axis: usize, sizes: &[usize]) -> Option<Picks> {
        let first = slices.first()?;
        (0..first.0.len()).find_map(|position| {
            let mut stacked = (*first).clone();
            stacked.0[position] = None;
            let own_axis = stacked.0[..position].iter().filter(|pick| pick.is_none()).count();
            let is_all = own_axis == axis
                && slices.len() == sizes[position]
                && slices
                    .iter()
                    .enumerate()
                    .all(|(index, slice)| stacked.picked(axis, index).as_ref() == Some(*slice));
            is_all.then_some(stacked)
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<usize>> {
        self.0.iter().copied()
    }

    /// Bits of a mask over the axes of the slice, as bits over those of the stack.
    pub(super) fn spread_mask(&self, mask: i64) -> i64 {
        let free = self.iter().enumerate().filter(|(_, pick)| pick.is_none());
        free.enumerate().map(|(own, (axis, _))| (mask >> own & 1) << axis).sum()
    }

    /// The axes of the stack that have one index, as bits.
    pub(super) fn mask(&self) -> i64 {
        self.iter().enumerate().map(|(axis, pick)| i64::from(pick.is_some()) << axis).sum()
    }
}

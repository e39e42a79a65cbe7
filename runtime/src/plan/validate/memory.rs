//! Symbolic memory: which value each range of the arena and each slot holds.

use super::{super::action::ValueLocation, values::SymbolId};
use ferroflow_kernels::frame::ArenaRange;
use std::collections::BTreeMap;

/// A value in memory, from its byte `start` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MemoryContent {
    pub(super) number: SymbolId,
    pub(super) start: usize,
}

/// A range of the arena, up to `end`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    end: usize,
    content: MemoryContent,
}

/// The memory of a frame. What is not there holds nothing that may be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SymbolicMemory {
    /// By the first byte; segments do not overlap.
    arena: BTreeMap<usize, Segment>,
    slots: Vec<Option<MemoryContent>>,
}

impl SymbolicMemory {
    pub(super) fn new(n_slots: usize) -> SymbolicMemory {
        SymbolicMemory { arena: BTreeMap::new(), slots: vec![None; n_slots] }
    }

    pub(super) fn write(&mut self, place: &ValueLocation, content: MemoryContent) {
        match place {
            ValueLocation::Arena(region) => self.write_arena(region, Some(content)),
            ValueLocation::Slot(slot, _) => self.slots[*slot] = Some(content),
        }
    }

    pub(super) fn forget(&mut self, place: &ValueLocation) {
        match place {
            ValueLocation::Arena(region) => self.write_arena(region, None),
            ValueLocation::Slot(slot, _) => self.slots[*slot] = None,
        }
    }

    /// Forgets a place, but for the bytes of the arena in `kept`.
    pub(super) fn forget_all_but(&mut self, place: &ValueLocation, kept: &[&ArenaRange]) {
        let ValueLocation::Arena(region) = place else { return self.forget(place) };
        let mut inside: Vec<&ArenaRange> =
            kept.iter().copied().filter(|k| k.start < region.end && k.end > region.start).collect();
        inside.sort_by_key(|region| region.start);
        let mut at = region.start;
        for kept in inside {
            self.write_arena(&(at..kept.start.max(at)), None);
            at = at.max(kept.end);
        }
        self.write_arena(&(at..region.end.max(at)), None);
    }

    /// Content of a location, if it is a single value throughout.
    pub(super) fn read(&self, place: &ValueLocation) -> Option<MemoryContent> {
        match place {
            ValueLocation::Arena(region) => self.read_arena(region),
            ValueLocation::Slot(slot, None) => self.slots[*slot],
            ValueLocation::Slot(slot, Some(bytes)) => self.slots[*slot].map(|content| {
                MemoryContent { number: content.number, start: content.start + bytes.start }
            }),
        }
    }

    fn read_arena(&self, region: &ArenaRange) -> Option<MemoryContent> {
        let (&start, first) = self.arena.range(..=region.start).next_back()?;
        if first.end <= region.start {
            return None;
        }
        let number = first.content.number;
        let origin = first.content.start + (region.start - start);
        let mut at = first.end;
        while at < region.end {
            let next = self.arena.get(&at)?;
            let expected = origin + (at - region.start);
            if next.content.number != number || next.content.start != expected {
                return None;
            }
            at = next.end;
        }
        Some(MemoryContent { number, start: origin })
    }

    fn write_arena(&mut self, region: &ArenaRange, content: Option<MemoryContent>) {
        if region.is_empty() {
            return;
        }
        self.split(region.start);
        self.split(region.end);
        let inside: Vec<usize> = self.arena.range(region.clone()).map(|(&at, _)| at).collect();
        for at in inside {
            self.arena.remove(&at);
        }
        if let Some(content) = content {
            self.arena.insert(region.start, Segment { end: region.end, content });
        }
    }

    /// Makes a segment begin at a byte, if one covers it.
    fn split(&mut self, at: usize) {
        let Some((&start, segment)) = self.arena.range(..at).next_back() else { return };
        let Segment { end, content } = *segment;
        if end <= at {
            return;
        }
        self.arena.insert(start, Segment { end: at, content });
        let content = MemoryContent { number: content.number, start: content.start + (at - start) };
        self.arena.insert(at, Segment { end, content });
    }

    /// Keeps only what `other` holds as well.
    pub(super) fn meet(&mut self, other: &SymbolicMemory) {
        let agree = |own: &mut Option<MemoryContent>, other: &Option<MemoryContent>| {
            if own != other {
                *own = None;
            }
        };
        self.slots.iter_mut().zip(&other.slots).for_each(|(own, other)| agree(own, other));
        let own = std::mem::take(&mut self.arena);
        for (start, segment) in own {
            self.common(start, segment, other);
        }
    }

    /// Adds the parts of a segment that `other` holds as well.
    fn common(&mut self, start: usize, segment: Segment, other: &SymbolicMemory) {
        let before = other.arena.range(..start).next_back();
        let within = other.arena.range(start..segment.end);
        for (&at, theirs) in before.into_iter().chain(within) {
            let (from, to) = (start.max(at), segment.end.min(theirs.end));
            if from >= to || segment.content.number != theirs.content.number {
                continue;
            }
            let own = segment.content.start + (from - start);
            if own == theirs.content.start + (from - at) {
                let content = MemoryContent { number: segment.content.number, start: own };
                self.arena.insert(from, Segment { end: to, content });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::values::ValueNumbering, *};

    #[test]
    fn reads_find_windows_of_what_was_written() {
        let mut numbers = ValueNumbering::default();
        let (a, b) = (numbers.fresh(), numbers.fresh());
        let mut memory = SymbolicMemory::new(0);
        memory.write(&ValueLocation::Arena(0..16), MemoryContent { number: a, start: 0 });
        let window = |memory: &SymbolicMemory, region| memory.read(&ValueLocation::Arena(region));
        assert_eq!(window(&memory, 4..8), Some(MemoryContent { number: a, start: 4 }));
        memory.write(&ValueLocation::Arena(8..12), MemoryContent { number: b, start: 0 });
        assert_eq!(window(&memory, 0..8), Some(MemoryContent { number: a, start: 0 }));
        assert_eq!(window(&memory, 12..16), Some(MemoryContent { number: a, start: 12 }));
        assert_eq!(window(&memory, 4..16), None);
        let mut other = SymbolicMemory::new(0);
        other.write(&ValueLocation::Arena(4..16), MemoryContent { number: a, start: 4 });
        memory.meet(&other);
        assert_eq!(window(&memory, 4..8), Some(MemoryContent { number: a, start: 4 }));
        assert_eq!(window(&memory, 0..4), None);
        assert_eq!(window(&memory, 8..12), None);
    }
}

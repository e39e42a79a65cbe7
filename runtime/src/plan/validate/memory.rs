//! Symbolic memory: which value each range of the arena and each slot holds.

use super::{super::action::ValueLocation, values::SymbolId};
use ferroflow_kernels::frame::ArenaRange;
use std::{collections::BTreeMap, sync::Arc};

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
    arena: Segments,
    slots: Slots,
}

/// Contents of slots. Copies share all that neither of them changes, as each arm of a branch begins with a
/// copy of all.
#[derive(Debug, Clone, PartialEq)]
struct Slots(Vec<Arc<[Option<MemoryContent>; Slots::PART]>>);

impl Slots {
    const PART: usize = 64;

    fn new(n: usize) -> Slots {
        let empty = Arc::new([None; Slots::PART]);
        Slots(vec![empty; n.div_ceil(Slots::PART)])
    }

    fn get(&self, slot: usize) -> Option<MemoryContent> {
        self.0[slot / Slots::PART][slot % Slots::PART]
    }

    fn set(&mut self, slot: usize, content: Option<MemoryContent>) {
        Arc::make_mut(&mut self.0[slot / Slots::PART])[slot % Slots::PART] = content;
    }

    /// Keeps only what `other` holds as well.
    fn meet(&mut self, other: &Slots) {
        let parts = self.0.iter_mut().zip(&other.0);
        for (own, other) in parts.filter(|(own, other)| !Arc::ptr_eq(own, other)) {
            let slots = Arc::make_mut(own).iter_mut().zip(other.iter());
            slots.filter(|(own, other)| own != other).for_each(|(own, _)| *own = None);
        }
    }
}

impl SymbolicMemory {
    /// Memory of so many bytes and slots.
    pub(super) fn new(bytes: usize, n_slots: usize) -> SymbolicMemory {
        SymbolicMemory { arena: Segments::new(bytes), slots: Slots::new(n_slots) }
    }

    pub(super) fn write(&mut self, place: &ValueLocation, content: MemoryContent) {
        match place {
            ValueLocation::Arena(region) => self.arena.write(region, Some(content)),
            ValueLocation::Slot(slot, _) => self.slots.set(*slot, Some(content)),
        }
    }

    pub(super) fn forget(&mut self, place: &ValueLocation) {
        match place {
            ValueLocation::Arena(region) => self.arena.write(region, None),
            ValueLocation::Slot(slot, _) => self.slots.set(*slot, None),
        }
    }

    /// Forgets a location, but for the bytes of the arena in `kept`.
    pub(super) fn forget_all_but(&mut self, place: &ValueLocation, kept: &[&ArenaRange]) {
        let ValueLocation::Arena(region) = place else { return self.forget(place) };
        let mut inside: Vec<&ArenaRange> =
            kept.iter().copied().filter(|k| k.start < region.end && k.end > region.start).collect();
        inside.sort_by_key(|region| region.start);
        let mut at = region.start;
        for kept in inside {
            self.arena.write(&(at..kept.start.max(at)), None);
            at = at.max(kept.end);
        }
        self.arena.write(&(at..region.end.max(at)), None);
    }

    /// Content of a location, if it is a single value throughout.
    pub(super) fn read(&self, place: &ValueLocation) -> Option<MemoryContent> {
        match place {
            ValueLocation::Arena(region) => self.arena.read(region),
            ValueLocation::Slot(slot, None) => self.slots.get(*slot),
            ValueLocation::Slot(slot, Some(bytes)) => self.slots.get(*slot).map(|content| {
                MemoryContent { number: content.number, start: content.start + bytes.start }
            }),
        }
    }

    /// Keeps only what `other` holds as well.
    pub(super) fn meet(&mut self, other: &SymbolicMemory) {
        self.slots.meet(&other.slots);
        self.arena.meet(&other.arena);
    }
}

/// Contents of the arena, in parts of as many bytes each, which copies share as those of
/// [`Slots`]. Segments end where their part does.
#[derive(Debug, Clone, PartialEq)]
struct Segments {
    /// The bytes of a part.
    width: usize,
    parts: Vec<Arc<SegmentMap>>,
}

/// Segments by the first byte; they do not overlap.
type SegmentMap = BTreeMap<usize, Segment>;

impl Segments {
    const LEAST_WIDTH: usize = 1 << 12;
    const MOST_PARTS: usize = 1 << 8;

    fn new(bytes: usize) -> Segments {
        let width = bytes.div_ceil(Segments::MOST_PARTS).max(Segments::LEAST_WIDTH);
        let empty = Arc::default();
        Segments { width, parts: vec![empty; bytes / width + 1] }
    }

    /// The segment with a byte, and where it begins.
    fn at(&self, byte: usize) -> Option<(usize, Segment)> {
        let (&start, segment) = self.parts.get(byte / self.width)?.range(..=byte).next_back()?;
        (segment.end > byte).then_some((start, *segment))
    }

    fn read(&self, region: &ArenaRange) -> Option<MemoryContent> {
        let (start, first) = self.at(region.start)?;
        let number = first.content.number;
        let origin = first.content.start + (region.start - start);
        let mut at = first.end;
        while at < region.end {
            let (start, next) = self.at(at)?;
            let expected = origin + (at - region.start);
            if next.content.number != number || next.content.start + (at - start) != expected {
                return None;
            }
            at = next.end;
        }
        Some(MemoryContent { number, start: origin })
    }

    fn write(&mut self, region: &ArenaRange, content: Option<MemoryContent>) {
        let mut start = region.start;
        while start < region.end {
            let part = start / self.width;
            let end = region.end.min((part + 1) * self.width);
            let segment = content.map(|MemoryContent { number, start: of_region }| {
                let content = MemoryContent { number, start: of_region + (start - region.start) };
                Segment { end, content }
            });
            // What lies outside holds nothing that may be read.
            let Some(part) = self.parts.get_mut(part) else { return };
            write_segment(Arc::make_mut(part), start..end, segment);
            start = end;
        }
    }

    /// Keeps only what `other` holds as well.
    fn meet(&mut self, other: &Segments) {
        let parts = self.parts.iter_mut().zip(&other.parts);
        for (own, other) in parts.filter(|(own, other)| !Arc::ptr_eq(own, other)) {
            let mut common = SegmentMap::new();
            own.iter()
                .for_each(|(&start, segment)| meet_segment(&mut common, start, segment, other));
            *own = Arc::new(common);
        }
    }
}

fn write_segment(map: &mut SegmentMap, region: ArenaRange, segment: Option<Segment>) {
    split(map, region.start);
    split(map, region.end);
    let inside: Vec<usize> = map.range(region.clone()).map(|(&at, _)| at).collect();
    for at in inside {
        map.remove(&at);
    }
    if let Some(segment) = segment {
        map.insert(region.start, segment);
    }
}

/// Makes a segment begin at a byte, if one covers it.
fn split(map: &mut SegmentMap, at: usize) {
    let Some((&start, segment)) = map.range(..at).next_back() else { return };
    let Segment { end, content } = *segment;
    if end <= at {
        return;
    }
    map.insert(start, Segment { end: at, content });
    let content = MemoryContent { number: content.number, start: content.start + (at - start) };
    map.insert(at, Segment { end, content });
}

/// Adds the parts of a segment that `other` holds as well.
fn meet_segment(common: &mut SegmentMap, start: usize, segment: &Segment, other: &SegmentMap) {
    let before = other.range(..start).next_back();
    let within = other.range(start..segment.end);
    for (&at, theirs) in before.into_iter().chain(within) {
        let (from, to) = (start.max(at), segment.end.min(theirs.end));
        if from >= to || segment.content.number != theirs.content.number {
            continue;
        }
        let own = segment.content.start + (from - start);
        if own == theirs.content.start + (from - at) {
            let content = MemoryContent { number: segment.content.number, start: own };
            common.insert(from, Segment { end: to, content });
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
        let mut memory = SymbolicMemory::new(16, 0);
        memory.write(&ValueLocation::Arena(0..16), MemoryContent { number: a, start: 0 });
        let window = |memory: &SymbolicMemory, region| memory.read(&ValueLocation::Arena(region));
        assert_eq!(window(&memory, 4..8), Some(MemoryContent { number: a, start: 4 }));
        memory.write(&ValueLocation::Arena(8..12), MemoryContent { number: b, start: 0 });
        assert_eq!(window(&memory, 0..8), Some(MemoryContent { number: a, start: 0 }));
        assert_eq!(window(&memory, 12..16), Some(MemoryContent { number: a, start: 12 }));
        assert_eq!(window(&memory, 4..16), None);
        let mut other = SymbolicMemory::new(16, 0);
        other.write(&ValueLocation::Arena(4..16), MemoryContent { number: a, start: 4 });
        memory.meet(&other);
        assert_eq!(window(&memory, 4..8), Some(MemoryContent { number: a, start: 4 }));
        assert_eq!(window(&memory, 0..4), None);
        assert_eq!(window(&memory, 8..12), None);
    }

    #[test]
    fn values_may_be_stored_in_several_parts() {
        let mut numbers = ValueNumbering::default();
        let (a, b) = (numbers.fresh(), numbers.fresh());
        let mut memory = SymbolicMemory::new(3 * Segments::LEAST_WIDTH, 100);
        let all = ValueLocation::Arena(10..3 * Segments::LEAST_WIDTH);
        memory.write(&all, MemoryContent { number: a, start: 0 });
        assert_eq!(memory.read(&all), Some(MemoryContent { number: a, start: 0 }));
        let (before, at) = (memory.clone(), 2 * Segments::LEAST_WIDTH);
        let last = ValueLocation::Arena(at..at + 4);
        memory.write(&last, MemoryContent { number: b, start: 0 });
        memory.write(&ValueLocation::Slot(70, None), MemoryContent { number: b, start: 0 });
        assert_eq!(
            (memory.read(&all), before.read(&last)),
            (None, Some(MemoryContent { number: a, start: at - 10 }))
        );
        memory.meet(&before);
        assert_eq!((memory.read(&last), memory.read(&ValueLocation::Slot(70, None))), (None, None));
        let first = ValueLocation::Arena(10..at);
        assert_eq!(memory.read(&first), Some(MemoryContent { number: a, start: 0 }));
    }
}

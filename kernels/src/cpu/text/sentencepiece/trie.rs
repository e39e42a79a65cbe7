//! A double-array trie of the pieces, built from them.

/// A trie from byte strings to numbers.
#[derive(Debug, Clone)]
pub(super) struct PieceTrie {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The children of a node are at this position, combined with their bytes by exclusive or.
    base: u32,
    /// The parent; [`FREE`] for a position that no node has.
    parent: u32,
    /// The number of the string that ends here, or [`NONE`].
    value: u32,
}

const FREE: u32 = u32::MAX;
const NONE: u32 = u32::MAX;
const BLOCK: usize = 256;
/// Number of offsets that are tried for the children of a node before new ones are added.
const N_TRIES: usize = 32;

impl PieceTrie {
    /// A trie of strings, of which none is empty and none comes twice, with their numbers.
    pub(super) fn new(mut entries: Vec<(&[u8], u32)>) -> PieceTrie {
        entries.sort_unstable();
        let root = Node { base: 0, parent: 0, value: NONE };
        let mut builder = Builder { nodes: vec![root], first_free: 1 };
        builder.grow();
        // Ranges of entries that share the way to a node, and its depth.
        let mut open = vec![(0u32, 0..entries.len(), 0usize)];
        while let Some((node, range, depth)) = open.pop() {
            let mut start = range.start;
            if entries[range.clone()].first().is_some_and(|(text, _)| text.len() == depth) {
                builder.nodes[node as usize].value = entries[start].1;
                start += 1;
            }
            let groups = children(&entries, start..range.end, depth);
            if groups.is_empty() {
                continue;
            }
            let base = builder.find_base(&groups);
            builder.nodes[node as usize].base = base;
            for (byte, range) in groups {
                let child = base ^ u32::from(byte);
                builder.nodes[child as usize].parent = node;
                open.push((child, range, depth + 1));
            }
        }
        PieceTrie { nodes: builder.nodes }
    }

    /// The child of a node that a byte leads to. The root is node 0.
    #[inline]
    pub(super) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let child = self.nodes[node as usize].base ^ u32::from(byte);
        let found = self.nodes.get(child as usize)?;
        // No node leads to the root, although its parent is said to be itself.
        (found.parent == node && child != 0).then_some(child)
    }

    /// The number of the string that leads to a node.
    #[inline]
    pub(super) fn value(&self, node: u32) -> Option<u32> {
        Some(self.nodes[node as usize].value).filter(|value| *value != NONE)
    }

    /// The number of a string.
    pub(super) fn get(&self, text: &[u8]) -> Option<u32> {
        self.value(text.iter().try_fold(0, |node, byte| self.child(node, *byte))?)
    }

    /// Calls `found` with the length and the number of each string that a text begins with, the
    /// shortest first.
    #[inline]
    pub(super) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut node = 0;
        for (place, byte) in text.iter().enumerate() {
            let Some(child) = self.child(node, *byte) else { return };
            node = child;
            if let Some(value) = self.value(node) {
                found(place + 1, value);
            }
        }
    }
}

type Group = (u8, std::ops::Range<usize>);

/// Sorted entries by the byte at a depth that all of them reach.
fn children(entries: &[(&[u8], u32)], range: std::ops::Range<usize>, depth: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for place in range {
        let byte = entries[place].0[depth];
        match groups.last_mut() {
            Some((last, range)) if *last == byte => range.end = place + 1,
            _ => groups.push((byte, place..place + 1)),
        }
    }
    groups
}

struct Builder {
    nodes: Vec<Node>,
    /// No position before it is free.
    first_free: usize,
}

impl Builder {
    fn grow(&mut self) {
        let free = Node { base: 0, parent: FREE, value: NONE };
        self.nodes.resize((self.nodes.len() / BLOCK + 1) * BLOCK, free);
    }

    /// Finds a base for children, and takes their positions.
    fn find_base(&mut self, groups: &[Group]) -> u32 {
        let is_free = |builder: &Builder, place: usize| builder.nodes[place].parent == FREE;
        while self.first_free < self.nodes.len() && !is_free(self, self.first_free) {
            self.first_free += 1;
        }
        let first = usize::from(groups[0].0);
        let mut tried = 0;
        for place in self.first_free..self.nodes.len() {
            if !is_free(self, place) {
                continue;
            }
            let base = place ^ first;
            if groups.iter().all(|(byte, _)| is_free(self, base ^ usize::from(*byte))) {
                return self.take(base, groups);
            }
            tried += 1;
            if tried >= N_TRIES {
                // Places that are hard to fill are left, so that this stays fast.
                self.first_free = self.first_free.max(place.saturating_sub(16 * BLOCK));
                break;
            }
        }
        let base = self.nodes.len();
        self.grow();
        self.take(base, groups)
    }

    fn take(&mut self, base: usize, groups: &[Group]) -> u32 {
        for (byte, _) in groups {
            self.nodes[base ^ usize::from(*byte)].parent = 0;
        }
        base as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_are_found_again(
            texts in proptest::collection::btree_set(
                proptest::collection::vec(prop_oneof![0..4u8, any::<u8>()], 1..6), 0..200,
            ),
            other in proptest::collection::vec(0..4u8, 1..6),
        ) {
            let numbers = texts.iter().map(Vec::as_slice).zip(0..);
            let trie = PieceTrie::new(numbers.clone().collect());
            for (text, number) in numbers {
                prop_assert_eq!(trie.get(text), Some(number));
            }
            prop_assert_eq!(trie.get(&other).is_some(), texts.contains(&other));
        }
    }
}

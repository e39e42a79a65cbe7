//! Double-array tries as the library darts-clone lays them out: an array of 32-bit units.
//!
//! Bits 0 to 7 of a unit are the byte that leads to it, bit 8 tells that a value belongs to it,
//! bits 10 to 30 (times 256 with bit 9) lead to its children. The value is the child of byte 0; it
//! has bit 31 set.

/// A trie from byte strings to numbers below 2^31.
#[derive(Debug, Clone, Default)]
pub(super) struct Trie(Box<[u32]>);

/// A node, and what its unit says.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrieNode {
    pub(super) id: u32,
    unit: u32,
}

fn offset(unit: u32) -> u32 {
    (unit >> 10) << ((unit & 0x200) >> 6)
}

impl Trie {
    /// The trie of little-endian units.
    pub(super) fn new(units: &[[u8; 4]]) -> Trie {
        Trie(units.iter().map(|unit| u32::from_le_bytes(*unit)).collect())
    }

    /// The node of the empty string, if there is any.
    pub(super) fn root(&self) -> Option<TrieNode> {
        self.node(0)
    }

    /// A node by its number.
    pub(super) fn node(&self, id: u32) -> Option<TrieNode> {
        self.0.get(id as usize).map(|unit| TrieNode { id, unit: *unit })
    }

    /// The child of a node that a byte leads to.
    #[inline]
    pub(super) fn child(&self, node: TrieNode, byte: u8) -> Option<TrieNode> {
        let id = node.id ^ offset(node.unit) ^ u32::from(byte);
        let unit = *self.0.get(id as usize)?;
        (unit & 0x8000_00ff == u32::from(byte)).then_some(TrieNode { id, unit })
    }

    /// The node that bytes lead to.
    #[inline]
    pub(super) fn descend(&self, node: TrieNode, bytes: &[u8]) -> Option<TrieNode> {
        bytes.iter().try_fold(node, |node, byte| self.child(node, *byte))
    }

    /// The value of a node.
    #[inline]
    pub(super) fn value(&self, node: TrieNode) -> Option<u32> {
        if node.unit & 0x100 == 0 {
            return None;
        }
        let unit = self.0.get((node.id ^ offset(node.unit)) as usize)?;
        Some(unit & 0x7fff_ffff)
    }

    /// Calls `found` with the length and the value of each beginning of a text that is in the trie,
    /// the shortest first.
    #[inline]
    pub(super) fn prefixes(&self, text: &[u8], mut found: impl FnMut(usize, u32)) {
        let Some(mut node) = self.root() else { return };
        for (place, byte) in text.iter().enumerate() {
            let Some(next) = self.child(node, *byte) else { return };
            node = next;
            if let Some(value) = self.value(node) {
                found(place + 1, value);
            }
        }
    }

    /// The length and the value of the longest beginning of a text that is in the trie.
    pub(super) fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        let mut longest = None;
        self.prefixes(text, |length, value| longest = Some((length, value)));
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trie of `a` with value 5.
    fn trie() -> Trie {
        let mut units = vec![0u32; 512];
        units[0] = 256 << 10;
        units[256 ^ usize::from(b'a')] = u32::from(b'a') | 0x100 | 1 << 10;
        units[256 ^ usize::from(b'a') ^ 1] = 0x8000_0005;
        Trie(units.into())
    }

    #[test]
    fn prefixes_are_found() {
        assert_eq!(trie().longest(b"ab"), Some((1, 5)));
        assert_eq!(trie().longest(b"b"), None);
        assert_eq!(Trie::default().longest(b"a"), None);
    }
}

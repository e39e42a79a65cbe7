//! The buffers of a program, and the addresses they have while it is planned.
//!
//! Every buffer has a range of addresses of its own. **Invariant:** ranges do not touch, so that a
//! region belongs to one buffer even if it is empty.

use crate::error::Result;
use ferroflow_ir::memory::ALIGNMENT;
use ferroflow_kernels::frame::ArenaRange;

/// Buffers in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    starts: Vec<usize>,
    sizes: Vec<usize>,
}

impl Buffers {
    /// Adds a buffer; returns its addresses.
    ///
    /// # Errors
    ///
    /// When there are no addresses left.
    pub(super) fn add(&mut self, bytes: usize) -> Result<ArenaRange> {
        let start = match (self.starts.last(), self.sizes.last()) {
            (Some(start), Some(size)) => start + size + ALIGNMENT,
            _ => 0,
        };
        let end = start.checked_add(bytes).filter(|end| end.checked_add(ALIGNMENT).is_some());
        let end = end.ok_or_else(|| ferroflow_ir::Error::Size {
            what: "the memory of a function".into(),
            size: bytes.to_string(),
        })?;
        self.starts.push(start);
        self.sizes.push(bytes);
        Ok(start..end)
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of a buffer.
    pub(super) fn size(&self, buffer: usize) -> usize {
        self.sizes[buffer]
    }

    /// The buffer at some addresses, and the bytes of it that they are.
    pub(super) fn find(&self, region: &ArenaRange) -> (usize, ArenaRange) {
        let buffer = self.starts.partition_point(|&start| start <= region.start) - 1;
        let start = self.starts[buffer];
        (buffer, region.start - start..region.end - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_belong_to_one_buffer() {
        let mut buffers = Buffers::default();
        let regions = [8, 0, 0, 100].map(|bytes| buffers.add(bytes).unwrap());
        for (index, region) in regions.iter().enumerate() {
            assert_eq!(buffers.find(region), (index, 0..region.len()));
            let end = region.end..region.end;
            assert_eq!(buffers.find(&end), (index, region.len()..region.len()));
        }
        assert!(buffers.add(usize::MAX - 100).is_err());
        assert_eq!(buffers.len(), 4);
    }
}

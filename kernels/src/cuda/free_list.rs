//! Free memory of a device, kept for what is allocated next.
//!
//! Runs that follow each other find their inputs and outputs where earlier ones had them only if
//! memory of a size returns in a fixed order. The driver's pool promises no order, and its answers
//! depend on the progress of the device. So each size has a stack here: the memory freed last is
//! allocated first. The order of the main queue makes that safe: the next owner uses memory after all
//! work of the last one.

use cudarc::driver::sys::CUdeviceptr;
use parking_lot::Mutex;

/// Sizes are multiples of this, in bytes.
const STEP: usize = 512;

/// The free memory of a device.
#[derive(Debug)]
pub(super) struct FreeList {
    /// Bytes that are kept at most.
    limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    stacks: Vec<Stack>,
    bytes: usize,
    /// Number of takes and puts so far.
    clock: u64,
}

/// Free memory of one size.
#[derive(Debug)]
struct Stack {
    size: usize,
    /// Number of the last use of the size.
    used: u64,
    free: Vec<CUdeviceptr>,
}

/// The bytes that memory of `len` really has: eight sizes for each doubling, so that at most an
/// eighth is wasted and similar sizes serve each other.
pub(super) fn size_of(len: usize) -> usize {
    let step = (len.next_power_of_two() / 16).max(STEP);
    len.max(1).div_ceil(step) * step
}

impl FreeList {
    pub(super) fn new(limit: usize) -> FreeList {
        FreeList { limit, kept: Mutex::default() }
    }

    /// Free memory of a size, if there is some.
    pub(super) fn take(&self, size: usize) -> Option<CUdeviceptr> {
        let mut kept = self.kept.lock();
        let found = kept.stack(size).free.pop()?;
        kept.bytes -= size;
        Some(found)
    }

    /// Keeps memory of a size; returns what has to go for it, of the sizes not used for longest.
    pub(super) fn put(&self, at: CUdeviceptr, size: usize) -> Vec<CUdeviceptr> {
        if size > self.limit {
            return vec![at];
        }
        let mut kept = self.kept.lock();
        let mut gone = Vec::new();
        while kept.bytes + size > self.limit {
            let oldest = kept.stacks.iter_mut().filter(|stack| !stack.free.is_empty());
            let Some(oldest) = oldest.min_by_key(|stack| stack.used) else { break };
            let (evicted, size) = (oldest.free.pop(), oldest.size);
            gone.extend(evicted);
            kept.bytes -= size;
        }
        kept.stack(size).free.push(at);
        kept.bytes += size;
        gone
    }

    /// Everything that is kept, which is no longer.
    pub(super) fn drain(&self) -> Vec<CUdeviceptr> {
        let kept = std::mem::take(&mut *self.kept.lock());
        kept.stacks.into_iter().flat_map(|stack| stack.free).collect()
    }
}

impl Kept {
    fn stack(&mut self, size: usize) -> &mut Stack {
        self.clock += 1;
        let at = match self.stacks.binary_search_by_key(&size, |stack| stack.size) {
            Ok(at) => at,
            Err(at) => {
                self.stacks.insert(at, Stack { size, used: 0, free: Vec::new() });
                at
            }
        };
        let stack = &mut self.stacks[at];
        stack.used = self.clock;
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_back_last_is_taken_first() {
        let list = FreeList::new(1 << 20);
        assert_eq!(list.put(1, 512), []);
        assert_eq!(list.put(2, 512), []);
        assert_eq!(list.put(3, 1024), []);
        assert_eq!([list.take(512), list.take(512), list.take(512)], [Some(2), Some(1), None]);
        assert_eq!(list.drain(), [3]);
        assert_eq!(list.take(1024), None);
    }

    #[test]
    fn sizes_not_used_for_longest_make_room() {
        let list = FreeList::new(2048);
        for (at, size) in [(1, 512), (2, 1024), (3, 512)] {
            assert_eq!(list.put(at, size), []);
        }
        assert_eq!(list.put(4, 1536), [2, 3]);
        assert_eq!([list.take(1024), list.take(512), list.take(1536)], [None, Some(1), Some(4)]);
        assert_eq!(list.put(5, 4096), [5]);
    }

    #[test]
    fn sizes_waste_an_eighth_at_most() {
        assert_eq!([0, 1, 512, 513].map(size_of), [512, 512, 512, 1024]);
        for len in (1..1 << 20).step_by(4099) {
            let size = size_of(len);
            assert!(size >= len && size - len < (len / 8).max(STEP), "{len}: {size}");
            assert_eq!(size_of(size), size);
        }
    }
}

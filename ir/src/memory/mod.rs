//! Aligned host memory, recycled through a pool.
//!
//! Fresh pages from the operating system cost more than most kernels that write them, so blocks of
//! a page or more go back to a process-wide free list when they are dropped. Smaller ones go to a
//! list of the thread that drops them: asking the system's allocator for aligned zeros costs more
//! than an op on so few elements. The lists are caches of the allocator and nothing else: they hold
//! no values, and emptying them changes no result.

mod block;

use crate::{
    budget::{self, Charge},
    error::{Error, Result},
};
use block::{CacheLine, MemoryBlock};
use std::{
    cell::RefCell,
    mem,
    sync::{Mutex, PoisonError},
};

/// Alignment of every block, in bytes: one cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Blocks below this many bytes are kept by threads, the others by the process.
const SHARED_FROM: usize = 4096;

/// The process keeps at most this many bytes; a page fewer, as its memory never becomes smaller.
const POOL_BYTES: usize = if cfg!(target_family = "wasm") { 64 << 20 } else { 512 << 20 };

/// A thread keeps at most this many blocks of each size.
const SMALL_BLOCKS: usize = 32;

/// Bytes that are filled without a look at the budget of the call.
const FILLED_AT_ONCE: usize = 16 << 20;

/// A block of host memory, aligned to [`ALIGNMENT`].
pub struct HostMemory {
    lines: MemoryBlock,
    len: usize,
    /// Its share of the budget of the call that made it.
    charge: Option<Box<Charge>>,
}

impl HostMemory {
    /// A block of `len` bytes whose contents are unspecified (zeros, or whatever an earlier owner
    /// left there).
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when the system refuses the memory, or the budget of the call in progress.
    pub fn recycled(len: usize) -> Result<HostMemory> {
        let mut memory = HostMemory::unwritten(len)?;
        if budget::is_bounded() {
            memory.charge = boxed(budget::charge(len)?);
        }
        Ok(memory)
    }

    /// A block as [`recycled`](HostMemory::recycled) makes it, that outlives the call in progress.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when the system refuses the memory, or a budget that calls share.
    pub fn pooled(len: usize) -> Result<HostMemory> {
        let mut memory = HostMemory::unwritten(len)?;
        memory.charge = boxed(budget::charge_shared(len)?);
        Ok(memory)
    }

    /// A block for a copy of what is there already. It counts, even where it exceeds a budget; what
    /// comes next fails then.
    pub(crate) fn copy_room(len: usize) -> Result<HostMemory> {
        let mut memory = HostMemory::unwritten(len)?;
        memory.charge = boxed(budget::charge_made(len));
        Ok(memory)
    }

    #[inline]
    fn unwritten(len: usize) -> Result<HostMemory> {
        let lines = match take(len) {
            Some(lines) => lines,
            None => fresh(len)?,
        };
        Ok(HostMemory { lines, len, charge: None })
    }

    /// A block of `len` zero bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when the system refuses the memory, or the budget of the call in progress.
    pub fn zeroed(len: usize) -> Result<HostMemory> {
        let charge = if budget::is_bounded() { boxed(budget::charge(len)?) } else { None };
        // Blocks that come back to the lists must be taken from them, or they would only grow.
        let lines = match take(len) {
            Some(mut lines) => {
                let bytes = &mut bytemuck::cast_slice_mut::<CacheLine, u8>(&mut lines)[..len];
                for part in bytes.chunks_mut(FILLED_AT_ONCE) {
                    budget::tick();
                    part.fill(0);
                }
                lines
            }
            None => fresh(len)?,
        };
        Ok(HostMemory { lines, len, charge })
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    /// The bytes, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

/// Apart from the block, which nearly always has none.
#[cold]
fn boxed(charge: Option<Charge>) -> Option<Box<Charge>> {
    charge.map(Box::new)
}

/// A block of zeros from the system.
fn fresh(len: usize) -> Result<MemoryBlock> {
    let n_lines = if len < SHARED_FROM { len.div_ceil(ALIGNMENT) } else { size_class(len) };
    MemoryBlock::zeroed(n_lines).ok_or_else(|| {
        let limit = isize::MAX as u64;
        Error::Limit { what: "host memory".into(), needed: format!("{len} bytes"), limit }
    })
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let lines = mem::take(&mut self.lines);
        match self.len {
            0 => {}
            len if len < SHARED_FROM => put_small(lines),
            // The system takes back what is evicted after the pool is unlocked.
            _ => {
                let evicted = pool().put(lines);
                drop(evicted);
            }
        }
    }
}

/// A free block for `len` bytes, if there is one.
fn take(len: usize) -> Option<MemoryBlock> {
    match len {
        0 => None,
        _ if len < SHARED_FROM => take_small(len.div_ceil(ALIGNMENT)),
        _ => pool().take(size_class(len)),
    }
}

/// The number of lines a block of `len` bytes really takes: eight classes for each doubling, so
/// that at most an eighth is wasted and blocks of similar sizes serve each other.
fn size_class(len: usize) -> usize {
    let lines = len.div_ceil(ALIGNMENT);
    let step = (lines.next_power_of_two() / 16).max(1);
    lines.div_ceil(step) * step
}

thread_local! {
    /// Free blocks of 1, 2, … lines.
    static SMALL: RefCell<[Vec<MemoryBlock>; SHARED_FROM / ALIGNMENT]> =
        const { RefCell::new([const { Vec::new() }; SHARED_FROM / ALIGNMENT]) };
}

fn take_small(n_lines: usize) -> Option<MemoryBlock> {
    // A thread that is ending has no list any more.
    SMALL.try_with(|small| small.borrow_mut()[n_lines - 1].pop()).ok().flatten()
}

fn put_small(lines: MemoryBlock) {
    let put = |small: &RefCell<[Vec<MemoryBlock>; SHARED_FROM / ALIGNMENT]>| {
        let free = &mut small.borrow_mut()[lines.len() - 1];
        if free.len() < SMALL_BLOCKS {
            free.push(lines);
        }
    };
    // A thread that is ending has no list any more.
    let _ = SMALL.try_with(put);
}

/// The free blocks of a size class.
struct Bin {
    n_lines: usize,
    /// Number of the last use of the class.
    used: u64,
    blocks: Vec<MemoryBlock>,
}

struct Pool {
    /// By size class.
    bins: Vec<Bin>,
    bytes: usize,
    /// Number of uses so far.
    uses: u64,
    limit: usize,
}

fn pool() -> std::sync::MutexGuard<'static, Pool> {
    static POOL: Mutex<Pool> = Mutex::new(Pool::new(POOL_BYTES));
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    const fn new(limit: usize) -> Pool {
        Pool { bins: Vec::new(), bytes: 0, uses: 0, limit }
    }

    fn take(&mut self, n_lines: usize) -> Option<MemoryBlock> {
        let index = self.bins.binary_search_by_key(&n_lines, |bin| bin.n_lines).ok()?;
        let lines = self.bin(index).blocks.pop()?;
        self.bytes -= n_lines * ALIGNMENT;
        Some(lines)
    }

    /// Keeps a block, and returns those that make room for it: of the classes that were not used for longest.
    /// Otherwise blocks of sizes that a program is done with would fill the pool for good.
    fn put(&mut self, lines: MemoryBlock) -> Vec<MemoryBlock> {
        let n_lines = lines.len();
        if n_lines * ALIGNMENT > self.limit {
            return vec![lines];
        }
        let mut evicted = Vec::new();
        while self.bytes + n_lines * ALIGNMENT > self.limit {
            let others = self.bins.iter_mut().filter(|bin| bin.n_lines != n_lines);
            let oldest = others.filter(|bin| !bin.blocks.is_empty()).min_by_key(|bin| bin.used);
            let Some(block) = oldest.and_then(|bin| bin.blocks.pop()) else {
                evicted.push(lines);
                return evicted;
            };
            self.bytes -= block.len() * ALIGNMENT;
            evicted.push(block);
        }
        self.bytes += n_lines * ALIGNMENT;
        let index = match self.bins.binary_search_by_key(&n_lines, |bin| bin.n_lines) {
            Ok(index) => index,
            Err(index) => {
                self.bins.insert(index, Bin { n_lines, used: 0, blocks: Vec::new() });
                index
            }
        };
        self.bin(index).blocks.push(lines);
        evicted
    }

    /// The bin at an index, which is used.
    fn bin(&mut self, index: usize) -> &mut Bin {
        self.uses += 1;
        let bin = &mut self.bins[index];
        bin.used = self.uses;
        bin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_sized() {
        for len in [0, 1, 63, 64, 65, 4095, 4096, 5000, 1 << 20, 5 << 20] {
            let mut memory = HostMemory::recycled(len).unwrap();
            assert_eq!(memory.bytes().len(), len);
            assert_eq!(memory.bytes_mut().as_ptr() as usize % ALIGNMENT, 0);
        }
    }

    #[test]
    fn small_blocks_return_within_a_thread() {
        let block = HostMemory::recycled(300).unwrap();
        let address = block.bytes().as_ptr();
        drop(block);
        assert_eq!(HostMemory::recycled(310).unwrap().bytes().as_ptr(), address);
        let block = HostMemory::zeroed(100).unwrap();
        std::thread::spawn(move || drop(block)).join().unwrap();
    }

    #[test]
    fn blocks_of_zeros_are_recycled_too() {
        let mut block = HostMemory::zeroed(777).unwrap();
        block.bytes_mut().fill(7);
        let address = block.bytes().as_ptr();
        drop(block);
        let block = HostMemory::zeroed(780).unwrap();
        assert_eq!(block.bytes().as_ptr(), address);
        assert!(block.bytes().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn sizes_that_are_no_longer_used_make_room() {
        let block = |n_lines: usize| MemoryBlock::zeroed(n_lines).unwrap();
        let mut pool = Pool::new(10 * ALIGNMENT);
        for n_lines in [4, 3, 3] {
            assert!(pool.put(block(n_lines)).is_empty());
        }
        // The class of 4 lines was put first, but is used again.
        let four = pool.take(4).unwrap();
        assert!(pool.put(four).is_empty());
        let evicted = pool.put(block(2));
        assert_eq!(evicted.iter().map(|lines| lines.len()).collect::<Vec<_>>(), [3]);
        assert_eq!(pool.bytes, 9 * ALIGNMENT);
        // Neither too large a block nor one more of the only class is kept.
        assert_eq!(pool.put(block(11)).len(), 1);
        assert_eq!(pool.bytes, 9 * ALIGNMENT);
        let mut pool = Pool::new(3 * ALIGNMENT);
        assert!(pool.put(block(2)).is_empty());
        assert_eq!(pool.put(block(2)).len(), 1);
        assert_eq!(pool.bytes, 2 * ALIGNMENT);
    }

    #[test]
    fn a_class_wastes_at_most_an_eighth() {
        for len in (4096..1 << 20).step_by(777) {
            let bytes = size_class(len) * ALIGNMENT;
            assert!(bytes >= len && bytes <= len + len / 8 + ALIGNMENT, "{len} {bytes}");
        }
    }

    #[test]
    fn a_huge_request_is_an_error() {
        assert!(HostMemory::recycled(1 << 60).is_err());
    }
}

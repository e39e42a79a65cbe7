//! Memory of devices, which is the host's, between zones that nobody may write to.

#![expect(unsafe_code, reason = "programs reach memory through pointers")]

use crate::world::CudaResult;
use cudarc::driver::sys::CUresult;
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::{BTreeMap, HashMap},
    env, ptr, slice,
};

/// Bytes on either side of a block.
const ZONE: usize = 256;
const ZONE_BYTE: u8 = 0xab;
/// Byte that new and freed memory is filled with.
const NEW_BYTE: u8 = 0xcd;
const FREED_BYTE: u8 = 0xdd;

/// A block, by its address.
struct Block {
    bytes: usize,
    device: usize,
    /// Whether those who ask for work may name it.
    is_taken: bool,
    /// Whether work may use it.
    is_alive: bool,
    /// Number of its uses that are still to begin or to end.
    to_come: usize,
}

/// All blocks.
pub(crate) struct SimulatedMemory {
    blocks: BTreeMap<usize, Block>,
    /// Freed blocks by stream and bytes, which the same stream may take again.
    freed: HashMap<(usize, usize), Vec<usize>>,
    used: HashMap<usize, usize>,
    pub(crate) most: usize,
}

impl Default for SimulatedMemory {
    fn default() -> SimulatedMemory {
        let most = env::var("FERROFLOW_SIMULATED_MEMORY").ok().and_then(|most| most.parse().ok());
        let most = most.unwrap_or(4 << 30);
        SimulatedMemory {
            blocks: BTreeMap::new(),
            freed: HashMap::new(),
            used: HashMap::new(),
            most,
        }
    }
}

fn layout(bytes: usize) -> CudaResult<Layout> {
    let total = bytes.checked_add(2 * ZONE).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    Layout::from_size_align(total, ZONE).map_err(|_| CUresult::CUDA_ERROR_OUT_OF_MEMORY)
}

impl SimulatedMemory {
    /// A block for work of a stream. It is dead until [`revive`](Memory::revive) runs there.
    pub(crate) fn take(&mut self, device: usize, stream: usize, bytes: usize) -> CudaResult<usize> {
        if bytes == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if let Some(at) = self.again(device, stream, bytes) {
            let block = self.block(at)?;
            (block.is_taken, block.to_come) = (true, block.to_come + 1);
            return Ok(at);
        }
        if self.used(device).saturating_add(bytes) > self.most {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let layout = layout(bytes)?;
        // SAFETY: the layout is not empty, and the zones lie inside.
        let at = unsafe {
            let start = alloc(layout);
            if start.is_null() {
                return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            }
            ptr::write_bytes(start, ZONE_BYTE, layout.size());
            start.add(ZONE) as usize
        };
        *self.used.entry(device).or_default() += bytes;
        self.blocks
            .insert(at, Block { bytes, device, is_taken: true, is_alive: false, to_come: 1 });
        Ok(at)
    }

    /// A freed block: of the same stream, or of another where that has got so far.
    fn again(&mut self, device: usize, stream: usize, bytes: usize) -> Option<usize> {
        if let Some(at) = self.freed.get_mut(&(stream, bytes)).and_then(Vec::pop) {
            return Some(at);
        }
        let is_free = |at: &usize| {
            self.blocks.get(at).is_some_and(|block| block.device == device && block.to_come == 0)
        };
        let others = self.freed.iter_mut().filter(|((_, own), _)| *own == bytes);
        others.into_iter().find_map(|(_, freed)| {
            let at = freed.iter().rposition(is_free)?;
            Some(freed.remove(at))
        })
    }

    /// Bytes of a device that are not free for others.
    pub(crate) fn used(&self, device: usize) -> usize {
        self.used.get(&device).copied().unwrap_or_default()
    }

    /// Begins a block's life in the order of its stream.
    pub(crate) fn revive(&mut self, at: usize) -> CudaResult {
        let block = self.block(at)?;
        (block.is_alive, block.to_come) = (true, block.to_come - 1);
        let bytes = block.bytes;
        // SAFETY: the block has so many bytes, and only work touches them, one after the other.
        unsafe { ptr::write_bytes(at as *mut u8, NEW_BYTE, bytes) };
        Ok(())
    }

    /// Gives a block back: nobody may name it any more.
    pub(crate) fn give(&mut self, at: usize, stream: usize) -> CudaResult {
        let block = self.block(at)?;
        if !block.is_taken {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        (block.is_taken, block.to_come) = (false, block.to_come + 1);
        let bytes = block.bytes;
        self.freed.entry((stream, bytes)).or_default().push(at);
        Ok(())
    }

    /// Ends a block's life in the order of its stream.
    pub(crate) fn kill(&mut self, at: usize) -> CudaResult {
        self.check(at)?;
        let block = self.block(at)?;
        (block.is_alive, block.to_come) = (false, block.to_come - 1);
        let bytes = block.bytes;
        // SAFETY: as in `revive`.
        unsafe { ptr::write_bytes(at as *mut u8, FREED_BYTE, bytes) };
        Ok(())
    }

    /// Frees what nobody uses, when all work is done.
    pub(crate) fn trim(&mut self) -> CudaResult {
        for at in std::mem::take(&mut self.freed).into_values().flatten() {
            if let Some(block) = self.blocks.remove(&at) {
                *self.used.entry(block.device).or_default() -= block.bytes;
                let layout = layout(block.bytes)?;
                // SAFETY: it was allocated like this, and nobody names it any more.
                unsafe { dealloc((at - ZONE) as *mut u8, layout) };
            }
        }
        Ok(())
    }

    /// Fails unless so many bytes there are alive.
    pub(crate) fn expect(&self, at: usize, bytes: usize) -> CudaResult {
        let found = self.blocks.range(..=at).next_back();
        let fits = |(&start, block): (&usize, &Block)| {
            block.is_alive && at - start <= block.bytes && bytes <= block.bytes - (at - start)
        };
        match found.is_some_and(fits) {
            true => Ok(()),
            false => {
                eprintln!("simulator: {bytes} bytes at {at:#x} are not alive");
                Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
            }
        }
    }

    /// The device that memory is of.
    pub(crate) fn device(&self, at: usize) -> CudaResult<usize> {
        let found = self.blocks.range(..=at).next_back();
        let found = found.filter(|(start, block)| at - *start < block.bytes);
        found.map(|(_, block)| block.device).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Fails if somebody wrote beside the block that this address is of.
    pub(crate) fn check(&self, at: usize) -> CudaResult {
        let Some((&start, block)) = self.blocks.range(..=at).next_back() else {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        };
        for zone in [start - ZONE, start + block.bytes] {
            // SAFETY: both zones lie inside what was allocated for the block.
            let zone = unsafe { slice::from_raw_parts(zone as *const u8, ZONE) };
            if zone.iter().any(|&byte| byte != ZONE_BYTE) {
                eprintln!("simulator: bytes beside {} at {start:#x} were written", block.bytes);
                return Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
            }
        }
        Ok(())
    }

    fn block(&mut self, at: usize) -> CudaResult<&mut Block> {
        self.blocks.get_mut(&at).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}

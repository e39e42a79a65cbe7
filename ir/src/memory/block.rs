//! Memory as it comes from the system.
//!
//! On Linux, large blocks ask for large pages (`madvise(2)`, `MADV_HUGEPAGE`): a matrix of 16 MB is 8 entries
//! of the tables that translate addresses in place of 4096, and 8 faults when it is written first. Where the system has none to
//! spare, it uses small ones.

use super::ALIGNMENT;
use crate::budget;
use bytemuck::{Pod, Zeroable};
use std::ops::{Deref, DerefMut};

/// Lines that are set to zero between two looks at the budget of the call.
const LINES_BETWEEN_LOOKS: usize = (64 << 20) / ALIGNMENT;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct CacheLine([u8; ALIGNMENT]);

/// Lines, of the allocator or of a mapping.
pub(super) enum MemoryBlock {
    Allocated(Box<[CacheLine]>),
    #[cfg(target_os = "linux")]
    Mapped(mapped::MappedBlock),
}

impl MemoryBlock {
    /// So many lines of zeros; `None` when the system refuses them.
    pub(super) fn zeroed(n_lines: usize) -> Option<MemoryBlock> {
        #[cfg(target_os = "linux")]
        if n_lines >= mapped::LEAST_LINES {
            return mapped::MappedBlock::zeroed(n_lines).map(MemoryBlock::Mapped);
        }
        MemoryBlock::allocated(n_lines)
    }

    /// Lines of the allocator, which writes all of them. Setting gigabytes to zero takes seconds, so it ends by the
    /// budget of the call.
    fn allocated(n_lines: usize) -> Option<MemoryBlock> {
        if n_lines <= LINES_BETWEEN_LOOKS {
            let lines = bytemuck::allocation::try_zeroed_slice_box(n_lines);
            return lines.ok().map(MemoryBlock::Allocated);
        }
        let mut lines: Vec<CacheLine> = Vec::new();
        lines.try_reserve_exact(n_lines).ok()?;
        while lines.len() < n_lines {
            budget::tick();
            lines.resize(n_lines.min(lines.len() + LINES_BETWEEN_LOOKS), CacheLine::zeroed());
        }
        Some(MemoryBlock::Allocated(lines.into_boxed_slice()))
    }
}

impl Default for MemoryBlock {
    fn default() -> MemoryBlock {
        MemoryBlock::Allocated(Box::default())
    }
}

impl Deref for MemoryBlock {
    type Target = [CacheLine];

    #[inline]
    fn deref(&self) -> &[CacheLine] {
        match self {
            MemoryBlock::Allocated(lines) => lines,
            #[cfg(target_os = "linux")]
            MemoryBlock::Mapped(lines) => lines.as_slice(),
        }
    }
}

impl DerefMut for MemoryBlock {
    #[inline]
    fn deref_mut(&mut self) -> &mut [CacheLine] {
        match self {
            MemoryBlock::Allocated(lines) => lines,
            #[cfg(target_os = "linux")]
            MemoryBlock::Mapped(lines) => lines.as_mut_slice(),
        }
    }
}

#[cfg(target_os = "linux")]
mod mapped {
    use super::{ALIGNMENT, CacheLine};
    use memmap2::{Advice, MmapMut};
    use std::ops::Range;

    /// The size of a large page, in bytes, of x86-64 and of AArch64 with pages of 4 KB.
    const LARGE_PAGE: usize = 2 << 20;

    /// Blocks from this many lines on are mapped.
    pub(super) const LEAST_LINES: usize = LARGE_PAGE / ALIGNMENT;

    /// Lines of a mapping, from the beginning of a large page on.
    pub(in crate::memory) struct MappedBlock {
        mapping: MmapMut,
        bytes: Range<usize>,
    }

    impl MappedBlock {
        /// So many lines, which are zeros and no memory before they are written.
        pub(super) fn zeroed(n_lines: usize) -> Option<MappedBlock> {
            let len = n_lines.checked_mul(ALIGNMENT)?;
            let mapping = MmapMut::map_anon(len.checked_add(LARGE_PAGE)?).ok()?;
            let start = mapping.as_ptr().align_offset(LARGE_PAGE);
            // Small pages for the rest, of which a large one would waste some. A system without large pages
            // refuses.
            let _ = mapping.advise_range(Advice::HugePage, start, len / LARGE_PAGE * LARGE_PAGE);
            Some(MappedBlock { mapping, bytes: start..start + len })
        }

        #[inline]
        pub(super) fn as_slice(&self) -> &[CacheLine] {
            bytemuck::cast_slice(&self.mapping[self.bytes.clone()])
        }

        #[inline]
        pub(super) fn as_mut_slice(&mut self) -> &mut [CacheLine] {
            bytemuck::cast_slice_mut(&mut self.mapping[self.bytes.clone()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_of_the_allocator_end_by_the_budget() {
        let cancellation = budget::Cancellation::new();
        let options = budget::CallOptions {
            cancellation: Some(cancellation.clone()),
            ..budget::CallOptions::default()
        };
        let _entered = budget::CallBudget::new(options, None).enter();
        let n_lines = LINES_BETWEEN_LOOKS + 1;
        assert_eq!(MemoryBlock::allocated(n_lines).unwrap().len(), n_lines);
        cancellation.cancel();
        let ended =
            std::panic::catch_unwind(|| MemoryBlock::allocated(n_lines).map(drop)).unwrap_err();
        assert!(ended.is::<budget::Interruption>());
    }

    /// As `/proc/self/smaps` has it: the mapping of a block may have large pages.
    #[cfg(target_os = "linux")]
    #[test]
    fn large_blocks_ask_for_large_pages() {
        let mut lines = MemoryBlock::zeroed(mapped::LEAST_LINES + 1).unwrap();
        assert!(matches!(lines, MemoryBlock::Mapped(_)));
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut lines);
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes.fill(1);
        let address = bytes.as_ptr() as usize;
        assert_eq!(address % (2 << 20), 0);
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut flags = smaps.lines().scan(false, |is_own, line| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let Some((start, end)) = range.and_then(|(a, b)| number(a).zip(number(b))) {
                *is_own = (start..end).contains(&address);
            }
            Some(line.strip_prefix("VmFlags:").filter(|_| *is_own))
        });
        let flags = flags.find_map(|flags| flags).expect("the mapping of the block");
        // A system without large pages has no such flag.
        let has_large_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(flags.split(' ').any(|flag| flag == "hg"), has_large_pages, "{flags}");
    }
}

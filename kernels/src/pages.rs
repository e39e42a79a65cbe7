//! Large pages for memory that is read from end to end.

/// Asks the system to keep a block in large pages, as far as it is not written yet: with small ones, reading weights of
/// hundreds of megabytes waits for translations of addresses (10 to 12 GB/s instead of 15 on a processor with AMX).
pub(crate) fn prefer_large(block: &mut [u8]) {
    #[cfg(target_os = "linux")]
    if block.len() >= 4 << 20 {
        const PAGE: usize = 4096;
        let ends = block.as_mut_ptr_range();
        let first = ends.start.wrapping_add(ends.start.align_offset(PAGE));
        let len = (ends.end as usize).saturating_sub(first as usize) / PAGE * PAGE;
        #[expect(unsafe_code, reason = "a call of the system")]
        // SAFETY: the advice changes no contents, and its pages are inside the block.
        unsafe {
            // Systems without large pages refuse, and nothing changes.
            let _ = rustix::mm::madvise(first.cast(), len, rustix::mm::Advice::LinuxHugepage);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = block;
}

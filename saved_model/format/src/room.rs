//! Room on the disk for large files, taken ahead.
//!
//! Linux may give blocks to what is written only when it goes to the disk. A file whose blocks are
//! still to be given, and which takes the name of another, is sent to the disk first (ext4's
//! `auto_da_alloc`), and the program waits for that. One that has its blocks already is not.

use std::fs::File;

/// Files that stay smaller take none: they go to the disk in no time.
const LARGE: u64 = 1 << 20;

/// The most room that is taken at a time, beyond what is written at once.
const MOST_AHEAD: u64 = 64 << 20;

/// The room of a file that grows.
#[derive(Debug, Default)]
pub(crate) struct Room {
    written: u64,
    taken: u64,
}

impl Room {
    /// Takes room for `bytes` more. Where there is none, writing will tell.
    pub(crate) fn take(&mut self, file: &File, bytes: usize) {
        let end = self.written + bytes as u64;
        if end <= self.taken || end < LARGE {
            return;
        }
        let len = end - self.taken + self.taken.clamp(LARGE, MOST_AHEAD);
        // Taken or not, it is not asked for again.
        let _ = allocate(file, self.taken, len);
        self.taken += len;
    }

    /// Notes that `bytes` were written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    /// Frees what was taken and not needed.
    pub(crate) fn release(&self, file: &File) -> std::io::Result<()> {
        if self.taken > self.written { file.set_len(self.written) } else { Ok(()) }
    }
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, start: u64, len: u64) -> rustix::io::Result<()> {
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, start, len)
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64, _: u64) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_are_as_long_as_what_is_written() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut file = path.reopen().unwrap();
        let mut room = Room::default();
        for piece in [vec![1u8; 10], vec![2; 3 << 20], vec![3; 5]] {
            room.take(&file, piece.len());
            file.write_all(&piece).unwrap();
            room.wrote(piece.len());
        }
        assert!(room.taken > room.written);
        room.release(&file).unwrap();
        let written = std::fs::read(path.path()).unwrap();
        assert_eq!((written.len(), written[9], written[10]), ((3 << 20) + 15, 1, 2));
        assert_eq!(written[(3 << 20) + 14], 3);
    }
}

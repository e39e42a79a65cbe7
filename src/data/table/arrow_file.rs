//! Where the rows of a file of Arrow are, by its footer.

use super::guard::ReadFault;
use arrow_ipc::{reader::read_footer_length, root_as_footer, root_as_message};
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
};

/// The first row of each part of a file, and after them the number of rows.
#[derive(Debug)]
pub(super) struct ArrowBlocks(Vec<usize>);

/// The magic number and the length of the footer, at the end of a file.
const TRAILER: u64 = 10;

impl ArrowBlocks {
    pub(super) fn read(file: &mut File) -> Result<ArrowBlocks, ReadFault> {
        let size = file.seek(SeekFrom::End(0))?;
        let start = size.checked_sub(TRAILER).ok_or("the file has no footer")?;
        let trailer = read_at(file, size, start, TRAILER)?;
        let length = read_footer_length(trailer.try_into().unwrap_or_default())? as u64;
        let start = start.checked_sub(length).ok_or("the footer is longer than the file")?;
        let footer = read_at(file, size, start, length)?;
        let footer = root_as_footer(&footer).map_err(|error| error.to_string())?;
        let mut first_rows = vec![0usize];
        for block in footer.recordBatches().into_iter().flatten() {
            let (offset, head) = (block.offset() as u64, block.metaDataLength() as u64);
            let end =
                offset.checked_add(head).and_then(|end| end.checked_add(block.bodyLength() as u64));
            if end.is_none_or(|end| end > size) {
                return Err("a part of the file is beyond its end".into());
            }
            let message = read_at(file, size, offset, head)?;
            // Files of Arrow before 0.15 have no mark before the length.
            let head = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
            let message = message.get(head..).ok_or("a part of the file has no head")?;
            let message = root_as_message(message).map_err(|error| error.to_string())?;
            let rows = message.header_as_record_batch().ok_or("a part of the file has no rows")?;
            let n_rows = usize::try_from(rows.length())?;
            let last = first_rows.last().copied().unwrap_or(0);
            first_rows.push(last.checked_add(n_rows).ok_or("too many rows")?);
        }
        Ok(ArrowBlocks(first_rows))
    }

    pub(super) fn n_rows(&self) -> usize {
        self.0.last().copied().unwrap_or(0)
    }

    /// The part that a row is in, and the index of its first row.
    pub(super) fn block_of(&self, row: usize) -> (usize, usize) {
        let block = self.0.partition_point(|&first| first <= row).saturating_sub(1);
        (block, self.0[block])
    }
}

/// Bytes of a file that has them.
fn read_at(file: &mut File, size: u64, start: u64, length: u64) -> Result<Vec<u8>, ReadFault> {
    if start.checked_add(length).is_none_or(|end| end > size) {
        return Err("a part of the file is beyond its end".into());
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

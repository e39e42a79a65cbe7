//! Tables for tests, good and bad.

use super::data::put_varint as varint;
use crate::checksum::mask;

/// Compression of a block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compression {
    None,
    Snappy,
    /// As if with Snappy, but as it is.
    Pretended,
}

/// The bytes of a block with these entries, each key written in full.
pub(super) fn block(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut block, mut restarts) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        restarts.push(block.len() as u32);
        entry(&mut block, 0, key, value);
    }
    finish(block, &restarts)
}

/// Appends an entry whose key begins with `shared` bytes of the key before.
pub(super) fn entry(block: &mut Vec<u8>, shared: u64, suffix: &[u8], value: &[u8]) {
    varint(block, shared);
    varint(block, suffix.len() as u64);
    varint(block, value.len() as u64);
    block.extend_from_slice(suffix);
    block.extend_from_slice(value);
}

/// Ends a block.
pub(super) fn finish(mut block: Vec<u8>, restarts: &[u32]) -> Vec<u8> {
    let restarts = if restarts.is_empty() { &[0] } else { restarts };
    restarts.iter().for_each(|restart| block.extend_from_slice(&restart.to_le_bytes()));
    block.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
    block
}

/// A table of one block and this index.
pub(super) fn table_with_index(content: &[u8], index: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    append(&mut file, content, Compression::None);
    let index = append(&mut file, index, Compression::None);
    end(file, index.clone(), index)
}

/// A table of these blocks, each with the greatest key in it.
pub(super) fn table(blocks: &[(Vec<u8>, Vec<u8>)], compression: Compression) -> Vec<u8> {
    let mut file = Vec::new();
    let mut index = Vec::new();
    for (last_key, content) in blocks {
        index.push((last_key.clone(), append(&mut file, content, compression)));
    }
    let meta = append(&mut file, &block(&[]), Compression::None);
    let index = append(&mut file, &block(&index), compression);
    end(file, meta, index)
}

fn end(mut file: Vec<u8>, meta: Vec<u8>, index: Vec<u8>) -> Vec<u8> {
    let mut footer = [meta, index].concat();
    footer.resize(40, 0);
    footer.extend_from_slice(&0xdb47_7524_8b80_fb57u64.to_le_bytes());
    file.extend_from_slice(&footer);
    file
}

/// Appends a block and returns its handle.
fn append(file: &mut Vec<u8>, content: &[u8], compression: Compression) -> Vec<u8> {
    let (mut stored, kind) = match compression {
        Compression::None => (content.to_vec(), 0),
        Compression::Snappy => (snap::raw::Encoder::new().compress_vec(content).unwrap(), 1),
        Compression::Pretended => (content.to_vec(), 1),
    };
    let mut handle = Vec::new();
    varint(&mut handle, file.len() as u64);
    varint(&mut handle, stored.len() as u64);
    stored.push(kind);
    file.extend_from_slice(&stored);
    file.extend_from_slice(&mask(crc32c::crc32c(&stored)).to_le_bytes());
    handle
}

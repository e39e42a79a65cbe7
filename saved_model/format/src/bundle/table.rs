//! Sorted string tables: the index of a bundle, and the whole of a checkpoint of the first format.
//!
//! A table is data blocks, an index block and a footer. A block holds entries whose keys share
//! prefixes with the key before, then restart offsets; each is followed by its compression and a
//! checksum.

use crate::checksum::mask;
use crate::{
    error::{Error, Result},
    file::InputFile,
};
use bytes::Bytes;
use ferroflow_ir::Limits;
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

const FOOTER_LEN: u64 = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Length of what ends each block: a byte of compression and four of checksum.
const TRAILER_LEN: u64 = 5;

/// The best Snappy can do is 64 bytes from 3; a block that promises more is damaged.
const MAX_SNAPPY_RATIO: usize = 22;

/// Keys share prefixes, so a small file can spell out very long ones. Real tables stay far below
/// this many bytes of keys per byte of file.
const MAX_KEY_RATIO: u64 = 32;
const MIN_KEY_BUDGET: u64 = 1 << 16;

/// Looking up a key walks through a block; writers end a block long before it has this many entries.
const MAX_LOOKUP: usize = 1 << 16;

/// An open table.
#[derive(Debug)]
pub(crate) struct SortedTable {
    file: InputFile,
    limits: Limits,
    blocks: Vec<IndexEntry>,
    /// The block in which a key was looked up last, and its number.
    recent: Mutex<Option<(usize, Arc<Block>)>>,
}

#[derive(Debug)]
struct IndexEntry {
    /// No key of the block is greater.
    last_key: Box<[u8]>,
    handle: Handle,
}

/// Where a block lies, without its trailer.
#[derive(Debug, Clone, Copy)]
struct Handle {
    offset: u64,
    len: u64,
}

impl Handle {
    /// Where the next block may begin.
    fn end(self) -> u64 {
        self.offset.saturating_add(self.len).saturating_add(TRAILER_LEN)
    }
}

impl SortedTable {
    /// Whether the file still has its name.
    pub(crate) fn is_in_place(&self) -> bool {
        self.file.is_in_place()
    }

    /// Opens a table and reads its index of blocks.
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<SortedTable> {
        let file = InputFile::open(path)?;
        let (limits, blocks, recent) = (limits.clone(), Vec::new(), Mutex::default());
        let mut table = SortedTable { file, limits, blocks, recent };
        let index = table.read_block(table.footer()?)?;
        let mut budget = table.key_budget();
        let mut entries = index.entries();
        while let Some(value) = entries.next(&table.file)? {
            let last_key: Box<[u8]> = entries.key().into();
            table.spend(&mut budget, last_key.len(), index.offset)?;
            let handle = parse_handle(&mut &value[..]);
            let free_from = table.blocks.last().map_or(0, |block| block.handle.end());
            let handle = handle.filter(|handle| handle.offset >= free_from);
            let handle = handle.ok_or_else(|| table.file.damaged(index.offset, "block handle"))?;
            table.blocks.push(IndexEntry { last_key, handle });
        }
        Ok(table)
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Calls `visit` with every key and value, in the order of the keys.
    pub(crate) fn scan(&self, mut visit: impl FnMut(&[u8], Bytes) -> Result<()>) -> Result<()> {
        let mut budget = self.key_budget();
        let mut last_key: Option<Vec<u8>> = None;
        for IndexEntry { handle, .. } in &self.blocks {
            let block = self.read_block(*handle)?;
            let mut entries = block.entries();
            let mut is_first = true;
            while let Some(value) = entries.next(&self.file)? {
                if is_first && last_key.as_deref().is_some_and(|last| last >= entries.key()) {
                    return Err(self.file.damaged(block.offset, "keys are not in order"));
                }
                is_first = false;
                self.spend(&mut budget, entries.key().len(), block.offset)?;
                visit(entries.key(), value)?;
            }
            last_key = Some(entries.key).filter(|_| !is_first).or(last_key);
        }
        Ok(())
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let index = self.blocks.partition_point(|block| *block.last_key < *key);
        let Some(IndexEntry { handle, .. }) = self.blocks.get(index) else { return Ok(None) };
        let block = self.recent_block(index, *handle)?;
        let mut entries = block.entries();
        for _ in 0..MAX_LOOKUP {
            match entries.next(&self.file)? {
                Some(value) if entries.key() == key => return Ok(Some(value)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Err(self.file.damaged(handle.offset, "too many entries in a block"))
    }

    /// Neighbouring keys are often looked up one after the other.
    fn recent_block(&self, index: usize, handle: Handle) -> Result<Arc<Block>> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, block)) = &*recent()
            && *at == index
        {
            return Ok(block.clone());
        }
        let block = Arc::new(self.read_block(handle)?);
        *recent() = Some((index, block.clone()));
        Ok(block)
    }

    fn key_budget(&self) -> u64 {
        self.file.size().saturating_mul(MAX_KEY_RATIO).max(MIN_KEY_BUDGET)
    }

    fn spend(&self, budget: &mut u64, len: usize, offset: u64) -> Result<()> {
        let left = budget.checked_sub(len as u64);
        *budget = left.ok_or_else(|| self.file.damaged(offset, "keys longer than the file"))?;
        Ok(())
    }

    /// The handle of the index block.
    fn footer(&self) -> Result<Handle> {
        self.file.check_range(0, FOOTER_LEN)?;
        let offset = self.file.size() - FOOTER_LEN;
        let mut footer = [0; FOOTER_LEN as usize];
        self.file.read_at(&mut footer, offset)?;
        let (handles, magic) = footer.split_at(footer.len() - 8);
        if magic != MAGIC.to_le_bytes() {
            return Err(self.file.damaged(offset, "this is not a table: wrong magic number"));
        }
        let mut rest = handles;
        let (_meta_index, index) = (parse_handle(&mut rest), parse_handle(&mut rest));
        index.ok_or_else(|| self.file.damaged(offset, "block handle"))
    }

    fn read_block(&self, Handle { offset, len }: Handle) -> Result<Block> {
        let with_trailer = len.saturating_add(TRAILER_LEN);
        let mut bytes = self.file.read(offset, with_trailer, &self.limits)?;
        let trailer = bytes.split_off(len as usize);
        let found = mask(crc32c::crc32c_append(crc32c::crc32c(&bytes), &trailer[..1]));
        let expected = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
        if found != expected {
            let path = self.file.path().into();
            return Err(Error::Checksum { path, offset, len: len + 1, expected, found });
        }
        let data = match trailer[0] {
            0 => bytes,
            1 => self.decompress(&bytes, offset)?,
            _ => return Err(self.file.damaged(offset + len, "unknown compression")),
        };
        Block::new(data.into(), offset)
            .ok_or_else(|| self.file.damaged(offset, "restart points of a block"))
    }

    fn decompress(&self, bytes: &[u8], offset: u64) -> Result<Vec<u8>> {
        let damaged = || self.file.damaged(offset, "Snappy data");
        let len = snap::raw::decompress_len(bytes).map_err(|_| damaged())?;
        if len > bytes.len().saturating_mul(MAX_SNAPPY_RATIO) || len > self.limits.tensor_bytes {
            return Err(damaged());
        }
        snap::raw::Decoder::new().decompress_vec(bytes).map_err(|_| damaged())
    }
}

fn parse_handle(bytes: &mut &[u8]) -> Option<Handle> {
    Some(Handle { offset: take_varint(bytes)?, len: take_varint(bytes)? })
}

/// A block with its trailer checked and removed.
#[derive(Debug)]
struct Block {
    /// Where it lies in the file.
    offset: u64,
    entries: Bytes,
}

impl Block {
    /// Cuts off the restart offsets; `None` when they do not fit the block.
    fn new(data: Bytes, offset: u64) -> Option<Block> {
        let (rest, count) = data.split_last_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let end = rest.len().checked_sub(count.checked_mul(4)?)?;
        let fits = |at: &[u8; 4]| u32::from_le_bytes(*at) as usize <= end;
        let all_fit = rest[end..].as_chunks::<4>().0.iter().all(fits);
        (count > 0 && all_fit).then(|| Block { offset, entries: data.slice(..end) })
    }

    fn entries(&self) -> Entries<'_> {
        Entries { block: self, at: 0, key: Vec::new() }
    }
}

/// The entries of a block, one after the other.
struct Entries<'a> {
    block: &'a Block,
    at: usize,
    key: Vec<u8>,
}

impl Entries<'_> {
    /// The key of the entry that `next` came to last.
    fn key(&self) -> &[u8] {
        &self.key
    }

    /// Goes to the next entry and gives its value.
    fn next(&mut self, file: &InputFile) -> Result<Option<Bytes>> {
        if self.at == self.block.entries.len() {
            return Ok(None);
        }
        let value = self.advance();
        value.map(Some).ok_or_else(|| file.damaged(self.block.offset, "entry of a block"))
    }

    fn advance(&mut self) -> Option<Bytes> {
        let is_first = self.at == 0;
        let entries = &self.block.entries;
        let mut rest = &entries[self.at..];
        let [shared, suffix_len, value_len] = [
            usize::try_from(take_varint(&mut rest)?).ok()?,
            usize::try_from(take_varint(&mut rest)?).ok()?,
            usize::try_from(take_varint(&mut rest)?).ok()?,
        ];
        let suffix = rest.get(..suffix_len)?;
        let in_order = is_first || self.key.get(shared..)? < suffix;
        if shared > self.key.len() || !in_order {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        let start = entries.len() - rest.len() + suffix_len;
        let end = start.checked_add(value_len).filter(|&end| end <= entries.len())?;
        self.at = end;
        Some(entries.slice(start..end))
    }
}

/// Takes a little-endian base-128 number off the front of `bytes`.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::testing::{self, Compression};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn open(bytes: &[u8]) -> Result<SortedTable> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        std::fs::write(&path, bytes).unwrap();
        SortedTable::open(&path, &Limits::default())
    }

    fn scan(bytes: &[u8]) -> Result<Vec<(Vec<u8>, Bytes)>> {
        let mut found = Vec::new();
        open(bytes)?.scan(|key, value| {
            found.push((key.to_vec(), value));
            Ok(())
        })?;
        Ok(found)
    }

    fn pair(key: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
        (key.into(), value.into())
    }

    fn check_message(bytes: &[u8], expected: &str) {
        let error = scan(bytes).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }

    fn one_block(content: Vec<u8>) -> Vec<u8> {
        testing::table(&[(b"z".to_vec(), content)], Compression::None)
    }

    #[test]
    fn blocks_may_be_compressed() {
        for compression in [Compression::None, Compression::Snappy] {
            let first = testing::block(&[pair("", "header"), pair("a", &"x".repeat(1000))]);
            let second = testing::block(&[pair("b", "2"), pair("c", "")]);
            let blocks = [(b"a".to_vec(), first), (b"c".to_vec(), second)];
            let bytes = testing::table(&blocks, compression);
            let keys: Vec<_> = scan(&bytes).unwrap().into_iter().map(|pair| pair.0).collect();
            assert_eq!(keys, [&b""[..], b"a", b"b", b"c"]);
            let table = open(&bytes).unwrap();
            assert_eq!(table.get(b"").unwrap().unwrap(), "header");
            assert_eq!(table.get(b"b").unwrap().unwrap(), "2");
            assert_eq!(table.get(b"bb").unwrap(), None);
            assert_eq!(table.get(b"d").unwrap(), None);
        }
    }

    #[test]
    fn keys_share_prefixes_and_are_in_order() {
        let block = |second: (u64, &str)| {
            let mut block = Vec::new();
            testing::entry(&mut block, 0, b"ab", b"1");
            testing::entry(&mut block, second.0, second.1.as_bytes(), b"2");
            one_block(testing::finish(block, &[]))
        };
        assert_eq!(scan(&block((1, "c"))).unwrap()[1].0, b"ac");
        check_message(&block((3, "c")), "entry of a block");
        check_message(&block((1, "b")), "entry of a block");
        check_message(&block((0, "aa")), "entry of a block");
    }

    #[test]
    fn long_keys_from_few_bytes_are_refused() {
        let mut block = Vec::new();
        for length in 0..20_000u64 {
            testing::entry(&mut block, length, b"a", b"");
        }
        check_message(&one_block(testing::finish(block, &[])), "keys longer than the file");
    }

    #[test]
    fn blocks_do_not_share_bytes() {
        let content = testing::block(&[pair("a", "1")]);
        let mut index = Vec::new();
        for key in [b"a", b"b"] {
            testing::entry(&mut index, 0, key, &[0, content.len() as u8]);
        }
        let index = testing::finish(index, &[]);
        let bytes = testing::table_with_index(&content, &index);
        check_message(&bytes, "block handle");
    }

    #[test]
    fn damage_is_found() {
        let good = one_block(testing::block(&[pair("a", "1")]));
        let mut flipped = good.clone();
        flipped[4] ^= 1;
        assert!(scan(&flipped).unwrap_err().to_string().contains("have checksum"));
        let mut magic = good.clone();
        *magic.last_mut().unwrap() ^= 1;
        check_message(&magic, "this is not a table: wrong magic number");
        check_message(&good[..20], "48 bytes are needed, the file has 20");
    }

    #[test]
    fn compressed_blocks_do_not_explode() {
        let promise_of_2_gib = vec![0xff, 0xff, 0xff, 0xff, 0x07, 0];
        let blocks = [(b"z".to_vec(), promise_of_2_gib)];
        check_message(&testing::table(&blocks, Compression::Pretended), "Snappy data");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entries in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..6), prop::collection::vec(any::<u8>(), 0..6), 1..40,
        )) {
            let entries: BTreeMap<Vec<u8>, Vec<u8>> = entries;
            let pairs: Vec<_> = entries.clone().into_iter().collect();
            let blocks: Vec<_> = pairs
                .chunks(7)
                .map(|chunk| (chunk[chunk.len() - 1].0.clone(), testing::block(chunk)))
                .collect();
            let bytes = testing::table(&blocks, Compression::Snappy);
            let found = scan(&bytes).unwrap().into_iter().map(|(key, value)| (key, value.to_vec()));
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), entries);
        }

        #[test]
        fn any_block_is_read_or_refused(content in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = scan(&one_block(content));
        }
    }
}

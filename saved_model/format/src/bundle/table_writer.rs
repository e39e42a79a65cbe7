//! Writing sorted string tables.

use super::data::put_varint;
use crate::checksum::mask;
use std::io::{self, Write};

/// Blocks end once they have this many bytes, as in TensorFlow's bundles.
const BLOCK_BYTES: usize = 256 << 10;

/// Every so many entries a key is spelled out.
const RESTART_INTERVAL: usize = 16;

const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Writes a table: entries in the order of their keys, then the index. Blocks are not compressed.
#[derive(Debug)]
pub(super) struct TableWriter<W> {
    sink: W,
    offset: u64,
    block: BlockWriter,
    /// The last key of each block that was written, with where it lies.
    index: BlockWriter,
}

impl<W: Write> TableWriter<W> {
    pub(super) fn new(sink: W) -> TableWriter<W> {
        let (block, index) = (BlockWriter::new(RESTART_INTERVAL), BlockWriter::new(1));
        TableWriter { sink, offset: 0, block, index }
    }

    /// Adds an entry, whose key must be greater than those before.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.block.add(key, value);
        if self.block.bytes.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        let last_key = std::mem::take(&mut self.block.last_key);
        let block = std::mem::replace(&mut self.block, BlockWriter::new(RESTART_INTERVAL));
        let handle = self.write_block(block)?;
        self.index.add(&last_key, &handle);
        Ok(())
    }

    /// Writes a block with its trailer; gives its handle.
    fn write_block(&mut self, block: BlockWriter) -> io::Result<Vec<u8>> {
        let mut bytes = block.finish();
        let mut handle = Vec::new();
        put_varint(&mut handle, self.offset);
        put_varint(&mut handle, bytes.len() as u64);
        bytes.push(0); // Not compressed.
        let checksum = mask(crc32c::crc32c(&bytes));
        bytes.extend_from_slice(&checksum.to_le_bytes());
        self.sink.write_all(&bytes)?;
        self.offset += bytes.len() as u64;
        Ok(handle)
    }

    /// Writes what is left and gives the sink back.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.block.n_entries > 0 {
            self.end_block()?;
        }
        let meta_index = self.write_block(BlockWriter::new(RESTART_INTERVAL))?;
        let index = std::mem::replace(&mut self.index, BlockWriter::new(1));
        let index = self.write_block(index)?;
        let mut footer = [meta_index, index].concat();
        footer.resize(40, 0);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        self.sink.write_all(&footer)?;
        Ok(self.sink)
    }
}

/// Entries whose keys share prefixes with the key before.
#[derive(Debug)]
struct BlockWriter {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    n_entries: usize,
    last_key: Vec<u8>,
}

impl BlockWriter {
    fn new(interval: usize) -> BlockWriter {
        let (bytes, last_key) = (Vec::new(), Vec::new());
        BlockWriter { bytes, restarts: vec![0], interval, n_entries: 0, last_key }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(self.n_entries == 0 || *key > *self.last_key, "keys come in order");
        let shared = if self.n_entries.is_multiple_of(self.interval) {
            if self.n_entries > 0 {
                self.restarts.push(self.bytes.len() as u32);
            }
            0
        } else {
            let pairs = key.iter().zip(&self.last_key);
            pairs.take_while(|(a, b)| a == b).count()
        };
        for number in [shared, key.len() - shared, value.len()] {
            put_varint(&mut self.bytes, number as u64);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last_key = key.to_vec();
        self.n_entries += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        let n_restarts = self.restarts.len() as u32;
        for number in self.restarts.into_iter().chain([n_restarts]) {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::table::SortedTable;
    use ferroflow_ir::Limits;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn round_trip(entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut writer = TableWriter::new(Vec::new());
        entries.iter().for_each(|(key, value)| writer.add(key, value).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        std::fs::write(&path, writer.finish().unwrap()).unwrap();
        let mut found = BTreeMap::new();
        let visit = |key: &[u8], value: bytes::Bytes| {
            found.insert(key.to_vec(), value.to_vec());
            Ok(())
        };
        SortedTable::open(&path, &Limits::default()).unwrap().scan(visit).unwrap();
        found
    }

    #[test]
    fn tables_have_many_blocks_and_restarts() {
        let key = |n: u32| format!("layer/{n:06}/kernel").into_bytes();
        let entries = (0..400).map(|n| (key(n), vec![n as u8; 4000])).collect();
        assert_eq!(round_trip(&entries), entries);
        assert_eq!(round_trip(&BTreeMap::new()), BTreeMap::new());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entries in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..6), prop::collection::vec(any::<u8>(), 0..6), 0..60,
        )) {
            prop_assert_eq!(round_trip(&entries), entries);
        }
    }
}

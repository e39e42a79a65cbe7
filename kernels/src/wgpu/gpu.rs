//! The state of an adapter: its programs, its pool of memory, and what went wrong.
//!
//! It is the same for every adapter. Calls of wgpu or of the browser are those of its [`Connection`].

use super::{AdapterFacts, Connection, Pipeline, RawBuffer};
use crate::{
    error::{Error, Result},
    program_cache::ProgramCache,
    shader::{Caps, Grid},
};
use ferroflow_ir::device_name::DeviceName;
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Calls that are recorded before they are sent.
const MOST_RECORDED: usize = 128;

/// Bytes of free memory that are kept for later.
const MOST_POOLED: usize = 1 << 30;

/// An adapter.
pub(super) struct Gpu {
    pub(super) name: Arc<str>,
    pub(super) adapter: String,
    pub(super) caps: Caps,
    pub(super) most_bindings: usize,
    pub(super) connection: Connection,
    most_bytes: u64,
    pipelines: ProgramCache<Pipeline>,
    /// The number of calls that are not sent yet.
    recorded: Mutex<usize>,
    /// Free buffers by size. The first one of them is taken, whatever the order was in which they were
    /// freed, so that a run finds the buffers of the run before, and their bind groups.
    pool: Mutex<HashMap<u64, BTreeSet<RawBuffer>>>,
    pooled: AtomicUsize,
}

/// Connects to every adapter; those that cannot be connected to are left out.
pub(super) fn connect() -> Vec<Gpu> {
    let found = Connection::all().into_iter().enumerate();
    found.map(|(index, (facts, connection))| Gpu::new(index, facts, connection)).collect()
}

impl Gpu {
    fn new(index: usize, facts: AdapterFacts, connection: Connection) -> Gpu {
        Gpu {
            name: DeviceName::local("WGPU", index as u32).to_string().into(),
            adapter: facts.name,
            caps: facts.caps,
            most_bindings: facts.most_bindings,
            connection,
            most_bytes: facts.most_bytes / 256 * 256,
            pipelines: ProgramCache::default(),
            recorded: Mutex::default(),
            pool: Mutex::default(),
            pooled: AtomicUsize::new(0),
        }
    }

    /// Whether there are calls that are not sent yet.
    #[cfg(test)]
    pub(super) fn has_recorded(&self) -> bool {
        *self.recorded.lock() > 0
    }

    /// Fails if the device is lost, or something that it was told was wrong.
    fn alive(&self) -> Result<()> {
        if let Some(reason) = self.connection.loss() {
            return Err(self.lost(&reason));
        }
        let device = || self.name.to_string();
        match self.connection.take_defect() {
            None => Ok(()),
            Some(reason) => Err(Error::Device { device: device(), reason: reason.into() }),
        }
    }

    fn lost(&self, reason: &dyn Display) -> Error {
        Error::DeviceLost { device: self.name.to_string(), reason: reason.to_string() }
    }

    fn out_of_memory(&self, bytes: usize) -> Error {
        Error::OutOfMemory { device: self.name.to_string(), bytes }
    }

    /// The pipeline of a text.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] when the text does not compile, which is a defect of the generator;
    /// [`Error::DeviceLost`].
    pub(super) fn pipeline(
        &self,
        op: &'static str,
        text: &str,
        bindings: (usize, usize),
    ) -> Result<Pipeline> {
        if let Some(found) = self.pipelines.get(text) {
            return Ok(found);
        }
        self.alive()?;
        let made = self.connection.compile(op, text, bindings).map_err(|reason| {
            let device = self.name.to_string();
            Error::Compile { device, op, reason }
        })?;
        self.pipelines.insert(text, made.clone());
        Ok(made)
    }

    /// Records a call.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`].
    pub(super) fn dispatch(
        &self,
        pipeline: &Pipeline,
        buffers: &[&RawBuffer],
        grid: Grid,
    ) -> Result<()> {
        self.alive()?;
        let mut recorded = self.recorded.lock();
        self.connection.record(pipeline, buffers, grid);
        *recorded += 1;
        if *recorded >= MOST_RECORDED {
            self.send(&mut recorded);
        }
        Ok(())
    }

    fn send(&self, recorded: &mut usize) {
        *recorded = 0;
        self.connection.send();
    }

    /// Sends what was recorded until now, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`], and what the device found wrong.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.alive()?;
        self.send(&mut self.recorded.lock());
        let waited = self.connection.wait();
        self.alive()?;
        waited.map_err(|reason| self.lost(&reason))
    }

    /// Memory of at least `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when the device refuses it, [`Error::DeviceLost`].
    pub(super) fn allocate(&self, bytes: usize) -> Result<RawBuffer> {
        let size = match bytes as u64 <= self.most_bytes {
            true => size_class(bytes).min(self.most_bytes),
            false => return Err(self.out_of_memory(bytes)),
        };
        self.alive()?;
        if let Some(buffer) = self.pool.lock().get_mut(&size).and_then(BTreeSet::pop_first) {
            self.pooled.fetch_sub(size as usize, Ordering::Relaxed);
            return Ok(buffer);
        }
        if let Some(buffer) = self.connection.allocate(size) {
            return Ok(buffer);
        }
        self.pool.lock().clear();
        self.connection.forget_groups();
        self.pooled.store(0, Ordering::Relaxed);
        self.connection.allocate(size).ok_or_else(|| self.out_of_memory(bytes))
    }

    /// Takes memory back. Calls recorded earlier still find in it what they wrote: later users
    /// come later in the queue.
    pub(super) fn free(&self, buffer: RawBuffer) {
        let bytes = buffer.size() as usize;
        if self.pooled.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_POOLED {
            self.pooled.fetch_sub(bytes, Ordering::Relaxed);
            self.connection.forget_groups();
            return;
        }
        self.pool.lock().entry(buffer.size()).or_default().insert(buffer);
    }

    /// Writes to memory, after what was recorded until now.
    pub(super) fn write(&self, buffer: &RawBuffer, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        let mut recorded = self.recorded.lock();
        // Writes overtake calls that are not sent, and the buffer may be one they use.
        self.send(&mut recorded);
        match bytes.len() % 4 {
            0 => self.connection.write(buffer, bytes),
            // Whole words are written; there is room, as sizes are rounded up.
            _ => {
                let mut padded = bytes.to_vec();
                padded.resize(bytes.len().next_multiple_of(4), 0);
                self.connection.write(buffer, &padded);
            }
        }
        Ok(())
    }

    /// Reads memory, after what was recorded until now.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`], and [`Error::OutOfMemory`] when there is no room for a copy.
    pub(super) fn read(&self, buffer: &RawBuffer, bytes: usize) -> Result<Vec<u8>> {
        self.alive()?;
        let size = bytes.next_multiple_of(4).max(4) as u64;
        let copy = self.connection.allocate_copy(size).ok_or_else(|| self.out_of_memory(bytes))?;
        {
            let mut recorded = self.recorded.lock();
            self.connection.record_copy(buffer, &copy, size);
            self.send(&mut recorded);
        }
        let read = self.connection.read(copy, bytes);
        self.alive()?;
        read.map_err(|reason| self.lost(&reason))
    }
}

/// Sizes are rounded up, so that freed memory fits again: to four steps per power of two.
fn size_class(bytes: usize) -> u64 {
    let bytes = bytes.max(256) as u64;
    let step = (bytes.next_power_of_two() / 8).max(256);
    bytes.next_multiple_of(step)
}

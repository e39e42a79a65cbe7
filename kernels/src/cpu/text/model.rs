//! Models in tensors of bytes: read once, and kept as long as the bytes are the same.

use super::flatbuffer::DamagedBuffer;
use crate::{device::OpCall, error::Result, kernel::Io};
use ferroflow_ir::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// A model that is read from bytes.
pub(super) trait TensorModel: Sized + Send + Sync + 'static {
    /// Its input's name, for messages.
    const INPUT: &'static str;

    /// Reads a model.
    fn read(bytes: &[u8]) -> Result<Self, DamagedBuffer>;

    /// Those read of late, whichever call asked for them.
    fn recent() -> &'static Recent<Self>;
}

/// Number of models of a kind that are kept.
const N_RECENT: usize = 4;

struct Entry<M> {
    bytes: Arc<[u8]>,
    model: Arc<M>,
}

impl<M> Clone for Entry<M> {
    fn clone(&self) -> Entry<M> {
        Entry { bytes: self.bytes.clone(), model: self.model.clone() }
    }
}

/// Models that were read of late, the latest at the end.
pub(super) struct Recent<M>(Mutex<Vec<Entry<M>>>);

impl<M: TensorModel> Recent<M> {
    pub(super) const fn new() -> Recent<M> {
        Recent(Mutex::new(Vec::new()))
    }

    fn get(&self, op: &'static str, bytes: &[u8]) -> Result<Entry<M>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = entries.iter().position(|entry| *entry.bytes == *bytes) {
            let entry = entries.remove(place);
            entries.push(entry.clone());
            return Ok(entry);
        }
        let model = M::read(bytes).map_err(|DamagedBuffer| {
            Error::argument(op, M::INPUT, "a model", format!("{} other bytes", bytes.len()))
        })?;
        let entry = Entry { bytes: bytes.into(), model: Arc::new(model) };
        if entries.len() >= N_RECENT {
            entries.remove(0);
        }
        entries.push(entry.clone());
        Ok(entry)
    }
}

/// The model of one call.
pub(super) struct Loaded<M> {
    op: &'static str,
    input: usize,
    /// Whether the input is a constant, whose model is read already.
    fixed: bool,
    latest: Mutex<Option<Entry<M>>>,
}

impl<M: TensorModel> Loaded<M> {
    /// The model in an input of a call.
    pub(super) fn new(call: &OpCall<'_>, input: usize) -> Result<Loaded<M>> {
        let value = call.inputs[input].value.as_ref();
        let entry = value.map(|value| M::recent().get(call.op.name, value.bytes())).transpose()?;
        let (op, fixed) = (call.op.name, entry.is_some());
        Ok(Loaded { op, input, fixed, latest: Mutex::new(entry) })
    }

    /// The model in the input as it is now.
    pub(super) fn get(&self, io: &Io<'_>) -> Result<Arc<M>> {
        let bytes = io.bytes(self.input);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some(entry) if self.fixed || *entry.bytes == *bytes => Ok(entry.model.clone()),
            Some(_) | None => {
                let entry = M::recent().get(self.op, bytes)?;
                Ok(latest.insert(entry).model.clone())
            }
        }
    }
}

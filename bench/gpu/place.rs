//! Where rows run.

use crate::inputs;
use anyhow::Result;
use ferroflow::{
    Tensor,
    ir::{HostTensor, device_name::DeviceName},
    runtime::{Context, ContextOptions, Device, EagerTensor, Precision},
    tracer,
};
use std::{num::NonZeroUsize, sync::Arc};

/// A context, and the device in it that rows run on.
pub(crate) struct BenchDevice {
    pub(super) context: Context,
    /// `None` for the CPU.
    device: Option<Arc<dyn Device>>,
}

impl BenchDevice {
    pub(super) fn new(device: &str, threads: usize, precision: Precision) -> Result<BenchDevice> {
        let name: DeviceName = device.parse()?;
        let threads = NonZeroUsize::new(threads);
        let options = ContextOptions { threads, precision, ..ContextOptions::default() };
        let context = Context::with_options(options);
        context.keep_placements();
        let device = match name.kind.as_deref() {
            Some("CPU") => None,
            _ => Some(context.device(&name)?),
        };
        Ok(BenchDevice { context, device })
    }

    pub(super) fn name(&self) -> &str {
        self.device.as_ref().map_or(self.context.cpu().name(), |device| device.name())
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.device.as_ref().and_then(|device| device.model())
    }

    /// Runs `body` with calls and new variables placed here.
    pub(super) fn within<R>(&self, body: impl FnOnce() -> Result<R>) -> Result<R> {
        let _context = tracer::context::enter(&self.context);
        match &self.device {
            None => body(),
            Some(device) => tracer::device(device.name(), || Ok(body()))?,
        }
    }

    /// Waits until the device has done all that it was given.
    pub(super) fn wait(&self) -> Result<()> {
        Ok(self.device.as_ref().map_or(Ok(()), |device| device.synchronize())?)
    }

    /// A tensor in the device's memory.
    pub(super) fn tensor(&self, tensor: HostTensor) -> Result<Tensor> {
        let placed = match &self.device {
            None => EagerTensor::from(tensor),
            Some(device) => device.upload(&tensor.into())?.into(),
        };
        Ok(placed.into())
    }

    /// Numbers between `low` and `high` of a seed.
    pub(super) fn floats(&self, seed: u64, dims: &[usize], low: f32, high: f32) -> Result<Tensor> {
        self.tensor(inputs::floats(seed, dims, low, high)?)
    }

    /// Indices below `modulus` of a seed.
    pub(super) fn ids(&self, seed: u64, dims: &[usize], modulus: u64) -> Result<Tensor> {
        self.tensor(inputs::ids(seed, dims, modulus)?.into_host()?)
    }
}

//! The connection to one adapter: queue, pipelines, pool, and what went wrong.

use crate::{
    error::{Error, Result},
    program_cache::ProgramCache,
    shader::{Caps, Grid, ShaderDialect},
};
use ferroflow_ir::device_name::DeviceName;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Calls that are recorded before they are sent.
const MOST_RECORDED: usize = 128;

/// Bytes of free memory that are kept for later.
const MOST_POOLED: usize = 1 << 30;

/// A compiled text.
#[derive(Clone)]
pub(super) struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// An adapter.
pub(super) struct Gpu {
    pub(super) name: Arc<str>,
    pub(super) adapter: String,
    pub(super) caps: Caps,
    pub(super) most_bindings: usize,
    device: wgpu::Device,
    queue: wgpu::Queue,
    most_bytes: u64,
    pipelines: ProgramCache<Pipeline>,
    recorded: Mutex<Recorded>,
    /// Free buffers by size.
    pool: Mutex<HashMap<u64, Vec<wgpu::Buffer>>>,
    pooled: AtomicUsize,
    /// Why the device is lost, once it is.
    loss: Arc<Mutex<Option<String>>>,
    /// Defect found since the last look.
    defect: Arc<Mutex<Option<String>>>,
}

/// Calls that are not sent yet.
#[derive(Default)]
struct Recorded {
    encoder: Option<wgpu::CommandEncoder>,
    n_calls: usize,
}

/// Connects to every adapter; those that cannot be connected to are left out.
pub(super) fn connect() -> Vec<Gpu> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let rank = |adapter: &wgpu::Adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    };
    adapters.sort_by_key(rank);
    let mut found = Vec::new();
    for adapter in adapters {
        if let Some(gpu) = Gpu::connect(&adapter, found.len() as u32) {
            found.push(gpu);
        }
    }
    found
}

impl Gpu {
    fn connect(adapter: &wgpu::Adapter, index: u32) -> Option<Gpu> {
        let caps = Caps {
            int64: adapter.features().contains(wgpu::Features::SHADER_INT64),
            // In software barriers cost more than memory.
            tiles: adapter.get_info().device_type != wgpu::DeviceType::Cpu,
            subgroups: adapter.features().contains(wgpu::Features::SUBGROUP),
            warps: false,
            matrices: false,
            halves: adapter.features().contains(wgpu::Features::SHADER_F16),
        };
        let wanted =
            wgpu::Features::SHADER_INT64 | wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16;
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features() & wanted,
            required_limits: limits.clone(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).ok()?;
        let loss: Arc<Mutex<Option<String>>> = Arc::default();
        let defect: Arc<Mutex<Option<String>>> = Arc::default();
        let (on_loss, on_error) = (loss.clone(), defect.clone());
        device.set_device_lost_callback(move |_, reason| {
            on_loss.lock().get_or_insert(reason);
        });
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            on_error.lock().get_or_insert(error.to_string());
        }));
        Some(Gpu {
            name: DeviceName::local("WGPU", index).to_string().into(),
            adapter: adapter.get_info().name,
            caps,
            most_bindings: limits.max_storage_buffers_per_shader_stage as usize,
            most_bytes: limits.max_buffer_size.min(limits.max_storage_buffer_binding_size) / 256
                * 256,
            device,
            queue,
            pipelines: ProgramCache::default(),
            recorded: Mutex::default(),
            pool: Mutex::default(),
            pooled: AtomicUsize::new(0),
            loss,
            defect,
        })
    }

    /// Runs `make`, with what the device finds wrong as an error.
    fn checked<R>(
        &self,
        filter: wgpu::ErrorFilter,
        make: impl FnOnce() -> R,
    ) -> Result<R, wgpu::Error> {
        let scope = self.device.push_error_scope(filter);
        let made = make();
        match pollster::block_on(scope.pop()) {
            None => Ok(made),
            Some(error) => Err(error),
        }
    }

    /// Loses the device.
    #[cfg(test)]
    pub(super) fn destroy(&self) {
        self.device.destroy();
        // The loss is told when the device is next looked at.
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
    }

    /// Whether there are calls that are not sent yet.
    #[cfg(test)]
    pub(super) fn has_recorded(&self) -> bool {
        self.recorded.lock().encoder.is_some()
    }

    /// Fails if the device is lost, or something that it was told was wrong.
    fn alive(&self) -> Result<()> {
        let device = || self.name.to_string();
        if let Some(reason) = self.loss.lock().clone() {
            return Err(Error::DeviceLost { device: device(), reason });
        }
        match self.defect.lock().take() {
            None => Ok(()),
            Some(reason) => Err(Error::Device { device: device(), reason: reason.into() }),
        }
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
        (n_inputs, n_outputs): (usize, usize),
    ) -> Result<Pipeline> {
        if let Some(found) = self.pipelines.get(text) {
            return Ok(found);
        }
        self.alive()?;
        let made = self.checked(wgpu::ErrorFilter::Validation, || {
            let source = wgpu::ShaderSource::Wgsl(text.into());
            let module = self
                .device
                .create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(op), source });
            let layout = self.layout(n_inputs, n_outputs);
            let pipeline_layout =
                self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label: Some(op),
                    bind_group_layouts: &[Some(&layout)],
                    ..wgpu::PipelineLayoutDescriptor::default()
                });
            let descriptor = wgpu::ComputePipelineDescriptor {
                label: Some(op),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(ShaderDialect::Wgsl.entry()),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            };
            Pipeline { pipeline: self.device.create_compute_pipeline(&descriptor), layout }
        });
        let made = made.map_err(|error| {
            let device = self.name.to_string();
            Error::Compile { device, op, reason: error.to_string() }
        })?;
        self.pipelines.insert(text, made.clone());
        Ok(made)
    }

    /// The layout of so many inputs and outputs; a text need not use all of them.
    fn layout(&self, n_inputs: usize, n_outputs: usize) -> wgpu::BindGroupLayout {
        let entry = |binding: usize| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: binding < n_inputs },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = (0..n_inputs + n_outputs).map(entry).collect();
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
        self.device.create_bind_group_layout(&descriptor)
    }

    /// Records a call.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`].
    pub(super) fn dispatch(
        &self,
        pipeline: &Pipeline,
        buffers: &[&wgpu::Buffer],
        (width, height): Grid,
    ) -> Result<()> {
        self.alive()?;
        let entries: Vec<wgpu::BindGroupEntry<'_>> = buffers
            .iter()
            .enumerate()
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut recorded = self.recorded.lock();
        let encoder = recorded.encoder.get_or_insert_with(|| self.encoder());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(width, height, 1);
        }
        recorded.n_calls += 1;
        if recorded.n_calls >= MOST_RECORDED {
            self.send(&mut recorded);
        }
        Ok(())
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    fn send(&self, recorded: &mut Recorded) {
        recorded.n_calls = 0;
        if let Some(encoder) = recorded.encoder.take() {
            self.queue.submit([encoder.finish()]);
        }
    }

    /// Sends what was recorded until now, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`], and what the device found wrong.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.alive()?;
        self.send(&mut self.recorded.lock());
        self.wait()
    }

    /// Waits for what was sent.
    fn wait(&self) -> Result<()> {
        let waited = self.device.poll(wgpu::PollType::wait_indefinitely());
        self.alive()?;
        waited.map(|_| ()).map_err(|error| self.lost(&error))
    }

    fn lost(&self, reason: &dyn std::fmt::Display) -> Error {
        Error::DeviceLost { device: self.name.to_string(), reason: reason.to_string() }
    }

    /// Memory of at least `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when the device refuses it, [`Error::DeviceLost`].
    pub(super) fn allocate(&self, bytes: usize) -> Result<wgpu::Buffer> {
        let size = match bytes as u64 <= self.most_bytes {
            true => size_class(bytes).min(self.most_bytes),
            false => return Err(self.out_of_memory(bytes)),
        };
        self.alive()?;
        if let Some(buffer) = self.pool.lock().get_mut(&size).and_then(Vec::pop) {
            self.pooled.fetch_sub(size as usize, Ordering::Relaxed);
            return Ok(buffer);
        }
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let descriptor =
            wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let make = || {
            self.checked(wgpu::ErrorFilter::OutOfMemory, || self.device.create_buffer(&descriptor))
        };
        make().or_else(|_| {
            self.pool.lock().clear();
            self.pooled.store(0, Ordering::Relaxed);
            make().map_err(|_| self.out_of_memory(bytes))
        })
    }

    fn out_of_memory(&self, bytes: usize) -> Error {
        Error::OutOfMemory { device: self.name.to_string(), bytes }
    }

    /// Takes memory back. Calls recorded earlier still find in it what they wrote: later users
    /// come later in the queue.
    pub(super) fn free(&self, buffer: wgpu::Buffer) {
        let bytes = buffer.size() as usize;
        if self.pooled.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_POOLED {
            self.pooled.fetch_sub(bytes, Ordering::Relaxed);
            return;
        }
        self.pool.lock().entry(buffer.size()).or_default().push(buffer);
    }

    /// Writes to memory, after what was recorded until now.
    pub(super) fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        let mut recorded = self.recorded.lock();
        // Writes overtake calls that are not sent, and the buffer may be one they use.
        self.send(&mut recorded);
        match bytes.len() % 4 {
            0 => self.queue.write_buffer(buffer, 0, bytes),
            // Whole words are written; there is room, as sizes are rounded up.
            _ => {
                let mut padded = bytes.to_vec();
                padded.resize(bytes.len().next_multiple_of(4), 0);
                self.queue.write_buffer(buffer, 0, &padded);
            }
        }
        Ok(())
    }

    /// Reads memory, after what was recorded until now.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`], and [`Error::OutOfMemory`] when there is no room for a copy.
    pub(super) fn read(&self, buffer: &wgpu::Buffer, bytes: usize) -> Result<Vec<u8>> {
        self.alive()?;
        let size = bytes.next_multiple_of(4).max(4) as u64;
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        let staging = self
            .checked(wgpu::ErrorFilter::OutOfMemory, || self.device.create_buffer(&descriptor))
            .map_err(|_| self.out_of_memory(bytes))?;
        {
            let mut recorded = self.recorded.lock();
            let encoder = recorded.encoder.get_or_insert_with(|| self.encoder());
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
            self.send(&mut recorded);
        }
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait()?;
        let view = staging.get_mapped_range(..).map_err(|error| self.lost(&error))?;
        Ok(view[..bytes].to_vec())
    }
}

/// Sizes are rounded up, so that freed memory fits again: to four steps per power of two.
fn size_class(bytes: usize) -> u64 {
    let bytes = bytes.max(256) as u64;
    let step = (bytes.next_power_of_two() / 8).max(256);
    bytes.next_multiple_of(step)
}

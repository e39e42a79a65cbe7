//! Adapters that wgpu reaches.

use super::AdapterFacts;
use crate::shader::{Caps, Grid, ShaderDialect};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    sync::{Arc, mpsc},
};

/// Bind groups that are kept for calls that come again with the same memory.
const MOST_GROUPS: usize = 4096;

/// A compiled text.
#[derive(Clone)]
pub(crate) struct NativePipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// Calls that are not sent yet: one pass for as many as come after each other.
struct Recording {
    encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
}

/// A pipeline and the buffers that it is bound to.
type GroupKey = (wgpu::ComputePipeline, SmallVec<[wgpu::Buffer; 8]>);

/// A device of an adapter, and its queue.
pub(crate) struct NativeConnection {
    device: wgpu::Device,
    queue: wgpu::Queue,
    recording: Mutex<Option<Recording>>,
    /// Memory comes from a pool, so that calls soon find the memory of earlier ones.
    groups: Mutex<HashMap<GroupKey, wgpu::BindGroup>>,
    /// Why the device is lost, once it is.
    loss: Arc<Mutex<Option<String>>>,
    /// Defect found since the last look.
    defect: Arc<Mutex<Option<String>>>,
}

impl NativeConnection {
    /// A connection to every adapter, real ones before software.
    pub(super) fn all() -> Vec<(AdapterFacts, NativeConnection)> {
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
        adapters.iter().filter_map(NativeConnection::to).collect()
    }

    fn to(adapter: &wgpu::Adapter) -> Option<(AdapterFacts, NativeConnection)> {
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
        let facts = AdapterFacts {
            name: adapter.get_info().name,
            caps,
            most_bindings: limits.max_storage_buffers_per_shader_stage as usize,
            most_bytes: limits.max_buffer_size.min(limits.max_storage_buffer_binding_size),
        };
        let (recording, groups) = (Mutex::default(), Mutex::default());
        Some((facts, NativeConnection { device, queue, recording, groups, loss, defect }))
    }

    pub(super) fn loss(&self) -> Option<String> {
        self.loss.lock().clone()
    }

    /// The first defect found since the last look.
    pub(super) fn take_defect(&self) -> Option<String> {
        self.defect.lock().take()
    }

    /// Loses the device.
    #[cfg(test)]
    pub(super) fn destroy(&self) {
        self.device.destroy();
        // The loss is told when the device is next looked at.
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
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

    /// Compiles a text that reads so many buffers and writes so many.
    pub(super) fn compile(
        &self,
        op: &'static str,
        text: &str,
        (n_inputs, n_outputs): (usize, usize),
    ) -> Result<NativePipeline, String> {
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
            NativePipeline { pipeline: self.device.create_compute_pipeline(&descriptor), layout }
        });
        made.map_err(|error| error.to_string())
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
    pub(super) fn record(
        &self,
        pipeline: &NativePipeline,
        buffers: &[&wgpu::Buffer],
        (width, height): Grid,
    ) {
        let group = self.group(pipeline, buffers);
        let mut recording = self.recording.lock();
        let Recording { encoder, pass } = self.opened(&mut recording);
        let pass = pass.get_or_insert_with(|| {
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).forget_lifetime()
        });
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(width, height, 1);
    }

    /// The bind group of a pipeline and buffers.
    fn group(&self, pipeline: &NativePipeline, buffers: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        let bound = buffers.iter().map(|&buffer| buffer.clone()).collect();
        let key: GroupKey = (pipeline.pipeline.clone(), bound);
        let mut groups = self.groups.lock();
        if let Some(found) = groups.get(&key) {
            return found.clone();
        }
        let entries = buffers.iter().enumerate().map(|(binding, buffer)| wgpu::BindGroupEntry {
            binding: binding as u32,
            resource: buffer.as_entire_binding(),
        });
        let entries: SmallVec<[_; 8]> = entries.collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        if groups.len() >= MOST_GROUPS {
            groups.clear();
        }
        groups.insert(key, group.clone());
        group
    }

    /// Lets go of bind groups, which keep the memory that they bind.
    pub(super) fn forget_groups(&self) {
        self.groups.lock().clear();
    }

    /// The number of bind groups that are kept.
    #[cfg(test)]
    pub(super) fn n_groups(&self) -> usize {
        self.groups.lock().len()
    }

    /// Records a copy of the first bytes of a buffer.
    pub(super) fn record_copy(&self, from: &wgpu::Buffer, to: &wgpu::Buffer, size: u64) {
        let mut recording = self.recording.lock();
        let Recording { encoder, pass } = self.opened(&mut recording);
        drop(pass.take());
        encoder.copy_buffer_to_buffer(from, 0, to, 0, size);
    }

    fn opened<'a>(&self, recording: &'a mut Option<Recording>) -> &'a mut Recording {
        recording.get_or_insert_with(|| {
            let descriptor = wgpu::CommandEncoderDescriptor::default();
            Recording { encoder: self.device.create_command_encoder(&descriptor), pass: None }
        })
    }

    /// Sends what was recorded.
    pub(super) fn send(&self) {
        if let Some(Recording { encoder, pass }) = self.recording.lock().take() {
            drop(pass);
            self.queue.submit([encoder.finish()]);
        }
    }

    /// Waits for what was sent.
    pub(super) fn wait(&self) -> Result<(), String> {
        let waited = self.device.poll(wgpu::PollType::wait_indefinitely());
        waited.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Memory for kernels, if there is so much.
    pub(super) fn allocate(&self, size: u64) -> Option<wgpu::Buffer> {
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        self.create(size, usage)
    }

    /// Memory that [`read`](NativeConnection::read) reads, if there is so much.
    pub(super) fn allocate_copy(&self, size: u64) -> Option<wgpu::Buffer> {
        self.create(size, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)
    }

    fn create(&self, size: u64, usage: wgpu::BufferUsages) -> Option<wgpu::Buffer> {
        let descriptor =
            wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let make = || self.device.create_buffer(&descriptor);
        self.checked(wgpu::ErrorFilter::OutOfMemory, make).ok()
    }

    /// Writes to memory; the length is a multiple of four.
    pub(super) fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        self.queue.write_buffer(buffer, 0, bytes);
    }

    /// The first bytes of memory, after what was sent.
    pub(super) fn read(&self, copy: wgpu::Buffer, bytes: usize) -> Result<Vec<u8>, String> {
        let (tell, told) = mpsc::channel();
        copy.map_async(wgpu::MapMode::Read, .., move |mapped| {
            let _ = tell.send(mapped);
        });
        self.wait()?;
        // Who waited was told.
        let mapped = told.try_recv().map_err(|error| error.to_string())?;
        mapped.map_err(|error| error.to_string())?;
        let view = copy.get_mapped_range(..).map_err(|error| error.to_string())?;
        Ok(view[..bytes].to_vec())
    }
}

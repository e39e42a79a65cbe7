//! Where and how the ops of a command run.

use anyhow::Result;
use clap::Args;
use ferroflow::{
    ir::device_name::DeviceName,
    runtime::{Context, ContextOptions, Precision},
};
use std::num::NonZeroUsize;

/// Arguments that make a context.
#[derive(Args)]
pub(super) struct ContextArguments {
    /// Run on this device, such as `WGPU` or `/device:WGPU:0`.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The threads that share the work of one op; one per processor by default.
    #[arg(long, value_name = "N", value_parser = thread_count)]
    threads: Option<NonZeroUsize>,
    /// Precision of matmuls and convolutions of `float32`: `tensorfloat32`, to which GPUs may round
    /// factors, `bfloat16`, to which CPUs with AMX or AVX512-BF16 may, or `full`.
    #[arg(long, value_name = "PRECISION", value_parser = precision, default_value = "tensorfloat32")]
    precision: Precision,
}

impl ContextArguments {
    /// The context, which runs ops without a device of their own on this device. It must exist.
    pub(super) fn context(&self) -> Result<Context> {
        let device: Option<DeviceName> = self.device.as_deref().map(str::parse).transpose()?;
        let (threads, precision) = (self.threads, self.precision);
        let options =
            ContextOptions { threads, precision, device: device.clone(), ..Default::default() };
        let context = Context::with_options(options);
        if let Some(device) = device.filter(|device| device.kind.as_deref() != Some("CPU")) {
            context.device(&device)?;
        }
        Ok(context)
    }
}

/// The most threads that may be asked for: each is one of the operating system.
const MOST_THREADS: usize = 1024;

/// A number of threads on the command line.
fn thread_count(text: &str) -> Result<NonZeroUsize, String> {
    let number: NonZeroUsize = text.parse().map_err(|_| "not a number from 1 on".to_string())?;
    match number.get() <= MOST_THREADS {
        true => Ok(number),
        false => Err(format!("more than {MOST_THREADS} threads")),
    }
}

/// A precision on the command line.
fn precision(text: &str) -> Result<Precision, String> {
    match text {
        "tensorfloat32" => Ok(Precision::TensorFloat32),
        "bfloat16" => Ok(Precision::BFloat16),
        "full" => Ok(Precision::Full),
        _ => Err("not `tensorfloat32`, `bfloat16` or `full`".to_string()),
    }
}

//! Functions on meshes of devices: their results are those of one device.

mod errors;
mod generator;
mod programs;
mod state;
mod transformer;

use ferroflow_ir::{DType, HostTensor, Shape};
use ferroflow_runtime::{Context, ContextOptions};
use ferroflow_tracer::{
    Result, Tensor, context,
    distribute::{DistributedTensor, Layout, Mesh, MeshStrategy},
};
use std::num::NonZeroUsize;

/// Runs `body` with the strategy of a mesh of logical CPUs.
fn on_mesh<R>(dims: &[(&str, usize)], body: impl FnOnce(&MeshStrategy) -> R) -> R {
    let n: usize = dims.iter().map(|(_, size)| size).product();
    let options =
        ContextOptions { logical_cpus: NonZeroUsize::new(n), ..ContextOptions::default() };
    let _guard = context::enter(&Context::with_options(options));
    let mesh = Mesh::new(dims.iter().copied(), (0..n).map(|i| format!("CPU:{i}"))).unwrap();
    body(&MeshStrategy::new(&mesh).unwrap())
}

fn layout(strategy: &MeshStrategy, specs: &[&str]) -> Layout {
    Layout::new(strategy.mesh(), specs).unwrap()
}

/// A tensor in the layout of these specs.
fn split(strategy: &MeshStrategy, tensor: &Tensor, specs: &[&str]) -> DistributedTensor {
    DistributedTensor::new(tensor, &layout(strategy, specs)).unwrap()
}

/// A tensor of numbers that look random, between -1 and 1.
fn noise(dims: &[usize], seed: u64) -> Tensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let mut random = generator::Random::new(seed);
    let numbers: Vec<f32> = (0..shape.num_elements()).map(|_| random.unit() as f32).collect();
    HostTensor::from_slice(shape, &numbers).unwrap().into()
}

/// A tensor of integers below a limit.
fn ids(dims: &[usize], limit: i32, seed: u64) -> Tensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let mut random = generator::Random::new(seed);
    let numbers: Vec<i32> =
        (0..shape.num_elements()).map(|_| random.below(limit as usize) as i32).collect();
    HostTensor::from_slice(shape, &numbers).unwrap().into()
}

/// The largest distance of two tensors, relative to their size; none between infinities and NaNs of one kind.
fn distance(a: &Tensor, b: &Tensor) -> Result<f64> {
    assert_eq!(a.dtype(), b.dtype());
    assert_eq!(a.host()?.shape(), b.host()?.shape());
    let numbers = |tensor: &Tensor| -> Result<Vec<f64>> {
        Ok(match tensor.dtype() {
            DType::F64 => tensor.to_vec::<f64>()?,
            DType::F32 => tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
            DType::Bool => tensor.host()?.bytes().iter().map(|&byte| f64::from(byte)).collect(),
            _ => tensor.host()?.to_i64s()?.into_iter().map(|n| n as f64).collect(),
        })
    };
    let apart = |(a, b): (&f64, &f64)| match a == b || (a.is_nan() && b.is_nan()) {
        true => 0.0,
        false => (a - b).abs() / (1.0 + a.abs().max(b.abs())),
    };
    let (a, b) = (numbers(a)?, numbers(b)?);
    let apart = a.iter().zip(&b).map(apart);
    Ok(apart.fold(0.0, |largest, own| if own >= largest { own } else { f64::NAN.max(largest) }))
}

/// Checks that two tensors are equal but for rounding.
#[track_caller]
fn assert_close(a: &Tensor, b: &Tensor, tolerance: f64) {
    let found = distance(a, b).unwrap();
    assert!(found <= tolerance, "{found}: {:?} and {:?}", a.host().unwrap(), b.host().unwrap());
}

fn shaped(dims: &[usize]) -> Shape {
    Shape::new(dims.iter().copied()).unwrap()
}

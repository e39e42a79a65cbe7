//! Every shader is checked in each language, without a device; where there is a device, it runs and
//! is compared with the CPU's kernel.

mod attention;
pub(crate) mod cases;
mod chains;
mod coverage;
mod failures;
mod followed;
pub(crate) mod groups;
mod halves;
mod images;
mod moved;
pub(crate) mod products;
mod rows;
mod snapshots;
mod sought;
mod twins;
mod wgsl;

use super::{Caps, PRODUCTS, SHADERS, ShaderDialect, shader};
use crate::{Buffer, Device, Io, Kernel, Operand, Target, Threads, accelerators};
use cases::{Case, cases, cast, on_cpu};
use ferroflow_ir::{Attrs, DType, HostTensor, Shape};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The different texts of the matrix, each with the first call that needs it.
pub(crate) fn programs(dialect: ShaderDialect, caps: Caps) -> BTreeMap<String, String> {
    let mut programs = BTreeMap::new();
    for case in cases() {
        let found = case.with_call(|call| shader(call, caps).unwrap());
        if let Some(Some(shader)) = found
            && shader.count > 0
        {
            programs.entry(dialect.print(&shader)).or_insert_with(|| case.name());
        }
    }
    programs.extend(followed::programs(dialect, caps));
    programs.extend(rows::programs(dialect, caps));
    programs
}

fn on_device(device: &dyn Device, case: &Case) -> Option<Vec<HostTensor>> {
    let (kernel, outputs) = case.with_call(|call| {
        let kernel = device.kernel(call).unwrap()?;
        let ty = |index: usize| (call.outputs[index].dtype, call.output_shape(index).unwrap());
        Some((kernel, (0..call.outputs.len()).map(ty).collect::<Vec<_>>()))
    })??;
    Some(launched(device, &*kernel, &case.inputs, &outputs))
}

/// Result of a device's kernel for inputs.
fn launched(
    device: &dyn Device,
    kernel: &dyn Kernel,
    inputs: &[HostTensor],
    outputs: &[(DType, Shape)],
) -> Vec<HostTensor> {
    let outputs: Vec<Buffer> =
        outputs.iter().map(|(dtype, shape)| device.allocate(*dtype, shape).unwrap()).collect();
    let inputs: Vec<Option<Buffer>> = inputs
        .iter()
        .map(|input| {
            device.storage(input.dtype()).map(|_| device.upload(&input.clone().into()).unwrap())
        })
        .collect();
    let threads = Threads::single();
    let operands = inputs.iter().map(|input| match input {
        Some(Buffer::Device(buffer)) => Operand::Device(buffer),
        Some(Buffer::Host(_)) | None => Operand::Plain(&[]),
    });
    let targets = outputs.iter().map(|output| match output {
        Buffer::Device(buffer) => Target::Device(buffer),
        Buffer::Host(_) => panic!("the device gave host memory"),
    });
    kernel.run(&mut Io::new(operands, targets, &threads, usize::MAX)).unwrap();
    outputs.iter().map(|output| output.host().unwrap().clone()).collect()
}

/// Difference between the results of a device and of the CPU for a call, if there is any.
pub(crate) fn check(device: &dyn Device, case: &Case) -> Option<String> {
    let (found, expected) = (on_device(device, case)?, on_cpu(case)?);
    let mut pairs = found.iter().zip(&expected);
    pairs.find_map(|(found, expected)| difference(found, expected))
}

/// `[1, 2] + [1, 2]` on a device.
pub(crate) fn doubled(device: &dyn Device) -> Vec<f32> {
    let x = HostTensor::vector(&[1.0f32, 2.0]).unwrap();
    let case = Case { op: "AddV2", attrs: Attrs::new(), inputs: vec![x.clone(), x] };
    let found = on_device(device, &case).unwrap();
    found[0].as_slice::<f32>().unwrap().to_vec()
}

/// The first pair of elements that differ by more than accuracy explains.
fn difference(found: &HostTensor, expected: &HostTensor) -> Option<String> {
    difference_after(expected.dtype(), found, expected)
}

/// The same of what was made of elements of `dtype`.
fn difference_after(dtype: DType, found: &HostTensor, expected: &HostTensor) -> Option<String> {
    if expected.dtype().is_float() {
        let is_half = matches!(expected.dtype(), DType::F16 | DType::BF16);
        let (found, expected) = (cast(found, DType::F64), cast(expected, DType::F64));
        let (found, expected) = (
            found.as_slice::<f64>().unwrap().to_vec(),
            expected.as_slice::<f64>().unwrap().to_vec(),
        );
        // Sums of 16-bit floats are rounded more often by kernels of the CPU; of numbers between two
        // 16-bit floats, sums in another order may be rounded to either.
        let relative = match (dtype, is_half) {
            (DType::F16 | DType::BF16, _) | (_, true) => 8e-3,
            _ => 4e-6,
        };
        return found.iter().zip(&expected).find_map(|(&x, &y)| {
            let close = (x - y).abs() <= 1e-6 + y.abs() * relative;
            let same = x == y || close || (x.is_nan() && y.is_nan());
            (!same).then(|| format!("{x} instead of {y}"))
        });
    }
    (found.bytes() != expected.bytes()).then(|| format!("{found} instead of {expected}"))
}

/// Whether a missing device (`wgpu`, `cuda`) or compiler (`nvrtc`) fails tests instead of being
/// skipped.
pub(crate) fn is_required(kind: &str) -> bool {
    let required = std::env::var("REQUIRE_DEVICES").unwrap_or_default();
    required.split(',').any(|device| device.eq_ignore_ascii_case(kind))
}

/// A program that no call is compared by could compute anything.
#[test]
fn every_op_with_programs_is_compared() {
    let caps = Caps { int64: true, ..Caps::default() };
    let products = PRODUCTS.iter().flat_map(|rows| *rows).map(|row| row.0);
    let mut missing: BTreeSet<&str> =
        SHADERS.iter().flat_map(|rows| *rows).map(|row| row.0).chain(products).collect();
    for case in sampled() {
        let has_program = case.with_call(|call| shader(call, caps).unwrap().is_some());
        if missing.contains(case.op) && has_program == Some(true) && on_cpu(&case).is_some() {
            missing.remove(case.op);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every kind of call on floats, the first of each op, and some on other types: compiling takes
/// time.
fn sampled() -> impl Iterator<Item = Case> {
    let mut seen = BTreeSet::new();
    let wanted = move |(number, case): (usize, Case)| {
        let is_float = case.inputs.iter().any(|x| x.dtype() == DType::F32);
        let is_random = case.op.starts_with("Stateless");
        let is_long = case.inputs.iter().any(|x| x.len() > 10_000);
        let is_new = seen.insert(case.op);
        (is_float || is_random || is_long || is_new || number % 5 == 0).then_some(case)
    };
    cases().into_iter().enumerate().filter_map(wanted)
}

/// A device of each kind; fails where one that is required is missing.
fn one_of_each_kind() -> Vec<Arc<dyn Device>> {
    let devices: Vec<Arc<dyn Device>> = accelerators();
    let kinds = [("WGPU", "wgpu"), ("GPU", "cuda")].into_iter().filter_map(|(kind, required)| {
        let of_kind = |device: &&Arc<dyn Device>| device.name().contains(&format!(":{kind}:"));
        let found = devices.iter().find(of_kind).cloned();
        if found.is_none() {
            assert!(!is_required(required), "no {kind} was found");
            eprintln!("skipped: no {kind} was found");
        }
        found
    });
    kinds.collect()
}

/// Compares every fourth of the sampled cases, from one on: so the tests share the processors.
fn compare_with_cpu(first: usize) {
    for device in one_of_each_kind() {
        let (mut n, mut wrong) = (0, Vec::new());
        for case in sampled().skip(first).step_by(4) {
            let Some(found) = on_device(&*device, &case) else { continue };
            let Some(expected) = on_cpu(&case) else { continue };
            n += 1;
            for (found, expected) in found.iter().zip(&expected) {
                if let Some(difference) = difference(found, expected) {
                    wrong.push(format!("{}: {difference}", case.name()));
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {n}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(n > 50, "{n} calls were compared");
    }
}

#[test]
fn devices_compute_what_the_cpu_does_1_of_4() {
    compare_with_cpu(0);
}

#[test]
fn devices_compute_what_the_cpu_does_2_of_4() {
    compare_with_cpu(1);
}

#[test]
fn devices_compute_what_the_cpu_does_3_of_4() {
    compare_with_cpu(2);
}

#[test]
fn devices_compute_what_the_cpu_does_4_of_4() {
    compare_with_cpu(3);
}

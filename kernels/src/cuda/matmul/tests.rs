//! The library takes what it is told, also without a device; where there is one, products are what
//! the CPU gives.

use super::{
    library::{MatmulPlan, is_present},
    problem::{FactorLayout, LibraryEpilogue, LibraryProblem, MatmulElement},
};
use crate::{
    Buffer, CpuDevice, Device, DeviceBuffer, Io, Kernel, OpCall, Operand, OperandSpec, Precision,
    Target, Threads,
    cuda::{CudaDevice, devices},
    shader::tests::{check, is_required, products::products},
};
use ferroflow_ir::{Attrs, DType, HostTensor, Shape, registry};

#[test]
fn the_library_knows_every_kind_of_problem() {
    if !is_present() {
        assert!(!is_required("cublaslt"), "cuBLASLt was not found");
        eprintln!("skipped: cuBLASLt was not found");
        return;
    }
    let epilogues = [
        LibraryEpilogue::None,
        LibraryEpilogue::Bias,
        LibraryEpilogue::BiasRelu,
        LibraryEpilogue::BiasGelu,
    ];
    for element in [MatmulElement::F32, MatmulElement::F16, MatmulElement::BF16] {
        for epilogue in epilogues {
            for kind in 0..16 {
                let is = |bit: u32| kind >> bit & 1 == 1;
                let factor =
                    |bit| FactorLayout { is_transposed: is(bit), is_shared: is(2) && is(bit) };
                let problem = LibraryProblem {
                    element,
                    is_full: is(3),
                    rows: 60,
                    columns: 50,
                    depth: 40,
                    batch: if is(2) { 3 } else { 1 },
                    first: factor(0),
                    second: factor(1),
                    epilogue,
                };
                assert!(MatmulPlan::new(&problem).is_ok(), "{problem:?}");
            }
        }
    }
}

/// The first device, if there is one with the library.
fn device() -> Option<&'static CudaDevice> {
    let device = devices().first()?;
    match device.has_library() {
        Ok(()) => Some(device),
        Err(reason) => {
            assert!(!is_required("cublaslt"), "{reason}");
            eprintln!("skipped: {reason}");
            None
        }
    }
}

/// Number of problems that have an algorithm.
fn known(device: &CudaDevice) -> usize {
    let opened = device.products.open(&device.driver).unwrap();
    opened.chosen.lock().values().flatten().count()
}

#[test]
fn products_are_what_the_cpu_gives() {
    let Some(device) = device() else { return };
    let wrong: Vec<String> = products()
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.name(), check(device, case)?)))
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(known(device) > 30, "{} problems", known(device));
}

fn sizes(dims: &[usize]) -> Shape {
    Shape::new(dims.iter().copied()).unwrap()
}

fn upload(device: &CudaDevice, tensor: &HostTensor) -> DeviceBuffer {
    let Buffer::Device(buffer) = device.upload(&tensor.clone().into()).unwrap() else {
        panic!("not there")
    };
    buffer
}

/// Result of the device for a call of floats, if it has a kernel.
fn run(
    device: &CudaDevice,
    (op, attrs): (&str, Attrs),
    inputs: &[HostTensor],
    precision: Precision,
) -> Option<Vec<f32>> {
    let op = registry::find(op).unwrap();
    let attrs = op.complete_attrs(attrs.with("T", DType::F32)).unwrap();
    let specs: Vec<OperandSpec> =
        inputs.iter().map(|input| OperandSpec::new(input.dtype(), input.shape().clone())).collect();
    let call = OpCall::new(op, &attrs, &specs, None).unwrap().with_precision(precision);
    let kernel = device.kernel(&call).unwrap()?;
    let inputs: Vec<DeviceBuffer> = inputs.iter().map(|input| upload(device, input)).collect();
    let output = device.allocate(DType::F32, &call.output_shape(0).unwrap()).unwrap();
    let Buffer::Device(output) = output else { panic!("not there") };
    let (operands, threads) = (inputs.iter().map(Operand::Device), Threads::single());
    kernel.run(&mut Io::new(operands, [Target::Device(&output)], &threads, usize::MAX)).unwrap();
    Some(output.host().unwrap().as_slice::<f32>().unwrap().to_vec())
}

#[test]
fn precision_is_what_was_asked_for() {
    let Some(device) = device() else { return };
    // A number that TensorFloat-32 has no bits for.
    let x = 1.0 + 1.0 / 4096.0;
    let matrix = HostTensor::from_slice(sizes(&[64, 64]), &[x; 4096]).unwrap();
    let product = |precision| {
        let inputs = [matrix.clone(), matrix.clone()];
        run(device, ("MatMul", Attrs::new()), &inputs, precision).unwrap()
    };
    assert!(product(Precision::Full).iter().all(|y| (y - 64.0 * x * x).abs() < 1e-4));
    let rough = product(Precision::TensorFloat32);
    assert!(rough.iter().all(|y| (y - 64.0).abs() < 0.07), "{}", rough[0]);
    if device.model() == Some("Simulated device") {
        assert_eq!(rough, [64.0; 4096]);
    }
}

#[test]
fn what_follows_is_part_of_the_product() {
    let Some(device) = device() else { return };
    let ramp = |dims: &[usize], step: f32| {
        let n = dims.iter().product::<usize>();
        let values: Vec<f32> = (0..n).map(|i| (i % 13) as f32 * step - 0.4).collect();
        HostTensor::from_slice(sizes(dims), &values).unwrap()
    };
    let inputs = [ramp(&[40, 30], 0.07), ramp(&[30, 50], 0.06), ramp(&[50], 0.1)];
    let plain = run(device, ("MatMul", Attrs::new()), &inputs[..2], Precision::Full).unwrap();
    let bias = inputs[2].as_slice::<f32>().unwrap().to_vec();
    let gelu: fn(f32) -> f32 = |x| {
        let x = f64::from(x);
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        (0.5 * x * (1.0 + inner.tanh())) as f32
    };
    let relu: fn(f32) -> f32 = |x| x.max(0.0);
    for (ops, follow) in [
        (&["BiasAdd"][..], (|x| x) as fn(f32) -> f32),
        (&["BiasAdd", "Relu"], relu),
        (&["BiasAdd", "GeluApproximate"], gelu),
    ] {
        let attrs = Attrs::new().with("fused_ops", ops).with("num_args", 1i64);
        let found = run(device, ("_FusedMatMul", attrs), &inputs, Precision::Full).unwrap();
        for (at, (found, plain)) in found.iter().zip(&plain).enumerate() {
            let expected = follow(plain + bias[at % 50]);
            assert!((found - expected).abs() < 1e-4, "{ops:?}: {found} instead of {expected}");
        }
    }
    let attrs = Attrs::new().with("fused_ops", &["BiasAdd", "Elu"][..]).with("num_args", 1i64);
    assert!(run(device, ("_FusedMatMul", attrs), &inputs, Precision::Full).is_none());
}

/// Products that each thread starts before it looks at one.
const STARTED: usize = 6;

#[test]
fn threads_multiply_at_the_same_time() {
    let Some(device) = device() else { return };
    let op = registry::find("MatMul").unwrap();
    let attrs = op.complete_attrs(Attrs::new().with("T", DType::F32)).unwrap();
    // Large enough for algorithms that add up parts.
    for [m, k, n] in [[256, 256, 256], [256, 320, 256], [320, 256, 256]] {
        let specs = [[m, k], [k, n]].map(|dims| OperandSpec::new(DType::F32, sizes(&dims)));
        let call = OpCall::new(op, &attrs, &specs, None).unwrap();
        // One for each thread, as calls of one wait for each other. The first finds the algorithm.
        let kernels = [(); 4].map(|()| device.kernel(&call).unwrap().unwrap());
        let ones = HostTensor::from_slice(sizes(&[k, n]), &vec![1.0f32; k * n]).unwrap();
        let ones = upload(device, &ones);
        let check = |thread: usize, kernel: &dyn Kernel| {
            // Rows of one number, so that each element of the result is known.
            let row = |at: usize| ((at % 5 + 1) * (thread + 1)) as f32;
            let rows: Vec<f32> = (0..m * k).map(|at| row(at / k)).collect();
            let rows = upload(device, &HostTensor::from_slice(sizes(&[m, k]), &rows).unwrap());
            let outputs: Vec<DeviceBuffer> = (0..STARTED)
                .map(|_| {
                    let output = device.allocate(DType::F32, &sizes(&[m, n])).unwrap();
                    let Buffer::Device(output) = output else { panic!("not there") };
                    let operands = [&rows, &ones].map(Operand::Device);
                    let (target, threads) = (Target::Device(&output), Threads::single());
                    kernel.run(&mut Io::new(operands, [target], &threads, usize::MAX)).unwrap();
                    output
                })
                .collect();
            for output in outputs {
                let found = output.host().unwrap().as_slice::<f32>().unwrap().to_vec();
                for (at, &y) in found.iter().enumerate() {
                    assert_eq!(y, row(at / n) * k as f32, "{at} of {m}x{k}x{n}");
                }
            }
        };
        std::thread::scope(|scope| {
            let (check, kernels) = (&check, kernels.iter().enumerate());
            let threads: Vec<_> =
                kernels.map(|(at, kernel)| scope.spawn(move || check(at, &**kernel))).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

#[test]
fn algorithms_are_measured_once_for_a_problem() {
    let Some(device) = device() else { return };
    let of = |seed: usize| {
        let values: Vec<f32> = (0..1 << 16).map(|i| ((i * seed) % 7) as f32).collect();
        HostTensor::from_slice(sizes(&[256, 256]), &values).unwrap()
    };
    let inputs = [of(3), of(5)];
    let product = || run(device, ("MatMul", Attrs::new()), &inputs, Precision::Full).unwrap();
    let first = product();
    let expected = {
        let op = registry::find("MatMul").unwrap();
        let attrs = op.complete_attrs(Attrs::new().with("T", DType::F32)).unwrap();
        let specs = [0, 1].map(|_| OperandSpec::new(DType::F32, sizes(&[256, 256])));
        let call = OpCall::new(op, &attrs, &specs, None).unwrap();
        let kernel = CpuDevice::new(0).kernel(&call).unwrap().unwrap();
        let mut output = HostTensor::zeros(DType::F32, sizes(&[256, 256])).unwrap();
        let threads = Threads::single();
        let target = Target::Plain(output.bytes_mut());
        let operands = inputs.iter().map(Operand::Tensor);
        kernel.run(&mut Io::new(operands, [target], &threads, usize::MAX)).unwrap();
        output.as_slice::<f32>().unwrap().to_vec()
    };
    // Sums of whole numbers below 2²⁴ are exact in any order.
    assert_eq!(first, expected);
    // Tests beside this one have others found.
    let found = || {
        let opened = device.products.open(&device.driver).unwrap();
        let chosen = opened.chosen.lock();
        let is_own = |problem: &&LibraryProblem| problem.multiplications() == 1 << 24;
        chosen.keys().filter(is_own).count()
    };
    let before = found();
    assert_eq!(product(), first);
    assert_eq!(found(), before);
}

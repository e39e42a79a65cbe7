//! Functions, eager calls and variables on devices. Without an adapter these tests are skipped;
//! `REQUIRE_DEVICES=wgpu` makes that a failure.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, FunctionDef, HostTensor, Shape, TensorSpec, ValueType, registry};
use ferroflow_kernels::{Buffer, Device, Kernel, OpCall};
use ferroflow_runtime::{
    CallCache, CapturedInput, Context, ContextOptions, EagerTensor, Error, ResourceVariable,
    RunOptions, TraceLevel, placement::Reason,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

const WGPU: &str = "/device:WGPU:0";

/// The first wgpu device, if there is one.
pub(crate) fn device(context: &Context) -> Option<Arc<dyn Device>> {
    let found = context.device(&"WGPU:0".parse().unwrap()).ok();
    let required = std::env::var("REQUIRE_DEVICES").unwrap_or_default();
    assert!(found.is_some() || !required.contains("wgpu"), "no adapter was found");
    if found.is_none() {
        eprintln!("skipped: no adapter was found");
    }
    found
}

fn matrix(rows: usize, cols: usize) -> EagerTensor {
    let elements: Vec<f32> = (0..rows * cols).map(|i| (i % 7) as f32 - 3.0).collect();
    HostTensor::from_slice(Shape::new([rows, cols]).unwrap(), &elements).unwrap().into()
}

/// `softmax(relu(x · w + 0.5))`
fn layer() -> FunctionDef {
    function("layer", &[("x", f32s(&[4, 5])), ("w", f32s(&[5, 3]))], |b, args| {
        let product = b.call("MatMul", "product", args)?[0];
        let half = b.constant("half", HostTensor::vector(&[0.5f32, 0.25, 0.0])?)?;
        let sum = b.call("AddV2", "sum", &[product, half])?[0];
        let relu = b.call("Relu", "relu", &[sum])?[0];
        b.call("Softmax", "softmax", &[relu])
    })
}

fn check_close(found: &EagerTensor, expected: &EagerTensor) {
    let (found, expected) = (found.host().unwrap(), expected.host().unwrap());
    assert_eq!(found.shape(), expected.shape());
    let pairs = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
    for (x, y) in pairs {
        assert!((x - y).abs() <= 1e-6 + 1e-5 * y.abs(), "{found} instead of {expected}");
    }
}

#[test]
fn a_function_runs_where_it_is_called() {
    let context = context();
    let Some(device) = device(&context) else { return };
    let layer = concrete(&context, layer(), Vec::new(), Vec::new());
    let (x, w) = (matrix(4, 5), matrix(5, 3));
    let expected = layer.call_refs(&[&x, &w]).unwrap();
    assert_eq!(expected[0].device(), None);
    for _ in 0..2 {
        let found = layer.call_on(&device, &[&x, &w]).unwrap();
        assert_eq!(found[0].device(), Some(WGPU));
        check_close(&found[0], &expected[0]);
    }
    let placement = layer.placement(Some(&device), &[&x, &w]).unwrap();
    assert!(placement.calls.iter().all(|call| call.device == WGPU), "{placement}");
    let copied: Vec<_> =
        placement.copies.iter().map(|copy| (&*copy.node, copy.bytes, copy.once)).collect();
    assert_eq!(copied, [("x", 80, false), ("w", 60, false), ("half/copy", 12, true)]);
    // Results feed other calls without coming back.
    let first = layer.call_on(&device, &[&x, &w]).unwrap().remove(0);
    let doubled = CallCache::default()
        .execute(&context, registry::find("AddV2").unwrap(), &Attrs::new(), &[&first, &first])
        .unwrap();
    assert_eq!(doubled[0].device(), Some(WGPU));
    let cpu = layer.placement(None, &[&x, &w]).unwrap();
    assert!(cpu.calls.iter().all(|call| call.device == "/device:CPU:0") && cpu.copies.is_empty());
}

#[test]
fn what_a_device_cannot_do_is_placed_on_the_cpu_for_all_to_see() {
    let context = context();
    let Some(device) = device(&context) else { return };
    let def = function("precise", &[("x", f32s(&[3]))], |b, args| {
        let twice = b.call("AddV2", "twice", &[args[0], args[0]])?[0];
        let slope = b.call("IgammaGradA", "slope", &[twice, twice])?[0];
        b.call("Softmax", "softmax", &[slope])
    });
    let precise = concrete(&context, def, Vec::new(), Vec::new());
    let x = vector(&[1.0, 2.0, 3.5]);
    let found = precise.call_on(&device, &[&x]).unwrap();
    check_close(&found[0], &precise.call_refs(&[&x]).unwrap()[0]);
    let placement = precise.placement(Some(&device), &[&x]).unwrap();
    let reasons: Vec<Reason> = placement.calls.iter().map(|call| call.reason).collect();
    assert_eq!(reasons, [Reason::Asked, Reason::NoKernel, Reason::Asked], "{placement}");
    assert_eq!(placement.fallbacks().count(), 1);
    assert_eq!(placement.bytes_per_run(), 36, "{placement}");
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (_, metadata) = precise.call_with_options(&options, &[&x]).unwrap();
    assert!(metadata.ops.iter().all(|op| op.device == "/device:CPU:0"));
}

#[test]
fn a_context_may_run_everything_on_a_device() {
    let device_name = Some("WGPU:0".parse().unwrap());
    let context =
        Context::with_options(ContextOptions { device: device_name, ..ContextOptions::default() });
    if device(&context).is_none() {
        return;
    }
    let layer = concrete(&context, layer(), Vec::new(), Vec::new());
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (found, metadata) =
        layer.call_with_options(&options, &[&matrix(4, 5), &matrix(5, 3)]).unwrap();
    assert_eq!(found[0].device(), Some(WGPU));
    assert!(metadata.ops.iter().all(|op| op.device == WGPU), "{:?}", metadata.ops);
    let mut calls = CallCache::default();
    let mul = registry::find("Mul").unwrap();
    let x = vector(&[1.0, 2.0]);
    for _ in 0..2 {
        let y = calls.execute(&context, mul, &Attrs::new(), &[&x, &x]).unwrap();
        assert_eq!((y[0].device(), values(&y, 0)), (Some(WGPU), vec![1.0, 4.0]));
    }
}

#[test]
fn variables_live_on_devices_and_pin_what_works_on_them() {
    let context = context();
    let Some(device) = device(&context) else { return };
    let variable = ResourceVariable::new("v", HostTensor::vector(&[1.0f32, 5.0]).unwrap());
    variable.live_on(&device).unwrap();
    let handle =
        ValueType::handle(DType::Resource, TensorSpec::new(DType::F32, Shape::new([2]).unwrap()));
    let def = function("step", &[("v", handle)], |b, args| {
        let attrs = || Attrs::new().with("dtype", DType::F32);
        let read = b.call_with("ReadVariableOp", "read", attrs(), args)?[0];
        let double = b.call("AddV2", "double", &[read, read])?[0];
        b.call_with("AssignVariableOp", "assign", attrs(), &[args[0], double])?;
        Ok(vec![double])
    });
    let step =
        concrete(&context, def, Vec::new(), vec![CapturedInput::Resource(variable.handle())]);
    for expected in [[2.0f32, 10.0], [4.0, 20.0]] {
        let found = step.call(&[]).unwrap();
        assert_eq!((found[0].device(), values(&found, 0)), (Some(WGPU), expected.to_vec()));
    }
    assert_eq!(variable.tensor().unwrap().device(), Some(WGPU));
    let placement = step.placement(None, &[]).unwrap();
    assert!(placement.copies.is_empty(), "{placement}");
    let add = registry::find("AssignAddVariableOp").unwrap();
    let handle = EagerTensor::from(variable.handle().to_tensor());
    let one = vector(&[1.0, 1.0]);
    CallCache::default().execute(&context, add, &Attrs::new(), &[&handle, &one]).unwrap();
    assert_eq!(variable.tensor().unwrap().device(), Some(WGPU));
    assert_eq!(variable.read().unwrap().as_slice::<f32>().unwrap(), [5.0, 21.0]);
}

#[test]
fn a_call_that_there_is_no_room_for_fails_alone() {
    let context = context();
    let Some(device) = device(&context) else { return };
    let huge = function("huge", &[("x", f32s(&[1]))], |b, args| {
        let shape = b.constant("shape", HostTensor::vector(&[1i32 << 30])?)?;
        b.call("BroadcastTo", "large", &[args[0], shape])
    });
    let huge = concrete(&context, huge, Vec::new(), Vec::new());
    let x = EagerTensor::from(HostTensor::vector(&[1.0f32]).unwrap());
    let error = huge.call_on(&device, &[&x]).unwrap_err();
    assert_eq!(error.code(), ferroflow_ir::Code::ResourceExhausted, "{error}");
    assert!(error.to_string().contains("large"), "{error}");
    let layer = concrete(&context, layer(), Vec::new(), Vec::new());
    let (x, w) = (matrix(4, 5), matrix(5, 3));
    let found = layer.call_on(&device, &[&x, &w]).unwrap();
    assert_eq!(found[0].device(), Some(WGPU));
    check_close(&found[0], &layer.call_refs(&[&x, &w]).unwrap()[0]);
}

#[test]
fn a_name_that_no_device_has_is_an_error_that_tells_which_there_are() {
    let error = context().device(&"TPU:0".parse().unwrap()).unwrap_err();
    assert!(matches!(error, Error::NoDevice { .. }));
    assert!(error.to_string().contains("/device:CPU:0"), "{error}");
}

#[test]
fn loops_keep_their_variables_on_the_device_and_count_on_the_host() {
    let context = context();
    let Some(device) = device(&context) else { return };
    let int = || ValueType::new(DType::I32, Shape::scalar());
    let args = [("i", int()), ("x", f32s(&[3])), ("step", f32s(&[3]))];
    let below = function("below", &args, |b, args| {
        let ten = b.constant("ten", HostTensor::scalar(10i32))?;
        b.call("Less", "less", &[args[0], ten])
    });
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let sum = b.call("AddV2", "sum", &[args[1], args[2]])?[0];
        Ok(vec![next, sum, args[2]])
    });
    let def = function("sum", &[("x", f32s(&[3])), ("step", f32s(&[3]))], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let types = vec![DType::I32, DType::F32, DType::F32];
        let attrs =
            Attrs::new().with("T", types).with("cond", func("below")).with("body", func("body"));
        let results = b.call_with("StatelessWhile", "loop", attrs, &[zero, args[0], args[1]])?;
        Ok(vec![results[0], results[1]])
    });
    let sum = concrete(&context, def, vec![below, body], Vec::new());
    let (x, step) = (vector(&[1.0, 2.0, 3.0]), vector(&[0.5, 1.0, -1.0]));
    let found = sum.call_on(&device, &[&x, &step]).unwrap();
    assert_eq!(found[0].host().unwrap().as_scalar::<i32>().unwrap(), 10);
    assert_eq!((found[1].device(), values(&found, 1)), (Some(WGPU), vec![6.0, 12.0, -7.0]));
    let placement = sum.placement(Some(&device), &[&x, &step]).unwrap();
    let copies: Vec<&str> = placement.copies.iter().map(|copy| &*copy.node).collect();
    assert_eq!(copies.len(), 2, "{placement}");
    let of = |node: &str| placement.calls.iter().find(|call| call.node.ends_with(node)).unwrap();
    assert_eq!((&*of("sum").device, of("sum").reason), (WGPU, Reason::Asked));
    assert_eq!(of("loop").reason, Reason::Control);
}

/// A device that only counts how often it was waited for.
#[derive(Debug)]
struct Waited {
    name: &'static str,
    times: AtomicUsize,
    is_lost: bool,
}

impl Device for Waited {
    fn name(&self) -> &str {
        self.name
    }

    fn allocate(&self, dtype: DType, _: &Shape) -> ferroflow_kernels::Result<Buffer> {
        let device = self.name.to_string();
        Err(ferroflow_kernels::Error::UnsupportedDType { device, dtype })
    }

    fn upload(&self, tensor: &Buffer) -> ferroflow_kernels::Result<Buffer> {
        self.allocate(tensor.dtype(), tensor.shape())
    }

    fn kernel(&self, _: &OpCall<'_>) -> ferroflow_kernels::Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    fn synchronize(&self) -> ferroflow_kernels::Result<()> {
        self.times.fetch_add(1, Ordering::Relaxed);
        let (device, reason) = (self.name.to_string(), "unplugged".to_string());
        match self.is_lost {
            true => Err(ferroflow_kernels::Error::DeviceLost { device, reason }),
            false => Ok(()),
        }
    }
}

#[test]
fn every_device_is_waited_for_also_after_one_failed() {
    let context = Context::new();
    context.sync_devices().unwrap();
    let device = |name, is_lost| {
        let device = Arc::new(Waited { name, times: AtomicUsize::new(0), is_lost });
        context.add_device(device.clone());
        device
    };
    let first = device("/device:NPU:0", false);
    context.sync_devices().unwrap();
    let lost = device("/device:NPU:1", true);
    let last = device("/device:NPU:2", false);
    let error = context.sync_devices().unwrap_err();
    assert_eq!(error.to_string(), "/device:NPU:1 is lost: unplugged");
    let times = [first, lost, last].map(|device| device.times.load(Ordering::Relaxed));
    assert_eq!(times, [2, 1, 1]);
}

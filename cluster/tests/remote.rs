//! Ops and functions on the device of another process: server and client are both in this one, on loopback.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

use ferroflow_cluster::remote::{ConnectOptions, ServerOptions, WorkerServer, connect_to_host};
use ferroflow_ir::{
    Attrs, Code, DType, FunctionDef, HostTensor, Result, Shape, ValueType, build::GraphBuilder,
};
use ferroflow_kernels::Device;
use ferroflow_runtime::{CallableFunction, Context, EagerTensor, execute};
use std::{sync::Arc, time::Duration};

fn connect(task: u32) -> ConnectOptions {
    ConnectOptions { task, ..ConnectOptions::default() }
}

fn connected() -> (WorkerServer, Context, Arc<dyn Device>) {
    let options = ServerOptions { task: 3, ..ServerOptions::default() };
    let server = WorkerServer::start("127.0.0.1:0", &options).unwrap();
    let context = Context::new();
    let names = connect_to_host(&context, server.address(), &connect(3)).unwrap();
    assert_eq!(names, ["/job:worker/replica:0/task:3/device:CPU:0"]);
    let device = context.device_of("/job:worker/task:3").unwrap();
    (server, context, device)
}

/// The transpose of `softmax(tanh(x w))`, its largest columns, and its squares.
fn function() -> Result<FunctionDef> {
    let mut builder = GraphBuilder::new();
    let x = builder.arg("x", ValueType::new(DType::F32, &Shape::new([2, 3])?))?;
    let w = HostTensor::from_slice(Shape::new([3, 4])?, &[0.5f32; 12])?;
    let w = builder.constant("w", w)?;
    let product = builder.call("MatMul", "product", &[x, w])?[0];
    let tanh = builder.call("Tanh", "tanh", &[product])?[0];
    let softmax = builder.call("Softmax", "softmax", &[tanh])?[0];
    let order = builder.constant("order", HostTensor::vector(&[1i32, 0])?)?;
    let transposed = builder.call("Transpose", "transposed", &[softmax, order])?[0];
    let axis = builder.constant("axis", HostTensor::scalar(1i32))?;
    let columns = builder.call("ArgMax", "columns", &[softmax, axis])?[0];
    let flat = builder.constant("flat", HostTensor::vector(&[8i32])?)?;
    let flat = builder.call("Reshape", "flattened", &[transposed, flat])?[0];
    let scaled = builder.call("Mul", "scaled", &[flat, flat])?[0];
    let results = [("transposed", transposed), ("columns", columns), ("scaled", scaled)];
    Ok(builder.finish_function("f", &results))
}

fn argument() -> EagerTensor {
    let values = [0.1f32, -0.2, 0.3, 0.4, 0.5, -0.6];
    HostTensor::from_slice(Shape::new([2, 3]).unwrap(), &values).unwrap().into()
}

#[test]
fn functions_compute_there_what_they_do_here() {
    let (_server, context, device) = connected();
    let function = CallableFunction::new(&context, function().unwrap()).unwrap();
    let here = function.call(&[argument()]).unwrap();
    for _ in 0..3 {
        let there = function.call_on(&device, &[&argument()]).unwrap();
        for (ours, theirs) in here.iter().zip(&there) {
            assert_eq!(theirs.device(), Some("/job:worker/replica:0/task:3/device:CPU:0"));
            assert_eq!(ours.shape(), theirs.shape());
            assert_eq!(ours.host().unwrap().bytes(), theirs.host().unwrap().bytes());
        }
    }
    let placement = function.placement(Some(&device), &[&argument()]).unwrap();
    assert!(placement.calls.iter().any(|call| call.device == device.name()), "{placement}");
}

#[test]
fn errors_of_the_other_process_are_errors_of_the_call() {
    let (server, context, device) = connected();
    let mut builder = GraphBuilder::new();
    let two = ValueType::new(DType::I32, Shape::new([2]).unwrap());
    let x = builder.arg("x", two.clone()).unwrap();
    let y = builder.arg("y", two).unwrap();
    let quotient = builder.call("FloorDiv", "quotient", &[x, y]).unwrap()[0];
    let def = builder.finish_function("f", &[("quotient", quotient)]);
    let function = CallableFunction::new(&context, def).unwrap();
    let ints = |values: [i32; 2]| EagerTensor::from(HostTensor::vector(&values).unwrap());
    let (one, zero) = (ints([6, 7]), ints([0, 2]));
    let error = function.call_on(&device, &[&one, &zero]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("quotient"), "{error}");
    // What failed has left the device usable.
    let quotient = function.call_on(&device, &[&one, &ints([2, 2])]).unwrap();
    assert_eq!(quotient[0].host().unwrap().as_slice::<i32>().unwrap(), [3, 3]);
    drop(server);
    let error = function.call_on(&device, &[&one, &one]).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}

#[test]
fn names_of_tasks_that_were_not_connected_are_no_devices() {
    let (_server, context, _) = connected();
    assert!(context.device_of("/job:worker/task:4").is_none());
    assert!(context.device_of("/job:ps/task:3").is_none());
    assert!(context.device_of("/device:CPU:0").is_none());
    let sum = execute(&context, "AddV2", Attrs::new(), &[argument(), argument()]).unwrap();
    assert_eq!(sum[0].device(), None);
    let options = ConnectOptions { timeout: Duration::from_millis(300), ..connect(0) };
    let error = connect_to_host(&context, "127.0.0.1:1", &options).unwrap_err();
    // Refused until the time is over, or while it ends.
    assert!(matches!(error.code(), Code::Unavailable | Code::DeadlineExceeded), "{error}");
    assert!(error.to_string().contains("/job:worker/task:0 (127.0.0.1:1)"), "{error}");
}

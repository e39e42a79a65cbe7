//! A client that has the process at an address compute, one of ferroflow or one of TensorFlow.
//!
//! ```text
//! cargo run -p ferroflow-cluster --example remote -- HOST:PORT
//! ```
//!
//! Each function is called here and there, and must give the same. Prints a line for each, and at last
//! `N of N`.

use ferroflow_cluster::remote::{ConnectOptions, connect_to_host};
use ferroflow_ir::{
    Attrs, DType, FunctionDef, HostTensor, Outlet, Result, Shape, ValueType, build::GraphBuilder,
};
use ferroflow_kernels::Device;
use ferroflow_runtime::{CallableFunction, Context, EagerTensor};
use std::{env, error::Error, sync::Arc};

type Outcome<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Adds nodes to a graph whose argument is an image; their results.
type Body = fn(&mut GraphBuilder, Outlet) -> Result<Vec<Outlet>>;

const FUNCTIONS: &[(&str, Body)] = &[
    ("elementwise", elementwise),
    ("convolution", convolution),
    ("matmul", matmul),
    ("shapes", shapes),
    ("integers", integers),
];

fn main() -> Outcome {
    let address = env::args().nth(1).ok_or("HOST:PORT is missing")?;
    let context = Context::new();
    let names = connect_to_host(&context, &address, &ConnectOptions::default())?;
    let device = context.device_of(&names[0]).ok_or("the device of the other process")?;
    let mut passed = 0;
    for (name, body) in FUNCTIONS {
        let function = CallableFunction::new(&context, function(name, *body)?)?;
        match compare(&function, &device) {
            Ok(()) => {
                passed += 1;
                println!("pass {name}");
            }
            Err(error) => println!("FAIL {name} {error}"),
        }
    }
    println!("{passed} of {}", FUNCTIONS.len());
    if passed == FUNCTIONS.len() { Ok(()) } else { Err("functions differ".into()) }
}

fn function(name: &str, body: Body) -> Result<FunctionDef> {
    let mut builder = GraphBuilder::new();
    let x = builder.arg("x", ValueType::new(DType::F32, &Shape::new([2, 6, 6, 3])?))?;
    let outputs = body(&mut builder, x)?;
    let names: Vec<String> = (0..outputs.len()).map(|n| format!("output_{n}")).collect();
    let results: Vec<(&str, Outlet)> = names.iter().map(String::as_str).zip(outputs).collect();
    Ok(builder.finish_function(name, &results))
}

/// Calls a function here and on a device, twice, and compares.
fn compare(function: &CallableFunction, device: &Arc<dyn Device>) -> Outcome {
    let values: Vec<f32> = (0..216).map(|i| (i as f32 * 0.37).sin()).collect();
    let x: EagerTensor = HostTensor::from_slice(Shape::new([2, 6, 6, 3])?, &values)?.into();
    let placement = function.placement(Some(device), &[&x])?;
    if let Some(call) = placement.fallbacks().next() {
        return Err(format!("{} ran here ({})", call.op, call.reason).into());
    }
    let here = function.call(std::slice::from_ref(&x))?;
    for _ in 0..2 {
        for (ours, theirs) in here.iter().zip(function.call_on(device, &[&x])?) {
            check(ours.host()?, theirs.host()?)?;
        }
    }
    Ok(())
}

fn check(ours: &HostTensor, theirs: &HostTensor) -> Outcome {
    if ours.shape() != theirs.shape() || ours.dtype() != theirs.dtype() {
        return Err(format!("{}, and there {}", ours.shape(), theirs.shape()).into());
    }
    let is_close = match ours.dtype() {
        DType::F32 => {
            let pairs = ours.as_slice::<f32>()?.iter().zip(theirs.as_slice::<f32>()?);
            pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-5 * a.abs().max(1.0))
        }
        _ => ours.bytes() == theirs.bytes(),
    };
    if is_close { Ok(()) } else { Err("the values differ".into()) }
}

fn elementwise(b: &mut GraphBuilder, x: Outlet) -> Result<Vec<Outlet>> {
    let tanh = b.call("Tanh", "tanh", &[x])?[0];
    let product = b.call("Mul", "product", &[tanh, x])?[0];
    let axes = b.constant("axes", HostTensor::vector(&[1i32, 2])?)?;
    let sum = b.call("Sum", "sum", &[product, axes])?[0];
    Ok(vec![product, sum])
}

fn convolution(b: &mut GraphBuilder, x: Outlet) -> Result<Vec<Outlet>> {
    let filter: Vec<f32> = (0..108).map(|i| (i as f32 * 0.7).cos()).collect();
    let filter = HostTensor::from_slice(Shape::new([3, 3, 3, 4])?, &filter)?;
    let filter = b.constant("filter", filter)?;
    let strides = || Attrs::new().with("strides", vec![1i64, 2, 2, 1]).with("padding", "SAME");
    let y = b.call_with("Conv2D", "y", strides(), &[x, filter])?[0];
    let bias = b.constant("bias", HostTensor::vector(&[0.1f32, 0.2, 0.3, 0.4])?)?;
    let y = b.call("BiasAdd", "biased", &[y, bias])?[0];
    Ok(vec![b.call("Relu", "relu", &[y])?[0]])
}

fn matmul(b: &mut GraphBuilder, x: Outlet) -> Result<Vec<Outlet>> {
    let flat = b.constant("flat", HostTensor::vector(&[2i32, 108])?)?;
    let rows = b.call("Reshape", "rows", &[x, flat])?[0];
    let weights: Vec<f32> = (0..540).map(|i| (i as f32 * 0.2).sin() * 0.1).collect();
    let weights = b.constant("w", HostTensor::from_slice(Shape::new([108, 5])?, &weights)?)?;
    let logits = b.call("MatMul", "logits", &[rows, weights])?[0];
    let softmax = b.call("Softmax", "softmax", &[logits])?[0];
    let axis = b.constant("axis", HostTensor::scalar(1i32))?;
    Ok(vec![softmax, b.call("ArgMax", "class", &[softmax, axis])?[0]])
}

fn shapes(b: &mut GraphBuilder, x: Outlet) -> Result<Vec<Outlet>> {
    let order = b.constant("order", HostTensor::vector(&[0i32, 3, 1, 2])?)?;
    let transposed = b.call("Transpose", "transposed", &[x, order])?[0];
    let begin = b.constant("begin", HostTensor::vector(&[0i32, 1, 0, 2])?)?;
    let size = b.constant("size", HostTensor::vector(&[2i32, 2, 6, 3])?)?;
    let part = b.call("Slice", "part", &[transposed, begin, size])?[0];
    let axis = b.constant("axis", HostTensor::scalar(3i32))?;
    Ok(vec![transposed, b.call("ConcatV2", "joined", &[part, part, axis])?[0]])
}

fn integers(b: &mut GraphBuilder, x: Outlet) -> Result<Vec<Outlet>> {
    let ten = b.constant("ten", HostTensor::scalar(10.0f32))?;
    let scaled = b.call("Mul", "scaled", &[x, ten])?[0];
    let to = |dtype: DType| Attrs::new().with("DstT", dtype);
    let whole = b.call_with("Cast", "whole", to(DType::I32), &[scaled])?[0];
    let three = b.constant("three", HostTensor::scalar(3i32))?;
    let quotient = b.call("FloorDiv", "quotient", &[whole, three])?[0];
    let rest = b.call("FloorMod", "rest", &[whole, three])?[0];
    Ok(vec![quotient, rest, b.call("Greater", "larger", &[quotient, rest])?[0]])
}

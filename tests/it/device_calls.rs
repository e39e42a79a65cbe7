//! Functions that become one call on devices.

use crate::devices::elsewhere;
use ferroflow::{
    ir::{
        Attrs, FunctionDef, HostTensor, Outlet, PartialShape, Shape, ValueType, build::GraphBuilder,
    },
    runtime::{
        CallableFunction, Context, ContextOptions, EagerTensor, Precision, RunOptions, TraceLevel,
    },
};
use std::error::Error;

type Outcome = Result<(), Box<dyn Error>>;

/// Results of a function, and the number of its calls, on a device or the host.
fn calls_of(
    function: &FunctionDef,
    inputs: &[HostTensor],
    device: Option<&str>,
) -> Result<(Vec<f32>, usize), Box<dyn Error>> {
    let device = device.map(str::parse).transpose()?;
    let options =
        ContextOptions { device, precision: Precision::Full, ..ContextOptions::default() };
    let function = CallableFunction::new(&Context::with_options(options), function.clone())?;
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let given: Vec<EagerTensor> = inputs.iter().cloned().map(EagerTensor::from).collect();
    let given: Vec<&EagerTensor> = given.iter().collect();
    let (y, ran) = function.call_with_options(&options, &given)?;
    Ok((y[0].host()?.as_slice::<f32>()?.to_vec(), ran.ops.len()))
}

/// Holds that a function makes so many calls on devices, and gives there what it gives on the host.
fn makes_calls(function: &FunctionDef, inputs: &[HostTensor], n_calls: usize) -> Outcome {
    let (expected, _) = calls_of(function, inputs, None)?;
    for there in elsewhere() {
        let (found, n) = calls_of(function, inputs, Some(&there))?;
        for (x, y) in expected.iter().zip(&found) {
            assert!((x - y).abs() < 1e-4, "{there}: {y} instead of {x}");
        }
        assert_eq!(n, n_calls, "{there}");
    }
    Ok(())
}

fn ramp(dims: &[usize], step: usize) -> Result<HostTensor, Box<dyn Error>> {
    let shape = Shape::new(dims.iter().copied())?;
    let n = shape.num_elements();
    let values: Vec<f32> = (0..n).map(|i| (i * step % 19) as f32 / 8.0 - 1.0).collect();
    Ok(HostTensor::from_slice(shape, &values)?)
}

fn args_of(
    builder: &mut GraphBuilder,
    inputs: &[HostTensor],
) -> Result<Vec<Outlet>, Box<dyn Error>> {
    let arg = |(at, input): (usize, &HostTensor)| {
        let ty = ValueType::new(input.dtype(), PartialShape::from(input.shape()));
        Ok(builder.arg(&format!("x{at}"), ty)?)
    };
    inputs.iter().enumerate().map(arg).collect()
}

/// A layer is one call on devices, unless somebody else needs what is in the middle of it.
#[test]
fn what_follows_a_product_is_part_of_it() -> Outcome {
    let inputs = [ramp(&[40, 30], 7)?, ramp(&[30, 50], 5)?, ramp(&[50], 3)?];
    for (bias_first, has_relu, is_result) in
        [(false, false, false), (false, true, false), (true, true, false), (false, true, true)]
    {
        let mut builder = GraphBuilder::new();
        let args = args_of(&mut builder, &inputs)?;
        let product = builder.call("MatMul", "product", &args[..2])?[0];
        let terms = if bias_first { [args[2], product] } else { [product, args[2]] };
        let mut y = builder.call("AddV2", "sum", &terms)?[0];
        if has_relu {
            y = builder.call("Relu", "relu", &[y])?[0];
        }
        let mut results = vec![("y", y)];
        results.extend(is_result.then_some(("product", product)));
        let layer = builder.finish_function("layer", &results);
        makes_calls(&layer, &inputs, if is_result { 2 } else { 1 })?;
    }
    Ok(())
}

/// A normalised convolution is one call, with the factors that its variance and scale give.
#[test]
fn a_normalised_convolution_is_one_call() -> Outcome {
    let variance = HostTensor::from_slice(Shape::new([8])?, &[0.5f32, 1.0, 2.0, 4.0].repeat(2))?;
    let inputs = [
        ramp(&[2, 8, 8, 4], 7)?,
        ramp(&[3, 3, 4, 8], 5)?,
        variance,
        ramp(&[8], 3)?,
        ramp(&[8], 2)?,
        ramp(&[2, 8, 8, 8], 3)?,
    ];
    let mut builder = GraphBuilder::new();
    let args = args_of(&mut builder, &inputs)?;
    let strides = Attrs::new().with("strides", vec![1i64; 4]).with("padding", "SAME");
    let images = builder.call_with("Conv2D", "images", strides, &args[..2])?[0];
    let root = builder.call("Rsqrt", "root", &[args[2]])?[0];
    let factor = builder.call("Mul", "factor", &[root, args[3]])?[0];
    let scaled = builder.call("Mul", "scaled", &[images, factor])?[0];
    let moved = builder.call("AddV2", "moved", &[scaled, args[4]])?[0];
    let between = builder.call("Relu6", "between", &[moved])?[0];
    let y = builder.call("AddV2", "y", &[between, args[5]])?[0];
    makes_calls(&builder.finish_function("block", &[("y", y)]), &inputs, 1)
}

//! Runs a model that TensorFlow wrote on every device there is, and tells what ran where.
//!
//! ```sh
//! cargo run --release --example device_placement [MODEL]
//! ```
//!
//! Nothing is prepared for that: the model was saved on a CPU, and its function is called where it
//! is to run.

use ferroflow::{
    ir::{HostTensor, Shape},
    runtime::{Context, EagerTensor},
    saved_model::{LoadOptions, SavedModel, load},
};
use std::{error::Error, time::Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1);
    let folder = folder.unwrap_or_else(|| "tests/zoo/k3_cnn_batchnorm/model".into());
    let context = Context::new();
    let SavedModel::Objects(model) = load(&context, &folder, &LoadOptions::default())? else {
        return Err("the example takes models of TensorFlow 2".into());
    };
    let signature = model.signature("serving_default")?;
    let function = signature.concrete_function();
    let mut args: Vec<EagerTensor> = Vec::new();
    for (_, spec) in signature.inputs() {
        let dims = spec.shape.dims().ok_or("the rank of an input is not known")?;
        let shape = Shape::new(dims.iter().map(|dim| dim.unwrap_or(2)))?;
        args.push(HostTensor::zeros(spec.dtype, shape)?.into());
    }
    let args: Vec<&EagerTensor> = args.iter().collect();

    let expected = function.call_refs(&args)?;
    println!("/device:CPU:0\n{}", expected[0].host()?);
    for name in context.device_names().iter().skip(1) {
        let device = context.device(&name.parse()?)?;
        function.call_on(&device, &args)?; // The first call compiles.
        let start = Instant::now();
        let found = function.call_on(&device, &args)?;
        let value = found[0].host()?; // Devices go on by themselves; reading waits for them.
        println!("\n{name}, {:.1?}\n{value}", start.elapsed());
        let placement = function.placement(Some(&device), &args)?;
        println!("{placement}");
        println!(
            "{} calls, {} for want of a kernel on the CPU, {} bytes copied in every run",
            placement.calls.len(),
            placement.fallbacks().count(),
            placement.bytes_per_run()
        );
    }
    Ok(())
}

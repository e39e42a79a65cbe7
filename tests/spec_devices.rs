//! Devices: where calls run, and what functions know of it. Without an adapter most of this is
//! skipped; `REQUIRE_DEVICES=wgpu` makes that a failure.

use ferroflow::{
    Function, GradientTape, Tensor, Trackable, Variable, device, function,
    ir::Code,
    loaded_function, ops,
    runtime::Context,
    save,
    saved_model::{LoadOptions, SaveOptions, load, proto, read_message},
    tracer::{
        self,
        context::list_physical_devices,
        ops::Conv2DAttrs,
        optimizers::{Adam, Optimizer},
    },
};
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

type Outcome = Result<(), Box<dyn Error>>;

const CPU: &str = "/device:CPU:0";
const WGPU: &str = "/device:WGPU:0";

/// Whether there is a device besides the CPU.
fn has_wgpu() -> bool {
    let devices = list_physical_devices();
    assert_eq!(devices[0], CPU);
    let found = devices.iter().any(|name| name == WGPU);
    let required = std::env::var("REQUIRE_DEVICES").unwrap_or_default();
    assert!(found || !required.contains("wgpu"), "no adapter was found");
    if !found {
        eprintln!("skipped: no adapter was found");
    }
    found
}

fn device_of(tensor: &Tensor) -> tracer::Result<String> {
    Ok(tensor.eager()?.device().unwrap_or(CPU).to_string())
}

// spec: 207, 212
#[test]
fn scopes_place_calls_and_tensors_stay_where_they_are_made() -> Outcome {
    let x = Tensor::from([1.0f32, 2.0]);
    assert_eq!(device_of(&(&x + &x)?)?, CPU);
    if !has_wgpu() {
        return Ok(());
    }
    let y = device("WGPU", || &x * 3.0)?;
    assert_eq!(device_of(&y)?, WGPU);
    assert_eq!(y.spec().to_string(), "float32[2]");
    // What is there stays there, until a scope asks for something else or the value is read.
    let z = (&y + &y)?;
    assert_eq!(device_of(&z)?, WGPU);
    let back = device("CPU:0", || &z + &x)?;
    assert_eq!(device_of(&back)?, CPU);
    assert_eq!(back.to_vec::<f32>()?, [7.0, 14.0]);
    assert_eq!(z.to_vec::<f32>()?, [6.0, 12.0]);
    // A device there is none of changes nothing.
    assert_eq!(device_of(&device("TPU:7", || &x + &x)?)?, CPU);
    Ok(())
}

// spec: 208, 209
#[test]
fn a_trace_serves_calls_on_any_device() -> Outcome {
    let traces = Arc::new(AtomicUsize::new(0));
    let counted = traces.clone();
    let f = function(move |x: Tensor| {
        counted.fetch_add(1, Ordering::Relaxed);
        (&x * &x)?.tanh()
    });
    let x = Tensor::from([0.5f32, -1.0]);
    let here = f.call((&x,))?;
    let there = device(WGPU, || f.call((&x,)))?;
    let again = device("CPU:0", || f.call((&x,)))?;
    assert_eq!(traces.load(Ordering::Relaxed), 1);
    let concrete = f.concrete_functions();
    assert!(concrete[0].graph().iter().all(|(_, node)| node.device.is_empty()));
    assert_eq!((device_of(&here)?.as_str(), device_of(&again)?.as_str()), (CPU, CPU));
    if has_wgpu() {
        assert_eq!(device_of(&there)?, WGPU);
        for (x, y) in here.to_vec::<f32>()?.iter().zip(there.to_vec::<f32>()?) {
            assert!((x - y).abs() < 1e-6, "{x} and {y}");
        }
        // In another trace the call is a node that asks for the device of the scope around it.
        let f = f.clone();
        let outer = function(move |x: Tensor| device(WGPU, || f.call((&x,))));
        assert_eq!(device_of(&outer.call((&x,))?)?, WGPU);
        assert_eq!(traces.load(Ordering::Relaxed), 1);
    }
    Ok(())
}

#[derive(Trackable)]
struct Model {
    w: Variable,
    apply: Function<(Tensor,), Tensor>,
}

fn model() -> tracer::Result<Model> {
    let w = Variable::new([2.0f32, -1.0])?;
    let apply = function({
        let w = w.clone();
        move |x: Tensor| {
            let pinned = device(CPU, || &x * &w)?;
            pinned.exp()? + &w
        }
    });
    apply.call((Tensor::from([1.0f32, 0.0]),))?;
    Ok(Model { w, apply })
}

// spec: 210
#[test]
fn what_a_body_asks_for_is_part_of_the_saved_graph() -> Outcome {
    let folder = tempfile::tempdir()?;
    save(&model()?, folder.path(), &SaveOptions::default())?;
    let saved: proto::SavedModel = read_message(&folder.path().join("saved_model.pb"))?;
    let graph = saved.meta_graphs[0].graph_def.as_ref().ok_or("a graph")?;
    let library = graph.library.as_ref().ok_or("a library")?;
    let nodes = library.function.iter().flat_map(|function| &function.node_def);
    let asking: Vec<(&str, &str)> = nodes
        .filter(|node| !node.device.is_empty())
        .map(|node| (node.op.as_str(), node.device.as_str()))
        .collect();
    assert!(asking.contains(&("Mul", CPU)), "{asking:?}");
    assert!(asking.iter().all(|(op, _)| *op != "Exp"), "{asking:?}");
    Ok(())
}

// spec: 213
#[test]
fn an_imported_function_runs_where_it_is_called() -> Outcome {
    let folder = tempfile::tempdir()?;
    let built = model()?;
    save(&built, folder.path(), &SaveOptions::default())?;
    let loaded = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    let apply = loaded.root().ok_or("an object")?.get("apply")?.function()?;
    let apply = loaded_function(&apply.traces()[0])?;
    let x = Tensor::from([1.0f32, 0.5]);
    let expected = apply.call_flat(std::slice::from_ref(&x))?.remove(0);
    let found = device(WGPU, || apply.call_flat(std::slice::from_ref(&x)))?.remove(0);
    if has_wgpu() {
        assert_eq!(device_of(&found)?, WGPU);
    }
    let pairs = expected.to_vec::<f32>()?.into_iter().zip(found.to_vec::<f32>()?);
    pairs.for_each(|(x, y)| assert!((x - y).abs() < 1e-5, "{x} and {y}"));
    Ok(())
}

// spec: 211
#[test]
fn a_layout_of_other_devices_is_an_error_of_its_own() -> Outcome {
    let x = Tensor::from([1.0f32; 16]).reshape(&[1, 1, 4, 4])?;
    let filter = Tensor::from([1.0f32; 4]).reshape(&[2, 2, 1, 1])?;
    let attrs = Conv2DAttrs { data_format: "NCHW".into(), ..Conv2DAttrs::default() };
    let call = ops::conv2d_with(&x, &filter, &[1, 1, 1, 1], "VALID", &attrs);
    let error = call.expect_err("the CPU has channels last");
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.to_string().contains("channels before"), "{error}");
    Ok(())
}

/// Trains a small network; gives the losses, and where its weights end up.
fn train(place: &str) -> tracer::Result<(Vec<f32>, String)> {
    device(place, || {
        let weights = ops::lin_space(&(-0.5f32).into(), &0.5f32.into(), &12.into())?;
        let w = Variable::named("w", weights.reshape(&[4, 3])?)?;
        let b = Variable::named("b", [0.0f32; 3])?;
        let x = ops::lin_space(&(-1.0f32).into(), &1.0f32.into(), &20.into())?;
        let (x, labels) = (x.reshape(&[5, 4])?, Tensor::from([0i32, 1, 2, 1, 0]));
        let optimizer = Optimizer::new(Adam::default(), 0.1)?;
        let step = function({
            let (w, b) = (w.clone(), b.clone());
            move |x: Tensor, labels: Tensor| -> tracer::Result<Tensor> {
                let tape = GradientTape::new();
                let logits = (x.matmul(&w.read()?)? + &b)?;
                let losses = ops::sparse_softmax_cross_entropy_with_logits(&logits, &labels)?;
                let loss = (losses[0].sum_all()? * 0.2)?;
                optimizer.minimize(tape, &loss, &[w.clone(), b.clone()])?;
                Ok(loss)
            }
        });
        let mut losses = Vec::new();
        for _ in 0..5 {
            losses.push(step.call((&x, &labels))?.to_scalar::<f32>()?);
        }
        let home = w.owned()?.tensor()?.device().unwrap_or(CPU).to_string();
        Ok((losses, home))
    })
}

#[test]
fn training_runs_where_its_variables_live() -> Outcome {
    let (here, home) = train(CPU)?;
    assert_eq!(home, CPU);
    assert!(here[4] < here[0], "{here:?}");
    if has_wgpu() {
        let (there, home) = train(WGPU)?;
        assert_eq!(home, WGPU);
        for (x, y) in here.iter().zip(&there) {
            assert!((x - y).abs() < 1e-4, "{here:?} and {there:?}");
        }
    }
    Ok(())
}

//! Frozen graphs: a signature gives the same without variables.

use ferroflow::{
    Checkpoint, Tensor, Variable, function,
    ir::{Code, DType, HostTensor},
    ops,
    runtime::{Context, EagerTensor},
    save,
    saved_model::{
        FrozenGraph, LoadOptions, SaveOptions, Session, freeze, load_session, proto::GraphDef,
    },
    spec, tracer,
};
use std::{collections::BTreeMap, error::Error, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn ops_of(graph: &GraphDef) -> Vec<&str> {
    let library = graph.library.iter().flat_map(|library| &library.function);
    let bodies = library.flat_map(|function| &function.node_def);
    graph.node.iter().chain(bodies).map(|node| node.op.as_str()).collect()
}

/// Checks that the frozen form of a signature gives what the signature gives.
fn check(folder: &Path, key: &str, inputs: &[(&str, HostTensor)]) -> Outcome<FrozenGraph> {
    let session = load_session(&Context::new(), folder, &LoadOptions::default())?;
    let named: BTreeMap<String, EagerTensor> =
        inputs.iter().map(|(name, value)| (name.to_string(), value.clone().into())).collect();
    let expected = session.call_signature(key, &named)?;
    let frozen = freeze(&session, key)?;
    let stateful: Vec<&str> =
        ops_of(&frozen.graph_def).into_iter().filter(|op| op.contains("Var")).collect();
    assert_eq!(stateful, Vec::<&str>::new());
    let graph = Session::of_graph_def(&Context::new(), frozen.graph_def.clone())?;
    let feeds: Vec<(&str, EagerTensor)> =
        frozen.inputs.iter().map(|(name, tensor)| (tensor.as_str(), named[name].clone())).collect();
    for (name, tensor) in &frozen.outputs {
        let found = graph.run(&feeds, &[tensor], &[])?;
        assert_eq!(found[0].host()?, expected[name].host()?, "{name}");
    }
    assert!(!frozen.outputs.is_empty());
    Ok(frozen)
}

fn zoo(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo").join(name).join("model")
}

fn floats(dims: &[usize]) -> Outcome<HostTensor> {
    let shape = ferroflow::ir::Shape::new(dims.iter().copied())?;
    let values: Vec<f32> = (0..shape.num_elements()).map(|n| (n % 7) as f32 / 7.0 - 0.4).collect();
    Ok(HostTensor::from_slice(shape, &values)?)
}

#[test]
fn models_of_tensorflow_are_frozen() -> Outcome {
    check(&zoo("k3_mlp"), "serving_default", &[("keras_tensor", floats(&[2, 8])?)])?;
    for name in ["v1_linear_ref", "v1_linear_resource"] {
        let session = load_session(&Context::new(), zoo(name), &LoadOptions::default())?;
        let key = session.signatures().next().ok_or("a signature")?.to_string();
        let [(input, spec)] = &session.signature_inputs(&key)?[..] else {
            return Err("one input".into());
        };
        let width = spec.shape.dims().and_then(|dims| dims.last().copied().flatten());
        check(&zoo(name), &key, &[(input, floats(&[2, width.unwrap_or(1)])?)])?;
    }
    Ok(())
}

// Values take the place of variables in branches and loops as well.
#[test]
fn control_flow_is_frozen() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (w, rows) = (Variable::named("w", 2.0f32)?, Variable::named("rows", [3.0f32, 5.0])?);
    let f = function({
        let (w, rows) = (w.clone(), rows.clone());
        move |x: Tensor| -> tracer::Result<Tensor> {
            let n = ops::cast(&x, DType::I32)?;
            let sum = ferroflow::while_loop(
                |(i, _): &(Tensor, Tensor)| i.less(&n),
                |(i, sum): (Tensor, Tensor)| Ok(((&i + 1)?, (&sum + &w.read()?)?)),
                (Tensor::from(0), x.clone()),
            )?
            .1;
            let row = ferroflow::cond(
                &sum.greater(10.0f32)?,
                || ops::resource_gather(&rows.handle(), &Tensor::from(1), DType::F32),
                || &w.read()? * 10.0f32,
            )?;
            &sum + &row
        }
    });
    let f = f.with_parameters(["x"]).with_input_signature([spec(DType::F32, [])]);
    let root = Checkpoint::new().with("w", &w).with("rows", &rows).with("f", &f);
    save(&root, folder.path(), &SaveOptions::default())?;
    for x in [1.0f32, 5.0] {
        let frozen = check(folder.path(), "serving_default", &[("x", HostTensor::scalar(x))])?;
        let ops = ops_of(&frozen.graph_def);
        assert!(ops.iter().any(|op| op.ends_with("While")) && ops.contains(&"GatherV2"), "{ops:?}");
    }
    Ok(())
}

#[test]
fn what_changes_state_is_not_frozen() -> Outcome {
    let folder = tempfile::tempdir()?;
    let count = Variable::named("count", 0.0f32)?;
    let f = function({
        let count = count.clone();
        move |x: Tensor| -> tracer::Result<Tensor> {
            count.assign_add(&x)?;
            count.read()
        }
    });
    let f = f.with_parameters(["x"]).with_input_signature([spec(DType::F32, [])]);
    let root = Checkpoint::new().with("count", &count).with("f", &f);
    save(&root, folder.path(), &SaveOptions::default())?;
    let session = load_session(&Context::new(), folder.path(), &LoadOptions::default())?;
    let error = freeze(&session, "serving_default").unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
    assert!(error.to_string().contains("AssignAddVariableOp"), "{error}");
    Ok(())
}

#[test]
fn functions_that_call_themselves_are_refused() -> Outcome {
    for name in ["bad_function_recursion", "bad_function_mutual_recursion"] {
        let Ok(session) = load_session(&Context::new(), zoo(name), &LoadOptions::default()) else {
            continue;
        };
        let key = session.signatures().next().ok_or("a signature")?.to_string();
        assert!(freeze(&session, &key).is_err(), "{name}");
    }
    Ok(())
}

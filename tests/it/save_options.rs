//! Options of saved models: namespaces of ops, debug ops, and defaults of signatures.

use ferroflow::{
    Checkpoint, FunctionOptions, Tensor, function, function_with,
    ir::{Attrs, DType, HostTensor, Lowering, OpDef, infer, op::arg_of},
    ops, print,
    runtime::{Context, EagerTensor, ops::one},
    save,
    saved_model::{
        LoadOptions, SaveOptions, load, load_session, proto, read_message, save::DebugOps,
    },
    spec,
    tracer::{self, function_spec::ParameterSpec, with_context},
};
use std::{collections::BTreeMap, error::Error, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn meta_graph(folder: &Path) -> Outcome<proto::MetaGraphDef> {
    let mut model: proto::SavedModel = read_message(&folder.join("saved_model.pb"))?;
    Ok(model.meta_graphs.remove(0))
}

/// The op types of all nodes.
fn op_types(meta_graph: &proto::MetaGraphDef) -> Vec<String> {
    let graph = meta_graph.graph_def.iter();
    let functions = graph.clone().flat_map(|graph| &graph.library).flat_map(|l| &l.function);
    let nodes = functions.flat_map(|function| &function.node_def);
    graph.flat_map(|graph| &graph.node).chain(nodes).map(|node| node.op.clone()).collect()
}

/// The values of an output for loaders of objects and of sessions; they must agree.
fn served(folder: &Path, inputs: &[(&str, f32)]) -> Outcome<f32> {
    let tensor = |&(name, value): &(&str, f32)| {
        (name.to_string(), EagerTensor::from(HostTensor::scalar(value)))
    };
    let inputs: BTreeMap<String, EagerTensor> = inputs.iter().map(tensor).collect();
    let value = |outputs: BTreeMap<String, EagerTensor>| -> Outcome<f32> {
        Ok(outputs["output_0"].host()?.as_scalar::<f32>()?)
    };
    let model = load(&Context::new(), folder, &LoadOptions::default())?;
    let session = load_session(&Context::new(), folder, &LoadOptions::default())?;
    let by_objects = value(model.call_signature("serving_default", &inputs)?)?;
    let by_session = value(session.call_signature("serving_default", &inputs)?)?;
    assert_eq!(by_session.to_bits(), by_objects.to_bits());
    Ok(by_objects)
}

#[test]
fn inputs_with_a_default_may_be_left_out() -> Outcome {
    let folder = tempfile::tempdir()?;
    let options = FunctionOptions {
        parameters: vec![
            ParameterSpec::new("x"),
            ParameterSpec::new("factor").or(Tensor::from(3.0f32)),
        ],
        ..FunctionOptions::default()
    };
    let f = function_with(options, |x: Tensor, factor: Tensor| x * factor);
    let f = f.with_input_signature([spec(DType::F32, []), spec(DType::F32, [])]);
    let root = Checkpoint::new().with("f", &f);
    save(&root, folder.path(), &SaveOptions::default().signature(&f)?)?;
    let message = meta_graph(folder.path())?;
    let signature = &message.signature_def["serving_default"];
    assert_eq!(signature.defaults.keys().collect::<Vec<_>>(), ["factor"]);
    assert!(op_types(&message).iter().any(|op| op == "PlaceholderWithDefault"));
    assert_eq!(served(folder.path(), &[("x", 2.0)])?, 6.0);
    assert_eq!(served(folder.path(), &[("x", 2.0), ("factor", 5.0)])?, 10.0);
    let error = served(folder.path(), &[("factor", 5.0)]).unwrap_err().to_string();
    assert!(error.ends_with("x must be float32[], found nothing"), "{error}");
    // Saved again, the model has the defaults still.
    let again = tempfile::tempdir()?;
    let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    save(&model.root().ok_or("objects")?, again.path(), &SaveOptions::default())?;
    assert_eq!(served(again.path(), &[("x", 2.0)])?, 6.0);
    Ok(())
}

#[test]
fn debug_ops_are_left_out_where_that_is_asked_for() -> Outcome {
    let f = function(|x: Tensor| {
        ops::assert(&x.greater(Tensor::from(0.0f32))?, &[&x])?;
        print!("x is", x)?;
        ops::check_numerics(&x.log()?, "log")
    });
    let f = f.with_parameters(["x"]).with_input_signature([spec(DType::F32, [])]);
    let root = Checkpoint::new().with("f", &f);
    let is_debug = |op: &String| ["Assert", "PrintV2", "CheckNumerics"].contains(&op.as_str());
    for (debug_ops, n_expected) in [(DebugOps::Keep, 3), (DebugOps::Strip, 0)] {
        let folder = tempfile::tempdir()?;
        let mut options = SaveOptions::default();
        options.debug_ops = debug_ops;
        save(&root, folder.path(), &options)?;
        let found = op_types(&meta_graph(folder.path())?).iter().filter(|op| is_debug(op)).count();
        assert_eq!(found, n_expected);
        assert_eq!(served(folder.path(), &[("x", 1.0)])?, 0.0);
        let below = served(folder.path(), &[("x", -1.0)]);
        assert_eq!(below.is_ok_and(f32::is_nan), debug_ops == DebugOps::Strip);
    }
    Ok(())
}

#[test]
fn namespaces_of_ops_are_allowed_by_name() -> Outcome {
    const TWICE: OpDef = OpDef {
        name: "Acme>Twice",
        summary: "Doubles a scalar.",
        inputs: &[arg_of("x", DType::F32)],
        outputs: &[arg_of("y", DType::F32)],
        infer: infer::unchanged,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    };
    let context = Context::new();
    let twice = context.register_op(TWICE, |call| {
        let x = call.host(0)?.as_scalar::<f32>()?;
        one(HostTensor::scalar(x * 2.0))
    })?;
    let folder = tempfile::tempdir()?;
    let saved = |allowed: Option<&[&str]>| {
        with_context(&context, || -> Outcome {
            let f = function(move |x: Tensor| -> tracer::Result<Tensor> {
                Ok(ops::raw(twice, Attrs::new(), &[&x])?.remove(0))
            });
            let f = f.with_parameters(["x"]).with_input_signature([spec(DType::F32, [])]);
            let mut options = SaveOptions::default();
            options.op_namespaces =
                allowed.map(|names| names.iter().map(ToString::to_string).collect());
            save(&Checkpoint::new().with("f", &f), folder.path(), &options)?;
            Ok(())
        })
    };
    for refused in [&[][..], &["Other"]] {
        let error = saved(Some(refused)).unwrap_err().to_string();
        assert!(error.contains("op Acme>Twice is not saved"), "{error}");
        assert!(!folder.path().join("saved_model.pb").exists());
    }
    saved(Some(&["Acme"]))?;
    saved(None)
}

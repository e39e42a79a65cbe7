//! Signatures: which functions serving sees, and what it may ask of them.

use crate::support::{example_record, parsed_examples};
use ferroflow::{
    Checkpoint, Function, Functions, HasFunctions, Tensor, Trackable, Variable, function,
    ir::{DType, HostTensor, PartialShape, TraceType},
    literal, loaded_function, ops,
    runtime::{Context, EagerTensor, RunOptions, TraceLevel},
    save,
    saved_model::{
        self, LoadOptions, SaveOptions, SavedModel, load, load_session, proto, read_message,
    },
    spec, tracer,
};
use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    path::Path,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn loaded(folder: &Path) -> Outcome<SavedModel> {
    Ok(load(&Context::new(), folder, &LoadOptions::default())?)
}

fn eager(tensor: impl Into<Tensor>) -> EagerTensor {
    tensor.into().eager().expect("a tensor of eager code").clone()
}

fn inputs<const N: usize>(inputs: [(&str, EagerTensor); N]) -> BTreeMap<String, EagerTensor> {
    inputs.map(|(name, tensor)| (name.to_string(), tensor)).into()
}

/// Answers of a signature to loaders of objects and loaders of sessions; they must agree.
fn served(
    folder: &Path,
    key: &str,
    inputs: &BTreeMap<String, EagerTensor>,
) -> Outcome<BTreeMap<String, HostTensor>> {
    let session = load_session(&Context::new(), folder, &LoadOptions::default())?;
    let host = |outputs: BTreeMap<String, EagerTensor>| -> Outcome<BTreeMap<String, HostTensor>> {
        outputs.into_iter().map(|(name, tensor)| Ok((name, tensor.into_host()?))).collect()
    };
    let by_objects = host(loaded(folder)?.call_signature(key, inputs)?)?;
    assert_eq!(host(session.call_signature(key, inputs)?)?, by_objects);
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let noted = loaded(folder)?.call_signature_with(key, inputs, &options)?;
    assert_eq!(host(noted.0)?, by_objects);
    Ok(by_objects)
}

/// TensorFlow does not hold inputs against declared shapes, and notes of a run change nothing of that.
#[test]
fn inputs_may_have_other_shapes_than_declared() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor| x.square()).with_name("f").with_parameters(["x"]);
    let f = f.with_input_signature([spec(DType::F32, [Some(1)])]);
    let root = Checkpoint::new().with("f", &f);
    save(&root, folder.path(), &SaveOptions::default().signature(&f)?)?;
    let inputs = inputs([("x", eager([[2.0f32], [3.0]]))]);
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let plain = loaded(folder.path())?.call_signature("serving_default", &inputs)?;
    let model = loaded(folder.path())?;
    let (noted, metadata) = model.call_signature_with("serving_default", &inputs, &options)?;
    for y in [&plain["output_0"], &noted["output_0"]] {
        assert_eq!(y.clone().into_host()?.as_slice::<f32>()?, [4.0, 9.0]);
    }
    assert!(!metadata.ops.is_empty());
    Ok(())
}

fn meta_graph(folder: &Path) -> Outcome<proto::MetaGraphDef> {
    let mut model: proto::SavedModel = read_message(&folder.join("saved_model.pb"))?;
    Ok(model.meta_graphs.remove(0))
}

#[derive(Trackable, HasFunctions)]
struct Net {
    functions: Functions,
}

impl Net {
    fn new() -> Net {
        Net { functions: Functions::default() }
    }

    #[function(input_signature = [spec(f32, [None, 5])])]
    fn infer(&self, x: &Tensor) -> tracer::Result<Tensor> {
        x.identity()
    }
}

// spec: 271, 273, 274
#[test]
fn a_function_without_a_key_is_the_default() -> Outcome {
    let folder = tempfile::tempdir()?;
    let net = Net::new();
    let infer = net.infer_concrete([spec(DType::F32, [None, Some(5)])])?;
    let one = folder.path().join("serve1");
    let report = save(&net, &one, &SaveOptions::default().signature(&infer)?)?;
    assert_eq!(report.signatures, ["serving_default"]);
    let x = eager([[1.0f32, 2.0, 3.0, 4.0, 5.0]]);
    let y = served(&one, "serving_default", &inputs([("x", x.clone())]))?;
    assert_eq!(y["output_0"].as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0]);
    let two = folder.path().join("serve2");
    let options = SaveOptions::default().signature(&infer)?.named_signature("other", &infer)?;
    save(&net, &two, &options)?;
    assert_eq!(loaded(&two)?.signatures(), ["other", "serving_default"]);
    served(&two, "other", &inputs([("x", x)]))?;
    Ok(())
}

#[test]
fn the_one_argument_of_a_signature_may_be_given_by_position() -> Outcome {
    let folder = tempfile::tempdir()?;
    let one = function(|x: Tensor| x.square()).with_parameters(["x"]);
    let two = function(|x: Tensor, y: Tensor| x - y).with_parameters(["x", "y"]);
    let spec = || spec(DType::F32, [None]);
    let one = one.with_input_signature([spec()]);
    let two = two.with_input_signature([spec(), spec()]);
    let options = SaveOptions::default().named_signature("one", &one)?;
    save(
        &Checkpoint::new().with("one", &one).with("two", &two),
        folder.path(),
        &options.named_signature("two", &two)?,
    )?;
    let root = loaded(folder.path())?;
    let root = root.root().ok_or("an object")?;
    let x = || eager([3.0f32]).into();
    let by_position = |path: &str, n: usize| {
        let args: Vec<saved_model::PythonValue> = (0..n).map(|_| x()).collect();
        root.get(path)?.function()?.call(&args, &BTreeMap::new())
    };
    let y = by_position("signatures.one", 1)?;
    assert!(y.to_string().contains("output_0"), "{y}");
    // Of two arguments the order is not told by their names.
    assert!(by_position("signatures.two", 2).is_err());
    assert!(by_position("signatures.one", 2).is_err());
    let twice = BTreeMap::from([("x".to_string(), x())]);
    assert!(root.get("signatures.one")?.function()?.call(&[x()], &twice).is_err());
    Ok(())
}

// spec: 272
#[test]
fn a_signature_needs_types_for_its_arguments() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor| x.square()).with_name("f").with_parameters(["x"]);
    f(Tensor::from(2.0f32))?;
    let root = Checkpoint::new().with("f", &f);
    let error = save(&root, folder.path(), &SaveOptions::default().signature(&f)?).unwrap_err();
    let expected = "function `f` cannot be the signature `serving_default`: it needs an input \
                    signature, or one of its traces must be given";
    assert_eq!(error.to_string(), expected);
    let f = f.with_input_signature([spec(DType::F32, [None])]);
    save(&root, folder.path(), &SaveOptions::default().signature(&f)?)?;
    let y = served(folder.path(), "serving_default", &inputs([("x", eager([3.0f32]))]))?;
    assert_eq!(y["output_0"].as_slice::<f32>()?, [9.0]);
    Ok(())
}

type Parts = Vec<Tensor>;

fn infer(labels: Tensor, training: bool, x1: Tensor, x2: Tensor) -> tracer::Result<Parts> {
    match training {
        true => Ok(vec![labels, x1, x2]),
        false => Ok(vec![labels, (x1 + 1.0f32)?, (x2 + 1.0f64)?]),
    }
}

type Infer = Function<(Tensor, bool, Tensor, Tensor), Parts>;

fn net2() -> Infer {
    function(infer).with_name("infer").with_parameters(["labels", "training", "x1", "x2"])
}

fn net2_types() -> [TraceType; 4] {
    [
        TraceType::tensor(DType::I64, PartialShape::Unknown),
        literal(false),
        spec(DType::F32, [None, None, Some(3)]).into(),
        TraceType::tensor(DType::F64, PartialShape::Unknown),
    ]
}

// spec: 275, 276, 277, 279, 281
#[test]
fn a_signature_is_given_when_the_model_is_saved() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = net2();
    let root = Checkpoint::new().with("infer", &f);
    let concrete = f.concrete_for(net2_types())?;
    save(&root, folder.path(), &SaveOptions::default().signature(&concrete)?)?;
    // The argument that is no tensor has chosen the trace, and is not seen.
    let names: Vec<String> = meta_graph(folder.path())?.signature_def["serving_default"]
        .inputs
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, ["labels", "x1", "x2"]);
    let request = inputs([
        ("x2", eager(0.0f64)),
        ("labels", eager(vec![0i64, 1])),
        ("x1", eager([[[1.0f32, 2.0, 3.0]]])),
    ]);
    let y = served(folder.path(), "serving_default", &request)?;
    assert_eq!(y["output_0"].as_slice::<i64>()?, [0, 1]);
    assert_eq!(y["output_1"].as_slice::<f32>()?, [2.0, 3.0, 4.0]);
    assert_eq!(y["output_2"].as_scalar::<f64>()?, 1.0);
    Ok(())
}

// spec: 278
#[test]
fn arguments_of_signatures_are_not_nested() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: (Tensor, Tensor)| &x.0 + &x.1).with_name("f").with_parameters(["x"]);
    let scalar = TraceType::tensor(DType::F32, PartialShape::scalar());
    let concrete = f.concrete_for([TraceType::Tuple(vec![scalar.clone(), scalar])])?;
    let root = Checkpoint::new().with("f", &f);
    let error = save(&root, folder.path(), &SaveOptions::default().signature(&concrete)?);
    let message = error.unwrap_err().to_string();
    assert!(message.contains("its arguments must be tensors, which are not nested"), "{message}");
    // The same function may be attached, if only serving does not see it.
    save(&root, folder.path(), &SaveOptions::default())?;
    Ok(())
}

// spec: 280
#[test]
fn a_map_names_the_outputs() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor| -> tracer::Result<HashMap<String, Tensor>> {
        Ok(HashMap::from([("twice".to_string(), (&x + &x)?), ("again".to_string(), x)]))
    });
    let f = f.with_parameters(["x"]).with_input_signature([spec(DType::F32, [])]);
    let root = Checkpoint::new().with("f", &f);
    save(&root, folder.path(), &SaveOptions::default().signature(&f)?)?;
    let y = served(folder.path(), "serving_default", &inputs([("x", eager(3.0f32))]))?;
    let found = ["again", "twice"].map(|name| y[name].as_scalar::<f32>().unwrap());
    assert_eq!((y.len(), found), (2, [3.0, 6.0]));
    Ok(())
}

/// Error of saving a function of a scalar as signature.
fn refusal<R: tracer::Nest + 'static>(f: Function<(Tensor,), R>) -> Outcome<String> {
    let folder = tempfile::tempdir()?;
    let f = f.with_name("f").with_input_signature([spec(DType::F32, [])]);
    let root = Checkpoint::new().with("f", &f);
    let error = save(&root, folder.path(), &SaveOptions::default().signature(&f)?).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
    Ok(error.to_string())
}

// spec: 282, b47
#[test]
fn results_of_signatures_are_tensors_by_name_or_in_a_row() -> Outcome {
    let pair = |x: Tensor| (x.clone(), x);
    let nested = refusal(function(move |x: Tensor| (pair(x.clone()), x)))?;
    assert!(nested.contains("it gives a non-tensor value, ("), "{nested}");
    let in_map = refusal(function(move |x: Tensor| BTreeMap::from([("a".to_string(), pair(x))])))?;
    assert!(in_map.contains("it gives a non-tensor value, ("), "{in_map}");
    assert!(in_map.contains("for the output a"), "{in_map}");
    let keyed = refusal(function(|x: Tensor| -> tracer::NestedValue {
        let entries = [(ferroflow::ir::trace_type::MapKey::Int(7), x.into())];
        tracer::NestedValue::Dict(entries.into())
    }))?;
    assert!(keyed.ends_with("found a map with the key 7"), "{keyed}");
    // Attached functions may give what they like.
    let folder = tempfile::tempdir()?;
    let f = function(move |x: Tensor| (pair(x.clone()), x));
    f(Tensor::from(1.0f32))?;
    save(&Checkpoint::new().with("f", &f), folder.path(), &SaveOptions::default())?;
    Ok(())
}

// spec: 284, b49
#[test]
fn the_only_function_with_a_signature_is_the_default() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = || function(|x: Tensor| x.square()).with_input_signature([spec(DType::F32, [None])]);
    let (a, b) = (f().with_parameters(["x"]), f());
    let one = Checkpoint::new().with("a", &a);
    let report = save(&one, folder.path().join("one"), &SaveOptions::default())?;
    assert_eq!(report.signatures, ["serving_default"]);
    let two = Checkpoint::new().with("a", &a).with("b", &b);
    let report = save(&two, folder.path().join("two"), &SaveOptions::default())?;
    assert!(report.signatures.is_empty());
    assert!(loaded(&folder.path().join("two"))?.signatures().is_empty());
    let report =
        save(&one, folder.path().join("none"), &SaveOptions::default().without_signatures())?;
    assert!(report.signatures.is_empty());
    Ok(())
}

// spec: 285, 286, 287
#[test]
fn a_loaded_model_keeps_its_signatures() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor| x.identity()).with_name("infer").with_parameters(["x"]);
    f(Tensor::from(1.0f32))?;
    let concrete = f.concrete_for([TraceType::tensor(DType::F32, PartialShape::Unknown)])?;
    let (first, second) = (folder.path().join("serve"), folder.path().join("serve1"));
    let root = Checkpoint::new().with("infer", &f);
    save(&root, &first, &SaveOptions::default().signature(&concrete)?)?;
    let x = inputs([("x", eager([[1.0f32]]))]);
    assert_eq!(served(&first, "serving_default", &x)?["output_0"].as_slice::<f32>()?, [1.0]);
    let model = loaded(&first)?;
    let map = model.root().ok_or("an object")?.get("signatures")?;
    assert_eq!(map.children(), ["serving_default"]);
    save(&model.root().ok_or("an object")?, &second, &SaveOptions::default())?;
    assert_eq!(served(&second, "serving_default", &x)?["output_0"].as_slice::<f32>()?, [1.0]);
    let bytes = |folder: &Path| std::fs::read(folder.join("saved_model.pb"));
    assert!(bytes(&first)? == bytes(&second)?, "saving again changes nothing");
    // What is given when saving comes first.
    let g = function(|y: Tensor| y.square()).with_parameters(["y"]);
    let g = g.with_input_signature([spec(DType::F32, [None])]);
    let third = folder.path().join("serve2");
    let options = SaveOptions::default().named_signature("squared", &g)?;
    save(&model.root().ok_or("an object")?, &third, &options)?;
    assert_eq!(loaded(&third)?.signatures(), ["squared"]);
    Ok(())
}

// spec: 288, b48
#[test]
fn the_name_signatures_is_taken() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let root = Checkpoint::new().with("signatures", BTreeMap::from([("v".to_string(), v.clone())]));
    let error = save(&root, folder.path(), &SaveOptions::default()).unwrap_err();
    assert!(matches!(error, saved_model::Error::SignaturesTaken { .. }), "{error}");
    save(&Checkpoint::new().with("other", &v), folder.path(), &SaveOptions::default())?;
    Ok(())
}

// spec: b50
#[test]
fn functions_do_not_save_while_they_are_traced() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let path = folder.path().to_path_buf();
    let f = function(move |x: Tensor| {
        save(&v, &path, &SaveOptions::default()).map_err(tracer::Error::host)?;
        Ok::<_, tracer::Error>(x)
    });
    let error = f(Tensor::from(1.0f32)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "models are saved by eager code, not by functions while they are traced"
    );
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}

// spec: 258, 260, 283
#[test]
fn a_loaded_model_gets_a_head_that_parses() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (first, second) = (folder.path().join("serve1"), folder.path().join("serve_proto"));
    let net = net2();
    let concrete = net.concrete_for(net2_types())?;
    let root = Checkpoint::new().with("infer", &net);
    save(&root, &first, &SaveOptions::default().signature(&concrete)?)?;
    let model = loaded(&first)?.root().ok_or("an object")?;
    let infer = loaded_function(&model.get("infer")?.function()?.traces()[0])?;
    let parse = function(move |serialized: Tensor| -> tracer::Result<Vec<Tensor>> {
        let parsed = parsed_examples(&serialized)?;
        let x2 = ops::cast(&parsed[2], DType::F64)?;
        infer.call_flat(&[parsed[0].clone(), parsed[1].clone(), x2])
    });
    let parse = parse.with_name("parse").with_parameters(["serialized"]);
    let parse = parse.with_input_signature([spec(DType::String, [None])]);
    let head = Checkpoint::of(&model).with("infer_from_proto", &parse);
    save(&head, &second, &SaveOptions::default().signature(&parse)?)?;
    let records =
        HostTensor::from_strings(ferroflow::ir::Shape::new([1])?, vec![example_record().into()])?;
    let request = inputs([("serialized", records.into())]);
    let y = served(&second, "serving_default", &request)?;
    assert_eq!(y["output_0"].as_slice::<i64>()?, [7]);
    assert_eq!(y["output_1"].as_slice::<f32>()?, [2.0, 3.0, 4.0]);
    assert_eq!(y["output_2"].as_slice::<f64>()?, [1.5]);
    // The parts of the model that were there are there still.
    let again = loaded(&second)?.root().ok_or("an object")?;
    assert_eq!(again.get("infer")?.function()?.traces().len(), 1);
    Ok(())
}

// spec: 246
#[test]
fn what_no_file_can_hold_is_refused() -> Outcome {
    #[derive(tracer::TraceType, Clone, PartialEq)]
    #[trace(by_value)]
    struct Flavor(&'static str);
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor, flavor: tracer::NestedValue| {
        assert!(matches!(flavor, tracer::NestedValue::Custom(_)));
        x.square()
    });
    let flavor = tracer::Nest::to_value(&Flavor("sweet"));
    f.call_named(&[Tensor::from(1.0f32).into(), flavor], &[])?;
    let error = save(&Checkpoint::new().with("f", &f), folder.path(), &SaveOptions::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("must be of a kind that files hold"), "{message}");
    Ok(())
}

#[test]
fn functions_that_tensorflow_cannot_load_are_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    let refusal = |root: &Checkpoint| {
        let error = save(root, folder.path(), &SaveOptions::default()).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).map(Iterator::count).unwrap_or(0), 0);
        error.to_string()
    };
    let add = function(|x: Tensor, y: Tensor| &x + &y);
    for names in [["a_b", "a/b"], ["x", "x"], ["1", "arg_1"]] {
        let f = add.with_parameters(names);
        f(Tensor::from(1.0f32), Tensor::from(2.0f32))?;
        let message = refusal(&Checkpoint::new().with("f", &f));
        assert!(
            message.contains(&format!("`{}` and `{}` are both", names[0], names[1])),
            "{message}"
        );
    }
    let noted = function(|x: Tensor| {
        tracer::summary::scalar("x", &x, 0)?;
        x.square()
    });
    noted(Tensor::from(1.0f32))?;
    let message = refusal(&Checkpoint::new().with("noted", &noted));
    assert!(message.contains("which writes summaries") && message.contains("skip"), "{message}");
    Ok(())
}

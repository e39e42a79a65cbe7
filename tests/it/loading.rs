//! Loading: objects come back with their state, whole or in part, and may be saved again.

use ferroflow::{
    Checkpoint, Function, Functions, GradientTape, HasFunctions, Tensor, Trackable, Variable,
    function,
    ir::{DType, HostTensor, PartialShape, Shape, TensorSpec},
    loaded_function,
    runtime::{Context, EagerTensor, trackable::Description},
    save,
    saved_model::{
        self, LoadOptions, Object, PythonValue, RestoredFunction, Revive, SaveOptions, SavedModel,
        load,
        load::tags,
        load_session,
        proto::{self, saved_object::Kind},
        read_message, write_message,
    },
    spec, tracer,
};
use std::{collections::BTreeMap, error::Error, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn root(folder: &Path, options: &LoadOptions) -> Outcome<Object> {
    Ok(load(&Context::new(), folder, options)?.root().ok_or("a model with objects")?)
}

fn loaded(folder: &Path) -> Outcome<Object> {
    root(folder, &LoadOptions::default())
}

fn eager(tensor: impl Into<Tensor>) -> EagerTensor {
    tensor.into().eager().expect("a tensor of eager code").clone()
}

fn call(root: &Object, path: &str, arg: impl Into<Tensor>) -> Outcome<Vec<f32>> {
    let value = root.get(path)?.function()?.call(&[eager(arg).into()], &BTreeMap::new())?;
    Ok(value.tensor().ok_or("a tensor")?.host()?.as_slice::<f32>()?.to_vec())
}

fn zoo(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo").join(name).join("model")
}

fn meta_graph(folder: &Path) -> Outcome<proto::MetaGraphDef> {
    let mut model: proto::SavedModel = read_message(&folder.join("saved_model.pb"))?;
    assert_eq!(model.meta_graphs.len(), 1);
    Ok(model.meta_graphs.remove(0))
}

type Unary = Function<(Tensor,), Tensor>;

#[derive(Trackable)]
struct Layer {
    w: Variable,
    apply: Unary,
}

#[derive(Trackable)]
struct Everything {
    layer: Layer,
    list: Vec<Variable>,
    dict: BTreeMap<String, Variable>,
    serve: Unary,
}

fn everything() -> tracer::Result<Everything> {
    let w = Variable::named("w", [1.0f32, 2.0])?;
    let apply = function({
        let w = w.clone();
        move |x: Tensor| &x * &w
    });
    let apply = apply.with_name("apply").with_parameters(["x"]);
    let serve = function({
        let apply = apply.clone();
        move |x: Tensor| apply(x)? + 1.0f32
    });
    let serve = serve.with_name("serve").with_parameters(["x"]);
    let serve = serve.with_input_signature([spec(DType::F32, [Some(2)])]);
    Ok(Everything {
        layer: Layer { w, apply },
        list: vec![Variable::new(5.0f32)?, Variable::new(6.0f32)?],
        dict: BTreeMap::from([("key".to_string(), Variable::new(7i64)?)]),
        serve,
    })
}

fn saved_everything(folder: &Path) -> Outcome {
    let model = everything()?;
    save(&model, folder, &SaveOptions::default().signature(&model.serve)?)?;
    Ok(())
}

// spec: 232, 234, 237, 263, 269, 270, 291, 296, 301, 323, 332
#[test]
fn objects_come_back_in_their_structure() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved_everything(folder.path())?;
    let root = loaded(folder.path())?;
    assert_eq!(root.children(), ["layer", "list", "dict", "serve", "signatures"]);
    let identifier = |path: &str| -> Outcome<String> {
        Ok(root.get(path)?.identifier().ok_or("an object")?.to_string())
    };
    assert_eq!(identifier("layer")?, "_generic_user_object");
    assert_eq!(identifier("list")?, "trackable_list_wrapper");
    assert_eq!(identifier("dict")?, "trackable_dict_wrapper");
    assert_eq!(root.get("list.1")?.tensor()?.as_scalar::<f32>()?, 6.0);
    assert_eq!(root.get("dict.key")?.tensor()?.as_scalar::<i64>()?, 7);
    assert_eq!(call(&root, "serve", [1.0f32, 1.0])?, [2.0, 3.0]);
    assert_eq!(call(&root, "layer.apply", [1.0f32, 1.0])?, [1.0, 2.0]);
    let session = load_session(&Context::new(), folder.path(), &LoadOptions::default())?;
    let inputs = BTreeMap::from([("x".to_string(), eager([1.0f32, 1.0]))]);
    let y = session.call_signature("serving_default", &inputs)?;
    assert_eq!(y["output_0"].host()?.as_slice::<f32>()?, [2.0, 3.0]);
    Ok(())
}

// spec: 293, 302, 350
#[test]
fn each_load_has_variables_of_its_own() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved_everything(folder.path())?;
    let (a, b) = (loaded(folder.path())?, loaded(folder.path())?);
    let w = |root: &Object| -> Outcome<_> {
        Ok(root.get("layer.w")?.variable().ok_or("a variable")?.clone())
    };
    let (first, second) = (w(&a)?, w(&b)?);
    assert!(!first.is(&second) && first.name() == "w" && first.is_trainable());
    first.assign(HostTensor::vector(&[0.0f32, 0.0])?)?;
    assert_eq!(call(&a, "serve", [1.0f32, 1.0])?, [1.0, 1.0]);
    assert_eq!(call(&b, "serve", [1.0f32, 1.0])?, [2.0, 3.0]);
    // Variables need no node of the graph: without any, there are objects all the same.
    let path = folder.path().join("saved_model.pb");
    let mut model: proto::SavedModel = read_message(&path)?;
    model.meta_graphs[0].graph_def.as_mut().ok_or("a graph")?.node.clear();
    write_message(&path, &model)?;
    assert_eq!(call(&loaded(folder.path())?, "serve", [1.0f32, 1.0])?, [2.0, 3.0]);
    Ok(())
}

// spec: 257, 260
#[test]
fn saving_what_was_loaded_changes_nothing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (first, second, third) =
        (folder.path().join("1"), folder.path().join("2"), folder.path().join("3"));
    saved_everything(&first)?;
    let model = loaded(&first)?;
    save(&model, &second, &SaveOptions::default())?;
    for file in ["saved_model.pb", "variables/variables.index", "fingerprint.pb"] {
        let same = std::fs::read(first.join(file))? == std::fs::read(second.join(file))?;
        assert!(same, "{file} is another one");
    }
    let w = model.get("layer.w")?;
    w.variable().ok_or("a variable")?.assign(HostTensor::vector(&[3.0f32, 4.0])?)?;
    save(&model, &third, &SaveOptions::default())?;
    assert_eq!(call(&loaded(&third)?, "serve", [1.0f32, 1.0])?, [4.0, 5.0]);
    assert_eq!(call(&loaded(&second)?, "serve", [1.0f32, 1.0])?, [2.0, 3.0]);
    Ok(())
}

// spec: 258, 262
#[test]
fn a_part_of_a_model_becomes_a_part_of_another() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (whole, larger) = (folder.path().join("whole"), folder.path().join("larger"));
    saved_everything(&whole)?;
    let layer = loaded(&whole)?.get("layer")?;
    let apply = loaded_function(&layer.get("apply")?.function()?.traces()[0])?;
    // One state, two flows of data.
    let flow = |by: f32| {
        let apply = apply.clone();
        let f = function(move |x: Tensor| &apply.call_flat(&[x])?[0] * by).with_parameters(["x"]);
        f.with_input_signature([spec(DType::F32, [Some(2)])])
    };
    let (twice, thrice) = (flow(2.0), flow(3.0));
    let new = Variable::new(9.0f32)?;
    let object = Checkpoint::new().with("new", &new).with("part", &layer);
    let object = object.with("twice", &twice).with("thrice", &thrice);
    save(&object, &larger, &SaveOptions::default())?;
    let root = loaded(&larger)?;
    assert_eq!(call(&root, "twice", [1.0f32, 1.0])?, [2.0, 4.0]);
    let w = root.get("part.w")?;
    w.variable().ok_or("a variable")?.assign(HostTensor::vector(&[10.0f32, 10.0])?)?;
    assert_eq!(call(&root, "thrice", [1.0f32, 1.0])?, [30.0, 30.0]);
    assert_eq!(call(&root, "part.apply", [1.0f32, 1.0])?, [10.0, 10.0]);
    assert!(root.child("serve").is_none());
    Ok(())
}

#[derive(Trackable)]
struct Tunable {
    trainable_variables: Vec<Variable>,
    mean: Variable,
    regularization_losses: Vec<Function<(), Tensor>>,
    update: Function<(Tensor,), ()>,
}

// spec: 259, 328, 330
#[test]
fn an_imported_part_is_tuned() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (w, mean) = (Variable::new(2.0f32)?, Variable::new(0.0f32)?);
    let loss = function({
        let w = w.clone();
        move || w.read()?.square()
    });
    let update = function({
        let (w, mean) = (w.clone(), mean.clone());
        move |gradient: Tensor| -> tracer::Result<()> {
            w.assign_sub(&(&gradient * 0.5f32)?)?;
            mean.assign(&gradient)
        }
    });
    let update = update.with_input_signature([spec(DType::F32, [])]);
    loss.call(())?;
    let model =
        Tunable { trainable_variables: vec![w], mean, regularization_losses: vec![loss], update };
    save(&model, folder.path(), &SaveOptions::default().without_signatures())?;
    let root = loaded(folder.path())?;
    let trainable = root.get("trainable_variables")?;
    let w = trainable.get("0")?.variable().ok_or("a variable")?.clone();
    let losses = root.get("regularization_losses.0")?.function()?;
    let loss = || -> Outcome<f32> {
        let value = losses.call(&[], &BTreeMap::new())?;
        Ok(value.tensor().ok_or("a tensor")?.host()?.as_scalar()?)
    };
    assert_eq!((trainable.children().len(), loss()?), (1, 4.0));
    root.get("update")?.function()?.call(&[eager(2.0f32).into()], &BTreeMap::new())?;
    assert_eq!((w.read()?.as_scalar::<f32>()?, loss()?), (1.0, 1.0));
    assert_eq!(root.get("mean")?.tensor()?.as_scalar::<f32>()?, 2.0);
    Ok(())
}

// spec: 329
#[test]
fn a_loaded_optimizer_steps_variables_outside_its_model() -> Outcome {
    let folder = tempfile::tempdir()?;
    // A step is a pure function of values, whatever their shape.
    let step = function(|w: Tensor, slot: Tensor, gradient: Tensor| -> tracer::Result<_> {
        let slot = ((slot * 0.5)? + gradient)?;
        Ok(vec![(w - (&slot * 0.1)?)?, slot])
    });
    let any = TensorSpec::new(DType::F32, PartialShape::Unknown);
    let step = step.with_name("step").with_parameters(["w", "slot", "gradient"]);
    let step = step.with_input_signature([any.clone(), any.clone(), any]);
    let root = Checkpoint::new().with("step", &step);
    save(&root, folder.path(), &SaveOptions::default().without_signatures())?;
    let step = loaded_function(&loaded(folder.path())?.get("step")?.function()?.traces()[0])?;
    for first in [Tensor::from([1.0f32, -2.0]), Tensor::from([[1.0f32], [-2.0]])] {
        let (w, slot) = (Variable::new(first.clone())?, Variable::new(first.zeros_like()?)?);
        let train = function({
            let (w, slot, step) = (w.clone(), slot.clone(), step.clone());
            move || {
                let tape = GradientTape::new();
                let loss = w.read()?.square()?.sum_all()?;
                let gradient = tape.gradient(&loss, &w)?.expect("the loss depends on it");
                let new = step.call_flat(&[w.read()?, slot.read()?, gradient])?;
                w.assign(&new[0])?;
                slot.assign(&new[1])
            }
        });
        train.call(())?;
        train.call(())?;
        // 1 - 0.1·2 = 0.8, then 0.8 - 0.1·(1 + 1.6) = 0.54
        let found = w.read()?.to_vec::<f32>()?;
        assert!(found.iter().zip([0.54, -1.08]).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    }
    Ok(())
}

// spec: 261, b52
#[test]
fn functions_and_signatures_tell_what_they_take() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved_everything(folder.path())?;
    let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    assert_eq!(model.signatures(), ["serving_default"]);
    let inputs = model.signature_inputs("serving_default")?;
    assert_eq!((inputs[0].0.as_str(), inputs[0].1.to_string()), ("x", "x: float32[2]".to_string()));
    let serve = loaded(folder.path())?.get("serve")?.function()?;
    let traces: Vec<String> =
        serve.traces().iter().map(|trace| trace.inputs().to_string()).collect();
    assert_eq!(traces, ["((x: float32[2],), {})"]);
    let error = serve.call(&[eager([1.0f32, 2.0, 3.0]).into()], &BTreeMap::new()).unwrap_err();
    let expected = "the function was not traced for the arguments ((float32[3],), {}); it was for \
                    ((x: float32[2],), {})";
    assert_eq!(error.to_string(), expected);
    Ok(())
}

// spec: b53
#[test]
fn a_trace_that_converts_nothing_comes_first() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: tracer::NestedValue| -> tracer::Result<Tensor> {
        match x {
            tracer::NestedValue::Tensor(x) => x + 100i32,
            _ => Ok(Tensor::from(7i32)),
        }
    });
    f(Tensor::from(1i32).into())?;
    f(1i64.into())?;
    save(&Checkpoint::new().with("f", &f), folder.path(), &SaveOptions::default())?;
    let f = loaded(folder.path())?.get("f")?.function()?;
    let call = |x: PythonValue| -> Outcome<i32> {
        let value = f.call(&[x], &BTreeMap::new())?;
        Ok(value.tensor().ok_or("a tensor")?.host()?.as_scalar()?)
    };
    assert_eq!((call(PythonValue::Int(1))?, call(eager(1i32).into())?), (7, 101));
    // Another integer is converted.
    assert_eq!(call(PythonValue::Int(2))?, 102);
    Ok(())
}

// spec: b54
#[test]
fn what_is_said_of_variables_stays() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    saved_everything(&first)?;
    let path = first.join("saved_model.pb");
    let mut model: proto::SavedModel = read_message(&path)?;
    let objects = model.meta_graphs[0].object_graph_def.as_mut().ok_or("objects")?;
    for node in &mut objects.nodes {
        if let Some(Kind::Variable(variable)) = &mut node.kind {
            (variable.synchronization, variable.aggregation) = (3, 2);
            variable.trainable = false;
        }
    }
    write_message(&path, &model)?;
    let model = load(&Context::new(), &first, &LoadOptions::default())?;
    let root = model.root().ok_or("objects")?;
    assert!(!root.get("layer.w")?.variable().ok_or("a variable")?.is_trainable());
    let w = root.get("layer.w")?;
    w.variable().ok_or("a variable")?.assign(HostTensor::vector(&[5.0f32, 5.0])?)?;
    assert_eq!(call(&root, "serve", [1.0f32, 1.0])?, [6.0, 6.0]);
    let inputs = BTreeMap::from([("x".to_string(), eager([1.0f32, 1.0]))]);
    let y = model.call_signature("serving_default", &inputs)?;
    assert_eq!(y["output_0"].host()?.as_slice::<f32>()?, [6.0, 6.0]);
    save(&root, &second, &SaveOptions::default())?;
    let objects = meta_graph(&second)?.object_graph_def.ok_or("objects")?;
    let mut variables = objects.nodes.iter().filter_map(|node| match &node.kind {
        Some(Kind::Variable(variable)) => Some(variable),
        _ => None,
    });
    assert!(variables.all(|v| v.synchronization == 3 && v.aggregation == 2 && !v.trainable));
    Ok(())
}

// spec: 298, 299, 300
#[test]
fn resources_are_made_before_functions_use_them() -> Outcome {
    use ferroflow::lookup::MutableHashTable;
    let folder = tempfile::tempdir()?;
    let table = MutableHashTable::new(DType::String, -1.0f32)?;
    table.insert(&["a"].into(), &vec![1.0f32].into())?;
    let (find, insert) = {
        let (read, written) = (table.clone(), table.clone());
        let insert = function(move |x: Tensor| written.insert(&x, &vec![5.0f32].into()));
        (function(move |x: Tensor| read.lookup(&x)), insert)
    };
    let texts = spec(DType::String, [Some(1)]);
    let find = find.with_input_signature([texts.clone()]);
    let insert = insert.with_input_signature([texts]);
    let root = Checkpoint::new().with("find", &find).with("insert", &insert).with("table", &table);
    save(&root, folder.path(), &SaveOptions::default())?;
    // Every load has a table of its own, which all its functions share.
    let (a, b) = (loaded(folder.path())?, loaded(folder.path())?);
    a.get("insert")?.function()?.call(&[eager(["b"]).into()], &BTreeMap::new())?;
    assert_eq!((call(&a, "find", ["b"])?, call(&b, "find", ["b"])?), (vec![5.0], vec![-1.0]));
    assert_eq!((call(&a, "find", ["a"])?, call(&b, "find", ["a"])?), (vec![1.0], vec![1.0]));
    assert_eq!(find(["b"].into())?.to_vec::<f32>()?, [-1.0]);
    Ok(())
}

// spec: 304, 344, 345, 346, 347, 349, 352
#[test]
fn the_file_names_functions_where_graphs_name_ops() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = everything()?;
    // Two objects share one function.
    let root = Checkpoint::of(&model).with("alias", &model.serve);
    save(&root, folder.path(), &SaveOptions::default().signature(&model.serve)?)?;
    let meta_graph = meta_graph(folder.path())?;
    let graph = meta_graph.graph_def.as_ref().ok_or("a graph")?;
    let objects = meta_graph.object_graph_def.as_ref().ok_or("objects")?;
    let child = |name: &str| {
        let child = objects.nodes[0].children.iter().find(|child| child.local_name == name);
        child.map(|child| child.node_id as usize)
    };
    assert!(child("serve").is_some() && child("serve") == child("alias"));
    let Some(Kind::Function(function)) = &objects.nodes[child("serve").ok_or("serve")?].kind else {
        panic!("functions are objects");
    };
    let library = &graph.library.as_ref().ok_or("a library")?.function;
    let names: Vec<&str> =
        library.iter().filter_map(|f| Some(f.signature.as_ref()?.name.as_str())).collect();
    for name in &function.concrete_functions {
        assert!(names.contains(&name.as_str()));
        let saved = &objects.concrete_functions[name];
        assert!(saved.canonicalized_input_signature.is_some() && saved.bound_inputs.len() == 1);
    }
    // What sessions run are calls of those functions.
    let called = |node: &str| {
        let node = graph.node.iter().find(|n| n.name == node)?;
        match node.attr.get("f")?.value.as_ref()? {
            proto::attr_value::Value::Func(f) => Some(f.name.clone()),
            _ => None,
        }
    };
    let saver = meta_graph.saver_def.as_ref().ok_or("a saver")?;
    let save_op = saver.save_tensor_name.split(':').next().ok_or("a name")?;
    for op in [save_op, &saver.restore_op_name] {
        assert!(called(op).is_some_and(|name| names.contains(&name.as_str())), "{op}");
    }
    let signature = &meta_graph.signature_def["serving_default"];
    assert!(!signature.inputs.is_empty() && !signature.outputs.is_empty());
    assert_eq!(tags(&meta_graph), ["serve"]);
    Ok(())
}

// spec: 265, 354, 357
#[test]
fn tools_of_tensorflow_1_look_at_their_fields_only() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = everything()?;
    let train = function(|x: Tensor| x.square()).with_name("train");
    train(2.0f32.into())?;
    let root = Checkpoint::of(&model).with("train", &train);
    save(&root, folder.path(), &SaveOptions::default().signature(&model.serve)?)?;
    let path = folder.path().join("saved_model.pb");
    let mut file: proto::SavedModel = read_message(&path)?;
    assert_eq!(file.meta_graphs.len(), 1);
    let library = file.meta_graphs[0].graph_def.as_mut().and_then(|graph| graph.library.as_mut());
    for function in &mut library.ok_or("a library")?.function {
        for node in function.node_def.iter_mut().filter(|node| node.op == "Square") {
            node.op = "OpOfTheFuture".into();
        }
    }
    write_message(&path, &file)?;
    // Training uses an op that nobody knows; serving does not mind, and saving keeps it.
    let again = folder.path().join("again");
    save(&loaded(folder.path())?, &again, &SaveOptions::default())?;
    for folder in [folder.path(), &again] {
        let root = loaded(folder)?;
        assert_eq!(call(&root, "serve", [1.0f32, 1.0])?, [2.0, 3.0]);
        assert!(call(&root, "train", 2.0f32).unwrap_err().to_string().contains("OpOfTheFuture"));
    }
    file.meta_graphs[0].object_graph_def = None;
    write_message(&path, &file)?;
    let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    assert!(matches!(model, SavedModel::Session(_)));
    let inputs = BTreeMap::from([("x".to_string(), eager([1.0f32, 1.0]))]);
    let y = model.call_signature("serving_default", &inputs)?;
    assert_eq!(y["output_0"].host()?.as_slice::<f32>()?, [2.0, 3.0]);
    Ok(())
}

// spec: 353
#[test]
fn gradients_of_functions_come_along() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved_everything(folder.path())?;
    let path = folder.path().join("saved_model.pb");
    let mut file: proto::SavedModel = read_message(&path)?;
    let library = file.meta_graphs[0].graph_def.as_mut().and_then(|graph| graph.library.as_mut());
    let library = library.ok_or("a library")?;
    let mut gradient = library.function[0].clone();
    gradient.signature.as_mut().ok_or("a signature")?.name = "gradient_of_it".into();
    library.function.push(gradient);
    library.registered_gradients.push(proto::RegisteredGradient {
        gradient_func: "gradient_of_it".into(),
        registered_op_type: "CustomGradient-7".into(),
    });
    let mul = library.function.iter_mut().flat_map(|f| &mut f.node_def).find(|n| n.op == "Mul");
    let op_type = proto::attr_value::Value::S("CustomGradient-7".into());
    let op_type = proto::AttrValue { value: Some(op_type) };
    mul.ok_or("a product")?.attr.insert("_gradient_op_type".into(), op_type);
    write_message(&path, &file)?;
    let again = folder.path().join("again");
    save(&loaded(folder.path())?, &again, &SaveOptions::default())?;
    let library = meta_graph(&again)?.graph_def.and_then(|graph| graph.library);
    let library = library.ok_or("a library")?;
    let names: Vec<&str> =
        library.function.iter().filter_map(|f| Some(f.signature.as_ref()?.name.as_str())).collect();
    assert!(names.contains(&"gradient_of_it"), "{names:?}");
    assert_eq!(library.registered_gradients[0].registered_op_type, "CustomGradient-7");
    Ok(())
}

// spec: 356
#[test]
fn a_part_is_loaded_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved_everything(folder.path())?;
    let part = root(folder.path(), &LoadOptions::only(["layer.apply", "list.1"]))?;
    assert_eq!(part.children(), ["layer", "list"]);
    assert_eq!(call(&part, "layer.apply", [1.0f32, 1.0])?, [1.0, 2.0]);
    assert_eq!(part.get("list")?.children(), ["1"]);
    assert!(part.get("serve").is_err());
    let served = root(folder.path(), &LoadOptions::only(["signatures"]))?;
    assert_eq!(served.children(), ["signatures"]);
    let model = load(&Context::new(), folder.path(), &LoadOptions::only(["signatures"]))?;
    let inputs = BTreeMap::from([("x".to_string(), eager([1.0f32, 1.0]))]);
    let y = model.call_signature("serving_default", &inputs)?;
    assert_eq!(y["output_0"].host()?.as_slice::<f32>()?, [2.0, 3.0]);
    let error = root(folder.path(), &LoadOptions::only(["layer.missing"])).unwrap_err();
    assert!(error.to_string().starts_with("`layer.missing` leads nowhere"), "{error}");
    Ok(())
}

#[derive(Trackable, HasFunctions)]
#[trackable(type = "example.HasPhase")]
struct HasPhase {
    functions: Functions,
}

impl HasPhase {
    #[function]
    fn apply(&self, x: &Tensor, learning_phase: i64) -> tracer::Result<Tensor> {
        if learning_phase == 0 { x.identity() } else { x + 1.0f32 }
    }
}

/// The type in the program that loads: it has a method in plain Rust.
struct Revived {
    apply: RestoredFunction,
    phase: i64,
}

impl Revive for Revived {
    const IDENTIFIER: &'static str = "example.HasPhase";

    fn revive(object: &Object) -> saved_model::Result<Revived> {
        Ok(Revived { apply: object.get("apply")?.function()?, phase: 0 })
    }
}

impl Revived {
    fn call(&self, x: f32) -> Outcome<f32> {
        let args = [eager(x).into(), PythonValue::Int(self.phase)];
        let value = self.apply.call(&args, &BTreeMap::new())?;
        Ok(value.tensor().ok_or("a tensor")?.host()?.as_scalar()?)
    }
}

struct Other;

impl Revive for Other {
    const IDENTIFIER: &'static str = "example.Other";

    fn revive(_: &Object) -> saved_model::Result<Other> {
        Ok(Other)
    }
}

// spec: 292, 333, 334, 335, 336
#[test]
fn objects_are_revived_as_types_of_rust() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = HasPhase { functions: Functions::default() };
    model.apply(&Tensor::from(1.0f32), 0)?;
    model.apply(&Tensor::from(1.0f32), 1)?;
    save(&model, folder.path(), &SaveOptions::default())?;
    let root = loaded(folder.path())?;
    let mut revived: Revived = root.revive()?;
    assert_eq!(revived.call(1.0)?, 1.0);
    revived.phase = 1;
    assert_eq!(revived.call(1.0)?, 2.0);
    let error = root.revive::<Other>().map(drop).unwrap_err();
    let expected = "the object was saved as `example.HasPhase`, not as `example.Other`";
    assert_eq!(error.to_string(), expected);
    Ok(())
}

/// An object that proposes its own signatures.
struct Proposing(Unary);

impl Trackable for Proposing {
    fn describe(&self, object: &mut Description<'_>) {
        struct Map<'a>(&'a Unary);
        impl Trackable for Map<'_> {
            fn describe(&self, object: &mut Description<'_>) {
                object.has_type("signature_map").child("proposed", self.0);
            }
        }
        object.child("signatures", &Map(&self.0));
    }
}

// spec: 289, 290
#[test]
fn a_type_may_propose_signatures() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = || function(|x: Tensor| x.square()).with_parameters(["x"]);
    let signed = f().with_input_signature([spec(DType::F32, [])]);
    let report = save(&Proposing(signed.clone()), folder.path(), &SaveOptions::default())?;
    assert_eq!(report.signatures, ["proposed"]);
    let options = SaveOptions::default().named_signature("mine", &signed)?;
    let report = save(&Proposing(signed), folder.path(), &options)?;
    assert_eq!(report.signatures, ["mine"]);
    let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    assert_eq!(model.signatures(), ["mine"]);
    // A function that says nothing of its arguments is no signature by itself.
    let unsigned = f();
    unsigned(1.0f32.into())?;
    let report =
        save(&Checkpoint::new().with("f", &unsigned), folder.path(), &SaveOptions::default())?;
    assert!(report.signatures.is_empty());
    Ok(())
}

// spec: 267, 363
#[test]
fn there_is_no_pickling() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor, n: u64| x * n as i64).with_name("f").with_parameters(["x", "n"]);
    f(1.0f32.into(), u64::MAX)?;
    let error = save(&Checkpoint::new().with("f", &f), folder.path(), &SaveOptions::default());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("signature: n must be of a kind that files hold"), "{message}");
    let g = function(|_: Tensor| -> tracer::Result<Tensor> {
        Err(tracer::Error::host("no graph can do this"))
    });
    let g = g.with_input_signature([spec(DType::F32, [])]);
    let error = save(&Checkpoint::new().with("g", &g), folder.path(), &SaveOptions::default());
    assert_eq!(error.unwrap_err().to_string(), "no graph can do this");
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}

// spec: 316, 317, 318, 320, 325, 358, b55
#[test]
fn models_of_tensorflow_1_have_signatures_and_variables() -> Outcome {
    let model = load(&Context::new(), zoo("v1_linear_ref"), &LoadOptions::default())?;
    assert!(matches!(model, SavedModel::Session(_)) && !model.signatures().is_empty());
    let session = model.session()?;
    assert!(!session.variables()?.is_empty());
    let folder = zoo("v1_multi_tags_serve");
    let error = load(&Context::new(), &folder, &LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("tags must be given") && error.matches('[').count() >= 3, "{error}");
    let served = load(&Context::new(), &folder, &LoadOptions::tags(["serve"]))?;
    let key = served.signatures().remove(0);
    let wrong = BTreeMap::from([("nothing".to_string(), eager(1.0f32))]);
    let error = served.call_signature(&key, &wrong).unwrap_err().to_string();
    let expected = &served.signature_inputs(&key)?[0].0;
    assert!(error.contains(expected), "{error}");
    assert!(load(&Context::new(), &folder, &LoadOptions::tags(["tpu"])).is_err());
    Ok(())
}

// spec: 324
#[test]
fn exports_of_estimators_have_signatures_to_call() -> Outcome {
    let model = load(&Context::new(), zoo("est_dnn_classifier"), &LoadOptions::default())?;
    let keys = ["classification", "predict", "regression", "serving_default"];
    assert_eq!(model.signatures(), keys);
    // A serialised example: the city is Rome, 40 hours, age 33.
    let example =
        b"\n6\n\x10\n\x04city\x12\x08\n\x06\n\x04rome\n\x11\n\x05hours\x12\x08\x12\x06\n\x04\0\0 B\
                    \n\x0f\n\x03age\x12\x08\x12\x06\n\x04\0\0\x04B";
    let example = HostTensor::from_strings(Shape::new([1])?, vec![example.to_vec().into()])?;
    let inputs = BTreeMap::from([("inputs".to_string(), example.into())]);
    let outputs = model.call_signature("classification", &inputs)?;
    let names: Vec<&str> = outputs.keys().map(String::as_str).collect();
    assert_eq!(names, ["classes", "scores"]);
    let scores = outputs["scores"].host()?.as_slice::<f32>()?.to_vec();
    assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{scores:?}");
    Ok(())
}

#[test]
fn models_of_tensorflow_1_are_saved_as_they_were() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = load(&Context::new(), zoo("v1_linear_resource"), &LoadOptions::default())?;
    let session = model.session()?;
    let (name, variable) = session.variables()?.into_iter().next().ok_or("a variable")?;
    let changed = variable.read()?;
    let zeros = HostTensor::zeros(changed.dtype(), changed.shape().clone())?;
    variable.assign(zeros.clone())?;
    saved_model::save_session(&session, folder.path())?;
    let again = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    assert_eq!(again.signatures(), model.signatures());
    assert_eq!(again.session()?.variables()?[&name].read()?, zeros);
    Ok(())
}

// spec: 327
#[test]
fn slots_of_loaded_optimizers_are_restored() -> Outcome {
    let folder = tempfile::tempdir()?;
    struct Momentum(Variable, Variable);
    impl Trackable for Momentum {
        fn describe(&self, object: &mut Description<'_>) {
            if let (Ok(variable), Ok(slot)) = (self.0.owned(), self.1.owned()) {
                object.slot("momentum", variable, slot);
            }
        }
    }
    let (w, slot) = (Variable::new(1.0f32)?, Variable::new(4.0f32)?);
    let read = function({
        let slot = slot.clone();
        move |x: Tensor| &x + &slot
    });
    read(0.0f32.into())?;
    let optimizer = Momentum(w.clone(), slot);
    let object = Checkpoint::new().with("w", &w).with("opt", &optimizer).with("read", &read);
    save(&object, folder.path(), &SaveOptions::default())?;
    // TensorFlow 2.21 loads no model with slots, so they are children by name.
    let objects = meta_graph(folder.path())?.object_graph_def.ok_or("objects")?;
    assert!(objects.nodes.iter().all(|node| node.slot_variables.is_empty()));
    let root = loaded(folder.path())?;
    assert_eq!(call(&root, "read", 0.0f32)?, [4.0]);
    assert_eq!(root.get("opt._momentum_0")?.tensor()?.as_scalar::<f32>()?, 4.0);
    Ok(())
}

//! SavedModels of objects: what is saved of them, and what comes back.

use ferroflow::{
    Checkpoint, Function, Functions, HasFunctions, Tensor, Trackable, Variable, function,
    ir::DType,
    runtime::{Context, EagerTensor},
    save,
    saved_model::{
        self, LoadOptions, Object, PythonValue, SaveOptions, load, proto::saved_object::Kind,
    },
    spec, tracer,
};
use std::{collections::BTreeMap, error::Error, path::Path, sync::OnceLock};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn loaded(folder: &Path) -> Outcome<Object> {
    let model = load(&Context::new(), folder, &LoadOptions::default())?;
    Ok(model.root().ok_or("a model with objects")?)
}

fn eager(tensor: impl Into<Tensor>) -> Outcome<EagerTensor> {
    Ok(tensor.into().eager()?.clone())
}

fn call(root: &Object, path: &str, arg: impl Into<Tensor>) -> Outcome<Vec<f32>> {
    let value = root.get(path)?.function()?.call(&[eager(arg)?.into()], &BTreeMap::new())?;
    Ok(value.tensor().ok_or("a tensor")?.host()?.as_slice::<f32>()?.to_vec())
}

type Unary = Function<(Tensor,), Tensor>;

#[derive(Trackable)]
struct HasFns {
    v: Variable,
    a: Unary,
    b: Unary,
    c_dep: Unary,
    c: Unary,
    host_attribute: i32,
}

fn has_fns() -> tracer::Result<HasFns> {
    let v = Variable::new(1.0f32)?;
    let plus = |by: f32| {
        let v = v.clone();
        function(move |x: Tensor| (&x + &v)? + by).with_parameters(["x"])
    };
    let c_dep = function(|x: Tensor| x + 3.0f32).with_name("c_dep").with_parameters(["x"]);
    let c = {
        let (v, c_dep) = (v.clone(), c_dep.clone());
        let c = function(move |x: Tensor| &v.read()? + &c_dep(x)?);
        c.with_name("c").with_parameters(["x"]).with_input_signature([spec(DType::F32, [None])])
    };
    let (a, b) = (plus(1.0).with_name("a"), plus(2.0).with_name("b"));
    Ok(HasFns { v, a, b, c_dep, c, host_attribute: 12 })
}

// spec: 230, 231, 233, 235, 241, 242, 247, 248, 249
#[test]
fn functions_are_saved_with_the_object_that_has_them() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = has_fns()?;
    (model.a)(Tensor::from(2.0f32))?;
    (model.b)(Tensor::from(3.0f32))?;
    save(&model, folder.path(), &SaveOptions::default())?;
    let root = loaded(folder.path())?;
    assert_eq!(root.get("v")?.tensor()?.as_scalar::<f32>()?, 1.0);
    assert_eq!(call(&root, "a", 1.0f32)?, [3.0]);
    assert_eq!(call(&root, "b", 1.0f32)?, [4.0]);
    assert_eq!(call(&root, "c", [1.0f32, 2.0])?, [5.0, 6.0]);
    assert_eq!(call(&root, "c_dep", [1.0f32])?, [4.0]);
    assert!(call(&root, "c_dep", 1.0f32).is_err());
    assert_eq!(model.host_attribute, 12);
    assert!(root.child("host_attribute").is_none());
    Ok(())
}

// spec: 244
#[test]
fn a_function_without_traces_is_refused_or_saved_empty() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = has_fns()?;
    (model.a)(Tensor::from(2.0f32))?;
    let strict = SaveOptions::default().refuse_untraced();
    let error = save(&model, folder.path(), &strict).unwrap_err();
    assert!(matches!(&error, saved_model::Error::Untraced { function } if function == "b"));
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
    let report = save(&model, folder.path(), &SaveOptions::default())?;
    assert_eq!(report.untraced, ["b"]);
    let b = loaded(folder.path())?.get("b")?.function()?;
    assert!(b.traces().is_empty());
    let error = b.call(&[eager(1.0f32)?.into()], &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, saved_model::Error::NoTrace { .. }), "{error}");
    Ok(())
}

// spec: 245, b46
#[test]
fn variables_must_be_led_to() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = has_fns()?;
    (model.a)(Tensor::from(2.0f32))?;
    let error = save(&(&model.a,), folder.path(), &SaveOptions::default()).unwrap_err();
    let expected = "function `a` uses a variable `Variable`, which the saved object does not lead to: \
                    make it a field of the object, or of one of its fields";
    assert_eq!(error.to_string(), expected);
    Ok(())
}

// spec: 226, 227, 240, 250
#[test]
fn a_saved_model_is_a_checkpoint() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = has_fns()?;
    (model.a)(Tensor::from(2.0f32))?;
    save(&model, folder.path(), &SaveOptions::default())?;
    let v = Variable::new(2.0f32)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    checkpoint.restore(folder.path())?.assert_consumed()?;
    assert_eq!(v.read()?.to_scalar::<f32>()?, 1.0);
    // The checkpoint has the variable and nothing else: no functions.
    let graph = ferroflow::runtime::ObjectGraph::of(&checkpoint)?;
    assert_eq!(graph.nodes[0].edges().collect::<Vec<_>>(), ["v", "save_counter"]);
    Ok(())
}

#[derive(Default, Trackable, HasFunctions)]
struct Net {
    y: OnceLock<Variable>,
    functions: Functions,
}

impl Net {
    #[function]
    fn add(&self, x: &Tensor) -> tracer::Result<Tensor> {
        let y = match self.y.get() {
            Some(y) => y,
            None => {
                let y = Variable::new(2.0f32)?;
                self.y.get_or_init(|| y)
            }
        };
        x + y
    }
}

// spec: 243, 251, 252
#[test]
fn methods_are_saved_like_functions_of_the_object() -> Outcome {
    let folder = tempfile::tempdir()?;
    let net = Net::default();
    net.add(&Tensor::from(3.0f32))?;
    net.add(&Tensor::from([3.0f32]))?;
    save(&net, folder.path(), &SaveOptions::default())?;
    let root = loaded(folder.path())?;
    assert!(
        matches!(root.kind(), Some(Kind::UserObject(object)) if object.identifier == "_generic_user_object")
    );
    assert_eq!(root.get("y")?.tensor()?.as_scalar::<f32>()?, 2.0);
    assert_eq!(root.get("add")?.function()?.traces().len(), 2);
    assert_eq!(call(&root, "add", 3.0f32)?, [5.0]);
    assert_eq!(call(&root, "add", [3.0f32])?, [5.0]);
    let y = root.get("y")?;
    y.variable().ok_or("a variable")?.assign(ferroflow::ir::HostTensor::scalar(3.0f32))?;
    assert_eq!(call(&root, "add", 3.0f32)?, [6.0]);
    assert_eq!(call(&root, "add", [3.0f32])?, [6.0]);
    Ok(())
}

// spec: 253, 254
#[test]
fn values_of_rust_choose_the_trace() -> Outcome {
    let folder = tempfile::tempdir()?;
    let f = function(|x: Tensor, training: bool| -> tracer::Result<Tensor> {
        if training { Ok(x) } else { Ok(Tensor::from(2.0f32)) }
    });
    let f = f.with_parameters(["x", "training"]);
    f.call((-1.0f32, true))?;
    f.call((-1.0f32, false))?;
    save(&Checkpoint::new().with("f", &f), folder.path(), &SaveOptions::default())?;
    let f = loaded(folder.path())?.get("f")?.function()?;
    let call = |training: bool| -> Outcome<f32> {
        let kwargs = BTreeMap::from([("training".to_string(), PythonValue::Bool(training))]);
        let value = f.call(&[PythonValue::Float(10.0)], &kwargs)?;
        Ok(value.tensor().ok_or("a tensor")?.host()?.as_scalar()?)
    };
    assert_eq!((call(true)?, call(false)?), (10.0, 2.0));
    Ok(())
}

// spec: 255, 256
#[test]
fn arguments_and_results_are_nested() -> Outcome {
    let folder = tempfile::tempdir()?;
    type Nested = (Tensor, BTreeMap<String, Tensor>);
    let g = function(|x: Nested| -> tracer::Result<Vec<Tensor>> {
        Ok(vec![(&x.0 + 0.1f32)?, (&x.1["a"] + 0.2f32)?])
    });
    let arg = (Tensor::from(1.0f32), BTreeMap::from([("a".to_string(), Tensor::from(2.0f32))]));
    g(arg)?;
    save(&Checkpoint::new().with("g", &g), folder.path(), &SaveOptions::default())?;
    let g = loaded(folder.path())?.get("g")?.function()?;
    let fields = BTreeMap::from([("a".to_string(), eager(-2.0f32)?.into())]);
    let arg = PythonValue::Tuple(vec![eager(-1.0f32)?.into(), PythonValue::Dict(fields)]);
    let PythonValue::List(values) = g.call(&[arg], &BTreeMap::new())? else { panic!("a list") };
    let values: Vec<f32> = values
        .iter()
        .map(|value| Ok(value.tensor().ok_or("a tensor")?.host()?.as_scalar()?))
        .collect::<Outcome<_>>()?;
    assert_eq!(values, [-0.9, -1.8]);
    Ok(())
}

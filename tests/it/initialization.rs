//! New objects of loaded ones: variables that functions give their first values.

use ferroflow::{
    Checkpoint, Function, Functions, HasFunctions, Tensor, Trackable, Variable, function,
    ir::{DType, HostTensor, PartialShape, TensorSpec},
    ops,
    runtime::Context,
    save,
    saved_model::{self, LoadOptions, Object, PythonValue, SaveOptions, load},
    tracer,
};
use std::{
    collections::BTreeMap,
    error::Error,
    path::Path,
    sync::{Arc, OnceLock},
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn loaded(folder: &Path) -> Outcome<Object> {
    let model = load(&Context::new(), folder, &LoadOptions::default())?;
    Ok(model.root().ok_or("a model with objects")?)
}

fn argument(x: impl Into<Tensor>) -> Outcome<PythonValue> {
    Ok(x.into().eager()?.clone().into())
}

fn call(object: &Object, name: &str, x: impl Into<Tensor>) -> Outcome<Vec<f32>> {
    let value = object.get(name)?.function()?.call(&[argument(x)?], &BTreeMap::new())?;
    Ok(value.tensor().ok_or("a tensor")?.host()?.as_slice()?.to_vec())
}

fn construct(object: &Object) -> saved_model::Result<Object> {
    object.construct(&[], &BTreeMap::new())
}

fn values(object: &Object, path: &str) -> Outcome<Vec<f32>> {
    Ok(object.get(path)?.tensor()?.as_slice()?.to_vec())
}

/// Makes its variable when it is first called, of the argument of that call.
#[derive(Default, Trackable, HasFunctions)]
struct Net {
    var: OnceLock<Variable>,
    bias: OnceLock<Variable>,
    functions: Functions,
}

impl Net {
    #[function]
    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        if self.var.get().is_none() {
            let ones = ops::fill(&vec![5i64].into(), &Tensor::from(1.0f32))?;
            let made = (Variable::named("var", (x * &ones)?)?, Variable::named("bias", 0.5f32)?);
            let _ = (self.var.set(made.0), self.bias.set(made.1));
        }
        match (self.var.get(), self.bias.get()) {
            (Some(var), Some(bias)) => &(x + var)? + bias,
            _ => Ok(x.clone()),
        }
    }
}

/// Saved after its variable was changed.
fn saved(folder: &Path) -> Outcome<Net> {
    let net = Net::default();
    net.apply(&Tensor::from(1.0f32))?;
    let var = net.var.get().ok_or("a variable")?;
    assert_eq!(var.read()?.to_vec::<f32>()?, [1.0; 5]);
    var.assign(Tensor::from([1.0f32, 2.0, 3.0, 4.0, 5.0]))?;
    save(&net, folder, &SaveOptions::default())?;
    Ok(net)
}

// spec: 337, 338, 342
#[test]
fn a_new_object_gets_its_first_values_from_the_call_that_makes_them() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved(folder.path())?;
    let net = loaded(folder.path())?;
    assert_eq!(values(&net, "var")?, [1.0, 2.0, 3.0, 4.0, 5.0]);
    let another = construct(&net)?;
    let var = another.get("var")?.variable().ok_or("a variable")?.clone();
    assert_eq!((var.dtype(), var.shape()), (DType::F32, &PartialShape::vector(Some(5))));
    assert!(another.get("var")?.tensor().is_err());
    assert_eq!(call(&another, "apply", 2.0f32)?, [4.5; 5]);
    assert_eq!((values(&another, "var")?, values(&another, "bias")?), (vec![2.0; 5], vec![0.5]));
    // Once: another call leaves them as they are, and so does a value of one's own.
    assert_eq!(call(&another, "apply", 3.0f32)?, [5.5; 5]);
    assert_eq!(values(&another, "var")?, [2.0; 5]);
    let third = construct(&another)?;
    third.get("var")?.variable().ok_or("a variable")?.assign(var.read()?)?;
    assert_eq!(call(&third, "apply", 0.0f32)?, [2.5; 5]);
    // What was loaded is what it was.
    assert_eq!(values(&net, "var")?, [1.0, 2.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[test]
fn first_values_survive_that_a_loaded_object_is_saved() -> Outcome {
    let (first, second) = (tempfile::tempdir()?, tempfile::tempdir()?);
    saved(first.path())?;
    let another = construct(&loaded(first.path())?)?;
    call(&another, "apply", 7.0f32)?;
    save(&another, second.path(), &SaveOptions::default())?;
    let again = loaded(second.path())?;
    assert_eq!(values(&again, "var")?, [7.0; 5]);
    let new = construct(&again)?;
    assert_eq!(call(&new, "apply", 1.0f32)?, [2.5; 5]);
    Ok(())
}

// spec: 339
#[test]
fn a_new_object_has_new_dependencies() -> Outcome {
    let folder = tempfile::tempdir()?;
    let net = Net::default();
    net.apply(&Tensor::from(1.0f32))?;
    save(&Checkpoint::new().with("net", &net), folder.path(), &SaveOptions::default())?;
    let root = loaded(folder.path())?;
    let (one, two) = (construct(&root)?, construct(&root)?);
    call(&one, "net.apply", 4.0f32)?;
    call(&two, "net.apply", 6.0f32)?;
    let of = |object: &Object| values(object, "net.var");
    assert_eq!((of(&one)?, of(&two)?, of(&root)?), (vec![4.0; 5], vec![6.0; 5], vec![1.0; 5]));
    Ok(())
}

type Unary = Function<(Tensor,), Tensor>;

#[derive(Trackable)]
struct WithList {
    v: Variable,
    functions: Vec<Unary>,
}

// spec: 340
#[test]
fn functions_without_their_variables_cannot_be_constructed() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(2.0f32)?;
    let scale = function({
        let v = v.clone();
        move |x: Tensor| &x * &v
    });
    scale(1.0f32.into())?;
    save(&WithList { v, functions: vec![scale] }, folder.path(), &SaveOptions::default())?;
    let root = loaded(folder.path())?;
    let error = construct(&root.get("functions")?).unwrap_err();
    assert!(matches!(error, saved_model::Error::NotConstructible { .. }), "{error}");
    let new = construct(&root)?;
    // Nothing gives this variable a value but an assignment: it was made outside functions.
    assert!(call(&new, "functions.0", 3.0f32).is_err());
    new.get("v")?.variable().ok_or("a variable")?.assign(HostTensor::scalar(10.0f32))?;
    assert_eq!(call(&new, "functions.0", 3.0f32)?, [30.0]);
    assert_eq!(call(&root, "functions.0", 3.0f32)?, [6.0]);
    Ok(())
}

/// A function that makes a variable of what it is given, and the variable.
fn constructor() -> (Function<(Tensor,), ()>, Arc<OnceLock<Variable>>) {
    let made: Arc<OnceLock<Variable>> = Arc::default();
    let constructor = function({
        let made = made.clone();
        move |x: Tensor| -> tracer::Result<()> {
            if made.get().is_none() {
                let _ = made.set(Variable::new((&x + 1.0f32)?)?);
            }
            made.get().map_or(Ok(()), |made| made.read().map(drop))
        }
    });
    (constructor.with_name("__init__").with_parameters(["x"]), made)
}

// spec: 341, 343
#[test]
fn constructors_take_arguments_if_they_are_functions() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (init, made) = constructor();
    init([1.0f32, 2.0].into())?;
    let inner = Checkpoint::new().with("__init__", &init).with("made", &made);
    let outer = Checkpoint::new().with("inner", &inner);
    save(&outer, folder.path(), &SaveOptions::default())?;
    let root = loaded(folder.path())?;
    let pattern = root.get("inner")?;
    let new = pattern.construct(&[argument([5.0f32, 6.0])?], &BTreeMap::new())?;
    assert_eq!(values(&new, "made")?, [6.0, 7.0]);
    for wrong in [argument([5i64, 6])?, argument([5.0f32])?] {
        let error = pattern.construct(&[wrong], &BTreeMap::new()).unwrap_err();
        assert!(matches!(error, saved_model::Error::NoTrace { .. }), "{error}");
    }
    assert!(construct(&pattern).is_err());
    // The object itself has no such function, and calls none of what it leads to.
    let new = construct(&root)?;
    assert!(new.get("inner.made")?.tensor().is_err());
    let error = root.construct(&[argument(1.0f32)?], &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, saved_model::Error::Arguments { .. }), "{error}");
    Ok(())
}

// spec: 329
#[test]
fn loaded_optimizers_work_on_variables_of_others() -> Outcome {
    let folder = tempfile::tempdir()?;
    let any = || TensorSpec::new(DType::F32, PartialShape::Unknown);
    let update = function(
        |primary: Tensor, momentum: Tensor, gradient: Tensor| -> tracer::Result<Vec<Tensor>> {
            let momentum = (&(&momentum * 0.5f32)? + &gradient)?;
            Ok(vec![(&primary - &(&momentum * 0.5f32)?)?, momentum])
        },
    );
    let update = update.with_input_signature([any(), any(), any()]);
    save(
        &Checkpoint::new().with("update", &update),
        folder.path(),
        &SaveOptions::default().without_signatures(),
    )?;
    let update = loaded(folder.path())?.get("update")?.function()?;
    // Neither variable, nor any of these shapes, was there when the optimizer was saved.
    for (start, expected) in [(vec![1.0f32, 2.0], vec![-0.25f32, 0.75]), (vec![3.0], vec![1.75])] {
        let zeros = vec![0.0f32; start.len()];
        let (w, slot) = (Variable::new(start)?, Variable::new(zeros.clone())?);
        for _ in 0..2 {
            let gradient = argument(vec![1.0f32; zeros.len()])?;
            let args = [argument(w.read()?)?, argument(slot.read()?)?, gradient];
            let PythonValue::List(values) = update.call(&args, &BTreeMap::new())? else {
                return Err("two tensors".into());
            };
            for (variable, value) in [&w, &slot].into_iter().zip(&values) {
                variable.owned()?.assign(value.tensor().ok_or("a tensor")?.host()?.clone())?;
            }
        }
        assert_eq!(w.read()?.to_vec::<f32>()?, expected);
        assert_eq!(slot.read()?.to_vec::<f32>()?, vec![1.5; zeros.len()]);
    }
    Ok(())
}

//! Code with the semantics of TensorFlow 1: `wrap_function`.

use ferroflow::{
    ir::{DType, TensorSpec, TraceType},
    runtime::Resource,
    tracer::{
        Error, NestedValue, Result, Tensor, Variable, control_dependencies, function, literal,
        spec,
        v1::{
            self, GLOBAL_VARIABLES, WrappedFunction, get_collection, get_variable, wrap_function,
        },
    },
};
use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicUsize, Ordering},
};

const NO_ARGUMENTS: [TraceType; 0] = [];

fn float_scalar() -> TraceType {
    spec(DType::F32, []).into()
}

/// The result of a call with these arguments.
fn call(f: &WrappedFunction, args: &[NestedValue]) -> f32 {
    f.call(args).unwrap().tensor().unwrap().to_scalar().unwrap()
}

fn float(variable: &Variable) -> f32 {
    variable.read().unwrap().to_scalar().unwrap()
}

fn watch(variable: &Variable) -> Weak<dyn Resource> {
    Arc::downgrade(&variable.owned().expect("not part of a trace").resource())
}

fn add_or_subtract(x: Tensor, do_add: bool) -> Result<Variable> {
    let v = Variable::new(5.0f32)?;
    if do_add {
        v.assign_add(x)?
    } else {
        v.assign_sub(x)?
    }
    Ok(v)
}

// spec: 135-138, 144, 145
#[test]
fn variables_are_state_of_the_wrapped_function() {
    let n_traces = Arc::new(AtomicUsize::new(0));
    let wrap = |do_add: bool| {
        let count = n_traces.clone();
        let code = move |x: Tensor, do_add: bool| {
            count.fetch_add(1, Ordering::Relaxed);
            add_or_subtract(x, do_add)
        };
        wrap_function(code, [float_scalar(), literal(do_add)]).unwrap()
    };
    let f_add = wrap(true);
    assert_eq!(call(&f_add, &[1.0.into(), true.into()]), 6.0);
    assert_eq!(call(&f_add, &[1.0.into(), true.into()]), 7.0);
    let f_sub = wrap(false);
    assert_eq!(call(&f_sub, &[Tensor::from(1.0f32).into()]), 4.0);
    assert_eq!(call(&f_sub, &[Tensor::from(1.0f32).into()]), 3.0);
    assert_eq!(float(&f_add.variables()[0]), 7.0, "each wrap has variables of its own");
    assert_eq!(n_traces.load(Ordering::Relaxed), 2);

    for _ in 0..2 {
        let undecorated = add_or_subtract(1.0f32.into(), true).unwrap();
        assert_eq!(float(&undecorated), 6.0);
    }
}

// spec: 138
#[test]
fn all_arguments_are_settled_when_wrapping() {
    let error = wrap_function(add_or_subtract, [float_scalar()]).unwrap_err();
    assert_eq!(error.to_string(), "expected 2 types, one for each argument, found 1");

    let f = wrap_function(add_or_subtract, [float_scalar(), literal(true)]).unwrap();
    let refused = |args: &[NestedValue], expected: &str| {
        let text = f.call(args).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    };
    refused(&[1.0.into(), false.into()], "Can not cast False to Literal[True]");
    refused(&[Tensor::from([1.0f32]).into()], "float32[1]");
    refused(&[Tensor::from(1i32).into()], "expected to be a float32 tensor but is a int32 tensor");
}

// spec: 139
#[test]
fn specs_are_made_from_tensors() {
    let x = Tensor::from([[1.0f32, 2.0]]);
    assert_eq!(x.spec(), spec(DType::F32, [Some(1), Some(2)]));
    assert_eq!(x.spec(), TensorSpec::like(x.host().unwrap()));
    let f = wrap_function(|x: Tensor| x.square(), [x.spec()]).unwrap();
    let y = f.call(&[x.into()]).unwrap();
    assert_eq!(y.tensor().unwrap().to_vec::<f32>().unwrap(), [1.0, 4.0]);
}

fn filled(value: f32) -> impl Fn(&[usize]) -> Result<Tensor> {
    move |shape| Tensor::from_slice(shape, &vec![value; shape.iter().product()])
}

// spec: 140, 147
#[test]
fn variables_have_names_and_are_listed() {
    let f = |x: Tensor| {
        let w = get_variable("weight", &[10, 10], filled(0.1))?;
        let b = get_variable("bias", &[10], filled(0.0))?;
        let c = Variable::named("counter", 0i32)?;
        assert_eq!(get_collection(GLOBAL_VARIABLES)?.len(), 3);
        control_dependencies(&[&v1::assign_add(&c, 1)?], || x.matmul(&w)? + &b)
    };
    let f = wrap_function(f, [spec(DType::F32, [None, Some(10)])]).unwrap();
    let names: Vec<&str> = f.variables().iter().map(Variable::name).collect();
    assert_eq!(names, ["weight", "bias", "counter"]);

    let x = Tensor::from_slice(&[1, 10], &[1.0f32; 10]).unwrap();
    for n_calls in 1..3 {
        let y = f.call(&[x.clone().into()]).unwrap().tensor().unwrap().to_vec::<f32>().unwrap();
        assert!(y.len() == 10 && y.iter().all(|y| (y - 1.0).abs() < 1e-6), "{y:?}");
        assert_eq!(f.variables()[2].read().unwrap().to_scalar::<i32>().unwrap(), n_calls);
    }
}

// spec: 140, 146
#[test]
fn collections_end_with_their_trace() {
    let code = || {
        v1::add_to_collection("losses", 0.5f64)?;
        let v = Variable::new(1.0f32)?;
        let sizes = ["losses", GLOBAL_VARIABLES].map(|name| get_collection(name).unwrap().len());
        assert_eq!(sizes, [1, 1]);
        v.read()
    };
    for _ in 0..2 {
        drop(wrap_function(code, NO_ARGUMENTS).unwrap());
    }
    let eager = get_collection("losses").unwrap_err();
    let traced = function(|| get_variable("v", &[], filled(1.0))?.read()).call(()).unwrap_err();
    for error in [eager, traced] {
        assert!(matches!(error, Error::NoGraph { .. }), "{error:?}");
    }
}

// spec: 141, b43
#[test]
fn changes_that_the_result_does_not_need_do_not_run() {
    let v = Variable::new(1.0f32).unwrap();
    let inner = v.clone();
    let code = move || {
        inner.assign(2.0)?;
        inner.read()
    };
    let f = wrap_function(code, NO_ARGUMENTS).unwrap();
    let controls = f.graph().iter().map(|(_, node)| node.controls().len()).sum::<usize>();
    assert_eq!(controls, 0, "nothing orders the assignment and the read");
    assert_eq!((call(&f, &[]), float(&v)), (1.0, 1.0));
}

// spec: 125
#[test]
fn a_read_beside_an_assignment_gives_either_value() {
    let v = Variable::new(1.0f32).unwrap();
    let inner = v.clone();
    let both = move || Ok::<_, Error>((inner.read()?, v1::assign(&inner, 2.0)?));
    let f = wrap_function(both, NO_ARGUMENTS).unwrap();
    let results = f.call(&[]).unwrap();
    let results: Vec<f32> = results
        .items()
        .unwrap()
        .iter()
        .map(|item| item.tensor().unwrap().to_scalar().unwrap())
        .collect();
    assert!([1.0, 2.0].contains(&results[0]), "{results:?}");
    assert_eq!((results[1], float(&v)), (2.0, 2.0), "what is fetched runs");

    v.assign(1.0).unwrap();
    let inner = v.clone();
    let unfetched = move || {
        v1::assign(&inner, 2.0)?;
        inner.read()
    };
    let f = wrap_function(unfetched, NO_ARGUMENTS).unwrap();
    assert_eq!((call(&f, &[]), float(&v)), (1.0, 1.0));
}

// spec: 142
#[test]
fn first_values_are_functions_or_constants() {
    let of_tensor = |x: Tensor| Variable::named("v", x.square()?)?.read();
    let error = wrap_function(of_tensor, [float_scalar()]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Initializer { .. }), "{error:?}");
    assert!(text.contains("`v`") && text.contains("functions or constants"), "{text}");

    let of_function = |x: Tensor| get_variable("v", &[], filled(3.0))?.read()? * x;
    let f = wrap_function(of_function, [float_scalar()]).unwrap();
    assert_eq!(call(&f, &[2.0.into()]), 6.0);
}

// spec: 136, 143, 144
#[test]
fn created_variables_live_with_the_function_and_others_with_their_owners() {
    let other = Variable::named("other", 1.0f32).unwrap();
    let inner = Mutex::new(Some(other.clone()));
    let code = move || {
        let other = inner.lock().unwrap().take().expect("the code runs once");
        Variable::new(5.0f32)?.read()? + &other
    };
    let f = wrap_function(code, NO_ARGUMENTS).unwrap();
    assert_eq!(call(&f, &[]), 6.0);
    let (created, used) = (watch(&f.variables()[0]), watch(&other));
    assert!(created.upgrade().is_some());
    drop(other);
    assert!(used.upgrade().is_none());
    let error = f.call(&[]).unwrap_err();
    assert!(matches!(&error, Error::Dropped { name, .. } if name == "other"), "{error:?}");
    drop(f);
    assert!(created.upgrade().is_none());
}

// spec: 148
#[test]
fn a_wrapped_function_is_a_concrete_function() {
    let f = wrap_function(|x: Tensor| x.square(), [float_scalar()]).unwrap();
    let concrete: &ferroflow::tracer::ConcreteFunction = &f;
    assert_eq!(concrete.function_type().parameters.len(), 1);
    assert_eq!(concrete.n_args(), 1);

    let add = wrap_function(add_or_subtract, [float_scalar(), literal(true)]).unwrap();
    let traced = function(move |x: Tensor| Ok::<_, Error>(add.call_flat(&[x])?.remove(0)));
    let results = [(); 2].map(|()| traced.call((1.0f32,)).unwrap().to_scalar::<f32>().unwrap());
    assert_eq!(results, [6.0, 7.0], "it is called in other functions as others are");
}

// spec: b42
#[test]
fn pruning_drops_other_results_and_what_they_need() {
    let v = Variable::new(1.0f32).unwrap();
    let inner = v.clone();
    let code = move |x: Tensor, y: Tensor| Ok::<_, Error>((x.square()?, (y + &inner)?));
    let f = wrap_function(code, [float_scalar(), float_scalar()]).unwrap();
    let part = f.prune(&["args_0:0"], &["Square:0"]).unwrap();
    assert_eq!((part.n_args(), part.captures().len()), (1, 0));
    let ops: Vec<&str> = part.graph().iter().map(|(_, node)| node.op.name()).collect();
    assert_eq!(ops, ["_Arg", "Square"]);
    assert_eq!(call(&part, &[3.0.into()]), 9.0);
    assert_eq!(f.prune(&[], &["ReadVariableOp:0"]).unwrap().captures().len(), 1);
}

// spec: b44
#[test]
fn names_of_variables_are_unique_in_a_graph() {
    let names = || -> Vec<String> {
        let code = || {
            let variables = ["v", "v", "", "v", ""].map(|name| Variable::named(name, 1.0f32));
            variables.into_iter().try_fold(Tensor::from(0.0f32), |sum, v| sum + &v?)
        };
        let f = wrap_function(code, NO_ARGUMENTS).unwrap();
        f.variables().iter().map(|variable| variable.name().to_string()).collect()
    };
    for _ in 0..2 {
        assert_eq!(names(), ["v", "v_1", "Variable", "v_2", "Variable_1"]);
    }
}

// spec: b45
#[test]
fn fetching_an_operation_runs_it() {
    let v = Variable::new(0i32).unwrap();
    let inner = v.clone();
    let f = wrap_function(move || inner.assign(1), NO_ARGUMENTS).unwrap();
    let int = || v.read().unwrap().to_scalar::<i32>().unwrap();
    f.call(&[]).unwrap();
    assert_eq!(int(), 0, "nothing asks for the assignment");
    let assign = f.prune(&[], &["AssignVariableOp"]).unwrap();
    assert_eq!(int(), 0);
    assert!(matches!(assign.call(&[]).unwrap(), NestedValue::None));
    assert_eq!(int(), 1);
}

//! State that functions create, and functions of objects.

use crate::support::printed;
use ferroflow::{
    ir::{Code, DType, TraceType},
    runtime::Resource,
    tracer::{
        Error, FunctionOptions, NestedValue, PolymorphicFunction, Result, Tensor, Variable,
        function, function_with, print, spec, v1,
    },
};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The variable in a cell, made if there is none.
fn lazily(cell: &OnceLock<Variable>, make: impl FnOnce() -> Result<Variable>) -> Result<&Variable> {
    if cell.get().is_none() {
        cell.set(make()?).expect("nobody else fills it");
    }
    Ok(cell.get().expect("it was filled"))
}

fn named(name: &str) -> FunctionOptions {
    FunctionOptions { name: name.into(), ..FunctionOptions::default() }
}

/// Weak reference to a variable's state.
fn watch(variable: &Variable) -> Weak<dyn Resource> {
    Arc::downgrade(&variable.owned().expect("not part of a trace").resource())
}

fn float(tensor: Result<Tensor>) -> f32 {
    tensor.unwrap().to_scalar().unwrap()
}

fn int(variable: &Variable) -> i32 {
    variable.read().unwrap().to_scalar().unwrap()
}

fn add(x: &Tensor, v: &Variable) -> Result<Tensor> {
    x.cast(DType::F32)? + v
}

// spec: 102-105, 108
#[test]
fn a_variable_of_the_first_call_serves_all_later_ones() {
    let v = Arc::new(OnceLock::new());
    let cell = v.clone();
    let f = function(move |x: Tensor| add(&x, lazily(&cell, || Variable::new(1.0f32))?));

    assert_eq!(float(f.call((1.0f32,))), 2.0);
    assert_eq!(f.tracing_count(), 2, "one that creates, one that is used from then on");
    assert_eq!(float(f.call((2i32,))), 3.0);
    assert_eq!(f.tracing_count(), 3);
    assert_eq!(f.concrete_functions().len(), 2);

    let v: &Variable = v.get().unwrap();
    v.assign(10.0f32).unwrap();
    assert_eq!(float(f.call((1.0f32,))), 11.0, "the variable belongs to eager code as well");
}

// spec: 102, 104
#[test]
fn later_traces_create_no_variables() {
    for creates_at_first in [false, true] {
        let cell = OnceLock::new();
        let body = move |x: Tensor| {
            if creates_at_first {
                lazily(&cell, || Variable::new(1.0f32))?;
            }
            if x.dtype() == DType::I32 { Variable::named("late", 0i32)?.read() } else { Ok(x) }
        };
        let f = function_with(named("f"), body);
        f.call((1.0f32,)).unwrap();
        let error = f.call((1i32,)).unwrap_err();
        let Error::VariableCreation { function, variable, location: Some(location) } = &error
        else {
            panic!("{error}")
        };
        assert_eq!((&**function, &**variable), ("f", "late"));
        assert_eq!(location.file(), file!());
        f.call((2.0f32,)).unwrap();
        assert_eq!(f.concrete_functions().len(), 1);
    }
}

/// A place for a variable that its owner may empty.
type Slot = Arc<Mutex<Option<Variable>>>;

fn filled(slot: &Slot) -> Result<Variable> {
    let mut slot = slot.lock().unwrap();
    if slot.is_none() {
        *slot = Some(Variable::named("weight", 1.0f32)?);
    }
    Ok(slot.clone().unwrap())
}

// spec: 106, 107
#[test]
fn a_function_does_not_keep_its_variables_alive() {
    let slot = Slot::default();
    let inner = slot.clone();
    let f = function_with(named("f"), move |x: Tensor| add(&x, &filled(&inner)?));
    assert_eq!(float(f.call((1.0f32,))), 2.0);

    let left = watch(slot.lock().unwrap().as_ref().unwrap());
    slot.lock().unwrap().take();
    assert!(left.upgrade().is_none());

    let f_again = f.clone();
    let caller = function(move |x: Tensor| f_again.call((x,)));
    for error in [f.call((1.0f32,)).unwrap_err(), caller.call((1.0f32,)).unwrap_err()] {
        assert!(
            matches!(&error, Error::Dropped { function, kind: "a variable", name }
                if function == "f" && name == "weight"),
            "{error:?}"
        );
        assert_eq!(error.code(), Code::FailedPrecondition);
    }
}

// spec: 107
#[test]
fn a_function_that_owns_its_state_keeps_it_alive() {
    let slot = Slot::default();
    let inner = slot.clone();
    let f = function(move |x: Tensor| add(&x, &filled(&inner)?)).owning_state();
    assert_eq!(float(f.call((1.0f32,))), 2.0);
    let left = watch(slot.lock().unwrap().take().as_ref().unwrap());
    assert_eq!(float(f.call((1.0f32,))), 2.0);
    drop(f);
    assert!(left.upgrade().is_none());
}

// spec: 106, 121
#[test]
fn captured_variables_belong_to_others() {
    let v = Variable::new(1.0f32).unwrap();
    let inner = v.clone();
    let f = function(move |x: Tensor| add(&x, &inner));
    let concrete = f.concrete((1.0f32,)).unwrap();
    assert!(concrete.initializers().is_empty());
    let captured = concrete.variables();
    assert!(captured.len() == 1 && captured[0].is(&v));

    let left = watch(&v);
    drop((v, f, captured));
    assert!(concrete.owned_variables().is_empty());
    assert!(concrete.variables().is_empty());
    assert!(left.upgrade().is_none());
}

fn a() -> Tensor {
    [[10.0f32, 10.0], [11.0, 1.0]].into()
}

fn x() -> Tensor {
    [[1.0f32, 0.0], [0.0, 1.0]].into()
}

const RESULT: [f32; 4] = [22.0, 22.0, 23.0, 13.0];

fn matrix(tensor: Result<Tensor>) -> Vec<f32> {
    tensor.unwrap().to_vec().unwrap()
}

// spec: 111
#[test]
fn a_variable_made_on_every_call_fails_at_the_first() {
    let mut error = None;
    let log = printed(|out| {
        let out = out.clone();
        let f = function_with(named("f"), move || {
            let b = Variable::new(12.0f32)?;
            let y = (a().matmul(x())? + &b)?;
            out.line(format!("PRINT:  {y}"));
            print!("TF-PRINT: ", y)?;
            Ok::<Tensor, Error>(y)
        });
        error = f.call(()).err();
        Ok(())
    });
    let error = error.unwrap();
    assert!(matches!(error, Error::VariableCreation { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("creates variable `Variable`"), "{text}");
    assert!(text.contains("in a call that is not its first"), "{text}");
    let seen = "PRINT:  Tensor(\"add:0\", shape=(2, 2), dtype=float32)\n";
    assert_eq!(log.unwrap(), seen, "the second trace ends where it creates a variable");
}

// spec: 112, 113
#[test]
fn a_variable_kept_outside_cures_it() {
    static B: OnceLock<Variable> = OnceLock::new();
    let body = || a().matmul(x())? + lazily(&B, || Variable::new(12.0f32))?;
    let f = function(body);
    assert_eq!(matrix(f.call(())), RESULT);
    assert_eq!(matrix(f.call(())), matrix(body()));
}

// spec: 112, 114
#[test]
fn a_variable_kept_in_an_object_cures_it() {
    struct F {
        b: OnceLock<Variable>,
        call: PolymorphicFunction,
    }
    impl F {
        fn new() -> F {
            F { b: OnceLock::new(), call: PolymorphicFunction::new(named("call"), 0) }
        }

        fn body(&self) -> Result<Tensor> {
            a().matmul(x())? + lazily(&self.b, || Variable::new(12.0f32))?
        }

        fn call(&self) -> Result<Tensor> {
            self.call.call((), &|()| self.body())
        }
    }
    let (f, g) = (F::new(), F::new());
    assert_eq!(matrix(f.call()), RESULT);
    assert_eq!(matrix(f.call()), matrix(g.body()));
    assert_eq!(f.call.tracing_count(), 2);
}

// spec: 112, 115
#[test]
fn a_variable_passed_as_argument_cures_it() {
    let body = |b: Variable| a().matmul(x())? + &b;
    let f = function(body);
    let b = Variable::new(12.0f32).unwrap();
    assert_eq!(matrix(f.call((&b,))), RESULT);
    assert_eq!(matrix(f.call((&b,))), matrix(body(b)));
}

// spec: 116
#[test]
fn variables_are_passed_by_reference() {
    let g = function(|x: Variable| {
        x.assign_add(1)?;
        Ok::<NestedValue, Error>(x.into())
    });
    let a = Variable::new(0i32).unwrap();
    let results: Vec<String> = (0..3).map(|_| format!("{:?}", g.call((&a,)).unwrap())).collect();
    assert_eq!(
        results,
        [
            "Tensor(1, shape=(), dtype=int32)",
            "Tensor(2, shape=(), dtype=int32)",
            "Tensor(3, shape=(), dtype=int32)"
        ]
    );
    assert_eq!(int(&a), 3);
}

// spec: 117
#[test]
fn eager_variables_end_with_their_scope_and_those_of_graphs_do_not() {
    let made: Arc<Mutex<Vec<Weak<dyn Resource>>>> = Arc::default();
    let notes = made.clone();
    let body = move || {
        let v = Variable::new(1.0f32)?;
        notes.lock().unwrap().push(watch(&v));
        v.read()
    };
    let is_alive = |index: usize| made.lock().unwrap()[index].upgrade().is_some();
    body().unwrap();
    assert!(!is_alive(0));
    let graph = v1::wrap_function(body, [] as [TraceType; 0]).unwrap();
    assert!(is_alive(1));
    drop(graph);
    assert!(!is_alive(1));
}

fn scalar(dtype: DType) -> TraceType {
    spec(dtype, []).into()
}

// spec: 118
#[test]
fn only_wrapped_functions_have_state_of_their_own() {
    let body = |x: Tensor| {
        let v = Variable::new(1.0f32)?;
        v1::assign_add(&v, &x)
    };
    let one = || Tensor::from(1.0f32);
    let results = [body(one()), body(one())].map(float);
    assert_eq!(results, [2.0, 2.0], "eager code makes a variable each time");
    let error = function(body).call((1.0f32,)).unwrap_err();
    assert!(matches!(error, Error::VariableCreation { .. }), "{error:?}");
    let static_local = v1::wrap_function(body, [scalar(DType::F32)]).unwrap();
    let results = [(); 2].map(|()| static_local.call_flat(&[one()]).map(|mut r| r.remove(0)));
    assert_eq!(results.map(float), [2.0, 3.0]);
}

/// A model with a variable from the start.
struct ScalarModel {
    v: Variable,
    increment: PolymorphicFunction,
}

impl ScalarModel {
    fn new() -> ScalarModel {
        let increment = PolymorphicFunction::new(named("increment"), 1);
        ScalarModel { v: Variable::new(0i32).unwrap(), increment }
    }

    fn increment(&self, amount: i32) {
        let body = |(amount,): (Tensor,)| self.v.assign_add(amount);
        self.increment.call((amount.into(),), &body).unwrap();
    }
}

// spec: 130, 131, b30, b32
#[test]
fn methods_change_the_variables_of_their_object() {
    let model1 = ScalarModel::new();
    model1.increment(3);
    assert_eq!(int(&model1.v), 3);
    model1.increment(4);
    assert_eq!(int(&model1.v), 7);
    let model2 = ScalarModel::new();
    model2.increment(5);
    assert_eq!(int(&model2.v), 5);
    assert_eq!(int(&model1.v), 7);
    model2.v.assign(100).unwrap();
    model1.increment(1);
    assert_eq!((int(&model1.v), int(&model2.v)), (8, 100));
    assert_eq!([&model1, &model2].map(|model| model.increment.tracing_count()), [1, 1]);
}

// spec: 132
#[test]
fn an_object_is_an_argument_with_traces_of_its_own() {
    struct Model {
        v: Variable,
    }
    let model = |start: i32| Arc::new(Model { v: Variable::new(start).unwrap() });
    let increment = function(|model: Arc<Model>, amount: Tensor| {
        model.v.assign_add(amount)?;
        model.v.read()
    });
    let (model1, model2) = (model(0), model(10));
    let call = |model: &Arc<Model>, amount: i32| {
        increment.call((model, amount)).unwrap().to_scalar::<i32>().unwrap()
    };
    let results =
        [call(&model1, 3), call(&model1, 4), call(&model2, 5), call(&model1, 1), call(&model2, 1)];
    assert_eq!(results, [3, 7, 15, 8, 16]);
    assert_eq!(increment.tracing_count(), 2);
}

/// A model whose variable takes its shape from the first call.
#[derive(Debug)]
struct AnyShapeModel {
    v: OnceLock<Variable>,
    n_calls: OnceLock<Variable>,
    increment: PolymorphicFunction,
    count: PolymorphicFunction,
}

impl AnyShapeModel {
    fn new() -> AnyShapeModel {
        let method = |name, n_parameters| PolymorphicFunction::new(named(name), n_parameters);
        AnyShapeModel {
            v: OnceLock::new(),
            n_calls: OnceLock::new(),
            increment: method("increment", 1),
            count: method("count", 0),
        }
    }

    fn increment(&self, amount: impl Into<Tensor>) -> Vec<i32> {
        let body = |(amount,): (Tensor,)| {
            lazily(&self.v, || Variable::new(amount.zeros_like()?))?.assign_add(amount)
        };
        self.increment.call((amount.into(),), &body).unwrap();
        self.v.get().unwrap().read().unwrap().to_vec().unwrap()
    }

    fn count(&self) -> i32 {
        let body = |()| {
            let n_calls = lazily(&self.n_calls, || Variable::new(0i32))?;
            n_calls.assign_add(1)?;
            n_calls.read()
        };
        self.count.call((), &body).unwrap().to_scalar().unwrap()
    }
}

// spec: 109, 110, 133, b30
#[test]
fn each_object_creates_variables_once_for_each_method() {
    let (model1, model2) = (AnyShapeModel::new(), AnyShapeModel::new());
    assert_eq!(model1.increment(3), [3]);
    assert_eq!(model1.increment(4), [7]);
    assert_eq!(model2.increment([4, 5]), [4, 5]);
    assert_eq!([model1.count(), model1.count(), model2.count()], [1, 2, 1]);
    assert_eq!(model1.increment(1), [8]);
    assert_eq!(model1.increment.tracing_count(), 2);
}

// spec: 109
#[test]
fn first_values_are_computed_where_no_argument_is_needed() {
    let v = Arc::new(OnceLock::new());
    let cell = v.clone();
    let f = function(move |x: Tensor| {
        add(&x, lazily(&cell, || Variable::new((Tensor::from(2i32) + 3)?.cast(DType::F32)?))?)
    });
    f.concrete((1.0f32,)).unwrap();
    let v: &Variable = v.get().unwrap();
    assert_eq!(float(v.read()), 5.0);
}

// spec: 109
#[test]
fn first_values_that_do_not_exist_yet_are_told() {
    let make = || {
        let cell = OnceLock::new();
        function_with(named("f"), move |x: Tensor| {
            add(&x, lazily(&cell, || Variable::named("v", x.ones_like()?))?)
        })
    };
    let f = make();
    let inner = make();
    let outer = function(move |x: Tensor| inner.call((x,)));
    for result in [f.concrete((1.0f32,)).map(drop), outer.call((1.0f32,)).map(drop)] {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, Error::Initializer { function, variable, .. }
                if function == "f" && variable == "v"),
            "{error:?}"
        );
    }
    let cell = OnceLock::new();
    let captures = function(move |x: Tensor| {
        let inner = cell.clone();
        let of_outer = x.clone();
        function(move || lazily(&inner, || Variable::new(&of_outer))?.read()).call(())
    });
    let error = captures.call((1.0f32,)).unwrap_err();
    assert!(matches!(error, Error::Initializer { .. }), "{error:?}");
}

// spec: 134
#[test]
fn first_values_can_be_computed_again() {
    let model = AnyShapeModel::new();
    model.increment([4, 5]);
    let concrete = model.increment.concrete_functions().remove(0);
    let [initializer] = concrete.initializers() else { panic!("one variable was created") };
    assert_eq!(initializer.variable.id(), model.v.get().unwrap().owned().unwrap().handle().id());

    let context = ferroflow::runtime::Context::new();
    let value = ferroflow::runtime::CallableFunction::with_captures(
        &context,
        initializer.def.clone(),
        concrete.library().clone(),
        context.resources().clone(),
        Vec::new(),
    );
    let amount = Tensor::from([7, 8]);
    let first = value.call(&[amount.eager().unwrap().clone()]).unwrap().remove(0);
    assert_eq!(first.host().unwrap().as_slice::<i32>().unwrap(), [0, 0]);
}

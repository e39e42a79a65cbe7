//! Concrete functions: one trace each, how they are had, called and printed.

use ferroflow::{
    ir::{Code, DType, PartialShape, TensorSpec, TraceType},
    tracer::{
        ConcreteFunction, Error, Function, NestedValue, Result, Tensor, Variable, function,
        literal, spec,
    },
};

fn double() -> Function<(Tensor,), Tensor> {
    function(|a: Tensor| &a + &a).with_name("double").with_parameters(["a"])
}

fn texts(dtype: DType) -> TensorSpec {
    spec(dtype, [])
}

fn text(result: Result<NestedValue>) -> String {
    result.unwrap().tensor().unwrap().to_text().unwrap()
}

fn given(text: &str) -> NestedValue {
    Tensor::from(text).into()
}

// spec: 165-167
#[test]
fn a_trace_is_had_with_example_tensors_or_specs() {
    let double = double();
    let by_tensor = double.concrete(("a",)).unwrap();
    assert_eq!(text(by_tensor.call(&[given("a")])), "aa");
    assert_eq!(text(by_tensor.call_named(&[], &[("a", given("b"))])), "bb");

    let by_spec = double.concrete_for([texts(DType::String)]).unwrap();
    assert_eq!(text(by_spec.call(&[given("c")])), "cc");
    assert_eq!(by_spec.name(), by_tensor.name(), "both are the one trace for such tensors");

    double.call((1i32,)).unwrap();
    double.call((1.1f32,)).unwrap();
    let names: Vec<String> =
        double.concrete_functions().iter().map(|trace| trace.name().into()).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(double.tracing_count(), 3);
    assert!(names[0] != names[1] && names[1] != names[2]);
}

const DOUBLE_OF_STRINGS: &str = "\
ConcreteFunction Input Parameters:
  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.string, name=None)
Output Type:
  TensorSpec(shape=(), dtype=tf.string, name=None)
Captures:
  None";

// spec: 168, 170
#[test]
fn a_concrete_function_prints_what_it_takes_and_gives() {
    let strings = double().concrete_for([texts(DType::String)]).unwrap();
    assert_eq!(strings.to_string(), DOUBLE_OF_STRINGS);
    assert_eq!(
        strings.function_type().to_string(),
        "(a: TensorSpec(shape=(), dtype=tf.string, name=None)) -> \
         TensorSpec(shape=(), dtype=tf.string, name=None)"
    );
}

// spec: 168
#[test]
fn what_is_captured_is_printed_as_well() {
    let v = Variable::new([1.0f32, 2.0]).unwrap();
    let f = function(move || v.read()).concrete(()).unwrap();
    assert_eq!(
        f.to_string(),
        "ConcreteFunction Input Parameters:\nOutput Type:\n  \
         TensorSpec(shape=(2,), dtype=tf.float32, name=None)\nCaptures:\n  \
         0: TensorSpec(shape=(), dtype=tf.resource, name=None)"
    );
}

// spec: 169
#[test]
fn all_signatures_are_listed_in_turn() {
    let double = double();
    double.call((1i32,)).unwrap();
    double.call((1.1f32,)).unwrap();
    let block = |dtype: &str| {
        let spec = format!("TensorSpec(shape=(), dtype=tf.{dtype}, name=None)");
        format!(
            "Input Parameters:\n  a (POSITIONAL_OR_KEYWORD): {spec}\nOutput Type:\n  {spec}\n\
             Captures:\n  None"
        )
    };
    assert_eq!(double.signatures(), format!("{}\n\n{}", block("int32"), block("float32")));
}

// spec: 171
#[test]
fn tensors_of_another_type_are_refused() {
    let strings = double().concrete_for([texts(DType::String)]).unwrap();
    let error = strings.call(&[Tensor::from(1i32).into()]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(strings.name().starts_with("__inference_double_"), "{}", strings.name());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot compute {} as input #0(zero-based) was expected to be a string tensor but is a \
             int32 tensor",
            strings.name()
        )
    );
}

fn pow() -> Function<(Tensor, i64), Tensor> {
    function(|a: Tensor, b: i64| a.pow(b)).with_name("pow").with_parameters(["a", "b"])
}

fn square() -> ConcreteFunction {
    let any = TensorSpec::new(DType::F32, PartialShape::Unknown);
    pow().concrete_for([TraceType::from(any), literal(2)]).unwrap()
}

// spec: 172, 173
#[test]
fn host_arguments_keep_the_value_they_were_traced_with() {
    let square = square();
    assert_eq!(
        square.to_string(),
        "ConcreteFunction Input Parameters:\n  \
         a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)\n  \
         b (POSITIONAL_OR_KEYWORD): Literal[2]\nOutput Type:\n  \
         TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)\nCaptures:\n  None"
    );
    let ten = || NestedValue::from(Tensor::from(10.0f32));
    for result in [
        square.call(&[ten()]),
        square.call(&[ten(), 2.into()]),
        square.call_named(&[ten()], &[("b", 2.into())]),
    ] {
        assert_eq!(result.unwrap().tensor().unwrap().to_scalar::<f32>().unwrap(), 100.0);
    }

    let error = square.call_named(&[ten()], &[("b", 3.into())]).unwrap_err();
    assert!(matches!(error, Error::Binding { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "Binding inputs to function `pow` failed due to `Can not cast 3 to Literal[2]`. Received \
         args: (Tensor(10.0, shape=(), dtype=float32),) and kwargs: {'b': 3} for signature: \
         (a: TensorSpec(shape=<unknown>, dtype=tf.float32, name=None), b: Literal[2]) -> \
         TensorSpec(shape=<unknown>, dtype=tf.float32, name=None). Fallback to flat signature also \
         failed due to: pow(a) got unexpected keyword arguments: b."
    );
}

// spec: 176
#[test]
fn a_call_may_leave_host_arguments_out_as_it_was_before() {
    let results = square().call_flat(&[Tensor::from([2.0f32, 3.0])]).unwrap();
    assert_eq!(results[0].to_vec::<f32>().unwrap(), [4.0, 9.0]);
    assert_eq!(square().n_args(), 1);
}

// spec: 174, 175
#[test]
fn the_function_that_runs_takes_captures_by_hand() {
    let strings = double().concrete_for([texts(DType::String)]).unwrap();
    let atomic = strings.inference_fn();
    let result = atomic.call(&[Tensor::from("a").eager().unwrap().clone()]).unwrap().remove(0);
    assert_eq!(Tensor::from(result).to_text().unwrap(), "aa");

    let v = Variable::new(3.0f32).unwrap();
    let inner = v.clone();
    let times = function(move |x: Tensor| x * &inner).concrete((2.0f32,)).unwrap();
    let atomic = times.inference_fn();
    let call = |args: &[&Tensor]| {
        let args: Vec<_> = args.iter().map(|arg| arg.eager().unwrap().clone()).collect();
        atomic.call(&args).map(|mut results| Tensor::from(results.remove(0)))
    };
    let (x, other) = (Tensor::from(2.0f32), Variable::new(10.0f32).unwrap());
    let error = call(&[&x]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(call(&[&x, &v.handle()]).unwrap().to_scalar::<f32>().unwrap(), 6.0);
    assert_eq!(call(&[&x, &other.handle()]).unwrap().to_scalar::<f32>().unwrap(), 20.0);
}

//! The options of `#[function]`.

use ferroflow_ir::{DType, TraceType};
use ferroflow_tracer::{
    ArgSpec, Error, NestedValue, Result, RetracePolicy, Tensor, function, spec,
};

#[function(input_signature = [spec(float32, [None])])]
fn next(x: &Tensor) -> Result<Tensor> {
    x + 1.0
}

// spec: 80, 81, 89, 91
#[test]
fn a_signature_is_one_type_for_all_calls() {
    let one = next(&Tensor::from([2.0f32])).unwrap();
    assert_eq!(one.to_vec::<f32>().unwrap(), [3.0]);
    let two = next(&Tensor::from([2.0f32, 3.0])).unwrap();
    assert_eq!(two.to_vec::<f32>().unwrap(), [3.0, 4.0]);
    let matrix = next(&Tensor::from([[2.0f32]])).unwrap_err();
    assert!(matches!(matrix, Error::Binding { .. }));
    let message = matrix.to_string();
    assert!(
        message.contains(
            "Can not cast TensorSpec(shape=(1, 1), dtype=tf.float32, name=None) to \
             TensorSpec(shape=(None,), dtype=tf.float32, name=None)"
        ),
        "{message}"
    );
    assert!(message.contains("Received args: (Tensor([[2.]], shape=(1, 1)"), "{message}");
    assert!(message.contains("for signature: (x: TensorSpec(shape=(None,)"), "{message}");
    assert!(matches!(next(&Tensor::from([2i32])), Err(Error::Binding { .. })));
    assert_eq!(next::function().concrete_functions().len(), 1);
}

#[function(
    name = "mixed",
    input_signature = [
        spec(i64, [_, 5]),
        host,
        any([None]),
        list(spec(bool, []), 2),
        list(list(spec(string, []))),
    ],
    max_traces = 2 + 1,
    reduce_retracing,
    retrace_policy = error,
)]
fn of_all_kinds(
    a: &Tensor,
    n: i64,
    b: &Tensor,
    flags: &[Tensor],
    _texts: Vec<Vec<Tensor>>,
) -> Result<(Tensor, Tensor, Tensor)> {
    Ok(((a + n)?, (b + n)?, flags[0].logical_not()?))
}

#[test]
fn options_are_those_of_the_function() {
    let options = of_all_kinds::function().options();
    assert_eq!(options.name, "mixed");
    assert_eq!(options.max_traces, 3);
    assert_eq!(options.retrace_policy, RetracePolicy::Error);
    assert!(options.reduce_retracing && !options.infer_signature_from_first_call);
    let tensor = |dtype, dims: &[Option<usize>]| {
        ArgSpec::Type(TraceType::Tensor(spec(dtype, dims.iter().copied())))
    };
    let list = |item, length| ArgSpec::ListOf(Box::new(item), length);
    assert_eq!(
        options.input_signature.as_ref().unwrap(),
        &[
            tensor(DType::I64, &[None, Some(5)]),
            ArgSpec::HostValue,
            ArgSpec::AnyDType(ferroflow_ir::PartialShape::vector(None)),
            list(tensor(DType::Bool, &[]), Some(2)),
            list(list(tensor(DType::String, &[]), None), None),
        ]
    );
    let names: Vec<_> = options.parameters.iter().map(|parameter| &*parameter.name).collect();
    assert_eq!(names, ["a", "n", "b", "flags", "_texts"]);
}

// spec: 84, 85, 86, 87, 88
#[test]
fn signatures_take_lists_host_values_and_any_dtype() {
    let a = Tensor::from([[1i64, 2, 3, 4, 5]]);
    let flags = [Tensor::from(true), Tensor::from(false)];
    let call = |n: i64, b: Tensor, flags: &[Tensor]| {
        of_all_kinds(&a, n, &b, flags, vec![vec![Tensor::from("a")]])
    };
    let (y, b, flag) = call(2, Tensor::from([2.0f32]), &flags).unwrap();
    assert_eq!(y.to_vec::<i64>().unwrap(), [3, 4, 5, 6, 7]);
    assert_eq!(b.to_vec::<f32>().unwrap(), [4.0]);
    assert!(!flag.to_bool().unwrap());
    assert_eq!(of_all_kinds::tracing_count(), 1);
    call(2, Tensor::from([2.0f32, 3.0]), &flags).unwrap();
    assert_eq!(of_all_kinds::tracing_count(), 1);
    let (_, b, _) = call(2, Tensor::from([2i32, 2]), &flags).unwrap();
    assert_eq!(b.to_vec::<i32>().unwrap(), [4, 4]);
    assert_eq!(of_all_kinds::tracing_count(), 2);
    call(3, Tensor::from([2i32, 2]), &flags).unwrap();
    assert_eq!(of_all_kinds::tracing_count(), 3);
    assert!(call(2, Tensor::from([2i32]), &flags[..1]).is_err());
}

#[test]
fn every_dtype_has_its_names() {
    macro_rules! check {
        ($($rust:ident $tensorflow:ident => $dtype:ident;)*) => {$({
            #[function(input_signature = [spec($rust, []), spec($tensorflow, [])])]
            fn f(_a: &Tensor, _b: &Tensor) -> Result<()> {
                Ok(())
            }
            let scalar = ArgSpec::from(spec(DType::$dtype, []));
            let signature = f::function().options().input_signature.as_ref().unwrap();
            assert_eq!(signature, &[scalar.clone(), scalar]);
            assert_eq!(stringify!($tensorflow), DType::$dtype.name());
        })*};
    }
    check! {
        bool bool => Bool;
        i8 int8 => I8;
        i16 int16 => I16;
        i32 int32 => I32;
        i64 int64 => I64;
        u8 uint8 => U8;
        u16 uint16 => U16;
        u32 uint32 => U32;
        u64 uint64 => U64;
        f16 float16 => F16;
        bf16 bfloat16 => BF16;
        f32 float32 => F32;
        f64 float64 => F64;
        c64 complex64 => C64;
        c128 complex128 => C128;
        string string => String;
        variant variant => Variant;
    }
}

// spec: 83, 12
#[test]
fn host_values_become_the_tensors_of_the_signature() {
    #[function(input_signature = [spec(f64, [2])])]
    fn double(x: &Tensor) -> Result<Tensor> {
        x * 2.0
    }
    let list = NestedValue::list([1i64, 2]);
    let y: Tensor = double::function().call_named(&[list], &[]).unwrap();
    assert_eq!(y.to_vec::<f64>().unwrap(), [2.0, 4.0]);
}

// spec: 96, 97
#[test]
fn reduce_retracing_widens_types() {
    #[function(reduce_retracing)]
    fn same(x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
    for length in [3usize, 5, 7, 9] {
        same(&Tensor::from(vec![0i32; length])).unwrap();
    }
    assert_eq!(same::tracing_count(), 2);
    let shapes: Vec<String> = same::function()
        .concrete_functions()
        .iter()
        .map(|trace| trace.function_type().parameters[0].ty.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(
        shapes,
        [
            "TensorSpec(shape=(3,), dtype=tf.int32, name=None)",
            "TensorSpec(shape=(None,), dtype=tf.int32, name=None)"
        ]
    );
}

// spec: 35
#[test]
fn a_signature_can_be_taken_from_the_first_call() {
    #[function(infer_signature_from_first_call)]
    fn first(x: &Tensor) -> Result<Tensor> {
        x.square()
    }
    first(&Tensor::from([1.0f32, 2.0])).unwrap();
    first(&Tensor::from([1.0f32])).unwrap();
    assert!(matches!(first(&Tensor::from([1i32])), Err(Error::Binding { .. })));
}

#[test]
fn too_many_traces_are_an_error_if_that_is_asked_for() {
    #[function(retrace_policy = error)]
    fn strict(n: i64) -> Result<Tensor> {
        Ok(Tensor::from(n))
    }
    let failed = (0..10).map(strict).find_map(Result::err).unwrap();
    assert!(matches!(failed, Error::TooManyTraces { .. }));
    #[function(max_traces = 2)]
    fn few(n: i64) -> Result<Tensor> {
        Ok(Tensor::from(n))
    }
    (0..4).for_each(|n| drop(few(n).unwrap()));
    assert_eq!(few::function().concrete_functions().len(), 2);
    assert_eq!(few::tracing_count(), 4);
}

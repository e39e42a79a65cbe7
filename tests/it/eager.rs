//! Eager calls, looking at values, and what functions give and refuse.

use crate::support::{example_record, parsed_examples, printed};
use ferroflow::{
    ir::{Code, DType, HostTensor, Shape},
    kernels::{self, Buffer, DeviceBuffer, DeviceMemory},
    runtime::EagerTensor,
    tracer::{
        Error, FunctionOptions, NestedValue, PolymorphicFunction, Result, Tensor, Variable,
        context::{self, with_functions_run_eagerly},
        custom, function, function_with, ops, print,
    },
};
use std::{
    any::Any,
    collections::BTreeMap,
    fmt::Debug,
    panic,
    sync::{
        Arc, Barrier, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// The error of a result, which must be of this class.
#[track_caller]
fn raised<T: Debug>(code: Code, result: Result<T>) -> Error {
    match result {
        Err(error) if error.code() == code => error,
        Err(error) => panic!("expected {code:?} to be raised, but it was {error}"),
        Ok(value) => panic!("expected {code:?} to be raised, but no error was: {value:?}"),
    }
}

fn a() -> Tensor {
    [[10.0f32, 10.0], [11.0, 1.0]].into()
}

fn x() -> Tensor {
    [[1.0f32, 0.0], [0.0, 1.0]].into()
}

fn float(tensor: Result<Tensor>) -> f32 {
    tensor.expect("a tensor").to_scalar().expect("a number")
}

fn named(name: &str) -> FunctionOptions {
    FunctionOptions { name: name.into(), ..FunctionOptions::default() }
}

// spec: 177
#[test]
fn tensors_are_symbolic_inside_functions_and_have_values_outside() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner = seen.clone();
    let f = function_with(named("f"), move |x: Tensor| {
        let y = (&x + 1.0)?;
        let symbolic = [&x, &y].map(Tensor::is_symbolic);
        inner.lock().unwrap().push((symbolic, raised(Code::InvalidArgument, y.to_scalar::<f32>())));
        Ok::<_, Error>(y)
    });
    let y = f.call((1.0f32,)).unwrap();
    assert!(!y.is_symbolic());
    assert_eq!(y.to_scalar::<f32>().unwrap(), 2.0);
    let seen = seen.lock().unwrap();
    let [(symbolic, error)] = &seen[..] else { panic!("it is traced once") };
    assert_eq!(*symbolic, [true, true]);
    assert!(matches!(error, Error::Symbolic { function, .. } if function == "f"), "{error:?}");
}

// spec: 178
#[test]
fn eager_tensors_may_be_in_the_memory_of_any_device() {
    #[derive(Debug)]
    struct FarAway;
    impl DeviceMemory for FarAway {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn read(&self, _: DType, _: &Shape) -> kernels::Result<HostTensor> {
            let (expected, found) = ("the host".into(), "/device:FAR:0".into());
            Err(kernels::Error::WrongDevice { expected, found })
        }
    }
    let (dtype, shape) = (DType::F32, Shape::new([2]).unwrap());
    let device: Arc<str> = "/device:FAR:0".into();
    let memory = DeviceBuffer::new(dtype, shape, device, Arc::new(FarAway));
    let tensor = Tensor::from(EagerTensor::from(Buffer::Device(memory)));
    assert!(!tensor.is_symbolic());
    assert_eq!(tensor.spec().to_string(), "float32[2]");
    let error = tensor.to_vec::<f32>().unwrap_err();
    assert!(error.to_string().contains("/device:FAR:0"), "{error}");
}

// spec: 179
#[test]
fn eager_code_just_runs() {
    let b = Variable::new(12.0f32).unwrap();
    let y = (a().matmul(x()).unwrap() + &b).unwrap();
    assert_eq!(y.to_string(), "[[22. 22.]\n [23. 13.]]");
    b.assign(0.0).unwrap();
    assert_eq!(float(b.read()), 0.0, "calls run in order without being told to");
}

// spec: 181, 182, b35
#[test]
fn functions_run_eagerly_where_that_is_asked_for() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner = seen.clone();
    let f = function(move |x: Tensor| {
        let b = Variable::new(12.0f32)?;
        let y = (x + &b)?;
        inner.lock().unwrap().push(y.to_string());
        Ok::<_, Error>(y)
    });
    let results = with_functions_run_eagerly(true, || {
        assert!(context::functions_run_eagerly());
        Ok([f.call((1.0f32,)), f.call((2.0f32,))].map(float))
    });
    assert_eq!(results.unwrap(), [13.0, 14.0]);
    assert_eq!(*seen.lock().unwrap(), ["13.0", "14.0"], "a debugger sees values on every call");
    assert_eq!(f.tracing_count(), 0);
    assert!(!context::functions_run_eagerly());
    raised(Code::InvalidArgument, f.call((1.0f32,)));
}

// spec: 183, 184
#[test]
fn prints_of_rust_happen_while_tracing_and_those_of_programs_on_every_call() {
    let b = Variable::new(12.0f32).unwrap();
    let text = printed(|out| {
        let out = out.clone();
        let f = function(move || {
            let y = (a().matmul(x())? + &b)?;
            out.line(format!("PRINT:  {y}"));
            print!("TF-PRINT: ", y)?;
            Ok::<_, Error>(y)
        });
        f.call(())?;
        f.call(()).map(drop)
    });
    let symbolic = r#"PRINT:  Tensor("add:0", shape=(2, 2), dtype=float32)"#;
    let run = "TF-PRINT:  [[22 22]\n [23 13]]";
    assert_eq!(text.unwrap(), format!("{symbolic}\n{run}\n{run}\n"));
}

// spec: 187
#[test]
#[should_panic(expected = "expected InvalidArgument to be raised, but no error was")]
fn an_error_that_is_not_raised_fails_the_test() {
    raised(Code::InvalidArgument, Tensor::from(1.0f32).square());
}

// spec: 187
#[test]
fn an_error_of_the_expected_class_passes() {
    let error = raised(Code::InvalidArgument, Tensor::from([1.0f32, 2.0]).matmul(x()));
    assert!(!error.to_string().is_empty());
    let of_another = || raised(Code::NotFound, Tensor::from([1.0f32, 2.0]).matmul(x()));
    assert!(panic::catch_unwind(of_another).is_err());
}

// spec: b21
#[test]
fn results_have_the_structure_that_is_returned() {
    let unit: () = function(|_: Tensor| Ok::<(), Error>(())).call((1.0f32,)).unwrap();
    assert_eq!(unit, ());

    type Mixed = (Tensor, Vec<Tensor>, BTreeMap<String, Tensor>, Option<Tensor>, Option<Tensor>);
    let f = function(|x: Tensor| -> Result<Mixed> {
        let double = (&x + &x)?;
        let map = BTreeMap::from([("square".to_string(), x.square()?)]);
        Ok((x.clone(), vec![double.clone(), double], map, None, Some(x)))
    });
    for _ in 0..2 {
        let (same, doubles, map, none, some) = f.call((3.0f32,)).unwrap();
        assert_eq!(float(Ok(same)), 3.0);
        assert_eq!(doubles.into_iter().map(|x| float(Ok(x))).collect::<Vec<_>>(), [6.0, 6.0]);
        assert_eq!(float(Ok(map["square"].clone())), 9.0);
        assert!(none.is_none() && some.is_some());
    }
}

// spec: b22
#[test]
fn captured_tensors_may_be_returned() {
    let small = Tensor::from([1i32, 2]);
    let large = Tensor::from(vec![1.0f32; 1000]);
    let f = function(move || Ok::<_, Error>((small.clone(), large.clone())));
    for _ in 0..2 {
        let (small, large) = f.call(()).unwrap();
        assert_eq!(small.to_vec::<i32>().unwrap(), [1, 2]);
        assert_eq!(large.to_vec::<f32>().unwrap(), [1.0; 1000]);
    }
}

// spec: b23
#[test]
fn only_tensors_and_nests_of_them_are_returned() {
    let object = Arc::new(1u8);
    let values = [
        NestedValue::from("text"),
        NestedValue::list([
            NestedValue::from(Tensor::from(1.0f32)),
            NestedValue::Custom(custom::by_identity(&object)),
        ]),
    ];
    for value in values {
        let f = function_with(named("strange"), move || Ok::<_, Error>(value.clone()));
        let error = raised(Code::InvalidArgument, f.call(()));
        let text = error.to_string();
        assert!(matches!(error, Error::Output { .. }), "{error:?}");
        assert!(text.contains("`strange`") && text.contains("must return tensors"), "{text}");
    }
}

// spec: b24, b28
#[test]
fn rust_code_runs_when_a_trace_is_made() {
    let count = Arc::new(AtomicUsize::new(0));
    let inner = count.clone();
    let f = function(move |x: Tensor| {
        inner.fetch_add(1, Ordering::Relaxed);
        match x.shape().rank() {
            Some(0) => Err(Error::host("scalars are refused")),
            _ => x.square(),
        }
    });
    let traces = || count.load(Ordering::Relaxed);
    f.call(([1.0f32, 2.0],)).unwrap();
    f.call(([3.0f32, 4.0],)).unwrap();
    assert_eq!(traces(), 1);
    for failures in 1..3 {
        let error = raised(Code::Aborted, f.call((1.0f32,)));
        assert_eq!(error.to_string(), "scalars are refused");
        assert_eq!(traces(), 1 + failures, "nothing is left of a trace that failed");
        assert_eq!(f.concrete_functions().len(), 1);
    }
    assert_eq!(f.call(([1i32, 2],)).unwrap().to_vec::<i32>().unwrap(), [1, 4]);
    assert_eq!(f.concrete_functions().len(), 2);
}

// spec: b28
#[test]
fn a_panic_while_tracing_leaves_no_mark() {
    let fails = Arc::new(AtomicUsize::new(1));
    let inner = fails.clone();
    let f = function(move |x: Tensor| {
        assert_eq!(inner.load(Ordering::Relaxed), 0, "on purpose");
        x.square()
    });
    let call = || f.call((2.0f32,));
    assert!(panic::catch_unwind(panic::AssertUnwindSafe(call)).is_err());
    assert!(!context::is_tracing());
    fails.store(0, Ordering::Relaxed);
    assert_eq!(float(call()), 4.0);
    assert_eq!(f.concrete_functions().len(), 1);
}

// spec: b25
#[test]
fn changing_an_argument_inside_changes_nothing_outside() {
    let f = function(|mut list: Vec<Tensor>| {
        list.push(Tensor::from(10.0f32));
        list.remove(0);
        list.into_iter().try_fold(Tensor::from(0.0f32), |sum, item| sum + item)
    });
    let list = vec![Tensor::from(1.0f32), Tensor::from(2.0f32)];
    for _ in 0..2 {
        assert_eq!(float(f.call((&list,))), 12.0);
        assert_eq!(list.len(), 2);
    }
    assert_eq!(f.tracing_count(), 1);
}

// spec: b26
#[test]
fn symbolic_tensors_are_out_of_scope_elsewhere() {
    let leaked: Arc<OnceLock<Tensor>> = Arc::default();
    let inner = leaked.clone();
    let leaks = function_with(named("leaks"), move |x: Tensor| {
        inner.set((x + 1.0)?).unwrap();
        Ok::<(), Error>(())
    });
    leaks.call((1.0f32,)).unwrap();
    let leaked = leaked.get().unwrap();
    let of_trace = leaked.clone();
    let uses = function_with(named("uses"), move |x: Tensor| x + &of_trace);
    let cases = [
        (leaked.square(), "called eagerly"),
        (uses.call((1.0f32,)), "in the trace of function `uses`"),
        (function(|x: Tensor| Ok::<_, Error>(x)).call((leaked,)), "function"),
    ];
    for (result, used_in) in cases {
        let error = raised(Code::InvalidArgument, result);
        let Error::OutOfScope { defined_in, location: Some(location), .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((&**defined_in, location.file()), ("leaks", file!()));
        let text = error.to_string();
        assert!(text.contains("out of scope") && text.contains("add:0"), "{text}");
        assert!(text.contains(used_in), "{text}");
    }
}

// spec: b27
#[test]
fn a_failure_at_run_time_does_not_affect_later_calls() {
    let f = function(|x: Tensor| {
        ops::assert(&x.greater(0.0)?, &[&"must be positive".into(), &x])?;
        x.sqrt()
    });
    assert_eq!(float(f.call((4.0f32,))), 2.0);
    let error = raised(Code::InvalidArgument, f.call((-1.0f32,)));
    assert!(error.to_string().contains("must be positive"), "{error}");
    assert_eq!(float(f.call((9.0f32,))), 3.0);
    assert_eq!(f.tracing_count(), 1);
}

// spec: b29
#[test]
fn threads_that_call_at_once_share_a_trace() {
    const N_THREADS: usize = 100;
    let cell = OnceLock::new();
    let f = function(move |x: Tensor| {
        if cell.get().is_none() {
            let _ = cell.set(Variable::new(1.0f32)?);
        }
        x.square()? + cell.get().expect("it was filled")
    });
    let start = Barrier::new(N_THREADS);
    thread::scope(|scope| {
        let call = |index: usize| {
            let (f, start) = (&f, &start);
            scope.spawn(move || {
                start.wait();
                float(f.call((index as f32,)))
            })
        };
        let threads: Vec<_> = (0..N_THREADS).map(call).collect();
        for (index, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), (index * index + 1) as f32);
        }
    });
    assert_eq!(f.concrete_functions().len(), 1);
    assert_eq!(f.tracing_count(), 2, "one that creates the variable, one that is kept");
}

// spec: b31
#[test]
fn too_frequent_traces_give_two_warnings_at_most() {
    let warnings_after = |calls: &[i64]| {
        let f = function(|x: Tensor, n: i64| x * n);
        calls.iter().for_each(|&n| drop(f.call((1.0f32, n)).unwrap()));
        f.retrace_warnings()
    };
    assert_eq!(warnings_after(&[1, 2, 3, 4]).len(), 0);
    let warnings = warnings_after(&[1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    assert_eq!(warnings.len(), 1);
    let cause = "argument `args_1` was Literal[5], after Literal[4]";
    assert!(warnings[0].contains(cause), "{warnings:?}");
    assert_eq!(warnings_after(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).len(), 2);
}

// spec: b32
#[test]
fn traces_are_counted_for_each_function_and_object() {
    let f = function(|x: Tensor| x.square());
    let again = f.clone_untraced();
    f.call((1.0f32,)).unwrap();
    f.call((1i32,)).unwrap();
    again.call((1.0f32,)).unwrap();
    assert_eq!((f.tracing_count(), again.tracing_count()), (2, 1));

    struct Model {
        square: PolymorphicFunction,
    }
    let call = |model: &Model, x: Tensor| {
        let result: Result<Tensor> = model.square.call((x,), &|(x,): (Tensor,)| x.square());
        result.unwrap()
    };
    let models = [(); 2].map(|()| Model { square: PolymorphicFunction::new(named("square"), 1) });
    call(&models[0], 1.0f32.into());
    call(&models[0], Tensor::from(1i32).cast(DType::F64).unwrap());
    call(&models[1], 1.0f32.into());
    assert_eq!(models.map(|model| model.square.tracing_count()), [2, 1]);
}

#[test]
fn features_that_are_missing_are_told_by_name() {
    let record = |bytes: Vec<u8>| -> Tensor {
        HostTensor::from_strings(Shape::new([1]).unwrap(), vec![bytes.into()]).unwrap().into()
    };
    parsed_examples(&record(example_record())).unwrap();
    let error = raised(Code::InvalidArgument, parsed_examples(&record(Vec::new())));
    assert!(
        error.to_string().contains("the feature `labels` must be of 1 values, found 0"),
        "{error}"
    );
}

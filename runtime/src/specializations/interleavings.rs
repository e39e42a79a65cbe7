//! Models of the specializations of a function: misses at the same time, eviction, panics.

use super::*;
use crate::{
    concrete_function::CallableFunction,
    context::{Context, ContextOptions},
    interleavings::{FAILS, FAILURE, check, context, fail, switching_function, vector, vectors},
    ops::one,
};
use ferroflow_ir::{
    Attrs, DType, Graph, HostTensor, Lowering, NodeDef, OpDef, infer, op::arg_of, registry,
    sync::explore,
};
use shuttle::thread;

fn limited(limit: usize) -> Context {
    let specializations = NonZeroUsize::new(limit);
    context(ContextOptions { specializations, ..ContextOptions::default() })
}

/// The lengths of vectors that specializations are for, those besides the first sorted.
fn lengths(specializations: &Specializations) -> (Option<usize>, Vec<usize>) {
    let length = |of: &Specialization| of.types[0].shape.dims().and_then(|dims| dims[0]);
    let others = specializations.others.read();
    let all = || others.by_hash.values().flatten();
    assert_eq!(others.len, all().count());
    assert!(others.by_hash.values().all(|list| !list.is_empty()));
    let mut lengths: Vec<usize> = all().filter_map(|of| length(of)).collect();
    lengths.sort_unstable();
    (specializations.first.get().and_then(|first| length(first)), lengths)
}

/// Calls from a thread for each list of lengths and values.
fn call_at_once(function: &CallableFunction, threads: &[&[(usize, f32)]]) {
    thread::scope(|scope| {
        for &calls in threads {
            scope.spawn(move || {
                for &(len, value) in calls {
                    match function.call(&[vector(len, value).into()]) {
                        Ok(results) => check(&results, len, value),
                        Err(error) => assert!(value == FAILS && error.is_panic(), "{error}"),
                    }
                }
            });
        }
    });
}

#[test]
fn misses_at_once_leave_one_specialization() {
    explore(250, || {
        let function =
            CallableFunction::new(&limited(4), switching_function()).expect("a function");
        call_at_once(&function, &[&[(2, 1.0)], &[(2, 2.0)], &[(2, FAILS)]]);
        assert_eq!(lengths(function.specializations()), (Some(2), vec![]));
        call_at_once(&function, &[&[(3, 1.0)], &[(3, 2.0)]]);
        assert_eq!(lengths(function.specializations()), (Some(2), vec![3]));
        assert!(function.specializations().compilations() <= 5);
    });
}

#[test]
fn a_specialization_that_is_dropped_serves_the_calls_that_found_it() {
    explore(250, || {
        let function =
            CallableFunction::new(&limited(1), switching_function()).expect("a function");
        call_at_once(
            &function,
            &[&[(1, 1.0), (2, 1.0)], &[(2, 3.0), (3, 3.0)], &[(3, 5.0), (2, FAILS)]],
        );
        let (first, others) = lengths(function.specializations());
        assert!(first.is_some() && others.len() == 1, "{others:?}");
    });
}

#[test]
fn the_specialization_that_was_used_last_is_kept() {
    explore(250, || {
        let function =
            CallableFunction::new(&limited(2), switching_function()).expect("a function");
        call_at_once(&function, &[&[(1, 1.0), (2, 1.0), (3, 1.0)]]);
        // Each of these is used after the last use of another one, whatever comes first.
        call_at_once(&function, &[&[(2, 1.0), (4, 1.0)], &[(2, 2.0)]]);
        let (_, others) = lengths(function.specializations());
        assert!(others == [2, 4], "{others:?}");
    });
}

/// An op that the compiler evaluates, as its argument is constant.
static FOLDED: OpDef = OpDef {
    name: "FailsOnce",
    summary: "Returns the input.",
    inputs: &[arg_of("x", DType::F32)],
    outputs: &[arg_of("y", DType::F32)],
    infer: infer::unchanged,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

/// The function `x * folded(2)`.
fn function_with_constant() -> FunctionDef {
    let mut graph = Graph::default();
    let find = |name| registry::find(name).expect("built in");
    let two = HostTensor::scalar(2.0f32);
    let attrs = Attrs::new().with("dtype", DType::F32).with("value", two.clone());
    let scalar = || ValueType::new(DType::F32, two.shape());
    let mut add =
        |node: NodeDef, ty: ValueType| graph.add(node.with_outputs([ty])).expect("a new name");
    let of_f32 = || Attrs::new().with("T", DType::F32);
    let arg = add(NodeDef::new("x", find("_Arg"), of_f32().with("index", 0i64)), vectors(None));
    let two = add(NodeDef::new("two", find("Const"), attrs), scalar());
    let folded = NodeDef::new("folded", &FOLDED, Attrs::new()).with_inputs([two.into()]);
    let folded = add(folded, scalar());
    let result = NodeDef::new("result", find("Mul"), of_f32());
    let result = add(result.with_inputs([arg.into(), folded.into()]), vectors(None));
    FunctionDef {
        name: "folding".into(),
        graph,
        args: vec![arg],
        results: vec![("y".to_string(), result.into())],
        control_results: Vec::new(),
        attrs: Attrs::new(),
    }
}

#[test]
fn a_panic_in_the_midst_of_a_compilation_leaves_it_to_the_next_call() {
    explore(250, || {
        let (context, n_calls) = (limited(2), Arc::new(AtomicUsize::new(0)));
        let count = n_calls.clone();
        context.add_host_op(FOLDED.name, move |call| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            shuttle::thread::yield_now();
            if n == 0 { fail() } else { one(call.host(0)?.clone()) }
        });
        let function =
            CallableFunction::new(&context, function_with_constant()).expect("a function");
        let call = || match function.call(&[vector(3, 5.0).into()]) {
            Ok(results) => {
                let found = results[0].host().expect("on the host");
                assert_eq!(found.as_slice::<f32>().expect("floats"), [10.0; 3]);
                true
            }
            Err(error) => {
                assert!(error.is_panic() && error.to_string().contains(FAILURE), "{error}");
                false
            }
        };
        let outcomes = thread::scope(|scope| {
            [(); 3].map(|()| scope.spawn(call)).map(|thread| thread.join().expect("it ends"))
        });
        assert!(outcomes.iter().filter(|is_ok| **is_ok).count() >= 2, "{outcomes:?}");
        assert!(call());
        assert_eq!(lengths(function.specializations()), (Some(3), vec![]));
    });
}

#[test]
fn functions_of_a_library_are_compiled_in_one_place() {
    explore(1000, || {
        let (context, library, name) =
            (limited(1), Arc::new(FunctionLibrary::new()), Arc::from("f"));
        let functions = CompiledFunctions::default();
        let of = || functions.of(Scope::eager(&context, &library), &name);
        let found = thread::scope(|scope| {
            [(); 3].map(|()| scope.spawn(of)).map(|thread| thread.join().expect("it ends"))
        });
        assert!(found.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
        let other = Arc::new(FunctionLibrary::new());
        drop(library);
        functions.of(Scope::eager(&context, &other), &name);
        assert_eq!(functions.0.lock().len(), 1);
    });
}

//! Hostile calls: an error, whatever shapes, attributes and counts of inputs say.

use crate::support::*;
use ferroflow_ir::{
    AttrValue, Attrs, Code, DType, Effect, HostTensor, Lowering, OpDef, Outlet, Shape,
    build::GraphBuilder,
    infer,
    op::{ArgDef, ArgKind, ArgType, arg_of},
    registry,
};
use ferroflow_runtime::{
    CallCache, CallableFunction, Context, EagerTensor, Error, Result, Results, execute,
    ops::{RuntimeCall, none, one},
};

fn zeros(dtype: DType, dims: &[usize]) -> EagerTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    HostTensor::zeros(dtype, shape).unwrap().into()
}

fn ints(values: &[i32]) -> EagerTensor {
    HostTensor::vector(values).unwrap().into()
}

/// The error of a call, which is no panic.
#[track_caller]
fn refused(op: &str, attrs: Attrs, inputs: &[EagerTensor]) -> Error {
    let error = execute(&Context::new(), op, attrs, inputs).expect_err(op);
    assert!(!matches!(error, Error::Panic { .. }), "{op}: {error}");
    error
}

#[test]
fn ops_that_run_in_the_runtime_check_their_inputs() {
    let context = Context::new();
    let without_inputs = |op: &&'static OpDef| {
        matches!(op.lowering, Lowering::Runtime) && op.inputs.iter().any(is_single)
    };
    let mut n_ops = 0;
    for op in context.registry().implemented().into_iter().filter(without_inputs) {
        refused(op.name, Attrs::new(), &[]);
        n_ops += 1;
    }
    assert!(n_ops > 90, "{n_ops}");
}

fn is_single(arg: &ArgDef) -> bool {
    matches!(arg.kind, ArgKind::One(ArgType::Fixed(_)))
}

#[test]
fn counts_beyond_all_inputs_are_refused() {
    let op = registry::find("SparseCrossV2").unwrap();
    for n in [2, i64::MAX, -1] {
        let attrs = Attrs::new()
            .with("N", n)
            .with("sparse_types", vec![DType::String])
            .with("dense_types", Vec::<DType>::new());
        refused(op.name, attrs, &[zeros(DType::I64, &[0, 2])]);
    }
}

#[test]
fn lists_that_describe_the_same_inputs_have_the_same_length() {
    let serialized = || EagerTensor::from(HostTensor::scalar_string(""));
    let attrs = |num_sparse: i64, types: usize| {
        Attrs::new()
            .with("num_sparse", num_sparse)
            .with("sparse_keys", AttrValue::Strings(vec!["a".into()]))
            .with("dense_keys", AttrValue::Strings(Vec::new()))
            .with("sparse_types", vec![DType::I64; types])
            .with("Tdense", Vec::<DType>::new())
            .with("dense_shapes", AttrValue::Shapes(Vec::new()))
    };
    execute(&Context::new(), "ParseSingleExample", attrs(1, 1), &[serialized()]).unwrap();
    for (num_sparse, types) in [(2, 1), (1, 2), (0, 1), (0, 0)] {
        let error = refused("ParseSingleExample", attrs(num_sparse, types), &[serialized()]);
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
}

#[test]
fn empty_tensors_with_many_rows_are_refused() {
    let context = Context::new();
    let huge = HostTensor::vector(&[1i64 << 36, 0]).unwrap().into();
    let zero = HostTensor::scalar(0.0f32).into();
    let error = execute(&context, "Fill", Attrs::new(), &[huge, zero]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let rows = zeros(DType::F32, &[1 << 20, 0]);
    let results = execute(&context, "Qr", Attrs::new(), &[rows]).unwrap();
    assert_eq!(results[0].shape().dims(), [1 << 20, 0]);
}

#[test]
fn images_without_pixels_are_not_resized() {
    for op in ["ResizeArea", "ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"] {
        refused(op, Attrs::new(), &[zeros(DType::F32, &[1, 0, 3, 1]), ints(&[2, 2])]);
        let none = [zeros(DType::F32, &[0, 2, 3, 1]), ints(&[1 << 20, 1])];
        let results = execute(&Context::new(), op, Attrs::new(), &none).unwrap();
        assert_eq!(results[0].shape().dims(), [0, 1 << 20, 1, 1], "{op}");
    }
}

#[test]
fn texts_of_numbers_are_as_wide_as_asked() {
    let text = |width: i64, precision: i64, fill: &str| {
        let attrs = Attrs::new()
            .with("width", width)
            .with("precision", precision)
            .with("fill", AttrValue::string(fill));
        let x = HostTensor::scalar(1.5f32).into();
        let text = execute(&Context::new(), "AsString", attrs, &[x]).unwrap().remove(0);
        text.into_host().unwrap().strings().unwrap()[0].to_vec()
    };
    for width in [65_535, 65_536, 1 << 20] {
        for fill in ["", "-", "0"] {
            assert_eq!(text(width, 2, fill).len(), width as usize, "{width} {fill}");
        }
    }
    assert_eq!(text(0, 70_000, "").len(), 70_002);
    assert_eq!(text(6, 2, "0"), b"001.50");
    let attrs = Attrs::new().with("width", 1i64 << 20);
    refused("AsString", attrs, &[zeros(DType::F32, &[1 << 16])]);
}

#[test]
fn windows_beyond_counting_are_refused() {
    let list = |inner: i64| AttrValue::Ints(vec![1, inner, inner, 1]);
    let image = || zeros(DType::F32, &[1, 4, 4, 1]);
    for (sizes, strides, rates) in
        [(2, 2, i64::MAX), (2, i64::MAX, 2), (i64::MAX, 2, 2), (1 << 40, 1 << 40, 1 << 40)]
    {
        for padding in ["SAME", "VALID"] {
            let attrs = Attrs::new()
                .with("ksizes", list(sizes))
                .with("strides", list(strides))
                .with("rates", list(rates))
                .with("padding", AttrValue::string(padding));
            refused("ExtractImagePatches", attrs, &[image()]);
        }
    }
}

#[test]
fn formulas_make_no_more_calls_than_functions_have_nodes() {
    let list = |inner: i64| AttrValue::Ints(vec![1, inner, inner, inner, 1]);
    let attrs = |inner: i64| {
        Attrs::new()
            .with("ksizes", list(inner))
            .with("strides", list(1))
            .with("padding", AttrValue::string("SAME"))
    };
    let volume = || zeros(DType::F32, &[1, 2, 2, 2, 1]);
    let found = execute(&Context::new(), "ExtractVolumePatches", attrs(2), &[volume()]).unwrap();
    assert_eq!(found[0].shape().dims(), [1, 2, 2, 2, 8]);
    for inner in [200, 1 << 20, i32::MAX.into(), i64::MAX] {
        refused("ExtractVolumePatches", attrs(inner), &[volume()]);
    }
}

/// An op whose body panics, where its input is not 0.
const PANICS: OpDef = OpDef {
    name: "PanicsUnlessZero",
    summary: "Panics unless the input is 0.",
    inputs: &[arg_of("x", DType::F32)],
    outputs: &[arg_of("y", DType::F32)],
    infer: infer::unchanged,
    effect: Effect::Stateful,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

fn panics_unless_zero(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let x = call.host(0)?.clone();
    let value = x.as_scalar::<f32>()?;
    assert!(value == 0.0, "the input is {value}");
    one(x)
}

#[test]
fn a_panic_is_an_error_of_the_call_and_the_context_stays_usable() {
    let context = Context::new();
    let op = context.registry().register(PANICS).unwrap();
    context.add_host_op(op.name, panics_unless_zero);
    let scalar = |value: f32| EagerTensor::from(HostTensor::scalar(value));
    let check = |error: Error, place: &str| {
        let text = error.to_string();
        assert_eq!(error.code(), Code::Internal, "{text}");
        assert!(text.contains("the input is 7") && text.contains(place), "{text}");
    };
    let mut cache = CallCache::default();
    for _ in 0..2 {
        check(execute(&context, op.name, Attrs::new(), &[scalar(7.0)]).unwrap_err(), op.name);
        let cached = cache.execute(&context, op, &Attrs::new(), &[&scalar(7.0)]);
        check(cached.unwrap_err(), op.name);
        execute(&context, op.name, Attrs::new(), &[scalar(0.0)]).unwrap();
        cache.execute(&context, op, &Attrs::new(), &[&scalar(0.0)]).unwrap();
    }
    let function = |value: f32| {
        let call = CallableFunction::new(&context, panicking(op)).unwrap();
        for _ in 0..3 {
            let found = call.call(&[scalar(0.0)]).unwrap().remove(0).into_host().unwrap();
            assert_eq!(found.as_scalar::<f32>().unwrap(), 1.0);
            check(call.call(&[scalar(value)]).unwrap_err(), "node `middle`");
        }
    };
    function(7.0);
}

/// `exp` of the op's result.
fn panicking(op: &'static OpDef) -> ferroflow_ir::FunctionDef {
    use ferroflow_ir::{FunctionDef, Graph, NodeDef, Outlet, ValueType};
    let scalar = || ValueType::new(DType::F32, Shape::scalar());
    let find = |name: &str| registry::find(name).unwrap();
    let mut graph = Graph::default();
    let attrs = Attrs::new().with("T", DType::F32);
    let arg = NodeDef::new("x", find("_Arg"), attrs.clone().with("index", 0i64));
    let arg = graph.add(arg.with_outputs([scalar()])).unwrap();
    let middle = NodeDef::new("middle", op, Attrs::new()).with_inputs([Outlet::from(arg)]);
    let middle = graph.add(middle.with_outputs([scalar()])).unwrap();
    let exp = NodeDef::new("exp", find("Exp"), attrs).with_inputs([Outlet::from(middle)]);
    let exp = graph.add(exp.with_outputs([scalar()])).unwrap();
    FunctionDef {
        name: "f".into(),
        graph,
        args: vec![arg],
        results: vec![("y".to_string(), Outlet::from(exp))],
        control_results: Vec::new(),
        attrs: Attrs::new(),
    }
}

#[test]
fn code_that_does_what_its_shape_function_does_not_say_is_an_error() {
    let context = Context::new();
    let record = |name| OpDef { name, lowering: Lowering::Runtime, ..PANICS };
    let scalar = || HostTensor::scalar(1.0f32);
    context.register_op(record("WrongShape"), |_| one(HostTensor::vector(&[1.0f32])?)).unwrap();
    context.register_op(record("WrongDtype"), |_| one(HostTensor::scalar(1i32))).unwrap();
    context.register_op(record("NoResult"), |_| none()).unwrap();
    for name in ["WrongShape", "WrongDtype", "NoResult"] {
        let eager = execute(&context, name, Attrs::new(), &[scalar().into()]).unwrap_err();
        let op = context.registry().find(name).unwrap();
        let call = CallableFunction::new(&context, panicking(op)).unwrap();
        for error in [eager, call.call(&[scalar().into()]).unwrap_err()] {
            assert_eq!(error.code(), Code::Internal, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

/// Functions of reductions, windows and sorts come from files: they may take and return anything.
#[test]
fn functions_of_other_numbers_of_results_are_refused() {
    let xs = [("a", f32s(&[])), ("b", f32s(&[]))];
    let functions = || {
        vec![
            function("nothing", &xs, |_, _| Ok(vec![])),
            function("both", &xs, |_, args| Ok(args.to_vec())),
            function("one", &xs[..1], |_, args| Ok(args.to_vec())),
        ]
    };
    let ints = |b: &mut ferroflow_ir::build::GraphBuilder, name: &str, values: &[i32]| {
        b.constant(name, HostTensor::vector(values)?)
    };
    let callers = |callee: &'static str| {
        let args = [("x", f32s(&[4, 3])), ("initial", f32s(&[]))];
        let listed = || Attrs::new().with("T", vec![DType::F32]);
        [
            function("reduce", &args, |b, args| {
                let attrs = listed().with("dimensions_to_reduce", vec![0i64]);
                let attrs = attrs.with("reducer", func(callee));
                Ok(b.call_with("XlaVariadicReduceV2", "x_reduced", attrs, args)?.to_vec())
            }),
            function("window", &args, |b, args| {
                let attrs = Attrs::new().with("computation", func(callee));
                let (sizes, none) = (ints(b, "sizes", &[2, 2])?, ints(b, "ones", &[1, 1])?);
                let padding = HostTensor::zeros(DType::I32, Shape::new([2, 2])?)?;
                let padding = b.constant("padding", padding)?;
                let inputs = [args[0], args[1], sizes, none, none, none, padding];
                Ok(b.call_with("XlaReduceWindow", "x_windows", attrs, &inputs)?.to_vec())
            }),
            function("sort", &args, |b, args| {
                let attrs = listed().with("comparator", func(callee)).with("is_stable", true);
                let last = b.constant("last", HostTensor::scalar(1i32))?;
                Ok(b.call_with("XlaVariadicSort", "x_sorted", attrs, &[args[0], last])?.to_vec())
            }),
        ]
    };
    for callee in ["nothing", "both", "one"] {
        for caller in callers(callee) {
            let name = caller.name.clone();
            let caller = concrete(&Context::new(), caller, functions(), vec![]);
            let args = [zeros(DType::F32, &[4, 3]), zeros(DType::F32, &[])];
            let error = caller.call(&args).expect_err(&name);
            assert!(!matches!(error, Error::Panic { .. }), "{name} by {callee}: {error}");
        }
    }
}

/// Weights and positions of a dimension take more memory than its elements.
#[test]
fn images_of_billions_of_columns_are_refused() {
    let images = |dtype| zeros(dtype, &[1, 3, 4, 2]);
    let sizes = || ints(&[2, i32::MAX]);
    for op in ["ResizeNearestNeighbor", "QuantizedResizeBilinear"] {
        let quantized = op.starts_with("Quantized");
        let dtype = if quantized { DType::QU8 } else { DType::U8 };
        let range = || HostTensor::scalar(1.0f32).into();
        let mut inputs = vec![images(dtype), sizes()];
        if quantized {
            inputs.extend([range(), range()]);
        }
        let error = refused(op, Attrs::new().with("T", dtype), &inputs);
        assert_eq!(error.code(), Code::ResourceExhausted, "{op}: {error}");
    }
}

/// Weights of which no other class is ever drawn, and ids of a shard that does not exist.
#[test]
fn candidates_that_cannot_be_drawn_are_refused() {
    let sample = |weights: Vec<f32>, n: i64, reserved: i64, shard: i64| {
        let attrs = Attrs::new()
            .with("num_true", 1i64)
            .with("num_sampled", n)
            .with("unique", true)
            .with("range_max", weights.len() as i64)
            .with("num_reserved_ids", reserved)
            .with("shard", shard)
            .with("unigrams", AttrValue::Floats(weights));
        let classes = HostTensor::from_slice(Shape::new([1, 1]).unwrap(), &[0i64]).unwrap();
        execute(&Context::new(), "FixedUnigramCandidateSampler", attrs, &[classes.into()])
    };
    assert_eq!(sample(vec![1.0, 2.0, 3.0], 3, 0, 0).unwrap()[0].shape()[..], [3]);
    for (weights, n, reserved, shard) in [
        (vec![1.0, 0.0, 2.0], 3, 0, 0),
        (vec![1.0, f32::INFINITY, 2.0], 2, 0, 0),
        (vec![1.0, -1e30, 2.0], 2, 0, 0),
        (vec![1.0, 2.0, 3.0], 2, 1 << 33, 2),
        (vec![1.0, 2.0, 3.0], 2, i64::MAX, 0),
    ] {
        let error = sample(weights.clone(), n, reserved, shard).expect_err("refused");
        assert_eq!(error.code(), Code::InvalidArgument, "{weights:?}: {error}");
    }
}

#[test]
fn rows_of_millions_share_what_is_empty() {
    let context = Context::new();
    let inputs = [
        HostTensor::from_slice(Shape::new([1, 2]).unwrap(), &[7i64, 1]).unwrap().into(),
        HostTensor::vector(&[2.5f32]).unwrap().into(),
        HostTensor::vector(&[1i64 << 20, 2]).unwrap().into(),
    ];
    let attrs = Attrs::new().with("shared_name", "rows");
    let numbers = execute(&context, "AddManySparseToTensorsMap", attrs, &inputs).unwrap();
    assert_eq!(numbers[0].shape()[..], [1 << 20]);
    let attrs = Attrs::new().with("dtype", DType::F32).with("shared_name", "rows");
    let wanted = HostTensor::vector(&[6i64, 7]).unwrap().into();
    let found = execute(&context, "TakeManySparseFromTensorsMap", attrs, &[wanted]).unwrap();
    assert_eq!(found[0].host().unwrap().as_slice::<i64>().unwrap(), [1, 1]);
    assert_eq!(found[1].host().unwrap().as_slice::<f32>().unwrap(), [2.5]);
}

/// Wrong shapes are found whether they are known before a call or not.
#[test]
fn shapes_that_do_not_fit_are_refused_whenever_they_are_known() {
    let rows = |row: i64| -> Vec<EagerTensor> {
        let dims = HostTensor::vector(&[row]).unwrap().into();
        vec![ints(&[3]), dims]
    };
    let broadcast = Attrs::new().with("Tidx", DType::I64);
    refused("BroadcastTo", broadcast, &rows(-1));
    let empty = zeros(DType::I32, &[0, 1, 2, 2]);
    let scalar = || EagerTensor::scalar(0i32);
    let inputs = [zeros(DType::I32, &[0]), scalar(), scalar(), scalar(), empty];
    refused("MatrixDiagV3", Attrs::new(), &inputs);
    let splits = || EagerTensor::from(HostTensor::vector(&[0i64, 1]).unwrap());
    let attrs = Attrs::new().with("PARAMS_RAGGED_RANK", 1i64).with("OUTPUT_RAGGED_RANK", 0i64);
    refused("RaggedGather", attrs, &[splits(), splits(), EagerTensor::scalar(0i64)]);
}

#[test]
fn views_of_views_may_be_many() {
    const LEVELS: usize = 3000;
    let build = |builder: &mut GraphBuilder, args: &[Outlet]| {
        let begin = builder.constant("begin", HostTensor::vector(&[1i32])?)?;
        let size = builder.constant("size", HostTensor::vector(&[-1i32])?)?;
        let mut at = args[0];
        for level in 0..LEVELS {
            at = builder.call("Slice", &format!("view{level}"), &[at, begin, size])?[0];
        }
        builder.call("Neg", "last", &[at])
    };
    let def = function("views", &[("x", f32s(&[LEVELS + 2]))], build);
    let function = concrete(&context(), def, Vec::new(), Vec::new());
    let numbers: Vec<f32> = (0..LEVELS + 2).map(|number| number as f32).collect();
    let results = function.call(&[vector(&numbers)]).unwrap();
    assert_eq!(results[0].host().unwrap().as_slice::<f32>().unwrap(), [-3000.0, -3001.0]);
}

#[test]
fn sums_may_have_thousands_of_terms() {
    const TERMS: usize = 3000;
    let build = |builder: &mut GraphBuilder, args: &[Outlet]| {
        let mut terms = Vec::new();
        for term in 0..TERMS {
            let factor = HostTensor::scalar((term % 3) as f32);
            let factor = builder.constant(&format!("factor{term}"), factor)?;
            terms.push(builder.call("Mul", &format!("term{term}"), &[args[0], factor])?[0]);
        }
        builder.call("AddN", "sum", &terms)
    };
    let def = function("sum", &[("x", f32s(&[2]))], build);
    let function = concrete(&context(), def, Vec::new(), Vec::new());
    let results = function.call(&[vector(&[1.0, -2.0])]).unwrap();
    assert_eq!(results[0].host().unwrap().as_slice::<f32>().unwrap(), [3000.0, -6000.0]);
}

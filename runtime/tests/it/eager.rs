//! Eager calls through a cache give what eager calls give.

use crate::support::{context, vector};
use ferroflow_ir::{AttrValue, Attrs, DType, HostTensor, Limits, OpDef, Shape};
use ferroflow_runtime::{
    CallCache, Context, ContextOptions, EagerTensor, ResourceVariable, Result, Results, execute,
};

fn op(name: &str) -> &'static OpDef {
    ferroflow_ir::registry::find(name).unwrap()
}

fn numbers(dims: &[usize], dtype: DType) -> EagerTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let numbers: Vec<f32> = (0..shape.num_elements()).map(|i| (i * 37 % 23) as f32 - 7.5).collect();
    let tensor = HostTensor::from_slice(shape, &numbers).unwrap().into();
    let attrs = Attrs::new().with("DstT", dtype);
    execute(&context(), "Cast", attrs, &[tensor]).unwrap().remove(0)
}

fn ints(values: &[i32]) -> EagerTensor {
    HostTensor::vector(values).unwrap().into()
}

/// Outcome of a call, as text that tells dtypes, shapes, bits and errors apart.
fn text(outcome: Result<Results>) -> String {
    let bits = |result: &EagerTensor| {
        let host = result.host().unwrap();
        format!("{host:?} {:?}", host.bytes())
    };
    match outcome {
        Ok(results) => results.iter().map(bits).collect::<Vec<_>>().join("\n"),
        Err(error) => format!("{:?}: {error}", error.code()),
    }
}

/// The same calls three times in turn, so that each finds what an earlier one left.
fn check(name: &str, calls: &[(Attrs, Vec<EagerTensor>)]) {
    let (context, mut cache) = (context(), CallCache::default());
    for round in 0..3 {
        for (attrs, inputs) in calls {
            let refs: Vec<&EagerTensor> = inputs.iter().collect();
            let found = text(cache.execute(&context, op(name), attrs, &refs));
            let expected = text(execute(&context, name, attrs.clone(), inputs));
            assert_eq!(found, expected, "{name} in round {round}");
        }
    }
}

#[test]
fn kernels() {
    let none = Attrs::new;
    let pair =
        |a: &[usize], b: &[usize], dtype| (none(), vec![numbers(a, dtype), numbers(b, dtype)]);
    check(
        "AddV2",
        &[
            pair(&[], &[], DType::F32),
            pair(&[3], &[2, 1], DType::F32),
            pair(&[3], &[3], DType::I32),
            pair(&[2, 3], &[3], DType::BF16),
            pair(&[70], &[70], DType::F32),
        ],
    );
    let flags = Attrs::new().with("transpose_b", true);
    let square = vec![numbers(&[4, 4], DType::F32), numbers(&[4, 4], DType::F32)];
    check("MatMul", &[(none(), square.clone()), (flags, square)]);
    let strings = HostTensor::from_strings(Shape::new([2]).unwrap(), vec!["a".into(), "b".into()]);
    check("StringUpper", &[(none(), vec![strings.unwrap().into()])]);
    check("Where", &[(none(), vec![numbers(&[5], DType::Bool)])]);
}

#[test]
fn values_that_steer_shapes() {
    let x = || numbers(&[2, 3], DType::F32);
    let none = Attrs::new;
    check(
        "Sum",
        &[
            (none(), vec![x(), ints(&[0])]),
            (none(), vec![x(), ints(&[1])]),
            (none().with("keep_dims", true), vec![x(), ints(&[1])]),
        ],
    );
    let to = |shape: &[i32]| (none(), vec![x(), ints(shape)]);
    check("Reshape", &[to(&[6]), to(&[3, -1]), to(&[1, 6])]);
    check("Tile", &[to(&[1, 2]), to(&[2, 1])]);
    let joined = |axis: i32| (none(), vec![x(), x(), EagerTensor::scalar(axis)]);
    check("ConcatV2", &[joined(0), joined(1), joined(5)]);
}

#[test]
fn formulas() {
    let none = Attrs::new;
    for dtype in [DType::F32, DType::F16, DType::F64] {
        let bias = vec![numbers(&[2, 3], dtype), numbers(&[3], dtype)];
        check("BiasAdd", &[(none(), bias.clone()), (none().with("data_format", "NCHW"), bias)]);
        check("L2Loss", &[(none(), vec![numbers(&[2, 3], dtype)])]);
        check("Cross", &[(none(), vec![numbers(&[2, 3], dtype), numbers(&[2, 3], dtype)])]);
    }
    let einsum = none().with("equation", AttrValue::string("ij,jk->ki"));
    let matrices = vec![numbers(&[2, 3], DType::F32), numbers(&[3, 2], DType::F32)];
    check("Einsum", &[(einsum, matrices)]);
    let pieces = |axis: i32, n: i64| {
        let inputs = vec![EagerTensor::scalar(axis), numbers(&[4, 6], DType::F32)];
        (none().with("num_split", n), inputs)
    };
    check("Split", &[pieces(0, 2), pieces(1, 3), pieces(1, 4)]);
    let shape = |n: i32, seed: i32| (none(), vec![ints(&[n]), ints(&[seed, 1])]);
    check("StatelessRandomUniform", &[shape(3, 1), shape(3, 2), shape(4, 1)]);
}

#[test]
fn failures() {
    let none = Attrs::new;
    let by = |n: i32| (none(), vec![ints(&[6, 8]), EagerTensor::scalar(n)]);
    check("FloorDiv", &[by(2), by(0), by(4)]);
    check("AddV2", &[(none(), vec![vector(&[1.0; 2]), vector(&[1.0; 3])])]);
    check("AddV2", &[(none(), vec![vector(&[1.0])])]);
    check("AddV2", &[(none().with("T", DType::I32), vec![vector(&[1.0]), vector(&[1.0])])]);
    let rows = |row: i32| (none(), vec![numbers(&[2, 2], DType::F32), ints(&[row])]);
    check("Gather", &[rows(1), rows(2), rows(0)]);
}

#[test]
fn state() {
    let (context, mut cache) = (context(), CallCache::default());
    let variable = ResourceVariable::new("v", HostTensor::scalar(1.0f32));
    let handle: EagerTensor = variable.handle().to_tensor().into();
    let dtype = Attrs::new().with("dtype", DType::F32);
    for round in 0..4 {
        let one = EagerTensor::scalar(1.0f32);
        let add = op("AssignAddVariableOp");
        cache.execute(&context, add, &Attrs::new(), &[&handle, &one]).unwrap();
        let value = cache.execute(&context, op("ReadVariableOp"), &dtype, &[&handle]).unwrap();
        assert_eq!(value[0].host().unwrap().as_scalar::<f32>().unwrap(), round as f32 + 2.0);
    }
    let attrs = Attrs::new().with("dtype", DType::F32).with("seed", 7i64);
    let draw = |cache: &mut CallCache| {
        text(cache.execute(&context, op("RandomUniform"), &attrs, &[&ints(&[3])]))
    };
    assert_ne!(draw(&mut cache), draw(&mut cache), "every call draws anew");
}

#[test]
fn contexts_do_not_mix() {
    let narrow = Context::with_options(ContextOptions {
        limits: Limits { tensor_bytes: 64, ..Limits::default() },
        ..ContextOptions::default()
    });
    let (wide, mut cache) = (context(), CallCache::default());
    let x = numbers(&[32], DType::F32);
    for _ in 0..2 {
        let mut add = |context| cache.execute(context, op("AddV2"), &Attrs::new(), &[&x, &x]);
        assert!(add(&wide).is_ok());
        assert!(add(&narrow).is_err());
    }
}

/// The only result of an op.
fn one(name: &str, attrs: Attrs, inputs: &[EagerTensor]) -> EagerTensor {
    execute(&context(), name, attrs, inputs).unwrap().remove(0)
}

#[test]
fn quotients_of_16_bit_floats_are_rounded_before_they_are_cut_off() {
    let cast =
        |values: &[f32], dtype| one("Cast", Attrs::new().with("DstT", dtype), &[vector(values)]);
    for (dtype, expected) in [(DType::BF16, 3.0), (DType::F32, 2.0)] {
        let operands = [cast(&[-1.7890625], dtype), cast(&[-0.59765625], dtype)];
        for op in ["TruncateDiv", "FloorDiv"] {
            let quotient = one(op, Attrs::new(), &operands);
            let wide = one("Cast", Attrs::new().with("DstT", DType::F32), &[quotient]);
            assert_eq!(wide.host().unwrap().as_slice::<f32>().unwrap(), [expected], "{op} {dtype}");
        }
    }
}

#[test]
fn gradients_of_roots_overflow_where_products_do() {
    let found = one("RsqrtGrad", Attrs::new(), &[vector(&[1.25, 0.5]), vector(&[3e38, 8.0])]);
    assert_eq!(found.host().unwrap().as_slice::<f32>().unwrap(), [f32::NEG_INFINITY, -0.5]);
}

#[test]
fn grey_of_colours_is_that_of_libpng() {
    // Recorded from TensorFlow 2.21: `decode_png(encode_png(pixels), channels=1)`.
    let pixels = [[181u8, 161, 97], [145, 162, 75], [55, 100, 234]].concat();
    let image = HostTensor::from_slice(Shape::new([1, 3, 3]).unwrap(), &pixels).unwrap();
    let file = one("EncodePng", Attrs::new(), &[image.into()]);
    let grey = one("DecodePng", Attrs::new().with("channels", 1i64), &[file]);
    assert_eq!(grey.host().unwrap().as_slice::<u8>().unwrap(), [159, 146, 101]);
}

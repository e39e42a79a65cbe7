//! Regions: they compute what the nodes they stand for do, and there are fewer kernels.

use crate::support::*;
use ferroflow_ir::{
    AttrValue, Attrs, HostTensor, Outlet, PartialShape, Result, Shape, ValueType,
    build::GraphBuilder,
};
use ferroflow_runtime::{CallableFunction, CompileOptions, Context, ContextOptions, EagerTensor};
use std::num::NonZeroUsize;

/// Numbers of no pattern, between -2 and 2.
fn numbers(dims: &[usize], seed: usize) -> EagerTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let n = shape.num_elements();
    let values: Vec<f32> =
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 252.0 - 2.0).collect();
    HostTensor::from_slice(shape, &values).unwrap().into()
}

/// A graph under construction.
struct Build<'a> {
    b: &'a mut GraphBuilder,
    /// All values that nodes computed.
    all: Vec<Outlet>,
}

impl Build<'_> {
    fn op(&mut self, op: &str, inputs: &[Outlet]) -> Result<Outlet> {
        self.with(op, Attrs::new(), inputs)
    }

    fn with(&mut self, op: &str, attrs: Attrs, inputs: &[Outlet]) -> Result<Outlet> {
        let name = format!("{op}_{}", self.all.len());
        let value = self.b.call_with(op, &name, attrs, inputs)?[0];
        self.all.push(value);
        Ok(value)
    }

    fn number(&mut self, value: f32) -> Result<Outlet> {
        let name = format!("number_{}_{value}", self.all.len());
        match self.b.constant(&name, HostTensor::scalar(value)) {
            Ok(value) => Ok(value),
            Err(_) => self.b.constant(&format!("{name}_again"), HostTensor::scalar(value)),
        }
    }

    /// A reduction of rows that keeps the dimension.
    fn along(&mut self, op: &str, x: Outlet, axes: &[i32]) -> Result<Outlet> {
        let name = format!("axes_{}", self.all.len());
        let axes = self.b.constant(&name, HostTensor::vector(axes)?)?;
        self.with(op, Attrs::new().with("keep_dims", true), &[x, axes])
    }

    fn rows(&mut self, op: &str, x: Outlet) -> Result<Outlet> {
        self.along(op, x, &[-1])
    }
}

type Body<'a> = dyn Fn(&mut Build<'_>, &[Outlet]) -> Result<Vec<Outlet>> + 'a;

/// The function of a body; with `all`, every value is a result, so that nothing can be fused.
fn compiled(
    context: &Context,
    inputs: &[EagerTensor],
    all: bool,
    body: &Body<'_>,
) -> CallableFunction {
    let names: Vec<String> = (0..inputs.len()).map(|index| format!("x{index}")).collect();
    let args: Vec<(&str, ValueType)> = names
        .iter()
        .zip(inputs)
        .map(|(name, x)| (&**name, ValueType::new(x.dtype(), x.shape())))
        .collect();
    let def = function("f", &args, |b, args| {
        let mut build = Build { b, all: Vec::new() };
        let mut results = body(&mut build, args)?;
        if all {
            results.extend(build.all);
        }
        Ok(results)
    });
    CallableFunction::new(context, def).unwrap()
}

fn threads(count: usize) -> Context {
    Context::with_options(ContextOptions {
        threads: NonZeroUsize::new(count),
        ..ContextOptions::default()
    })
}

/// The nodes of the optimized form that compute something.
fn nodes(f: &CallableFunction, inputs: &[EagerTensor]) -> Vec<String> {
    let types: Vec<ValueType> =
        inputs.iter().map(|x| ValueType::new(x.dtype(), PartialShape::from(x.shape()))).collect();
    let text = f.optimized_text(&types).unwrap();
    let op = |line: &str| Some(line.split_once(" = ")?.1.split_once('(')?.0.to_string());
    text.lines().filter_map(op).filter(|op| op != "Const").collect()
}

/// Checks that a body computes the same with and without regions, and gives what nodes it became.
fn check(name: &str, inputs: &[EagerTensor], body: &Body<'_>) -> Vec<String> {
    let context = threads(1);
    let (fused, plain) =
        (compiled(&context, inputs, false, body), compiled(&context, inputs, true, body));
    let (found, expected) = (fused.call(inputs).unwrap(), plain.call(inputs).unwrap());
    let several = compiled(&threads(3), inputs, false, body).call(inputs).unwrap();
    for (index, result) in found.iter().enumerate() {
        assert_eq!(result.shape(), expected[index].shape(), "{name}");
        let bits = |x: &EagerTensor| x.host().unwrap().bytes().to_vec();
        assert_eq!(bits(result), bits(&several[index]), "{name}: the same bits by 3 threads");
        let (found, expected) = (values(&found, index), values(&expected, index));
        for (at, (a, b)) in found.iter().zip(&expected).enumerate() {
            let near = (a - b).abs() <= 2e-5 * (1.0 + b.abs());
            assert!(near || a.is_nan() && b.is_nan() || a == b, "{name}: {a} for {b} at {at}");
        }
    }
    nodes(&fused, inputs)
}

fn layer_norm(b: &mut Build<'_>, x: Outlet, axes: &[i32]) -> Result<Outlet> {
    let mean = b.along("Mean", x, axes)?;
    let squares = b.op("SquaredDifference", &[x, mean])?;
    let variance = b.along("Mean", squares, axes)?;
    let epsilon = b.number(1e-5)?;
    let shifted = b.op("AddV2", &[variance, epsilon])?;
    let (scale, centred) = (b.op("Rsqrt", &[shifted])?, b.op("Sub", &[x, mean])?);
    b.op("Mul", &[centred, scale])
}

/// Formulas of normalisations as graphs have them, by name.
fn formula(name: &str, b: &mut Build<'_>, args: &[Outlet]) -> Result<Outlet> {
    let x = args[0];
    Ok(match name {
        "softmax" => {
            let largest = b.rows("Max", x)?;
            let shifted = b.op("Sub", &[x, largest])?;
            let exponential = b.op("Exp", &[shifted])?;
            let sum = b.rows("Sum", exponential)?;
            b.op("RealDiv", &[exponential, sum])?
        }
        "scaled softmax" => {
            let scale = b.number(0.125)?;
            let scaled = b.op("Mul", &[x, scale])?;
            let masked = b.op("AddV2", &[scaled, args[1]])?;
            b.op("Softmax", &[masked])?
        }
        "log softmax" => {
            let shifted = b.op("AddV2", &[x, args[1]])?;
            let logarithm = b.op("LogSoftmax", &[shifted])?;
            b.op("Neg", &[logarithm])?
        }
        "layer norm" => {
            let normal = layer_norm(b, x, &[-1])?;
            let scaled = b.op("Mul", &[normal, args[1]])?;
            b.op("AddV2", &[scaled, args[1]])?
        }
        "residual layer norm" => {
            let sum = b.op("AddV2", &[x, args[2]])?;
            let normal = layer_norm(b, sum, &[-1])?;
            b.op("Mul", &[normal, args[1]])?
        }
        "rms norm" => {
            let squares = b.op("Square", &[x])?;
            let mean = b.rows("Mean", squares)?;
            let root = b.op("Rsqrt", &[mean])?;
            let normal = b.op("Mul", &[x, root])?;
            b.op("Mul", &[normal, args[1]])?
        }
        "norm of rows" => {
            let squares = b.op("Square", &[x])?;
            let sum = b.rows("Sum", squares)?;
            let least = b.number(1e-12)?;
            let bounded = b.op("Maximum", &[sum, least])?;
            let root = b.op("Rsqrt", &[bounded])?;
            b.op("Mul", &[x, root])?
        }
        "mean of squares" => {
            let squares = b.op("Square", &[x])?;
            let mean = b.rows("Mean", squares)?;
            b.op("Sqrt", &[mean])?
        }
        other => panic!("{other}"),
    })
}

const FORMULAS: [&str; 8] = [
    "softmax",
    "scaled softmax",
    "log softmax",
    "layer norm",
    "residual layer norm",
    "rms norm",
    "norm of rows",
    "mean of squares",
];

#[test]
fn normalisations_of_rows_are_one_kernel() {
    for name in FORMULAS {
        for dims in
            [&[30, 48][..], &[16, 64], &[2, 6, 100], &[70, 129], &[2, 1, 3, 1000], &[1, 5000]]
        {
            let cols = dims[dims.len() - 1];
            let inputs = [numbers(dims, 1), numbers(&[cols], 2), numbers(dims, 3)];
            let found = check(name, &inputs, &|b, args| Ok(vec![formula(name, b, args)?]));
            assert_eq!(found, ["_Region"], "{name} of {dims:?}");
        }
    }
}

#[test]
fn what_is_too_small_or_empty_is_left_as_it_is() {
    for name in FORMULAS {
        for dims in [&[3, 1][..], &[4, 7], &[0, 64], &[1, 1], &[3, 64]] {
            let cols = dims[dims.len() - 1];
            let inputs = [numbers(dims, 1), numbers(&[cols], 2), numbers(dims, 3)];
            let found = check(name, &inputs, &|b, args| Ok(vec![formula(name, b, args)?]));
            assert!(!found.contains(&"_Region".to_string()), "{name} of {dims:?}: {found:?}");
        }
    }
}

#[test]
fn groups_of_contiguous_elements_are_rows() {
    let inputs = [numbers(&[8, 3, 4, 20], 1), numbers(&[3, 1, 1], 2)];
    let found = check("group norm", &inputs, &|b, args| {
        let normal = layer_norm(b, args[0], &[2, 3])?;
        Ok(vec![b.op("Mul", &[normal, args[1]])?])
    });
    assert_eq!(found, ["_Region"]);
}

#[test]
fn values_that_others_read_stay() {
    let inputs = [numbers(&[20, 64], 1), numbers(&[64], 2)];
    let found = check("a mean that is a result", &inputs, &|b, args| {
        let mean = b.rows("Mean", args[0])?;
        let centred = b.op("Sub", &[args[0], mean])?;
        let squares = b.op("Square", &[centred])?;
        Ok(vec![b.rows("Sum", squares)?, mean])
    });
    assert_eq!(found, ["Mean", "_Region"]);
    let found = check("exponentials that are a result", &inputs, &|b, args| {
        let exponential = b.op("Exp", &[args[0]])?;
        let sum = b.rows("Sum", exponential)?;
        Ok(vec![b.op("RealDiv", &[exponential, sum])?, exponential])
    });
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn divisors_beyond_all_reciprocals_divide() {
    let mut rows = vec![1.0f32; 30 * 64];
    rows[..64].fill(3e38 / 64.0);
    rows[64..128].fill(0.0);
    let x = HostTensor::from_slice(Shape::new([30, 64]).unwrap(), &rows).unwrap();
    let inputs = [x.into()];
    let found = check("shares of a sum", &inputs, &|b, args| {
        let sum = b.rows("Sum", args[0])?;
        Ok(vec![b.op("RealDiv", &[args[0], sum])?])
    });
    assert_eq!(found, ["_Region"]);
}

#[test]
fn reductions_of_columns_evaluate_what_is_before_them() {
    for dims in [&[100, 16][..], &[3, 7, 5, 24], &[9, 700], &[5000, 20], &[2, 4, 4, 64]] {
        let (cols, rank) = (dims[dims.len() - 1], dims.len());
        let inputs = [numbers(dims, 1), numbers(&[cols], 2), numbers(dims, 3)];
        for op in ["Mean", "Sum"] {
            let found = check(&format!("{op} of {dims:?}"), &inputs, &|b, args| {
                let centred = b.op("SquaredDifference", &[args[0], args[1]])?;
                let product = b.op("Mul", &[centred, args[2]])?;
                let axes: Vec<i32> = (0..rank as i32 - 1).collect();
                Ok(vec![b.along(op, product, &axes)?])
            });
            assert_eq!(found, ["_Region"], "{op} of {dims:?}");
        }
    }
}

/// A matmul or a convolution with what follows it, by name.
struct Anchored {
    op: &'static str,
    attrs: Attrs,
    a: Vec<usize>,
    b: Vec<usize>,
    out: Vec<usize>,
}

fn anchored() -> Vec<Anchored> {
    let matmul = |m: usize, k: usize, n: usize| Anchored {
        op: "MatMul",
        attrs: Attrs::new(),
        a: vec![m, k],
        b: vec![k, n],
        out: vec![m, n],
    };
    let conv = |op: &'static str, a: [usize; 4], b: [usize; 4], stride: usize| {
        let sides = [a[1].div_ceil(stride), a[2].div_ceil(stride)];
        let filters = if op == "Conv2D" { b[3] } else { b[2] * b[3] };
        let strides = vec![1, stride as i64, stride as i64, 1];
        let attrs =
            Attrs::new().with("strides", strides).with("padding", AttrValue::string("SAME"));
        let out = vec![a[0], sides[0], sides[1], filters];
        Anchored { op, attrs, a: a.to_vec(), b: b.to_vec(), out }
    };
    vec![
        matmul(128, 30, 128),
        matmul(1, 40, 5000),
        matmul(6, 20, 1000),
        matmul(300, 12, 130),
        matmul(70, 600, 160),
        matmul(500, 20, 33),
        matmul(40, 10, 700),
        Anchored {
            op: "BatchMatMulV2",
            attrs: Attrs::new().with("adj_y", true),
            a: vec![3, 40, 20],
            b: vec![3, 150, 20],
            out: vec![3, 40, 150],
        },
        Anchored {
            op: "BatchMatMulV2",
            attrs: Attrs::new(),
            a: vec![2, 5, 40, 20],
            b: vec![20, 130],
            out: vec![2, 5, 40, 130],
        },
        conv("Conv2D", [1, 30, 30, 5], [3, 3, 5, 132], 1),
        conv("Conv2D", [2, 9, 11, 16], [3, 3, 16, 140], 2),
        conv("Conv2D", [1, 20, 20, 24], [1, 1, 24, 192], 1),
        conv("Conv2D", [1, 7, 7, 40], [1, 1, 40, 130], 1),
        conv("Conv2D", [2, 20, 20, 8], [3, 3, 4, 136], 1),
        conv("DepthwiseConv2dNative", [1, 23, 20, 144], [3, 3, 144, 1], 1),
        conv("DepthwiseConv2dNative", [2, 23, 20, 70], [3, 3, 70, 2], 2),
    ]
}

/// Epilogue of an anchor: `args` are those of the anchor, a bias, factors, and a residual.
fn epilogue(name: &str, b: &mut Build<'_>, y: Outlet, args: &[Outlet]) -> Result<Outlet> {
    let (bias, factors, residual) = (args[2], args[3], args[4]);
    Ok(match name {
        "bias and relu" => {
            let sum = b.op("AddV2", &[y, bias])?;
            b.op("Relu", &[sum])?
        }
        "batch norm and relu6" => {
            let scaled = b.op("Mul", &[y, factors])?;
            let sum = b.op("AddV2", &[scaled, bias])?;
            b.op("Relu6", &[sum])?
        }
        "residual" => {
            let scaled = b.op("Mul", &[y, factors])?;
            let sum = b.op("AddV2", &[scaled, residual])?;
            b.op("Relu", &[sum])?
        }
        "residual twice" => {
            let sum = b.op("AddV2", &[y, residual])?;
            let gate = b.op("Sigmoid", &[residual])?;
            b.op("Mul", &[sum, gate])?
        }
        "the anchor twice" => {
            let gate = b.op("Sigmoid", &[y])?;
            b.op("Mul", &[y, gate])?
        }
        "a number" => {
            let number = b.number(0.125)?;
            let scaled = b.op("Mul", &[y, number])?;
            b.op("Tanh", &[scaled])?
        }
        "numbers of rows" => b.op("Sub", &[y, args[5]])?,
        other => panic!("{other}"),
    })
}

const EPILOGUES: [&str; 7] = [
    "bias and relu",
    "batch norm and relu6",
    "residual",
    "residual twice",
    "the anchor twice",
    "a number",
    "numbers of rows",
];

fn inputs_of(case: &Anchored) -> Vec<EagerTensor> {
    let n = case.out[case.out.len() - 1];
    let mut rows = case.out.clone();
    rows[case.out.len() - 1] = 1;
    vec![
        numbers(&case.a, 1),
        numbers(&case.b, 2),
        numbers(&[n], 3),
        numbers(&[n], 4),
        numbers(&case.out, 5),
        numbers(&rows, 6),
    ]
}

#[test]
fn what_follows_an_anchor_is_part_of_its_kernel() {
    for case in anchored() {
        let inputs = inputs_of(&case);
        for name in EPILOGUES {
            let label = format!("{} of {:?}, {name}", case.op, case.out);
            let found = check(&label, &inputs, &|b, args| {
                let y = b.with(case.op, case.attrs.clone(), &args[..2])?;
                Ok(vec![epilogue(name, b, y, args)?])
            });
            // Narrow results are not worth an epilogue that takes rows one by one.
            let pays = case.out[case.out.len() - 1] >= 128 || name != "numbers of rows";
            assert_eq!(found == ["_Region"], pays, "{label}: {found:?}");
        }
    }
}

#[test]
fn anchors_that_are_added_have_an_epilogue_each() {
    for case in anchored() {
        let inputs = inputs_of(&case);
        let label = format!("two of {} of {:?}", case.op, case.out);
        let found = check(&label, &inputs, &|b, args| {
            let halved = b.op("Mul", &[args[1], args[1]])?;
            let first = b.with(case.op, case.attrs.clone(), &[args[0], halved])?;
            let second = b.with(case.op, case.attrs.clone(), &args[..2])?;
            let scaled = b.op("Mul", &[first, args[2]])?;
            let shifted = b.op("AddV2", &[scaled, args[3]])?;
            let other = b.op("Mul", &[second, args[3]])?;
            let sum = b.op("AddV2", &[shifted, other])?;
            Ok(vec![b.op("Relu", &[sum])?])
        });
        assert_eq!(found.iter().filter(|op| *op == "_Region").count(), 2, "{label}: {found:?}");
    }
}

#[test]
fn convolutions_are_computed_by_strips() {
    let inputs = [
        numbers(&[1, 64, 64, 3], 1),
        numbers(&[1, 1, 3, 72], 2),
        numbers(&[3, 3, 72, 1], 3),
        numbers(&[1, 1, 72, 3], 4),
        numbers(&[72], 5),
    ];
    let image = |stride: i64| {
        Attrs::new()
            .with("strides", AttrValue::from(vec![1, stride, stride, 1]))
            .with("padding", "SAME")
    };
    for (stride, ends) in [(1, "a residual"), (2, "nothing"), (1, "a reader of the middle")] {
        let label = format!("an inverted residual of stride {stride} and {ends}");
        let found = check(&label, &inputs, &|b, args| {
            let expanded = b.with("Conv2D", image(1), &args[..2])?;
            let shifted = b.op("AddV2", &[expanded, args[4]])?;
            let bounded = b.op("Relu6", &[shifted])?;
            let across = b.with("DepthwiseConv2dNative", image(stride), &[bounded, args[2]])?;
            let bounded = b.op("Relu6", &[across])?;
            let projected = b.with("Conv2D", image(1), &[bounded, args[3]])?;
            match ends {
                "a residual" => Ok(vec![b.op("AddV2", &[projected, args[0]])?]),
                "nothing" => Ok(vec![projected]),
                _ => Ok(vec![projected, bounded]),
            }
        });
        match ends {
            "a reader of the middle" => assert_eq!(found, ["_FusedConvolutions", "Conv2D"]),
            _ => assert_eq!(found, ["_FusedConvolutions"], "{label}"),
        }
    }
}

#[test]
fn an_anchor_that_others_read_stays() {
    let case = &anchored()[0];
    let inputs = inputs_of(case);
    let found = check("a matmul that is a result", &inputs, &|b, args| {
        let y = b.with(case.op, case.attrs.clone(), &args[..2])?;
        Ok(vec![b.op("AddV2", &[y, args[2]])?, y])
    });
    assert_eq!(found, ["MatMul", "AddV2"]);
    let found = check("a matmul with another reader", &inputs, &|b, args| {
        let y = b.with(case.op, case.attrs.clone(), &args[..2])?;
        let other = b.with("MatMul", Attrs::new(), &[y, args[4]])?;
        let sum = b.op("AddV2", &[y, args[2]])?;
        Ok(vec![b.op("AddV2", &[other, sum])?])
    });
    assert_eq!(found, ["MatMul", "_Region"]);
    let found = check("a matmul that is multiplied by itself", &inputs, &|b, args| {
        let y = b.with(case.op, case.attrs.clone(), &args[..2])?;
        let sum = b.op("AddV2", &[y, args[4]])?;
        let other = b.with("MatMul", Attrs::new(), &[sum, y])?;
        Ok(vec![b.op("AddV2", &[other, sum])?])
    });
    assert_eq!(found.iter().filter(|op| *op == "MatMul").count(), 1, "{found:?}");
}

#[test]
fn an_empty_product_has_no_epilogue() {
    let case = Anchored {
        op: "MatMul",
        attrs: Attrs::new(),
        a: vec![100, 0],
        b: vec![0, 100],
        out: vec![100, 100],
    };
    for name in EPILOGUES {
        check(name, &inputs_of(&case), &|b, args| {
            let y = b.with(case.op, case.attrs.clone(), &args[..2])?;
            Ok(vec![epilogue(name, b, y, args)?])
        });
    }
}

/// A generator of numbers without pattern.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// A random program over rows.
fn program(seed: u64, b: &mut Build<'_>, args: &[Outlet]) -> Result<Vec<Outlet>> {
    let mut random = Random(seed);
    let (mut full, mut rows) = (vec![args[0], args[1]], vec![args[3]]);
    for _ in 0..3 + random.below(9) {
        let x = full[random.below(full.len())];
        match random.below(7) {
            0 => {
                let op = ["Mean", "Max", "Min", "Sum"][random.below(4)];
                rows.push(b.rows(op, x)?);
            }
            1 => full.push(b.op("Softmax", &[x])?),
            2 => full.push(b.op(["Tanh", "Sigmoid", "Relu", "Abs", "Neg"][random.below(5)], &[x])?),
            3 => {
                let row = rows[random.below(rows.len())];
                rows.push(b.op(["Tanh", "Sigmoid", "Abs"][random.below(3)], &[row])?);
            }
            4 => {
                let row = rows[random.below(rows.len())];
                full.push(b.op(["Sub", "Mul", "Maximum"][random.below(3)], &[x, row])?);
            }
            5 => {
                let row = rows[random.below(rows.len())];
                let (size, one) = (b.op("Abs", &[row])?, b.number(1.0)?);
                let divisor = b.op("AddV2", &[size, one])?;
                full.push(b.op("RealDiv", &[x, divisor])?);
            }
            _ => {
                let others = [full[random.below(full.len())], args[2]];
                let y = others[random.below(2)];
                full.push(b.op(["AddV2", "Mul", "Minimum"][random.below(3)], &[x, y])?);
            }
        }
    }
    let mut results = vec![full[full.len() - 1], rows[rows.len() - 1]];
    results.truncate(1 + random.below(2));
    // A value that is a program's input is none of its results.
    results.retain(|result| !args.contains(result));
    if results.is_empty() {
        results.push(b.op("Neg", &[args[0]])?);
    }
    Ok(results)
}

#[test]
fn random_programs_over_rows_compute_the_same() {
    let mut regions = 0;
    for seed in 0..150 {
        let mut random = Random(seed * 977 + 5);
        let cols = [1, 48, 63, 100, 128, 200, 257][random.below(7)];
        let dims = [vec![random.below(60), cols], vec![2, 13, cols]][random.below(2)].clone();
        let mut kept = dims.clone();
        kept[dims.len() - 1] = 1;
        let inputs = [numbers(&dims, 1), numbers(&dims, 2), numbers(&[cols], 3), numbers(&kept, 4)];
        let found = check(&format!("{seed}"), &inputs, &|b, args| program(seed, b, args));
        regions += found.iter().filter(|op| *op == "_Region").count();
    }
    assert!(regions > 40, "{regions} regions");
}

/// A convolution of a padded image, a bias and a bound.
fn padded_convolution(
    b: &mut Build<'_>,
    args: &[Outlet],
    op: &str,
    paddings: [i32; 4],
    stride: i64,
) -> Result<Outlet> {
    let [top, bottom, left, right] = paddings;
    let all = [0, 0, top, bottom, left, right, 0, 0];
    let paddings = HostTensor::from_slice(Shape::new([4, 2])?, &all)?;
    let paddings = b.b.constant("paddings", paddings)?;
    let padded = b.op("Pad", &[args[0], paddings])?;
    let strides = AttrValue::from(vec![1, stride, stride, 1]);
    let attrs = Attrs::new().with("strides", strides).with("padding", "VALID");
    let convolved = b.with(op, attrs, &[padded, args[1]])?;
    let shifted = b.op("BiasAdd", &[convolved, args[2]])?;
    b.op("Relu", &[shifted])
}

/// Some windows lie in the padding as a whole, more of them than the image has positions.
#[test]
fn convolutions_pad_by_themselves() {
    let options = CompileOptions { fuse: false, regions: false, ..CompileOptions::default() };
    let options = ContextOptions { compile: options, ..ContextOptions::default() };
    let (context, plain) = (Context::new(), Context::with_options(options));
    for (op, filter, filters) in
        [("Conv2D", [3, 3, 21, 34], 34), ("DepthwiseConv2dNative", [3, 3, 21, 1], 21)]
    {
        let inputs = [numbers(&[2, 9, 8, 21], 1), numbers(&filter, 2), numbers(&[filters], 3)];
        for paddings in [[0, 1, 0, 1], [3, 0, 2, 5], [40, 60, 300, 310], [0, 0, 0, 0]] {
            for stride in [1, 2] {
                let what = format!("{op} {paddings:?} {stride}");
                let body = |b: &mut Build<'_>, args: &[Outlet]| {
                    Ok(vec![padded_convolution(b, args, op, paddings, stride)?])
                };
                let (f, g) = (
                    compiled(&context, &inputs, false, &body),
                    compiled(&plain, &inputs, false, &body),
                );
                let ops = |f: &CallableFunction| nodes(f, &inputs).contains(&"Pad".to_string());
                assert!(!ops(&f) && ops(&g), "{what}");
                let (found, expected) = (f.call(&inputs).unwrap(), g.call(&inputs).unwrap());
                assert_eq!(found[0].shape(), expected[0].shape(), "{what}");
                for (a, b) in values(&found, 0).iter().zip(&values(&expected, 0)) {
                    assert!((a - b).abs() <= 2e-5 * (1.0 + b.abs()), "{what}: {a} for {b}");
                }
            }
        }
    }
}

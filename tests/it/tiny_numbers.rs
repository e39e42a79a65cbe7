//! Numbers near the least that floats have: fused ops see those that separate ops see, where the
//! difference shows.

use ferroflow::{
    Tensor,
    ir::{Attrs, DType, HostTensor, Lowering, OpDef, OpRegistry},
    ops,
    tracer::{Error, function},
};

type Result<T, E = Error> = std::result::Result<T, E>;

/// Factors whose products are normal numbers, subnormal ones and zeros of both signs.
const FACTORS: [f32; 10] = [1e-20, -1e-20, 3e-19, -2e-30, 1e-40, -1e-40, 1.0, -0.5, 0.0, -0.0];

/// Ops that are computed from a value, by name.
type Inner = (&'static str, fn(&Tensor, &Tensor) -> Result<Tensor>);

const INNER: [Inner; 5] = [
    ("x * y", |x, y| ops::mul(x, y)),
    ("x - y", |x, y| ops::sub(x, y)),
    ("-x", |x, _| ops::neg(x)),
    ("abs(x)", |x, _| ops::abs(x)),
    ("max(x, abs(y))", |x, y| ops::maximum(x, &ops::abs(y)?)),
];

/// Elementwise ops of so many floats.
fn elementwise(n_inputs: usize) -> Vec<&'static OpDef> {
    let all = OpRegistry::default().implemented();
    let is_wanted = |op: &&OpDef| {
        op.inputs.len() == n_inputs && matches!(op.lowering, Lowering::Elementwise(_))
    };
    let mut wanted: Vec<_> = all.into_iter().filter(is_wanted).collect();
    wanted.sort_by_key(|op| op.name);
    wanted
}

/// All pairs of factors, as two vectors, and a third beside them.
fn operands(dtype: DType) -> Result<[Tensor; 3]> {
    let n = FACTORS.len();
    let at = |index: fn(usize, usize) -> usize| {
        let values: Vec<f32> = (0..n * n).map(|i| FACTORS[index(i, n) % n]).collect();
        ops::cast(&Tensor::from(values), dtype)
    };
    Ok([at(|i, n| i / n)?, at(|i, n| i % n)?, at(|i, n| i / n * 3 + i % n * 7)?])
}

/// The first element that differs by more than rounding does.
fn difference(found: &HostTensor, expected: &HostTensor) -> Option<String> {
    let numbers = |tensor: &HostTensor| -> Vec<f64> {
        let cast = ops::cast(&tensor.clone().into(), DType::F64).unwrap();
        cast.to_vec().unwrap()
    };
    let pairs = numbers(found).into_iter().zip(numbers(expected)).enumerate();
    let is_same = |a: f64, b: f64| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-30 + 1e-5 * b.abs()
    };
    let wrong = pairs.filter(|&(_, (found, expected))| !is_same(found, expected));
    wrong.map(|(i, (found, expected))| format!("{i}: {found:e}, not {expected:e}")).next()
}

/// Whether fused ops return what separate ones do, where `inner` computes argument `position` of `op`;
/// `None` for ops of other arguments.
fn compared(
    op: &'static OpDef,
    position: usize,
    inner: Inner,
    dtype: DType,
) -> Option<Result<(), String>> {
    let [x, y, z] = operands(dtype).unwrap();
    let program = move |x: &Tensor, y: &Tensor, z: &Tensor| -> Result<Tensor> {
        let value = (inner.1)(x, y)?;
        let mut args = vec![z; op.inputs.len()];
        args[position] = &value;
        Ok(ops::raw(op, Attrs::new(), &args)?.remove(0))
    };
    let expected = program(&x, &y, &z).ok()?.host().unwrap().clone();
    let traced = function(move |x: Tensor, y: Tensor, z: Tensor| program(&x, &y, &z));
    let found = traced.call((x, y, z)).unwrap();
    let difference = difference(found.host().unwrap(), &expected);
    let what = |what| Err(format!("{} of {} at {position}, {dtype}: {what}", op.name, inner.0));
    Some(difference.map_or(Ok(()), what))
}

#[test]
fn fused_ops_see_the_zeros_that_separate_ops_see() {
    let mut results = Vec::new();
    for n_inputs in 1..=3 {
        for op in elementwise(n_inputs) {
            for dtype in [DType::F32, DType::F64, DType::BF16] {
                for inner in INNER {
                    results.extend((0..n_inputs).filter_map(|at| compared(op, at, inner, dtype)));
                }
            }
        }
    }
    assert!(results.len() > 1000, "{} programs", results.len());
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} of {}", wrong.join("\n"), wrong.len());
}

/// Sums of rows of products, and products of sums, in one region with an op that distinguishes them from zeros.
#[test]
fn regions_see_the_zeros_that_separate_ops_see() {
    // Sums of products are subnormal or far from it: those of very many would not be.
    let factors = [1e-21f32, -1e-21, 1e-41, 0.0, 1.0];
    let numbers: Vec<f32> = (0..4 * 300).map(|i| factors[i * 7 / 3 % 4 + i / 1150]).collect();
    let x = Tensor::from(numbers).reshape(&[4, 300]).unwrap();
    let y = ops::reverse_v2(&x, &Tensor::from([1])).unwrap();
    let row = |x: &Tensor| ops::expand_dims(&ops::sum(x, &Tensor::from([1]))?, &Tensor::from(1));
    let mut wrong = Vec::new();
    let mut n = 0;
    for op in elementwise(1) {
        let before = move |x: &Tensor, y: &Tensor| -> Result<Tensor> {
            let each = ops::raw(op, Attrs::new(), &[&ops::mul(x, y)?])?.remove(0);
            row(&ops::cast(&each, DType::F32)?)
        };
        let after = move |x: &Tensor, y: &Tensor| -> Result<Tensor> {
            let sums = row(&ops::mul(x, y)?)?;
            ops::mul(&ops::cast(&ops::raw(op, Attrs::new(), &[&sums])?[0], DType::F32)?, x)
        };
        for (name, is_before) in [("before", true), ("after", false)] {
            let program =
                move |x: &Tensor, y: &Tensor| if is_before { before(x, y) } else { after(x, y) };
            let Ok(expected) = program(&x, &y) else { continue };
            let traced = function(move |x: Tensor, y: Tensor| program(&x, &y));
            let found = traced.call((x.clone(), y.clone())).unwrap();
            n += 1;
            let what = difference(found.host().unwrap(), expected.host().unwrap());
            wrong.extend(what.map(|what| format!("{} {name} a sum: {what}", op.name)));
        }
    }
    assert!(n > 60, "{n} programs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

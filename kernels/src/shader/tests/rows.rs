//! Row regions: devices compute the same as the CPU, however long rows are and however many.

use super::{
    cases::{numbers, run_on_cpu},
    groups::positive,
    launched, one_of_each_kind,
};
use crate::{
    OpCall, OperandSpec,
    shader::{Caps, Shader, ShaderDialect, shader},
};
use ferroflow_ir::{
    Attrs, DType, Expr, HostTensor, ReduceKind, expr::Replacement, pass::region::softmax, registry,
};
use std::collections::BTreeMap;

/// An expression of inputs, whether it has one value for a row, and the shapes of what it reads
/// besides rows.
struct Region {
    name: &'static str,
    expr: Expr,
    reduces: bool,
    others: [Other; 2],
}

/// Shape of an operand.
#[derive(Clone, Copy)]
enum Other {
    Row,
    Column,
}

fn product(a: &Expr, b: &Expr) -> Expr {
    let types = [DType::F32; 2];
    let expr = Expr::build(&Attrs::new(), &types, DType::F32, |s| s.x(0) * s.x(1)).unwrap();
    expr.substitute(&[Replacement::Expr(a), Replacement::Expr(b)])
}

fn difference_of(a: &Expr, b: &Expr) -> Expr {
    let types = [DType::F32; 2];
    let expr = Expr::build(&Attrs::new(), &types, DType::F32, |s| s.x(0) - s.x(1)).unwrap();
    expr.substitute(&[Replacement::Expr(a), Replacement::Expr(b)])
}

fn regions() -> Vec<Region> {
    let [x, a, b] = [0, 1, 2].map(|at| Expr::input(at, DType::F32));
    let scaled = product(&x, &a);
    let mean = x.reduced(ReduceKind::Mean);
    let centred = difference_of(&x, &mean);
    let variance = product(&centred, &centred).reduced(ReduceKind::Mean);
    let types = [DType::F32; 4];
    let normalized = Expr::build(&Attrs::new(), &types, DType::F32, |s| {
        s.x(0) * (s.x(1) + s.value(1e-3, DType::F32)).rsqrt() * s.x(2) + s.x(3)
    });
    let normalized = normalized.unwrap().substitute(&[
        Replacement::Expr(&centred),
        Replacement::Expr(&variance),
        Replacement::Expr(&a),
        Replacement::Expr(&b),
    ]);
    let largest = product(&x, &b).reduced(ReduceKind::Max);
    let range = difference_of(&largest, &scaled.reduced(ReduceKind::Min));
    let region = |name, expr, reduces, others| Region { name, expr, reduces, others };
    vec![
        region("softmax", product(&softmax(&scaled, false).unwrap(), &b), false, [Other::Row; 2]),
        region("log softmax", softmax(&scaled, true).unwrap(), false, [Other::Column, Other::Row]),
        region("norm", normalized, false, [Other::Row; 2]),
        region("range", range, true, [Other::Row, Other::Column]),
    ]
}

/// Sizes of rows, and how many dimensions at the end are one: a warp for each or a group, whole and
/// ragged; more elements than a lane keeps.
const SIZES: &[(&[usize], usize)] = &[
    (&[13, 100], 1),
    (&[24, 128], 1),
    (&[3, 5, 6, 20], 2),
    (&[5, 777], 1),
    (&[2100, 300], 1),
    (&[65, 8300], 1),
    (&[70, 768], 1),
];

/// The number of sizes whose rows are computed by one invocation each where a device has no groups.
const SINGLE: usize = 2;

/// Calls `body` with a region's call and its inputs.
fn with_call<R>(
    region: &Region,
    (dims, n_last): (&[usize], usize),
    body: impl FnOnce(&OpCall<'_>, &[HostTensor]) -> R,
) -> R {
    let row = &dims[dims.len() - n_last..];
    let column: Vec<usize> =
        (0..dims.len()).map(|at| if at < dims.len() - n_last { dims[at] } else { 1 }).collect();
    let mut inputs = vec![numbers(DType::F32, dims)];
    inputs.extend(region.others.map(|other| match other {
        Other::Row => positive(DType::F32, row),
        Other::Column => positive(DType::F32, &column),
    }));
    inputs.truncate(region.expr.n_inputs());
    let axes: Vec<i64> = (dims.len() - n_last..dims.len()).map(|axis| axis as i64).collect();
    let op = registry::find("_Region").unwrap();
    let attrs = Attrs::new()
        .with("Tin", vec![DType::F32; inputs.len()])
        .with("T", DType::F32)
        .with("axes", axes)
        .with("reduces", region.reduces);
    let attrs = op.complete_attrs(attrs).unwrap();
    let specs: Vec<OperandSpec> =
        inputs.iter().map(|input| OperandSpec::new(DType::F32, input.shape().clone())).collect();
    let call = OpCall::new(op, &attrs, &specs, Some(&region.expr)).unwrap();
    body(&call, &inputs)
}

/// The texts, each with the first call that needs it.
pub(super) fn programs(dialect: ShaderDialect, caps: Caps) -> BTreeMap<String, String> {
    let mut programs = BTreeMap::new();
    for region in regions() {
        for &size in SIZES {
            let found: Option<Shader> =
                with_call(&region, size, |call, _| shader(call, caps).unwrap());
            if let Some(shader) = found {
                let name = format!("{} of {:?}", region.name, size.0);
                programs.entry(dialect.print(&shader)).or_insert(name);
            }
        }
    }
    programs
}

/// Arrays of `f32` would round whole numbers that several loops read.
#[test]
fn whole_numbers_are_not_kept_as_floats() {
    let (x, none) = (Expr::input(0, DType::I32), Attrs::new());
    // From here on `f32` does not tell all of them apart.
    const LARGE: f64 = (1 << 24) as f64;
    let low = Expr::build(&none, &[DType::I32], DType::F32, |s| (s.x(0) - LARGE).cast(DType::F32));
    let low = low.unwrap().substitute(&[Replacement::Expr(&x)]);
    let centred = difference_of(&low, &low.reduced(ReduceKind::Mean));
    let op = registry::find("_Region").unwrap();
    let attrs = Attrs::new().with("Tin", vec![DType::I32]).with("T", DType::F32);
    let attrs = op.complete_attrs(attrs.with("axes", vec![1i64])).unwrap();
    let values: Vec<i32> = (0..13 * 100).map(|at| (1 << 24) + at % 7).collect();
    let input = HostTensor::from_slice(super::cases::shape(&[13, 100]), &values).unwrap();
    let specs = [OperandSpec::new(DType::I32, input.shape().clone())];
    let call = OpCall::new(op, &attrs, &specs, Some(&centred)).unwrap();
    for device in one_of_each_kind() {
        let Some(kernel) = device.kernel(&call).unwrap() else { continue };
        let output = (DType::F32, input.shape().clone());
        let inputs = [input.clone()];
        let found = launched(&*device, &*kernel, &inputs, &[output]).remove(0);
        let sum = |row: &[i32]| row.iter().map(|x| x - (1 << 24)).sum::<i32>() as f32;
        let expected = values.chunks(100).flat_map(|row| {
            let mean = sum(row) / 100.0;
            row.iter().map(move |x| (x - (1 << 24)) as f32 - mean)
        });
        for (&found, expected) in found.as_slice::<f32>().unwrap().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
        }
    }
}

/// The first elements that differ by more than the order of sums explains.
fn difference(found: &HostTensor, expected: &HostTensor) -> Option<String> {
    let [found, expected] = [found, expected].map(|tensor| tensor.as_slice::<f32>().unwrap());
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).find_map(|(&x, &y)| {
        let is_near = (x - y).abs() <= 1e-5 * y.abs().max(1.0);
        (!is_near).then(|| format!("{x} instead of {y}"))
    })
}

#[test]
fn devices_compute_rows() {
    for device in one_of_each_kind() {
        let (mut n, mut wrong) = (0, Vec::new());
        for region in regions() {
            for &size in SIZES {
                let compared = with_call(&region, size, |call, inputs| {
                    let kernel = device.kernel(call).unwrap()?;
                    let output = (DType::F32, call.output_shape(0).unwrap());
                    let found = launched(&*device, &*kernel, inputs, &[output]).remove(0);
                    let expected = run_on_cpu(call, inputs).expect("the CPU has rows").remove(0);
                    Some(difference(&found, &expected))
                });
                n += usize::from(compared.is_some());
                if let Some(Some(why)) = compared {
                    wrong.push(format!("{} of {:?}: {why}", region.name, size.0));
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {n}:\n{}", wrong.len(), wrong.join("\n"));
        let all = [SIZES.len(), SINGLE].map(|sizes| regions().len() * sizes);
        assert!(all.contains(&n), "{n} calls were compared");
    }
}

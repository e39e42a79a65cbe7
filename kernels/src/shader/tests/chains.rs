//! Fused expressions of a cast and an op: devices compute the same as the CPU.
//!
//! Compilers of drivers rewrite what they see together. Programs of one op each do not show where
//! they go wrong.

use super::{
    cases::{cast, run_on_cpu},
    difference, launched, one_of_each_kind,
};
use crate::{
    Device, OpCall, OperandSpec,
    shader::{Caps, ShaderDialect, builder::KernelBuilder, expr},
};
use ferroflow_ir::{
    Attrs, DType, Expr, HostTensor,
    expr::{Constant, Replacement},
    registry,
};

const DTYPES: [DType; 9] = [
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U32,
    DType::U64,
    DType::F32,
    DType::Bool,
];

const OPS: [&str; 13] = [
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Equal",
    "NotEqual",
    "AddV2",
    "Sub",
    "Mul",
    "Maximum",
    "Minimum",
    "LeftShift",
    "RightShift",
];

fn numbers(dtype: DType) -> HostTensor {
    let signed = [0.0f64, 1.0, -3.0, 4.0, -1.0, 2.0, 127.0, -128.0];
    let unsigned = signed.map(f64::abs);
    let is_unsigned = matches!(dtype, DType::U8 | DType::U32 | DType::U64);
    let numbers = if is_unsigned { unsigned } else { signed };
    cast(&HostTensor::vector(&numbers).unwrap(), dtype)
}

/// `op` of an input cast to a dtype and of a constant, in this order or the other; `None` if the op
/// does not take the dtype.
fn after_cast(op: &str, from: DType, to: DType, constant: i128, swaps: bool) -> Option<Expr> {
    let record = registry::find(op)?;
    let attrs = record.complete_attrs(Attrs::new().with("T", to)).ok()?;
    let output = *record.output_dtypes(&attrs).ok()?.first()?;
    let expr = Expr::of(record, &attrs, &[to, to], output).ok()?;
    let wide = Expr::build(&Attrs::new(), &[from], to, |s| s.x(0).cast(to)).ok()?;
    let constant = match to.is_float() {
        true => Constant::Float(constant as f64),
        false => Constant::Int(constant),
    };
    let mut operands = [Replacement::Expr(&wide), Replacement::Const(constant, to)];
    if swaps {
        operands.reverse();
    }
    Some(expr.substitute(&operands))
}

/// The difference between a device and the CPU; `None` where one of them has no kernel.
fn compared(device: &dyn Device, expr: &Expr, input: &HostTensor) -> Option<Option<String>> {
    let op = registry::find("_FusedElementwise")?;
    let attrs = Attrs::new().with("Tin", vec![input.dtype()]).with("T", expr.dtype());
    let specs = [OperandSpec::new(input.dtype(), input.shape().clone())];
    let call = OpCall::new(op, &attrs, &specs, Some(expr)).ok()?;
    let inputs = [input.clone()];
    let kernel = device.kernel(&call).ok()??;
    let output = (expr.dtype(), input.shape().clone());
    let found = launched(device, &*kernel, &inputs, &[output]);
    let expected = run_on_cpu(&call, &inputs)?;
    Some(difference(&found[0], &expected[0]))
}

// Two tests, as each takes minutes where programs are compiled for a simulated device, which CI leaves out.
#[test]
fn devices_compute_what_comes_after_a_cast_from_signed_integers() {
    check_casts_from(&DTYPES[..4]);
}

#[test]
fn devices_compute_what_comes_after_a_cast_from_others() {
    check_casts_from(&DTYPES[4..]);
}

fn check_casts_from(dtypes: &[DType]) {
    for device in one_of_each_kind() {
        let (mut n, mut wrong) = (0, Vec::new());
        for (from, to) in dtypes.iter().flat_map(|&from| DTYPES.map(|to| (from, to))) {
            if device.storage(from).is_none() || device.storage(to).is_none() {
                continue;
            }
            for op in OPS {
                for (constant, swaps) in [(1, false), (3, true)] {
                    let constant = if to == DType::Bool { 1 } else { constant };
                    let Some(expr) = after_cast(op, from, to, constant, swaps) else { continue };
                    let Some(difference) = compared(&*device, &expr, &numbers(from)) else {
                        continue;
                    };
                    n += 1;
                    wrong.extend(difference.map(|why| format!("{from}: {expr}: {why}")));
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {n}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(n > 100, "{n} programs were compared");
    }
}

/// Drivers that take it that there is no NaN make a constant of a comparison of a number with itself.
#[test]
fn comparisons_with_itself_find_nan_by_its_bits() {
    for op in ["Equal", "NotEqual"] {
        let record = registry::find(op).unwrap();
        let attrs = record.complete_attrs(Attrs::new().with("T", DType::F32)).unwrap();
        let expr = Expr::of(record, &attrs, &[DType::F32; 2], DType::Bool).unwrap();
        let expr = expr.substitute(&[Replacement::Input(0, DType::F32); 2]);
        let k = KernelBuilder::new(Caps::default());
        let input = k.input(0, DType::F32).at(k.element());
        k.output(DType::Bool).set(0, expr::value(&k, &expr, &[input]).unwrap());
        let shader = k.finish(1).unwrap().unwrap();
        let text = shader.body.print(ShaderDialect::Wgsl, &[], 0);
        assert!(text.contains("is_nan_("), "{text}");
        let input = HostTensor::vector(&[1.0f32, f32::NAN, f32::INFINITY]).unwrap();
        for device in one_of_each_kind() {
            assert_eq!(compared(&*device, &expr, &input), Some(None), "{op}");
        }
    }
}

//! Evenly spaced numbers.

use super::sets::*;
use crate::gradient::Gradient;
use crate::{
    dtype::DType, error::Result, host_tensor::HostTensor, infer::OpContext, op::*,
    shape::PartialShape,
};
use half::{bf16, f16};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "LinSpace",
        summary: "Makes `num` evenly spaced numbers from `start` to `stop`, both included.",
        inputs: &[arg("start", "T"), arg("stop", "T"), arg("num", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", FLOATS), ty_or("Tidx", INDEX, DType::I32)],
        infer: lin_space,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Range",
        summary: "Makes the numbers from `start` to before `limit` in steps of `delta`.",
        inputs: &[
            arg("start", "Tidx").host(),
            arg("limit", "Tidx").host(),
            arg("delta", "Tidx").host(),
        ],
        outputs: &[arg("output", "Tidx")],
        attrs: &[ty_or(
            "Tidx",
            &[
                DType::BF16,
                DType::F16,
                DType::F32,
                DType::F64,
                DType::I8,
                DType::I16,
                DType::I32,
                DType::I64,
                DType::U16,
                DType::U32,
                DType::U64,
            ],
            DType::I32,
        )],
        infer: range,
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
];

fn lin_space(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 0)?;
    context.check_rank(1, 0)?;
    let size = match context.int(2)? {
        None => None,
        Some(num) => match usize::try_from(num) {
            Ok(num) if num > 0 => Some(num),
            _ => return Err(context.wrong(2, "positive", num)),
        },
    };
    context.set(0, PartialShape::vector(size));
    Ok(())
}

fn range(context: &mut OpContext<'_>) -> Result<()> {
    for index in 0..3 {
        let shape = context.shape(index);
        let is_one = |dims: &[Option<usize>]| dims.iter().all(|dim| dim.is_none_or(|dim| dim == 1));
        if shape.rank().is_some_and(|rank| rank > 1) || !shape.dims().is_none_or(is_one) {
            return Err(context.wrong(index, "a scalar", shape));
        }
    }
    let (Some(start), Some(limit), Some(delta)) =
        (context.value(0), context.value(1), context.value(2))
    else {
        context.set(0, PartialShape::vector(None));
        return Ok(());
    };
    let steps = if context.dtype(0).is_float() {
        float_steps(context, [start, limit, delta])?
    } else {
        integer_steps(context, [start, limit, delta])?
    };
    context.set(0, PartialShape::vector(Some(steps)));
    Ok(())
}

fn integer_steps(context: &OpContext<'_>, values: [&HostTensor; 3]) -> Result<usize> {
    let first = |tensor: &HostTensor| tensor.to_i64s().map(|values| i128::from(values[0]));
    let (start, limit, delta) = (first(values[0])?, first(values[1])?, first(values[2])?);
    check_direction(
        context,
        delta == 0,
        (delta > 0 && start > limit) || (delta < 0 && start < limit),
    )?;
    let steps = (limit - start).unsigned_abs().div_ceil(delta.unsigned_abs());
    usize::try_from(steps).map_err(|_| context.wrong(2, "large enough", delta))
}

fn float_steps(context: &OpContext<'_>, values: [&HostTensor; 3]) -> Result<usize> {
    let (start, limit, delta) = (number(values[0])?, number(values[1])?, number(values[2])?);
    let forward = delta > 0.0 && (start > limit || start.is_nan() || limit.is_nan());
    let backward = delta < 0.0 && (start < limit || start.is_nan() || limit.is_nan());
    check_direction(context, delta == 0.0 || delta.is_nan(), forward || backward)?;
    let dtype = context.dtype(0);
    let steps = rounded(dtype, rounded(dtype, limit - start) / delta).abs().ceil();
    if steps < 2f64.powi(63) {
        Ok(steps as usize)
    } else {
        Err(context.wrong(2, "large enough", delta))
    }
}

fn check_direction(context: &OpContext<'_>, no_step: bool, away: bool) -> Result<()> {
    if no_step {
        return Err(context.wrong(2, "a step other than 0", 0));
    }
    if away {
        return Err(context.wrong(2, "a step towards the limit", "one away from it"));
    }
    Ok(())
}

/// The first element of a float tensor.
fn number(tensor: &HostTensor) -> Result<f64> {
    Ok(match tensor.dtype() {
        DType::F16 => tensor.as_slice::<f16>()?[0].to_f64(),
        DType::BF16 => tensor.as_slice::<bf16>()?[0].to_f64(),
        DType::F32 => f64::from(tensor.as_slice::<f32>()?[0]),
        _ => tensor.as_slice::<f64>()?[0],
    })
}

/// The value as an element of a float dtype.
fn rounded(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(value).to_f64(),
        DType::BF16 => bf16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

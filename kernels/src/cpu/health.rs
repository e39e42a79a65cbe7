//! Numbers that tell debuggers and calibrations about a tensor: `DebugNumericSummary`,
//! `DebugNumericSummaryV2` and `CustomAggregator`.
//!
//! Source: TensorFlow's `debug_ops.h` and `custom_aggregator_op.cc`, and what they return.

use super::{Build, dispatch::with_real};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error as IrError, Shape, workspace};
use num_traits::AsPrimitive;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("CustomAggregator", aggregate),
    ("DebugNumericSummary", summary),
    ("DebugNumericSummaryV2", health),
];

/// The elements of input 0 as floats.
type Elements = fn(&Io<'_>) -> Result<Vec<f64>>;

fn elements(dtype: DType) -> Option<Elements> {
    fn read<T: bytemuck::Pod + AsPrimitive<f64>>(io: &Io<'_>) -> Result<Vec<f64>> {
        Ok(workspace::collected(io.input::<T>(0).iter().map(|x| x.as_()))?)
    }
    match dtype {
        DType::Bool => Some(read::<u8>),
        dtype => with_real!(dtype, T => read::<T> as Elements),
    }
}

/// Numbers of elements of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    not_numbers: usize,
    below: usize,
    negative: usize,
    zero: usize,
    positive: usize,
    above: usize,
}

impl Counts {
    /// Counts of elements, where what is at or beyond these bounds is below or above.
    fn of(elements: &[f64], [low, high]: [f64; 2]) -> Counts {
        let mut counts = Counts::default();
        for &x in elements {
            let count = match x {
                x if x.is_nan() => &mut counts.not_numbers,
                x if x <= low => &mut counts.below,
                x if x >= high => &mut counts.above,
                x if x < 0.0 => &mut counts.negative,
                x if x > 0.0 => &mut counts.positive,
                _ => &mut counts.zero,
            };
            *count += 1;
        }
        counts
    }
}

const INFINITIES: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

fn summary(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(elements) = elements(call.dtype(0)) else { return Ok(None) };
    let bounds =
        [call.attrs.float("lower_bound")?, call.attrs.float("upper_bound")?].map(f64::from);
    let (dtype, shape) = (call.dtype(0).number(), call.shape(0).clone());
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let x = elements(io)?;
        let counts = Counts::of(&x, bounds);
        let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        let finite = || x.iter().copied().filter(|x| x.is_finite());
        for x in finite() {
            (min, max, sum) = (min.min(x), max.max(x), sum + x);
        }
        let n = finite().count() as f64;
        let (mean, variance) = match n {
            0.0 => (f64::NAN, f64::NAN),
            n => {
                let mean = sum / n;
                (mean, finite().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
            }
        };
        let Counts { not_numbers, below, negative, zero, positive, above } = counts;
        let numbers = [x.len(), not_numbers, below, negative, zero, positive, above];
        let mut found = vec![1.0];
        found.extend(numbers.map(|count| count as f64));
        found.extend([min, max, mean, variance, f64::from(dtype), shape.rank() as f64]);
        found.extend(shape.iter().map(|&size| size as f64));
        io.output::<f64>(0).copy_from_slice(&found);
        Ok(())
    })))
}

/// The dimensions that a summary of a shape has room for: the last ones.
const DIMS: usize = 6;

fn health(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(elements) = elements(call.dtype(0)) else { return Ok(None) };
    let (mode, id) = (call.attrs.int("tensor_debug_mode")?, call.attrs.int("tensor_id")?);
    let (dtype, shape) = (f64::from(call.dtype(0).number()), call.shape(0).clone());
    let is_single = call.outputs[0].dtype == DType::F32;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let x = elements(io)?;
        let found = told(mode, id as f64, dtype, &shape, &x);
        match is_single {
            true => {
                let out = io.output::<f32>(0).iter_mut();
                out.zip(found).for_each(|(out, x)| *out = x as f32);
            }
            false => io.output::<f64>(0).copy_from_slice(&found),
        }
        Ok(())
    })))
}

/// The numbers that each mode tells.
fn told(mode: i64, id: f64, dtype: f64, shape: &Shape, x: &[f64]) -> Vec<f64> {
    let counts = Counts::of(x, INFINITIES);
    let Counts { not_numbers, below, negative, zero, positive, above } = counts;
    let [not_numbers, below, negative, zero, positive, above] =
        [not_numbers, below, negative, zero, positive, above].map(|count| count as f64);
    let (n, rank) = (x.len() as f64, shape.rank() as f64);
    match mode {
        2 => vec![id, f64::from(u8::from(not_numbers + below + above > 0.0))],
        3 => vec![id, n, below, above, not_numbers],
        4 => vec![id, -1.0, dtype, rank, n, below, above, not_numbers, negative, zero, positive],
        5 => {
            let mut found = vec![id, dtype, rank, n];
            let last = &shape[shape.rank().saturating_sub(DIMS)..];
            found.extend(last.iter().map(|&size| size as f64));
            found.resize(4 + DIMS, 0.0);
            found
        }
        _ => {
            let present = |count: f64, value: f64| if count > 0.0 { value } else { 0.0 };
            vec![
                present(below, f64::NEG_INFINITY),
                present(above, f64::INFINITY),
                present(not_numbers, f64::NAN),
            ]
        }
    }
}

/// The input, its smallest and largest elements, and how many elements are in each of the bins. The
/// width of a bin is a power of two, and bins begin at a multiple of it.
fn aggregate(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    if call.attrs.int("calibration_method")? == 0 {
        let (code, op) = (ferroflow_ir::Code::Aborted, call.op.name.into());
        let detail = "the calibration method must be specified".to_string();
        return Err(IrError::Status { code, op, detail }.into());
    }
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let x: &[f32] = io.input(0);
        if !io.is_in_place(0) {
            io.output::<f32>(0).copy_from_slice(x);
        }
        let has_nan = x.iter().any(|x| x.is_nan());
        let min = if has_nan { f32::NAN } else { x.iter().copied().fold(f32::INFINITY, f32::min) };
        let max =
            if has_nan { f32::NAN } else { x.iter().copied().fold(f32::NEG_INFINITY, f32::max) };
        io.output::<f32>(1)[0] = min;
        io.output::<f32>(2)[0] = max;
        let bins: &mut [i64] = io.output(3);
        bins.fill(0);
        let width = ((max - min) / bins.len() as f32).log2().ceil().exp2();
        let low = (min / width).floor() * width;
        for &x in x {
            let at = ((x - low) / width).floor();
            let at = if at > 0.0 { at as usize } else { 0 };
            if let Some(last) = bins.len().checked_sub(1) {
                bins[at.min(last)] += 1;
            }
        }
        Ok(())
    })))
}

//! Timing: samples of a few milliseconds each, for about a second.

use anyhow::Result;
use ferroflow::{
    ir::{DType, HostTensor},
    kernels::{cost::OpCost, machine::MachineLimits},
    runtime::{EagerTensor, RunMetadata},
};
use half::{bf16, f16};
use serde_json::{Value, json};
use smallvec::SmallVec;
use std::time::{Duration, Instant};

/// The least time of a sample.
const SAMPLE: f64 = 0.004;
/// The most samples.
const SAMPLES: usize = 200;

/// The results of a call; one of them needs no memory of its own.
pub(crate) type CallOutput = SmallVec<[EagerTensor; 1]>;

/// Something to be measured.
pub(crate) struct Workload<'a> {
    /// Function to time.
    pub(crate) body: Box<dyn FnMut() -> Result<CallOutput> + 'a>,
    /// The unit of the times.
    pub(crate) unit: Unit,
    /// The parts that the time of a call is divided by.
    pub(crate) per: f64,
    /// Work of a call, and the unit of its rate.
    pub(crate) work: Option<(f64, &'static str)>,
    /// Arithmetic and bytes of a call.
    pub(crate) cost: Option<OpCost>,
    /// A call that tells its ops, of which the costs are added up.
    pub(crate) profile: Option<Box<dyn Fn() -> Result<RunMetadata> + 'a>>,
    /// Whether the results are added up.
    pub(crate) checked: bool,
    /// Whether every call is a sample, and none comes before.
    pub(crate) once: bool,
    /// The seconds that samples may take.
    pub(crate) budget: f64,
    /// More to report, once all samples are taken.
    pub(crate) extra: Option<Box<dyn FnMut() -> (&'static str, Value) + 'a>>,
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
        }
    }

    fn per_second(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1e9,
            Unit::Microseconds => 1e6,
            Unit::Milliseconds => 1e3,
            Unit::Seconds => 1.0,
        }
    }
}

impl<'a> Workload<'a> {
    pub(crate) fn new<R: Into<CallOutput>>(
        unit: Unit,
        mut body: impl FnMut() -> Result<R> + 'a,
    ) -> Workload<'a> {
        Workload {
            body: Box::new(move || Ok(body()?.into())),
            unit,
            per: 1.0,
            work: None,
            cost: None,
            profile: None,
            checked: true,
            once: false,
            budget: 1.0,
            extra: None,
        }
    }

    pub(crate) fn per(self, per: f64) -> Self {
        Workload { per, ..self }
    }

    /// So many bytes are moved.
    pub(crate) fn bytes(self, bytes: f64) -> Self {
        let cost = Some(OpCost { flops: 0, bytes: bytes as u64 });
        Workload { work: Some((bytes / 1e9, "GB/s")), cost, ..self }
    }

    /// So many multiplications and additions are done.
    pub(crate) fn flops(self, flops: f64) -> Self {
        let cost = Some(OpCost { flops: flops as u64, bytes: 0 });
        Workload { work: Some((flops / 1e9, "GFLOP/s")), cost, ..self }
    }

    /// The least time of a call; `None` where its cost is not known.
    fn least_time(&self, limits: &MachineLimits) -> Result<Option<Duration>> {
        let Some(profile) = &self.profile else {
            return Ok(self.cost.map(|cost| limits.least_time(cost)));
        };
        let least = profile()?.ops.iter().map(|op| limits.least_time(op.cost)).sum();
        Ok(Some(least))
    }

    pub(crate) fn unchecked(self) -> Self {
        Workload { checked: false, ..self }
    }

    pub(crate) fn once(self) -> Self {
        Workload { once: true, checked: false, ..self }
    }

    pub(crate) fn budget(self, budget: f64) -> Self {
        Workload { budget, ..self }
    }
}

/// Measures a workload on a processor of these limits.
pub(crate) fn row(mut workload: Workload<'_>, limits: &MachineLimits) -> Result<Value> {
    let check = match workload.checked {
        true => Some((workload.body)()?.iter().map(magnitude).sum::<Result<f64>>()?),
        false => None,
    };
    let mut samples = samples(&mut workload)?;
    samples.sort_by(f64::total_cmp);
    let n = samples.len();
    let (min, median) = (samples[0], (samples[(n - 1) / 2] + samples[n / 2]) / 2.0);
    let scale = workload.unit.per_second() / workload.per;
    let mut row = json!({
        "unit": workload.unit.name(),
        "median": digits(median * scale, 4),
        "min": digits(min * scale, 4),
        "n": n,
    });
    if let Some((work, unit)) = workload.work {
        row["rate"] = json!(digits(work / median, 4));
        row["rate_best"] = json!(digits(work / min, 4));
        row["rate_unit"] = json!(unit);
    }
    if let Some(least) = workload.least_time(limits)? {
        row["roofline"] = json!(digits(least.as_secs_f64() / min, 3));
    }
    if let Some(check) = check {
        row["check"] = json!(digits(check, 7));
    }
    if let Some(mut extra) = workload.extra {
        let (key, value) = extra();
        row[key] = value;
    }
    Ok(row)
}

/// Seconds per call, a sample each.
fn samples(workload: &mut Workload<'_>) -> Result<Vec<f64>> {
    let mut time = |n: usize| -> Result<f64> {
        let began = Instant::now();
        for _ in 0..n {
            std::hint::black_box((workload.body)()?);
        }
        Ok(began.elapsed().as_secs_f64() / n as f64)
    };
    let mut inner = 1;
    if !workload.once {
        time(1)?;
        // Looked at twice: the first calls are slower.
        for _ in 0..2 {
            inner = ((SAMPLE / time(inner)?.max(1e-9)) as usize).max(1);
        }
    }
    let least = if workload.once { 3 } else { 5 };
    let budget = Duration::from_secs_f64(workload.budget);
    let began = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < least || (began.elapsed() < budget && samples.len() < SAMPLES) {
        samples.push(time(inner)?);
        if samples.len() >= 3 && began.elapsed() > 5 * budget {
            break;
        }
    }
    Ok(samples)
}

/// The sum of the magnitudes of all elements.
fn magnitude(tensor: &EagerTensor) -> Result<f64> {
    fn sum<T: bytemuck::Pod>(tensor: &HostTensor, size: impl Fn(T) -> f64) -> f64 {
        bytemuck::cast_slice::<u8, T>(tensor.bytes())
            .iter()
            .map(|&element| size(element).abs())
            .sum()
    }
    let tensor = tensor.host()?;
    Ok(match tensor.dtype() {
        DType::F16 => sum(tensor, f16::to_f64),
        DType::BF16 => sum(tensor, bf16::to_f64),
        DType::F32 => sum(tensor, |x: f32| x.into()),
        DType::F64 => sum(tensor, |x: f64| x),
        DType::I32 => sum(tensor, |x: i32| x.into()),
        DType::I64 => sum(tensor, |x: i64| x as f64),
        other => anyhow::bail!("results of {other} are not added up"),
    })
}

/// The number with so many significant digits.
fn digits(value: f64, n: usize) -> f64 {
    format!("{value:.*e}", n - 1).parse().unwrap_or(value)
}

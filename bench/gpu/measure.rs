//! Timing on devices, where calls return before they have ended.

use super::{check::Checksum, place::BenchDevice};
use anyhow::Result;
use ferroflow::{Tensor, runtime::placement::Placement};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// The least time of a sample of many calls.
const SAMPLE: f64 = 0.02;
/// The most samples.
const SAMPLES: usize = 100;
/// The most calls between two waits.
const CALLS: f64 = 1000.0;

/// Something to be measured, with all it needs on the device already.
pub(super) struct MeasuredRow {
    call: Box<dyn FnMut() -> Result<Tensor>>,
    /// The first calls whose results are compared.
    checked: usize,
    /// The least work of a call, to be divided by its time.
    work: Option<RowWork>,
    is_new: bool,
}

/// The least work of a call.
#[derive(Clone, Copy)]
pub(super) enum RowWork {
    /// So many multiplications and additions.
    Flops(f64),
    /// So many bytes to be read and written.
    Bytes(f64),
}

impl MeasuredRow {
    /// A row of calls that do the same each time.
    pub(super) fn new(call: impl FnMut() -> Result<Tensor> + 'static) -> MeasuredRow {
        MeasuredRow { call: Box::new(call), checked: 1, work: None, is_new: true }
    }

    pub(super) fn work(self, work: RowWork) -> MeasuredRow {
        MeasuredRow { work: Some(work), ..self }
    }

    /// Compares the results of as many calls.
    pub(super) fn checked(self, checked: usize) -> MeasuredRow {
        MeasuredRow { checked, ..self }
    }

    /// Times calls: `latency` with a wait after each, `throughput` with a wait after many.
    pub(super) fn measure(&mut self, place: &BenchDevice, budget: f64) -> Result<Value> {
        let mut answer = json!({});
        if self.is_new {
            place.context.take_placements();
            let mut check = Checksum::default();
            for _ in 0..self.checked {
                check.add((self.call)()?.eager()?)?;
            }
            answer["check"] = check.json();
            answer["placement"] = summary(&place.context.take_placements());
            self.is_new = false;
        }
        self.sample(place, 1)?;
        let latency = self.samples(place, budget, 1)?;
        let calls = (SAMPLE / latency[0].max(1e-9)).clamp(1.0, CALLS) as usize;
        let throughput = self.samples(place, budget, calls)?;
        answer["latency"] = figures(&latency);
        answer["throughput"] = figures(&throughput);
        answer["calls"] = json!(calls);
        match self.work {
            Some(RowWork::Flops(flops)) => answer["flops"] = json!(flops),
            Some(RowWork::Bytes(bytes)) => answer["bytes"] = json!(bytes),
            None => {}
        }
        Ok(answer)
    }

    /// Seconds per call, shortest first.
    fn samples(&mut self, place: &BenchDevice, budget: f64, calls: usize) -> Result<Vec<f64>> {
        let (began, budget) = (Instant::now(), Duration::from_secs_f64(budget));
        let mut samples = Vec::new();
        while samples.len() < 3 || (began.elapsed() < budget && samples.len() < SAMPLES) {
            samples.push(self.sample(place, calls)?);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples)
    }

    fn sample(&mut self, place: &BenchDevice, calls: usize) -> Result<f64> {
        place.wait()?;
        let began = Instant::now();
        for _ in 0..calls {
            std::hint::black_box((self.call)()?);
        }
        place.wait()?;
        Ok(began.elapsed().as_secs_f64() / calls as f64)
    }
}

fn figures(sorted: &[f64]) -> Value {
    let n = sorted.len();
    let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    json!({ "min": sorted[0], "median": median, "n": n })
}

/// Numbers of the calls of each op by device, those without a kernel there, and the copies of every
/// run.
fn summary(placements: &[Placement]) -> Value {
    let mut calls: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut elsewhere: BTreeMap<String, usize> = BTreeMap::new();
    for placement in placements {
        for call in &placement.calls {
            *calls.entry(&call.device).or_default().entry(&call.op).or_default() += 1;
        }
        for call in placement.fallbacks() {
            *elsewhere.entry(format!("{} ({})", call.op, call.reason)).or_default() += 1;
        }
    }
    let bytes: usize = placements.iter().map(Placement::bytes_per_run).sum();
    json!({ "calls": calls, "fallbacks": elsewhere, "bytes_per_run": bytes })
}

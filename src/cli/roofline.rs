//! Times of ops beside the least times that the processor could take for them.

use ferroflow::{
    kernels::machine::MachineLimits,
    runtime::{Context, OpStats},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Limits of the processor, which ops come more or less near to.
pub(super) struct Roofline(MachineLimits);

impl Roofline {
    /// Measures the limits for the threads of a context.
    pub(super) fn measure(context: &Context) -> Roofline {
        Roofline(MachineLimits::measure(context.threads()))
    }

    /// The least time of an op; `None` on other devices, and where nothing is known of its cost.
    pub(super) fn least_time(&self, op: &OpStats) -> Option<Duration> {
        let is_known = op.cost.bytes > 0 && op.device.contains("CPU");
        is_known.then(|| self.0.least_time(op.cost))
    }

    /// The limits, in the units of benchmarks.
    pub(super) fn json(&self) -> Value {
        let giga = |rate: f64| (rate / 1e8).round() / 10.0;
        let bandwidths = self.0.bandwidths.iter();
        let bandwidths =
            bandwidths.map(|(bytes, rate)| json!({ "bytes": bytes, "gb_per_s": giga(*rate) }));
        json!({ "gflops": giga(self.0.flops), "bandwidths": bandwidths.collect::<Vec<_>>() })
    }
}

/// The part of a time that is the least one, in percent with one digit after the point.
pub(super) fn percent(least: Duration, time: Duration) -> f64 {
    (1000.0 * least.as_secs_f64() / time.as_secs_f64().max(1e-12)).round() / 10.0
}

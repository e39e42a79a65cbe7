//! Times of calls that are repeated.

use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The times of some calls, sorted.
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Calls `call` once to warm up and then `n` times.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub(super) fn measure<E>(
        n: usize,
        mut call: impl FnMut() -> Result<(), E>,
    ) -> Result<Latencies, E> {
        call()?;
        let mut times = Vec::with_capacity(n);
        for _ in 0..n.max(1) {
            let begin = Instant::now();
            call()?;
            times.push(begin.elapsed());
        }
        times.sort();
        Ok(Latencies(times))
    }

    /// The time that `percent` of the calls took at most.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    /// Named times, the shortest first, and the calls per second.
    fn rows(&self) -> ([(&'static str, Duration); 5], f64) {
        let total: Duration = self.0.iter().sum();
        let per_second = self.0.len() as f64 / total.as_secs_f64().max(f64::MIN_POSITIVE);
        let named = [("min", 0), ("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)];
        (named.map(|(name, percent)| (name, self.percentile(percent))), per_second)
    }

    pub(super) fn text(&self) -> String {
        let (rows, per_second) = self.rows();
        let times = rows.map(|(name, time)| format!("{name} {}", duration(time)));
        let calls =
            if self.0.len() == 1 { "1 call".into() } else { format!("{} calls", self.0.len()) };
        format!("{calls}: {}; {per_second:.1} calls/s", times.join(", "))
    }

    pub(super) fn json(&self) -> Value {
        let (rows, per_second) = self.rows();
        let mut fields = json!({ "calls": self.0.len(), "calls_per_second": per_second });
        for (name, time) in rows {
            fields[format!("{name}_ms")] = json!(time.as_secs_f64() * 1e3);
        }
        fields
    }
}

/// A time in the unit that suits it: `831 ns`, `12.4 us`, `3.07 ms`, `1.25 s`.
pub(super) fn duration(time: Duration) -> String {
    let nanoseconds = time.as_nanos() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let fits = units.into_iter().find(|(size, _)| nanoseconds >= *size);
    let Some((size, unit)) = fits else { return format!("{nanoseconds} ns") };
    let value = nanoseconds / size;
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let times = (1..=200).map(Duration::from_millis).collect();
        let (rows, per_second) = Latencies(times).rows();
        let found = rows.map(|(_, time)| time.as_millis());
        assert_eq!(found, [1, 100, 180, 198, 200]);
        assert!((per_second - 1000.0 / 100.5).abs() < 1e-9);
    }

    #[test]
    fn times_have_three_digits() {
        let texts = [831, 12_430, 3_070_000, 250_000_000, 1_250_000_000]
            .map(|nanoseconds| duration(Duration::from_nanos(nanoseconds)));
        assert_eq!(texts, ["831 ns", "12.4 us", "3.07 ms", "250 ms", "1.25 s"]);
    }

    #[test]
    fn failures_end_the_measurement() {
        let mut n = 0;
        let found = Latencies::measure(10, || {
            n += 1;
            if n == 4 { Err("stop") } else { Ok(()) }
        });
        assert!(found.is_err_and(|error| error == "stop"));
    }
}

//! Times of calls that are repeated.

use serde_json::{Value, json};
use std::{
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

/// The times of some calls.
pub(super) struct Latencies {
    /// Of each call, sorted.
    times: Vec<Duration>,
    /// From the first call to the end of the last.
    elapsed: Duration,
}

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
        Ok(Latencies::of(times))
    }

    /// Calls `call` once to warm up and then `n` times from each of so many threads at once.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub(super) fn measure_callers<E: Send>(
        n: usize,
        callers: usize,
        call: impl Fn() -> Result<(), E> + Sync,
    ) -> Result<Latencies, E> {
        call()?;
        let begin = Instant::now();
        let caller = || {
            let calls = (0..n.max(1)).map(|_| {
                let begin = Instant::now();
                call().map(|()| begin.elapsed())
            });
            calls.collect::<Result<Vec<_>, E>>()
        };
        let times = thread::scope(|scope| {
            let callers: Vec<_> = (0..callers.max(1)).map(|_| scope.spawn(caller)).collect();
            let join = |caller: ScopedJoinHandle<'_, Result<Vec<Duration>, E>>| match caller.join()
            {
                Ok(times) => times,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            callers.into_iter().map(join).collect::<Result<Vec<_>, E>>()
        })?;
        Ok(Latencies { elapsed: begin.elapsed(), ..Latencies::of(times.concat()) })
    }

    /// The times of calls that followed each other.
    fn of(mut times: Vec<Duration>) -> Latencies {
        times.sort();
        Latencies { elapsed: times.iter().sum(), times }
    }

    /// The time that `percent` of the calls took at most.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.times.len() * percent).div_ceil(100).clamp(1, self.times.len());
        self.times[rank - 1]
    }

    /// Named times, the shortest first, and the calls per second.
    fn rows(&self) -> ([(&'static str, Duration); 5], f64) {
        let per_second =
            self.times.len() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let named = [("min", 0), ("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)];
        (named.map(|(name, percent)| (name, self.percentile(percent))), per_second)
    }

    pub(super) fn text(&self) -> String {
        let (rows, per_second) = self.rows();
        let times = rows.map(|(name, time)| format!("{name} {}", duration(time)));
        let calls = if self.times.len() == 1 {
            "1 call".into()
        } else {
            format!("{} calls", self.times.len())
        };
        format!("{calls}: {}; {per_second:.1} calls/s", times.join(", "))
    }

    pub(super) fn json(&self) -> Value {
        let (rows, per_second) = self.rows();
        let mut fields = json!({ "calls": self.times.len(), "calls_per_second": per_second });
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
        let (rows, per_second) = Latencies::of(times).rows();
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
    fn callers_call_at_once() {
        let meeting = std::sync::Barrier::new(2);
        let is_first = std::sync::atomic::AtomicBool::new(true);
        let found = Latencies::measure_callers(3, 2, || {
            if !is_first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                meeting.wait();
            }
            Ok::<_, ()>(())
        });
        assert_eq!(found.map(|found| found.times.len()), Ok(6));
        assert!(Latencies::measure_callers(3, 2, || Err("broken")).is_err());
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

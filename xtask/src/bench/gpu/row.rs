//! A row: what each side said, and how it is told.

use super::agreement::{disagreement, tolerance};
use crate::bench::{duration, side::BenchSide};
use anyhow::Result;
use serde_json::{Value, json};

/// Answers of all sides about a row.
pub(super) struct ReportRow {
    name: String,
    /// The sides, ours first, and their answers in turn. The first has the check.
    sides: Vec<(String, Vec<Value>)>,
}

/// Two ways to time a call, and what they are called: with a wait after many, and after each.
const TIMINGS: [(&str, &str); 2] = [("throughput", "back to back"), ("latency", "one by one")];

/// Times that differ by less are told once.
const SAME: f64 = 0.1;

impl ReportRow {
    /// Asks all sides in turn, so often.
    pub(super) fn measured(
        name: &str,
        sides: &mut [BenchSide],
        rounds: usize,
    ) -> Result<ReportRow> {
        let answers = |side: &BenchSide| (side.name.clone(), Vec::new());
        let mut row = ReportRow { name: name.into(), sides: sides.iter().map(answers).collect() };
        for _ in 0..rounds.max(1) {
            for (side, (_, answers)) in sides.iter_mut().zip(&mut row.sides) {
                if answers.last().is_none_or(|last: &Value| last["error"].is_null()) {
                    answers.push(side.ask(name)?);
                }
            }
        }
        Ok(row)
    }

    /// Whether sides had different results.
    pub(super) fn differs(&self) -> bool {
        self.disagreement().is_some()
    }

    fn disagreement(&self) -> Option<String> {
        let checks = self.sides.iter().filter_map(|(name, answers)| {
            let answer = answers.first().filter(|answer| answer["error"].is_null())?;
            Some((name.as_str(), &answer["check"]))
        });
        disagreement(&checks.collect::<Vec<_>>(), tolerance(&self.name))
    }

    pub(super) fn json(&self) -> Value {
        let mut sides = json!({});
        for (name, answers) in &self.sides {
            sides[name] = json!({ "answers": answers });
            for (timing, _) in TIMINGS {
                if let Some(seconds) = seconds(answers, timing) {
                    sides[name][timing] = json!({
                        "seconds": seconds,
                        "ratio": self.ours(timing).map(|ours| seconds / ours),
                    });
                }
            }
        }
        let differ = self.disagreement();
        json!({ "name": self.name, "tolerance": tolerance(&self.name), "differ": differ, "sides": sides })
    }

    /// Our time.
    fn ours(&self, timing: &str) -> Option<f64> {
        seconds(&self.sides.first()?.1, timing)
    }

    /// A line for each timing that tells something new, and what else is to be known.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{:32}", self.name);
        let [(first, label), (second, other)] = TIMINGS;
        text.push_str(&format!("{label}  {}\n", self.times(first)));
        let is_new = |(_, answers): &(String, Vec<Value>)| match [first, second]
            .map(|timing| seconds(answers, timing))
        {
            [Some(a), Some(b)] => (a - b).abs() > SAME * a.min(b),
            _ => false,
        };
        if self.sides.iter().any(is_new) {
            text.push_str(&format!("{:32}{other}    {}\n", "", self.times(second)));
        }
        let notes = self.sides.first().and_then(|(_, answers)| answers.first()).map(notes);
        let differ = self.disagreement().map(|differ| format!("RESULTS DIFFER: {differ}"));
        for note in notes.into_iter().flatten().chain(differ) {
            text.push_str(&format!("{:32}{note}\n", ""));
        }
        text
    }

    fn times(&self, timing: &str) -> String {
        let mut times = Vec::new();
        for (index, (name, answers)) in self.sides.iter().enumerate() {
            let Some(seconds) = seconds(answers, timing) else {
                let error = answers.last().and_then(|last| last["error"].as_str());
                times.push(format!("{name}: {}", error.unwrap_or("no figure")));
                continue;
            };
            let more = match index {
                0 => answers.first().and_then(|answer| rate(answer, seconds)),
                _ => self.ours(timing).map(|ours| format!("×{:.2}", seconds / ours)),
            };
            let more = more.map(|more| format!(" ({more})")).unwrap_or_default();
            times.push(format!("{name} {}{more}", duration(seconds)));
        }
        times.join("  ")
    }
}

/// The shortest time of all turns, if none had an error.
fn seconds(answers: &[Value], timing: &str) -> Option<f64> {
    let least = answers
        .iter()
        .map(|answer| answer[timing]["min"].as_f64())
        .try_fold(f64::INFINITY, |least, time| Some(least.min(time?)))?;
    least.is_finite().then_some(least)
}

/// The work of a call by its time.
fn rate(answer: &Value, seconds: f64) -> Option<String> {
    if let Some(flops) = answer["flops"].as_f64() {
        let gigas = flops / seconds / 1e9;
        return Some(match gigas < 1e3 {
            true => format!("{gigas:.1} GFLOP/s"),
            false => format!("{:.1} TFLOP/s", gigas / 1e3),
        });
    }
    answer["bytes"].as_f64().map(|bytes| format!("{:.1} GB/s", bytes / seconds / 1e9))
}

/// Parts of a row that do not run on the device, and the copies for them.
fn notes(answer: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    let placement = &answer["placement"];
    for (what, times) in placement["fallbacks"].as_object().into_iter().flatten() {
        notes.push(format!("{times} calls on the host: {what}"));
    }
    if let Some(bytes) = placement["bytes_per_run"].as_u64().filter(|bytes| *bytes > 0) {
        notes.push(format!("{bytes} bytes copied between devices in every call"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(latency: f64, throughput: f64) -> Value {
        json!({
            "latency": { "min": latency }, "throughput": { "min": throughput }, "flops": 1e10,
            "check": { "mass": 4.0, "norm": 2.0, "probe": 0.5, "n": 4 },
        })
    }

    fn row(ours: Vec<Value>, torch: Vec<Value>) -> ReportRow {
        let sides = vec![("ours".to_string(), ours), ("torch".to_string(), torch)];
        ReportRow { name: "gemm.f32_48".into(), sides }
    }

    #[test]
    fn ratios_are_of_the_shortest_times() {
        let row = row(vec![answer(3e-3, 2e-3), answer(2e-3, 1e-3)], vec![answer(5e-3, 2e-3)]);
        let text = row.text();
        assert!(
            text.contains("back to back  ours 1.00 ms (10.0 TFLOP/s)  torch 2.00 ms (×2.00)"),
            "{text}"
        );
        assert!(
            text.contains("one by one    ours 2.00 ms (5.0 TFLOP/s)  torch 5.00 ms (×2.50)"),
            "{text}"
        );
        assert_eq!(row.json()["sides"]["torch"]["latency"]["ratio"], 2.5);
        assert!(!row.differs());
    }

    #[test]
    fn what_is_told_once_or_not_at_all() {
        let error = json!({ "error": "not available" });
        let text = row(vec![answer(1e-3, 1e-3)], vec![error]).text();
        assert!(text.ends_with("ours 1.00 ms (10.0 TFLOP/s)  torch: not available\n"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn what_runs_elsewhere_is_told() {
        let mut ours = answer(1e-3, 1e-3);
        ours["placement"] = json!({ "fallbacks": { "Where (x)": 2 }, "bytes_per_run": 12 });
        let mut torch = answer(1e-3, 1e-3);
        torch["check"]["probe"] = json!(0.6);
        let row = row(vec![ours], vec![torch]);
        let text = row.text();
        assert!(text.contains("2 calls on the host: Where (x)\n"), "{text}");
        assert!(text.contains("12 bytes copied between devices in every call\n"), "{text}");
        assert!(row.differs() && text.contains("RESULTS DIFFER"), "{text}");
        assert!(row.json()["differ"].as_str().is_some_and(|differ| differ.contains("probe")));
    }
}

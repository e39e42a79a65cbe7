//! The rows of `cargo xtask bench gpu`: functions that run on one device, beside the same in
//! `bench/peer_torch.py`.
//!
//! A row's name says all that there is to know of its sizes, so that both sides take them from there:
//! `gemm.f32_1024` multiplies squares of 1024, `infer.bert_12x768x128_b8` has 12 layers of width 768
//! over 8 times 128 words. Inputs and weights are made of seeds ([`inputs`](crate::inputs)).

mod bert;
mod check;
mod measure;
mod mobilenet;
mod ops;
mod place;
mod train;
mod weights;

use anyhow::{Context as _, Result, ensure};
use ferroflow::runtime::Precision;
use measure::MeasuredRow;
use place::BenchDevice;
use serde_json::{Value, json};

/// The rows.
const FULL: &[&str] = &[
    "elementwise.chain_16777216",
    "gemm.f32_1024",
    "gemm.f32_4096",
    "gemm.f32_8192",
    "gemm.tf32_1024",
    "gemm.tf32_4096",
    "gemm.tf32_8192",
    "gemm.bf16_1024",
    "gemm.bf16_4096",
    "gemm.bf16_8192",
    "softmax.f32_16384x1024",
    "layer_norm.f32_16384x1024",
    "attention.f32_8x12x512x64",
    "attention.bf16_8x12x512x64",
    "launch.chain_100",
    "launch.mixed_100",
    "infer.mobilenetv2_224_b1",
    "infer.mobilenetv2_224_b8",
    "infer.bert_12x768x128_b1",
    "infer.bert_12x768x128_b8",
    "train.mlp_784x512x256x10_b128",
];

/// The same in sizes that any machine manages, to try the command out.
const SMALL: &[&str] = &[
    "elementwise.chain_4096",
    "gemm.f32_48",
    "gemm.tf32_48",
    "gemm.bf16_48",
    "softmax.f32_8x32",
    "layer_norm.f32_8x32",
    "attention.f32_2x2x16x8",
    "attention.bf16_2x2x16x8",
    "launch.chain_100",
    "launch.mixed_100",
    "infer.mobilenetv2_32_b1",
    "infer.mobilenetv2_32_b2",
    "infer.bert_2x128x16_b1",
    "infer.bert_2x128x16_b2",
    "train.mlp_48x32x16x10_b8",
];

/// The names of the rows.
pub(crate) fn names(small: bool) -> &'static [&'static str] {
    if small { SMALL } else { FULL }
}

/// The rows on a device. The last one stays, as it is asked for again when the sides have taken
/// turns.
pub(crate) struct BenchRows {
    /// Where all bits of `float32` count.
    exact: BenchDevice,
    /// The same, for rows that ask for TF32.
    rounded: BenchDevice,
    /// The seconds that each kind of sample may take.
    budget: f64,
    last: Option<(String, MeasuredRow)>,
}

impl BenchRows {
    /// The rows on the device of this name.
    ///
    /// # Errors
    ///
    /// When there is no such device, with the reason.
    pub(crate) fn on(device: &str, threads: usize, small: bool) -> Result<BenchRows> {
        let budget = if small { 0.05 } else { 0.5 };
        let exact = BenchDevice::new(device, threads, Precision::Full)?;
        let rounded = BenchDevice::new(device, threads, Precision::TensorFloat32)?;
        Ok(BenchRows { exact, rounded, budget, last: None })
    }

    /// Facts about this side, before anything runs.
    pub(crate) fn facts(&self) -> Value {
        json!({
            "ready": format!("ferroflow {}", env!("CARGO_PKG_VERSION")),
            "device": self.exact.name(),
            "model": self.exact.model(),
            "is_optimized": !cfg!(debug_assertions),
        })
    }

    /// Measures a row.
    pub(crate) fn answer(&mut self, name: &str) -> Result<Value> {
        let place = if name.starts_with("gemm.tf32") { &self.rounded } else { &self.exact };
        if self.last.as_ref().is_none_or(|(last, _)| last != name) {
            // First, as rows take much of a device's memory.
            self.last = None;
            self.last = Some((name.to_string(), place.within(|| find(place, name))?));
        }
        let (_, row) = self.last.as_mut().context("the row was just made")?;
        place.within(|| row.measure(place, self.budget))
    }
}

fn find(place: &BenchDevice, name: &str) -> Result<MeasuredRow> {
    let (family, rest) = name.split_once('.').context("a name is `family.sizes`")?;
    match family {
        "elementwise" => ops::elementwise(place, rest),
        "gemm" => ops::gemm(place, rest),
        "softmax" => ops::softmax(place, rest),
        "layer_norm" => ops::layer_norm(place, rest),
        "attention" => ops::attention(place, rest),
        "launch" => ops::launch(place, rest),
        "infer" if rest.starts_with("mobilenetv2_") => mobilenet::infer(place, rest),
        "infer" if rest.starts_with("bert_") => bert::infer(place, rest),
        "train" => train::step(place, rest),
        _ => anyhow::bail!("there is no row {name}"),
    }
}

/// The numbers of a text such as `8x12x512x64`.
fn sizes<const N: usize>(text: &str) -> Result<[usize; N]> {
    let sizes: Vec<usize> =
        text.split('x').map(|size| size.parse().context("a size")).collect::<Result<_>>()?;
    ensure!(sizes.iter().all(|&size| size > 0), "no size of {text} may be 0");
    sizes.try_into().ok().with_context(|| format!("{text} is not {N} sizes"))
}

/// The two parts of a text such as `bert_12x768x128_b8`: what comes before the batch, and its size.
fn batch(text: &str) -> Result<(&str, usize)> {
    let (rest, batch) = text.rsplit_once("_b").context("a batch size")?;
    let [batch] = sizes(batch)?;
    Ok((rest, batch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow::runtime::Context;
    use std::process::{Command, Stdio};

    #[test]
    fn both_sides_have_the_same_rows() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/peer_torch.py");
        for small in [false, true] {
            let mut python = Command::new("python3");
            python.args([script, "--list"]).args(small.then_some("--small"));
            let output = match python.stderr(Stdio::inherit()).output() {
                Ok(output) => output,
                Err(error) => return eprintln!("skipped: python3 cannot be started: {error}"),
            };
            assert!(output.status.success(), "{python:?} failed");
            let listed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(listed.lines().collect::<Vec<_>>(), names(small));
        }
    }

    #[test]
    fn names_tell_sizes() {
        assert_eq!(sizes::<3>("12x768x128").unwrap(), [12, 768, 128]);
        assert_eq!(batch("bert_12x768x128_b8").unwrap(), ("bert_12x768x128", 8));
        for wrong in ["", "1x", "0x2x3", "1x2", "1x2x3x4", "axbxc"] {
            assert!(sizes::<3>(wrong).is_err(), "{wrong}");
        }
    }

    /// Every small row runs, twice, on every device there is, with the results of the host, and leaves
    /// nothing to the host.
    #[test]
    fn small_rows_give_the_same_everywhere() {
        let devices = Context::new().device_names();
        let mut rows: Vec<BenchRows> =
            devices.iter().map(|device| BenchRows::on(device, 1, true).unwrap()).collect();
        for name in names(true).iter().filter(|name| !name.starts_with("gemm.tf32")) {
            let mut answers = Vec::new();
            for rows in &mut rows {
                answers.push(rows.answer(name).unwrap());
                let again = rows.answer(name).unwrap();
                assert!(again["latency"]["min"].as_f64().unwrap() > 0.0, "{again}");
                assert!(again["throughput"]["min"].as_f64().unwrap() > 0.0, "{again}");
            }
            let number = |answer: &Value, key: &str| answer["check"][key].as_f64().unwrap();
            let norm = number(&answers[0], "norm");
            assert!(norm > 0.0, "{name}");
            let tolerance = if name.contains("bf16") { 1e-2 } else { 1e-4 };
            for (answer, device) in answers.iter().zip(&devices).skip(1) {
                let apart = (number(answer, "probe") - number(&answers[0], "probe")).abs();
                assert!(apart <= tolerance * norm, "{name} on {device}: {answer}");
                assert_eq!(answer["placement"]["fallbacks"], json!({}), "{name} on {device}");
                assert_eq!(answer["placement"]["bytes_per_run"], 0, "{name} on {device}");
            }
        }
    }

    #[test]
    fn rounding_that_does_not_happen_is_not_available() {
        let error = BenchRows::on("CPU:0", 1, true).unwrap().answer("gemm.tf32_48").unwrap_err();
        assert!(error.to_string().starts_with("not available"), "{error}");
    }

    #[test]
    fn names_of_no_row_are_errors() {
        let mut rows = BenchRows::on("CPU:0", 1, true).unwrap();
        for name in ["gemm.f32_0", "gemm.f32", "gemm", "nothing.at_all", "infer.bert_1x65x2_b1"] {
            assert!(rows.answer(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_that_says_why() {
        let error = BenchRows::on("TPU:3", 1, true).err().unwrap();
        let text = format!("{error:#}");
        assert!(text.contains("TPU:3") && text.contains("not compiled in"), "{text}");
        let error = BenchRows::on("no name", 1, true).err().unwrap();
        assert!(!format!("{error:#}").is_empty());
    }
}

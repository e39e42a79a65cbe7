//! `bench`: our speed, beside that of others in the same minutes.
//!
//! A *side* is a program that reads names of workloads from standard input and answers each with a
//! line of JSON (`bench/main.rs` says which). The sides take turns, so that whatever else the
//! machine does hits all of them. Ratios are of the shortest times.

mod gpu;
mod side;
mod spills;
mod table;

use crate::command::{self, BuildProfile};
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use side::BenchSide;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Be a side: names in, lines of JSON out.
    #[arg(long)]
    serve: bool,
    /// Threads of our side.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The folder of the SavedModels `mlp`, `mobilenetv2`, `resnet50`, `bert_base`, `lstm`, `big500`.
    #[arg(long)]
    models: Option<PathBuf>,
    /// Another side, such as `tf=python peer.py --threads 1`: a program that speaks the protocol of
    /// the worker (`bench/main.rs`). May be given more than once.
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<String>,
    /// Only workloads whose names begin with one of these, with commas between them.
    #[arg(long, default_value = "")]
    only: String,
    /// Number of turns of each side.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write all figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure a device, beside PyTorch on the same machine.
    Gpu(gpu::Flags),
    /// Print the figures of a run as a Markdown table, each row beside the fastest side.
    Table(table::Flags),
}

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    match &flags.verb {
        Some(Verb::Gpu(flags)) => return gpu::run(root, flags),
        Some(Verb::Table(flags)) => return table::run(flags),
        None => {}
    }
    // Some workloads start the command line.
    let program =
        command::build_workers(root, "bench", &["bench", "ferroflow"], BuildProfile::Release)?;
    if flags.serve {
        return command::run(worker(&program, flags));
    }
    match spills::find(&program)? {
        Some(functions) if functions.is_empty() => {}
        Some(functions) => {
            println!(
                "{} functions with loops that store their sums on the stack:",
                functions.len()
            );
            functions.iter().for_each(|name| println!("    {name}"));
        }
        None => println!("skipped: sums on the stack, as there is no objdump"),
    }
    let mut list = Command::new(&program);
    list.arg("--list");
    let names = chosen(side::names(list)?, &flags.only)?;
    let mut sides = vec![BenchSide::start("ours", worker(&program, flags))?];
    for peer in &flags.peers {
        let (name, text) = peer.split_once('=').context("a peer is NAME=COMMAND")?;
        let mut words = text.split_whitespace();
        let mut command = Command::new(words.next().context("a peer is NAME=COMMAND")?);
        command.args(words);
        sides.push(BenchSide::start(name, command)?);
    }
    let mut rows = Vec::new();
    for name in names {
        let row = measure(&mut sides, &name, flags.rounds)?;
        println!("{}", text(&row));
        rows.push(row);
    }
    if let Some(path) = &flags.json {
        std::fs::write(path, format!("{:#}\n", Value::Array(rows)))
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn worker(program: &Path, flags: &Flags) -> Command {
    let mut command = Command::new(program);
    command.args(["--threads", &flags.threads.to_string()]);
    if let Some(models) = &flags.models {
        command.arg("--models").arg(models);
    }
    command
}

/// The names that begin with one of `only`, which has commas between them.
fn chosen(names: Vec<String>, only: &str) -> Result<Vec<String>> {
    let is_chosen =
        |name: &String| only.is_empty() || only.split(',').any(|begin| name.starts_with(begin));
    let names: Vec<String> = names.into_iter().filter(is_chosen).collect();
    ensure!(!names.is_empty(), "no workload begins with {only}");
    Ok(names)
}

/// Figures of a workload on all sides. Ratios above 1 say that ours is the faster.
fn measure(sides: &mut [BenchSide], name: &str, rounds: usize) -> Result<Value> {
    let mut answers: Vec<Vec<Value>> = sides.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds.max(1) {
        for (side, answers) in sides.iter_mut().zip(&mut answers) {
            if answers.last().is_none_or(|last| last["error"].is_null()) {
                answers.push(side.ask(name)?);
            }
        }
    }
    let ours = seconds(&answers[0]);
    let mut row = json!({ "name": name, "sides": {} });
    for (side, answers) in sides.iter().zip(&answers) {
        let last = answers.last().cloned().unwrap_or(Value::Null);
        let mut entry = json!({
            "error": last["error"], "check": last["check"], "peak_rss_mb": last["peak_rss_mb"],
        });
        if let Some(min) = seconds(answers) {
            entry["seconds"] = json!(min);
            entry["ratio"] = json!(ours.map(|ours| min / ours));
        }
        let rooflines = answers.iter().filter_map(|answer| answer["roofline"].as_f64());
        if let Some(part) = rooflines.reduce(f64::max) {
            entry["roofline"] = json!(part);
        }
        row["sides"][&side.name] = entry;
    }
    Ok(row)
}

/// The shortest time of a side, if it had no error.
fn seconds(answers: &[Value]) -> Option<f64> {
    answers
        .iter()
        .map(|answer| {
            let unit = match answer["unit"].as_str()? {
                "ns" => 1e-9,
                "us" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                _ => return None,
            };
            Some(answer["min"].as_f64()? * unit)
        })
        .try_fold(f64::INFINITY, |least, time| Some(least.min(time?)))
}

fn text(row: &Value) -> String {
    let mut text = format!("{:34}", row["name"].as_str().unwrap_or(""));
    let Some(sides) = row["sides"].as_object() else { return text };
    let ours = sides.iter().filter(|(name, _)| *name == "ours");
    for (name, side) in ours.chain(sides.iter().filter(|(name, _)| *name != "ours")) {
        let time = match side["seconds"].as_f64() {
            Some(seconds) => duration(seconds),
            None => side["error"].as_str().unwrap_or("no figure").to_string(),
        };
        text.push_str(&format!("  {name} {time}"));
        if let Some(ratio) = side["ratio"].as_f64().filter(|_| name != "ours") {
            text.push_str(&format!(" (×{ratio:.2})"));
        }
        if let Some(part) = side["roofline"].as_f64() {
            text.push_str(&format!(" (at {:.0} % of the roofline)", 100.0 * part));
        }
        if let Some(peak) = side["peak_rss_mb"].as_f64() {
            text.push_str(&format!(" {peak:.1} MB"));
        }
    }
    text + &disagreement(sides)
}

/// Results that are not the same on all sides.
fn disagreement(sides: &serde_json::Map<String, Value>) -> String {
    let checks: Vec<f64> = sides.values().filter_map(|side| side["check"].as_f64()).collect();
    let (low, high) =
        checks.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), check| {
            (low.min(*check), high.max(*check))
        });
    match checks.len() > 1 && high - low > 1e-4 * high.abs().max(1e-6) {
        true => format!("  RESULTS DIFFER: {checks:?}"),
        false => String::new(),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.2} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    #[test]
    fn devices_have_flags_of_their_own() {
        let line = |words: &str| Line::try_parse_from(words.split(' ')).map(|line| line.flags);
        assert!(line("bench").unwrap().verb.is_none());
        let flags = line("bench --only mm. --rounds 2").unwrap();
        assert!(flags.verb.is_none() && flags.only == "mm." && flags.rounds == 2);
        for good in ["bench gpu", "bench gpu --device WGPU:0 --small --modes eager,compile"] {
            assert!(line(good).unwrap().verb.is_some(), "{good}");
        }
        for bad in ["bench --small", "bench gpu --peer tf=x", "bench gpu --alone --modes eager"] {
            assert!(line(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn workloads_are_chosen_by_how_they_begin() {
        let names = || ["mm.a", "mm.b", "ew.a"].map(String::from).to_vec();
        assert_eq!(chosen(names(), "").unwrap(), names());
        assert_eq!(chosen(names(), "mm.b,ew").unwrap(), ["mm.b", "ew.a"]);
        assert!(chosen(names(), "red").is_err());
    }

    #[test]
    fn the_shortest_time_counts_unless_there_was_an_error() {
        let answers = [json!({ "unit": "us", "min": 3.0 }), json!({ "unit": "ms", "min": 0.002 })];
        assert!((seconds(&answers).unwrap() - 2e-6).abs() < 1e-12);
        assert_eq!(seconds(&[json!({ "error": "no" })]), None);
    }
}

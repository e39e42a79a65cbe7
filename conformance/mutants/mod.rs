//! Mutated op calls: hostile attributes, shapes, dtypes and values. A call may give any result or
//! error; a panic is a fault here, and the process that drives the worker sees aborts and hangs.
//!
//! The calls begin as recorded cases of `tests/ops`, or as calls that a record alone suggests. They are
//! made eagerly, and as the one node of a function.

mod base;
mod hook;
mod mutate;
#[path = "../../fuzz/programs/rng.rs"]
#[allow(dead_code, reason = "a fuzzer of programs makes more choices")]
mod rng;
mod run;

use crate::ops::{self, ScratchFolder};
use anyhow::{Context as _, Result};
use base::{CallSource, HostileCall};
use ferroflow::runtime::Context;
use mutate::mutate;
use rng::FuzzRng;
use serde_json::{Value, json};

/// Calls that one context makes; a later one begins without the state they leave.
const CALLS_PER_CONTEXT: u64 = 50;

/// Runs mutants `from` to `to` of the op that a job names, with its recorded calls from the file of
/// the job if there is one.
pub(crate) fn run(job: &Value, report: &mut dyn FnMut(Value) -> Result<()>) -> Result<()> {
    let number = |key: &str| job[key].as_u64().with_context(|| format!("a number `{key}`"));
    let op = job["op"].as_str().context("an op")?;
    let recorded = job["path"].as_str().filter(|path| !path.is_empty());
    let base = CallSource::new(op, recorded.map(str::as_ref))?;
    let (seed, from, to) = (number("seed")?, number("from")?, number("to")?);
    hook::keep_panics();
    let _scratch = ScratchFolder::enter()?;
    let mut context: Option<Context> = None;
    for number in from..to {
        if number % CALLS_PER_CONTEXT == 0 {
            context = None;
        }
        let context = context.get_or_insert_with(ops::context);
        let mut rng = FuzzRng::new(seed ^ ops_hash(op), number);
        let Some(sequence) = base.choose(&mut rng, context) else { break };
        let sequence = mutated(sequence, &mut rng);
        let mode = rng.pick(&run::MODES);
        report(json!({ "begin": number, "text": format!("{mode:?} {}", text(&sequence)) }))?;
        run::run(context, mode, &sequence);
        if let Some(panic) = hook::taken() {
            report(json!({ "panic": panic, "number": number }))?;
        }
    }
    Ok(())
}

/// Changes a call or two of a sequence, each in a few respects.
fn mutated(mut sequence: Vec<HostileCall>, rng: &mut FuzzRng) -> Vec<HostileCall> {
    let place = rng.below(sequence.len());
    for _ in 0..rng.pick(&[1, 1, 2, 3]) {
        mutate(&mut sequence[place], rng);
    }
    sequence
}

/// A number of an op's name, so that ops have mutants of their own.
fn ops_hash(op: &str) -> u64 {
    op.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn text(sequence: &[HostileCall]) -> String {
    let calls: Vec<String> = sequence.iter().map(ToString::to_string).collect();
    let mut text = calls.join("; ");
    if text.len() > 4000 {
        let end = (0..=4000).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

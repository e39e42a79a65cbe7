//! Schedules of models: at random, and by probabilistic concurrency testing (PCT), which finds each fault that
//! takes few switches at certain moments with a probability that is known.

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};
use std::env;

/// The number of moments at which PCT switches threads, the first choice included.
const PCT_DEPTH: usize = 3;

/// The stack of a thread of a model: compilation of a function takes more than shuttle's own.
const STACK_BYTES: usize = 1 << 21;

/// Runs a model under so many schedules of each kind. A failure prints its schedule; the same seed finds it
/// again. A thread that has a scope of shuttle's must not open another one inside: the first one to end wakes it
/// in the other.
///
/// `FERROFLOW_SCHEDULES` multiplies the number of schedules, `FERROFLOW_SEED` chooses others.
///
/// # Panics
///
/// When the model does under a schedule, and when its threads wait for each other.
pub fn explore(n_schedules: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    let n_schedules = n_schedules * number("FERROFLOW_SCHEDULES").unwrap_or(1) as usize;
    let seed = number("FERROFLOW_SEED").unwrap_or(0);
    run(RandomScheduler::new_from_seed(seed, n_schedules), model.clone());
    run(PctScheduler::new_from_seed(seed, PCT_DEPTH, n_schedules), model);
}

fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(model);
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, and not {text}")))
}

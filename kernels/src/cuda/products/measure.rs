//! The fastest of several algorithms for a product, by the device's own clock.

use super::{
    Opened,
    library::{MatmulAlgorithm, MatmulPlan},
    problem::{LibraryEpilogue, LibraryProblem},
};
use crate::{
    cuda::memory::CudaMemory,
    error::{Error, Result},
};
use cudarc::driver::sys::CUevent_flags;

/// Products of fewer multiplications take about as long as starting them, by any algorithm.
const FEWEST_MULTIPLICATIONS: usize = 256 * 256 * 256;

/// Number of runs of each algorithm while its time is taken; once more before, to be loaded.
const RUNS: usize = 3;

/// Whether algorithms for a problem differ by more than it takes to start one.
pub(super) fn is_worth_it(problem: &LibraryProblem) -> bool {
    problem.multiplications() >= FEWEST_MULTIPLICATIONS
}

/// The fastest of some algorithms, on matrices of nothing in particular; the first, which the library
/// thinks the fastest, where there is no room for such. Those that fail are left out.
///
/// # Errors
///
/// When the device fails.
pub(super) fn fastest(
    opened: &Opened,
    problem: &LibraryProblem,
    plan: &MatmulPlan,
    algorithms: &[MatmulAlgorithm],
) -> Result<Option<MatmulAlgorithm>> {
    let [first, second, result] = problem.sizes();
    let mut scratch = Vec::new();
    for bytes in [first, second, result, problem.rows * problem.element.size()] {
        match CudaMemory::new(&opened.driver, bytes) {
            Ok(memory) => scratch.push(memory),
            Err(Error::OutOfMemory { .. }) => return Ok(algorithms.first().copied()),
            Err(error) => return Err(error),
        }
    }
    let mut best: Option<(f32, MatmulAlgorithm)> = None;
    for algorithm in algorithms {
        let Some(time) = time(opened, problem, plan, algorithm, &scratch)? else { continue };
        if best.is_none_or(|(least, _)| time < least) {
            best = Some((time, *algorithm));
        }
    }
    Ok(best.map(|(_, algorithm)| algorithm))
}

/// Milliseconds that an algorithm takes; `None` where it cannot compute the product after all.
fn time(
    opened: &Opened,
    problem: &LibraryProblem,
    plan: &MatmulPlan,
    algorithm: &MatmulAlgorithm,
    scratch: &[CudaMemory],
) -> Result<Option<f32>> {
    let driver = &opened.driver;
    let [first, second, result, bias] = [0, 1, 2, 3].map(|at: usize| &scratch[at]);
    let bias = (problem.epilogue != LibraryEpilogue::None).then_some(bias);
    let way = (plan, algorithm);
    let run = || opened.multiply(0, problem, way, [first, second, result], bias);
    if run().is_err() {
        // What is lost stays so, and is told; anything else is the algorithm's own.
        return driver.ready().map(|()| None);
    }
    let mark = || {
        let event = driver.main.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        event.map_err(|error| driver.failed(error))
    };
    let start = mark()?;
    for _ in 0..RUNS {
        run()?;
    }
    let end = mark()?;
    start.elapsed_ms(&end).map(Some).map_err(|error| driver.failed(error))
}

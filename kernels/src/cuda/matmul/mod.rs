//! Matmuls by cuBLASLt, NVIDIA's library, where it is found; the programs of `shader` make
//! them elsewhere.
//!
//! [`problem`] tells which calls are products and how the library sees them, [`library`] talks to
//! it, [`measure`] finds the fastest of several algorithms. That happens when a call is compiled: a
//! kernel has its algorithm, and running it asks nothing. What is chosen for a problem is kept by
//! the device.

mod epilogue;
mod library;
mod measure;
mod multiply;
mod problem;
#[cfg(test)]
mod tests;

use super::{driver::Driver, memory::CudaMemory};
use crate::{
    device::{OpCall, Then},
    error::{Error, Result},
    kernel::{Io, Kernel},
    schedule::MOST_LANES,
};
use cudarc::cublaslt::result::CublasError;
use library::{CublasLibrary, MatmulAlgorithm, MatmulPlan};
use parking_lot::Mutex;
use problem::{LibraryProblem, MatmulNode};
use std::{
    collections::HashMap,
    env,
    sync::{Arc, OnceLock},
};

/// Bytes that algorithms may use besides their matrices: what NVIDIA advises for Hopper. Matmuls of
/// one queue use the same, one after the other.
const WORKSPACE: usize = 32 << 20;

/// The algorithms that are compared.
const MOST_CANDIDATES: usize = 8;

/// The matmuls of one device.
#[derive(Debug, Default)]
pub(super) struct MatmulLibrary(OnceLock<Result<Arc<Opened>, String>>);

/// The library, opened for a device.
#[derive(Debug)]
pub(super) struct Opened {
    driver: Arc<Driver>,
    library: CublasLibrary,
    /// For each queue, held while a matmul is started: it may be several pieces of work, of which
    /// the first leave parts of sums to the next.
    workspaces: Vec<Mutex<CudaMemory>>,
    /// Whether algorithms are compared by running them.
    measures: bool,
    /// Algorithm found for each problem; none where the library cannot compute it.
    chosen: Mutex<HashMap<LibraryProblem, Option<MatmulAlgorithm>>>,
}

impl MatmulLibrary {
    /// The kernel of a call that is a matmul the library can compute.
    ///
    /// # Errors
    ///
    /// When the call does not fit its op, or the device fails.
    pub(super) fn kernel(
        &self,
        driver: &Arc<Driver>,
        call: &OpCall<'_>,
    ) -> Result<Option<Arc<dyn Kernel>>> {
        self.compiled(driver, MatmulNode::of(call)?)
    }

    /// The kernel of a matmul and its epilogue, if the library can do both.
    ///
    /// # Errors
    ///
    /// When the call does not fit its op, or the device fails.
    pub(super) fn with_epilogue(
        &self,
        driver: &Arc<Driver>,
        call: &OpCall<'_>,
        then: &Then<'_>,
    ) -> Result<Option<Arc<dyn Kernel>>> {
        self.compiled(driver, MatmulNode::with_epilogue(call, then)?)
    }

    fn compiled(
        &self,
        driver: &Arc<Driver>,
        product: Option<MatmulNode>,
    ) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(product) = product else { return Ok(None) };
        let Ok(opened) = self.open(driver) else { return Ok(None) };
        driver.ready()?;
        let plan = MatmulPlan::new(&product.problem).map_err(|error| opened.failed(error))?;
        let Some(algorithm) = opened.algorithm(&product.problem, &plan)? else { return Ok(None) };
        let opened = opened.clone();
        Ok(Some(Arc::new(Multiply { opened, product, plan, algorithm })))
    }

    /// The library, opened when it is first asked for.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub(super) fn open(&self, driver: &Arc<Driver>) -> Result<&Arc<Opened>, &str> {
        let opened = self.0.get_or_init(|| Opened::new(driver).map(Arc::new));
        opened.as_ref().map_err(String::as_str)
    }
}

impl Opened {
    fn new(driver: &Arc<Driver>) -> Result<Opened, String> {
        if !library::is_present() {
            return Err("cuBLASLt was not found".into());
        }
        driver.ready().map_err(|error| error.to_string())?;
        let library =
            CublasLibrary::open().map_err(|why| format!("cuBLASLt cannot be used: {why}"))?;
        let workspace = |_| CudaMemory::new(driver, WORKSPACE).map(Mutex::new);
        let workspaces: Result<Vec<Mutex<CudaMemory>>> = (0..=MOST_LANES).map(workspace).collect();
        Ok(Opened {
            driver: driver.clone(),
            library,
            workspaces: workspaces.map_err(|error| error.to_string())?,
            measures: env::var_os("FERROFLOW_MEASURE_PRODUCTS").is_none_or(|value| value != "0"),
            chosen: Mutex::default(),
        })
    }

    /// The algorithm for a problem.
    fn algorithm(
        &self,
        problem: &LibraryProblem,
        plan: &MatmulPlan,
    ) -> Result<Option<MatmulAlgorithm>> {
        if let Some(&known) = self.chosen.lock().get(problem) {
            return Ok(known);
        }
        let most = if self.measures && measure::is_worth_it(problem) { MOST_CANDIDATES } else { 1 };
        let found = self.library.candidates(plan, most, WORKSPACE);
        let found = found.map_err(|error| self.failed(error))?;
        let best = match found[..] {
            [] | [_] => found.first().copied(),
            _ => measure::fastest(self, problem, plan, &found)?,
        };
        // Another thread may have measured at the same time: all are to compute the same.
        Ok(*self.chosen.lock().entry(problem.clone()).or_insert(best))
    }

    fn failed(&self, error: CublasError) -> Error {
        let reason = format!("cuBLASLt: {error}").into();
        Error::Device { device: self.driver.name.to_string(), reason }
    }
}

/// A compiled matmul.
struct Multiply {
    opened: Arc<Opened>,
    product: MatmulNode,
    plan: MatmulPlan,
    algorithm: MatmulAlgorithm,
}

impl Kernel for Multiply {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (driver, problem) = (&self.opened.driver, &self.product.problem);
        let input = |position| CudaMemory::of(driver, io.device_input(position), 0);
        let [first, second] = self.product.factors;
        let operands =
            [input(first)?, input(second)?, CudaMemory::of(driver, io.device_output(0), 0)?];
        let bias = self.product.bias.map(input).transpose()?;
        let way = (&self.plan, &self.algorithm);
        self.opened.multiply(io.queue(), problem, way, operands, bias)
    }
}

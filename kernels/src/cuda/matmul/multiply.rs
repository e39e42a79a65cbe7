//! Running a matmul.

#![expect(unsafe_code, reason = "the library is given memory by its address")]

use super::{
    Opened, WORKSPACE,
    library::{ALIGNMENT, MatmulAlgorithm, MatmulPlan, Operands},
    problem::{LibraryEpilogue, LibraryProblem},
};
use crate::{
    cuda::memory::CudaMemory,
    error::{Error, Result},
};

impl Opened {
    /// Has a matmul computed on a queue: factors, result and bias are in memory of its sizes.
    ///
    /// # Errors
    ///
    /// When there is less memory, or the device or the library fails.
    pub(super) fn multiply(
        &self,
        queue: usize,
        problem: &LibraryProblem,
        (plan, algorithm): (&MatmulPlan, &MatmulAlgorithm),
        [first, second, result]: [&CudaMemory; 3],
        bias: Option<&CudaMemory>,
    ) -> Result<()> {
        self.driver.ready()?;
        for (memory, size) in [first, second, result].into_iter().zip(problem.sizes()) {
            memory.at_least(size)?;
        }
        if let Some(bias) = bias {
            bias.at_least(problem.rows * problem.element.size())?;
        }
        debug_assert_eq!(bias.is_some(), problem.epilogue != LibraryEpilogue::None);
        let address = |memory: &CudaMemory| *memory.address();
        let workspace = self.workspaces[queue].lock();
        let memory = Operands {
            first: address(first),
            second: address(second),
            result: address(result),
            bias: bias.map(address),
            workspace: (address(&workspace), WORKSPACE),
        };
        let all = [memory.first, memory.second, memory.result, memory.workspace.0];
        if all.into_iter().chain(memory.bias).any(|address| address % ALIGNMENT != 0) {
            let reason = format!("memory is not aligned to {ALIGNMENT} bytes").into();
            return Err(Error::Device { device: self.driver.name.to_string(), reason });
        }
        let stream = self.driver.queue(queue).cu_stream();
        // SAFETY: the context is current; addresses are aligned and sizes are as was just seen. Memory
        // is given back in the order of the main queue, where this product is or will be. The
        // workspace is held, so that products of one queue use it one after the other; lanes are those
        // of one graph at a time, as graphs run in the main queue. Who runs a kernel gives outputs that
        // nothing else uses.
        let outcome = unsafe { self.library.multiply(plan, algorithm, memory, stream) };
        outcome.map_err(|error| self.failed(error))
    }
}

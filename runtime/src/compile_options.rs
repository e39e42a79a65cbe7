//! Switches of the compiler.

use std::sync::OnceLock;

/// Switches of the compiler. All passes are on by default; a program returns the same results
/// whichever are off, which is what tests compare.
///
/// ```
/// use ferroflow_runtime::{CompileOptions, Context, ContextOptions};
///
/// let compile = CompileOptions { fuse: false, ..CompileOptions::default() };
/// let context = Context::with_options(ContextOptions { compile, ..ContextOptions::default() });
/// assert!(!context.compile_options().fuse);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileOptions {
    /// Computes calls with known inputs once, when a function is compiled (constant folding).
    pub fold: bool,
    /// Outlines nodes of data-dependent shapes, and compiles them once the shapes are there.
    pub outline: bool,
    /// Moves what does not change between the rounds of a loop out of it, and removes the variables that nothing
    /// needs.
    pub hoist: bool,
    /// Merges equal calls (common subexpression elimination).
    pub cse: bool,
    /// Merges chains of elementwise calls into one kernel.
    pub fuse: bool,
    /// Recognises attention.
    pub attention: bool,
    /// Merges what comes before and after a matmul, a convolution or a reduction into its kernel, and elementwise
    /// calls of which several results are read into one.
    pub regions: bool,
    /// Makes regions and attention that are not profitable, as small ones, too: for tests.
    pub small_regions: bool,
    /// Starts reductions of replicas early, and waits for them late, so that the program runs meanwhile.
    pub overlap: bool,
    /// Compiles arithmetic, loops and branches on single numbers to register code.
    pub scalar: bool,
    /// Lets values that are never in use at the same time share memory.
    pub reuse: bool,
    /// Lets kernels and ops write over operands that are dead after them.
    pub donate: bool,
    /// Checks graphs between the passes, and the finished plan against the graph. A plan that fails
    /// is an internal error that names function, step and value.
    pub verify: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            fold: true,
            outline: true,
            hoist: true,
            cse: true,
            fuse: true,
            attention: true,
            regions: true,
            small_regions: false,
            overlap: true,
            scalar: true,
            reuse: true,
            donate: true,
            verify: verifies_by_default(),
        }
    }
}

/// Whether verifiers run where nothing else is asked: in debug builds, and where the environment
/// variable `FERROFLOW_VERIFY` is `1`.
fn verifies_by_default() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    let asked = || std::env::var_os("FERROFLOW_VERIFY").is_some_and(|value| value == "1");
    cfg!(debug_assertions) || *ASKED.get_or_init(asked)
}

//! The kernel of a call, before a dialect prints it.

use super::{ShaderDialect, builder::KernelTree};
use ferroflow_ir::DType;

/// A kernel for one call: its buffers, its statements and the number of its invocations.
#[derive(Debug, Clone)]
pub struct Shader {
    pub(crate) inputs: Vec<(usize, DType)>,
    pub(crate) tables: Vec<Vec<u32>>,
    pub(crate) outputs: Vec<DType>,
    /// Whether 16-bit floats are stored as such in WGSL, too.
    pub(crate) halves: bool,
    pub(crate) body: KernelBody,
    pub(crate) count: usize,
    /// Numbers `n` that one invocation takes in turn, where invocations know nothing of each other.
    pub(crate) turns: usize,
    /// Arrays of floats that the invocations of a workgroup share, with their lengths. Where there are
    /// any, workgroups are of [`super::dialect::WORKGROUP`] invocations, and the body knows
    /// `workgroup` and `local` instead of `n`; `barrier_()` waits for the whole workgroup.
    pub(crate) shared: Vec<(&'static str, usize)>,
    /// Arrays of floats that each invocation has for itself, with their lengths. Loops over them are
    /// unrolled, so that compilers see where in an array each step is.
    pub(crate) arrays: Vec<(String, usize)>,
}

impl Shader {
    /// The inputs of the call that the kernel reads, in the order of its bindings (`in0`, `in1`, …),
    /// and their dtypes.
    pub fn inputs(&self) -> &[(usize, DType)] {
        &self.inputs
    }

    /// The constants that depend on the call alone and are too many for the source; they are bound
    /// after the inputs (`table0`, `table1`, …).
    pub fn tables(&self) -> &[Vec<u32>] {
        &self.tables
    }

    /// The dtypes of the outputs that the kernel writes; they are bound last (`out0`, `out1`, …).
    pub fn outputs(&self) -> &[DType] {
        &self.outputs
    }

    /// The number of invocations; a kernel of none has nothing to compute.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// The statements of an invocation: a tree of the builder, or a text of a kernel for CUDA alone.
#[derive(Debug, Clone)]
pub(crate) enum KernelBody {
    Tree(KernelTree),
    Text(String),
}

impl KernelBody {
    /// The text in a dialect, in so many blocks, where the elements of some buffers are 16-bit floats
    /// in memory.
    pub(super) fn print(&self, dialect: ShaderDialect, half: &[String], depth: usize) -> String {
        match self {
            KernelBody::Tree(tree) => tree.print(dialect, half, depth),
            KernelBody::Text(text) => text.clone(),
        }
    }
}

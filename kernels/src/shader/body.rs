//! Bodies of kernels: trees of the builder, or texts of a kernel for CUDA alone.

use super::{ShaderDialect, builder::KernelTree};

/// The statements of an invocation.
#[derive(Debug, Clone)]
pub(crate) enum KernelBody {
    Tree(KernelTree),
    Text(String),
}

impl From<KernelTree> for KernelBody {
    fn from(tree: KernelTree) -> KernelBody {
        KernelBody::Tree(tree)
    }
}

impl From<String> for KernelBody {
    fn from(text: String) -> KernelBody {
        KernelBody::Text(text)
    }
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

//! Bodies of kernels: trees of the builder, or texts in the common language.

use super::{ShaderDialect, builder::KernelTree, dialect::halves};

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
        match (self, dialect) {
            (KernelBody::Tree(tree), dialect) => tree.print(dialect, half, depth),
            (KernelBody::Text(text), ShaderDialect::Cuda) => text.clone(),
            (KernelBody::Text(text), ShaderDialect::Wgsl) => {
                halves::narrowed(&text.replace("unroll_ ", ""), half)
            }
        }
    }
}

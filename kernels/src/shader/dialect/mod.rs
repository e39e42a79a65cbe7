//! The texts around bodies, and the grids they are run in.

mod cuda;
mod matrices;
mod narrow;
mod wgsl;

use super::Shader;

/// Invocations of a workgroup that shares memory.
pub(super) const WORKGROUP: usize = 256;

/// A language of shaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShaderDialect {
    /// WebGPU's.
    Wgsl,
    /// NVIDIA's C++.
    Cuda,
}

/// Numbers of workgroups along two dimensions.
pub type Grid = (u32, u32);

impl ShaderDialect {
    /// The whole text of a shader.
    pub fn print(self, shader: &Shader) -> String {
        match self {
            ShaderDialect::Wgsl => wgsl::print(shader),
            ShaderDialect::Cuda => cuda::print(shader),
        }
    }

    /// The name of the entry point.
    pub fn entry(self) -> &'static str {
        match self {
            ShaderDialect::Wgsl => "main",
            ShaderDialect::Cuda => "entry",
        }
    }

    /// Invocations that start together.
    pub fn group(self, shader: &Shader) -> usize {
        match self {
            _ if !shader.shared.is_empty() => WORKGROUP,
            ShaderDialect::Wgsl => 64,
            ShaderDialect::Cuda => 256,
        }
    }

    /// Groups along one dimension of a grid; more make a second one.
    fn most_groups(self) -> usize {
        match self {
            ShaderDialect::Wgsl => 65_535,
            ShaderDialect::Cuda => i32::MAX as usize,
        }
    }

    /// The grid that has the invocations of a shader at least.
    pub fn grid(self, shader: &Shader) -> Grid {
        let groups = shader.count.div_ceil(self.group(shader) * shader.turns).max(1);
        let rows = groups.div_ceil(self.most_groups());
        (groups.div_ceil(rows) as u32, rows as u32)
    }
}

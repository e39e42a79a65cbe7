//! The texts around bodies: WGSL.

use super::{Shader, math};
use std::fmt::Write;

/// A language of shaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// WebGPU's.
    Wgsl,
}

/// Invocations that start together.
pub(crate) const GROUP: usize = 64;

/// Groups along one dimension of a grid; more make a second one.
pub(crate) const MOST_GROUPS: usize = 65_535;

impl Dialect {
    /// The whole text of a shader.
    pub(crate) fn print(self, shader: &Shader) -> String {
        match self {
            Dialect::Wgsl => wgsl(shader),
        }
    }

    fn function(self, function: &math::Function) -> String {
        match self {
            Dialect::Wgsl => {
                let args: Vec<String> =
                    function.args.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
                let math::Function { name, result, body, .. } = function;
                format!("fn {name}({}) -> {result} {{\n{body}}}\n", args.join(", "))
            }
        }
    }
}

/// The grid that has `count` invocations at least.
pub(crate) fn grid(count: usize) -> (u32, u32) {
    let groups = count.div_ceil(GROUP).max(1);
    let rows = groups.div_ceil(MOST_GROUPS);
    (groups.div_ceil(rows) as u32, rows as u32)
}

fn wgsl(shader: &Shader) -> String {
    let mut text = String::new();
    for (position, (_, word)) in shader.inputs.iter().enumerate() {
        let storage = word.storage();
        let _ = writeln!(
            text,
            "@group(0) @binding({position}) var<storage, read> in{position}: array<{storage}>;"
        );
    }
    for (index, word) in shader.outputs.iter().enumerate() {
        let (binding, storage) = (shader.inputs.len() + index, word.storage());
        let _ = writeln!(
            text,
            "@group(0) @binding({binding}) var<storage, read_write> out{index}: array<{storage}>;"
        );
    }
    for function in math::needed(&shader.body) {
        text.push_str(&Dialect::Wgsl.function(function));
    }
    let (width, count) = (grid(shader.count).0 as usize * GROUP, shader.count);
    let body = &shader.body;
    let _ = write!(
        text,
        "@compute @workgroup_size({GROUP})\n\
         fn main(@builtin(global_invocation_id) place: vec3<u32>) {{\n\
         let n = place.x + place.y * {width}u;\n\
         if (n < {count}u) {{\n{body}}}\n}}\n"
    );
    text
}

//! WGSL.

use super::{
    super::{Shader, math, scalar_type},
    ShaderDialect,
};
use ferroflow_ir::DType;
use std::fmt::Write;

/// Source that kernels need whose invocations exchange values. naga knows of no directive that
/// would enable it.
const SUBGROUPS: &str = "\
fn subgroup_sum_(x: f32) -> f32 { return subgroupAdd(x); }
";

/// The names of their positions.
const PLACES: &str = ", @builtin(subgroup_invocation_id) subgroup_lane: u32, \
    @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32";

pub(super) fn print(shader: &Shader) -> String {
    let mut text = String::new();
    let is_half = |dtype: &DType| shader.halves && *dtype == DType::F16;
    let named = |prefix: &str, dtypes: &[DType]| -> Vec<String> {
        let halves = dtypes.iter().enumerate().filter(|(_, dtype)| is_half(dtype));
        halves.map(|(position, _)| format!("{prefix}{position}")).collect()
    };
    let read: Vec<DType> = shader.inputs.iter().map(|&(_, dtype)| dtype).collect();
    let mut half = named("in", &read);
    half.extend(named("out", &shader.outputs));
    if !half.is_empty() {
        text.push_str("enable f16;\n");
    }
    let storage =
        |name: &String, word: &'static str| if half.contains(name) { "f16" } else { word };
    let depth = if shader.turns == 1 { 2 } else { 3 };
    let source = shader.body.print(ShaderDialect::Wgsl, &half, depth);
    let subgroups = source.contains("subgroup_");
    if subgroups {
        text.push_str(SUBGROUPS);
    }
    for (position, &dtype) in read.iter().enumerate() {
        let name = format!("in{position}");
        let storage = storage(&name, scalar_type::storage(dtype));
        let _ = writeln!(
            text,
            "@group(0) @binding({position}) var<storage, read> {name}: array<{storage}>;"
        );
    }
    for index in 0..shader.tables.len() {
        let binding = shader.inputs.len() + index;
        let _ = writeln!(
            text,
            "@group(0) @binding({binding}) var<storage, read> table{index}: array<u32>;"
        );
    }
    for (index, &dtype) in shader.outputs.iter().enumerate() {
        let binding = shader.inputs.len() + shader.tables.len() + index;
        let name = format!("out{index}");
        let storage = storage(&name, scalar_type::storage(dtype));
        let _ = writeln!(
            text,
            "@group(0) @binding({binding}) var<storage, read_write> {name}: array<{storage}>;"
        );
    }
    for math::ShaderFunction { name, args, result, body } in math::needed(&source) {
        let args: Vec<String> = args.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        let _ = write!(text, "fn {name}({}) -> {result} {{\n{body}}}\n", args.join(", "));
    }
    for (name, length) in &shader.shared {
        let _ = writeln!(text, "var<workgroup> {name}: array<f32, {length}>;");
    }
    let dialect = ShaderDialect::Wgsl;
    let (group, entry) = (dialect.group(shader), dialect.entry());
    let (width, rows) = dialect.grid(shader);
    let mut body = String::new();
    for (name, length) in &shader.arrays {
        let _ =
            writeln!(body, "{:indent$}var {name}: array<f32, {length}>;", "", indent = depth * 4);
    }
    body += &source;
    let count = shader.count;
    let _ = match &shader.shared[..] {
        [] if shader.turns > 1 => write!(
            text,
            "@compute @workgroup_size({group})\n\
             fn {entry}(@builtin(global_invocation_id) place: vec3<u32>) {{\n    \
             for (var turn = 0u; turn < {turns}u; turn++) {{\n        \
             let n = place.x + place.y * {row}u + turn * {all}u;\n        \
             if (n < {count}u) {{\n{body}        }}\n    }}\n}}\n",
            turns = shader.turns,
            row = width as usize * group,
            all = width as usize * rows as usize * group,
        ),
        [] => write!(
            text,
            "@compute @workgroup_size({group})\n\
             fn {entry}(@builtin(global_invocation_id) place: vec3<u32>) {{\n    \
             let n = place.x + place.y * {}u;\n    \
             if (n < {count}u) {{\n{body}    }}\n}}\n",
            width as usize * group
        ),
        _ => write!(
            text,
            "fn barrier_() {{ workgroupBarrier(); }}\n\
             @compute @workgroup_size({group})\n\
             fn {entry}(@builtin(workgroup_id) place: vec3<u32>, \
             @builtin(local_invocation_index) local: u32{}) {{\n    \
             let workgroup = place.x + place.y * {width}u;\n    \
             if (workgroup < {}u) {{\n{body}    }}\n}}\n",
            if subgroups { PLACES } else { "" },
            count / group
        ),
    };
    text
}

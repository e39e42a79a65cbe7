//! CUDA C++. What the common language calls by another name is defined before the text.

use super::{
    super::{Shader, math, scalar_type},
    ShaderDialect, matrices, narrow,
};
use std::{borrow::Cow, fmt::Write};

/// The names of the common language. Conversions to whole numbers saturate as in WGSL: that is what
/// the processor does. `round` goes to even numbers at halves.
const PRELUDE: &str = "\
typedef float f32;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
#define let const auto
#define var auto
#define round rintf
#define countOneBits __popc
#define barrier_ __syncthreads
#define unroll_ _Pragma(\"unroll\")
template <class T> __device__ __forceinline__ T select(T no, T yes, bool which) {
return which ? yes : no;
}
template <class T> __device__ __forceinline__ T clamp(T x, T low, T high) {
return min(max(x, low), high);
}
template <class To> __device__ __forceinline__ To bitcast(f32 x) { return __float_as_uint(x); }
template <class To> __device__ __forceinline__ To bitcast(u32 x) { return __uint_as_float(x); }
";

/// Source that kernels need whose invocations exchange values.
const SUBGROUPS: &str = "\
__device__ __forceinline__ f32 subgroup_sum_(f32 x) {
for (int far = 16; far > 0; far /= 2) { x += __shfl_xor_sync(0xffffffffu, x, far); }
return x;
}
__device__ __forceinline__ f32 subgroup_xor_(f32 x, u32 far) {
return __shfl_xor_sync(0xffffffffu, x, far);
}
";

/// The names of their positions.
const PLACES: &str = "    \
    const u32 subgroup_lane = threadIdx.x % 32u;
    const u32 subgroup = threadIdx.x / 32u;
    const u32 subgroups = blockDim.x / 32u;
";

/// The body of a function where the processor, or NVIDIA's library of its functions, does the same
/// in fewer instructions.
fn native(name: &str, body: &'static str) -> Cow<'static, str> {
    let instruction = match name {
        "exp_" => return "return expf(x);\n".into(),
        "is_nan_" => return "return x != x;\n".into(),
        "max_" => "max.NaN.f32 %0, %1, %2;\" : \"=f\"(z) : \"f\"(x), \"f\"(y)",
        "min_" => "min.NaN.f32 %0, %1, %2;\" : \"=f\"(z) : \"f\"(x), \"f\"(y)",
        "round_f16_" => {
            "{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h; }\" : \"=f\"(z) : \"f\"(x)"
        }
        "round_bf16_" => {
            "{ .reg .b16 h; .reg .b16 n; mov.b16 n, 0; cvt.rn.bf16.f32 h, %1; mov.b32 %0, {n, h}; }\" \
             : \"=f\"(z) : \"f\"(x)"
        }
        _ => return body.into(),
    };
    format!(
        "#if __CUDA_ARCH__ >= 800\nf32 z;\nasm(\"{instruction});\nreturn z;\n#else\n{body}#endif\n"
    )
    .into()
}

pub(super) fn print(shader: &Shader) -> String {
    let mut text = PRELUDE.to_string();
    let depth = if shader.turns == 1 { 2 } else { 3 };
    let body = shader.body.print(ShaderDialect::Cuda, &[], depth);
    let subgroups = body.contains("subgroup_");
    if subgroups {
        text.push_str(SUBGROUPS);
    }
    for math::ShaderFunction { name, args, result, body } in math::needed(&body) {
        let args: Vec<String> = args.iter().map(|(name, ty)| format!("{ty} {name}")).collect();
        let args = args.join(", ");
        let source = &native(name, body);
        let _ = write!(text, "__device__ __forceinline__ {result} {name}({args}) {{\n{source}}}\n");
    }
    let read = shader.inputs.iter().map(|&(_, dtype)| dtype);
    text.push_str(&narrow::definitions(read.clone().chain(shader.outputs.iter().copied())));
    if body.contains("multiply_<") {
        text.push_str(matrices::DEFINITIONS);
        let elements = ["Half_", "Brain_"];
        let used = elements.iter().filter(|name| body.contains(&format!("<{name}>")));
        text.extend(used.map(|name| matrices::of(name)));
    }
    let (mut buffers, mut opening) = (Vec::new(), String::new());
    for (at, dtype) in read.enumerate() {
        let (scalar, name) = (scalar_type::storage(dtype), format!("in{at}"));
        buffers.push(narrow::parameter(dtype, scalar, &name, true, &mut opening));
    }
    let tables = (0..shader.tables.len()).map(|at| format!("const u32* __restrict__ table{at}"));
    buffers.extend(tables);
    for (at, &dtype) in shader.outputs.iter().enumerate() {
        let (scalar, name) = (scalar_type::storage(dtype), format!("out{at}"));
        buffers.push(narrow::parameter(dtype, scalar, &name, false, &mut opening));
    }
    let (group, entry) = (ShaderDialect::Cuda.group(shader), ShaderDialect::Cuda.entry());
    let (buffers, count) = (buffers.join(", "), shader.count);
    let _ = write!(
        text,
        "extern \"C\" __global__ void __launch_bounds__({group}) {entry}({buffers}) {{\n{opening}"
    );
    for (name, length) in &shader.shared {
        let _ = writeln!(text, "    __shared__ __align__(16) f32 {name}[{length}];");
    }
    for (name, length) in &shader.arrays {
        let _ = writeln!(text, "    f32 {name}[{length}];");
    }
    let _ = match &shader.shared[..] {
        [] if shader.turns == 1 => write!(
            text,
            "    const u32 n = blockIdx.x * {group}u + threadIdx.x;\n    if (n < {count}u) {{\n\
             {body}    }}\n}}\n"
        ),
        [] => write!(
            text,
            "    #pragma unroll\n    for (u32 turn = 0u; turn < {turns}u; turn++) {{\n        \
             const u32 n = (blockIdx.x * {turns}u + turn) * {group}u + threadIdx.x;\n        \
             if (n < {count}u) {{\n{body}        }}\n    }}\n}}\n",
            turns = shader.turns,
        ),
        _ => write!(
            text,
            "    const u32 workgroup = blockIdx.x;\n    const u32 local = threadIdx.x;\n{}    \
             if (workgroup < {}u) {{\n{body}    }}\n}}\n",
            if subgroups { PLACES } else { "" },
            count / group
        ),
    };
    text
}

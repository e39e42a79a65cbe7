//! Device kernels: one source, two dialects.
//!
//! A [`Shader`] computes one call on a device: its body is run once for each number `n` below
//! `count`, by as many invocations at a time as the device has. Kernels are built from typed values
//! ([`KernelBuilder`]), and [`ShaderDialect`] prints them as WGSL and as CUDA C++. Functions that
//! kernels call (`math.rs`) are written in what both languages have in common: `let` and `var` without types,
//! literals with suffixes.
//!
//! Where that pays, invocations work in workgroups that share memory.
//!
//! Kernels compute with scalars of 32 bits, or of 64 where the device has such ([`ScalarType`]):
//! 16-bit floats compute in `f32`. In memory an element takes a scalar too in WGSL, which has no
//! smaller storage; in CUDA C++ elements lie as on the host, and are widened and narrowed where they
//! are read and written. Sizes and strides are part of the source, so that compilers see constants;
//! equal sources are compiled once. `tests/snapshots` shows the source of a kernel of each family.
//!
//! A call that has no shader is a call that the device does not run: `None`, never a slow way
//! around. Devices of other crates take the same sources ([`shader`]), and build kernels of their own:
//!
//! ```
//! use ferroflow_ir::DType;
//! use ferroflow_kernels::shader::{Caps, KernelBuilder, ShaderDialect};
//!
//! // out0[n] = 2 · in0[n] + 1 for 1 000 elements.
//! let k = KernelBuilder::new(Caps::default());
//! let (x, y, n) = (k.input(0, DType::F32), k.output(DType::F32), k.element());
//! y.set(n, x.at(n) * 2.0 + 1.0);
//! let kernel = k.finish(1000)?.expect("every device holds f32");
//! let source = ShaderDialect::Wgsl.print(&kernel);
//! assert!(source.contains("out0[n] = in0[n] * 2.0f + 1.0f;"));
//! assert_eq!(ShaderDialect::Wgsl.grid(&kernel), (16, 1));
//! # Ok::<(), ferroflow_kernels::Error>(())
//! ```

mod angle;
mod attention;
mod body;
mod builder;
mod colour;
mod concat;
mod conv;
mod copy;
mod count;
mod crop;
mod diagonal;
mod dialect;
mod dilation;
mod elementwise;
mod epilogue;
mod expr;
mod extreme;
mod fake_quant;
mod gather;
mod implicit_gemm;
mod index;
mod lrn;
mod math;
mod matmul;
mod mirror;
mod patches;
mod pixel;
mod pool;
mod pool_argmax;
mod prim;
mod projection;
mod random;
mod reduce;
mod resize;
mod rows;
mod scalar_type;
mod scan;
mod scatter;
mod search;
mod segment;
mod shift;
mod softmax;
mod special;
mod strided;
mod sweep;
#[cfg(test)]
pub(crate) mod tests;
mod tiles;
mod whole;
mod workgroup;

use crate::{
    device::{OpCall, OperandSpec, Then},
    error::{Error, Result},
};
#[cfg(feature = "cuda")]
pub(crate) use attention::attends_by_matrices;
pub use body::Shader;
pub use builder::{KernelBuffer, KernelBuilder, KernelOperand, KernelValue};
pub use dialect::{Grid, ShaderDialect};
use epilogue::Epilogue;
use ferroflow_ir::{DType, Lowering, ops::names};
pub use scalar_type::{Caps, ScalarType};

/// Makes the shader of one op's calls; `None` for what it has no text for.
type Build = fn(&OpCall<'_>, Caps) -> Result<Option<Shader>>;

/// The same for dot products, whose elements may go through the epilogue.
type BuildMatmul = fn(&OpCall<'_>, Caps, &Epilogue<'_>) -> Result<Option<Shader>>;

/// The shaders of matmuls and convolutions, by op.
const PRODUCTS: &[&[(&str, BuildMatmul)]] = &[conv::SHADERS, matmul::SHADERS];

/// The shaders of other ops that are no formula, reduction or view, by op.
const SHADERS: &[&[(&str, Build)]] = &[
    attention::SHADERS,
    colour::SHADERS,
    concat::SHADERS,
    count::SHADERS,
    crop::SHADERS,
    diagonal::SHADERS,
    dilation::SHADERS,
    extreme::SHADERS,
    fake_quant::SHADERS,
    gather::SHADERS,
    lrn::SHADERS,
    mirror::SHADERS,
    patches::SHADERS,
    pool::SHADERS,
    pool_argmax::SHADERS,
    projection::SHADERS,
    random::SHADERS,
    resize::SHADERS,
    scan::SHADERS,
    scatter::SHADERS,
    search::SHADERS,
    segment::SHADERS,
    shift::SHADERS,
    softmax::SHADERS,
    strided::SHADERS,
];

/// The most elements a tensor may have: positions are 31-bit numbers in shaders.
const MOST_ELEMENTS: usize = i32::MAX as usize;

/// The shader of a call, if it has one.
///
/// # Errors
///
/// When the call's attributes do not fit its op; [`Error::Compile`] for a kernel whose operands do not fit
/// each other, which is a defect.
pub fn shader(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    built(call, caps).map_err(|error| match error {
        Error::Compile { device, reason, .. } => {
            Error::Compile { device, op: call.op.name, reason }
        }
        other => other,
    })
}

fn built(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let region = call.with_anchor(|anchor, then| with_epilogue(anchor, then, caps))?;
    if region.is_some() || !are_held(call, &[], caps)? {
        return Ok(region);
    }
    match call.op.lowering {
        Lowering::Elementwise(_) | Lowering::Fused => elementwise::shader(call, caps),
        Lowering::Reduce(kind) => reduce::shader(call, caps, kind),
        Lowering::View(rule) => copy::shader(call, caps, rule),
        Lowering::Kernel if call.op.name == names::REGION => rows::region(call, caps),
        Lowering::Kernel if call.expr.is_none() || call.op.name == attention::OP => {
            match (by_name(SHADERS, call.op.name), by_name(PRODUCTS, call.op.name)) {
                (Some(build), _) => build(call, caps),
                (_, Some(build)) => build(call, caps, &Epilogue::plain(call)),
                (None, None) => Ok(None),
            }
        }
        Lowering::Kernel
        | Lowering::HostKernel(_)
        | Lowering::Alias(_)
        | Lowering::Composite(_)
        | Lowering::Runtime
        | Lowering::Interface => Ok(None),
    }
}

/// The shader of a region's anchor and its epilogue, if there is one.
///
/// # Errors
///
/// When the call's attributes do not fit its op.
fn with_epilogue(call: &OpCall<'_>, then: &Then<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(build) = by_name(PRODUCTS, call.op.name) else { return Ok(None) };
    if !are_held(call, then.others, caps)? {
        return Ok(None);
    }
    let Some(epilogue) = Epilogue::fused(call, then) else { return Ok(None) };
    build(call, caps, &epilogue)
}

/// Whether the device can hold what a call takes, with other inputs, and returns.
fn are_held(call: &OpCall<'_>, others: &[OperandSpec], caps: Caps) -> Result<bool> {
    let small =
        |dtype: DType, n: usize| ScalarType::of(dtype, caps).is_some() && n <= MOST_ELEMENTS;
    for (index, output) in call.outputs.iter().enumerate() {
        if output.shape.known().is_none()
            || !small(output.dtype, call.output_shape(index)?.num_elements())
        {
            return Ok(false);
        }
    }
    let mut inputs = call.inputs.iter().chain(others).filter(|input| input.value.is_none());
    Ok(inputs.all(|input| small(input.dtype, input.shape.num_elements())))
}

/// Entry of the tables for an op.
fn by_name<T: Copy>(tables: &[&[(&'static str, T)]], op: &str) -> Option<T> {
    tables.iter().flat_map(|rows| rows.iter()).find(|row| row.0 == op).map(|row| row.1)
}

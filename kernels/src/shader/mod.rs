//! Device kernels: one source, two dialects.
//!
//! A [`Shader`] computes one call on a device: its body is run once for each number `n` below
//! `count`, by as many invocations at a time as the device has. Kernels are built from typed values
//! ([`builder`]), and [`ShaderDialect`] prints them as WGSL and as CUDA C++. Functions that kernels
//! call ([`math`]) are written in what both languages have in common: `let` and `var` without types,
//! literals with suffixes.
//!
//! Where that pays, invocations work in workgroups that share memory ([`Shader::shared`]).
//!
//! Kernels compute with scalars of 32 bits, or of 64 where the device has such ([`ScalarType`]):
//! 16-bit floats compute in `f32`. In memory an element takes a scalar too in WGSL, which has no
//! smaller storage; in CUDA C++ elements lie as on the host, and are widened and narrowed where they
//! are read and written. Sizes and strides are part of the source, so that compilers see constants;
//! equal sources are compiled once. `tests/snapshots` shows the source of a kernel of each family.
//!
//! A call that has no shader is a call that the device does not run: `None`, never a slow way
//! around.

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
    error::Result,
};
#[cfg(feature = "cuda")]
pub(crate) use attention::attends_by_matrices;
use body::KernelBody;
pub(crate) use dialect::{Grid, ShaderDialect};
use epilogue::Epilogue;
use ferroflow_ir::{DType, Lowering, ops::names};
pub(crate) use scalar_type::{Caps, ScalarType};

/// A program for one call.
#[derive(Debug, Clone)]
pub(crate) struct Shader {
    /// The inputs it reads, `in0`, `in1`, …: position in the call, and how elements are stored
    /// there.
    pub(crate) inputs: Vec<(usize, ScalarType)>,
    /// `u32` constants that depend on the call alone and are too many for the text: `table0`,
    /// `table1`, ….
    pub(crate) tables: Vec<Vec<u32>>,
    /// The outputs it writes, `out0`, `out1`, ….
    pub(crate) outputs: Vec<ScalarType>,
    /// The dtypes of the inputs it reads and of its outputs: how elements are stored where devices
    /// have them as the host does.
    pub(crate) dtypes: (Vec<DType>, Vec<DType>),
    /// Whether 16-bit floats are stored as such in WGSL, too.
    pub(crate) halves: bool,
    /// The statements of an invocation.
    pub(crate) body: KernelBody,
    /// The number of invocations.
    pub(crate) count: usize,
    /// Numbers `n` that one invocation takes in turn, where invocations know nothing of each other.
    pub(crate) turns: usize,
    /// Arrays of floats that the invocations of a workgroup share, with their lengths. Where there are
    /// any, workgroups are of [`dialect::WORKGROUP`] invocations, and the body knows `workgroup` and
    /// `local` instead of `n`; `barrier_()` waits for the whole workgroup.
    pub(crate) shared: Vec<(&'static str, usize)>,
    /// Arrays of floats that each invocation has for itself, with their lengths. Loops over them are
    /// unrolled, so that compilers see where in an array each step is.
    pub(crate) arrays: Vec<(String, usize)>,
}

impl Shader {
    /// A program whose invocations know nothing of each other.
    fn plain(
        inputs: Vec<(usize, ScalarType)>,
        outputs: Vec<ScalarType>,
        body: impl Into<KernelBody>,
        count: usize,
    ) -> Shader {
        let body = body.into();
        let (tables, dtypes, halves, shared, arrays) = Default::default();
        Shader { inputs, tables, outputs, dtypes, halves, body, count, turns: 1, shared, arrays }
    }

    /// The shader with the dtypes of its call and of its epilogue.
    fn of(mut self, call: &OpCall<'_>, then: Option<&Then<'_>>, caps: Caps) -> Shader {
        let others = then.map_or(&[][..], |then| then.others);
        let dtypes: Vec<DType> = call.inputs.iter().chain(others).map(|x| x.dtype).collect();
        let inputs = self.inputs.iter().map(|&(position, _)| dtypes[position]);
        let outputs = match then {
            Some(then) => vec![then.expr.dtype()],
            None => call.outputs[..self.outputs.len()].iter().map(|x| x.dtype).collect(),
        };
        self.halves = caps.halves;
        self.dtypes = (inputs.collect(), outputs);
        self
    }
}

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
/// When the call's attributes do not fit its op.
pub(crate) fn shader(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let region = call.with_anchor(|anchor, then| with_epilogue(anchor, then, caps))?;
    if region.is_some() || !are_held(call, &[], caps)? {
        return Ok(region);
    }
    let found = match call.op.lowering {
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
    };
    Ok(found?.map(|shader| shader.of(call, None, caps)))
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
    Ok(build(call, caps, &epilogue)?.map(|shader| shader.of(call, Some(then), caps)))
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

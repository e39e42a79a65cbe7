//! The CPU device and its kernels.

mod assertion;
mod attention;
mod beta;
mod bounds;
mod cell;
mod check;
mod clustering;
#[cfg(feature = "codec")]
mod codec;
mod concat;
mod conv;
mod copy;
mod count;
mod count_sparse;
mod ctc;
mod depthwise;
mod diagonal;
mod dilation;
pub(crate) mod dispatch;
mod exp;
mod extreme;
#[cfg(feature = "signal")]
mod fft;
mod fractional_pool;
mod gather;
mod gemm;
mod growing;
mod health;
mod image;
mod index;
mod isotonic;
mod lanes;
#[cfg(feature = "linalg")]
mod linalg;
mod lrn;
mod lstm;
pub mod machine;
mod matmul;
mod moving_call;
mod nontemporal;
mod nonzero;
mod one_hot;
mod pad;
mod parse;
mod partition;
mod patches;
mod pool;
mod quantized;
mod ragged;
mod random;
mod range;
mod reduce;
mod region;
mod row_call;
mod scan;
mod scatter;
mod segment;
mod segment_grad;
mod shape;
mod shape_arguments;
mod shift;
mod softmax;
#[cfg(feature = "signal")]
mod sound;
mod sparse;
pub(crate) mod string;
#[cfg(feature = "text")]
pub(crate) mod text;
mod top_k;
mod top_k_heap;
mod unique;
mod unsorted_segment;
mod wav;
mod window;

use crate::{
    buffer::Buffer,
    device::{Device, OpCall, Support},
    elementwise,
    error::Result,
    kernel::Kernel,
};
use ferroflow_ir::{DType, HostTensor, Lowering, OpDef, Shape, ops};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// Compiles calls of one op; `None` for dtypes it has no code for.
pub(crate) type Build = fn(&OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>>;

/// The hand-written kernels, by op.
const KERNELS: &[&[(&str, Build)]] = &[
    assertion::KERNELS,
    attention::KERNELS,
    beta::KERNELS,
    bounds::KERNELS,
    check::KERNELS,
    clustering::KERNELS,
    concat::KERNELS,
    conv::KERNELS,
    count::KERNELS,
    count_sparse::KERNELS,
    ctc::KERNELS,
    depthwise::KERNELS,
    diagonal::KERNELS,
    dilation::KERNELS,
    extreme::KERNELS,
    fractional_pool::KERNELS,
    gather::KERNELS,
    health::KERNELS,
    image::color::KERNELS,
    image::crop::KERNELS,
    image::distorted_box::KERNELS,
    image::draw::KERNELS,
    image::glimpse::KERNELS,
    image::resize::KERNELS,
    image::suppress::KERNELS,
    image::transform::KERNELS,
    isotonic::KERNELS,
    lrn::KERNELS,
    lstm::KERNELS,
    matmul::KERNELS,
    nonzero::KERNELS,
    one_hot::KERNELS,
    pad::KERNELS,
    parse::compressed::KERNELS,
    parse::csv::KERNELS,
    parse::example::KERNELS,
    parse::raw::KERNELS,
    parse::sequence::KERNELS,
    parse::tensor::KERNELS,
    partition::KERNELS,
    patches::KERNELS,
    pool::KERNELS,
    quantized::convert::KERNELS,
    quantized::fake::KERNELS,
    quantized::math::KERNELS,
    quantized::norm::KERNELS,
    quantized::round_trip::KERNELS,
    quantized::uniform::KERNELS,
    quantized::uniform_arithmetic::KERNELS,
    ragged::cross::KERNELS,
    ragged::gather::KERNELS,
    ragged::rows::KERNELS,
    ragged::to_sparse::KERNELS,
    ragged::to_tensor::KERNELS,
    random::KERNELS,
    random::index_shuffle::KERNELS,
    random::sobol::KERNELS,
    range::KERNELS,
    region::KERNELS,
    row_call::KERNELS,
    scan::KERNELS,
    scatter::KERNELS,
    segment::KERNELS,
    segment_grad::KERNELS,
    shift::KERNELS,
    shape::KERNELS,
    shape_arguments::KERNELS,
    softmax::KERNELS,
    sparse::cross::KERNELS,
    sparse::dense::KERNELS,
    sparse::grad::KERNELS,
    sparse::merge::KERNELS,
    sparse::order::KERNELS,
    sparse::reduce::KERNELS,
    sparse::rows::KERNELS,
    sparse::serialize::KERNELS,
    sparse::set::KERNELS,
    string::as_string::KERNELS,
    string::base64::KERNELS,
    string::case::KERNELS,
    string::edit_distance::KERNELS,
    string::format::KERNELS,
    string::hash::KERNELS,
    string::join::KERNELS,
    string::ngrams::KERNELS,
    string::split::KERNELS,
    string::substr::KERNELS,
    string::to_number::KERNELS,
    string::unicode::KERNELS,
    top_k::KERNELS,
    unique::KERNELS,
    unsorted_segment::KERNELS,
    wav::KERNELS,
    window::KERNELS,
];

/// Those of the modules that features leave out.
const OPTIONAL: &[&[&[(&str, Build)]]] = &[
    #[cfg(feature = "codec")]
    &[codec::KERNELS],
    #[cfg(feature = "linalg")]
    linalg::KERNELS,
    #[cfg(feature = "signal")]
    &[fft::KERNELS, sound::KERNELS],
    #[cfg(feature = "text")]
    &[string::regex::KERNELS, string::script::KERNELS],
    #[cfg(feature = "text")]
    text::KERNELS,
];

/// The processor and its memory.
#[derive(Debug)]
pub struct CpuDevice {
    name: String,
}

impl CpuDevice {
    /// The CPU device number `index`.
    pub fn new(index: usize) -> CpuDevice {
        CpuDevice { name: format!("/device:CPU:{index}") }
    }

    /// Whether an op with a kernel by its lowering has a kernel for any dtypes.
    pub fn has_kernel(&self, op: &OpDef) -> bool {
        build(op.name).is_some()
    }
}

/// The kernel of a call, if there is one.
fn kernel_of(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    match call.op.lowering {
        Lowering::Elementwise(_) | Lowering::Fused => elementwise::compile(call),
        Lowering::Reduce(kind) => reduce::compile(call, kind),
        Lowering::View(rule) => copy::compile(call, rule),
        Lowering::Kernel | Lowering::HostKernel(_) => match build(call.op.name) {
            Some(build) => build(call),
            None => Ok(None),
        },
        Lowering::Alias(_) | Lowering::Composite(_) | Lowering::Runtime | Lowering::Interface => {
            Ok(None)
        }
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, dtype: DType, shape: &Shape) -> Result<Buffer> {
        Ok(HostTensor::recycled(dtype, shape.clone())?.into())
    }

    fn upload(&self, tensor: &Buffer) -> Result<Buffer> {
        Ok(tensor.host()?.clone().into())
    }

    fn kernel(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
        kernel_of(call)
    }

    fn support(&self, call: &OpCall<'_>) -> Result<Support> {
        match call.op.name {
            "_FusedConvolutions" | "_FusedExpressions" | "_Region" => region::support(call),
            _ if self.kernel(call)?.is_none() => Ok(Support::Missing),
            "_FusedAttention" if !attention::pays(call)? => Ok(Support::Runs),
            _ => Ok(Support::Pays),
        }
    }
}

/// The families of ops some of whose kernels a feature leaves out, with the feature.
const LEFT_OUT: &[(&str, &str)] = &[
    #[cfg(not(feature = "codec"))]
    ("codec", "codec"),
    #[cfg(not(feature = "linalg"))]
    ("linalg", "linalg"),
    #[cfg(not(feature = "signal"))]
    ("signal", "signal"),
    #[cfg(not(feature = "text"))]
    ("sentencepiece", "text"),
    #[cfg(not(feature = "text"))]
    ("string", "text"),
    #[cfg(not(feature = "text"))]
    ("text", "text"),
    #[cfg(not(feature = "text"))]
    ("unicode", "text"),
];

/// The feature of this crate that would bring the kernel of an op, if it is off.
pub fn missing_feature(op: &OpDef) -> Option<&'static str> {
    let is_family_of = |family: &str| {
        ops::families().any(|(name, ops)| name == family && ops.iter().any(|o| o.name == op.name))
    };
    let row = LEFT_OUT.iter().find(|(family, _)| is_family_of(family))?;
    Some(row.1).filter(|_| build(op.name).is_none())
}

fn build(op: &str) -> Option<Build> {
    static BY_NAME: OnceLock<HashMap<&'static str, Build>> = OnceLock::new();
    let tables = || KERNELS.iter().chain(OPTIONAL.iter().copied().flatten());
    let rows = || tables().flat_map(|rows| rows.iter().copied()).collect();
    BY_NAME.get_or_init(rows).get(op).copied()
}

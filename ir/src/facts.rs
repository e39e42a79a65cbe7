//! Facts that records state of ops.

use std::fmt;

/// Reason that keeps a kernel on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostReason {
    /// Sizes of results follow from data, which the host has to know.
    DataDependentSizes,
    /// Shapes and checks steer the host.
    ShapesAndChecks,
    /// Sparse and ragged tensors need bookkeeping.
    Sparse,
    /// Linear algebra is long chains of small steps.
    LinearAlgebra,
    /// Devices do not hold complex numbers.
    Complex,
    /// Each decision follows from the one before.
    Sequential,
    /// Devices do not hold bytes and text.
    Text,
    /// Devices could run it, but no kernel of theirs is written yet.
    NotWritten,
}

impl fmt::Display for HostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostReason::DataDependentSizes => "sizes of results follow from data",
            HostReason::ShapesAndChecks => "shapes and checks steer the host",
            HostReason::Sparse => "sparse and ragged tensors need bookkeeping",
            HostReason::LinearAlgebra => "linear algebra is long chains of small steps",
            HostReason::Complex => "devices hold no complex numbers",
            HostReason::Sequential => "each decision follows from the one before",
            HostReason::Text => "devices hold no bytes and text",
            HostReason::NotWritten => "no kernel of devices is written yet",
        })
    }
}

/// Rule of an op whose tensors are split over the devices of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardingRule {
    /// The result has the dimensions of the operand.
    Unchanged,
    /// The last dimension stays whole.
    Rows,
    /// A product of two matrices.
    MatMul,
    /// Products of matrices, with batches before them.
    BatchMatMul,
    /// Losses of rows, beside their derivatives.
    CrossEntropy,
    /// Losses of rows whose labels are numbers of classes.
    SparseCrossEntropy,
    /// The largest elements of rows.
    TopK,
    /// Positions along an axis that stays whole.
    ArgExtreme,
    /// Running results along an axis that stays whole.
    Scan,
    /// Slices at positions of an axis that stays whole.
    Gather,
    /// Whether labels are among the largest elements of rows.
    InTopK,
    /// The last two dimensions stay whole.
    Matrices,
    /// A new dimension, which stays whole.
    OneHot,
    /// Slices that are put at positions.
    Scatter,
    /// Sums of slices by the number of their segment.
    SegmentSum,
    /// Images: the batch is split, what windows span is whole.
    Batch,
    /// The same for all operands.
    BatchOfAll,
    /// The gradient of an average over windows.
    PoolGrad,
    /// A convolution.
    Conv,
    /// The gradient of a convolution by its filter.
    FilterGrad,
    /// The gradient of a convolution by its input.
    InputGrad,
    /// Dimensions that are not repeated.
    BroadcastTo,
    /// The axis of the pieces stays whole.
    Concat,
    /// Dimensions without padding.
    Pad,
    /// A new dimension, which stays whole.
    Pack,
    /// A dimension that goes away.
    Unpack,
    /// Dimensions that keep their order.
    Reverse,
    /// Dimensions that are taken whole.
    Slice,
    /// The axis that is cut stays whole.
    Split,
    /// Dimensions that are taken whole.
    StridedSlice,
    /// The gradient of a strided slice.
    StridedSliceGrad,
    /// Dimensions that are not repeated.
    Tile,
    /// Dimensions in another order.
    Transpose,
}

/// Access of an op to what is outside of the model that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsideAccess {
    /// It reads files.
    ReadsFiles,
    /// It writes files, or text to an output.
    Writes,
    /// It runs code of the process.
    RunsCode,
    /// It reaches other machines.
    OtherMachines,
}

impl OutsideAccess {
    /// Every access, with the flag by which interfaces state it.
    pub(crate) const FLAGS: [(&'static str, OutsideAccess); 4] = [
        ("reads_files", OutsideAccess::ReadsFiles),
        ("writes", OutsideAccess::Writes),
        ("runs_code", OutsideAccess::RunsCode),
        ("other_machines", OutsideAccess::OtherMachines),
    ];
}

impl fmt::Display for OutsideAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutsideAccess::ReadsFiles => "reads files",
            OutsideAccess::Writes => "writes files, or text to an output",
            OutsideAccess::RunsCode => "runs code of the process",
            OutsideAccess::OtherMachines => "reaches other machines",
        })
    }
}

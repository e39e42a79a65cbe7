//! Making tensors, joining them, and reordering their elements.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    host_tensor::HostTensor,
    infer::{self, OpContext, normalize_axis, reduced_axes},
    op::*,
    shape::{Dim, PartialShape, Shape},
    view::{StridedView, ViewDim},
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BroadcastTo",
        summary: "Repeats a tensor along dimensions of size 1 so that it has a given shape.",
        inputs: &[arg("input", "T"), arg("shape", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tidx", INDEX, DType::I32)],
        infer: broadcast_to,
        lowering: Lowering::View(broadcast_view),
        gradient: Gradient::Broadcast(gradient::array::same),
        sharding: Some(ShardingRule::BroadcastTo),
        ..OpDef::PURE
    },
    OpDef {
        name: "Concat",
        summary: "Joins tensors along an axis.",
        inputs: &[arg_of("concat_dim", DType::I32).host(), args("values", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[int("N").at_least(2), any_ty("T")],
        infer: concat_axis_first,
        lowering: Lowering::Composite(|c| {
            let mut inputs = c.inputs()[1..].to_vec();
            inputs.push(c.x(0));
            let attrs = Attrs::new().with("N", c.int("N")).with("T", c.dtype_attr("T"));
            c.call("ConcatV2", attrs, &inputs)
        }),
        gradient: Gradient::Rule(gradient::array::concat),
        ..OpDef::PURE
    },
    OpDef {
        name: "ConcatV2",
        summary: "Joins tensors along an axis.",
        inputs: &[args("values", "N", "T"), arg("axis", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[int("N").at_least(2), any_ty("T"), ty_or("Tidx", INDEX, DType::I32)],
        infer: concat,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::array::concat_v2),
        sharding: Some(ShardingRule::Concat),
        ..OpDef::PURE
    },
    OpDef {
        name: "ConjugateTranspose",
        summary: "Puts the dimensions in another order, and conjugates the elements.",
        inputs: &[arg("x", "T"), arg("perm", "Tperm").host()],
        outputs: &[arg("y", "T")],
        attrs: &[any_ty("T"), ty_or("Tperm", INDEX, DType::I32)],
        infer: transpose,
        lowering: Lowering::Composite(|c| {
            let y = c.x(0).transpose(&c.ints(1));
            vec![if c.dtype(0).is_complex() { y.conj() } else { y }]
        }),
        gradient: Gradient::Rule(gradient::array::transpose),
        ..OpDef::PURE
    },
    OpDef {
        name: "Empty",
        summary: "Makes a tensor of zeros; TensorFlow leaves the elements undefined unless `init`.",
        inputs: &[arg_of("shape", DType::I32).host()],
        outputs: &[arg("output", "dtype")],
        attrs: &[any_ty("dtype"), flag("init", false)],
        infer: filled,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        gradient: Gradient::Zero,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "Fill",
        summary: "Makes a tensor of one value.",
        inputs: &[arg("dims", "index_type").host(), arg("value", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("index_type", INDEX, DType::I32)],
        infer: fill,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::reduce::all),
        ..OpDef::PURE
    },
    OpDef {
        name: "GuaranteeConst",
        summary: "Passes a tensor on; a promise to compilers.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Rule(gradient::array::same),
        ..OpDef::PURE
    },
    OpDef {
        name: "Identity",
        summary: "Passes a tensor on.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Same,
        ..OpDef::PURE
    },
    OpDef {
        name: "IdentityN",
        summary: "Passes tensors on.",
        inputs: &[args_list("input", "T")],
        outputs: &[args_list("output", "T")],
        attrs: &[types("T").at_least(1)],
        infer: infer::each_unchanged,
        lowering: Lowering::Composite(|c| c.inputs().to_vec()),
        gradient: Gradient::Rule(gradient::array::each_same),
        ..OpDef::PURE
    },
    OpDef {
        name: "InvertPermutation",
        summary: "Gives the positions of 0, 1, 2, … in a vector that holds each of them once.",
        inputs: &[arg("x", "T")],
        outputs: &[arg("y", "T")],
        attrs: &[ty_or("T", INDEX, DType::I32)],
        infer: invert_permutation,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "Pack",
        summary: "Stacks tensors of one shape along a new axis.",
        inputs: &[args("values", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[int("N").at_least(1), any_ty("T"), int_or("axis", 0)],
        infer: pack,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::array::pack),
        sharding: Some(ShardingRule::Pack),
        ..OpDef::PURE
    },
    OpDef {
        name: "PlaceholderWithDefault",
        summary: "Passes a tensor on where nothing else is fed in its place.",
        inputs: &[arg("input", "dtype")],
        outputs: &[arg("output", "dtype")],
        attrs: &[any_ty("dtype"), shape("shape")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Rule(gradient::array::same),
        ..OpDef::PURE
    },
    OpDef {
        name: "PreventGradient",
        summary: "Passes a tensor on; asking for a gradient through it is an error.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), string_or("message", "")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        ..OpDef::PURE
    },
    OpDef {
        name: "Reverse",
        summary: "Reverses the dimensions for which a flag is set.",
        inputs: &[arg("tensor", "T"), arg_of("dims", DType::Bool).host()],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", REVERSIBLE)],
        infer: reverse,
        lowering: Lowering::View(|context| reversed(context, &flagged_axes(context)?)),
        gradient: Gradient::Rule(gradient::array::mirrored),
        ..OpDef::PURE
    },
    OpDef {
        name: "ReverseSequence",
        summary: "Reverses the first so many elements along a dimension, a number for each batch.",
        inputs: &[arg("input", "T"), arg("seq_lengths", "Tlen")],
        outputs: &[arg("output", "T")],
        attrs: &[
            int("seq_dim"),
            int_or("batch_dim", 0),
            any_ty("T"),
            ty_or("Tlen", INDEX, DType::I64),
        ],
        infer: reverse_sequence,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::array::mirrored),
        ..OpDef::PURE
    },
    OpDef {
        name: "ReverseV2",
        summary: "Reverses dimensions.",
        inputs: &[arg("tensor", "T"), arg("axis", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[ty_or("Tidx", INDEX, DType::I32), ty("T", REVERSIBLE)],
        infer: reverse_axes,
        lowering: Lowering::View(|context| reversed(context, &named_axes(context)?)),
        gradient: Gradient::Rule(gradient::array::mirrored),
        sharding: Some(ShardingRule::Reverse),
        ..OpDef::PURE
    },
    OpDef {
        name: "Roll",
        summary: "Shifts elements along dimensions; what leaves at the end comes in at the start.",
        inputs: &[arg("input", "T"), arg("shift", "Tshift"), arg("axis", "Taxis")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Tshift", INDEX), ty("Taxis", INDEX)],
        infer: roll,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::array::roll),
        ..OpDef::PURE
    },
    OpDef {
        name: "Select",
        summary: "Takes elements, or rows, of `t` where a condition holds, else of `e`.",
        inputs: &[arg_of("condition", DType::Bool), arg("t", "T"), arg("e", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: select,
        lowering: Lowering::Composite(|c| {
            let (condition, t) = (c.x(0), c.x(1));
            let (rank, rows) = (t.shape().rank(), condition.shape());
            let condition = if rows.rank() == 1 && rank > 1 {
                let mut dims = vec![1; rank];
                dims[0] = rows[0] as i64;
                condition.reshape(&dims)
            } else {
                condition
            };
            vec![condition.select(t, c.x(2))]
        }),
        gradient: Gradient::Rule(gradient::math::select_rows),
        ..OpDef::PURE
    },
    OpDef {
        name: "SelectV2",
        summary: "Takes elements of `t` where a condition holds, else of `e`.",
        inputs: &[arg_of("condition", DType::Bool), arg("t", "T"), arg("e", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::broadcast,
        lowering: Lowering::Elementwise(|s| s.select(s.raw(0), s.raw(1), s.raw(2))),
        gradient: Gradient::Broadcast(gradient::math::select),
        ..OpDef::PURE
    },
    OpDef {
        name: "Snapshot",
        summary: "Passes a tensor on.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Rule(gradient::array::same),
        ..OpDef::PURE
    },
    OpDef {
        name: "StopGradient",
        summary: "Passes a tensor on; gradients stop here.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Tile",
        summary: "Repeats a tensor along its dimensions.",
        inputs: &[arg("input", "T"), arg("multiples", "Tmultiples").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tmultiples", INDEX, DType::I32)],
        infer: tile,
        lowering: Lowering::View(tile_view),
        gradient: Gradient::Rule(gradient::array::tile),
        sharding: Some(ShardingRule::Tile),
        ..OpDef::PURE
    },
    OpDef {
        name: "ToBool",
        summary: "Tells whether a scalar is not zero or not empty; of other tensors, whether there is any element.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("output", DType::Bool)],
        attrs: &[any_ty("T")],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| {
            let x = c.x(0);
            vec![match (x.shape().rank(), x.dtype()) {
                (0, DType::String) => x.not_equal(c.constant(Ok(HostTensor::scalar_string("")))),
                (0, _) => x.cast(DType::Bool),
                _ => c.constant(Ok(HostTensor::scalar_bool(x.shape().num_elements() > 0))),
            }]
        }),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Transpose",
        summary: "Puts the dimensions in another order.",
        inputs: &[arg("x", "T"), arg("perm", "Tperm").host()],
        outputs: &[arg("y", "T")],
        attrs: &[any_ty("T"), ty_or("Tperm", INDEX, DType::I32)],
        infer: transpose,
        lowering: Lowering::View(transpose_view),
        gradient: Gradient::Rule(gradient::array::transpose),
        sharding: Some(ShardingRule::Transpose),
        ..OpDef::PURE
    },
];

/// The types TensorFlow reverses.
const REVERSIBLE: &[DType] = &[
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::Bool,
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
    DType::String,
];

fn broadcast_to(context: &mut OpContext<'_>) -> Result<()> {
    let target = context.shape_value(1)?;
    let input = context.shape(0);
    let fits = input.broadcast(&target)?;
    if !fits.is_compatible_with(&target) {
        return Err(context.wrong(0, format!("broadcastable to {target}"), input));
    }
    context.set(0, target);
    Ok(())
}

fn broadcast_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let input = context.known(0)?;
    let output = context.output(0).known();
    // A size of -1 is one that is not known, which no data ever tells.
    let output =
        output.ok_or_else(|| context.wrong(1, "of no negative sizes", context.output(0)))?;
    let (strides, missing) = (input.strides(), output.rank() - input.rank());
    let dims = output.iter().enumerate().map(|(axis, &size)| {
        let own = axis.checked_sub(missing).filter(|&axis| input[axis] != 1);
        ViewDim { size, stride: own.map_or(0, |axis| strides[axis] as isize) }
    });
    Ok(vec![StridedView { offset: 0, dims: dims.collect() }])
}

fn concat(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_inputs() - 1;
    let axis = context.int(n)?;
    let shape = concatenated(context, 0..n, axis)?;
    context.set(0, shape);
    Ok(())
}

fn concat_axis_first(context: &mut OpContext<'_>) -> Result<()> {
    let axis = context.int(0)?;
    let shape = concatenated(context, 1..context.n_inputs(), axis)?;
    context.set(0, shape);
    Ok(())
}

pub(super) fn concatenated(
    context: &OpContext<'_>,
    inputs: std::ops::Range<usize>,
    axis: Option<i64>,
) -> Result<PartialShape> {
    let known = inputs.clone().find(|&index| context.shape(index).rank().is_some());
    let Some(first) = known else { return Ok(PartialShape::Unknown) };
    let rank = context.shape(first).rank().unwrap_or(0);
    for index in inputs.clone() {
        context.check_rank(index, rank)?;
    }
    if rank == 0 {
        return Err(context.wrong(first, "of rank 1 or more", context.shape(first)));
    }
    let Some(axis) = axis else { return Ok(PartialShape::of_rank(rank)) };
    let axis = normalize_axis(axis, rank)?;
    let mut joined: SmallVec<[Dim; 6]> = SmallVec::from_elem(None, rank);
    joined[axis] = Some(0);
    for index in inputs {
        let Some(dims) = context.shape(index).dims() else {
            joined[axis] = None;
            continue;
        };
        for (position, &dim) in dims.iter().enumerate() {
            joined[position] = match position == axis {
                true => joined[axis].zip(dim).map(|(sum, dim)| sum + dim),
                false => context.same("sizes of all inputs", joined[position], dim)?,
            };
        }
    }
    Ok(PartialShape::Ranked(joined))
}

/// The result has the shape in input 0, which must have no unknown sizes.
fn filled(context: &mut OpContext<'_>) -> Result<()> {
    let dims = context.shape_value(0)?;
    if let Some(known) = context.ints(0)? {
        Shape::from_i64(&known).map_err(|_| context.wrong(0, "a shape", format!("{known:?}")))?;
    }
    context.set(0, dims);
    Ok(())
}

fn fill(context: &mut OpContext<'_>) -> Result<()> {
    if context.shape(1).known().is_some_and(|shape| shape.num_elements() != 1) {
        return Err(context.wrong(1, "a scalar", context.shape(1)));
    }
    filled(context)
}

fn invert_permutation(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    infer::unchanged(context)
}

fn pack(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_inputs();
    infer::all_same(context)?;
    let shape = context.output(0).clone();
    if let Some(dims) = shape.dims() {
        let axis = normalize_axis(context.attrs.int("axis")?, dims.len() + 1)?;
        let mut packed: SmallVec<[Dim; 6]> = dims.into();
        packed.insert(axis, Some(n));
        context.set(0, PartialShape::Ranked(packed));
    }
    Ok(())
}

fn reverse(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    context.same("number of flags and rank", context.shape(1).dim(0), context.shape(0).rank())?;
    infer::unchanged(context)
}

fn flagged_axes(context: &OpContext<'_>) -> Result<SmallVec<[bool; 6]>> {
    Ok(context.known_value(1)?.bytes().iter().map(|&flag| flag != 0).collect())
}

fn reverse_axes(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    if let (Some(axes), Some(rank)) = (context.ints(1)?, context.shape(0).rank()) {
        reduced_axes(&axes, rank)?;
    }
    infer::unchanged(context)
}

fn named_axes(context: &OpContext<'_>) -> Result<SmallVec<[bool; 6]>> {
    reduced_axes(&context.known_ints(1)?, context.known(0)?.rank())
}

fn reversed(context: &OpContext<'_>, axes: &[bool]) -> Result<Vec<StridedView>> {
    let shape = context.known(0)?;
    let mut view = StridedView::whole(&shape);
    for (axis, _) in axes.iter().enumerate().filter(|(_, reverse)| **reverse) {
        view = view.sliced(axis, shape[axis].saturating_sub(1), shape[axis], -1);
    }
    Ok(vec![view])
}

fn reverse_sequence(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let (seq, batch) = (context.attrs.int("seq_dim")?, context.attrs.int("batch_dim")?);
    if seq == batch {
        return Err(context.wrong_attr("seq_dim", "another than `batch_dim`", seq));
    }
    if let Some(dims) = context.shape(0).dims() {
        for (name, axis) in [("seq_dim", seq), ("batch_dim", batch)] {
            if !(0..dims.len() as i64).contains(&axis) {
                return Err(context.wrong_attr(name, "a dimension", axis));
            }
        }
        let lengths = context.shape(1).dim(0);
        context.same("number of lengths and batches", dims[batch as usize], lengths)?;
    }
    infer::unchanged(context)
}

fn roll(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    for index in 1..3 {
        if context.shape(index).rank().is_some_and(|rank| rank > 1) {
            return Err(context.wrong(index, "a scalar or a vector", context.shape(index)));
        }
    }
    context.merged(1, 2)?;
    infer::unchanged(context)
}

/// The condition is a scalar, a vector that tells of rows, or of the shape of the values.
fn select(context: &mut OpContext<'_>) -> Result<()> {
    let values = context.merged(1, 2)?;
    let condition = context.shape(0);
    let fits = match (condition.dims(), values.dims()) {
        (None | Some([]), _) | (_, None) => true,
        (Some([rows]), Some([first, ..])) => rows.is_none() || first.is_none() || rows == first,
        (Some(_), Some(_)) => condition.is_compatible_with(&values),
    };
    if !fits {
        return Err(context.wrong(0, format!("of shape {values}, or for its rows"), condition));
    }
    context.set(0, values);
    Ok(())
}

fn tile(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let multiples = context.ints(1)?;
    let rank = context.shape(0).rank().or(context.shape(1).dim(0));
    let Some(rank) = rank else { return Ok(()) };
    context.check_rank(0, rank)?;
    context.same("length of `multiples` and rank", context.shape(1).dim(0), Some(rank))?;
    let (Some(multiples), Some(dims)) = (multiples, context.shape(0).dims()) else {
        context.set(0, PartialShape::of_rank(rank));
        return Ok(());
    };
    let mut tiled: SmallVec<[Dim; 6]> = SmallVec::new();
    for (&dim, &multiple) in dims.iter().zip(&multiples) {
        let Ok(multiple) = usize::try_from(multiple) else {
            return Err(context.wrong(1, "not negative", format!("{multiples:?}")));
        };
        tiled.push(match dim {
            _ if multiple == 0 => Some(0),
            dim => dim.map(|dim| dim.saturating_mul(multiple)),
        });
    }
    context.set(0, PartialShape::Ranked(tiled));
    Ok(())
}

fn tile_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let whole = StridedView::whole(&context.known(0)?);
    let multiples = context.known_ints(1)?;
    let pairs = whole.dims.iter().zip(&multiples);
    let dims = pairs.flat_map(|(&dim, &multiple)| {
        [ViewDim { size: usize::try_from(multiple).unwrap_or(0), stride: 0 }, dim]
    });
    Ok(vec![StridedView { offset: 0, dims: dims.collect() }])
}

fn transpose(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let rank = context.shape(0).rank().or(context.shape(1).dim(0));
    let Some(rank) = rank else { return Ok(()) };
    context.check_rank(0, rank)?;
    context.same("length of `perm` and rank", context.shape(1).dim(0), Some(rank))?;
    let dims = context.shape(0).dims();
    let shape = match context.ints(1)? {
        None => PartialShape::of_rank(rank),
        Some(permutation) => {
            let axes = permutation_axes(context, &permutation)?;
            PartialShape::ranked(axes.iter().map(|&axis| dims.and_then(|dims| dims[axis])))
        }
    };
    context.set(0, shape);
    Ok(())
}

fn permutation_axes(context: &OpContext<'_>, permutation: &[i64]) -> Result<SmallVec<[usize; 6]>> {
    let rank = permutation.len();
    let axes: Result<SmallVec<[usize; 6]>> =
        permutation.iter().map(|&axis| normalize_axis(axis, rank)).collect();
    let axes = axes?;
    let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    axes.iter().for_each(|&axis| seen[axis] = true);
    if seen.contains(&false) {
        return Err(context.wrong(1, "a permutation", format!("{permutation:?}")));
    }
    Ok(axes)
}

fn transpose_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let axes = permutation_axes(context, &context.known_ints(1)?)?;
    Ok(vec![StridedView::whole(&context.known(0)?).transposed(&axes)])
}

//! Tensors in blocks: cut along several dimensions, and put together again.
//!
//! Blocks come in row-major order. Source: `tensorflow/core/tpu/kernels/sharding_utils.h` and
//! `xla_ops.cc` of TensorFlow.

use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, calls_with},
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AssignVariableXlaConcatND",
        summary: "Sets a variable to blocks put together along all dimensions.",
        inputs: &[arg_of("resource", DType::Resource), args("inputs", "N", "T")],
        attrs: &[any_ty("T"), int("N").at_least(1), ints("num_concats"), ints_or("paddings", &[])],
        infer: |context| {
            let counts = counts(context, "num_concats", context.n_inputs() - 1)?;
            paddings(context, counts.len()).map(|_| ())
        },
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "ReadVariableXlaSplitND",
        summary: "Reads a variable in blocks along all dimensions, with zeros after its end.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[args("outputs", "N", "T")],
        attrs: &[any_ty("T"), int("N").at_least(1), ints("num_splits"), ints_or("paddings", &[])],
        infer: |context| {
            let counts = counts(context, "num_splits", context.n_outputs())?;
            paddings(context, counts.len()).map(|_| ())
        },
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "XlaConcatND",
        summary: "Puts blocks together along all dimensions, and cuts the padding off the end.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), int("N").at_least(1), ints("num_concats"), ints_or("paddings", &[])],
        infer: |context| {
            let counts = counts(context, "num_concats", context.n_inputs())?;
            let paddings = paddings(context, counts.len())?;
            let shape = put_together(context, &counts, &paddings)?;
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let whole = join(c.inputs(), &ints_of(c, "num_concats"));
            let paddings = ints_of(c, "paddings");
            if paddings.iter().all(|&padding| padding == 0) {
                return vec![whole];
            }
            let sizes = whole.shape().to_i64();
            let kept: Vec<i64> =
                sizes.iter().zip(&paddings).map(|(size, cut)| size - cut).collect();
            vec![whole.slice(&vec![0; kept.len()], &kept)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaSplitND",
        summary: "Pads a tensor with zeros and cuts it into blocks along all dimensions.",
        inputs: &[arg("input", "T")],
        outputs: &[args("outputs", "N", "T")],
        attrs: &[any_ty("T"), int("N").at_least(1), ints("num_splits"), ints_or("paddings", &[])],
        infer: |context| {
            let counts = counts(context, "num_splits", context.n_outputs())?;
            let paddings = paddings(context, counts.len())?;
            let shape = block(context, &counts, &paddings)?;
            context.set_all(&shape);
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let (x, paddings) = (c.x(0), ints_of(c, "paddings"));
            let padded = match paddings.iter().all(|&padding| padding == 0) {
                true => x,
                false => {
                    let pairs: Vec<i64> = paddings.iter().flat_map(|&after| [0, after]).collect();
                    call("Pad", [x, x.int_vector(&pairs).reshape(&[-1, 2])])
                }
            };
            cut(padded, &ints_of(c, "num_splits"))
        }),
        ..OpDef::PURE
    },
];

fn ints_of(c: &Composite<'_>, name: &str) -> Vec<i64> {
    c.attrs.ints(name).map(<[i64]>::to_vec).unwrap_or_default()
}

/// The numbers of blocks along the dimensions, of which there are `n` blocks in all.
fn counts(context: &OpContext<'_>, name: &'static str, n: usize) -> Result<Vec<usize>> {
    let counts = context.attrs.ints(name)?;
    let wrong = || context.wrong_attr(name, format!("positive, {n} in all"), format!("{counts:?}"));
    let sizes: Option<Vec<usize>> =
        counts.iter().map(|&count| usize::try_from(count).ok().filter(|&n| n > 0)).collect();
    let sizes = sizes.ok_or_else(wrong)?;
    let all = sizes.iter().try_fold(1usize, |all, &count| all.checked_mul(count));
    (all == Some(n) && !sizes.is_empty()).then_some(sizes).ok_or_else(wrong)
}

/// The sizes of the padding at the end of the dimensions.
fn paddings(context: &OpContext<'_>, rank: usize) -> Result<Vec<usize>> {
    let paddings = context.attrs.ints("paddings")?;
    if paddings.is_empty() {
        return Ok(vec![0; rank]);
    }
    let sizes: Option<Vec<usize>> =
        paddings.iter().map(|&padding| usize::try_from(padding).ok()).collect();
    sizes.filter(|sizes| sizes.len() == rank).ok_or_else(|| {
        let expected = format!("not negative, one for each of {rank} dimensions");
        context.wrong_attr("paddings", expected, format!("{paddings:?}"))
    })
}

/// The shape of blocks put together.
fn put_together(
    context: &OpContext<'_>,
    counts: &[usize],
    paddings: &[usize],
) -> Result<PartialShape> {
    let mut shape = context.shape(0).clone();
    for index in 1..context.n_inputs() {
        let other = context.shape(index);
        shape = shape.merge(other).ok_or_else(|| {
            context.wrong(index, format!("of shape {shape}, as the others"), other)
        })?;
    }
    let Some(dims) = shape.dims() else { return Ok(PartialShape::of_rank(counts.len())) };
    if dims.len() != counts.len() {
        return Err(context.wrong(0, format!("of rank {}", counts.len()), &shape));
    }
    let size = |((dim, &count), &padding): ((&Dim, &usize), &usize)| match *dim {
        None => Ok(None),
        Some(size) => {
            let whole = size.checked_mul(count).and_then(|whole| whole.checked_sub(padding));
            let wrong = || context.wrong_attr("paddings", "within the tensor", padding);
            whole.map(Some).ok_or_else(wrong)
        }
    };
    let sizes: Result<Vec<Dim>> = dims.iter().zip(counts).zip(paddings).map(size).collect();
    Ok(PartialShape::ranked(sizes?))
}

/// The shape of a block of the input.
fn block(context: &OpContext<'_>, counts: &[usize], paddings: &[usize]) -> Result<PartialShape> {
    let Some(dims) = context.shape(0).dims() else {
        return Ok(PartialShape::of_rank(counts.len()));
    };
    if dims.len() != counts.len() {
        return Err(context.wrong(0, format!("of rank {}", counts.len()), context.shape(0)));
    }
    let size = |((dim, &count), &padding): ((&Dim, &usize), &usize)| match *dim {
        None => Ok(None),
        Some(size) => {
            let whole = size.checked_add(padding).filter(|whole| whole.is_multiple_of(count));
            let expected = || format!("of sizes that are multiples of {counts:?} when padded");
            let wrong = || context.wrong(0, expected(), context.shape(0));
            whole.map(|whole| Some(whole / count)).ok_or_else(wrong)
        }
    };
    let sizes: Result<Vec<Dim>> = dims.iter().zip(counts).zip(paddings).map(size).collect();
    Ok(PartialShape::ranked(sizes?))
}

/// Blocks put together, `counts` of them along each dimension.
pub(super) fn join<'e>(blocks: &[Value<'e>], counts: &[i64]) -> Value<'e> {
    let mut blocks = blocks.to_vec();
    for (axis, &count) in counts.iter().enumerate().rev() {
        let groups = blocks.chunks(usize::try_from(count).unwrap_or(1).max(1));
        let joined = groups.map(|group| match group {
            [single] => *single,
            group => Value::concat(group, axis as i64),
        });
        blocks = joined.collect();
    }
    blocks[0]
}

/// A tensor cut into blocks, `counts` of them along each dimension.
pub(super) fn cut<'e>(x: Value<'e>, counts: &[i64]) -> Vec<Value<'e>> {
    let mut blocks = vec![x];
    for (axis, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 1) {
        blocks = blocks.into_iter().flat_map(|block| split(block, axis as i64, count)).collect();
    }
    blocks
}

/// `n` equal parts of a tensor along an axis.
fn split<'e>(x: Value<'e>, axis: i64, n: i64) -> Vec<Value<'e>> {
    let axis = x.literal(axis as i32);
    calls_with("Split", Attrs::new().with("num_split", n), &[axis, x]).values().to_vec()
}

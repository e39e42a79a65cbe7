//! Finding, ordering and counting elements.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, calls_with},
    error::Result,
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape, counted},
    xla::total,
};
use smallvec::SmallVec;

/// A search in sorted rows.
const BOUND: OpDef = OpDef {
    inputs: &[arg("sorted_inputs", "T"), arg("values", "T")],
    outputs: &[arg("output", "out_type")],
    attrs: &[any_ty("T"), ty_or("out_type", INDEX, DType::I32)],
    infer: bound,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// The distinct elements of a vector.
const UNIQUE: OpDef = OpDef {
    inputs: &[arg("x", "T")],
    outputs: &[arg("y", "T"), arg("idx", "out_idx")],
    attrs: &[any_ty("T"), ty_or("out_idx", INDEX, DType::I32)],
    infer: unique,
    lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
    ..OpDef::PURE
};

/// The distinct slices of a tensor along an axis.
const UNIQUE_ALONG: OpDef = OpDef {
    inputs: &[arg("x", "T"), arg("axis", "Taxis").host()],
    attrs: &[any_ty("T"), ty_or("Taxis", INDEX, DType::I64), ty_or("out_idx", INDEX, DType::I32)],
    infer: unique_along,
    ..UNIQUE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ApproxTopK",
        summary: "Takes the `k` largest or smallest elements along a dimension, and where they were.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("values", "T"), arg_of("indices", DType::I32)],
        attrs: &[
            int("k").at_least(0),
            int_or("reduction_dimension", -1),
            float_or("recall_target", 0.95),
            flag("is_max_k", true),
            int_or("reduction_input_size_override", -1),
            flag("aggregate_to_topk", true),
            ty("T", UP_TO_F32),
        ],
        infer: |context| {
            context.check_rank_at_least(0, 1)?;
            let k = context.attrs.int("k")?;
            let Some(dims) = context.shape(0).dims() else { return Ok(()) };
            let axis = normalize_axis(context.attrs.int("reduction_dimension")?, dims.len())?;
            if let Some(size) = dims[axis].filter(|&size| (size as i64) < k) {
                let expected = format!("of {k} elements or more in dimension {axis}, not {size}");
                return Err(context.wrong(0, expected, context.shape(0)));
            }
            let mut dims: SmallVec<[Dim; 6]> = dims.into();
            dims[axis] = Some(counted(k));
            context.set_all(&PartialShape::Ranked(dims));
            Ok(())
        },
        lowering: Lowering::Composite(approximate_top_k),
        ..OpDef::PURE
    },
    OpDef {
        name: "InTopK",
        summary: "Tells whether the class of each row is among those of the `k` largest scores.",
        inputs: &[arg_of("predictions", DType::F32), arg("targets", "T")],
        outputs: &[arg_of("precision", DType::Bool)],
        attrs: &[int("k"), ty_or("T", INDEX, DType::I32)],
        infer: in_top_k,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "InTopKV2",
        summary: "Tells whether the class of each row is among those of the `k` largest scores.",
        inputs: &[arg_of("predictions", DType::F32), arg("targets", "T"), arg("k", "T")],
        outputs: &[arg_of("precision", DType::Bool)],
        attrs: &[ty_or("T", INDEX, DType::I32)],
        infer: in_top_k,
        lowering: Lowering::Kernel,
        sharding: Some(ShardingRule::InTopK),
        ..OpDef::PURE
    },
    OpDef {
        name: "KMC2ChainInitialization",
        summary: "Draws the index of a point by a Markov chain over the distances of points.",
        inputs: &[arg_of("distances", DType::F32), arg_of("seed", DType::I64)],
        outputs: &[arg_of("index", DType::I64)],
        infer: |context| {
            let [points] = context.dims::<1>(0)?;
            context.check_rank(1, 0)?;
            if points == Some(0) {
                return Err(context.wrong(0, "of points", context.shape(0)));
            }
            infer::scalar(context)
        },
        lowering: Lowering::HostKernel(HostReason::Sequential),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "KmeansPlusPlusInitialization",
        summary: "Draws points that are far from each other.",
        inputs: &[
            arg_of("points", DType::F32),
            arg_of("num_to_sample", DType::I64).host(),
            arg_of("seed", DType::I64),
            arg_of("num_retries_per_sample", DType::I64),
        ],
        outputs: &[arg_of("samples", DType::F32)],
        infer: |context| {
            let [points, coordinates] = context.dims::<2>(0)?;
            (1..4).try_for_each(|index| context.check_rank(index, 0))?;
            let Some(wanted) = context.int(1)? else {
                context.set(0, PartialShape::ranked([None, coordinates]));
                return Ok(());
            };
            let least = points.map_or(i64::MAX, |points| points as i64);
            if !(1..=least).contains(&wanted) {
                return Err(context.wrong(1, "from 1 to the number of points", wanted));
            }
            context.set(0, PartialShape::ranked([usize::try_from(wanted).ok(), coordinates]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Sequential),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "ListDiff",
        summary: "Gives the elements of `x` that are not in `y`, and where they were.",
        inputs: &[arg("x", "T"), arg("y", "T")],
        outputs: &[arg("out", "T"), arg("idx", "out_idx")],
        attrs: &[any_ty("T"), ty_or("out_idx", INDEX, DType::I32)],
        infer: list_diff,
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        ..OpDef::PURE
    },
    OpDef {
        name: "LowerBound",
        summary: "Gives the position of the first element in a sorted row that is not smaller.",
        ..BOUND
    },
    OpDef {
        name: "NearestNeighbors",
        summary: "Finds the centers nearest to each point, and the squares of their distances.",
        inputs: &[
            arg_of("points", DType::F32),
            arg_of("centers", DType::F32),
            arg_of("k", DType::I64).host(),
        ],
        outputs: &[
            arg_of("nearest_center_indices", DType::I64),
            arg_of("nearest_center_distances", DType::F32),
        ],
        infer: |context| {
            let ([points, a], [centers, b]) = (context.dims::<2>(0)?, context.dims::<2>(1)?);
            context.same("the coordinates", a, b)?;
            context.check_rank(2, 0)?;
            let wanted = match context.int(2)? {
                Some(k) => Some(
                    usize::try_from(k).ok().ok_or_else(|| context.wrong(2, "not negative", k))?,
                ),
                None => None,
            };
            let found = wanted.zip(centers).map(|(wanted, centers)| wanted.min(centers));
            context.set_all(&PartialShape::ranked([points, found]));
            Ok(())
        },
        lowering: Lowering::Composite(nearest),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "NthElement",
        summary: "Takes the element that would be at position `n` if the rows were sorted.",
        inputs: &[arg("input", "T"), arg_of("n", DType::I32)],
        outputs: &[arg("values", "T")],
        attrs: &[flag("reverse", false), ty("T", REALS)],
        infer: nth_element,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::reduce::nth_element),
        ..OpDef::PURE
    },
    OpDef {
        name: "TopK",
        summary: "Takes the `k` largest elements of each row, and where they were.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("values", "T"), arg_of("indices", DType::I32)],
        attrs: &[int("k").at_least(0), flag("sorted", true), ty("T", REALS)],
        infer: top_k,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::indexing::top_k),
        compiled: XlaFormula::Of(total::top_k),
        ..OpDef::PURE
    },
    OpDef {
        name: "TopKV2",
        summary: "Takes the `k` largest elements of each row, and where they were.",
        inputs: &[arg("input", "T"), arg("k", "Tk").host()],
        outputs: &[arg("values", "T"), arg("indices", "index_type")],
        attrs: &[
            flag("sorted", true),
            ty("T", REALS),
            ty_or("Tk", &[DType::I16, DType::I32, DType::I64], DType::I32),
            ty_or("index_type", &[DType::I16, DType::I32, DType::I64], DType::I32),
        ],
        infer: top_k,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::indexing::top_k),
        compiled: XlaFormula::Of(total::top_k),
        sharding: Some(ShardingRule::TopK),
        ..OpDef::PURE
    },
    OpDef {
        name: "Unique",
        summary: "Gives the distinct elements in order of appearance, and which one each is.",
        ..UNIQUE
    },
    OpDef {
        name: "UniqueV2",
        summary: "Gives the distinct slices along an axis, and which one each is.",
        ..UNIQUE_ALONG
    },
    OpDef {
        name: "UniqueWithCounts",
        summary: "Gives the distinct elements, which one each is, and how often they occur.",
        outputs: &[arg("y", "T"), arg("idx", "out_idx"), arg("count", "out_idx")],
        ..UNIQUE
    },
    OpDef {
        name: "UniqueWithCountsV2",
        summary: "Gives the distinct slices along an axis, which one each is, and how often.",
        outputs: &[arg("y", "T"), arg("idx", "out_idx"), arg("count", "out_idx")],
        ..UNIQUE_ALONG
    },
    OpDef {
        name: "UpperBound",
        summary: "Gives the position of the first element in a sorted row that is larger.",
        compiled: XlaFormula::Of(total::upper_bound),
        ..BOUND
    },
];

/// The exact elements, which are as good as any approximation.
fn approximate_top_k<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, is_largest) = (c.x(0), c.flag("is_max_k"));
    let rank = x.shape().rank() as i64;
    let axis = c.int("reduction_dimension").rem_euclid(rank.max(1));
    let swapped: Vec<i64> = (0..rank)
        .map(|at| match at {
            at if at == axis => rank - 1,
            at if at == rank - 1 => axis,
            at => at,
        })
        .collect();
    let moved = |x: Value<'e>| if axis == rank - 1 { x } else { x.transpose(&swapped) };
    let signed = |x: Value<'e>| if is_largest { x } else { -x };
    let k = c.scalar(i32::try_from(c.int("k")).unwrap_or(i32::MAX));
    let found = calls_with("TopKV2", Attrs::new(), &[signed(moved(x)), k]);
    vec![moved(signed(found.at(0))), moved(found.at(1))]
}

/// By products of points and centers, and their own squares.
fn nearest<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (points, centers) = (c.x(0), c.x(1));
    let wanted = c.ints(2).first().copied().unwrap_or(1).min(centers.shape()[0] as i64);
    let own = |x: Value<'e>| x.square().sum(&[1], true);
    let products = points.matmul(centers, false, true) * 2.0;
    let far = own(points) - products + own(centers).transpose(&[1, 0]);
    let wanted = c.scalar(i32::try_from(wanted).unwrap_or(i32::MAX));
    let nearest = calls_with("TopKV2", Attrs::new(), &[-far, wanted]);
    vec![nearest.at(1).cast(DType::I64), -nearest.at(0)]
}

fn bound(context: &mut OpContext<'_>) -> Result<()> {
    let [rows, _] = context.dims(0)?;
    let [own_rows, n] = context.dims(1)?;
    let rows = context.same("numbers of rows", rows, own_rows)?;
    context.set(0, PartialShape::ranked([rows, n]));
    Ok(())
}

fn in_top_k(context: &mut OpContext<'_>) -> Result<()> {
    let [rows, _] = context.dims(0)?;
    let [targets] = context.dims(1)?;
    if context.n_inputs() > 2 {
        context.check_rank(2, 0)?;
    }
    let rows = context.same("numbers of rows and targets", rows, targets)?;
    context.set(0, PartialShape::vector(rows));
    Ok(())
}

fn list_diff(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    context.check_rank(1, 1)?;
    context.set_all(&PartialShape::vector(None));
    Ok(())
}

fn nth_element(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    context.check_rank(1, 0)?;
    if let Some([rows @ .., _]) = context.shape(0).dims() {
        context.set(0, PartialShape::ranked(rows.iter().copied()));
    }
    Ok(())
}

/// The number of elements is input 1, if there is one, else an attribute.
fn top_k(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let k = match context.n_inputs() {
        1 => Some(context.attrs.int("k")?),
        _ => context.int(1)?,
    };
    if k.is_some_and(|k| k < 0) {
        return Err(context.wrong_attr("k", "not negative", k.unwrap_or(0)));
    }
    let k = k.map(counted);
    let Some([rows @ .., n]) = context.shape(0).dims() else { return Ok(()) };
    if let (Some(k), Some(n)) = (k, *n)
        && n < k
    {
        let expected = format!("of {k} elements or more in the last dimension");
        return Err(context.wrong(0, expected, context.shape(0)));
    }
    context.set_all(&PartialShape::ranked(rows.iter().copied().chain([k])));
    Ok(())
}

fn unique(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    context.set_all(&PartialShape::vector(None));
    context.set(1, context.shape(0).clone());
    Ok(())
}

fn unique_along(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let Some(axes) = context.ints(1)? else { return Ok(()) };
    let axis = match axes[..] {
        [] => return unique(context),
        [axis] => axis,
        _ => return Err(context.wrong(1, "at most one axis", format!("{axes:?}"))),
    };
    context.set_all(&PartialShape::vector(None));
    context.set(0, PartialShape::Unknown);
    if let Some(dims) = context.shape(0).dims() {
        let axis = normalize_axis(axis, dims.len())?;
        let mut distinct: SmallVec<[Dim; 6]> = dims.into();
        distinct[axis] = None;
        context.set(0, PartialShape::Ranked(distinct));
        context.set(1, PartialShape::vector(dims[axis]));
    }
    Ok(())
}

//! Padding, and moving elements between the dimensions of images, channels and batches.

use super::sets::*;
use crate::emit::{call, call_with};
use crate::gradient::{self, Gradient, grads};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value},
    error::{Error, Result},
    infer::OpContext,
    op::*,
    patches::{PatchWindow, patch_windows},
    shape::{Dim, PartialShape, Shape, counted},
    view::StridedView,
    window::countable,
};
use smallvec::SmallVec;

const DATA_FORMAT: AttrDef =
    one_of("data_format", &["NHWC", "NCHW", "NCHW_VECT_C"]).or(AttrDefault::String("NHWC"));

/// A tensor with rows around it.
const PADDED: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("paddings", "Tpaddings").host()],
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T"), ty_or("Tpaddings", INDEX, DType::I32)],
    infer: pad,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// Orders of dimensions, a letter each.
const LAYOUTS: &[AttrDef] = &[
    ty_or("T", INDEX, DType::I32),
    string_or("src_format", "NHWC"),
    string_or("dst_format", "NCHW"),
];

/// Blocks of an image against channels.
const BLOCKS: OpDef = OpDef {
    inputs: &[arg("input", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T"), int("block_size").at_least(2), DATA_FORMAT],
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BatchToSpace",
        summary: "Interleaves images of a batch into larger ones, and crops them.",
        inputs: &[arg("input", "T"), arg("crops", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), int("block_size").at_least(2), ty_or("Tidx", INDEX, DType::I32)],
        infer: batch_to_space,
        lowering: Lowering::Composite(from_batch),
        gradient: Gradient::Rule(|b| grads([b.with_attrs("SpaceToBatch", [b.dy(0), b.x(1)])])),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchToSpaceND",
        summary: "Interleaves members of a batch into larger ones, and crops them.",
        inputs: &[
            arg("input", "T"),
            arg("block_shape", "Tblock_shape").host(),
            arg("crops", "Tcrops").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            ty_or("Tblock_shape", INDEX, DType::I32),
            ty_or("Tcrops", INDEX, DType::I32),
        ],
        infer: batch_to_space,
        lowering: Lowering::Composite(from_batch),
        gradient: Gradient::Rule(|b| grads([call("SpaceToBatchND", [b.dy(0), b.x(1), b.x(2)])])),
        ..OpDef::PURE
    },
    OpDef {
        name: "DepthToSpace",
        summary: "Lays channels out as blocks of a larger image.",
        infer: depth_to_space,
        lowering: Lowering::View(depth_to_space_view),
        gradient: Gradient::Rule(|b| grads([b.with_attrs("SpaceToDepth", [b.dy(0)])])),
        ..BLOCKS
    },
    OpDef {
        name: "DataFormatDimMap",
        summary: "Gives the places of dimensions in another order of them.",
        inputs: &[arg("x", "T")],
        outputs: &[arg("y", "T")],
        attrs: LAYOUTS,
        infer: |context| {
            permutation(context)?;
            context.set(0, context.shape(0).clone());
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let (from, to) = (c.string("src_format"), c.string("dst_format"));
            let axes = from.bytes().map(|letter| to.bytes().position(|own| own == letter));
            let axes: Vec<i64> = axes.map(|place| place.unwrap_or(0) as i64).collect();
            let axes = c.vector(&axes).cast(c.dtype(0));
            let at = call("FloorMod", [c.x(0), c.x(0).like(from.len() as f64)]);
            vec![call("GatherV2", [axes, at, c.scalar(0i32)])]
        }),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "DataFormatVecPermute",
        summary: "Puts numbers of dimensions, or pairs of them, into another order of dimensions.",
        inputs: &[arg("x", "T")],
        outputs: &[arg("y", "T")],
        attrs: LAYOUTS,
        infer: |context| {
            let n = permutation(context)?.len();
            let shape = context.shape(0);
            let is_meant = |rows: Dim| rows.is_none_or(|rows| rows == n || rows + 2 == n);
            let is_meant = match shape.dims() {
                Some(&[rows]) => is_meant(rows),
                Some(&[rows, columns]) => is_meant(rows) && columns.is_none_or(|two| two == 2),
                Some(_) => false,
                None => true,
            };
            match is_meant {
                true => context.set(0, shape.clone()),
                false => return Err(context.wrong(0, "a number or a pair for each", shape)),
            }
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let is_spatial = c.x(0).shape()[0] + 2 == c.string("src_format").len();
            let letters = |name: &str| {
                let all = c.string(name).bytes();
                let all = all.filter(|letter| !is_spatial || !matches!(letter, b'N' | b'C'));
                all.collect::<Vec<u8>>()
            };
            let (from, to) = (letters("src_format"), letters("dst_format"));
            let axes = to.iter().map(|letter| from.iter().position(|own| own == letter));
            let axes: Vec<i64> = axes.map(|place| place.unwrap_or(0) as i64).collect();
            vec![call("GatherV2", [c.x(0), c.vector(&axes), c.scalar(0i32)])]
        }),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "ExtractImagePatches",
        summary: "Takes windows of images, each laid out as channels.",
        inputs: &[arg("images", "T")],
        outputs: &[arg("patches", "T")],
        attrs: &[
            ints("ksizes").at_least(4),
            ints("strides").at_least(4),
            ints("rates").at_least(4),
            ty(
                "T",
                &[
                    DType::BF16,
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I8,
                    DType::I16,
                    DType::I32,
                    DType::I64,
                    DType::U8,
                    DType::U16,
                    DType::U32,
                    DType::U64,
                    DType::C64,
                    DType::C128,
                    DType::Bool,
                ],
            ),
            one_of("padding", &["SAME", "VALID"]),
        ],
        infer: extract_image_patches,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::array::extract_image_patches),
        ..OpDef::PURE
    },
    OpDef {
        name: "ExtractVolumePatches",
        summary: "Takes windows of volumes, each laid out as channels.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("patches", "T")],
        attrs: &[
            ints("ksizes").at_least(5),
            ints("strides").at_least(5),
            ty("T", REALS),
            one_of("padding", &["SAME", "VALID"]),
        ],
        infer: |context| {
            let [batch, sizes @ .., channels] = context.dims::<5>(0)?;
            let windows = volume_windows(context.attrs);
            let strides = format!("{:?}", context.attrs.ints("strides")?);
            let windows = windows
                .ok_or_else(|| context.wrong_attr("ksizes", "3 sizes and steps", strides))?;
            let count = |axis: usize| sizes[axis].map(|size| windows[axis].positions(size).0);
            let patch = windows.iter().map(|window| window.size);
            let patch = patch.fold(1usize, usize::saturating_mul);
            let patch = channels.and_then(|channels| channels.checked_mul(patch));
            context.set(0, PartialShape::ranked([batch, count(0), count(1), count(2), patch]));
            Ok(())
        },
        lowering: Lowering::Composite(volume_patches),
        ..OpDef::PURE
    },
    OpDef {
        name: "MirrorPad",
        summary: "Puts mirror images of a tensor around it.",
        attrs: &[
            any_ty("T"),
            ty_or("Tpaddings", INDEX, DType::I32),
            one_of("mode", &["REFLECT", "SYMMETRIC"]),
        ],
        infer: mirror_pad,
        gradient: Gradient::Rule(gradient::array::mirror_pad),
        sharding: Some(ShardingRule::Pad),
        ..PADDED
    },
    OpDef {
        name: "MirrorPadGrad",
        summary: "Adds what lies around a tensor to the elements it is a mirror image of.",
        attrs: &[
            any_ty("T"),
            ty_or("Tpaddings", INDEX, DType::I32),
            one_of("mode", &["REFLECT", "SYMMETRIC"]),
        ],
        infer: mirror_pad_grad,
        gradient: Gradient::Rule(gradient::array::mirror_pad_grad),
        ..PADDED
    },
    OpDef {
        name: "Pad",
        summary: "Puts zeros around a tensor.",
        gradient: Gradient::Rule(gradient::array::pad),
        sharding: Some(ShardingRule::Pad),
        ..PADDED
    },
    OpDef {
        name: "PadV2",
        summary: "Puts a value around a tensor.",
        inputs: &[
            arg("input", "T"),
            arg("paddings", "Tpaddings").host(),
            arg("constant_values", "T"),
        ],
        gradient: Gradient::Rule(gradient::array::pad),
        sharding: Some(ShardingRule::Pad),
        ..PADDED
    },
    OpDef {
        name: "SpaceToBatch",
        summary: "Pads images and takes every so many pixels as an image of its own.",
        inputs: &[arg("input", "T"), arg("paddings", "Tpaddings").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tpaddings", INDEX, DType::I32), int("block_size").at_least(2)],
        infer: space_to_batch,
        lowering: Lowering::Composite(to_batch),
        gradient: Gradient::Rule(|b| grads([b.with_attrs("BatchToSpace", [b.dy(0), b.x(1)])])),
        ..OpDef::PURE
    },
    OpDef {
        name: "SpaceToBatchND",
        summary: "Pads members of a batch and takes every so many elements as a member of its own.",
        inputs: &[
            arg("input", "T"),
            arg("block_shape", "Tblock_shape").host(),
            arg("paddings", "Tpaddings").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            ty_or("Tblock_shape", INDEX, DType::I32),
            ty_or("Tpaddings", INDEX, DType::I32),
        ],
        infer: space_to_batch,
        lowering: Lowering::Composite(to_batch),
        gradient: Gradient::Rule(|b| grads([call("BatchToSpaceND", [b.dy(0), b.x(1), b.x(2)])])),
        ..OpDef::PURE
    },
    OpDef {
        name: "SpaceToDepth",
        summary: "Lays blocks of an image out as channels of a smaller one.",
        infer: space_to_depth,
        lowering: Lowering::View(space_to_depth_view),
        gradient: Gradient::Rule(|b| grads([b.with_attrs("DepthToSpace", [b.dy(0)])])),
        ..BLOCKS
    },
];

/// Pairs of counts, one pair for each dimension: the value of input `index`, a matrix of `n` rows.
fn pairs(context: &OpContext<'_>, index: usize, n: Dim) -> Result<Option<Vec<[i64; 2]>>> {
    let [rows, two] = context.dims(index)?;
    context.same("number of pairs", rows, n)?;
    context.same("numbers in a pair", two, Some(2))?;
    let Some(values) = context.ints(index)? else { return Ok(None) };
    if values.iter().any(|&value| value < 0) {
        return Err(context.wrong(index, "not negative", format!("{values:?}")));
    }
    Ok(Some(values.as_chunks().0.to_vec()))
}

/// The sizes with a change to each dimension, `None` where that leaves no size.
fn resized(
    dims: &[Dim],
    pairs: &[[i64; 2]],
    change: impl Fn(i64, [i64; 2]) -> Option<i64>,
) -> Option<PartialShape> {
    let size = |(dim, pair): (&Dim, &[i64; 2])| match dim {
        None => Some(None),
        Some(dim) => {
            change(*dim as i64, *pair).and_then(|size| usize::try_from(size).ok()).map(Some)
        }
    };
    let sizes: Option<SmallVec<[Dim; 6]>> = dims.iter().zip(pairs).map(size).collect();
    sizes.map(PartialShape::Ranked)
}

fn grown(size: i64, [before, after]: [i64; 2]) -> Option<i64> {
    size.checked_add(before)?.checked_add(after)
}

/// Steps of windows through the three inner dimensions of volumes.
fn volume_windows(attrs: &Attrs) -> Option<[PatchWindow; 3]> {
    let read = |name: &str| match *attrs.ints(name).ok()? {
        [1, a, b, c, 1] => Some([countable(a)?, countable(b)?, countable(c)?]),
        _ => None,
    };
    let (sizes, strides) = (read("ksizes")?, read("strides")?);
    let is_same = attrs.string("padding").ok()? == "SAME";
    Some([0, 1, 2].map(|axis| PatchWindow::new(sizes[axis], strides[axis], is_same)))
}

/// Every position of a window is a slice of the volumes.
fn volume_patches<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, shape) = (c.x(0), c.x(0).shape());
    let Some(windows) = volume_windows(c.attrs) else {
        let what = "windows of other dimensions".into();
        return vec![c.fail(Error::Unsupported { op: c.op.name.into(), what })];
    };
    let axis = |axis: usize| {
        let (window, size) = (windows[axis], shape[axis + 1]);
        let (n, before) = window.positions(size);
        let end = n.saturating_sub(1).saturating_mul(window.stride).saturating_add(window.size);
        (n as i64, before as i64, end.saturating_sub(size + before) as i64)
    };
    let axes = [axis(0), axis(1), axis(2)];
    let padding: Vec<i64> =
        [[0, 0], [axes[0].1, axes[0].2], [axes[1].1, axes[1].2], [axes[2].1, axes[2].2], [0, 0]]
            .concat();
    let padded = call("Pad", [x, c.vector(&padding).reshape(&[5, 2])]);
    let steps: Vec<i64> = windows.iter().map(|window| window.stride as i64).collect();
    let slice = |at: [usize; 3]| {
        let begin: Vec<i64> = at.iter().map(|&at| at as i64).collect();
        let end = |axis: usize| match axes[axis].0 {
            0 => begin[axis],
            n => begin[axis] + (n - 1) * steps[axis] + 1,
        };
        let end = [end(0), end(1), end(2)];
        let attrs = Attrs::new().with("begin_mask", 0b10001i64).with("end_mask", 0b10001i64);
        let ends = |inner: &[i64], outer: i64| c.vector(&[&[outer], inner, &[outer]].concat());
        let inputs = [padded, ends(&begin, 0), ends(&end, 0), ends(&steps, 1)];
        call_with("StridedSlice", attrs, inputs)
    };
    let sizes = windows.map(|window| window.size);
    let number = |at: usize| [at / (sizes[1] * sizes[2]), at / sizes[2] % sizes[1], at % sizes[2]];
    let n = sizes.iter().fold(1usize, |n, &size| n.saturating_mul(size));
    vec![c.concat_parts(n, |at| slice(number(at)), 4)]
}

/// Where in the first order of dimensions each one of the second stands.
fn permutation(context: &OpContext<'_>) -> Result<Vec<usize>> {
    let (from, to) = (context.attrs.string("src_format")?, context.attrs.string("dst_format")?);
    let axes: Option<Vec<usize>> = to.bytes().map(|x| from.bytes().position(|y| y == x)).collect();
    let mut sorted = axes.clone().unwrap_or_default();
    sorted.sort_unstable();
    sorted.dedup();
    match axes {
        Some(places) if matches!(from.len(), 4 | 5) && sorted.len() == from.len() => Ok(places),
        _ => Err(context.wrong_attr("dst_format", format!("the letters of {from}"), to)),
    }
}

fn pad(context: &mut OpContext<'_>) -> Result<()> {
    if context.n_inputs() > 2 {
        context.check_rank(2, 0)?;
    }
    padded(context, |_, _| true, "")
}

fn mirror_pad(context: &mut OpContext<'_>) -> Result<()> {
    let own = usize::from(context.attrs.string("mode")? == "REFLECT") as i64;
    let fits = |size: i64, [before, after]: [i64; 2]| before.max(after) <= size - own;
    padded(context, fits, "no wider than what they mirror")
}

fn padded(
    context: &mut OpContext<'_>,
    fits: impl Fn(i64, [i64; 2]) -> bool,
    expected: &'static str,
) -> Result<()> {
    let rank = context.shape(0).rank();
    let pairs = pairs(context, 1, rank)?;
    let (Some(dims), Some(pairs)) = (context.shape(0).dims(), pairs) else {
        context.set(0, rank.map_or(PartialShape::Unknown, PartialShape::of_rank));
        return Ok(());
    };
    for (&dim, &pair) in dims.iter().zip(&pairs) {
        if dim.is_some_and(|dim| !fits(dim as i64, pair)) {
            return Err(context.wrong(1, expected, format!("{pairs:?}")));
        }
    }
    match resized(dims, &pairs, grown) {
        Some(shape) => context.set(0, shape),
        None => return Err(context.wrong(1, "countable", format!("{pairs:?}"))),
    }
    Ok(())
}

fn mirror_pad_grad(context: &mut OpContext<'_>) -> Result<()> {
    let own = i64::from(context.attrs.string("mode")? == "REFLECT");
    let rank = context.shape(0).rank();
    let pairs = pairs(context, 1, rank)?;
    let (Some(dims), Some(pairs)) = (context.shape(0).dims(), pairs) else {
        context.set(0, rank.map_or(PartialShape::Unknown, PartialShape::of_rank));
        return Ok(());
    };
    let shrunk = resized(dims, &pairs, |size, [before, after]| {
        let rest = size.checked_sub(before)?.checked_sub(after)?;
        (before.max(after) <= rest - own).then_some(rest)
    });
    match shrunk {
        Some(shape) => context.set(0, shape),
        None => {
            let expected = "no wider than what they mirror";
            return Err(context.wrong(1, expected, format!("{pairs:?}")));
        }
    }
    Ok(())
}

/// The block sizes of a call, and its padding or cropping: of `SpaceToBatch` and `BatchToSpace`
/// an attribute and input 1, of the others inputs 1 and 2.
fn blocks(context: &OpContext<'_>) -> Result<Option<Blocks>> {
    let (sizes, index) = match context.n_inputs() {
        2 => (Some(vec![context.attrs.int("block_size")?; 2]), 1),
        _ => {
            context.check_rank(1, 1)?;
            (context.ints(1)?, 2)
        }
    };
    let Some(sizes) = sizes else { return Ok(None) };
    if sizes.iter().any(|&size| size < 1) {
        return Err(context.wrong(1, "positive", format!("{sizes:?}")));
    }
    let pairs = pairs(context, index, Some(sizes.len()))?;
    context.check_rank_at_least(0, 1 + sizes.len())?;
    let volume = sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size));
    let Some(volume) = volume else {
        return Err(context.wrong(1, "countable", format!("{sizes:?}")));
    };
    Ok(pairs.map(|pairs| Blocks { sizes, pairs, volume }))
}

struct Blocks {
    sizes: Vec<i64>,
    pairs: Vec<[i64; 2]>,
    /// The product of the sizes.
    volume: i64,
}

fn space_to_batch(context: &mut OpContext<'_>) -> Result<()> {
    let (Some(blocks), Some(dims)) = (blocks(context)?, context.shape(0).dims()) else {
        return Ok(());
    };
    let n = blocks.sizes.len();
    let batch = dims[0].map(|batch| batch.saturating_mul(counted(blocks.volume)));
    let mut result: SmallVec<[Dim; 6]> = SmallVec::from_slice(&[batch]);
    for ((&dim, &block), &pair) in dims[1..=n].iter().zip(&blocks.sizes).zip(&blocks.pairs) {
        let size = dim.map(|dim| grown(dim as i64, pair).unwrap_or(-1));
        result.push(match size {
            None => None,
            Some(size) if size >= 0 && size % block == 0 => Some(counted(size / block)),
            Some(size) => {
                return Err(context.wrong(0, format!("padded to a multiple of {block}"), size));
            }
        });
    }
    result.extend_from_slice(&dims[n + 1..]);
    context.set(0, PartialShape::Ranked(result));
    Ok(())
}

fn batch_to_space(context: &mut OpContext<'_>) -> Result<()> {
    let (Some(blocks), Some(dims)) = (blocks(context)?, context.shape(0).dims()) else {
        return Ok(());
    };
    let n = blocks.sizes.len();
    let mut result: SmallVec<[Dim; 6]> = SmallVec::new();
    if let Some(batch) = dims[0]
        && batch as i64 % blocks.volume != 0
    {
        return Err(context.wrong(0, format!("a multiple of {} members", blocks.volume), batch));
    }
    result.push(dims[0].map(|batch| batch / counted(blocks.volume)));
    for ((&dim, &block), &[start, end]) in dims[1..=n].iter().zip(&blocks.sizes).zip(&blocks.pairs)
    {
        let whole = dim.map(|dim| (dim as i64).saturating_mul(block));
        let left = whole.map(|whole| whole.saturating_sub(start).saturating_sub(end));
        match left.map(usize::try_from) {
            Some(Err(_)) => {
                let found = format!("{start} and {end}");
                return Err(context.wrong(context.n_inputs() - 1, "within the image", found));
            }
            size => result.push(size.and_then(std::result::Result::ok)),
        }
    }
    result.extend_from_slice(&dims[n + 1..]);
    context.set(0, PartialShape::Ranked(result));
    Ok(())
}

/// The block sizes and pairs of a call that has been checked.
fn known_blocks(c: &Composite<'_>) -> (Vec<i64>, Vec<[i64; 2]>) {
    let last = c.n_inputs() - 1;
    let sizes = if last == 1 { vec![c.int("block_size"); 2] } else { c.ints(1) };
    let pairs = c.ints(last);
    (sizes, pairs.as_chunks().0.to_vec())
}

fn to_batch<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (blocks, pairs) = known_blocks(c);
    let (n, rank) = (blocks.len(), c.x(0).shape().rank());
    let mut x = c.x(0);
    if pairs.iter().any(|pair| *pair != [0, 0]) {
        let mut paddings = vec![0i64; 2 * rank];
        paddings[2..2 * (n + 1)].copy_from_slice(pairs.as_flattened());
        let paddings = c.vector(&paddings).reshape(&[rank as i64, 2]);
        let attrs = Attrs::new().with("T", x.dtype()).with("Tpaddings", DType::I64);
        x = c.call1("Pad", attrs, &[x, paddings]);
    }
    let dims = x.shape().to_i64();
    let mut cut = vec![dims[0]];
    for (&dim, &block) in dims[1..].iter().zip(&blocks) {
        cut.extend([dim / block, block]);
    }
    cut.extend_from_slice(&dims[n + 1..]);
    let n_axes = n as i64;
    let mut order: Vec<i64> = (0..n_axes).map(|axis| 2 * axis + 2).collect();
    order.push(0);
    order.extend((0..n_axes).map(|axis| 2 * axis + 1));
    order.extend(2 * n_axes + 1..cut.len() as i64);
    let mut result = vec![dims[0] * blocks.iter().product::<i64>()];
    result.extend(dims[1..].iter().zip(&blocks).map(|(dim, block)| dim / block));
    result.extend_from_slice(&dims[n + 1..]);
    vec![x.reshape(&cut).transpose(&order).reshape(&result)]
}

fn from_batch<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (blocks, pairs) = known_blocks(c);
    let (n, dims) = (blocks.len(), c.x(0).shape().to_i64());
    let batch = dims[0] / blocks.iter().product::<i64>();
    let mut cut = blocks.clone();
    cut.push(batch);
    cut.extend_from_slice(&dims[1..]);
    let n_axes = n as i64;
    let mut order = vec![n_axes];
    for axis in 0..n_axes {
        order.extend([n_axes + 1 + axis, axis]);
    }
    order.extend(2 * n_axes + 1..cut.len() as i64);
    let mut whole = vec![batch];
    whole.extend(dims[1..].iter().zip(&blocks).map(|(dim, block)| dim * block));
    whole.extend_from_slice(&dims[n + 1..]);
    let x = c.x(0).reshape(&cut).transpose(&order).reshape(&whole);
    if pairs.iter().all(|pair| *pair == [0, 0]) {
        return vec![x];
    }
    let (mut begin, mut size) = (vec![0; dims.len()], whole);
    for (axis, [start, end]) in pairs.into_iter().enumerate() {
        begin[axis + 1] = start;
        size[axis + 1] -= start + end;
    }
    vec![x.slice(&begin, &size)]
}

/// Where batch, channels, rows and columns are, and how many channels are together at the end.
struct Layout {
    channels: usize,
    rows: usize,
    columns: usize,
    vector: bool,
}

fn layout(context: &OpContext<'_>) -> Result<Layout> {
    Ok(match context.attrs.string("data_format")? {
        "NHWC" => Layout { rows: 1, columns: 2, channels: 3, vector: false },
        "NCHW" => Layout { channels: 1, rows: 2, columns: 3, vector: false },
        _ => Layout { channels: 1, rows: 2, columns: 3, vector: true },
    })
}

fn image_shape(context: &OpContext<'_>, layout: &Layout) -> Result<Option<SmallVec<[Dim; 6]>>> {
    context.check_rank(0, if layout.vector { 5 } else { 4 })?;
    Ok(context.shape(0).dims().map(SmallVec::from))
}

fn space_to_depth(context: &mut OpContext<'_>) -> Result<()> {
    let layout = layout(context)?;
    let block = context.attrs.size("block_size")?;
    let Some(mut dims) = image_shape(context, &layout)? else { return Ok(()) };
    for axis in [layout.rows, layout.columns] {
        if dims[axis].is_some_and(|size| size % block != 0) {
            let expected = format!("of images of a multiple of {block}");
            return Err(context.wrong(0, expected, context.shape(0)));
        }
        dims[axis] = dims[axis].map(|size| size / block);
    }
    let channels = dims[layout.channels];
    dims[layout.channels] =
        channels.map(|channels| channels.saturating_mul(block.saturating_mul(block)));
    context.set(0, PartialShape::Ranked(dims));
    Ok(())
}

fn depth_to_space(context: &mut OpContext<'_>) -> Result<()> {
    let layout = layout(context)?;
    let block = context.attrs.size("block_size")?;
    let Some(mut dims) = image_shape(context, &layout)? else { return Ok(()) };
    let area = block.saturating_mul(block);
    if dims[layout.channels].is_some_and(|channels| channels % area != 0) {
        let expected = format!("of a multiple of {area} channels");
        return Err(context.wrong(0, expected, context.shape(0)));
    }
    dims[layout.channels] = dims[layout.channels].map(|channels| channels / area);
    for axis in [layout.rows, layout.columns] {
        dims[axis] = dims[axis].map(|size| size.saturating_mul(block));
    }
    context.set(0, PartialShape::Ranked(dims));
    Ok(())
}

fn space_to_depth_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let shape = context.known(0)?;
    let block = context.attrs.size("block_size")?;
    let layout = layout(context)?;
    let (n, c) = (shape[0], shape[layout.channels]);
    let (h, w) = (shape[layout.rows] / block, shape[layout.columns] / block);
    Ok(vec![if layout.channels == 3 {
        let split = Shape::new([n, h, block, w, block, c])?;
        StridedView::whole(&split).transposed(&[0, 1, 3, 2, 4, 5])
    } else {
        let together = if layout.vector { shape[4] } else { 1 };
        let split = Shape::new([n, c, h, block, w, block, together])?;
        StridedView::whole(&split).transposed(&[0, 3, 5, 1, 2, 4, 6])
    }])
}

fn depth_to_space_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let shape = context.known(0)?;
    let block = context.attrs.size("block_size")?;
    let layout = layout(context)?;
    let (n, c) = (shape[0], shape[layout.channels] / (block * block));
    let (h, w) = (shape[layout.rows], shape[layout.columns]);
    Ok(vec![if layout.channels == 3 {
        let split = Shape::new([n, h, w, block, block, c])?;
        StridedView::whole(&split).transposed(&[0, 1, 3, 2, 4, 5])
    } else {
        let together = if layout.vector { shape[4] } else { 1 };
        let split = Shape::new([n, block, block, c, h, w, together])?;
        StridedView::whole(&split).transposed(&[0, 3, 4, 1, 5, 2, 6])
    }])
}

fn extract_image_patches(context: &mut OpContext<'_>) -> Result<()> {
    let [n, rows, columns, channels] = context.dims(0)?;
    let windows = patch_windows(context)?;
    let positions = |size: Dim, window: &PatchWindow| size.map(|size| window.positions(size).0);
    let area = windows[0].size.saturating_mul(windows[1].size);
    let depth = channels.map(|channels| channels.saturating_mul(area));
    let (rows, columns) = (positions(rows, &windows[0]), positions(columns, &windows[1]));
    context.set(0, PartialShape::ranked([n, rows, columns, depth]));
    Ok(())
}

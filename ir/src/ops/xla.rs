//! The primitives of XLA that graphs name: `XlaDotV2`, `XlaGather`, …
//!
//! They stand in graphs that were written for a compiler (`jit_compile=True`), and in those of
//! Keras 3. Each is a formula over ordinary ops; the formulas are in [`crate::xla`].

use super::sets::*;
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call_with},
    error::{Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    xla::{
        MessageNumbers, Size,
        bits::reduce_precision,
        conv::{ConvWindow, convolution},
        dot::dot_general,
        gather::gather,
        pad::{AxisPadding, pad},
        rng::{BitGenerator, rng_bit_generator},
        size::{rank, reshape, sizes},
        slice::{dynamic_slice, dynamic_update_slice, starts_of},
        sort::{SortKey, sort_by_keys},
    },
};

/// The types TensorFlow calls number types.
pub(super) const NUMBER_TYPES: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::I32,
    DType::U8,
    DType::I16,
    DType::I8,
    DType::C64,
    DType::I64,
    DType::QI8,
    DType::QU8,
    DType::QI32,
    DType::BF16,
    DType::QI16,
    DType::QU16,
    DType::U16,
    DType::C128,
    DType::F16,
    DType::U32,
    DType::U64,
];

/// Number types, and bool.
pub(super) const NUMBER_TYPES_AND_BOOL: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::I32,
    DType::U8,
    DType::I16,
    DType::I8,
    DType::C64,
    DType::I64,
    DType::Bool,
    DType::QI8,
    DType::QU8,
    DType::QI32,
    DType::BF16,
    DType::QI16,
    DType::QU16,
    DType::U16,
    DType::C128,
    DType::F16,
    DType::U32,
    DType::U64,
];

/// The types of real numbers.
const REAL_TYPES: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::I32,
    DType::U8,
    DType::I16,
    DType::I8,
    DType::I64,
    DType::BF16,
    DType::U16,
    DType::F16,
    DType::U32,
    DType::U64,
];

/// An op whose result is its input.
const SAME: OpDef = OpDef {
    inputs: &[arg("input", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T")],
    infer: infer::unchanged,
    lowering: Lowering::Alias(AliasKind::Identity),
    gradient: crate::Gradient::Same,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "XlaBroadcastHelper",
        summary: "Gives the shapes of two tensors the axes of each other.",
        inputs: &[arg("lhs", "T"), arg("rhs", "T"), arg("broadcast_dims", "Tindices").host()],
        outputs: &[arg("lhs_output", "T"), arg("rhs_output", "T")],
        attrs: &[ty("T", NUMBER_TYPES), ty("Tindices", INDEX)],
        lowering: Lowering::Composite(broadcast_helper),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaConv",
        summary: "Convolves with any layout, stride, dilation, padding and grouping.",
        inputs: CONV_INPUTS,
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", NUMBER_TYPES),
            ty("Tindices", INDEX),
            string("dimension_numbers"),
            string("precision_config"),
        ],
        lowering: Lowering::Composite(|c| conv(c, c.dtype(0), 1)),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaConvV2",
        summary: "Convolves with any layout, stride, dilation, padding and grouping.",
        inputs: CONV_INPUTS_V2,
        outputs: &[arg("output", "preferred_element_type")],
        attrs: &[
            ty("LhsT", NUMBER_TYPES),
            ty("RhsT", NUMBER_TYPES),
            ty("Tindices", INDEX),
            string("dimension_numbers"),
            string("precision_config"),
            ty("preferred_element_type", NUMBER_TYPES),
            int_or("batch_group_count", 1),
        ],
        lowering: Lowering::Composite(|c| {
            conv(c, c.dtype_attr("preferred_element_type"), c.int("batch_group_count"))
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaDot",
        summary: "Sums products along pairs of axes, for each pair of batch axes.",
        inputs: &[arg("lhs", "T"), arg("rhs", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBER_TYPES), string("dimension_numbers"), string("precision_config")],
        infer: dot_shape,
        lowering: Lowering::Composite(|c| dot(c, c.dtype(0))),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaDotV2",
        summary: "Sums products along pairs of axes, for each pair of batch axes.",
        inputs: &[arg("lhs", "LhsT"), arg("rhs", "RhsT")],
        outputs: &[arg("output", "preferred_element_type")],
        attrs: &[
            ty("LhsT", NUMBER_TYPES),
            ty("RhsT", NUMBER_TYPES),
            string("dimension_numbers"),
            string("precision_config"),
            ty("preferred_element_type", NUMBER_TYPES),
        ],
        infer: dot_shape,
        lowering: Lowering::Composite(|c| dot(c, c.dtype_attr("preferred_element_type"))),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaDynamicSlice",
        summary: "Takes a window at a place that is moved to be inside.",
        inputs: &[
            arg("input", "T"),
            arg("start_indices", "Tindices"),
            arg("size_indices", "Tindices").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Tindices", INDEX)],
        infer: |context| {
            let shape = context.shape_value(2)?;
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let slice: Vec<Size<'_>> = c.ints(2).into_iter().map(Size::Known).collect();
            vec![dynamic_slice(c.x(0), &starts_of(c.x(1), slice.len()), &slice)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaDynamicUpdateSlice",
        summary: "Replaces a window at a place that is moved to be inside.",
        inputs: &[arg("input", "T"), arg("update", "T"), arg("indices", "Tindices")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Tindices", INDEX)],
        infer: infer::unchanged,
        lowering: Lowering::Composite(|c| {
            let starts = starts_of(c.x(2), rank(c.x(0)));
            vec![dynamic_update_slice(c.x(0), c.x(1), &starts)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaEinsum",
        summary: "Products and sums written as an equation of labelled axes.",
        inputs: &[arg("a", "T"), arg("b", "T")],
        outputs: &[arg("product", "T")],
        attrs: &[string("equation"), ty("T", &[DType::C64, DType::BF16, DType::F32])],
        lowering: Lowering::Composite(|c| {
            let attrs = Attrs::new().with("equation", c.string("equation"));
            c.call("Einsum", attrs.with("N", 2i64).with("T", c.dtype(0)), c.inputs())
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaGather",
        summary: "Takes slices of one size at places that vectors of indices name.",
        inputs: &[
            arg("operand", "T"),
            arg("start_indices", "Tindices"),
            arg("slice_sizes", "Tindices").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            string("dimension_numbers"),
            required_flag("indices_are_sorted"),
            ty("T", NUMBER_TYPES_AND_BOOL),
            ty("Tindices", INDEX),
        ],
        lowering: Lowering::Composite(gathered),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaKeyValueSort",
        summary: "Sorts keys, and values by their keys.",
        inputs: &[arg("keys", "K"), arg("values", "V")],
        outputs: &[arg("sorted_keys", "K"), arg("sorted_values", "V")],
        attrs: &[ty("K", REAL_TYPES), any_ty("V")],
        infer: |context| {
            let shapes = [0, 1].map(|index| context.shape(index).clone());
            shapes.into_iter().enumerate().for_each(|(index, shape)| context.set(index, shape));
            Ok(())
        },
        lowering: Lowering::Composite(|c| sorted(&[c.x(0), c.x(1)])),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaOptimizationBarrier",
        summary: "Passes tensors on, all at once.",
        inputs: &[args_list("input", "T")],
        outputs: &[args_list("output", "T")],
        attrs: &[types("T").at_least(0)],
        infer: same_shapes,
        lowering: Lowering::Composite(|c| c.inputs().to_vec()),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaPad",
        summary: "Puts a value around and between elements; negative edges cut off.",
        inputs: &[
            arg("input", "T"),
            arg("padding_value", "T"),
            arg("padding_low", "Tindices").host(),
            arg("padding_high", "Tindices").host(),
            arg("padding_interior", "Tindices").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Tindices", INDEX)],
        lowering: Lowering::Composite(padded),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaReducePrecision",
        summary: "Rounds floats to fewer bits of exponent and fraction.",
        inputs: &[arg("operand", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", &[DType::BF16, DType::F16, DType::F32, DType::F64]),
            int("exponent_bits"),
            int("mantissa_bits"),
        ],
        infer: infer::unchanged,
        lowering: Lowering::Composite(|c| {
            vec![reduce_precision(c.x(0), c.int("exponent_bits"), c.int("mantissa_bits"))]
        }),
        gradient: crate::Gradient::Rule(|b| {
            let attrs = Attrs::new()
                .with("exponent_bits", b.int("exponent_bits"))
                .with("mantissa_bits", b.int("mantissa_bits"));
            crate::gradient::grads([call_with("XlaReducePrecision", attrs, [b.dy(0)])])
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaRemoveDynamicDimensionSize",
        summary: "Makes an axis of a size that is only known in a call one of its whole size.",
        inputs: &[arg("input", "T"), arg_of("dim_index", DType::I32).host()],
        ..SAME
    },
    OpDef {
        name: "XlaReplicaId",
        summary: "The number of the replica: 0, as there is one.",
        outputs: &[arg_of("id", DType::I32)],
        infer: |context| {
            context.set(0, PartialShape::scalar());
            Ok(())
        },
        lowering: Lowering::Composite(|c| vec![c.scalar(0i32)]),
        gradient: crate::Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaRngBitGenerator",
        summary: "Makes bits from a state, and the next state.",
        inputs: &[
            arg_of("algorithm", DType::I32).host(),
            arg_of("initial_state", DType::U64),
            arg("shape", "Tshape").host(),
        ],
        outputs: &[arg_of("output_key", DType::U64), arg("output", "dtype")],
        attrs: &[
            ty_or(
                "dtype",
                &[DType::U8, DType::I8, DType::I32, DType::I64, DType::U32, DType::U64],
                DType::U64,
            ),
            ty_or("Tshape", INDEX, DType::I32),
        ],
        infer: |context| {
            let ([words], shape) = (context.dims(1)?, context.shape_value(2)?);
            if words.is_some_and(|words| !matches!(words, 2 | 3)) {
                return Err(context.wrong(1, "of 2 or 3 words", context.shape(1)));
            }
            context.set(0, PartialShape::vector(words));
            context.set(1, shape);
            Ok(())
        },
        lowering: Lowering::Composite(random_bits),
        gradient: crate::Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaSelfAdjointEig",
        summary: "Eigenvalues and eigenvectors of symmetric matrices.",
        inputs: &[arg("a", "T")],
        outputs: &[arg("w", "T"), arg("v", "T")],
        attrs: &[required_flag("lower"), int("max_iter"), float("epsilon"), ty("T", NUMBER_TYPES)],
        lowering: Lowering::Composite(self_adjoint_eig),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaSharding",
        summary: "Passes a tensor on; the parts that it may be cut into are an annotation.",
        attrs: &[any_ty("T"), string_or("sharding", ""), ints_or("unspecified_dims", &[])],
        ..SAME
    },
    OpDef {
        name: "XlaSort",
        summary: "Sorts along the last axis.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::unchanged,
        lowering: Lowering::Composite(|c| sorted(&[c.x(0)])),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaSpmdFullToShardShape",
        summary: "Passes a tensor on, of which one device has the whole.",
        attrs: &[
            any_ty("T"),
            string("manual_sharding"),
            int_or("dim", -1),
            ints_or("unspecified_dims", &[]),
        ],
        ..SAME
    },
    OpDef {
        name: "XlaSpmdShardToFullShape",
        summary: "Passes a tensor on, of which one device has the whole.",
        attrs: &[
            any_ty("T"),
            string("manual_sharding"),
            shape("full_shape"),
            int_or("dim", -1),
            ints_or("unspecified_dims", &[]),
        ],
        ..SAME
    },
    OpDef {
        name: "XlaSetBound",
        summary: "Passes a number on that is known not to be above a bound.",
        inputs: &[arg_of("input", DType::I32), arg_of("bound", DType::I32).host()],
        outputs: &[arg_of("output", DType::I32)],
        attrs: &[],
        ..SAME
    },
    OpDef {
        name: "XlaSetDynamicDimensionSize",
        summary: "Takes the first elements of an axis, as many as are told.",
        inputs: &[
            arg("input", "T"),
            arg_of("dim_index", DType::I32).host(),
            arg_of("size", DType::I32).host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        lowering: Lowering::Composite(|c| {
            let (axis, size) = (c.ints(1), c.ints(2));
            let mut whole = sizes(c.x(0));
            let axis = axis.first().and_then(|&axis| usize::try_from(axis).ok());
            let Some(axis) = axis.filter(|&axis| axis < whole.len()) else {
                return wrong(c, "dim_index", "an axis of the input");
            };
            whole[axis] = Size::Known(size.first().copied().unwrap_or(0));
            let begin = vec![Size::Known(0); whole.len()];
            vec![crate::xla::size::window(c.x(0), &begin, &whole)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaSvd",
        summary: "Singular values and vectors of matrices.",
        inputs: &[arg("a", "T")],
        outputs: &[arg("s", "T"), arg("u", "T"), arg("v", "T")],
        attrs: &[
            int("max_iter"),
            float("epsilon"),
            string("precision_config"),
            ty("T", NUMBER_TYPES),
        ],
        lowering: Lowering::Composite(|c| {
            let attrs = Attrs::new().with("compute_uv", true).with("full_matrices", false);
            c.call("Svd", attrs.with("T", c.dtype(0)), &[c.x(0)])
        }),
        ..OpDef::PURE
    },
];

const CONV_INPUTS: &[ArgDef] = &[
    arg("lhs", "T"),
    arg("rhs", "T"),
    arg("window_strides", "Tindices").host(),
    arg("padding", "Tindices").host(),
    arg("lhs_dilation", "Tindices").host(),
    arg("rhs_dilation", "Tindices").host(),
    arg("feature_group_count", "Tindices").host(),
];

const CONV_INPUTS_V2: &[ArgDef] = &[
    arg("lhs", "LhsT"),
    arg("rhs", "RhsT"),
    arg("window_strides", "Tindices").host(),
    arg("padding", "Tindices").host(),
    arg("lhs_dilation", "Tindices").host(),
    arg("rhs_dilation", "Tindices").host(),
    arg("feature_group_count", "Tindices").host(),
];

/// Results have the shapes of the inputs.
pub(super) fn same_shapes(context: &mut OpContext<'_>) -> Result<()> {
    for index in 0..context.n_outputs() {
        let shape = context.shape(index).clone();
        context.set(index, shape);
    }
    Ok(())
}

/// Fails because an argument is not what it must be.
pub(super) fn wrong<'e>(
    c: &Composite<'e>,
    argument: &'static str,
    expected: &'static str,
) -> Vec<Value<'e>> {
    let error = Error::argument(c.op.name, argument, expected, "something else");
    (0..c.op.outputs.len()).map(|_| c.fail(error.clone())).collect()
}

/// Dimension numbers that fit; none, with an error noted, if they do not.
pub(super) fn numbers<'e, T>(
    c: &Composite<'e>,
    read: impl Fn(&MessageNumbers) -> T,
    fits: impl Fn(&T) -> bool,
) -> Option<T> {
    let bytes = match c.attrs.get("dimension_numbers") {
        Some(crate::AttrValue::String(bytes)) => bytes.clone(),
        _ => bytes::Bytes::new(),
    };
    let found = MessageNumbers::read(c.op.name, &bytes).map(|numbers| read(&numbers));
    let checked = found.and_then(|found| match fits(&found) {
        true => Ok(found),
        false => {
            let expected = "axes of the arguments";
            Err(Error::argument(c.op.name, "dimension_numbers", expected, "others"))
        }
    });
    match checked {
        Ok(found) => Some(found),
        Err(error) => {
            c.fail(error);
            None
        }
    }
}

fn dot_shape(context: &mut OpContext<'_>) -> Result<()> {
    let Some(crate::AttrValue::String(bytes)) = context.attrs.get("dimension_numbers") else {
        return Ok(());
    };
    let axes = MessageNumbers::read(context.op.name, bytes)?.dot();
    let (Some(lhs), Some(rhs)) = (context.shape(0).dims(), context.shape(1).dims()) else {
        return Ok(());
    };
    if !axes.fits(lhs.len(), rhs.len()) {
        return Err(context.wrong_attr("dimension_numbers", "axes of the arguments", "others"));
    }
    let pairs =
        [(&axes.lhs_batch, &axes.rhs_batch), (&axes.lhs_contracting, &axes.rhs_contracting)];
    for (a, b) in pairs {
        for (&a, &b) in a.iter().zip(b) {
            context.same("sizes of axes that belong together", lhs[a], rhs[b])?;
        }
    }
    let free = |dims: &[crate::Dim], batch: &[usize], contracting: &[usize]| {
        let kept =
            (0..dims.len()).filter(|axis| !batch.contains(axis) && !contracting.contains(axis));
        kept.map(|axis| dims[axis]).collect::<Vec<_>>()
    };
    let batch = axes.lhs_batch.iter().map(|&axis| lhs[axis]);
    let dims = batch.chain(free(lhs, &axes.lhs_batch, &axes.lhs_contracting)).chain(free(
        rhs,
        &axes.rhs_batch,
        &axes.rhs_contracting,
    ));
    let shape = PartialShape::ranked(dims.collect::<Vec<_>>());
    context.set(0, shape);
    Ok(())
}

fn dot<'e>(c: &Composite<'e>, result: DType) -> Vec<Value<'e>> {
    let ranks = [rank(c.x(0)), rank(c.x(1))];
    let axes = numbers(c, MessageNumbers::dot, |axes| axes.fits(ranks[0], ranks[1]));
    axes.map(|axes| dot_general(c.x(0), c.x(1), &axes, result)).into_iter().collect()
}

fn conv<'e>(c: &Composite<'e>, result: DType, batch_groups: i64) -> Vec<Value<'e>> {
    let n = rank(c.x(0));
    let Some(axes) = numbers(c, MessageNumbers::conv, |axes| axes.fits(n) && rank(c.x(1)) == n)
    else {
        return Vec::new();
    };
    let spatial = axes.input_spatial.len();
    let padding = c.ints(3);
    let window = ConvWindow {
        stride: c.ints(2),
        padding: padding.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].into())).collect(),
        lhs_dilation: c.ints(4),
        rhs_dilation: c.ints(5),
        reversal: vec![false; spatial],
        feature_groups: c.ints(6).first().copied().unwrap_or(1),
        batch_groups,
    };
    if !window.fits(spatial) {
        return wrong(c, "window", "of as many axes as the image");
    }
    match convolution(c.x(0), c.x(1), &axes, &window, result) {
        Some(value) => vec![value],
        None => wrong(c, "lhs", "of at most three spatial axes"),
    }
}

fn gathered<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let slice: Vec<Size<'e>> = c.ints(2).into_iter().map(Size::Known).collect();
    let ranks = [rank(c.x(0)), rank(c.x(1))];
    let axes = numbers(c, MessageNumbers::gather, |axes| {
        axes.fits(ranks[0], ranks[1]) && slice.len() == ranks[0]
    });
    axes.map(|axes| gather(c.x(0), c.x(1), &axes, &slice)).into_iter().collect()
}

fn padded<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let [low, high, interior] = [2, 3, 4]
        .map(|index| -> Vec<Size<'e>> { c.ints(index).into_iter().map(Size::Known).collect() });
    let n = rank(c.x(0));
    let fits = [&low, &high, &interior].iter().all(|list| list.len() == n)
        && interior.iter().all(|size| size.known().is_some_and(|size| size >= 0));
    match fits {
        true => vec![pad(c.x(0), c.x(1), &AxisPadding { low, high, interior })],
        false => wrong(c, "padding", "one for each axis, that between elements not negative"),
    }
}

fn sorted<'e>(xs: &[Value<'e>]) -> Vec<Value<'e>> {
    let n = rank(xs[0]);
    if n == 0 {
        return xs.to_vec();
    }
    sort_by_keys(xs, n - 1, &[SortKey { value: xs[0], descending: false }])
}

/// The two tensors with the same rank; axes of the smaller one are those that are told.
fn broadcast_helper<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (lhs, rhs, axes) = (c.x(0), c.x(1), c.ints(2));
    let (n, m) = (rank(lhs), rank(rhs));
    if axes.is_empty() {
        let none_needed = n == m || n == 0 || m == 0;
        return match none_needed {
            true => vec![lhs, rhs],
            false => wrong(c, "broadcast_dims", "given for tensors of different ranks"),
        };
    }
    let (small, large) = if n < m { (lhs, m) } else { (rhs, n) };
    let mut shape = vec![Size::Known(1); large];
    let own = sizes(small);
    let is_increasing = axes.windows(2).all(|pair| pair[0] < pair[1]);
    if own.len() != axes.len() || !is_increasing {
        return wrong(
            c,
            "broadcast_dims",
            "an increasing axis for each axis of the smaller tensor",
        );
    }
    for (&axis, &size) in axes.iter().zip(&own) {
        match usize::try_from(axis).ok().filter(|&axis| axis < large) {
            Some(axis) => shape[axis] = size,
            None => return wrong(c, "broadcast_dims", "axes of the larger tensor"),
        }
    }
    let wide = reshape(small, &shape);
    if n < m { vec![wide, rhs] } else { vec![lhs, wide] }
}

fn random_bits<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let Some(algorithm) = c.ints(0).first().and_then(|&number| BitGenerator::numbered(number))
    else {
        return wrong(c, "algorithm", BitGenerator::NUMBERS);
    };
    let shape = c.ints(2);
    rng_bit_generator(algorithm, c.x(1), &shape, c.dtype_attr("dtype")).to_vec()
}

/// The half of the matrices that counts, mirrored, and their decomposition.
fn self_adjoint_eig<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let matrix = match c.flag("lower") {
        true => c.x(0),
        false => {
            let n = rank(c.x(0));
            let mut order: Vec<usize> = (0..n).collect();
            order[n.saturating_sub(2)..].reverse();
            crate::xla::size::transpose(c.x(0), &order).adjoint()
        }
    };
    let attrs = Attrs::new().with("compute_v", true).with("T", c.dtype(0));
    c.call("SelfAdjointEigV2", attrs, &[matrix])
}

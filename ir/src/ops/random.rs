//! Random numbers: functions of a seed, and sources with hidden state.
//!
//! The generator is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
//! 2011). Ops named `…V2` and those of this crate's own take its key and counter; ops that take a
//! seed are formulas over them, and ops with state call them from the runtime.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value},
    error::{Code, Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::{PartialShape, Shape, counted},
    xla::draw,
};

/// The number of the algorithm of TensorFlow's kernels, Philox.
const PHILOX: i32 = 1;

/// The number of the algorithm Threefry.
const THREEFRY: i64 = 2;

/// The integers that random bits fill.
const FULL_INTS: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

/// The dtypes of counts, rates and numbers of successes.
pub(super) const COUNTS: &[DType] = &[DType::F16, DType::F32, DType::F64, DType::I32, DType::I64];

/// Numbers of a distribution without parameters, from a seed.
const OF_SEED: OpDef = OpDef {
    inputs: &[arg("shape", "T").host(), arg("seed", "Tseed")],
    outputs: &[arg("output", "dtype")],
    attrs: &[
        ty_or("dtype", FLOATS, DType::F32),
        ty_or("T", INDEX, DType::I32),
        ty_or("Tseed", INDEX, DType::I64),
    ],
    infer: of_seed,
    ..OpDef::PURE
};

/// Numbers of a distribution without parameters, from a key and a counter.
const OF_KEY: OpDef = OpDef {
    inputs: &[
        arg("shape", "Tshape").host(),
        arg_of("key", DType::U64),
        arg_of("counter", DType::U64),
        arg_of("alg", DType::I32),
    ],
    outputs: &[arg("output", "dtype")],
    attrs: &[ty_or("dtype", FLOATS, DType::F32), ty_or("Tshape", INDEX, DType::I32)],
    infer: of_key,
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
};

/// Numbers of a distribution without parameters, from hidden state.
const OF_STATE: OpDef = OpDef {
    inputs: &[arg("shape", "T").host()],
    outputs: &[arg("output", "dtype")],
    attrs: &[int_or("seed", 0), int_or("seed2", 0), ty("dtype", FLOATS), ty("T", INDEX)],
    infer: of_shape,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// Candidates for sampled losses, drawn from hidden state.
const CANDIDATES: OpDef = OpDef {
    inputs: &[arg_of("true_classes", DType::I64)],
    outputs: &[
        arg_of("sampled_candidates", DType::I64),
        arg_of("true_expected_count", DType::F32),
        arg_of("sampled_expected_count", DType::F32),
    ],
    attrs: &[
        int("num_true").at_least(1),
        int("num_sampled").at_least(1),
        required_flag("unique"),
        int("range_max").at_least(1),
        int_or("seed", 0),
        int_or("seed2", 0),
    ],
    infer: candidates,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// The dtypes of sizes of images.
const SIZES: &[DType] = &[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

const RATIOS: AttrDef = floats("aspect_ratio_range").or(AttrDefault::Floats(&[0.75, 1.33]));

const AREAS: AttrDef = floats("area_range").or(AttrDefault::Floats(&[0.05, 1.0]));

/// A random window of an image.
const WINDOW: OpDef = OpDef {
    outputs: &[arg("begin", "T"), arg("size", "T"), arg_of("bboxes", DType::F32)],
    infer: window,
    gradient: Gradient::Zero,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AllCandidateSampler",
        summary: "Takes every class as a candidate.",
        attrs: &[
            int("num_true").at_least(1),
            int("num_sampled").at_least(1),
            required_flag("unique"),
            int_or("seed", 0),
            int_or("seed2", 0),
        ],
        ..CANDIDATES
    },
    OpDef {
        name: "ComputeAccidentalHits",
        summary: "Finds the candidates that are true classes.",
        inputs: &[arg_of("true_classes", DType::I64), arg_of("sampled_candidates", DType::I64)],
        outputs: &[
            arg_of("indices", DType::I32),
            arg_of("ids", DType::I64),
            arg_of("weights", DType::F32),
        ],
        attrs: &[int("num_true"), int_or("seed", 0), int_or("seed2", 0)],
        infer: |context| {
            context.check_rank(0, 2)?;
            context.check_rank(1, 1)?;
            context.set_all(&PartialShape::vector(None));
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "FixedUnigramCandidateSampler",
        summary: "Draws classes as often as a file or a list says.",
        attrs: &[
            int("num_true").at_least(1),
            int("num_sampled").at_least(1),
            required_flag("unique"),
            int("range_max").at_least(1),
            string_or("vocab_file", ""),
            float_or("distortion", 1.0),
            int_or("num_reserved_ids", 0),
            int_or("num_shards", 1).at_least(1),
            int_or("shard", 0).at_least(0),
            floats("unigrams").or(AttrDefault::Floats(&[])),
            int_or("seed", 0),
            int_or("seed2", 0),
        ],
        ..CANDIDATES
    },
    OpDef {
        name: "LearnedUnigramCandidateSampler",
        summary: "Draws classes as often as the calls before saw them.",
        ..CANDIDATES
    },
    OpDef {
        name: "LogUniformCandidateSampler",
        summary: "Draws classes, low numbers more often: the logarithm of a class is uniform.",
        ..CANDIDATES
    },
    OpDef {
        name: "Multinomial",
        summary: "Draws classes with the probabilities that rows of logits give.",
        inputs: &[arg("logits", "T"), arg_of("num_samples", DType::I32).host()],
        outputs: &[arg("output", "output_dtype")],
        attrs: &[
            int_or("seed", 0),
            int_or("seed2", 0),
            ty("T", REALS),
            ty_or("output_dtype", INDEX, DType::I64),
        ],
        infer: multinomial,
        ..OF_STATE
    },
    OpDef {
        name: "NonDeterministicInts",
        summary: "Draws integers that nobody can foresee.",
        inputs: &[arg("shape", "shape_dtype").host()],
        attrs: &[
            any_ty("dtype").or(AttrDefault::Type(DType::I64)),
            any_ty("shape_dtype").or(AttrDefault::Type(DType::I64)),
        ],
        ..OF_STATE
    },
    OpDef {
        name: "ParameterizedTruncatedNormal",
        summary: "Draws normal numbers between limits, with parameters for each row.",
        inputs: &[
            arg("shape", "T").host(),
            arg("means", "dtype"),
            arg("stdevs", "dtype"),
            arg("minvals", "dtype"),
            arg("maxvals", "dtype"),
        ],
        infer: rows_of_parameters,
        ..OF_STATE
    },
    OpDef {
        name: "RandomGamma",
        summary: "Draws numbers of gamma distributions, `shape` for each `alpha`.",
        inputs: &[arg("shape", "S").host(), arg("alpha", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[int_or("seed", 0), int_or("seed2", 0), ty("S", INDEX), ty("T", IEEE_FLOATS)],
        infer: shape_then_parameters,
        gradient: Gradient::Zero,
        ..OF_STATE
    },
    OpDef {
        name: "RandomIndexShuffle",
        summary: "Tells where indices go in a permutation that a seed names.",
        inputs: &[arg("index", "dtype"), arg("seed", "Tseed"), arg("max_index", "dtype")],
        outputs: &[arg("output", "dtype")],
        attrs: &[int_or("rounds", 4), ty("dtype", FULL_INTS), ty("Tseed", FULL_INTS)],
        infer: shuffled_indices,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "RandomPoisson",
        summary: "Draws numbers of Poisson distributions, `shape` for each `rate`.",
        inputs: &[arg("shape", "S").host(), arg("rate", "dtype")],
        attrs: &[int_or("seed", 0), int_or("seed2", 0), ty("S", INDEX), ty("dtype", IEEE_FLOATS)],
        infer: shape_then_parameters,
        ..OF_STATE
    },
    OpDef {
        name: "RandomPoissonV2",
        summary: "Draws numbers of Poisson distributions, `shape` for each `rate`.",
        inputs: &[arg("shape", "S").host(), arg("rate", "R")],
        attrs: &[
            int_or("seed", 0),
            int_or("seed2", 0),
            ty("S", INDEX),
            ty_or("R", COUNTS, DType::F64),
            ty_or("dtype", COUNTS, DType::I64),
        ],
        infer: shape_then_parameters,
        ..OF_STATE
    },
    OpDef {
        name: "RandomShuffle",
        summary: "Puts the rows of a tensor in random order.",
        inputs: &[arg("value", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[int_or("seed", 0), int_or("seed2", 0), any_ty("T")],
        infer: infer::unchanged,
        ..OF_STATE
    },
    OpDef {
        name: "RandomStandardNormal",
        summary: "Draws numbers of the standard normal distribution.",
        ..OF_STATE
    },
    OpDef { name: "RandomUniform", summary: "Draws numbers from [0, 1).", ..OF_STATE },
    OpDef {
        name: "RandomUniformInt",
        summary: "Draws integers from `minval` to before `maxval`.",
        inputs: &[arg("shape", "T").host(), arg("minval", "Tout"), arg("maxval", "Tout")],
        outputs: &[arg("output", "Tout")],
        attrs: &[int_or("seed", 0), int_or("seed2", 0), ty("Tout", INDEX), ty("T", INDEX)],
        ..OF_STATE
    },
    OpDef {
        name: "SampleDistortedBoundingBox",
        summary: "Draws a window of an image that shows enough of an object.",
        inputs: &[arg("image_size", "T"), arg_of("bounding_boxes", DType::F32)],
        attrs: &[
            ty("T", SIZES),
            int_or("seed", 0),
            int_or("seed2", 0),
            float_or("min_object_covered", 0.1),
            RATIOS,
            AREAS,
            int_or("max_attempts", 100),
            flag("use_image_if_no_bounding_boxes", false),
        ],
        lowering: Lowering::Runtime,
        effect: Effect::Stateful,
        ..WINDOW
    },
    OpDef {
        name: "SampleDistortedBoundingBoxV2",
        summary: "Draws a window of an image that shows enough of an object.",
        inputs: &[
            arg("image_size", "T"),
            arg_of("bounding_boxes", DType::F32),
            arg_of("min_object_covered", DType::F32),
        ],
        attrs: &[
            ty("T", SIZES),
            int_or("seed", 0),
            int_or("seed2", 0),
            RATIOS,
            AREAS,
            int_or("max_attempts", 100),
            flag("use_image_if_no_bounding_boxes", false),
        ],
        lowering: Lowering::Runtime,
        effect: Effect::Stateful,
        ..WINDOW
    },
    OpDef {
        name: "SobolSample",
        summary: "Gives points of a Sobol sequence.",
        inputs: &[
            arg_of("dim", DType::I32).host(),
            arg_of("num_results", DType::I32).host(),
            arg_of("skip", DType::I32).host(),
        ],
        outputs: &[arg("samples", "dtype")],
        attrs: &[ty_or("dtype", &[DType::F32, DType::F64], DType::F32)],
        infer: |context| {
            let sizes = [context.int(0)?, context.int(1)?, context.int(2)?];
            let at_least = |index: usize, least: i64| {
                let value = sizes[index].filter(|&value| value < least);
                match value {
                    Some(value) => Err(context.wrong(index, format!("at least {least}"), value)),
                    None => Ok(sizes[index].map(counted)),
                }
            };
            let (dim, n) = (at_least(0, 1)?, at_least(1, 1)?);
            let last = at_least(2, 0)?.zip(n).map(|(skip, n)| skip + n);
            if last.is_some_and(|last| last >= i32::MAX as usize) {
                return Err(context.wrong(
                    2,
                    format!("with num_results below {}", i32::MAX),
                    "more",
                ));
            }
            context.set(0, PartialShape::ranked([n, dim]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "StatelessMultinomial",
        summary: "Draws classes with the probabilities that rows of logits give, from a seed.",
        inputs: &[
            arg("logits", "T"),
            arg_of("num_samples", DType::I32).host(),
            arg("seed", "Tseed"),
        ],
        outputs: &[arg("output", "output_dtype")],
        attrs: &[
            ty("T", REALS),
            ty_or("Tseed", INDEX, DType::I64),
            ty_or("output_dtype", INDEX, DType::I64),
        ],
        infer: |context| {
            check_seed(context, 2)?;
            multinomial(context)
        },
        lowering: Lowering::Composite(|c| {
            let attrs = Attrs::new()
                .with("T", c.dtype(0))
                .with("output_dtype", c.dtype_attr("output_dtype"));
            seeded(c, 2, "_StatelessMultinomialV2", attrs)
        }),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessParameterizedTruncatedNormal",
        summary: "Draws normal numbers between limits, from a seed.",
        inputs: &[
            arg("shape", "S").host(),
            arg("seed", "Tseed"),
            arg("means", "dtype"),
            arg("stddevs", "dtype"),
            arg("minvals", "dtype"),
            arg("maxvals", "dtype"),
        ],
        attrs: &[ty("S", INDEX), ty_or("Tseed", INDEX, DType::I64), ty("dtype", IEEE_FLOATS)],
        lowering: Lowering::Composite(|c| {
            let attrs = shaped(c, "S").with("dtype", c.dtype_attr("dtype"));
            seeded(c, 1, "_StatelessParameterizedTruncatedNormalV2", attrs)
        }),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomBinomial",
        summary: "Draws numbers of successes among `counts` trials, from a seed.",
        inputs: &[
            arg("shape", "S").host(),
            arg("seed", "Tseed"),
            arg("counts", "T"),
            arg("probs", "T"),
        ],
        attrs: &[
            ty("S", INDEX),
            ty_or("Tseed", INDEX, DType::I64),
            ty_or("T", COUNTS, DType::F64),
            ty_or("dtype", COUNTS, DType::I64),
        ],
        lowering: Lowering::Composite(|c| {
            let attrs = shaped(c, "S").with("T", c.dtype(2)).with("dtype", c.dtype_attr("dtype"));
            seeded(c, 1, "_StatelessRandomBinomialV2", attrs)
        }),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomGammaV2",
        summary: "Draws numbers of gamma distributions, from a seed.",
        inputs: &[arg("shape", "T").host(), arg("seed", "Tseed"), arg("alpha", "dtype")],
        attrs: &[ty("dtype", IEEE_FLOATS), ty("T", INDEX), ty_or("Tseed", INDEX, DType::I64)],
        lowering: Lowering::Composite(|c| {
            let attrs = Attrs::new().with("shape_dtype", c.dtype(0)).with("dtype", c.dtype(2));
            seeded(c, 1, "StatelessRandomGammaV3", attrs)
        }),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomGammaV3",
        summary: "Draws numbers of gamma distributions, from a key and a counter.",
        inputs: &[
            arg("shape", "shape_dtype").host(),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
            arg("alpha", "dtype"),
        ],
        attrs: &[ty("dtype", IEEE_FLOATS), ty_or("shape_dtype", INDEX, DType::I32)],
        gradient: Gradient::Rule(gradient::random::gamma),
        ..OF_KEY
    },
    OpDef {
        name: "StatelessRandomGetAlg",
        summary: "Gives the number of the algorithm, Philox.",
        outputs: &[arg_of("alg", DType::I32)],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| vec![c.scalar(PHILOX)]),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "StatelessRandomGetKeyCounter",
        summary: "Makes a key and a counter of a seed.",
        inputs: &[arg("seed", "Tseed")],
        outputs: &[arg_of("key", DType::U64), arg_of("counter", DType::U64)],
        attrs: &[ty_or("Tseed", INDEX, DType::I64)],
        infer: key_counter,
        lowering: Lowering::Kernel,
        compiled: XlaFormula::OfKnownShapes(draw::key_counter),
        ..OpDef::PURE
    },
    OpDef {
        name: "StatelessRandomGetKeyCounterAlg",
        summary: "Makes a key and a counter of a seed, and gives the number of the algorithm.",
        inputs: &[arg("seed", "Tseed")],
        outputs: &[
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
        ],
        attrs: &[ty_or("Tseed", INDEX, DType::I64)],
        infer: |context| {
            key_counter(context)?;
            context.set(2, PartialShape::scalar());
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let mut results = keyed(c, c.x(0));
            results.push(c.scalar(PHILOX));
            results
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "StatelessRandomNormal",
        summary: "Draws numbers of the standard normal distribution, from a seed.",
        lowering: Lowering::Composite(|c| plain(c, "StatelessRandomNormalV2")),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomNormalV2",
        summary: "Draws numbers of the standard normal distribution, from a key and a counter.",
        compiled: XlaFormula::OfKnownShapes(draw::normal),
        lowering: Lowering::Kernel,
        ..OF_KEY
    },
    OpDef {
        name: "StatelessRandomPoisson",
        summary: "Draws numbers of Poisson distributions, from a seed.",
        inputs: &[arg("shape", "T").host(), arg("seed", "Tseed"), arg("lam", "Rtype")],
        attrs: &[
            ty("Rtype", COUNTS),
            ty("dtype", COUNTS),
            ty("T", INDEX),
            ty_or("Tseed", INDEX, DType::I64),
        ],
        lowering: Lowering::Composite(|c| {
            let attrs = shaped(c, "S").with("R", c.dtype(2)).with("dtype", c.dtype_attr("dtype"));
            seeded(c, 1, "_StatelessRandomPoissonV2", attrs)
        }),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomUniform",
        summary: "Draws numbers from [0, 1), from a seed.",
        lowering: Lowering::Composite(|c| plain(c, "StatelessRandomUniformV2")),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomUniformFullInt",
        summary: "Draws integers of random bits, from a seed.",
        attrs: &[
            ty_or("dtype", FULL_INTS, DType::U64),
            ty_or("T", INDEX, DType::I32),
            ty_or("Tseed", FULL_INTS, DType::I64),
        ],
        lowering: Lowering::Composite(|c| plain(c, "StatelessRandomUniformFullIntV2")),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomUniformFullIntV2",
        summary: "Draws integers of random bits, from a key and a counter.",
        attrs: &[ty_or("dtype", FULL_INTS, DType::U64), ty_or("Tshape", INDEX, DType::I32)],
        compiled: XlaFormula::OfKnownShapes(draw::full_int),
        lowering: Lowering::Kernel,
        ..OF_KEY
    },
    OpDef {
        name: "StatelessRandomUniformInt",
        summary: "Draws integers from `minval` to before `maxval`, from a seed.",
        inputs: &[
            arg("shape", "T").host(),
            arg("seed", "Tseed"),
            arg("minval", "dtype"),
            arg("maxval", "dtype"),
        ],
        attrs: &[ty("dtype", INDEX), ty("T", INDEX), ty_or("Tseed", INDEX, DType::I64)],
        infer: |context| {
            check_limits(context, 2)?;
            of_seed(context)
        },
        lowering: Lowering::Composite(|c| plain(c, "StatelessRandomUniformIntV2")),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessRandomUniformIntV2",
        summary: "Draws integers from `minval` to before `maxval`, from a key and a counter.",
        inputs: &[
            arg("shape", "Tshape").host(),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
            arg("minval", "dtype"),
            arg("maxval", "dtype"),
        ],
        attrs: &[ty("dtype", FULL_INTS), ty_or("Tshape", INDEX, DType::I32)],
        infer: |context| {
            check_limits(context, 4)?;
            check_key(context, 1)?;
            of_shape(context)
        },
        compiled: XlaFormula::OfKnownShapes(draw::uniform_int),
        ..OF_KEY
    },
    OpDef {
        name: "StatelessRandomUniformV2",
        summary: "Draws numbers from [0, 1), from a key and a counter.",
        compiled: XlaFormula::OfKnownShapes(draw::uniform),
        lowering: Lowering::Kernel,
        ..OF_KEY
    },
    OpDef {
        name: "StatelessSampleDistortedBoundingBox",
        summary: "Draws a window of an image that shows enough of an object, from a seed.",
        inputs: &[
            arg("image_size", "T"),
            arg_of("bounding_boxes", DType::F32),
            arg_of("min_object_covered", DType::F32),
            arg("seed", "Tseed"),
        ],
        attrs: &[
            ty("T", SIZES),
            ty("Tseed", INDEX),
            RATIOS,
            AREAS,
            int_or("max_attempts", 100),
            flag("use_image_if_no_bounding_boxes", false),
        ],
        infer: |context| {
            check_seed(context, 3)?;
            window(context)
        },
        lowering: Lowering::Composite(|c| {
            seeded(c, 3, "_SampleDistortedBoundingBox", c.attrs.clone())
        }),
        ..WINDOW
    },
    OpDef {
        name: "StatelessShuffle",
        summary: "Puts the rows of a tensor in random order, from a key and a counter.",
        inputs: &[
            arg("value", "T"),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: |context| {
            check_key(context, 1)?;
            infer::unchanged(context)
        },
        ..OF_KEY
    },
    OpDef {
        name: "StatelessTruncatedNormal",
        summary: "Draws normal numbers closer to 0 than 2, from a seed.",
        lowering: Lowering::Composite(|c| plain(c, "StatelessTruncatedNormalV2")),
        ..OF_SEED
    },
    OpDef {
        name: "StatelessTruncatedNormalV2",
        summary: "Draws normal numbers closer to 0 than 2, from a key and a counter.",
        compiled: XlaFormula::OfKnownShapes(draw::truncated_normal),
        ..OF_KEY
    },
    OpDef {
        name: "TruncatedNormal",
        summary: "Draws normal numbers closer to 0 than 2.",
        ..OF_STATE
    },
    OpDef {
        name: "ThreadUnsafeUnigramCandidateSampler",
        summary: "Draws classes as often as the calls before saw them.",
        ..CANDIDATES
    },
    OpDef {
        name: "UniformCandidateSampler",
        summary: "Draws classes, all equally often.",
        ..CANDIDATES
    },
    OpDef {
        name: "_SampleDistortedBoundingBox",
        summary: "Draws a window of an image that shows enough of an object, from a key and a counter.",
        inputs: &[
            arg("image_size", "T"),
            arg_of("bounding_boxes", DType::F32),
            arg_of("min_object_covered", DType::F32),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
        ],
        attrs: &[
            ty("T", SIZES),
            RATIOS,
            AREAS,
            int_or("max_attempts", 100),
            flag("use_image_if_no_bounding_boxes", false),
        ],
        infer: |context| {
            check_key(context, 3)?;
            window(context)
        },
        lowering: Lowering::HostKernel(HostReason::Sequential),
        ..WINDOW
    },
    OpDef {
        name: "_StatelessMultinomialV2",
        summary: "Draws classes like `StatelessMultinomial`, from a key and a counter.",
        inputs: &[
            arg("logits", "T"),
            arg_of("num_samples", DType::I32).host(),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
        ],
        outputs: &[arg("output", "output_dtype")],
        attrs: &[ty("T", REALS), ty("output_dtype", INDEX)],
        infer: |context| {
            check_key(context, 2)?;
            multinomial(context)
        },
        compiled: XlaFormula::OfKnownShapes(draw::multinomial),
        ..OF_KEY
    },
    OpDef {
        name: "_StatelessParameterizedTruncatedNormalV2",
        summary: "Draws normal numbers between limits, from a key and a counter.",
        inputs: &[
            arg("shape", "S").host(),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
            arg("means", "dtype"),
            arg("stddevs", "dtype"),
            arg("minvals", "dtype"),
            arg("maxvals", "dtype"),
        ],
        attrs: &[ty("S", INDEX), ty("dtype", FLOATS)],
        gradient: Gradient::Rule(gradient::random::truncated_normal),
        compiled: XlaFormula::OfKnownShapes(draw::parameterized),
        ..OF_KEY
    },
    OpDef {
        name: "_StatelessRandomBinomialV2",
        summary: "Draws numbers of successes among `counts` trials, from a key and a counter.",
        inputs: &[
            arg("shape", "S").host(),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
            arg("counts", "T"),
            arg("probs", "T"),
        ],
        attrs: &[ty("S", INDEX), ty("T", COUNTS), ty("dtype", COUNTS)],
        ..OF_KEY
    },
    OpDef {
        name: "_StatelessRandomPoissonV2",
        summary: "Draws numbers of Poisson distributions, from a key and a counter.",
        inputs: &[
            arg("shape", "S").host(),
            arg_of("key", DType::U64),
            arg_of("counter", DType::U64),
            arg_of("alg", DType::I32),
            arg("rate", "R"),
        ],
        attrs: &[ty("S", INDEX), ty("R", COUNTS), ty("dtype", COUNTS)],
        ..OF_KEY
    },
];

/// The key and the counter of a seed.
fn keyed<'e>(c: &Composite<'e>, seed: Value<'e>) -> Vec<Value<'e>> {
    let seed = if INDEX.contains(&seed.dtype()) { seed } else { seed.cast(DType::I64) };
    let attrs = Attrs::new().with("Tseed", seed.dtype());
    c.call("StatelessRandomGetKeyCounter", attrs, &[seed])
}

/// A call of `op` in which key, counter and algorithm stand for the seed in input `seed`.
fn seeded<'e>(c: &Composite<'e>, seed: usize, op: &str, attrs: Attrs) -> Vec<Value<'e>> {
    let mut key = keyed(c, c.x(seed));
    key.push(c.scalar(PHILOX));
    let (before, after) = (&c.inputs()[..seed], &c.inputs()[seed + 1..]);
    c.call(op, attrs, &[before, &key, after].concat())
}

/// A call of `op` that has attributes `dtype` and `Tshape`.
fn plain<'e>(c: &Composite<'e>, op: &str) -> Vec<Value<'e>> {
    seeded(c, 1, op, shaped(c, "Tshape").with("dtype", c.dtype_attr("dtype")))
}

/// The dtype of the shape in input 0, as attribute `name`.
fn shaped(c: &Composite<'_>, name: &'static str) -> Attrs {
    Attrs::new().with(name, c.dtype(0))
}

/// The shape in integer input `index`.
pub(super) fn shape_in(context: &OpContext<'_>, index: usize) -> Result<PartialShape> {
    context.check_rank(index, 1)?;
    match context.ints(index)? {
        Some(dims) => Ok(Shape::from_i64(&dims)?.into()),
        None => Ok(match context.shape(index).dim(0) {
            Some(rank) => PartialShape::of_rank(rank),
            None => PartialShape::Unknown,
        }),
    }
}

fn check_seed(context: &OpContext<'_>, index: usize) -> Result<()> {
    let [size] = context.dims::<1>(index)?;
    match size {
        Some(size) if size != 2 => Err(context.wrong(index, "of shape [2]", context.shape(index))),
        _ => Ok(()),
    }
}

/// Checks the key in input `index` and the counter after it.
pub(super) fn check_key(context: &OpContext<'_>, index: usize) -> Result<()> {
    let ([key], [counter]) = (context.dims::<1>(index)?, context.dims::<1>(index + 1)?);
    if key.is_some_and(|size| size != 1) {
        return Err(context.wrong(index, "of shape [1]", context.shape(index)));
    }
    // Threefry, which only XLA knows, has a counter of one word.
    let n_words = if context.int(index + 2)? == Some(THREEFRY) { 1 } else { 2 };
    if counter.is_some_and(|size| size < n_words) {
        let found = context.shape(index + 1);
        let expected = format!("a vector of {n_words} elements or more");
        return Err(context.wrong(index + 1, expected, found));
    }
    context.check_rank(index + 2, 0)
}

/// Checks that the limits in inputs `index` and `index + 1` are scalars.
pub(super) fn check_limits(context: &OpContext<'_>, index: usize) -> Result<()> {
    context.check_rank(index, 0)?;
    context.check_rank(index + 1, 0)
}

/// The result has the shape in input 0.
fn of_shape(context: &mut OpContext<'_>) -> Result<()> {
    let shape = shape_in(context, 0)?;
    context.set(0, shape);
    Ok(())
}

/// The result has the shape in input 0, which ends with that of the parameters from input 2 on.
fn of_seed(context: &mut OpContext<'_>) -> Result<()> {
    check_seed(context, 1)?;
    ends_with_parameters(context, 0, 2)?;
    of_shape(context)
}

/// The result has the shape in input 0, which ends with that of the parameters from input 4 on.
fn of_key(context: &mut OpContext<'_>) -> Result<()> {
    check_key(context, 1)?;
    ends_with_parameters(context, 0, 4)?;
    of_shape(context)
}

/// Checks that the shape in input `shape` ends with that to which the inputs from `first` on
/// broadcast.
pub(super) fn ends_with_parameters(
    context: &OpContext<'_>,
    shape: usize,
    first: usize,
) -> Result<()> {
    let mut parameters = PartialShape::scalar();
    for index in first..context.n_inputs() {
        parameters = parameters.broadcast(context.shape(index))?;
    }
    let whole = shape_in(context, shape)?;
    let (Some(dims), Some(inner)) = (whole.dims(), parameters.dims()) else { return Ok(()) };
    let start = dims.len().checked_sub(inner.len());
    let end = start.map(|start| PartialShape::ranked(dims[start..].iter().copied()));
    match end {
        Some(end) if end.is_compatible_with(&parameters) => Ok(()),
        _ => Err(context.wrong(shape, format!("a shape that ends with {parameters}"), whole)),
    }
}

/// The result has the shape in input 0 followed by that of input 1.
fn shape_then_parameters(context: &mut OpContext<'_>) -> Result<()> {
    let outer = shape_in(context, 0)?;
    let shape = match (outer.dims(), context.shape(1).dims()) {
        (Some(outer), Some(inner)) => PartialShape::ranked(outer.iter().chain(inner).copied()),
        _ => PartialShape::Unknown,
    };
    context.set(0, shape);
    Ok(())
}

/// Each parameter is a scalar or has an element for each row of the shape in input 0.
fn rows_of_parameters(context: &mut OpContext<'_>) -> Result<()> {
    let shape = shape_in(context, 0)?;
    if shape.rank() == Some(0) {
        return Err(context.wrong(0, "a shape of rank 1 or more", shape));
    }
    let rows = shape.dims().and_then(|dims| dims.first().copied().flatten());
    for index in 1..5 {
        let found = context.shape(index);
        let fits = match found.dims() {
            None | Some([]) => true,
            Some([size]) => size.is_none_or(|size| size == 1 || rows.is_none_or(|n| n == size)),
            Some(_) => false,
        };
        if !fits {
            return Err(context.wrong(index, "a scalar or a vector, one element a row", found));
        }
    }
    context.set(0, shape);
    Ok(())
}

fn multinomial(context: &mut OpContext<'_>) -> Result<()> {
    let [rows, classes] = context.dims::<2>(0)?;
    let samples = match context.int(1)? {
        None => None,
        Some(samples) => {
            let size = usize::try_from(samples);
            Some(size.map_err(|_| context.wrong(1, "0 or more", samples))?)
        }
    };
    if classes == Some(0) && rows != Some(0) && samples != Some(0) {
        return Err(context.wrong(0, "of at least one class", context.shape(0)));
    }
    context.set(0, PartialShape::ranked([rows, samples]));
    Ok(())
}

fn key_counter(context: &mut OpContext<'_>) -> Result<()> {
    check_seed(context, 0)?;
    context.set(0, PartialShape::vector(Some(1)));
    context.set(1, PartialShape::vector(Some(2)));
    Ok(())
}

/// A window begins somewhere, has a size, and is a box.
fn window(context: &mut OpContext<'_>) -> Result<()> {
    let [three] = context.dims::<1>(0)?;
    context.same("the sizes of an image", three, Some(3))?;
    let [.., four] = context.dims::<3>(1)?;
    context.same("the edges of a box", four, Some(4))?;
    if context.n_inputs() > 2 {
        context.check_rank(2, 0)?;
    }
    context.set_all(&PartialShape::vector(Some(3)));
    context.set(2, PartialShape::ranked([1, 1, 4].map(Some)));
    Ok(())
}

/// A scalar, or a vector if one of the inputs has an entry for each result.
fn shuffled_indices(context: &mut OpContext<'_>) -> Result<()> {
    let ranks = [0, 1, 2].map(|index| context.shape(index).rank());
    let [Some(index), Some(seed), Some(most)] = ranks else { return Ok(()) };
    let three = context.shape(1).dim(-1);
    context.same("the numbers of a seed", three, Some(3))?;
    if index > 1 || most > 1 || !(1..=2).contains(&seed) {
        let expected = "scalars or vectors, and a seed of three numbers for each";
        return Err(context.wrong(0, expected, context.shape(0)));
    }
    let counts = [(0, index == 1), (1, seed == 2), (2, most == 1)];
    let mut n = None;
    for (input, _) in counts.iter().filter(|(_, is_many)| *is_many) {
        n = context.same("the numbers of results", n, context.shape(*input).dim(0))?;
    }
    let is_many = counts.iter().any(|(_, is_many)| *is_many);
    context.set(0, if is_many { PartialShape::vector(n) } else { PartialShape::scalar() });
    Ok(())
}

fn candidates(context: &mut OpContext<'_>) -> Result<()> {
    let attr = |name: &'static str| -> Result<usize> {
        let value = context.attrs.int(name)?;
        usize::try_from(value).map_err(|_| context.wrong_attr(name, "positive", value))
    };
    let (n_true, n_sampled) = (attr("num_true")?, attr("num_sampled")?);
    let range =
        if context.attrs.get("range_max").is_some() { attr("range_max")? } else { n_sampled };
    if context.attrs.bool("unique")? && n_sampled > range {
        let detail = format!("{n_sampled} different classes of {range} cannot be drawn");
        let code = Code::InvalidArgument;
        return Err(Error::Status { code, op: context.op.name.into(), detail });
    }
    let [batch, columns] = context.dims::<2>(0)?;
    if columns.is_some_and(|columns| columns != n_true) {
        return Err(context.wrong(0, format!("of {n_true} columns"), context.shape(0)));
    }
    context.set(0, PartialShape::vector(Some(n_sampled)));
    context.set(1, PartialShape::ranked([batch, Some(n_true)]));
    context.set(2, PartialShape::vector(Some(n_sampled)));
    Ok(())
}

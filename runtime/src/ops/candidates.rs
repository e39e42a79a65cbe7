//! Candidates for sampled losses. Sources: `candidate_sampler_ops.cc` and `range_sampler.cc` of
//! TensorFlow.

use super::{RuntimeCall, RuntimeOpBody, random::reserve};
use crate::{
    candidates::{
        AllClasses, Classes, CountedClasses, LogUniformClasses, UniformClasses, WeightedClasses,
        last_columns,
    },
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
    runtime_call::infer_outputs,
};
use ferroflow_ir::{Code, Error as IrError, HostTensor, budget, workspace};
use ferroflow_kernels::{check_size, philox::Words};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

/// Blocks of the generator that TensorFlow sets aside for a candidate.
const BLOCKS_PER_CANDIDATE: u128 = 512;

fn sample(call: &RuntimeCall<'_>, classes: &dyn Classes) -> Result<Results> {
    let outputs = infer_outputs(call.op, call.attrs, &call.inputs)?;
    let limit = call.context().limits().tensor_bytes;
    let mut shapes = SmallVec::<[_; 3]>::new();
    for output in &outputs {
        let shape = output.shape.known().ok_or_else(|| {
            let found = output.shape.to_string();
            IrError::Size { what: "result".into(), size: found }
        })?;
        check_size(output.dtype, &shape, limit)?;
        shapes.push(shape);
    }
    let wanted = call.host(0)?.to_i64s()?;
    check_classes(call, &wanted, classes.range())?;
    let n = shapes[0].num_elements();
    let mut words = Words::new(reserve(call, n as u128 * BLOCKS_PER_CANDIDATE)?);
    let unique = call.attrs.bool("unique")?;
    let (drawn, n_tries) = match classes.all() {
        true => ((0..n as i64).collect(), n as u64),
        false => draw(classes, &mut words, n, unique)?,
    };
    let expected = |classes_asked: &[i64]| -> Vec<f32> {
        let count = |&class: &i64| match classes.all() {
            true => 1.0,
            false => expected_count(classes.probability(class), n, n_tries),
        };
        classes_asked.iter().map(count).collect()
    };
    let results = [
        HostTensor::from_slice(shapes[1].clone(), &expected(&wanted))?,
        HostTensor::from_slice(shapes[2].clone(), &expected(&drawn))?,
    ];
    let first = HostTensor::from_slice(shapes[0].clone(), &drawn)?;
    Ok([first].into_iter().chain(results).map(Into::into).collect())
}

fn check_classes(call: &RuntimeCall<'_>, classes: &[i64], range: i64) -> Result<()> {
    match classes.iter().find(|class| !(0..range).contains(*class)) {
        None => Ok(()),
        Some(class) => {
            let detail = format!("class {class} is not one of {range}");
            let op = call.op.name.into();
            Err(IrError::Status { code: Code::InvalidArgument, op, detail }.into())
        }
    }
}

/// Classes, and the number of tries they took.
fn draw(
    classes: &dyn Classes,
    words: &mut Words,
    n: usize,
    unique: bool,
) -> Result<(Vec<i64>, u64)> {
    let (mut drawn, mut seen, mut n_tries) = (workspace::reserve(n)?, HashSet::new(), 0u64);
    while drawn.len() < n {
        let class = classes.draw(words);
        n_tries += 1;
        if n_tries.is_multiple_of(TRIES_BETWEEN_LOOKS) {
            budget::tick();
        }
        if !unique || seen.insert(class) {
            drawn.push(class);
        }
        if n_tries > MOST_TRIES.max(n as u64) {
            let (what, limit) = ("tries to draw different classes".into(), MOST_TRIES);
            return Err(IrError::Limit { what, needed: "more".into(), limit }.into());
        }
    }
    Ok((drawn, n_tries))
}

/// Tries between two looks at the budget of the call.
const TRIES_BETWEEN_LOOKS: u64 = 1 << 16;

/// As many tries as TensorFlow makes.
const MOST_TRIES: u64 = i32::MAX as u64;

/// Expected number of a class of this probability among `n` candidates that took so many tries.
fn expected_count(probability: f32, n: usize, n_tries: u64) -> f32 {
    if n_tries == n as u64 {
        return probability * n as f32;
    }
    -(n_tries as f32 * (-probability).ln_1p()).exp_m1()
}

fn all(call: &mut RuntimeCall<'_>) -> Result<Results> {
    sample(call, &AllClasses(call.attrs.int("num_sampled")?))
}

fn uniform(call: &mut RuntimeCall<'_>) -> Result<Results> {
    sample(call, &UniformClasses(call.attrs.int("range_max")?))
}

fn log_uniform(call: &mut RuntimeCall<'_>) -> Result<Results> {
    sample(call, &LogUniformClasses(call.attrs.int("range_max")?))
}

/// Classes as often as the calls before saw them; those of this call count from the next one on.
fn learned(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let range = call.attrs.int("range_max")?;
    let seeds = [call.attrs.int("seed")?, call.attrs.int("seed2")?];
    let node = call.scope.origin.map(|origin| (&origin.function, &origin.node));
    let name = format!("{} {node:?} {range} {seeds:?}", call.op.name);
    let limit = call.context().limits().tensor_bytes;
    let make = || Ok(Arc::new(CountedClasses::new(range, limit)?) as Arc<dyn Resource>);
    let resource = call.scope.resources.find_or_create(COUNTS, &name, make)?;
    let counts: Arc<CountedClasses> =
        ResourceHandle::owning(name, resource).downcast("counts of classes")?;
    let results = sample(call, &*counts)?;
    counts.add(&call.host(0)?.to_i64s()?);
    Ok(results)
}

/// The container of the counts of classes.
const COUNTS: &str = "_counts_of_classes";

fn fixed(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let attrs = call.attrs;
    let wrong = |argument: &'static str, expected: &str, found: String| -> crate::Error {
        IrError::argument(call.op.name, argument, expected.to_string(), found).into()
    };
    let (file, unigrams) = (attrs.string("vocab_file")?, attrs.floats("unigrams")?);
    if file.is_empty() == unigrams.is_empty() {
        return Err(wrong("vocab_file", "given, or `unigrams`", format!("`{file}`")));
    }
    let weights = match file.is_empty() {
        true => unigrams.to_vec(),
        false => {
            let text = super::file::contents(call, Path::new(file))?;
            last_columns(&text)?
        }
    };
    let (reserved, shards) = (attrs.int("num_reserved_ids")?, attrs.int("num_shards")?);
    let (shard, range) = (attrs.int("shard")?, attrs.int("range_max")?);
    let of_shard = |id: &i64| id % shards == shard;
    let distortion = attrs.float("distortion")?;
    let n_blank = match shard < shards {
        true => usize::try_from(reserved.saturating_sub(shard).max(0))
            .unwrap_or(0)
            .div_ceil(shards as usize),
        false => 0,
    };
    if usize::try_from(range).is_ok_and(|range| n_blank > range) {
        let expected = "at least the number of reserved ids";
        return Err(wrong("range_max", expected, range.to_string()));
    }
    let mut own = workspace::filled(0.0f32, n_blank)?;
    let first = own.len() as i64;
    let listed = (first..).zip(&weights).filter(|(id, _)| of_shard(id));
    own.extend(listed.map(|(_, weight)| weight.powf(distortion)));
    if own.len() as i64 != range {
        return Err(wrong("range_max", "the number of weights", format!("{} weights", own.len())));
    }
    let is_weight = |weight: &f32| weight.is_finite() && *weight >= 0.0;
    if let Some(weight) = own.iter().find(|weight| !is_weight(weight)) {
        let expected = "of finite numbers, none of them negative";
        return Err(wrong("unigrams", expected, format!("a weight of {weight}")));
    }
    // Different classes can be drawn only of those that have a weight.
    let n_candidates = own.iter().filter(|&&weight| weight > 0.0).count();
    let n = attrs.int("num_sampled")?;
    let needed = if attrs.bool("unique")? { n } else { n.min(1) };
    if usize::try_from(needed).is_ok_and(|needed| needed > n_candidates) {
        let expected = format!("at most {n_candidates}, the number of classes with a weight");
        return Err(wrong("num_sampled", &expected, n.to_string()));
    }
    sample(call, &WeightedClasses::new(own))
}

/// Where true classes are among the candidates, as a sparse matrix of `-f32::MAX`.
fn accidental_hits(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (classes, sampled) = (call.host(0)?, call.host(1)?);
    let columns = usize::try_from(call.attrs.int("num_true")?).ok();
    let is_fit = classes.shape().rank() == 2 && classes.shape().get(1).copied() == columns;
    if !is_fit || sampled.shape().rank() != 1 {
        let expected = "a matrix of `num_true` columns, with a vector of candidates";
        let found = format!("{} and {}", classes.shape(), sampled.shape());
        return Err(IrError::argument(call.op.name, "true_classes", expected, found).into());
    }
    let columns = columns.unwrap_or(1).max(1);
    let sampled_indices: HashMap<i64, i64> = sampled.to_i64s()?.into_iter().zip(0..).collect();
    let (mut rows, mut ids) = (Vec::new(), Vec::new());
    for (at, class) in classes.to_i64s()?.iter().enumerate() {
        if let Some(&place) = sampled_indices.get(class) {
            rows.push((at / columns) as i32);
            ids.push(place);
        }
    }
    let weights = vec![-f32::MAX; rows.len()];
    let results =
        [HostTensor::vector(&rows)?, HostTensor::vector(&ids)?, HostTensor::vector(&weights)?];
    Ok(results.into_iter().map(Into::into).collect())
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("AllCandidateSampler", all),
    ("ComputeAccidentalHits", accidental_hits),
    ("FixedUnigramCandidateSampler", fixed),
    ("LearnedUnigramCandidateSampler", learned),
    ("LogUniformCandidateSampler", log_uniform),
    ("ThreadUnsafeUnigramCandidateSampler", learned),
    ("UniformCandidateSampler", uniform),
];

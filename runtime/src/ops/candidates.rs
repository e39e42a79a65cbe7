//! Candidates for sampled losses. Sources: `candidate_sampler_ops.cc` and `range_sampler.cc` of
//! TensorFlow.

use super::{Body, RuntimeCall, random::reserve};
use crate::{eager_tensor::Results, error::Result, runtime_call::infer_outputs};
use ferroflow_ir::{Error as IrError, HostTensor, workspace};
use ferroflow_kernels::{check_size, philox::Words};
use smallvec::SmallVec;
use std::collections::HashSet;

/// A distribution over classes.
trait Classes {
    fn draw(&self, words: &mut Words) -> i64;

    /// How probable a class is.
    fn probability(&self, class: i64) -> f64;
}

/// All of `0..n`, equally.
struct Uniform(i64);

impl Classes for Uniform {
    fn draw(&self, words: &mut Words) -> i64 {
        (words.next_f64() * self.0 as f64) as i64
    }

    fn probability(&self, _: i64) -> f64 {
        1.0 / self.0 as f64
    }
}

/// Those of `0..n` whose logarithm is uniform.
struct LogUniform(i64);

impl LogUniform {
    fn log_range(&self) -> f64 {
        (self.0 as f64).ln_1p()
    }
}

impl Classes for LogUniform {
    fn draw(&self, words: &mut Words) -> i64 {
        ((words.next_f64() * self.log_range()).exp() as i64 - 1).rem_euclid(self.0)
    }

    fn probability(&self, class: i64) -> f64 {
        ((class as f64 + 2.0) / (class as f64 + 1.0)).ln() / self.log_range()
    }
}

/// Blocks set aside for a candidate.
const BLOCKS_PER_CANDIDATE: u128 = 64;

fn sample(call: &RuntimeCall<'_>, classes: impl Fn(i64) -> Box<dyn Classes>) -> Result<Results> {
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
    let (n, classes) = (shapes[0].num_elements(), classes(call.attrs.int("range_max")?));
    let mut words = Words::new(reserve(call, n as u128 * BLOCKS_PER_CANDIDATE)?);
    let unique = call.attrs.bool("unique")?;
    let (mut drawn, mut seen, mut n_tries) = (workspace::reserve(n)?, HashSet::new(), 0u64);
    while drawn.len() < n {
        let class = classes.draw(&mut words);
        n_tries += 1;
        if !unique || seen.insert(class) {
            drawn.push(class);
        }
    }
    let expected = |classes_asked: &[i64]| -> Vec<f32> {
        let count = |&class: &i64| expected_count(classes.probability(class), n, n_tries);
        classes_asked.iter().map(|class| count(class) as f32).collect()
    };
    let wanted = call.host(0)?.to_i64s()?;
    let results = [
        HostTensor::from_slice(shapes[1].clone(), &expected(&wanted))?,
        HostTensor::from_slice(shapes[2].clone(), &expected(&drawn))?,
    ];
    let first = HostTensor::from_slice(shapes[0].clone(), &drawn)?;
    Ok([first].into_iter().chain(results).map(Into::into).collect())
}

/// How often a class of this probability is among `n` candidates for which it took so many tries.
fn expected_count(probability: f64, n: usize, n_tries: u64) -> f64 {
    if n_tries == n as u64 {
        return probability * n as f64;
    }
    -(n_tries as f64 * (-probability).ln_1p()).exp_m1()
}

pub(super) const BODIES: &[(&str, Body)] = &[
    ("LogUniformCandidateSampler", |call| sample(call, |n| Box::new(LogUniform(n)))),
    ("UniformCandidateSampler", |call| sample(call, |n| Box::new(Uniform(n)))),
];

//! Random ops with hidden state: the ops that take a key and a counter, at places that move on.
//!
//! How far they move, and so which numbers later calls give, is TensorFlow's `random_op.cc`,
//! `random_poisson_op.cc`, `multinomial_op.cc` and `random_shuffle_op.cc`.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::{EagerTensor, Results},
    error::Result,
    execute::execute,
    generator::GeneratorOwner,
    runtime_call::infer_outputs,
};
use ferroflow_ir::{Attrs, DType, HostTensor, Shape, entropy::unforeseen};
use ferroflow_kernels::philox::{BLOCKS_PER_NUMBER, Philox};

/// The number of the algorithm, Philox.
const PHILOX: i32 = 1;

/// Key, counter and algorithm as the ops take them.
pub(super) fn place(generator: Philox) -> Result<[EagerTensor; 3]> {
    let key = HostTensor::vector(&[generator.key()])?;
    let counter = HostTensor::vector(&generator.counter())?;
    Ok([key.into(), counter.into(), HostTensor::scalar(PHILOX).into()])
}

/// Sets `blocks` aside in the generator of a call.
pub(super) fn reserve(call: &RuntimeCall<'_>, blocks: u128) -> Result<Philox> {
    let seeds = [call.attrs.int("seed")?, call.attrs.int("seed2")?];
    let owner = GeneratorOwner::new(call.scope.origin, call.op.name, seeds);
    Ok(call.scope.resources.generators().reserve(owner, blocks))
}

/// Sets aside what the numbers of result 0 may need.
fn reserve_numbers(call: &RuntimeCall<'_>) -> Result<Philox> {
    let outputs = infer_outputs(call.op, call.attrs, &call.inputs)?;
    let n = outputs[0].shape.known().map_or(0, |shape| shape.num_elements());
    reserve(call, n as u128 * u128::from(BLOCKS_PER_NUMBER))
}

/// Draws by `op`, whose inputs are the shape, the place in the sequence, and `parameters`.
pub(super) fn draw(
    call: &RuntimeCall<'_>,
    op: &str,
    shape: EagerTensor,
    generator: Philox,
    parameters: &[EagerTensor],
    dtype: DType,
) -> Result<Results> {
    let inputs = [&[shape], &place(generator)?[..], parameters].concat();
    execute(call.context(), op, Attrs::new().with("dtype", dtype), &inputs)
}

/// Numbers of the shape in input 0.
fn of_shape(call: &RuntimeCall<'_>, op: &str) -> Result<Results> {
    let generator = reserve_numbers(call)?;
    let (shape, limits) = (call.inputs[0].clone(), &call.inputs[1..]);
    let dtype = match limits.first() {
        Some(limit) => limit.dtype(),
        None => call.attrs.dtype("dtype")?,
    };
    draw(call, op, shape, generator, limits, dtype)
}

/// Numbers of the shape in input 0, for each parameter in input 1.
fn for_each_parameter(call: &RuntimeCall<'_>, op: &str, dtype: DType) -> Result<Results> {
    let generator = reserve_numbers(call)?;
    let mut shape = call.host(0)?.to_i64s()?;
    shape.extend(call.inputs[1].shape().to_i64());
    let shape = HostTensor::vector(&shape)?.into();
    draw(call, op, shape, generator, &call.inputs[1..], dtype)
}

fn gamma(call: &mut RuntimeCall<'_>) -> Result<Results> {
    for_each_parameter(call, "StatelessRandomGammaV3", call.inputs[1].dtype())
}

fn poisson(call: &mut RuntimeCall<'_>) -> Result<Results> {
    for_each_parameter(call, "_StatelessRandomPoissonV2", call.attrs.dtype("dtype")?)
}

fn multinomial(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let rows = call.inputs[0].shape().first().copied().unwrap_or(0) as u128;
    let samples = call.host(1)?.to_i64s()?.first().map_or(0, |&n| n.unsigned_abs());
    // Two words a number, and what a row takes is rounded up.
    let words = u128::from(samples.next_multiple_of(4)) * 2;
    let generator = reserve(call, rows * words * u128::from(BLOCKS_PER_NUMBER))?;
    let inputs = [&call.inputs[..], &place(generator)?[..]].concat();
    let attrs = Attrs::new().with("output_dtype", call.attrs.dtype("output_dtype")?);
    execute(call.context(), "_StatelessMultinomialV2", attrs, &inputs)
}

fn shuffle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_words = call.inputs[0].shape().num_elements();
    let generator = reserve(call, n_words.div_ceil(4) as u128)?;
    let inputs = [&call.inputs[..], &place(generator)?[..]].concat();
    execute(call.context(), "StatelessShuffle", Attrs::new(), &inputs)
}

/// Each row has parameters of its own, so rows are drawn as columns.
fn parameterized(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let generator = reserve_numbers(call)?;
    let shape = Shape::from_i64(&call.host(0)?.to_i64s()?)?;
    let n_rows = shape.first().copied().unwrap_or(0);
    let row = shape.num_elements() / n_rows.max(1);
    let columns = HostTensor::vector(&[row as i64, n_rows as i64])?.into();
    let dtype = call.attrs.dtype("dtype")?;
    let op = "_StatelessParameterizedTruncatedNormalV2";
    let size = HostTensor::vector(&[n_rows as i64])?;
    let of_rows = |parameter: &EagerTensor| -> Result<EagerTensor> {
        let inputs = [parameter.clone(), size.clone().into()];
        Ok(execute(call.context(), "BroadcastTo", Attrs::new(), &inputs)?.remove(0))
    };
    let parameters: Vec<EagerTensor> =
        call.inputs[1..].iter().map(of_rows).collect::<Result<_>>()?;
    let drawn = draw(call, op, columns, generator, &parameters, dtype)?.remove(0);
    let swap = HostTensor::vector(&[1i32, 0])?.into();
    let rows = execute(call.context(), "Transpose", Attrs::new(), &[drawn, swap])?.remove(0);
    one(rows.into_host()?.reshaped(shape)?)
}

fn non_deterministic(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let generator = Philox::new(unforeseen(), u128::from(unforeseen()) << 64);
    let (shape, dtype) = (call.inputs[0].clone(), call.attrs.dtype("dtype")?);
    draw(call, "StatelessRandomUniformFullIntV2", shape, generator, &[], dtype)
}

/// A window of an image, in the place of the sequence that a call sets aside.
fn distorted_box(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let attempts = call.attrs.int("max_attempts")?;
    let generator = reserve(call, u128::try_from(attempts).unwrap_or(0))?;
    let part = match call.inputs.get(2) {
        Some(part) => part.clone(),
        None => HostTensor::scalar(call.attrs.float("min_object_covered")?).into(),
    };
    let place = place(generator)?;
    let inputs = [&call.inputs[..2], &[part], &place[..]].concat();
    let op = "_SampleDistortedBoundingBox";
    let record = ferroflow_ir::registry::find(op);
    let known = |name: &str| record.is_some_and(|record| record.attr(name).is_some());
    let attrs = call.attrs.iter().filter(|(name, _)| known(name));
    let attrs: Attrs = attrs.map(|(name, value)| (name, value.clone())).collect();
    execute(call.context(), op, attrs, &inputs)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("Multinomial", multinomial),
    ("NonDeterministicInts", non_deterministic),
    ("ParameterizedTruncatedNormal", parameterized),
    ("RandomGamma", gamma),
    ("RandomPoisson", poisson),
    ("RandomPoissonV2", poisson),
    ("RandomShuffle", shuffle),
    ("RandomStandardNormal", |call| of_shape(call, "StatelessRandomNormalV2")),
    ("RandomUniform", |call| of_shape(call, "StatelessRandomUniformV2")),
    ("RandomUniformInt", |call| of_shape(call, "StatelessRandomUniformIntV2")),
    ("SampleDistortedBoundingBox", distorted_box),
    ("SampleDistortedBoundingBoxV2", distorted_box),
    ("TruncatedNormal", |call| of_shape(call, "StatelessTruncatedNormalV2")),
];

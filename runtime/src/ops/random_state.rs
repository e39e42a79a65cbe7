//! Random ops on generators whose state is a variable: the counter, then the key. Sources:
//! `stateful_random_ops.cc` and `random_binomial_op.cc` of TensorFlow.

use super::{RuntimeCall, RuntimeOpBody, none, one, random::draw};
use crate::{
    eager_tensor::Results, error::Result, runtime_call::infer_outputs, variable::VariableState,
};
use ferroflow_ir::{DType, Error as IrError, HostTensor};
use ferroflow_kernels::philox::{BLOCKS_PER_NUMBER, Philox};

/// Elements of the state of Philox and, of a state that is only moved on, of ThreeFry.
const PHILOX_STATE: usize = 3;
const THREEFRY_STATE: usize = 2;

/// The number of words of 64 bits that an algorithm's counter and key take.
fn state_size(call: &RuntimeCall<'_>, algorithm: i64) -> Result<usize> {
    match algorithm {
        1 | 3 => Ok(PHILOX_STATE),
        2 => Ok(THREEFRY_STATE),
        other => {
            let known = "1 (Philox), 2 (ThreeFry) or 3 (whichever the system likes best)";
            Err(IrError::argument(call.op.name, "algorithm", known, other).into())
        }
    }
}

fn integer(call: &RuntimeCall<'_>, index: usize) -> Result<i64> {
    let value = call.host(index)?;
    if let Ok(&[value]) = value.as_slice::<u64>() {
        return Ok(value as i64);
    }
    let first = value.to_i64s()?.first().copied();
    first.ok_or_else(|| {
        IrError::argument(call.op.name, format!("input {index}"), "a scalar", value.shape()).into()
    })
}

/// Moves the state on by `blocks`; gives what it was. Nobody else gets the same numbers.
fn advance(call: &RuntimeCall<'_>, size: usize, blocks: u128) -> Result<Vec<i64>> {
    call.resource::<VariableState>(0, "a variable")?.update(|value| {
        value.check(DType::I64)?;
        if value.shape().rank() != 1 || value.len() < size {
            let expected = format!("a vector of {size} elements or more");
            let found = value.shape();
            return Err(IrError::argument(call.op.name, "resource", expected, found).into());
        }
        let mut state = value.as_slice::<i64>()?.to_vec();
        let old = state.clone();
        let counter = if size == PHILOX_STATE {
            let next = philox(&old).skipped(blocks).counter();
            next.to_vec()
        } else {
            vec![(state[0] as u64).wrapping_add(blocks as u64)]
        };
        for (place, word) in state.iter_mut().zip(counter) {
            *place = word as i64;
        }
        *value = HostTensor::vector(&state)?;
        Ok(old)
    })
}

fn philox(state: &[i64]) -> Philox {
    let [low, high, key] = [0, 1, 2].map(|index| state[index] as u64);
    Philox::new(key, u128::from(low) | u128::from(high) << 64)
}

/// Moves the state on for `delta` numbers of any distribution.
fn skip_numbers(call: &RuntimeCall<'_>) -> Result<Vec<i64>> {
    let size = state_size(call, integer(call, 1)?)?;
    let delta = integer(call, 2)? as u64;
    advance(call, size, u128::from(delta.wrapping_mul(BLOCKS_PER_NUMBER)))
}

fn read_and_skip(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut old = skip_numbers(call)?;
    old.resize(PHILOX_STATE, 0);
    one(HostTensor::vector(&old)?)
}

fn skip(call: &mut RuntimeCall<'_>) -> Result<Results> {
    skip_numbers(call)?;
    none()
}

/// Checks the algorithm in input 1: numbers are drawn by Philox alone.
fn check_algorithm(call: &RuntimeCall<'_>) -> Result<()> {
    match integer(call, 1)? {
        1 => Ok(()),
        other => Err(IrError::argument(call.op.name, "algorithm", "1 (Philox)", other).into()),
    }
}

/// Number of elements of result 0.
fn n_numbers(call: &RuntimeCall<'_>) -> Result<u128> {
    let outputs = infer_outputs(call.op, call.attrs, &call.inputs)?;
    Ok(outputs[0].shape.known().map_or(0, |shape| shape.num_elements() as u128))
}

/// Draws by `op` for the shape in input `shape` and the parameters after it.
fn numbers(call: &RuntimeCall<'_>, op: &str, shape: usize) -> Result<Results> {
    let state = advance(call, PHILOX_STATE, n_numbers(call)? * u128::from(BLOCKS_PER_NUMBER))?;
    let dtype = call.attrs.dtype("dtype")?;
    let parameters = &call.inputs[shape + 1..];
    draw(call, op, call.inputs[shape].clone(), philox(&state), parameters, dtype)
}

/// Draws by `op` with the algorithm in input 1 and the shape in input 2.
fn by_algorithm(call: &RuntimeCall<'_>, op: &str) -> Result<Results> {
    check_algorithm(call)?;
    numbers(call, op, 2)
}

/// A batch of `n` numbers sets 200 (n + 3) / 4 times aside what a number may need.
fn binomial(call: &mut RuntimeCall<'_>) -> Result<Results> {
    check_algorithm(call)?;
    let shapes = [3, 4].map(|index| call.inputs[index].shape());
    let n_batches = shapes[0].broadcast(shapes[1])?.num_elements() as u128;
    let per_batch = n_numbers(call)?.checked_div(n_batches).unwrap_or(0);
    let n_reserved = n_batches * 200 * (per_batch + 3) / 4;
    let state = advance(call, PHILOX_STATE, n_reserved * u128::from(BLOCKS_PER_NUMBER))?;
    let (op, dtype) = ("_StatelessRandomBinomialV2", call.attrs.dtype("dtype")?);
    draw(call, op, call.inputs[2].clone(), philox(&state), &call.inputs[3..], dtype)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("RngReadAndSkip", read_and_skip),
    ("RngSkip", skip),
    ("StatefulRandomBinomial", binomial),
    ("StatefulStandardNormal", |call| numbers(call, "StatelessRandomNormalV2", 1)),
    ("StatefulStandardNormalV2", |call| by_algorithm(call, "StatelessRandomNormalV2")),
    ("StatefulTruncatedNormal", |call| by_algorithm(call, "StatelessTruncatedNormalV2")),
    ("StatefulUniform", |call| by_algorithm(call, "StatelessRandomUniformV2")),
    ("StatefulUniformFullInt", |call| by_algorithm(call, "StatelessRandomUniformFullIntV2")),
    ("StatefulUniformInt", |call| by_algorithm(call, "StatelessRandomUniformIntV2")),
];

//! Weights of models, made of seeds in the order in which they are asked for.

use super::place::BenchDevice;
use crate::inputs;
use anyhow::Result;
use ferroflow::{Tensor, Variable};

/// The seed of the first weight.
const FIRST: u64 = 1000;

/// Variables on a device. Functions know them but do not own them; whoever calls does.
pub(super) struct DeviceWeights<'a> {
    place: &'a BenchDevice,
    pub(super) made: Vec<Variable>,
}

impl DeviceWeights<'_> {
    pub(super) fn on(place: &BenchDevice) -> DeviceWeights<'_> {
        DeviceWeights { place, made: Vec::new() }
    }

    /// Numbers between `low` and `high`.
    pub(super) fn between(&mut self, dims: &[usize], low: f32, high: f32) -> Result<Variable> {
        let seed = FIRST + self.made.len() as u64;
        let value = self.place.tensor(inputs::floats(seed, dims, low, high)?)?;
        self.keep(value)
    }

    /// Numbers such that sums over `fan_in` products have `variance` times that of their inputs.
    pub(super) fn scaled(
        &mut self,
        dims: &[usize],
        fan_in: usize,
        variance: f32,
    ) -> Result<Variable> {
        let bound = (3.0 * variance / fan_in as f32).sqrt();
        self.between(dims, -bound, bound)
    }

    fn keep(&mut self, value: Tensor) -> Result<Variable> {
        let variable = Variable::new(value)?;
        self.made.push(variable.clone());
        Ok(variable)
    }
}

//! Creation of the weights of layers.

use super::DTypePolicy;
use crate::initializers::Initializer;
use ferroflow_ir::DType;
use ferroflow_tracer::{
    distribute::{VariableAggregation, VariableSynchronization},
    error::Result,
    tensor::Tensor,
    variable::{Variable, VariableOptions},
};

/// Makes the weights of layers: their dtype and first values. With a seed, the same layers made in
/// the same order have the same weights.
///
/// ```
/// use ferroflow_nn::{Dense, Weights};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let a = Dense::new(&mut Weights::seeded(7), 2, 3)?;
/// let b = Dense::new(&mut Weights::seeded(7), 2, 3)?;
/// assert_eq!(a.kernel().read()?.to_vec::<f32>()?, b.kernel().read()?.to_vec::<f32>()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Weights {
    dtype: DType,
    seed: Option<i64>,
    n_made: i64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { dtype: DType::F32, seed: None, n_made: 0 }
    }
}

impl Weights {
    /// Weights of `float32`, others each time.
    pub fn new() -> Weights {
        Weights::default()
    }

    /// Weights of `float32`, drawn by a seed.
    pub fn seeded(seed: i64) -> Weights {
        Weights { seed: Some(seed), ..Weights::default() }
    }

    /// The same, of another dtype.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Weights {
        Weights { dtype, ..self }
    }

    /// The same, of the dtype that a policy keeps weights in.
    #[must_use]
    pub fn with_policy(self, policy: DTypePolicy) -> Weights {
        self.with_dtype(policy.variable_dtype())
    }

    /// A weight that is trained.
    ///
    /// # Errors
    ///
    /// As [`Initializer::seeded`] and [`Variable::new`].
    pub fn make(&mut self, name: &str, first: Initializer, shape: &[usize]) -> Result<Variable> {
        let first = self.first(first, shape)?;
        self.of(name, first)
    }

    /// A weight that is trained, with these first values.
    ///
    /// # Errors
    ///
    /// When they cannot be cast to the dtype; as [`Variable::new`].
    pub fn of(&mut self, name: &str, first: Tensor) -> Result<Variable> {
        Variable::named(name, first.cast(self.dtype)?)
    }

    /// A variable of a layer that is not trained, such as an average: replicas of a strategy have one
    /// each, of which the mean is read and saved.
    ///
    /// # Errors
    ///
    /// As [`make`](Weights::make).
    pub fn untrained(
        &mut self,
        name: &str,
        first: Initializer,
        shape: &[usize],
    ) -> Result<Variable> {
        let first = self.first(first, shape)?;
        let options = VariableOptions {
            name: name.into(),
            trainable: false,
            synchronization: VariableSynchronization::OnRead,
            aggregation: VariableAggregation::Mean,
            ..VariableOptions::default()
        };
        Variable::with_options(first, options)
    }

    fn first(&mut self, first: Initializer, shape: &[usize]) -> Result<Tensor> {
        let number = self.n_made;
        self.n_made += 1;
        match self.seed {
            Some(seed) => first.seeded(self.dtype, shape, [seed, number]),
            None => first.make(self.dtype, shape),
        }
    }
}

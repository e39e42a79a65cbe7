//! Seeds of layers that draw numbers.

use ferroflow_ir::{DType, entropy::unforeseen};
use ferroflow_runtime::{
    collective::Replica,
    trackable::{Description, Identity, Trackable},
};
use ferroflow_tracer::{
    Result, Tensor, Variable, VariableOptions,
    distribute::{VariableAggregation, VariableSynchronization},
    init_scope, ops,
};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

/// Seeds for random numbers, another one for each draw: a seed and a count that goes on, also in
/// functions. Numbers are those that Keras draws by a `SeedGenerator` of this seed. Clones share their
/// count.
///
/// In checkpoints it has no variables, as in those of Keras; a
/// [`Trainer`](crate::train::Trainer) saves the counts of all layers, so that a training that is
/// resumed draws what it would have drawn. SavedModels have the variable, which functions that train use.
#[derive(Clone, Default)]
pub struct SeedGenerator {
    seed: i64,
    state: Arc<Mutex<Option<Variable>>>,
}

/// Distance of the seeds of replicas of a strategy.
const PER_REPLICA: i64 = 1_000_003;

impl SeedGenerator {
    /// Seeds that begin with this one; 0 is none, and others each time.
    pub fn new(seed: i64) -> SeedGenerator {
        SeedGenerator { seed, state: Arc::default() }
    }

    /// Seed and count, an `int64` `[2]`. It is made when it is first asked for, outside all traces.
    ///
    /// # Errors
    ///
    /// When a variable cannot be made here.
    pub fn state(&self) -> Result<Variable> {
        let mut state = self.state.lock();
        if let Some(state) = &*state {
            return Ok(state.clone());
        }
        let seed = match self.seed {
            0 => (unforeseen() % 1_000_000_000) as i64,
            seed => seed,
        };
        let options = VariableOptions {
            name: "seed_generator_state".into(),
            trainable: false,
            synchronization: VariableSynchronization::OnRead,
            aggregation: VariableAggregation::OnlyFirstReplica,
            ..VariableOptions::default()
        };
        let made = init_scope(|| {
            Replica::outside(|| Variable::with_options(Tensor::from([seed, 0]), options))
        })?;
        Ok(state.insert(made).clone())
    }

    /// The next seed, as stateless ops take it: an `int32` `[2]`.
    ///
    /// # Errors
    ///
    /// As [`state`](SeedGenerator::state).
    pub fn next_seed(&self) -> Result<Tensor> {
        let state = self.state()?;
        let mut seed = state.read()?;
        state.assign_add(Tensor::from([0i64, 1]))?;
        let component = Replica::with_current(|replica| replica.component as i64);
        if let Some(component) = component.filter(|&component| component > 0) {
            seed = (seed + Tensor::from([component.wrapping_mul(PER_REPLICA), 0]))?;
        }
        let modulus = Tensor::from(i64::from(i32::MAX - 1));
        ops::floor_mod(&seed, &modulus)?.cast(DType::I32)
    }

    /// Numbers from 0 to below 1 of this shape, an `int32` tensor, and dtype.
    ///
    /// # Errors
    ///
    /// When the shape is none; as [`state`](SeedGenerator::state).
    pub fn uniform(&self, shape: &Tensor, dtype: DType) -> Result<Tensor> {
        let attrs = ops::StatelessRandomUniformAttrs { dtype };
        ops::stateless_random_uniform_with(shape, &self.next_seed()?, &attrs)
    }

    /// Numbers of a normal distribution of mean 0 and deviation 1, of this shape and dtype.
    ///
    /// # Errors
    ///
    /// As [`uniform`](SeedGenerator::uniform).
    pub fn normal(&self, shape: &Tensor, dtype: DType) -> Result<Tensor> {
        let attrs = ops::StatelessRandomNormalAttrs { dtype };
        ops::stateless_random_normal_with(shape, &self.next_seed()?, &attrs)
    }
}

impl Trackable for SeedGenerator {
    fn describe(&self, object: &mut Description<'_>) {
        object.origin(Arc::new(self.clone())).child_of_model("state", || self.state().ok());
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(&self.state).cast::<()>() as usize))
    }
}

impl fmt::Debug for SeedGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<seeds from {}>", self.seed)
    }
}

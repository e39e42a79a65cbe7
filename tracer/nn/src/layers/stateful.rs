//! Recurrent layers whose state goes on from batch to batch.

use super::{Layer, LayerValue, Mode, RecurrentLayer, recurrent::last_result, value};
use crate::state::state;
use ferroflow_ir::TraceType;
use ferroflow_runtime::trackable::{Description, Trackable};
use ferroflow_tracer::{
    Nest,
    error::Result,
    tensor::Tensor,
    value::{Aliases, TensorLeaves},
    variable::Variable,
};
use std::fmt;

/// A recurrent layer that begins each batch with the state which the batch before has left, as a layer
/// of Keras that is `stateful`: example `i` of a batch goes on where example `i` of the last one ended.
/// Batches have the same number of examples.
///
/// ```
/// use ferroflow_nn::{Gru, Layer, Mode, Stateful, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let gru = Gru::new(&mut Weights::seeded(1), 1, 2)?;
/// let whole = Tensor::from([[[0.5f32], [1.0], [0.2], [0.4]]]);
/// let halves = [Tensor::from([[[0.5f32], [1.0]]]), Tensor::from([[[0.2f32], [0.4]]])];
/// let stateful = Stateful::new(gru.clone(), &halves[0])?;
/// stateful.call(&halves[0], Mode::Inference)?;
/// let y = stateful.call(&halves[1], Mode::Inference)?;
/// assert_eq!(y.to_vec::<f32>()?, gru.call(&whole, Mode::Inference)?.to_vec::<f32>()?);
/// stateful.reset()?;
/// # Ok(())
/// # }
/// ```
///
/// Weights: those of the layer. Its state is `states`, a list, which is not trained.
#[derive(Clone)]
pub struct Stateful<L> {
    layer: L,
    states: Vec<Variable>,
    ty: TraceType,
}

impl<L: RecurrentLayer> Stateful<L> {
    /// A layer for batches of the shape of `like`, whose state begins with zeros.
    ///
    /// # Errors
    ///
    /// When the layer has no state for such a batch, or variables cannot be made here.
    pub fn new(layer: L, like: &Tensor) -> Result<Stateful<L>> {
        let zeros = layer.zero_state(like)?;
        let mut leaves = TensorLeaves::default();
        zeros.leaves(&mut Aliases::default(), &mut leaves);
        let states = leaves.into_iter().map(|zeros| state("rnn_state", zeros));
        let ty = zeros.to_value().trace_type(&mut Aliases::default());
        Ok(Stateful { layer, states: states.collect::<Result<_>>()?, ty })
    }

    /// The layer.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    /// Forgets the state: the next batch begins with zeros.
    ///
    /// # Errors
    ///
    /// When a variable cannot be assigned.
    pub fn reset(&self) -> Result<()> {
        self.states.iter().try_for_each(|state| state.assign(&state.read()?.zeros_like()?))
    }

    fn state(&self) -> Result<L::State> {
        let states = self.states.iter().map(Variable::read).collect::<Result<Vec<Tensor>>>()?;
        L::State::from_leaves(&self.ty, &mut states.into_iter())
    }
}

impl<L: RecurrentLayer> Layer for Stateful<L> {
    value::call_by_propagate!();

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let mask = x.mask.as_ref();
        let (all, state) = self.layer.run_masked(mode, &x.tensor, mask, Some(self.state()?))?;
        let mut leaves = TensorLeaves::default();
        state.leaves(&mut Aliases::default(), &mut leaves);
        for (variable, value) in self.states.iter().zip(&leaves) {
            variable.assign(&value.cast(variable.dtype())?)?;
        }
        if self.layer.returns_sequences() {
            return Ok(x.with_tensor(all));
        }
        Ok(x.with_unmasked(last_result::<L>(&all, &state, mask.is_some())?))
    }
}

impl<L: RecurrentLayer> Trackable for Stateful<L> {
    fn describe(&self, object: &mut Description<'_>) {
        self.layer.describe(object);
        object.child("states", &self.states);
    }
}

impl<L: fmt::Debug> fmt::Debug for Stateful<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stateful").field(&self.layer).finish()
    }
}

//! Recurrent layers in both directions, and layers at each step of a sequence.

use super::{
    Layer, Mode,
    recurrent::{RecurrentLayer, reversed, swapped},
    shapes::wrong,
};
use ferroflow_tracer::{control_flow::map_fn, error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Two recurrent layers, of which one goes through sequences from the start and the other from the
/// end (Schuster and Paliwal 1997), and their results merged.
///
/// ```
/// use ferroflow_nn::{Bidirectional, Layer, Lstm, MergeMode, Mode, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let weights = &mut Weights::seeded(1);
/// let (forward, backward) = (Lstm::new(weights, 2, 5)?, Lstm::new(weights, 2, 5)?);
/// let layer = Bidirectional::new(forward, backward, MergeMode::Concat)?;
/// let x = Tensor::from([[[0.5f32, 1.0], [0.1, 0.2], [0.0, 1.0]]]);
/// assert_eq!(layer.call(&x, Mode::Inference)?.shape().to_string(), "[1,10]");
/// # Ok(())
/// # }
/// ```
///
/// Weights: those of `forward_layer` and `backward_layer`.
#[derive(Trackable, Debug, Clone)]
pub struct Bidirectional<F, B = F> {
    forward_layer: F,
    backward_layer: B,
    #[trackable(skip)]
    merge: MergeMode,
}

/// The way in which the results of two directions become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeMode {
    /// Concatenation in the last dimension.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Multiply,
    /// Their mean.
    Average,
}

/// The states of a [`Bidirectional`] layer: that of the forward layer, and that of the backward one.
pub type BothStates<F, B> = (<F as RecurrentLayer>::State, <B as RecurrentLayer>::State);

impl<F: RecurrentLayer, B: RecurrentLayer> Bidirectional<F, B> {
    /// A layer of these two; the second is turned around.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when only one of them returns the
    /// results of all steps.
    pub fn new(forward: F, backward: B, merge: MergeMode) -> Result<Bidirectional<F, B>> {
        if forward.returns_sequences() != backward.returns_sequences() {
            let expected = "two layers that return the results of all steps, or of the last";
            return Err(wrong(expected, "one of each"));
        }
        let backward_layer = backward.backwards();
        Ok(Bidirectional { forward_layer: forward, backward_layer, merge })
    }

    /// The merged results, and the states after the last step of either direction. Without states
    /// both begin with zeros.
    ///
    /// # Errors
    ///
    /// When input or states do not fit, or the results cannot be merged.
    pub fn run_in(
        &self,
        mode: Mode,
        x: &Tensor,
        states: Option<BothStates<F, B>>,
    ) -> Result<(Tensor, BothStates<F, B>)> {
        let (first, second) = states.unzip();
        let (forward, first) = self.forward_layer.run_in(mode, x, first)?;
        let (backward, second) = self.backward_layer.run_in(mode, x, second)?;
        let results = if self.forward_layer.returns_sequences() {
            self.merged(&forward, &reversed(&backward)?)?
        } else {
            self.merged(F::last(&first), B::last(&second))?
        };
        Ok((results, (first, second)))
    }

    fn merged(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        match self.merge {
            MergeMode::Concat => ops::concat_v2(&[a, b], &Tensor::from(-1)),
            MergeMode::Sum => a + b,
            MergeMode::Multiply => a * b,
            MergeMode::Average => (a + b)? / 2.0,
        }
    }
}

impl<F: RecurrentLayer, B: RecurrentLayer> Layer for Bidirectional<F, B> {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        Ok(self.run_in(mode, x, None)?.0)
    }
}

/// A layer called for each step of sequences: `[batch, steps, ..] → [batch, steps, ..]`. Where the
/// number of steps is known, each has its own operations; otherwise they are a loop.
///
/// Weights: those of `layer`.
#[derive(Trackable, Debug, Clone)]
pub struct TimeDistributed<L> {
    layer: L,
}

impl<L: Layer> TimeDistributed<L> {
    /// The layer at each step.
    pub fn new(layer: L) -> TimeDistributed<L> {
        TimeDistributed { layer }
    }
}

impl<L: Layer> Layer for TimeDistributed<L> {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let Some(steps) = x.shape().dim(1).filter(|&steps| steps > 0) else {
            return swapped(&map_fn(|x: Tensor| self.layer.call(&x, mode), &swapped(x)?)?);
        };
        let attrs = ops::UnpackAttrs { axis: 1 };
        let steps = ops::unpack_with(x, steps as i64, &attrs)?;
        let results = steps.iter().map(|x| self.layer.call(x, mode));
        let results: Vec<Tensor> = results.collect::<Result<_>>()?;
        ops::pack_with(&results.iter().collect::<Vec<_>>(), &ops::PackAttrs { axis: 1 })
    }
}

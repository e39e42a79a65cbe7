//! Recurrent layers in both directions, and layers at each step of a sequence.

use super::{
    Layer, LayerValue, Mode,
    recurrent::{RecurrentLayer, last_result, reversed, swapped},
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
        let (mut forward_layer, mut backward_layer) = (forward, backward.backwards());
        if forward_layer.returns_sequences() {
            forward_layer = forward_layer.zero_output_for_mask();
            backward_layer = backward_layer.zero_output_for_mask();
        }
        Ok(Bidirectional { forward_layer, backward_layer, merge })
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
        self.run_masked(mode, x, None, states)
    }

    /// As [`run_in`](Bidirectional::run_in), of the steps where the mask `[batch, steps]` is true. In
    /// results of all steps the others have zeros.
    ///
    /// # Errors
    ///
    /// When input, mask or states do not fit, or the results cannot be merged.
    pub fn run_masked(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        states: Option<BothStates<F, B>>,
    ) -> Result<(Tensor, BothStates<F, B>)> {
        let (first, second) = states.unzip();
        let (forward, first) = self.forward_layer.run_masked(mode, x, mask, first)?;
        let (backward, second) = self.backward_layer.run_masked(mode, x, mask, second)?;
        let results = if self.forward_layer.returns_sequences() {
            self.merged(&forward, &reversed(&backward)?)?
        } else {
            let is_masked = mask.is_some();
            let last = last_result::<F>(&forward, &first, is_masked)?;
            self.merged(&last, &last_result::<B>(&backward, &second, is_masked)?)?
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

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let y = self.run_masked(mode, &x.tensor, x.mask.as_ref(), None)?.0;
        let is_sequence = self.forward_layer.returns_sequences();
        Ok(if is_sequence { x.with_tensor(y) } else { x.with_unmasked(y) })
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

impl<L: Layer> TimeDistributed<L> {
    /// The results at each step `[batch, steps, ..]`; the layer has the mask of its step, where there
    /// is one for its own input: `[batch, steps, ..]`.
    fn at_steps(&self, x: &Tensor, mask: Option<&Tensor>, mode: Mode) -> Result<Tensor> {
        let at_step = |x: Tensor, mask: Option<Tensor>| {
            let x = LayerValue { mask, ..LayerValue::from(x) };
            Ok(self.layer.propagate(&x, mode)?.tensor)
        };
        let Some(steps) = x.shape().dim(1).filter(|&steps| steps > 0) else {
            let mask = mask.map(swapped).transpose()?;
            let both = (swapped(x)?, mask);
            return swapped(&map_fn(|(x, mask)| at_step(x, mask), &both)?);
        };
        let attrs = ops::UnpackAttrs { axis: 1 };
        let each = |x: &Tensor| ops::unpack_with(x, steps as i64, &attrs);
        let masks = mask.map(each).transpose()?;
        let mask = |step: usize| masks.as_ref().map(|masks| masks[step].clone());
        let results = each(x)?.into_iter().enumerate().map(|(step, x)| at_step(x, mask(step)));
        let results: Vec<Tensor> = results.collect::<Result<_>>()?;
        ops::pack_with(&results.iter().collect::<Vec<_>>(), &ops::PackAttrs { axis: 1 })
    }
}

impl<L: Layer> Layer for TimeDistributed<L> {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.at_steps(x, None, mode)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let inner = x.mask.as_ref().filter(|mask| mask.shape().rank().is_none_or(|rank| rank > 2));
        Ok(x.with_tensor(self.at_steps(&x.tensor, inner, mode)?))
    }
}

//! Layers one after the other.

use super::{Layer, LayerValue, Mode, value};
use crate::Module;
use ferroflow_runtime::trackable::{Description, Trackable};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use std::{fmt, sync::Arc};

/// Layers and functions, each of which gets what the one before returns. Clones share their layers.
///
/// ```
/// use ferroflow_nn::{Dense, Dropout, Layer, Mode, Module, Sequential, Weights, flatten};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let mut weights = Weights::seeded(3);
/// let network = Sequential::new()
///     .map(flatten)
///     .then(Dense::new(&mut weights, 4, 8)?)
///     .then(Dropout::new(0.5)?)
///     .then(Dense::new(&mut weights, 8, 2)?);
/// let x = Tensor::from([[[1.0f32, 2.0], [3.0, 4.0]]]);
/// assert_eq!(network.call(&x, Mode::Inference)?.shape().to_string(), "[1,2]");
/// assert_eq!(network.trainable_variables()?.len(), 4);
/// # Ok(())
/// # }
/// ```
///
/// In object graphs the layers are what Keras 2 calls them (`layer_with_weights-0`, `layer-0`), and
/// what Keras 3 does (`_functional/_operations/1`).
#[derive(Clone, Default)]
pub struct Sequential {
    layers: Vec<Arc<dyn Layer>>,
}

impl Sequential {
    /// A network without layers, which returns its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// This layer at the end.
    #[must_use]
    pub fn then(mut self, layer: impl Layer + 'static) -> Sequential {
        self.layers.push(Arc::new(layer));
        self
    }

    /// This function at the end. It counts as a layer.
    #[must_use]
    pub fn map(self, f: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Sequential {
        self.then(Map(f))
    }

    /// The layers, in order.
    pub fn layers(&self) -> &[Arc<dyn Layer>] {
        &self.layers
    }
}

impl Layer for Sequential {
    value::call_by_propagate!();

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let x = x.clone().in_compute_dtype()?;
        self.layers.iter().try_fold(x, |x, layer| layer.propagate(&x, mode)?.in_compute_dtype())
    }
}

impl Trackable for Sequential {
    fn describe(&self, object: &mut Description<'_>) {
        let mut n_weighted = 0;
        for (index, layer) in self.layers.iter().enumerate() {
            // A layer that makes no graph is told of when the whole is made one.
            if layer.variables().is_ok_and(|variables| !variables.is_empty()) {
                object.child(format!("layer_with_weights-{n_weighted}"), layer);
                n_weighted += 1;
            }
            object.child(format!("layer-{index}"), layer);
        }
        object.child("_functional", &Functional(&self.layers));
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} layers in a row>", self.layers.len())
    }
}

/// Objects that Keras 3 has within a model: a list of its operations, of which the first is the
/// input.
struct Functional<'a>(&'a [Arc<dyn Layer>]);

impl Trackable for Functional<'_> {
    fn describe(&self, object: &mut Description<'_>) {
        object.child("_operations", &Operations(self.0));
    }
}

struct Operations<'a>(&'a [Arc<dyn Layer>]);

impl Trackable for Operations<'_> {
    fn describe(&self, object: &mut Description<'_>) {
        for (index, layer) in self.0.iter().enumerate() {
            object.child((index + 1).to_string(), layer);
        }
    }
}

struct Map<F>(F);

impl<F> Trackable for Map<F> {
    fn describe(&self, _: &mut Description<'_>) {}
}

impl<F: Fn(&Tensor) -> Result<Tensor> + Send + Sync> Layer for Map<F> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        (self.0)(x)
    }
}

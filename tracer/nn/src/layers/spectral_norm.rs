//! Layers whose kernels are kept at a spectral norm of 1.

use super::{Layer, Mode, Weights, compute::unit, rows, shapes::wrong};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// Spectral normalization (Miyato et al. 2018): in training the kernel of a layer is divided by its
/// largest singular value before each call, which power iteration estimates.
///
/// Weights: those of the layer, and `vector_u` `[1, outputs]`, which is not trained.
#[doc(alias("SpectralNormalization"))]
#[derive(Trackable, Debug, Clone)]
pub struct SpectralNorm<L> {
    layer: L,
    kernel: Variable,
    vector_u: Variable,
    #[trackable(skip)]
    iterations: usize,
}

impl<L: Layer> SpectralNorm<L> {
    /// The layer with its kernel normalized, by so many power iterations a call.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) without any iteration, and for a
    /// kernel without a last dimension; as [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        layer: L,
        kernel: &Variable,
        iterations: usize,
    ) -> Result<SpectralNorm<L>> {
        let outputs = kernel.shape().dim(-1);
        let outputs = outputs
            .ok_or_else(|| wrong("a kernel with a last dimension", kernel.spec().to_string()))?;
        if iterations == 0 {
            return Err(wrong("a power iteration at least", "none"));
        }
        let first = Initializer::TruncatedNormal { mean: 0.0, deviation: 0.02 };
        let vector_u = weights.untrained("vector_u", first, &[1, outputs])?;
        Ok(SpectralNorm { layer, kernel: kernel.clone(), vector_u, iterations })
    }

    /// The layer.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    /// Divides the kernel by its spectral norm, unless it is zero.
    fn normalize(&self) -> Result<()> {
        let kernel = self.kernel.read()?;
        let weights = kernel.reshape(&[-1, rows::size(&kernel, -1)?])?;
        let turned = weights.transpose(&[1, 0])?;
        let before = self.vector_u.read()?;
        let (mut u, mut v) = (before.clone(), before.clone());
        for _ in 0..self.iterations {
            v = unit(&u.matmul(&turned)?, &[0, 1], 1e-7)?;
            u = unit(&v.matmul(&weights)?, &[0, 1], 1e-7)?;
        }
        let norm = v.matmul(&weights)?.matmul(&u.transpose(&[1, 0])?)?.reshape(&[])?;
        let is_zero = kernel.equal(0.0)?.all_true()?;
        self.vector_u.assign(is_zero.select(before, u)?)?;
        self.kernel.assign(is_zero.select(&kernel, (&kernel / norm)?)?)
    }
}

impl<L: Layer> Layer for SpectralNorm<L> {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Training {
            self.normalize()?;
        }
        self.layer.call(x, mode)
    }
}

//! Spectrograms of sound by convolutions, which can be trained.

use super::sample_window::SampleWindow;
use crate::layers::{
    Layer, Mode, Padding, Weights,
    compute::input_for_some,
    geometry::convolved,
    shapes::{DimSize, has_rank, reshaped, wrong},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;
use std::f32::consts::PI;

/// The short-time Fourier transform of sound, by convolutions with cosines and sines, which are
/// weights: `[batch, samples, channels] → [batch, frames, channels·bins]`, where the bins are
/// `fft_length / 2 + 1` frequencies, or `[batch, frames, bins, channels]`.
///
/// ```
/// use ferroflow_nn::{Layer, Mode, StftOptions, StftSpectrogram, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let options = StftOptions { frame_length: 8, ..StftOptions::default() };
/// let layer = StftSpectrogram::new(&mut Weights::new(), &options)?;
/// let tone: Vec<f32> = (0..24).map(|n| (n as f32 * 0.5).sin()).collect();
/// let y = layer.call(&Tensor::from_slice(&[1, 24, 1], &tone)?, Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[1,5,5]");
/// # Ok(())
/// # }
/// ```
///
/// Weights, those that the mode needs: `real_kernel` and `imag_kernel`, `[frame_length, 1, bins]`.
#[derive(Trackable, Debug, Clone)]
pub struct StftSpectrogram {
    real_kernel: Option<Variable>,
    imag_kernel: Option<Variable>,
    #[trackable(skip)]
    options: StftOptions,
}

/// The options of an [`StftSpectrogram`]; the defaults are those of Keras.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StftOptions {
    /// The results.
    pub mode: SpectrumMode,
    /// The samples of a frame.
    pub frame_length: usize,
    /// The samples from frame to frame; by default half of a frame.
    pub frame_step: Option<usize>,
    /// The samples of a transform; by default the next power of two.
    pub fft_length: Option<usize>,
    /// The weights of a frame.
    pub window: SampleWindow,
    /// Whether the window is one period of a periodic function, or symmetric.
    pub periodic: bool,
    /// The scale of the window; a rectangular one has none.
    pub scaling: SpectrumScaling,
    /// The padding of sound.
    pub padding: Padding,
    /// Whether the channels are a dimension of the result.
    pub expand_dims: bool,
}

impl Default for StftOptions {
    fn default() -> StftOptions {
        StftOptions {
            mode: SpectrumMode::Log,
            frame_length: 256,
            frame_step: None,
            fft_length: None,
            window: SampleWindow::Hann,
            periodic: false,
            scaling: SpectrumScaling::Density,
            padding: Padding::Valid,
            expand_dims: false,
        }
    }
}

/// The numbers of a spectrogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpectrumMode {
    /// The logarithms of magnitudes.
    #[default]
    Log,
    /// Magnitudes.
    Magnitude,
    /// Power: frequencies between the first and the last count twice.
    Psd,
    /// Real parts.
    Real,
    /// Imaginary parts.
    Imaginary,
    /// Angles, in radians.
    Angle,
    /// Real parts, and behind them imaginary ones.
    Stft,
}

/// The scale of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpectrumScaling {
    /// Squares of weights add up to 1.
    #[default]
    Density,
    /// Weights add up to 1.
    Spectrum,
    /// Weights are those of the window.
    Unscaled,
}

/// The largest number of elements of a kernel.
const LARGEST: usize = 1 << 24;

/// The least magnitudes and squares of them that have logarithms and roots.
const LEAST: f64 = 1e-7;

impl StftSpectrogram {
    /// A layer of these options.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for sizes of 0 or that are too
    /// large, steps longer than a frame, transforms shorter than it, and causal padding; as
    /// [`Weights::of`].
    pub fn new(weights: &mut Weights, options: &StftOptions) -> Result<StftSpectrogram> {
        let StftOptions { mode, frame_length, .. } = *options;
        check(options)?;
        let n_bins = fft_length(options) / 2 + 1;
        let window = scaled_window(options);
        let mut kernel = |name: &str, wave: fn(f64) -> f64| {
            let waves = waves(&window, n_bins, wave);
            weights.of(name, Tensor::from_slice(&[frame_length, 1, n_bins], &waves)?)
        };
        let needs = |needed: bool| needed.then_some(());
        let real_kernel = needs(mode != SpectrumMode::Imaginary);
        let real_kernel = real_kernel.map(|()| kernel("real_kernel", f64::cos)).transpose()?;
        let imag_kernel = needs(mode != SpectrumMode::Real);
        let imag_kernel = imag_kernel.map(|()| kernel("imag_kernel", f64::sin)).transpose()?;
        Ok(StftSpectrogram { real_kernel, imag_kernel, options: *options })
    }

    /// The results of the mode for signals: `[n, samples, 1] → [n, frames, bins]`.
    fn spectrum(&self, signals: &Tensor) -> Result<Tensor> {
        let step = self.options.frame_step.unwrap_or((self.options.frame_length / 2).max(1));
        let part = |kernel: &Option<Variable>| {
            let kernel = kernel.as_ref().map(Variable::read).transpose()?;
            let convolve = |kernel: Tensor| {
                let kernel = kernel.cast(signals.dtype())?;
                convolved(signals, &kernel, &[step], &[1], self.options.padding)
            };
            kernel.map(convolve).transpose()
        };
        match (part(&self.real_kernel)?, part(&self.imag_kernel)?) {
            (Some(real), Some(imaginary)) => self.combined(&real, &imaginary),
            (Some(part), None) | (None, Some(part)) => Ok(part),
            (None, None) => Err(wrong("a layer with a kernel", "none")),
        }
    }

    fn combined(&self, real: &Tensor, imaginary: &Tensor) -> Result<Tensor> {
        let power = || real.square()? + imaginary.square()?;
        let magnitude = || power()?.maximum(LEAST)?.sqrt();
        match self.options.mode {
            SpectrumMode::Real => Ok(real.clone()),
            SpectrumMode::Imaginary => Ok(imaginary.clone()),
            SpectrumMode::Angle => ops::atan2(imaginary, real),
            SpectrumMode::Stft => ops::concat_v2(&[real, imaginary], &Tensor::from(-1)),
            SpectrumMode::Psd => power()? * self.both_sides()?.cast(real.dtype())?,
            SpectrumMode::Magnitude => magnitude(),
            SpectrumMode::Log => magnitude()?.maximum(LEAST)?.log(),
        }
    }

    /// The number of times that each frequency counts among the positive and negative ones.
    fn both_sides(&self) -> Result<Tensor> {
        let n_bins = fft_length(&self.options) / 2 + 1;
        let count = |bin: usize| if bin == 0 || bin + 1 == n_bins { 1.0f32 } else { 2.0 };
        Ok(Tensor::from((0..n_bins).map(count).collect::<Vec<_>>()))
    }
}

impl Layer for StftSpectrogram {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        has_rank(x, 3)?;
        let x = input_for_some(self.real_kernel.as_ref().or(self.imag_kernel.as_ref()), x)?;
        let [batch, samples, channels] = [0, 1, 2].map(|axis| DimSize::of(&x, axis));
        let (batch, samples, channels) = (batch?, samples?, channels?);
        let one = DimSize::Known(1);
        let signals = [batch.times(&channels)?, samples, one];
        let y = self.spectrum(&reshaped(&x.transpose(&[0, 2, 1])?, &signals)?)?;
        let (frames, bins) = (DimSize::of(&y, 1)?, DimSize::of(&y, 2)?);
        let split = [batch.clone(), channels.clone(), frames.clone(), bins.clone()];
        let y = reshaped(&y, &split)?;
        if self.options.expand_dims {
            return y.transpose(&[0, 2, 3, 1]);
        }
        reshaped(&y.transpose(&[0, 2, 1, 3])?, &[batch, frames, channels.times(&bins)?])
    }
}

fn fft_length(options: &StftOptions) -> usize {
    options.fft_length.unwrap_or(options.frame_length.next_power_of_two())
}

fn check(options: &StftOptions) -> Result<()> {
    let StftOptions { frame_length, frame_step, padding, .. } = *options;
    let is_step = frame_step.is_none_or(|step| (1..=frame_length).contains(&step));
    if !((1..=LARGEST).contains(&frame_length) && is_step) {
        return Err(wrong("frames and steps within them", format!("{options:?}")));
    }
    let fft_length = fft_length(options);
    let n = (fft_length / 2 + 1).saturating_mul(frame_length);
    if fft_length < frame_length || n > LARGEST {
        let expected = format!("a transform of {frame_length} samples at least");
        return Err(wrong(expected, fft_length.to_string()));
    }
    if padding == Padding::Causal {
        return Err(wrong("valid or same padding", "causal padding"));
    }
    Ok(())
}

/// The weights of a frame, scaled.
fn scaled_window(options: &StftOptions) -> Vec<f32> {
    let length = options.frame_length;
    let window = options.window.weights(length, length - usize::from(!options.periodic));
    let scale = match options.scaling {
        _ if options.window == SampleWindow::Rectangular => 1.0,
        SpectrumScaling::Unscaled => 1.0,
        SpectrumScaling::Density => window.iter().map(|w| w * w).sum::<f32>().sqrt(),
        SpectrumScaling::Spectrum => window.iter().map(|w| w.abs()).sum(),
    };
    window.iter().map(|weight| weight / scale).collect()
}

/// The waves of frequencies at the samples of a window, by angles in `float32`, as in Keras.
fn waves(window: &[f32], n_bins: usize, wave: fn(f64) -> f64) -> Vec<f32> {
    let length = ((n_bins - 1) * 2).max(1) as f32;
    let at = |n: usize, bin: usize| {
        let angle = -2.0 * n as f32 * (bin as f32 / length) * PI;
        wave(f64::from(angle)) as f32
    };
    let samples = window.iter().enumerate();
    samples.flat_map(|(n, w)| (0..n_bins).map(move |bin| at(n, bin) * w)).collect()
}

//! Mel spectrograms of sound.

use super::sample_window::SampleWindow;
use crate::layers::{
    Layer, Mode,
    compute::{input, wide},
    rows,
    shapes::{DimSize, rank, unfit, wrong},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;
use std::f64::consts::LN_10;

/// Sound `[.., samples]` as the power in bands of the mel scale: `[.., bands, frames]`, in decibels
/// unless options say otherwise. Frames are windows around every `stride`-th sample, the sound being
/// mirrored at its ends, of which there is a short-time Fourier transform. It is computed in
/// `float32` at least.
///
/// ```
/// use ferroflow_nn::{Layer, MelOptions, MelSpectrogram, Mode};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let tone: Vec<f32> = (0..400).map(|n| (n as f32 * 0.5).sin()).collect();
/// let options = MelOptions { fft_length: 64, stride: 32, n_bands: 8, ..MelOptions::default() };
/// let y = MelSpectrogram::new(&options)?.call(&Tensor::from(tone), Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[8,13]");
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone)]
pub struct MelSpectrogram {
    #[trackable(skip)]
    options: MelOptions,
    #[trackable(skip)]
    window: Tensor,
    #[trackable(skip)]
    bands: Tensor,
}

/// The options of a [`MelSpectrogram`]; the defaults are those of Keras.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MelOptions {
    /// The samples of a Fourier transform.
    pub fft_length: usize,
    /// The samples from frame to frame.
    pub stride: usize,
    /// The samples of a window, which is padded to those of the transform; by default as many.
    pub window_length: Option<usize>,
    /// The weights of a window.
    pub window: SampleWindow,
    /// Samples per second.
    pub sampling_rate: f32,
    /// The number of bands.
    pub n_bands: usize,
    /// The lower end of the bands, in hertz.
    pub min_frequency: f32,
    /// The upper end of the bands, in hertz; by default half of the sampling rate.
    pub max_frequency: Option<f32>,
    /// The exponent of magnitudes: 2 for power.
    pub exponent: f64,
    /// The decibels of results, if any.
    pub decibels: Option<DecibelOptions>,
}

/// The way in which power becomes decibels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecibelOptions {
    /// The power of 0 decibels.
    pub reference: f64,
    /// The least power.
    pub min_power: f64,
    /// The decibels below the largest result to which smaller ones are raised.
    pub range: f64,
}

impl Default for DecibelOptions {
    fn default() -> DecibelOptions {
        DecibelOptions { reference: 1.0, min_power: 1e-10, range: 80.0 }
    }
}

impl Default for MelOptions {
    fn default() -> MelOptions {
        MelOptions {
            fft_length: 2048,
            stride: 512,
            window_length: None,
            window: SampleWindow::Hann,
            sampling_rate: 16000.0,
            n_bands: 128,
            min_frequency: 20.0,
            max_frequency: None,
            exponent: 2.0,
            decibels: Some(DecibelOptions::default()),
        }
    }
}

/// The longest transform, in samples.
const LONGEST: usize = 1 << 24;

impl MelSpectrogram {
    /// A layer of these options.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when sizes are 0 or too large, a
    /// window is longer than the transform, or the bands have no frequencies.
    pub fn new(options: &MelOptions) -> Result<MelSpectrogram> {
        let MelOptions { fft_length, stride, n_bands, .. } = *options;
        let sizes = [fft_length, stride, n_bands];
        if !sizes.iter().all(|size| (1..=LONGEST).contains(size)) {
            return Err(wrong("sizes from 1", format!("{sizes:?}")));
        }
        let window_length = options.window_length.unwrap_or(fft_length);
        if !(1..=fft_length).contains(&window_length) {
            let expected = format!("a window of 1 to {fft_length} samples");
            return Err(wrong(expected, window_length.to_string()));
        }
        let n_bins = fft_length / 2 + 1;
        if n_bins.saturating_mul(n_bands) > LONGEST {
            return Err(wrong("fewer bands", n_bands.to_string()));
        }
        let window = padded_window(options.window, window_length, fft_length);
        let bands = Tensor::from_slice(&[n_bins, n_bands], &band_weights(options, n_bins)?)?;
        Ok(MelSpectrogram { options: *options, window: Tensor::from(window), bands })
    }

    /// The frames of sound: `[.., samples] → [.., frames, fft_length]`.
    fn frames(&self, x: &Tensor) -> Result<Tensor> {
        let (rank, fft_length) = (rank(x)?, self.options.fft_length as i32);
        let mut paddings = vec![0; 2 * rank];
        paddings[2 * rank - 2..].fill(fft_length / 2);
        let paddings = Tensor::from(paddings).reshape(&[rank as i64, 2])?;
        let padded = ops::mirror_pad(x, &paddings, "REFLECT")?;
        let end = (DimSize::of(&padded, rank - 1)?.tensor() - (fft_length - 1))?;
        let stride = Tensor::from(self.options.stride as i32);
        let starts = ops::range(&Tensor::from(0), &end, &stride)?.expand_dims(1)?;
        let indices = (starts + Tensor::from((0..fft_length).collect::<Vec<_>>()))?;
        ops::gather_v2(&padded, &indices, &Tensor::from(rank as i32 - 1))
    }

    /// The magnitudes of the frequencies of frames, to the power of the exponent.
    fn powers(&self, frames: &Tensor) -> Result<Tensor> {
        let dtype = frames.dtype();
        let tcomplex = if dtype == DType::F64 { DType::C128 } else { DType::C64 };
        let frames = (frames * self.window.cast(dtype)?)?;
        let length = Tensor::from([self.options.fft_length as i32]);
        let spectrum = ops::rfft_with(&frames, &length, &ops::RFFTAttrs { tcomplex })?;
        let [real, imaginary] = parts(&spectrum, dtype)?;
        let squares = (real.square()? + imaginary.square()?)?;
        if self.options.exponent == 2.0 {
            return Ok(squares);
        }
        squares.sqrt()?.pow(self.options.exponent)
    }
}

impl Layer for MelSpectrogram {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let sound = input(x)?;
        let dtype = sound.dtype();
        let n = rank(&sound)? as i32;
        if n == 0 || dtype.is_complex() {
            return Err(unfit("samples", x));
        }
        let powers = self.powers(&self.frames(&sound.cast(wide(dtype))?)?)?;
        let y = rows::times(&powers, &self.bands.cast(powers.dtype())?)?;
        let y = match &self.options.decibels {
            Some(options) => decibels(&y, options)?,
            None => y,
        };
        let order: Vec<i32> = (0..n - 1).chain([n, n - 1]).collect();
        y.transpose(&order)?.cast(dtype)
    }
}

/// The real and the imaginary parts of complex numbers.
fn parts(x: &Tensor, tout: DType) -> Result<[Tensor; 2]> {
    let real = ops::real_with(x, &ops::RealAttrs { tout })?;
    Ok([real, ops::imag_with(x, &ops::ImagAttrs { tout })?])
}

fn decibels(power: &Tensor, options: &DecibelOptions) -> Result<Tensor> {
    let DecibelOptions { reference, min_power, range } = *options;
    let level = (power.maximum(min_power)?.log()? * (10.0 / LN_10))?;
    let level = (level - 10.0 * reference.abs().max(min_power).log10())?;
    let axes: Vec<i32> = (0..rank(&level)? as i32).collect();
    let least = (level.max(&axes)? - range)?;
    level.maximum(&least)
}

/// A window in the middle of zeros. Its period is that of TensorFlow: the length where that is even,
/// otherwise one less.
fn padded_window(window: SampleWindow, length: usize, fft_length: usize) -> Vec<f32> {
    let period = if length.is_multiple_of(2) { length } else { length - 1 };
    let mut padded = vec![0.0; fft_length];
    let first = (fft_length - length) / 2;
    padded[first..first + length].copy_from_slice(&window.weights(length, period));
    padded
}

/// The weights of the frequencies in each band, `[bins, bands]`: triangles on the mel scale of HTK,
/// `1127·ln(1 + f / 700)`, without the constant part.
fn band_weights(options: &MelOptions, n_bins: usize) -> Result<Vec<f32>> {
    let nyquist = options.sampling_rate / 2.0;
    let [low, high] = [options.min_frequency, options.max_frequency.unwrap_or(nyquist)];
    if !(0.0 <= low && low < high && high.is_finite() && nyquist > 0.0) {
        return Err(wrong("bands of some frequencies", format!("{low} to {high} hertz")));
    }
    let mel = |hertz: f32| 1127.0 * (1.0 + f64::from(hertz) / 700.0).ln();
    let width = (mel(high) - mel(low)) / (options.n_bands + 1) as f64;
    let weight = |bin: usize, band: usize| {
        let frequency = f64::from(nyquist) * bin as f64 / (n_bins - 1).max(1) as f64;
        let rising = (mel(frequency as f32) - mel(low)) / width - band as f64;
        if bin == 0 { 0.0 } else { rising.min(2.0 - rising).max(0.0) as f32 }
    };
    let bands = 0..options.n_bands;
    Ok((0..n_bins).flat_map(|bin| bands.clone().map(move |band| weight(bin, band))).collect())
}

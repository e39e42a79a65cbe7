//! Features of sound: `AudioSpectrogram`, `Mfcc`.
//!
//! The formulas are those of `tensorflow/core/kernels/spectrogram.cc`, `mfcc.cc`,
//! `mfcc_mel_filterbank.cc` and `mfcc_dct.cc`, in double precision as there.

use super::Build;
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{Error, workspace};
use realfft::RealFftPlanner;
use std::{f64::consts::PI, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[("AudioSpectrogram", spectrogram), ("Mfcc", mfcc)];

/// Energies of bands count as no less.
const FLOOR: f64 = 1e-12;

/// `[samples, channels] → [channels, slices, frequencies]`.
fn spectrogram(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (sound, shape) = (call.shape(0), call.output_shape(0)?);
    let channels = sound[1];
    let (slices, frequencies) = (shape[1], shape[2]);
    let window = usize::try_from(call.attrs.int("window_size")?).unwrap_or(0);
    let stride = usize::try_from(call.attrs.int("stride")?).unwrap_or(0);
    let is_squared = call.attrs.bool("magnitude_squared")?;
    let bell = |at: usize| 0.5 - 0.5 * (2.0 * PI * at as f64 / window as f64).cos();
    let weights: Vec<f64> = workspace::collected((0..window).map(bell))?;
    let plan = RealFftPlanner::<f64>::new().plan_fft_forward((frequencies - 1) * 2);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let sound = io.input::<f32>(0);
        let out = io.output::<f32>(0);
        io.threads().for_each_piece(out, frequencies, |start, out| {
            let (channel, slice) = (start / frequencies / slices, start / frequencies % slices);
            let mut line = plan.make_input_vec();
            for (at, (value, weight)) in line.iter_mut().zip(&weights).enumerate() {
                *value = f64::from(sound[(slice * stride + at) * channels + channel]) * weight;
            }
            let mut spectrum = plan.make_output_vec();
            plan.process(&mut line, &mut spectrum).expect("the lines are those of the plan");
            for (out, value) in out.iter_mut().zip(spectrum) {
                let squared = value.norm_sqr() as f32;
                *out = if is_squared { squared } else { squared.sqrt() };
            }
        });
        Ok(())
    })))
}

/// Bands of frequencies whose centres are evenly spaced to the ear.
struct Bands {
    /// The first and last frequency of the spectrum that counts.
    first: usize,
    last: usize,
    /// For each frequency of the spectrum the band below it, of which it has a share, the next
    /// one has the rest; bands begin at 1.
    below: Vec<usize>,
    shares: Vec<f64>,
}

fn ear(frequency: f64) -> f64 {
    1127.0 * (frequency / 700.0).ln_1p()
}

impl Bands {
    fn new(n_frequencies: usize, n_bands: usize, rate: f64, low: f64, high: f64) -> Result<Bands> {
        let (bottom, top) = (ear(low), ear(high));
        let spacing = (top - bottom) / (n_bands + 1) as f64;
        let centers: Vec<f64> =
            workspace::collected((0..=n_bands).map(|at| bottom + spacing * (at + 1) as f64))?;
        let width = 0.5 * rate / (n_frequencies - 1) as f64;
        let (first, last) = ((1.5 + low / width) as usize, (high / width) as usize);
        let (mut below, mut shares) =
            (workspace::filled(0, n_frequencies)?, workspace::filled(0.0, n_frequencies)?);
        let mut band = 0;
        for at in first..=last.min(n_frequencies - 1) {
            let frequency = ear(at as f64 * width);
            while band < n_bands && centers[band] < frequency {
                band += 1;
            }
            below[at] = band;
            shares[at] = match band.checked_sub(1) {
                Some(own) => (centers[own + 1] - frequency) / (centers[own + 1] - centers[own]),
                None => (centers[0] - frequency) / (centers[0] - bottom),
            };
        }
        Ok(Bands { first, last, below, shares })
    }

    /// Adds the magnitudes of a spectrum of squares to the energies of the bands.
    fn energies(&self, spectrum: &[f32], energies: &mut [f64]) {
        energies.fill(0.0);
        let count = (self.last + 1).saturating_sub(self.first);
        let bands = self.below.iter().zip(&self.shares).zip(spectrum).skip(self.first).take(count);
        for ((&own, share), &squared) in bands {
            let value = f64::from(squared).sqrt();
            let share = value * share;
            if let Some(own) = own.checked_sub(1) {
                energies[own] += share;
            }
            if let Some(next) = energies.get_mut(own) {
                *next += value - share;
            }
        }
    }
}

/// `[channels, slices, frequencies] → [channels, slices, coefficients]`.
fn mfcc(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let n_frequencies = call.shape(0)[2];
    let n_bands = usize::try_from(call.attrs.int("filterbank_channel_count")?).unwrap_or(0);
    let n_coefficients = call.output_shape(0)?[2];
    let low = f64::from(call.attrs.float("lower_frequency_limit")?);
    let high = f64::from(call.attrs.float("upper_frequency_limit")?);
    let (op, shape) = (call.op.name, call.shape(0).clone());
    let norm = (2.0 / n_bands as f64).sqrt();
    let cosine = move |at: usize| {
        let (row, column) = ((at / n_bands) as f64, (at % n_bands) as f64);
        norm * (row * PI / n_bands as f64 * (column + 0.5)).cos()
    };
    let cosines: Vec<f64> =
        workspace::collected((0..n_coefficients.saturating_mul(n_bands)).map(cosine))?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let rate: i32 = io.scalar(1);
        if rate <= 0 || n_frequencies < 2 {
            let found = format!("{shape} at {rate} per second");
            return Err(Error::argument(op, "spectrogram", "of some frequencies", found).into());
        }
        let bands = Bands::new(n_frequencies, n_bands, rate.into(), low, high)?;
        let (spectrum, out) = (io.input::<f32>(0), io.output::<f32>(0));
        // TensorFlow gives zeros for a spectrum that ends below the upper limit.
        if bands.last >= n_frequencies {
            out.fill(0.0);
            return Ok(());
        }
        let mut energies = workspace::filled(0.0, n_bands)?;
        let slices = spectrum.chunks_exact(n_frequencies);
        for (slice, out) in slices.zip(out.chunks_exact_mut(n_coefficients)) {
            bands.energies(slice, &mut energies);
            energies.iter_mut().for_each(|energy| {
                *energy = if *energy < FLOOR { FLOOR.ln() } else { energy.ln() };
            });
            for (out, cosines) in out.iter_mut().zip(cosines.chunks_exact(n_bands)) {
                let terms = energies.iter().zip(cosines).map(|(energy, cosine)| energy * cosine);
                *out = terms.sum::<f64>() as f32;
            }
        }
        Ok(())
    })))
}

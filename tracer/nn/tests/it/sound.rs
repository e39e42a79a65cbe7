//! Spectrograms have the numbers of Keras.

use crate::recorded::{check, check_layer, numbers};
use ferroflow_nn::{
    DecibelOptions, Layer, MelOptions, MelSpectrogram, Mode, Module, Padding, SampleWindow,
    SpectrumMode, SpectrumScaling, StftOptions, StftSpectrogram, Weights,
};
use ferroflow_tracer::{DType, Result, Tensor, function, spec};

fn options() -> MelOptions {
    MelOptions {
        fft_length: 64,
        stride: 24,
        sampling_rate: 8000.0,
        n_bands: 12,
        ..MelOptions::default()
    }
}

#[test]
fn sound_has_a_mel_spectrogram() -> Result<()> {
    let x = numbers(&[2, 300])?;
    let decibels = DecibelOptions { reference: 4.0, min_power: 0.01, range: 15.0 };
    for (name, options) in [
        ("mel", options()),
        (
            "mel hamming",
            MelOptions {
                window: SampleWindow::Hamming,
                window_length: Some(41),
                decibels: None,
                ..options()
            },
        ),
        (
            "mel plain",
            MelOptions {
                window: SampleWindow::Rectangular,
                exponent: 1.0,
                min_frequency: 100.0,
                max_frequency: Some(3000.0),
                decibels: None,
                ..options()
            },
        ),
        ("mel decibels", MelOptions { decibels: Some(decibels), ..options() }),
    ] {
        let layer = MelSpectrogram::new(&options)?;
        let name = format!("sound {name}");
        check(&name, &layer.call(&x, Mode::Inference)?);
        let staged = function(move |x: Tensor| layer.call(&x, Mode::Inference));
        let staged = staged.with_input_signature([spec(DType::F32, [None, None])]);
        check(&name, &staged.call((&x,))?);
    }
    let first = x.gather(&Tensor::from(0))?;
    let layer = MelSpectrogram::new(&options())?;
    check("sound mel vector", &layer.call(&first, Mode::Inference)?);
    let half = layer.call(&first.cast(DType::F16)?, Mode::Inference)?;
    assert_eq!(half.dtype(), DType::F16);
    Ok(())
}

#[test]
fn spectrograms_of_nothing_are_errors() -> Result<()> {
    for wrong in [
        MelOptions { stride: 0, ..options() },
        MelOptions { window_length: Some(65), ..options() },
        MelOptions { n_bands: usize::MAX, ..options() },
        MelOptions { max_frequency: Some(10.0), ..options() },
        MelOptions { sampling_rate: f32::NAN, ..options() },
    ] {
        assert!(MelSpectrogram::new(&wrong).is_err(), "{wrong:?}");
    }
    let layer = MelSpectrogram::new(&options())?;
    let short = numbers(&[2, 20])?;
    assert!(layer.call(&short, Mode::Inference).is_err());
    assert!(layer.call(&numbers(&[])?, Mode::Inference).is_err());
    Ok(())
}

#[test]
fn sound_has_a_fourier_transform() -> Result<()> {
    let options = StftOptions { frame_length: 6, frame_step: Some(2), ..StftOptions::default() };
    let scaled = |mode, scaling| StftOptions { mode, scaling, ..options };
    let hamming = StftOptions { window: SampleWindow::Hamming, periodic: true, ..options };
    let plain =
        StftOptions { window: SampleWindow::Rectangular, padding: Padding::Same, ..options };
    for (name, options) in [
        ("log", options),
        ("magnitude", StftOptions { mode: SpectrumMode::Magnitude, ..hamming }),
        ("psd", scaled(SpectrumMode::Psd, SpectrumScaling::Spectrum)),
        ("real", scaled(SpectrumMode::Real, SpectrumScaling::Unscaled)),
        ("imag", StftOptions { mode: SpectrumMode::Imaginary, ..plain }),
        ("angle", StftOptions { mode: SpectrumMode::Angle, fft_length: Some(12), ..options }),
        ("stft", StftOptions { mode: SpectrumMode::Stft, expand_dims: true, ..options }),
    ] {
        let layer = StftSpectrogram::new(&mut Weights::new(), &options)?;
        let name = format!("sound stft {name}");
        for kernel in layer.variables()? {
            check(&format!("{name} {}", kernel.name()), &kernel.read()?);
        }
        check(&name, &layer.call(&numbers(&[2, 30, 2])?, Mode::Inference)?);
        let staged = function(move |x: Tensor| layer.call(&x, Mode::Inference));
        let staged = staged.with_input_signature([spec(DType::F32, [None, None, Some(2)])]);
        check(&name, &staged.call((numbers(&[2, 30, 2])?,))?);
    }
    let mode = SpectrumMode::Magnitude;
    let trained = StftOptions { mode, frame_length: 6, ..StftOptions::default() };
    let layer = StftSpectrogram::new(&mut Weights::new(), &trained);
    check_layer("sound stft trained", layer, &[2, 20, 2]);
    Ok(())
}

#[test]
fn transforms_are_of_frames() -> Result<()> {
    let options = StftOptions { frame_length: 6, ..StftOptions::default() };
    for wrong in [
        StftOptions { frame_length: 0, ..options },
        StftOptions { frame_step: Some(7), ..options },
        StftOptions { fft_length: Some(4), ..options },
        StftOptions { padding: Padding::Causal, ..options },
    ] {
        assert!(StftSpectrogram::new(&mut Weights::new(), &wrong).is_err(), "{wrong:?}");
    }
    let layer = StftSpectrogram::new(&mut Weights::new(), &options)?;
    assert!(layer.call(&numbers(&[2, 30])?, Mode::Inference).is_err());
    Ok(())
}

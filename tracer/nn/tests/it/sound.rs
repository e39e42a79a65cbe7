//! Spectrograms have the numbers of Keras.

use crate::recorded::{check, numbers};
use ferroflow_nn::{DecibelOptions, Layer, MelOptions, MelSpectrogram, Mode, SampleWindow};
use ferroflow_tracer::{DType, Result, function, spec};

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
        let staged = function(move |x: ferroflow_tracer::Tensor| layer.call(&x, Mode::Inference));
        let staged = staged.with_input_signature([spec(DType::F32, [None, None])]);
        check(&name, &staged.call((&x,))?);
    }
    let first = x.gather(&ferroflow_tracer::Tensor::from(0))?;
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

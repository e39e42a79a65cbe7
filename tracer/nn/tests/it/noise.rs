//! Noise has the statistics it should have, and is absent in inference.

use ferroflow_nn::{AlphaDropout, GaussianDropout, GaussianNoise, Layer, Mode, SpatialDropout};
use ferroflow_tracer::{Result, Tensor};

const N: usize = 4000;

/// Mean and variance of what a layer makes of numbers of mean 0 and variance 1.
fn moments(layer: &dyn Layer, x: f32) -> Result<(f32, f32)> {
    let values: Vec<f32> = (0..N).map(|n| x + if n % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let x = Tensor::from_slice(&[N / 4, 4], &values)?;
    assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, values);
    let y = layer.call(&x, Mode::Training)?.to_vec::<f32>()?;
    let mean = y.iter().sum::<f32>() / N as f32;
    Ok((mean, y.iter().map(|y| (y - mean).powi(2)).sum::<f32>() / N as f32))
}

#[test]
fn noise_keeps_the_moments() -> Result<()> {
    let (mean, variance) = moments(&GaussianNoise::seeded(0.5, 3)?, 2.0)?;
    assert!((mean - 2.0).abs() < 0.1 && (variance - 1.25).abs() < 0.1, "{mean} {variance}");
    let (mean, variance) = moments(&GaussianDropout::seeded(0.2, 3)?, 2.0)?;
    assert!((mean - 2.0).abs() < 0.1 && (variance - 2.25).abs() < 0.2, "{mean} {variance}");
    let (mean, variance) = moments(&AlphaDropout::seeded(0.3, 3)?, 0.0)?;
    assert!(mean.abs() < 0.1 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    assert!(GaussianNoise::new(1.5).is_err() && AlphaDropout::new(1.0).is_err());
    Ok(())
}

#[test]
fn channels_are_dropped_as_a_whole() -> Result<()> {
    let x = Tensor::from_slice(&[8, 3, 2, 5], &[1.0f32; 240])?;
    let layer = SpatialDropout::seeded(0.5, 7)?;
    let y = layer.call(&x, Mode::Training)?.transpose(&[0, 3, 1, 2])?.to_vec::<f32>()?;
    let channels: Vec<&[f32]> = y.chunks(6).collect();
    assert!(channels.iter().all(|c| c.iter().all(|&y| y == c[0] && (y == 0.0 || y == 2.0))));
    let n_dropped = channels.iter().filter(|channel| channel[0] == 0.0).count();
    assert!((8..32).contains(&n_dropped), "{n_dropped}");
    assert!(layer.call(&Tensor::from([1.0f32]), Mode::Training).is_err());
    Ok(())
}

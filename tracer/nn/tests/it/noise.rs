//! Noise has the statistics it should have, and is absent in inference.

use crate::recorded::{check, numbers};
use ferroflow_nn::{
    AlphaDropout, Dropout, GaussianDropout, GaussianNoise, Layer, Mode, SeedGenerator,
    SpatialDropout,
};
use ferroflow_runtime::trackable::ObjectGraph;
use ferroflow_tracer::{DType, GradientTape, Result, Tensor, function};
use std::sync::Arc;

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

/// The seeds of a layer, as its object graph has them.
fn seeds(layer: &dyn Layer) -> Result<SeedGenerator> {
    let graph = ObjectGraph::of(layer)?;
    let origins = graph.nodes.iter().filter_map(|node| node.origin.as_ref());
    let mut found = origins.filter_map(|origin| origin.downcast_ref::<SeedGenerator>());
    Ok(found.next().expect("the layer draws numbers").clone())
}

#[test]
fn seeds_draw_the_numbers_of_keras() -> Result<()> {
    type Make = fn() -> Result<Arc<dyn Layer>>;
    let layers: [(&str, Make); 5] = [
        ("dropout", || Ok(Arc::new(Dropout::seeded(0.4, 3)?))),
        ("spatial_dropout", || Ok(Arc::new(SpatialDropout::seeded(0.4, 5)?))),
        ("gaussian_noise", || Ok(Arc::new(GaussianNoise::seeded(0.5, 3)?))),
        ("gaussian_dropout", || Ok(Arc::new(GaussianDropout::seeded(0.3, -7)?))),
        ("alpha_dropout", || Ok(Arc::new(AlphaDropout::seeded(0.4, 3)?))),
    ];
    let x = numbers(&[2, 3, 4])?;
    for (name, make) in layers {
        let name = format!("random {name}");
        let run = |layer: Arc<dyn Layer>| {
            move |x: Tensor| {
                let tape = GradientTape::new();
                tape.watch(&x)?;
                let y = layer.call(&x, Mode::Training)?;
                let gradient = tape.gradient(&y.square()?.sum_all()?, &x)?;
                Ok::<_, ferroflow_tracer::Error>((y, gradient.expect("the input matters")))
            }
        };
        let (eager, traced) = (make()?, make()?);
        let staged = function(run(traced.clone()));
        for (layer, (y, by)) in
            [(&eager, run(eager.clone())(x.clone())?), (&traced, staged.call((&x,))?)]
        {
            check(&name, &y);
            check(&format!("{name} d x"), &by);
            check(&format!("{name} again"), &layer.call(&x, Mode::Training)?);
            let state = seeds(&**layer)?.state()?.read()?;
            check(&format!("{name} state"), &state.cast(DType::F32)?);
        }
    }
    let large = Dropout::seeded(0.4, (1 << 40) + 5)?;
    check("random large seed", &large.call(&x, Mode::Training)?);
    Ok(())
}

//! Steps of training with Adam: forward, backward and update as one function.

use super::{batch, measure::MeasuredRow, place::BenchDevice, weights::DeviceWeights};
use anyhow::{Context as _, Result, ensure};
use ferroflow::{
    GradientTape, Tensor, Variable, function,
    nn::{
        losses::{Prediction, sparse_categorical_cross_entropy},
        optimizers::{Adam, Optimizer},
    },
    tracer,
};

/// A step of a perceptron, whose result is its loss.
pub(super) fn step(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let (model, batch) = batch(rest)?;
    let text = model.strip_prefix("mlp_").context("a perceptron")?;
    let widths: Vec<usize> = text.split('x').map(str::parse).collect::<Result<_, _>>()?;
    ensure!(widths.len() > 1 && !widths.contains(&0), "at least two widths");
    let x = place.floats(41, &[batch, widths[0]], 0.0, 1.0)?;
    let y = place.ids(42, &[batch], widths[widths.len() - 1] as u64)?;
    let mut weights = DeviceWeights::on(place);
    for pair in widths.windows(2) {
        weights.scaled(pair, pair[0], 1.0)?;
        weights.between(&pair[1..], -0.1, 0.1)?;
    }
    let weights = weights.made;
    let optimizer = Optimizer::new(Adam::default(), 1e-3)?;
    let owned = (weights.clone(), optimizer.clone());
    let step = function(move |x: Tensor, y: Tensor| {
        let tape = GradientTape::new();
        let loss =
            sparse_categorical_cross_entropy(&y, &logits(&weights, &x)?, Prediction::Logits)?
                .mean_all()?;
        optimizer.minimize(tape, &loss, &weights)?;
        Ok::<_, tracer::Error>(loss)
    });
    let row = MeasuredRow::new(move || {
        // The function knows the weights but does not own them.
        std::hint::black_box(&owned);
        Ok(step.call((&x, &y))?)
    });
    // The first losses, each of which depends on the updates before.
    Ok(row.checked(4))
}

fn logits(weights: &[Variable], x: &Tensor) -> tracer::Result<Tensor> {
    let n = weights.len() / 2;
    weights.chunks_exact(2).enumerate().try_fold(x.clone(), |x, (layer, pair)| {
        let sum = (x.matmul(&pair[0])? + &pair[1])?;
        if layer + 1 < n { sum.relu() } else { Ok(sum) }
    })
}

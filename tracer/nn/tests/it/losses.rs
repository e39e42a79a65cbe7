//! Losses and their gradients are those of Keras 3.15: `keras_losses.py` prints them.

use crate::figures::{classes, figures, fractions, near, one_hot};
use ferroflow_nn::losses::{
    Circle, Focal, Loss, Prediction, binary_cross_entropy, binary_focal_cross_entropy,
    categorical_cross_entropy, categorical_focal_cross_entropy,
    categorical_generalized_cross_entropy, categorical_hinge, circle, cosine_similarity, ctc, dice,
    hinge, huber, kl_divergence, log_cosh, mean_absolute_error, mean_absolute_percentage_error,
    mean_squared_error, mean_squared_logarithmic_error, poisson, smooth_binary, smooth_classes,
    sparse_categorical_cross_entropy, squared_hinge, tversky,
};
use ferroflow_tracer::{GradientTape, Tensor, function};

const NUMBERS: &str = include_str!("keras_losses.txt");

/// The inputs of `keras_losses.py`.
struct Inputs {
    p: Tensor,
    x: Tensor,
    hot: Tensor,
    bits: Tensor,
    numbers: Tensor,
    class: Tensor,
    unit: Tensor,
    steps: Tensor,
    labels: Tensor,
}

fn reversed_rows(values: &[f32]) -> Vec<f32> {
    values.chunks(5).rev().flatten().copied().collect()
}

fn inputs() -> Inputs {
    let p = fractions(20, 0);
    let matrix = |values: Vec<f32>| Tensor::from_slice(&[4, 5], &values).unwrap();
    let x: Vec<f32> = p.iter().map(|p| p * 6.0 - 3.0).collect();
    let class = classes(4, 0);
    let unit = x.chunks(5).flat_map(|row| {
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter().map(move |x| x / norm)
    });
    let steps: Vec<f32> = fractions(48, 0).iter().map(|p| p * 4.0 - 2.0).collect();
    Inputs {
        hot: matrix(one_hot(&class)),
        unit: matrix(unit.collect()),
        bits: matrix((0..20).map(|i| f32::from(u8::from(i % 3 == 0))).collect()),
        numbers: matrix(reversed_rows(&p).iter().map(|p| p * 4.0 - 1.0).collect()),
        class: Tensor::from(class),
        steps: Tensor::from_slice(&[2, 6, 4], &steps).unwrap(),
        labels: Tensor::from([[1i32, 2, 2, 0], [3, 1, 0, 0]]),
        x: matrix(x),
        p: matrix(p),
    }
}

/// The loss and its gradient, eagerly and traced, are those of Keras.
fn check(name: &'static str, loss: impl Loss + 'static, target: &Tensor, prediction: &Tensor) {
    let expected = figures(NUMBERS);
    let both = move |target: &Tensor, prediction: &Tensor| {
        let tape = GradientTape::new();
        tape.watch(prediction)?;
        let value = loss.per_example(target, prediction)?;
        let gradient = tape.gradient(&value, prediction)?.expect("the loss depends on it");
        Ok::<_, ferroflow_tracer::Error>((value, gradient))
    };
    let eager = both(target, prediction).unwrap();
    let traced = function(move |target: Tensor, prediction: Tensor| both(&target, &prediction));
    for (value, gradient) in [eager, traced.call((target, prediction)).unwrap()] {
        near(name, &value, &expected[&(name, "value")]);
        near(name, &gradient, &expected[&(name, "gradient")]);
    }
}

#[test]
fn losses_of_numbers() {
    let Inputs { p, x, bits, numbers, .. } = inputs();
    check("mean_squared_error", mean_squared_error, &numbers, &x);
    check("mean_absolute_error", mean_absolute_error, &numbers, &x);
    check("mean_absolute_percentage_error", mean_absolute_percentage_error, &numbers, &x);
    check("mean_squared_logarithmic_error", mean_squared_logarithmic_error, &numbers, &x);
    check("huber", |y: &Tensor, x: &Tensor| huber(y, x, 0.7), &numbers, &x);
    check("log_cosh", log_cosh, &numbers, &x);
    check("poisson", poisson, &(bits * 2.0).unwrap(), &p);
    check("cosine_similarity", cosine_similarity, &numbers, &x);
}

#[test]
fn losses_with_margins() {
    let Inputs { x, hot, bits, .. } = inputs();
    check("hinge", hinge, &bits, &x);
    check("hinge_signs", hinge, &((&bits * 2.0).unwrap() - 1.0).unwrap(), &x);
    check("squared_hinge", squared_hinge, &bits, &x);
    check("categorical_hinge", categorical_hinge, &hot, &x);
}

#[test]
fn binary_cross_entropies() {
    let Inputs { p, x, bits, .. } = inputs();
    let of = |kind| move |y: &Tensor, x: &Tensor| binary_cross_entropy(y, x, kind);
    check("binary_cross_entropy", of(Prediction::Probabilities), &bits, &p);
    check("binary_cross_entropy_logits", of(Prediction::Logits), &bits, &x);
    let smooth = smooth_binary(&bits, 0.2).unwrap();
    check("binary_cross_entropy_smooth", of(Prediction::Probabilities), &smooth, &p);
    let of =
        |kind, focal| move |y: &Tensor, x: &Tensor| binary_focal_cross_entropy(y, x, kind, &focal);
    let plain = of(Prediction::Probabilities, Focal::default());
    check("binary_focal_cross_entropy", plain, &bits, &p);
    let balanced = of(Prediction::Logits, Focal { gamma: 1.5, alpha: Some(0.3) });
    check("binary_focal_cross_entropy_balanced", balanced, &bits, &x);
}

#[test]
fn categorical_cross_entropies() {
    let Inputs { p, x, hot, class, .. } = inputs();
    let of = |kind| move |y: &Tensor, x: &Tensor| categorical_cross_entropy(y, x, kind);
    check("categorical_cross_entropy", of(Prediction::Probabilities), &hot, &p);
    check("categorical_cross_entropy_logits", of(Prediction::Logits), &hot, &x);
    let smooth = smooth_classes(&hot, 0.1).unwrap();
    check("categorical_cross_entropy_smooth", of(Prediction::Probabilities), &smooth, &p);
    let sparse =
        |y: &Tensor, x: &Tensor| sparse_categorical_cross_entropy(y, x, Prediction::Logits);
    check("sparse_categorical_cross_entropy_logits", sparse, &class, &x);
    check("sparse_categorical_cross_entropy_logits", sparse, &class.expand_dims(-1).unwrap(), &x);
    let generalized = |y: &Tensor, x: &Tensor| categorical_generalized_cross_entropy(y, x, 0.7);
    check("categorical_generalized_cross_entropy", generalized, &class, &p);
    let of = |kind| {
        move |y: &Tensor, x: &Tensor| {
            categorical_focal_cross_entropy(y, x, kind, &Focal::CATEGORICAL)
        }
    };
    check("categorical_focal_cross_entropy", of(Prediction::Probabilities), &hot, &p);
    check("categorical_focal_cross_entropy_logits", of(Prediction::Logits), &hot, &x);
    let reversed = Tensor::from_slice(&[4, 5], &reversed_rows(&p.to_vec().unwrap())).unwrap();
    check("kl_divergence", kl_divergence, &reversed, &p);
}

#[test]
fn losses_of_masks_embeddings_and_sequences() {
    let Inputs { p, bits, unit, steps, labels, .. } = inputs();
    check("dice", |y: &Tensor, x: &Tensor| dice(y, x, &[]), &bits, &p);
    check("dice_rows", |y: &Tensor, x: &Tensor| dice(y, x, &[1]), &bits, &p);
    check("tversky", |y: &Tensor, x: &Tensor| tversky(y, x, 0.3, 0.8, &[]), &bits, &p);
    let options = Circle { gamma: 8.0, ..Circle::default() };
    let loss = move |y: &Tensor, x: &Tensor| circle(y, x, &options);
    check("circle", loss, &Tensor::from([0i32, 1, 0, 1]), &unit);
    check("ctc", ctc, &labels, &steps);
}

//! Five steps of each optimizer, and three with rows, give what Keras 3.15 gives.

use super::*;
use ferroflow_tracer::{
    gradients::{IndexedSlices, TensorGradient},
    tensor::Tensor,
    variable::Variable,
};

const GRADIENTS: [[f32; 3]; 5] =
    [[0.5, -1.0, 0.1], [-0.3, 0.8, 0.2], [0.7, 0.1, -0.4], [0.2, -0.6, 0.9], [-0.9, 0.4, 0.3]];

fn near(found: &[f32], expected: &[f32]) {
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 3e-6 + 3e-6 * b.abs();
    let all = found.len() == expected.len() && found.iter().zip(expected).all(is_near);
    assert!(all, "{found:?} instead of {expected:?}");
}

fn check_with(algorithm: impl Algorithm + 'static, options: OptimizerOptions, expected: [f32; 3]) {
    let optimizer = Optimizer::with_options(algorithm, options).unwrap();
    let w = Variable::new([1.0f32, -2.0, 0.5]).unwrap();
    for gradient in GRADIENTS {
        optimizer.apply([(TensorGradient::Dense(gradient.into()), w.clone())]).unwrap();
    }
    near(&w.read().unwrap().to_vec::<f32>().unwrap(), &expected);
}

fn check(algorithm: impl Algorithm + 'static, learning_rate: f64, expected: [f32; 3]) {
    let learning_rate = learning_rate.into();
    let options = OptimizerOptions { learning_rate, ..OptimizerOptions::default() };
    check_with(algorithm, options, expected);
}

#[test]
fn descent() {
    check(Sgd::default(), 0.1, [0.98, -1.97, 0.39]);
    check(Sgd { momentum: 0.9, nesterov: false }, 0.1, [0.760715, -1.81871, 0.297669]);
    check(Sgd { momentum: 0.9, nesterov: true }, 0.1, [0.7646435, -1.806839, 0.2079021]);
}

#[test]
fn decay_of_weights() {
    let options = |weight_decay| OptimizerOptions {
        learning_rate: 0.1.into(),
        weight_decay,
        ..OptimizerOptions::default()
    };
    check_with(Sgd::default(), options(0.2), [0.8892102, -1.781704, 0.3441288]);
    check_with(Adam::default(), options(0.05), [0.7431915, -1.81823, 0.2176826]);
}

#[test]
fn adam_and_its_kin() {
    check(Adam::default(), 0.1, [0.764791, -1.865545, 0.2266031]);
    let amsgrad = Adam { epsilon: 0.1, amsgrad: true, ..Adam::default() };
    check(amsgrad, 0.1, [0.9572998, -1.965389, 0.4693131]);
    check(Adamax { epsilon: 0.1, ..Adamax::default() }, 0.1, [0.8314338, -1.886034, 0.3624703]);
    check(Nadam { epsilon: 0.01, ..Nadam::default() }, 0.1, [0.9005818, -1.940341, 0.2596814]);
    check(Lamb::default(), 0.1, [0.4901123, -1.778127, -0.07129238]);
}

#[test]
fn rates_by_element() {
    let rmsprop = RmsProp { epsilon: 0.1, ..RmsProp::default() };
    check(rmsprop, 0.1, [0.9080856, -1.916482, 0.2531458]);
    let rmsprop = RmsProp { momentum: 0.7, centered: true, ..rmsprop };
    check(rmsprop, 0.1, [0.5393708, -1.688199, 0.09126461]);
    check(Adagrad::default(), 0.1, [0.9352756, -1.958104, 0.3777365]);
    let adagrad = Adagrad { epsilon: 0.5, ..Adagrad::default() };
    check(adagrad, 0.1, [0.9612813, -1.967957, 0.4131816]);
    let adadelta = Adadelta { epsilon: 0.01, ..Adadelta::default() };
    check(adadelta, 1.0, [0.8258712, -1.920147, -0.1469824]);
}

#[test]
fn the_regularised_leader() {
    check(Ftrl::default(), 0.1, [0.4007531, -1.355081, -0.09899483]);
    let ftrl = Ftrl {
        l1: 0.05,
        l2: 0.1,
        l2_shrinkage: 0.02,
        learning_rate_power: -0.6,
        initial_accumulator_value: 0.3,
        beta: 0.0,
    };
    check(ftrl, 0.1, [0.2266053, -1.091614, -0.0869462]);
    check(Ftrl { beta: 0.5, ..Ftrl::default() }, 0.1, [0.2200517, -0.9200961, -0.06393928]);
}

#[test]
fn bounds_on_gradients() {
    let clipped = |clip: Clip| {
        let learning_rate = 0.1.into();
        let options = OptimizerOptions { learning_rate, clip, ..OptimizerOptions::default() };
        let optimizer = Optimizer::with_options(Sgd::default(), options).unwrap();
        let variables = [(); 2].map(|()| Variable::new([1.0f32, -2.0, 0.5]).unwrap());
        for g in GRADIENTS {
            let gradients = [g, [2.0 * g[2], 2.0 * g[1], 2.0 * g[0]]];
            let pairs = gradients.map(|g| TensorGradient::Dense(g.into())).into_iter();
            optimizer.apply(pairs.zip(variables.iter().cloned())).unwrap();
        }
        variables
            .iter()
            .flat_map(|v| v.read().unwrap().to_vec::<f32>().unwrap())
            .collect::<Vec<_>>()
    };
    near(&clipped(Clip::Value(0.3)), &[0.98, -2.01, 0.44, 0.9200001, -2.02, 0.47]);
    let expected = [0.9863573, -1.999348, 0.4532895, 0.9532894, -1.999348, 0.4863572];
    near(&clipped(Clip::Norm(0.5)), &expected);
    let expected = [0.9938988, -1.999708, 0.4791104, 0.9582209, -1.999417, 0.4877976];
    near(&clipped(Clip::GlobalNorm(0.5)), &expected);
}

/// Three steps of a table of ones along rows. None comes twice in a step: such rows are added up
/// here before they are squared, and squared one by one in Keras 3.
fn rows(algorithm: impl Algorithm + 'static, learning_rate: f64, lazy_rows: bool) -> Vec<f32> {
    let learning_rate = learning_rate.into();
    let options = OptimizerOptions { learning_rate, lazy_rows, ..OptimizerOptions::default() };
    let optimizer = Optimizer::with_options(algorithm, options).unwrap();
    let w = Variable::new([[1.0f32, 1.0]; 3]).unwrap();
    let steps: [(Tensor, Tensor); 3] = [
        ([0i32, 2].into(), [[0.5f32, -1.0], [0.3, 0.2]].into()),
        ([2i32, 1].into(), [[0.1f32, 0.4], [-0.6, 0.2]].into()),
        ([1i32].into(), [[0.7f32, -0.2]].into()),
    ];
    for (indices, values) in steps {
        let like = w.handle();
        let slices = TensorGradient::Slices(Box::new(IndexedSlices::new(values, indices, like)));
        optimizer.apply([(slices, w.clone())]).unwrap();
    }
    w.read().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn rows_without_a_gradient_have_a_gradient_of_zero() {
    let check = |found: Vec<f32>, expected: [f32; 6]| near(&found, &expected);
    let momentum = Sgd { momentum: 0.9, nesterov: false };
    check(rows(momentum, 0.1, false), [0.8645, 1.271, 1.044, 0.982, 0.8997, 0.8698]);
    let expected = [0.7812014, 1.218799, 1.063324, 0.9301064, 0.7455645, 0.7288777];
    check(rows(Adam::default(), 0.1, false), expected);
    let expected = [0.9154846, 1.095346, 1.016647, 0.9936882, 0.9088146, 0.8735181];
    check(rows(Adagrad::default(), 0.1, false), expected);
    let expected = [0.6837729, 1.316228, 1.070878, 0.9131904, 0.5789461, 0.3980626];
    check(rows(RmsProp::default(), 0.1, false), expected);
    let adadelta = Adadelta { epsilon: 0.01, ..Adadelta::default() };
    let expected = [0.6666667, 1.408248, 0.9635904, 1.000656, 0.65669, 0.5111541];
    check(rows(adadelta, 1.0, false), expected);
    let expected = [0.3809621, 0.7938349, 0.01664669, -0.006311797, 0.1833383, 0.02836384];
    check(rows(Ftrl::default(), 0.1, false), expected);
    let expected = [0.8226351, 1.177365, 1.044197, 0.9510584, 0.7939814, 0.7754812];
    check(rows(Adamax::default(), 0.1, false), expected);
    let expected = [0.878786, 1.121214, 1.0266, 0.9673466, 0.8445168, 0.7879817];
    check(rows(Nadam::default(), 0.1, false), expected);
    let expected = [0.7000889, 1.299911, 1.070979, 0.9169474, 0.6468611, 0.6219379];
    check(rows(Lamb::default(), 0.1, false), expected);
}

#[test]
fn lazy_rows_rest() {
    let found = rows(Sgd { momentum: 0.9, nesterov: false }, 0.1, true);
    near(&found, &[0.95, 1.1, 1.044, 0.982, 0.933, 0.922]);
}

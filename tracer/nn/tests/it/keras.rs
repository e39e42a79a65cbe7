//! Layers with equal weights give what those of Keras 3.15 give: `keras_numbers.py` prints it.

use ferroflow_nn::{
    Activation, BatchNorm, BatchNormOptions, Conv1D, Conv2D, Conv3D, ConvOptions, Dense,
    DenseOptions, DepthwiseConv2D, Embedding, Gru, Layer, LayerNorm, Lstm, Mode, Module,
    MultiHeadAttention, Padding, Regularizer, Weights,
};
use ferroflow_tracer::{GradientTape, Result, Tensor, function};

/// Numbers that are neither large nor equal.
fn numbers(shape: &[usize]) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|n| ((n * 7 % 23) as f32 - 11.0) / 20.0).collect();
    Tensor::from_slice(shape, &values)
}

/// The layer, with such weights.
fn filled<L: Module>(layer: Result<L>) -> Result<L> {
    let layer = layer?;
    for variable in layer.variables()? {
        let shape = variable.shape().known().expect("weights have shapes");
        variable.assign(&numbers(shape.dims())?)?;
    }
    Ok(layer)
}

/// The first elements are these, and all magnitudes add up to `sum`.
#[track_caller]
fn check(found: &Tensor, shape: &[usize], first: &[f32], sum: f64) {
    let values = found.to_vec::<f32>().unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-5 * b.abs().max(1.0);
    let same = found.shape().known().unwrap().dims() == shape
        && values.iter().zip(first).all(|(&a, &b)| near(a.into(), b.into()))
        && near(values.iter().map(|&v| f64::from(v).abs()).sum(), sum);
    assert!(same, "{found} instead of {first:?}.. which add up to {sum}");
}

type Expected<'a> = (&'a [usize], &'a [f32], f64);

/// Results of a layer, eagerly and in a function, and the gradients of the sum of its squares.
#[track_caller]
fn trained<L: Layer + Clone + 'static>(
    layer: Result<L>,
    result: Expected<'_>,
    by: &[Expected<'_>],
) {
    let layer = filled(layer).unwrap();
    let variables = layer.trainable_variables().unwrap();
    let x = numbers(&[2, 5, 3]).unwrap();
    let run = move |x: Tensor| {
        let tape = GradientTape::new();
        let y = layer.call(&x, Mode::Training)?;
        let gradients = tape.variable_gradients(&y.square()?.sum_all()?, &variables)?;
        let gradients =
            gradients.into_iter().map(|gradient| gradient.expect("all weights matter").dense());
        Ok::<_, ferroflow_tracer::Error>((y, gradients.collect::<Result<Vec<Tensor>>>()?))
    };
    let staged = function(run.clone());
    for (y, gradients) in [run(x.clone()).unwrap(), staged.call((x,)).unwrap()] {
        check(&y, result.0, result.1, result.2);
        assert_eq!(gradients.len(), by.len());
        for (gradient, expected) in gradients.iter().zip(by) {
            check(gradient, expected.0, expected.1, expected.2);
        }
    }
}

#[test]
fn dense() {
    let gelu = DenseOptions { activation: Activation::Gelu, ..DenseOptions::default() };
    let y = [-0.0824258, -0.0262938, -0.0406995, 0.17267, -0.169927, -0.114627, 0.0425505];
    trained(
        Dense::with_options(&mut Weights::new(), 3, 4, &gelu),
        (&[2, 5, 4], &y, 7.80269),
        &[
            (&[3, 4], &[0.0424036, -0.0695786, 0.220323], 5.83699),
            (&[4], &[-0.247778, -0.459792, 2.57448], 10.2306),
        ],
    );
}

#[test]
fn lstm() {
    let y = [-0.00771863, 0.0274345, -0.0636864, -0.0206851, -0.00434925, 0.132501, -0.194577];
    trained(
        Lstm::of_sequences(&mut Weights::new(), 3, 4),
        (&[2, 5, 4], &y, 4.20827),
        &[
            (&[3, 16], &[0.000969549, 0.0363648, 0.0674213], 1.37147),
            (&[4, 16], &[5.75432e-05, 0.00172766, 0.000704211], 1.49655),
            (&[16], &[0.0105969, 0.260129, 0.334696], 4.83787),
        ],
    );
}

#[test]
fn gru() {
    let y = [-0.0728688, 0.01424, -0.0841138, -0.0922743, -0.123729, 0.188787, -0.312442];
    trained(
        Gru::of_sequences(&mut Weights::new(), 3, 4),
        (&[2, 5, 4], &y, 9.64684),
        &[
            (&[3, 12], &[-0.0605891, -0.128287, -0.0649635], 4.74276),
            (&[4, 12], &[0.0406888, 0.0465263, 0.00839689], 6.84027),
            (&[2, 12], &[-0.374985, -0.483303, -0.223978], 25.3659),
        ],
    );
}

#[test]
fn a_step_of_a_cell_is_a_step_of_its_layer() -> Result<()> {
    let (lstm, gru) =
        (Lstm::new(&mut Weights::seeded(1), 3, 4)?, Gru::new(&mut Weights::seeded(2), 3, 4)?);
    let x = numbers(&[2, 2, 3])?;
    let step = |index: i32| x.transpose(&[1, 0, 2])?.gather(&Tensor::from(index));
    let (outputs, state) = lstm.run(&x, None)?;
    let (_, first) = lstm.run(&step(0)?.expand_dims(1)?, None)?;
    let second = lstm.cell().step(&step(1)?, &first)?;
    assert_eq!(second.memory.to_vec::<f32>()?, state.memory.to_vec::<f32>()?);
    assert_eq!(lstm.call(&x, Mode::Inference)?.to_vec::<f32>()?, second.output.to_vec::<f32>()?);
    assert_eq!(outputs.shape().to_string(), "[2,2,4]");
    let (_, state) = gru.run(&x, None)?;
    let (_, first) = gru.run(&step(0)?.expand_dims(1)?, None)?;
    let second = gru.cell().step(&step(1)?, &first)?;
    assert_eq!(second.to_vec::<f32>()?, state.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn sequences_are_convolved_with_what_came_before() -> Result<()> {
    let options =
        ConvOptions { padding: Padding::Causal, dilations: [2], ..ConvOptions::default() };
    let layer = filled(Conv1D::new(&mut Weights::new(), [2], 3, 4, &options))?;
    let first = [-0.8175, -0.4475, 0.325, 0.2925, -0.6075, 0.175, 0.0375, 0.4175];
    check(&layer.call(&numbers(&[2, 5, 3])?, Mode::Inference)?, &[2, 5, 4], &first, 16.8375);
    Ok(())
}

#[test]
fn layer_norm() {
    let y = [0.119523, -0.2, 0.332597, -1.24662, 0.0330496, 0.134801, -1.24662, 0.0330496];
    trained(
        LayerNorm::new(&mut Weights::new(), 3),
        (&[2, 5, 3], &y, 10.5148),
        &[
            (&[3], &[-10.8376, -4.26795, 2.75246], 17.858),
            (&[3], &[-11.6084, -4.4661, 2.4845], 18.559),
        ],
    );
}

#[test]
fn attention() -> Result<()> {
    let made = || MultiHeadAttention::new(&mut Weights::new(), 3, 2, 3);
    let y = [-0.0502275, -0.455958, -0.0223741, -0.0338048, -0.473105, -0.024416, -0.0336166];
    trained(
        made(),
        (&[2, 5, 3], &y, 7.718),
        &[
            (&[3, 2, 3], &[0.00155184, -0.000921385, 0.000274041], 0.116163),
            (&[2, 3], &[0.0375779, 0.0581086, -0.0247639], 0.61176),
            (&[3, 2, 3], &[0.0373866, 0.0134678, -0.0106332], 0.795958),
            (&[2, 3], &[0.0, 0.0, 0.0], 0.0),
            (&[3, 2, 3], &[-0.0504725, 0.261627, 0.299249], 5.81105),
            (&[2, 3], &[4.386, 1.10302, 2.48596], 23.7477),
            (&[2, 3, 3], &[1.84937, 5.92786, -0.164921], 30.2702),
            (&[3], &[-4.05732, -10.3437, 0.571616], 14.9726),
        ],
    );
    let x = numbers(&[2, 5, 3])?;
    let y = filled(made())?.causal().call(&x, Mode::Inference)?;
    let first = [-0.273625, -0.250375, 0.071875, -0.0345034, -0.384383, -0.0148389, 0.0258008];
    check(&y, &[2, 5, 3], &first, 7.99141);
    let mask = Tensor::from([true, true, false, true, false]).reshape(&[1, 1, 5])?;
    let y = filled(made())?.attend(&x, &x, &x, Some(&mask))?;
    let first = [0.00300378, -0.363081, -0.0375255, 0.024937, -0.368447, -0.0456153, 0.0246826];
    check(&y, &[2, 5, 3], &first, 7.48237);
    Ok(())
}

#[test]
fn images_and_volumes_are_convolved() -> Result<()> {
    let (weights, images) = (&mut Weights::new(), numbers(&[2, 6, 6, 2])?);
    let options = ConvOptions {
        strides: [2, 2],
        padding: Padding::Same,
        activation: Activation::Relu,
        ..ConvOptions::default()
    };
    let layer = filled(Conv2D::new(weights, [3, 3], 2, 4, &options))?;
    let first = [0.0, 0.115, 0.0, 0.445, 0.0, 0.0, 0.225, 0.125];
    check(&layer.call(&images, Mode::Inference)?, &[2, 3, 3, 4], &first, 12.4975);

    let options = ConvOptions { groups: 2, ..ConvOptions::default() };
    let layer = filled(Conv2D::new(weights, [3, 3], 2, 4, &options))?;
    let first = [-0.4725, 0.125, 0.205, 0.525, -0.6275, -0.125, 0.205, 0.545];
    check(&layer.call(&images, Mode::Inference)?, &[2, 4, 4, 4], &first, 48.2225);

    let options = ConvOptions { dilations: [2, 2], ..ConvOptions::default() };
    let layer = filled(Conv2D::new(weights, [2, 2], 2, 3, &options))?;
    let first = [-0.5175, 0.14, -0.18, -0.2675, -0.3525, 0.425, -0.19, -0.0975];
    check(&layer.call(&images, Mode::Inference)?, &[2, 4, 4, 3], &first, 37.175);

    let options = ConvOptions { padding: Padding::Same, ..ConvOptions::default() };
    let layer = filled(DepthwiseConv2D::new(weights, [3, 3], 2, 2, &options))?;
    let first = [-0.93, 0.1825, 0.04, 0.1475, -0.375, -0.82, 0.5, 0.3875];
    check(&layer.call(&images, Mode::Inference)?, &[2, 6, 6, 4], &first, 110.298);

    let layer = filled(Conv3D::new(weights, [2, 2, 2], 2, 3, &ConvOptions::default()))?;
    let y = layer.call(&numbers(&[2, 4, 4, 4, 2])?, Mode::Inference)?;
    let first = [-0.235, -0.27, 0.155, -0.765, -0.445, 0.105, -0.72, 0.4725];
    check(&y, &[2, 3, 3, 3, 3], &first, 57.235);
    Ok(())
}

#[test]
fn batch_norm_moves_its_averages_in_training() -> Result<()> {
    let options = BatchNormOptions { momentum: 0.9, ..BatchNormOptions::default() };
    let layer = BatchNorm::with_options(&mut Weights::new(), 2, &options)?;
    for (variable, more) in layer.variables()?.iter().zip([2.0, 0.0, 0.0, 2.0]) {
        variable.assign(&(numbers(&[2])? + more)?)?;
    }
    let images = numbers(&[2, 6, 6, 2])?;
    let staged = function({
        let layer = layer.clone();
        move |x: Tensor, mode: Mode| layer.call(&x, mode)
    });
    let call = |mode: Mode| staged.call((&images, mode));
    let first = [-0.55, -0.2, 0.292621, 0.738888, -0.249064, 0.135317, 0.593557, -0.468254];
    check(&call(Mode::Inference)?, &[2, 6, 6, 2], &first, 53.4165);
    let first = [-2.88996, -1.30953, 0.141763, 2.48167, -1.8072, 0.0444723, 1.22452, -2.39273];
    check(&call(Mode::Training)?, &[2, 6, 6, 2], &first, 206.065);
    let averages = &layer.variables()?[2..];
    check(&averages[0].read()?, &[2], &[-0.495972, -0.179514], 0.675486);
    check(&averages[1].read()?, &[2], &[1.31611, 1.63095], 2.94705);
    let first = [-0.618261, -0.228866, 0.266152, 0.757454, -0.302399, 0.123392, 0.582014];
    check(&call(Mode::Inference)?, &[2, 6, 6, 2], &first, 55.681);
    Ok(())
}

#[test]
fn embedding() -> Result<()> {
    let layer = filled(Embedding::new(&mut Weights::new(), 7, 3))?;
    let y = layer.call(&Tensor::from([[0, 6], [3, 3]]), Mode::Inference)?;
    check(&y, &[2, 2, 3], &[-0.55, -0.2, 0.15, 0.0, 0.35, -0.45, 0.3, -0.5], 3.6);
    Ok(())
}

#[test]
fn activations() -> Result<()> {
    let x = (numbers(&[6])? * 4.0)?;
    let all: [(Activation, [f32; 6], f64); 7] = [
        (Activation::Relu6, [0.0, 0.0, 0.6, 2.0, 0.0, 0.2], 2.8),
        (Activation::Elu, [-0.889197, -0.550671, 0.6, 2.0, -0.698806, 0.2], 4.93867),
        (Activation::Selu, [-1.5633, -0.968134, 0.630421, 2.1014, -1.22857, 0.21014], 6.70196),
        (Activation::Gelu, [-0.0305876, -0.169484, 0.435448, 1.9545, -0.138084, 0.115852], 2.84396),
        (Activation::Silu, [-0.219451, -0.24802, 0.387394, 1.76159, -0.27777, 0.109967], 3.0042),
        (Activation::Softplus, [0.105083, 0.371101, 1.03749, 2.12693, 0.263282, 0.798139], 4.70202),
        (Activation::LeakyRelu(0.2), [-0.44, -0.16, 0.6, 2.0, -0.24, 0.2], 3.64),
    ];
    for (activation, y, sum) in all {
        check(&activation.apply(&x)?, &[6], &y, sum);
    }
    Ok(())
}

#[test]
fn weights_are_kept_small() -> Result<()> {
    let by = Regularizer { l1: 0.01, l2: 0.02 };
    let options = DenseOptions { kernel_regularizer: Some(by), ..DenseOptions::default() };
    let layer = filled(Dense::with_options(&mut Weights::new(), 3, 2, &options))?;
    let losses = layer.regularization_losses()?;
    assert_eq!(losses.len(), 1);
    check(&losses[0], &[], &[0.03165], 0.03165);
    Ok(())
}

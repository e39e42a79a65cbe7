//! Convolutions give the numbers of Keras.

use crate::recorded::{check, check_layer, filled, numbers};
use ferroflow_nn::{
    Activation, Conv1D, Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, ConvOptions,
    ConvTransposeOptions, DepthwiseConv, DepthwiseConv1D, DepthwiseConv2D, Layer, Mode, Padding,
    SeparableConv1D, SeparableConv2D, Weights,
};
use ferroflow_tracer::{DType, Result, Tensor, function, spec};

#[test]
fn transposed_convolutions_make_sizes_larger() -> Result<()> {
    let weights = &mut Weights::new();
    let of = |strides, padding| ConvTransposeOptions { strides, padding, ..Default::default() };
    let same = of([2], Padding::Same);
    let layer = Conv1DTranspose::new(weights, [3], 3, 4, &same);
    check_layer("conv1d_transpose", layer, &[2, 5, 3]);
    let layer = Conv1DTranspose::new(weights, [2], 3, 4, &of([3], Padding::Valid));
    check_layer("conv1d_transpose valid", layer, &[2, 5, 3]);
    let options = ConvTransposeOptions {
        strides: [2, 2],
        padding: Padding::Same,
        output_padding: Some([0, 0]),
        activation: Activation::Tanh,
        ..Default::default()
    };
    let layer = Conv2DTranspose::new(weights, [3, 3], 2, 2, &options);
    check_layer("conv2d_transpose", layer, &[2, 3, 4, 2]);
    let options = ConvTransposeOptions {
        strides: [3, 2],
        output_padding: Some([1, 1]),
        bias: false,
        ..Default::default()
    };
    let layer = Conv2DTranspose::new(weights, [3, 2], 2, 2, &options);
    check_layer("conv2d_transpose padded", layer, &[2, 3, 4, 2]);
    let options = ConvTransposeOptions { strides: [1, 2, 1], ..Default::default() };
    let layer = Conv3DTranspose::new(weights, [2, 2, 2], 2, 2, &options);
    check_layer("conv3d_transpose", layer, &[1, 2, 3, 2, 2]);
    let options = ConvTransposeOptions { dilations: [2, 2], ..Default::default() };
    let layer = filled(Conv2DTranspose::new(weights, [2, 2], 2, 2, &options))?;
    let y = layer.call(&numbers(&[1, 3, 3, 2])?, Mode::Inference)?;
    check("conv2d_transpose dilated", &y);
    Ok(())
}

#[test]
fn channels_are_convolved_on_their_own() {
    let weights = &mut Weights::new();
    let options = ConvOptions { strides: [2], padding: Padding::Same, ..ConvOptions::default() };
    let layer = SeparableConv1D::new(weights, [3], [3, 4], 2, &options);
    check_layer("separable_conv1d", layer, &[2, 5, 3]);
    let options = ConvOptions { dilations: [2, 2], ..ConvOptions::default() };
    let layer = SeparableConv2D::new(weights, [2, 2], [2, 3], 1, &options);
    check_layer("separable_conv2d", layer, &[2, 5, 4, 2]);
    let options = ConvOptions { strides: [2], ..ConvOptions::default() };
    let layer = DepthwiseConv1D::new(weights, [3], 3, 2, &options);
    check_layer("depthwise_conv1d", layer, &[2, 6, 3]);
    let options = ConvOptions { dilations: [2], padding: Padding::Same, ..ConvOptions::default() };
    let layer = DepthwiseConv1D::new(weights, [2], 3, 1, &options);
    check_layer("depthwise_conv1d dilated", layer, &[2, 6, 3]);
    let options = ConvOptions { strides: [2, 2], padding: Padding::Same, ..ConvOptions::default() };
    let layer = DepthwiseConv2D::new(weights, [2, 3], 2, 1, &options);
    check_layer("depthwise_conv2d", layer, &[2, 5, 6, 2]);
}

#[test]
fn dilated_convolutions_are_trained() {
    let options = ConvOptions {
        dilations: [2],
        padding: Padding::Causal,
        bias: false,
        ..ConvOptions::default()
    };
    let layer = Conv1D::new(&mut Weights::new(), [3], 3, 2, &options);
    check_layer("conv1d dilated", layer, &[2, 6, 3]);
}

#[test]
fn sizes_may_be_known_late() -> Result<()> {
    let same = ConvTransposeOptions { padding: Padding::Same, strides: [2], ..Default::default() };
    let layer = filled(Conv1DTranspose::new(&mut Weights::new(), [3], 3, 4, &same))?;
    let staged = function(move |x: Tensor| {
        let y = layer.call(&x, Mode::Inference)?;
        assert_eq!(y.shape().dim(-1), Some(4));
        Ok::<_, ferroflow_tracer::Error>(y)
    });
    let staged = staged.with_input_signature([spec(DType::F32, [None, None, Some(3)])]);
    check("conv1d_transpose", &staged.call((numbers(&[2, 5, 3])?,))?);
    Ok(())
}

#[test]
fn options_that_contradict_are_told() {
    let weights = &mut Weights::new();
    let mut refused = |options: ConvTransposeOptions<1>, by: &str| {
        let error = Conv1DTranspose::new(weights, [2], 1, 1, &options).unwrap_err().to_string();
        assert!(error.contains(by), "{error}");
    };
    let default = ConvTransposeOptions::default;
    refused(ConvTransposeOptions { strides: [0], ..default() }, "above zero");
    refused(ConvTransposeOptions { padding: Padding::Causal, ..default() }, "valid or same");
    refused(ConvTransposeOptions { output_padding: Some([1]), ..default() }, "below the strides");
    let both = ConvTransposeOptions { strides: [2], dilations: [2], ..default() };
    refused(both, "strides or dilations of 1");
    let groups = ConvOptions { groups: 2, ..ConvOptions::default() };
    assert!(DepthwiseConv1D::new(weights, [2], 2, 1, &groups).is_err());
    assert!(DepthwiseConv::<3>::new(weights, [2; 3], 2, 1, &ConvOptions::default()).is_err());
}

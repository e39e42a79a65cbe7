//! Layers that change shapes, and pooling, give the numbers of Keras.

use crate::recorded::{check, check_layer, numbers};
use ferroflow_nn::{
    AveragePooling1D, AveragePooling2D, AveragePooling3D, Cropping1D, Cropping2D, Cropping3D,
    Flatten, GlobalAveragePooling, GlobalMaxPooling, Interpolation, Layer, MaxPooling1D,
    MaxPooling2D, MaxPooling3D, Mode, Permute, RepeatVector, Reshape, UpSampling1D, UpSampling2D,
    UpSampling3D, ZeroPadding1D, ZeroPadding2D, ZeroPadding3D,
};
use ferroflow_tracer::{DType, Result, function, spec};

#[test]
fn sizes_are_multiplied() {
    check_layer("up_sampling1d", Ok(UpSampling1D::new([3])), &[2, 4, 3]);
    let images = UpSampling2D::new([2, 3]);
    check_layer("up_sampling2d", Ok(images), &[2, 3, 4, 2]);
    check_layer("up_sampling3d", Ok(UpSampling3D::new([2, 1, 3])), &[1, 2, 3, 2, 2]);
    for (by, name) in [
        (Interpolation::Bilinear, "bilinear"),
        (Interpolation::Bicubic, "bicubic"),
        (Interpolation::Lanczos3, "lanczos3"),
        (Interpolation::Lanczos5, "lanczos5"),
    ] {
        let name = format!("up_sampling2d {name}");
        check_layer(&name, Ok(images.interpolated(by)), &[2, 3, 4, 2]);
    }
}

#[test]
fn edges_are_added_and_cut_off() -> Result<()> {
    check_layer("zero_padding1d", Ok(ZeroPadding1D::new([[1, 2]])), &[2, 4, 3]);
    let images = ZeroPadding2D::new([[0, 2], [1, 0]]);
    check_layer("zero_padding2d", Ok(images), &[2, 3, 4, 2]);
    check_layer("zero_padding3d", Ok(ZeroPadding3D::default()), &[1, 2, 3, 2, 2]);
    check_layer("cropping1d", Ok(Cropping1D::new([[1, 2]])), &[2, 4, 3]);
    check_layer("cropping2d", Ok(Cropping2D::new([[0, 2], [1, 0]])), &[2, 3, 4, 2]);
    let volumes = Cropping3D::new([[1, 0], [1, 1], [0, 1]]);
    check_layer("cropping3d", Ok(volumes), &[1, 2, 3, 2, 2]);
    let error = Cropping1D::new([[2, 2]]).call(&numbers(&[2, 4, 3])?, Mode::Inference);
    assert!(error.unwrap_err().to_string().contains("elements left"));
    assert!(volumes.call(&numbers(&[2, 4, 3])?, Mode::Inference).is_err());
    Ok(())
}

#[test]
fn elements_take_another_shape() -> Result<()> {
    check_layer("repeat_vector", Ok(RepeatVector::new(3)), &[2, 4]);
    check_layer("permute", Permute::new([3, 1, 2]), &[2, 3, 4, 2]);
    check_layer("reshape", Reshape::new([-1, 6]), &[2, 3, 4, 2]);
    check_layer("flatten", Ok(Flatten), &[2, 3, 4, 2]);
    assert!(Permute::new([1, 3]).is_err() && Permute::new([0, 1]).is_err());
    assert!(Reshape::new([-1, -1]).is_err() && Reshape::new([-2]).is_err());
    let misfit = Reshape::new([5])?.call(&numbers(&[2, 4])?, Mode::Inference);
    assert!(misfit.is_err());
    Ok(())
}

#[test]
fn windows_are_pooled() {
    let images = &[2, 4, 5, 2];
    let layer = MaxPooling1D::new([3]).with_strides([2]).same();
    check_layer("max_pooling1d", Ok(layer), &[2, 5, 3]);
    let layer = MaxPooling2D::new([2, 3]).with_strides([1, 1]);
    check_layer("max_pooling2d", Ok(layer), images);
    check_layer("max_pooling3d", Ok(MaxPooling3D::new([2; 3])), &[1, 4, 4, 2, 2]);
    check_layer("average_pooling1d", Ok(AveragePooling1D::new([2])), &[2, 5, 3]);
    let layer = AveragePooling2D::new([3, 3]).with_strides([2, 2]).same();
    check_layer("average_pooling2d", Ok(layer), images);
    let layer = AveragePooling3D::new([2; 3]).with_strides([1; 3]);
    check_layer("average_pooling3d", Ok(layer), &[1, 3, 3, 3, 2]);
    check_layer("global_max_pooling", Ok(GlobalMaxPooling::default()), images);
    let keep = GlobalMaxPooling { keep_dims: true };
    check_layer("global_max_pooling keep", Ok(keep), &[2, 5, 3]);
    check_layer("global_average_pooling", Ok(GlobalAveragePooling::default()), &[1, 3, 3, 3, 2]);
    let keep = GlobalAveragePooling { keep_dims: true };
    check_layer("global_average_pooling keep", Ok(keep), &[2, 5, 3]);
}

#[test]
fn shapes_may_be_known_late() -> Result<()> {
    let layers: [(&str, Box<dyn Layer>, &str); 9] = [
        ("up_sampling2d", Box::new(UpSampling2D::new([2, 3])), "[?,?,?,2]"),
        (
            "up_sampling2d bilinear",
            Box::new(UpSampling2D::new([2, 3]).interpolated(Interpolation::Bilinear)),
            "[?,?,?,2]",
        ),
        ("zero_padding2d", Box::new(ZeroPadding2D::new([[0, 2], [1, 0]])), "[?,?,?,2]"),
        ("cropping2d", Box::new(Cropping2D::new([[0, 2], [1, 0]])), "[?,?,?,2]"),
        ("permute", Box::new(Permute::new([3, 1, 2])?), "[?,2,?,?]"),
        ("reshape", Box::new(Reshape::new([-1, 6])?), "[?,?,6]"),
        ("flatten", Box::new(Flatten), "[?,?]"),
        ("global_max_pooling", Box::new(GlobalMaxPooling::default()), "[?,2]"),
        ("max_pooling2d", Box::new(MaxPooling2D::new([2, 3]).with_strides([1, 1])), "[?,?,?,2]"),
    ];
    for (name, layer, shape) in layers {
        let staged = function(move |x| {
            let y = layer.call(&x, Mode::Inference)?;
            assert_eq!(y.shape().to_string(), shape, "{name}");
            Ok::<_, ferroflow_tracer::Error>(y)
        });
        let any = spec(DType::F32, [None, None, None, Some(2)]);
        let staged = staged.with_input_signature([any]);
        let pooled = name.contains("pooling");
        let x = numbers(if pooled { &[2, 4, 5, 2] } else { &[2, 3, 4, 2] })?;
        check(name, &staged.call((x,))?);
    }
    Ok(())
}

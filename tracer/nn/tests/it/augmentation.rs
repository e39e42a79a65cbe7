//! Images that are changed at random in training stay what they are in inference, and keep what they
//! must in training.

use crate::recorded::numbers;
use ferroflow_nn::{
    FillMode, FlipMode, Layer, Mode, RandomBrightness, RandomContrast, RandomCrop, RandomFlip,
    RandomRotation, RandomTranslation, RandomZoom,
};
use ferroflow_tracer::{Result, Tensor, function, ops};

const SHAPE: [usize; 4] = [16, 5, 6, 2];

fn train(layer: &dyn Layer, x: &Tensor) -> Result<Vec<f32>> {
    layer.call(x, Mode::Training)?.to_vec()
}

fn near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4)
}

#[test]
fn inference_changes_nothing() -> Result<()> {
    let x = numbers(&SHAPE)?;
    let layers: [Box<dyn Layer>; 7] = [
        Box::new(RandomFlip::default()),
        Box::new(RandomCrop::new(3, 2)),
        Box::new(RandomBrightness::new([-0.5, 0.5], [0.0, 1.0])?),
        Box::new(RandomContrast::new([0.5, 0.5], [0.0, 1.0])?),
        Box::new(RandomRotation::new([-0.5, 0.5])?),
        Box::new(RandomZoom::new([-0.5, 0.5], None)?),
        Box::new(RandomTranslation::new([-0.5, 0.5], [-0.5, 0.5])?),
    ];
    for layer in layers {
        assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
        let trained = layer.call(&x, Mode::Training)?;
        assert_eq!(trained.shape().dim(0), Some(16));
        let staged = function(move |x: Tensor| layer.call(&x, Mode::Training));
        assert_eq!(staged.call((&x,))?.shape(), trained.shape());
    }
    Ok(())
}

#[test]
fn flipped_images_are_mirrored_or_not() -> Result<()> {
    let x = numbers(&SHAPE)?;
    let of = |axes: &[i32]| -> Result<Vec<f32>> {
        ops::reverse_v2(&x, &Tensor::from(axes))?.to_vec::<f32>()
    };
    for (mode, axes) in
        [(FlipMode::Horizontal, &[2][..]), (FlipMode::Vertical, &[1]), (FlipMode::Both, &[1, 2])]
    {
        let allowed = [of(&[])?, of(axes)?];
        let y = train(&RandomFlip::new(mode).seeded(5), &x)?;
        let mut seen = vec![false; allowed.len()];
        for (index, image) in y.chunks(60).enumerate() {
            let place = index * 60..(index + 1) * 60;
            let kind = allowed.iter().position(|allowed| &allowed[place.clone()] == image);
            seen[kind.expect("a mirrored image")] = true;
        }
        assert!(seen.iter().filter(|&&seen| seen).count() > 1, "{mode:?} {seen:?}");
    }
    Ok(())
}

#[test]
fn crops_are_windows_of_images() -> Result<()> {
    let x = Tensor::from_slice(&[1, 5, 6, 1], &(0..30).map(|n| n as f32).collect::<Vec<_>>())?;
    let mut seen = std::collections::BTreeSet::new();
    for seed in 1..20 {
        let y = train(&RandomCrop::new(3, 2).seeded(seed), &x)?;
        let first = y[0];
        let expected: Vec<f32> = (0..6).map(|n| first + (n / 2 * 6 + n % 2) as f32).collect();
        assert!(near(&y, &expected), "{y:?}");
        assert!(first as usize / 6 <= 2 && first as usize % 6 <= 4);
        seen.insert(first as usize);
    }
    assert!(seen.len() > 5, "{seen:?}");
    let larger = RandomCrop::new(10, 12).call(&x, Mode::Training)?;
    assert_eq!(larger.shape().to_string(), "[1,10,12,1]");
    Ok(())
}

#[test]
fn brightness_and_contrast_stay_in_range() -> Result<()> {
    let x = numbers(&SHAPE)?;
    let y = train(&RandomBrightness::new([0.1, 0.2], [-2.0, 2.0])?.seeded(3), &x)?;
    let values = x.to_vec::<f32>()?;
    for (image, before) in y.chunks(60).zip(values.chunks(60)) {
        let more = image[0] - before[0];
        assert!((0.4..=0.8).contains(&more), "{more}");
        assert!(image.iter().zip(before).all(|(a, b)| (a - b - more).abs() < 1e-5));
    }
    let y = train(&RandomBrightness::new([1.0, 1.0], [0.0, 0.25])?, &x)?;
    assert!(y.iter().all(|y| (0.0..=0.25).contains(y)));
    let y = RandomContrast::new([0.5, 0.5], [-5.0, 5.0])?.seeded(3).call(&x, Mode::Training)?;
    let means = |x: &Tensor| x.mean(&[1, 2])?.to_vec::<f32>();
    assert!(near(&means(&y)?, &means(&x)?));
    assert!(RandomContrast::new([0.5, 1.5], [0.0, 1.0]).is_err());
    assert!(RandomBrightness::new([0.5, 0.2], [0.0, 1.0]).is_err());
    Ok(())
}

#[test]
fn maps_of_known_size_move_pixels() -> Result<()> {
    let x = numbers(&[3, 5, 5, 2])?;
    let reversed = |x: &Tensor, axes: &[i32]| ops::reverse_v2(x, &Tensor::from(axes));
    // A quarter turn, counter-clockwise.
    let turned = reversed(&x.transpose(&[0, 2, 1, 3])?, &[1])?.to_vec::<f32>()?;
    let y = train(&RandomRotation::new([0.25, 0.25])?, &x)?;
    assert!(near(&y, &turned), "{y:?} {turned:?}");
    let half = train(&RandomRotation::new([0.5, 0.5])?.nearest(), &x)?;
    assert!(near(&half, &reversed(&x, &[1, 2])?.to_vec::<f32>()?));
    let wrapped = RandomTranslation::new([0.2, 0.2], [-0.4, -0.4])?.filled(FillMode::Wrap);
    let rolled = ops::roll(&x, &Tensor::from([1, -2]), &Tensor::from([1, 2]))?;
    assert!(near(&train(&wrapped, &x)?, &rolled.to_vec::<f32>()?));
    let same = train(&RandomZoom::new([0.0, 0.0], None)?, &x)?;
    assert!(near(&same, &x.to_vec::<f32>()?));
    // Twice as much is shown: the middle keeps its place, the corners are outside.
    let out = RandomZoom::new([1.0, 1.0], None)?.filled(FillMode::Constant(9.0));
    let out = train(&out, &x)?;
    assert_eq!((out[24], out[0]), (x.to_vec::<f32>()?[24], 9.0));
    assert!(RandomZoom::new([-1.0, 0.0], None).is_err());
    assert!(RandomRotation::new([0.0, 2.0]).is_err());
    Ok(())
}

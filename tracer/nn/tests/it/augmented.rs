//! Images that are changed at random by seeds have the numbers of Keras.

use crate::recorded::{check, numbers};
use ferroflow_nn::{
    AutoContrast, BlurOptions, ColorJitterOptions, CutMix, Equalization, EraseOptions, FlipMode,
    Layer, MixUp, Mode, RandomBrightness, RandomColorDegeneration, RandomColorJitter,
    RandomContrast, RandomErasing, RandomFlip, RandomGaussianBlur, RandomGrayscale, RandomHue,
    RandomInvert, RandomPerspective, RandomPosterization, RandomRotation, RandomSaturation,
    RandomSharpness, RandomShear, RandomTranslation, RandomZoom, Solarization,
};
use ferroflow_tracer::{DType, Result, Tensor, function, ops, spec};

const SOMETIMES: [f64; 2] = [0.3, 0.8];
const UNIT: [f64; 2] = [0.0, 1.0];
const BYTES: [f64; 2] = [0.0, 255.0];

fn images() -> Result<Tensor> {
    (numbers(&[6, 5, 7, 3])? + 0.6)? / 1.2
}

fn bytes() -> Result<Tensor> {
    ops::round(&(images()? * 255.0)?)
}

fn is_recorded(name: &str) -> bool {
    let lines = include_str!("keras_augmentation.txt").lines();
    lines.filter_map(|line| line.strip_prefix(name)).any(|line| line.starts_with(" ["))
}

#[track_caller]
fn check_images(name: &str, y: &Tensor) {
    check(name, y);
    let pixels = y.transpose(&[1, 2, 3, 0]).unwrap();
    let pixel = pixels.gather(&Tensor::from(2)).unwrap().gather(&Tensor::from(3)).unwrap();
    check(&format!("{name} pixel"), &pixel);
}

/// Compares two calls of a layer, eagerly, and staged for images of unknown sizes.
#[track_caller]
fn check_augmented(name: &str, make: impl Fn() -> Result<Box<dyn Layer>>, x: &Tensor) {
    let name = format!("augmented {name}");
    let layer = make().unwrap();
    let same = layer.call(x, Mode::Inference).unwrap();
    check_images(&name, &layer.call(x, Mode::Training).unwrap());
    if is_recorded(&format!("{name} again")) {
        assert_eq!(same.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap(), "{name}");
        check(&format!("{name} again"), &layer.call(x, Mode::Training).unwrap());
    }
    let layer = make().unwrap();
    let staged = function(move |x: Tensor| layer.call(&x, Mode::Training));
    let any = spec(DType::F32, [None, None, None, Some(3)]);
    check_images(&name, &staged.with_input_signature([any]).call((x,)).unwrap());
}

/// A layer for values of a range.
type Ranged = fn([f64; 2]) -> Result<Box<dyn Layer>>;

#[track_caller]
fn check_ranges(name: &str, make: Ranged) {
    check_augmented(name, || make(UNIT), &images().unwrap());
    check_augmented(&format!("{name} bytes"), || make(BYTES), &bytes().unwrap());
}

#[test]
fn colors_are_changed() -> Result<()> {
    check_ranges("hue", |range| Ok(Box::new(RandomHue::new([0.1, 0.9], range)?.seeded(9))));
    check_ranges("saturation", |range| {
        Ok(Box::new(RandomSaturation::new([0.2, 0.9], range)?.seeded(9)))
    });
    check_ranges("color_degeneration", |range| {
        Ok(Box::new(RandomColorDegeneration::new([0.2, 0.9], range)?.seeded(9)))
    });
    check_ranges("invert", |range| Ok(Box::new(RandomInvert::new(SOMETIMES, range)?.seeded(9))));
    check_ranges("color_jitter", |range| {
        let options = ColorJitterOptions {
            brightness: Some([-0.2, 0.3]),
            contrast: Some([0.3, 0.4]),
            saturation: Some([0.3, 0.7]),
            hue: Some([0.1, 0.4]),
        };
        Ok(Box::new(RandomColorJitter::new(options, range)?.seeded(9)))
    });
    let gray = || -> Result<Box<dyn Layer>> { Ok(Box::new(RandomGrayscale::new(0.5)?.seeded(9))) };
    check_augmented("grayscale", gray, &images()?);
    assert!(RandomHue::new([0.5, 0.2], UNIT).is_err() && RandomHue::new(UNIT, [1.0, 1.0]).is_err());
    let two = numbers(&[1, 2, 2, 2])?;
    assert!(RandomHue::new(UNIT, UNIT)?.call(&two, Mode::Training).is_err());
    assert!(RandomGrayscale::new(1.0)?.call(&two, Mode::Training).is_err());
    assert!(RandomGrayscale::new(1.5).is_err());
    Ok(())
}

#[test]
fn tones_are_changed() -> Result<()> {
    check_ranges("brightness", |range| {
        Ok(Box::new(RandomBrightness::new([-0.2, 0.3], range)?.seeded(9)))
    });
    check_ranges("contrast", |range| {
        Ok(Box::new(RandomContrast::new([0.3, 0.4], range)?.seeded(9)))
    });
    check_ranges("solarization", |range| {
        Ok(Box::new(Solarization::new([0.1, 0.4], [0.2, 0.8], range)?.seeded(9)))
    });
    check_ranges("posterization", |range| {
        Ok(Box::new(RandomPosterization::new([2, 6], range)?.seeded(9)))
    });
    check_ranges("posterization fixed", |range| {
        Ok(Box::new(RandomPosterization::new([3, 3], range)?.seeded(9)))
    });
    check_ranges("equalization", |range| Ok(Box::new(Equalization::new(range)?)));
    check_ranges("equalization few", |range| Ok(Box::new(Equalization::new(range)?.with_bins(9)?)));
    check_ranges("auto_contrast", |range| Ok(Box::new(AutoContrast::new(range)?)));
    assert!(RandomPosterization::new([0, 8], UNIT).is_err());
    assert!(Equalization::new(UNIT)?.with_bins(1).is_err());
    Ok(())
}

#[test]
fn channels_of_one_tone_stay() -> Result<()> {
    let x = images()?;
    let middle = Tensor::from([false, true, false]);
    let flat = middle.select(&(x.zeros_like()? + 0.5)?, &x)?;
    let first = Tensor::from([0, 1, 2, 3, 4, 5]).equal(0)?.reshape(&[6, 1, 1, 1])?;
    let y = AutoContrast::new(UNIT)?.call(&first.select(&flat, &x)?, Mode::Inference)?;
    check("augmented auto_contrast flat", &y);
    let y = Equalization::new(UNIT)?.call(&flat, Mode::Training)?;
    check("augmented equalization flat", &y);
    Ok(())
}

#[test]
fn images_are_filtered() -> Result<()> {
    check_ranges("sharpness", |range| {
        Ok(Box::new(RandomSharpness::new([0.1, 0.9], range)?.seeded(9)))
    });
    check_ranges("gaussian_blur", |range| {
        let options = BlurOptions { factor: SOMETIMES, window: [3, 3], sigma: [0.5, 2.0], range };
        Ok(Box::new(RandomGaussianBlur::new(&options)?.seeded(9)))
    });
    let none = BlurOptions { window: [0, 3], ..BlurOptions::default() };
    assert!(RandomGaussianBlur::new(&none).is_err());
    Ok(())
}

#[test]
fn windows_are_replaced() -> Result<()> {
    let fill = || -> Result<Box<dyn Layer>> {
        let fill = Some(vec![0.1, 0.5, 0.9]);
        let options = EraseOptions { factor: SOMETIMES, scale: [0.1, 0.6], fill, range: UNIT };
        Ok(Box::new(RandomErasing::new(&options)?.seeded(9)))
    };
    check_augmented("erasing", fill, &images()?);
    check_ranges("erasing noise", |range| {
        let options = EraseOptions { scale: [0.1, 0.6], range, ..EraseOptions::default() };
        Ok(Box::new(RandomErasing::new(&options)?.seeded(9)))
    });
    let most = EraseOptions { scale: [0.1, 1.6], ..EraseOptions::default() };
    assert!(RandomErasing::new(&most).is_err());
    Ok(())
}

#[test]
fn images_and_labels_are_mixed() -> Result<()> {
    let (up, cut) = (|| MixUp::new(0.4), || CutMix::new([0.5, 0.9]));
    check_augmented("mix_up", || Ok(Box::new(up()?.seeded(9))), &images()?);
    check_augmented("cut_mix", || Ok(Box::new(cut()?.seeded(9))), &images()?);
    let rows: Vec<f32> = (0..24).map(|n| f32::from(u8::from(n / 4 == n % 4))).collect();
    let labels = Tensor::from_slice(&[6, 4], &rows)?;
    let (x, y) = up()?.seeded(9).mixed(&images()?, &labels, Mode::Training)?;
    check_images("augmented mix_up", &x);
    check("augmented mix_up labels", &y);
    let (x, y) = cut()?.seeded(9).mixed(&images()?, &labels, Mode::Training)?;
    check_images("augmented cut_mix", &x);
    check("augmented cut_mix labels", &y);
    let (_, y) = cut()?.mixed(&images()?, &labels, Mode::Inference)?;
    assert_eq!(y.to_vec::<f32>()?, rows);
    assert!(MixUp::new(0.0).is_err() && CutMix::new([0.0, 2.0]).is_err());
    Ok(())
}

#[test]
fn images_are_mapped() -> Result<()> {
    type Make = fn() -> Result<Box<dyn Layer>>;
    let layers: [(&str, Make); 8] = [
        ("flip horizontal", || Ok(Box::new(RandomFlip::new(FlipMode::Horizontal).seeded(9)))),
        ("flip vertical", || Ok(Box::new(RandomFlip::new(FlipMode::Vertical).seeded(9)))),
        ("flip both", || Ok(Box::new(RandomFlip::new(FlipMode::Both).seeded(9)))),
        ("shear", || Ok(Box::new(RandomShear::new([0.1, 0.4], [0.0, 0.3])?.seeded(9)))),
        ("perspective", || {
            Ok(Box::new(RandomPerspective::new(SOMETIMES, 0.6)?.filled(0.25).seeded(9)))
        }),
        ("rotation", || Ok(Box::new(RandomRotation::new([-0.2, 0.3])?.seeded(9)))),
        ("zoom", || Ok(Box::new(RandomZoom::new([-0.2, 0.3], Some([-0.3, 0.1]))?.seeded(9)))),
        ("translation", || {
            Ok(Box::new(RandomTranslation::new([-0.2, 0.3], [-0.3, 0.1])?.seeded(9)))
        }),
    ];
    for (name, make) in layers {
        check_augmented(name, make, &images()?);
    }
    assert!(RandomShear::new([0.0, 2.0], UNIT).is_err());
    assert!(RandomPerspective::new(UNIT, 1.5).is_err());
    Ok(())
}

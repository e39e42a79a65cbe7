//! Preprocessing gives the numbers of Keras.

use crate::recorded::{check, numbers};
use ferroflow_nn::{
    CategoryEncoding, CenterCrop, Discretization, Hashing, IntegerLookup, Interpolation, Layer,
    LookupOptions, Mode, OutputMode, Rescaling, ResizeFit, Resizing, Standardize, StringLookup,
    TextOptions, TextSplit, TextVectorization,
};
use ferroflow_tracer::{DType, Result, Tensor, function, spec};

const MODES: [(OutputMode, &str); 3] = [
    (OutputMode::OneHot, "one_hot"),
    (OutputMode::MultiHot, "multi_hot"),
    (OutputMode::Count, "count"),
];

fn words() -> Result<Tensor> {
    Tensor::from_strings(&[2, 3], ["b", "zz", "a", "a", "", "a"])
}

fn categories() -> Tensor {
    Tensor::from([[1i64, 3, 1], [0, 7, 2]])
}

fn tokens(tokens: &[&str]) -> Vec<String> {
    tokens.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn called(name: &str, layer: &dyn Layer, x: &Tensor) {
    check(name, &layer.call(x, Mode::Inference).unwrap());
}

#[test]
fn categories_become_vectors() -> Result<()> {
    let x = categories();
    for (output_mode, name) in MODES {
        let layer = CategoryEncoding::new(4, output_mode)?;
        called(&format!("category {name}"), &layer, &x);
        called(&format!("category {name} volume"), &layer, &x.expand_dims(1)?);
        called(&format!("category {name} vector"), &layer, &x.gather(&Tensor::from(0))?);
    }
    let counts = CategoryEncoding::new(4, OutputMode::Count)?;
    check("category weighted", &counts.weighted(&x, &numbers(&[2, 3])?)?);
    assert!(CategoryEncoding::new(4, OutputMode::Int).is_err());
    assert!(CategoryEncoding::new(0, OutputMode::OneHot).is_err());
    Ok(())
}

#[test]
fn hashes_are_categories() -> Result<()> {
    let layer = Hashing::new(7)?;
    called("hashing", &layer, &words()?);
    called("hashing integers", &layer.clone().masked(3i64), &categories());
    called("hashing salted", &layer.salted([3, 5]).masked("a"), &words()?);
    for (output_mode, name) in MODES {
        let layer = Hashing::new(5)?.with_output_mode(output_mode)?;
        called(&format!("hashing {name}"), &layer, &words()?);
    }
    assert!(Hashing::new(0).is_err());
    Ok(())
}

#[test]
fn numbers_are_put_into_bins() -> Result<()> {
    let (layer, x) = (Discretization::new([-0.2, 0.1])?, numbers(&[2, 3])?);
    called("discretization", &layer, &x);
    for (output_mode, name) in MODES {
        let layer = layer.clone().with_output_mode(output_mode)?;
        called(&format!("discretization {name}"), &layer, &x);
    }
    let data = [numbers(&[40, 5])?.square()?, (numbers(&[30, 7])? + 0.3)?];
    let layer = Discretization::adapted(&data, 5, 0.02)?;
    check("discretization adapted", &Tensor::from(layer.boundaries()));
    assert!(Discretization::new([1.0, 0.0]).is_err());
    assert!(Discretization::adapted(Vec::<Tensor>::new(), 5, 0.02).is_err());
    Ok(())
}

#[test]
fn words_are_looked_up() -> Result<()> {
    let (abc, options) = (tokens(&["a", "b", "c"]), LookupOptions::default());
    called("lookup", &StringLookup::new(abc.clone(), &options)?, &words()?);
    let masked = LookupOptions { mask_token: Some(String::new()), ..options.clone() };
    let layer = StringLookup::new(tokens(&["", "[UNK]", "a", "b"]), &masked)?;
    called("lookup masked", &layer, &words()?);
    assert_eq!(layer.vocabulary(), ["", "[UNK]", "a", "b"]);
    let back = layer.inverse()?.call(&Tensor::from([0i64, 3, 1, 9]), Mode::Inference)?;
    assert_eq!(back.host()?.strings()?, [&b""[..], b"b", b"[UNK]", b"[UNK]"]);
    for (output_mode, name) in MODES {
        let options = LookupOptions { output_mode, ..masked.clone() };
        let layer = StringLookup::new(abc.clone(), &options)?;
        called(&format!("lookup {name}"), &layer, &words()?);
    }
    let buckets = LookupOptions { oov_indices: 4, ..options.clone() };
    called("lookup buckets", &StringLookup::new(tokens(&["a"]), &buckets)?, &words()?);
    let salted = LookupOptions { salt: Some([3, 5]), ..buckets };
    called("lookup salted", &StringLookup::new(tokens(&["a"]), &salted)?, &words()?);
    let none = LookupOptions { oov_indices: 0, ..options.clone() };
    assert!(StringLookup::new(abc.clone(), &none)?.call(&words()?, Mode::Inference).is_err());
    assert!(StringLookup::new(tokens(&["a", "a"]), &options).is_err());
    let few = LookupOptions { max_tokens: Some(3), ..options };
    assert!(StringLookup::new(abc, &few).is_err());
    Ok(())
}

#[test]
fn integers_are_looked_up_in_functions() -> Result<()> {
    let options = LookupOptions { oov_indices: 3, mask_token: Some(0), ..LookupOptions::default() };
    let layer = IntegerLookup::new([3, 7], &options)?;
    called("lookup integers", &layer, &categories());
    let staged = function(move |x: Tensor| layer.call(&x, Mode::Inference));
    check("lookup integers", &staged.call((categories(),))?);
    let padded = LookupOptions {
        max_tokens: Some(6),
        pad_to_max_tokens: true,
        output_mode: OutputMode::Count,
        ..LookupOptions::default()
    };
    called("lookup padded", &IntegerLookup::new([3, 7], &padded)?, &categories());
    Ok(())
}

#[test]
fn vocabularies_come_from_data() -> Result<()> {
    let options = LookupOptions { output_mode: OutputMode::TfIdf, ..LookupOptions::default() };
    let layer = StringLookup::adapted([words()?], &options)?;
    assert_eq!(layer.vocabulary(), ["[UNK]", "a", "zz", "b", ""]);
    called("lookup adapted", &layer, &words()?);
    let weights = tokens(&["a", "b"]).into_iter().zip([0.5, 2.0]);
    called("lookup weighted", &StringLookup::weighted(weights, &options)?, &words()?);
    assert!(StringLookup::new(tokens(&["a"]), &options).is_err());
    let most = LookupOptions { max_tokens: Some(3), ..LookupOptions::default() };
    let layer = StringLookup::adapted([words()?], &most)?;
    assert_eq!(layer.vocabulary(), ["[UNK]", "a", "zz"]);
    Ok(())
}

#[test]
fn texts_become_indices_and_vectors() -> Result<()> {
    let texts =
        Tensor::from(["The cat, the dog -- and a cat!", "", "Über dogs & caf\u{e9}s; the end."]);
    let default = TextOptions::default();
    let layer = TextVectorization::adapted([&texts], &default)?;
    called("text", &layer, &texts);
    called("text", &layer, &texts.expand_dims(1)?);
    assert_eq!(layer.vocabulary()[..4], ["", "[UNK]", "the", "cat"]);
    for (name, options) in [
        ("text short", TextOptions { sequence_length: Some(4), ..default.clone() }),
        ("text long", TextOptions { sequence_length: Some(9), ..default.clone() }),
        ("text ngrams", TextOptions { ngrams: Some(2), ..default.clone() }),
        (
            "text characters",
            TextOptions {
                standardize: Standardize::Lower,
                split: TextSplit::Character,
                ..default.clone()
            },
        ),
        (
            "text kept",
            TextOptions { standardize: Standardize::StripPunctuation, ..default.clone() },
        ),
        ("text few", TextOptions { max_tokens: Some(5), ..default.clone() }),
        ("text multi_hot", TextOptions { output_mode: OutputMode::MultiHot, ..default.clone() }),
        ("text tf_idf", TextOptions { output_mode: OutputMode::TfIdf, ..default.clone() }),
    ] {
        let layer = TextVectorization::adapted([&texts], &options)?;
        called(name, &layer, &texts);
    }
    let short = TextOptions { sequence_length: Some(4), ..default.clone() };
    let layer = TextVectorization::new(tokens(&["the", "cat", "dog"]), &short)?;
    let staged = function(move |x: Tensor| {
        let y = layer.call(&x, Mode::Inference)?;
        assert_eq!(y.shape().dim(1), Some(4));
        Ok::<_, ferroflow_tracer::Error>(y)
    });
    let staged = staged.with_input_signature([spec(DType::String, [None])]);
    check("text vocabulary", &staged.call((&texts,))?);
    let vectors = TextOptions { output_mode: OutputMode::Count, ..short };
    assert!(TextVectorization::new(tokens(&["a"]), &vectors).is_err());
    let none = TextOptions { ngrams: Some(0), ..default.clone() };
    assert!(TextVectorization::adapted([&texts], &none).is_err());
    assert!(TextVectorization::adapted([&words()?], &default).is_err());
    Ok(())
}

#[test]
fn images_are_rescaled_and_resized() -> Result<()> {
    let x = &numbers(&[2, 5, 6, 2])?;
    called("rescaling", &Rescaling::new(2.0f32, 0.5f32), x);
    called("rescaling channels", &Rescaling::new([2.0f32, 3.0], [0.5f32, 1.0]), x);
    let layer = Resizing::new(3, 4);
    called("resizing", &layer, x);
    called("resizing larger", &Resizing::new(7, 9).interpolated(Interpolation::Bicubic), x);
    called("resizing nearest", &layer.interpolated(Interpolation::Nearest), x);
    called("resizing antialias", &layer.antialiased(), x);
    let lanczos = layer.interpolated(Interpolation::Lanczos3).antialiased();
    called("resizing lanczos", &lanczos, x);
    called("resizing cubic", &layer.interpolated(Interpolation::Bicubic).antialiased(), x);
    called("resizing crop", &Resizing::new(2, 4).with_fit(ResizeFit::Crop), x);
    called("resizing pad", &Resizing::new(2, 4).with_fit(ResizeFit::Pad(0.7)), x);
    called("center_crop", &CenterCrop::new(2, 3), x);
    called("center_crop small", &CenterCrop::new(8, 3), x);
    called("resizing image", &layer, &x.gather(&Tensor::from(0))?);
    let bytes: Vec<u8> = (0..60).map(|n| (n * 37 % 251) as u8).collect();
    let bytes = Tensor::from_slice(&[2, 5, 6, 1], &bytes)?;
    called("resizing bytes", &layer, &bytes);
    assert_eq!(layer.call(&bytes, Mode::Inference)?.dtype(), DType::U8);
    assert!(layer.call(&numbers(&[2, 3])?, Mode::Inference).is_err());
    Ok(())
}

#[test]
fn images_of_unknown_size_are_resized() -> Result<()> {
    let layers: [(&str, Box<dyn Layer>); 4] = [
        ("resizing", Box::new(Resizing::new(3, 4))),
        ("resizing crop", Box::new(Resizing::new(2, 4).with_fit(ResizeFit::Crop))),
        ("resizing pad", Box::new(Resizing::new(2, 4).with_fit(ResizeFit::Pad(0.7)))),
        ("center_crop", Box::new(CenterCrop::new(2, 3))),
    ];
    for (name, layer) in layers {
        let staged = function(move |x: Tensor| {
            let y = layer.call(&x, Mode::Inference)?;
            assert_eq!(y.shape().dims().map(|dims| dims[3]), Some(Some(2)));
            assert!(y.shape().dim(1).is_some() && y.shape().dim(2).is_some(), "{name}");
            Ok::<_, ferroflow_tracer::Error>(y)
        });
        let any = spec(DType::F32, [None, None, None, Some(2)]);
        let staged = staged.with_input_signature([any]);
        check(name, &staged.call((numbers(&[2, 5, 6, 2])?,))?);
    }
    Ok(())
}

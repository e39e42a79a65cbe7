//! Layers that other files compare by their results alone: results and gradients are those of Keras.

use crate::recorded::{check, check_call, check_layer, filled, numbers};
use ferroflow_nn::{
    Activation, AdaptiveAveragePooling1D, AdaptiveAveragePooling2D, AdaptiveAveragePooling3D,
    AdaptiveMaxPooling1D, AdaptiveMaxPooling2D, AdaptiveMaxPooling3D, BatchNorm, CenterCrop,
    Conv1D, Conv2D, Conv3D, ConvLstm3D, ConvLstmOptions, ConvOptions, Dense, DenseOptions,
    Embedding, Gru, HashedCrossing, Layer, LayerNorm, Lstm, Mode, Module, MultiHeadAttention,
    Normalization, Padding, Rescaling, Resizing, ReversibleEmbedding, SpectralNorm, Weights, merge,
};
use ferroflow_tracer::{DType, GradientTape, Result, Tensor};

#[test]
fn of_dense_and_recurrent_layers() -> Result<()> {
    let w = &mut Weights::new();
    let gelu = DenseOptions { activation: Activation::Gelu, ..DenseOptions::default() };
    check_layer("gradient dense", Dense::with_options(w, 3, 4, &gelu), &[2, 5, 3]);
    check_layer("gradient lstm", Lstm::new(w, 3, 4), &[2, 5, 3]);
    check_layer("gradient gru", Gru::new(w, 3, 4), &[2, 5, 3]);
    check_layer("gradient layer_norm", LayerNorm::new(w, 3), &[2, 5, 3]);
    let options = ConvLstmOptions { padding: Padding::Same, ..ConvLstmOptions::default() };
    let volumes = ConvLstm3D::new(w, [2; 3], [2, 2], &options);
    check_layer("gradient conv_lstm3d", volumes, &[1, 2, 3, 2, 3, 2]);
    Ok(())
}

#[test]
fn of_convolutions() -> Result<()> {
    let w = &mut Weights::new();
    let options =
        ConvOptions { strides: [2], activation: Activation::Tanh, ..ConvOptions::default() };
    check_layer("gradient conv1d", Conv1D::new(w, [2], 3, 4, &options), &[2, 5, 3]);
    let options = ConvOptions { strides: [2, 2], padding: Padding::Same, ..ConvOptions::default() };
    check_layer("gradient conv2d", Conv2D::new(w, [3, 3], 2, 4, &options), &[2, 6, 6, 2]);
    let volumes = Conv3D::new(w, [2; 3], 2, 3, &ConvOptions::default());
    check_layer("gradient conv3d", volumes, &[1, 3, 4, 3, 2]);
    Ok(())
}

#[test]
fn of_normalizations() -> Result<()> {
    let w = &mut Weights::new();
    check_layer("gradient batch_norm", BatchNorm::new(w, 3), &[2, 6, 3]);
    let layer = BatchNorm::new(w, 3)?;
    for (variable, more) in layer.variables()?.iter().zip([2.0, 0.0, 0.0, 2.0]) {
        variable.assign(&(numbers(&[3])? + more)?)?;
    }
    let weights = layer.trainable_variables()?;
    check_call("gradient batch_norm inference", &weights, &numbers(&[2, 6, 3])?, move |x| {
        layer.call(x, Mode::Inference)
    });
    let given = Normalization::of([1.0f32, 2.0, 0.5], [2.0f32, 0.5, 0.25])?;
    check_call("gradient normalization", &[], &numbers(&[2, 5, 3])?, move |x| {
        given.call(x, Mode::Training)
    });
    Ok(())
}

#[test]
fn of_preprocessing() {
    check_layer("gradient rescaling", Ok(Rescaling::new(2.0f32, 0.5f32)), &[2, 4, 3]);
    check_layer("gradient center_crop", Ok(CenterCrop::new(2, 3)), &[2, 5, 6, 2]);
    check_layer("gradient resizing", Ok(Resizing::new(3, 4)), &[2, 5, 6, 2]);
}

#[test]
fn of_heads() -> Result<()> {
    let w = &mut Weights::new();
    check_layer("gradient heads", MultiHeadAttention::new(w, 3, 2, 3), &[2, 5, 3]);
    let causal = MultiHeadAttention::new(w, 3, 2, 3)?.causal();
    check_layer("gradient heads causal", Ok(causal), &[2, 5, 3]);
    Ok(())
}

#[test]
fn of_rows() -> Result<()> {
    let layer = filled(Embedding::new(&mut Weights::new(), 7, 3))?;
    let tape = GradientTape::new();
    let y = layer.call(&Tensor::from([[0, 6], [3, 3]]), Mode::Training)?;
    let loss = y.square()?.sum_all()?;
    let by = tape.variable_gradients(&loss, &layer.trainable_variables()?)?.remove(0);
    check("gradient embedding d 0", &by.expect("rows matter").dense()?);
    Ok(())
}

#[test]
fn of_spectral_norm() -> Result<()> {
    let w = &mut Weights::new();
    let dense = filled(Dense::new(w, 3, 4))?;
    let kernel = dense.kernel().clone();
    let layer = SpectralNorm::new(w, dense, &kernel, 3)?;
    let weights = layer.trainable_variables()?;
    let (x, tape) = (numbers(&[2, 3])?, GradientTape::persistent());
    tape.watch(&x)?;
    let y = layer.call(&x, Mode::Inference)?;
    let loss = y.square()?.sum_all()?;
    check("gradient spectral_norm", &y);
    check("gradient spectral_norm d x", &tape.gradient(&loss, &x)?.expect("the input matters"));
    for (index, by) in tape.variable_gradients(&loss, &weights)?.into_iter().enumerate() {
        check(&format!("gradient spectral_norm d {index}"), &by.expect("it matters").dense()?);
    }
    Ok(())
}

#[test]
fn of_merged_tensors() -> Result<()> {
    type Merged = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;
    let all: [(&str, Merged); 9] = [
        ("add", |a, b, c| merge::add(&[a, b, c])),
        ("subtract", |a, _, c| merge::subtract(a, c)),
        ("multiply", |a, b, c| merge::multiply(&[a, b, c])),
        ("average", |a, b, c| merge::average(&[a, b, c])),
        ("maximum", |a, b, c| merge::maximum(&[a, b, c])),
        ("minimum", |a, b, c| merge::minimum(&[a, b, c])),
        ("concatenate", |a, b, _| merge::concatenate(&[a, b], 1)),
        ("dot", |a, b, _| merge::dot(a, b, [2, 2])),
        ("cosine", |a, b, _| merge::cosine(a, b, [2, 2])),
    ];
    let (a, c) = (numbers(&[2, 3, 4])?, numbers(&[2, 4])?);
    let b = (ferroflow_tracer::ops::reverse_v2(&a, &Tensor::from([0, 2]))? + 0.3)?;
    for (name, merged) in all {
        let (b, c) = (b.clone(), c.clone());
        check_call(&format!("gradient {name}"), &[], &a, move |a| merged(a, &b, &c));
    }
    Ok(())
}

#[test]
fn of_windows_for_a_size() -> Result<()> {
    let of = "gradient adaptive";
    check_layer(&format!("{of} average"), AdaptiveAveragePooling1D::new([3]), &[2, 7, 3]);
    let images = AdaptiveAveragePooling2D::new([2, 3]);
    check_layer(&format!("{of} average images"), images, &[2, 5, 6, 2]);
    let volumes = AdaptiveAveragePooling3D::new([2, 1, 3]);
    check_layer(&format!("{of} average volumes"), volumes, &[1, 3, 4, 5, 2]);
    check_layer(&format!("{of} max"), AdaptiveMaxPooling1D::new([2]), &[2, 5, 3]);
    check_layer(&format!("{of} max images"), AdaptiveMaxPooling2D::new([4, 2]), &[2, 6, 5, 2]);
    check_layer(&format!("{of} max volumes"), AdaptiveMaxPooling3D::new([2; 3]), &[1, 3, 4, 5, 2]);
    assert!(AdaptiveMaxPooling1D::new([0]).is_err());
    Ok(())
}

#[test]
fn of_scores_by_vectors() -> Result<()> {
    let w = &mut Weights::new();
    let layers = [
        ("tied", ReversibleEmbedding::tied(w, 7, 3)),
        ("untied", Ok(ReversibleEmbedding::untied(w, 7, 3)?.with_soft_cap(0.5))),
    ];
    for (name, layer) in layers {
        let layer = filled(layer)?;
        let y = layer.call(&Tensor::from([[0, 6], [3, 3]]), Mode::Inference)?;
        check(&format!("reversible {name}"), &y);
        let weight = layer.trainable_variables()?.pop().expect("there are weights");
        check_call(
            &format!("gradient reversed {name}"),
            &[weight],
            &numbers(&[2, 5, 3])?,
            move |x| layer.reversed(x),
        );
    }
    Ok(())
}

#[test]
fn crossings_have_the_hashes_of_keras() -> Result<()> {
    let crossing = HashedCrossing::new(7)?;
    let float = |x: Tensor| x.cast(DType::F32);
    let (places, numbers) =
        (Tensor::from(["A", "B", "A", "C"]), Tensor::from([101, 101, 101, 102]));
    check("crossing", &float(crossing.cross(&[&places, &numbers])?)?);
    let column = |texts: [&str; 2]| Tensor::from(texts).expand_dims(-1);
    let texts = [column(["A", "B"])?, column(["x", "y"])?, column(["u", "u"])?];
    check("crossing texts", &float(crossing.cross(&texts.each_ref())?)?);
    check("crossing scalar", &float(crossing.cross(&[&Tensor::from(5), &Tensor::from(7)])?)?);
    let one_hot = HashedCrossing::new(4)?.one_hot();
    let columns = [Tensor::from([[1], [2]]), Tensor::from([[3], [3]])];
    check("crossing one_hot", &one_hot.cross(&columns.each_ref())?);
    assert!(crossing.cross(&[&places]).is_err() && HashedCrossing::new(0).is_err());
    assert!(crossing.cross(&[&places, &columns[0]]).is_err());
    Ok(())
}

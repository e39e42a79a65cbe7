//! Parts and interfaces of modules.

use ferroflow_nn::{
    AdditiveAttention, AttentionOptions, BatchNorm, Bidirectional, Conv1DTranspose, Conv2D,
    ConvLstm1D, ConvOptions, Dense, DenseOptions, DepthwiseConv1D, DotProductAttention, Dropout,
    GroupNorm, GroupNormOptions, GroupedQueryAttention, GroupedQueryOptions, Gru, IntegerLookup,
    Layer, LayerNorm, LookupOptions, MergeMode, Mode, Module, MultiHeadAttention, Normalization,
    PRelu, Padding, RandomFlip, Regularizer, RmsNorm, ScoreMode, SeparableConv1D, Sequential,
    SimpleRnn, SpectralNorm, TimeDistributed, Weights, flatten, max_pool,
};
use ferroflow_runtime::{ObjectGraph, Trackable};
use ferroflow_tracer::{DType, GradientTape, Result, Tensor, function};

/// The names of what an object leads to, without seeds, which have no values in checkpoints.
fn edges(object: &dyn Trackable) -> Vec<String> {
    let graph = ObjectGraph::of(object).unwrap();
    let of_seeds = ["_steps", "_dropout_layer", "seed_generator"];
    let edges = graph.nodes[0].edges().filter(|edge| !of_seeds.contains(edge));
    edges.map(str::to_string).collect()
}

fn small(weights: &mut Weights) -> Result<Sequential> {
    let by =
        DenseOptions { kernel_regularizer: Some(Regularizer::l2(0.5)), ..DenseOptions::default() };
    Ok(Sequential::new()
        .then(Conv2D::new(weights, [3, 3], 1, 2, &ConvOptions::default())?)
        .map(|x| max_pool(x, [2, 2]))
        .then(BatchNorm::new(weights, 2)?)
        .map(flatten)
        .then(Dropout::new(0.25)?)
        .then(Dense::with_options(weights, 8, 3, &by)?))
}

#[test]
fn objects_have_the_names_that_keras_gives_them() -> Result<()> {
    let weights = &mut Weights::new();
    let dense = Dense::new(weights, 2, 2)?;
    assert_eq!(edges(&dense), ["kernel", "_kernel", "bias"]);
    let attention = MultiHeadAttention::new(weights, 2, 1, 2)?;
    let projections = ["_query_dense", "_key_dense", "_value_dense", "_output_dense"];
    assert_eq!(edges(&attention), projections);
    assert_eq!(edges(&Gru::new(weights, 1, 1)?), ["cell"]);
    let network = small(weights)?;
    let names = edges(&network);
    let expected =
        ["layer_with_weights-0", "layer-0", "layer-1", "layer_with_weights-1", "layer-2"];
    assert_eq!(names[..5], expected);
    assert_eq!(names.last().unwrap(), "_functional");
    let graph = ObjectGraph::of(&network)?;
    let at = |path: &[&str]| {
        path.iter().try_fold(0, |node, name| graph.nodes[node].child(name)).expect("a path")
    };
    assert_eq!(at(&["layer_with_weights-2", "kernel"]), at(&["layer-5", "_kernel"]));
    let by_number = at(&["_functional", "_operations", "3", "gamma"]);
    assert_eq!(at(&["layer-2", "gamma"]), by_number);
    Ok(())
}

#[test]
fn weights_of_all_layers_have_the_names_of_keras() -> Result<()> {
    let w = &mut Weights::new();
    let groups = GroupNormOptions { groups: 1, ..GroupNormOptions::default() };
    assert_eq!(edges(&GroupNorm::with_options(w, 2, &groups)?), ["gamma", "beta"]);
    assert_eq!(edges(&RmsNorm::new(w, 2)?), ["scale"]);
    let statistics = ["adapt_mean", "adapt_variance", "count"];
    assert_eq!(edges(&Normalization::new(w, &[2])?), statistics);
    let dense = Dense::new(w, 2, 2)?;
    let kernel = dense.kernel().clone();
    let norm = SpectralNorm::new(w, dense, &kernel, 1)?;
    assert_eq!(edges(&norm), ["layer", "kernel", "vector_u"]);
    let transposed = Conv1DTranspose::new(w, [2], 2, 2, &Default::default())?;
    assert_eq!(edges(&transposed), ["kernel", "bias"]);
    let separable = SeparableConv1D::new(w, [2], [2, 2], 1, &Default::default())?;
    assert_eq!(edges(&separable), ["depthwise_kernel", "pointwise_kernel", "bias"]);
    let depthwise = DepthwiseConv1D::new(w, [2], 2, 1, &Default::default())?;
    assert_eq!(edges(&depthwise), ["kernel", "depthwise_kernel", "bias"]);
    let of_cell = ["kernel", "recurrent_kernel", "bias"];
    assert_eq!(edges(SimpleRnn::new(w, 1, 1)?.cell()), of_cell);
    let (a, b) = (SimpleRnn::new(w, 1, 1)?, SimpleRnn::new(w, 1, 1)?);
    let both = Bidirectional::new(a, b, MergeMode::Sum)?;
    assert_eq!(edges(&both), ["forward_layer", "backward_layer"]);
    assert_eq!(edges(&TimeDistributed::new(both)), ["layer"]);
    let images = ConvLstm1D::new(w, [2], [1, 1], &Default::default())?;
    assert_eq!(edges(&images), ["cell"]);
    assert_eq!(edges(&PRelu::new(w, &[2])?), ["alpha"]);
    let scores = AttentionOptions { scale: true, score: ScoreMode::Concat, ..Default::default() };
    let attention = DotProductAttention::new(w, &scores)?;
    assert_eq!(edges(&attention), ["scale", "concat_score_weight"]);
    assert_eq!(edges(&AdditiveAttention::new(w, 2)?), ["scale"]);
    let gated = GroupedQueryOptions { gate: true, ..GroupedQueryOptions::new(2, 1, 1) };
    let heads = ["_query_dense", "_key_dense", "_gate_dense", "_value_dense", "_output_dense"];
    assert_eq!(edges(&GroupedQueryAttention::new(w, 2, &gated)?), heads);
    assert_eq!(edges(&IntegerLookup::new([1], &LookupOptions::default())?), ["lookup_table"]);
    assert!(edges(&RandomFlip::default()).is_empty());
    Ok(())
}

#[test]
fn losses_of_all_layers_add_to_that_of_the_task() -> Result<()> {
    let network = small(&mut Weights::seeded(5))?;
    let kernel = network.variables()?.into_iter().find(|v| v.shape().to_string() == "[8,3]");
    let kernel = kernel.expect("the kernel of the last layer");
    let losses = function({
        let (network, kernel) = (network.clone(), kernel.clone());
        move || {
            let tape = GradientTape::new();
            let loss = network.regularization_losses()?.remove(0);
            let gradient = tape.variable_gradients(&loss, std::slice::from_ref(&kernel))?.remove(0);
            Ok::<_, ferroflow_tracer::Error>((loss, gradient.expect("it matters").dense()?))
        }
    });
    let (loss, gradient) = losses.call(())?;
    let kernel = kernel.read()?.to_vec::<f32>()?;
    let expected: f32 = kernel.iter().map(|w| 0.5 * w * w).sum();
    assert!((loss.to_scalar::<f32>()? - expected).abs() < 1e-5);
    assert_eq!(gradient.to_vec::<f32>()?, kernel);
    Ok(())
}

#[test]
fn dropping_keeps_the_mean() -> Result<()> {
    let layer = Dropout::seeded(0.25, 7)?;
    let x = Tensor::from(vec![2.0f32; 4000]);
    assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, [2.0; 4000]);
    let y = layer.call(&x, Mode::Training)?.to_vec::<f32>()?;
    assert!(y.iter().all(|&y| y == 0.0 || (y - 2.0 / 0.75).abs() < 1e-5));
    let mean = y.iter().sum::<f32>() / 4000.0;
    assert!((mean - 2.0).abs() < 0.1, "{mean}");
    assert!(Dropout::new(1.0).unwrap_err().to_string().contains("a rate from 0 to below 1"));
    Ok(())
}

#[test]
fn weights_of_single_precision_compute_in_half() -> Result<()> {
    let weights = &mut Weights::seeded(2);
    let network = Sequential::new()
        .then(Dense::new(weights, 3, 4)?)
        .then(LayerNorm::new(weights, 4)?)
        .then(BatchNorm::new(weights, 4)?);
    let x = Tensor::from([[1.0f32, 2.0, 3.0], [0.5, 0.0, -1.0]]);
    let expected = network.call(&x, Mode::Inference)?.to_vec::<f32>()?;
    for dtype in [DType::F16, DType::BF16] {
        let tape = GradientTape::new();
        let y = network.call(&x.cast(dtype)?, Mode::Inference)?;
        assert_eq!(y.dtype(), dtype);
        let near = y.cast(DType::F32)?.to_vec::<f32>()?;
        assert!(near.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.03));
        let loss = y.square()?.sum_all()?;
        let gradients = tape.variable_gradients(&loss, &network.trainable_variables()?)?;
        assert!(gradients.into_iter().flatten().all(|g| g.dtype() == DType::F32));
    }
    Ok(())
}

#[test]
fn batches_of_any_size_share_a_trace() -> Result<()> {
    let weights = &mut Weights::seeded(3);
    let (gru, attention) =
        (Gru::of_sequences(weights, 2, 4)?, MultiHeadAttention::new(weights, 4, 2, 2)?.causal());
    let network = Sequential::new().then(gru).then(attention).then(Dense::new(weights, 4, 1)?);
    let staged = function({
        let network = network.clone();
        move |x: Tensor| network.call(&x, Mode::Inference)
    });
    let any = ferroflow_tracer::spec(DType::F32, [None, None, Some(2)]);
    let staged = staged.with_input_signature([any]);
    for shape in [[1usize, 3, 2], [2, 1, 2]] {
        let x = Tensor::from_slice(&shape, &vec![0.5f32; shape.iter().product()])?;
        let (found, expected) = (staged.call((&x,))?, network.call(&x, Mode::Inference)?);
        let (found, expected) = (found.to_vec::<f32>()?, expected.to_vec::<f32>()?);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6));
        assert_eq!(found.len(), shape[0] * shape[1]);
    }
    assert_eq!(staged.tracing_count(), 1);
    Ok(())
}

#[test]
fn layers_that_cannot_be_are_told() {
    let weights = &mut Weights::new();
    let groups = ConvOptions { groups: 3, ..ConvOptions::default() };
    let error = Conv2D::new(weights, [1, 1], 4, 6, &groups).unwrap_err().to_string();
    assert!(error.contains("4 inputs and 6 outputs in 3 groups"), "{error}");
    let causal = ConvOptions { padding: Padding::Causal, ..ConvOptions::default() };
    let error = Conv2D::new(weights, [1, 1], 4, 6, &causal).unwrap_err().to_string();
    assert!(error.contains("causal padding of a sequence"), "{error}");
    let dense = Dense::new(weights, 3, 2).unwrap();
    assert!(dense.call(&Tensor::from([[1.0f32, 2.0]]), Mode::Inference).is_err());
}

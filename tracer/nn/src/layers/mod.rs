//! Layers, a file for each.

mod activation;
mod activity;
mod adaptive_pool;
mod attention;
mod batch_norm;
mod bidirectional;
mod cells;
mod compute;
mod conv;
mod conv_lstm;
mod conv_transpose;
mod dense;
mod depthwise;
mod dot_attention;
mod dropout;
mod edges;
mod einsum;
mod embedding;
mod geometry;
mod group_norm;
mod grouped_attention;
mod gru;
mod heads;
mod layer_norm;
mod lstm;
mod masking;
pub mod merge;
mod merged_values;
mod noise;
mod normalization;
mod policy;
mod pool;
mod preprocessing;
mod recurrent;
mod regularizer;
mod relu;
mod reshape;
mod resize;
mod reversible_embedding;
mod rms_norm;
mod rows;
mod seed;
mod sequential;
mod shapes;
mod simple_rnn;
mod spectral_norm;
mod stateful;
mod value;
mod weights;

pub use activation::Activation;
pub use activity::ActivityRegularization;
pub use adaptive_pool::{
    AdaptiveAveragePooling, AdaptiveAveragePooling1D, AdaptiveAveragePooling2D,
    AdaptiveAveragePooling3D, AdaptiveMaxPooling, AdaptiveMaxPooling1D, AdaptiveMaxPooling2D,
    AdaptiveMaxPooling3D,
};
pub use attention::{MultiHeadAttention, MultiHeadOptions};
pub use batch_norm::{BatchNorm, BatchNormOptions};
pub use bidirectional::{Bidirectional, BothStates, MergeMode, TimeDistributed};
pub use cells::{RecurrentCell, Rnn, StackedRnnCells};
pub use conv::{Conv, Conv1D, Conv2D, Conv3D, ConvOptions};
pub use conv_lstm::{ConvLstm, ConvLstm1D, ConvLstm2D, ConvLstm3D, ConvLstmOptions};
pub use conv_transpose::{
    Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, ConvTranspose, ConvTransposeOptions,
};
pub use dense::{Dense, DenseOptions};
pub use depthwise::{
    DepthwiseConv, DepthwiseConv1D, DepthwiseConv2D, SeparableConv, SeparableConv1D,
    SeparableConv2D,
};
pub use dot_attention::{
    AdditiveAttention, AttentionMasks, AttentionOptions, DotProductAttention, ScoreMode,
};
pub use dropout::Dropout;
pub use edges::{
    Cropping, Cropping1D, Cropping2D, Cropping3D, ZeroPadding, ZeroPadding1D, ZeroPadding2D,
    ZeroPadding3D,
};
pub use einsum::{EinsumDense, EinsumOptions};
pub use embedding::Embedding;
pub use geometry::Padding;
pub use group_norm::{GroupNorm, GroupNormOptions};
pub use grouped_attention::{GroupedQueryAttention, GroupedQueryOptions};
pub use gru::{Gru, GruCell};
pub use layer_norm::{LayerNorm, LayerNormOptions};
pub use lstm::{Lstm, LstmCell, LstmState};
pub use masking::Masking;
pub use merged_values::Merge;
pub use noise::{AlphaDropout, GaussianDropout, GaussianNoise, SpatialDropout};
pub use normalization::Normalization;
pub use policy::DTypePolicy;
pub use pool::{
    AveragePooling, AveragePooling1D, AveragePooling2D, AveragePooling3D, GlobalAveragePooling,
    GlobalMaxPooling, MaxPooling, MaxPooling1D, MaxPooling2D, MaxPooling3D, avg_pool,
    global_avg_pool, max_pool,
};
pub use preprocessing::*;
pub use recurrent::RecurrentLayer;
pub use regularizer::{Penalty, Regularizer};
pub use relu::{Elu, PRelu, Relu, Softmax};
pub use reshape::{Flatten, IdentityLayer, Permute, RepeatVector, Reshape, flatten};
pub use resize::{Interpolation, UpSampling, UpSampling1D, UpSampling2D, UpSampling3D};
pub use reversible_embedding::ReversibleEmbedding;
pub use rms_norm::{RmsNorm, UnitNorm};
pub use seed::SeedGenerator;
pub use sequential::Sequential;
pub use simple_rnn::{SimpleRnn, SimpleRnnCell};
pub use spectral_norm::SpectralNorm;
pub use stateful::Stateful;
pub use value::LayerValue;
pub use weights::Weights;

use ferroflow_runtime::trackable::Trackable;
use ferroflow_tracer::{Nest, error::Result, tensor::Tensor};

/// Purpose of a call of a network.
#[derive(Nest, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To learn from what it returns.
    Training,
    /// For its answer.
    Inference,
}

/// Something with weights that makes one tensor of another.
pub trait Layer: Trackable + Send + Sync {
    /// Result for `x`.
    ///
    /// # Errors
    ///
    /// When `x` does not fit the layer.
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor>;

    /// Whether a mask of the steps of `x` is one of the steps of the result as well.
    fn supports_masking(&self) -> bool {
        false
    }

    /// Result for a value with its mask and losses, and those that the result has: what
    /// [`Sequential`] and the trainer call. A layer that takes no part in it has what
    /// [`call`](Layer::call) returns, with the losses, and with the mask if it
    /// [supports masking](Layer::supports_masking); otherwise a mask ends here, with a warning. A
    /// structure of layers passes both on by calling theirs.
    ///
    /// # Errors
    ///
    /// As [`call`](Layer::call); when the mask does not fit.
    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let y = self.call(&x.tensor, mode)?;
        if self.supports_masking() {
            return x.with_tensor(y).in_compute_dtype();
        }
        if x.mask.is_some() {
            let layer = std::any::type_name::<Self>();
            tracing::warn!(layer, "the layer does not support masks: it ends here");
        }
        x.with_unmasked(y).in_compute_dtype()
    }
}

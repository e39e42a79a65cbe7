//! The workloads, by name: `family.workload`.

mod checkpoints;
mod control;
mod convolution;
mod dispatch;
mod elementwise;
mod files;
mod matrix;
mod model;
mod movement;
mod reduction;
mod train;

use crate::{Bench, measure::Workload};
use anyhow::{Context as _, Result};

/// Elements of the large vectors.
const N: usize = 1 << 22;

/// The names of all workloads.
pub(crate) const NAMES: &[&str] = &[
    "dispatch.eager_add_scalar",
    "dispatch.eager_add_raw",
    "dispatch.eager_matmul8",
    "dispatch.eager_chain100",
    "dispatch.fn_1op",
    "dispatch.fn_5args",
    "dispatch.fn_capture",
    "dispatch.fn_chain100",
    "dispatch.fn_chain100_call",
    "dispatch.concrete_call",
    "dispatch.atomic_call",
    "dispatch.cache_lookup100",
    "dispatch.trace_1000ops",
    "dispatch.trace_first_call_1000ops",
    "dispatch.tape_10ops",
    "ctl.while10k",
    "ctl.cond1000",
    "ew.chain_eager",
    "ew.chain_fn",
    "ew.chain8_eager",
    "ew.chain8_fn",
    "ew.add",
    "ew.exp",
    "ew.tanh",
    "ew.sigmoid",
    "ew.gelu_fn",
    "ew.broadcast_add",
    "ew.cast_f32_bf16",
    "ew.random_uniform",
    "red.sum_all",
    "red.sum_rows",
    "red.sum_cols",
    "red.mean_rows",
    "red.argmax_rows",
    "red.softmax_rows",
    "red.layernorm_fn",
    "mov.transpose4096",
    "mov.transpose_nhwc_nchw",
    "mov.gather",
    "mov.cumsum",
    "mov.top_k",
    "mov.sort",
    "mov.one_hot",
    "mov.concat",
    "mov.split",
    "mov.strided_slice",
    "mov.pad",
    "mov.where",
    "mov.boolean_mask",
    "mov.unique",
    "mov.scatter_nd_add",
    "mov.segment_sum",
    "mm.f32_128",
    "mm.f32_256",
    "mm.f32_512",
    "mm.f32_1024",
    "mm.f32_2048",
    "mm.f32_1x1024x1024",
    "mm.f32_32x4096x4096",
    "mm.f32_128x768x3072",
    "mm.f32_tb_512",
    "mm.bias_relu_fn_128x768x3072",
    "mm.batched_64x128",
    "mm.einsum_attn",
    "mm.bf16_1024",
    "mm.int8_1024",
    "mm.f64_512",
    "conv.7x7s2_224",
    "conv.3x3_56_64",
    "conv.3x3_28_128_b8",
    "conv.1x1_56_64_256",
    "conv.dw3x3_112_96",
    "conv.3x3_28_128_b8_bwd_input",
    "conv.3x3_28_128_b8_bwd_filter",
    "pool.max3s2_112_64",
    "pool.avg2s2_b8_56_64",
    "norm.bn_infer_56_64",
    "norm.bn_train_56_64",
    "infer.mlp_b1",
    "infer.mlp_b8",
    "infer.mobilenetv2_b1",
    "infer.mobilenetv2_b8",
    "infer.resnet50_b1",
    "infer.resnet50_b8",
    "infer.bert_base_b1",
    "infer.bert_base_b8",
    "infer.lstm_b1",
    "infer.lstm_b8",
    "infer.mlp_b1_fn",
    "train.mlp_fn",
    "train.mlp_eager",
    "train.cnn_fn",
    "train.transformer_fn",
    "load.saved_model_resnet50",
    "load.saved_model_mlp",
    "load.saved_model_500mb",
    "ckpt.save_500mb",
    "ckpt.restore_500mb",
    "save.saved_model_mlp",
    "cold.mlp",
    "cold.resnet50",
];

/// The workload of this name.
pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Workload<'a>> {
    let (family, rest) = name.split_once('.').context("a name is `family.workload`")?;
    let found = match family {
        "dispatch" => dispatch::find(rest)?,
        "ctl" => control::find(bench, rest)?,
        "ew" => elementwise::find(bench, rest)?,
        "red" => reduction::find(bench, rest)?,
        "mov" => movement::find(bench, rest)?,
        "mm" => matrix::find(bench, rest)?,
        "conv" | "pool" | "norm" => convolution::find(bench, rest)?,
        "infer" => model::find(bench, rest)?,
        "ckpt" | "save" => checkpoints::find(bench, name)?,
        "train" => train::find(rest)?,
        "load" | "cold" => files::find(bench, name)?,
        _ => None,
    };
    found.with_context(|| format!("there is no workload {name}"))
}

//! The op records, by family.
//!
//! Being in a family's slice is the registration: there is no other list of ops.

use crate::op::OpDef;

mod accumulator;
mod activation;
mod array;
mod attention;
mod batching;
mod blocks;
mod checkpoint;
mod codec;
mod collective;
mod composite;
mod control;
mod conv;
mod conv_general;
mod convolution_chain;
pub mod copy;
mod count;
mod csr;
mod ctc;
mod dataset;
mod dataset_experimental;
mod dataset_function;
mod debug;
mod diagonal;
mod dilation;
pub(crate) mod einsum;
mod file;
mod forest;
mod functional;
mod functional_v1;
mod fused;
pub mod fused_expressions;
mod grappler;
mod handle_v1;
mod image;
mod indexing;
mod interface;
mod internal;
mod iterator;
mod legacy;
mod linalg;
mod list;
mod lock;
mod math;
mod matmul;
pub mod names;
mod nn;
mod norm;
mod onednn;
mod optional;
mod parse;
mod pool;
mod proto;
mod quantized;
mod quantized_fused;
mod queue;
mod ragged;
mod ragged_variant;
mod random;
mod random_state;
mod range;
mod reader;
mod recurrent;
mod reduce;
mod region;
pub mod row_call;
mod search;
mod segment;
mod sentencepiece;
mod session;
mod set;
mod sets;
mod shape;
mod signal;
mod slice;
mod softmax;
mod space;
mod sparse;
mod sparse_map;
mod special;
mod special_series;
mod staging_map;
mod state;
mod string;
mod summary;
mod table;
mod tensor_array;
mod tensor_map;
mod text;
mod tpu;
mod training;
mod unicode;
mod uniform_conv;
mod variable_part;
mod xla;
mod xla_region;

macro_rules! families {
    ($($family:ident,)*) => { &[$((stringify!($family), $family::OPS)),*] };
}

static FAMILIES: &[(&str, &[OpDef])] = families! {
    accumulator,
    activation,
    array,
    attention,
    batching,
    blocks,
    checkpoint,
    codec,
    collective,
    composite,
    control,
    conv,
    convolution_chain,
    copy,
    count,
    csr,
    ctc,
    dataset,
    dataset_experimental,
    dataset_function,
    debug,
    diagonal,
    dilation,
    file,
    forest,
    functional,
    functional_v1,
    fused,
    fused_expressions,
    grappler,
    handle_v1,
    image,
    indexing,
    internal,
    iterator,
    legacy,
    linalg,
    list,
    lock,
    math,
    matmul,
    nn,
    norm,
    onednn,
    optional,
    parse,
    pool,
    proto,
    quantized,
    quantized_fused,
    queue,
    ragged,
    ragged_variant,
    random,
    random_state,
    range,
    reader,
    recurrent,
    reduce,
    region,
    row_call,
    search,
    segment,
    sentencepiece,
    session,
    set,
    shape,
    signal,
    slice,
    softmax,
    space,
    sparse,
    sparse_map,
    special,
    staging_map,
    state,
    string,
    summary,
    table,
    tensor_array,
    tensor_map,
    text,
    tpu,
    training,
    unicode,
    uniform_conv,
    variable_part,
    xla,
    xla_region,
};

/// The families and their records, in the order of the names.
pub fn families() -> impl Iterator<Item = (&'static str, &'static [OpDef])> {
    FAMILIES.iter().copied()
}

/// Every built-in record.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    families().flat_map(|(_, records)| records)
}

/// The interface of an op that TensorFlow, tensorflow_text or Decision Forests has, whether or not it has
/// a record here.
pub fn interface(name: &str) -> Option<&'static OpDef> {
    interface::find(name)
}

/// Whether an op is part of programs while they run and of no file: those whose name begins with an
/// underscore, but for the ops of TensorFlow that its graph optimiser leaves in graphs.
pub fn is_internal(name: &str) -> bool {
    name.starts_with('_') && (interface::find(name).is_none() || name == "_Arg")
}

/// The names of all ops TensorFlow has, sorted.
pub fn tensorflow_names() -> impl Iterator<Item = &'static str> {
    interface::names()
}

/// The names of all ops that the tensorflow_text library adds, sorted.
pub fn tensorflow_text_names() -> impl Iterator<Item = &'static str> {
    interface::text_names()
}

/// The names of the ops that TensorFlow Decision Forests adds for inference, sorted.
pub fn decision_forest_names() -> impl Iterator<Item = &'static str> {
    interface::forest_names()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn families_are_in_order() {
        assert!(families().map(|(name, _)| name).is_sorted());
    }

    #[test]
    fn an_op_has_one_record() {
        let mut names = HashSet::new();
        let twice: Vec<&str> =
            all().map(|record| record.name).filter(|name| !names.insert(*name)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}

//! The op records, by family.
//!
//! Being in a family's slice is the registration: there is no other list of ops.

use crate::op::OpDef;

mod activation;
mod array;
mod checkpoint;
mod codec;
mod control;
mod conv;
mod count;
mod ctc;
mod diagonal;
mod dilation;
mod einsum;
mod file;
mod functional;
mod image;
mod indexing;
mod interface;
mod internal;
mod linalg;
mod list;
mod math;
mod matmul;
mod nn;
mod norm;
mod optional;
mod parse;
mod pool;
mod quantized;
mod queue;
mod ragged;
mod ragged_variant;
mod random;
mod random_state;
mod range;
mod recurrent;
mod reduce;
mod search;
mod segment;
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
mod state;
mod string;
mod summary;
mod table;
mod tensor_array;
mod tensor_map;
mod training;
mod unicode;
mod variable_part;

static FAMILIES: &[&[OpDef]] = &[
    activation::OPS,
    array::OPS,
    checkpoint::OPS,
    codec::OPS,
    control::OPS,
    conv::OPS,
    count::OPS,
    ctc::OPS,
    diagonal::OPS,
    dilation::OPS,
    file::OPS,
    functional::OPS,
    image::OPS,
    indexing::OPS,
    internal::OPS,
    linalg::OPS,
    list::OPS,
    math::OPS,
    matmul::OPS,
    nn::OPS,
    norm::OPS,
    optional::OPS,
    parse::OPS,
    pool::OPS,
    quantized::OPS,
    queue::OPS,
    ragged::OPS,
    ragged_variant::OPS,
    random::OPS,
    random_state::OPS,
    range::OPS,
    recurrent::OPS,
    reduce::OPS,
    search::OPS,
    segment::OPS,
    set::OPS,
    shape::OPS,
    signal::OPS,
    slice::OPS,
    softmax::OPS,
    space::OPS,
    sparse::OPS,
    sparse_map::OPS,
    special::OPS,
    state::OPS,
    string::OPS,
    summary::OPS,
    table::OPS,
    tensor_array::OPS,
    tensor_map::OPS,
    training::OPS,
    unicode::OPS,
    variable_part::OPS,
];

/// Every built-in record.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The interface of an op that TensorFlow has, whether or not it has a record here.
pub fn interface(name: &str) -> Option<&'static OpDef> {
    interface::find(name)
}

/// The names of all ops TensorFlow has, sorted.
pub fn tensorflow_names() -> impl Iterator<Item = &'static str> {
    interface::names()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_op_has_one_record() {
        let mut names = HashSet::new();
        let twice: Vec<&str> =
            all().map(|record| record.name).filter(|name| !names.insert(*name)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}

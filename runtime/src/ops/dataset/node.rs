//! Ops that made data sets: what can be told about a data set without running it.

use super::Dataset;
use crate::{
    eager_tensor::Results,
    error::Result,
    ops::{RuntimeCall, one},
    variant,
};
use ferroflow_ir::{AttrValue, Attrs, Effect, FunctionLibrary, HostTensor, NameAttrList, OpDef};
use std::{collections::HashSet, sync::Arc};

/// A call of an op that made a data set.
pub(super) struct DatasetNode {
    op: &'static OpDef,
    attrs: Attrs,
    inputs: Vec<HostTensor>,
    library: Arc<FunctionLibrary>,
}

impl std::fmt::Debug for DatasetNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.op.name)
    }
}

/// Data sets of batches, whose size is in an input of this name.
///
/// Source: `compute_batch_size_op.cc` of TensorFlow, as the two lists below.
const BATCHING: &[&str] = &[
    "BatchDataset",
    "BatchDatasetV2",
    "ExperimentalMapAndBatchDataset",
    "MapAndBatchDataset",
    "PaddedBatchDataset",
    "PaddedBatchDatasetV2",
];

/// Data sets whose inputs must have one batch size.
const JOINING: &[&str] = &["ConcatenateDataset", "ZipDataset"];

/// Data sets whose elements are as large as those of input 0.
const KEEPING: &[&str] = &[
    "AssertCardinalityDataset",
    "CacheDataset",
    "CacheDatasetV2",
    "FilterDataset",
    "ModelDataset",
    "OptionsDataset",
    "ParseExampleDataset",
    "ParseExampleDatasetV2",
    "PrefetchDataset",
    "RepeatDataset",
    "ShardDataset",
    "ShuffleAndRepeatDataset",
    "ShuffleAndRepeatDatasetV2",
    "ShuffleDataset",
    "ShuffleDatasetV2",
    "ShuffleDatasetV3",
    "SkipDataset",
    "TakeDataset",
];

/// Data sets of what is in files.
const READING: &[&str] = &[
    "FixedLengthRecordDataset",
    "FixedLengthRecordDatasetV2",
    "TFRecordDataset",
    "TFRecordDatasetV2",
    "TextLineDataset",
];

impl DatasetNode {
    /// The call that makes a data set.
    pub(super) fn of(call: &RuntimeCall<'_>) -> Result<DatasetNode> {
        let library = call.scope.library.clone();
        Ok(DatasetNode { op: call.op, attrs: call.attrs.clone(), inputs: call.tensors()?, library })
    }

    /// The nodes of the data sets among the inputs; nothing for one that no op made.
    pub(super) fn inputs(&self) -> impl Iterator<Item = Option<&DatasetNode>> {
        let datasets =
            self.inputs.iter().filter_map(|input| variant::value::<Dataset>(input, "").ok());
        datasets.map(|dataset| dataset.node.as_deref())
    }

    /// The message of options that the op adds.
    pub(super) fn options(&self) -> Option<&[u8]> {
        let is_options = self.op.name == "OptionsDataset";
        is_options.then(|| self.attrs.bytes("serialized_options").ok().map(|b| &b[..])).flatten()
    }

    /// The number of rows of elements, as far as ops tell it; else -1.
    fn batch_size(&self) -> i64 {
        let sizes = || self.inputs().map(|node| node.map_or(-1, DatasetNode::batch_size));
        match self.op.name {
            name if BATCHING.contains(&name) => self.size_operand(),
            name if JOINING.contains(&name) => {
                let first = sizes().next().unwrap_or(-1);
                if sizes().all(|size| size == first) { first } else { -1 }
            }
            name if KEEPING.contains(&name) => sizes().next().unwrap_or(-1),
            _ => -1,
        }
    }

    /// The operand `batch_size`, which lists of other operands may come before, but not behind.
    fn size_operand(&self) -> i64 {
        let n_others = self.attrs.types("Targuments").map_or(0, <[_]>::len);
        let size = self.inputs.get(1 + n_others).and_then(|size| size.to_i64s().ok());
        size.and_then(|size| size.first().copied()).unwrap_or(-1)
    }

    /// Whether elements come out of files, also where functions make data sets of them.
    pub(super) fn reads_files(&self) -> bool {
        READING.contains(&self.op.name)
            || self.any_function(&|op| READING.contains(&op.name))
            || self.inputs().any(|node| node.is_none_or(DatasetNode::reads_files))
    }

    /// Whether two runs have the same elements: no op on the way draws random numbers or has state.
    pub(super) fn is_repeatable(&self) -> bool {
        self.op.effect == Effect::Pure
            && !self.any_function(&|op| op.effect != Effect::Pure)
            && self.inputs().all(|node| node.is_some_and(DatasetNode::is_repeatable))
    }

    /// Whether the functions that the op calls have such an op, or those that they call.
    fn any_function(&self, wanted: &dyn Fn(&OpDef) -> bool) -> bool {
        let mut names: Vec<String> = functions(&self.attrs).map(|f| f.name.to_string()).collect();
        let mut seen = HashSet::new();
        while let Some(name) = names.pop() {
            let Ok(def) = self.library.get(&name) else { continue };
            if !seen.insert(name) {
                continue;
            }
            for (_, node) in def.graph.iter() {
                if node.op.def().is_some_and(wanted) {
                    return true;
                }
                names.extend(functions(&node.attrs).map(|f| f.name.to_string()));
            }
        }
        false
    }
}

/// The functions that attributes name.
fn functions(attrs: &Attrs) -> impl Iterator<Item = &NameAttrList> {
    attrs.iter().flat_map(|(_, value)| match value {
        AttrValue::Func(function) => std::slice::from_ref(function),
        AttrValue::Funcs(functions) => functions,
        _ => &[],
    })
}

pub(super) fn batch_size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let node = call.input_dataset(0)?.node;
    one(HostTensor::scalar(node.map_or(-1, |node| node.batch_size())))
}

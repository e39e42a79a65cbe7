//! Ops of TensorFlow 1 on handles that are strings, and the ops on resources that do the same.
//!
//! Before there were resources, the handle of a queue, table or array was a pair of strings: its
//! container and its name. The op of version 2 has the same arguments, results and attributes, but
//! for the dtype of the handle, so a node of the old op is read as a node of the new one. Where
//! TensorFlow has no such op, there is one here, whose name begins with an underscore.

/// The ops on handles that are strings, and the ops on resources that do the same.
const OPS: &[(&str, &str)] = &[
    ("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient"),
    ("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated"),
    ("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep"),
    ("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient"),
    ("Barrier", "_Barrier"),
    ("BarrierClose", "_BarrierClose"),
    ("BarrierIncompleteSize", "_BarrierIncompleteSize"),
    ("BarrierInsertMany", "_BarrierInsertMany"),
    ("BarrierReadySize", "_BarrierReadySize"),
    ("BarrierTakeMany", "_BarrierTakeMany"),
    ("ConditionalAccumulator", "ResourceConditionalAccumulator"),
    ("FIFOQueue", "FIFOQueueV2"),
    ("FakeQueue", "_FakeQueue"),
    ("FixedLengthRecordReader", "FixedLengthRecordReaderV2"),
    ("HashTable", "HashTableV2"),
    ("IdentityReader", "IdentityReaderV2"),
    ("InitializeTable", "InitializeTableV2"),
    ("InitializeTableFromTextFile", "InitializeTableFromTextFileV2"),
    ("LookupTableExport", "LookupTableExportV2"),
    ("LookupTableFind", "LookupTableFindV2"),
    ("LookupTableImport", "LookupTableImportV2"),
    ("LookupTableInsert", "LookupTableInsertV2"),
    ("LookupTableSize", "LookupTableSizeV2"),
    ("MutableHashTable", "MutableHashTableV2"),
    ("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2"),
    ("PaddingFIFOQueue", "PaddingFIFOQueueV2"),
    ("PriorityQueue", "PriorityQueueV2"),
    ("QueueClose", "QueueCloseV2"),
    ("QueueDequeue", "QueueDequeueV2"),
    ("QueueDequeueMany", "QueueDequeueManyV2"),
    ("QueueDequeueUpTo", "QueueDequeueUpToV2"),
    ("QueueEnqueue", "QueueEnqueueV2"),
    ("QueueEnqueueMany", "QueueEnqueueManyV2"),
    ("QueueIsClosed", "QueueIsClosedV2"),
    ("QueueSize", "QueueSizeV2"),
    ("RandomShuffleQueue", "RandomShuffleQueueV2"),
    ("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2"),
    ("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2"),
    ("ReaderRead", "ReaderReadV2"),
    ("ReaderReadUpTo", "ReaderReadUpToV2"),
    ("ReaderReset", "ReaderResetV2"),
    ("ReaderRestoreState", "ReaderRestoreStateV2"),
    ("ReaderSerializeState", "ReaderSerializeStateV2"),
    ("SparseAccumulatorApplyGradient", "_SparseAccumulatorApplyGradient"),
    ("SparseAccumulatorTakeGradient", "_SparseAccumulatorTakeGradient"),
    ("SparseConditionalAccumulator", "_SparseConditionalAccumulator"),
    ("Stack", "_Stack"),
    ("StackClose", "StackCloseV2"),
    ("StackPop", "StackPopV2"),
    ("StackPush", "StackPushV2"),
    ("TFRecordReader", "TFRecordReaderV2"),
    ("TensorArray", "TensorArrayV3"),
    ("TensorArrayClose", "TensorArrayCloseV3"),
    ("TensorArrayCloseV2", "TensorArrayCloseV3"),
    ("TensorArrayConcat", "TensorArrayConcatV3"),
    ("TensorArrayConcatV2", "TensorArrayConcatV3"),
    ("TensorArrayGather", "TensorArrayGatherV3"),
    ("TensorArrayGatherV2", "TensorArrayGatherV3"),
    ("TensorArrayGrad", "TensorArrayGradV3"),
    ("TensorArrayGradV2", "TensorArrayGradV3"),
    ("TensorArrayPack", "_TensorArrayPack"),
    ("TensorArrayRead", "TensorArrayReadV3"),
    ("TensorArrayReadV2", "TensorArrayReadV3"),
    ("TensorArrayScatter", "TensorArrayScatterV3"),
    ("TensorArrayScatterV2", "TensorArrayScatterV3"),
    ("TensorArraySize", "TensorArraySizeV3"),
    ("TensorArraySizeV2", "TensorArraySizeV3"),
    ("TensorArraySplit", "TensorArraySplitV3"),
    ("TensorArraySplitV2", "TensorArraySplitV3"),
    ("TensorArrayUnpack", "_TensorArrayUnpack"),
    ("TensorArrayV2", "TensorArrayV3"),
    ("TensorArrayWrite", "TensorArrayWriteV3"),
    ("TensorArrayWriteV2", "TensorArrayWriteV3"),
    ("TextLineReader", "TextLineReaderV2"),
    ("WholeFileReader", "WholeFileReaderV2"),
];

/// The op on resources that does what an op on handles of strings does.
pub(super) fn resource_twin(op: &str) -> Option<&'static str> {
    let index = OPS.binary_search_by_key(&op, |(name, _)| name).ok()?;
    Some(OPS[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::{
        DType,
        op::{ArgKind, ArgType},
        ops, registry,
    };

    #[test]
    fn the_ops_are_sorted() {
        assert!(OPS.is_sorted());
    }

    /// Arguments and attributes of both ops go by the same names, in the same order.
    #[test]
    fn twins_have_the_same_interface() {
        for (old, new) in OPS {
            let (old, new) = (ops::interface(old).unwrap(), registry::find(new).unwrap());
            assert_eq!(old.inputs.len(), new.inputs.len(), "{}", old.name);
            assert!(old.outputs.len() <= new.outputs.len(), "{}", old.name);
            assert!(old.attrs.iter().all(|attr| new.attr(attr.name).is_some()), "{}", old.name);
            for (old_arg, new_arg) in old.inputs.iter().zip(new.inputs) {
                let is_handle =
                    matches!(new_arg.kind, ArgKind::One(ArgType::Fixed(DType::Resource)));
                assert!(is_handle || old_arg.name == new_arg.name, "{}", old.name);
            }
        }
    }
}

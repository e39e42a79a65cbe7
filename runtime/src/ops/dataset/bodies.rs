//! The ops of data sets, and what their calls have in common.

use super::{
    Dataset, DatasetNode, DatasetSource, ElementSpec, batch, cache, choose, combine, compress,
    consume, depth_in, example, flat, generator, group, iterator, iterator_state, map, map_defun,
    multi_device, node, options, pad, rebatch, replicas, sampling, select, shuffle, source, sparse,
    sparse_slices, string_handle, unique, window,
};
use crate::{
    eager_tensor::Results,
    error::Result,
    ops::{RuntimeCall, RuntimeOpBody, one},
    variant,
};
use ferroflow_ir::{Error as IrError, HostTensor};
use std::sync::Arc;

impl RuntimeCall<'_> {
    /// The data set in input `index`.
    pub(super) fn input_dataset(&self, index: usize) -> Result<Dataset> {
        Ok(variant::value::<Dataset>(self.host(index)?, "a data set")?.clone())
    }

    /// The number in scalar input `index`.
    pub(super) fn integer(&self, index: usize) -> Result<i64> {
        self.integer_named(index, "input")
    }

    /// The number in scalar input `index`, of this name.
    pub(super) fn integer_named(&self, index: usize, name: &'static str) -> Result<i64> {
        match self.host(index)?.to_i64s()?.as_slice() {
            [number] => Ok(*number),
            _ => {
                let found = self.host(index)?.shape();
                Err(IrError::argument(self.op.name, name, "a scalar", found).into())
            }
        }
    }

    /// The number in scalar input `index`, of this name, which must be at least 1.
    pub(super) fn count(&self, index: usize, name: &'static str) -> Result<usize> {
        let number = self.integer_named(index, name)?;
        let count = usize::try_from(number).ok().filter(|count| *count > 0);
        count.ok_or_else(|| IrError::argument(self.op.name, name, "greater than 0", number).into())
    }

    /// All inputs.
    pub(super) fn tensors(&self) -> Result<Vec<HostTensor>> {
        self.inputs.iter().map(|input| Ok(input.host()?.clone())).collect()
    }

    /// Checks input `index` if the op has one for the number of calls at a time, which changes
    /// nothing here. -1 stands for any.
    pub(super) fn check_parallel_calls(&self, index: usize, limit: i64) -> Result<()> {
        let name = "num_parallel_calls";
        if !self.op.inputs.iter().any(|input| input.name == name) {
            return Ok(());
        }
        match self.integer_named(index, name)? {
            n if n == -1 || (1..=limit).contains(&n) => Ok(()),
            n => {
                let expected = format!("-1, or from 1 to {limit}");
                Err(IrError::argument(self.op.name, name, expected, n).into())
            }
        }
    }

    /// Dtypes and shapes of the elements that the call tells.
    pub(super) fn signature(&self) -> Result<ElementSpec> {
        let dtypes = self.attrs.types("output_types")?.to_vec();
        let shapes = self.attrs.shapes("output_shapes")?.to_vec();
        if shapes.len() != dtypes.len() {
            let expected = format!("{} shapes", dtypes.len());
            let (op, found) = (self.op.name, shapes.len());
            return Err(IrError::argument(op, "output_shapes", expected, found).into());
        }
        Ok(ElementSpec { dtypes, shapes })
    }

    /// The result of a call that makes a data set of its inputs.
    ///
    /// # Errors
    ///
    /// [`IrError::Limit`] when data sets would nest too deep.
    pub(super) fn dataset(&self, source: impl DatasetSource) -> Result<Results> {
        self.dataset_of(Arc::new(source))
    }

    fn dataset_of(&self, source: Arc<dyn DatasetSource>) -> Result<Results> {
        let inputs = self.inputs.iter().filter_map(|input| input.host().ok());
        let depth = inputs.map(depth_in).max().unwrap_or(0);
        let limit = self.context().limits().call_depth;
        if depth > limit {
            let (what, needed) = ("data sets in each other".into(), depth.to_string());
            return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
        }
        let node = Some(Arc::new(DatasetNode::of(self)?));
        one(variant::scalar(Dataset { source, depth, node }))
    }
}

/// A data set as that of input 0: what the op changes is how TensorFlow runs it.
pub(super) fn identity(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.dataset_of(call.input_dataset(0)?.source)
}

/// The data set of input 0 itself.
fn same(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.input_dataset(0)?;
    one(call.taken(0)?)
}

pub(in crate::ops) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("AnonymousIterator", iterator::anonymous),
    ("AnonymousIteratorV2", iterator::anonymous),
    ("AnonymousIteratorV3", iterator::anonymous),
    ("AnonymousMemoryCache", cache::anonymous),
    ("AnonymousMultiDeviceIterator", multi_device::anonymous),
    ("AnonymousMultiDeviceIteratorV3", multi_device::anonymous),
    ("AnonymousRandomSeedGenerator", shuffle::anonymous_generator),
    ("AnonymousSeedGenerator", shuffle::anonymous_generator),
    ("AssertCardinalityDataset", select::assert_cardinality),
    ("AssertNextDataset", identity),
    ("AssertPrevDataset", identity),
    ("AutoShardDataset", replicas::auto_shard),
    ("BatchDataset", batch::batch),
    ("BatchDatasetV2", batch::batch),
    ("BytesProducedStatsDataset", identity),
    ("CacheDataset", cache::cache),
    ("CacheDatasetV2", cache::cache),
    ("ChooseFastestBranchDataset", choose::fastest_branch),
    ("ChooseFastestDataset", identity),
    ("CompressElement", compress::compress),
    ("ComputeBatchSize", node::batch_size),
    ("ConcatenateDataset", combine::concatenate),
    ("DatasetCardinality", consume::cardinality),
    ("DatasetToSingleElement", consume::single_element),
    ("DeleteIterator", iterator::delete),
    ("DeleteMemoryCache", iterator::delete),
    ("DeleteMultiDeviceIterator", iterator::delete),
    ("DeleteRandomSeedGenerator", iterator::delete),
    ("DeleteSeedGenerator", iterator::delete),
    ("DenseToSparseBatchDataset", sparse::dense_to_sparse),
    ("DeserializeIterator", iterator_state::restore),
    ("DirectedInterleaveDataset", choose::directed_interleave),
    ("DummyMemoryCache", iterator::dummy),
    ("DummySeedGenerator", iterator::dummy),
    ("ExperimentalAssertNextDataset", identity),
    ("ExperimentalAutoShardDataset", replicas::auto_shard),
    ("ExperimentalBytesProducedStatsDataset", identity),
    ("ExperimentalChooseFastestDataset", identity),
    ("ExperimentalDatasetCardinality", consume::cardinality),
    ("ExperimentalDenseToSparseBatchDataset", sparse::dense_to_sparse),
    ("ExperimentalDirectedInterleaveDataset", choose::directed_interleave),
    ("ExperimentalGroupByReducerDataset", group::group_by_reducer),
    ("ExperimentalGroupByWindowDataset", group::group_by_window),
    ("ExperimentalIgnoreErrorsDataset", select::ignore_errors),
    ("ExperimentalIteratorGetDevice", iterator::device),
    ("ExperimentalLatencyStatsDataset", identity),
    ("ExperimentalMapAndBatchDataset", batch::map_and_batch),
    ("ExperimentalMapDataset", map::map),
    ("ExperimentalMatchingFilesDataset", source::matching_files),
    ("ExperimentalMaxIntraOpParallelismDataset", identity),
    ("ExperimentalNonSerializableDataset", identity),
    ("ExperimentalParallelInterleaveDataset", flat::interleave),
    ("ExperimentalParseExampleDataset", example::parse),
    ("ExperimentalPrivateThreadPoolDataset", identity),
    ("ExperimentalRandomDataset", shuffle::random),
    ("ExperimentalRebatchDataset", replicas::rebatch),
    ("ExperimentalScanDataset", map::scan),
    ("ExperimentalSetStatsAggregatorDataset", identity),
    ("ExperimentalSleepDataset", identity),
    ("ExperimentalSlidingWindowDataset", window::sliding),
    ("ExperimentalStatsAggregatorHandle", iterator::placeholder),
    ("ExperimentalTakeWhileDataset", map::take_while),
    ("ExperimentalThreadPoolDataset", identity),
    ("ExperimentalThreadPoolHandle", iterator::thread_pool),
    ("ExperimentalUnbatchDataset", rebatch::unbatch),
    ("ExperimentalUniqueDataset", unique::unique),
    ("FilterDataset", map::filter),
    ("FinalizeDataset", identity),
    ("FlatMapDataset", flat::flat_map),
    ("GeneratorDataset", generator::generator),
    ("GetOptions", options::get),
    ("GetElementAtIndex", consume::element_at),
    ("GroupByReducerDataset", group::group_by_reducer),
    ("GroupByWindowDataset", group::group_by_window),
    ("IgnoreErrorsDataset", select::ignore_errors),
    ("InitializeTableFromDataset", consume::initialize_table),
    ("InterleaveDataset", flat::interleave),
    ("Iterator", iterator::named),
    ("IteratorFromStringHandle", string_handle::iterator),
    ("IteratorFromStringHandleV2", string_handle::iterator),
    ("IteratorGetDevice", iterator::device),
    ("IteratorGetNext", iterator::get_next),
    ("IteratorGetNextAsOptional", iterator::get_next_as_optional),
    ("IteratorGetNextSync", iterator::get_next),
    ("IteratorToStringHandle", string_handle::of_resource),
    ("IteratorV2", iterator::named),
    ("LatencyStatsDataset", identity),
    ("LegacyParallelInterleaveDatasetV2", flat::interleave),
    ("ListDataset", source::list),
    ("MakeIterator", iterator::make),
    ("MapAndBatchDataset", batch::map_and_batch),
    ("MapDataset", map::map),
    ("MapDefun", map_defun::map_defun),
    ("MatchingFilesDataset", source::matching_files),
    ("MaxIntraOpParallelismDataset", identity),
    ("ModelDataset", identity),
    ("MultiDeviceIterator", multi_device::named),
    ("MultiDeviceIteratorFromStringHandle", string_handle::multi_device_iterator),
    ("MultiDeviceIteratorGetNextFromShard", multi_device::get_next),
    ("MultiDeviceIteratorInit", multi_device::init),
    ("MultiDeviceIteratorToStringHandle", string_handle::of_resource),
    ("NonSerializableDataset", identity),
    ("OneShotIterator", iterator::one_shot),
    ("OptimizeDataset", identity),
    ("OptimizeDatasetV2", identity),
    ("OptionsDataset", identity),
    ("PaddedBatchDataset", pad::padded_batch),
    ("PaddedBatchDatasetV2", pad::padded_batch),
    ("ParallelBatchDataset", batch::batch),
    ("ParallelFilterDataset", map::filter),
    ("ParallelInterleaveDataset", flat::interleave),
    ("ParallelInterleaveDatasetV2", flat::interleave),
    ("ParallelInterleaveDatasetV3", flat::interleave),
    ("ParallelInterleaveDatasetV4", flat::interleave),
    ("ParallelMapDataset", map::map),
    ("ParallelMapDatasetV2", map::map),
    ("ParseExampleDataset", example::parse),
    ("ParseExampleDatasetV2", example::parse),
    ("PrefetchDataset", identity),
    ("PrivateThreadPoolDataset", identity),
    ("RandomDataset", shuffle::random),
    ("RandomDatasetV2", shuffle::random),
    ("RangeDataset", source::range),
    ("RebatchDataset", replicas::rebatch),
    ("RebatchDatasetV2", rebatch::rebatch),
    ("ReduceDataset", consume::reduce),
    ("RepeatDataset", combine::repeat),
    ("RewriteDataset", identity),
    ("SamplingDataset", sampling::sample),
    ("ScanDataset", map::scan),
    ("SerializeIterator", iterator_state::save),
    ("SetStatsAggregatorDataset", identity),
    ("ShardDataset", select::shard),
    ("ShuffleAndRepeatDataset", shuffle::shuffle_and_repeat),
    ("ShuffleAndRepeatDatasetV2", shuffle::shuffle_and_repeat),
    ("ShuffleDataset", shuffle::shuffle),
    ("ShuffleDatasetV2", shuffle::shuffle_by_generator),
    ("ShuffleDatasetV3", shuffle::shuffle),
    ("SkipDataset", select::skip),
    ("SleepDataset", identity),
    ("SlidingWindowDataset", window::sliding),
    ("SparseTensorSliceDataset", sparse_slices::sparse_slices),
    ("StatsAggregatorHandle", iterator::placeholder),
    ("StatsAggregatorHandleV2", iterator::placeholder),
    ("TakeDataset", select::take),
    ("TakeWhileDataset", map::take_while),
    ("TensorDataset", source::tensor),
    ("TensorSliceDataset", source::slices),
    ("ThreadPoolDataset", identity),
    ("ThreadPoolHandle", iterator::thread_pool),
    ("UnbatchDataset", rebatch::unbatch),
    ("UncompressElement", compress::uncompress),
    ("UniqueDataset", unique::unique),
    ("UnwrapDatasetVariant", same),
    ("WindowDataset", window::window),
    ("WindowOp", window::of_tensors),
    ("WrapDatasetVariant", same),
    ("ZipDataset", combine::zip),
];

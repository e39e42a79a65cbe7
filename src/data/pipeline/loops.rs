//! Pipelines in functions and loops: `for item in &pipeline`.

use super::{DataPipeline, PipelineItems};
use ferroflow_tracer::{
    Error, GraphDataset, Nest, NestedValue, Result, autograph::DatasetElements, custom,
};

/// An argument of functions that goes by its identity: each pipeline makes a trace of its own.
impl<T: 'static> Nest for DataPipeline<T> {
    fn to_value(&self) -> NestedValue {
        NestedValue::Custom(custom::by_identity(&self.0))
    }

    fn from_value(value: NestedValue) -> Result<DataPipeline<T>> {
        custom::object(&value).map(DataPipeline)
    }
}

/// The items of the first epoch.
///
/// ```
/// use ferroflow::data::DataPipeline;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut sum = 0;
/// for item in &DataPipeline::of(vec![1, 2, 3]) {
///     sum += item?;
/// }
/// assert_eq!(sum, 6);
/// # Ok(())
/// # }
/// ```
impl<T: Send + 'static> IntoIterator for &DataPipeline<T> {
    type Item = super::Result<T>;
    type IntoIter = PipelineItems<T>;

    fn into_iter(self) -> PipelineItems<T> {
        self.epoch(0)
    }
}

/// The items of the first epoch, in functions, where the loop is part of the graph: each run of it
/// makes them anew. [`repeat`](DataPipeline::repeat) makes several epochs one.
///
/// ```
/// use ferroflow::{Tensor, data::{DataPipeline, Example}, function, tracer::Result};
///
/// #[function]
/// fn total(data: &DataPipeline<Example>, scale: &Tensor) -> Result<Tensor> {
///     let mut total = Tensor::from(0.0f32);
///     for batch in data {
///         total += batch[0].sum_all()? * scale;
///     }
///     Ok(total)
/// }
///
/// # fn main() -> Result<()> {
/// let numbers = DataPipeline::of((0..100).collect::<Vec<i32>>());
/// let batches = numbers.map(|n| vec![Tensor::from(n as f32)]).shuffle(50, 3).batch(8, false);
/// assert_eq!(total(&batches, &Tensor::from(1.0f32))?.to_scalar::<f32>()?, 4950.0);
/// assert_eq!(total(&batches, &Tensor::from(2.0f32))?.to_scalar::<f32>()?, 9900.0);
/// assert_eq!(total::tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
impl<T: Nest + Send + 'static> GraphDataset for DataPipeline<T> {
    type Element = T;

    fn elements(&self) -> DatasetElements<T> {
        Box::new(self.epoch(0).map(|item| item.map_err(Error::host)))
    }
}

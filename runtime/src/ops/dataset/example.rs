//! Data sets of the features in `tf.Example`s.

use super::{Cardinality, Components, Dataset, DatasetSource, Stream};
use crate::{
    EagerTensor, eager_tensor::Results, error::Result, execute::execute, ops::RuntimeCall,
    scope::Scope, variant::ragged::Ragged,
};
use bytes::Bytes;
use ferroflow_ir::{Attrs, DType, Error as IrError, Handle, HostTensor, Shape};
use std::{collections::BTreeMap, sync::Arc};

/// Features to read: the call of `ParseExampleV2` but for the examples.
#[derive(Debug, Clone)]
struct WantedFeatures {
    attrs: Attrs,
    /// The inputs after the examples.
    inputs: Vec<EagerTensor>,
    /// The numbers of sparse, dense and ragged features.
    counts: [usize; 3],
    /// The position of each feature, in this order, among the components.
    places: Vec<usize>,
}

#[derive(Debug)]
struct ParseExamples {
    input: Dataset,
    op: &'static str,
    features: Arc<WantedFeatures>,
}

impl DatasetSource for ParseExamples {
    fn stream(&self) -> Stream {
        let (mut input, op, features) = (self.input.stream(), self.op, self.features.clone());
        Stream::new(move |scope| {
            let Some(element) = input.next(scope)? else { return Ok(None) };
            match element.as_slice() {
                [examples] => features.read(scope, examples).map(Some),
                other => {
                    let (expected, found) = ("of one component", other.len());
                    Err(IrError::argument(op, "element", expected, found).into())
                }
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

impl WantedFeatures {
    /// The components of some examples, in the order of the names of features.
    fn read(&self, scope: Scope<'_>, examples: &HostTensor) -> Result<Components> {
        let names = HostTensor::from_strings(Shape::new([0])?, Vec::new())?;
        let inputs: Vec<EagerTensor> =
            [examples.clone(), names].into_iter().map(EagerTensor::from).collect();
        let inputs = [inputs, self.inputs.clone()].concat();
        let found = execute(scope.context, "ParseExampleV2", self.attrs.clone(), &inputs)?;
        let found: Components =
            found.into_iter().map(EagerTensor::into_host).collect::<Result<_>>()?;
        let [n_sparse, n_dense, n_ragged] = self.counts;
        let (sparse, rest) = found.split_at(3 * n_sparse);
        let (dense, ragged) = rest.split_at(n_dense);
        let mut features = Vec::with_capacity(self.places.len());
        for feature in 0..n_sparse {
            let parts = [0, 1, 2].map(|part| sparse[part * n_sparse + feature].clone());
            let parts = parts.map(|part| Arc::new(part) as Arc<dyn Handle>).to_vec();
            features.push(HostTensor::from_handles(DType::Variant, Shape::new([3])?, parts)?);
        }
        features.extend_from_slice(dense);
        for feature in 0..n_ragged {
            let splits = ragged[n_ragged + feature].to_i64s()?;
            let whole = Ragged::new(vec![splits], ragged[feature].clone())?;
            features.push(crate::variant::scalar(whole));
        }
        let placed: BTreeMap<usize, HostTensor> =
            self.places.iter().copied().zip(features).collect();
        Ok(placed.into_values().collect())
    }
}

pub(super) fn parse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.check_parallel_calls(1, i64::MAX)?;
    let attrs = call.attrs;
    let keys = |name: &str| -> Result<Vec<Bytes>> {
        match attrs.get(name) {
            Some(_) => Ok(attrs.strings(name)?.to_vec()),
            None => Ok(Vec::new()),
        }
    };
    let types = |name: &str| match attrs.get(name) {
        Some(_) => attrs.types(name).map(<[DType]>::to_vec),
        None => Ok(Vec::new()),
    };
    let keys = [keys("sparse_keys")?, keys("dense_keys")?, keys("ragged_keys")?];
    let (sparse_types, ragged_types) = (types("sparse_types")?, types("ragged_value_types")?);
    let counts = [keys[0].len(), keys[1].len(), keys[2].len()];
    if sparse_types.len() != counts[0] || ragged_types.len() != counts[2] {
        let (expected, found) = ("as many as there are types", format!("{counts:?}"));
        return Err(IrError::argument(call.op.name, "keys", expected, found).into());
    }
    let mut sorted: Vec<&Bytes> = keys.iter().flatten().collect();
    sorted.sort();
    let component_indices =
        keys.iter().flatten().map(|key| sorted.partition_point(|other| *other < key));
    let component_indices = component_indices.collect();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let found = format!("{:?}", twice[0]);
        return Err(IrError::argument(call.op.name, "keys", "different", found).into());
    }
    let mut inputs: Vec<EagerTensor> = Vec::new();
    for own in &keys {
        let n = Shape::new([own.len()])?;
        inputs.push(HostTensor::from_strings(n, own.clone())?.into());
    }
    inputs.extend(call.tensors()?.into_iter().skip(2).map(EagerTensor::from));
    let own = Attrs::new()
        .with("num_sparse", counts[0] as i64)
        .with("sparse_types", sparse_types)
        .with("Tdense", types("Tdense")?)
        .with(
            "dense_shapes",
            ferroflow_ir::AttrValue::Shapes(attrs.shapes("dense_shapes")?.to_vec()),
        )
        .with("ragged_value_types", ragged_types)
        .with("ragged_split_types", types("ragged_split_types")?);
    let features =
        Arc::new(WantedFeatures { attrs: own, inputs, counts, places: component_indices });
    call.dataset(ParseExamples { input: call.input_dataset(0)?, op: call.op.name, features })
}

//! Variables that count or remember and are not trained.

use ferroflow_ir::{DType, HostTensor, Shape};
use ferroflow_runtime::collective::Replica;
use ferroflow_tracer::{
    Result, Tensor, Variable, VariableOptions,
    distribute::{VariableAggregation, VariableSynchronization},
    init_scope,
};

/// A variable that is no weight, made outside all traces.
pub(crate) fn state(name: &str, initial: Tensor) -> Result<Variable> {
    let options =
        VariableOptions { name: name.into(), trainable: false, ..VariableOptions::default() };
    init_scope(|| Replica::outside(|| Variable::with_options(initial, options)))
}

/// A sum that begins with zeros; replicas of a strategy have one each, of which the sum is read.
pub(crate) fn sum_state(name: &str, shape: &[usize]) -> Result<Variable> {
    sum_of(name, shape, DType::F32)
}

/// As [`sum_state`], of another dtype.
pub(crate) fn sum_of(name: &str, shape: &[usize], dtype: DType) -> Result<Variable> {
    let options = VariableOptions {
        name: name.into(),
        trainable: false,
        synchronization: VariableSynchronization::OnRead,
        aggregation: VariableAggregation::Sum,
        ..VariableOptions::default()
    };
    init_scope(|| {
        let zeros = HostTensor::zeros(dtype, Shape::new(shape.iter().copied())?)?;
        Variable::with_options(Tensor::from(zeros), options)
    })
}

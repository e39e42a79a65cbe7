//! Assignments of variables by replicas.

use super::{Annotations, ReduceOp, VariableAggregation, VariableSynchronization, replica_context};
use crate::{
    error::{Error, Result},
    ops::IntoOperand,
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_runtime::collective::Replica;
use std::borrow::Borrow;

impl Variable {
    /// The value that a replica assigns, of those that all replicas bring: assignments of variables
    /// that are not synchronised when they are read give every replica the same value.
    #[track_caller]
    pub(crate) fn synchronized(&self, value: impl IntoOperand) -> Result<Tensor> {
        let value = Borrow::borrow(&value.into_operand(self.dtype())?).clone();
        let is_asked = |r: &Replica| r.engine.size() > 1 && !r.is_updating;
        let Annotations { synchronization, aggregation } = self.annotations();
        let is_own = matches!(
            synchronization,
            VariableSynchronization::OnRead | VariableSynchronization::None
        );
        if is_own || !Replica::with_current(is_asked).unwrap_or(false) {
            return Ok(value);
        }
        let replica = replica_context()?;
        match aggregation {
            VariableAggregation::Sum => replica.all_reduce(ReduceOp::Sum, &value),
            VariableAggregation::Mean => replica.all_reduce(ReduceOp::Mean, &value),
            VariableAggregation::OnlyFirstReplica => replica.broadcast(&value),
            VariableAggregation::None => {
                let what = format!("assigning to variable `{}`", self.name());
                let reason = "replicas may bring different values, and it says no aggregation";
                Err(Error::Replica { what, reason })
            }
        }
    }
}

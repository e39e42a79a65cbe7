//! The side of one replica: its number, and what it computes with the others.

use super::bucket;
use crate::{
    context,
    error::{Error, Result},
    gradients::TensorGradient,
    ops::{self, NamedOp, one},
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_ir::{Attrs, DType, ops::names};
use ferroflow_runtime::collective::{Replica, WORLD};

/// Ways in which values of replicas are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Their sum.
    Sum,
    /// Their mean; integers are divided towards zero.
    Mean,
}

/// View of the other replicas from the code in a replica.
#[derive(Debug)]
pub struct ReplicaContext(Replica);

/// The replica that this thread runs.
///
/// # Errors
///
/// [`Error::Replica`] outside [`Strategy::run`](super::Strategy::run).
pub fn replica_context() -> Result<ReplicaContext> {
    let outside = || Error::Replica {
        what: "asking for the context of a replica".into(),
        reason: "this thread runs none; there is one in what `Strategy::run` calls",
    };
    Replica::current().map(ReplicaContext).ok_or_else(outside)
}

impl ReplicaContext {
    /// The replica's number among all.
    pub fn replica_id_in_sync_group(&self) -> usize {
        self.0.engine.rank()
    }

    /// The number of replicas.
    pub fn num_replicas_in_sync(&self) -> usize {
        self.0.engine.size()
    }

    /// The device that the replica runs on.
    pub fn device(&self) -> &str {
        &self.0.device
    }

    /// The size of the buckets in which gradients travel, if they do.
    pub(super) fn bucket_bytes(&self) -> Option<usize> {
        self.0.engine.bucket_bytes()
    }

    /// Size, key and instance of a call in the group of all replicas, as ops take them. A function takes
    /// the instance when it runs, so that replicas meet whenever they were traced.
    fn keys(&self) -> Result<[Tensor; 3]> {
        static KEY: NamedOp = NamedOp::new(names::COLLECTIVE_KEY);
        let size = i32::try_from(self.num_replicas_in_sync()).unwrap_or(i32::MAX);
        let instance = match context::is_tracing() {
            true => one(&KEY, Attrs::new(), &[])?,
            false => self.0.take_key().into(),
        };
        Ok([size.into(), WORLD.into(), instance])
    }

    /// The reduction of the tensors that all replicas bring. Gradients go through it.
    ///
    /// # Errors
    ///
    /// When replicas do not come, or come with other dtypes or shapes.
    #[track_caller]
    pub fn all_reduce(&self, op: ReduceOp, tensor: &Tensor) -> Result<Tensor> {
        let last = match op {
            ReduceOp::Sum => "Id",
            ReduceOp::Mean => "Div",
        };
        let [size, group, instance] = self.keys()?;
        ops::collective_reduce_v2(tensor, &size, &group, &instance, &[], "Add", last)
    }

    /// The tensors that all replicas bring, joined along the first dimension. Gradients go through it.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](ReplicaContext::all_reduce).
    #[track_caller]
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Tensor> {
        let [size, group, instance] = self.keys()?;
        ops::collective_gather_v2(tensor, &size, &group, &instance, &[])
    }

    /// The tensor of the first replica.
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](ReplicaContext::all_reduce).
    #[track_caller]
    pub(crate) fn broadcast(&self, tensor: &Tensor) -> Result<Tensor> {
        let [size, group, instance] = self.keys()?;
        if self.replica_id_in_sync_group() == 0 {
            return ops::collective_bcast_send_v2(tensor, &size, &group, &instance);
        }
        let shape = ops::shape_with(tensor, &ops::ShapeAttrs { out_type: DType::I32 })?;
        ops::collective_bcast_recv_v2(&size, &group, &instance, &shape, tensor.dtype())
    }
}

/// The sums of gradients over all replicas; outside replicas the gradients themselves. `state` is what
/// they step, which must have a value for each replica.
///
/// # Errors
///
/// [`Error::Replica`] for a variable that was made outside the scope of the strategy.
#[track_caller]
pub fn sum_gradients<'a>(
    gradients: Vec<TensorGradient>,
    state: impl IntoIterator<Item = &'a Variable>,
) -> Result<Vec<TensorGradient>> {
    let Some(replica) = Replica::current().filter(|replica| replica.engine.size() > 1) else {
        return Ok(gradients);
    };
    for variable in state {
        if variable.owned()?.n_components() != replica.n_components {
            let what = format!("stepping variable `{}` in a replica", variable.name());
            let reason =
                "it was made outside the scope of the strategy, so replicas share its value";
            return Err(Error::Replica { what, reason });
        }
    }
    let context = ReplicaContext(replica);
    let gradients = gradients.into_iter().map(TensorGradient::dense).collect::<Result<Vec<_>>>()?;
    let sums = bucket::sums(&context, gradients)?;
    Ok(sums.into_iter().map(TensorGradient::Dense).collect())
}

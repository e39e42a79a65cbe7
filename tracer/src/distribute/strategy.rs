//! Strategies: which replicas there are, and the calls that run in all of them.

use super::{Batch, Distributed, PerReplica, ReduceOp, data::shares, replica_context};
use crate::{
    context,
    control_flow::{
        stage::{RegionTrace, replicate},
        structure::{tensors, with_tensors},
    },
    error::{Error, Result},
    nest::Nest,
    ops,
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::device_name::DeviceName;
use ferroflow_runtime::{
    Context, Resource, ResourceHandle,
    collective::{Engine, Replica, Replicas, agree_on_variables, run_replicas},
    mirrored::mirror_variables,
};
use std::{fmt, ops::Deref, panic::Location, sync::Arc};

/// Replicas of a program, in threads of this process and perhaps in other processes. Clones are the
/// same strategy.
#[derive(Clone)]
pub struct Strategy(Arc<Inner>);

struct Inner {
    context: Context,
    replicas: Arc<Replicas>,
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<strategy of {} replicas on {:?}>", self.num_replicas_in_sync(), self.devices())
    }
}

/// A replica on each of some devices of this process, with variables mirrored on all of them.
#[derive(Debug, Clone)]
pub struct MirroredStrategy(Strategy);

/// A single replica on a single device.
#[derive(Debug, Clone)]
pub struct OneDeviceStrategy(Strategy);

impl Deref for MirroredStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.0
    }
}

impl Deref for OneDeviceStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.0
    }
}

impl MirroredStrategy {
    /// A replica on each of these devices of the context at hand, such as `CPU:0` and `CPU:1` where
    /// [`logical_cpus`](ferroflow_runtime::ContextOptions::logical_cpus) says that there are two.
    ///
    /// # Errors
    ///
    /// When there is no device of a name, a name is there twice, or there is none.
    pub fn new<D: AsRef<str>>(devices: impl IntoIterator<Item = D>) -> Result<MirroredStrategy> {
        Ok(MirroredStrategy(Strategy::on(devices, None)?))
    }
}

impl OneDeviceStrategy {
    /// A single replica on this device of the current context.
    ///
    /// # Errors
    ///
    /// When there is no such device.
    pub fn new(device: &str) -> Result<OneDeviceStrategy> {
        Ok(OneDeviceStrategy(Strategy::on([device], None)?))
    }
}

impl Strategy {
    /// A single replica on a device of this process that meets those of other processes by
    /// `engine`.
    ///
    /// # Errors
    ///
    /// When there is no such device.
    pub fn with_engine(device: &str, engine: Arc<dyn Engine>) -> Result<Strategy> {
        Strategy::on([device], Some(engine))
    }

    fn on<D: AsRef<str>>(
        devices: impl IntoIterator<Item = D>,
        engine: Option<Arc<dyn Engine>>,
    ) -> Result<Strategy> {
        let context = context::context();
        let mut names: Vec<Arc<str>> = Vec::new();
        for device in devices {
            let name: DeviceName = device.as_ref().parse()?;
            context.check_device(&name)?;
            let kind = name.kind.as_deref().unwrap_or("CPU");
            let name = DeviceName::local(kind, name.index.unwrap_or(0)).to_string();
            if names.iter().any(|known| **known == *name) {
                let (expected, found) = ("devices of different names".into(), name);
                return Err(Error::Conversion { expected, found });
            }
            names.push(name.into());
        }
        if names.is_empty() {
            let (expected, found) = ("one device or more".into(), "none".into());
            return Err(Error::Conversion { expected, found });
        }
        let replicas = Arc::new(Replicas::new(names, engine));
        Ok(Strategy(Arc::new(Inner { context, replicas })))
    }

    /// The number of all replicas.
    pub fn num_replicas_in_sync(&self) -> usize {
        let engine = self.0.replicas.engine();
        engine.map_or(self.devices().len(), |engine| engine.size())
    }

    /// The number of replicas in this process.
    pub fn num_local_replicas(&self) -> usize {
        self.devices().len()
    }

    /// The devices of the replicas of this process.
    pub fn devices(&self) -> &[Arc<str>] {
        self.0.replicas.devices()
    }

    /// Runs `body` with variables mirrored: those it makes, and those of models it loads, get a
    /// value for each replica. Variables that it makes begin with the value that they have in the first
    /// process; all processes must make the same ones, in one order.
    pub fn scope<R>(&self, body: impl FnOnce() -> R) -> R {
        let _context = context::enter(&self.0.context);
        let _mirrored = mirror_variables(self.devices().len());
        agree_on_variables(&self.0.context, &self.0.replicas, body)
    }

    /// Calls `step` in each replica of this process, with the value for it, and returns what all of
    /// them return. Calls of `#[function]`s and of loaded functions in it run in the replica. While
    /// a function is traced, the step is traced for each replica, and the call is a node of the
    /// function.
    ///
    /// # Errors
    ///
    /// The first error of a replica that is not about another one; [`Error::PerReplica`] when there
    /// are not as many values as replicas; [`Error::Replica`] in a replica.
    #[track_caller]
    pub fn run<A, R>(
        &self,
        values: &PerReplica<A>,
        step: impl Fn(A) -> Result<R> + Sync,
    ) -> Result<PerReplica<R>>
    where
        A: Clone + Send + Sync,
        R: Nest + Send,
    {
        values.check(self.devices().len())?;
        if Replica::current().is_some() {
            let what = "running a step in replicas".to_string();
            return Err(Error::Replica { what, reason: "this is a replica already" });
        }
        if context::is_tracing() {
            return self.stage(values, step, Location::caller());
        }
        let values = values.values();
        let run = |replica: usize| {
            let _context = context::enter(&self.0.context);
            let _mirrored = mirror_variables(self.devices().len());
            context::device(&self.devices()[replica], || step(values[replica].clone()))
        };
        Ok(PerReplica::new(run_replicas(self.0.replicas.for_step(), run, in_runtime)?))
    }

    /// Traces the step for each replica, and makes a node of the call.
    fn stage<A: Clone, R: Nest>(
        &self,
        values: &PerReplica<A>,
        step: impl Fn(A) -> Result<R>,
        location: &'static Location<'static>,
    ) -> Result<PerReplica<R>> {
        let (mut parts, mut results) = (Vec::new(), Vec::new());
        for (replica, value) in self.0.replicas.for_step().into_iter().zip(values.values()) {
            let part = RegionTrace::open("replica")?;
            let _mirrored = mirror_variables(self.devices().len());
            let _replica = replica.enter();
            let result = step(value.clone())?.to_value();
            parts.push(part.close(tensors(&result))?);
            results.push(result);
        }
        let replicas: Arc<dyn Resource> = self.0.replicas.clone();
        let handle = ResourceHandle::owning("strategy", replicas).to_tensor().into();
        let mut outputs = replicate(&handle, &parts, location)?.into_iter();
        let result = |result: &NestedValue| R::from_value(with_tensors(result, &mut outputs));
        Ok(PerReplica::new(results.iter().map(result).collect::<Result<Vec<R>>>()?))
    }

    /// The reduction of a tensor of each replica, those of other processes too.
    ///
    /// # Errors
    ///
    /// When dtypes or shapes differ; as [`run`](Strategy::run).
    pub fn reduce(&self, op: ReduceOp, values: &PerReplica<Tensor>) -> Result<Tensor> {
        let reduced = self.run(values, |value| replica_context()?.all_reduce(op, &value))?;
        first(reduced)
    }

    /// The tensors of all replicas of this process, joined along an axis; they may differ in their
    /// sizes there. With other processes, tensors are joined along the first axis and have one
    /// shape.
    ///
    /// # Errors
    ///
    /// When they differ in another axis; as [`run`](Strategy::run).
    pub fn gather(&self, values: &PerReplica<Tensor>, axis: i32) -> Result<Tensor> {
        values.check(self.devices().len())?;
        if self.0.replicas.engine().is_none() {
            let values: Vec<&Tensor> = values.values().iter().collect();
            return ops::concat_v2(&values, &Tensor::from(axis));
        }
        if axis != 0 {
            let (expected, found) = ("axis 0 across processes".into(), format!("axis {axis}"));
            return Err(Error::Conversion { expected, found });
        }
        first(self.run(values, |value| replica_context()?.all_gather(&value))?)
    }

    /// The value that `make` returns for the number of each replica of this process.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub fn values_from<T>(&self, make: impl FnMut(usize) -> Result<T>) -> Result<PerReplica<T>> {
        let first = self.0.replicas.engine().map_or(0, |engine| engine.rank());
        let values: Result<Vec<T>> = (first..first + self.devices().len()).map(make).collect();
        Ok(PerReplica::new(values?))
    }

    /// Global batches, of which each replica gets its part. Every process is passed the same ones.
    pub fn distribute<B: Batch, I: IntoIterator<Item = B>>(
        &self,
        batches: I,
    ) -> Distributed<I::IntoIter> {
        Distributed::new(self, batches.into_iter())
    }

    /// The parts of a global batch for the replicas of this process. Where the replicas do not
    /// share it evenly, the first ones have an example more.
    ///
    /// # Errors
    ///
    /// Those of [`Batch`].
    pub fn split<B: Batch>(&self, batch: &B) -> Result<PerReplica<B>> {
        let shares = shares(batch.rows()?, self.num_replicas_in_sync());
        self.values_from(|rank| batch.part(shares[rank].clone()))
    }
}

fn first<T>(values: PerReplica<T>) -> Result<T> {
    let none = || Error::PerReplica { replicas: 1, found: 0 };
    values.into_values().into_iter().next().ok_or_else(none)
}

/// The error of the runtime behind an error.
fn in_runtime(error: &Error) -> Option<&ferroflow_runtime::Error> {
    match error {
        Error::Runtime(error) => Some(error),
        _ => None,
    }
}

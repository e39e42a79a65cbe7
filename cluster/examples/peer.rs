//! A task of the cluster that the environment says: computes with the others by each kind of collective.
//!
//! ```text
//! TF_CONFIG=… cargo run -p ferroflow-cluster --example peer
//! ```
//!
//! It prints the results, which are the same in all tasks, TensorFlow's among them
//! (`cluster/tests/tensorflow/worker.py`). The keys of reductions count from 100 on, with each call, as TensorFlow's
//! strategies number collectives when their functions are called; the others have keys of their own.

use ferroflow_cluster::{ClusterConfig, ClusterWorker, JoinOptions};
use ferroflow_ir::{Attrs, DType, HostTensor, Shape};
use ferroflow_runtime::{Context, EagerTensor, collective::Replica, execute};
use std::{error::Error, sync::Arc, time::Duration};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// This task among `size`.
struct Peer {
    context: Context,
    rank: usize,
    size: usize,
}

fn main() -> Outcome {
    let options = JoinOptions { timeout: Duration::from_secs(60) };
    let worker = ClusterWorker::join(&ClusterConfig::from_env()?, &options)?;
    let engine = worker.engine();
    let peer = Peer { context: Context::new(), rank: engine.rank(), size: engine.size() };
    let _replica = Replica {
        component: 0,
        n_components: 1,
        device: "/device:CPU:0".into(),
        engine,
        next_key: Arc::default(),
        mesh: None,
        is_updating: false,
    }
    .enter();
    peer.reductions()?;
    peer.gather()?;
    for source in 0..peer.size {
        peer.broadcast(source)?;
    }
    peer.exchange()
}

impl Peer {
    /// Calls an op on a tensor in the group of all tasks.
    fn call(&self, op: &str, key: i32, tensor: HostTensor) -> Outcome<HostTensor> {
        let attrs = Attrs::new().with("timeout_seconds", 30.0f32);
        let attrs = match op {
            "CollectiveReduceV2" => attrs.with("merge_op", "Add").with("final_op", "Id"),
            _ => attrs,
        };
        let [size, group, instance] = self.keys(key);
        let inputs = [tensor.into(), size, group, instance];
        Ok(execute(&self.context, op, attrs, &inputs)?.remove(0).into_host()?)
    }

    fn keys(&self, key: i32) -> [EagerTensor; 3] {
        [self.size as i32, 1, key].map(EagerTensor::scalar)
    }

    fn print(&self, name: &str, tensor: &HostTensor) -> Outcome {
        let to = Attrs::new().with("DstT", DType::F64);
        let values = execute(&self.context, "Cast", to, &[tensor.clone().into()])?;
        let values = values[0].host()?.as_slice::<f64>()?;
        let texts: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
        println!("{name}: {}", texts.join(" "));
        Ok(())
    }

    fn reductions(&self) -> Outcome {
        for (number, length) in [1, 15, 16, 17, 1000].into_iter().enumerate() {
            let mine = HostTensor::vector(&vec![(1000 + number) as f32; length])?;
            let sum = self.call("CollectiveReduceV2", 100 + number as i32, mine)?;
            let sum = sum.as_slice::<f32>()?;
            let shown = HostTensor::vector(&[sum[0], sum[length - 1], sum.len() as f32])?;
            self.print(&format!("sum {number}"), &shown)?;
        }
        Ok(())
    }

    fn gather(&self) -> Outcome {
        let rows: Vec<f32> = (0..6).map(|i| (10 * self.rank + i / 2) as f32).collect();
        let mine = HostTensor::from_slice(Shape::new([3, 2])?, &rows)?;
        self.print("gather", &self.call("CollectiveGatherV2", 5000, mine)?)
    }

    fn broadcast(&self, source: usize) -> Outcome {
        let key = 5100 + source as i32;
        let got = if source == self.rank {
            let mine = HostTensor::vector(&[source as f64 + 0.5; 5])?;
            self.call("CollectiveBcastSendV2", key, mine)?
        } else {
            let attrs = Attrs::new().with("T", DType::F64).with("timeout_seconds", 30.0f32);
            let [size, group, instance] = self.keys(key);
            let shape = HostTensor::vector(&[5i32])?.into();
            let inputs = [size, group, instance, shape];
            execute(&self.context, "CollectiveBcastRecvV2", attrs, &inputs)?
                .remove(0)
                .into_host()?
        };
        self.print(&format!("broadcast {source}"), &got)
    }

    fn exchange(&self) -> Outcome {
        let part = |to: usize| [(100 * self.rank + to) as i64; 3];
        let parts: Vec<i64> = (0..self.size).flat_map(part).collect();
        let parts = HostTensor::from_slice(Shape::new([self.size, 3])?, &parts)?;
        let mine = self.call("CollectiveAllToAllV2", 5200, parts)?;
        self.print("exchange", &self.call("CollectiveGatherV2", 5201, mine)?)
    }
}

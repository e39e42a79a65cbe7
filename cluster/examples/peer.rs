//! A task of the cluster that the environment says: reduces vectors with the others, step by step.
//!
//! ```text
//! TF_CONFIG=… cargo run -p ferroflow-cluster --example peer -- STEPS LENGTH
//! ```
//!
//! Instance keys count from 100 on, with each call, as TensorFlow's strategies number collectives when
//! their functions are called. In step `s` the task brings `1000 + s` everywhere; it prints the sum's first and last elements.

use ferroflow_cluster::{ClusterConfig, ClusterWorker, JoinOptions};
use ferroflow_ir::{Attrs, HostTensor};
use ferroflow_runtime::{Context, EagerTensor, collective::Replica, execute};
use std::{env, error::Error, sync::Arc, time::Duration};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1).map(|arg| arg.parse::<usize>());
    let steps = args.next().ok_or("STEPS is missing")??;
    let length = args.next().ok_or("LENGTH is missing")??;
    let options = JoinOptions { timeout: Duration::from_secs(60) };
    let worker = ClusterWorker::join(&ClusterConfig::from_env()?, &options)?;
    let engine = worker.engine();
    let size = engine.size() as i32;
    let _replica = Replica {
        component: 0,
        n_components: 1,
        device: "/device:CPU:0".into(),
        engine,
        next_key: Arc::default(),
        is_updating: false,
    }
    .enter();
    let context = Context::new();
    for step in 0..steps {
        let mine = HostTensor::vector(&vec![(1000 + step) as f32; length])?;
        let attrs = Attrs::new()
            .with("merge_op", "Add")
            .with("final_op", "Id")
            .with("timeout_seconds", 30.0f32);
        let [size, group, instance] = [size, 1, 100 + step as i32].map(EagerTensor::scalar);
        let inputs = [mine.into(), size, group, instance];
        let sum = execute(&context, "CollectiveReduceV2", attrs, &inputs)?;
        let sum = sum[0].host()?.as_slice::<f32>()?.to_vec();
        if let (Some(first), Some(last)) = (sum.first(), sum.last()) {
            println!("step {step}: {first:.1} {last:.1}");
        }
    }
    Ok(())
}

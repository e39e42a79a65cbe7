//! A task of the cluster that the environment says: measures reductions with the others.
//!
//! ```text
//! TF_CONFIG=… cargo run --release -p ferroflow-cluster --example all_reduce
//! ```
//!
//! Prints the least and the median time for each size. `cluster/tests/tensorflow/worker.py measure` does the
//! same with TensorFlow.

use ferroflow_cluster::{ClusterConfig, ClusterWorker, JoinOptions};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{
    Context,
    collective::{CollectiveCall, InstanceKey, Reduction, WORLD},
};
use std::{error::Error, time::Instant};

/// Bytes of the tensors, and how often each is reduced.
const SIZES: &[(usize, usize)] = &[(4 << 10, 300), (256 << 10, 100), (4 << 20, 30), (64 << 20, 9)];

fn main() -> Result<(), Box<dyn Error>> {
    let worker = ClusterWorker::join(&ClusterConfig::from_env()?, &JoinOptions::default())?;
    let (engine, context) = (worker.engine(), Context::new());
    for &(bytes, rounds) in SIZES {
        let mine = HostTensor::vector(&vec![1.0f32; bytes / 4])?;
        let mut times = Vec::new();
        for round in 0..rounds {
            let key = InstanceKey::Number(100 + round as i32);
            let call = CollectiveCall::new(&context, "all_reduce", key);
            let begun = Instant::now();
            let group = engine.resolve(WORLD, engine.size(), &call)?;
            let sum = group.all_reduce(&call, mine.clone(), Reduction::SUM)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            assert!(sum.as_slice::<f32>()?.iter().all(|&value| value == engine.size() as f32));
        }
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!("{:>6} KiB: least {:.3} ms, median {median:.3} ms", bytes >> 10, times[0]);
    }
    Ok(())
}

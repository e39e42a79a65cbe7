//! Measures reductions of this crate beside those of the MPI library, in turns.
//!
//! ```text
//! mpirun -n 2 cargo run --release --example all_reduce
//! ```

use ferroflow_ir::HostTensor;
use ferroflow_mpi::MpiEngine;
use ferroflow_runtime::{
    Context,
    collective::{CollectiveCall, Engine, InstanceKey, Reduction, WORLD},
};
use mpi::{
    collective::SystemOperation, topology::SimpleCommunicator, traits::CommunicatorCollectives,
};
use std::{error::Error, time::Instant};

/// Bytes of the tensors, and how often each is reduced.
const SIZES: &[(usize, usize)] = &[(4 << 10, 300), (256 << 10, 100), (4 << 20, 30), (64 << 20, 9)];

fn main() -> Result<(), Box<dyn Error>> {
    // Both have MPI started once, by the engine.
    let (engine, context) = (MpiEngine::initialize()?, Context::new());
    let call = |key| CollectiveCall::new(&context, "all_reduce", InstanceKey::Number(key));
    let world = engine.resolve(WORLD, engine.size(), &call(0))?;
    for &(bytes, rounds) in SIZES {
        let mine = HostTensor::vector(&vec![1.0f32; bytes / 4])?;
        let (own, mut sum) = (vec![1.0f32; bytes / 4], vec![0.0f32; bytes / 4]);
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            let begun = Instant::now();
            let reduced =
                world.all_reduce(&call(100 + round as i32), mine.clone(), Reduction::SUM)?;
            times[0].push(begun.elapsed().as_secs_f64() * 1e3);
            assert!(reduced.as_slice::<f32>()?.iter().all(|&value| value == engine.size() as f32));
            let begun = Instant::now();
            let all = SimpleCommunicator::world();
            all.all_reduce_into(&own[..], &mut sum[..], SystemOperation::sum());
            times[1].push(begun.elapsed().as_secs_f64() * 1e3);
        }
        for times in &mut times {
            times.sort_by(f64::total_cmp);
        }
        if engine.rank() == 0 {
            let [ours, raw] = times.map(|times| (times[0], times[times.len() / 2]));
            let size = bytes >> 10;
            println!(
                "{size:>6} KiB: least {:.3}, median {:.3} ms; MPI {:.3}, {:.3} ms",
                ours.0, ours.1, raw.0, raw.1
            );
        }
    }
    Ok(())
}

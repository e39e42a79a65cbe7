//! The cluster that the environment of this process says: the number of its task, and the addresses of all.
//!
//! ```sh
//! SLURM_PROCID=1 SLURM_STEP_NODELIST='n[1-2]' cargo run -p ferroflow-cluster --example environment
//! ```

use ferroflow_cluster::{ClusterConfig, Result};

fn main() -> Result<()> {
    let config = ClusterConfig::from_env()?;
    println!("{} {}", config.index, config.tasks.join(" "));
    Ok(())
}

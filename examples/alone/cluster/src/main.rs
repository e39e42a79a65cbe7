//! A cluster is read from the environment, by `ferroflow-cluster` alone.

use ferroflow_cluster::{ClusterConfig, Result};

fn main() -> Result<()> {
    let workers =
        r#"{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}"#;
    let get = |name: &str| (name == "TF_CONFIG").then(|| workers.to_string());
    let config = ClusterConfig::from_variables(&get)?;
    assert_eq!((config.tasks.len(), config.index), (2, 1));
    Ok(())
}

//! Environments of launchers: TensorFlow's resolvers and ours must find the same cluster in them.
//!
//! Nodes are in the order of their names here: TensorFlow sorts them, where Slurm numbers tasks in the order of
//! its list, as `ClusterConfig` does.

use super::{example, last_line};
use anyhow::{Result, ensure};
use std::{path::Path, process::Command};

/// Variables of an environment.
type Environment = &'static [(&'static str, &'static str)];

const ENVIRONMENTS: &[Environment] = &[
    &[(
        "TF_CONFIG",
        r#"{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}"#,
    )],
    &[(
        "TF_CONFIG",
        r#"{"cluster": {"worker": ["train-0.train:2222"]}, "task": {"type": "worker", "index": "0"}}"#,
    )],
    &slurm("3", "login,n[08-10]", "1(x3),2", "5"),
    &slurm("0", "gpu7", "4", "4"),
    &slurm("2", "a[1-2,4],b003,c[09-11]", "1(x7)", "7"),
    &slurm("5", "rack1-n[1-3]", "2(x3)", "6"),
];

/// The variables of a task of Slurm: its number, the nodes, the tasks of each, and of all.
const fn slurm(
    index: &'static str,
    nodes: &'static str,
    per_node: &'static str,
    tasks: &'static str,
) -> [(&'static str, &'static str); 4] {
    [
        ("SLURM_PROCID", index),
        ("SLURM_STEP_NODELIST", nodes),
        ("SLURM_STEP_TASKS_PER_NODE", per_node),
        ("SLURM_STEP_NUM_TASKS", tasks),
    ]
}

/// Each environment, with what is found in it.
pub(super) fn run(root: &Path, python: &Path) -> Result<Vec<(String, Result<()>)>> {
    let ours = example(root, "environment")?;
    let script = root.join("cluster/tests/tensorflow/resolvers.py");
    let compare = |environment: &Environment| -> Result<()> {
        let ours = found(Command::new(&ours), environment)?;
        let mut theirs = Command::new(python);
        theirs.arg(&script);
        let theirs = found(theirs, environment)?;
        ensure!(ours == theirs, "`{ours}`, and TensorFlow finds `{theirs}`");
        Ok(())
    };
    let name = |environment: &Environment| format!("environment {:?}", environment[0]);
    Ok(ENVIRONMENTS.iter().map(|environment| (name(environment), compare(environment))).collect())
}

/// The line that a program prints in an environment.
fn found(mut command: Command, environment: Environment) -> Result<String> {
    let output = command.envs(environment.iter().copied()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", last_line(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

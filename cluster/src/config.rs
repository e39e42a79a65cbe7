//! Configuration of the cluster of a process, read from its environment.

use crate::error::{Error, Result};
use serde_json::Value;
use std::env;

/// The tasks of a job, and which of them this process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The addresses of the tasks, `host:port`.
    pub tasks: Vec<String>,
    /// The number of this process's task.
    pub index: usize,
}

/// The job whose tasks train together.
pub(crate) const JOB: &str = "worker";

/// The port of tasks that environments name by host only.
const PORT: u16 = 8888;

impl ClusterConfig {
    /// The cluster that the environment of this process says: by `TF_CONFIG`, by `SLURM_*`, by
    /// `OMPI_COMM_WORLD_*` or by `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`, in this order.
    ///
    /// # Errors
    ///
    /// [`Error::Environment`] when none of them is set, or one is set wrongly.
    pub fn from_env() -> Result<ClusterConfig> {
        ClusterConfig::from_variables(&|name| env::var(name).ok())
    }

    /// As [`from_env`](ClusterConfig::from_env), of an environment that `get` tells.
    ///
    /// # Errors
    ///
    /// As [`from_env`](ClusterConfig::from_env).
    pub fn from_variables(get: &dyn Fn(&str) -> Option<String>) -> Result<ClusterConfig> {
        if let Some(text) = get("TF_CONFIG") {
            return from_tf_config(&text);
        }
        if let Some(index) = get("SLURM_PROCID") {
            return from_slurm(&index, get);
        }
        let ranks = [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("RANK", "WORLD_SIZE")];
        for (rank, size) in ranks {
            if let Some(index) = get(rank) {
                return from_rank(rank, &index, size, get);
            }
        }
        Err(wrong("TF_CONFIG", "is not set, nor is SLURM_PROCID, OMPI_COMM_WORLD_RANK or RANK"))
    }

    /// Checks that the task is one of the cluster.
    fn checked(self, variable: &'static str) -> Result<ClusterConfig> {
        if self.index >= self.tasks.len() {
            let (index, tasks) = (self.index, self.tasks.len());
            return Err(wrong(variable, format!("task {index} of {tasks}")));
        }
        for (number, task) in self.tasks.iter().enumerate() {
            let port = task.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if !port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0)) {
                return Err(wrong(variable, format!("`{task}` is no address `host:port`")));
            }
            if self.tasks[..number].contains(task) {
                return Err(wrong(variable, format!("`{task}` is two tasks")));
            }
        }
        Ok(self)
    }
}

fn wrong(variable: &'static str, problem: impl Into<String>) -> Error {
    Error::Environment { variable, problem: problem.into() }
}

fn from_tf_config(text: &str) -> Result<ClusterConfig> {
    let variable = "TF_CONFIG";
    let parsed: Value =
        serde_json::from_str(text).map_err(|error| wrong(variable, format!("no JSON: {error}")))?;
    let cluster = parsed.get("cluster").and_then(Value::as_object);
    let cluster = cluster.ok_or_else(|| wrong(variable, "has no `cluster`"))?;
    if let Some(job) = cluster.keys().find(|job| *job != JOB) {
        return Err(wrong(variable, format!("job `{job}`: only job `{JOB}` is supported")));
    }
    let tasks = cluster.get(JOB).and_then(Value::as_array);
    let tasks = tasks.ok_or_else(|| wrong(variable, "has no tasks of job `worker`"))?;
    let address = |task: &Value| {
        let text = task.as_str().map(str::to_string);
        text.ok_or_else(|| wrong(variable, format!("task {task} is no address")))
    };
    let tasks = tasks.iter().map(address).collect::<Result<_>>()?;
    let task = parsed.get("task").ok_or_else(|| wrong(variable, "has no `task`"))?;
    match task.get("type").and_then(Value::as_str) {
        Some(JOB) => {}
        found => return Err(wrong(variable, format!("this process is {found:?}, no `{JOB}`"))),
    }
    let index = task.get("index").and_then(|index| match index {
        Value::String(text) => text.parse().ok(),
        index => index.as_u64(),
    });
    let index = index.ok_or_else(|| wrong(variable, "has no index of this task"))?;
    ClusterConfig { tasks, index: usize::try_from(index).unwrap_or(usize::MAX) }.checked(variable)
}

/// The number in a variable.
fn number(variable: &'static str, text: &str) -> Result<usize> {
    text.trim().parse().map_err(|_| wrong(variable, format!("`{text}` is no number")))
}

fn from_slurm(index: &str, get: &dyn Fn(&str) -> Option<String>) -> Result<ClusterConfig> {
    let index = number("SLURM_PROCID", index)?;
    let missing = || wrong("SLURM_STEP_NODELIST", "is not set");
    let list = get("SLURM_STEP_NODELIST").or_else(|| get("SLURM_NODELIST")).ok_or_else(missing)?;
    let hosts = slurm_hosts(&list)?;
    let per_host = match get("SLURM_STEP_TASKS_PER_NODE") {
        Some(text) => tasks_per_node(&text)?,
        None => vec![1; hosts.len()],
    };
    if per_host.len() != hosts.len() {
        let problem = format!("{} nodes, where there are {}", per_host.len(), hosts.len());
        return Err(wrong("SLURM_STEP_TASKS_PER_NODE", problem));
    }
    let tasks = hosts.iter().zip(per_host).flat_map(|(host, tasks)| {
        (0..tasks).map(move |task| format!("{host}:{}", usize::from(PORT) + task))
    });
    ClusterConfig { tasks: tasks.collect(), index }.checked("SLURM_PROCID")
}

/// The hosts of a list such as `n[1-3,07],login`.
fn slurm_hosts(list: &str) -> Result<Vec<String>> {
    let variable = "SLURM_STEP_NODELIST";
    let (mut hosts, mut rest) = (Vec::new(), list.trim());
    while !rest.is_empty() {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (prefix, tail) = rest.split_at(end);
        if let Some(inner) = tail.strip_prefix('[') {
            let unclosed = || wrong(variable, format!("`{list}` has an open bracket"));
            let (ranges, after) = inner.split_once(']').ok_or_else(unclosed)?;
            for range in ranges.split(',') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (begin, end) = (number(variable, first)?, number(variable, last)?);
                if end < begin || end - begin > 1 << 16 {
                    return Err(wrong(variable, format!("`{range}` is no range of nodes")));
                }
                let width = first.len();
                hosts.extend((begin..=end).map(|n| format!("{prefix}{n:0width$}")));
            }
            rest = after.trim_start_matches(',');
        } else {
            hosts.push(prefix.to_string());
            rest = tail.trim_start_matches(',');
        }
    }
    Ok(hosts)
}

/// The tasks of each node, of a list such as `2(x3),1`.
fn tasks_per_node(text: &str) -> Result<Vec<usize>> {
    let variable = "SLURM_STEP_TASKS_PER_NODE";
    let mut tasks = Vec::new();
    for part in text.split(',') {
        let (count, nodes) = match part.split_once("(x") {
            Some((count, nodes)) => (count, number(variable, nodes.trim_end_matches(')'))?),
            None => (part, 1),
        };
        if nodes > 1 << 16 {
            return Err(wrong(variable, format!("`{part}` has too many nodes")));
        }
        tasks.extend(std::iter::repeat_n(number(variable, count)?, nodes));
    }
    Ok(tasks)
}

/// The cluster of launchers that say rank, size and the first task: all tasks are on its host, at the
/// ports that follow. Such environments do not say other hosts; `TF_CONFIG` does.
fn from_rank(
    rank: &'static str,
    index: &str,
    size: &'static str,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<ClusterConfig> {
    let index = number(rank, index)?;
    let missing = || wrong(size, "is not set");
    let size = number(size, &get(size).ok_or_else(missing)?)?;
    let host = get("MASTER_ADDR").unwrap_or_else(|| "127.0.0.1".into());
    let port = match get("MASTER_PORT") {
        Some(port) => number("MASTER_PORT", &port)?,
        None => PORT.into(),
    };
    if size > 1 << 16 {
        return Err(wrong(rank, format!("a cluster of {size} tasks")));
    }
    let tasks = (0..size).map(|task| format!("{host}:{}", port + task)).collect();
    ClusterConfig { tasks, index }.checked(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &[(&str, &str)]) -> Result<ClusterConfig> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        ClusterConfig::from_variables(&|name| find(name).map(|(_, value)| value.to_string()))
    }

    fn check(variables: &[(&str, &str)], tasks: &[&str], index: usize) {
        let tasks = tasks.iter().map(|task| task.to_string()).collect();
        assert_eq!(config(variables).unwrap(), ClusterConfig { tasks, index });
    }

    #[test]
    fn environments_of_launchers_are_read() {
        let json =
            r#"{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}"#;
        check(&[("TF_CONFIG", json), ("RANK", "7")], &["a:1", "b:2"], 1);
        check(
            &[("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_PORT", "70")],
            &["127.0.0.1:70", "127.0.0.1:71"],
            1,
        );
        let ompi =
            [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1"), ("MASTER_ADDR", "h")];
        check(&ompi, &["h:8888"], 0);
        let slurm = [
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_NODELIST", "n[08-10],login"),
            ("SLURM_STEP_TASKS_PER_NODE", "1(x2),2,1"),
        ];
        check(&slurm, &["n08:8888", "n09:8888", "n10:8888", "n10:8889", "login:8888"], 3);
    }

    #[test]
    fn wrong_environments_are_errors_that_name_the_variable() {
        let check = |variables: &[(&str, &str)], expected: &str| {
            let error = config(variables).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&[], "TF_CONFIG: is not set");
        check(&[("TF_CONFIG", "{")], "TF_CONFIG: no JSON");
        check(&[("TF_CONFIG", "{}")], "has no `cluster`");
        let ps = r#"{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}}"#;
        check(&[("TF_CONFIG", ps)], "job `ps`");
        let far = r#"{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}"#;
        check(&[("TF_CONFIG", far)], "task 1 of 1");
        let port = r#"{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}"#;
        check(&[("TF_CONFIG", port)], "`a` is no address");
        check(&[("RANK", "x"), ("WORLD_SIZE", "2")], "RANK: `x`");
        check(&[("RANK", "0")], "WORLD_SIZE: is not set");
        check(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NODELIST", "n[1")], "open bracket");
        check(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NODELIST", "n[1-999999999]")], "no range");
    }
}

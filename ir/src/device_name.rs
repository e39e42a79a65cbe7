//! Names of devices: `/job:worker/replica:0/task:1/device:GPU:0`.
//!
//! A name may leave parts open; the grammar is that of `tensorflow/core/util/device_name_utils.h`.

use crate::error::{Error, Result};
use std::{fmt, str::FromStr};

/// The name of a device, or of all devices that share some parts.
///
/// ```
/// use ferroflow_ir::device_name::DeviceName;
/// # fn main() -> ferroflow_ir::Result<()> {
/// let name: DeviceName = "GPU:1".parse()?;
/// assert_eq!(name.to_string(), "/device:GPU:1");
/// assert!("/device:GPU:1".parse::<DeviceName>()?.is_within(&"/gpu:*".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DeviceName {
    /// The job of a cluster.
    pub job: Option<String>,
    /// The replica of the job.
    pub replica: Option<u32>,
    /// The task of the job.
    pub task: Option<u32>,
    /// The kind, in capitals: `CPU`, `GPU`.
    pub kind: Option<String>,
    /// The number among the devices of the kind.
    pub index: Option<u32>,
}

impl DeviceName {
    /// The device of this kind and number, in any process.
    pub fn local(kind: &str, index: u32) -> DeviceName {
        DeviceName { kind: Some(kind.into()), index: Some(index), ..DeviceName::default() }
    }

    /// Whether every device of this name is one of `other`.
    pub fn is_within(&self, other: &DeviceName) -> bool {
        fn fits<T: PartialEq>(own: &Option<T>, asked: &Option<T>) -> bool {
            asked.is_none() || own == asked
        }
        fits(&self.job, &other.job)
            && fits(&self.replica, &other.replica)
            && fits(&self.task, &other.task)
            && fits(&self.kind, &other.kind)
            && fits(&self.index, &other.index)
    }

    /// This name, with the parts it leaves open taken from `outer`: what a scope inside another asks
    /// for.
    #[must_use]
    pub fn or(&self, outer: &DeviceName) -> DeviceName {
        let same_kind = self.kind.is_none() || self.kind == outer.kind;
        DeviceName {
            job: self.job.clone().or_else(|| outer.job.clone()),
            replica: self.replica.or(outer.replica),
            task: self.task.or(outer.task),
            kind: self.kind.clone().or_else(|| outer.kind.clone()),
            index: self.index.or(if same_kind { outer.index } else { None }),
        }
    }
}

impl FromStr for DeviceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<DeviceName> {
        let wrong = || Error::Malformed {
            node: text.into(),
            rule: "a device is named like `/device:GPU:0` or `/job:worker/task:1/device:CPU:0`"
                .into(),
        };
        let mut name = DeviceName::default();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            let words: Vec<&str> = part.split(':').collect();
            let (key, rest) = words.split_first().ok_or_else(wrong)?;
            match (key.to_ascii_lowercase().as_str(), rest) {
                ("job", [job]) if is_word(job) => name.job = Some((*job).into()),
                ("replica", [number]) => name.replica = number_or_any(number).ok_or_else(wrong)?,
                ("task", [number]) => name.task = number_or_any(number).ok_or_else(wrong)?,
                ("device", [kind]) => name.set_kind(kind, "*").ok_or_else(wrong)?,
                ("device", [kind, index]) => name.set_kind(kind, index).ok_or_else(wrong)?,
                (kind, []) => name.set_kind(kind, "*").ok_or_else(wrong)?,
                (kind, [index]) => name.set_kind(kind, index).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(name)
    }
}

impl DeviceName {
    fn set_kind(&mut self, kind: &str, index: &str) -> Option<()> {
        if kind != "*" {
            self.kind = Some(is_word(kind).then(|| kind.to_ascii_uppercase())?);
        }
        self.index = number_or_any(index)?;
        Some(())
    }
}

fn is_word(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// A number, or nothing in particular for `*`.
fn number_or_any(text: &str) -> Option<Option<u32>> {
    if text == "*" { Some(None) } else { text.parse().ok().map(Some) }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.kind, self.index) {
            (None, None) => Ok(()),
            (kind, index) => {
                let index = index.map_or_else(|| "*".to_string(), |index| index.to_string());
                write!(f, "/device:{}:{index}", kind.as_deref().unwrap_or("*"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, canonical: &str) {
        let name: DeviceName = text.parse().unwrap();
        assert_eq!(name.to_string(), canonical);
        assert_eq!(canonical.parse::<DeviceName>().unwrap(), name);
    }

    #[test]
    fn names_are_read_as_tensorflow_reads_them() {
        check("/device:CPU:0", "/device:CPU:0");
        check("cpu:0", "/device:CPU:0");
        check("/gpu:1", "/device:GPU:1");
        check("GPU", "/device:GPU:*");
        check(
            "/job:worker/replica:0/task:17/device:GPU:3",
            "/job:worker/replica:0/task:17/device:GPU:3",
        );
        check("", "");
    }

    #[test]
    fn other_texts_are_errors() {
        for text in ["/device:GPU:x", "/job:1abc", "/device:", "a:b:c", "/task:-1"] {
            assert!(text.parse::<DeviceName>().is_err(), "{text}");
        }
    }

    #[test]
    fn scopes_add_to_those_around_them() {
        let name = |text: &str| text.parse::<DeviceName>().unwrap();
        assert_eq!(name("/gpu:1").or(&name("/job:a/cpu:0")), name("/job:a/device:GPU:1"));
        assert_eq!(name("/gpu").or(&name("/cpu:3")).index, None);
        assert!(name("/job:a/gpu:1").is_within(&name("gpu")));
        assert!(!name("/cpu:0").is_within(&name("gpu")));
    }
}

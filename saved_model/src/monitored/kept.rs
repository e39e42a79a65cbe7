//! Retention of checkpoints: the newest, and one every so often.

use crate::{
    bundle,
    error::{Error, Result},
};
use std::{
    fs, io, mem,
    path::{Path, PathBuf},
    time::Duration,
};

/// The checkpoints of a saver that are kept, oldest first, by the rules of TensorFlow's `Saver`: at
/// most so many, and for good those after whose forerunner a time has passed.
#[derive(Debug)]
pub(super) struct KeptCheckpoints {
    /// All, if 0.
    pub(super) max_to_keep: usize,
    keep_every: Option<Duration>,
    /// The time after which a checkpoint is kept for good.
    preserved_from: Option<Duration>,
    kept: Vec<(PathBuf, Duration)>,
}

impl KeptCheckpoints {
    pub(super) fn new(max_to_keep: usize, keep_every: Option<Duration>) -> KeptCheckpoints {
        KeptCheckpoints { max_to_keep, keep_every, preserved_from: keep_every, kept: Vec::new() }
    }

    pub(super) fn prefixes(&self) -> Vec<PathBuf> {
        self.kept.iter().map(|(prefix, _)| prefix.clone()).collect()
    }

    /// Adds one; returns those to remove.
    pub(super) fn add(&mut self, prefix: PathBuf, now: Duration) -> Vec<PathBuf> {
        self.kept.retain(|(other, _)| *other != prefix);
        self.kept.push((prefix, now));
        let n_over = match self.max_to_keep {
            0 => 0,
            most => self.kept.len().saturating_sub(most),
        };
        let over: Vec<_> = self.kept.drain(..n_over).collect();
        over.into_iter().filter(|(_, time)| !self.preserves(*time)).map(|(path, _)| path).collect()
    }

    /// Whether a checkpoint of this time is kept for good.
    fn preserves(&mut self, time: Duration) -> bool {
        let Some((from, every)) = self.preserved_from.zip(self.keep_every) else { return false };
        let is_due = time > from;
        if is_due {
            self.preserved_from = Some(from.saturating_add(every));
        }
        is_due
    }

    /// Replaces those that are kept by what exists of these.
    pub(super) fn take_over(&mut self, prefixes: Vec<PathBuf>, now: Duration) -> Result<()> {
        let mut kept = Vec::new();
        for prefix in prefixes {
            if prefix.parent().is_some_and(Path::is_dir) && exists(&prefix)? {
                kept.push((prefix, now));
            }
        }
        // What was written by this saver keeps its time.
        let times = mem::take(&mut self.kept);
        let known = |prefix: &Path| times.iter().find(|(other, _)| other == prefix);
        let timed = kept.into_iter().map(|(prefix, now)| {
            let time = known(&prefix).map_or(now, |(_, time)| *time);
            (prefix, time)
        });
        self.kept = timed.collect();
        Ok(())
    }
}

/// Path of the MetaGraph beside a checkpoint.
pub(super) fn meta_path(prefix: &Path) -> PathBuf {
    let mut path = prefix.as_os_str().to_os_string();
    path.push(".meta");
    path.into()
}

/// Whether there is a checkpoint; those of the first format are a file.
fn exists(prefix: &Path) -> Result<bool> {
    Ok(prefix.is_file() || !bundle::files_of(prefix)?.is_empty())
}

/// Removes the files of a checkpoint, its index first: without that there is none.
pub(super) fn remove(prefix: &Path) -> Result<()> {
    let files = bundle::files_of(prefix)?.into_iter();
    let files = files.chain([prefix.to_path_buf(), meta_path(prefix)]);
    for path in files {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Io { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_some_for_good() {
        let hour = Duration::from_secs(3600);
        let mut kept = KeptCheckpoints::new(2, Some(hour));
        let removed = (1..=8u32).map(|n| kept.add(format!("m-{n}").into(), hour * n / 3));
        let removed: Vec<PathBuf> = removed.flatten().collect();
        // That of 80 minutes is the first after an hour; the next would be one after two.
        assert_eq!(removed, ["m-1", "m-2", "m-3", "m-5", "m-6"].map(PathBuf::from));
        assert_eq!(kept.prefixes(), ["m-7", "m-8"].map(PathBuf::from));
        assert!(kept.add("m-7".into(), hour * 3).is_empty(), "the same again");
        assert_eq!(kept.prefixes(), ["m-8", "m-7"].map(PathBuf::from));
    }

    #[test]
    fn all_are_kept_if_there_is_no_bound() {
        let mut kept = KeptCheckpoints::new(0, None);
        assert!((0..20).all(|n| kept.add(format!("m-{n}").into(), Duration::ZERO).is_empty()));
    }
}

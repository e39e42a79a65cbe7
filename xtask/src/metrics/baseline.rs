//! The measures that may not grow, and the file that holds them.

use super::cycles::ImportCycle;
use anyhow::{Context, Result, ensure};
use std::{collections::BTreeMap, fs, path::Path};

const FILE: &str = "xtask/metrics_baseline.txt";

/// Measures by name.
pub(super) struct Measures(BTreeMap<String, usize>);

impl Measures {
    pub(super) fn new(cycles: &[(&'static str, ImportCycle)], n_duplicates: usize) -> Measures {
        let cycles =
            cycles.iter().map(|(name, cycle)| (format!("cycle {name}"), cycle.files.len()));
        let names = [("duplicate type names".to_string(), n_duplicates)];
        Measures(cycles.chain(names).collect())
    }

    fn text(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    pub(super) fn write(&self, root: &Path) -> Result<()> {
        fs::write(root.join(FILE), self.text()).with_context(|| format!("cannot write {FILE}"))
    }

    /// Fails if a measure is above that of the file.
    pub(super) fn check(&self, root: &Path) -> Result<()> {
        let text = fs::read_to_string(root.join(FILE));
        let known = parsed(&text.with_context(|| format!("cannot read {FILE}"))?)?;
        let mut grown = Vec::new();
        for (name, value) in &self.0 {
            let before = known.get(name).copied().unwrap_or(1);
            if *value > before {
                grown.push(format!("{name}: {value}, it was {before}"));
            } else if *value < before {
                println!("{name} is down from {before} to {value}: `metrics --update` keeps it so");
            }
        }
        ensure!(grown.is_empty(), "measures that may not grow did: {}", grown.join("; "));
        Ok(())
    }
}

fn parsed(text: &str) -> Result<BTreeMap<String, usize>> {
    let line = |line: &str| {
        let (name, value) = line.split_once(": ").with_context(|| format!("`{line}`"))?;
        Ok((name.to_string(), value.trim().parse()?))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read_as_they_are_written() {
        let files = vec!["a.rs".to_string(), "b.rs".to_string()];
        let cycles = [("runtime", ImportCycle { files, imports: Vec::new() })];
        let measures = Measures::new(&cycles, 7);
        assert_eq!(measures.text(), "cycle runtime: 2\nduplicate type names: 7\n");
        assert_eq!(parsed(&measures.text()).expect("lines"), measures.0);
    }
}

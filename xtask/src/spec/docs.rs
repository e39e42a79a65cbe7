//! Documentation that holds lines: `docs/spec_docs.txt`.

use super::{Findings, Holder, number};
use anyhow::{Context, Result};
use std::{fs, path::Path};

const TABLE: &str = "docs/spec_docs.txt";

/// Items that the table names, and the faults of it.
pub(super) fn find(root: &Path) -> Result<(Vec<Holder>, Findings)> {
    let table = fs::read_to_string(root.join(TABLE)).with_context(|| format!("no {TABLE}"))?;
    let (mut holders, mut findings) = (Vec::new(), Findings::new());
    for (index, line) in table.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let location = format!("{TABLE}:{}", index + 1);
        match holder(root, &location, line) {
            Ok(holder) => holders.push(holder),
            Err(finding) => findings.push(format!("{location}: {finding}")),
        }
    }
    Ok((holders, findings))
}

fn holder(root: &Path, place: &str, line: &str) -> Result<Holder, String> {
    let (numbers, path, phrase) =
        entry(line).ok_or("expected `24  path/of/file.rs  \"phrase\"`")?;
    let numbers = number::list(numbers)?;
    let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    if !running_text(&text).contains(phrase) {
        return Err(format!("{path} does not say \"{phrase}\""));
    }
    Ok(Holder { place: place.into(), name: path.into(), numbers })
}

/// Numbers, path and phrase of an entry.
fn entry(line: &str) -> Option<(&str, &str, &str)> {
    let (numbers, rest) = line.split_once("  ")?;
    let (path, phrase) = rest.trim_start().split_once("  ")?;
    let phrase = phrase.trim().strip_prefix('"')?.strip_suffix('"')?;
    (!phrase.is_empty()).then_some((numbers, path, phrase))
}

/// A text in one line, without the marks of comments.
fn running_text(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
    });
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_numbers_path_and_phrase() {
        let line = "30, 32  src/lib.rs  \"a  phrase\"";
        assert_eq!(entry(line), Some(("30, 32", "src/lib.rs", "a  phrase")));
        assert_eq!(entry("30 src/lib.rs \"phrase\""), None);
        assert_eq!(entry("30  src/lib.rs  phrase"), None);
        assert_eq!(entry("30  src/lib.rs  \"\""), None);
    }

    #[test]
    fn phrases_run_over_lines() {
        let text = "/// Objects with interior\n    /// mutability.\nfn f() {}";
        assert_eq!(running_text(text), "Objects with interior mutability. fn f() {}");
    }
}

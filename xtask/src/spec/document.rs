//! The specification as a document: groups of numbered lines, in tables.

use super::{Holders, number::LineNumber};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;

/// Ends the heading of a group whose lines are all held.
const COMPLETE: &str = " · complete";

/// The specification.
pub(super) struct Document {
    lines: Vec<Line>,
    pub(super) groups: Vec<SpecGroup>,
}

/// Lines under one heading.
pub(super) struct SpecGroup {
    pub(super) name: String,
    pub(super) complete: bool,
    pub(super) numbers: Vec<LineNumber>,
}

enum Line {
    /// A numbered line, up to its last cell.
    Row(LineNumber, String),
    Other(String),
}

impl Document {
    pub(super) fn parse(text: &str) -> Result<Document> {
        let mut lines = Vec::new();
        let mut groups: Vec<SpecGroup> = Vec::new();
        let mut numbers = BTreeSet::new();
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                let name = heading.strip_suffix(COMPLETE);
                let complete = name.is_some();
                let name = name.unwrap_or(heading).to_string();
                groups.push(SpecGroup { name, complete, numbers: Vec::new() });
            }
            let row = row(line);
            if let (Some((number, _)), Some(group)) = (&row, groups.last_mut()) {
                ensure!(numbers.insert(*number), "two lines have the number {number}");
                group.numbers.push(*number);
            }
            lines.push(match row {
                Some((number, cells)) => Line::Row(number, cells.to_string()),
                None => Line::Other(line.to_string()),
            });
        }
        groups.retain(|group| !group.numbers.is_empty());
        Ok(Document { lines, groups })
    }

    pub(super) fn has(&self, number: LineNumber) -> bool {
        self.groups.iter().any(|group| group.numbers.contains(&number))
    }

    /// The text, with those that hold a line in its last cell.
    pub(super) fn with_holders(&self, holders: &Holders) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Other(line) => text += line,
                Line::Row(number, cells) => {
                    text += cells;
                    let names = holders.get(number).into_iter().flatten();
                    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                    if !names.is_empty() {
                        text += &format!(" {}", names.join(", "));
                    }
                    text += " |";
                }
            }
            text.push('\n');
        }
        text
    }
}

impl SpecGroup {
    /// The letters that begin its name: `AA` of `AA. Design review`.
    pub(super) fn letter(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(letter, _)| letter)
    }

    /// Whether its lines are observed rather than documented.
    pub(super) fn is_observed(&self) -> bool {
        self.numbers.iter().any(|number| number.observed)
    }
}

/// The number of a numbered line, and its cells but for the last one.
fn row(line: &str) -> Option<(LineNumber, &str)> {
    let cells = line.strip_prefix("| ")?.strip_suffix('|')?;
    let number = cells.split_once(" |")?.0.parse().ok()?;
    let last = line.strip_suffix('|')?.rfind('|')?;
    Some((number, &line[..=last]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Title

| C1 | no line |

### A. Some · complete

| # | Behaviour | Held by |
|---|---|---|
| 1 | One `a \\| b`. | `old` |
| 2 | Two. | |

### Others

| b1 | Three. | |
";

    #[test]
    fn the_last_cell_names_the_holders() {
        let document = Document::parse(TEXT).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let holders = Holders::from([
            ("2".parse().unwrap(), names(&["b::c", "a::b"])),
            ("b1".parse().unwrap(), names(&["c"])),
        ]);
        let expected = TEXT
            .replace("| `old` |", "| |")
            .replace("Two. | |", "Two. | `a::b`, `b::c` |")
            .replace("Three. | |", "Three. | `c` |");
        let updated = document.with_holders(&holders);
        assert_eq!(updated, expected);
        assert_eq!(Document::parse(&updated).unwrap().with_holders(&holders), expected);
    }

    #[test]
    fn groups_have_names_and_lines() {
        let groups = Document::parse(TEXT).unwrap().groups;
        let found: Vec<_> = groups
            .iter()
            .map(|group| (group.letter(), group.complete, group.is_observed(), group.numbers.len()))
            .collect();
        assert_eq!(found, [("A", true, false, 2), ("Others", false, true, 1)]);
    }

    #[test]
    fn a_number_is_given_once() {
        let twice = TEXT.replace("| 2 |", "| 1 |");
        assert!(Document::parse(&twice).is_err());
    }
}

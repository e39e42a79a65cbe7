//! `spec`: which test holds which line of the specification.

mod claims;
mod docs;
mod document;
mod number;

use crate::source;
use anyhow::{Context, Result, ensure};
use clap::Args;
use document::{Document, SpecGroup};
use number::LineNumber;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const SPEC: &str = "docs/spec.md";

#[derive(Args, Default)]
pub(crate) struct Flags {
    /// Fail when the specification is out of date instead of writing it.
    #[arg(long)]
    check: bool,
}

impl Flags {
    /// Check and write nothing.
    pub(crate) fn check() -> Flags {
        Flags { check: true }
    }
}

/// Something that claims to hold lines.
struct Holder {
    /// Where the claim stands, for messages.
    place: String,
    /// Name in the specification.
    name: String,
    numbers: Vec<LineNumber>,
}

/// Faults, each with its location.
type Findings = Vec<String>;

/// The names of those that hold a line.
type Holders = BTreeMap<LineNumber, BTreeSet<String>>;

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let path = root.join(SPEC);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {SPEC}"))?;
    let document = Document::parse(&text)?;
    let (found, mut findings) = find(root)?;
    let holders = match_up(&document, found, &mut findings);
    let updated = document.with_holders(&holders);
    if updated != text && flags.check {
        findings.push(format!("{SPEC}: out of date: run `cargo xtask spec`"));
    } else if updated != text {
        println!("writing {SPEC}");
        fs::write(&path, updated).with_context(|| format!("cannot write {SPEC}"))?;
    }
    findings.extend(document.groups.iter().flat_map(|group| gaps(group, &holders)));
    report(&document.groups, &holders);
    for finding in &findings {
        eprintln!("{finding}");
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

/// All that claims to hold lines.
fn find(root: &Path) -> Result<(Vec<Holder>, Findings)> {
    let (mut holders, mut findings) = docs::find(root)?;
    for path in source::rust_files(root)? {
        let name = source::name_of(root, &path)?;
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        for test in claims::find(&name, &text) {
            match test {
                Ok(holder) => holders.push(holder),
                Err(finding) => findings.push(finding),
            }
        }
    }
    Ok((holders, findings))
}

fn match_up(document: &Document, found: Vec<Holder>, findings: &mut Findings) -> Holders {
    let mut holders = Holders::new();
    for holder in found {
        for number in holder.numbers {
            if document.has(number) {
                holders.entry(number).or_default().insert(holder.name.clone());
            } else {
                findings.push(format!("{}: there is no line {number}", holder.place));
            }
        }
    }
    holders
}

/// The lines of a complete group that nothing holds.
fn gaps(group: &SpecGroup, holders: &Holders) -> Findings {
    let missing = group.numbers.iter().filter(|number| !holders.contains_key(number));
    let missing: Vec<String> = missing.map(LineNumber::to_string).collect();
    if missing.is_empty() || !group.complete {
        return Findings::new();
    }
    vec![format!("{SPEC}: `{}` is not complete: nothing holds {}", group.name, missing.join(", "))]
}

fn report(groups: &[SpecGroup], holders: &Holders) {
    let count = |numbers: &[LineNumber]| {
        let covered = numbers.iter().filter(|number| holders.contains_key(number)).count();
        (covered, numbers.len())
    };
    let mut documented = Vec::new();
    let mut observed = Vec::new();
    for group in groups {
        let (is_observed, numbers) = (group.is_observed(), &group.numbers);
        if is_observed {
            observed.extend_from_slice(numbers);
        } else {
            let (covered, all) = count(numbers);
            println!("{}: {covered} of {all}", group.letter());
            documented.extend_from_slice(numbers);
        }
    }
    let (covered, all) = count(&documented);
    println!("spec: {covered} of {all} covered");
    let (covered, all) = count(&observed);
    println!("behaviours: {covered} of {all} covered");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "### A. Some · complete\n| 1 | One. | |\n| 2 | Two. | |\n";

    fn holder(numbers: &str) -> Holder {
        let numbers = number::list(numbers).unwrap();
        Holder { place: "a.rs:1".into(), name: "a.rs::a".into(), numbers }
    }

    #[test]
    fn a_complete_group_has_no_gaps() {
        let document = Document::parse(TEXT).unwrap();
        let check = |numbers, expected: &[&str]| {
            let holders = match_up(&document, vec![holder(numbers)], &mut Findings::new());
            assert_eq!(gaps(&document.groups[0], &holders), expected);
        };
        check("1-2", &[]);
        check("2", &["docs/spec.md: `A. Some` is not complete: nothing holds 1"]);
    }

    #[test]
    fn a_held_line_exists() {
        let document = Document::parse(TEXT).unwrap();
        let mut findings = Findings::new();
        let holders = match_up(&document, vec![holder("2-3, b1")], &mut findings);
        assert_eq!(findings, ["a.rs:1: there is no line 3", "a.rs:1: there is no line b1"]);
        assert_eq!(holders.len(), 1);
    }
}

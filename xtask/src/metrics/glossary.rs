//! Words that have a standard term in the glossary: where they are, in identifiers, first lines of
//! documentation and names of files.

use super::tree::SourceFile;
use crate::source;
use std::collections::BTreeMap;

/// Part of the source in which a word is not to be used.
enum Scope {
    Everywhere,
    /// Files whose paths begin like this: elsewhere the word means what it means in English, or in
    /// another field, such as the sequences of a recurrent layer or the words of a text.
    Under(&'static [&'static str]),
    /// Names of types and files: as the name of a method or in a sentence the word is the usual
    /// one, such as `Hasher::finish`.
    Types,
}

/// Words with the term to write instead.
struct Entry {
    words: &'static [&'static str],
    term: &'static str,
    names: Scope,
    sentences: Scope,
}

impl Entry {
    const fn everywhere(words: &'static [&'static str], term: &'static str) -> Entry {
        Entry { words, term, names: Scope::Everywhere, sentences: Scope::Everywhere }
    }

    const fn under(
        words: &'static [&'static str],
        term: &'static str,
        paths: &'static [&'static str],
    ) -> Entry {
        Entry { words, term, names: Scope::Under(paths), sentences: Scope::Under(paths) }
    }
}

/// Code that multiplies matrices.
const MATRICES: &[&str] = &[
    "ir/src/pass/",
    "kernels/simulator/",
    "kernels/src/cpu/attention/",
    "kernels/src/cpu/conv/",
    "kernels/src/cpu/depthwise/",
    "kernels/src/cpu/gemm/",
    "kernels/src/cpu/matmul.rs",
    "kernels/src/cpu/region/",
    "kernels/src/cuda/",
    "kernels/src/shader/",
];

/// Code that fuses and plans kernels.
const FUSION: &[&str] = &["ir/src/pass/", "kernels/src/", "runtime/src/plan/"];

/// Code that stores elements on devices.
const STORAGE: &[&str] = &[
    "kernels/src/cuda/",
    "kernels/src/elementwise/",
    "kernels/src/plan/",
    "kernels/src/shader/",
    "kernels/src/wgpu/",
];

/// Code that asks what a device can do.
const DEVICES: &[&str] =
    &["ir/src/pass/placement/", "kernels/src/device.rs", "runtime/src/assign_devices.rs"];

/// Code that schedules launches of kernels.
const LAUNCHES: &[&str] = &[
    "kernels/src/cuda/",
    "kernels/src/kernel_graph.rs",
    "kernels/src/schedule.rs",
    "runtime/src/plan/",
];

/// A word stands for its plural and other forms that are listed with it.
const ENTRIES: &[Entry] = &[
    Entry::under(&["follow", "follows", "following", "followed"], "epilogue", FUSION),
    Entry {
        words: &["finish"],
        term: "epilogue",
        names: Scope::Types,
        sentences: Scope::Under(FUSION),
    },
    Entry::everywhere(&["draft", "drafts"], "unscheduled op"),
    Entry::under(&["sequence", "sequences"], "kernel graph", LAUNCHES),
    Entry::everywhere(&["place", "places", "placing"], "location, offset, slot or index"),
    Entry::everywhere(&["home", "homes"], "resident device"),
    Entry::everywhere(&["lie", "lies"], "layout, is stored"),
    Entry::under(&["holds", "unheld"], "supports", DEVICES),
    Entry::everywhere(&["gains"], "is profitable"),
    Entry::everywhere(&["steers", "steering"], "shape operand, host operand"),
    Entry::everywhere(&["chooser", "choosers"], "predicate, branch index"),
    Entry {
        words: &["form", "forms"],
        term: "specialization",
        names: Scope::Types,
        sentences: Scope::Under(&["runtime/src/", "tracer/src/"]),
    },
    Entry::everywhere(&["surroundings"], "environment, thread state"),
    Entry::everywhere(&["spell", "spells", "spelling", "spelled"], "emit, codegen table"),
    Entry::under(&["product", "products"], "matmul, GEMM", MATRICES),
    Entry::everywhere(&["taps", "tap"], "kernel offsets, im2col, interpolation weights"),
    Entry::under(&["word", "words"], "scalar type, storage type", STORAGE),
    Entry::everywhere(&["truth", "truths"], "bool"),
    Entry::everywhere(&["rectifier"], "ReLU"),
    Entry::under(&["tangent", "tangents"], "cotangent", &["ir/src/gradient/", "tracer/src/"]),
    Entry::everywhere(&["carried"], "custom gradient, of a loaded model"),
    Entry::everywhere(&["whoever", "nobody", "somebody", "everybody"], "the subject that acts"),
    Entry::everywhere(&["gives", "give", "given", "gave"], "returns"),
    Entry::everywhere(&["team", "teams"], "workgroup, thread block"),
    Entry::everywhere(&["asleep", "awake"], "workers spin, then park"),
];

/// Standard terms that contain one of the words, and what follows from something.
const TERMS: &[[&str; 2]] = &[
    ["in", "place"],
    ["last", "place"],
    ["dot", "product"],
    ["dot", "products"],
    ["outer", "product"],
    ["hyperbolic", "tangent"],
    ["normal", "form"],
    ["normal", "forms"],
    ["follow", "from"],
    ["follows", "from"],
];

/// Words that no first line of documentation begins with: a noun stands there.
const BEGINNINGS: &[&str] = &["what", "how", "which", "whoever", "one"];

/// Where a word is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Site {
    Identifier,
    Type,
    FirstLine,
    FileName,
}

/// A word that has a standard term instead.
pub(crate) struct Hit {
    /// The line, from 1 on; 0 for the name of the file.
    line: usize,
    site: Site,
    word: &'static str,
    term: &'static str,
}

impl Hit {
    /// The finding, for people.
    pub(crate) fn finding(&self, file: &str) -> String {
        let site = match self.site {
            Site::Identifier | Site::Type => "an identifier",
            Site::FirstLine => "the first line of documentation",
            Site::FileName => "the name of the file",
        };
        let Hit { line, word, term, .. } = self;
        format!("{file}:{line}: `{word}` in {site}: the glossary has: {term}")
    }
}

pub(super) fn print(files: &[SourceFile]) {
    let mut counts = BTreeMap::<&str, (&str, [usize; 3])>::new();
    for hit in files.iter().flat_map(|file| hits(&file.name, &file.text)) {
        let kind = match hit.site {
            Site::Identifier | Site::Type => 0,
            Site::FirstLine => 1,
            Site::FileName => 2,
        };
        counts.entry(hit.word).or_insert((hit.term, [0; 3])).1[kind] += 1;
    }
    let sum = |kind: usize| counts.values().map(|(_, counts)| counts[kind]).sum::<usize>();
    println!(
        "words with a standard term instead: {} in identifiers, {} in first lines, {} in file names",
        sum(0),
        sum(1),
        sum(2),
    );
    for (word, (term, counts)) in &counts {
        println!("    {word}: {} {} {} ({term})", counts[0], counts[1], counts[2]);
    }
}

/// The words in a file that have a standard term instead.
pub(crate) fn hits(name: &str, text: &str) -> Vec<Hit> {
    let mut hits = found(name, name, Site::FileName, 0);
    let code = source::without_text(text);
    for (index, (before, line)) in with_line_before(text).enumerate() {
        if let Some(doc) = doc(line)
            && !is_doc(before)
        {
            hits.extend(found(name, doc, Site::FirstLine, index + 1));
        }
    }
    for (index, line) in code.lines().enumerate() {
        for (declared, site) in declared(line) {
            hits.extend(found(name, declared, site, index + 1));
        }
    }
    hits
}

fn doc(line: &str) -> Option<&str> {
    let code = line.trim_start();
    code.strip_prefix("///").or_else(|| code.strip_prefix("//!"))
}

fn with_line_before(text: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::once("").chain(text.lines()).zip(text.lines())
}

fn is_doc(line: &str) -> bool {
    doc(line).is_some()
}

/// Numbers of the lines that begin documentation with a word that is no noun, from 1 on.
pub(crate) fn bad_beginnings(text: &str) -> Vec<usize> {
    let begins_badly = |(before, line): (&str, &str)| {
        let first = doc(line)?.trim().split(|c: char| !c.is_alphanumeric()).next()?;
        let is_bad = BEGINNINGS.contains(&first.to_lowercase().as_str());
        Some(is_bad && !is_doc(before))
    };
    let lines = with_line_before(text).enumerate();
    lines.filter(|(_, pair)| begins_badly(*pair) == Some(true)).map(|(at, _)| at + 1).collect()
}

/// The names that a line of code declares.
fn declared(code: &str) -> Vec<(&str, Site)> {
    const KEYWORDS: [(&str, Site); 9] = [
        ("fn", Site::Identifier),
        ("struct", Site::Type),
        ("enum", Site::Type),
        ("trait", Site::Type),
        ("type", Site::Type),
        ("mod", Site::Identifier),
        ("const", Site::Identifier),
        ("static", Site::Identifier),
        ("let", Site::Identifier),
    ];
    let words: Vec<&str> = source::words(code).filter(|word| *word != "mut").collect();
    let pairs = words.windows(2).filter_map(|pair| {
        let (_, site) = KEYWORDS.iter().find(|(keyword, _)| *keyword == pair[0])?;
        Some((pair[1], *site))
    });
    pairs.collect()
}

/// The words of a text that have a standard term instead, also those that are parts of names.
fn found(file: &str, text: &str, site: Site, line: usize) -> Vec<Hit> {
    let words = parts(text);
    let is_term = |index: usize| {
        let at = |index: usize| words.get(index).map_or("", String::as_str);
        let pairs = [[at(index.wrapping_sub(1)), at(index)], [at(index), at(index + 1)]];
        pairs.iter().any(|pair| TERMS.contains(pair))
    };
    let hit = |(index, word): (usize, &String)| {
        let (entry, word) = ENTRIES.iter().find_map(|entry| {
            Some((entry, *entry.words.iter().find(|known| **known == word.as_str())?))
        })?;
        let scope = if site == Site::FirstLine { &entry.sentences } else { &entry.names };
        let is_meant = match scope {
            Scope::Everywhere => true,
            Scope::Under(paths) => paths.iter().any(|path| file.starts_with(path)),
            Scope::Types => matches!(site, Site::Type | Site::FileName),
        };
        (is_meant && !is_term(index)).then_some(Hit { line, site, word, term: entry.term })
    };
    words.iter().enumerate().filter_map(hit).collect()
}

/// The words of a text or name, in lower case.
fn parts(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in text.chars() {
        if !letter.is_alphabetic() || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            let last = words.last_mut().expect("there is one from the start");
            last.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, source: &str, expected: &[(usize, &str)]) {
        let hits = hits(file, source);
        let found: Vec<_> = hits.iter().map(|hit| (hit.line, hit.word)).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn words_are_found_in_names_and_first_lines() {
        check(
            "ir/src/lib.rs",
            "struct DraftSink;\nlet mut home = 1;",
            &[(1, "draft"), (2, "home")],
        );
        check("ir/src/lib.rs", "let placed = \"let place = 1;\"; // let place", &[]);
        check("ir/src/lib.rs", "/// Gives it.\n/// Gives it.\nfn f() {}", &[(1, "gives")]);
        check("runtime/src/place.rs", "", &[(0, "place")]);
    }

    #[test]
    fn words_count_where_they_have_a_standard_term() {
        check("tracer/nn/src/gru.rs", "fn of_sequences() {}\nfn dot_product() {}", &[]);
        check("kernels/src/cuda/mod.rs", "fn sequence() {}", &[(1, "sequence")]);
        check("ir/src/hash.rs", "fn finish() {}", &[]);
        check("ir/src/hash.rs", "trait Finish {}", &[(1, "finish")]);
        check("kernels/src/kernel.rs", "/// In place.\nfn is_in_place() {}", &[]);
    }

    #[test]
    fn first_lines_begin_with_nouns() {
        assert_eq!(bad_beginnings("/// Whatever.\n/// What.\n    //! How"), [] as [usize; 0]);
        assert_eq!(bad_beginnings("/// A size.\n\n    /// What it is.\n"), [3]);
    }
}

//! Rust source: the files, their code and their comments.

use crate::command;
use anyhow::Result;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Every Rust file that git knows or would add.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"]).current_dir(root);
    let names = String::from_utf8(command::output(git)?)?;
    Ok(names.lines().map(|name| root.join(name)).filter(|path| path.exists()).collect())
}

/// The path of a file from the root, as it is written everywhere.
pub(crate) fn name_of(root: &Path, path: &Path) -> Result<String> {
    Ok(path.strip_prefix(root)?.to_string_lossy().replace('\\', "/"))
}

/// The source with comments, strings and characters blanked out; lines stay where they are.
pub(crate) fn without_text(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    for piece in pieces(source) {
        match piece {
            Piece::Code(letter) => code.push(letter),
            Piece::Text(text) => {
                code.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            }
        }
    }
    code
}

/// The comments that begin with `//`, each with the number of its line.
pub(crate) fn line_comments(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut line = 1;
    pieces(source).filter_map(move |piece| match piece {
        Piece::Code(letter) => {
            line += usize::from(letter == '\n');
            None
        }
        Piece::Text(text) => {
            let start = line;
            line += text.matches('\n').count();
            text.starts_with("//").then_some((start, text))
        }
    })
}

enum Piece<'a> {
    Code(char),
    /// A comment or a literal.
    Text(&'a str),
}

fn pieces(source: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = source;
    let mut previous = ' ';
    std::iter::from_fn(move || {
        let next = rest.chars().next()?;
        let in_word = previous.is_alphanumeric() || previous == '_';
        let len = text_len(rest, in_word);
        let piece = if len > 0 { Piece::Text(&rest[..len]) } else { Piece::Code(next) };
        previous = if len > 0 { ' ' } else { next };
        rest = &rest[len.max(next.len_utf8())..];
        Some(piece)
    })
}

/// The identifiers of a line of code.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether a line of code calls the macro `name`.
pub(crate) fn calls_macro(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let starts_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        starts_word && line[at + name.len()..].trim_start().starts_with('!')
    })
}

/// The length of the comment or literal that `rest` begins with; 0 when it begins with code.
fn text_len(rest: &str, in_word: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_len(rest);
    }
    if rest.starts_with('"') {
        return quoted_len(rest);
    }
    if rest.starts_with('\'') {
        return char_len(rest);
    }
    if !in_word && let Some(hashes) = raw_string_hashes(rest) {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = rest.find('"').map_or(rest.len(), |quote| quote + 1);
        return rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
    }
    0
}

/// Block comments nest.
fn block_comment_len(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        let step = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// A quote may also begin a lifetime, which is code.
fn char_len(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |at| 3 + at + 1),
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// The number of hashes when `rest` begins a raw string.
fn raw_string_hashes(rest: &str) -> Option<usize> {
    let rest = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].starts_with('"').then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[&str]) {
        let code = without_text(source);
        assert_eq!(words(&code).collect::<Vec<_>>(), expected, "{source}");
        assert_eq!(code.lines().count(), source.lines().count());
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        check("a // b\nc", &["a", "c"]);
        check("a /* b /* c */ d */ e", &["a", "e"]);
        check(r#"a("b \" c") d"#, &["a", "d"]);
        check("a(r#\"b \" c\"#) d", &["a", "d"]);
        check("a(b'x', '\\'', '\"') c", &["a", "b", "c"]);
        check("fn f<'a>(x: &'a str) {}", &["fn", "f", "a", "x", "a", "str"]);
        check("bar\"x\" unsafe_code", &["bar", "unsafe_code"]);
    }

    #[test]
    fn comments_are_told_from_strings() {
        let source = "// a\nlet x = \"\n// b\"; // c\n/* // d */ /// e";
        let comments: Vec<_> = line_comments(source).collect();
        assert_eq!(comments, [(1, "// a"), (3, "// c"), (4, "/// e")]);
    }

    #[test]
    fn macros_are_found_by_their_whole_name() {
        assert!(calls_macro("    todo!()", "todo"));
        assert!(!calls_macro("my_todo!()", "todo"));
        assert!(!calls_macro("let todo = 1;", "todo"));
    }
}

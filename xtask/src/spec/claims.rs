//! Tests that name the lines they hold.

use super::{Holder, number};
use crate::source;

/// The tests of a file that hold lines, or what is wrong with one.
pub(super) fn find(file: &str, text: &str) -> Vec<Result<Holder, String>> {
    if !text.contains("spec:") {
        return Vec::new();
    }
    let code = source::without_text(text);
    let claims = source::line_comments(text).filter_map(|(line, comment)| {
        let comment = comment.trim_start_matches('/').trim_start_matches('!').trim();
        Some((line, comment.strip_prefix("spec:")?))
    });
    claims
        .map(|(line, list)| {
            let location = format!("{file}:{line}");
            let wrong = |what: &str| format!("{location}: {what}");
            let numbers = number::list(list).map_err(|error| wrong(&error))?;
            let test = test_below(&code, line).map_err(wrong)?;
            Ok(Holder { name: format!("{file}::{test}"), place: location, numbers })
        })
        .collect()
}

/// The name of the test that begins below a line, comments and attributes aside.
fn test_below(code: &str, line: usize) -> Result<&str, &'static str> {
    const NO_TEST: &str = "what follows is no `#[test]` function";
    let end = code.match_indices('\n').nth(line - 1).map_or(code.len(), |(at, _)| at);
    let mut rest = code[end..].trim_start();
    let (mut is_test, mut is_ignored) = (false, false);
    while let Some(attribute) = rest.strip_prefix("#[") {
        let len = attribute_len(attribute).ok_or(NO_TEST)?;
        let path = attribute[..len].split('(').next().unwrap_or_default().trim();
        is_test |= path == "test" || path.ends_with("::test");
        is_ignored |= source::words(&attribute[..len]).any(|word| word == "ignore");
        rest = attribute[len + 1..].trim_start();
    }
    let function = rest.strip_prefix("async ").unwrap_or(rest).strip_prefix("fn ");
    let name = function.and_then(|function| source::words(function).next()).ok_or(NO_TEST)?;
    match (is_test, is_ignored) {
        (false, _) => Err(NO_TEST),
        (true, true) => Err("a test that is ignored holds nothing"),
        (true, false) => Ok(name),
    }
}

/// The length of the attribute up to the bracket that closes it.
fn attribute_len(attribute: &str) -> Option<usize> {
    let mut depth = 1;
    attribute.char_indices().find_map(|(at, letter)| {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Result<&str, &str>]) {
        let found: Vec<Result<String, String>> = find("a.rs", text)
            .into_iter()
            .map(|test| {
                test.map(|holder| {
                    let numbers: Vec<String> =
                        holder.numbers.iter().map(ToString::to_string).collect();
                    format!("{} {}", holder.name, numbers.join(" "))
                })
            })
            .collect();
        let expected: Vec<Result<String, String>> =
            expected.iter().map(|test| test.map(Into::into).map_err(Into::into)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_hold_lines() {
        let text = "\
// spec: 24, b2-b3
#[test]
fn a() {}

mod inner {
    /// spec: 7
    /// More of it.
    #[cfg(unix)]
    #[tokio::test(flavor = \"[\")]
    async fn b() {}
}";
        check(text, &[Ok("a.rs::a 24 b2 b3"), Ok("a.rs::b 7")]);
    }

    #[test]
    fn other_things_hold_nothing() {
        let no_test = Err("a.rs:1: what follows is no `#[test]` function");
        check("// spec: 1\nfn a() {}", &[no_test]);
        check("// spec: 1\n#[derive(Debug)]\nstruct A;\n#[test]\nfn a() {}", &[no_test]);
        check("// spec: 1\nlet a = 1;\n#[test]\nfn a() {}", &[no_test]);
        check("// spec: 1", &[no_test]);
        let ignored = Err("a.rs:1: a test that is ignored holds nothing");
        check("// spec: 1\n#[test]\n#[ignore = \"slow\"]\nfn a() {}", &[ignored]);
        check("// spec: 1\n#[test]\n#[cfg_attr(unix, ignore)]\nfn a() {}", &[ignored]);
    }

    #[test]
    fn lists_are_read_strictly() {
        check("// spec: one\n#[test]\nfn a() {}", &[Err("a.rs:1: `one` is no number of a line")]);
    }

    #[test]
    fn text_claims_nothing() {
        check("let a = \"\n// spec: 1\n\"; // see spec: 2", &[]);
    }
}

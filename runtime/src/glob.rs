//! Finding files by patterns: `*`, `?`, `[a-z]` and `[^a-z]` within a name, `\` before a character
//! that stands for itself. Crates that match patterns have other rules
//! (`docs/decisions/0031-crates-and-what-stays-ours.md`).

use crate::{error::Result, files};
use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

/// Adds the files and folders whose paths match `pattern`, in no particular order. `allowed` says
/// which folders may be looked into. As in TensorFlow, paths begin with `./` where the pattern names
/// no folder.
///
/// # Errors
///
/// Those of `allowed`. Folders that cannot be read have nothing in them.
pub(crate) fn find(
    pattern: &Path,
    allowed: &dyn Fn(&Path) -> Result<()>,
    found: &mut Vec<PathBuf>,
) -> Result<()> {
    let text = pattern.to_string_lossy();
    let fixed = text.split(['*', '?', '[', '\\']).next().unwrap_or_default();
    let start = if fixed.contains('/') { "" } else { "." };
    let mut paths = vec![PathBuf::from(start)];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        let is_pattern =
            matches!(component, Component::Normal(_)) && name.contains(['*', '?', '[', '\\']);
        if !is_pattern {
            paths.iter_mut().for_each(|path| path.push(component));
            continue;
        }
        let pattern: Vec<char> = name.chars().collect();
        let mut inside = Vec::new();
        for folder in &paths {
            let looked_into = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            allowed(looked_into)?;
            for name in files::names_in(looked_into).unwrap_or_default() {
                if name_matches(&pattern, &name) {
                    inside.push(folder.join(name));
                }
            }
        }
        paths = inside;
    }
    for path in paths {
        allowed(&path)?;
        if files::exists(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn name_matches(pattern: &[char], name: &OsStr) -> bool {
    let name: Vec<char> = name.to_string_lossy().chars().collect();
    matches(pattern, &name)
}

/// Whether a name matches a pattern. A star tries its shortest reading first; only the last one
/// needs to be tried again, so the time is at most the product of the lengths.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while position < name.len() {
        if pattern.get(at) == Some(&'*') {
            at += 1;
            retry = Some((at, position));
            continue;
        }
        match one(&pattern[at..], name[position]) {
            Some(len) => {
                at += len;
                position += 1;
            }
            None => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    (at, position) = (*after_star, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

/// Number of characters of the pattern that match this one; `None` if they do not.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match *pattern {
        ['?', ..] => Some(1),
        ['\\', literal, ..] => (literal == c).then_some(2),
        ['[', ..] => class(pattern, c),
        [literal, ..] => (literal == c).then_some(1),
        [] => None,
    }
}

/// A class such as `[a-z_]`; without its closing bracket the opening one stands for itself.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('^' | '!'));
    let start = 1 + usize::from(negated);
    // A bracket right at the beginning is one of the characters.
    let close = pattern.iter().skip(start + 1).position(|&c| c == ']').map(|at| at + start + 1);
    let Some(close) = close else { return (c == '[').then_some(1) };
    let mut inside = &pattern[start..close];
    let mut found = false;
    while let [first, rest @ ..] = inside {
        (found, inside) = match rest {
            ['-', last, rest @ ..] => (found || (*first..=*last).contains(&c), rest),
            _ => (found || *first == c, rest),
        };
    }
    (found != negated).then_some(close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn check(pattern: &str, name: &str) -> bool {
        matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
    }

    #[test]
    fn patterns_match_names() {
        assert!(check("a*c", "abbc") && check("*", "") && check("a*b*c", "axbxbc"));
        assert!(!check("a*c", "abcd") && !check("", "a") && !check("a?", "a"));
        assert!(check("part-?????-of-*", "part-00001-of-00002"));
        assert!(check("[a-c]x", "bx") && !check("[^a-c]x", "bx") && check("[]]", "]"));
        assert!(check("\\*", "*") && !check("\\*", "a") && check("[a", "[a"));
    }

    #[test]
    fn folders_are_looked_into_only_where_allowed() {
        let folder = std::env::temp_dir().join(format!("glob-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("sub/a.txt"), "").unwrap();
        let mut found = Vec::new();
        find(&folder.join("s*/*.txt"), &|_| Ok(()), &mut found).unwrap();
        assert_eq!(found, [folder.join("sub/a.txt")]);
        let denied = |_: &Path| Err(ferroflow_ir::Error::DivisionByZero.into());
        assert!(find(&folder.join("*"), &denied, &mut found).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}

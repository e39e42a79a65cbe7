//! The file `checkpoint`: which checkpoints a folder has, and which is the newest.

use crate::{
    bundle,
    error::{Error, Result},
    file::InputFile,
    output_file::{OutputFile, folder_of},
};
use ferroflow_ir::Limits;
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

/// The name of the file.
pub const FILE_NAME: &str = "checkpoint";

/// Content of a state file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointState {
    /// The newest checkpoint, as the path without suffixes that
    /// [`Reader::open`](crate::bundle::Reader::open) takes.
    pub model_checkpoint_path: PathBuf,
    /// All checkpoints that are kept, oldest first.
    pub all_model_checkpoint_paths: Vec<PathBuf>,
    /// When they were written, in seconds since 1970.
    pub all_model_checkpoint_timestamps: Vec<f64>,
    /// When the newest checkpoint that is kept for good was written, in seconds since 1970.
    pub last_preserved_timestamp: f64,
}

impl CheckpointState {
    /// Reads the state file of a folder. Paths in it that are relative are so to the folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when there is none, [`Error::Text`] naming the line that does not parse.
    pub fn read(folder: &Path) -> Result<CheckpointState> {
        let file = InputFile::open(folder.join(FILE_NAME))?;
        let bytes = file.read(0, file.size(), &Limits::default())?;
        let mut state = CheckpointState::default();
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            state.set(folder, line).map_err(|expected| Error::Text {
                path: file.path().into(),
                line: index + 1,
                expected,
                found: line.into(),
            })?;
        }
        Ok(state)
    }

    /// The state of a folder with this checkpoint alone.
    pub fn newest(prefix: &Path) -> CheckpointState {
        CheckpointState {
            model_checkpoint_path: prefix.into(),
            all_model_checkpoint_paths: vec![prefix.into()],
            ..CheckpointState::default()
        }
    }

    /// Writes the state file of a folder. Paths below it become relative to it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.check_names(folder)?;
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            writeln!(text, "{name}: {value}").expect("texts take any line");
        };
        let quoted = |path: &Path| {
            let path = path.strip_prefix(folder).unwrap_or(path);
            quoted(&path.to_string_lossy())
        };
        line("model_checkpoint_path", quoted(&self.model_checkpoint_path));
        for path in &self.all_model_checkpoint_paths {
            line("all_model_checkpoint_paths", quoted(path));
        }
        for time in &self.all_model_checkpoint_timestamps {
            line("all_model_checkpoint_timestamps", format!("{time:?}"));
        }
        if self.last_preserved_timestamp != 0.0 {
            line("last_preserved_timestamp", format!("{:?}", self.last_preserved_timestamp));
        }
        let mut file = OutputFile::create(folder.join(FILE_NAME))?;
        let written = file.write_all(text.as_bytes());
        written.map_err(|source| Error::Io { path: file.path().into(), source })?;
        file.commit()
    }

    /// Checks that all paths are texts, which is what the file can hold.
    ///
    /// # Errors
    ///
    /// [`Error::NameNotUtf8`].
    pub fn check_names(&self, folder: &Path) -> Result<()> {
        let paths = self.all_model_checkpoint_paths.iter().chain([&self.model_checkpoint_path]);
        let mut relative = paths.map(|path| path.strip_prefix(folder).unwrap_or(path));
        match relative.find(|path| path.to_str().is_none()) {
            Some(path) => Err(Error::NameNotUtf8 { path: path.into() }),
            None => Ok(()),
        }
    }

    /// Takes over one line; fails with what it should be.
    fn set(&mut self, folder: &Path, line: &str) -> Result<(), &'static str> {
        let (name, value) = line.split_once(':').ok_or("`name: value`")?;
        let value = value.trim().trim_end_matches([';', ',']);
        let path = || parse_string(value).map(|path| folder.join(path)).ok_or("a quoted path");
        let seconds = || value.parse().map_err(|_| "a number of seconds");
        match name.trim() {
            "model_checkpoint_path" => self.model_checkpoint_path = path()?,
            "all_model_checkpoint_paths" => self.all_model_checkpoint_paths.push(path()?),
            "all_model_checkpoint_timestamps" => {
                self.all_model_checkpoint_timestamps.push(seconds()?);
            }
            "last_preserved_timestamp" => self.last_preserved_timestamp = seconds()?,
            _ => return Err("the name of a field of a checkpoint state"),
        }
        Ok(())
    }
}

/// The newest checkpoint of a folder, as its state file has it, if that checkpoint exists.
///
/// # Errors
///
/// When the state file cannot be read, other than that there is none.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<Option<PathBuf>> {
    let state = match CheckpointState::read(folder.as_ref()) {
        Ok(state) => state,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let prefix = state.model_checkpoint_path;
    let exists = folder_of(&prefix).is_dir() && !bundle::files_of(&prefix)?.is_empty();
    Ok(Some(prefix).filter(|_| exists))
}

/// A string in quotes, as it is read again.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A string in quotes, with escapes as in C.
fn parse_string(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let mut rest = text.strip_prefix(quote)?.strip_suffix(quote)?.as_bytes();
    let mut bytes = Vec::new();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == quote as u8 {
            return None;
        }
        bytes.push(if byte == b'\\' { parse_escape(&mut rest)? } else { byte });
    }
    String::from_utf8(bytes).ok()
}

/// The byte that the escape after a backslash stands for.
fn parse_escape(rest: &mut &[u8]) -> Option<u8> {
    let (&letter, tail) = rest.split_first()?;
    let simple = match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'"' | b'\'' | b'\\' => letter,
        b'x' => {
            let (digits, tail) = digits(tail, 16, 2);
            *rest = tail;
            return u8::from_str_radix(digits, 16).ok();
        }
        b'0'..=b'7' => {
            let (digits, tail) = digits(rest, 8, 3);
            *rest = tail;
            return u8::from_str_radix(digits, 8).ok();
        }
        _ => return None,
    };
    *rest = tail;
    Some(simple)
}

/// Up to `most` digits that `bytes` begins with, and what follows.
fn digits(bytes: &[u8], radix: u32, most: usize) -> (&str, &[u8]) {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let (digits, tail) = bytes.split_at(bytes.iter().take(most).take_while(is_digit).count());
    (std::str::from_utf8(digits).unwrap_or(""), tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<CheckpointState> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        let mut state = CheckpointState::read(folder.path())?;
        let paths = &mut state.all_model_checkpoint_paths;
        for path in paths.iter_mut().chain([&mut state.model_checkpoint_path]) {
            *path = path.strip_prefix(folder.path()).unwrap_or(path).into();
        }
        Ok(state)
    }

    #[test]
    fn paths_and_times() {
        let state = read(concat!(
            "# written by hand\n",
            "model_checkpoint_path: \"ckpt-4\"\n",
            "all_model_checkpoint_paths: \"/elsewhere/ckpt-3\"\n",
            "all_model_checkpoint_paths: 'a \\\"b\\\" \\303\\251\\x21'\n",
            "all_model_checkpoint_timestamps: 1792.5\n",
            "\n",
            "last_preserved_timestamp: 1.7e9\n",
        ))
        .unwrap();
        assert_eq!(state.model_checkpoint_path, Path::new("ckpt-4"));
        let expected = [Path::new("/elsewhere/ckpt-3"), Path::new("a \"b\" é!")];
        assert_eq!(state.all_model_checkpoint_paths, expected);
        assert_eq!(state.all_model_checkpoint_timestamps, [1792.5]);
        assert_eq!(state.last_preserved_timestamp, 1.7e9);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let state = CheckpointState {
            model_checkpoint_path: folder.path().join("a \"b\"\n\\é"),
            all_model_checkpoint_paths: vec!["/elsewhere/m-1".into(), folder.path().join("m-2")],
            all_model_checkpoint_timestamps: vec![1792.5, 1.0],
            last_preserved_timestamp: 1.75e9,
        };
        state.write(folder.path()).unwrap();
        assert_eq!(CheckpointState::read(folder.path()).unwrap(), state);
        let text = std::fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        assert!(text.contains("all_model_checkpoint_paths: \"m-2\"\n"), "{text}");
        assert_eq!(latest_checkpoint(folder.path()).unwrap(), None);
    }

    #[test]
    fn mistakes_are_located() {
        let check = |line: &str, expected: &str| {
            let error = read(&format!("model_checkpoint_path: \"m\"\n{line}\n")).unwrap_err();
            let message = error.to_string();
            let expected = format!("checkpoint:2: expected {expected}, found `{line}`");
            assert!(message.ends_with(&expected), "{message}");
        };
        check("nonsense", "`name: value`");
        check("color: 1", "the name of a field of a checkpoint state");
        check("model_checkpoint_path: m", "a quoted path");
        check("model_checkpoint_path: \"a\"b\"", "a quoted path");
        check("model_checkpoint_path: \"\\777\"", "a quoted path");
        check("last_preserved_timestamp: soon", "a number of seconds");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z_:\"\\\\'0-9x \n]{0,60}") {
            let _ = read(&text);
            let _ = read(&format!("model_checkpoint_path: {text}"));
        }
    }
}

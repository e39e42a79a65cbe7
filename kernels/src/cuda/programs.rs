//! Compiled programs: kept in memory by their text, and on disk between processes.
//!
//! A file holds the whole text beside its code, so that no two texts are ever taken for each other;
//! what is damaged or cannot be loaded is compiled anew.

use super::{compile, driver::Driver};
use crate::{
    error::{Error, Result},
    hash::fingerprint::fingerprint64,
    program_cache::ProgramCache,
};
use cudarc::driver::CudaFunction;
use std::{env, fs, path::PathBuf, process};

/// Magic number of files of this format. Another way of compiling is another format.
const MAGIC: &[u8] = b"ferroflow cuda 1\n";

/// The programs of one device.
#[derive(Debug, Default)]
pub(super) struct Programs {
    by_text: ProgramCache<CudaFunction>,
}

impl Programs {
    /// The program of a text.
    ///
    /// # Errors
    ///
    /// [`Error::Compile`] when the text does not compile, which is a defect of the generator, or
    /// the driver refuses the code.
    pub(super) fn get(
        &self,
        driver: &Driver,
        op: &'static str,
        text: &str,
    ) -> Result<CudaFunction> {
        if let Some(found) = self.by_text.get(text) {
            return Ok(found);
        }
        let wrong = |reason: String| Error::Compile { device: driver.name.to_string(), op, reason };
        let file = file(&driver.architecture.to_string(), text);
        let kept = file.as_ref().and_then(|file| unpack(&fs::read(file).ok()?, text));
        let program = match kept.and_then(|code| driver.load(code).ok()) {
            Some(program) => program,
            None => {
                let code = compile::compile(text, driver.architecture).map_err(wrong)?;
                if let Some(file) = file {
                    keep(&file, &pack(text, &code));
                }
                driver.load(code).map_err(wrong)?
            }
        };
        self.by_text.insert(text, program.clone());
        Ok(program)
    }
}

/// Where the code of a text is kept: below `FERROFLOW_CACHE_DIR`, or the user's folder for such
/// things. An empty name means nowhere.
fn file(architecture: &str, text: &str) -> Option<PathBuf> {
    let own = |name| env::var_os(name).map(PathBuf::from);
    let root = own("FERROFLOW_CACHE_DIR")
        .or_else(|| Some(own("XDG_CACHE_HOME")?.join("ferroflow")))
        .or_else(|| Some(own("HOME")?.join(".cache").join("ferroflow")))
        .filter(|root| !root.as_os_str().is_empty())?;
    let name = format!("{architecture}-{:016x}.bin", fingerprint64(text.as_bytes()));
    Some(root.join("cuda").join(name))
}

/// Writes a file so that no reader ever sees half of it. A folder that cannot be written to costs
/// time, not correctness.
fn keep(file: &PathBuf, bytes: &[u8]) {
    let part = file.with_extension(format!("{}.part", process::id()));
    let written = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&part, bytes))
        .and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(part);
    }
}

fn pack(text: &str, code: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(fingerprint64(code).to_le_bytes());
    bytes.extend(code);
    bytes
}

/// The code in a file, if it is that of this text and whole.
fn unpack(bytes: &[u8], text: &str) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk()?;
    if u64::from_le_bytes(*length) != text.len() as u64 {
        return None;
    }
    let (sum, code) = rest.strip_prefix(text.as_bytes())?.split_first_chunk()?;
    (fingerprint64(code) == u64::from_le_bytes(*sum)).then(|| code.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_files_of_the_same_text_count() {
        let packed = pack("text", b"code");
        assert_eq!(unpack(&packed, "text"), Some(b"code".to_vec()));
        assert_eq!(unpack(&packed, "next"), None);
        assert_eq!(unpack(&packed, "text and more"), None);
        for length in 0..packed.len() {
            assert_eq!(unpack(&packed[..length], "text"), None);
        }
        let mut damaged = packed;
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(unpack(&damaged, "text"), None);
    }

    #[test]
    fn files_are_named_by_generation_and_text() {
        let name = |architecture, text| file(architecture, text).unwrap();
        assert_ne!(name("sm_80", "a"), name("sm_90", "a"));
        assert_ne!(name("sm_80", "a"), name("sm_80", "b"));
    }
}

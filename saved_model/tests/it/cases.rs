//! Cases: folders with files that TensorFlow wrote and what it reads from them.
//!
//! A few small ones are part of the repository; a larger collection is used when the environment
//! variable `FERROFLOW_ZOO` names its folder.

use base64::prelude::{BASE64_STANDARD, Engine};
use ferroflow_ir::{DType, HostTensor, Shape};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) struct Case {
    pub(crate) folder: PathBuf,
    pub(crate) json: Value,
}

impl Case {
    pub(crate) fn name(&self) -> &str {
        text(&self.json["name"])
    }

    /// Whether anything but an error is wrong.
    pub(crate) fn must_fail(&self) -> bool {
        self.json["expect"]["error"] == true
    }

    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.folder.join(text(&self.json[key]))
    }

    /// A tensor as the case lists it: an `.npy` file, or strings or bytes in base64.
    pub(crate) fn tensor(&self, value: &Value) -> HostTensor {
        let dtype: DType = text(&value["dtype"]).parse().unwrap();
        let dims = list(&value["shape"]).iter().map(|dim| dim.as_u64().unwrap() as usize);
        let shape = Shape::new(dims).unwrap();
        if dtype == DType::String {
            let values = list(&value["values"]).iter().map(|value| base64(text(value)).into());
            return HostTensor::from_strings(shape, values.collect()).unwrap();
        }
        if let Some(bytes) = value["bytes"].as_str() {
            return HostTensor::from_bytes(dtype, shape, &base64(bytes)).unwrap();
        }
        let file = fs::read(self.folder.join(text(&value["npy"]))).unwrap();
        HostTensor::from_bytes(dtype, shape, npy_data(&file)).unwrap()
    }
}

/// The cases in the repository whose names begin with `prefix`, and those of the zoo.
pub(crate) fn cases(prefix: &str) -> Vec<Case> {
    let own =
        ["../tests/golden", "../tests/zoo"].map(|folder| cases_in(&crate_folder(folder), prefix));
    let mut cases: Vec<Case> = own.into_iter().flatten().collect();
    match std::env::var_os("FERROFLOW_ZOO") {
        Some(zoo) => cases.extend(cases_in(Path::new(&zoo), prefix)),
        None => eprintln!("FERROFLOW_ZOO is not set: only the cases of the repository are read"),
    }
    cases
}

/// A case of the repository.
pub(crate) fn golden(name: &str) -> Case {
    cases_in(&golden_folder(), name).remove(0)
}

pub(crate) fn golden_folder() -> PathBuf {
    crate_folder("../tests/golden")
}

fn crate_folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn cases_in(root: &Path, prefix: &str) -> Vec<Case> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    let read = |folder: PathBuf| {
        let json = fs::read(folder.join("case.json")).ok()?;
        Some(Case { json: serde_json::from_slice(&json).unwrap(), folder })
    };
    folders.into_iter().filter_map(read).collect()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The elements of a NumPy file, which must be in row-major order.
fn npy_data(file: &[u8]) -> &[u8] {
    assert_eq!(&file[..6], b"\x93NUMPY");
    let header = match file[6] {
        1 => 10 + usize::from(u16::from_le_bytes([file[8], file[9]])),
        _ => 12 + u32::from_le_bytes([file[8], file[9], file[10], file[11]]) as usize,
    };
    let description = std::str::from_utf8(&file[10..header]).unwrap();
    assert!(description.contains("'fortran_order': False"), "{description}");
    assert!(!description.contains("'>"), "{description}");
    &file[header..]
}

fn base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).unwrap()
}

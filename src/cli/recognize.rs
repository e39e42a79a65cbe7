//! Kinds of files and folders, told by what is in them, and the way on from each.
//!
//! Verbs take what people have at hand: the folder of a SavedModel, the file in it, a folder of
//! several versions, or a file of another program. What cannot be read here is refused with its kind
//! and with the command that makes a SavedModel of it.

use anyhow::{Result, bail};
use std::{
    fmt,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

/// The kind of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    SavedModel,
    /// A folder in which folders of SavedModels are.
    ModelCollection,
    /// The `saved_model.pb` or `saved_model.pbtxt` of a SavedModel.
    SavedModelFile,
    /// A checkpoint's index, data file, or prefix.
    Checkpoint,
    KerasArchive,
    Hdf5,
    TfLite,
    Onnx,
    Gzip,
    Tar,
    Zip,
    Safetensors,
    Numpy,
    /// A protocol buffer that is no SavedModel: most likely a GraphDef.
    GraphDef,
    Folder,
    Unknown,
    Absent,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::SavedModel => "a SavedModel",
            FileKind::ModelCollection => "a folder of SavedModels",
            FileKind::SavedModelFile => "the graph file of a SavedModel",
            FileKind::Checkpoint => "a checkpoint",
            FileKind::KerasArchive => "a Keras 3 archive",
            FileKind::Hdf5 => "an HDF5 file, as Keras writes models and weights",
            FileKind::TfLite => "a TensorFlow Lite model",
            FileKind::Onnx => "an ONNX model",
            FileKind::Gzip => "a gzip archive",
            FileKind::Tar => "a tar archive",
            FileKind::Zip => "a zip archive",
            FileKind::Safetensors => "a safetensors file",
            FileKind::Numpy => "a NumPy array",
            FileKind::GraphDef => "a protocol buffer, probably a GraphDef",
            FileKind::Folder => "a folder without `saved_model.pb`",
            FileKind::Unknown => "a file of an unknown kind",
            FileKind::Absent => "not there",
        })
    }
}

impl FileKind {
    /// The kind of what is at a path.
    pub(super) fn of(path: &Path) -> FileKind {
        if path.is_dir() {
            return of_folder(path);
        }
        if !path.exists() {
            let is_prefix = with_suffix(path, ".index").exists();
            return if is_prefix { FileKind::Checkpoint } else { FileKind::Absent };
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if matches!(name.as_str(), "saved_model.pb" | "saved_model.pbtxt") {
            return FileKind::SavedModelFile;
        }
        if name.ends_with(".index") || name.contains(".data-") {
            return FileKind::Checkpoint;
        }
        of_bytes(&beginning(path), &name)
    }

    /// The command that makes something readable of it.
    fn advice(self) -> &'static str {
        match self {
            FileKind::KerasArchive | FileKind::Hdf5 => {
                "its weights are listed by `ferroflow checkpoint show FILE`; in Python, \
                 `keras.models.load_model(FILE).export(DIR)` writes a SavedModel"
            }
            FileKind::TfLite => {
                "its weights are rewritten for TensorFlow Lite; give the SavedModel that it was \
                 converted from"
            }
            FileKind::Onnx => "`onnx2tf -i FILE -o DIR` writes a SavedModel",
            FileKind::Gzip | FileKind::Tar => "`tar xf FILE -C DIR` unpacks it",
            FileKind::Zip => "`unzip FILE -d DIR` unpacks it",
            FileKind::Checkpoint => {
                "it holds values and no graph; `ferroflow checkpoint show FILE` lists them"
            }
            FileKind::Safetensors => {
                "it holds values and no graph; `ferroflow convert FILE DIR --like MODEL` puts them \
                 into a SavedModel"
            }
            FileKind::GraphDef => {
                "`ferroflow run FILE --outputs NAME:0` runs a graph; `ferroflow ops FILE` lists its ops"
            }
            FileKind::Numpy => "it is an input: `--inputs NAME=FILE`",
            FileKind::SavedModel
            | FileKind::ModelCollection
            | FileKind::SavedModelFile
            | FileKind::Folder
            | FileKind::Unknown
            | FileKind::Absent => "give the folder in which `saved_model.pb` is",
        }
    }
}

/// The folder of the SavedModel that a path means.
///
/// # Errors
///
/// When there is none; the error names the kind of what is there, and the way on.
pub(super) fn model_folder(path: &Path) -> Result<PathBuf> {
    match FileKind::of(path) {
        FileKind::SavedModel => Ok(path.to_path_buf()),
        FileKind::SavedModelFile => {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            Ok(parent.unwrap_or(Path::new(".")).to_path_buf())
        }
        FileKind::ModelCollection => {
            let models = models_in(path);
            bail!(
                "{} is a folder of SavedModels; give one of them: {}",
                path.display(),
                models.join(", ")
            )
        }
        FileKind::Absent => bail!("{}: there is no such file or folder", path.display()),
        kind => bail!("{} is {kind}: {}", path.display(), kind.advice()),
    }
}

/// No more than so many names are listed.
const MOST_NAMES: usize = 12;

fn of_folder(path: &Path) -> FileKind {
    let is_model = |folder: &Path| {
        ["saved_model.pb", "saved_model.pbtxt"].iter().any(|name| folder.join(name).is_file())
    };
    match (is_model(path), models_in(path).is_empty()) {
        (true, _) => FileKind::SavedModel,
        (false, false) => FileKind::ModelCollection,
        (false, true) => FileKind::Folder,
    }
}

/// The names of the folders in a folder that are SavedModels, sorted.
fn models_in(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let models = entries.filter(|entry| entry.path().join("saved_model.pb").is_file());
    let mut names: Vec<String> = models.map(|entry| entry.path().display().to_string()).collect();
    names.sort();
    names.truncate(MOST_NAMES);
    names
}

/// Bytes that tell every kind.
const BEGINNING: usize = 512;

fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read is of an unknown kind.
        let _ = file.take(BEGINNING as u64).read_to_end(&mut bytes);
    }
    bytes
}

fn of_bytes(bytes: &[u8], name: &str) -> FileKind {
    let has = |at: usize, magic: &[u8]| bytes.get(at..at + magic.len()) == Some(magic);
    if has(0, b"\x89HDF\r\n\x1a\n") {
        FileKind::Hdf5
    } else if has(4, b"TFL3") {
        FileKind::TfLite
    } else if has(0, b"\x1f\x8b") {
        FileKind::Gzip
    } else if has(257, b"ustar") {
        FileKind::Tar
    } else if has(0, b"\x93NUMPY") || name.ends_with(".npz") {
        FileKind::Numpy
    } else if has(0, b"PK\x03\x04") {
        if name.ends_with(".keras") { FileKind::KerasArchive } else { FileKind::Zip }
    } else if name.ends_with(".safetensors") {
        FileKind::Safetensors
    } else if name.ends_with(".onnx") {
        FileKind::Onnx
    } else if name.ends_with(".pb") || name.ends_with(".pbtxt") {
        FileKind::GraphDef
    } else {
        FileKind::Unknown
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Extensions of formats that nothing here writes.
const FOREIGN: &[&str] =
    &["h5", "hdf5", "keras", "tflite", "onnx", "npz", "npy", "pt", "pth", "ckpt.index", "zip"];

/// Checks that a path to write to has no extension of a format that is not written.
///
/// # Errors
///
/// When it has.
pub(super) fn check_target(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if let Some(extension) = FOREIGN.iter().find(|ext| name.ends_with(&format!(".{ext}"))) {
        bail!(
            "{}: `.{extension}` files are not written; the formats are `.safetensors`, `.pb`, `.pbtxt`, \
             `.mlir`, `.mlirbc`, and checkpoints, whose paths have no extension",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_what_is_in_them() {
        let mut tar = vec![0; 300];
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, name, kind) in [
            (&b"\x89HDF\r\n\x1a\n..."[..], "model.keras", FileKind::Hdf5),
            (b"\x1c\0\0\0TFL3", "m.bin", FileKind::TfLite),
            (b"\x1f\x8b\x08", "m.tar.gz", FileKind::Gzip),
            (&tar, "m", FileKind::Tar),
            (b"PK\x03\x04", "m.keras", FileKind::KerasArchive),
            (b"PK\x03\x04", "m.zip", FileKind::Zip),
            (b"PK\x03\x04", "m.npz", FileKind::Numpy),
            (b"\x08\x07", "m.onnx", FileKind::Onnx),
            (b"\x0a\x10", "frozen.pb", FileKind::GraphDef),
            (b"", "m", FileKind::Unknown),
        ] {
            assert_eq!(of_bytes(bytes, name), kind, "{name}");
        }
    }

    #[test]
    fn foreign_formats_are_not_written() {
        for name in ["out.h5", "OUT.KERAS", "a/b.onnx"] {
            assert!(check_target(Path::new(name)).is_err(), "{name}");
        }
        for name in ["ckpt-1", "out.safetensors", "v1.5/ckpt", "graph.pb"] {
            assert!(check_target(Path::new(name)).is_ok(), "{name}");
        }
    }
}

//! The SavedModel that a path means, and the way on from what is none.
//!
//! Verbs take what people have at hand: the folder of a SavedModel, the file in it, a folder of
//! several versions, or a file of another program. What cannot be read here is refused with its kind
//! and with the command that makes a SavedModel of it.

use super::file_kind::{FileKind, models_in};
use anyhow::{Context as _, Result, bail};
use std::{
    fs::File,
    path::{Path, PathBuf},
};

impl FileKind {
    /// The command that makes something readable of it.
    pub(super) fn advice(self) -> &'static str {
        match self {
            FileKind::KerasArchive | FileKind::Hdf5 => {
                "its weights are listed by `ferroflow checkpoint show FILE`; in Python, \
                 `keras.models.load_model(FILE).export(DIR)` writes a SavedModel"
            }
            FileKind::KerasWeights => {
                "its weights are listed by `ferroflow checkpoint show FILE`; in Python, \
                 `model.load_weights(FILE)` and then `model.export(DIR)` write a SavedModel"
            }
            FileKind::TfLite => {
                "its weights are rewritten for TensorFlow Lite; give the SavedModel that it was \
                 converted from"
            }
            FileKind::Onnx => "`onnx2tf -i FILE -o DIR` writes a SavedModel",
            FileKind::PyTorch => {
                "in Python, `safetensors.torch.save_file(weights, FILE)` writes its weights, which \
                 `ferroflow convert FILE DIR --like MODEL` puts into a SavedModel"
            }
            FileKind::Gzip => "`gunzip -k FILE` unpacks it",
            FileKind::GzippedTar | FileKind::Tar => "`tar xf FILE -C DIR` unpacks it",
            FileKind::Zip => "`unzip FILE -d DIR` unpacks it",
            FileKind::Checkpoint => {
                "it holds values and no graph; `ferroflow checkpoint show FILE` lists them"
            }
            FileKind::Safetensors => {
                "it holds values and no graph; `ferroflow convert FILE DIR --like MODEL` puts them \
                 into a SavedModel"
            }
            FileKind::GraphDef => {
                "`ferroflow show FILE` lists its inputs and outputs, and `ferroflow run FILE --outputs \
                 NAME:0` runs it"
            }
            FileKind::Numpy => "it is an input: `--inputs NAME=FILE`",
            FileKind::Image => "it is an input: `--inputs NAME=@FILE`",
            FileKind::Empty => "the program that wrote it has not come to its end",
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
    check_readable(path)?;
    match FileKind::of(path) {
        FileKind::SavedModel => Ok(path.to_path_buf()),
        FileKind::SavedModelFile => {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            Ok(parent.unwrap_or(Path::new(".")).to_path_buf())
        }
        FileKind::ModelCollection => bail!(
            "{} is a folder of SavedModels; give one of them: {}",
            path.display(),
            some(&models_in(path))
        ),
        FileKind::Absent => bail!("{}: there is no such file or folder", path.display()),
        kind => bail!("{} is {kind}: {}", path.display(), kind.advice()),
    }
}

/// Checks that a file that is there can be opened.
///
/// # Errors
///
/// When it cannot, as when its rights do not allow it.
pub(super) fn check_readable(path: &Path) -> Result<()> {
    if path.is_file() {
        File::open(path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// No more than so many names are listed.
const MOST_NAMES: usize = 12;

/// The names of these, or of the first of them.
fn some(paths: &[PathBuf]) -> String {
    let names = paths.iter().take(MOST_NAMES).map(|path| path.display().to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MOST_NAMES) {
        0 => names,
        more => format!("{names}, and {more} more"),
    }
}

/// Extensions of formats that are written, and the one that checkpoints may have.
const WRITTEN: &[&str] = &["safetensors", "pb", "pbtxt", "mlir", "mlirbc", "ckpt"];

/// Checks that a path to write to has no extension of a format that is not written: one that is made
/// of letters and digits. `ckpt-100` and the loss in `weights.0.25` are no such extensions.
///
/// # Errors
///
/// When it has.
pub(super) fn check_target(path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let Some((_, extension)) = name.rsplit_once('.') else { return Ok(()) };
    let is_format = extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    if is_format && !WRITTEN.contains(&extension) {
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
    fn foreign_formats_are_not_written() {
        for name in ["out.h5", "OUT.KERAS", "a/b.onnx", "out.txt", "ckpt.index", "a.b.c"] {
            assert!(check_target(Path::new(name)).is_err(), "{name}");
        }
        for name in
            ["ckpt-1", "m.ckpt-1", "m.ckpt", "w.05-0.25", "out.safetensors", "v1.5/ckpt", "g.pb"]
        {
            assert!(check_target(Path::new(name)).is_ok(), "{name}");
        }
    }
}

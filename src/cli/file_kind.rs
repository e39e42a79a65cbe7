//! Kinds of files and folders, told by their content.

use flate2::read::GzDecoder;
use std::{
    fmt,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};
use zip::ZipArchive;

/// The kind of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    SavedModel,
    /// A folder in which folders of SavedModels are.
    ModelCollection,
    /// The `saved_model.pb` or `saved_model.pbtxt` of a SavedModel, or a small file beside it.
    SavedModelFile,
    /// A checkpoint's index, data file, or prefix.
    Checkpoint,
    KerasArchive,
    /// Weights alone, as `save_weights` of Keras writes them.
    KerasWeights,
    Hdf5,
    TfLite,
    Onnx,
    PyTorch,
    Gzip,
    GzippedTar,
    Tar,
    Zip,
    Safetensors,
    Numpy,
    Image,
    /// A protocol buffer that is no SavedModel: most likely a GraphDef.
    GraphDef,
    Folder,
    /// A file of no bytes.
    Empty,
    Unknown,
    Absent,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::SavedModel => "a SavedModel",
            FileKind::ModelCollection => "a folder of SavedModels",
            FileKind::SavedModelFile => "a file of a SavedModel",
            FileKind::Checkpoint => "a checkpoint",
            FileKind::KerasArchive => "a Keras 3 archive",
            FileKind::KerasWeights => "an HDF5 file of Keras with weights and no model",
            FileKind::Hdf5 => "an HDF5 file, as Keras writes models and weights",
            FileKind::TfLite => "a TensorFlow Lite model",
            FileKind::Onnx => "an ONNX model",
            FileKind::PyTorch => "a PyTorch file",
            FileKind::Gzip => "a gzip file",
            FileKind::GzippedTar => "a gzip archive",
            FileKind::Tar => "a tar archive",
            FileKind::Zip => "a zip archive",
            FileKind::Safetensors => "a safetensors file",
            FileKind::Numpy => "a NumPy array",
            FileKind::Image => "an image",
            FileKind::GraphDef => "a protocol buffer, probably a GraphDef",
            FileKind::Folder => "a folder without `saved_model.pb`",
            FileKind::Empty => "an empty file",
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
        if is_in_model(path, &name) {
            return FileKind::SavedModelFile;
        }
        let bytes = beginning(path);
        match of_bytes(&bytes, &name) {
            FileKind::Empty => FileKind::Empty,
            _ if name.ends_with(".index") || name.contains(".data-") => FileKind::Checkpoint,
            FileKind::Gzip if holds_tar(&bytes) => FileKind::GzippedTar,
            FileKind::Zip => of_archive(path).unwrap_or(FileKind::Zip),
            kind => kind,
        }
    }
}

/// Whether a file is the graph of a SavedModel, or what is written beside it.
fn is_in_model(path: &Path, name: &str) -> bool {
    match name {
        "saved_model.pb" | "saved_model.pbtxt" => true,
        "fingerprint.pb" | "keras_metadata.pb" => is_model(path.parent().unwrap_or(path)),
        _ => false,
    }
}

fn is_model(folder: &Path) -> bool {
    ["saved_model.pb", "saved_model.pbtxt"].iter().any(|name| folder.join(name).is_file())
}

fn of_folder(path: &Path) -> FileKind {
    match (is_model(path), models_in(path).is_empty()) {
        (true, _) => FileKind::SavedModel,
        (false, false) => FileKind::ModelCollection,
        (false, true) => FileKind::Folder,
    }
}

/// The folders in a folder that are SavedModels, sorted; where there are none, those in its folders.
pub(super) fn models_in(path: &Path) -> Vec<PathBuf> {
    let children = folders_in(path);
    let are_models = |folders: Vec<PathBuf>| -> Vec<PathBuf> {
        folders.into_iter().filter(|folder| is_model(folder)).collect()
    };
    let models = are_models(children.clone());
    match models.is_empty() {
        true => are_models(children.iter().flat_map(|child| folders_in(child)).collect()),
        false => models,
    }
}

/// Largest number of entries of a folder that are looked at.
const MOST_FOLDERS: usize = 1000;

fn folders_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let paths = entries.take(MOST_FOLDERS).map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Bytes that tell every kind.
const BEGINNING: usize = 4096;

fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // The part that can be read decides.
        let _ = file.take(BEGINNING as u64).read_to_end(&mut bytes);
    }
    bytes
}

fn of_bytes(bytes: &[u8], name: &str) -> FileKind {
    let has = |at: usize, magic: &[u8]| bytes.get(at..at + magic.len()) == Some(magic);
    let is_image = || {
        [&b"\xff\xd8\xff"[..], b"\x89PNG", b"GIF8", b"BM"].iter().any(|magic| has(0, magic))
            || has(0, b"RIFF") && has(8, b"WEBP")
    };
    if bytes.is_empty() {
        FileKind::Empty
    } else if has(0, b"\x89HDF\r\n\x1a\n") {
        if name.ends_with(".weights.h5") { FileKind::KerasWeights } else { FileKind::Hdf5 }
    } else if has(4, b"TFL3") {
        FileKind::TfLite
    } else if has(0, b"\x1f\x8b") {
        FileKind::Gzip
    } else if is_tar(bytes) {
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
    } else if is_image() {
        FileKind::Image
    } else {
        FileKind::Unknown
    }
}

fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Whether what a gzip file begins with is the beginning of a tar archive.
fn holds_tar(bytes: &[u8]) -> bool {
    let mut header = [0; 262];
    GzDecoder::new(bytes).read_exact(&mut header).is_ok() && is_tar(&header)
}

/// The kind of a zip archive, by the names in it.
fn of_archive(path: &Path) -> Option<FileKind> {
    let archive = ZipArchive::new(File::open(path).ok()?).ok()?;
    let has = |end: &str| archive.file_names().any(|name| name.ends_with(end));
    if has("model.weights.h5") {
        Some(FileKind::KerasArchive)
    } else if has("data.pkl") {
        Some(FileKind::PyTorch)
    } else if !archive.is_empty() && archive.file_names().all(|name| name.ends_with(".npy")) {
        Some(FileKind::Numpy)
    } else {
        None
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
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
            (b"\x89HDF\r\n\x1a\n...", "m.weights.h5", FileKind::KerasWeights),
            (b"\x1c\0\0\0TFL3", "m.bin", FileKind::TfLite),
            (b"\x1f\x8b\x08", "m.tar.gz", FileKind::Gzip),
            (&tar, "m", FileKind::Tar),
            (b"PK\x03\x04", "m.keras", FileKind::KerasArchive),
            (b"PK\x03\x04", "m.zip", FileKind::Zip),
            (b"PK\x03\x04", "m.npz", FileKind::Numpy),
            (b"\x08\x07", "m.onnx", FileKind::Onnx),
            (b"\x0a\x10", "frozen.pb", FileKind::GraphDef),
            (b"\xff\xd8\xff\xe0", "cat", FileKind::Image),
            (b"", "m.keras", FileKind::Empty),
            (b"text", "m", FileKind::Unknown),
        ] {
            assert_eq!(of_bytes(bytes, name), kind, "{name}");
        }
    }

    #[test]
    fn archives_are_told_by_the_names_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let zip = |file: &str, entry: &str| {
            let path = folder.path().join(file);
            let mut writer = zip::ZipWriter::new(File::create(&path).unwrap());
            writer.start_file(entry, zip::write::FileOptions::default()).unwrap();
            writer.finish().unwrap();
            FileKind::of(&path)
        };
        assert_eq!(zip("model", "model.weights.h5"), FileKind::KerasArchive);
        assert_eq!(zip("model.pt", "model/data.pkl"), FileKind::PyTorch);
        assert_eq!(zip("arrays", "x.npy"), FileKind::Numpy);
        assert_eq!(zip("model.zip", "saved_model.pb"), FileKind::Zip);
        let gzip = |bytes: &[u8]| {
            let path = folder.path().join("m.gz");
            let mut encoder =
                flate2::write::GzEncoder::new(File::create(&path).unwrap(), Default::default());
            std::io::Write::write_all(&mut encoder, bytes).unwrap();
            encoder.finish().unwrap();
            FileKind::of(&path)
        };
        let mut tar = vec![0; 1024];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(gzip(&tar), FileKind::GzippedTar);
        assert_eq!(gzip(b"text"), FileKind::Gzip);
    }

    #[test]
    fn models_are_found_two_folders_down() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("half_plus_two/1");
        fs::create_dir_all(&model).unwrap();
        assert_eq!(FileKind::of(folder.path()), FileKind::Folder);
        fs::write(model.join("saved_model.pb"), "").unwrap();
        assert_eq!(FileKind::of(folder.path()), FileKind::ModelCollection);
        assert_eq!(models_in(folder.path()), [folder.path().join("half_plus_two/1")]);
        fs::write(model.join("fingerprint.pb"), "a").unwrap();
        assert_eq!(FileKind::of(&model.join("fingerprint.pb")), FileKind::SavedModelFile);
    }
}

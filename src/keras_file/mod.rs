//! Weights in the files of Keras: `.keras` archives, `.weights.h5` files, and the `.h5` files of
//! Keras 2.
//!
//! An archive is a zip file with `model.weights.h5` in it, which is an HDF5 file: groups by the names
//! of layers, in them a dataset for each weight. Names here are the paths of datasets, such as
//! `layers/dense/vars/0`, the kernel of the first dense layer (source: `keras/src/saving/saving_lib.py`).
//!
//! ```no_run
//! for (name, weight) in ferroflow::keras_file::read("model.keras")? {
//!     println!("{name}: {}{}", weight.dtype(), weight.shape());
//! }
//! # Ok::<(), ferroflow::keras_file::KerasFileError>(())
//! ```

mod layers;

pub use layers::load_weights;

use ferroflow_ir::{DType, HostTensor, Limits, Shape};
use hdf5_reader::{Dataset, Datatype, Hdf5File, OpenOptions, group::Group};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};
use zip::{ZipArchive, result::ZipError};

/// A file whose weights cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct KerasFileError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub problem: KerasFileProblem,
}

/// A reason why weights cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KerasFileProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The archive is damaged, or has no weights.
    #[error("{0}")]
    Archive(#[from] ZipError),
    /// The weights are not a sound HDF5 file.
    #[error("{0}")]
    Hdf5(#[from] hdf5_reader::error::Error),
    /// Shape and elements do not make a tensor.
    #[error(transparent)]
    Tensor(#[from] ferroflow_ir::Error),
    /// Elements of a type that tensors do not have.
    #[error("the dataset `{name}` has elements of an unsupported type: {found}")]
    Dtype {
        /// The path of the dataset.
        name: String,
        /// The type, as HDF5 describes it.
        found: String,
    },
    /// The configuration of the model cannot be read.
    #[error("config.json: {0}")]
    Config(#[from] serde_json::Error),
    /// The weights do not fit the layers of the network that is to have them.
    #[error("{0}")]
    Layers(String),
    /// The network's objects make no graph, or a variable cannot be assigned.
    #[error(transparent)]
    Network(Box<ferroflow_tracer::Error>),
    /// The file asks for more than the limits allow.
    #[error("{0}")]
    Limit(String),
}

impl From<ferroflow_tracer::Error> for KerasFileProblem {
    fn from(error: ferroflow_tracer::Error) -> KerasFileProblem {
        KerasFileProblem::Network(Box::new(error))
    }
}

/// The weights inside an archive.
const WEIGHTS: &str = "model.weights.h5";

/// Bytes that begin a zip archive.
const ZIP: &[u8] = b"PK\x03\x04";

/// Reads all weights of a file, sorted by name.
///
/// # Errors
///
/// When the file is damaged, exceeds the default [`Limits`], or has elements that are no numbers.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<(String, HostTensor)>, KerasFileError> {
    read_with(path.as_ref(), &Limits::default())
}

/// Reads all weights of a file within limits: the bytes of one tensor, and of the weights in an
/// archive.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(
    path: &Path,
    limits: &Limits,
) -> Result<Vec<(String, HostTensor)>, KerasFileError> {
    read_all(path, limits).map_err(|problem| KerasFileError { path: path.into(), problem })
}

fn read_all(path: &Path, limits: &Limits) -> Result<Vec<(String, HostTensor)>, KerasFileProblem> {
    let mut start = Vec::new();
    File::open(path)?.take(ZIP.len() as u64).read_to_end(&mut start)?;
    let most = unpacked(fs::metadata(path)?.len()).min(limits.tensor_bytes);
    let bytes = if start == ZIP { of_archive(path, WEIGHTS, most)? } else { fs::read(path)? };
    let options = OpenOptions::default().with_max_read_bytes(most);
    let file = Hdf5File::from_vec_with_options(bytes, options)?;
    let mut collection = Collection { limits, left: most, weights: Vec::new() };
    collection.add(&file.root_group()?, "")?;
    collection.weights.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(collection.weights)
}

/// The most bytes that a file of this size can stand for: that is how far deflate packs (RFC 1951: 258
/// bytes in two bits), and room for what is small. A file of less may say that it holds more.
fn unpacked(length: u64) -> usize {
    usize::try_from(length.saturating_mul(1032).saturating_add(1 << 20)).unwrap_or(usize::MAX)
}

/// A file of an archive, unpacked.
fn of_archive(path: &Path, name: &str, most: usize) -> Result<Vec<u8>, KerasFileProblem> {
    let mut archive = ZipArchive::new(io::BufReader::new(File::open(path)?))?;
    let entry = archive.by_name(name)?;
    let mut bytes = Vec::new();
    entry.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(KerasFileProblem::Limit(format!("{name} has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The most bytes that the configuration of a model may have.
const MOST_CONFIG: usize = 64 << 20;

/// The configuration of the model in an archive.
fn config(path: &Path) -> Result<serde_json::Value, KerasFileProblem> {
    let most = unpacked(fs::metadata(path)?.len()).min(MOST_CONFIG);
    Ok(serde_json::from_slice(&of_archive(path, "config.json", most)?)?)
}

/// Weights that were read, and what may still be.
struct Collection<'l> {
    limits: &'l Limits,
    /// Bytes that further weights may have.
    left: usize,
    weights: Vec<(String, HostTensor)>,
}

impl Collection<'_> {
    /// Reads the datasets of a group and of those in it. A group may lead to itself, so depth, number
    /// and bytes are bounded.
    fn add(&mut self, group: &Group, prefix: &str) -> Result<(), KerasFileProblem> {
        let is_deep = prefix.matches('/').count() > self.limits.structure_depth;
        if is_deep || self.weights.len() > self.limits.nodes {
            let what = "groups nest too deep, or there are too many datasets";
            return Err(KerasFileProblem::Limit(what.into()));
        }
        let (groups, datasets) = group.members()?;
        for dataset in &datasets {
            let name = format!("{prefix}{}", dataset.name());
            let weight = tensor(dataset, &name)?;
            self.left = self.left.checked_sub(weight.bytes().len()).ok_or_else(|| {
                KerasFileProblem::Limit("the weights have more bytes than the file can hold".into())
            })?;
            self.weights.push((name, weight));
        }
        let mut groups = groups.iter();
        groups.try_for_each(|group| self.add(group, &format!("{prefix}{}/", group.name())))
    }
}

fn tensor(dataset: &Dataset, name: &str) -> Result<HostTensor, KerasFileProblem> {
    let Some(dtype) = dtype(dataset) else {
        let found = format!("{:?}", dataset.dtype());
        return Err(KerasFileProblem::Dtype { name: name.into(), found });
    };
    let sizes = dataset.shape().iter().map(|&size| usize::try_from(size).unwrap_or(usize::MAX));
    let shape = Shape::new(sizes)?;
    Ok(HostTensor::from_bytes(dtype, shape, &dataset.read_native_bytes()?)?)
}

/// The dtype of a dataset. HDF5 has no `bfloat16`: Keras writes two opaque bytes and an attribute.
fn dtype(dataset: &Dataset) -> Option<DType> {
    Some(match dataset.dtype() {
        Datatype::FixedPoint { size: 1, signed: true, .. } => DType::I8,
        Datatype::FixedPoint { size: 2, signed: true, .. } => DType::I16,
        Datatype::FixedPoint { size: 4, signed: true, .. } => DType::I32,
        Datatype::FixedPoint { size: 8, signed: true, .. } => DType::I64,
        Datatype::FixedPoint { size: 1, .. } => DType::U8,
        Datatype::FixedPoint { size: 2, .. } => DType::U16,
        Datatype::FixedPoint { size: 4, .. } => DType::U32,
        Datatype::FixedPoint { size: 8, .. } => DType::U64,
        Datatype::FloatingPoint { size: 2, .. } => DType::F16,
        Datatype::FloatingPoint { size: 4, .. } => DType::F32,
        Datatype::FloatingPoint { size: 8, .. } => DType::F64,
        Datatype::Enum { base, members } if members.len() == 2 && is_byte(base) => DType::Bool,
        Datatype::Opaque { size: 2, .. } => {
            let noted = dataset.attribute("dtype").ok()?.read_string().ok()?;
            (noted == "bfloat16").then_some(DType::BF16)?
        }
        _ => return None,
    })
}

fn is_byte(base: &Datatype) -> bool {
    matches!(base, Datatype::FixedPoint { size: 1, .. })
}

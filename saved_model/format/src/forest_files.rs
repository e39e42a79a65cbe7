//! Files of a decision forest as Yggdrasil Decision Forests writes them, which SavedModels of TensorFlow
//! Decision Forests have among their assets.
//!
//! A folder holds, with the same prefix before each name, `header.pb` (the kind of model, its input
//! columns), `data_spec.pb` (all columns), a header of that kind and `nodes-00000-of-0000N`: sequences of
//! length-prefixed [`TreeNode`] messages, tree after tree in preorder.
//!
//! Source: `model_library.cc`, `decision_tree_io.cc` and `blob_sequence.h` of Yggdrasil Decision Forests.

use crate::{
    error::{Error, Result},
    proto::yggdrasil::{
        BoostedTreesHeader, DataSpecification, ForestHeader, IsolationForestHeader,
        RandomForestHeader, TreeNode,
    },
};
use bytes::{Buf, Bytes};
use prost::Message;
use std::path::{Path, PathBuf};

/// Bytes before the first node of a file.
const HEADER: usize = 8;

/// The most files that nodes may be in: one is made for each 200 MB.
const MAX_SHARDS: usize = 4096;

/// The files of a folder, as the caller may read them.
pub trait ForestFolder {
    /// Error of the caller.
    type Error: From<Error>;

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    fn read(&mut self, path: &Path) -> Result<Bytes, Self::Error>;

    /// The bytes that were packed by gzip.
    ///
    /// # Errors
    ///
    /// When they are damaged or too many.
    fn unzip(&mut self, packed: Bytes) -> Result<Bytes, Self::Error>;
}

/// A decision forest as it is in files.
#[derive(Debug, Clone)]
pub struct ForestFiles {
    /// Header that all models have.
    pub header: ForestHeader,
    /// The columns.
    pub columns: DataSpecification,
    /// The header of the kind of model.
    pub kind: ForestKind,
    nodes: Vec<NodeFile>,
}

/// The nodes of one file.
#[derive(Debug, Clone)]
struct NodeFile {
    path: PathBuf,
    /// All of it, unpacked, but for the header.
    bytes: Bytes,
}

/// The kinds of forests.
#[derive(Debug, Clone, PartialEq)]
pub enum ForestKind {
    /// Trees that are trained apart, also a single one.
    Random(RandomForestHeader),
    /// Trees that correct those before them.
    Boosted(BoostedTreesHeader),
    /// Trees that set examples apart.
    Isolation(IsolationForestHeader),
}

impl ForestKind {
    /// Number of files of nodes, number of trees, and the format of the files.
    fn layout(&self) -> (i32, i64, &str) {
        match self {
            ForestKind::Random(header) => {
                (header.num_node_shards(), header.num_trees(), header.node_format())
            }
            ForestKind::Boosted(header) => {
                (header.num_node_shards(), header.num_trees(), header.node_format())
            }
            ForestKind::Isolation(header) => {
                (header.num_node_shards(), header.num_trees(), header.node_format())
            }
        }
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        usize::try_from(self.layout().1).unwrap_or(0)
    }
}

impl ForestFiles {
    /// Reads the files of `folder` whose names begin with `prefix`.
    ///
    /// # Errors
    ///
    /// Those of the caller's folder; [`Error::Message`] for damaged messages, [`Error::Damaged`] for
    /// damaged sequences, [`Error::Unsupported`] for models that are no forests.
    pub fn read<F: ForestFolder>(
        files: &mut F,
        folder: &Path,
        prefix: &str,
    ) -> Result<ForestFiles, F::Error> {
        let at = |name: &str| folder.join(format!("{prefix}{name}"));
        let header: ForestHeader = message(files, &at("header.pb"))?;
        let columns: DataSpecification = message(files, &at("data_spec.pb"))?;
        let kind = match header.name() {
            "RANDOM_FOREST" => ForestKind::Random(message(files, &at("random_forest_header.pb"))?),
            "GRADIENT_BOOSTED_TREES" => {
                ForestKind::Boosted(message(files, &at("gradient_boosted_trees_header.pb"))?)
            }
            "ISOLATION_FOREST" => {
                ForestKind::Isolation(message(files, &at("isolation_forest_header.pb"))?)
            }
            other => {
                let what = format!("a model of the kind `{other}`");
                return Err(unsupported(&at("header.pb"), what).into());
            }
        };
        let (n_files, _, format) = kind.layout();
        let path = at("nodes-00000-of-00001");
        if !matches!(format, "BLOB_SEQUENCE" | "BLOB_SEQUENCE_GZIP") {
            return Err(unsupported(&path, format!("nodes in the format `{format}`")).into());
        }
        let n_files = usize::try_from(n_files).ok().filter(|&n| n <= MAX_SHARDS);
        let n_files = n_files.ok_or_else(|| damaged(&path, 0, "too many files of nodes"))?;
        let mut nodes = Vec::new();
        for index in 0..n_files {
            let path = at(&format!("nodes-{index:05}-of-{n_files:05}"));
            let bytes = files.read(&path)?;
            let bytes = match blobs(&path, bytes)? {
                Blobs::Plain(blobs) => blobs,
                Blobs::Gzip(packed) => files.unzip(packed)?,
            };
            nodes.push(NodeFile { path, bytes });
        }
        Ok(ForestFiles { header, columns, kind, nodes })
    }

    /// The nodes of all trees, in preorder: behind a node with a condition its negative child with all
    /// that is below it, then its positive child.
    ///
    /// They are decoded one by one. An item is an error for a damaged sequence or message, and the last
    /// one then.
    pub fn nodes(&self) -> impl Iterator<Item = Result<TreeNode>> + '_ {
        let mut is_damaged = false;
        let nodes = self.nodes.iter().flat_map(NodeFile::nodes);
        nodes.take_while(move |node| !std::mem::replace(&mut is_damaged, node.is_err()))
    }
}

impl NodeFile {
    fn nodes(&self) -> impl Iterator<Item = Result<TreeNode>> + '_ {
        let mut rest = self.bytes.clone();
        std::iter::from_fn(move || (!rest.is_empty()).then(|| self.next_node(&mut rest)))
    }

    fn next_node(&self, rest: &mut Bytes) -> Result<TreeNode> {
        let offset = (HEADER + self.bytes.len() - rest.len()) as u64;
        let length = rest.try_get_u32_le().ok().map(|length| length as usize);
        let Some(length) = length.filter(|&length| length <= rest.len()) else {
            return Err(damaged(&self.path, offset, "a node is cut off"));
        };
        decode(&self.path, rest.split_to(length))
    }
}

/// A sequence of length-prefixed records.
enum Blobs {
    Plain(Bytes),
    Gzip(Bytes),
}

/// The records behind the header of a file: its letters `BS`, version, kind of compression.
fn blobs(path: &Path, mut bytes: Bytes) -> Result<Blobs> {
    if bytes.len() < HEADER || !bytes.starts_with(b"BS") {
        return Err(damaged(path, 0, "no sequence of nodes begins here"));
    }
    let header = bytes.split_to(HEADER);
    let version = u16::from_le_bytes([header[2], header[3]]);
    match (version, header[4]) {
        (0, _) | (1, 0) => Ok(Blobs::Plain(bytes)),
        (1, 1) => Ok(Blobs::Gzip(bytes)),
        _ => Err(unsupported(path, format!("version {version} of sequences of nodes"))),
    }
}

fn message<F: ForestFolder, M: Message + prost::Name + Default>(
    files: &mut F,
    path: &Path,
) -> Result<M, F::Error> {
    let bytes = files.read(path)?;
    Ok(decode(path, bytes)?)
}

fn decode<M: Message + prost::Name + Default>(path: &Path, bytes: Bytes) -> Result<M> {
    let wrong = |source| Error::Message { path: path.into(), message: M::NAME, source };
    M::decode(bytes).map_err(wrong)
}

fn damaged(path: &Path, offset: u64, what: &'static str) -> Error {
    Error::Damaged { path: path.into(), offset, what: what.into() }
}

fn unsupported(path: &Path, what: String) -> Error {
    Error::Unsupported { path: path.into(), what: what.into() }
}

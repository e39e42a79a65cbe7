//! Loading SavedModels.
//!
//! A SavedModel is a folder: `saved_model.pb` with one or more MetaGraphs, `variables/` with a
//! checkpoint, `assets/` with files. Loading goes in the order of the format's description:
//! objects are made, resources created, variables restored, resources initialised. Functions are
//! converted when they are called for the first time.
//!
//! A MetaGraph of TensorFlow 2 has an object graph, and [`load`] gives those objects. One of
//! TensorFlow 1 has signatures over a graph only; they are run through its [`Session`].
//!
//! Objects are loaded into programs, never into a graph that is being built for a session, and are
//! not tested with sessions: whoever has sessions, as other languages have, takes the graph of the
//! same file ([`load_session`]).

use crate::{
    carried::add_gradients,
    convert::{self, Definitions, add_functions},
    error::{Error, Result},
    model::{Model, SavedModel},
    proto::{self, MetaGraphDef},
    session::Session,
};
pub use ferroflow_format::saved_model_file::{assets, read_saved_model, tags};
use ferroflow_ir::FunctionLibrary;
use ferroflow_runtime::{Context, ResourceManager, files};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Parts of a model to load.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The tags of the MetaGraph; may be left out where there is one only.
    pub tags: Option<Vec<String>>,
    /// Paths from the root to the objects to load, with those they need; all, if `None`.
    pub only: Option<Vec<String>>,
}

impl LoadOptions {
    /// The objects that these paths lead to, names with dots between them, and what they need.
    pub fn only<T: Into<String>>(paths: impl IntoIterator<Item = T>) -> LoadOptions {
        let only = Some(paths.into_iter().map(Into::into).collect());
        LoadOptions { only, ..LoadOptions::default() }
    }

    /// The MetaGraph with these tags.
    pub fn tags<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> LoadOptions {
        let tags = Some(tags.into_iter().map(Into::into).collect());
        LoadOptions { tags, ..LoadOptions::default() }
    }
}

/// The parts of a MetaGraph that objects and sessions share.
#[derive(Debug)]
pub(crate) struct LoadedParts {
    pub(crate) context: Context,
    pub(crate) folder: PathBuf,
    pub(crate) meta_graph: MetaGraphDef,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) library: Arc<FunctionLibrary>,
    pub(crate) resources: Arc<ResourceManager>,
}

/// Loads a SavedModel.
///
/// Its files may be in memory:
///
/// ```
/// use ferroflow_runtime::{Context, files::MemoryFolder};
/// use ferroflow_saved_model::{LoadOptions, load};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let on_disk = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/zoo/k3_mlp/model");
/// let mut files = Vec::new();
/// for name in ["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"] {
///     files.push((name, std::fs::read(format!("{on_disk}/{name}"))?));
/// }
/// let folder = MemoryFolder::new(files)?;
/// let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
/// assert!(model.signatures().contains(&"serving_default".to_string()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When files are missing or damaged, no MetaGraph has the tags, or the objects contradict each
/// other. Ops that cannot run here are no error until they are called.
pub fn load(
    context: &Context,
    folder: impl AsRef<Path>,
    options: &LoadOptions,
) -> Result<SavedModel> {
    let parts = LoadedParts::read(context, folder.as_ref(), options)?;
    match &parts.meta_graph.object_graph_def {
        Some(objects) if !objects.nodes.is_empty() => {
            Model::load(parts, options.only.as_deref()).map(SavedModel::Objects)
        }
        _ => Session::load(parts).map(|session| SavedModel::Session(Arc::new(session))),
    }
}

/// Loads a SavedModel as a session over its graph, as loaders of TensorFlow 1 do, even if it has
/// objects.
///
/// # Errors
///
/// As [`load`].
pub fn load_session(
    context: &Context,
    folder: impl AsRef<Path>,
    options: &LoadOptions,
) -> Result<Session> {
    let mut parts = LoadedParts::read(context, folder.as_ref(), options)?;
    parts.meta_graph.object_graph_def = None;
    Session::load(parts)
}

fn choose(file: proto::SavedModel, folder: &Path, options: &LoadOptions) -> Result<MetaGraphDef> {
    let available: Vec<Vec<String>> =
        file.meta_graphs.iter().map(|meta_graph| tags(meta_graph).to_vec()).collect();
    let no_match = |asked: Option<&Vec<String>>| Error::NoMetaGraph {
        folder: folder.into(),
        asked: asked.cloned(),
        available: available.clone(),
    };
    let mut meta_graphs = file.meta_graphs;
    let Some(asked) = &options.tags else {
        return match meta_graphs.len() {
            1 => Ok(meta_graphs.remove(0)),
            _ => Err(no_match(None)),
        };
    };
    let same = |found: &[String]| {
        found.iter().all(|tag| asked.contains(tag)) && asked.iter().all(|tag| found.contains(tag))
    };
    match meta_graphs.iter().position(|meta_graph| same(tags(meta_graph))) {
        Some(index) => Ok(meta_graphs.swap_remove(index)),
        None => Err(no_match(Some(asked))),
    }
}

impl LoadedParts {
    fn read(context: &Context, folder: &Path, options: &LoadOptions) -> Result<LoadedParts> {
        let folder =
            files::absolute(folder).map_err(|source| Error::Io { path: folder.into(), source })?;
        let file = read_saved_model(&folder)?;
        let meta_graph = choose(file, &folder, options)?;
        LoadedParts::new(context, &folder, meta_graph)
    }

    pub(crate) fn new(
        context: &Context,
        folder: &Path,
        mut meta_graph: MetaGraphDef,
    ) -> Result<LoadedParts> {
        meta_graph.asset_file_def = assets(folder, &meta_graph)?;
        let graph = meta_graph.graph_def.get_or_insert_default();
        let library = graph.library.take().unwrap_or_default();
        let (registry, limits) = (context.registry().clone(), context.limits().clone());
        let definitions = Arc::new(Definitions::new(library, registry, limits)?);
        let library = Arc::new(FunctionLibrary::new());
        add_functions(&library, &definitions)?;
        add_gradients(&library, &definitions, meta_graph.object_graph_def.as_ref())?;
        let resources = Arc::new(ResourceManager::of_folder(folder));
        let (context, folder) = (context.clone(), folder.into());
        crate::host_ops::add_ops(&context);
        Ok(LoadedParts { context, folder, meta_graph, definitions, library, resources })
    }

    /// The prefix of the model's checkpoint.
    pub(crate) fn variables(&self) -> PathBuf {
        self.folder.join("variables").join("variables")
    }

    /// The path of an asset, which must lie in the model's own folder.
    pub(crate) fn asset(&self, index: i32) -> Result<PathBuf> {
        let files = &self.meta_graph.asset_file_def;
        let file = usize::try_from(index).ok().and_then(|index| files.get(index));
        let absent = || Error::NoAsset { index, n_assets: files.len() };
        let name = Path::new(&file.ok_or_else(absent)?.filename);
        let inside = name.components().all(|part| {
            matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir)
        });
        if !inside || name.as_os_str().is_empty() {
            return Err(Error::AssetPath { path: name.into() });
        }
        let path = self.folder.join("assets").join(name);
        // A link may lead anywhere. What is not there is found out by who opens it.
        let real = files::canonical(&path).ok().zip(files::canonical(&self.folder).ok());
        match real {
            Some((file, folder)) if !file.starts_with(&folder) => {
                Err(Error::AssetPath { path: name.into() })
            }
            _ => Ok(path),
        }
    }

    /// The value of a constant of the main graph.
    pub(crate) fn constant(&self, name: &str) -> Result<ferroflow_ir::HostTensor> {
        let graph = self.meta_graph.graph_def.as_ref();
        let node = graph.and_then(|graph| graph.node.iter().find(|node| node.name == name));
        let absent = || ferroflow_ir::Error::NotFound { kind: "constant", name: name.into() };
        let value =
            node.and_then(|node| node.attr.get("value")).and_then(|attr| attr.value.as_ref());
        match value {
            Some(proto::attr_value::Value::Tensor(tensor)) => {
                Ok(convert::tensor(tensor, self.definitions.limits())?)
            }
            _ => Err(absent().into()),
        }
    }
}

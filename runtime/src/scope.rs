//! Where calls find functions, resources and their own limits.

use crate::{
    context::Context, error::Result, files, origin::NodeOrigin, profile::RunProfile,
    resource::ResourceManager,
};
use ferroflow_ir::{Error as IrError, FunctionLibrary};
use ferroflow_kernels::Device;
use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// Where a call finds functions and named resources.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The context.
    pub context: &'a Context,
    /// The functions that may be called.
    pub library: &'a Arc<FunctionLibrary>,
    /// The resources that ops find by name.
    pub resources: &'a Arc<ResourceManager>,
    /// The node of a function that makes the call; none in eager code.
    pub(crate) origin: Option<&'a NodeOrigin>,
    /// Where the ops of a run are noted, if they are.
    pub(crate) profile: Option<&'a RunProfile>,
    /// The device that a call is made for, if not the CPU.
    pub(crate) device: Option<&'a Arc<dyn Device>>,
    /// The nesting depth of runs over data sets and of the functions they call.
    pub(crate) depth: usize,
}

impl<'a> Scope<'a> {
    /// Where code outside functions makes calls: in the state of the context.
    pub(crate) fn eager(context: &'a Context, library: &'a Arc<FunctionLibrary>) -> Scope<'a> {
        let resources = context.resources();
        let (origin, profile, device) = (None, None, None);
        Scope { context, library, resources, origin, profile, device, depth: 0 }
    }

    /// The scope of a run over a data set, or of a call of one of its functions, inside of this one.
    ///
    /// # Errors
    ///
    /// [`IrError::Limit`] when they nest too deep.
    pub(crate) fn deeper(self, levels: usize) -> Result<Scope<'a>> {
        let (depth, limit) = (self.depth + levels, self.context.limits().call_depth);
        if depth > limit {
            let (what, needed) = ("data sets and their functions".into(), depth.to_string());
            return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
        }
        Ok(Scope { depth, ..self })
    }

    /// The parts that outlive the call.
    pub(crate) fn owned(&self) -> OwnedScope {
        let (context, library) = (self.context.clone(), self.library.clone());
        OwnedScope { context, library, resources: self.resources.clone() }
    }

    /// The name of the node of a function that runs, if one does.
    pub fn node(&self) -> Option<&str> {
        self.origin.map(|origin| &*origin.node)
    }

    /// Checks that an op may read a file: one in the folder of its model, or any where the context
    /// grants that.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`](crate::Error::Denied) when it may not.
    pub fn check_file(&self, path: &Path) -> Result<()> {
        let folder = self.resources.folder().and_then(|folder| files::canonical(folder).ok());
        let inside =
            folder.zip(resolved(path)).is_some_and(|(folder, path)| path.starts_with(folder));
        if inside { Ok(()) } else { self.context.check_file(path) }
    }
}

/// The path with links resolved; of one that does not exist, that of the nearest folder that does and
/// the names below it.
fn resolved(path: &Path) -> Option<PathBuf> {
    let (at, real) = path.ancestors().find_map(|at| Some((at, files::canonical(at).ok()?)))?;
    let rest = path.strip_prefix(at).ok()?;
    let is_below = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| real.join(rest))
}

/// A scope without a call, which owns its parts.
#[derive(Debug, Clone)]
pub(crate) struct OwnedScope {
    pub(crate) context: Context,
    pub(crate) library: Arc<FunctionLibrary>,
    pub(crate) resources: Arc<ResourceManager>,
}

impl OwnedScope {
    /// The scope of a call.
    pub(crate) fn borrow(&self) -> Scope<'_> {
        let (context, library, resources) = (&self.context, &self.library, &self.resources);
        let (origin, profile, device) = (None, None, None);
        Scope { context, library, resources, origin, profile, device, depth: 0 }
    }
}

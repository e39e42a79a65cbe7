//! State outside tensors: who owns it, and how tensors refer to it.
//!
//! A resource lives as long as the Rust value that owns it. A handle, the element of a tensor of
//! dtype resource, either owns it too (as those that ops make) or only knows of it (as those that
//! functions capture).

#[cfg(all(test, shuttle))]
mod interleavings;

use crate::{
    eager_tensor::EagerTensor,
    error::{Error, Result},
    generator::Generators,
    owned_cache::OwnedCache,
    sync::Mutex,
};
use ferroflow_ir::{DType, Handle, HostTensor, TensorSpec, ValueType};
use std::{
    any::Any,
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

/// State that ops work on through a handle: a variable, a table, a queue.
pub trait Resource: Any + Send + Sync + fmt::Debug {
    /// Kind of the resource, for messages, such as `a variable`.
    fn kind(&self) -> &'static str;

    /// Dtype and shape of the value it holds, for shape inference.
    fn pointee(&self) -> Option<TensorSpec> {
        None
    }
}

#[derive(Clone)]
enum Link {
    Owned(Arc<dyn Resource>),
    Known(Weak<dyn Resource>),
}

/// Target of an element of a tensor of dtype resource.
#[derive(Clone)]
pub struct ResourceHandle {
    name: Arc<str>,
    kind: &'static str,
    link: Link,
}

impl fmt::Debug for ResourceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} `{}`>", self.kind, self.name)
    }
}

impl Handle for ResourceHandle {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl ResourceHandle {
    /// A handle that keeps the resource alive.
    pub fn owning(name: impl Into<Arc<str>>, resource: Arc<dyn Resource>) -> ResourceHandle {
        let kind = resource.kind();
        ResourceHandle { name: name.into(), kind, link: Link::Owned(resource) }
    }

    /// A handle that does not keep the resource alive.
    pub fn knowing(name: impl Into<Arc<str>>, resource: &Arc<dyn Resource>) -> ResourceHandle {
        let kind = resource.kind();
        ResourceHandle { name: name.into(), kind, link: Link::Known(Arc::downgrade(resource)) }
    }

    /// A handle of the same resource that does not keep it alive.
    #[must_use]
    pub fn downgrade(&self) -> ResourceHandle {
        let link = match &self.link {
            Link::Owned(resource) => Link::Known(Arc::downgrade(resource)),
            Link::Known(resource) => Link::Known(resource.clone()),
        };
        ResourceHandle { link, ..self.clone() }
    }

    /// A number that handles of the same resource share, and no others while one of them exists.
    pub fn id(&self) -> usize {
        match &self.link {
            Link::Owned(resource) => Arc::as_ptr(resource).cast::<()>() as usize,
            Link::Known(resource) => resource.as_ptr().cast::<()>() as usize,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The resource.
    ///
    /// # Errors
    ///
    /// [`Error::Dropped`] when its owner is gone.
    pub fn resource(&self) -> Result<Arc<dyn Resource>> {
        match &self.link {
            Link::Owned(resource) => Ok(resource.clone()),
            Link::Known(resource) => resource
                .upgrade()
                .ok_or_else(|| Error::Dropped { kind: self.kind, name: self.name.to_string() }),
        }
    }

    /// The resource as what it is.
    ///
    /// # Errors
    ///
    /// [`Error::Dropped`] when its owner is gone, [`Error::WrongResource`] when it is not a `T`.
    pub fn downcast<T: Resource>(&self, expected: &'static str) -> Result<Arc<T>> {
        let resource = self.resource()?;
        let found = resource.kind();
        let resource: Arc<dyn Any + Send + Sync> = resource;
        resource.downcast::<T>().map_err(|_| Error::WrongResource {
            name: self.name.to_string(),
            expected,
            found,
        })
    }

    /// A scalar tensor of this handle.
    pub fn to_tensor(&self) -> HostTensor {
        HostTensor::scalar_handle(DType::Resource, Arc::new(self.clone()))
    }

    /// The type of such a tensor, with what is known of the resource.
    pub fn value_type(&self) -> ValueType {
        let pointee = self.resource().ok().and_then(|resource| resource.pointee());
        let shape = ferroflow_ir::PartialShape::scalar();
        let pointee = pointee.map(Box::new);
        ValueType { pointee, ..ValueType::new(DType::Resource, shape) }
    }

    /// The handle in a scalar tensor of dtype resource.
    ///
    /// # Errors
    ///
    /// [`ferroflow_ir::Error::DType`] when there is none in it.
    pub fn of(tensor: &HostTensor) -> Result<&ResourceHandle> {
        let handle = tensor.handles()?.first().and_then(|h| h.as_any().downcast_ref());
        let (expected, found) = (DType::Resource, tensor.dtype());
        handle.ok_or_else(|| ferroflow_ir::Error::DType { expected, found }.into())
    }
}

/// The type of a tensor, with what a handle in it refers to.
pub fn value_type(tensor: &EagerTensor) -> ValueType {
    if tensor.dtype() == DType::Resource
        && let Ok(host) = tensor.host()
        && let Ok(handle) = ResourceHandle::of(host)
    {
        return handle.value_type();
    }
    ValueType::new(tensor.dtype(), tensor.shape())
}

/// Resources that ops create and find by name: those of one loaded model, or of eager code.
#[derive(Debug, Default)]
pub struct ResourceManager {
    entries: Mutex<HashMap<(String, String), Arc<dyn Resource>>>,
    folder: Option<PathBuf>,
    generators: Generators,
    cache: OwnedCache,
    numbered: Mutex<NumberedResources>,
}

/// Resources that programs know by numbers, as long as they live.
#[derive(Debug, Default)]
struct NumberedResources {
    last: u64,
    resources: HashMap<u64, Weak<dyn Resource>>,
}

impl ResourceManager {
    /// A manager of nothing yet.
    pub fn new() -> ResourceManager {
        ResourceManager::default()
    }

    /// A manager for a model whose files are in `folder`: its ops may read them.
    pub fn of_folder(folder: impl Into<PathBuf>) -> ResourceManager {
        ResourceManager { folder: Some(folder.into()), ..ResourceManager::default() }
    }

    /// The folder of the model.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The hidden state of random ops.
    pub(crate) fn generators(&self) -> &Generators {
        &self.generators
    }

    /// A cache of a layer above, kept as long as the resources.
    pub(crate) fn cache(&self) -> &OwnedCache {
        &self.cache
    }

    /// The resource of this name, made by `create` if there is none.
    ///
    /// # Errors
    ///
    /// Those of `create`.
    pub fn find_or_create(
        &self,
        container: &str,
        name: &str,
        create: impl FnOnce() -> Result<Arc<dyn Resource>>,
    ) -> Result<Arc<dyn Resource>> {
        let key = (container.to_string(), name.to_string());
        let mut entries = self.entries.lock();
        if let Some(resource) = entries.get(&key) {
            return Ok(resource.clone());
        }
        let resource = create()?;
        entries.insert(key, resource.clone());
        Ok(resource)
    }

    /// Puts a resource under a name, in place of any other.
    pub fn insert(&self, container: &str, name: &str, resource: Arc<dyn Resource>) {
        let key = (container.to_string(), name.to_string());
        let former = self.entries.lock().insert(key, resource);
        // It may look for resources when it is dropped, so no lock is held then.
        drop(former);
    }

    /// The resource of this name.
    pub fn find(&self, container: &str, name: &str) -> Option<Arc<dyn Resource>> {
        self.entries.lock().get(&(container.to_string(), name.to_string())).cloned()
    }

    /// Forgets a resource; `false` if there is none of this value.
    pub fn remove(&self, resource: &Arc<dyn Resource>) -> bool {
        let mut entries = self.entries.lock();
        let before = entries.len();
        entries.retain(|_, entry| !Arc::ptr_eq(entry, resource));
        entries.len() < before
    }

    /// A number of a resource, by which it is found as long as it lives.
    pub(crate) fn number_of(&self, resource: &Arc<dyn Resource>) -> u64 {
        let mut numbered = self.numbered.lock();
        numbered.resources.retain(|_, known| known.strong_count() > 0);
        let this = Arc::downgrade(resource);
        let known = numbered.resources.iter().find(|(_, known)| known.ptr_eq(&this));
        if let Some((number, _)) = known {
            return *number;
        }
        numbered.last += 1;
        let number = numbered.last;
        numbered.resources.insert(number, this);
        number
    }

    /// The resource of this number.
    pub(crate) fn numbered(&self, number: u64) -> Option<Arc<dyn Resource>> {
        self.numbered.lock().resources.get(&number)?.upgrade()
    }

    /// Names and resources, sorted by name.
    pub fn entries(&self) -> Vec<(String, Arc<dyn Resource>)> {
        let entries = self.entries.lock();
        let mut all: Vec<_> =
            entries.iter().map(|((_, name), resource)| (name.clone(), resource.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

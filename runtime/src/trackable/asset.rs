//! Files that belong to a model.

use super::{Description, Identity, ObjectKind, Trackable};
use crate::eager_tensor::EagerTensor;
use ferroflow_ir::{DType, HostTensor};
use parking_lot::Mutex;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

/// The files there are. A text says nothing of where it comes from, so functions that use one ask
/// here whether it is the path of a file, which saving has to know.
static ASSETS: Mutex<Vec<Weak<State>>> = Mutex::new(Vec::new());

/// A file that a model needs, such as a vocabulary. Saving the model copies the file; where it is
/// loaded, functions see the path of the copy. Clones are the same file.
///
/// ```
/// use ferroflow_runtime::trackable::Asset;
/// let words = Asset::new("/data/words.txt");
/// assert_eq!(words.tensor().host()?.strings()?[0], "/data/words.txt");
/// # Ok::<(), ferroflow_runtime::Error>(())
/// ```
///
/// Equal texts are no paths of files:
///
/// ```
/// use ferroflow_runtime::{EagerTensor, trackable::Asset};
/// use ferroflow_ir::HostTensor;
/// let words = Asset::new("/data/words.txt");
/// let text = EagerTensor::from(HostTensor::scalar_string("/data/words.txt"));
/// assert!(Asset::is_any_path(&words.tensor()) && !Asset::is_any_path(&text));
/// ```
#[derive(Clone)]
pub struct Asset(Arc<State>);

struct State {
    path: PathBuf,
    tensor: EagerTensor,
}

impl Asset {
    /// The file at this path.
    pub fn new(path: impl Into<PathBuf>) -> Asset {
        let path = path.into();
        let tensor = HostTensor::scalar_string(path.to_string_lossy().into_owned()).into();
        let state = Arc::new(State { path, tensor });
        let mut assets = ASSETS.lock();
        assets.retain(|asset| asset.strong_count() > 0);
        assets.push(Arc::downgrade(&state));
        Asset(state)
    }

    /// Whether a tensor is the path of some file, rather than an equal text.
    pub fn is_any_path(tensor: &EagerTensor) -> bool {
        let is_text = tensor.dtype() == DType::String && tensor.shape().rank() == 0;
        is_text && ASSETS.lock().iter().filter_map(Weak::upgrade).any(|a| Asset(a).is_path(tensor))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The path as a tensor. A function that uses this very tensor uses the file of the model it is
    /// saved in.
    pub fn tensor(&self) -> EagerTensor {
        self.0.tensor.clone()
    }

    /// Whether a tensor is the path of this file, rather than an equal text.
    pub fn is_path(&self, tensor: &EagerTensor) -> bool {
        let start = |tensor: &EagerTensor| {
            let strings = tensor.host().ok()?.strings().ok()?;
            strings.first().map(|text| text.as_ptr() as usize)
        };
        let own = start(&self.0.tensor);
        own.is_some() && own == start(tensor)
    }
}

impl fmt::Debug for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<asset {}>", self.0.path.display())
    }
}

impl Trackable for Asset {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(ObjectKind::Asset(self.clone()));
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(&self.0) as usize))
    }
}

//! Caches of layers above, owned by what they are caches for.

use std::{any::Any, fmt, sync::OnceLock};

/// A cache of one type, made when it is first asked for. Its owner does not know the type.
#[derive(Default)]
pub(crate) struct OwnedCache(OnceLock<Box<dyn Any + Send + Sync>>);

impl fmt::Debug for OwnedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedCache")
    }
}

impl OwnedCache {
    /// The cache.
    ///
    /// # Panics
    ///
    /// When it was made as another type.
    pub(crate) fn get<T: Any + Send + Sync + Default>(&self) -> &T {
        let cache = self.0.get_or_init(|| Box::<T>::default());
        cache.downcast_ref().expect("one layer uses this cache")
    }
}

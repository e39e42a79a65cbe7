//! The executables of a function, by the types of arguments they were specialised for.
//!
//! The first one is found without a lock. The others are found by a hash of the types in constant time,
//! and the one that was used longest ago is dropped where a new one exceeds the limit.

#[cfg(all(test, shuttle))]
mod interleavings;

use crate::{
    compile::compile,
    eager_tensor::EagerTensor,
    error::Result,
    executor::Executable,
    placement::PlacementRequest,
    resource::value_type,
    scope::Scope,
    sync::{
        Mutex, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use ferroflow_ir::{
    FunctionDef, FunctionLibrary, ValueType, hash::FastHasher, pass::specialize::Argument,
};
use smallvec::SmallVec;
use std::{
    borrow::Borrow,
    collections::HashMap,
    fmt,
    hash::Hasher,
    num::NonZeroUsize,
    sync::{Arc, OnceLock, Weak},
};

/// A function compiled for arguments of certain types.
pub(crate) struct Specialization {
    types: Vec<ValueType>,
    /// Where it was called, if not where the context runs everything.
    device: Option<Arc<str>>,
    /// The devices that arguments are on; empty where all are on the host.
    args: Vec<Option<Arc<str>>>,
    pub(crate) executable: Executable,
    /// When it was used last, in calls of the function that looked for one.
    used: AtomicU64,
}

impl Specialization {
    pub(crate) fn new(
        types: Vec<ValueType>,
        device: Option<Arc<str>>,
        args: Vec<Option<Arc<str>>>,
        executable: Executable,
    ) -> Specialization {
        Specialization { types, device, args, executable, used: AtomicU64::new(0) }
    }

    /// A function, compiled for arguments on the host like these.
    ///
    /// # Errors
    ///
    /// Those of [`compile`].
    pub(crate) fn on_host(
        scope: Scope<'_>,
        def: &FunctionDef,
        types: Vec<ValueType>,
    ) -> Result<Arc<Specialization>> {
        let args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
        let request = PlacementRequest::default();
        let executable = compile(&scope.owned(), def, &args, Vec::new(), &request)?;
        Ok(Arc::new(Specialization::new(types, None, Vec::new(), executable)))
    }

    pub(crate) fn run<T: Borrow<EagerTensor>>(
        &self,
        scope: Scope<'_>,
        args: &[T],
    ) -> Result<Vec<EagerTensor>> {
        self.executable.run(scope, args.iter().map(Borrow::borrow))
    }

    /// Whether it serves the same calls.
    fn is_like(&self, other: &Specialization) -> bool {
        self.types == other.types && self.device == other.device && self.args == other.args
    }

    fn is_placed(&self) -> bool {
        self.device.is_some() || !self.args.is_empty()
    }

    /// Whether it serves a call with arguments on the host that says nothing of devices.
    fn fits<T: Borrow<EagerTensor>>(&self, args: &[T]) -> bool {
        !self.is_placed()
            && args.iter().all(|arg| arg.borrow().device().is_none())
            && self.fits_types(args)
    }

    /// Whether it serves a call on a device with arguments wherever these are.
    fn fits_on<T: Borrow<EagerTensor>>(&self, device: Option<&str>, args: &[T]) -> bool {
        let expected = |index: usize| self.args.get(index).and_then(Option::as_deref);
        let same = |(index, arg): (usize, &T)| expected(index) == arg.borrow().device();
        self.device.as_deref() == device
            && args.iter().enumerate().all(same)
            && self.fits_types(args)
    }

    fn fits_types<T: Borrow<EagerTensor>>(&self, args: &[T]) -> bool {
        self.types.len() == args.len()
            && self.types.iter().zip(args).all(|(ty, arg)| {
                let arg = arg.borrow();
                let shape = ty.shape.dims().is_some_and(|dims| {
                    dims.len() == arg.shape().rank()
                        && dims.iter().zip(arg.shape().iter()).all(|(a, b)| *a == Some(*b))
                });
                ty.dtype == arg.dtype() && shape && (ty.pointee.is_none() || *ty == value_type(arg))
            })
    }

    fn hash(&self) -> u64 {
        let mut hasher = FastHasher::default();
        for ty in &self.types {
            hasher.write_u64(ty.dtype as u64);
            let dims = ty.shape.dims().unwrap_or_default();
            dims.iter().for_each(|dim| hasher.write_u64(dim.map_or(u64::MAX, |dim| dim as u64)));
        }
        hasher.finish()
    }
}

fn hash<T: Borrow<EagerTensor>>(args: &[T]) -> u64 {
    let mut hasher = FastHasher::default();
    for arg in args {
        let arg = arg.borrow();
        hasher.write_u64(arg.dtype() as u64);
        arg.shape().iter().for_each(|&dim| hasher.write_u64(dim as u64));
    }
    hasher.finish()
}

/// The specializations of a function.
pub(crate) struct Specializations {
    /// The one that was compiled first, which most functions never need another than.
    first: OnceLock<Arc<Specialization>>,
    others: RwLock<Others>,
    limit: NonZeroUsize,
    clock: AtomicU64,
    compilations: AtomicUsize,
}

#[derive(Default)]
struct Others {
    by_hash: HashMap<u64, SmallVec<[Arc<Specialization>; 1]>>,
    len: usize,
}

impl Specializations {
    /// None yet, and never more than `limit` besides the first.
    pub(crate) fn new(limit: NonZeroUsize) -> Specializations {
        Specializations {
            first: OnceLock::new(),
            others: RwLock::default(),
            limit,
            clock: AtomicU64::new(0),
            compilations: AtomicUsize::new(0),
        }
    }

    /// The number of specializations that were compiled, those included that were dropped.
    pub(crate) fn compilations(&self) -> usize {
        self.compilations.load(Ordering::Relaxed)
    }

    /// The first specialization, if it serves a call with arguments on the host.
    pub(crate) fn first<T: Borrow<EagerTensor>>(&self, args: &[T]) -> Option<&Specialization> {
        self.first.get().filter(|first| first.fits(args)).map(Arc::as_ref)
    }

    /// The specialization for a call with arguments on the host.
    pub(crate) fn on_host<T: Borrow<EagerTensor>>(
        &self,
        args: &[T],
    ) -> Option<Arc<Specialization>> {
        self.find(args, |found| found.fits(args))
    }

    /// The specialization for a call on a device, or with arguments on devices.
    pub(crate) fn on<T: Borrow<EagerTensor>>(
        &self,
        device: Option<&str>,
        args: &[T],
    ) -> Option<Arc<Specialization>> {
        self.find(args, |found| found.fits_on(device, args))
    }

    fn find<T: Borrow<EagerTensor>>(
        &self,
        args: &[T],
        fits: impl Fn(&Specialization) -> bool,
    ) -> Option<Arc<Specialization>> {
        if let Some(first) = self.first.get().filter(|first| fits(first)) {
            return Some(first.clone());
        }
        let others = self.others.read();
        let found = others.by_hash.get(&hash(args))?.iter().find(|other| fits(other))?;
        found.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(found.clone())
    }

    /// Keeps a specialization that was just compiled, unless another thread that missed it at the same time
    /// was first.
    pub(crate) fn insert(&self, new: Arc<Specialization>) {
        self.compilations.fetch_add(1, Ordering::Relaxed);
        if !new.is_placed() && self.first.set(new.clone()).is_ok() {
            return;
        }
        new.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        if self.first.get().is_some_and(|first| first.is_like(&new)) {
            return;
        }
        let mut others = self.others.write();
        let same_hash = others.by_hash.get(&new.hash());
        if same_hash.is_some_and(|list| list.iter().any(|other| other.is_like(&new))) {
            return;
        }
        if others.len == self.limit.get() {
            others.drop_oldest();
        }
        others.len += 1;
        others.by_hash.entry(new.hash()).or_default().push(new);
    }
}

impl Others {
    fn drop_oldest(&mut self) {
        let all = self.by_hash.iter().flat_map(|(&hash, list)| list.iter().map(move |x| (hash, x)));
        let oldest = all.min_by_key(|(_, other)| other.used.load(Ordering::Relaxed));
        let Some((hash, oldest)) = oldest.map(|(hash, oldest)| (hash, oldest.clone())) else {
            return;
        };
        if let Some(list) = self.by_hash.get_mut(&hash) {
            list.retain(|other| !Arc::ptr_eq(other, &oldest));
            if list.is_empty() {
                self.by_hash.remove(&hash);
            }
            self.len -= 1;
        }
    }
}

/// The specializations of functions that ops call by name while they run, by function and library.
#[derive(Default)]
pub(crate) struct CompiledFunctions(Mutex<HashMap<(usize, Arc<str>), CompiledFunction>>);

struct CompiledFunction {
    /// A library has one address as long as this exists.
    library: Weak<FunctionLibrary>,
    specializations: Arc<Specializations>,
}

impl fmt::Debug for CompiledFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledFunctions")
    }
}

impl CompiledFunctions {
    /// The specializations of a function of the library of a scope.
    pub(crate) fn of(&self, scope: Scope<'_>, name: &Arc<str>) -> Arc<Specializations> {
        let key = (Arc::as_ptr(scope.library) as usize, name.clone());
        let mut functions = self.0.lock();
        if let Some(function) = functions.get(&key) {
            return function.specializations.clone();
        }
        functions.retain(|_, function| function.library.strong_count() > 0);
        let specializations = Arc::new(Specializations::new(scope.context.specializations()));
        let library = Arc::downgrade(scope.library);
        let function = CompiledFunction { library, specializations: specializations.clone() };
        functions.insert(key, function);
        specializations
    }
}

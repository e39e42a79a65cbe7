//! State that functions make and fill, as objects: what tables are, and what users may add.

use crate::{
    context,
    error::Result,
    function::{Function, function},
    tensor::Tensor,
};
use ferroflow_runtime::{
    Context, ResourceHandle,
    trackable::{Description, Identity, ObjectKind, Saveable, Trackable},
};
use std::{fmt, sync::Arc};

/// State behind a handle, with the functions that make and fill it: saved models have these run
/// where they are loaded. Clones are the same state; it ends with the last of them.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, TrackableResource, ops};
/// use ferroflow_ir::DType;
/// # fn main() -> Result<()> {
/// let table = TrackableResource::new(
///     || ops::hash_table_v2(DType::String, DType::I64),
///     |table| ops::initialize_table_v2(table, &["a", "b"].into(), &vec![1i64, 2].into()),
/// )?;
/// let found = ops::lookup_table_find_v2(&table.handle(), &"b".into(), &Tensor::from(0i64))?;
/// assert_eq!(found.to_scalar::<i64>()?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TrackableResource(Arc<Inner>);

struct Inner {
    context: Context,
    handle: ResourceHandle,
    create: Function<(), Tensor>,
    initialize: Function<(), Tensor>,
    children: Vec<(String, Arc<dyn Trackable + Send + Sync>)>,
    saveables: Vec<Arc<dyn Saveable>>,
}

impl fmt::Debug for TrackableResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.handle.fmt(f)
    }
}

impl TrackableResource {
    /// State that `create` makes and `initialize` fills, given its handle. Both run now, and are
    /// functions of the model when that is saved.
    ///
    /// # Errors
    ///
    /// Those of `create` and `initialize`.
    pub fn new(
        create: impl Fn() -> Result<Tensor> + Send + Sync + 'static,
        initialize: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<TrackableResource> {
        let context = context::context();
        let create = function(create).with_name("_create_resource");
        let made = create.host_fn()(())?;
        let handle = ResourceHandle::of(made.host()?)?.clone();
        let known = handle.downgrade();
        // TensorFlow cannot save again a function that gives nothing.
        let initialize = function(move || -> Result<Tensor> {
            initialize(&known.to_tensor().into())?;
            Ok(Tensor::from(1))
        });
        let initialize = initialize.with_name("_initialize").with_input_signature(NO_ARGUMENTS);
        let create = create.with_input_signature(NO_ARGUMENTS);
        initialize.host_fn()(())?;
        let (children, saveables) = Default::default();
        let inner = Inner { context, handle, create, initialize, children, saveables };
        Ok(TrackableResource(Arc::new(inner)))
    }

    /// The same state, leading to another object besides its functions.
    #[must_use]
    pub fn with_child(
        self,
        name: &str,
        child: impl Trackable + Send + Sync + 'static,
    ) -> TrackableResource {
        self.changed(|inner| inner.children.push((name.into(), Arc::new(child))))
    }

    /// The same state, with a part that checkpoints hold.
    #[must_use]
    pub fn with_saveable(self, saveable: impl Saveable + 'static) -> TrackableResource {
        self.changed(|inner| inner.saveables.push(Arc::new(saveable)))
    }

    /// # Panics
    ///
    /// When there are clones: what a resource leads to is told when it is made.
    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> TrackableResource {
        let inner = Arc::get_mut(&mut self.0);
        change(inner.expect("what a resource leads to is told before it is cloned"));
        self
    }

    /// A tensor that refers to the state, without keeping it alive.
    pub fn handle(&self) -> Tensor {
        self.0.handle.downgrade().to_tensor().into()
    }
}

const NO_ARGUMENTS: [ferroflow_ir::TensorSpec; 0] = [];

impl Drop for Inner {
    /// State that was made under a name is known by that to the context; it ends here all the same.
    fn drop(&mut self) {
        if let Ok(resource) = self.handle.resource() {
            self.context.resources().remove(&resource);
        }
    }
}

impl Trackable for TrackableResource {
    fn describe(&self, object: &mut Description<'_>) {
        let inner = &*self.0;
        object.is(ObjectKind::Resource(inner.handle.clone()));
        object.child("_create_resource", &inner.create);
        object.child("_initialize", &inner.initialize);
        for (name, child) in &inner.children {
            object.child(name, &**child);
        }
        for saveable in &inner.saveables {
            object.saveable(saveable.clone());
        }
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_resource(&self.0.handle))
    }
}

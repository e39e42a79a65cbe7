//! Calls of ops that run in the runtime.

use crate::{
    context::Context,
    eager_tensor::{EagerTensor, Results},
    error::Result,
    resource::{Resource, ResourceHandle, value_type},
    scope::Scope,
};
use bytes::Bytes;
use ferroflow_ir::{
    Attrs, DType, Error, HostTensor, OpDef, Shape, ValueType,
    infer::{InputFacts, infer},
};
use smallvec::SmallVec;
use std::{fmt, path::PathBuf, sync::Arc};

/// A call of an op that runs here.
#[derive(Debug)]
pub struct RuntimeCall<'a> {
    /// The scope of the call.
    pub scope: Scope<'a>,
    /// The record.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: &'a Attrs,
    /// The inputs. The last call releases them, so that they may be changed in
    /// place.
    pub inputs: SmallVec<[EagerTensor; 4]>,
}

/// The body of such an op.
pub type RuntimeOpBody = fn(&mut RuntimeCall<'_>) -> Result<Results>;

/// Code that a context was passed as the body of an op.
type RegisteredCode = dyn Fn(&mut RuntimeCall<'_>) -> Result<Results> + Send + Sync;

/// The body of an op as calls run it: one of the runtime's own, or code that was passed to the
/// context.
#[derive(Clone)]
pub(crate) enum HostBody {
    BuiltIn(RuntimeOpBody),
    Given(Arc<RegisteredCode>),
}

impl HostBody {
    /// Runs the call.
    pub(crate) fn run(&self, call: &mut RuntimeCall<'_>) -> Result<Results> {
        match self {
            HostBody::BuiltIn(body) => body(call),
            HostBody::Given(body) => {
                let types = infer_outputs(call.op, call.attrs, &call.inputs)?;
                let results = body(call)?;
                check_results(call.op, &types, &results)?;
                Ok(results)
            }
        }
    }
}

impl fmt::Debug for HostBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostBody::BuiltIn(_) => "a body of the runtime",
            HostBody::Given(_) => "a body that was given",
        })
    }
}

impl<'a> RuntimeCall<'a> {
    /// The context.
    pub fn context(&self) -> &'a Context {
        self.scope.context
    }

    /// Input `index` in host memory.
    ///
    /// # Errors
    ///
    /// When it is elsewhere.
    pub fn host(&self, index: usize) -> Result<&HostTensor> {
        self.inputs[index].host()
    }

    /// Input `index` in host memory, released by the call.
    ///
    /// # Errors
    ///
    /// When it is elsewhere.
    pub fn taken(&mut self, index: usize) -> Result<HostTensor> {
        let nothing = HostTensor::scalar(0u8).into();
        std::mem::replace(&mut self.inputs[index], nothing).into_host()
    }

    /// The path in scalar string input `index`.
    ///
    /// # Errors
    ///
    /// When it is no scalar string, or not UTF-8.
    pub fn path(&self, index: usize) -> Result<PathBuf> {
        let tensor = self.host(index)?;
        match tensor.strings()? {
            [name] => path_of(name),
            _ => {
                let name = format!("input {index}");
                Err(Error::argument(self.op.name, name, "a scalar", tensor.shape()).into())
            }
        }
    }

    /// The path in a string: a name, or a URL of the scheme `file`.
    ///
    /// # Errors
    ///
    /// When it is not UTF-8.
    pub fn path_of(name: &Bytes) -> Result<PathBuf> {
        path_of(name)
    }

    /// The handle in input `index`.
    ///
    /// # Errors
    ///
    /// When it is no handle.
    pub fn handle(&self, index: usize) -> Result<&ResourceHandle> {
        ResourceHandle::of(self.host(index)?)
    }

    /// The handle of a resource by the attributes `container` and `shared_name`, made if there is none,
    /// or if it has no name.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub fn named_resource(
        &self,
        make: impl FnOnce() -> Result<Arc<dyn Resource>>,
    ) -> Result<ResourceHandle> {
        let name = self.attrs.string("shared_name")?;
        let resource = match name {
            "" => make()?,
            _ => {
                let container = self.attrs.string("container")?;
                self.scope.resources.find_or_create(container, name, make)?
            }
        };
        Ok(ResourceHandle::owning(name, resource))
    }

    /// The resource that input `index` refers to.
    ///
    /// # Errors
    ///
    /// When it is no handle, or of another kind of resource.
    pub fn resource<T: Resource>(&self, index: usize, expected: &'static str) -> Result<Arc<T>> {
        self.handle(index)?.downcast(expected)
    }
}

/// A single result.
///
/// # Errors
///
/// None: bodies end with it.
pub fn one(result: impl Into<EagerTensor>) -> Result<Results> {
    Ok(SmallVec::from_iter([result.into()]))
}

/// No result.
///
/// # Errors
///
/// None: bodies end with it.
pub fn none() -> Result<Results> {
    Ok(SmallVec::new())
}

/// The path in a string: a name, or a URL of the scheme `file`.
fn path_of(name: &Bytes) -> Result<PathBuf> {
    let name = name.strip_prefix(b"file://").unwrap_or(name);
    match std::str::from_utf8(name) {
        Ok(name) => Ok(name.into()),
        Err(_) => {
            let found = String::from_utf8_lossy(name);
            Err(Error::argument("a file op", "filename", "UTF-8", found).into())
        }
    }
}

/// Checks that results are as many as the shape function says, and of those types.
fn check_results(op: &OpDef, types: &[ValueType], results: &[EagerTensor]) -> Result<()> {
    if types.len() != results.len() {
        let message = format!(
            "the shape function of {} says {} results, there are {}",
            op.name,
            types.len(),
            results.len()
        );
        return Err(crate::Error::Status { code: ferroflow_ir::Code::Internal, message });
    }
    let mut pairs = types.iter().zip(results);
    match pairs.find(|(ty, result)| !is_typed(result.dtype(), result.shape(), ty)) {
        None => Ok(()),
        Some((ty, result)) => Err(mistyped(op, ty, result)),
    }
}

/// Whether a tensor has the type that the shape function of its op said.
pub(crate) fn is_typed(dtype: DType, shape: &Shape, ty: &ValueType) -> bool {
    let Some(dims) = ty.shape.dims() else { return dtype == ty.dtype };
    dtype == ty.dtype
        && dims.len() == shape.rank()
        && dims.iter().zip(shape.iter()).all(|(dim, size)| dim.is_none_or(|x| x == *size))
}

/// The error of an op whose result is not of the type that its shape function said.
#[cold]
pub(crate) fn mistyped(op: &OpDef, ty: &ValueType, result: &EagerTensor) -> crate::Error {
    let found = ValueType::new(result.dtype(), result.shape());
    let message = format!("the shape function of {} says {ty}, its result is {found}", op.name);
    crate::Error::Status { code: ferroflow_ir::Code::Internal, message }
}

/// The types of the results of a call whose inputs are all known.
///
/// # Errors
///
/// When the call does not fit the op.
pub(crate) fn infer_outputs(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<SmallVec<[ValueType; 2]>> {
    let types: SmallVec<[ValueType; 4]> = inputs.iter().map(value_type).collect();
    let mut facts: SmallVec<[InputFacts<'_>; 4]> = SmallVec::new();
    for (ty, input) in types.iter().zip(inputs) {
        facts.push(InputFacts { ty, value: Some(input.host()?) });
    }
    Ok(infer(op, attrs, &facts)?)
}

//! Functions that can be called: a graph, what it captures, and its specializations.

use crate::{
    compile::{compile, request},
    context::Context,
    eager_tensor::EagerTensor,
    error::{Error, Result},
    optimize::optimize,
    placement::{Placement, PlacementRequest},
    plan::estimate::MemoryEstimate,
    profile::{RunMetadata, RunOptions, RunProfile, TraceLevel},
    resource::{ResourceHandle, ResourceManager, value_type},
    scope::{OwnedScope, Scope},
    specializations::{Specialization, Specializations},
};
use ferroflow_ir::{
    FunctionDef, FunctionLibrary, HostTensor, ValueType, budget::CallOptions,
    pass::specialize::Argument,
};
use ferroflow_kernels::Device;
use smallvec::SmallVec;
use std::{borrow::Borrow, fmt, sync::Arc};

/// A value that a function uses without being passed it.
#[derive(Clone, Debug)]
pub enum CapturedInput {
    /// A tensor.
    Tensor(EagerTensor),
    /// State, known but not owned.
    Resource(ResourceHandle),
}

impl CapturedInput {
    fn to_host(&self) -> Result<HostTensor> {
        match self {
            CapturedInput::Tensor(tensor) => Ok(tensor.host()?.clone()),
            CapturedInput::Resource(handle) => Ok(handle.to_tensor()),
        }
    }
}

/// A function of tensors. Cheap to clone; clones share the specializations.
#[derive(Clone)]
pub struct CallableFunction(Arc<Inner>);

struct Inner {
    scope: OwnedScope,
    def: Arc<FunctionDef>,
    captures: Vec<CapturedInput>,
    specializations: Specializations,
}

impl fmt::Debug for CallableFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function `{}`>", self.0.def.name)
    }
}

/// Shapes that arguments may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shapes {
    AsDeclared,
    Any,
}

impl CallableFunction {
    /// A function that captures nothing and calls no other.
    ///
    /// # Errors
    ///
    /// None at present; the graph is checked when it is compiled.
    pub fn new(context: &Context, def: FunctionDef) -> Result<CallableFunction> {
        let library = Arc::new(FunctionLibrary::new());
        let resources = context.resources().clone();
        Ok(CallableFunction::with_captures(context, Arc::new(def), library, resources, Vec::new()))
    }

    /// A function of a library. Its last arguments are the captures.
    pub fn with_captures(
        context: &Context,
        def: Arc<FunctionDef>,
        library: Arc<FunctionLibrary>,
        resources: Arc<ResourceManager>,
        captures: Vec<CapturedInput>,
    ) -> CallableFunction {
        let scope = OwnedScope { context: context.clone(), library, resources };
        let specializations = Specializations::new(context.specializations());
        CallableFunction(Arc::new(Inner { scope, def, captures, specializations }))
    }

    #[cfg(all(test, shuttle))]
    pub(crate) fn specializations(&self) -> &Specializations {
        &self.0.specializations
    }

    /// The definition.
    pub fn def(&self) -> &Arc<FunctionDef> {
        &self.0.def
    }

    /// The functions it may call.
    pub fn library(&self) -> &Arc<FunctionLibrary> {
        &self.0.scope.library
    }

    /// Captured values.
    pub fn captures(&self) -> &[CapturedInput] {
        &self.0.captures
    }

    /// The number of arguments a caller passes: all but the captures.
    pub fn n_args(&self) -> usize {
        self.0.def.args.len().saturating_sub(self.0.captures.len())
    }

    /// Calls the function.
    ///
    /// # Errors
    ///
    /// [`Error::FunctionArgument`] when the arguments do not fit, otherwise whatever fails in it,
    /// with the node where it happened.
    pub fn call(&self, args: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
        self.call_with(args, Shapes::AsDeclared, self.0.scope.borrow())
    }

    /// Calls the function on a device: ops without a device of their own runs there, where the
    /// device has kernels for it. [`placement`](CallableFunction::placement) tells what runs where.
    ///
    /// # Errors
    ///
    /// As [`call`](CallableFunction::call), and whatever fails on the device.
    pub fn call_on(
        &self,
        device: &Arc<dyn Device>,
        args: &[&EagerTensor],
    ) -> Result<Vec<EagerTensor>> {
        self.placed_specialization(Some(device), args, Shapes::AsDeclared)?
            .run(self.0.scope.borrow(), args)
    }

    /// Device of each node, and the copies, of a call with arguments like these, on a device or on
    /// that of the context.
    ///
    /// # Errors
    ///
    /// As [`call`](CallableFunction::call), but for what depends on values.
    pub fn placement(
        &self,
        device: Option<&Arc<dyn Device>>,
        args: &[&EagerTensor],
    ) -> Result<Placement> {
        let specialization = self.placed_specialization(device, args, Shapes::Any)?;
        let cpu = self.0.scope.context.cpu().name();
        Ok(specialization.executable.placement_or(cpu))
    }

    /// Calls the function with borrowed arguments.
    ///
    /// # Errors
    ///
    /// As [`call`](CallableFunction::call).
    pub fn call_refs(&self, args: &[&EagerTensor]) -> Result<Vec<EagerTensor>> {
        self.call_with(args, Shapes::AsDeclared, self.0.scope.borrow())
    }

    /// Calls the function in this way; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call`](CallableFunction::call).
    pub fn call_with_options(
        &self,
        options: &RunOptions,
        args: &[&EagerTensor],
    ) -> Result<(Vec<EagerTensor>, RunMetadata)> {
        self.run_with_options(options, args, Shapes::AsDeclared)
    }

    fn run_with_options(
        &self,
        options: &RunOptions,
        args: &[&EagerTensor],
        shapes: Shapes,
    ) -> Result<(Vec<EagerTensor>, RunMetadata)> {
        let inner = &*self.0;
        let specialization = self.specialization(args, shapes)?;
        let profile = RunProfile::new();
        let noted = match options.trace_level {
            TraceLevel::None => None,
            TraceLevel::Ops => Some(&profile),
        };
        let scope = Scope { profile: noted, ..inner.scope.borrow() };
        let results = specialization.run(scope, args)?;
        let device = inner.scope.context.cpu().name();
        let mut metadata = profile.into_metadata(device, specialization.executable.arena_bytes());
        metadata.compilations = inner.specializations.compilations();
        Ok((results, metadata))
    }

    /// Calls the function within a budget, as [`Context::within`] runs any code.
    ///
    /// # Errors
    ///
    /// As [`call`](CallableFunction::call), [`Error::Interrupted`] when time or rounds are over,
    /// and [`Limit`](ferroflow_ir::Error::Limit) when memory or printed text exceed the budget.
    pub fn call_within(
        &self,
        options: &CallOptions,
        args: &[&EagerTensor],
    ) -> Result<Vec<EagerTensor>> {
        self.0.scope.context.within(options, || self.call_refs(args))
    }

    /// The memory that a call with arguments of these types takes, as far as it is known before the
    /// call. The function is compiled for them, and nothing is kept.
    ///
    /// # Errors
    ///
    /// As [`optimized_text`](CallableFunction::optimized_text).
    pub fn memory_estimate(&self, types: &[ValueType]) -> Result<MemoryEstimate> {
        if types.len() != self.n_args() {
            return Err(self.wrong("the arguments", self.n_args(), types.len()));
        }
        Ok(self.compile(types.to_vec(), None, &[])?.executable.memory_estimate())
    }

    /// Calls the function with arguments of any shape, whatever it was traced for. TensorFlow does
    /// not hold the arguments of signatures against the shapes they declare.
    ///
    /// # Errors
    ///
    /// As [`call`](CallableFunction::call), but for shapes.
    pub fn call_with_any_shapes(&self, args: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
        self.call_with(args, Shapes::Any, self.0.scope.borrow())
    }

    /// Calls the function in this way with arguments of any shape; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call_with_any_shapes`](CallableFunction::call_with_any_shapes).
    pub fn call_with_options_and_any_shapes(
        &self,
        options: &RunOptions,
        args: &[&EagerTensor],
    ) -> Result<(Vec<EagerTensor>, RunMetadata)> {
        self.run_with_options(options, args, Shapes::Any)
    }

    fn call_with<T: Borrow<EagerTensor>>(
        &self,
        args: &[T],
        shapes: Shapes,
        scope: Scope<'_>,
    ) -> Result<Vec<EagerTensor>> {
        if let Some(first) = self.0.specializations.first(args) {
            return first.run(scope, args);
        }
        self.specialization(args, shapes)?.run(scope, args)
    }

    /// The specialization for these arguments.
    fn specialization<T: Borrow<EagerTensor>>(
        &self,
        args: &[T],
        shapes: Shapes,
    ) -> Result<Arc<Specialization>> {
        if args.len() == self.n_args() && args.iter().all(|arg| arg.borrow().device().is_none()) {
            let found = self.0.specializations.on_host(args);
            return found.map_or_else(|| self.compiled(None, args, shapes), Ok);
        }
        self.placed_specialization(None, args, shapes)
    }

    /// The specialization for a call on a device, or for arguments on devices.
    fn placed_specialization<T: Borrow<EagerTensor>>(
        &self,
        device: Option<&Arc<dyn Device>>,
        args: &[T],
        shapes: Shapes,
    ) -> Result<Arc<Specialization>> {
        if args.len() != self.n_args() {
            return Err(self.wrong("the arguments", self.n_args(), args.len()));
        }
        let found = self.0.specializations.on(device.map(|device| device.name()), args);
        found.map_or_else(|| self.compiled(device, args, shapes), Ok)
    }

    fn wrong(
        &self,
        argument: &str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::FunctionArgument {
            function: self.0.def.name.to_string(),
            argument: argument.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// A new specialization, for arguments of these types.
    fn compiled<T: Borrow<EagerTensor>>(
        &self,
        device: Option<&Arc<dyn Device>>,
        args: &[T],
        shapes: Shapes,
    ) -> Result<Arc<Specialization>> {
        let inner = &*self.0;
        let types: Vec<ValueType> = args.iter().map(|arg| value_type(arg.borrow())).collect();
        for (index, ty) in types.iter().enumerate() {
            let declared = inner.def.arg_type(index);
            let shape_fits = shapes == Shapes::Any || ty.shape.is_subtype_of(&declared.shape);
            let fits = ty.dtype == declared.dtype && shape_fits;
            if !fits {
                return Err(self.wrong(inner.def.arg_name(index), declared, ty));
            }
        }
        let args: SmallVec<[&EagerTensor; 4]> = args.iter().map(Borrow::borrow).collect();
        let specialization = Arc::new(self.compile(types, device, &args)?);
        inner.specializations.insert(specialization.clone());
        Ok(specialization)
    }

    fn compile(
        &self,
        types: Vec<ValueType>,
        device: Option<&Arc<dyn Device>>,
        given: &[&EagerTensor],
    ) -> Result<Specialization> {
        let inner = &*self.0;
        let mut args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
        let mut captured = Vec::with_capacity(inner.captures.len());
        for capture in &inner.captures {
            args.push(match capture {
                CapturedInput::Tensor(tensor) => {
                    Argument { ty: value_type(tensor), value: tensor.host().ok().cloned() }
                }
                CapturedInput::Resource(handle) => handle.value_type().into(),
            });
            captured.push(capture.to_host()?);
        }
        let scope = inner.scope.borrow();
        let asked = device.or_else(|| scope.context.default_device());
        let request = request(scope, asked, given)?;
        let executable = compile(&inner.scope, &inner.def, &args, captured, &request)?;
        let device = device.map(|device| device.name().into());
        let args = given.iter().map(|arg| arg.device().map(Arc::from));
        let anywhere = given.iter().any(|arg| arg.device().is_some());
        let args = if anywhere { args.collect() } else { Vec::new() };
        Ok(Specialization::new(types, device, args, executable))
    }

    /// The optimised graph that runs for arguments of these types, as text.
    ///
    /// # Errors
    ///
    /// Whatever makes it impossible to compile.
    pub fn optimized_text(&self, types: &[ValueType]) -> Result<String> {
        let inner = &*self.0;
        let args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
        let device = inner.scope.context.default_device().cloned();
        let request = PlacementRequest { device, args: Vec::new() };
        let placed = optimize(&inner.scope, &inner.def, &args, &[], &request)?;
        Ok(placed.function.graph.to_string())
    }
}

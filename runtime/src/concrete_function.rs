//! Functions that can be called: a graph, what it captures, and its compiled forms.

use crate::{
    context::Context,
    eager_tensor::EagerTensor,
    error::{Error, Result},
    execute::{Results, Scope, value_type},
    executor::{Executable, Surroundings},
    plan::plan,
    resource::{ResourceHandle, ResourceManager},
};
use ferroflow_ir::{
    AttrValue, Attrs, FunctionDef, FunctionLibrary, HostTensor, Limits, OpDef, ValueType,
    op::Call,
    pass::{
        cse::cse,
        fuse::fuse,
        prune::prune,
        specialize::{Argument, Specialized, Specializer},
    },
};
use parking_lot::RwLock;
use std::{fmt, sync::Arc};

/// A value that a function uses without being given it.
#[derive(Clone, Debug)]
pub enum Capture {
    /// A tensor.
    Tensor(EagerTensor),
    /// State, known but not owned.
    Resource(ResourceHandle),
}

impl Capture {
    fn to_host(&self) -> Result<HostTensor> {
        match self {
            Capture::Tensor(tensor) => Ok(tensor.host()?.clone()),
            Capture::Resource(handle) => Ok(handle.to_tensor()),
        }
    }
}

/// A function of tensors. Cheap to clone; clones share the compiled forms.
#[derive(Clone)]
pub struct ConcreteFunction(Arc<Inner>);

struct Inner {
    surroundings: Surroundings,
    def: Arc<FunctionDef>,
    captures: Vec<Capture>,
    compiled: RwLock<Vec<(Vec<ValueType>, Arc<Executable>)>>,
}

impl fmt::Debug for ConcreteFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function `{}`>", self.0.def.name)
    }
}

/// What shapes arguments may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shapes {
    AsDeclared,
    Any,
}

/// No more than this many forms of a function are kept; the oldest goes first.
const KEPT_FORMS: usize = 64;

impl ConcreteFunction {
    /// A function that captures nothing and calls no other.
    ///
    /// # Errors
    ///
    /// None at present; the graph is checked when it is compiled.
    pub fn new(context: &Context, def: FunctionDef) -> Result<ConcreteFunction> {
        let library = Arc::new(FunctionLibrary::new());
        let resources = context.resources().clone();
        Ok(ConcreteFunction::with_captures(context, Arc::new(def), library, resources, Vec::new()))
    }

    /// A function of a library. Its last arguments are the captures.
    pub fn with_captures(
        context: &Context,
        def: Arc<FunctionDef>,
        library: Arc<FunctionLibrary>,
        resources: Arc<ResourceManager>,
        captures: Vec<Capture>,
    ) -> ConcreteFunction {
        let surroundings = Surroundings { context: context.clone(), library, resources };
        let compiled = RwLock::default();
        ConcreteFunction(Arc::new(Inner { surroundings, def, captures, compiled }))
    }

    /// The definition.
    pub fn def(&self) -> &Arc<FunctionDef> {
        &self.0.def
    }

    /// The functions it may call.
    pub fn library(&self) -> &Arc<FunctionLibrary> {
        &self.0.surroundings.library
    }

    /// What it captures.
    pub fn captures(&self) -> &[Capture] {
        &self.0.captures
    }

    /// The number of arguments a caller gives: all but the captures.
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
        self.call_with(args, Shapes::AsDeclared)
    }

    /// Calls the function with arguments of any shape, whatever it was traced for. TensorFlow does
    /// not hold the arguments of signatures against the shapes they declare.
    ///
    /// # Errors
    ///
    /// As [`call`](ConcreteFunction::call), but for shapes.
    pub fn call_with_any_shapes(&self, args: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
        self.call_with(args, Shapes::Any)
    }

    fn call_with(&self, args: &[EagerTensor], shapes: Shapes) -> Result<Vec<EagerTensor>> {
        let inner = &*self.0;
        if args.len() != self.n_args() {
            return Err(self.wrong("the arguments", self.n_args(), args.len()));
        }
        let executable = self.compiled(args, shapes)?;
        let mut values = Vec::with_capacity(inner.def.args.len());
        for arg in args {
            values.push(arg.host()?.clone());
        }
        for capture in &inner.captures {
            values.push(capture.to_host()?);
        }
        executable.run(inner.surroundings.scope(), values.into_iter())
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

    /// The form for arguments of these types.
    fn compiled(&self, args: &[EagerTensor], shapes: Shapes) -> Result<Arc<Executable>> {
        let inner = &*self.0;
        let found = inner.compiled.read().iter().find(|(types, _)| fits(types, args)).cloned();
        if let Some((_, executable)) = found {
            return Ok(executable);
        }
        let types: Vec<ValueType> = args.iter().map(value_type).collect();
        for (index, ty) in types.iter().enumerate() {
            let declared = inner.def.arg_type(index);
            let shape_fits = shapes == Shapes::Any || ty.shape.is_subtype_of(&declared.shape);
            let fits = ty.dtype == declared.dtype && shape_fits;
            if !fits {
                return Err(self.wrong(inner.def.arg_name(index), declared, ty));
            }
        }
        let executable = Arc::new(self.compile(&types)?);
        let mut compiled = inner.compiled.write();
        if compiled.len() == KEPT_FORMS {
            compiled.remove(0);
        }
        compiled.push((types, executable.clone()));
        Ok(executable)
    }

    fn compile(&self, types: &[ValueType]) -> Result<Executable> {
        let inner = &*self.0;
        let mut args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
        for capture in &inner.captures {
            args.push(match capture {
                Capture::Tensor(tensor) => {
                    Argument { ty: value_type(tensor), value: tensor.host().ok().cloned() }
                }
                Capture::Resource(handle) => handle.value_type().into(),
            });
        }
        compile(&inner.surroundings, &inner.def, &args)
    }

    /// The optimised graph that runs for arguments of these types, as text.
    ///
    /// # Errors
    ///
    /// Whatever makes it impossible to compile.
    pub fn optimized_text(&self, types: &[ValueType]) -> Result<String> {
        let inner = &*self.0;
        let args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
        let specialized = optimize(&inner.surroundings, &inner.def, &args)?;
        Ok(specialized.graph.to_string())
    }
}

fn fits(types: &[ValueType], args: &[EagerTensor]) -> bool {
    types.len() == args.len()
        && types.iter().zip(args).all(|(ty, arg)| {
            let shape = ty.shape.dims().is_some_and(|dims| {
                dims.len() == arg.shape().rank()
                    && dims.iter().zip(arg.shape().iter()).all(|(a, b)| *a == Some(*b))
            });
            ty.dtype == arg.dtype() && shape && (ty.pointee.is_none() || *ty == value_type(arg))
        })
}

fn optimize(
    surroundings: &Surroundings,
    def: &FunctionDef,
    args: &[Argument],
) -> Result<Specialized> {
    let limits: &Limits = surroundings.context.limits();
    let specializer =
        Specializer { library: &surroundings.library, evaluate: &surroundings.context, limits };
    let mut specialized = specializer.specialize(def, args)?;
    specialized.for_each_body(&mut |body| {
        let mut results = std::mem::take(&mut body.results);
        cse(&mut body.graph, |from, to| {
            results.iter_mut().filter(|result| **result == from).for_each(|result| *result = to);
        });
        prune_body(body, &results)?;
        fuse(&mut body.graph, &results)?;
        prune_body(body, &results)?;
        body.results = results;
        Ok(())
    })?;
    Ok(specialized)
}

fn prune_body(
    body: &mut Specialized,
    results: &[ferroflow_ir::Outlet],
) -> ferroflow_ir::Result<()> {
    let roots: Vec<_> = results.iter().chain(&body.args).map(|outlet| outlet.node).collect();
    prune(&mut body.graph, roots)
}

fn compile(
    surroundings: &Surroundings,
    def: &FunctionDef,
    args: &[Argument],
) -> Result<Executable> {
    let specialized = optimize(surroundings, def, args)?;
    Ok(Executable::new(plan(&surroundings.context, &specialized)?))
}

/// Runs an op that calls functions.
///
/// # Errors
///
/// Whatever fails in the functions.
pub(crate) fn call_op(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    // The op becomes the only node of a function, so that there is one way to run such ops.
    let surroundings = Surroundings {
        context: scope.context.clone(),
        library: scope.library.clone(),
        resources: scope.resources.clone(),
    };
    let def = single_op_function(op, attrs, inputs)?;
    let args: Vec<Argument> = inputs.iter().map(|input| value_type(input).into()).collect();
    let executable = compile(&surroundings, &def, &args)?;
    let values: Result<Vec<HostTensor>> = inputs.iter().map(|x| Ok(x.host()?.clone())).collect();
    Ok(executable.run(scope, values?.into_iter())?.into())
}

fn single_op_function(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<FunctionDef> {
    use ferroflow_ir::{NodeDef, Outlet, build::GraphBuilder};
    debug_assert!(op.call != Call::None, "only ops that call functions take this way");
    let mut builder = GraphBuilder::new();
    let mut outlets = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        outlets.push(builder.arg(&format!("arg{index}"), value_type(input))?);
    }
    let name = attrs
        .iter()
        .find_map(|(_, value)| match value {
            AttrValue::Func(function) => Some(function.name.to_string()),
            _ => None,
        })
        .unwrap_or_else(|| op.name.to_string());
    let mut def = builder.finish_function(&format!("call of {name}"), &[]);
    let types = op.output_dtypes(attrs)?;
    let outputs =
        types.iter().map(|&dtype| ValueType::new(dtype, ferroflow_ir::PartialShape::Unknown));
    let node = NodeDef::new(op.name, op, attrs.clone()).with_inputs(outlets).with_outputs(outputs);
    let id = def.graph.add(node)?;
    def.results =
        (0..types.len()).map(|index| (format!("result_{index}"), Outlet::new(id, index))).collect();
    Ok(def)
}

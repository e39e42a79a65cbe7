//! Meshes: one function on whole tensors, run by devices of which each has pieces.

use super::{DistributedTensor, MeshFunction};
use crate::{
    args::Args,
    concrete_function::ConcreteFunction,
    context,
    error::{Error, Result},
    function::Function,
    nest::Nest,
    sync::Mutex,
    tensor::Tensor,
    variable::{Variable, VariableOptions},
};
use ferroflow_ir::{Layout, Mesh, Shape, TraceType, device_name::DeviceName};
use ferroflow_runtime::{
    Context,
    collective::{Replica, Replicas},
};
use std::{collections::HashMap, fmt, sync::Arc};

/// The devices of a mesh, each of which runs its part of functions that are written for whole tensors. Clones
/// are the same strategy.
///
/// A function is traced once, for whole tensors, with its gradients; a pass of the compiler
/// ([`spmd`](ferroflow_ir::pass::spmd)) makes of it the program of one device and inserts the collectives.
/// Devices run in threads of this process.
///
/// ```
/// use ferroflow_runtime::{Context, ContextOptions};
/// use ferroflow_tracer::{
///     Tensor, context, function,
///     distribute::{CollectiveKind, DistributedTensor, Layout, Mesh, MeshStrategy},
///     ops,
/// };
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let options = ContextOptions { logical_cpus: std::num::NonZeroUsize::new(2), ..Default::default() };
/// let _guard = context::enter(&Context::with_options(options));
/// let mesh = Mesh::new([("model", 2)], ["CPU:0", "CPU:1"])?;
/// let strategy = MeshStrategy::new(&mesh)?;
/// let columns = Layout::new(&mesh, ["unsharded", "model"])?;
/// let rows = Layout::new(&mesh, ["model", "unsharded"])?;
/// let a = strategy.variable(Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), &columns)?;
/// let b = strategy.variable(Tensor::from([[1.0f32, 0.0], [0.0, 1.0]]), &rows)?;
/// let f = function(move |x: Tensor| ops::matmul(&ops::relu(&ops::matmul(&x, &a.read()?)?)?, &b.read()?));
/// let x = DistributedTensor::new(&Tensor::from([[1.0f32, 1.0]]), &Layout::replicated(&mesh, 2))?;
/// let y = strategy.call(&f, std::slice::from_ref(&x))?;
/// assert_eq!(y[0].fetch()?.to_vec::<f32>()?, [4.0, 6.0]);
/// assert_eq!(strategy.program(&f, &[x])?.report().count(CollectiveKind::AllReduce), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MeshStrategy(Arc<Inner>);

struct Inner {
    context: Context,
    mesh: Mesh,
    replicas: Replicas,
    programs: Mutex<HashMap<ProgramKey, MeshFunction>>,
}

/// A trace, and the shapes and layouts of its arguments.
type ProgramKey = (usize, Vec<(Shape, Layout)>);

impl fmt::Debug for MeshStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<strategy of {:?}>", self.0.mesh)
    }
}

impl MeshStrategy {
    /// The strategy of a mesh of devices of the context at hand.
    ///
    /// # Errors
    ///
    /// When there is no device of a name.
    pub fn new(mesh: &Mesh) -> Result<MeshStrategy> {
        let context = context::context();
        for device in mesh.devices() {
            context.check_device(&device.parse::<DeviceName>()?)?;
        }
        let (mesh, replicas) = (mesh.clone(), Replicas::of_mesh(mesh));
        Ok(MeshStrategy(Arc::new(Inner { context, mesh, replicas, programs: Mutex::default() })))
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.0.mesh
    }

    pub(super) fn context(&self) -> &Context {
        &self.0.context
    }

    pub(super) fn replicas(&self) -> &Replicas {
        &self.0.replicas
    }

    /// A variable of which each device has a piece.
    ///
    /// # Errors
    ///
    /// As [`Variable::new`] and [`distribute`](MeshStrategy::distribute).
    #[track_caller]
    pub fn variable(&self, initial: impl Into<Tensor>, layout: &Layout) -> Result<Variable> {
        self.variable_with(initial, layout, VariableOptions::default())
    }

    /// A variable of which each device has a piece, with options.
    ///
    /// # Errors
    ///
    /// As [`Variable::with_options`] and [`distribute`](MeshStrategy::distribute).
    #[track_caller]
    pub fn variable_with(
        &self,
        initial: impl Into<Tensor>,
        layout: &Layout,
        options: VariableOptions,
    ) -> Result<Variable> {
        let variable = Variable::with_options(initial, options)?;
        self.distribute(&variable, layout)?;
        Ok(variable)
    }

    /// Distributes a variable, such as a weight of a layer: each device gets a piece of its value. Code outside
    /// the mesh goes on to see the whole.
    ///
    /// # Errors
    ///
    /// [`Layout`](ferroflow_ir::Error::Layout) when its shape cannot be split so; when it has another layout,
    /// or the layout is of another mesh.
    pub fn distribute(&self, variable: &Variable, layout: &Layout) -> Result<()> {
        self.check_mesh(layout)?;
        Ok(variable.owned()?.distribute(layout)?)
    }

    pub(super) fn check_mesh(&self, layout: &Layout) -> Result<()> {
        if layout.mesh() == self.mesh() {
            return Ok(());
        }
        let expected = format!("a layout on {:?}", self.mesh());
        Err(Error::Conversion { expected, found: format!("one on {:?}", layout.mesh()) })
    }

    /// The results of a function, computed by all devices. It is traced for the shapes of the arguments, and
    /// partitioned for their layouts, once.
    ///
    /// # Errors
    ///
    /// As [`program`](MeshStrategy::program) and [`MeshFunction::call`].
    pub fn call<A: Args + 'static, R: Nest + 'static>(
        &self,
        function: &Function<A, R>,
        args: &[DistributedTensor],
    ) -> Result<Vec<DistributedTensor>> {
        self.program(function, args)?.call(args)
    }

    /// The program of a function for arguments of these shapes and layouts.
    ///
    /// # Errors
    ///
    /// Errors of the trace; as [`partition`](MeshStrategy::partition).
    pub fn program<A: Args + 'static, R: Nest + 'static>(
        &self,
        function: &Function<A, R>,
        args: &[DistributedTensor],
    ) -> Result<MeshFunction> {
        let ty = |arg: &DistributedTensor| TraceType::tensor(arg.dtype(), arg.shape());
        let concrete = function.concrete_for(args.iter().map(ty))?;
        let types = args.iter().map(|arg| (arg.shape().clone(), arg.layout().clone()));
        let key: ProgramKey = (concrete.address(), types.collect());
        let mut programs = self.0.programs.lock();
        if let Some(program) = programs.get(&key) {
            return Ok(program.clone());
        }
        let program = self.partition(&concrete, &key.1, &[])?;
        programs.insert(key, program.clone());
        Ok(program)
    }

    /// The program of a traced function for arguments of these shapes and layouts. The results get these
    /// layouts; where there is none, that in which they are computed. Variables that the function uses and that
    /// have no layout get one: that of the variables of their shape with which they are stepped, or the replicated
    /// one.
    ///
    /// # Errors
    ///
    /// [`Layout`](ferroflow_ir::Error::Layout) for layouts that do not fit,
    /// [`Unsupported`](ferroflow_ir::Error::Unsupported) for what cannot be distributed, both with the node.
    pub fn partition(
        &self,
        concrete: &ConcreteFunction,
        args: &[(Shape, Layout)],
        results: &[Option<Layout>],
    ) -> Result<MeshFunction> {
        if Replica::current().is_some() {
            let what = "partitioning a function over a mesh".to_string();
            return Err(Error::Replica { what, reason: "this is a replica already" });
        }
        let layouts = args.iter().map(|(_, layout)| layout).chain(results.iter().flatten());
        layouts.into_iter().try_for_each(|layout| self.check_mesh(layout))?;
        let _context = context::enter(self.context());
        MeshFunction::new(self, concrete, args, results)
    }
}

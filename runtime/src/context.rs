//! Contexts that programs run in: devices, ops, limits. Explicit and shareable, never global.

use crate::{
    compile_options::CompileOptions,
    devices::Devices,
    eager_tensor::Results,
    error::{Error, Result},
    files,
    owned_cache::OwnedCache,
    placement::{Placement, is_elsewhere},
    registered_kernels::RegisteredKernels,
    resource::ResourceManager,
    runtime_call::{HostBody, RuntimeCall},
    sync::{Mutex, RwLock},
};
use ferroflow_ir::{
    Limits, OpDef, OpRegistry,
    budget::{self, CallBudget, CallOptions, Entered, MemoryAccount},
    device_name::DeviceName,
};
use ferroflow_kernels::{
    CpuDevice, Device, Precision, Threads,
    instructions::{self, InstructionLevel},
};
use std::{
    collections::HashMap,
    fmt, mem,
    num::NonZeroUsize,
    path::Path,
    ptr,
    sync::{
        Arc, Once, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Options of a [`Context`].
#[derive(Debug, Clone, Default)]
pub struct ContextOptions {
    /// Threads that share the work of one op, the caller included; one per processor if `None`.
    pub threads: Option<NonZeroUsize>,
    /// Limits on the cost of programs.
    pub limits: Limits,
    /// Files that ops may touch.
    pub files: FileAccess,
    /// Where calls run that have no other device, such as `WGPU:0`; on the CPU if `None`, or if
    /// there is no such device.
    pub device: Option<DeviceName>,
    /// Precision of matmuls and convolutions of `float32`: TensorFloat-32 on GPUs that have it, as
    /// in TensorFlow, whose `tf.config.experimental.enable_tensor_float_32_execution(False)` is
    /// [`Precision::Full`]. CPUs count all bits unless it is [`Precision::BFloat16`].
    pub precision: Precision,
    /// Switches of the compiler.
    pub compile: CompileOptions,
    /// The number of executables that a function keeps besides its first, each for other types of
    /// arguments; the one used longest ago is dropped. 512 if `None`.
    pub specializations: Option<NonZeroUsize>,
    /// The number of devices that the CPU counts as, `CPU:0` and so on, as TensorFlow's
    /// `tf.config.set_logical_device_configuration` says it; 1 if `None`. They share memory and
    /// threads: replicas of a strategy run on them.
    pub logical_cpus: Option<NonZeroUsize>,
    /// The widest instruction sets of the processor that CPU kernels may use, to test or to measure
    /// the code for other processors. They are the whole process's, as packed constants are laid out
    /// for them: the first context that asks, before any kernel has run, settles them, and
    /// [`Context::instructions`] tells. `FERROFLOW_CPU` narrows them further.
    pub instructions: Option<InstructionLevel>,
}

/// A service that is passed images of some hundred sizes compiles each size once.
const SPECIALIZATIONS: NonZeroUsize = NonZeroUsize::new(512).expect("not zero");

/// Files that ops may touch. Reading a model's own files while it is loaded is always allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// None but those inside the folders of loaded models: right for models from strangers.
    #[default]
    ModelOnly,
    /// Any that the process may touch.
    Any,
}

type Print = dyn Fn(&str) + Send + Sync;

struct Printer(Arc<Print>);

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Printer")
    }
}

/// Environment of programs. Cheap to clone; clones are the same context.
///
/// ```
/// use ferroflow_ir::{Attrs, DType};
/// use ferroflow_runtime::{Context, EagerTensor, execute};
/// # fn main() -> ferroflow_runtime::Result<()> {
/// let context = Context::new();
/// let x = EagerTensor::scalar(3.0f32);
/// let y = execute(&context, "Square", Attrs::new(), &[x])?;
/// assert_eq!(y[0].host()?.as_scalar::<f32>()?, 9.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Arc<OpRegistry>,
    cpu: CpuDevice,
    threads: Threads,
    limits: Limits,
    /// The memory that all calls share, if it is bounded.
    memory: Option<Arc<MemoryAccount>>,
    files: FileAccess,
    resources: Arc<ResourceManager>,
    host_ops: RwLock<HashMap<&'static str, HostBody>>,
    kernels: RegisteredKernels,
    printer: RwLock<Option<Printer>>,
    /// Where calls run that have no other device.
    default: Option<Arc<dyn Device>>,
    precision: Precision,
    compile: CompileOptions,
    specializations: NonZeroUsize,
    logical_cpus: NonZeroUsize,
    devices: Devices,
    cache: OwnedCache,
    placements: Mutex<Option<Vec<Placement>>>,
    panics: AtomicUsize,
}

/// A context that is only known of.
#[derive(Debug, Default)]
pub(crate) struct WeakContext(Weak<Inner>);

impl WeakContext {
    /// Whether it is this context.
    pub(crate) fn is(&self, context: &Context) -> bool {
        ptr::eq(self.0.as_ptr(), Arc::as_ptr(&context.0))
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new()
    }
}

impl Context {
    /// A context with one thread per processor and default limits.
    pub fn new() -> Context {
        Context::with_options(ContextOptions::default())
    }

    /// A context made to order.
    pub fn with_options(options: ContextOptions) -> Context {
        warn_of_unknown_level();
        if let Some(asked) = options.instructions {
            let settled = instructions::restrict(asked);
            if settled > asked {
                tracing::warn!("kernels of this process use {settled:?} already, not {asked:?}");
            }
        }
        let threads = options.threads.map_or_else(Threads::available, Threads::new);
        let devices = Devices::default();
        let default = options.device.as_ref().and_then(|name| devices.find(name));
        let memory_bytes = options.limits.memory_bytes;
        let memory = (memory_bytes < usize::MAX)
            .then(|| Arc::new(MemoryAccount::new("the memory of the context", memory_bytes)));
        Context(Arc::new(Inner {
            registry: Arc::new(OpRegistry::default()),
            cpu: CpuDevice::new(0),
            threads,
            limits: options.limits,
            memory,
            files: options.files,
            resources: Arc::new(ResourceManager::new()),
            host_ops: RwLock::default(),
            kernels: RegisteredKernels::default(),
            printer: RwLock::default(),
            default,
            precision: options.precision,
            compile: options.compile,
            specializations: options.specializations.unwrap_or(SPECIALIZATIONS),
            logical_cpus: options.logical_cpus.unwrap_or(NonZeroUsize::MIN),
            devices,
            cache: OwnedCache::default(),
            placements: Mutex::default(),
            panics: AtomicUsize::new(0),
        }))
    }

    /// Whether the two are the same context.
    pub fn is(&self, other: &Context) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The context as something that does not keep it alive.
    pub(crate) fn downgrade(&self) -> WeakContext {
        WeakContext(Arc::downgrade(&self.0))
    }

    /// The switches of the compiler.
    pub fn compile_options(&self) -> CompileOptions {
        self.0.compile
    }

    /// The number of executables that a function keeps besides its first.
    pub fn specializations(&self) -> NonZeroUsize {
        self.0.specializations
    }

    /// The ops.
    pub fn registry(&self) -> &Arc<OpRegistry> {
        &self.0.registry
    }

    /// The CPU device.
    pub fn cpu(&self) -> &dyn Device {
        &self.0.cpu
    }

    /// Whether the CPU has a kernel for an op.
    pub(crate) fn has_cpu_kernel(&self, op: &OpDef) -> bool {
        self.0.cpu.has_kernel(op)
    }

    /// The names of all devices, those of the CPU first. Others are looked for when this is first
    /// asked.
    pub fn device_names(&self) -> Vec<String> {
        let others = self.0.devices.all().into_iter().map(|device| device.name().to_string());
        self.cpu_names().into_iter().chain(others).collect()
    }

    /// The names of the devices that the CPU counts as.
    pub fn cpu_names(&self) -> Vec<String> {
        let first = self.cpu().name().to_string();
        let others = (1..self.0.logical_cpus.get()).map(|n| CpuDevice::new(n).name().to_string());
        std::iter::once(first).chain(others).collect()
    }

    /// Checks that there is a device of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] when there is none.
    pub fn check_device(&self, name: &DeviceName) -> Result<()> {
        if is_elsewhere(name) || self.0.devices.find(name).is_some() {
            return self.device(name).map(drop);
        }
        let index = name.index.unwrap_or(0);
        if (index as usize) < self.0.logical_cpus.get() {
            return Ok(());
        }
        let (name, known) = (name.to_string(), self.device_names());
        let reason = Some(format!("the context has {} logical CPUs", self.0.logical_cpus));
        Err(Error::NoDevice { name, known, reason })
    }

    /// A device other than the CPU.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] when there is none of this name.
    pub fn device(&self, name: &DeviceName) -> Result<Arc<dyn Device>> {
        let found = self.0.devices.find(name);
        found.ok_or_else(|| Error::NoDevice {
            name: name.to_string(),
            known: self.device_names(),
            reason: Devices::absence(name),
        })
    }

    /// Waits for all that devices have to do until now, as TensorFlow's
    /// `tf.test.experimental.sync_devices` does. Calls on devices return before they have ended;
    /// reading a result waits too, but copies it.
    ///
    /// # Errors
    ///
    /// What went wrong on a device since somebody looked. The others are waited for all the same.
    pub fn sync_devices(&self) -> Result<()> {
        let waited: Vec<_> =
            self.0.devices.connected().iter().map(|device| device.synchronize()).collect();
        Ok(waited.into_iter().collect::<ferroflow_kernels::Result<()>>()?)
    }

    /// Adds a device that this crate does not know.
    pub fn add_device(&self, device: Arc<dyn Device>) {
        self.0.devices.add(device);
    }

    /// The device that a name asks for, if it is not the CPU and there is one. Names that no device
    /// answers to place nothing: what they are given runs where it would without them.
    pub fn device_of(&self, name: &str) -> Option<Arc<dyn Device>> {
        self.0.devices.find(&name.parse().ok()?)
    }

    /// Where calls run that have no other device, if not on the CPU.
    pub(crate) fn default_device(&self) -> Option<&Arc<dyn Device>> {
        self.0.default.as_ref()
    }

    /// Keeps from now on what runs where of everything that is compiled for devices, for
    /// [`take_placements`](Context::take_placements).
    pub fn keep_placements(&self) {
        self.0.placements.lock().get_or_insert_default();
    }

    /// Placements kept since [`keep_placements`](Context::keep_placements), or since the last call
    /// of this.
    pub fn take_placements(&self) -> Vec<Placement> {
        self.0.placements.lock().as_mut().map(mem::take).unwrap_or_default()
    }

    pub(crate) fn note_placement(&self, placement: &Placement) {
        if let Some(kept) = &mut *self.0.placements.lock() {
            kept.push(placement.clone());
        }
    }

    /// A cache of a layer above, kept as long as the context.
    pub(crate) fn cache(&self) -> &OwnedCache {
        &self.0.cache
    }

    /// The threads that share the work of one op.
    pub fn threads(&self) -> &Threads {
        &self.0.threads
    }

    /// Runs code within a budget: the eager calls that it makes on this thread, and the calls of
    /// functions of any context. Budgets nest, and each of them holds. What the code has assigned
    /// when it ends early stays assigned, whole.
    ///
    /// ```
    /// # use ferroflow_ir::{Attrs, Error as IrError, HostTensor};
    /// # use ferroflow_runtime::{CallOptions, Context, EagerTensor, Error, execute};
    /// let context = Context::new();
    /// let options = CallOptions { memory: Some(1 << 20), ..CallOptions::default() };
    /// let n = EagerTensor::from(HostTensor::vector(&[1i32 << 20])?);
    /// let value = EagerTensor::scalar(0f32);
    /// let found = context.within(&options, || execute(&context, "Fill", Attrs::new(), &[n, value]));
    /// assert!(matches!(found, Err(Error::Ir(IrError::Limit { .. }))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the code; [`Error::Interrupted`] when the budget is over before it begins.
    pub fn within<R, E: From<Error>>(
        &self,
        options: &CallOptions,
        code: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let budget = CallBudget::new(options.clone(), self.0.memory.as_ref());
        let _entered = budget.enter();
        budget::check().map_err(Error::from)?;
        code()
    }

    /// Bytes of host memory that calls of the context hold, if [`Limits::memory_bytes`] bounds
    /// them.
    pub fn memory_in_use(&self) -> Option<usize> {
        self.0.memory.as_ref().map(|memory| memory.used())
    }

    /// Has the memory that the context bounds count what a call allocates, until what is returned
    /// is dropped.
    #[inline]
    pub(crate) fn count_memory(&self) -> Option<Entered> {
        self.0.memory.as_ref().map(|memory| self.counting(memory))
    }

    #[cold]
    fn counting(&self, memory: &Arc<MemoryAccount>) -> Entered {
        CallBudget::new(CallOptions::default(), Some(memory)).enter()
    }

    /// Number of panics that calls and compilations of the context have ended in until now, each of which
    /// was an [`Error::Panic`]. A service that finds it growing reports a defect.
    pub fn caught_panics(&self) -> usize {
        self.0.panics.load(Ordering::Relaxed)
    }

    pub(crate) fn count_panic(&self) {
        self.0.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Limits on the cost of programs.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Precision of matmuls and convolutions of `float32`.
    pub fn precision(&self) -> Precision {
        self.0.precision
    }

    /// The widest instruction sets that CPU kernels of this process may use; a processor may have
    /// fewer. See [`ContextOptions::instructions`].
    ///
    /// ```
    /// use ferroflow_kernels::instructions::InstructionLevel;
    /// use ferroflow_runtime::{Context, ContextOptions};
    ///
    /// let instructions = Some(InstructionLevel::Portable);
    /// let context = Context::with_options(ContextOptions { instructions, ..Default::default() });
    /// assert_eq!(context.instructions(), InstructionLevel::Portable);
    /// // It is the process's.
    /// assert_eq!(Context::new().instructions(), InstructionLevel::Portable);
    /// ```
    pub fn instructions(&self) -> InstructionLevel {
        instructions::allowed()
    }

    /// The resources that eager calls create by name.
    pub fn resources(&self) -> &Arc<ResourceManager> {
        &self.0.resources
    }

    /// Sends what programs print to `printer`, in place of the outputs of the process.
    pub fn set_printer(&self, printer: impl Fn(&str) + Send + Sync + 'static) {
        *self.0.printer.write() = Some(Printer(Arc::new(printer)));
    }

    /// Where programs print, if not to the outputs of the process.
    pub(crate) fn printer(&self) -> Option<Arc<Print>> {
        self.0.printer.read().as_ref().map(|printer| printer.0.clone())
    }

    /// Adds the body of an op that a crate above implements.
    pub fn add_host_op(
        &self,
        op: &'static str,
        body: impl Fn(&mut RuntimeCall<'_>) -> Result<Results> + Send + Sync + 'static,
    ) {
        self.0.host_ops.write().insert(op, HostBody::Given(Arc::new(body)));
    }

    /// Registers an op of the user's own: a record whose lowering is
    /// [`Lowering::Runtime`](ferroflow_ir::Lowering::Runtime), and the code that computes it, which
    /// may hold state. Eager calls, traced functions and loaded models of this context run it.
    ///
    /// ```
    /// use ferroflow_ir::{Attrs, DType, HostTensor, Lowering, OpDef, infer, op::arg_of};
    /// use ferroflow_runtime::{Context, execute, ops::one};
    ///
    /// const TWICE: OpDef = OpDef {
    ///     name: "Acme>Twice",
    ///     summary: "Doubles a scalar.",
    ///     inputs: &[arg_of("x", DType::F32)],
    ///     outputs: &[arg_of("y", DType::F32)],
    ///     infer: infer::unchanged,
    ///     lowering: Lowering::Runtime,
    ///     ..OpDef::PURE
    /// };
    /// let factor = 2.0; // What the code keeps.
    /// let context = Context::new();
    /// context.register_op(TWICE, move |call| {
    ///     let x = call.host(0)?.as_scalar::<f32>()?;
    ///     one(HostTensor::scalar(x * factor))
    /// })?;
    /// let y = execute(&context, "Acme>Twice", Attrs::new(), &[HostTensor::scalar(4.0f32).into()])?;
    /// assert_eq!(y[0].host()?.as_scalar::<f32>()?, 8.0);
    /// # Ok::<(), ferroflow_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When there is an op of this name already.
    pub fn register_op(
        &self,
        op: OpDef,
        body: impl Fn(&mut RuntimeCall<'_>) -> Result<Results> + Send + Sync + 'static,
    ) -> Result<&'static OpDef> {
        let op = self.0.registry.register(op)?;
        self.add_host_op(op.name, body);
        Ok(op)
    }

    /// The kernels of ops of the user's own.
    pub(crate) fn registered_kernels(&self) -> &RegisteredKernels {
        &self.0.kernels
    }

    /// The body that a crate above returned an op.
    pub(crate) fn host_op(&self, op: &str) -> Option<HostBody> {
        self.0.host_ops.read().get(op).cloned()
    }

    /// Checks that ops may touch a file outside the folders of loaded models.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] when they may not.
    pub fn check_file(&self, path: &Path) -> Result<()> {
        if files::is_in_memory(path) {
            return Err(Error::Denied {
                what: format!("access to the file {}", path.display()),
                reason: "files in memory are for the model that they belong to, and for reading only",
            });
        }
        match self.0.files {
            FileAccess::Any => Ok(()),
            FileAccess::ModelOnly => Err(Error::Denied {
                what: format!("access to the file {}", path.display()),
                reason: "ops may touch files only where the context grants `FileAccess::Any`",
            }),
        }
    }
}

/// Says once that the instruction sets that the environment asks for are unknown.
fn warn_of_unknown_level() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        if let Some(name) = instructions::unknown_name() {
            tracing::warn!(
                "{}={name} is not `portable`, `avx2`, `avx512` or `amx`",
                instructions::VARIABLE
            );
        }
    });
}

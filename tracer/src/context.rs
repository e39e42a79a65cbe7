//! The thread state of calls: the context, the functions being traced, the scopes.
//!
//! Every function that changes it returns a guard, which restores it, also on a panic. The replica
//! that a thread runs is the runtime's ([`ferroflow_runtime::collective`]).

use crate::{
    completed::Completed, error::Result, func_graph::FuncGraph, recording::ActiveTape,
    sync::thread_local, tensor::Tensor,
};
use ferroflow_ir::{Attrs, DType, OpDef, device_name::DeviceName, error::SourceLocation};
use ferroflow_runtime::{CallCache, Context, Device, EagerTensor, Results};
use smallvec::SmallVec;
use std::{
    cell::{Cell, LazyCell, RefCell},
    sync::{Arc, OnceLock},
};

thread_local! {
    static THREAD: ThreadState = const { ThreadState::new() };
}

/// A scope that asks for a device.
#[derive(Clone)]
struct DeviceScope {
    name: Arc<str>,
    /// The device, if it is not the CPU and there is one.
    device: Option<Arc<dyn Device>>,
}

/// A call of a library that has not returned.
#[derive(Clone, Copy)]
pub(crate) struct LibraryCall {
    /// The folder of the library's source.
    pub(crate) folder: &'static str,
    /// Where the library was called.
    pub(crate) location: SourceLocation,
}

struct ThreadState {
    /// The innermost is last; `None` lifts code out of all traces.
    traces: RefCell<Vec<Option<Arc<FuncGraph>>>>,
    /// Whether the last of `traces` is a trace.
    is_tracing: Cell<bool>,
    /// The tapes that have not ended, innermost last, each with its serial number.
    tapes: RefCell<Vec<(u64, Arc<ActiveTape>)>>,
    /// The serial number of the next tape.
    next_tape: Cell<u64>,
    /// Tapes with a smaller serial number are put aside.
    first_tape: Cell<u64>,
    /// Whether a tape records the calls made now.
    is_taped: Cell<bool>,
    /// Whether neither a trace nor a tape sees calls; what every eager call asks first.
    is_plain: Cell<bool>,
    contexts: RefCell<Vec<Context>>,
    devices: RefCell<Vec<DeviceScope>>,
    /// Whether there is a device scope.
    is_placed: Cell<bool>,
    controls: RefCell<Vec<Vec<Tensor>>>,
    runs_eagerly: Cell<Option<bool>>,
    summaries: RefCell<Vec<SummaryScope>>,
    /// The calls of libraries that have not returned, innermost last; `None` where the caller is
    /// not known.
    library_calls: RefCell<Vec<Option<LibraryCall>>>,
    /// The eager calls made of late, compiled.
    calls: LazyCell<RefCell<CallCache>>,
    /// The attributes of calls recorded of late.
    completed: RefCell<Completed>,
}

impl ThreadState {
    const fn new() -> ThreadState {
        ThreadState {
            traces: RefCell::new(Vec::new()),
            is_tracing: Cell::new(false),
            tapes: RefCell::new(Vec::new()),
            next_tape: Cell::new(0),
            first_tape: Cell::new(0),
            is_taped: Cell::new(false),
            is_plain: Cell::new(true),
            contexts: RefCell::new(Vec::new()),
            devices: RefCell::new(Vec::new()),
            is_placed: Cell::new(false),
            controls: RefCell::new(Vec::new()),
            runs_eagerly: Cell::new(None),
            summaries: RefCell::new(Vec::new()),
            library_calls: RefCell::new(Vec::new()),
            calls: LazyCell::new(RefCell::default),
            completed: RefCell::new(Completed::new()),
        }
    }

    fn update(&self) {
        self.is_tracing.set(matches!(self.traces.borrow().last(), Some(Some(_))));
        let (trace, first) = (self.trace_id(), self.first_tape.get());
        let records =
            |(serial, tape): &(u64, Arc<ActiveTape>)| *serial >= first && tape.is_for(trace);
        let is_taped = self.tapes.borrow().iter().any(records);
        self.is_taped.set(is_taped);
        self.is_plain.set(!is_taped && !self.is_tracing.get());
    }

    /// Identity of the current trace; 0 outside all.
    fn trace_id(&self) -> usize {
        match self.traces.borrow().last() {
            Some(Some(trace)) => Arc::as_ptr(trace) as usize,
            _ => 0,
        }
    }
}

/// The context that eager calls run in: the one entered on this thread, otherwise one that all
/// threads share and that lives as long as the program.
pub fn context() -> Context {
    with_context_ref(Context::clone)
}

pub(crate) fn with_context_ref<R>(look: impl FnOnce(&Context) -> R) -> R {
    static SHARED: OnceLock<Context> = OnceLock::new();
    THREAD.with(|thread| match thread.contexts.borrow().last() {
        Some(context) => look(context),
        None => look(SHARED.get_or_init(Context::new)),
    })
}

/// The names of the devices there are, the CPU first. Drivers are looked for when this is first
/// called, or when a scope first asks for such a device.
pub fn list_physical_devices() -> Vec<String> {
    with_context_ref(Context::device_names)
}

/// Waits for all that devices have to do until now: [`Context::sync_devices`].
///
/// # Errors
///
/// What went wrong on a device since somebody looked.
pub fn sync_devices() -> Result<()> {
    Ok(with_context_ref(Context::sync_devices)?)
}

/// The device of the innermost scope, if it is not the CPU and there is one.
pub(crate) fn current_accelerator() -> Option<Arc<dyn Device>> {
    THREAD.with(|s| s.devices.borrow().last().and_then(|scope| scope.device.clone()))
}

/// Notes a call of a library, until [`leave_library_call`].
pub(crate) fn enter_library_call(call: Option<LibraryCall>) {
    THREAD.with(|thread| thread.library_calls.borrow_mut().push(call));
}

pub(crate) fn leave_library_call() {
    THREAD.with(|thread| thread.library_calls.borrow_mut().pop());
}

/// Where the library was called whose code is in this file, in the innermost call whose caller is
/// known.
pub(crate) fn library_caller(file: &str) -> Option<SourceLocation> {
    THREAD.with(|thread| {
        let calls = thread.library_calls.borrow();
        let mut known = calls.iter().rev().flatten();
        known.find(|call| file.starts_with(call.folder)).map(|call| call.location)
    })
}

/// Runs an op now.
pub(crate) fn execute(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&EagerTensor],
) -> Result<Results> {
    THREAD.with(|thread| {
        with_context_ref(|context| match thread.calls.try_borrow_mut() {
            Ok(mut calls) if thread.is_placed.get() => {
                execute_in_scope(&mut calls, context, op, attrs, inputs)
            }
            Ok(mut calls) => Ok(calls.execute(context, op, attrs, inputs)?),
            // An op that runs Rust code which calls ops.
            Err(_) => Ok(CallCache::default().execute(context, op, attrs, inputs)?),
        })
    })
}

/// Runs an op where the scope around the call says.
fn execute_in_scope(
    calls: &mut CallCache,
    context: &Context,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&EagerTensor],
) -> Result<Results> {
    if let Some(device) = current_accelerator() {
        return Ok(calls.execute_on(context, &device, op, attrs, inputs)?);
    }
    if !is_cpu(&current_device()) {
        return Ok(calls.execute(context, op, attrs, inputs)?);
    }
    let here: Vec<EagerTensor> = inputs
        .iter()
        .map(|input| Ok(EagerTensor::from(input.host()?.clone())))
        .collect::<Result<_>>()?;
    let here: Vec<&EagerTensor> = here.iter().collect();
    Ok(calls.execute(context, op, attrs, &here)?)
}

/// Whether a scope asks for the CPU.
fn is_cpu(name: &str) -> bool {
    let name: ferroflow_ir::Result<DeviceName> = name.parse();
    name.is_ok_and(|name| name.kind.as_deref() == Some("CPU"))
}

/// Runs `body` with another context for the eager calls in it.
pub fn with_context<R>(context: &Context, body: impl FnOnce() -> R) -> R {
    let _guard = enter(context);
    body()
}

/// Makes eager calls on this thread run in another context until the guard is dropped.
pub fn enter(context: &Context) -> impl Drop + use<> {
    let context = context.clone();
    scope(
        move |s| s.contexts.borrow_mut().push(context),
        |s| {
            s.contexts.borrow_mut().pop();
        },
    )
}

/// Runs `body` outside all traces: its calls are eager.
pub fn init_scope<R>(body: impl FnOnce() -> R) -> R {
    let _guard = enter_trace(None);
    body()
}

/// Runs `body` with calls placed on `device`, such as `/device:CPU:0`; what it leaves open is taken
/// from the scopes around. Calls that no such device can run are placed elsewhere.
///
/// Functions are traced outside the scopes around their calls: the call is placed, not the trace.
///
/// # Errors
///
/// When this is no name of a device; that of `body`.
pub fn device<R>(device: &str, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let name: DeviceName = device.parse()?;
    let name: Arc<str> = name.or(&current_device().parse()?).to_string().into();
    let device = with_context_ref(|context| context.device_of(&name));
    let _guard = scope(
        |s| {
            s.devices.borrow_mut().push(DeviceScope { name, device });
            s.is_placed.set(true);
        },
        |s| {
            let mut devices = s.devices.borrow_mut();
            devices.pop();
            s.is_placed.set(!devices.is_empty());
        },
    );
    body()
}

/// Runs `body` such that every call in it runs after the calls that returned `tensors`. Outside
/// traces they have run already.
pub fn control_dependencies<R>(tensors: &[&Tensor], body: impl FnOnce() -> R) -> R {
    let tensors = tensors.iter().map(|&tensor| tensor.clone()).collect();
    let _guard = scope(
        |s| s.controls.borrow_mut().push(tensors),
        |s| {
            s.controls.borrow_mut().pop();
        },
    );
    body()
}

/// Settings of a scope for summaries.
#[derive(Clone)]
pub(crate) enum SummaryScope {
    /// They go to this writer.
    Writer(Tensor),
    /// They are written if this is true.
    RecordIf(Tensor),
}

/// Says something about summaries until the guard is dropped.
pub(crate) fn enter_summaries(scope_of: SummaryScope) -> impl Drop {
    scope(
        |s| s.summaries.borrow_mut().push(scope_of),
        |s| {
            s.summaries.borrow_mut().pop();
        },
    )
}

/// Result of `pick` for the innermost scope that it accepts.
pub(crate) fn summaries<R>(pick: impl Fn(&SummaryScope) -> Option<R>) -> Option<R> {
    THREAD.with(|s| s.summaries.borrow().iter().rev().find_map(pick))
}

/// The device of the innermost scope; empty outside all.
pub(crate) fn current_device() -> Arc<str> {
    let name = |s: &ThreadState| s.devices.borrow().last().map(|scope| scope.name.clone());
    THREAD.with(name).unwrap_or_else(|| "".into())
}

/// Tensors that the scopes around ask to run before.
pub(crate) fn current_controls() -> Vec<Tensor> {
    THREAD.with(|s| s.controls.borrow().iter().flatten().cloned().collect())
}

/// Whether a function is being traced around the call at hand.
pub fn is_tracing() -> bool {
    THREAD.with(|thread| thread.is_tracing.get())
}

/// Whether calls are eager and no tape sees them.
pub(crate) fn is_plain() -> bool {
    THREAD.with(|thread| thread.is_plain.get())
}

/// Whether a tape records the calls made now.
pub(crate) fn is_taped() -> bool {
    THREAD.with(|thread| thread.is_taped.get())
}

/// Whether there are tapes, of any trace.
pub(crate) fn has_tapes() -> bool {
    THREAD.with(|thread| !thread.tapes.borrow().is_empty())
}

/// The tapes that have not ended, of all traces.
pub(crate) fn all_tapes() -> Vec<Arc<ActiveTape>> {
    THREAD.with(|thread| thread.tapes.borrow().iter().map(|(_, tape)| tape.clone()).collect())
}

/// The tapes that record the calls made now, innermost last.
pub(crate) fn tapes() -> SmallVec<[Arc<ActiveTape>; 2]> {
    THREAD.with(|s| {
        if !s.is_taped.get() {
            return SmallVec::new();
        }
        let (trace, first) = (s.trace_id(), s.first_tape.get());
        let tapes = s.tapes.borrow();
        let recording =
            tapes.iter().filter(|(serial, tape)| *serial >= first && tape.is_for(trace));
        recording.map(|(_, tape)| tape.clone()).collect()
    })
}

/// The attributes of a call, complete; `None` if they do not fit the op.
pub(crate) fn completed_attrs(
    op: &'static OpDef,
    attrs: &Attrs,
    dtypes: &[DType],
) -> Option<Arc<Attrs>> {
    THREAD.with(|s| s.completed.borrow_mut().of(op, attrs, dtypes))
}

/// Identity of the current trace; 0 outside all.
pub(crate) fn trace_id() -> usize {
    THREAD.with(ThreadState::trace_id)
}

pub(crate) fn push_tape(tape: &Arc<ActiveTape>) {
    THREAD.with(|s| {
        let serial = s.next_tape.get();
        s.next_tape.set(serial + 1);
        s.tapes.borrow_mut().push((serial, tape.clone()));
        s.update();
    });
}

/// Ends a tape. One that was handed to another thread ends when that of its thread does.
pub(crate) fn remove_tape(tape: &Arc<ActiveTape>) {
    THREAD.with(|s| {
        s.tapes.borrow_mut().retain(|(_, other)| !Arc::ptr_eq(other, tape));
        s.update();
    });
}

/// Runs `body` apart from the tapes there are; those made in it record.
pub(crate) fn apart_from_tapes<R>(body: impl FnOnce() -> R) -> R {
    let former = THREAD.with(|s| s.first_tape.replace(s.next_tape.get()));
    let _guard = scope(ThreadState::update, move |s| {
        s.first_tape.set(former);
        s.update();
    });
    body()
}

/// The trace that calls go to.
pub(crate) fn current_trace() -> Option<Arc<FuncGraph>> {
    THREAD.with(
        |s| {
            if s.is_tracing.get() { s.traces.borrow().last().cloned().flatten() } else { None }
        },
    )
}

/// Whether `graph` is being traced on this thread.
pub(crate) fn is_open(graph: &FuncGraph) -> bool {
    THREAD.with(|s| s.traces.borrow().iter().flatten().any(|open| std::ptr::eq(&**open, graph)))
}

/// Sends calls to a trace, or to none, until the guard is dropped. A trace begins without the
/// scopes around it: where a function runs is said by its callers.
pub(crate) fn enter_trace(trace: Option<Arc<FuncGraph>>) -> impl Drop {
    let scopes = THREAD.with(|s| (s.devices.take(), s.controls.take()));
    let scopes = Cell::new(Some(scopes));
    scope(
        |s| {
            s.traces.borrow_mut().push(trace);
            s.update();
        },
        move |s| {
            s.traces.borrow_mut().pop();
            s.update();
            if let Some((devices, controls)) = scopes.take() {
                s.devices.replace(devices);
                s.controls.replace(controls);
            }
        },
    )
}

/// Calls go to a part of the trace at hand, until this is dropped; the scopes around stay.
#[derive(Debug)]
pub(crate) struct Inside(Arc<FuncGraph>);

impl Inside {
    pub(crate) fn enter(part: Arc<FuncGraph>) -> Inside {
        THREAD.with(|s| {
            s.traces.borrow_mut().push(Some(part.clone()));
            s.update();
        });
        Inside(part)
    }

    pub(crate) fn graph(&self) -> &Arc<FuncGraph> {
        &self.0
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        THREAD.with(|s| {
            // Parts that were left open inside this one end with it.
            let mut traces = s.traces.borrow_mut();
            let is_self = |trace: &Option<Arc<FuncGraph>>| {
                trace.as_ref().is_some_and(|open| Arc::ptr_eq(open, &self.0))
            };
            if let Some(position) = traces.iter().rposition(is_self) {
                traces.truncate(position);
            }
            drop(traces);
            s.update();
        });
    }
}

static RUNS_EAGERLY: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Makes functions run their bodies eagerly on every call, in place of traces: a debugger then
/// steps through them, and every tensor has a value. For the whole process.
pub fn run_functions_eagerly(eagerly: bool) {
    RUNS_EAGERLY.store(eagerly, std::sync::atomic::Ordering::Relaxed);
}

/// Runs `body` with functions run eagerly or not, on this thread only.
///
/// # Errors
///
/// That of `body`.
pub fn with_functions_run_eagerly<R>(eagerly: bool, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let before = THREAD.with(|s| s.runs_eagerly.replace(Some(eagerly)));
    let _guard = scope(|_| {}, move |s| s.runs_eagerly.set(before));
    body()
}

/// Whether functions run eagerly here.
pub fn functions_run_eagerly() -> bool {
    let shared = || RUNS_EAGERLY.load(std::sync::atomic::Ordering::Relaxed);
    THREAD.with(|s| s.runs_eagerly.get()).unwrap_or_else(shared)
}

struct Guard<L: Fn(&ThreadState)>(L);

impl<L: Fn(&ThreadState)> Drop for Guard<L> {
    fn drop(&mut self) {
        THREAD.with(|thread| (self.0)(thread));
    }
}

fn scope(enter: impl FnOnce(&ThreadState), leave: impl Fn(&ThreadState)) -> impl Drop {
    THREAD.with(|thread| enter(thread));
    Guard(leave)
}

//! Histories: all that a program returns and leaves in its variables, call by call.

use super::{
    print,
    program::FuzzProgram,
    switches::{self, Setting},
    world::{FuzzWorld, WorldValue},
};
use ferroflow::{
    GradientTape, Tensor, function,
    ir::{DType, HostTensor, PartialShape, TensorSpec, TraceType},
    runtime,
    tracer::{Capture, ConcreteFunction, Error, Result, gradients::GradientOptions, with_context},
};
use std::{collections::HashMap, fmt, sync::Arc};

/// The shapes of arguments that a trace knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Shapes {
    /// All of them: a trace for each.
    Known,
    /// The ranks: one trace.
    Ranks,
    /// None: one trace.
    Unknown,
}

impl fmt::Display for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shapes::Known => "known shapes",
            Shapes::Ranks => "known ranks",
            Shapes::Unknown => "unknown ranks",
        })
    }
}

/// All results of each call, gradients and values of variables after it.
pub(super) type History = Vec<Vec<HostTensor>>;

/// The traces of a program, by what they know of shapes; one for each input.
pub(super) struct TracedProgram {
    world: FuzzWorld,
    traces: HashMap<Shapes, Vec<ConcreteFunction>>,
}

/// Runs a program eagerly.
pub(super) fn eager(program: &Arc<FuzzProgram>) -> Result<Eager> {
    let setting = &switches::all()[0];
    with_context(&setting.context, || {
        let world = FuzzWorld::new(program, &setting.devices)?;
        let history = history(&world, &|input, args| {
            world.begin(input);
            Ok(tensors(world.run(args.to_vec())?))
        })?;
        Ok(Eager { history, world })
    })
}

/// A program that was run eagerly.
pub(super) struct Eager {
    pub(super) history: History,
    world: FuzzWorld,
}

impl TracedProgram {
    /// A program to be traced for some devices.
    pub(super) fn new(program: &Arc<FuzzProgram>, setting: &Setting) -> Result<TracedProgram> {
        let world = with_context(&setting.context, || FuzzWorld::new(program, &setting.devices))?;
        Ok(TracedProgram { world, traces: HashMap::new() })
    }

    /// Whether a trace failed at a statement that the eager run has not executed.
    pub(super) fn failed_beside(&self, eager: &Eager) -> bool {
        self.world.failed_beside(&eager.world)
    }

    /// Runs the program traced in a setting.
    pub(super) fn run(&mut self, shapes: Shapes, setting: &Setting) -> Result<History> {
        with_context(&setting.context, || {
            self.trace(shapes)?;
            let traces = &self.traces[&shapes];
            history(&self.world, &|input, args| traces[input].call_flat(args))
        })
    }

    /// Runs the traces made in the plain setting in another one.
    pub(super) fn run_in(&mut self, shapes: Shapes, setting: &Setting) -> Result<History> {
        let plain = &switches::all()[0];
        if self.world.program.has_outer_gradient || setting.devices != plain.devices {
            let TracedProgram { world, traces } = TracedProgram::new(&self.world.program, setting)?;
            let world = world.sharing_coverage(&self.world);
            return TracedProgram { world, traces }.run(shapes, setting);
        }
        with_context(&plain.context, || self.trace(shapes))?;
        let traces = &self.traces[&shapes];
        let compiled = traces.iter().map(|trace| rebuilt(trace, setting));
        let compiled: Vec<runtime::CallableFunction> = compiled.collect::<Result<_>>()?;
        with_context(&setting.context, || {
            history(&self.world, &|input, args| {
                // The inputs of one trace share what is compiled of it.
                let first = traces.iter().position(|trace| same(trace, &traces[input]));
                let args = args.iter().map(Tensor::eager).collect::<Result<Vec<_>>>()?;
                let results = compiled[first.unwrap_or(input)].call_refs(&args)?;
                Ok(results.into_iter().map(Tensor::from).collect())
            })
        })
    }

    fn trace(&mut self, shapes: Shapes) -> Result<()> {
        if self.traces.contains_key(&shapes) {
            return Ok(());
        }
        let mut made = HashMap::<Vec<TensorSpec>, ConcreteFunction>::new();
        let mut traces = Vec::new();
        let world = self.world.to_trace();
        for (input, list) in self.world.program.inputs.iter().enumerate() {
            world.begin(input);
            let specs: Vec<TensorSpec> = list.iter().map(|arg| spec(shapes, arg)).collect();
            if !made.contains_key(&specs) {
                made.insert(specs.clone(), concrete(&world, &specs)?);
            }
            traces.push(made[&specs].clone());
        }
        self.traces.insert(shapes, traces);
        Ok(())
    }
}

fn same(a: &ConcreteFunction, b: &ConcreteFunction) -> bool {
    Arc::ptr_eq(a.def(), b.def())
}

fn spec(shapes: Shapes, arg: &HostTensor) -> TensorSpec {
    let shape = match shapes {
        Shapes::Known => arg.shape().into(),
        Shapes::Ranks => PartialShape::of_rank(arg.shape().rank()),
        Shapes::Unknown => PartialShape::Unknown,
    };
    TensorSpec::new(arg.dtype(), shape)
}

fn concrete(world: &FuzzWorld, specs: &[TensorSpec]) -> Result<ConcreteFunction> {
    let world = world.clone();
    let traced = function(move |args: Vec<Tensor>| world.run(args).map(tensors));
    let specs = specs.iter().cloned().map(TraceType::Tensor).collect();
    traced.concrete_for([TraceType::List(specs)])
}

/// The function of a trace, to be compiled in another setting.
fn rebuilt(trace: &ConcreteFunction, setting: &Setting) -> Result<runtime::CallableFunction> {
    let mut captures = Vec::new();
    for capture in trace.captures() {
        captures.push(match capture {
            Capture::Tensor(tensor) => runtime::CapturedInput::Tensor(tensor.eager()?.clone()),
            Capture::Resource(handle) => runtime::CapturedInput::Resource(handle.clone()),
            Capture::Ambient(_) => {
                let (expected, found) = ("state".into(), "a summary writer".into());
                return Err(Error::Conversion { expected, found });
            }
        });
    }
    let context = &setting.context;
    let (def, library) = (trace.def().clone(), trace.library().clone());
    let resources = context.resources().clone();
    Ok(runtime::CallableFunction::with_captures(context, def, library, resources, captures))
}

fn tensors(items: Vec<WorldValue>) -> Vec<Tensor> {
    items.into_iter().map(|item| item.tensor).collect()
}

/// A call of a program, by its number, with these arguments.
type Call<'a> = dyn Fn(usize, &[Tensor]) -> Result<Vec<Tensor>> + 'a;

/// All results of the calls of a program, one after the other.
fn history(world: &FuzzWorld, call: &Call<'_>) -> Result<History> {
    world.reset()?;
    let program = &world.program;
    let mut history = History::new();
    for &input in &program.calls {
        let args = program.inputs[input].iter().cloned().map(Tensor::from);
        let args: Vec<Tensor> = args.collect();
        let results = match program.has_outer_gradient {
            true => with_gradients(&args, &|args| call(input, args))?,
            false => call(input, &args)?,
        };
        let mut values = results.iter().map(host).collect::<Result<Vec<_>>>()?;
        for variable in &world.variables {
            values.push(host(&variable.read()?)?);
        }
        history.push(values);
    }
    Ok(history)
}

fn host(tensor: &Tensor) -> Result<HostTensor> {
    Ok(tensor.host()?.clone())
}

/// The results of a call, and the gradients of their sum by the arguments.
fn with_gradients(
    args: &[Tensor],
    call: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let is_float = |tensor: &&Tensor| matches!(tensor.dtype(), DType::F32 | DType::F64);
    let sources: Vec<Tensor> = args.iter().filter(is_float).cloned().collect();
    let tape = GradientTape::new();
    tape.watch(&sources)?;
    let mut results = call(args)?;
    let target: Vec<Tensor> = results.iter().filter(is_float).cloned().collect();
    let options = GradientOptions { zero_unconnected: true, ..GradientOptions::default() };
    results.extend(tape.gradient_with(&target, &sources, &options)?.into_iter().flatten());
    Ok(results)
}

/// The first difference between two histories.
pub(super) fn difference(found: &History, expected: &History) -> Option<String> {
    for (call, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found.len() != expected.len() {
            return Some(format!("call {call}: {} results, not {}", found.len(), expected.len()));
        }
        for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
            if !equal(found, expected) {
                let found = print::literal(found);
                let expected = print::literal(expected);
                return Some(format!("call {call}, result {number}: {found}, not {expected}"));
            }
        }
    }
    None
}

/// The size of inputs: results that are much smaller, such as sums that are zero but for rounding, are as
/// exact as what they are made of.
const INPUT_SIZE: f64 = 4.0;

/// Whether two tensors are equal; floats may be rounded in another way.
fn equal(found: &HostTensor, expected: &HostTensor) -> bool {
    if found.dtype() != expected.dtype() || found.shape() != expected.shape() {
        return false;
    }
    match (floats(found), floats(expected)) {
        (Some(found), Some(expected)) => {
            let finite = expected.iter().filter(|x| x.is_finite());
            let largest = finite.fold(INPUT_SIZE, |largest, x| largest.max(x.abs()));
            let near = |(a, b): (&f64, &f64)| match b.is_finite() {
                true => (a - b).abs() <= 1e-4 * largest,
                false => a == b || a.is_nan() && b.is_nan(),
            };
            found.iter().zip(&expected).all(near)
        }
        _ => found == expected,
    }
}

fn floats(tensor: &HostTensor) -> Option<Vec<f64>> {
    match tensor.dtype() {
        DType::F32 => Some(tensor.as_slice::<f32>().ok()?.iter().map(|&x| f64::from(x)).collect()),
        DType::F64 => Some(tensor.as_slice::<f64>().ok()?.to_vec()),
        _ => None,
    }
}

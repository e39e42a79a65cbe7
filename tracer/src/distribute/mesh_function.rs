//! Functions that are partitioned over a mesh.

use super::{DistributedTensor, MeshStrategy};
use crate::{
    capture::Capture,
    concrete_function::ConcreteFunction,
    context,
    error::{Error, Result},
    tensor::Tensor,
};
use ferroflow_ir::{
    DType, FunctionLibrary, HostTensor, Layout, Shape, ValueType,
    pass::{
        specialize::{Argument, Specialized, Specializer},
        spmd::{LayoutReport, PartitionRequest, Partitioned, mesh_arguments, partition},
    },
};
use ferroflow_runtime::{
    CallableFunction, CapturedInput, EagerTensor, ResourceHandle, ResourceVariable, VariableState,
    collective::{Replica, run_replicas},
    variable::step_pieces,
};
use std::{fmt, sync::Arc};

/// A function that the devices of a mesh run together. Clones share the program.
#[derive(Clone)]
pub struct MeshFunction(Arc<Inner>);

struct Inner {
    strategy: MeshStrategy,
    name: String,
    /// The program of the first device.
    leader: CallableFunction,
    /// That of the others.
    others: CallableFunction,
    /// The coordinates and the keys of the groups of each device.
    mesh_args: Vec<Vec<EagerTensor>>,
    /// Of the arguments that the caller passes.
    args: Vec<(DType, Shape, Layout)>,
    results: Vec<Layout>,
    report: LayoutReport,
    /// The captures that calls take from the thread they are made on.
    concrete: ConcreteFunction,
}

impl fmt::Debug for MeshFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function `{}` on {:?}>", self.0.name, self.0.strategy.mesh())
    }
}

impl MeshFunction {
    pub(super) fn new(
        strategy: &MeshStrategy,
        concrete: &ConcreteFunction,
        args: &[(Shape, Layout)],
        results: &[Option<Layout>],
    ) -> Result<MeshFunction> {
        let source = Source::new(strategy, concrete, args)?;
        let leader = source.partitioned(results, true)?;
        source.distribute(&leader.arguments)?;
        let (is_led, report, layouts) =
            (leader.is_led, leader.report.clone(), leader.results.clone());
        let leader = source.callable(leader)?;
        let others = match is_led {
            true => source.callable(source.partitioned(results, false)?)?,
            false => leader.clone(),
        };
        let mesh_args = |device| {
            let numbers = mesh_arguments(strategy.mesh(), device).into_iter();
            numbers.map(|number| HostTensor::scalar(number).into()).collect()
        };
        let types = args.iter().enumerate().map(|(index, (shape, layout))| {
            (concrete.def().arg_type(index).dtype, shape.clone(), layout.clone())
        });
        Ok(MeshFunction(Arc::new(Inner {
            strategy: strategy.clone(),
            name: concrete.name().into(),
            leader,
            others,
            mesh_args: (0..strategy.mesh().devices().len()).map(mesh_args).collect(),
            args: types.collect(),
            results: layouts,
            report,
            concrete: concrete.clone(),
        })))
    }

    /// The layouts of its nodes, and the collectives that it takes.
    pub fn report(&self) -> &LayoutReport {
        &self.0.report
    }

    /// The layouts of the results.
    pub fn results(&self) -> &[Layout] {
        &self.0.results
    }

    /// The program of the devices, as text; of all but the first, where that has another one.
    pub fn text(&self) -> String {
        self.0.others.def().graph.to_string()
    }

    /// Runs the function on all devices, each in a thread of its own, and returns its results in order. Other
    /// threads wait with the variables that it uses until it has ended.
    /// Arguments that have other layouts than it was partitioned for are brought into those. After an error
    /// variables may have been changed, as after that of a function on one device; devices with the same piece
    /// agree on it.
    ///
    /// # Errors
    ///
    /// When the arguments do not fit; the error of a device that fails, the first that is not about another
    /// one; [`Error::Symbolic`] in a trace.
    pub fn call(&self, args: &[DistributedTensor]) -> Result<Vec<DistributedTensor>> {
        let inner = &*self.0;
        if context::is_tracing() {
            let reason = "a function of a mesh runs eagerly; call it outside traces";
            return Err(Error::Replica { what: format!("calling `{}`", inner.name), reason });
        }
        if Replica::current().is_some() {
            let what = format!("calling `{}`", inner.name);
            return Err(Error::Replica { what, reason: "this is a replica already" });
        }
        let inputs = self.inputs(args)?;
        let strategy = &inner.strategy;
        let run = |device: usize| -> Result<Vec<EagerTensor>> {
            let _context = context::enter(strategy.context());
            context::device(&strategy.mesh().devices()[device], || {
                let program = if device == 0 { &inner.leader } else { &inner.others };
                let args: Vec<&EagerTensor> =
                    inputs[device].iter().chain(&inner.mesh_args[device]).collect();
                Ok(match context::current_accelerator() {
                    None => program.call_refs(&args)?,
                    Some(accelerator) => program.call_on(&accelerator, &args)?,
                })
            })
        };
        let variables: Vec<ResourceVariable> =
            inner.leader.captures().iter().filter_map(variable).collect();
        let pieces = step_pieces(&variables, || {
            run_replicas(strategy.replicas().for_step(), run, in_runtime)
        })?;
        let result = |(index, layout): (usize, &Layout)| {
            let pieces = pieces.iter().map(|results| Tensor::from(results[index].clone()));
            DistributedTensor::pack(pieces, layout)
        };
        inner.results.iter().enumerate().map(result).collect()
    }

    /// The tensors that each device takes.
    fn inputs(&self, args: &[DistributedTensor]) -> Result<Vec<Vec<EagerTensor>>> {
        let inner = &*self.0;
        let wrong = |expected: String, found: String| Error::Conversion { expected, found };
        if args.len() != inner.args.len() {
            let expected = format!("{} tensors for `{}`", inner.args.len(), inner.name);
            return Err(wrong(expected, args.len().to_string()));
        }
        let mut inputs = vec![Vec::new(); inner.mesh_args.len()];
        for (arg, (dtype, shape, layout)) in args.iter().zip(&inner.args) {
            if arg.dtype() != *dtype || arg.shape() != shape {
                return Err(wrong(
                    format!("{dtype}{shape} for `{}`", inner.name),
                    format!("{arg:?}"),
                ));
            }
            for (input, piece) in inputs.iter_mut().zip(arg.relayout(layout)?.unpack()) {
                input.push(piece.eager()?.clone());
            }
        }
        for ambient in inner.concrete.captures().iter().filter(|capture| is_ambient(capture)) {
            let value = ambient.tensor()?.eager()?.clone();
            inputs.iter_mut().for_each(|input| input.push(value.clone()));
        }
        Ok(inputs)
    }
}

/// The error of the runtime behind an error.
fn in_runtime(error: &Error) -> Option<&ferroflow_runtime::Error> {
    match error {
        Error::Runtime(error) => Some(error),
        _ => None,
    }
}

fn is_ambient(capture: &Capture) -> bool {
    match capture {
        Capture::Ambient(_) => true,
        Capture::Tensor(_) | Capture::Resource(_) => false,
    }
}

/// A traced function, specialised for whole arguments.
struct Source<'a> {
    strategy: &'a MeshStrategy,
    concrete: &'a ConcreteFunction,
    body: Specialized,
    captures: Vec<CapturedInput>,
    /// The layouts of all arguments, as far as they are known.
    layouts: Vec<Option<Layout>>,
}

impl<'a> Source<'a> {
    fn new(
        strategy: &'a MeshStrategy,
        concrete: &'a ConcreteFunction,
        args: &[(Shape, Layout)],
    ) -> Result<Source<'a>> {
        if args.len() != concrete.n_args() {
            let expected = format!("layouts of {} tensors", concrete.n_args());
            return Err(Error::Conversion { expected, found: args.len().to_string() });
        }
        let (mut known, mut layouts) = (Vec::new(), Vec::new());
        for (index, (shape, layout)) in args.iter().enumerate() {
            let declared = concrete.def().arg_type(index);
            let ty = ValueType::new(declared.dtype, shape);
            if !ty.shape.is_subtype_of(&declared.shape) || declared.dtype == DType::Resource {
                let expected = format!("a tensor of {declared}");
                return Err(Error::Conversion { expected, found: ty.to_string() });
            }
            known.push(Argument::from(ty));
            layouts.push(Some(layout.clone()));
        }
        let mut captures = Vec::new();
        for capture in concrete.captures() {
            let Some(fixed) = capture.fixed()? else {
                known.push(Argument::from(concrete.def().arg_type(known.len()).clone()));
                layouts.push(None);
                continue;
            };
            let (argument, layout) = captured(strategy, &fixed)?;
            known.push(argument);
            layouts.push(layout);
            captures.push(fixed);
        }
        let (context, library) = (strategy.context(), concrete.library());
        let specializer = Specializer { library, evaluate: context, limits: context.limits() };
        let body = specializer.specialize(concrete.def(), &known)?;
        Ok(Source { strategy, concrete, body, captures, layouts })
    }

    fn partitioned(&self, results: &[Option<Layout>], is_leader: bool) -> Result<Partitioned> {
        let request = PartitionRequest {
            mesh: self.strategy.mesh(),
            arguments: &self.layouts,
            results,
            n_inputs: self.layouts.len() - self.captures.len(),
            is_leader,
        };
        Ok(partition(&self.body, self.concrete.name(), &request)?)
    }

    /// Distributes the variables that are captured.
    fn distribute(&self, layouts: &[Layout]) -> Result<()> {
        let first = self.layouts.len() - self.captures.len();
        for (capture, layout) in self.captures.iter().zip(&layouts[first..]) {
            if let Some(variable) = variable(capture)
                && variable.layout().is_none()
            {
                variable.distribute(layout)?;
            }
        }
        Ok(())
    }

    fn callable(&self, partitioned: Partitioned) -> Result<CallableFunction> {
        let (context, library) = (self.strategy.context(), Arc::new(FunctionLibrary::new()));
        library.share(self.concrete.library())?;
        for function in partitioned.functions {
            library.insert(function)?;
        }
        let resources = context.resources().clone();
        let (def, captures) = (Arc::new(partitioned.def), self.captures.clone());
        Ok(CallableFunction::with_captures(context, def, library, resources, captures))
    }
}

/// The variable that a capture refers to.
fn variable(capture: &CapturedInput) -> Option<ResourceVariable> {
    let of = |handle: &ResourceHandle| handle.downcast::<VariableState>("a variable").ok();
    match capture {
        CapturedInput::Resource(handle) => of(handle).map(ResourceVariable::from),
        CapturedInput::Tensor(_) => None,
    }
}

/// The argument that a capture is, and the layout of the variable behind it.
fn captured(
    strategy: &MeshStrategy,
    capture: &CapturedInput,
) -> Result<(Argument, Option<Layout>)> {
    match capture {
        CapturedInput::Tensor(tensor) => {
            let ty = ValueType::new(tensor.dtype(), tensor.shape());
            Ok((Argument { ty, value: tensor.host().ok().cloned() }, None))
        }
        CapturedInput::Resource(handle) => {
            let layout = variable(capture).and_then(|variable| variable.layout().cloned());
            layout.iter().try_for_each(|layout| strategy.check_mesh(layout))?;
            // State that is gone is told at once.
            handle.resource()?;
            Ok((handle.value_type().into(), layout))
        }
    }
}

//! Ways to make a call.

use super::base::{CallInput, HostileCall};
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{
        Attrs, FunctionDef, Graph, HostTensor, NodeDef, NodeId, OpDef, Outlet, PartialShape,
        ValueType,
    },
    runtime::{CallOptions, CallableFunction, Context, EagerTensor, execute},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

/// The route by which calls are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CallMode {
    /// Op by op.
    Eager,
    /// In a function whose arguments are the tensors.
    Function,
    /// The same, where the compiler knows no shape of an argument.
    Unknown,
    /// In a function that has the tensors as constants.
    Constants,
}

pub(super) const MODES: [CallMode; 5] =
    [CallMode::Eager, CallMode::Eager, CallMode::Function, CallMode::Unknown, CallMode::Constants];

/// The time that calls have: those that wait for other threads end, and no kernel goes on for long.
const TIME: Duration = Duration::from_millis(500);

/// Makes the calls. What comes of it is of no interest, unless it panics.
pub(super) fn run(context: &Context, mode: CallMode, sequence: &[HostileCall]) {
    let deadline = Some(Instant::now() + TIME);
    let options = CallOptions { deadline, printed_bytes: Some(1 << 16), ..CallOptions::default() };
    let within = |run: fn(&Context, CallMode, &[HostileCall]) -> Result<()>| {
        context.within(&options, || run(context, mode, sequence))
    };
    let _ = catch_unwind(AssertUnwindSafe(|| match mode {
        CallMode::Eager => within(eager),
        CallMode::Function | CallMode::Unknown | CallMode::Constants => within(function),
    }));
}

fn eager(context: &Context, _: CallMode, sequence: &[HostileCall]) -> Result<()> {
    let mut results: Vec<Vec<EagerTensor>> = Vec::new();
    for call in sequence {
        let input = |input: &CallInput| match input {
            CallInput::Tensor(tensor) => Ok(tensor.clone().into()),
            CallInput::From(step, result) => {
                let found = results.get(*step).and_then(|results| results.get(*result));
                found.cloned().context("a result of an earlier call")
            }
        };
        let inputs: Vec<EagerTensor> = call.inputs.iter().map(input).collect::<Result<_>>()?;
        let found = execute(context, call.op.name, call.attrs.clone(), &inputs)?;
        results.push(found.into_vec());
    }
    Ok(())
}

/// A graph of calls as a file may hold them: attributes are complete and dtypes fit, nothing more.
struct MutantFunction {
    graph: Graph,
    mode: CallMode,
    args: Vec<NodeId>,
    given: Vec<EagerTensor>,
    steps: Vec<(NodeId, usize)>,
}

fn function(context: &Context, mode: CallMode, sequence: &[HostileCall]) -> Result<()> {
    let (graph, args, given) = (Graph::default(), Vec::new(), Vec::new());
    let mut body = MutantFunction { graph, mode, args, given, steps: Vec::new() };
    for (number, call) in sequence.iter().enumerate() {
        body.add(context, number, call)?;
    }
    let (last, n_results) = body.steps.last().copied().context("a call")?;
    let results = (0..n_results).map(|at| (format!("y{at}"), Outlet::new(last, at))).collect();
    let def = FunctionDef {
        name: "mutant".into(),
        graph: body.graph,
        args: body.args,
        results,
        control_results: vec![last],
        attrs: Attrs::new(),
    };
    CallableFunction::new(context, def)?.call(&body.given)?;
    Ok(())
}

impl MutantFunction {
    fn add(&mut self, context: &Context, number: usize, call: &HostileCall) -> Result<()> {
        let mut inputs = Vec::new();
        for (at, input) in call.inputs.iter().enumerate() {
            inputs.push(match input {
                CallInput::Tensor(tensor) => self.tensor(context, number, at, tensor)?,
                CallInput::From(step, result) => {
                    let (node, n) = *self.steps.get(*step).context("an earlier call")?;
                    anyhow::ensure!(*result < n, "a result of the call");
                    Outlet::new(node, *result)
                }
            });
        }
        let dtypes: Vec<_> =
            inputs.iter().filter_map(|&input| self.graph.ty(input).map(|ty| ty.dtype)).collect();
        let attrs = ferroflow::ir::build::infer_attrs(call.op, call.attrs.clone(), &dtypes);
        let attrs = call.op.complete_attrs(attrs)?;
        anyhow::ensure!(call.op.input_dtypes(&attrs)?[..] == dtypes[..], "dtypes that fit");
        let outputs = call.op.output_dtypes(&attrs)?;
        let types = outputs.iter().map(|&dtype| ValueType::new(dtype, PartialShape::Unknown));
        let node = NodeDef::new(format!("step{number}"), call.op, attrs)
            .with_inputs(inputs)
            .with_outputs(types);
        let id = self.graph.add(node)?;
        self.steps.push((id, outputs.len()));
        Ok(())
    }

    fn tensor(
        &mut self,
        context: &Context,
        number: usize,
        at: usize,
        tensor: &HostTensor,
    ) -> Result<Outlet> {
        let op = |name: &str| -> Result<&'static OpDef> {
            context.registry().find(name).with_context(|| format!("the op {name}"))
        };
        let name = format!("x{number}_{at}");
        let known = ValueType::new(tensor.dtype(), tensor.shape());
        if self.mode == CallMode::Constants {
            let attrs = Attrs::new().with("dtype", tensor.dtype()).with("value", tensor.clone());
            let node = NodeDef::new(name, op("Const")?, attrs).with_outputs([known]);
            return Ok(self.graph.add(node)?.into());
        }
        let ty = match self.mode {
            CallMode::Unknown => ValueType::new(tensor.dtype(), PartialShape::Unknown),
            CallMode::Eager | CallMode::Function | CallMode::Constants => known,
        };
        let attrs = Attrs::new().with("T", ty.dtype).with("index", self.args.len() as i64);
        let node = NodeDef::new(name, op("_Arg")?, attrs).with_outputs([ty]);
        let id = self.graph.add(node)?;
        self.args.push(id);
        self.given.push(tensor.clone().into());
        Ok(id.into())
    }
}

//! A graph under construction: what a function does while it is traced goes here.

use crate::{
    capture::{Capture, Captures},
    context,
    control_order::ControlOrder,
    error::{Error, Result},
    lift::FirstValue,
    ops::Op,
    recording,
    summary::Ambient,
    tensor::{Repr, Symbolic, Tensor},
    value::Value,
    variable::Variable,
};
use ferroflow_ir::{
    Attrs, DType, Effect, FunctionDef, FunctionLibrary, Graph, HostTensor, NodeDef, NodeId, OpDef,
    Outlet, ValueType,
    build::infer_attrs,
    emit::check_call,
    error::SourceLocation,
    infer::Input,
    pass::carve::{Feed, Part},
    pass::specialize::Evaluate,
    registry,
};
use ferroflow_runtime::{Asset, Context};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The results of an op call.
pub type Outputs = SmallVec<[Tensor; 2]>;

/// A call of an op, as user code makes it.
pub(crate) struct Call<'a> {
    pub(crate) op: &'static OpDef,
    pub(crate) attrs: Attrs,
    pub(crate) inputs: &'a [&'a Tensor],
    /// What the node's name begins with; the op's name if empty.
    pub(crate) name: &'a str,
    pub(crate) location: Option<SourceLocation>,
}

/// How the order of effects is kept, and who owns the variables that are created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Semantics {
    /// Effects happen in the order of the program; variables belong to their Rust values.
    Program,
    /// TensorFlow 1: effects happen where control dependencies ask for them.
    Graph,
}

/// Whether a trace may create variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Creation {
    Allowed,
    Forbidden,
}

/// A graph under construction.
pub(crate) struct FuncGraph {
    name: Arc<str>,
    owner: u64,
    context: Context,
    semantics: Semantics,
    creation: Creation,
    library: Arc<FunctionLibrary>,
    /// The graph around this one, if this is a branch or a part of a loop.
    parent: Option<Arc<FuncGraph>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    graph: Graph,
    args: Vec<NodeId>,
    captures: Captures,
    order: ControlOrder,
    created: Vec<Created>,
    /// The call added last.
    last: Option<NodeId>,
    /// The calls and constants added so far, in order.
    calls: Vec<NodeId>,
    collections: HashMap<String, Vec<Value>>,
    /// Values that were needed while tracing.
    known: HashMap<Outlet, Option<HostTensor>>,
    /// The names of the nodes, once the graph is finished and belongs to a function.
    names: HashMap<NodeId, Box<str>>,
}

/// A variable made while a function was traced.
#[derive(Clone)]
pub(crate) struct Created {
    pub(crate) variable: Variable,
    /// Its first value.
    pub(crate) initial: Tensor,
    pub(crate) location: SourceLocation,
}

/// A finished trace.
#[derive(Clone)]
pub(crate) struct Finished {
    pub(crate) def: FunctionDef,
    pub(crate) library: Arc<FunctionLibrary>,
    pub(crate) captures: Vec<Capture>,
    /// The variables it creates.
    pub(crate) created: Vec<Variable>,
    /// The first values of those of them that take theirs from the trace, and small ones of others.
    pub(crate) first_values: Vec<FirstValue>,
}

/// A place in a trace: see [`FuncGraph::mark`].
#[derive(Debug)]
pub(crate) struct Mark {
    n_calls: usize,
    order: ControlOrder,
    last: Option<NodeId>,
}

/// A number no other call of this function gives.
pub(crate) fn unique_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl fmt::Debug for FuncGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<trace of function `{}`>", self.name)
    }
}

impl FuncGraph {
    pub(crate) fn new(
        name: &str,
        owner: u64,
        semantics: Semantics,
        creation: Creation,
    ) -> Arc<FuncGraph> {
        Arc::new(FuncGraph {
            name: name.into(),
            owner,
            context: context::context(),
            semantics,
            creation,
            library: Arc::default(),
            parent: None,
            state: Mutex::default(),
        })
    }

    /// The graph of a branch or of a part of a loop: what it uses from outside it takes from
    /// `parent`, the graph around it.
    pub(crate) fn inside(parent: Arc<FuncGraph>, base: &str) -> Arc<FuncGraph> {
        Arc::new(FuncGraph {
            name: format!("{base}_{}", unique_id()).into(),
            owner: parent.owner,
            context: parent.context.clone(),
            semantics: parent.semantics,
            creation: parent.creation,
            library: parent.library.clone(),
            parent: Some(parent),
            state: Mutex::default(),
        })
    }

    /// The graph of the function that this is a part of.
    fn root(&self) -> &FuncGraph {
        self.parent.as_ref().map_or(self, |parent| parent.root())
    }

    /// The name of the function.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes the node of a tensor run even if nobody uses it.
    pub(crate) fn require(&self, tensor: &Tensor) {
        if let Repr::Symbolic(symbolic) = &tensor.0 {
            self.state.lock().order.require(symbolic.outlet.node);
        }
    }

    /// The identity of the function.
    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    pub(crate) fn library(&self) -> &Arc<FunctionLibrary> {
        &self.library
    }

    /// Adds an argument.
    pub(crate) fn argument(self: &Arc<FuncGraph>, name: &str, ty: ValueType) -> Result<Tensor> {
        let outlet = {
            let mut state = self.state.lock();
            let outlet = state.add_argument(name, ty.clone())?;
            state.args.push(outlet.node);
            outlet
        };
        Ok(self.tensor(outlet, ty, None))
    }

    fn tensor(
        self: &Arc<FuncGraph>,
        outlet: Outlet,
        ty: ValueType,
        location: Option<SourceLocation>,
    ) -> Tensor {
        Tensor::from_symbolic(Symbolic { graph: self.clone(), outlet, ty, location })
    }

    /// The name of an outlet, such as `add:0`.
    pub(crate) fn outlet_name(&self, outlet: Outlet) -> String {
        // A message may be made while the state is locked by a call of this very thread.
        let Some(state) = self.state.try_lock() else { return format!("{outlet:?}") };
        let name = state.names.get(&outlet.node).unwrap_or_else(|| &state.graph[outlet.node].name);
        format!("{name}:{}", outlet.index)
    }

    /// Adds a call of an op.
    pub(crate) fn call(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        self.call_typed(call, None)
    }

    /// Adds a call of an op that runs after the call added last.
    pub(crate) fn call_after_last(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        let last = self.state.lock().last;
        let outputs = self.call(call)?;
        self.state.lock().delay_last(last)?;
        Ok(outputs)
    }

    /// Adds a call of an op that runs after all calls so far that change the state it is given.
    pub(crate) fn call_after_changes(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        let outputs = self.call(call)?;
        if self.semantics == Semantics::Program {
            return Ok(outputs);
        }
        let mut state = self.state.lock();
        let given = state.last.map_or(&[][..], |id| state.graph[id].inputs());
        let changes = state.graph.iter().filter(|(_, node)| {
            let effect = self.library.effect_of(&node.op, &node.attrs);
            let shares_state = node.inputs().iter().any(|input| given.contains(input));
            shares_state && matches!(effect, Effect::Writes | Effect::Stateful)
        });
        let changes: Vec<NodeId> = changes.map(|(id, _)| id).collect();
        state.delay_last(changes)?;
        Ok(outputs)
    }

    /// Adds a call of an op whose results are known to be of these types.
    pub(crate) fn call_typed(
        self: &Arc<FuncGraph>,
        call: Call<'_>,
        results: Option<&[ValueType]>,
    ) -> Result<Outputs> {
        match context::is_taped() {
            true => recording::staged(self, call, results),
            false => self.add_call(call, results),
        }
    }

    /// What an argument that came in as a capture is outside.
    pub(crate) fn captured_as(&self, outlet: Outlet) -> Option<Tensor> {
        self.state.lock().captures.captured_as(outlet)
    }

    /// The value of an outlet, where it follows from constants.
    pub(crate) fn known_value(&self, outlet: Outlet) -> Option<HostTensor> {
        self.constant_value(&mut self.state.lock(), outlet)
    }

    /// Adds a call that no tape sees.
    pub(crate) fn add_call(
        self: &Arc<FuncGraph>,
        call: Call<'_>,
        results: Option<&[ValueType]>,
    ) -> Result<Outputs> {
        let Call { op, attrs, inputs, name, location } = call;
        let controls = self.requested_controls()?;
        let base = if name.is_empty() { op.name } else { name };
        let mut state = self.state.lock();
        let name = state.graph.unique_name(base);
        let mut outlets: SmallVec<[Outlet; 4]> = SmallVec::new();
        for (index, input) in inputs.iter().enumerate() {
            let argument =
                op.inputs.get(index).or(op.inputs.last()).map_or("input", |arg| arg.name);
            outlets.push(self.outlet(&mut state, input, || format!("{name}/{argument}"))?);
        }
        let types: SmallVec<[ValueType; 4]> =
            outlets.iter().map(|&outlet| state.ty(outlet).clone()).collect();
        let dtypes: SmallVec<[DType; 4]> = types.iter().map(|ty| ty.dtype).collect();
        let attrs = infer_attrs(op, attrs, &dtypes);
        let is_host = op.host_inputs(&attrs)?;
        let mut values: SmallVec<[Option<HostTensor>; 4]> = SmallVec::new();
        for (index, &outlet) in outlets.iter().enumerate() {
            let needed = is_host.get(index) == Some(&true);
            values.push(if needed { self.constant_value(&mut state, outlet) } else { None });
        }
        let facts: SmallVec<[Input<'_>; 4]> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| Input { ty, value: value.as_ref() })
            .collect();
        let checked = check_call(op, attrs, &facts);
        let (attrs, outputs) = checked
            .map_err(|error| error.at_node(&name, op.name, &self.name).written_at(location))?;
        let outputs = results.map_or(outputs, SmallVec::from);
        let effect = self.library.effect_of(&op.into(), &attrs);
        let mut node = NodeDef::new(name, op, attrs)
            .with_inputs(outlets.iter().copied())
            .with_outputs(outputs.iter().cloned());
        node.device = (&*context::current_device()).into();
        node.location = location;
        let before = match self.semantics {
            Semantics::Program => state.order.before(effect, &outlets, &types),
            Semantics::Graph => SmallVec::new(),
        };
        let node = node.with_controls(before.iter().copied().chain(controls));
        let id = state.graph.add(node)?;
        state.last = Some(id);
        state.calls.push(id);
        if self.semantics == Semantics::Program {
            state.order.ran(id, effect, &outlets, &types, &outputs);
        }
        let tensors = outputs.into_iter().enumerate();
        Ok(tensors.map(|(index, ty)| self.tensor(Outlet::new(id, index), ty, location)).collect())
    }

    /// The nodes that scopes around the call ask to run before it.
    fn requested_controls(self: &Arc<FuncGraph>) -> Result<SmallVec<[NodeId; 1]>> {
        let mut nodes = SmallVec::new();
        for tensor in context::current_controls() {
            if let Repr::Symbolic(symbolic) = &tensor.0
                && Arc::ptr_eq(&symbolic.graph, self)
            {
                nodes.push(symbolic.outlet.node);
            }
        }
        nodes.sort();
        nodes.dedup();
        Ok(nodes)
    }

    /// Where a tensor is in this graph: captured if it comes from outside.
    fn outlet(
        self: &Arc<FuncGraph>,
        state: &mut State,
        tensor: &Tensor,
        name: impl Fn() -> String,
    ) -> Result<Outlet> {
        if let Repr::Symbolic(symbolic) = &tensor.0 {
            if Arc::ptr_eq(&symbolic.graph, self) {
                return Ok(symbolic.outlet);
            }
            if !context::is_open(&symbolic.graph) {
                let used_in = format!("in the trace of function `{}`", self.name);
                return Err(out_of_scope(tensor, symbolic, used_in));
            }
        }
        if let Some(constant) = small_constant(tensor).filter(|_| !recording::is_watched(tensor)) {
            return state.constant(&name(), constant);
        }
        let around = match &self.parent {
            Some(parent) => Some(parent.own(tensor, &name)?),
            None => None,
        };
        let tensor = around.as_ref().unwrap_or(tensor);
        let capture = Capture::new(tensor)?;
        if let Some(outlet) = state.captures.find(&capture) {
            return Ok(outlet);
        }
        let outlet = state.add_argument(&name(), tensor.value_type())?;
        state.captures.add(capture, outlet);
        Ok(outlet)
    }

    /// What surrounds each call of the function: an argument that nobody gives.
    pub(crate) fn ambient(self: &Arc<FuncGraph>, ambient: Ambient) -> Result<Tensor> {
        if let Some(parent) = &self.parent {
            return parent.ambient(ambient);
        }
        let (mut state, capture, ty) = (self.state.lock(), Capture::Ambient(ambient), ambient.ty());
        let outlet = match state.captures.find(&capture) {
            Some(outlet) => outlet,
            None => {
                let outlet = state.add_argument(ambient.name(), ty.clone())?;
                state.captures.add(capture, outlet);
                outlet
            }
        };
        drop(state);
        Ok(self.tensor(outlet, ty, None))
    }

    /// The tensor as one of this graph, captured if it comes from outside; of handles that passed
    /// through other nodes, the first.
    pub(crate) fn own(
        self: &Arc<FuncGraph>,
        tensor: &Tensor,
        name: &dyn Fn() -> String,
    ) -> Result<Tensor> {
        let mut state = self.state.lock();
        let outlet = self.outlet(&mut state, tensor, name)?;
        let outlet = state.order.origin(outlet);
        let ty = state.ty(outlet).clone();
        drop(state);
        Ok(self.tensor(outlet, ty, None))
    }

    /// The value of an outlet, where it follows from constants.
    fn constant_value(&self, state: &mut State, outlet: Outlet) -> Option<HostTensor> {
        if let Some(known) = state.known.get(&outlet) {
            return known.clone();
        }
        let value = self.evaluate(state, outlet);
        state.known.insert(outlet, value.clone());
        value
    }

    fn evaluate(&self, state: &mut State, outlet: Outlet) -> Option<HostTensor> {
        let node = &state.graph[outlet.node];
        let op = node.op.def()?;
        if op.name == "Const" {
            return node.attrs.tensor("value").ok().cloned();
        }
        if node.op.name() == "_Arg" {
            return self.value_around(state, outlet);
        }
        if op.effect != Effect::Pure {
            return None;
        }
        let (attrs, inputs) = (node.attrs.clone(), node.inputs().to_vec());
        let types: Vec<ValueType> = inputs.iter().map(|&input| state.ty(input).clone()).collect();
        if !op.shape_only && types.iter().any(|ty| !is_small(ty)) {
            return None;
        }
        let values: Vec<Option<HostTensor>> = inputs
            .iter()
            .map(|&input| if op.shape_only { None } else { self.constant_value(state, input) })
            .collect();
        if !op.shape_only && values.iter().any(Option::is_none) {
            return None;
        }
        let facts: Vec<Input<'_>> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| Input { ty, value: value.as_ref() })
            .collect();
        let results = self.context.evaluate(op, &attrs, &facts)?;
        results.into_iter().nth(outlet.index as usize)
    }

    /// The value of an argument that stands for a tensor of the graph around.
    fn value_around(&self, state: &State, argument: Outlet) -> Option<HostTensor> {
        let parent = self.parent.as_ref()?;
        let Repr::Symbolic(symbolic) = &state.captures.tensor_of(argument)?.0 else {
            return None;
        };
        parent.constant_value(&mut parent.state.lock(), symbolic.outlet)
    }

    /// The name of a new variable for which this one is asked: in code with the semantics of
    /// TensorFlow 1, one that no variable has yet.
    pub(crate) fn variable_name(&self, base: String) -> String {
        let created = &self.root().state.lock().created;
        let is_free = |name: &String| created.iter().all(|c| c.variable.name() != name);
        match self.semantics {
            Semantics::Graph if !is_free(&base) => {
                let names = (1..).map(|number: u64| format!("{base}_{number}"));
                names.into_iter().find(is_free).expect("there are more numbers than variables")
            }
            Semantics::Graph | Semantics::Program => base,
        }
    }

    /// Notes a variable that the function creates.
    ///
    /// # Errors
    ///
    /// [`Error::VariableCreation`] when the trace may not.
    pub(crate) fn created(&self, created: Created) -> Result<()> {
        if self.creation == Creation::Forbidden {
            return Err(Error::VariableCreation {
                function: self.root().name.to_string(),
                variable: created.variable.name().into(),
                location: Some(created.location),
            });
        }
        let variable = created.variable.clone();
        self.root().state.lock().created.push(created);
        if self.semantics == Semantics::Graph {
            self.collect(crate::v1::GLOBAL_VARIABLES, Value::Variable(variable));
        }
        Ok(())
    }

    /// Adds a value to a collection.
    pub(crate) fn collect(&self, name: &str, value: Value) {
        self.root().state.lock().collections.entry(name.into()).or_default().push(value);
    }

    /// The values of a collection.
    pub(crate) fn collection(&self, name: &str) -> Vec<Value> {
        self.root().state.lock().collections.get(name).cloned().unwrap_or_default()
    }

    /// Whose semantics the code has.
    pub(crate) fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// Ends the trace: a function that gives `outputs`, each through a node of its own.
    pub(crate) fn finish(self: &Arc<FuncGraph>, outputs: &[Tensor]) -> Result<Finished> {
        let created = std::mem::take(&mut self.state.lock().created);
        let first_values = created.iter().filter_map(|created| self.first_value(created));
        let first_values = first_values.collect::<Result<_>>()?;
        let results = self.results(outputs, |_, _| false)?;
        let state = self.take_state();
        let (captures, capture_nodes) = state.captures.into_parts();
        let args: Vec<NodeId> = state.args.into_iter().chain(capture_nodes).collect();
        let graph = numbered(state.graph, &args);
        let control_results = state.order.into_must_run();
        let name = format!("__inference_{}_{}", self.name, unique_id());
        let attrs = Attrs::new();
        let def = FunctionDef { name: name.into(), graph, args, results, control_results, attrs };
        let created = created.into_iter().map(|created| created.variable).collect();
        Ok(Finished { def, library: self.library.clone(), captures, created, first_values })
    }

    /// The state of the graph, which is finished; the names of its nodes stay known.
    fn take_state(&self) -> State {
        let mut state = self.state.lock();
        let names = state.graph.iter().map(|(id, node)| (id, node.name.clone())).collect();
        std::mem::replace(&mut *state, State { names, ..State::default() })
    }

    /// Results of the function, each through a node of its own unless it is to be `direct`.
    fn results(
        self: &Arc<FuncGraph>,
        outputs: &[Tensor],
        direct: impl Fn(usize, Outlet) -> bool,
    ) -> Result<Vec<(String, Outlet)>> {
        static IDENTITY: Op = Op::new("Identity");
        let mut results: Vec<(String, Outlet)> = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.iter().enumerate() {
            let outlet = match &output.0 {
                Repr::Symbolic(symbolic)
                    if Arc::ptr_eq(&symbolic.graph, self) && direct(index, symbolic.outlet) =>
                {
                    symbolic.outlet
                }
                _ => {
                    let (op, attrs) = (IDENTITY.record(), Attrs::new());
                    let call = Call { op, attrs, inputs: &[output], name: "", location: None };
                    self.call(call)?[0].symbolic_in(self).expect("staged here")
                }
            };
            let name = if index == 0 { "identity".into() } else { format!("identity_{index}") };
            results.push((name, outlet));
        }
        Ok(results)
    }

    /// The tensors of the graph around this one that it uses.
    pub(crate) fn captured(&self) -> Vec<Tensor> {
        self.state.lock().captures.tensors().collect()
    }

    /// Ends a branch, or a part of a loop: a function of its arguments and of `captures`, tensors of
    /// the graph around it. Results that are the argument of the same number are that argument.
    pub(crate) fn finish_inside(
        self: &Arc<FuncGraph>,
        outputs: &[Tensor],
        captures: &[Tensor],
        passes_captures: bool,
    ) -> Result<FunctionDef> {
        let args = self.state.lock().args.clone();
        let mut results = self.results(outputs, |index, outlet| {
            args.get(index).is_some_and(|&arg| Outlet::from(arg) == outlet)
        })?;
        let mut nodes = Vec::with_capacity(captures.len());
        for capture in captures {
            let mut state = self.state.lock();
            nodes.push(self.outlet(&mut state, capture, || "capture".into())?.node);
        }
        if passes_captures {
            let first = results.len();
            let passed = nodes.iter().enumerate();
            results.extend(
                passed.map(|(index, &node)| (format!("identity_{}", first + index), node.into())),
            );
        }
        let state = self.take_state();
        let args: Vec<NodeId> = state.args.into_iter().chain(nodes).collect();
        Ok(FunctionDef {
            name: self.name.clone(),
            graph: numbered(state.graph, &args),
            args,
            results,
            control_results: state.order.into_must_run(),
            attrs: Attrs::new(),
        })
    }

    /// Where the trace stands, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        let state = self.state.lock();
        Mark { n_calls: state.calls.len(), order: state.order.clone(), last: state.last }
    }

    /// Takes back the calls since the mark.
    pub(crate) fn roll_back(&self, mark: Mark) -> Result<()> {
        let mut state = self.state.lock();
        let calls = state.calls.split_off(mark.n_calls);
        for id in calls.into_iter().rev() {
            state.known.retain(|outlet, _| outlet.node != id);
            state.graph.remove(id)?;
        }
        (state.order, state.last) = (mark.order, mark.last);
        Ok(())
    }

    /// The function that computes the first value of a variable alone, from the arguments of this
    /// trace. A value that the variable has already is kept for variables to come, if it is small:
    /// memory is not held twice.
    fn first_value(&self, created: &Created) -> Option<Result<FirstValue>> {
        let variable = &created.variable;
        if let Repr::Symbolic(symbolic) = &created.initial.0 {
            let outlet = self.own_outlet(variable, symbolic);
            return Some(outlet.and_then(|outlet| self.carve(variable, outlet, false)));
        }
        let value = small_constant(&created.initial);
        let value = value.filter(|_| self.semantics == Semantics::Program)?;
        let outlet = self.state.lock().constant("initial_value", value);
        Some(outlet.and_then(|outlet| self.carve(variable, outlet, true)))
    }

    /// The place of a first value, which must be in this graph.
    fn own_outlet(&self, variable: &Variable, value: &Symbolic) -> Result<Outlet> {
        if std::ptr::eq(&*value.graph, self) {
            return Ok(value.outlet);
        }
        let reason = match &value.graph.parent {
            Some(_) => "is computed in a branch or a loop: compute it outside",
            None => "belongs to the trace of another function: call this one outside others first",
        };
        let (function, variable) = (self.name.to_string(), variable.name().into());
        Err(Error::Initializer { function, variable, reason })
    }

    fn carve(&self, variable: &Variable, value: Outlet, is_known: bool) -> Result<FirstValue> {
        let state = self.state.lock();
        let needed = state.graph.reachable_from([value.node]);
        let needs_arguments = state.args.iter().any(|arg| needed.contains(arg));
        let (captures, capture_nodes) = state.captures.clone().into_parts();
        let captured = captures.into_iter().zip(capture_nodes);
        let (captures, capture_nodes): (Vec<Capture>, Vec<NodeId>) =
            captured.filter(|(_, node)| needed.contains(node)).unzip();
        let args = state.args.iter().copied().chain(capture_nodes).map(Outlet::from);
        let feeds = args.map(|outlet| Feed { outlet, ty: state.ty(outlet).clone() }).collect();
        let results = vec![("value".to_string(), value)];
        let name = format!("__initializer_{}_{}", self.name, unique_id());
        let def = Part { feeds, results, targets: Vec::new() }.carve(&state.graph, name)?;
        let (variable, def) = (variable.clone(), def.into());
        Ok(FirstValue { variable, def, captures, needs_arguments, is_known })
    }
}

/// The error of a tensor used outside the trace it belongs to.
pub(crate) fn out_of_scope(tensor: &Tensor, symbolic: &Symbolic, used_in: String) -> Error {
    Error::OutOfScope {
        tensor: tensor.to_string(),
        defined_in: symbolic.graph.name().into(),
        location: symbolic.location,
        used_in,
    }
}

/// Eager tensors up to this many elements become constants of the graph; larger ones are captured,
/// so that traces share their memory. The number is TensorFlow's.
const CONSTANT_ELEMENTS: usize = 128;

fn small_constant(tensor: &Tensor) -> Option<HostTensor> {
    let Repr::Eager(eager) = &tensor.0 else { return None };
    let host = eager.host().ok()?;
    let has_value = !matches!(host.dtype(), DType::Resource | DType::Variant);
    // Where a file is depends on where the model is loaded.
    let has_value = has_value && !Asset::is_any_path(eager);
    (has_value && host.len() <= CONSTANT_ELEMENTS).then(|| host.clone())
}

/// The graph, with the arguments of a function numbered.
fn numbered(mut graph: Graph, args: &[NodeId]) -> Graph {
    for (index, &arg) in args.iter().enumerate() {
        let attrs = Attrs::clone(&graph[arg].attrs).with("index", index as i64);
        *graph.node_mut(arg).attrs = attrs.into();
    }
    graph
}

fn is_small(ty: &ValueType) -> bool {
    ty.shape.known().is_some_and(|shape| shape.num_elements() <= CONSTANT_ELEMENTS)
}

impl State {
    fn ty(&self, outlet: Outlet) -> &ValueType {
        self.graph.ty(outlet).expect("every node of a trace has types")
    }

    /// Makes the call added last run after these others.
    fn delay_last(&mut self, others: impl IntoIterator<Item = NodeId>) -> Result<()> {
        let Some(id) = self.last else { return Ok(()) };
        let node = &self.graph[id];
        let controls: Vec<NodeId> = node.controls().iter().copied().chain(others).collect();
        let inputs = node.inputs().to_vec();
        Ok(self.graph.connect(id, inputs, controls)?)
    }

    fn add_argument(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        let op = registry::find("_Arg").expect("a built-in record");
        let attrs = Attrs::new().with("T", ty.dtype).with("index", 0i64);
        let name = self.graph.unique_name(name);
        let node = NodeDef::new(name, op, attrs).with_outputs([ty]);
        Ok(self.graph.add(node)?.into())
    }

    fn constant(&mut self, name: &str, value: HostTensor) -> Result<Outlet> {
        let op = registry::find("Const").expect("a built-in record");
        let ty = ValueType::new(value.dtype(), value.shape());
        let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
        let name = self.graph.unique_name(name);
        let id = self.graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?;
        self.calls.push(id);
        Ok(id.into())
    }
}

//! Specialisation: a function for arguments of known types.
//!
//! The function is rebuilt node by node, in an order in which it may run. On the way calls are
//! inlined, types are inferred, calls whose inputs are known are computed, formulas of composite
//! ops are expanded, and branches with a known condition are decided. What remains is straight:
//! no control edges (the order of the nodes is the order of effects), no calls but loops and
//! branches, whose bodies are specialised too.

mod control_flow;
mod formulas;
mod index_values;

use super::{call::record, placement::Reason};
use crate::{
    attr::Attrs,
    budget,
    error::{Error, Result, SourceLocation},
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    infer::{InputFacts, infer},
    limits::Limits,
    op::{AliasKind, Effect, Lowering, OpDef, XlaFormula},
    ops::names,
    registry,
    spec::ValueType,
};
pub use control_flow::{chosen_branch, truthiness};
use formulas::is_expandable;
use smallvec::SmallVec;
use std::{mem, sync::Arc};

/// Evaluation of ops that specialisation needs.
pub trait Evaluate {
    /// The results of a pure call whose inputs are known (of shape-only ops, whose input shapes
    /// are); `None` when it cannot be computed now.
    fn evaluate(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[InputFacts<'_>],
    ) -> Option<Vec<HostTensor>>;

    /// Whether anything is computed ahead, values of single elements among it.
    fn folds(&self) -> bool {
        true
    }
}

/// Computes nothing ahead.
pub struct NoFolding;

impl Evaluate for NoFolding {
    fn folds(&self) -> bool {
        false
    }

    fn evaluate(
        &self,
        _: &'static OpDef,
        _: &Attrs,
        _: &[InputFacts<'_>],
    ) -> Option<Vec<HostTensor>> {
        None
    }
}

/// Knowledge about an argument.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its type.
    pub ty: ValueType,
    /// Its value, if that is part of the specialisation.
    pub value: Option<HostTensor>,
}

impl From<ValueType> for Argument {
    fn from(ty: ValueType) -> Argument {
        Argument { ty, value: None }
    }
}

/// A function specialised for its arguments.
#[derive(Debug, Clone)]
pub struct Specialized {
    /// The body. Nodes are in an order in which they may run.
    pub graph: Graph,
    /// The arguments, as nodes of the op `_Arg`.
    pub args: Vec<Outlet>,
    /// The results.
    pub results: Vec<Outlet>,
    /// The specialised functions of loops and branches, in the order of the attributes that name
    /// them.
    pub nested: FastMap<NodeId, Vec<Specialized>>,
    /// Error that ended specialisation: whatever reaches the end of the body fails with this.
    pub failure: Option<Error>,
    /// The aliases that were replaced by their inputs, for [`verify`](super::verify).
    pub dropped: Vec<DroppedAlias>,
    /// The reasons why calls run where they do, once the function is [placed](super::placement).
    pub reasons: FastMap<NodeId, Reason>,
}

/// An alias that was replaced by its input though it could change dtype or shape.
#[derive(Debug, Clone)]
pub struct DroppedAlias {
    /// The name of its node.
    pub node: Box<str>,
    /// Its op.
    pub op: &'static OpDef,
    /// The type of its input.
    pub input: ValueType,
    /// The type of its result.
    pub output: ValueType,
}

impl Specialized {
    /// The type of result `index`; unknown in a function that fails before it returns results.
    pub fn result_type(&self, index: usize) -> Option<&ValueType> {
        self.results.get(index).and_then(|&outlet| self.graph.ty(outlet))
    }

    /// Applies `pass` to this body and the bodies inside it.
    ///
    /// # Errors
    ///
    /// The first error of `pass`.
    pub fn for_each_body(
        &mut self,
        pass: &mut impl FnMut(&mut Specialized) -> Result<()>,
    ) -> Result<()> {
        for nested in self.nested.values_mut() {
            nested.iter_mut().try_for_each(|body| body.for_each_body(pass))?;
        }
        pass(self)
    }
}

/// Where functions come from, who computes, and how far to go.
#[derive(Clone, Copy)]
pub struct Specializer<'a> {
    /// The functions that may be called.
    pub library: &'a FunctionLibrary,
    /// Who computes constants.
    pub evaluate: &'a dyn Evaluate,
    /// Limits on the size of the result.
    pub limits: &'a Limits,
}

impl Specializer<'_> {
    /// Specialises a function for its arguments.
    ///
    /// # Errors
    ///
    /// What is wrong with the function, with the node where it is; [`Error::Limit`] when it calls
    /// itself or grows too large.
    pub fn specialize(&self, function: &FunctionDef, args: &[Argument]) -> Result<Specialized> {
        self.body(function, args, &mut Vec::new(), "", false)
    }

    fn body(
        &self,
        function: &FunctionDef,
        args: &[Argument],
        path: &mut Vec<Arc<str>>,
        device: &str,
        compiled: bool,
    ) -> Result<Specialized> {
        let mut body = Body {
            specializer: *self,
            graph: Graph::new(),
            known: FastMap::default(),
            values: Vec::new(),
            nested: FastMap::default(),
            dropped: Vec::new(),
            path: mem::take(path),
            prefix: String::new(),
            function: function.name.clone(),
            location: None,
            device: device.into(),
            compiled,
        };
        let mut arg_outlets = Vec::with_capacity(args.len());
        for (index, arg) in args.iter().enumerate() {
            arg_outlets.push(body.argument(function.arg_name(index), index, arg)?);
        }
        let (results, failure) = match body.inline(function, &arg_outlets) {
            Ok(results) => (results, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        *path = body.path;
        let (graph, nested, dropped) = (body.graph, body.nested, body.dropped);
        let reasons = FastMap::default();
        Ok(Specialized { graph, args: arg_outlets, results, nested, failure, dropped, reasons })
    }
}

/// A function under construction.
struct Body<'a> {
    specializer: Specializer<'a>,
    graph: Graph,
    /// The values of outlets that are known.
    known: FastMap<Outlet, HostTensor>,
    /// The outlets behind the ids that formulas use.
    values: Vec<Outlet>,
    nested: FastMap<NodeId, Vec<Specialized>>,
    dropped: Vec<DroppedAlias>,
    /// The functions around the node at hand, outermost first.
    path: Vec<Arc<str>>,
    /// Prefix of the names of new nodes.
    prefix: String,
    /// The function at hand.
    function: Arc<str>,
    /// Where the call at hand was written.
    location: Option<SourceLocation>,
    /// The device that calls ask for which ask for none themselves.
    device: Box<str>,
    /// Whether TensorFlow has XLA compile the function at hand.
    compiled: bool,
}

type Outlets = SmallVec<[Outlet; 2]>;

impl Body<'_> {
    fn argument(&mut self, name: &str, index: usize, arg: &Argument) -> Result<Outlet> {
        let op = registry::find(names::ARG).expect("a built-in record");
        let attrs = Attrs::new().with("T", arg.ty.dtype).with("index", index as i64);
        let name = self.graph.unique_name(name);
        let node = NodeDef::new(name, op, attrs).with_outputs([arg.ty.clone()]);
        let outlet = Outlet::from(self.graph.add(node)?);
        if let Some(value) = &arg.value {
            self.known.insert(outlet, value.clone());
        }
        Ok(outlet)
    }

    /// Rebuilds the body of a function here; returns its results.
    fn inline(&mut self, function: &FunctionDef, args: &[Outlet]) -> Result<Vec<Outlet>> {
        let limits = self.specializer.limits;
        if self.path.contains(&function.name) || self.path.len() >= limits.call_depth {
            let what = format!("a call of `{}` inside itself or too deep", function.name).into();
            let needed = format!("depth {}", self.path.len() + 1);
            return Err(Error::Limit { what, needed, limit: limits.call_depth as u64 });
        }
        if function.args.len() != args.len() {
            let expected = format!("{} tensors", function.args.len());
            let name = function.name.to_string();
            return Err(Error::argument(name, "arguments", expected, args.len()));
        }
        self.path.push(function.name.clone());
        let outer = mem::replace(&mut self.function, function.name.clone());
        let compiled = self.compiled || function.attrs.bool(COMPILED).unwrap_or(false);
        let outer_compiled = mem::replace(&mut self.compiled, compiled);
        let results = self.rebuild(function, args);
        self.compiled = outer_compiled;
        self.function = outer;
        self.path.pop();
        results
    }

    fn rebuild(&mut self, function: &FunctionDef, args: &[Outlet]) -> Result<Vec<Outlet>> {
        let mut moved: FastMap<NodeId, Outlets> = FastMap::default();
        for ((index, &id), &arg) in function.args.iter().enumerate().zip(args) {
            let (expected, found) = (function.arg_type(index).dtype, self.ty(arg).dtype);
            if expected != found {
                let name = function.arg_name(index).to_string();
                return Err(Error::argument(
                    function.name.to_string(),
                    name,
                    expected.name(),
                    found,
                ));
            }
            moved.insert(id, SmallVec::from_slice(&[arg]));
        }
        let live = function.live_nodes(self.specializer.library);
        for id in function.graph.topological_order()? {
            budget::tick();
            if !live.contains(&id) || moved.contains_key(&id) {
                continue;
            }
            let node = &function.graph[id];
            let outlets = lookup(&moved, &function.graph, node)
                .and_then(|inputs| self.node(node, &inputs))
                .map_err(node.locate(&function.name))?;
            moved.insert(id, outlets);
        }
        let result = |(name, outlet): &(String, Outlet)| {
            let found = moved
                .get(&outlet.node)
                .and_then(|outlets| outlets.get(outlet.index as usize).copied());
            found.ok_or_else(|| Error::NotFound { kind: "function result", name: name.clone() })
        };
        function.results.iter().map(result).collect()
    }

    /// Adds a call of the source function, in whatever form it takes here.
    fn node(&mut self, node: &NodeDef, inputs: &[Outlet]) -> Result<Outlets> {
        let Some(op) = node.op.def() else {
            let what = "no op of this name is known".into();
            return Err(Error::Unsupported { op: node.op.name().to_string().into(), what });
        };
        let outer = self.location;
        self.location = node.location.or(outer);
        // A node that was outlined knows its function.
        let own = node.function.clone().unwrap_or_else(|| self.function.clone());
        let outer_function = mem::replace(&mut self.function, own);
        let device = if node.device.is_empty() { &self.device } else { &node.device }.clone();
        let outer_device = mem::replace(&mut self.device, device);
        let outlets = if op.effect == Effect::OfCallee {
            self.call(node, op, inputs)
        } else {
            self.add(&node.name, op, node.attrs.clone(), inputs)
        };
        self.location = outer;
        self.function = outer_function;
        self.device = outer_device;
        outlets
    }

    /// Adds a call of an op that calls no functions.
    fn add(
        &mut self,
        name: &str,
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        if let Some(value) = constant(op, &attrs) {
            infer(op, &attrs, &[])?;
            return self.constant(name, value).map(|outlet| SmallVec::from_slice(&[outlet]));
        }
        if op.name == names::STRIDED_SLICE
            && let Some((attrs, inputs)) = self.sized_slice(&attrs, inputs)?
        {
            return self.add(name, record(names::SLICE)?, attrs, &inputs);
        }
        if let Some(input) = self.stacked_input(op, &attrs, inputs) {
            return Ok(SmallVec::from_slice(&[input]));
        }
        let inputs = &self.with_host_values(op, &attrs, inputs)?[..];
        let types: SmallVec<[ValueType; 4]> = inputs.iter().map(|&x| self.ty(x).clone()).collect();
        let op = op.for_dtype(types.first().map(|ty| ty.dtype));
        let known: SmallVec<[Option<HostTensor>; 4]> =
            inputs.iter().map(|input| self.known.get(input).cloned()).collect();
        let facts: SmallVec<[InputFacts<'_>; 4]> = types
            .iter()
            .zip(&known)
            .map(|(ty, value)| InputFacts { ty, value: value.as_ref() })
            .collect();
        let outputs = infer(op, &attrs, &facts)?;
        if self.compiled
            && let XlaFormula::OfKnownShapes(formula) | XlaFormula::Of(formula) = op.compiled
        {
            return self.compile(name, formula, op, &attrs, &facts, inputs);
        }
        if let Some(values) = self.fold(op, &attrs, &facts, &outputs) {
            return values.into_iter().map(|value| self.constant(name, value)).collect();
        }
        if let Lowering::Alias(kind) = op.lowering
            && is_redundant(kind, &types[0], &outputs[0])
        {
            if kind == AliasKind::Reinterpret {
                let (input, output) = (types[0].clone(), outputs[0].clone());
                self.dropped.push(DroppedAlias { node: name.into(), op, input, output });
            }
            return Ok(SmallVec::from_slice(&inputs[..1]));
        }
        if let Lowering::Composite(_) = op.lowering
            && is_expandable(op, &attrs, &facts)?
        {
            return self.expand(name, op, &attrs, inputs);
        }
        self.push(name, op, attrs, inputs, outputs)
    }

    fn push(
        &mut self,
        name: &str,
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: &[Outlet],
        outputs: impl IntoIterator<Item = ValueType>,
    ) -> Result<Outlets> {
        let limit = self.specializer.limits.nodes;
        if self.graph.len() >= limit {
            let what = "the function with all it calls".into();
            let needed = format!("more than {limit} nodes");
            return Err(Error::Limit { what, needed, limit: limit as u64 });
        }
        let name = self.graph.unique_name(&format!("{}{name}", self.prefix));
        let mut node =
            NodeDef::new(name, op, attrs).with_inputs(inputs.iter().copied()).with_outputs(outputs);
        node.device = self.device.clone();
        node.function = Some(self.function.clone());
        node.location = self.location;
        let n_outputs = node.outputs().len();
        let id = self.graph.add(node)?;
        Ok((0..n_outputs).map(|index| Outlet::new(id, index)).collect())
    }

    fn constant(&mut self, name: &str, value: HostTensor) -> Result<Outlet> {
        let op = registry::find(names::CONST).expect("a built-in record");
        let ty = ValueType::new(value.dtype(), value.shape());
        let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value.clone());
        // Constants have no place of their own: they are wherever they are used.
        let device = mem::take(&mut self.device);
        let outlet = self.push(name, op, Arc::new(attrs), &[], [ty])?[0];
        self.device = device;
        self.known.insert(outlet, value);
        Ok(outlet)
    }

    fn ty(&self, outlet: Outlet) -> &ValueType {
        self.graph.ty(outlet).expect("every node here has typed results")
    }
}

/// The attribute of functions that TensorFlow has XLA compile.
const COMPILED: &str = "_XlaMustCompile";

fn constant(op: &'static OpDef, attrs: &Attrs) -> Option<HostTensor> {
    if op.inputs.is_empty() { attrs.tensor("value").ok().cloned() } else { None }
}

/// Whether an alias can be replaced by its input. **Invariant:** an op is dropped only if its type
/// is fully known and that of its input, or if it never changes the type: equal partial types say
/// nothing of the shapes at run time.
fn is_redundant(kind: AliasKind, input: &ValueType, output: &ValueType) -> bool {
    input == output && (kind == AliasKind::Identity || output.shape.is_known())
}

fn lookup(
    moved: &FastMap<NodeId, Outlets>,
    graph: &Graph,
    node: &NodeDef,
) -> Result<SmallVec<[Outlet; 4]>> {
    let find = |input: &Outlet| {
        let outlets = moved.get(&input.node);
        outlets.and_then(|outlets| outlets.get(input.index as usize).copied()).ok_or_else(|| {
            let name = format!("{}:{}", graph[input.node].name, input.index);
            Error::NotFound { kind: "result", name }
        })
    };
    node.inputs().iter().map(find).collect()
}

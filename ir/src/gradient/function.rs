//! Gradients of functions: a function that also gives what its gradient needs, and the gradient.
//!
//! [`differentiate`] copies a function, calls inlined, and walks the copy backwards into a second
//! graph. Whatever the second graph uses of the first becomes one more result of the first and an
//! argument of the second; arguments of the first are handed on instead, and constants are copied.
//! The first of the two is a function like others, so derivatives of any order follow.

use super::{
    control,
    sketch::{Sketch, add_argument, add_call, add_constant, constant},
    walk::{Call, CustomGradient, Slices, Tangent, backward, is_differentiable},
};
use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    emit::{Emit, ValueId},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    host_tensor::HostTensor,
    op::{Call as Calls, Effect, OpDef},
    pass::infer_types::infer_types,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A function, and the function that takes gradients of its results to gradients of its arguments.
#[derive(Debug, Clone)]
pub struct Differentiated {
    /// The function with more results: those of the original first.
    pub forward: Arc<FunctionDef>,
    /// The gradient. Its arguments are the gradients of the results in [`seeds`](Self::seeds), then
    /// the values in [`kept`](Self::kept).
    pub backward: Arc<FunctionDef>,
    /// The results of the original whose gradients the gradient takes.
    pub seeds: Vec<usize>,
    /// What else the gradient takes.
    pub kept: Vec<Kept>,
    /// For each argument, where its gradient is among the results of the gradient.
    pub gradients: Vec<Option<Place>>,
}

/// A value that a gradient takes from the call it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// An argument of the call.
    Argument(usize),
    /// A result of the call.
    Result(usize),
}

/// Where a gradient is among the results of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A tensor.
    Dense(usize),
    /// Rows, and the places of the rows in the next result.
    Slices(usize),
}

/// Differentiates a function by the arguments that are wanted. Functions that this makes for loops
/// and branches are added to the library.
///
/// # Errors
///
/// [`Error::Unsupported`], with the node, when a gradient has to go through an op without a rule;
/// whatever else is wrong with the function.
pub fn differentiate(
    library: &FunctionLibrary,
    def: &FunctionDef,
    wanted: &[bool],
) -> Result<Differentiated> {
    let mut copy = Copy::new(library);
    let args: Vec<Outlet> = (0..def.args.len())
        .map(|index| copy.argument(def.arg_name(index), def.arg_type(index).clone()))
        .collect::<Result<_>>()?;
    let results = copy.inline(def, &args)?;
    let Copy { mut graph, calls, .. } = copy;
    infer_types(&mut graph)?;
    let arg_nodes: Vec<NodeId> = args.iter().map(|arg| arg.node).collect();
    let mut back = Back::new(&graph);
    let is_seed = |outlet: &Outlet| graph.ty(*outlet).is_some_and(|ty| has_gradient(ty.dtype));
    let seeds: Vec<usize> = (0..results.len()).filter(|&index| is_seed(&results[index])).collect();
    let mut pairs = Vec::with_capacity(seeds.len());
    for &index in &seeds {
        let ty = graph.ty(results[index]).expect("looked at above").clone();
        let dy = back.seed(&format!("dy_{index}"), ty)?;
        pairs.push((back.id(results[index]), dy));
    }
    let sources: Vec<ValueId> = args.iter().map(|&arg| back.id(arg)).collect();
    let asked: Vec<ValueId> =
        sources.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(id, _)| *id).collect();
    let calls: Vec<Call> = calls.into_iter().map(|call| call.with_ids(&mut back)).collect();
    let mut found = backward(&mut back, &calls, &pairs, &asked)?.into_iter();
    let mut outlets = Vec::new();
    let mut gradients = Vec::with_capacity(args.len());
    for index in 0..args.len() {
        let tangent = if wanted.get(index) == Some(&true) { found.next().flatten() } else { None };
        gradients.push(match tangent {
            None => None,
            Some(Tangent::Dense(id)) => {
                outlets.push(back.outlet(id)?);
                Some(Place::Dense(outlets.len() - 1))
            }
            Some(Tangent::Slices(Slices { values, indices })) => {
                outlets.push(back.outlet(values)?);
                outlets.push(back.outlet(indices)?);
                Some(Place::Slices(outlets.len() - 2))
            }
        });
    }
    let n_seeds = seeds.len();
    let (backward, needed) = back.finish(&format!("{}_backward", def.name), outlets)?;
    let mut all_results: Vec<(String, Outlet)> = results
        .iter()
        .zip(&def.results)
        .map(|(&outlet, (name, _))| (name.clone(), outlet))
        .collect();
    let mut kept = Vec::with_capacity(needed.len());
    for outlet in needed {
        if let Some(index) = args.iter().position(|&arg| arg == outlet) {
            kept.push(Kept::Argument(index));
            continue;
        }
        let position = all_results.iter().position(|(_, result)| *result == outlet);
        kept.push(Kept::Result(position.unwrap_or_else(|| {
            all_results.push((format!("kept_{}", all_results.len()), outlet));
            all_results.len() - 1
        })));
    }
    debug_assert_eq!(backward.args.len(), n_seeds + kept.len());
    let effectful: Vec<NodeId> = library.effectful_nodes(&graph).collect();
    let forward = FunctionDef {
        name: unique(&format!("{}_forward", def.name)),
        graph,
        args: arg_nodes,
        results: all_results,
        control_results: effectful,
        attrs: def.attrs.clone(),
    };
    Ok(Differentiated {
        forward: Arc::new(forward),
        backward: Arc::new(backward),
        seeds,
        kept,
        gradients,
    })
}

/// Whether gradients of results of this dtype are asked for.
pub(super) fn has_gradient(dtype: DType) -> bool {
    is_differentiable(dtype) && dtype != DType::Resource
}

/// A name that no other function has.
pub(super) fn unique(base: &str) -> Arc<str> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{base}_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

/// A call of the copy, by outlets.
struct CopiedCall {
    op: &'static OpDef,
    attrs: Arc<Attrs>,
    name: Arc<str>,
    inputs: SmallVec<[Outlet; 4]>,
    outputs: SmallVec<[Outlet; 2]>,
    custom: Option<Arc<dyn CustomGradient>>,
}

impl CopiedCall {
    fn with_ids(self, back: &mut Back<'_>) -> Call {
        Call {
            op: self.op,
            attrs: self.attrs,
            inputs: self.inputs.iter().map(|&outlet| back.id(outlet)).collect(),
            outputs: self.outputs.iter().map(|&outlet| back.id(outlet)).collect(),
            name: self.name,
            custom: self.custom,
        }
    }
}

/// The copy of a function under construction.
struct Copy<'a> {
    library: &'a FunctionLibrary,
    graph: Graph,
    calls: Vec<CopiedCall>,
    /// The call before which no other with effects may run.
    last_effect: Option<NodeId>,
    path: Vec<Arc<str>>,
}

impl<'a> Copy<'a> {
    fn new(library: &'a FunctionLibrary) -> Copy<'a> {
        let (calls, path) = (Vec::new(), Vec::new());
        Copy { library, graph: Graph::new(), calls, last_effect: None, path }
    }

    fn argument(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        add_argument(&mut self.graph, name, 0, ty)
    }

    fn inline(&mut self, def: &FunctionDef, args: &[Outlet]) -> Result<Vec<Outlet>> {
        if self.path.contains(&def.name) {
            let what = format!("a call of `{}` inside itself", def.name).into();
            return Err(Error::Limit { what, needed: "no end".into(), limit: 0 });
        }
        if def.args.len() != args.len() {
            let expected = format!("{} tensors", def.args.len());
            return Err(Error::argument(def.name.to_string(), "arguments", expected, args.len()));
        }
        self.path.push(def.name.clone());
        let live: HashSet<NodeId> = def.live_nodes(self.library);
        let mut moved: HashMap<NodeId, SmallVec<[Outlet; 2]>> = HashMap::new();
        for (&id, &arg) in def.args.iter().zip(args) {
            moved.insert(id, SmallVec::from_slice(&[arg]));
        }
        for id in def.graph.topological_order()? {
            if !live.contains(&id) || moved.contains_key(&id) {
                continue;
            }
            let node = &def.graph[id];
            let inputs = node.inputs().iter().map(|input| find(&moved, *input));
            let inputs: SmallVec<[Outlet; 4]> = inputs.collect::<Result<_>>()?;
            let outputs = self.node(node, &inputs).map_err(node.locate(&def.name))?;
            moved.insert(id, outputs);
        }
        self.path.pop();
        def.results.iter().map(|(_, outlet)| find(&moved, *outlet)).collect()
    }

    fn node(&mut self, node: &NodeDef, inputs: &[Outlet]) -> Result<SmallVec<[Outlet; 2]>> {
        let Some(op) = node.op.def() else {
            let what = "no op of this name is known".into();
            return Err(Error::Unsupported { op: node.op.name().to_string().into(), what });
        };
        match op.call {
            Calls::Inline => {
                let callee = self.library.get(&callee(op, &node.attrs)?)?;
                Ok(self.inline(&callee, inputs)?.into())
            }
            Calls::If | Calls::Case | Calls::While => {
                let types: Vec<ValueType> = inputs
                    .iter()
                    .map(|&input| self.graph.ty(input).expect("every node is typed").clone())
                    .collect();
                let call = control::with_gradient(self.library, op, &node.attrs, &types)?;
                let mut outputs = node.outputs().to_vec();
                let visible = outputs.len();
                outputs.extend(call.added);
                let mut inputs: SmallVec<[Outlet; 4]> = inputs.into();
                let mut sketch = Sketch::on(std::mem::take(&mut self.graph));
                for extra in &call.inputs {
                    let id = extra.emit(&mut sketch)?;
                    inputs.push(sketch.outlet(id));
                }
                self.graph = sketch.graph;
                let attrs = Arc::new(call.attrs);
                let found = self.add(node, op, attrs, &inputs, outputs, Some(call.gradient))?;
                Ok(found[..visible].into())
            }
            Calls::None => {
                let outputs = node.outputs().to_vec();
                self.add(node, op, node.attrs.clone(), inputs, outputs, None)
            }
        }
    }

    fn add(
        &mut self,
        node: &NodeDef,
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: &[Outlet],
        outputs: Vec<ValueType>,
        custom: Option<Arc<dyn CustomGradient>>,
    ) -> Result<SmallVec<[Outlet; 2]>> {
        let name = self.graph.unique_name(&node.name);
        let n_outputs = outputs.len();
        let effect = self.library.effect_of(&node.op, &attrs);
        let controls = self.last_effect.filter(|_| effect != Effect::Pure);
        let mut added = NodeDef::new(name.clone(), op, attrs.clone())
            .with_inputs(inputs.iter().copied())
            .with_outputs(outputs)
            .with_controls(controls);
        added.device = node.device.clone();
        added.location = node.location;
        let id = self.graph.add(added)?;
        if effect != Effect::Pure {
            self.last_effect = Some(id);
        }
        let outputs: SmallVec<[Outlet; 2]> =
            (0..n_outputs).map(|index| Outlet::new(id, index)).collect();
        self.calls.push(CopiedCall {
            op,
            attrs,
            name: name.into(),
            inputs: inputs.into(),
            outputs: outputs.clone(),
            custom,
        });
        Ok(outputs)
    }
}

/// The name of the function that a call names.
pub(super) fn callee(op: &OpDef, attrs: &Attrs) -> Result<Arc<str>> {
    let named = op.attrs.iter().find_map(|attr| match attrs.get(attr.name) {
        Some(AttrValue::Func(function)) => Some(function.name.clone()),
        _ => None,
    });
    let missing = || Error::argument(op.name, "f", "the name of a function", "nothing");
    named.ok_or_else(missing)
}

fn find(moved: &HashMap<NodeId, SmallVec<[Outlet; 2]>>, outlet: Outlet) -> Result<Outlet> {
    let found = moved.get(&outlet.node);
    let found = found.and_then(|outlets| outlets.get(outlet.index as usize).copied());
    found.ok_or_else(|| Error::NotFound { kind: "result", name: format!("{outlet:?}") })
}

/// Where a value of the walk is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Forward(Outlet),
    Own(Outlet),
}

/// The gradient under construction.
pub(super) struct Back<'a> {
    forward: &'a Graph,
    graph: Graph,
    values: Vec<Source>,
    ids: HashMap<Source, ValueId>,
    /// Values of the first function, and the arguments they come in by.
    taken: HashMap<Outlet, Outlet>,
    needed: Vec<Outlet>,
    seeds: Vec<NodeId>,
    kept: Vec<NodeId>,
}

impl<'a> Back<'a> {
    fn new(forward: &'a Graph) -> Back<'a> {
        Back {
            forward,
            graph: Graph::new(),
            values: Vec::new(),
            ids: HashMap::new(),
            taken: HashMap::new(),
            needed: Vec::new(),
            seeds: Vec::new(),
            kept: Vec::new(),
        }
    }

    fn id_of(&mut self, source: Source) -> ValueId {
        let values = &mut self.values;
        *self.ids.entry(source).or_insert_with(|| {
            values.push(source);
            ValueId(values.len() as u32 - 1)
        })
    }

    /// The value of the first function as a value of the walk.
    fn id(&mut self, outlet: Outlet) -> ValueId {
        self.id_of(Source::Forward(outlet))
    }

    fn seed(&mut self, name: &str, ty: ValueType) -> Result<ValueId> {
        let outlet = add_argument(&mut self.graph, name, 0, ty)?;
        self.seeds.push(outlet.node);
        Ok(self.id_of(Source::Own(outlet)))
    }

    /// The value in the second graph.
    fn outlet(&mut self, id: ValueId) -> Result<Outlet> {
        let outlet = match self.values[id.0 as usize] {
            Source::Own(outlet) => return Ok(outlet),
            Source::Forward(outlet) => outlet,
        };
        if let Some(&taken) = self.taken.get(&outlet) {
            return Ok(taken);
        }
        let node = &self.forward[outlet.node];
        let taken = match constant(self.forward, outlet) {
            Some(value) => add_constant(&mut self.graph, value.clone())?,
            None => {
                let ty = self.forward.ty(outlet).expect("every node is typed").clone();
                let argument = add_argument(&mut self.graph, &node.name, 0, ty)?;
                self.kept.push(argument.node);
                self.needed.push(outlet);
                argument
            }
        };
        self.taken.insert(outlet, taken);
        Ok(taken)
    }

    /// The finished function, and the values of the first one that it takes.
    fn finish(mut self, name: &str, results: Vec<Outlet>) -> Result<(FunctionDef, Vec<Outlet>)> {
        let args: Vec<NodeId> = self.seeds.iter().chain(&self.kept).copied().collect();
        for (index, &arg) in args.iter().enumerate() {
            let attrs = Attrs::clone(&self.graph[arg].attrs).with("index", index as i64);
            *self.graph.node_mut(arg).attrs = attrs.into();
        }
        let named = results.into_iter().enumerate();
        let def = FunctionDef {
            name: unique(name),
            graph: self.graph,
            args,
            results: named.map(|(index, outlet)| (format!("dx_{index}"), outlet)).collect(),
            control_results: Vec::new(),
            attrs: Attrs::new(),
        };
        Ok((def, self.needed))
    }
}

impl Emit for Back<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>> {
        let outlets: SmallVec<[Outlet; 4]> =
            inputs.iter().map(|&id| self.outlet(id)).collect::<Result<_>>()?;
        let found = add_call(&mut self.graph, op, attrs, &outlets)?;
        Ok(found.into_iter().map(|outlet| self.id_of(Source::Own(outlet))).collect())
    }

    fn constant(&mut self, tensor: HostTensor) -> Result<ValueId> {
        let outlet = add_constant(&mut self.graph, tensor)?;
        Ok(self.id_of(Source::Own(outlet)))
    }

    fn ty(&self, id: ValueId) -> ValueType {
        let ty = match self.values[id.0 as usize] {
            Source::Own(outlet) => self.graph.ty(outlet),
            Source::Forward(outlet) => self.forward.ty(outlet),
        };
        ty.expect("every node is typed").clone()
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        match self.values[id.0 as usize] {
            Source::Own(outlet) => constant(&self.graph, outlet).cloned(),
            Source::Forward(outlet) => constant(self.forward, outlet).cloned(),
        }
    }
}

//! The copy of a function that is differentiated: calls inlined, and a list of those that remain.

use super::{
    back::Back,
    control,
    extent::CopyBudget,
    function::has_gradient,
    loaded,
    sketch::{Sketch, add_argument, type_of},
    walk::{CustomGradient, InlinedCall, RecordedCall, Refused},
};
use crate::{
    attr::{AttrValue, Attrs},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::{CallKind as Calls, Effect, OpDef},
    shape::PartialShape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// A call of the copy, by outlets.
pub(super) struct CopiedCall {
    op: &'static OpDef,
    attrs: Arc<Attrs>,
    name: Arc<str>,
    inputs: SmallVec<[Outlet; 4]>,
    outputs: SmallVec<[Outlet; 2]>,
    custom: Option<Arc<dyn CustomGradient>>,
}

impl CopiedCall {
    pub(super) fn with_ids(self, back: &mut Back<'_>) -> RecordedCall {
        RecordedCall {
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
pub(super) struct FunctionCopy<'a> {
    library: &'a FunctionLibrary,
    extent: CopyBudget<'a>,
    pub(super) graph: Graph,
    pub(super) calls: Vec<CopiedCall>,
    /// Calls of inlined functions, in the order in which they return.
    pub(super) inlined: Vec<InlinedCall<Outlet>>,
    /// The call before which no other with effects may run.
    last_effect: Option<NodeId>,
}

impl<'a> FunctionCopy<'a> {
    pub(super) fn new(extent: CopyBudget<'a>) -> FunctionCopy<'a> {
        let library = extent.library();
        let (calls, inlined) = (Vec::new(), Vec::new());
        FunctionCopy { library, extent, graph: Graph::new(), calls, inlined, last_effect: None }
    }

    pub(super) fn argument(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        add_argument(&mut self.graph, name, 0, ty)
    }

    pub(super) fn inline(&mut self, def: &FunctionDef, args: &[Outlet]) -> Result<Vec<Outlet>> {
        if def.args.len() != args.len() {
            let expected = format!("{} tensors", def.args.len());
            return Err(Error::argument(def.name.to_string(), "arguments", expected, args.len()));
        }
        self.extent.enter(def)?;
        let captured = loaded::captured_nodes(self.library, def);
        let live: FastSet<NodeId> =
            def.graph.reachable_from(def.live_nodes(self.library).into_iter().chain(captured));
        let mut moved: FastMap<NodeId, SmallVec<[Outlet; 2]>> = FastMap::default();
        let mut gradients = Vec::new();
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
            if let Some(own) = loaded::of_node(self.library, def, node) {
                gradients.push((self.calls.len() - 1, own));
            }
            moved.insert(id, outputs);
        }
        for (call, own) in gradients {
            self.attach_gradient(call, own, &moved)?;
        }
        self.extent.leave();
        let results = def.results.iter().map(|(_, outlet)| find(&moved, *outlet));
        let results: Vec<Outlet> = results.collect::<Result<_>>()?;
        let is_differentiable =
            |outlet: &Outlet| self.graph.ty(*outlet).is_some_and(|ty| has_gradient(ty.dtype));
        self.inlined.push(InlinedCall {
            n_calls: self.calls.len(),
            arguments: args.to_vec(),
            results: results.iter().copied().filter(is_differentiable).collect(),
        });
        Ok(results)
    }

    /// Attaches the gradient that its node names to a call.
    fn attach_gradient(
        &mut self,
        call: usize,
        found: Result<loaded::FoundGradient>,
        moved: &FastMap<NodeId, SmallVec<[Outlet; 2]>>,
    ) -> Result<()> {
        let copied = &mut self.calls[call];
        copied.custom = Some(loaded::custom(self.library, copied.op, &found));
        let (Ok(found), Some(output)) = (found, copied.outputs.first()) else { return Ok(()) };
        let captures: Vec<Outlet> =
            found.captures.iter().map(|&outlet| find(moved, outlet)).collect::<Result<_>>()?;
        copied.attrs = Arc::new(loaded::note(&copied.attrs, &self.graph, &captures));
        *self.graph.node_mut(output.node).attrs = copied.attrs.clone();
        copied.inputs.extend(captures);
        Ok(())
    }

    fn node(&mut self, node: &NodeDef, inputs: &[Outlet]) -> Result<SmallVec<[Outlet; 2]>> {
        self.extent.take_call()?;
        let Some(op) = node.op.def() else {
            let what = "no op of this name is known".into();
            return Err(Error::Unsupported { op: node.op.name().to_string().into(), what });
        };
        match op.call {
            Calls::Inline => {
                let callee = self.library.get(&callee(op, &node.attrs)?)?;
                let Some(gradient) = self.library.gradient_of(&callee.name) else {
                    return Ok(self.inline(&callee, op.handed_on(inputs))?.into());
                };
                let gradient = Arc::new(loaded::OfFunction(self.library.get(&gradient)?));
                let outputs = output_types(node, op)?;
                self.add(node, op, node.attrs.clone(), inputs, outputs, Some(gradient))
            }
            Calls::Module => {
                let callee = self.library.module(&node.attrs)?;
                Ok(self.inline(&callee, inputs)?.into())
            }
            Calls::If | Calls::Case | Calls::While => {
                let types: Vec<ValueType> = inputs
                    .iter()
                    .map(|&input| type_of(&self.graph, input))
                    .collect::<Result<_>>()?;
                let call = control::with_gradient_within(&self.extent, op, &node.attrs, &types);
                let mut outputs = output_types(node, op)?;
                let call = match call {
                    // An error only where a gradient reaches the call.
                    Err(error) if matches!(error.root(), Error::Unsupported { .. }) => {
                        let refused = Arc::new(Refused(error));
                        return self.add(
                            node,
                            op,
                            node.attrs.clone(),
                            inputs,
                            outputs,
                            Some(refused),
                        );
                    }
                    call => call?,
                };
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
                let outputs = output_types(node, op)?;
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

/// The types of the results of a node; of one that was read from a file perhaps only the dtypes.
fn output_types(node: &NodeDef, op: &OpDef) -> Result<Vec<ValueType>> {
    let dtypes = op.output_dtypes(&node.attrs)?;
    if node.outputs().len() == dtypes.len() {
        return Ok(node.outputs().to_vec());
    }
    Ok(dtypes.iter().map(|&dtype| ValueType::new(dtype, PartialShape::Unknown)).collect())
}

/// The name of the function that a call names.
fn callee(op: &OpDef, attrs: &Attrs) -> Result<Arc<str>> {
    let named = op.attrs.iter().find_map(|attr| match attrs.get(attr.name) {
        Some(AttrValue::Func(function)) => Some(function.name.clone()),
        _ => None,
    });
    let missing = || Error::argument(op.name, "f", "the name of a function", "nothing");
    named.ok_or_else(missing)
}

fn find(moved: &FastMap<NodeId, SmallVec<[Outlet; 2]>>, outlet: Outlet) -> Result<Outlet> {
    let found = moved.get(&outlet.node);
    let found = found.and_then(|outlets| outlets.get(outlet.index as usize).copied());
    found.ok_or_else(|| Error::NotFound { kind: "result", name: format!("{outlet:?}") })
}

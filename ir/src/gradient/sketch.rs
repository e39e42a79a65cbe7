//! Functions written down call by call.

use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    build::infer_attrs,
    dtype::DType,
    emit::{Emit, ValueId, check_call},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    host_tensor::HostTensor,
    infer::InputFacts,
    op::OpDef,
    registry,
    shape::PartialShape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// A graph to which calls are added.
#[derive(Debug, Default)]
pub struct Sketch {
    pub(super) graph: Graph,
    args: Vec<NodeId>,
    values: Vec<Outlet>,
}

impl Sketch {
    /// An empty graph.
    pub fn new() -> Sketch {
        Sketch::default()
    }

    /// On top of a graph that is there already.
    pub(super) fn on(graph: Graph) -> Sketch {
        Sketch { graph, args: Vec::new(), values: Vec::new() }
    }

    /// Adds an argument.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when there is no room for it.
    pub fn argument(&mut self, ty: ValueType) -> Result<ValueId> {
        let outlet = add_argument(&mut self.graph, "x", self.args.len(), ty)?;
        self.args.push(outlet.node);
        Ok(self.at(outlet))
    }

    /// A value of the graph.
    pub(super) fn at(&mut self, outlet: Outlet) -> ValueId {
        self.values.push(outlet);
        ValueId(self.values.len() as u32 - 1)
    }

    pub(super) fn outlet(&self, id: ValueId) -> Outlet {
        self.values[id.0 as usize]
    }

    /// A call of the op `name`.
    pub(super) fn call(
        &mut self,
        name: &str,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>> {
        let op = registry::find(name).expect("a built-in record");
        self.emit(op, attrs, inputs)
    }

    /// A call of a function.
    pub(super) fn call_function(
        &mut self,
        callee: &FunctionDef,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>> {
        let results = callee.results.iter().map(|(_, outlet)| type_of(&callee.graph, *outlet));
        let results: Vec<ValueType> = results.collect::<Result<_>>()?;
        let found = self.call("StatefulPartitionedCall", call_attrs(callee, &results), inputs)?;
        if let Some(&first) = found.first() {
            let node = self.outlet(first).node;
            *self.graph.node_mut(node).outputs = results.into();
        }
        Ok(found)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.graph.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.graph.is_empty()
    }

    /// The calls as a function, added to a library.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when the name is taken.
    pub fn finish(
        self,
        library: &FunctionLibrary,
        name: Arc<str>,
        results: &[ValueId],
    ) -> Result<Arc<FunctionDef>> {
        let outlets = results.iter().map(|&id| self.outlet(id)).enumerate();
        let results = outlets.map(|(index, outlet)| (format!("y_{index}"), outlet)).collect();
        let control_results = library.effectful_nodes(&self.graph).collect();
        let (graph, args, attrs) = (self.graph, self.args, Attrs::new());
        library.insert(FunctionDef { name, graph, args, results, control_results, attrs })
    }
}

/// The type of a value. An op from a file that has no record here has no types.
pub(super) fn type_of(graph: &Graph, outlet: Outlet) -> Result<ValueType> {
    graph.ty(outlet).cloned().ok_or_else(|| Error::Malformed {
        node: graph[outlet.node].name.to_string(),
        rule: "the types of results are known".into(),
    })
}

/// The attributes of a call of a function with results of these types.
pub(super) fn call_attrs(callee: &FunctionDef, results: &[ValueType]) -> Attrs {
    let dtypes: Vec<DType> = results.iter().map(|ty| ty.dtype).collect();
    let function = AttrValue::Func(NameAttrList::new(callee.name.clone()));
    Attrs::new().with("Tout", dtypes).with("f", function)
}

pub(super) fn add_argument(
    graph: &mut Graph,
    name: &str,
    index: usize,
    ty: ValueType,
) -> Result<Outlet> {
    let op = registry::find("_Arg").expect("a built-in record");
    let attrs = Attrs::new().with("T", ty.dtype).with("index", index as i64);
    let name = graph.unique_name(name);
    Ok(graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?.into())
}

pub(super) fn add_constant(graph: &mut Graph, value: HostTensor) -> Result<Outlet> {
    let op = registry::find("Const").expect("a built-in record");
    let ty = ValueType::new(value.dtype(), value.shape());
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    let name = graph.unique_name("constant");
    Ok(graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?.into())
}

/// The value of a constant node.
pub(super) fn constant(graph: &Graph, outlet: Outlet) -> Option<&HostTensor> {
    let node = &graph[outlet.node];
    if node.op.name() == "Const" { node.attrs.tensor("value").ok() } else { None }
}

/// Adds a call whose attributes follow from its inputs, what is given, and the defaults.
pub(super) fn add_call(
    graph: &mut Graph,
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[Outlet],
) -> Result<SmallVec<[Outlet; 2]>> {
    let types: SmallVec<[ValueType; 4]> =
        inputs.iter().map(|&outlet| type_of(graph, outlet)).collect::<Result<_>>()?;
    let op = op.for_dtype(types.first().map(|ty| ty.dtype));
    let dtypes: SmallVec<[DType; 4]> = types.iter().map(|ty| ty.dtype).collect();
    let attrs = infer_attrs(op, attrs, &dtypes);
    let (attrs, outputs) = {
        let known = inputs.iter().map(|&outlet| constant(graph, outlet));
        let facts = types.iter().zip(known).map(|(ty, value)| InputFacts { ty, value });
        check_call(op, attrs, &facts.collect::<SmallVec<[InputFacts<'_>; 4]>>())?
    };
    let name = graph.unique_name(op.name);
    let n_outputs = outputs.len();
    let inputs = inputs.iter().copied();
    let id = graph.add(NodeDef::new(name, op, attrs).with_inputs(inputs).with_outputs(outputs))?;
    Ok((0..n_outputs).map(|index| Outlet::new(id, index)).collect())
}

impl Emit for Sketch {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>> {
        let inputs: SmallVec<[Outlet; 4]> = inputs.iter().map(|&id| self.outlet(id)).collect();
        let outlets = add_call(&mut self.graph, op, attrs, &inputs)?;
        Ok(outlets.into_iter().map(|outlet| self.at(outlet)).collect())
    }

    fn constant(&mut self, tensor: HostTensor) -> Result<ValueId> {
        let outlet = add_constant(&mut self.graph, tensor)?;
        Ok(self.at(outlet))
    }

    fn ty(&self, id: ValueId) -> ValueType {
        self.graph.ty(self.outlet(id)).expect("every node is typed").clone()
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        constant(&self.graph, self.outlet(id)).cloned()
    }

    fn refine(&mut self, id: ValueId, shape: &PartialShape) -> Result<()> {
        let outlet = self.outlet(id);
        let node = self.graph.node_mut(outlet.node);
        let ty = &mut node.outputs[outlet.index as usize];
        let merged = ty.shape.merge(shape).ok_or_else(|| {
            let expected = format!("of shape {}", ty.shape);
            Error::argument("refinement", "a value", expected, shape)
        })?;
        ty.shape = merged;
        Ok(())
    }
}

/// A type of which only the dtype, and what a handle refers to, is known.
pub(super) fn without_shape(ty: &ValueType) -> ValueType {
    ValueType { shape: PartialShape::Unknown, ..ty.clone() }
}

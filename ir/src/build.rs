//! Building graphs by hand: calls are checked and typed as they are added.

use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    emit::check_call,
    error::{Error, Result},
    function::FunctionDef,
    graph::{Graph, NodeDef, NodeId, Outlet},
    host_tensor::HostTensor,
    infer::InputFacts,
    op::{ArgKind, ArgType, OpDef},
    ops::names,
    registry::OpRegistry,
    shape::PartialShape,
    spec::ValueType,
};
use smallvec::SmallVec;

pub use crate::gradient::Sketch;

/// Adds checked calls to a graph.
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    registry: OpRegistry,
    args: Vec<NodeId>,
}

impl GraphBuilder {
    /// A builder of an empty graph, with the built-in ops.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Adds a value that is fed from outside.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when the name is taken.
    pub fn placeholder(&mut self, name: &str, dtype: DType, shape: PartialShape) -> Result<Outlet> {
        let attrs = Attrs::new().with("dtype", dtype).with("shape", shape.clone());
        self.source(names::PLACEHOLDER, name, attrs, ValueType::new(dtype, shape))
    }

    /// Adds an argument of the function that [`finish_function`](Self::finish_function) makes.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when the name is taken.
    pub fn arg(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        let attrs = Attrs::new().with("T", ty.dtype).with("index", self.args.len() as i64);
        let outlet = self.source(names::ARG, name, attrs, ty)?;
        self.args.push(outlet.node);
        Ok(outlet)
    }

    /// Adds a constant.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when the name is taken.
    pub fn constant(&mut self, name: &str, tensor: HostTensor) -> Result<Outlet> {
        let ty = ValueType::new(tensor.dtype(), tensor.shape());
        let attrs = Attrs::new().with("dtype", tensor.dtype()).with("value", tensor);
        self.source(names::CONST, name, attrs, ty)
    }

    fn source(&mut self, op: &str, name: &str, attrs: Attrs, ty: ValueType) -> Result<Outlet> {
        let op = self.op(op)?;
        let node = NodeDef::new(name, op, attrs).with_outputs([ty]);
        self.graph.add(node).map(Outlet::from)
    }

    /// Adds a call whose attributes follow from its inputs and the defaults.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown op, [`Error::Argument`] when the call does not fit it.
    pub fn call(&mut self, op: &str, name: &str, inputs: &[Outlet]) -> Result<Vec<Outlet>> {
        self.call_with(op, name, Attrs::new(), inputs)
    }

    /// Adds a call; attributes that follow from the inputs or have defaults may be left out.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown op, [`Error::Argument`] when the call does not fit it.
    pub fn call_with(
        &mut self,
        op: &str,
        name: &str,
        attrs: Attrs,
        inputs: &[Outlet],
    ) -> Result<Vec<Outlet>> {
        let op = self.op(op)?;
        let types: Vec<ValueType> = inputs
            .iter()
            .map(|&input| {
                let found = self.graph.ty(input).cloned();
                found.ok_or_else(|| Error::NotFound { kind: "value", name: format!("{input:?}") })
            })
            .collect::<Result<_>>()?;
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        let attrs = infer_attrs(op, attrs, &dtypes);
        let inferred: SmallVec<[InputFacts<'_>; 4]> =
            types.iter().map(|ty| InputFacts { ty, value: None }).collect();
        let (attrs, outputs) = check_call(op, attrs, &inferred)?;
        let n_outputs = outputs.len();
        let node =
            NodeDef::new(name, op, attrs).with_inputs(inputs.iter().copied()).with_outputs(outputs);
        let id = self.graph.add(node)?;
        Ok((0..n_outputs).map(|index| Outlet::new(id, index)).collect())
    }

    fn op(&self, name: &str) -> Result<&'static OpDef> {
        let found = self.registry.find(name);
        found.ok_or_else(|| Error::NotFound { kind: "op", name: name.into() })
    }

    /// The graph as it stands.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// The finished graph as the body of a function.
    pub fn finish_function(self, name: &str, results: &[(&str, Outlet)]) -> FunctionDef {
        FunctionDef {
            name: name.into(),
            graph: self.graph,
            args: self.args,
            results: results.iter().map(|&(name, outlet)| (name.to_string(), outlet)).collect(),
            control_results: Vec::new(),
            attrs: Attrs::new(),
        }
    }
}

/// Adds the attributes that follow from the dtypes and the number of the inputs, where absent.
pub fn infer_attrs(op: &OpDef, mut attrs: Attrs, dtypes: &[DType]) -> Attrs {
    // The first argument that tells an attribute counts.
    let mut found: SmallVec<[(&'static str, AttrValue); 4]> = SmallVec::new();
    fn note(
        found: &mut SmallVec<[(&'static str, AttrValue); 4]>,
        name: &'static str,
        value: AttrValue,
    ) {
        if found.iter().all(|(known, _)| *known != name) {
            found.push((name, value));
        }
    }
    let fixed = op.inputs.iter().filter(|arg| matches!(arg.kind, ArgKind::One(_))).count();
    let mut position = 0;
    for arg in op.inputs {
        match arg.kind {
            ArgKind::One(of) => {
                if let (ArgType::Attr(name), Some(&dtype)) = (of, dtypes.get(position)) {
                    note(&mut found, name, dtype.into());
                }
                position = position.saturating_add(1);
            }
            ArgKind::Repeated { count, of } => {
                let length = attrs.get(count).or_else(|| {
                    found.iter().find(|(name, _)| name == &count).map(|(_, value)| value)
                });
                let n = match length {
                    Some(AttrValue::Int(n)) => usize::try_from(*n).unwrap_or(0),
                    _ => dtypes.len().saturating_sub(fixed),
                };
                note(&mut found, count, AttrValue::Int(n as i64));
                if let (ArgType::Attr(name), Some(&dtype)) = (of, dtypes.get(position)) {
                    note(&mut found, name, dtype.into());
                }
                position = position.saturating_add(n);
            }
            ArgKind::Types(name) => {
                let n = match attrs.types(name) {
                    Ok(types) => types.len(),
                    Err(_) => dtypes.len().saturating_sub(fixed),
                };
                let end = position.saturating_add(n).min(dtypes.len());
                let list = dtypes.get(position..end).unwrap_or_default().to_vec();
                note(&mut found, name, AttrValue::Types(list));
                position = position.saturating_add(n);
            }
        }
    }
    for (name, value) in found {
        if attrs.get(name).is_none() {
            attrs.set(name, value);
        }
    }
    attrs
}

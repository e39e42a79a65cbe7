//! The ops of a graph that save and restore its variables.

use crate::{
    error::Result,
    proto::{self, saver_def::CheckpointFormatVersion},
};
use ferroflow_ir::{
    Attrs, DType, Graph, HostTensor, NodeDef, NodeId, Outlet, PartialShape, Shape, TensorSpec,
    ValueType, registry,
};

/// Adds the ops by which loaders restore the variables of a graph; `None` if it has no variables.
pub(crate) fn add_saver(graph: &mut Graph) -> Result<Option<proto::SaverDef>> {
    let handles: Vec<NodeId> = graph
        .iter()
        .filter(|(_, node)| node.op.name() == "VarHandleOp")
        .map(|(id, _)| id)
        .collect();
    if handles.is_empty() {
        return Ok(None);
    }
    let mut names: Vec<String> = Vec::new();
    let mut variables: Vec<(Outlet, TensorSpec)> = Vec::new();
    for id in handles {
        let node = &graph[id];
        let name = node.attrs.string("shared_name")?;
        if !names.iter().any(|other| other == name) {
            let shape = node.attrs.shape("shape")?.clone();
            names.push(name.into());
            variables.push((id.into(), TensorSpec::new(node.attrs.dtype("dtype")?, shape)));
        }
    }
    let mut saver = Saver { graph };
    let text = || ValueType::new(DType::String, PartialShape::scalar());
    let attrs = Attrs::new().with("dtype", DType::String).with("shape", PartialShape::scalar());
    let filename = saver.add("Placeholder", attrs, [], [], [text()])?;
    let keys = saver.strings(&names)?;
    let whole = saver.strings(&vec![String::new(); names.len()])?;
    let save = saver.save([filename.into(), keys, whole], &variables)?;
    let saved = saver.add(
        "Identity",
        Attrs::new().with("T", DType::String),
        [filename.into()],
        [save],
        [text()],
    )?;
    let restore = saver.restore([filename.into(), keys, whole], &variables)?;
    Ok(Some(proto::SaverDef {
        filename_tensor_name: format!("{}:0", graph[filename].name),
        save_tensor_name: format!("{}:0", graph[saved].name),
        restore_op_name: graph[restore].name.to_string(),
        version: CheckpointFormatVersion::V2.into(),
        ..Default::default()
    }))
}

/// Adds ops below the name `save`.
struct Saver<'a> {
    graph: &'a mut Graph,
}

impl Saver<'_> {
    fn add(
        &mut self,
        op: &str,
        attrs: Attrs,
        inputs: impl IntoIterator<Item = Outlet>,
        controls: impl IntoIterator<Item = NodeId>,
        outputs: impl IntoIterator<Item = ValueType>,
    ) -> Result<NodeId> {
        let op = registry::find(op).expect("a built-in record");
        let name = self.graph.unique_name(&format!("save/{}", op.name));
        let node = NodeDef::new(name, op, op.complete_attrs(attrs)?);
        let node = node.with_inputs(inputs).with_controls(controls).with_outputs(outputs);
        Ok(self.graph.add(node)?)
    }

    fn strings(&mut self, strings: &[String]) -> Result<Outlet> {
        let shape = Shape::new([strings.len()])?;
        let strings = strings.iter().map(|string| string.clone().into()).collect();
        let value = HostTensor::from_strings(shape, strings)?;
        let ty = ValueType::new(DType::String, value.shape());
        let attrs = Attrs::new().with("dtype", DType::String).with("value", value);
        self.add("Const", attrs, [], [], [ty]).map(Outlet::from)
    }

    fn save(&mut self, inputs: [Outlet; 3], variables: &[(Outlet, TensorSpec)]) -> Result<NodeId> {
        let mut inputs = inputs.to_vec();
        for (handle, spec) in variables {
            let attrs = Attrs::new().with("dtype", spec.dtype);
            let ty = ValueType::new(spec.dtype, spec.shape.clone());
            inputs.push(self.add("ReadVariableOp", attrs, [*handle], [], [ty])?.into());
        }
        let dtypes: Vec<DType> = variables.iter().map(|(_, spec)| spec.dtype).collect();
        self.add("SaveV2", Attrs::new().with("dtypes", dtypes), inputs, [], [])
    }

    fn restore(
        &mut self,
        inputs: [Outlet; 3],
        variables: &[(Outlet, TensorSpec)],
    ) -> Result<NodeId> {
        let dtypes: Vec<DType> = variables.iter().map(|(_, spec)| spec.dtype).collect();
        let types = dtypes.iter().map(|&dtype| ValueType::new(dtype, PartialShape::Unknown));
        let attrs = Attrs::new().with("dtypes", dtypes.clone());
        let values = self.add("RestoreV2", attrs, inputs, [], types)?;
        let mut assigns = Vec::new();
        for (index, (handle, spec)) in variables.iter().enumerate() {
            let (attrs, value) =
                (Attrs::new().with("dtype", spec.dtype), Outlet::new(values, index));
            assigns.push(self.add("AssignVariableOp", attrs, [*handle, value], [], [])?);
        }
        self.add("NoOp", Attrs::new(), [], assigns, [])
    }
}

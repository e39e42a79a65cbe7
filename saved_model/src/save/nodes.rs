//! Nodes of graphs and functions, written by hand.

use crate::{
    convert::attr_messages,
    error::Result,
    proto::{self, op_def::ArgDef},
};
use ferroflow_ir::{Attrs, DType, HostTensor, NameAttrList, PartialShape, free_name::free_name};
use std::collections::{BTreeMap, HashSet};

/// A node; inputs are named as the graph it is in names them.
pub(super) fn node(
    name: &str,
    op: &str,
    input: impl IntoIterator<Item = String>,
    attrs: &Attrs,
) -> Result<proto::NodeDef> {
    Ok(proto::NodeDef {
        name: name.into(),
        op: op.into(),
        input: input.into_iter().collect(),
        attr: attr_messages(attrs)?,
        ..proto::NodeDef::default()
    })
}

pub(super) fn constant_attrs(value: &HostTensor) -> Attrs {
    Attrs::new().with("dtype", value.dtype()).with("value", value.clone())
}

pub(super) fn placeholder_attrs(dtype: DType, shape: &PartialShape) -> Attrs {
    Attrs::new().with("dtype", dtype).with("shape", shape.clone())
}

/// The op and the attributes of a call of a function.
pub(super) fn call(function: &proto::FunctionDef) -> (&'static str, Attrs) {
    let signature = function.signature.as_ref();
    let (inputs, outputs) =
        signature.map_or((&[][..], &[][..]), |s| (&*s.input_arg, &*s.output_arg));
    let dtypes = |args: &[ArgDef]| -> Vec<DType> {
        args.iter().filter_map(|arg| DType::from_number(arg.r#type)).collect()
    };
    let name = signature.map_or("", |signature| &signature.name);
    let attrs = Attrs::new()
        .with("f", NameAttrList::new(name))
        .with("Tin", dtypes(inputs))
        .with("Tout", dtypes(outputs));
    let is_stateful = signature.is_some_and(|signature| signature.is_stateful);
    (if is_stateful { "StatefulPartitionedCall" } else { "PartitionedCall" }, attrs)
}

/// Nodes with unique names.
#[derive(Default)]
pub(super) struct Nodes {
    pub(super) list: Vec<proto::NodeDef>,
    taken: HashSet<String>,
}

impl Nodes {
    /// A name made of this one that no node has.
    pub(super) fn free_name(&mut self, name: &str) -> String {
        let clean = crate::convert::clean_name(name);
        let free = free_name(&clean, |name| self.taken.contains(name));
        self.taken.insert(free.clone());
        free
    }

    /// Adds a node, returning its name.
    pub(super) fn add(
        &mut self,
        name: &str,
        op: &str,
        input: impl IntoIterator<Item = String>,
        attrs: &Attrs,
    ) -> Result<String> {
        let name = self.free_name(name);
        self.list.push(node(&name, op, input, attrs)?);
        Ok(name)
    }
}

/// A function written node by node.
pub(super) struct FunctionWriter {
    pub(super) def: proto::FunctionDef,
}

impl FunctionWriter {
    pub(super) fn new(name: &str) -> FunctionWriter {
        let signature = proto::OpDef { name: name.into(), ..proto::OpDef::default() };
        FunctionWriter {
            def: proto::FunctionDef { signature: Some(signature), ..Default::default() },
        }
    }

    fn signature(&mut self) -> &mut proto::OpDef {
        self.def.signature.get_or_insert_default()
    }

    /// Adds an argument.
    pub(super) fn arg(&mut self, arg: ArgDef) -> String {
        let name = arg.name.clone();
        self.signature().input_arg.push(arg);
        name
    }

    /// Adds a result of this dtype that is `value`.
    pub(super) fn result(&mut self, name: &str, dtype: i32, value: String) {
        let arg = ArgDef { name: name.into(), r#type: dtype, ..ArgDef::default() };
        self.signature().output_arg.push(arg);
        self.def.ret.insert(name.into(), value);
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        op: &str,
        input: impl IntoIterator<Item = String>,
        attrs: &Attrs,
    ) -> Result<()> {
        self.def.node_def.push(node(name, op, input, attrs)?);
        Ok(())
    }

    /// Adds a constant, returning the name of its value.
    pub(super) fn constant(&mut self, name: &str, value: &HostTensor) -> Result<String> {
        self.add(name, "Const", [], &constant_attrs(value))?;
        Ok(format!("{name}:output:0"))
    }

    /// The node runs whenever the function is called.
    pub(super) fn always(&mut self, node: &str) {
        let signature = self.signature();
        signature.is_stateful = true;
        signature.control_output.push(node.into());
        self.def.control_ret.insert(node.into(), node.into());
    }
}

/// An argument that refers to a variable.
pub(super) fn variable_arg(name: &str, saved: &proto::SavedVariable) -> ArgDef {
    use proto::resource_handle_proto::DtypeAndShape;
    let behind = DtypeAndShape { dtype: saved.dtype, shape: saved.shape.clone() };
    let (name, handle_data) = (name.into(), vec![behind]);
    ArgDef { name, r#type: DType::Resource.number(), handle_data, ..ArgDef::default() }
}

/// An argument of this dtype.
pub(super) fn plain_arg(name: &str, dtype: i32) -> ArgDef {
    ArgDef { name: name.into(), r#type: dtype, ..ArgDef::default() }
}

/// Takes attributes off nodes whose values are those that readers fill in.
pub(super) fn strip_defaults(nodes: &mut [proto::NodeDef], registry: &ferroflow_ir::OpRegistry) {
    let mut defaults: BTreeMap<String, Vec<(&'static str, proto::AttrValue)>> = BTreeMap::new();
    for node in nodes {
        let known = defaults.entry(node.op.clone()).or_insert_with(|| {
            let attrs = registry.find(&node.op).map_or(&[][..], |op| op.attrs);
            let with_default = attrs.iter().filter_map(|attr| {
                let value = attr.default.value()?;
                Some((attr.name, crate::convert::attr_message(&value).ok()?))
            });
            with_default.collect()
        });
        for (name, value) in known {
            if node.attr.get(*name) == Some(value) {
                node.attr.remove(*name);
            }
        }
    }
}

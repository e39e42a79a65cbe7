//! The way from functions with variables to functions with their values.

use super::{
    missing,
    values::{Frozen, FrozenBody, constant, gathered},
};
use crate::error::{Error, Result};
use ferroflow_ir::{
    Attrs, DType, FunctionDef, FunctionLibrary, Graph, Limits, NameAttrList, NodeDef, NodeId,
    Outlet, ValueType, attr::AttrValue, function, hash::FastMap, op::CallKind,
    pass::infer_types::infer_types,
};
use ferroflow_runtime::ResourceVariable;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Makes functions of others, in which values replace variables.
pub(super) struct Freezer {
    variables: BTreeMap<String, ResourceVariable>,
    /// The functions of the model, and those made of them.
    library: FunctionLibrary,
    made: HashMap<(Arc<str>, String), Arc<str>>,
    limits: Limits,
    /// Depth of calls here.
    depth: usize,
    /// Number of nodes so far, of all functions.
    n_nodes: usize,
}

impl Freezer {
    /// With these variables by name, and the functions of the model.
    pub(super) fn new(
        variables: BTreeMap<String, ResourceVariable>,
        library: FunctionLibrary,
        limits: Limits,
    ) -> Freezer {
        Freezer { variables, library, made: HashMap::new(), limits, depth: 0, n_nodes: 0 }
    }

    /// The functions of the model, and those made of them.
    pub(super) fn into_library(self) -> FunctionLibrary {
        self.library
    }

    /// A function where arguments with a type here are values of variables.
    pub(super) fn function(
        &mut self,
        def: &FunctionDef,
        values: &[Option<ValueType>],
        name: Arc<str>,
    ) -> Result<FunctionDef> {
        check_arguments(def, values.len())?;
        let mut graph = Graph::new();
        let (mut args, mut given) = (Vec::new(), Vec::new());
        for (index, value) in values.iter().enumerate() {
            let old = &def.graph[def.args[index]];
            let ty = value.clone().unwrap_or_else(|| def.arg_type(index).clone());
            let mut attrs = Attrs::clone(&old.attrs).with("T", ty.dtype);
            if value.is_some() {
                for name in ["_handle_dtypes", "_handle_shapes"] {
                    attrs.remove(name);
                }
            }
            let node = NodeDef::new(old.name.clone(), old.op.clone(), attrs).with_outputs([ty]);
            let id = graph.add(node)?;
            args.push(id);
            given.push(match value {
                Some(_) => Frozen::Variable(id.into()),
                None => Frozen::Tensor(id.into()),
            });
        }
        let mut body = FrozenBody { graph: &mut graph, constants: HashMap::new() };
        let results = self.inline(&mut body, def, &given, "")?;
        let names = def.results.iter().map(|(name, _)| name.clone());
        let results = names.zip(results.into_iter().map(Frozen::outlet)).collect();
        let (control_results, attrs) = (Vec::new(), def.attrs.clone());
        Ok(FunctionDef { name, graph, args, results, control_results, attrs })
    }

    /// Adds what a function does to a graph, and returns what its results have become. Functions of
    /// a file may call themselves, or each two others.
    ///
    /// # Errors
    ///
    /// Besides those of its nodes, [`ferroflow_ir::Error::Limit`].
    fn inline(
        &mut self,
        body: &mut FrozenBody<'_>,
        def: &FunctionDef,
        args: &[Frozen],
        prefix: &str,
    ) -> Result<Vec<Frozen>> {
        self.depth += 1;
        self.n_nodes = self.n_nodes.saturating_add(def.graph.len());
        check_limit("depth of calls", self.depth, self.limits.call_depth)?;
        check_limit("nodes", self.n_nodes, self.limits.nodes)?;
        check_arguments(def, args.len())?;
        let results = self.add(body, def, args, prefix)?;
        self.depth -= 1;
        Ok(results)
    }

    fn add(
        &mut self,
        body: &mut FrozenBody<'_>,
        def: &FunctionDef,
        args: &[Frozen],
        prefix: &str,
    ) -> Result<Vec<Frozen>> {
        let mut known: FastMap<Outlet, Frozen> =
            def.args.iter().map(|&arg| arg.into()).zip(args.iter().copied()).collect();
        let mut after: FastMap<NodeId, NodeId> = FastMap::default();
        let needed = def.graph.reachable_from(def.results.iter().map(|(_, outlet)| outlet.node));
        for id in def.graph.topological_order()? {
            if !needed.contains(&id) || known.contains_key(&id.into()) {
                continue;
            }
            let node = &def.graph[id];
            let inputs = node.inputs().iter().map(|input| known.get(input).copied());
            let inputs: Option<Vec<Frozen>> = inputs.collect();
            let inputs = inputs.ok_or_else(|| missing("input of node", &node.name))?;
            let controls = node.controls().iter().filter_map(|id| after.get(id).copied());
            let controls: Vec<NodeId> = controls.collect();
            let results = self.node(body, node, &inputs, controls, prefix)?;
            if let Some(Frozen::Tensor(first)) = results.first() {
                after.insert(id, first.node);
            }
            let results = results.into_iter().enumerate();
            known.extend(results.map(|(index, result)| (Outlet::new(id, index), result)));
        }
        let result = |(name, outlet): &(String, Outlet)| {
            known.get(outlet).copied().ok_or_else(|| missing("result", name))
        };
        def.results.iter().map(result).collect()
    }

    /// Frozen form of a node.
    fn node(
        &mut self,
        body: &mut FrozenBody<'_>,
        node: &NodeDef,
        inputs: &[Frozen],
        controls: Vec<NodeId>,
        prefix: &str,
    ) -> Result<Vec<Frozen>> {
        let name = format!("{prefix}{}", node.name);
        let of_variable = matches!(inputs.first(), Some(Frozen::Variable(_)));
        match (node.op.name(), inputs) {
            ("VarHandleOp", _) => return Ok(vec![self.constant(body, node, &name)?]),
            ("ReadVariableOp", &[Frozen::Variable(value)]) => {
                return Ok(vec![Frozen::Tensor(value)]);
            }
            ("ResourceGather", &[Frozen::Variable(value), Frozen::Tensor(indices)]) => {
                return gathered(body, node, [value, indices], &name);
            }
            ("Identity", &[variable]) if of_variable => return Ok(vec![variable]),
            _ => {}
        }
        let call = node.op.def().map_or(CallKind::None, |op| op.call);
        let has_variables = inputs.iter().any(|input| matches!(input, Frozen::Variable(_)));
        let mut attrs = Attrs::clone(&node.attrs);
        match call {
            CallKind::Inline => {
                let callee = function::callees(&node.attrs);
                let callee = callee.first().ok_or_else(|| missing("function of", &node.name))?;
                let callee = self.library.get(callee)?;
                let arguments = node.op.def().map_or(inputs, |op| op.handed_on(inputs));
                return self.inline(body, &callee, arguments, &format!("{name}/"));
            }
            CallKind::Module => {
                let callee = self.library.module(&node.attrs)?;
                return self.inline(body, &callee, inputs, &format!("{name}/"));
            }
            CallKind::If | CallKind::Case | CallKind::While if has_variables => {
                self.hand_values(&mut attrs, body, inputs, call)?;
            }
            _ if has_variables => return Err(stateful(node, "changes or passes on a variable")),
            _ => {}
        }
        if node.outputs().iter().any(|ty| ty.dtype == DType::Resource) && call == CallKind::None {
            return Err(stateful(node, "needs state other than variables"));
        }
        let own = body.graph.unique_name(&name);
        let made = NodeDef::new(own, node.op.clone(), attrs)
            .with_inputs(inputs.iter().map(|input| input.outlet()))
            .with_controls(controls);
        // What a loop hands on of a variable is its value.
        let is_variable = |index: usize| {
            call == CallKind::While && matches!(inputs.get(index), Some(Frozen::Variable(_)))
        };
        let outputs =
            node.outputs().iter().enumerate().map(|(index, ty)| match is_variable(index) {
                true => {
                    body.graph.ty(inputs[index].outlet()).cloned().unwrap_or_else(|| ty.clone())
                }
                false => ty.clone(),
            });
        let outputs: Vec<ValueType> = outputs.collect();
        let n_outputs = outputs.len();
        let id = body.graph.add(made.with_outputs(outputs))?;
        let result = |index: usize| {
            let outlet = Outlet::new(id, index);
            if is_variable(index) { Frozen::Variable(outlet) } else { Frozen::Tensor(outlet) }
        };
        Ok((0..n_outputs).map(result).collect())
    }

    /// The value of a variable, as a constant.
    fn constant(&self, body: &mut FrozenBody<'_>, node: &NodeDef, name: &str) -> Result<Frozen> {
        let shared = node.attrs.string("shared_name")?;
        if let Some(&constant) = body.constants.get(shared) {
            return Ok(Frozen::Variable(constant));
        }
        let variable = self.variables.get(shared);
        let value = variable.ok_or_else(|| missing("variable", shared))?.read()?;
        let constant = constant(body, name, value)?;
        body.constants.insert(shared.into(), constant);
        Ok(Frozen::Variable(constant))
    }

    /// Has branches or the parts of a loop take values in place of variables.
    fn hand_values(
        &mut self,
        attrs: &mut Attrs,
        body: &FrozenBody<'_>,
        inputs: &[Frozen],
        call: CallKind,
    ) -> Result<()> {
        let skipped = usize::from(call != CallKind::While);
        let mut values = Vec::new();
        for input in &inputs[skipped..] {
            values.push(match input {
                Frozen::Tensor(_) => None,
                Frozen::Variable(outlet) => {
                    let ty = body.graph.ty(*outlet).cloned();
                    Some(ty.ok_or_else(|| missing("type", "a variable"))?)
                }
            });
        }
        let dtypes = if call == CallKind::While { "T" } else { "Tin" };
        let mut types = attrs.types(dtypes)?.to_vec();
        for (ty, value) in types.iter_mut().zip(&values) {
            if let Some(value) = value {
                *ty = value.dtype;
            }
        }
        attrs.set(dtypes, types);
        // What was noted of the results may be of handles.
        attrs.remove("_output_shapes");
        if call == CallKind::While {
            attrs.remove("output_shapes");
        }
        let mut renamed = Vec::new();
        for (name, value) in attrs.iter() {
            match value {
                AttrValue::Func(f) => {
                    let function = self.specialised_function(f, &values)?;
                    renamed.push((name.to_string(), AttrValue::Func(function)));
                }
                AttrValue::Funcs(list) => {
                    let functions: Result<Vec<NameAttrList>> =
                        list.iter().map(|f| self.specialised_function(f, &values)).collect();
                    renamed.push((name.to_string(), AttrValue::Funcs(functions?)));
                }
                _ => {}
            }
        }
        renamed.into_iter().for_each(|(name, value)| attrs.set(name, value));
        Ok(())
    }

    /// The name of a function that takes values in place of variables.
    fn specialised(&mut self, name: &Arc<str>, values: &[Option<ValueType>]) -> Result<Arc<str>> {
        let key = (name.clone(), format!("{values:?}"));
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let new: Arc<str> = format!("{name}_frozen_{}", self.made.len()).into();
        self.made.insert(key, new.clone());
        let def = self.library.get(name)?;
        let mut function = self.function(&def, values, new.clone())?;
        infer_types(&mut function.graph)?;
        self.library.insert(function)?;
        Ok(new)
    }

    fn specialised_function(
        &mut self,
        function: &NameAttrList,
        values: &[Option<ValueType>],
    ) -> Result<NameAttrList> {
        let name = self.specialised(&function.name, values)?;
        Ok(NameAttrList::with_attrs(name, function.attrs.clone()))
    }
}

fn check_limit(what: &str, found: usize, limit: usize) -> ferroflow_ir::Result<()> {
    if found <= limit {
        return Ok(());
    }
    let (what, needed) = (format!("{what} of a frozen graph").into(), found.to_string());
    Err(ferroflow_ir::Error::Limit { what, needed, limit: limit as u64 })
}

fn check_arguments(def: &FunctionDef, found: usize) -> ferroflow_ir::Result<()> {
    if found == def.args.len() {
        return Ok(());
    }
    let expected = format!("{} tensors", def.args.len());
    Err(ferroflow_ir::Error::argument(def.name.to_string(), "arguments", expected, found))
}

fn stateful(node: &NodeDef, what: &str) -> Error {
    ferroflow_ir::Error::Unsupported {
        op: format!("a frozen graph (node `{}`, {})", node.name, node.op.name()).into(),
        what: what.to_string().into(),
    }
    .into()
}

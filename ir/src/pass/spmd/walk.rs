//! The walk over the nodes of a function: each becomes a node of the program of one device, after whatever
//! changes the layouts of its operands.

use super::{
    local::Local,
    report::{CollectiveKind, InsertedCollective, LayoutReport, NodeLayout},
    sharding::{Partial, Sharding, dim_names},
};
use crate::{
    error::{Error, Result},
    function::FunctionDef,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    layout::Mesh,
    op::{CallKind, Effect, OpDef},
    pass::{execution::constant, prune::live, specialize::Specialized},
    shape::PartialShape,
    spec::ValueType,
};
use std::collections::HashMap;

/// A value of the function, in the program of one device.
#[derive(Debug, Clone)]
pub(super) struct LocalValue {
    pub(super) outlet: Outlet,
    pub(super) sharding: Sharding,
}

/// A function, and the part of it that is there for one device.
pub(super) struct Walk<'a> {
    pub(super) body: &'a Specialized,
    pub(super) mesh: Mesh,
    pub(super) local: Local,
    pub(super) values: FastMap<Outlet, LocalValue>,
    /// The shardings of variables, by the arguments that refer to them.
    pub(super) variables: FastMap<Outlet, Sharding>,
    /// Arguments that refer to resources other than variables, which devices share.
    pub(super) shared: FastSet<Outlet>,
    /// Values of the device in other shardings than that they were computed in.
    changed: HashMap<(Outlet, Sharding), Outlet>,
    /// The number of uses of each value.
    pub(super) uses: FastMap<Outlet, usize>,
    pub(super) program: Program,
    /// Whether this is the program of the first device, which alone has effects on what devices share.
    pub(super) is_leader: bool,
}

/// State that the functions of a program share.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) report: LayoutReport,
    /// The functions of loops and branches.
    pub(super) functions: Vec<FunctionDef>,
    /// Whether the program of the first device differs from those of others.
    pub(super) has_leader: bool,
}

impl Program {
    /// The name of the next function of a loop or a branch.
    pub(super) fn next_name(&self) -> String {
        format!("{}_part_{}", self.name, self.functions.len())
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(body: &'a Specialized, mesh: &Mesh, is_leader: bool) -> Result<Walk<'a>> {
        Ok(Walk {
            body,
            mesh: mesh.clone(),
            local: Local::new(mesh)?,
            values: FastMap::default(),
            variables: FastMap::default(),
            shared: FastSet::default(),
            changed: HashMap::new(),
            uses: FastMap::default(),
            program: Program::default(),
            is_leader,
        })
    }

    /// Adds an argument of this sharding; a variable has one of its own.
    pub(super) fn argument(&mut self, outlet: Outlet, sharding: &Sharding) -> Result<Outlet> {
        let mut ty = self.ty(outlet)?.clone();
        match (self.variables.get(&outlet), &mut ty.pointee) {
            (Some(variable), Some(spec)) => {
                spec.shape = variable.piece_shape(&self.mesh, &spec.shape);
            }
            _ => ty.shape = sharding.piece_shape(&self.mesh, &ty.shape),
        }
        let arg = self.local.arg(&self.source()[outlet.node].name, ty)?;
        self.set(outlet, arg, sharding.clone());
        Ok(arg)
    }

    /// Adds the nodes that results and effects need, in the order in which they run.
    pub(super) fn nodes(&mut self) -> Result<()> {
        let (graph, live) = (self.source(), live(self.body));
        let nodes = graph.iter().filter(|(id, _)| live.contains(id));
        let inputs = nodes.flat_map(|(_, node)| node.inputs().iter().copied());
        for outlet in inputs.chain(self.body.results.iter().copied()) {
            *self.uses.entry(outlet).or_insert(0) += 1;
        }
        for id in graph.ids().filter(|id| live.contains(id)) {
            let node = &graph[id];
            if self.values.contains_key(&Outlet::from(id)) {
                continue;
            }
            self.node(id, node).map_err(node.locate(&self.program.name))?;
        }
        Ok(())
    }

    /// Adds a node.
    fn node(&mut self, id: NodeId, node: &NodeDef) -> Result<()> {
        let Some(op) = node.op.def() else {
            let what = "no op of this name is known".into();
            return Err(Error::Unsupported { op: node.op.name().to_string().into(), what });
        };
        if let Some(value) = constant(self.source(), id.into()) {
            return self.constant(id, value);
        }
        if op.call != CallKind::None {
            return self.control(id, op);
        }
        if op.effect != Effect::Pure {
            return self.with_effects(id, op);
        }
        if op.shape_only {
            return self.of_shape(id, op);
        }
        if self.lookup(id)? {
            return Ok(());
        }
        self.compute(id, op)
    }

    pub(super) fn source(&self) -> &'a Graph {
        &self.body.graph
    }

    /// The type of a value of the function.
    pub(super) fn ty(&self, outlet: Outlet) -> Result<&'a ValueType> {
        let name = || self.source()[outlet.node].name.to_string();
        self.source().ty(outlet).ok_or_else(|| Error::NotFound { kind: "value", name: name() })
    }

    pub(super) fn value(&self, outlet: Outlet) -> Result<LocalValue> {
        let name = || self.source()[outlet.node].name.to_string();
        let found = self.values.get(&outlet).cloned();
        found.ok_or_else(|| Error::NotFound { kind: "value", name: name() })
    }

    /// Notes a value of the function.
    pub(super) fn set(&mut self, outlet: Outlet, local: Outlet, sharding: Sharding) {
        self.values.insert(outlet, LocalValue { outlet: local, sharding });
    }

    /// The sharding of a value that every device has whole.
    pub(super) fn replicated(&self, outlet: Outlet) -> Result<Sharding> {
        Ok(Sharding::replicated(self.ty(outlet)?.shape.rank()))
    }

    /// A value of the function in another sharding; `user` is the node that needs it.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when no collective takes its dtype, or its shape is not known.
    pub(super) fn in_sharding(
        &mut self,
        outlet: Outlet,
        want: &Sharding,
        user: &str,
    ) -> Result<Outlet> {
        let value = self.value(outlet)?;
        if value.sharding == *want {
            return Ok(value.outlet);
        }
        let key = (value.outlet, want.clone());
        if let Some(&known) = self.changed.get(&key) {
            return Ok(known);
        }
        let changed = Change { walk: self, source: outlet, user }.change(value, want)?;
        self.changed.insert(key, changed);
        Ok(changed)
    }

    /// A value of the function that every device has whole.
    pub(super) fn whole(&mut self, outlet: Outlet, user: &str) -> Result<Outlet> {
        let sharding = self.value(outlet)?.sharding;
        self.in_sharding(outlet, &Sharding::replicated(Some(sharding.dims.len())), user)
    }

    /// The operands of a node, whole.
    pub(super) fn whole_operands(&mut self, node: &NodeDef) -> Result<Vec<Outlet>> {
        node.inputs().iter().map(|&input| self.whole(input, &node.name)).collect()
    }

    /// Whether an operand is not whole on every device.
    pub(super) fn has_split_operand(&self, node: &NodeDef) -> bool {
        let is_split = |input: &Outlet| {
            self.values.get(input).is_some_and(|value| !value.sharding.is_replicated())
        };
        node.inputs().iter().any(is_split)
    }

    /// Adds a node with these operands, whose results have these shardings.
    ///
    /// # Errors
    ///
    /// [`Error::Pass`] when a result has another shape than a piece of the value must have.
    pub(super) fn add(
        &mut self,
        id: NodeId,
        op: &'static OpDef,
        inputs: &[Outlet],
        shardings: Vec<Sharding>,
    ) -> Result<()> {
        let node = &self.source()[id];
        let attrs = (*node.attrs).clone();
        let (attrs, types) = super::super::call::call_types(&self.local.graph, op, attrs, inputs)?;
        let types = self.checked(node, types, &shardings)?;
        let mut source = node.clone();
        source.attrs = attrs.into();
        let new = self.local.node(&node.name, &source, inputs, types)?;
        self.results(id, new, shardings);
        Ok(())
    }

    /// The types of the results of a device, which must be those of pieces.
    fn checked(
        &self,
        node: &NodeDef,
        types: impl IntoIterator<Item = ValueType>,
        shardings: &[Sharding],
    ) -> Result<Vec<ValueType>> {
        let mut checked = Vec::with_capacity(shardings.len());
        for ((mut ty, whole), sharding) in types.into_iter().zip(node.outputs()).zip(shardings) {
            let expected: PartialShape = sharding.piece_shape(&self.mesh, &whole.shape);
            let Some(shape) = ty.shape.merge(&expected) else {
                let (node, found) = (node.name.to_string(), &ty.shape);
                let problem = format!("a piece has shape {found}, {expected} is expected");
                return Err(Error::Pass { pass: "partitioning", node, problem });
            };
            ty.shape = shape;
            checked.push(ty);
        }
        Ok(checked)
    }

    /// Notes the results of a node.
    pub(super) fn results(&mut self, id: NodeId, new: NodeId, shardings: Vec<Sharding>) {
        for (index, sharding) in shardings.into_iter().enumerate() {
            self.set(Outlet::new(id, index), Outlet::new(new, index), sharding);
        }
    }

    /// Notes in the report the layouts of a node's results.
    pub(super) fn note(&mut self, id: NodeId, gathered: bool) {
        let node = &self.source()[id];
        let results = (0..node.outputs().len()).map(|index| Outlet::new(id, index));
        let layouts = results.filter_map(|outlet| self.values.get(&outlet));
        let layouts = layouts.map(|value| value.sharding.text(&self.mesh)).collect();
        let (node, op) = (node.name.to_string(), node.op.name().to_string());
        self.program.report.nodes.push(NodeLayout { node, op, layouts, gathered });
    }

    /// Notes in the report a collective of a value that a device has.
    pub(super) fn note_collective(
        &mut self,
        kind: CollectiveKind,
        source: Outlet,
        user: &str,
        dims: u32,
        sent: Outlet,
    ) {
        let (mesh_dims, bytes) = (dim_names(&self.mesh, dims), self.local.bytes(sent));
        let (value, user) = (self.source()[source.node].name.to_string(), user.to_string());
        let inserted = InsertedCollective { kind, value, user, mesh_dims, bytes };
        self.program.report.collectives.push(inserted);
    }
}

/// A change of the sharding of a value.
struct Change<'w, 'a, 'n> {
    walk: &'w mut Walk<'a>,
    source: Outlet,
    user: &'n str,
}

impl Change<'_, '_, '_> {
    /// Merges terms, then slices what is whole and is to be split, then gathers.
    fn change(&mut self, value: LocalValue, want: &Sharding) -> Result<Outlet> {
        let LocalValue { mut outlet, mut sharding } = value;
        if let Some(partial) = sharding.partial.filter(|_| want.partial.is_none()) {
            outlet = self.merge(outlet, &mut sharding, partial, want)?;
        }
        for axis in 0..sharding.dims.len() {
            let (own, wanted) = (sharding.dims[axis], want.dims.get(axis).copied().flatten());
            if let Some(mesh_dim) = own.filter(|_| own != wanted) {
                let whole = self.walk.local.all_gather(outlet, axis, mesh_dim)?;
                self.note(CollectiveKind::AllGather, 1 << mesh_dim, outlet);
                (outlet, sharding.dims[axis]) = (whole, None);
            }
        }
        for axis in 0..sharding.dims.len() {
            let wanted = want.dims.get(axis).copied().flatten();
            if let Some(mesh_dim) = wanted.filter(|_| sharding.dims[axis].is_none()) {
                outlet = self.walk.local.slice(outlet, axis, mesh_dim)?;
                sharding.dims[axis] = Some(mesh_dim);
            }
        }
        if sharding == *want {
            return Ok(outlet);
        }
        let node = self.walk.source()[self.source.node].name.to_string();
        let problem = format!("layout {sharding:?} was to become {want:?}");
        Err(Error::Pass { pass: "partitioning", node, problem })
    }

    /// Merges terms, on every device, or by pieces where a piece is wanted.
    fn merge(
        &mut self,
        outlet: Outlet,
        sharding: &mut Sharding,
        partial: Partial,
        want: &Sharding,
    ) -> Result<Outlet> {
        let Partial { dims, merge } = partial;
        sharding.partial = None;
        let is_scattered = |axis: &usize| {
            let wanted = want.dims.get(*axis).copied().flatten();
            sharding.dims[*axis].is_none() && wanted.is_some_and(|dim| dims == 1 << dim)
        };
        let axis = (0..sharding.dims.len()).find(is_scattered);
        let Some((axis, mesh_dim)) = axis.and_then(|axis| Some((axis, want.dims[axis]?))) else {
            let whole = self.walk.local.all_reduce(outlet, partial)?;
            self.note(CollectiveKind::AllReduce, dims, outlet);
            return Ok(whole);
        };
        sharding.dims[axis] = Some(mesh_dim);
        let piece = self.walk.local.reduce_scatter(outlet, axis, mesh_dim, merge)?;
        self.note(CollectiveKind::ReduceScatter, dims, outlet);
        Ok(piece)
    }

    fn note(&mut self, kind: CollectiveKind, dims: u32, sent: Outlet) {
        self.walk.note_collective(kind, self.source, self.user, dims, sent);
    }
}

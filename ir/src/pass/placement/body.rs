//! The placement of one body: its graph is rebuilt node by node, with copies before their readers.

use super::{
    super::{
        execution::{Execution, constant},
        specialize::Specialized,
    },
    DeviceId, PlacedArgument, Reason, Targets, set_locations,
};
use crate::{
    attr::Attrs,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastMap,
    op::{Lowering, OpDef},
    ops::copy::COPY,
    registry,
    spec::ValueType,
};
use smallvec::SmallVec;

/// Where a value is: in the memory of a device, or of the host.
pub(super) type DeviceOrHost = Option<DeviceId>;

/// A body being placed.
pub(super) struct Placer<'a> {
    pub(super) source: &'a Specialized,
    pub(super) targets: &'a dyn Targets,
    /// The number of loops around the body.
    pub(super) loops: usize,
    pub(super) graph: Graph,
    /// The outlets of the new graph that stand for those of the source, and where they are.
    values: FastMap<Outlet, Outlet>,
    locations: FastMap<Outlet, DeviceOrHost>,
    /// Copies of outlets of the new graph.
    copies: FastMap<(Outlet, DeviceOrHost), Outlet>,
    /// The variables on devices behind handles of the source.
    variables: FastMap<Outlet, (DeviceId, ValueType)>,
    /// The nodes that others wait for instead of one of the source.
    controls: FastMap<NodeId, SmallVec<[NodeId; 2]>>,
    pub(super) nested: FastMap<NodeId, Vec<Specialized>>,
    pub(super) reasons: FastMap<NodeId, Reason>,
}

/// Assigns devices to a body whose arguments are where `args` says. Its results are put where
/// `results` says, or stay where they are.
pub(super) fn assign_body(
    source: &Specialized,
    args: &[PlacedArgument],
    results: Option<&[DeviceOrHost]>,
    targets: &dyn Targets,
    loops: usize,
) -> Result<Specialized> {
    let mut placer = Placer {
        source,
        targets,
        loops,
        graph: Graph::new(),
        values: FastMap::default(),
        locations: FastMap::default(),
        copies: FastMap::default(),
        variables: FastMap::default(),
        controls: FastMap::default(),
        nested: FastMap::default(),
        reasons: FastMap::default(),
    };
    let arguments: FastMap<NodeId, &PlacedArgument> =
        source.args.iter().map(|arg| arg.node).zip(args).collect();
    for (&outlet, arg) in source.args.iter().zip(args) {
        if let Some(variable) = &arg.variable {
            placer.variables.insert(outlet, variable.clone());
        }
    }
    for (id, node) in source.graph.iter() {
        let function = node.function.as_deref().unwrap_or_default();
        let device = arguments.get(&id).and_then(|arg| arg.device);
        placer.node(id, node, device).map_err(node.locate(function))?;
    }
    let mut placed_results = Vec::with_capacity(source.results.len());
    for (index, &result) in source.results.iter().enumerate() {
        placed_results.push(match results {
            Some(locations) => placer.copied(result, locations.get(index).copied().flatten())?,
            None => placer.value(result),
        });
    }
    Ok(Specialized {
        args: source.args.iter().map(|&arg| placer.value(arg)).collect(),
        results: placed_results,
        graph: placer.graph,
        nested: placer.nested,
        failure: source.failure.clone(),
        dropped: source.dropped.clone(),
        reasons: placer.reasons,
    })
}

impl Placer<'_> {
    fn node(&mut self, id: NodeId, node: &NodeDef, given: DeviceOrHost) -> Result<()> {
        match Execution::of(&self.source.graph, node)? {
            Execution::Source => {
                let is_argument = constant(&self.source.graph, id.into()).is_none();
                let device = given.filter(|_| is_argument);
                self.add(id, node.clone(), node.inputs().into(), device).map(|_| ())
            }
            Execution::Alias | Execution::Copy => self.alias(id, node),
            Execution::Call => self.call(id, node),
            Execution::Kernel => {
                let (device, reason) = self.kernel_device(node);
                let inputs = self.operands(node, device)?;
                let new = self.add(id, node.clone(), inputs, device)?;
                self.reasons.insert(new, reason);
                Ok(())
            }
            // Devices have no kernels for windows that move.
            Execution::MovingWindow | Execution::Op => self.op(id, node),
        }
    }

    /// A result that is its input under another shape is where that is.
    fn alias(&mut self, id: NodeId, node: &NodeDef) -> Result<()> {
        let input = node.inputs()[0];
        let device = self.location(input).filter(|&device| {
            let from = self.source.graph.ty(input);
            from.is_some_and(|ty| {
                self.targets.same_layout(device, ty.dtype, node.outputs()[0].dtype)
            })
        });
        if let Some(variable) = self.variables.get(&input).cloned() {
            self.variables.insert(id.into(), variable);
        }
        let inputs = self.operands(node, device)?;
        self.add(id, node.clone(), inputs, device).map(|_| ())
    }

    fn op(&mut self, id: NodeId, node: &NodeDef) -> Result<()> {
        let (op, wanted) = (node.op.def(), self.wanted(node));
        let reason = match (op, wanted) {
            (Some(op), Some(device)) if self.targets.takes_any_device(op) => {
                if self.optimizer(id, node, op, device)? {
                    return Ok(());
                }
                return self.op_on_device(id, node, device);
            }
            (Some(op), Some(_)) if matches!(op.lowering, Lowering::Runtime) => Reason::State,
            (_, Some(_)) => Reason::UnknownShape,
            (_, None) => Reason::Default,
        };
        let inputs = self.operands(node, None)?;
        let new = self.add(id, node.clone(), inputs, None)?;
        self.reasons.insert(new, reason);
        Ok(())
    }

    /// An op that takes its operands wherever they are. What the device can hold of its results is
    /// there.
    fn op_on_device(&mut self, id: NodeId, node: &NodeDef, device: DeviceId) -> Result<()> {
        let inputs = node.inputs().iter().map(|&input| self.value(input)).collect();
        let locations: Vec<DeviceOrHost> = node
            .outputs()
            .iter()
            .map(|ty| {
                let is_held = ty.shape.is_known() && self.targets.supports_dtype(device, ty.dtype);
                is_held.then_some(device)
            })
            .collect();
        let new = self.add_with(id, node.clone(), inputs, Some(device), &locations)?;
        self.reasons.insert(new, Reason::Asked);
        Ok(())
    }

    /// Where a call of a kernel runs, and why.
    fn kernel_device(&self, node: &NodeDef) -> (DeviceOrHost, Reason) {
        let Some(device) = self.wanted(node) else { return (None, Reason::Default) };
        if self.loops > 0 && self.is_control_scalar(node) {
            return (None, Reason::Steering);
        }
        if self.targets.supports(device, &self.source.graph, node) {
            return (Some(device), Reason::Asked);
        }
        let graph = &self.source.graph;
        let mut types = node.inputs().iter().filter_map(|&x| graph.ty(x)).chain(node.outputs());
        let reason = match node.op.def() {
            _ if !types.all(|ty| self.targets.supports_dtype(device, ty.dtype)) => Reason::Unheld,
            Some(OpDef { lowering: Lowering::HostKernel(reason), .. }) => Reason::HostOnly(*reason),
            _ => Reason::NoKernel,
        };
        (None, reason)
    }

    /// The device that a call should run on: that which it names, or where its variables are, or
    /// where the function was called, or where its inputs are.
    fn wanted(&self, node: &NodeDef) -> DeviceOrHost {
        if !node.device.is_empty() {
            return self.targets.find(&node.device);
        }
        let inputs = || node.inputs().iter();
        let device = inputs().find_map(|input| Some(self.variables.get(input)?.0));
        device
            .or(self.targets.default_device())
            .or_else(|| inputs().find_map(|&input| self.location(input)))
    }

    /// Whether a call computes single whole numbers or bools of such on the host.
    fn is_control_scalar(&self, node: &NodeDef) -> bool {
        let graph = &self.source.graph;
        let is_single = |ty: &ValueType| {
            let shape = ty.shape.known();
            !ty.dtype.is_float() && shape.is_some_and(|shape| shape.num_elements() == 1)
        };
        let on_host = node.inputs().iter().all(|&input| self.location(input).is_none());
        let mut types = node.inputs().iter().filter_map(|&x| graph.ty(x)).chain(node.outputs());
        on_host && types.all(is_single)
    }

    /// The operands of a node that runs on a device; those that are read when its kernel is
    /// compiled stay where they are.
    fn operands(&mut self, node: &NodeDef, device: DeviceOrHost) -> Result<SmallVec<[Outlet; 4]>> {
        let host = match (device, node.op.def()) {
            (Some(_), Some(op)) => op.host_inputs(&node.attrs)?,
            _ => Default::default(),
        };
        let mut operands = SmallVec::new();
        for (index, &input) in node.inputs().iter().enumerate() {
            operands.push(match host.get(index) {
                Some(true) => self.value(input),
                _ => self.copied(input, device)?,
            });
        }
        Ok(operands)
    }

    /// The outlet of the new graph for one of the source.
    pub(super) fn value(&self, outlet: Outlet) -> Outlet {
        self.values[&outlet]
    }

    /// Where a value of the source is.
    pub(super) fn location(&self, outlet: Outlet) -> DeviceOrHost {
        self.locations.get(self.values.get(&outlet)?).copied().flatten()
    }

    /// The variable on a device behind a handle of the source.
    pub(super) fn variable(&self, handle: Outlet) -> Option<&(DeviceId, ValueType)> {
        self.variables.get(&handle)
    }

    /// A value of the source in the memory of a device.
    pub(super) fn copied(&mut self, outlet: Outlet, to: DeviceOrHost) -> Result<Outlet> {
        let value = self.value(outlet);
        self.copied_value(value, to)
    }

    /// A value of the new graph in the memory of a device.
    pub(super) fn copied_value(&mut self, value: Outlet, to: DeviceOrHost) -> Result<Outlet> {
        if self.locations.get(&value).copied().flatten() == to {
            return Ok(value);
        }
        if let Some(&copy) = self.copies.get(&(value, to)) {
            return Ok(copy);
        }
        let source = &self.graph[value.node];
        let ty = source.outputs()[value.index as usize].clone();
        let name = format!("{}/copy", source.name);
        let mut node = match constant(&self.graph, value) {
            Some(_) => source.clone(),
            None => {
                let op = registry::find(COPY).expect("a built-in record");
                NodeDef::new("", op, Attrs::new().with("T", ty.dtype))
                    .with_inputs([value])
                    .with_outputs([ty])
            }
        };
        node.function = source.function.clone();
        node.name = self.graph.unique_name(&name).into();
        node.device = self.device_name(to);
        let copy = Outlet::from(self.graph.add(node)?);
        self.locations.insert(copy, to);
        self.copies.insert((value, to), copy);
        self.copies.insert((copy, self.locations[&value]), value);
        Ok(copy)
    }

    pub(super) fn device_name(&self, location: DeviceOrHost) -> Box<str> {
        location.map_or("", |device| self.targets.name(device)).into()
    }

    /// Adds the node that stands for one of the source, on a device.
    pub(super) fn add(
        &mut self,
        id: NodeId,
        node: NodeDef,
        inputs: SmallVec<[Outlet; 4]>,
        device: DeviceOrHost,
    ) -> Result<NodeId> {
        let locations = vec![device; node.outputs().len()];
        self.add_with(id, node, inputs, device, &locations)
    }

    /// Adds the node that stands for one of the source, on a device, with results at these
    /// positions.
    pub(super) fn add_with(
        &mut self,
        id: NodeId,
        node: NodeDef,
        inputs: SmallVec<[Outlet; 4]>,
        device: DeviceOrHost,
        locations: &[DeviceOrHost],
    ) -> Result<NodeId> {
        let controls = self.waited_for(&node);
        let mut node = node.with_inputs(inputs).with_controls(controls);
        node.name = self.graph.unique_name(&node.name).into();
        node.device = self.device_name(device);
        let names: Vec<Box<str>> = locations.iter().map(|&x| self.device_name(x)).collect();
        set_locations(&mut node, &names);
        let new = self.graph.add(node)?;
        self.controls.insert(id, SmallVec::from_iter([new]));
        for (index, &location) in locations.iter().enumerate() {
            self.values.insert(Outlet::new(id, index), Outlet::new(new, index));
            self.locations.insert(Outlet::new(new, index), location);
        }
        Ok(new)
    }

    /// The nodes that stand for those which a node of the source waits for.
    pub(super) fn waited_for(&self, node: &NodeDef) -> SmallVec<[NodeId; 2]> {
        let controls = node.controls().iter().filter_map(|control| self.controls.get(control));
        controls.flatten().copied().collect()
    }

    /// Makes nodes those which others wait for instead of one of the source.
    pub(super) fn stand_for(&mut self, id: NodeId, nodes: impl IntoIterator<Item = NodeId>) {
        self.controls.insert(id, nodes.into_iter().collect());
    }

    /// Notes where a result of a node that was added is.
    pub(super) fn locate(&mut self, value: Outlet, location: DeviceOrHost) {
        self.locations.insert(value, location);
    }
}

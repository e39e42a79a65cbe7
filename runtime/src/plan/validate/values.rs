//! Values of a graph, by number, and what the graph says of them.

use ferroflow_ir::{
    DType, HostTensor, Lowering, NodeId, Outlet,
    hash::{FastMap, FastSet},
    pass::{execution::constant, specialize::Specialized},
};
use ferroflow_kernels::{OpCall, OperandSpec};
use smallvec::SmallVec;
use std::{collections::HashMap, ops::Range, sync::Arc};

/// A single value: the result of a step, an argument, a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SymbolId(u32);

/// A value, or a window of one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SymbolicValue {
    pub(super) number: SymbolId,
    /// The bytes, where they are known to be fewer than all.
    pub(super) bytes: Option<Range<usize>>,
}

impl SymbolicValue {
    pub(super) fn whole(number: SymbolId) -> SymbolicValue {
        SymbolicValue { number, bytes: None }
    }

    /// The first byte.
    pub(super) fn start(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.start)
    }
}

/// Key by which two constants are the same value.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ConstantKey {
    Elements(DType, usize, SmallVec<[u8; 16]>),
    Address(DType, usize, usize),
}

impl ConstantKey {
    fn of(value: &HostTensor) -> Option<ConstantKey> {
        let (dtype, len) = (value.dtype(), value.len());
        if value.is_plain() {
            let bytes = value.bytes();
            return Some(match bytes.len() {
                0..=16 => ConstantKey::Elements(dtype, len, bytes.into()),
                _ => ConstantKey::Address(dtype, len, bytes.as_ptr() as usize),
            });
        }
        let address = match (value.strings(), value.handles()) {
            (Ok(strings), _) => strings.as_ptr() as usize,
            (_, Ok([one])) => Arc::as_ptr(one).cast::<()>() as usize,
            (_, Ok(handles)) => handles.as_ptr() as usize,
            _ => return None,
        };
        Some(ConstantKey::Address(dtype, len, address))
    }
}

/// The numbers assigned so far.
#[derive(Debug, Default)]
pub(super) struct ValueNumbering {
    next: u32,
    constants: HashMap<ConstantKey, SymbolId>,
    /// Values of bodies that run again keep their numbers.
    results: HashMap<(usize, Outlet), SymbolId>,
}

impl ValueNumbering {
    pub(super) fn fresh(&mut self) -> SymbolId {
        self.next += 1;
        SymbolId(self.next)
    }

    /// The number of a constant. Small ones are known by their elements, others by where these are.
    pub(super) fn constant(&mut self, value: &HostTensor) -> SymbolId {
        let Some(key) = ConstantKey::of(value) else { return self.fresh() };
        if let Some(&number) = self.constants.get(&key) {
            return number;
        }
        let number = self.fresh();
        self.constants.insert(key, number);
        number
    }

    /// The number of a value that a body computes.
    pub(super) fn result(&mut self, body: &Specialized, outlet: Outlet) -> SymbolId {
        let key = (std::ptr::from_ref(body) as usize, outlet);
        if let Some(&number) = self.results.get(&key) {
            return number;
        }
        let number = self.fresh();
        self.results.insert(key, number);
        number
    }
}

/// The values of a body that are known so far.
pub(super) struct Environment<'a> {
    pub(super) function: &'a Specialized,
    values: FastMap<Outlet, SymbolicValue>,
    /// The nodes that actions compute.
    pub(super) computed: FastSet<NodeId>,
}

impl<'a> Environment<'a> {
    pub(super) fn of(function: &'a Specialized) -> Environment<'a> {
        Environment { function, values: FastMap::default(), computed: FastSet::default() }
    }

    pub(super) fn define(&mut self, outlet: Outlet, value: SymbolicValue) {
        self.values.insert(outlet, value);
    }

    /// The value of an outlet; `None` for one that has not been computed yet.
    pub(super) fn value(
        &mut self,
        outlet: Outlet,
        numbers: &mut ValueNumbering,
    ) -> Option<SymbolicValue> {
        // Views of views may be many, so they are followed first.
        let (mut names, mut last) = (Vec::new(), outlet);
        while !self.values.contains_key(&last) {
            names.push(last);
            let Some(input) = self.viewed(last) else { break };
            last = input;
        }
        while let Some(name) = names.pop() {
            let value = self.derived(name, numbers)?;
            self.values.insert(name, value);
        }
        self.values.get(&outlet).cloned()
    }

    /// The outlet that one which needs no step is another name for, or a window of.
    fn viewed(&self, outlet: Outlet) -> Option<Outlet> {
        let node = &self.function.graph[outlet.node];
        let op = node.op.def().filter(|_| !self.computed.contains(&outlet.node))?;
        let is_view = matches!(op.lowering, Lowering::Alias(_) | Lowering::View(_));
        node.inputs().first().copied().filter(|_| is_view)
    }

    /// The value of an outlet that needs no step: a constant, or another name for a value.
    fn derived(&mut self, outlet: Outlet, numbers: &mut ValueNumbering) -> Option<SymbolicValue> {
        if self.computed.contains(&outlet.node) {
            return None;
        }
        let node = &self.function.graph[outlet.node];
        let op = node.op.def()?;
        if op.inputs.is_empty() {
            return node.constant().map(|x| SymbolicValue::whole(numbers.constant(x)));
        }
        match op.lowering {
            Lowering::Alias(_) => self.value(*node.inputs().first()?, numbers),
            Lowering::View(_) => self.window(outlet, numbers),
            _ => None,
        }
    }

    /// The window of its input that a view is.
    fn window(&mut self, outlet: Outlet, numbers: &mut ValueNumbering) -> Option<SymbolicValue> {
        let node = &self.function.graph[outlet.node];
        let op = node.op.def()?;
        let Lowering::View(rule) = op.lowering else { return None };
        let specs: SmallVec<[OperandSpec; 4]> =
            node.inputs().iter().map(|&input| self.spec(input)).collect::<Option<_>>()?;
        let call = OpCall::new(op, &node.attrs, &specs, None).ok()?;
        let views = call.with_context(rule).ok()?;
        let size = call.dtype(0).size()?;
        let source = self.value(node.inputs()[0], numbers)?;
        // The windows of all outputs: there may be thousands.
        for (index, view) in views.iter().enumerate().filter(|(_, view)| view.is_contiguous()) {
            let offset = if view.num_elements() == 0 { 0 } else { view.offset as usize * size };
            let start = source.start() + offset;
            let bytes = Some(start..start + view.num_elements() * size);
            let value = SymbolicValue { number: source.number, bytes };
            self.values.entry(Outlet::new(outlet.node, index)).or_insert(value);
        }
        self.values.get(&outlet).cloned()
    }

    /// Whether an outlet is a constant.
    pub(super) fn is_constant(&self, outlet: Outlet) -> bool {
        constant(&self.function.graph, outlet).is_some()
    }

    fn spec(&self, outlet: Outlet) -> Option<OperandSpec> {
        let node = &self.function.graph[outlet.node];
        if let Some(value) = node.constant() {
            return Some(OperandSpec::known(value.clone()));
        }
        let ty = self.function.graph.ty(outlet)?;
        Some(OperandSpec::new(ty.dtype, ty.shape.known()?))
    }

    /// The bytes of an outlet, where its type tells.
    pub(super) fn byte_len(&self, outlet: Outlet) -> Option<usize> {
        let ty = self.function.graph.ty(outlet)?;
        ty.shape.known()?.num_elements().checked_mul(ty.dtype.size()?)
    }

    /// The name of the function that the body stems from.
    pub(super) fn function_name(&self) -> &str {
        let mut names = self.function.graph.iter().map(|(_, node)| node.function.as_deref());
        names.find_map(|name| name).unwrap_or_default()
    }

    /// An outlet as text, for errors.
    pub(super) fn name(&self, outlet: Outlet) -> String {
        format!("{}:{}", self.function.graph[outlet.node].name, outlet.index)
    }
}

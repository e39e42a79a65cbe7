//! The gradient of a function while it is written: a graph that takes what it needs from the first.

use super::{
    function::unique,
    sketch::{add_argument, add_call, add_constant, constant, type_of},
};
use crate::{
    attr::Attrs,
    emit::{Emit, ValueId},
    error::Result,
    function::FunctionDef,
    graph::{Graph, NodeId, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    op::OpDef,
    pass::prune::prune,
    spec::ValueType,
};
use smallvec::SmallVec;

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
    ids: FastMap<Source, ValueId>,
    /// Values of the first function, and the arguments they come in by.
    taken: FastMap<Outlet, Outlet>,
    needed: Vec<Outlet>,
    seeds: Vec<NodeId>,
    kept: Vec<NodeId>,
}

impl<'a> Back<'a> {
    pub(super) fn new(forward: &'a Graph) -> Back<'a> {
        Back {
            forward,
            graph: Graph::new(),
            values: Vec::new(),
            ids: FastMap::default(),
            taken: FastMap::default(),
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
    pub(super) fn id(&mut self, outlet: Outlet) -> ValueId {
        self.id_of(Source::Forward(outlet))
    }

    pub(super) fn seed(&mut self, name: &str, ty: ValueType) -> Result<ValueId> {
        let outlet = add_argument(&mut self.graph, name, 0, ty)?;
        self.seeds.push(outlet.node);
        Ok(self.id_of(Source::Own(outlet)))
    }

    /// The value in the second graph.
    pub(super) fn outlet(&mut self, id: ValueId) -> Result<Outlet> {
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
                let ty = type_of(self.forward, outlet)?;
                let argument = add_argument(&mut self.graph, &node.name, 0, ty)?;
                self.kept.push(argument.node);
                self.needed.push(outlet);
                argument
            }
        };
        self.taken.insert(outlet, taken);
        Ok(taken)
    }

    /// The finished function, and the values of the first one that it takes. What rules computed
    /// for gradients that nobody asked for is left out.
    pub(super) fn finish(
        self,
        name: &str,
        results: Vec<Outlet>,
    ) -> Result<(FunctionDef, Vec<Outlet>)> {
        let Back { mut graph, seeds, kept, needed, .. } = self;
        let roots = results.iter().map(|outlet| outlet.node).chain(seeds.iter().copied());
        prune(&mut graph, roots)?;
        let kept = kept.into_iter().zip(needed).filter(|(node, _)| graph.contains(*node));
        let (kept, needed): (Vec<NodeId>, Vec<Outlet>) = kept.unzip();
        let args: Vec<NodeId> = seeds.into_iter().chain(kept).collect();
        for (index, &arg) in args.iter().enumerate() {
            let attrs = Attrs::clone(&graph[arg].attrs).with("index", index as i64);
            *graph.node_mut(arg).attrs = attrs.into();
        }
        let named = results.into_iter().enumerate();
        let def = FunctionDef {
            name: unique(name),
            graph,
            args,
            results: named.map(|(index, outlet)| (format!("dx_{index}"), outlet)).collect(),
            control_results: Vec::new(),
            attrs: Attrs::new(),
        };
        Ok((def, needed))
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

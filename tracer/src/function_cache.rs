//! The traces of a function, and which of them a call takes.
//!
//! The key of a trace is the type of the function and what around the call changes the graph: the
//! context, and the replica of a strategy that the thread runs. The device scopes around a call are no part of it; where a function runs is said by its
//! callers, and what its own code pins to a device stays there.

use crate::{
    concrete_function::ConcreteFunction, context, error::Result, nest::Nest, tensor::Tensor,
};
use ferroflow_ir::{FunctionType, TraceType, TypeDispatchTable};
use ferroflow_runtime::{Context, collective::Replica};
use std::sync::Arc;

/// A trace, and the types it was made for.
#[derive(Debug)]
pub(crate) struct CachedTrace {
    pub(crate) types: Vec<TraceType>,
    pub(crate) concrete: ConcreteFunction,
}

impl CachedTrace {
    /// The results as what the code returns.
    pub(crate) fn pack<R: Nest>(&self, results: Vec<Tensor>) -> Result<R> {
        let output = self.concrete.function_type().output.as_ref();
        R::from_leaves(output.unwrap_or(&TraceType::None), &mut results.into_iter())
    }
}

type Table = TypeDispatchTable<Arc<CachedTrace>>;

/// The traces of a function.
#[derive(Default, Debug)]
pub(crate) struct FunctionCache {
    /// By where they were made, the place of the first trace first.
    tables: Vec<(Place, Table)>,
    /// The trace of the last call that needed a lookup, with the types of its arguments.
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    place: Place,
    types: Vec<TraceType>,
    trace: Arc<CachedTrace>,
}

/// Where a call is made, as far as that changes the graph.
#[derive(Debug)]
struct Place {
    context: Context,
    /// The rank of the replica, and the number of replicas.
    replica: Option<(usize, usize)>,
}

impl Place {
    fn here() -> Place {
        Place { context: context::context(), replica: replica() }
    }

    /// Whether a call made here is made at this place.
    fn is_here(&self) -> bool {
        context::with_context_ref(|here| here.is(&self.context)) && self.replica == replica()
    }
}

fn replica() -> Option<(usize, usize)> {
    Replica::with_current(|replica| (replica.engine.rank(), replica.engine.size()))
}

impl FunctionCache {
    /// The trace of the last lookup, if the arguments have the same types.
    pub(crate) fn last(
        &self,
        have_types: impl FnOnce(&[TraceType]) -> bool,
    ) -> Option<&Arc<CachedTrace>> {
        let Last { place, types, trace } = self.last.as_ref()?;
        (place.is_here() && have_types(types)).then_some(trace)
    }

    /// The trace that fits arguments of this type best.
    pub(crate) fn find(&mut self, request: &FunctionType) -> Option<Arc<CachedTrace>> {
        let (_, table) = self.tables.iter_mut().find(|(place, _)| place.is_here())?;
        table.dispatch(request).map(|(_, trace)| trace.clone())
    }

    /// Remembers which trace arguments of exactly these types take.
    pub(crate) fn remember(&mut self, types: Vec<TraceType>, trace: &Arc<CachedTrace>) {
        self.last = Some(Last { place: Place::here(), types, trace: trace.clone() });
    }

    /// Adds a trace. Traces for objects that are gone make room, then the oldest beyond `limit`.
    pub(crate) fn insert(&mut self, ty: FunctionType, trace: Arc<CachedTrace>, limit: usize) {
        for (_, table) in &mut self.tables {
            table.retain(|ty, _| !stands_for_dropped(ty));
        }
        while self.len() >= limit.max(1) {
            self.remove_oldest();
        }
        self.tables.retain(|(_, table)| !table.is_empty());
        self.last = None;
        match self.tables.iter_mut().find(|(place, _)| place.is_here()) {
            Some((_, table)) => table.insert(ty, trace),
            None => {
                let mut table = Table::default();
                table.insert(ty, trace);
                self.tables.push((Place::here(), table));
            }
        }
    }

    /// Removes the oldest trace of the context that has had traces for longest.
    fn remove_oldest(&mut self) {
        let oldest = self.tables.iter_mut().find_map(|(_, table)| {
            let (ty, _) = table.iter().next()?;
            Some((ty.clone(), table))
        });
        if let Some((ty, table)) = oldest {
            table.remove(&ty);
        }
    }

    /// The type widened by those of the traces there are.
    pub(crate) fn generalize(&self, ty: &FunctionType) -> FunctionType {
        self.table().map_or_else(|| ty.clone(), |table| table.generalize(ty))
    }

    fn table(&self) -> Option<&Table> {
        let found = self.tables.iter().find(|(place, _)| place.is_here());
        found.map(|(_, table)| table)
    }

    /// The traces that a call here may take, oldest first.
    pub(crate) fn traces_here(&self) -> impl Iterator<Item = &Arc<CachedTrace>> {
        self.table().into_iter().flat_map(|table| table.iter().map(|(_, trace)| trace))
    }

    /// The traces, oldest first in each context.
    pub(crate) fn traces(&self) -> impl Iterator<Item = &Arc<CachedTrace>> {
        self.tables.iter().flat_map(|(_, table)| table.iter().map(|(_, trace)| trace))
    }

    /// The number of traces.
    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(|(_, table)| table.len()).sum()
    }
}

fn stands_for_dropped(ty: &FunctionType) -> bool {
    let types = ty.parameters.iter().filter_map(|parameter| parameter.ty.as_ref());
    types.into_iter().any(|ty| {
        let mut dropped = false;
        ty.for_each_custom(&mut |custom| dropped |= custom.placeholder_value().is_none());
        dropped
    })
}

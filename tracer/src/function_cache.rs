//! The traces of a function, and which of them a call takes.

use crate::concrete_function::ConcreteFunction;
use ferroflow_ir::{FunctionType, TraceType, TypeDispatchTable};
use std::sync::Arc;

/// A trace, and the types it was made for.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) types: Vec<TraceType>,
    pub(crate) concrete: ConcreteFunction,
}

/// The traces of a function.
#[derive(Default, Debug)]
pub(crate) struct FunctionCache {
    table: TypeDispatchTable<Arc<Trace>>,
    /// The trace of the last call that needed a lookup, and the types of its arguments.
    last: Option<(Vec<TraceType>, Arc<Trace>)>,
}

impl FunctionCache {
    /// The trace of the last lookup, if the arguments have the same types.
    pub(crate) fn last(
        &self,
        have_types: impl FnOnce(&[TraceType]) -> bool,
    ) -> Option<&Arc<Trace>> {
        let (types, trace) = self.last.as_ref()?;
        have_types(types).then_some(trace)
    }

    /// The trace that fits arguments of this type best.
    pub(crate) fn find(&mut self, request: &FunctionType) -> Option<Arc<Trace>> {
        self.table.dispatch(request).map(|(_, trace)| trace.clone())
    }

    /// Remembers which trace arguments of exactly these types take.
    pub(crate) fn remember(&mut self, types: Vec<TraceType>, trace: &Arc<Trace>) {
        self.last = Some((types, trace.clone()));
    }

    /// Adds a trace. Traces for objects that are gone make room, then the oldest beyond `limit`.
    pub(crate) fn insert(&mut self, ty: FunctionType, trace: Arc<Trace>, limit: usize) {
        self.table.retain(|ty, _| !stands_for_dropped(ty));
        while self.table.len() >= limit.max(1) {
            let Some((oldest, _)) = self.table.iter().next().cloned() else { break };
            self.table.remove(&oldest);
        }
        self.last = None;
        self.table.insert(ty, trace);
    }

    /// The type widened by those of the traces there are.
    pub(crate) fn generalize(&self, ty: &FunctionType) -> FunctionType {
        self.table.generalize(ty)
    }

    /// The traces, oldest first.
    pub(crate) fn traces(&self) -> impl Iterator<Item = &Arc<Trace>> {
        self.table.iter().map(|(_, trace)| trace)
    }

    /// The number of traces.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
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

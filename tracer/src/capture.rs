//! Values that a trace uses without being passed them.

use crate::{
    context::{self, SummaryScope},
    error::Result,
    tensor::{Repr, Symbolic, Tensor},
};
use ferroflow_ir::{DType, NodeId, Outlet, PartialShape, ValueType};
use ferroflow_runtime::{self as runtime, Resource, ResourceHandle};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// A value from outside a trace.
#[derive(Clone, Debug)]
pub enum Capture {
    /// A tensor; symbolic if it belongs to a trace around this one.
    Tensor(Tensor),
    /// State: known, and owned only where a function is asked to.
    Resource(ResourceHandle),
    /// Environment of each call, for summaries.
    Ambient(Ambient),
}

/// A value that each call of a function takes from the thread it is made on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ambient {
    /// The writer of summaries: a handle of a resource.
    SummaryWriter,
    /// Whether summaries are written: a `bool`.
    SummaryCondition,
}

impl Ambient {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ambient::SummaryWriter => "summary_writer",
            Ambient::SummaryCondition => "should_record_summaries",
        }
    }

    pub(crate) fn ty(self) -> ValueType {
        let dtype = match self {
            Ambient::SummaryWriter => DType::Resource,
            Ambient::SummaryCondition => DType::Bool,
        };
        ValueType::new(dtype, PartialShape::scalar())
    }

    /// The value here and now; an argument of the function in a trace.
    pub(crate) fn tensor(self) -> Result<Tensor> {
        if let Some(trace) = context::current_trace() {
            return trace.ambient(self);
        }
        let writer = context::summaries(|scope| match scope {
            SummaryScope::Writer(writer) => Some(writer.clone()),
            SummaryScope::RecordIf(_) => None,
        });
        let condition = context::summaries(|scope| match scope {
            SummaryScope::RecordIf(condition) => Some(condition.clone()),
            SummaryScope::Writer(_) => None,
        });
        Ok(match self {
            Ambient::SummaryWriter => writer.unwrap_or_else(no_writer),
            Ambient::SummaryCondition if writer.is_none() => false.into(),
            Ambient::SummaryCondition => condition.unwrap_or_else(|| true.into()),
        })
    }
}

/// The writer where there is none.
#[derive(Debug)]
struct NoWriter;

impl Resource for NoWriter {
    fn kind(&self) -> &'static str {
        "no summary writer"
    }
}

fn no_writer() -> Tensor {
    static NO_WRITER: OnceLock<Tensor> = OnceLock::new();
    NO_WRITER
        .get_or_init(|| ResourceHandle::owning("no_writer", Arc::new(NoWriter)).to_tensor().into())
        .clone()
}

/// Identity of captures.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Identity {
    /// The memory, and how it is seen.
    Memory(usize, DType, Vec<usize>),
    Resource(usize),
    Outlet(usize, Outlet),
    Ambient(Ambient),
}

impl Capture {
    /// The tensor as a capture; state is no longer kept alive by it.
    pub(crate) fn new(tensor: &Tensor) -> Result<Capture> {
        tensor.check()?;
        if let Repr::Eager(eager) = &tensor.0
            && eager.dtype() == DType::Resource
        {
            return Ok(Capture::Resource(ResourceHandle::of(eager.host()?)?.downgrade()));
        }
        Ok(Capture::Tensor(tensor.clone()))
    }

    /// Keeps what is captured alive.
    pub(crate) fn own(&mut self) -> Result<()> {
        if let Capture::Resource(handle) = self {
            *handle = ResourceHandle::owning(handle.name(), handle.resource()?);
        }
        Ok(())
    }

    /// The value as a tensor; for a call made here and now.
    ///
    /// # Errors
    ///
    /// When what surrounds the call cannot be a value of the trace it is in.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Capture::Tensor(tensor) => Ok(tensor.clone()),
            Capture::Resource(handle) => Ok(handle.to_tensor().into()),
            Capture::Ambient(ambient) => ambient.tensor(),
        }
    }

    /// The value for a function that runs eagerly whenever it is called; none for what is taken
    /// from the surroundings of each call.
    ///
    /// # Errors
    ///
    /// When it is symbolic.
    pub(crate) fn fixed(&self) -> Result<Option<runtime::CapturedInput>> {
        Ok(match self {
            Capture::Tensor(tensor) => {
                Some(runtime::CapturedInput::Tensor(tensor.eager()?.clone()))
            }
            Capture::Resource(handle) => Some(runtime::CapturedInput::Resource(handle.clone())),
            Capture::Ambient(_) => None,
        })
    }

    fn identity(&self) -> Option<Identity> {
        let tensor = match self {
            Capture::Resource(handle) => return Some(Identity::Resource(handle.id())),
            Capture::Ambient(ambient) => return Some(Identity::Ambient(*ambient)),
            Capture::Tensor(tensor) => tensor,
        };
        Some(match &tensor.0 {
            Repr::Symbolic(symbolic) => {
                let Symbolic { graph, outlet, .. } = &**symbolic;
                Identity::Outlet(Arc::as_ptr(graph) as usize, *outlet)
            }
            Repr::Failed(_) => return None,
            Repr::Eager(eager) => {
                let host = eager.host().ok().filter(|host| host.is_plain())?;
                let (start, dims) = (host.bytes().as_ptr() as usize, host.shape().dims().to_vec());
                Identity::Memory(start, host.dtype(), dims)
            }
        })
    }
}

/// The captures of a trace, in the order of their first use.
#[derive(Clone, Default, Debug)]
pub(crate) struct Captures {
    list: Vec<(Capture, Outlet)>,
    by_identity: HashMap<Identity, Outlet>,
}

impl Captures {
    /// Where the value came into the graph, if it did.
    pub(crate) fn find(&self, capture: &Capture) -> Option<Outlet> {
        self.by_identity.get(&capture.identity()?).copied()
    }

    pub(crate) fn add(&mut self, capture: Capture, outlet: Outlet) {
        if let Some(identity) = capture.identity() {
            self.by_identity.insert(identity, outlet);
        }
        self.list.push((capture, outlet));
    }

    /// The tensors among them, with the resources as handles.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = Tensor> {
        self.list.iter().filter_map(|(capture, _)| match capture {
            Capture::Tensor(tensor) => Some(tensor.clone()),
            Capture::Resource(handle) => Some(handle.to_tensor().into()),
            Capture::Ambient(_) => None,
        })
    }

    /// The tensor that an argument stands for.
    pub(crate) fn tensor_of(&self, argument: Outlet) -> Option<&Tensor> {
        let (capture, _) = self.list.iter().find(|(_, outlet)| *outlet == argument)?;
        match capture {
            Capture::Tensor(tensor) => Some(tensor),
            Capture::Resource(_) | Capture::Ambient(_) => None,
        }
    }

    /// The tensor outside that an argument was captured from; none for what surrounds a call,
    /// which is there only when the call is made.
    pub(crate) fn captured_as(&self, argument: Outlet) -> Option<Tensor> {
        let (capture, _) = self.list.iter().find(|(_, outlet)| *outlet == argument)?;
        match capture {
            Capture::Tensor(tensor) => Some(tensor.clone()),
            Capture::Resource(handle) => Some(handle.to_tensor().into()),
            Capture::Ambient(_) => None,
        }
    }

    /// The captures, and the arguments they came in by. First come those that the environment of a
    /// call give.
    pub(crate) fn into_parts(mut self) -> (Vec<Capture>, Vec<NodeId>) {
        self.list.sort_by_key(|(capture, _)| !matches!(capture, Capture::Ambient(_)));
        self.list.into_iter().map(|(capture, outlet)| (capture, outlet.node)).unzip()
    }
}

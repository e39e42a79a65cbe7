//! A graph under construction: what a function does while it is traced goes here.

mod calls;
mod finalize;
mod state;
mod values;

use crate::{
    capture::Capture,
    context,
    control_order::ControlOrder,
    error::{Error, Result},
    tensor::{Repr, Symbolic, Tensor},
    value::NestedValue,
    variable::Variable,
};
use ferroflow_ir::{
    Attrs, FunctionDef, FunctionLibrary, NodeId, OpDef, Outlet, ValueType, error::SourceLocation,
    free_name::free_name,
};
use ferroflow_runtime::Context;
use smallvec::SmallVec;
use state::{GraphState, Locked};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub(crate) use finalize::InitialValue;

/// The collection that variables are added to when they are made.
pub const GLOBAL_VARIABLES: &str = "variables";

/// The results of an op call.
pub type Outputs = SmallVec<[Tensor; 2]>;

/// A call of an op, as user code makes it.
pub(crate) struct Call<'a> {
    pub(crate) op: &'static OpDef,
    pub(crate) attrs: Attrs,
    pub(crate) inputs: &'a [&'a Tensor],
    /// Prefix of the node's name; the op's name if empty.
    pub(crate) name: &'a str,
    pub(crate) location: Option<SourceLocation>,
}

/// Semantics of a trace: the order of effects, and the owner of the variables that are created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Semantics {
    /// Effects happen in the order of the program; variables belong to their Rust values.
    Program,
    /// TensorFlow 1: effects happen where control dependencies ask for them.
    Graph,
}

/// Whether a trace may create variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Creation {
    Allowed,
    Forbidden,
}

/// A graph under construction.
pub(crate) struct FuncGraph {
    name: Arc<str>,
    owner: u64,
    context: Context,
    semantics: Semantics,
    creation: Creation,
    library: Arc<FunctionLibrary>,
    /// The graph around this one, if this is a branch or a part of a loop.
    parent: Option<Arc<FuncGraph>>,
    state: Locked,
}

/// A variable made while a function was traced.
#[derive(Clone)]
pub(crate) struct Created {
    pub(crate) variable: Variable,
    /// Its first value.
    pub(crate) initial: Tensor,
    pub(crate) location: SourceLocation,
}

/// A finished trace.
#[derive(Clone)]
pub(crate) struct Finished {
    pub(crate) def: FunctionDef,
    pub(crate) library: Arc<FunctionLibrary>,
    pub(crate) captures: Vec<Capture>,
    /// The variables it creates.
    pub(crate) created: Vec<Variable>,
    /// The first values of those of them that take theirs from the trace, and small ones of others.
    pub(crate) first_values: Vec<InitialValue>,
}

/// A position in a trace: see [`FuncGraph::mark`].
#[derive(Debug)]
pub(crate) struct Mark {
    n_calls: usize,
    order: ControlOrder,
    last: Option<NodeId>,
}

/// A number no other call of this function returns.
pub(crate) fn unique_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl fmt::Debug for FuncGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<trace of function `{}`>", self.name)
    }
}

impl FuncGraph {
    pub(crate) fn new(
        name: &str,
        owner: u64,
        semantics: Semantics,
        creation: Creation,
    ) -> Arc<FuncGraph> {
        Arc::new(FuncGraph {
            name: name.into(),
            owner,
            context: context::context(),
            semantics,
            creation,
            library: Arc::default(),
            parent: None,
            state: Locked::default(),
        })
    }

    /// The graph of a branch or of a part of a loop: what it uses from outside it takes from
    /// `parent`, the graph around it.
    pub(crate) fn inside(parent: Arc<FuncGraph>, base: &str) -> Arc<FuncGraph> {
        Arc::new(FuncGraph {
            name: format!("{base}_{}", unique_id()).into(),
            owner: parent.owner,
            context: parent.context.clone(),
            semantics: parent.semantics,
            creation: parent.creation,
            library: parent.library.clone(),
            parent: Some(parent),
            state: Locked::default(),
        })
    }

    /// The graph of the function that this is a part of.
    fn root(&self) -> &FuncGraph {
        self.parent.as_ref().map_or(self, |parent| parent.root())
    }

    /// The name of the function.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Makes the node of a tensor run even if no node uses it.
    pub(crate) fn require(&self, tensor: &Tensor) {
        if let Repr::Symbolic(symbolic) = &tensor.0 {
            self.state.with(|state| state.order.require(symbolic.outlet.node));
        }
    }

    /// Adds attributes to the node of a tensor, which its op need not know.
    pub(crate) fn note(&self, tensor: &Tensor, attrs: &Attrs) {
        if let Repr::Symbolic(symbolic) = &tensor.0 {
            self.state.with(|state| state.note(symbolic.outlet.node, attrs));
        }
    }

    pub(crate) fn library(&self) -> &Arc<FunctionLibrary> {
        &self.library
    }

    /// Adds an argument.
    pub(crate) fn argument(self: &Arc<FuncGraph>, name: &str, ty: ValueType) -> Result<Tensor> {
        let outlet = self.state.with(|state| state.add_passed_argument(name, ty.clone()))?;
        Ok(self.tensor(outlet, ty, None))
    }

    fn tensor(
        self: &Arc<FuncGraph>,
        outlet: Outlet,
        ty: ValueType,
        location: Option<SourceLocation>,
    ) -> Tensor {
        Tensor::from_symbolic(Symbolic { graph: self.clone(), outlet, ty, location })
    }

    /// The name of an outlet, such as `add:0`.
    pub(crate) fn outlet_name(&self, outlet: Outlet) -> String {
        format!("{}:{}", self.node_name(outlet.node), outlet.index)
    }

    /// The name of a node.
    pub(crate) fn node_name(&self, id: NodeId) -> String {
        self.state.with(|state| state.node_name(id))
    }

    /// The name of a new variable for which this one is asked: in code with the semantics of
    /// TensorFlow 1, one that no variable has yet.
    pub(crate) fn variable_name(&self, base: String) -> String {
        if self.semantics == Semantics::Program {
            return base;
        }
        let created = self.root().state.with(|state| state.created.clone());
        free_name(&base, |name| created.iter().any(|c| c.variable.name() == name))
    }

    /// Notes a variable that the function creates.
    ///
    /// # Errors
    ///
    /// [`Error::VariableCreation`] when the trace may not.
    pub(crate) fn created(&self, created: Created) -> Result<()> {
        if self.creation == Creation::Forbidden {
            return Err(Error::VariableCreation {
                function: self.root().name.to_string(),
                variable: created.variable.name().into(),
                location: Some(created.location),
            });
        }
        let variable = created.variable.clone();
        self.root().state.with(|state| state.created.push(created));
        if self.semantics == Semantics::Graph {
            self.collect(GLOBAL_VARIABLES, NestedValue::Variable(variable));
        }
        Ok(())
    }

    /// Adds a value to a collection.
    pub(crate) fn collect(&self, name: &str, value: NestedValue) {
        let add = |state: &mut GraphState| {
            state.collections.entry(name.into()).or_default().push(value);
        };
        self.root().state.with(add);
    }

    /// The values of a collection.
    pub(crate) fn collection(&self, name: &str) -> Vec<NestedValue> {
        let found = self.root().state.with(|state| state.collections.get(name).cloned());
        found.unwrap_or_default()
    }

    /// Whose semantics the code has.
    pub(crate) fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The tensors of the graph around this one that it uses.
    pub(crate) fn captured(&self) -> Vec<Tensor> {
        self.state.with(|state| state.captures.tensors().collect())
    }

    /// Where the trace stands, to come back to.
    pub(crate) fn mark(&self) -> Mark {
        self.state.with(|state| state.mark())
    }

    /// Takes back the calls since the mark.
    pub(crate) fn roll_back(&self, mark: Mark) -> Result<()> {
        self.state.with(|state| state.roll_back(mark))
    }
}

/// The error of a tensor used outside the trace it belongs to.
pub(crate) fn out_of_scope(tensor: &Tensor, symbolic: &Symbolic, used_in: String) -> Error {
    Error::OutOfScope {
        tensor: tensor.to_string(),
        defined_in: symbolic.graph.name().into(),
        location: symbolic.location,
        used_in,
    }
}

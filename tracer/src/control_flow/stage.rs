//! Branches and loops as calls in a trace: functions of what their parts use, and the op that calls
//! them.

use crate::{
    context::{self, Inside},
    error::{Error, Result},
    func_graph::{Call, FuncGraph},
    ops::{self, NamedOp},
    tensor::{Repr, Tensor},
};
use ferroflow_ir::{
    AttrValue, Attrs, DType, Effect, FunctionDef, NameAttrList, PartialShape, ValueType,
    error::SourceLocation, ops::names,
};
use std::sync::Arc;

/// A part of a branch or loop that is being traced: calls go to it until it is closed or dropped.
#[derive(Debug)]
pub(crate) struct RegionTrace {
    inside: Inside,
}

impl RegionTrace {
    /// Opens a part of the trace at hand, whose function has a name that begins with `name`.
    ///
    /// # Errors
    ///
    /// When nothing is traced.
    pub(crate) fn open(name: &str) -> Result<RegionTrace> {
        let parent = context::current_trace().ok_or_else(|| Error::Conversion {
            expected: "a trace around a part of a graph".into(),
            found: "none".into(),
        })?;
        Ok(RegionTrace { inside: Inside::enter(FuncGraph::inside(parent, name)) })
    }

    /// Adds an argument.
    pub(crate) fn argument(&self, name: &str, ty: ValueType) -> Result<Tensor> {
        self.inside.graph().argument(name, ty)
    }

    /// Ends the part: it returns these tensors.
    ///
    /// # Errors
    ///
    /// When one of them belongs to a trace that is not around this part.
    pub(crate) fn close(self, outputs: Vec<Tensor>) -> Result<Closed> {
        Closed::of(self.leave(), outputs)
    }

    /// Calls go to it no longer.
    pub(crate) fn leave(self) -> Arc<FuncGraph> {
        self.inside.graph().clone()
    }
}

impl Closed {
    /// Adds an argument.
    pub(crate) fn argument(&mut self, name: &str, ty: ValueType) -> Result<Tensor> {
        self.graph.argument(name, ty)
    }

    /// A part that was left: it returns these tensors.
    ///
    /// # Errors
    ///
    /// As [`RegionTrace::close`].
    pub(crate) fn of(graph: Arc<FuncGraph>, outputs: Vec<Tensor>) -> Result<Closed> {
        let outputs = outputs.iter().map(|output| graph.own(output, &|| "result".into()));
        let outputs = outputs.collect::<Result<_>>()?;
        Ok(Closed { graph, outputs })
    }
}

impl Closed {
    /// The function of a part that is not called where it was traced, and the tensors of the graph
    /// around it that it takes after its arguments.
    ///
    /// # Errors
    ///
    /// As [`RegionTrace::close`].
    pub(crate) fn into_function(self) -> Result<(FunctionDef, Vec<Tensor>)> {
        let captures = self.graph.captured();
        let def = self.graph.finish_inside(&self.outputs, &captures, false)?;
        Ok((def, captures))
    }
}

/// A part that has been traced.
#[derive(Debug)]
pub(crate) struct Closed {
    graph: Arc<FuncGraph>,
    pub(crate) outputs: Vec<Tensor>,
}

/// A choice between branches.
pub(crate) enum ChoiceKind {
    /// By a bool.
    If,
    /// By a number.
    Case,
}

/// Stages a choice between branches that return the same number of tensors, of the same dtypes.
/// Shapes that differ are generalised.
pub(crate) fn choose(
    choice: ChoiceKind,
    chooser: &Tensor,
    branches: Vec<Closed>,
    location: SourceLocation,
) -> Result<Vec<Tensor>> {
    static IF: [NamedOp; 2] = [NamedOp::new(names::STATELESS_IF), NamedOp::new(names::IF)];
    static CASE: [NamedOp; 2] = [NamedOp::new(names::STATELESS_CASE), NamedOp::new(names::CASE)];
    let types = joined(&branches);
    let captures = captures(branches.iter());
    let (mut functions, mut has_effects) = (Vec::new(), false);
    for branch in &branches {
        let def = branch.graph.finish_inside(&branch.outputs, &captures, false)?;
        functions.push(shared(def, &mut has_effects)?);
    }
    let (ops, name) = match choice {
        ChoiceKind::If => (&IF, "cond"),
        ChoiceKind::Case => (&CASE, "switch_case/indexed_case"),
    };
    let attrs = result_attrs(Attrs::new(), &types, "Tout");
    let attrs = match (choice, &functions[..]) {
        (ChoiceKind::If, [then, otherwise]) => {
            attrs.with("then_branch", then.clone()).with("else_branch", otherwise.clone())
        }
        _ => attrs.with("branches", AttrValue::Funcs(functions)),
    };
    let inputs: Vec<&Tensor> = std::iter::once(chooser).chain(&captures).collect();
    let op = ops[usize::from(has_effects)].record();
    let call = Call { op, attrs, inputs: &inputs, name, location: Some(location) };
    staged(call, &types)
}

/// Stages a call of each part in its replica of a strategy; returns the results of all, in order.
pub(crate) fn replicate(
    strategy: &Tensor,
    replicas: &[Closed],
    location: SourceLocation,
) -> Result<Vec<Tensor>> {
    static CALL: NamedOp = NamedOp::new(names::REPLICATED_CALL);
    let outputs = replicas.iter().flat_map(|replica| &replica.outputs);
    let types: Vec<ValueType> = outputs.map(Tensor::value_type).collect();
    let captures = captures(replicas);
    let mut functions = Vec::new();
    for replica in replicas {
        let def = replica.graph.finish_inside(&replica.outputs, &captures, false)?;
        functions.push(shared(def, &mut true)?);
    }
    let attrs = result_attrs(Attrs::new(), &types, "Tout");
    let attrs = attrs.with("replicas", AttrValue::Funcs(functions));
    let inputs: Vec<&Tensor> = std::iter::once(strategy).chain(&captures).collect();
    let name = "replicated_call";
    staged(
        Call { op: CALL.record(), attrs, inputs: &inputs, name, location: Some(location) },
        &types,
    )
}

/// A loop that has been traced.
pub(crate) struct StagedLoop<'a> {
    /// Returns a bool.
    pub(crate) condition: Closed,
    /// Returns the variables after an iteration.
    pub(crate) body: Closed,
    /// The variables before the loop.
    pub(crate) initial: &'a [Tensor],
    /// Their types, in all iterations.
    pub(crate) types: &'a [ValueType],
    /// Number of iterations that may run at once; a hint that is passed on.
    pub(crate) parallel_iterations: i64,
}

/// Stages a loop; returns its variables after it. What the parts use from outside is passed through
/// the loop unchanged.
pub(crate) fn repeat(repeated: StagedLoop<'_>, location: SourceLocation) -> Result<Vec<Tensor>> {
    static WHILE: [NamedOp; 2] = [NamedOp::new(names::STATELESS_WHILE), NamedOp::new(names::WHILE)];
    let StagedLoop { condition, body, initial, types, parallel_iterations } = repeated;
    let captures = captures([&condition, &body]);
    let mut has_effects = false;
    let condition = condition.graph.finish_inside(&condition.outputs, &captures, false)?;
    let condition = shared(condition, &mut has_effects)?;
    let body = body.graph.finish_inside(&body.outputs, &captures, true)?;
    let body = shared(body, &mut has_effects)?;
    let mut types = types.to_vec();
    types.extend(captures.iter().map(Tensor::value_type));
    let attrs = result_attrs(Attrs::new(), &types, "T")
        .with("cond", AttrValue::Func(condition))
        .with("body", AttrValue::Func(body))
        .with("parallel_iterations", parallel_iterations);
    let inputs: Vec<&Tensor> = initial.iter().chain(&captures).collect();
    let op = WHILE[usize::from(has_effects)].record();
    let call = Call { op, attrs, inputs: &inputs, name: "while", location: Some(location) };
    let mut outputs = staged(call, &types)?;
    outputs.truncate(initial.len());
    Ok(outputs)
}

fn staged(call: Call<'_>, types: &[ValueType]) -> Result<Vec<Tensor>> {
    let trace = context::current_trace()
        .ok_or_else(|| Error::Conversion { expected: "a trace".into(), found: "none".into() })?;
    Ok(trace.call_typed(call, Some(types))?.into_vec())
}

fn result_attrs(attrs: Attrs, types: &[ValueType], list: &'static str) -> Attrs {
    let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
    let shapes: Vec<PartialShape> = types.iter().map(|ty| ty.shape.clone()).collect();
    attrs.with(list, dtypes).with("output_shapes", shapes)
}

/// Captures of all parts, each once.
fn captures<'a>(parts: impl IntoIterator<Item = &'a Closed>) -> Vec<Tensor> {
    let mut found: Vec<Tensor> = Vec::new();
    for tensor in parts.into_iter().flat_map(|part| part.graph.captured()) {
        if !found.iter().any(|other| is_same(other, &tensor)) {
            found.push(tensor);
        }
    }
    found
}

fn is_same(a: &Tensor, b: &Tensor) -> bool {
    match (&a.0, &b.0) {
        (Repr::Symbolic(a), Repr::Symbolic(b)) => {
            Arc::ptr_eq(&a.graph, &b.graph) && a.outlet == b.outlet
        }
        _ => false,
    }
}

/// Puts a function in the library of the trace.
fn shared(def: FunctionDef, has_effects: &mut bool) -> Result<NameAttrList> {
    let trace = context::current_trace()
        .ok_or_else(|| Error::Conversion { expected: "a trace".into(), found: "none".into() })?;
    let library = trace.library();
    *has_effects |=
        def.graph.iter().any(|(_, node)| library.effect_of(&node.op, &node.attrs) != Effect::Pure);
    let name = def.name.clone();
    library.insert(def)?;
    Ok(NameAttrList::new(name))
}

/// The types that the results of all branches have.
fn joined(branches: &[Closed]) -> Vec<ValueType> {
    let mut types: Vec<ValueType> = Vec::new();
    for branch in branches {
        for (index, output) in branch.outputs.iter().enumerate() {
            let ty = output.value_type();
            match types.get_mut(index) {
                Some(joined) => *joined = joined.generalize(&ty),
                None => types.push(ty),
            }
        }
    }
    types
}

/// A condition: its value, or the scalar that will have it when the trace runs.
pub enum Condition {
    /// Known now.
    Known(bool),
    /// Part of the trace.
    Staged(Tensor),
}

/// Condition that a tensor stands for.
///
/// # Errors
///
/// When it is not one truth value.
#[track_caller]
pub(crate) fn condition(tensor: &Tensor) -> Result<Condition> {
    if !tensor.is_symbolic() || !context::is_tracing() {
        return tensor.to_bool().map(Condition::Known);
    }
    let wrong = |expected: &'static str| {
        Err(Error::Conversion { expected: expected.into(), found: tensor.to_string() })
    };
    if tensor.dtype() != DType::Bool {
        return wrong("a condition of dtype bool");
    }
    if tensor.shape().known().is_some_and(|shape| shape.num_elements() != 1) {
        return wrong("a condition of one element");
    }
    scalar(tensor).map(Condition::Staged)
}

/// The tensor, of one element, as a scalar.
#[track_caller]
pub(crate) fn scalar(tensor: &Tensor) -> Result<Tensor> {
    if tensor.shape().rank() == Some(0) {
        return Ok(tensor.clone());
    }
    ops::reshape(tensor, &Tensor::from(Vec::<i32>::new()))
}

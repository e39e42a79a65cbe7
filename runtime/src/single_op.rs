//! Ops as functions of one node, for those that run as programs: calls of functions, and formulas
//! that are used again and again.

use crate::{
    compile::compile,
    eager_tensor::{EagerTensor, Results},
    error::Result,
    executor::Executable,
    placement::PlacementRequest,
    resource::value_type,
    scope::Scope,
};
use ferroflow_ir::{
    AttrValue, Attrs, FunctionDef, NodeDef, OpDef, Outlet, PartialShape, ValueType,
    build::GraphBuilder, pass::specialize::Argument,
};
use smallvec::SmallVec;

/// Runs an op that calls functions.
///
/// # Errors
///
/// Whatever fails in the functions.
pub(crate) fn call_op(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    let inputs: SmallVec<[&EagerTensor; 4]> = inputs.iter().collect();
    SingleOp::new(scope, op, attrs, &inputs, &[])?.run(scope, &inputs)
}

/// An op compiled as a program.
#[derive(Debug)]
pub(crate) struct SingleOp {
    executable: Executable,
    /// Inputs that are arguments of the program.
    args: SmallVec<[usize; 4]>,
}

impl SingleOp {
    /// Compiles a call with inputs like these; those marked `fixed` always have the same value.
    ///
    /// # Errors
    ///
    /// What makes the call impossible, whatever the data.
    pub(crate) fn new(
        scope: Scope<'_>,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
        fixed: &[bool],
    ) -> Result<SingleOp> {
        SingleOp::placed(scope, op, attrs, inputs, fixed, &PlacementRequest::default())
    }

    /// Compiles a call as [`new`](SingleOp::new) does, to run where `request` says; its `args` are
    /// those of all inputs.
    ///
    /// # Errors
    ///
    /// As [`new`](SingleOp::new).
    pub(crate) fn placed(
        scope: Scope<'_>,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
        fixed: &[bool],
        request: &PlacementRequest,
    ) -> Result<SingleOp> {
        let is_arg = |index: &usize| fixed.get(*index) != Some(&true);
        let args: SmallVec<[usize; 4]> = (0..inputs.len()).filter(is_arg).collect();
        let def = function(op, attrs, inputs, &args)?;
        let types: Vec<Argument> =
            args.iter().map(|&index| value_type(inputs[index]).into()).collect();
        let devices = args.iter().map(|&index| request.args.get(index).cloned().flatten());
        let request = PlacementRequest { device: request.device.clone(), args: devices.collect() };
        let executable = compile(&scope.owned(), &def, &types, Vec::new(), &request)?;
        Ok(SingleOp { executable, args })
    }

    /// The memory that the program holds while it runs, and keeps for the next run.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.executable.arena_bytes()
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// Whatever the data makes impossible.
    pub(crate) fn run(&self, scope: Scope<'_>, inputs: &[&EagerTensor]) -> Result<Results> {
        let args = self.args.iter().map(|&index| inputs[index]);
        Ok(self.executable.run(scope, args)?.into_iter().collect())
    }
}

/// A function of the inputs `args` that calls the op on them and on the values of the others.
fn function(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&EagerTensor],
    args: &[usize],
) -> Result<FunctionDef> {
    let mut builder = GraphBuilder::new();
    let mut outlets: SmallVec<[Outlet; 4]> = SmallVec::new();
    for (index, input) in inputs.iter().enumerate() {
        outlets.push(match args.contains(&index) {
            true => builder.arg(&format!("arg{index}"), value_type(input))?,
            false => builder.constant(&format!("fixed{index}"), input.host()?.clone())?,
        });
    }
    let called = attrs.iter().find_map(|(_, value)| match value {
        AttrValue::Func(function) => Some(function.name.to_string()),
        _ => None,
    });
    let name = called.unwrap_or_else(|| op.name.to_string());
    let mut def = builder.finish_function(&format!("call of {name}"), &[]);
    let types = op.output_dtypes(attrs)?;
    let outputs = types.iter().map(|&dtype| ValueType::new(dtype, PartialShape::Unknown));
    let node = NodeDef::new(op.name, op, attrs.clone()).with_inputs(outlets).with_outputs(outputs);
    let id = def.graph.add(node)?;
    def.results =
        (0..types.len()).map(|index| (format!("result_{index}"), Outlet::new(id, index))).collect();
    Ok(def)
}

//! Arguments and results of traces.

use crate::{
    error::{Error, Result},
    func_graph::FuncGraph,
    function_spec::ArgSpec,
    ops,
    tensor::Tensor,
    value::{NestedValue, TensorLeaves},
    variable::Variable,
};
use ferroflow_ir::{DType, PartialShape, TraceType, ValueType, trace_type::VariableSpec};
use std::{panic::Location, sync::Arc};

pub(super) fn types(values: &[NestedValue]) -> Vec<TraceType> {
    let mut aliases = Default::default();
    values.iter().map(|value| value.trace_type(&mut aliases)).collect()
}

pub(super) fn collect_leaves(values: &[NestedValue], leaves: &mut TensorLeaves) {
    let mut aliases = Default::default();
    values.iter().for_each(|value| value.leaves(&mut aliases, leaves));
}

/// Spec of further arguments in a signature that is inferred.
pub(super) fn inferred_spec(ty: &TraceType) -> ArgSpec {
    match ty {
        TraceType::Tensor(spec) => {
            let shape = match spec.shape.rank() {
                Some(rank) => PartialShape::of_rank(rank),
                None => PartialShape::Unknown,
            };
            ArgSpec::Type(TraceType::tensor(spec.dtype, shape))
        }
        _ => ArgSpec::HostValue,
    }
}

/// Values of these types that stand for the arguments of a trace.
pub(crate) fn placeholders<'a>(
    graph: &Arc<FuncGraph>,
    names: impl Iterator<Item = &'a str>,
    types: &[TraceType],
) -> Result<Vec<NestedValue>> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut args = Vec::with_capacity(types.len());
    for (name, ty) in names.zip(types) {
        args.push(NestedValue::build(ty, &mut |leaf| match leaf {
            TraceType::Variable(spec) => match variables.get(spec.alias_id) {
                Some(variable) => Ok(NestedValue::Variable(variable.clone())),
                None => {
                    let ty = ValueType::handle(DType::Resource, spec.value.clone());
                    let handle = graph.argument(name, ty)?;
                    let variable = Variable::argument(handle, VariableSpec::clone(spec), name);
                    variables.push(variable.clone());
                    Ok(NestedValue::Variable(variable))
                }
            },
            TraceType::Tensor(spec) => {
                let name = if spec.name.is_empty() { name } else { &spec.name };
                let ty = ValueType::new(spec.dtype, spec.shape.clone());
                Ok(NestedValue::Tensor(graph.argument(name, ty)?))
            }
            other => unreachable!("{other} is no leaf"),
        })?);
    }
    Ok(args)
}

/// The type of what traced code returned, and its tensors.
pub(crate) fn outputs(function: &str, value: NestedValue) -> Result<(TraceType, Vec<Tensor>)> {
    let value = returned(function, value)?;
    let mut aliases = Default::default();
    let ty = value.trace_type(&mut aliases);
    let (mut aliases, mut tensors) = Default::default();
    value.leaves(&mut aliases, &mut tensors);
    Ok((ty, tensors.into_vec()))
}

/// Result that is returned, made of tensors: variables are read.
fn returned(function: &str, value: NestedValue) -> Result<NestedValue> {
    let all = |items: Vec<NestedValue>| -> Result<Vec<NestedValue>> {
        items.into_iter().map(|item| returned(function, item)).collect()
    };
    Ok(match value {
        NestedValue::None => NestedValue::None,
        NestedValue::Tensor(tensor) => NestedValue::Tensor(tensor),
        NestedValue::Variable(variable) => {
            NestedValue::Tensor(ops::variable::read_at_end(&variable, Location::caller())?)
        }
        NestedValue::List(items) => NestedValue::List(all(items)?),
        NestedValue::Tuple(items) => NestedValue::Tuple(all(items)?),
        NestedValue::Struct(name, fields) => {
            let field = |(key, value)| Ok((key, returned(function, value)?));
            NestedValue::Struct(name, fields.into_iter().map(field).collect::<Result<_>>()?)
        }
        NestedValue::Dict(entries) => {
            let entry = |(key, value)| Ok((key, returned(function, value)?));
            NestedValue::Dict(entries.into_iter().map(entry).collect::<Result<_>>()?)
        }
        NestedValue::Literal(_) | NestedValue::Custom(_) => {
            return Err(Error::Output { function: function.into(), found: format!("{value:?}") });
        }
    })
}

//! Arguments and results as values of files.

use ferroflow_ir::{
    TensorSpec,
    trace_type::{Literal, MapKey},
};
use ferroflow_runtime::EagerTensor;
use ferroflow_saved_model::{PythonValue, TensorLeaf};
use ferroflow_tracer::{NestedValue, Result, Tensor};

/// A tensor of eager or traced code, in a value of a file.
#[derive(Clone, Debug)]
pub(super) struct LoadedTensor(pub(super) Tensor);

impl From<EagerTensor> for LoadedTensor {
    fn from(tensor: EagerTensor) -> LoadedTensor {
        LoadedTensor(tensor.into())
    }
}

impl TensorLeaf for LoadedTensor {
    fn spec(&self) -> TensorSpec {
        self.0.spec()
    }

    fn eager(&self) -> Option<&EagerTensor> {
        self.0.eager().ok()
    }
}

/// An argument as a value of a file. A variable is passed as the value it has.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when files have no such value.
pub(super) fn argument(value: &NestedValue) -> Result<PythonValue<LoadedTensor>> {
    let all = |values: &[NestedValue]| values.iter().map(argument).collect::<Result<Vec<_>>>();
    Ok(match value {
        NestedValue::None => PythonValue::None,
        NestedValue::Literal(literal) => of_literal(literal)
            .ok_or_else(|| value.is_not("a number that a 64-bit integer holds"))?,
        NestedValue::Tensor(tensor) => PythonValue::Tensor(LoadedTensor(tensor.clone())),
        NestedValue::Variable(variable) => PythonValue::Tensor(LoadedTensor(variable.read()?)),
        NestedValue::List(items) => PythonValue::List(all(items)?),
        NestedValue::Tuple(items) => PythonValue::Tuple(all(items)?),
        NestedValue::Dict(entries) => {
            let entries = entries.iter().map(|(key, entry)| match key {
                MapKey::Str(name) => Ok((name.to_string(), argument(entry)?)),
                _ => Err(value.is_not("a map with texts as keys")),
            });
            PythonValue::Dict(entries.collect::<Result<_>>()?)
        }
        NestedValue::Struct(name, fields) => {
            let fields = fields.iter().map(|(key, field)| Ok((key.to_string(), argument(field)?)));
            let fields = fields.collect::<Result<_>>()?;
            PythonValue::NamedTuple { name: name.to_string(), fields }
        }
        NestedValue::Custom(_) => return Err(value.is_not("a value that files know")),
    })
}

fn of_literal(literal: &Literal) -> Option<PythonValue<LoadedTensor>> {
    Some(match literal {
        Literal::Bool(value) => PythonValue::Bool(*value),
        Literal::Int(value) => PythonValue::Int(*value),
        Literal::UInt(value) => PythonValue::Int(i64::try_from(*value).ok()?),
        Literal::Float(value) => PythonValue::Float(*value),
        Literal::Str(text) => PythonValue::String(text.to_string()),
        Literal::DType(dtype) => PythonValue::DType(*dtype),
        Literal::Shape(shape) => PythonValue::Shape(shape.clone()),
    })
}

/// The result that a value of a file is. One of several tensors, such as a sparse tensor, is their tuple.
pub(super) fn result(value: PythonValue<LoadedTensor>) -> NestedValue {
    let all = |values: Vec<PythonValue<LoadedTensor>>| values.into_iter().map(result).collect();
    let literal = NestedValue::Literal;
    match value {
        PythonValue::Tensor(LoadedTensor(tensor)) => NestedValue::Tensor(tensor),
        PythonValue::None => NestedValue::None,
        PythonValue::Bool(value) => literal(Literal::Bool(value)),
        PythonValue::Int(value) => literal(Literal::Int(value)),
        PythonValue::Float(value) => literal(Literal::Float(value)),
        PythonValue::String(text) => literal(Literal::Str(text.into())),
        PythonValue::DType(dtype) => literal(Literal::DType(dtype)),
        PythonValue::Shape(shape) => literal(Literal::Shape(shape)),
        PythonValue::List(values) => NestedValue::List(all(values)),
        PythonValue::Tuple(values) => NestedValue::Tuple(all(values)),
        PythonValue::Dict(fields) => {
            let keyed = |(name, field): (String, _)| (MapKey::Str(name.into()), result(field));
            NestedValue::Dict(fields.into_iter().map(keyed).collect())
        }
        PythonValue::NamedTuple { name, fields } => {
            let fields = fields.into_iter().map(|(name, field)| (name.into(), result(field)));
            NestedValue::Struct(name.into(), fields.collect())
        }
        PythonValue::Composite(composite) => {
            NestedValue::tuple(composite.components.into_iter().map(|LoadedTensor(tensor)| tensor))
        }
    }
}

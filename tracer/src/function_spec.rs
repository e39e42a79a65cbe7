//! Parameters of a function: the names and order of its parameters, their defaults, and what an
//! input signature asks of them.

use crate::{
    error::{Error, Result},
    tensor::Tensor,
    value::{Aliases, NestedValue},
};
use ferroflow_ir::{
    DType, FunctionType, HostTensor, PartialShape, TensorSpec, TraceType,
    function_type::{Parameter, ParameterKind},
    trace_type::{Literal, PythonShape},
};
use std::{fmt, sync::Arc};

/// Spec of an argument in a signature.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgSpec {
    /// This type; Rust values are converted to the tensors it asks for.
    Type(TraceType),
    /// A list whose elements are all of one spec, of this length if one is given.
    ListOf(Box<ArgSpec>, Option<usize>),
    /// Any value of Rust; each makes a trace of its own.
    HostValue,
    /// A tensor of this shape; each dtype makes a trace of its own.
    AnyDType(PartialShape),
}

impl fmt::Display for ArgSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgSpec::Type(ty) => write!(f, "{ty}"),
            ArgSpec::ListOf(item, Some(length)) => write!(f, "List[{item}; {length}]"),
            ArgSpec::ListOf(item, None) => write!(f, "List[{item}; any]"),
            ArgSpec::HostValue => f.write_str("Any"),
            ArgSpec::AnyDType(shape) => {
                write!(f, "TensorSpec(shape={}, dtype=any, name=None)", PythonShape(shape))
            }
        }
    }
}

impl From<TensorSpec> for ArgSpec {
    fn from(spec: TensorSpec) -> ArgSpec {
        ArgSpec::Type(TraceType::Tensor(spec))
    }
}

impl From<TraceType> for ArgSpec {
    fn from(ty: TraceType) -> ArgSpec {
        ArgSpec::Type(ty)
    }
}

/// The spec of tensors of this dtype and shape; `None` is a size that may be any.
///
/// ```
/// use ferroflow_ir::DType;
/// assert_eq!(ferroflow_tracer::spec(DType::F32, [None, Some(3)]).to_string(), "float32[?,3]");
/// ```
pub fn spec(dtype: DType, dims: impl IntoIterator<Item = Option<usize>>) -> TensorSpec {
    TensorSpec::new(dtype, PartialShape::ranked(dims))
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct ParameterSpec {
    /// The name.
    pub name: Arc<str>,
    /// Ways in which arguments may be passed for it.
    pub kind: ParameterKind,
    /// Value when no argument is passed; it must be given if `None`.
    pub default: Option<NestedValue>,
}

impl ParameterSpec {
    /// A parameter that must be given, by position or name.
    pub fn new(name: &str) -> ParameterSpec {
        let kind = ParameterKind::PositionalOrKeyword;
        ParameterSpec { name: name.into(), kind, default: None }
    }

    /// The same parameter, with a value for when no argument is given.
    #[must_use]
    pub fn or(self, default: impl Into<NestedValue>) -> ParameterSpec {
        ParameterSpec { default: Some(default.into()), ..self }
    }

    /// The same parameter, given in another way.
    #[must_use]
    pub fn of_kind(self, kind: ParameterKind) -> ParameterSpec {
        ParameterSpec { kind, ..self }
    }
}

/// Arguments in the order of the parameters, and the types by which a trace is chosen for them.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) values: Vec<NestedValue>,
    pub(crate) types: Vec<TraceType>,
}

/// Parameters of a function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionSpec {
    pub(crate) name: Arc<str>,
    pub(crate) parameters: Vec<ParameterSpec>,
    pub(crate) signature: Option<Vec<ArgSpec>>,
}

impl FunctionSpec {
    /// Puts arguments in the order of the parameters.
    pub(crate) fn bind(
        &self,
        args: Vec<NestedValue>,
        kwargs: Vec<(&str, NestedValue)>,
    ) -> Result<Vec<NestedValue>> {
        let shown = (shown(&args), shown_named(&kwargs));
        bind(&self.parameters, args, kwargs).map_err(|problem| self.problem(problem, shown))
    }

    /// The types of arguments in order, and the arguments as the signature asks for them.
    pub(crate) fn canonical(&self, values: Vec<NestedValue>) -> Result<Bound> {
        let Some(signature) = &self.signature else {
            let mut aliases = Aliases::default();
            let types = values.iter().map(|value| value.trace_type(&mut aliases)).collect();
            return Ok(Bound { values, types });
        };
        let shown = || (shown(&values), String::new());
        if signature.len() > values.len() {
            let problem = format!(
                "the input signature has {} specs for {} arguments",
                signature.len(),
                values.len()
            );
            return Err(self.problem(problem, shown()));
        }
        let mut aliases = Aliases::default();
        let host = ArgSpec::HostValue;
        let specs = signature.iter().chain(std::iter::repeat(&host));
        let cast = values.iter().zip(specs).map(|(value, spec)| spec.cast(value, &mut aliases));
        let cast: Result<Vec<(NestedValue, TraceType)>, String> = cast.collect();
        let (values, types) =
            cast.map_err(|problem| self.problem(problem, shown()))?.into_iter().unzip();
        Ok(Bound { values, types })
    }

    /// The type of the function for arguments of these types.
    pub(crate) fn function_type(&self, types: &[TraceType]) -> FunctionType {
        let mut parameters = Vec::with_capacity(types.len());
        for (ParameterSpec { name, kind, .. }, ty) in self.parameters.iter().zip(types) {
            // Further positions are parameters of their own, each with its type.
            match (kind, ty) {
                (
                    ParameterKind::VarPositional,
                    TraceType::Tuple(items) | TraceType::List(items),
                ) => {
                    for (index, item) in items.iter().enumerate() {
                        parameters.push(Parameter {
                            name: format!("{name}_{index}").into(),
                            kind: ParameterKind::PositionalOnly,
                            ty: Some(item.clone()),
                        });
                    }
                }
                _ => parameters.push(Parameter {
                    name: name.clone(),
                    kind: *kind,
                    ty: Some(ty.clone()),
                }),
            }
        }
        FunctionType::new(parameters)
    }

    fn problem(&self, problem: String, (args, kwargs): (String, String)) -> Error {
        Error::Binding {
            function: (*self.name).into(),
            problem: problem.into(),
            args: args.into(),
            kwargs: kwargs.into(),
            signature: self.declared().to_string().into(),
            flat: None,
        }
    }

    /// Type of the function as declared before any call.
    fn declared(&self) -> FunctionType {
        let specs = self.signature.iter().flatten().map(Some).chain(std::iter::repeat(None));
        let parameters = self.parameters.iter().zip(specs).map(|(parameter, spec)| Parameter {
            name: parameter.name.clone(),
            kind: parameter.kind,
            ty: match spec {
                Some(ArgSpec::Type(ty)) => Some(ty.clone()),
                _ => None,
            },
        });
        FunctionType::new(parameters.collect())
    }
}

/// Positional arguments as the items of a tuple.
pub(crate) fn shown(args: &[NestedValue]) -> String {
    let items: Vec<String> = args.iter().map(|arg| format!("{arg:?}")).collect();
    if items.len() == 1 { format!("{},", items[0]) } else { items.join(", ") }
}

pub(crate) fn shown_named(kwargs: &[(&str, NestedValue)]) -> String {
    let entries = kwargs.iter().map(|(name, value)| format!("'{name}': {value:?}"));
    entries.collect::<Vec<_>>().join(", ")
}

/// Puts arguments in the order of the parameters, or says what is wrong with them.
pub(crate) fn bind(
    parameters: &[ParameterSpec],
    args: Vec<NestedValue>,
    mut kwargs: Vec<(&str, NestedValue)>,
) -> Result<Vec<NestedValue>, String> {
    let takes_any = parameters.iter().any(|p| p.kind == ParameterKind::VarPositional);
    let places = parameters.iter().filter(|p| p.kind != ParameterKind::KeywordOnly).count();
    if args.len() > places && !takes_any {
        return Err("too many positional arguments".into());
    }
    let mut args = args.into_iter();
    let mut values = Vec::with_capacity(parameters.len());
    for ParameterSpec { name, kind, default } in parameters {
        if *kind == ParameterKind::VarPositional {
            values.push(NestedValue::List(args.by_ref().collect()));
            continue;
        }
        let by_position = if *kind == ParameterKind::KeywordOnly { None } else { args.next() };
        let named = match kind {
            ParameterKind::PositionalOnly => None,
            _ => kwargs.iter().position(|(given, _)| *given == &**name),
        };
        let by_name = named.map(|index| kwargs.remove(index).1);
        values.push(match (by_position, by_name, default) {
            (Some(_), Some(_), _) => return Err(format!("multiple values for argument '{name}'")),
            (Some(value), None, _) | (None, Some(value), _) => value,
            (None, None, Some(default)) => default.clone(),
            (None, None, None) => return Err(format!("missing a required argument: '{name}'")),
        });
    }
    match kwargs.first() {
        Some((name, _)) => Err(format!("got an unexpected keyword argument '{name}'")),
        None => Ok(values),
    }
}

impl ArgSpec {
    /// The value as this spec asks for it, and the type by which it then goes.
    fn cast(
        &self,
        value: &NestedValue,
        aliases: &mut Aliases,
    ) -> Result<(NestedValue, TraceType), String> {
        match self {
            ArgSpec::Type(ty) => Ok((cast(value, ty, aliases)?, ty.clone())),
            ArgSpec::HostValue => Ok((value.clone(), value.trace_type(aliases))),
            ArgSpec::AnyDType(shape) => {
                let NestedValue::Tensor(tensor) = value else {
                    return Err(format!("Can not cast {} to {self}", told(value)));
                };
                let ty = TraceType::tensor(tensor.dtype(), shape.clone());
                Ok((cast(value, &ty, aliases)?, ty))
            }
            ArgSpec::ListOf(item, length) => {
                let items = match value {
                    NestedValue::List(items) if length.is_none_or(|n| n == items.len()) => items,
                    _ => return Err(format!("Can not cast {} to {self}", told(value))),
                };
                let cast: Result<Vec<(NestedValue, TraceType)>, String> =
                    items.iter().map(|value| item.cast(value, aliases)).collect();
                let (values, types) = cast?.into_iter().unzip();
                Ok((NestedValue::List(values), TraceType::List(types)))
            }
        }
    }
}

/// The value as a value of this type, or why it cannot be one.
pub(crate) fn cast(
    value: &NestedValue,
    ty: &TraceType,
    aliases: &mut Aliases,
) -> Result<NestedValue, String> {
    let refused = || Err(format!("Can not cast {} to {ty}", told(value)));
    Ok(match (ty, value) {
        (TraceType::Tensor(spec), NestedValue::Tensor(tensor)) => {
            if !spec.accepts(&tensor.spec()) {
                return Err(format!("Can not cast {} to {ty}", TraceType::Tensor(tensor.spec())));
            }
            value.clone()
        }
        (TraceType::Tensor(spec), NestedValue::Variable(variable)) => {
            let read = variable.read().map_err(|error| error.to_string())?;
            return cast(&NestedValue::Tensor(read), &TraceType::Tensor(spec.clone()), aliases);
        }
        (TraceType::Tensor(spec), value) => match constant(value, spec) {
            Some(tensor) if spec.accepts(&tensor.spec()) => NestedValue::Tensor(tensor),
            Some(_) | None => return refused(),
        },
        (TraceType::List(types), NestedValue::List(items)) if types.len() == items.len() => {
            NestedValue::List(cast_all(items, types, aliases)?)
        }
        (TraceType::Tuple(types), NestedValue::Tuple(items)) if types.len() == items.len() => {
            NestedValue::Tuple(cast_all(items, types, aliases)?)
        }
        (TraceType::Struct(name, types), NestedValue::Struct(given, fields))
            if name == given && types.iter().map(|x| &x.0).eq(fields.iter().map(|x| &x.0)) =>
        {
            let mut cast_fields = Vec::with_capacity(fields.len());
            for ((key, value), (_, ty)) in fields.iter().zip(types) {
                cast_fields.push((key.clone(), cast(value, ty, aliases)?));
            }
            NestedValue::Struct(name.clone(), cast_fields)
        }
        (TraceType::Dict(types), NestedValue::Dict(entries))
            if types.iter().map(|x| &x.0).eq(entries.keys()) =>
        {
            let pairs = entries.iter().zip(types);
            let cast_entry = |((key, value), (_, ty)): ((&_, &NestedValue), &(_, TraceType))| {
                Ok((Clone::clone(key), cast(value, ty, aliases)?))
            };
            NestedValue::Dict(pairs.map(cast_entry).collect::<Result<_, String>>()?)
        }
        (ty, value) if value.trace_type(aliases).is_subtype_of(ty) => value.clone(),
        _ => return refused(),
    })
}

fn cast_all(
    items: &[NestedValue],
    types: &[TraceType],
    aliases: &mut Aliases,
) -> Result<Vec<NestedValue>, String> {
    items.iter().zip(types).map(|(item, ty)| cast(item, ty, aliases)).collect()
}

/// Text of a value in messages: literals by value, the rest by type.
fn told(value: &NestedValue) -> String {
    match value {
        NestedValue::Literal(literal) => literal.to_string(),
        other => other.trace_type(&mut Aliases::default()).to_string(),
    }
}

/// A tensor of the spec's dtype with the numbers or texts of nested lists.
fn constant(value: &NestedValue, spec: &TensorSpec) -> Option<Tensor> {
    let (mut dims, mut elements) = (Vec::new(), Vec::new());
    flatten(value, 0, &mut dims, &mut elements)?;
    let shape = ferroflow_ir::Shape::new(dims).ok()?;
    let tensor = match spec.dtype {
        DType::String => {
            let texts: Option<Vec<bytes::Bytes>> = elements
                .iter()
                .map(|element| match element {
                    Literal::Str(text) => Some(text.to_string().into()),
                    _ => None,
                })
                .collect();
            HostTensor::from_strings(shape, texts?).ok()?
        }
        DType::Bool => {
            let flags: Option<Vec<bool>> = elements
                .iter()
                .map(|element| match element {
                    Literal::Bool(flag) => Some(*flag),
                    _ => None,
                })
                .collect();
            HostTensor::from_bools(shape, &flags?).ok()?
        }
        dtype => crate::ops::numbers(dtype, shape, &elements)?,
    };
    Some(tensor.into())
}

fn flatten(
    value: &NestedValue,
    depth: usize,
    dims: &mut Vec<usize>,
    elements: &mut Vec<Literal>,
) -> Option<()> {
    match value {
        NestedValue::Literal(literal) if depth == dims.len() => elements.push(literal.clone()),
        NestedValue::List(items) | NestedValue::Tuple(items) => {
            if depth == dims.len() && elements.is_empty() {
                dims.push(items.len());
            }
            if dims.get(depth) != Some(&items.len()) {
                return None;
            }
            for item in items {
                flatten(item, depth + 1, dims, elements)?;
            }
        }
        _ => return None,
    }
    Some(())
}

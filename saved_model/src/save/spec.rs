//! The parameters of functions, as Python's `inspect.FullArgSpec` has them.

use crate::{
    convert::{structured_message, structured_type},
    error::{Error, Result},
    proto,
    structured_value::StructuredValue,
};
use ferroflow_ir::function_type::ParameterKind;
use ferroflow_runtime::trackable::{ExportedDefault, ExportedFunction, ExportedParameter};
use std::collections::BTreeMap;

/// The parameters of a function with any number of traces.
pub(super) fn function_spec(function: &dyn ExportedFunction) -> Result<proto::FunctionSpec> {
    let parameters = function.parameters();
    check_names(function.name(), parameters.iter().map(|parameter| &*parameter.name))?;
    let signature = match function.input_signature() {
        None => StructuredValue::None,
        Some(types) => {
            let names = parameters.iter().map(|parameter| &*parameter.name);
            let types = types.iter().zip(names.chain(std::iter::repeat("")));
            let types = types.map(|(ty, name)| structured_type(ty, name));
            StructuredValue::Tuple(types.collect::<ferroflow_ir::Result<_>>()?)
        }
    };
    Ok(proto::FunctionSpec {
        fullargspec: Some(full_arg_spec(&parameters)?),
        input_signature: Some(structured_message(&signature)?),
        ..Default::default()
    })
}

/// The parameters of one trace.
pub(super) fn trace_spec(
    function: &str,
    parameters: &[ExportedParameter],
) -> Result<proto::FunctionSpec> {
    check_names(function, parameters.iter().map(|parameter| &*parameter.name))?;
    Ok(proto::FunctionSpec {
        fullargspec: Some(full_arg_spec(parameters)?),
        input_signature: Some(structured_message(&StructuredValue::None)?),
        ..Default::default()
    })
}

/// The parameters of a signature: by name only.
pub(super) fn signature_spec(key: &str, names: &[&str]) -> Result<proto::FunctionSpec> {
    let by_name = |name: &&str| ExportedParameter {
        name: (*name).into(),
        kind: ParameterKind::KeywordOnly,
        default: None,
    };
    trace_spec(key, &names.iter().map(by_name).collect::<Vec<_>>())
}

/// Checks that Python tells the parameters of a function apart.
fn check_names<'a>(function: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for second in names {
        let python = python_name(second);
        if let Some(first) = known.insert(python.clone(), second) {
            let (function, first, second) = (function.into(), first.into(), second.into());
            return Err(Error::ParameterNames { function, first, second, python });
        }
    }
    Ok(())
}

/// The identifier that TensorFlow makes of the name of a parameter.
///
/// Source: `sanitize_arg_name` in TensorFlow's `function_type.py`.
fn python_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let clean: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if clean.starts_with(|c: char| c.is_ascii_alphabetic()) {
        clean
    } else {
        format!("arg_{clean}")
    }
}

fn full_arg_spec(parameters: &[ExportedParameter]) -> Result<proto::StructuredValue> {
    let text = |name: &str| StructuredValue::String(name.into());
    let (mut args, mut defaults) = (Vec::new(), Vec::new());
    let (mut by_name, mut named_defaults) = (Vec::new(), BTreeMap::new());
    let mut varargs = StructuredValue::None;
    for parameter in parameters {
        let default = parameter.default.as_ref().map(default).transpose()?;
        match parameter.kind {
            ParameterKind::PositionalOnly | ParameterKind::PositionalOrKeyword => {
                args.push(text(&parameter.name));
                defaults.extend(default);
            }
            // Every further argument is one of its own in the trace.
            ParameterKind::VarPositional => varargs = text("args"),
            ParameterKind::KeywordOnly => {
                by_name.push(text(&parameter.name));
                named_defaults.extend(default.map(|value| (parameter.name.to_string(), value)));
            }
        }
    }
    let or_none = |is_empty: bool, value| if is_empty { StructuredValue::None } else { value };
    let field = |name: &str, value| (name.to_string(), value);
    let fields = vec![
        field("args", StructuredValue::List(args)),
        field("varargs", varargs),
        field("varkw", StructuredValue::None),
        field("defaults", or_none(defaults.is_empty(), StructuredValue::Tuple(defaults))),
        field("kwonlyargs", StructuredValue::List(by_name)),
        field(
            "kwonlydefaults",
            or_none(named_defaults.is_empty(), StructuredValue::Dict(named_defaults)),
        ),
        field("annotations", StructuredValue::Dict(BTreeMap::new())),
    ];
    let spec = StructuredValue::NamedTuple { name: "FullArgSpec".into(), fields };
    Ok(structured_message(&spec)?)
}

fn default(value: &ExportedDefault) -> Result<StructuredValue> {
    Ok(match value {
        ExportedDefault::Tensor(tensor) => StructuredValue::Tensor(tensor.clone()),
        ExportedDefault::Host(ty) => structured_type(ty, "default")?,
    })
}

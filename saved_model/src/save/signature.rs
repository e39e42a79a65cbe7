//! Signatures: functions that take tensors by name and return tensors by name.

use super::{
    nodes::{FunctionWriter, call},
    objects::{Objects, loaded, references, user_object},
    spec,
};
use crate::{
    convert::{structured_message, structured_value},
    error::{Error, Result},
    model::Object,
    proto::{
        self, SavedBareConcreteFunction, SavedConcreteFunction, SavedObject, op_def::ArgDef,
        saved_object::Kind as SavedKind,
    },
    structured_value::StructuredValue,
};
use ferroflow_ir::{Attrs, DType, HostTensor, Limits, TensorSpec};
use ferroflow_runtime::trackable::{ExportedDefault, ExportedParameter, ObjectKind, ObjectNode};
use std::collections::BTreeMap;

/// The key of the signature of a model that has one only.
pub(super) const DEFAULT_KEY: &str = "serving_default";

/// The name of the root's child that holds the signatures.
pub(super) const SIGNATURES: &str = "signatures";

/// A signature of the model.
pub(super) struct WrittenSignature {
    pub(super) key: String,
    /// The function that implements it.
    pub(super) function: String,
    /// Values of the inputs that calls may leave out.
    pub(super) defaults: BTreeMap<String, HostTensor>,
    /// Its inputs and outputs; `None` where only the loaded model knows.
    pub(super) known: Option<Known>,
    /// The object of a loaded model that it was.
    pub(super) loaded: Option<Object>,
}

/// Inputs and outputs of a signature, in the order of its function.
pub(super) struct Known {
    pub(super) inputs: Vec<(String, TensorSpec)>,
    pub(super) outputs: Vec<(String, TensorSpec)>,
}

/// A function's arguments and results, and its definition.
struct Callee {
    /// The name of the Rust function.
    shown: String,
    name: String,
    inputs: StructuredValue,
    outputs: StructuredValue,
    /// The parameters of a function that is saved for the first time.
    parameters: Vec<ExportedParameter>,
}

impl Objects<'_> {
    /// Makes signatures of functions, and puts them where loaders look for them.
    pub(super) fn add_signatures(
        &mut self,
        given: &[(String, ObjectNode)],
    ) -> Result<Vec<WrittenSignature>> {
        let mut signatures = Vec::new();
        let mut children = Vec::new();
        for (key, function) in given {
            let callee = self.callee(key, function)?;
            let (signature, object) = self.wrap(key, &callee)?;
            children.push((key.clone(), self.add(object)));
            signatures.push(signature);
        }
        let map = SavedObject {
            children: references(&children),
            kind: Some(user_object("signature_map", "")),
            ..SavedObject::default()
        };
        let id = self.add(map);
        self.list[0].children.extend(references(&[(SIGNATURES.into(), id)]));
        Ok(signatures)
    }

    /// The signatures that the root has already, being that of a loaded model.
    pub(super) fn kept_signatures(&self, map: usize) -> Result<Vec<WrittenSignature>> {
        let mut signatures = Vec::new();
        for (key, child) in &self.graph.nodes[map].children {
            let names = self.concrete_names(*child);
            let Some(&function) = names.first() else { continue };
            let signature = WrittenSignature {
                key: key.clone(),
                function: function.into(),
                defaults: BTreeMap::new(),
                known: self.known(function)?,
                loaded: loaded(&self.graph.nodes[*child]).cloned(),
            };
            signatures.push(signature);
        }
        Ok(signatures)
    }

    /// Inputs and outputs of a signature, if these are tensors each of a name of its own.
    fn known(&self, function: &str) -> Result<Option<Known>> {
        let (inputs, outputs) = self.described(function)?;
        let named = |value: &StructuredValue| -> Option<Vec<(String, TensorSpec)>> {
            let fields = match value {
                StructuredValue::Dict(fields) => fields.clone(),
                StructuredValue::None => BTreeMap::new(),
                _ => return None,
            };
            let spec = |(name, value)| match value {
                StructuredValue::TensorSpec(spec) => Some((name, spec)),
                _ => None,
            };
            fields.into_iter().map(spec).collect()
        };
        let StructuredValue::Tuple(parts) = &inputs else { return Ok(None) };
        let by_name = parts.get(1).and_then(named);
        let known = by_name.zip(named(&outputs));
        Ok(known.map(|(inputs, outputs)| Known { inputs, outputs }))
    }

    fn described(&self, function: &str) -> Result<(StructuredValue, StructuredValue)> {
        let absent = || ferroflow_ir::Error::NotFound { kind: "function", name: function.into() };
        let concrete = self.concrete.get(function).ok_or_else(absent)?;
        let limits = Limits::default();
        let value = |value: &Option<proto::StructuredValue>| -> Result<StructuredValue> {
            Ok(structured_value(value.as_ref().ok_or_else(absent)?, &limits)?)
        };
        Ok((value(&concrete.canonicalized_input_signature)?, value(&concrete.output_signature)?))
    }

    /// The one function that a signature is made of.
    fn callee(&mut self, key: &str, function: &ObjectNode) -> Result<Callee> {
        let refused = |shown: &str, rule: &str| Error::NotASignature {
            signature: key.into(),
            function: shown.into(),
            rule: rule.into(),
        };
        let mut parameters = Vec::new();
        let (shown, name) = match (&function.kind, loaded(function)) {
            (_, Some(object)) => {
                let shown = "of a loaded model";
                let names = match object.kind() {
                    Some(SavedKind::Function(function)) => function.concrete_functions.clone(),
                    Some(SavedKind::BareConcreteFunction(function)) => {
                        vec![function.concrete_function_name.clone()]
                    }
                    _ => return Err(refused(shown, "it is no function")),
                };
                let [name] = &names[..] else {
                    return Err(refused(shown, "it must have one trace"));
                };
                (shown.to_string(), self.loaded_function(object.model(), name)?)
            }
            (ObjectKind::Function(function), None) => {
                let shown = function.name();
                let rule = "it needs an input signature, or one of its traces must be given";
                if function.input_signature().is_none() {
                    return Err(refused(shown, rule));
                }
                let traces = function.traces()?;
                let trace = traces.first().ok_or_else(|| refused(shown, rule))?;
                parameters = function.parameters();
                (shown.to_string(), self.trace(&**function, trace)?)
            }
            (ObjectKind::ConcreteFunction(function), None) => {
                let traces = function.traces()?;
                let absent = || refused(function.name(), "it has no trace");
                let trace = traces.first().ok_or_else(absent)?;
                (function.name().to_string(), self.trace(&**function, trace)?)
            }
            (kind, None) => return Err(refused(&format!("{kind:?}"), "it is no function")),
        };
        let (inputs, outputs) = self.described(&name)?;
        Ok(Callee { shown, name, inputs, outputs, parameters })
    }

    /// Whether a function takes and returns what a signature can.
    pub(super) fn can_be_signature(&mut self, function: &ObjectNode) -> Result<bool> {
        let callee = match self.callee(DEFAULT_KEY, function) {
            Ok(callee) => callee,
            Err(Error::NotASignature { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let args = self.own_args(&callee.name)?;
        let takes = flat_inputs(&callee.inputs, &args).is_ok();
        Ok(takes && flat_outputs(&callee.outputs).is_ok_and(|outputs| !outputs.is_empty()))
    }

    /// The arguments of a function without its captures.
    fn own_args(&self, name: &str) -> Result<Vec<ArgDef>> {
        let absent = || ferroflow_ir::Error::NotFound { kind: "function", name: name.into() };
        let n_captures = self.concrete.get(name).ok_or_else(absent)?.bound_inputs.len();
        let def = self.library.get(name).ok_or_else(absent)?;
        let mut args = def.signature.clone().unwrap_or_default().input_arg;
        args.truncate(args.len().saturating_sub(n_captures));
        Ok(args)
    }

    /// The function that implements a signature, and its object.
    fn wrap(&mut self, key: &str, callee: &Callee) -> Result<(WrittenSignature, SavedObject)> {
        let refused = |rule: String| Error::NotASignature {
            signature: key.into(),
            function: callee.shown.clone(),
            rule,
        };
        let absent =
            || ferroflow_ir::Error::NotFound { kind: "function", name: callee.name.clone() };
        let def = self.library.get(&callee.name).ok_or_else(absent)?.clone();
        let bound = self.concrete.get(&callee.name).ok_or_else(absent)?.bound_inputs.clone();
        let inputs = flat_inputs(&callee.inputs, &self.own_args(&callee.name)?).map_err(refused)?;
        let outputs = flat_outputs(&callee.outputs).map_err(refused)?;
        let name = self
            .library
            .numbered(&format!("__inference_signature_wrapper_{}", short(&callee.name)));
        let wrapper = wrapper(&name, &def, &inputs, &outputs)?;
        self.library.add(wrapper);
        let (mut sorted, mut results) = (inputs.clone(), outputs.clone());
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        results.sort_by(|a, b| a.0.cmp(&b.0));
        let dict = |fields: &[(String, TensorSpec)]| {
            let field = |(name, spec): &(String, TensorSpec)| {
                let spec = TensorSpec { name: name.clone(), ..spec.clone() };
                (name.clone(), StructuredValue::TensorSpec(spec))
            };
            StructuredValue::Dict(fields.iter().map(field).collect())
        };
        let parts = vec![StructuredValue::Tuple(Vec::new()), dict(&sorted)];
        let concrete = SavedConcreteFunction {
            bound_inputs: bound,
            canonicalized_input_signature: Some(structured_message(&StructuredValue::Tuple(
                parts,
            ))?),
            output_signature: Some(structured_message(&dict(&results))?),
        };
        self.concrete.insert(name.clone(), concrete);
        let names: Vec<&str> = sorted.iter().map(|(name, _)| name.as_str()).collect();
        let object = SavedObject {
            children: self.captured_children(&name),
            kind: Some(SavedKind::BareConcreteFunction(SavedBareConcreteFunction {
                concrete_function_name: name.clone(),
                argument_keywords: names.iter().map(|name| name.to_string()).collect(),
                allowed_positional_arguments: i64::from(names.len() == 1),
                function_spec: Some(spec::signature_spec(key, &names)?),
            })),
            ..SavedObject::default()
        };
        let known = Some(Known { inputs: sorted, outputs: results });
        let defaults = defaults(callee, &inputs);
        let key = key.to_string();
        Ok((WrittenSignature { key, function: name, defaults, known, loaded: None }, object))
    }
}

/// The tensors that are defaults of parameters, by the names of the inputs, as TensorFlow writes
/// them (`signature_serialization.py`): defaults of Rust are part of the trace.
fn defaults(callee: &Callee, inputs: &[(String, TensorSpec)]) -> BTreeMap<String, HostTensor> {
    let StructuredValue::Tuple(parts) = &callee.inputs else { return BTreeMap::new() };
    let mut arguments: Vec<(Option<&ExportedParameter>, &StructuredValue)> = Vec::new();
    for part in parts {
        match part {
            StructuredValue::Tuple(positional) => {
                let parameters = callee.parameters.iter().map(Some).chain(std::iter::repeat(None));
                arguments.extend(parameters.zip(positional));
            }
            StructuredValue::Dict(named) => arguments.extend(named.iter().map(|(name, value)| {
                (callee.parameters.iter().find(|parameter| *parameter.name == **name), value)
            })),
            _ => {}
        }
    }
    arguments.retain(|(_, value)| !crate::value::tensor_specs(value).is_empty());
    let of_input = |((parameter, _), (name, spec)): ((Option<&ExportedParameter>, _), _)| {
        let (name, spec): (&String, &TensorSpec) = (name, spec);
        match parameter?.default.as_ref()? {
            ExportedDefault::Tensor(value) if value.dtype() == spec.dtype => {
                Some((name.clone(), value.clone()))
            }
            ExportedDefault::Tensor(_) | ExportedDefault::Host(_) => None,
        }
    };
    let inputs = inputs.iter().map(|(name, spec)| (name, spec));
    arguments.into_iter().zip(inputs).filter_map(of_input).collect()
}

/// The name of a function without what marks it as one.
fn short(name: &str) -> &str {
    let name = name.strip_prefix("__inference_").unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_')
}

/// The tensors that a function takes, which may not be nested.
fn flat_inputs(
    inputs: &StructuredValue,
    args: &[ArgDef],
) -> Result<Vec<(String, TensorSpec)>, String> {
    let StructuredValue::Tuple(parts) = inputs else { return Err("it has no arguments".into()) };
    let mut values: Vec<(&str, &StructuredValue)> = Vec::new();
    for part in parts {
        match part {
            StructuredValue::Tuple(positional) => {
                values.extend(positional.iter().map(|value| ("", value)));
            }
            StructuredValue::Dict(named) => {
                values.extend(named.iter().map(|(name, value)| (name.as_str(), value)));
            }
            _ => return Err("it has no arguments".into()),
        }
    }
    let mut found: Vec<(String, TensorSpec)> = Vec::new();
    for (name, value) in values {
        match value {
            StructuredValue::TensorSpec(spec) | StructuredValue::BoundedTensorSpec { spec, .. } => {
                let arg = args.get(found.len()).map_or("", |arg| arg.name.as_str());
                let own = if spec.name.is_empty() { name } else { &spec.name };
                let name = if own.is_empty() { arg } else { own };
                if found.iter().any(|(taken, _)| taken == name) {
                    return Err(format!("two of its arguments are called `{name}`"));
                }
                found.push((name.into(), spec.clone()));
            }
            other if crate::value::tensor_specs(other).is_empty() => {}
            other => {
                return Err(format!(
                    "its arguments must be tensors, which are not nested; found {other}"
                ));
            }
        }
    }
    match found.len() == args.len() {
        true => Ok(found),
        false => Err(format!("it takes {} tensors, {} are described", args.len(), found.len())),
    }
}

/// The tensors that a function returns, by name: those of a map, others by number.
fn flat_outputs(outputs: &StructuredValue) -> Result<Vec<(String, TensorSpec)>, String> {
    let tensor = |what: &dyn std::fmt::Display, value: &StructuredValue| match value {
        StructuredValue::TensorSpec(spec) | StructuredValue::BoundedTensorSpec { spec, .. } => {
            Ok(spec.clone())
        }
        other => Err(format!(
            "it gives a non-tensor value, {other}, for the output {what}; a signature gives one \
             tensor, a flat list of tensors, or tensors by name"
        )),
    };
    let numbered = |values: Vec<&StructuredValue>| {
        let values = values.into_iter().enumerate();
        values
            .map(|(index, value)| {
                let name = format!("output_{index}");
                let spec = tensor(&name, value)?;
                Ok((name, spec))
            })
            .collect()
    };
    match outputs {
        StructuredValue::None => Ok(Vec::new()),
        StructuredValue::List(values) | StructuredValue::Tuple(values) => {
            numbered(values.iter().collect())
        }
        StructuredValue::NamedTuple { fields, .. } => {
            numbered(fields.iter().map(|(_, value)| value).collect())
        }
        StructuredValue::Dict(fields) => {
            fields.iter().map(|(name, value)| Ok((name.clone(), tensor(name, value)?))).collect()
        }
        value => numbered(vec![value]),
    }
}

/// A function that takes the tensors of another sorted by name, and returns them so.
fn wrapper(
    name: &str,
    callee: &proto::FunctionDef,
    inputs: &[(String, TensorSpec)],
    outputs: &[(String, TensorSpec)],
) -> Result<proto::FunctionDef> {
    let signature = callee.signature.clone().unwrap_or_default();
    let mut function = FunctionWriter::new(name);
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    order.sort_by(|&a, &b| inputs[a].0.cmp(&inputs[b].0));
    order.extend(inputs.len()..signature.input_arg.len());
    for (position, &index) in order.iter().enumerate() {
        function.arg(signature.input_arg[index].clone());
        if let Some(noted) = callee.arg_attr.get(&(index as u32)) {
            function.def.arg_attr.insert(position as u32, noted.clone());
        }
    }
    let (op, attrs) = call(callee);
    let args = signature.input_arg.iter().map(|arg| arg.name.clone());
    function.add(op, op, args, &attrs)?;
    if signature.is_stateful {
        function.always(op);
    }
    let mut results: Vec<usize> = (0..outputs.len()).collect();
    results.sort_by(|&a, &b| outputs[a].0.cmp(&outputs[b].0));
    for (position, &index) in results.iter().enumerate() {
        let number = signature.output_arg[index].r#type;
        let suffix = if position == 0 { String::new() } else { format!("_{position}") };
        let node = format!("Identity{suffix}");
        let dtype = DType::from_number(number).unwrap_or(DType::F32);
        let value = format!("{op}:output:{index}");
        function.add(&node, "Identity", [value], &Attrs::new().with("T", dtype))?;
        function.result(&format!("identity{suffix}"), number, format!("{node}:output:0"));
    }
    Ok(function.def)
}

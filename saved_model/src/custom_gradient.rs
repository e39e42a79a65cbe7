//! Gradients that a model brings along: of functions, and of nodes with a gradient of their own.
//!
//! TensorFlow writes the function of such a gradient beside the others. What it takes besides the
//! gradients of results are its captures: values inside the function around the node, which the
//! object graph names (`CapturedTensor`), and objects that the function around captures as well.
//! Its `output_signature` says which inputs of the node it has gradients for.

use crate::{
    convert::{self, Definitions},
    proto::{self, SavedConcreteFunction, SavedObjectGraph, attr_value::Value, saved_object::Kind},
    structured_value::StructuredValue,
};
use ferroflow_ir::{
    FunctionLibrary, Result,
    gradient::{LoadedCapture, LoadedGradient},
};

/// Tells a library of the gradients that a model brings along. One whose captures cannot be found
/// is left out: whoever differentiates its nodes learns that it is not there.
///
/// # Errors
///
/// When the results of a gradient are described in a way that goes beyond the limits.
pub(crate) fn add_gradients(
    library: &FunctionLibrary,
    definitions: &Definitions,
    objects: Option<&SavedObjectGraph>,
) -> Result<()> {
    for gradient in &definitions.library().gradient {
        library.set_gradient(&*gradient.function_name, &*gradient.gradient_func);
    }
    for registered in &definitions.library().registered_gradients {
        if let Some(gradient) = loaded(definitions, objects, registered)? {
            library.carry_gradient(&*registered.registered_op_type, gradient);
        }
    }
    Ok(())
}

fn loaded(
    definitions: &Definitions,
    objects: Option<&SavedObjectGraph>,
    registered: &proto::RegisteredGradient,
) -> Result<Option<LoadedGradient>> {
    let name = &registered.gradient_func;
    let Some(function) = definitions.function(name) else { return Ok(None) };
    let concrete = objects.and_then(|objects| objects.concrete_functions.get(name));
    let signature = concrete.and_then(|concrete| concrete.output_signature.as_ref());
    let gradients = match signature {
        Some(signature) => {
            let mut gradients = Vec::new();
            let signature = convert::structured_value(signature, definitions.limits())?;
            number(&signature, &mut 0, &mut gradients);
            gradients
        }
        None => {
            let n_results = function.signature.as_ref().map_or(0, |s| s.output_arg.len());
            (0..n_results).map(Some).collect()
        }
    };
    let around = Around { definitions, objects, op_type: &registered.registered_op_type };
    let captures = around.captures(concrete);
    Ok(captures.map(|captures| LoadedGradient {
        function: name.as_str().into(),
        gradients,
        captures,
    }))
}

/// The numbers of the tensors among results; `None` has none.
fn number(value: &StructuredValue, next: &mut usize, found: &mut Vec<Option<usize>>) {
    let parts: Vec<&StructuredValue> = match value {
        StructuredValue::List(parts) | StructuredValue::Tuple(parts) => parts.iter().collect(),
        StructuredValue::Dict(parts) => parts.values().collect(),
        StructuredValue::NamedTuple { fields, .. } => fields.iter().map(|(_, part)| part).collect(),
        StructuredValue::None => return found.push(None),
        _ => {
            found.push(Some(*next));
            *next += 1;
            return;
        }
    };
    parts.into_iter().for_each(|part| number(part, next, found));
}

/// Where the captures of a gradient are to be found.
struct Around<'a> {
    definitions: &'a Definitions,
    objects: Option<&'a SavedObjectGraph>,
    op_type: &'a str,
}

impl Around<'_> {
    fn captures(&self, concrete: Option<&SavedConcreteFunction>) -> Option<Vec<LoadedCapture>> {
        let bound = concrete.map_or(&[][..], |concrete| &concrete.bound_inputs);
        bound.iter().map(|&object| self.capture(object)).collect()
    }

    fn capture(&self, object: i32) -> Option<LoadedCapture> {
        let nodes = &self.objects?.nodes;
        match nodes.get(usize::try_from(object).ok()?)?.kind.as_ref()? {
            Kind::CapturedTensor(tensor) => {
                let (node, index) = tensor.name.rsplit_once(':')?;
                let function = tensor.concrete_function.as_str().into();
                Some(LoadedCapture { function, node: node.into(), index: index.parse().ok()? })
            }
            _ => self.argument(object),
        }
    }

    /// The argument by which the function around the node captures an object.
    fn argument(&self, object: i32) -> Option<LoadedCapture> {
        let around = self.objects?.concrete_functions.iter();
        let mut candidates = around.filter_map(|(name, concrete)| {
            let function = self.definitions.function(name).filter(|f| self.has_node(f))?;
            let position = concrete.bound_inputs.iter().position(|&bound| bound == object)?;
            let args = &function.signature.as_ref()?.input_arg;
            let first = args.len().checked_sub(concrete.bound_inputs.len())?;
            Some((name, &args[first + position].name))
        });
        let (function, node) = candidates.next()?;
        Some(LoadedCapture { function: function.as_str().into(), node: node.clone(), index: 0 })
    }

    fn has_node(&self, function: &proto::FunctionDef) -> bool {
        function.node_def.iter().any(|node| {
            let noted = node.attr.get("_gradient_op_type").and_then(|attr| attr.value.as_ref());
            matches!(noted, Some(Value::S(name)) if name == self.op_type.as_bytes())
        })
    }
}

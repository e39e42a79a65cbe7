//! Custom gradients of traced functions, as files hold them.
//!
//! A node names its gradient in `_gradient_op_type`; the library says which function that is, and
//! the object graph which values of the function around the node are its captures. A file knows one
//! function of each name and one place of its captures, so every node gets a name and a function of
//! its own.

use super::{library::SavedLibrary, objects::Objects};
use crate::{
    convert::{structured_message, tensor_name},
    error::Result,
    proto::{
        self, SavedConcreteFunction, SavedObject, attr_value::Value,
        saved_object::Kind as SavedKind,
    },
    structured_value::StructuredValue,
};
use ferroflow_ir::{
    FunctionDef, FunctionLibrary, Outlet, TensorSpec,
    gradient::{CarriedGradient, FoundGradient, custom_gradient},
};
use std::{collections::BTreeMap, sync::Arc};

/// The function of a custom gradient, whose captures are yet to be told.
pub(super) struct TracedGradient {
    /// Its name in the file.
    name: String,
    def: Arc<FunctionDef>,
    /// For each input of the node, which of the results is its gradient.
    results: Vec<Option<usize>>,
    /// The function around the node.
    around: String,
    captures: Vec<Captured>,
}

/// A value of the function around a node.
struct Captured {
    /// Its name there.
    name: String,
    /// Index of the function's argument, if it is one.
    argument: Option<usize>,
}

impl SavedLibrary {
    /// Adds the custom gradients of the nodes of a function.
    ///
    /// # Errors
    ///
    /// That of tracing a gradient.
    pub(super) fn add_custom_gradients(
        &mut self,
        def: &FunctionDef,
        library: &FunctionLibrary,
        message: &mut proto::FunctionDef,
        waiting: &mut Vec<Arc<FunctionDef>>,
        around: &str,
    ) -> Result<()> {
        for (_, node) in def.graph.iter() {
            let Ok(op_type) = node.attrs.string(CarriedGradient::ATTRIBUTE) else { continue };
            if let Some(error) = library.refused_gradient(op_type) {
                return Err(node.locate(&def.name)(error).into());
            }
            // The name of a gradient that the program does not have stays no more than that.
            let Ok(Some(FoundGradient { gradient, captures })) =
                custom_gradient(library, def, node)
            else {
                continue;
            };
            let own = Arc::new(FunctionDef::clone(&*library.get(&gradient.function)?));
            let name = self.name_traced(&own, waiting);
            let op_type = self.register_gradient(&name);
            let written = message.node_def.iter_mut().find(|written| *written.name == *node.name);
            if let Some(written) = written {
                let value = Some(Value::S(op_type.into()));
                let key = CarriedGradient::ATTRIBUTE.to_string();
                written.attr.insert(key, proto::AttrValue { value });
            }
            self.add_traced_gradient(TracedGradient {
                name,
                def: own,
                results: gradient.gradients.clone(),
                around: around.into(),
                captures: captures.iter().map(|&capture| captured(def, capture)).collect(),
            });
        }
        Ok(())
    }
}

fn captured(def: &FunctionDef, outlet: Outlet) -> Captured {
    let argument = def.args.iter().position(|&arg| Outlet::from(arg) == outlet);
    Captured { name: tensor_name(def, outlet), argument }
}

impl Objects<'_> {
    /// Describes the captures of the gradients that came with functions, when all functions are
    /// there.
    pub(super) fn add_traced_gradients(&mut self) -> Result<()> {
        for gradient in self.library.take_traced_gradients() {
            let captures =
                gradient.captures.iter().map(|capture| self.gradient_capture(&gradient, capture));
            let concrete = SavedConcreteFunction {
                bound_inputs: captures.collect(),
                canonicalized_input_signature: Some(structured_message(&gradient.arguments())?),
                output_signature: Some(structured_message(&gradient.output()?)?),
            };
            self.concrete.insert(gradient.name, concrete);
        }
        Ok(())
    }

    /// The node of what a gradient captures: that of the object which the function around captures,
    /// or one for a value of it.
    fn gradient_capture(&mut self, gradient: &TracedGradient, capture: &Captured) -> i32 {
        if let (Some(argument), Some(concrete)) =
            (capture.argument, self.concrete.get(&gradient.around))
        {
            let message = self.library.get(&gradient.around);
            let n_args = message.and_then(|def| Some(def.signature.as_ref()?.input_arg.len()));
            let first = n_args.and_then(|n| n.checked_sub(concrete.bound_inputs.len()));
            let bound = first.and_then(|first| argument.checked_sub(first));
            if let Some(&object) = bound.and_then(|index| concrete.bound_inputs.get(index)) {
                return object;
            }
        }
        let tensor = proto::CapturedTensor {
            name: capture.name.clone(),
            concrete_function: gradient.around.clone(),
        };
        let kind = Some(SavedKind::CapturedTensor(tensor));
        self.add(SavedObject { kind, ..SavedObject::default() }) as i32
    }
}

impl TracedGradient {
    /// The arguments: the node, which loaders leave out, and the gradients of its results.
    fn arguments(&self) -> StructuredValue {
        let n_given = self.def.args.len() - self.captures.len();
        let given = (0..n_given).map(|index| {
            let ty = self.def.arg_type(index);
            let spec = TensorSpec::new(ty.dtype, ty.shape.clone());
            let name = self.def.arg_name(index).into();
            StructuredValue::TensorSpec(TensorSpec { name, ..spec })
        });
        let given = std::iter::once(StructuredValue::None).chain(given).collect();
        let named = StructuredValue::Dict(BTreeMap::new());
        StructuredValue::Tuple(vec![StructuredValue::Tuple(given), named])
    }

    /// The gradients of the inputs of the node.
    fn output(&self) -> Result<StructuredValue> {
        let one = |result: &Option<usize>| {
            let Some(index) = *result else { return Ok(StructuredValue::None) };
            let absent = || ferroflow_ir::Error::NotFound {
                kind: "result",
                name: format!("{index} of `{}`", self.def.name),
            };
            let (name, outlet) = self.def.results.get(index).ok_or_else(absent)?;
            let ty = self.def.graph.ty(*outlet).ok_or_else(absent)?;
            let spec = TensorSpec::new(ty.dtype, ty.shape.clone());
            let name = name.as_str().into();
            Ok(StructuredValue::TensorSpec(TensorSpec { name, ..spec }))
        };
        Ok(StructuredValue::List(self.results.iter().map(one).collect::<Result<_>>()?))
    }
}

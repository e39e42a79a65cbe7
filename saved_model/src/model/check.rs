//! Whether objects refer to objects and functions that are there.

use super::{Model, bad_capture, load_order};
use crate::{
    error::{Error, Result},
    proto::saved_object::Kind,
};

impl Model {
    /// Checks that objects refer to objects and functions that are there.
    pub(super) fn check(&self) -> Result<()> {
        let state = &*self.0;
        for (id, object) in state.objects.iter().enumerate() {
            let children = object.children.iter().chain(&object.dependencies);
            for child in children {
                self.object(child.node_id).map_err(|_| Error::Object {
                    id,
                    rule: format!("`{}` refers to object {}", child.local_name, child.node_id),
                })?;
            }
            let names: Vec<&str> = match &object.kind {
                Some(Kind::Function(function)) => {
                    function.concrete_functions.iter().map(String::as_str).collect()
                }
                Some(Kind::BareConcreteFunction(function)) => {
                    vec![&function.concrete_function_name]
                }
                Some(Kind::Asset(asset)) => {
                    state.parts.asset(asset.asset_file_def_index)?;
                    Vec::new()
                }
                Some(Kind::Constant(constant)) => {
                    state.parts.constant(&constant.operation)?;
                    Vec::new()
                }
                _ => Vec::new(),
            };
            for name in names {
                let known = state.concrete.contains_key(name) && state.parts.library.contains(name);
                if !known {
                    let name = name.to_string();
                    return Err(ferroflow_ir::Error::NotFound { kind: "function", name }.into());
                }
            }
        }
        for (name, function) in state.concrete.iter() {
            for &input in &function.bound_inputs {
                let object =
                    self.object(input).map_err(|_| bad_capture(name, input, "no object"))?;
                let can_be_bound = matches!(
                    object.kind(),
                    Some(
                        Kind::Variable(_)
                            | Kind::Constant(_)
                            | Kind::Asset(_)
                            | Kind::Resource(_)
                            | Kind::CapturedTensor(_)
                    )
                );
                if !can_be_bound {
                    return Err(bad_capture(name, input, "no tensor"));
                }
            }
        }
        load_order::check(&state.objects, &state.concrete)
    }
}

//! Variables of strategies in files: their devices, and the values of their replicas.

use crate::proto::{SavedObject, SavedVariable, saved_object::Kind as SavedKind};
use ferroflow_runtime::{
    ResourceVariable,
    trackable::{ObjectGraph, ObjectKind},
};

/// Record of the devices of variables, with TensorFlow's names
/// (`tf.saved_model.experimental.VariablePolicy`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VariablePolicy {
    /// Nothing: the model loads anywhere.
    #[default]
    None,
    /// The device of each variable.
    SaveVariableDevices,
    /// The device of each variable, and those that have a value for each replica of a strategy with
    /// all their components.
    ExpandDistributedVariables,
}

/// Writes into `list` what the policy says of the variables of a graph.
pub(super) fn apply(policy: VariablePolicy, graph: &ObjectGraph, list: &mut [SavedObject]) {
    if policy == VariablePolicy::None {
        return;
    }
    for (node, object) in graph.nodes.iter().zip(list) {
        let Some(SavedKind::Variable(saved)) = &mut object.kind else { continue };
        let variable = match &node.kind {
            ObjectKind::Variable(variable) => variable.clone(),
            _ => continue,
        };
        saved.device = device(&variable, 0);
        // Pieces of a value on a mesh are no values of replicas.
        let is_mirrored = variable.n_components() > 1 && variable.layout().is_none();
        if policy == VariablePolicy::ExpandDistributedVariables && is_mirrored {
            saved.experimental_distributed_variable_components =
                (0..variable.n_components()).map(|n| component(saved, &variable, n)).collect();
        }
    }
}

/// The device of a component: that of the variable's values, else the logical CPU of the replica.
fn device(variable: &ResourceVariable, replica: usize) -> String {
    match variable.resident_device() {
        Some(device) => device.name().to_string(),
        None => format!("/device:CPU:{replica}"),
    }
}

fn component(saved: &SavedVariable, variable: &ResourceVariable, replica: usize) -> SavedVariable {
    let name = match replica {
        0 => saved.name.clone(),
        replica => format!("{}/replica_{replica}", saved.name),
    };
    SavedVariable {
        name,
        device: device(variable, replica),
        experimental_distributed_variable_components: Vec::new(),
        ..saved.clone()
    }
}

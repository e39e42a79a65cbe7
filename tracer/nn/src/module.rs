//! Interface of any object with variables.

use crate::{
    layers::Penalty,
    summary::{ModuleSummary, WeightSummary},
};
use ferroflow_runtime::trackable::{ObjectGraph, ObjectKind, ObjectNode, Trackable};
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};

/// Variables and losses of an object, found in its object graph: those of layers, of structures of
/// layers, and of loaded models.
///
/// ```
/// use ferroflow_nn::{BatchNorm, Module, Weights};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let layer = BatchNorm::new(&mut Weights::new(), 3)?;
/// let names = |variables: Vec<ferroflow_tracer::Variable>| -> Vec<String> {
///     variables.iter().map(|variable| variable.name().to_string()).collect()
/// };
/// assert_eq!(names(layer.trainable_variables()?), ["gamma", "beta"]);
/// assert_eq!(layer.variables()?.len(), 4);
/// # Ok(())
/// # }
/// ```
pub trait Module: Trackable {
    /// All variables it leads to, each once; of those at equal distance the first field's first.
    ///
    /// # Errors
    ///
    /// When the objects it leads to make no graph ([`ObjectGraph::of`]).
    fn variables(&self) -> Result<Vec<Variable>>;

    /// Its variables that are made to be trained.
    ///
    /// # Errors
    ///
    /// As [`variables`](Module::variables).
    fn trainable_variables(&self) -> Result<Vec<Variable>> {
        let mut variables = self.variables()?;
        variables.retain(Variable::is_trainable);
        Ok(variables)
    }

    /// A table of its variables, with the number of parameters.
    ///
    /// # Errors
    ///
    /// As [`variables`](Module::variables).
    fn summary(&self) -> Result<ModuleSummary>;

    /// Penalties of its layers, added to the loss to keep weights small: a scalar for each weight
    /// that has a [`Regularizer`](crate::Regularizer).
    ///
    /// # Errors
    ///
    /// As [`variables`](Module::variables); when a variable cannot be read.
    fn regularization_losses(&self) -> Result<Vec<Tensor>>;
}

impl<T: Trackable> Module for T {
    fn variables(&self) -> Result<Vec<Variable>> {
        let graph = ObjectGraph::of(self)?;
        let variables = graph.nodes.into_iter().filter_map(|node| match node.kind {
            ObjectKind::Variable(variable) => Some(variable.into()),
            ObjectKind::Plain
            | ObjectKind::Typed(_)
            | ObjectKind::Function(_)
            | ObjectKind::ConcreteFunction(_)
            | ObjectKind::Asset(_)
            | ObjectKind::Resource(_)
            | ObjectKind::Constant(_)
            | ObjectKind::Foreign => None,
        });
        Ok(variables.collect())
    }

    fn summary(&self) -> Result<ModuleSummary> {
        let graph = ObjectGraph::of(self)?;
        let weight = |(path, node): (Option<Vec<&str>>, &ObjectNode)| match &node.kind {
            ObjectKind::Variable(variable) => Some(WeightSummary {
                path: path.unwrap_or_default().join("."),
                dtype: variable.dtype(),
                shape: variable.shape().clone(),
                is_trained: variable.is_trainable(),
            }),
            _ => None,
        };
        let weights = graph.paths().into_iter().zip(&graph.nodes).filter_map(weight);
        Ok(ModuleSummary { weights: weights.collect() })
    }

    fn regularization_losses(&self) -> Result<Vec<Tensor>> {
        let graph = ObjectGraph::of(self)?;
        let origins = graph.nodes.iter().filter_map(|node| node.origin.as_ref());
        let penalties = origins.filter_map(|origin| origin.downcast_ref::<Penalty>());
        penalties.map(Penalty::loss).collect()
    }
}

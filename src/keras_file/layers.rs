//! Weights of archives in the layers of a network.
//!
//! `config.json` has the classes of the layers in order. Their groups are named by the class in snake
//! case and a number, in them are variables in the order trainable, not trainable, and groups by the
//! names of fields (source: `_save_container_state` and `_save_state` in `keras/src/saving/saving_lib.py`).

use super::{KerasFileError, KerasFileProblem, config, read_all};
use ferroflow_ir::{HostTensor, Limits};
use ferroflow_nn::Sequential;
use ferroflow_runtime::{
    ResourceVariable,
    trackable::{ObjectGraph, ObjectKind},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// Gives the layers of a network the weights that a `.keras` archive has for its layers, in order.
/// Layers without weights do not count, on either side. Returns the number of variables.
///
/// ```
/// use ferroflow::{keras_file, nn::{BatchNorm, Dense, Layer, Mode, Sequential, Weights, Relu}};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let weights = &mut Weights::new();
/// let network = Sequential::new()
///     .then(Dense::new(weights, 4, 3)?)
///     .map(|x| x.relu())
///     .then(BatchNorm::new(weights, 3)?)
///     .then(Dense::new(weights, 3, 2)?);
/// let n = keras_file::load_weights(&network, "tests/golden/keras_files/small.keras")?;
/// assert_eq!(n, 8);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When the file cannot be read or is no archive, or when layers differ in number, or their variables
/// in name, number, dtype or shape. Then no variable has changed.
pub fn load_weights(network: &Sequential, path: impl AsRef<Path>) -> Result<usize, KerasFileError> {
    let path = path.as_ref();
    load(network, path).map_err(|problem| KerasFileError { path: path.into(), problem })
}

/// A variable and its new value.
type Assignment = (ResourceVariable, HostTensor);

fn load(network: &Sequential, path: &Path) -> Result<usize, KerasFileProblem> {
    let limits = Limits::default();
    let layers = weighted_layers(&config(path)?, read_all(path, &limits)?)?;
    let graphs = network.layers().iter().map(|layer| ObjectGraph::of(layer));
    let mut graphs =
        graphs.collect::<Result<Vec<_>, _>>().map_err(ferroflow_tracer::Error::from)?;
    graphs.retain(|graph| {
        graph.nodes.iter().any(|node| matches!(node.kind, ObjectKind::Variable(_)))
    });
    if graphs.len() != layers.len() {
        let (ours, theirs) = (graphs.len(), layers.len());
        let what = format!("the network has {ours} layers with weights, the archive {theirs}");
        return Err(KerasFileProblem::Layers(what));
    }
    let mut assignments = Vec::new();
    for (graph, (name, weights)) in graphs.iter().zip(&layers) {
        let before = assignments.len();
        pair(graph, 0, weights, name, &mut assignments)?;
        let is_variable = |node: &&ferroflow_runtime::trackable::ObjectNode| {
            matches!(node.kind, ObjectKind::Variable(_))
        };
        let n_variables = graph.nodes.iter().filter(is_variable).count();
        let n_found = assignments.len() - before;
        if n_variables != n_found {
            let what = format!("{name}: {n_variables} variables here, {n_found} in the archive");
            return Err(KerasFileProblem::Layers(what));
        }
    }
    for (variable, value) in &assignments {
        variable.assign(value.clone()).map_err(ferroflow_tracer::Error::from)?;
    }
    Ok(assignments.len())
}

/// The weights of a layer by the paths in its group.
type LayerWeights = BTreeMap<String, HostTensor>;

/// The layers that have weights, in the order of the configuration.
fn weighted_layers(
    config: &Value,
    weights: Vec<(String, HostTensor)>,
) -> Result<Vec<(String, LayerWeights)>, KerasFileProblem> {
    let mut groups: BTreeMap<String, LayerWeights> = BTreeMap::new();
    for (path, weight) in weights {
        // The state of random numbers is no weight.
        let parts = path.strip_prefix("layers/").and_then(|path| path.split_once('/'));
        if let Some((group, rest)) = parts.filter(|(_, rest)| !rest.contains("seed_generator")) {
            groups.entry(group.into()).or_default().insert(rest.into(), weight);
        }
    }
    let no_layers = || KerasFileProblem::Layers("the configuration has no list of layers".into());
    let layers = config["config"]["layers"].as_array().ok_or_else(no_layers)?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for class in layers.iter().filter_map(|layer| layer["class_name"].as_str()) {
        let name = snake_case(class);
        let count = counts.entry(name.clone()).or_default();
        let group = if *count == 0 { name } else { format!("{name}_{count}") };
        *count += 1;
        found.extend(groups.remove(&group).map(|weights| (group, weights)));
    }
    match groups.keys().next() {
        None => Ok(found),
        Some(group) => {
            let what = format!("the configuration has no layer for the weights of `{group}`");
            Err(KerasFileProblem::Layers(what))
        }
    }
}

/// A class name as Keras writes it in paths: `_to_snake_case` of `keras/src/utils/naming.py`.
fn snake_case(class: &str) -> String {
    let chars: Vec<char> = class.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
    let mut name = String::new();
    for (index, &c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| chars[index]);
        let after_is_lower = chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
        let begins_word = c.is_ascii_uppercase()
            && before.is_some_and(|before| after_is_lower || before.is_ascii_lowercase());
        if begins_word {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// Pairs the variables of an object and of those below it with weights.
fn pair(
    graph: &ObjectGraph,
    node: usize,
    weights: &LayerWeights,
    path: &str,
    pairs: &mut Vec<Assignment>,
) -> Result<(), KerasFileProblem> {
    let own: BTreeMap<usize, &HostTensor> = weights
        .iter()
        .filter_map(|(name, weight)| Some((name.strip_prefix("vars/")?.parse().ok()?, weight)))
        .collect();
    let variables = variables_of(graph, node);
    if own.len() != variables.len() {
        let (ours, theirs) = (variables.len(), own.len());
        let what = format!("{path}: {ours} variables here, {theirs} in the archive");
        return Err(KerasFileProblem::Layers(what));
    }
    for (variable, (index, weight)) in variables.into_iter().zip(own) {
        check(variable, weight, &format!("{path}/vars/{index}"))?;
        pairs.push((variable.clone(), weight.clone()));
    }
    let mut below: BTreeMap<&str, LayerWeights> = BTreeMap::new();
    for (name, weight) in weights {
        if let Some((child, rest)) = name.split_once('/').filter(|(child, _)| *child != "vars") {
            below.entry(child).or_default().insert(rest.into(), weight.clone());
        }
    }
    below.iter().try_for_each(|(child, weights)| {
        let path = format!("{path}/{child}");
        let plain = |name: &str| name.trim_start_matches('_').to_string();
        let mut children = graph.nodes[node].children.iter();
        let found = children.find(|(name, _)| plain(name) == plain(child)).ok_or_else(|| {
            KerasFileProblem::Layers(format!("{path}: the layer here has nothing of this name"))
        })?;
        pair(graph, found.1, weights, &path, pairs)
    })
}

/// The variables of an object itself, those to be trained first.
fn variables_of(graph: &ObjectGraph, node: usize) -> Vec<&ResourceVariable> {
    let mut seen = BTreeSet::new();
    let children = graph.nodes[node].children.iter().filter(|(_, child)| seen.insert(*child));
    let mut variables: Vec<&ResourceVariable> = children
        .filter_map(|(_, child)| match &graph.nodes[*child].kind {
            ObjectKind::Variable(variable) => Some(variable),
            _ => None,
        })
        .collect();
    variables.sort_by_key(|variable| !variable.is_trainable());
    variables
}

fn check(
    variable: &ResourceVariable,
    weight: &HostTensor,
    path: &str,
) -> Result<(), KerasFileProblem> {
    let fits = variable.dtype() == weight.dtype()
        && variable.shape().is_compatible_with(&weight.shape().clone().into());
    if fits {
        return Ok(());
    }
    let (dtype, shape) = (variable.dtype(), variable.shape());
    let found = format!("{}{}", weight.dtype(), weight.shape());
    let what = format!("{path}: {found} in the archive, the variable is {dtype}{shape}");
    Err(KerasFileProblem::Layers(what))
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn classes_are_named_as_in_keras() {
        for (class, name) in [
            ("Dense", "dense"),
            ("BatchNormalization", "batch_normalization"),
            ("Conv2DTranspose", "conv2d_transpose"),
            ("LSTM", "lstm"),
            ("PReLU", "p_re_lu"),
            ("MultiHeadAttention", "multi_head_attention"),
            ("ConvLSTM2D", "conv_lstm2d"),
            ("GroupQueryAttention", "group_query_attention"),
        ] {
            assert_eq!(snake_case(class), name);
        }
    }
}

//! Collections of a MetaGraph: the pieces of a training by TensorFlow's keys.

use super::error::MonitoredError;
use crate::{
    error::Result,
    proto::{MetaGraphDef, collection_def::Kind},
};
use prost::Message;

/// The names of nodes or tensors in a collection; none if it is absent.
pub(super) fn nodes<'a>(meta_graph: &'a MetaGraphDef, key: &'static str) -> Result<&'a [String]> {
    match kind(meta_graph, key) {
        None => Ok(&[]),
        Some(Kind::NodeList(list)) => Ok(&list.value),
        Some(_) => Err(MonitoredError::BadCollection { key, expected: "names of nodes" }.into()),
    }
}

/// The name of the node or tensor in a collection that has at most one.
pub(super) fn node(meta_graph: &MetaGraphDef, key: &'static str) -> Result<Option<String>> {
    Ok(at_most_one(key, nodes(meta_graph, key)?)?.cloned())
}

/// The messages in a collection; none if it is absent.
pub(super) fn messages<M: Message + Default>(
    meta_graph: &MetaGraphDef,
    key: &'static str,
) -> Result<Vec<M>> {
    let bad = |expected| MonitoredError::BadCollection { key, expected };
    let list = match kind(meta_graph, key) {
        None => return Ok(Vec::new()),
        Some(Kind::BytesList(list)) => list,
        Some(_) => return Err(bad("messages").into()),
    };
    let decoded = list.value.iter().map(|bytes| M::decode(bytes.clone()));
    decoded.map(|message| message.map_err(|_| bad("messages of its kind").into())).collect()
}

/// Item of a collection that has at most one.
pub(super) fn at_most_one<'a, T>(key: &'static str, items: &'a [T]) -> Result<Option<&'a T>> {
    match items {
        [] => Ok(None),
        [item] => Ok(Some(item)),
        several => Err(MonitoredError::Ambiguous { key, n: several.len() }.into()),
    }
}

/// Whether there is such a collection.
pub(super) fn has(meta_graph: &MetaGraphDef, key: &str) -> bool {
    kind(meta_graph, key).is_some()
}

fn kind<'a>(meta_graph: &'a MetaGraphDef, key: &str) -> Option<&'a Kind> {
    meta_graph.collection_def.get(key)?.kind.as_ref()
}

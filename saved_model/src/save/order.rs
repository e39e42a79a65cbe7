//! The order of objects in the file: the nearest to the root first.

use crate::proto::SavedObjectGraph;
use std::collections::VecDeque;

/// Numbers the objects breadth first; those that no edge leads to come last, in their order.
pub(super) fn breadth_first(graph: &mut SavedObjectGraph) {
    let n = graph.nodes.len();
    let (mut order, mut seen) = (Vec::with_capacity(n), vec![false; n]);
    for start in 0..n {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            order.push(id);
            for child in &graph.nodes[id].children {
                let child = child.node_id as usize;
                if !std::mem::replace(&mut seen[child], true) {
                    queue.push_back(child);
                }
            }
        }
    }
    let mut number = vec![0; n];
    order.iter().enumerate().for_each(|(new, &old)| number[old] = new as i32);
    let renumber = |id: &mut i32| *id = number[*id as usize];
    let mut nodes = std::mem::take(&mut graph.nodes);
    graph.nodes = order.iter().map(|&old| std::mem::take(&mut nodes[old])).collect();
    for node in &mut graph.nodes {
        let references = node.children.iter_mut().chain(&mut node.dependencies);
        references.for_each(|reference| renumber(&mut reference.node_id));
        for saveable in node.saveable_objects.values_mut() {
            renumber(&mut saveable.save_function);
            renumber(&mut saveable.restore_function);
        }
    }
    for function in graph.concrete_functions.values_mut() {
        function.bound_inputs.iter_mut().for_each(renumber);
    }
}

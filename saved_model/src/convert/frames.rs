//! The frames of loops as TensorFlow 1 writes them: `Enter` leads into a frame, `Exit` out of it,
//! and everything else stays where its inputs are.

use ferroflow_ir::{Error, Graph, NodeId, Result};
use std::collections::{HashMap, HashSet};

/// The outermost frame, outside all loops.
const OUTSIDE: usize = 0;

/// Which node runs in which frame.
struct Frames<'a> {
    graph: &'a Graph,
    /// The frame around each, and its name.
    frames: Vec<(usize, String)>,
    by_name: HashMap<(usize, String), usize>,
    of_node: HashMap<NodeId, usize>,
}

/// Checks that the loops of a graph are well formed.
///
/// # Errors
///
/// [`Error::Argument`], at the node, for an `Exit` outside all loops and for a node whose inputs
/// come from different frames.
pub(crate) fn check_frames(graph: &Graph) -> Result<()> {
    let is_loop = |name: &str| matches!(name, "Enter" | "RefEnter" | "Exit" | "RefExit");
    if !graph.iter().any(|(_, node)| is_loop(node.op.name())) {
        return Ok(());
    }
    let frames = vec![(OUTSIDE, String::new())];
    Frames { graph, frames, by_name: HashMap::new(), of_node: HashMap::new() }.walk()
}

impl Frames<'_> {
    fn walk(&mut self) -> Result<()> {
        let has_inputs = |id: &NodeId| {
            let node = &self.graph[*id];
            !node.inputs().is_empty() || !node.controls().is_empty()
        };
        let mut waiting: Vec<NodeId> = self.graph.ids().filter(|id| !has_inputs(id)).collect();
        self.of_node.extend(waiting.iter().map(|&id| (id, OUTSIDE)));
        while let Some(id) = waiting.pop() {
            let result = self.result(id)?;
            let consumers: HashSet<NodeId> = self.graph.consumers(id).collect();
            for consumer in consumers {
                match self.of_node.get(&consumer) {
                    None => {
                        self.of_node.insert(consumer, result);
                        waiting.push(consumer);
                    }
                    Some(&frame) if frame == result => {}
                    Some(&frame) => return Err(self.mixed(consumer, frame, result)),
                }
            }
        }
        Ok(())
    }

    /// The frame of a node's results.
    fn result(&mut self, id: NodeId) -> Result<usize> {
        let (node, frame) = (&self.graph[id], self.of_node[&id]);
        match node.op.name() {
            "Enter" | "RefEnter" => {
                let name = node.attrs.string("frame_name")?.to_string();
                let next = self.frames.len();
                let entered = *self.by_name.entry((frame, name.clone())).or_insert(next);
                if entered == next {
                    self.frames.push((frame, name));
                }
                Ok(entered)
            }
            "Exit" | "RefExit" if frame == OUTSIDE => {
                let error = Error::argument("Exit", "data", "a value of a loop", "one of no loop");
                Err(error.at_node(&node.name, node.op.name(), ""))
            }
            "Exit" | "RefExit" => Ok(self.frames[frame].0),
            _ => Ok(frame),
        }
    }

    fn mixed(&self, id: NodeId, one: usize, other: usize) -> Error {
        let node = &self.graph[id];
        let name = |frame: usize| match frame {
            OUTSIDE => "no loop".to_string(),
            frame => format!("loop `{}`", self.frames[frame].1),
        };
        let found = format!("values of {} and of {}", name(one), name(other));
        let op = node.op.name().to_string();
        Error::argument(op.clone(), "inputs", "values of one loop", found)
            .at_node(&node.name, &op, "")
    }
}

//! Frames that nodes run in: `Enter` leads into one, `Exit` out of it, and everything else stays
//! where its inputs are.

use super::{Flow, Scope, flow};
use crate::{
    error::{Error, Result},
    function::FunctionLibrary,
    graph::{Graph, NodeId},
    hash::{FastMap, FastSet},
    limits::Limits,
};
use std::collections::HashMap;

/// The outermost frame, outside all loops.
pub(super) const OUTSIDE: usize = 0;

/// The frames of a graph, each after the one around it.
pub(super) struct Frames {
    frames: Vec<LoopFrame>,
    by_name: HashMap<(usize, String), usize>,
    of_node: FastMap<NodeId, usize>,
}

/// A frame: the loop of a graph.
#[derive(Default)]
pub(super) struct LoopFrame {
    pub(super) name: String,
    /// The frame around it.
    pub(super) parent: usize,
    /// Number of frames around it.
    pub(super) depth: usize,
    /// The nodes that lead into it. They run in the frame around it.
    pub(super) entries: Vec<NodeId>,
    /// The nodes that run in it, in the order they were added to the graph.
    pub(super) nodes: Vec<NodeId>,
}

impl Frames {
    /// The frames of the nodes in `live`.
    pub(super) fn of(graph: &Graph, live: &FastSet<NodeId>, limits: &Limits) -> Result<Frames> {
        let mut frames = Frames {
            frames: vec![LoopFrame::default()],
            by_name: HashMap::new(),
            of_node: FastMap::default(),
        };
        frames.walk(graph, live, limits)?;
        for id in graph.ids().filter(|id| live.contains(id)) {
            let Some(&frame) = frames.of_node.get(&id) else {
                let rule = "a loop is entered".into();
                return Err(Error::Malformed { node: graph[id].name.to_string(), rule });
            };
            frames.frames[frame].nodes.push(id);
        }
        frames.frames.iter_mut().for_each(|frame| frame.entries.sort());
        Ok(frames)
    }

    /// The number of frames, the outermost included.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Frame number `index`.
    pub(super) fn get(&self, index: usize) -> &LoopFrame {
        &self.frames[index]
    }

    fn walk(&mut self, graph: &Graph, live: &FastSet<NodeId>, limits: &Limits) -> Result<()> {
        let has_inputs = |id: &NodeId| {
            let node = &graph[*id];
            !node.inputs().is_empty() || !node.controls().is_empty()
        };
        let sources = graph.ids().filter(|id| live.contains(id) && !has_inputs(id));
        let mut waiting: Vec<NodeId> = sources.collect();
        self.of_node.extend(waiting.iter().map(|&id| (id, OUTSIDE)));
        while let Some(id) = waiting.pop() {
            let result = self.result(graph, id, limits)?;
            for consumer in graph.consumers(id).filter(|id| live.contains(id)) {
                match self.of_node.get(&consumer) {
                    None => {
                        self.of_node.insert(consumer, result);
                        waiting.push(consumer);
                    }
                    Some(&frame) if frame == result => {}
                    Some(&frame) => return Err(self.mixed(graph, consumer, frame, result)),
                }
            }
        }
        Ok(())
    }

    /// The frame of a node's results.
    fn result(&mut self, graph: &Graph, id: NodeId, limits: &Limits) -> Result<usize> {
        let (node, frame) = (&graph[id], self.of_node[&id]);
        match flow(node) {
            Some(Flow::Enter) => {
                let name = node.attrs.string("frame_name")?.to_string();
                let entered = self.entered(frame, name);
                let library = FunctionLibrary::new();
                Scope { library: &library, limits }
                    .check_depth(self.frames[entered].depth)
                    .map_err(|error| error.at_node(&node.name, node.op.name(), ""))?;
                self.frames[entered].entries.push(id);
                Ok(entered)
            }
            Some(Flow::Exit) if frame == OUTSIDE => {
                let error = Error::argument("Exit", "data", "a value of a loop", "one of no loop");
                Err(error.at_node(&node.name, node.op.name(), ""))
            }
            Some(Flow::Exit) => Ok(self.frames[frame].parent),
            _ => Ok(frame),
        }
    }

    fn entered(&mut self, parent: usize, name: String) -> usize {
        let next = self.frames.len();
        let entered = *self.by_name.entry((parent, name.clone())).or_insert(next);
        if entered == next {
            let depth = self.frames[parent].depth + 1;
            self.frames.push(LoopFrame { name, parent, depth, ..LoopFrame::default() });
        }
        entered
    }

    fn mixed(&self, graph: &Graph, id: NodeId, one: usize, other: usize) -> Error {
        let node = &graph[id];
        let name = |frame: usize| match frame {
            OUTSIDE => "no loop".to_string(),
            frame => format!("loop `{}`", self.frames[frame].name),
        };
        let found = format!("values of {} and of {}", name(one), name(other));
        let op = node.op.name().to_string();
        Error::argument(op.clone(), "inputs", "values of one loop", found)
            .at_node(&node.name, &op, "")
    }
}

//! The graph that objects lead to.

use super::{Deferral, Identity, ObjectKind, ObjectOrigin, ObjectType, Saveable, Trackable};
use crate::{
    error::{Error, Result},
    variable::ResourceVariable,
};
use ferroflow_ir::Code;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

/// The objects that one object leads to, at one time.
#[derive(Clone, Debug)]
pub struct ObjectGraph {
    /// The objects, the nearest first: number 0 is the one that all are reached from.
    pub nodes: Vec<ObjectNode>,
}

/// An object.
#[derive(Clone, Default)]
pub struct ObjectNode {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// The objects it leads to, by name.
    pub children: Vec<(String, usize)>,
    /// Names of the children that are loaded before it.
    pub dependencies: Vec<String>,
    /// Variables it keeps for other variables.
    pub slots: Vec<SlotVariable>,
    /// State of it that is no variable.
    pub saveables: Vec<Arc<dyn Saveable>>,
    /// By what it is known.
    pub identity: Option<Identity>,
    /// Knowledge of the crate that it comes from.
    pub origin: Option<ObjectOrigin>,
    /// Where values wait for what it makes later.
    pub deferral: Option<Deferral>,
}

/// A variable that an optimizer keeps for another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotVariable {
    /// Name of the slot in the optimizer, such as `momentum`.
    pub name: String,
    /// The node of the variable it belongs to.
    pub original: usize,
    /// Its own node.
    pub slot: usize,
}

impl fmt::Debug for ObjectNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.children)
    }
}

impl ObjectNode {
    /// The names of its children.
    pub fn edges(&self) -> impl Iterator<Item = &str> {
        self.children.iter().map(|(name, _)| name.as_str())
    }

    /// A child by name.
    pub fn child(&self, name: &str) -> Option<usize> {
        self.children.iter().find(|(edge, _)| edge == name).map(|(_, node)| *node)
    }
}

impl ObjectGraph {
    /// All objects that `root` leads to.
    ///
    /// # Errors
    ///
    /// [`Error::Status`] when an object has two children of one name, or keeps a variable for one
    /// that is not in the graph.
    pub fn of(root: &dyn Trackable) -> Result<ObjectGraph> {
        ObjectGraph::walked(Walk::default(), root)
    }

    /// The same for a model: functions that are to be part of it are traced first.
    ///
    /// # Errors
    ///
    /// As [`of`](ObjectGraph::of), and whatever fails while a function is traced.
    pub fn of_model(root: &dyn Trackable) -> Result<ObjectGraph> {
        ObjectGraph::walked(Walk { is_for_model: true, ..Walk::default() }, root)
    }

    fn walked(mut walk: Walk, root: &dyn Trackable) -> Result<ObjectGraph> {
        let first = walk.enter(root);
        walk.visit(first, root);
        while let Some((id, object)) = walk.waiting.pop_front() {
            walk.visit(id, &*object);
        }
        walk.finish()
    }

    /// The node of an object that has an identity.
    pub fn find(&self, identity: Identity) -> Option<usize> {
        self.nodes.iter().position(|node| node.identity == Some(identity))
    }

    /// Takes away the objects that nothing leads to any more, and puts the others in order.
    pub fn prune(&mut self) {
        let mut order = Vec::new();
        let mut number = vec![None; self.nodes.len()];
        let (mut queue, mut slots) = (VecDeque::from([0]), VecDeque::new());
        // What is kept for others comes last.
        while let Some(id) = queue.pop_front().or_else(|| slots.pop_front()) {
            if number[id].is_none() {
                number[id] = Some(order.len());
                order.push(id);
                queue.extend(self.nodes[id].children.iter().map(|(_, child)| *child));
                slots.extend(self.nodes[id].slots.iter().map(|slot| slot.slot));
            }
        }
        let number: Vec<usize> = number.into_iter().map(Option::unwrap_or_default).collect();
        self.nodes = order.into_iter().map(|id| std::mem::take(&mut self.nodes[id])).collect();
        self.nodes.iter_mut().for_each(|node| renumber(node, &number));
    }

    /// For each node a path that leads to it, of those with the fewest edges the first. Variables
    /// that are only kept for others have none.
    pub fn paths(&self) -> Vec<Option<Vec<&str>>> {
        let mut paths: Vec<Option<Vec<&str>>> = vec![None; self.nodes.len()];
        paths[0] = Some(Vec::new());
        let mut queue = VecDeque::from([0]);
        while let Some(id) = queue.pop_front() {
            let path = paths[id].clone().unwrap_or_default();
            for (name, child) in &self.nodes[id].children {
                if paths[*child].is_none() {
                    paths[*child] = Some(path.iter().copied().chain([name.as_str()]).collect());
                    queue.push_back(*child);
                }
            }
        }
        paths
    }
}

/// Description of an object by itself.
pub struct Description<'a> {
    walk: &'a mut Walk,
    id: usize,
}

impl fmt::Debug for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.walk.nodes[self.id])
    }
}

impl Description<'_> {
    /// It is this; an object that says nothing is one that only leads to others.
    pub fn is(&mut self, kind: ObjectKind) -> &mut Self {
        self.walk.nodes[self.id].kind = kind;
        self
    }

    /// It is of a type that loaders may know.
    pub fn has_type(&mut self, identifier: &str) -> &mut Self {
        self.is(ObjectKind::Typed(ObjectType::new(identifier)))
    }

    /// It leads to another object.
    pub fn child(&mut self, name: impl AsRef<str>, child: &dyn Trackable) -> &mut Self {
        let name = name.as_ref();
        let is_held = child.hand_on(&mut |inner| {
            self.child(name, inner);
        });
        if !is_held && let Some(id) = self.edge(name, child) {
            self.walk.visit(id, child);
        }
        self
    }

    /// It leads to another object where a model is saved, and not in checkpoints: state that functions of
    /// the model need, and that others do not expect in a checkpoint.
    pub fn child_of_model<T: Trackable>(
        &mut self,
        name: &str,
        child: impl FnOnce() -> Option<T>,
    ) -> &mut Self {
        if self.walk.is_for_model
            && let Some(child) = child()
        {
            self.child(name, &child);
        }
        self
    }

    /// It leads to an object that is shared. However long a chain of such is, it is walked in
    /// bounded stack.
    pub fn shared_child(&mut self, name: &str, child: Arc<dyn Trackable>) -> &mut Self {
        if let Some(id) = self.edge(name, &*child) {
            self.walk.waiting.push_back((id, child));
        }
        self
    }

    /// An edge to an object, returning its number if the object is new.
    fn edge(&mut self, name: &str, child: &dyn Trackable) -> Option<usize> {
        let known = self.walk.known(child);
        let id = known.unwrap_or_else(|| self.walk.enter(child));
        self.walk.nodes[self.id].children.push((name.into(), id));
        known.is_none().then_some(id)
    }

    /// Loaders make the child of this name before the object: it is needed to make the object, as
    /// `_deserialization_dependencies` says in Python. A saved model tells so; objects that depend on
    /// each other are refused when it is loaded.
    ///
    /// ```
    /// use ferroflow_runtime::{Result, ResourceVariable, trackable::{Description, Trackable}};
    ///
    /// struct Tokenizer {
    ///     pieces: ResourceVariable,
    /// }
    ///
    /// impl Trackable for Tokenizer {
    ///     fn describe(&self, description: &mut Description<'_>) {
    ///         description.has_type("example.Tokenizer");
    ///         description.child("pieces", &self.pieces).dependency("pieces");
    ///     }
    /// }
    /// ```
    pub fn dependency(&mut self, child: &str) -> &mut Self {
        self.walk.nodes[self.id].dependencies.push(child.into());
        self
    }

    /// It has a function that is traced now if the objects are those of a model to be saved.
    pub fn traced(&mut self, trace: impl FnOnce() -> Result<()>) -> &mut Self {
        if self.walk.is_for_model && self.walk.failure.is_none() {
            self.walk.failure = trace().err();
        }
        self
    }

    /// It keeps a variable for another variable.
    pub fn slot(
        &mut self,
        name: &str,
        original: &ResourceVariable,
        slot: &ResourceVariable,
    ) -> &mut Self {
        self.walk.slots.push((self.id, name.into(), original.clone(), slot.clone()));
        self
    }

    /// It has state that is no variable.
    pub fn saveable(&mut self, saveable: Arc<dyn Saveable>) -> &mut Self {
        self.walk.nodes[self.id].saveables.push(saveable);
        self
    }

    /// It makes objects later, for which values wait here.
    pub fn deferral(&mut self, deferral: &Deferral) -> &mut Self {
        self.walk.nodes[self.id].deferral = Some(deferral.clone());
        self
    }

    /// Sets the knowledge of the crate that it comes from.
    pub fn origin(&mut self, origin: ObjectOrigin) -> &mut Self {
        self.walk.nodes[self.id].origin = Some(origin);
        self
    }
}

/// A walk through objects.
#[derive(Default)]
struct Walk {
    nodes: Vec<ObjectNode>,
    by_identity: HashMap<Identity, usize>,
    waiting: VecDeque<(usize, Arc<dyn Trackable>)>,
    slots: Vec<(usize, String, ResourceVariable, ResourceVariable)>,
    is_for_model: bool,
    /// Why a function could not be traced.
    failure: Option<Error>,
}

impl Walk {
    fn known(&self, object: &dyn Trackable) -> Option<usize> {
        self.by_identity.get(&object.identity()?).copied()
    }

    fn enter(&mut self, object: &dyn Trackable) -> usize {
        let id = self.nodes.len();
        let identity = object.identity();
        self.nodes.push(ObjectNode { identity, ..ObjectNode::default() });
        if let Some(identity) = identity {
            self.by_identity.insert(identity, id);
        }
        id
    }

    fn visit(&mut self, id: usize, object: &dyn Trackable) {
        object.describe(&mut Description { walk: self, id });
    }

    fn finish(mut self) -> Result<ObjectGraph> {
        self.failure.take().map_or(Ok(()), Err)?;
        for (owner, name, original, slot) in std::mem::take(&mut self.slots) {
            let found = self.known(&original);
            let missing = || {
                let message = format!(
                    "slot variable `{name}` belongs to the variable `{}`, which the saved object \
                     does not lead to",
                    original.name()
                );
                Error::Status { code: Code::InvalidArgument, message }
            };
            let original = found.ok_or_else(missing)?;
            let slot_id = match self.known(&slot) {
                Some(id) => id,
                None => {
                    let id = self.enter(&slot);
                    self.visit(id, &slot);
                    id
                }
            };
            self.nodes[owner].slots.push(SlotVariable { name, original, slot: slot_id });
        }
        for node in &self.nodes {
            let mut seen = HashSet::new();
            if let Some(name) = node.edges().find(|name| !seen.insert(*name)) {
                let message = format!("an object has two children called `{name}`");
                return Err(Error::Status { code: Code::AlreadyExists, message });
            }
        }
        Ok(self.in_order())
    }

    /// The nodes in order of their distance from the first.
    fn in_order(self) -> ObjectGraph {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut number = vec![usize::MAX; self.nodes.len()];
        let mut queue = VecDeque::from([0]);
        number[0] = 0;
        while let Some(id) = queue.pop_front() {
            order.push(id);
            let node = &self.nodes[id];
            for &(_, child) in &node.children {
                if number[child] == usize::MAX {
                    number[child] = 0;
                    queue.push_back(child);
                }
            }
        }
        // What is kept for others comes last.
        order.extend((0..self.nodes.len()).filter(|&id| number[id] == usize::MAX));
        for (new, &old) in order.iter().enumerate() {
            number[old] = new;
        }
        let mut nodes: Vec<ObjectNode> = order.iter().map(|&id| self.nodes[id].clone()).collect();
        nodes.iter_mut().for_each(|node| renumber(node, &number));
        ObjectGraph { nodes }
    }
}

/// Renumbers the nodes that a node refers to.
fn renumber(node: &mut ObjectNode, number: &[usize]) {
    node.children.iter_mut().for_each(|(_, child)| *child = number[*child]);
    for slot in &mut node.slots {
        slot.original = number[slot.original];
        slot.slot = number[slot.slot];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::HostTensor;
    use std::{
        collections::{BTreeMap, HashMap},
        sync::{Mutex, OnceLock},
    };

    fn variable(name: &str) -> ResourceVariable {
        ResourceVariable::new(name, HostTensor::scalar(1.0f32))
    }

    /// The paths to all objects, in order.
    fn paths(root: &dyn Trackable) -> Vec<String> {
        let graph = ObjectGraph::of(root).unwrap();
        graph.paths().into_iter().map(|path| path.unwrap().join("/")).collect()
    }

    #[test]
    fn containers_lead_to_what_is_in_them() {
        let shared = variable("v");
        let map = HashMap::from([("b".to_string(), shared.clone()), ("a".into(), variable("w"))]);
        let cell: OnceLock<ResourceVariable> = OnceLock::new();
        let object = (vec![Some(shared), None, Some(variable("u"))], map, cell, 3.5f32, "text");
        assert_eq!(paths(&object), ["", "0", "1", "0/0", "0/2", "1/a"]);
        let graph = ObjectGraph::of(&object).unwrap();
        assert_eq!(graph.nodes[2].child("b"), Some(3));
        let kinds: Vec<String> =
            graph.nodes[..3].iter().map(|node| format!("{:?}", node.kind)).collect();
        let wrappers = ["tuple", "list", "dict"];
        assert_eq!(kinds, wrappers.map(|kind| format!("a `trackable_{kind}_wrapper`")));
    }

    struct Ring {
        next: Mutex<Option<Arc<Ring>>>,
        v: ResourceVariable,
    }

    impl Trackable for Ring {
        fn describe(&self, object: &mut Description<'_>) {
            object.child("next", &self.next).child("v", &self.v);
        }
    }

    #[test]
    fn circles_are_walked_once() {
        let ring = || Arc::new(Ring { next: Mutex::new(None), v: variable("v") });
        let (a, b) = (ring(), ring());
        *a.next.lock().unwrap() = Some(b.clone());
        *b.next.lock().unwrap() = Some(a.clone());
        assert_eq!(paths(&a), ["", "next", "v", "next/v"]);
        a.next.lock().unwrap().take();
    }

    struct Momentum(ResourceVariable, ResourceVariable);

    impl Trackable for Momentum {
        fn describe(&self, object: &mut Description<'_>) {
            object.slot("m", &self.0, &self.1);
        }
    }

    #[test]
    fn what_nothing_leads_to_is_taken_away() {
        let objects = (vec![variable("a")], (variable("b"), variable("c")), variable("d"));
        let mut graph = ObjectGraph::of(&objects).unwrap();
        graph.nodes[0].children.remove(0);
        graph.prune();
        let paths: Vec<String> =
            graph.paths().into_iter().map(|path| path.unwrap().join("/")).collect();
        assert_eq!(paths, ["", "1", "2", "1/0", "1/1"]);
    }

    #[test]
    fn slots_belong_to_variables_of_the_graph() {
        let (v, m) = (variable("v"), variable("m"));
        let optimizer = Momentum(v.clone(), m);
        let error = ObjectGraph::of(&optimizer).unwrap_err().to_string();
        assert!(error.starts_with("slot variable `m` belongs to the variable `v`"), "{error}");
        let graph = ObjectGraph::of(&(optimizer, v)).unwrap();
        let slot = SlotVariable { name: "m".into(), original: 2, slot: 3 };
        assert_eq!(graph.nodes[1].slots, [slot]);
    }

    struct Twins(ResourceVariable);

    impl Trackable for Twins {
        fn describe(&self, object: &mut Description<'_>) {
            object.child("v", &self.0).child("v", &self.0);
        }
    }

    #[test]
    fn names_of_children_are_told_apart() {
        let error = ObjectGraph::of(&Twins(variable("v"))).unwrap_err();
        assert_eq!(error.to_string(), "an object has two children called `v`");
        let long: BTreeMap<String, Arc<dyn Trackable>> = BTreeMap::new();
        assert_eq!(paths(&long), [""]);
    }
}

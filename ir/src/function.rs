//! Functions: graphs with arguments and results, and libraries of them.

use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    dtype::DType,
    error::{Error, Result},
    gradient::LoadedGradient,
    graph::{Graph, NodeId, OpRef, Outlet},
    hash::FastSet,
    modules,
    op::{CallKind, Effect, OpDef},
    spec::ValueType,
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

/// A graph with arguments and results.
///
/// Arguments are nodes of the internal op `_Arg`, in order; their results have the arguments'
/// types.
#[derive(Clone, Debug)]
pub struct FunctionDef {
    /// The name, unique in its library.
    pub name: Arc<str>,
    /// The body.
    pub graph: Graph,
    /// The argument nodes.
    pub args: Vec<NodeId>,
    /// The results, by name.
    pub results: Vec<(String, Outlet)>,
    /// Nodes that must run although no result depends on them.
    pub control_results: Vec<NodeId>,
    /// Attributes of the function itself.
    pub attrs: Attrs,
}

impl FunctionDef {
    /// The type of argument `index`.
    pub fn arg_type(&self, index: usize) -> &ValueType {
        &self.graph[self.args[index]].outputs()[0]
    }

    /// The name of argument `index`.
    pub fn arg_name(&self, index: usize) -> &str {
        &self.graph[self.args[index]].name
    }

    /// The dtypes of the arguments.
    pub fn arg_dtypes(&self) -> Vec<DType> {
        (0..self.args.len()).map(|index| self.arg_type(index).dtype).collect()
    }

    /// The nodes that calling the function runs: those that results or control results need, and
    /// those with effects.
    pub fn live_nodes(&self, library: &FunctionLibrary) -> FastSet<NodeId> {
        let results = self.results.iter().map(|(_, outlet)| outlet.node);
        let effectful = library.effectful_nodes(&self.graph);
        let roots = results.chain(self.control_results.iter().copied()).chain(effectful);
        self.graph.reachable_from(roots.chain(self.args.iter().copied()))
    }
}

type Loader = Box<dyn Fn() -> Result<FunctionDef> + Send + Sync>;

struct Entry {
    def: OnceLock<Result<Arc<FunctionDef>>>,
    load: Option<Loader>,
    effect: OnceLock<Effect>,
}

/// Functions by name.
///
/// A function may be given as a loader that makes it when it is first asked for: a library read
/// from a file costs only what is called.
#[derive(Default)]
pub struct FunctionLibrary {
    entries: RwLock<HashMap<Arc<str>, Arc<Entry>>>,
    gradients: RwLock<Gradients>,
    /// The functions of programs that calls hold, by the attributes of the calls.
    modules: RwLock<Vec<Module>>,
}

/// The attributes of a call that holds a program, and the function of it.
type Module = (Attrs, Arc<FunctionDef>);

/// The gradients that programs bring along.
#[derive(Default, Clone)]
struct Gradients {
    /// Of nodes, by the names that nodes have for them.
    of_nodes: HashMap<Arc<str>, Arc<LoadedGradient>>,
    /// Why nodes that name a gradient have none.
    refused: HashMap<Arc<str>, Error>,
    /// Of functions: the names of the functions that are their gradients.
    of_functions: HashMap<Arc<str>, Arc<str>>,
}

impl FunctionLibrary {
    /// An empty library.
    pub fn new() -> FunctionLibrary {
        FunctionLibrary::default()
    }

    /// Adds a function.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when the name is taken.
    pub fn insert(&self, function: FunctionDef) -> Result<Arc<FunctionDef>> {
        let name = function.name.clone();
        let function = Arc::new(function);
        let def = OnceLock::from(Ok(function.clone()));
        self.add(name, Entry { def, load: None, effect: OnceLock::new() })?;
        Ok(function)
    }

    /// Adds a function that `load` makes when it is first asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when the name is taken.
    pub fn insert_lazy(
        &self,
        name: impl Into<Arc<str>>,
        load: impl Fn() -> Result<FunctionDef> + Send + Sync + 'static,
    ) -> Result<()> {
        let load = Some(Box::new(load) as Loader);
        self.add(name.into(), Entry { def: OnceLock::new(), load, effect: OnceLock::new() })
    }

    fn add(&self, name: Arc<str>, entry: Entry) -> Result<()> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.contains_key(&name) {
            return Err(Error::Duplicate { kind: "function", name: name.to_string() });
        }
        entries.insert(name, Arc::new(entry));
        Ok(())
    }

    /// Adds a function that others may hold too; nothing happens if it is there already.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when another function has the name.
    pub fn share_function(&self, function: &Arc<FunctionDef>) -> Result<()> {
        let name = function.name.clone();
        if let Some(entry) = self.entry(&name) {
            return match entry.def.get() {
                Some(Ok(present)) if Arc::ptr_eq(present, function) => Ok(()),
                _ => Err(Error::Duplicate { kind: "function", name: name.to_string() }),
            };
        }
        let def = OnceLock::from(Ok(function.clone()));
        self.add(name, Entry { def, load: None, effect: OnceLock::new() })
    }

    /// Adds all functions of another library; both hold the same ones.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] when another function has the name of one of them.
    pub fn share(&self, other: &FunctionLibrary) -> Result<()> {
        self.share_gradients(other)?;
        let theirs = other.entries.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut ours = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        for (name, entry) in theirs {
            match ours.get(&name) {
                Some(present) if !Arc::ptr_eq(present, &entry) => {
                    let same = matches!(
                        (present.def.get(), entry.def.get()),
                        (Some(Ok(a)), Some(Ok(b))) if Arc::ptr_eq(a, b)
                    );
                    if !same {
                        return Err(Error::Duplicate { kind: "function", name: name.to_string() });
                    }
                }
                Some(_) => {}
                None => {
                    ours.insert(name, entry);
                }
            }
        }
        Ok(())
    }

    /// Adds the gradient of nodes that name it in the attribute `_gradient_op_type`. A name means
    /// one gradient: of two, the first stays.
    pub fn carry_gradient(&self, name: impl Into<Arc<str>>, gradient: LoadedGradient) {
        let mut gradients = self.gradients.write().unwrap_or_else(PoisonError::into_inner);
        gradients.of_nodes.entry(name.into()).or_insert_with(|| Arc::new(gradient));
    }

    /// The gradient that nodes name so.
    pub fn loaded_gradient(&self, name: &str) -> Option<Arc<LoadedGradient>> {
        let gradients = self.gradients.read().unwrap_or_else(PoisonError::into_inner);
        gradients.of_nodes.get(name).cloned()
    }

    /// Notes that there is no gradient of this name, because making it was this error.
    pub fn refuse_gradient(&self, name: impl Into<Arc<str>>, error: Error) {
        let mut gradients = self.gradients.write().unwrap_or_else(PoisonError::into_inner);
        gradients.refused.insert(name.into(), error);
    }

    /// The error that making the gradient of this name was.
    pub fn refused_gradient(&self, name: &str) -> Option<Error> {
        let gradients = self.gradients.read().unwrap_or_else(PoisonError::into_inner);
        gradients.refused.get(name).cloned()
    }

    /// Makes a function the gradient of another: it takes the arguments of the other and the
    /// gradients of its results, and gives the gradients of the arguments.
    pub fn set_gradient(&self, function: impl Into<Arc<str>>, gradient: impl Into<Arc<str>>) {
        let mut gradients = self.gradients.write().unwrap_or_else(PoisonError::into_inner);
        gradients.of_functions.insert(function.into(), gradient.into());
    }

    /// The name of the function that was made the gradient of another.
    pub fn gradient_of(&self, function: &str) -> Option<Arc<str>> {
        let gradients = self.gradients.read().unwrap_or_else(PoisonError::into_inner);
        gradients.of_functions.get(function).cloned()
    }

    /// The function of the program that the attributes of a call hold.
    ///
    /// # Errors
    ///
    /// The errors of a malformed program.
    pub fn module(&self, attrs: &Attrs) -> Result<Arc<FunctionDef>> {
        let find = |modules: &[Module]| {
            modules.iter().find(|(own, _)| own == attrs).map(|(_, function)| function.clone())
        };
        let known = find(&self.modules.read().unwrap_or_else(PoisonError::into_inner));
        if let Some(function) = known {
            return Ok(function);
        }
        let function = modules::import(attrs, self)?;
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = find(&modules) {
            return Ok(first);
        }
        modules.push((attrs.clone(), function.clone()));
        Ok(function)
    }

    fn share_gradients(&self, other: &FunctionLibrary) -> Result<()> {
        let theirs = other.gradients.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut ours = self.gradients.write().unwrap_or_else(PoisonError::into_inner);
        for (name, gradient) in theirs.of_nodes {
            let kept = ours.of_nodes.entry(name.clone()).or_insert_with(|| gradient.clone());
            if *kept != gradient {
                return Err(Error::Duplicate { kind: "gradient", name: name.to_string() });
            }
        }
        ours.refused.extend(theirs.refused);
        ours.of_functions.extend(theirs.of_functions);
        Ok(())
    }

    fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Whether there is a function of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<Arc<str>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<Arc<str>> = entries.keys().cloned().collect();
        names.sort();
        names
    }

    /// The function of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], or whatever its loader found wrong with it.
    pub fn get(&self, name: &str) -> Result<Arc<FunctionDef>> {
        let entry = self
            .entry(name)
            .ok_or_else(|| Error::NotFound { kind: "function", name: name.into() })?;
        entry.get()
    }

    /// Effect of a call of `op` with these attributes: for ops that call functions, whatever those
    /// do. A function that cannot be found or loaded may do anything.
    pub fn effect_of(&self, op: &OpRef, attrs: &Attrs) -> Effect {
        self.effect_below(op, attrs, &mut Vec::new())
    }

    fn effect_below(&self, op: &OpRef, attrs: &Attrs, path: &mut Vec<Arc<str>>) -> Effect {
        match op.effect() {
            Effect::OfCallee if op.def().is_some_and(|op| op.call == CallKind::Module) => {
                let function = self.module(attrs);
                function.map_or(Effect::Stateful, |def| self.effect_of_function(&def.name, path))
            }
            Effect::OfCallee => self.effect_of_callees(attrs, path),
            other => other,
        }
    }

    /// The nodes whose running is noticed even if no node uses their results.
    pub fn effectful_nodes(&self, graph: &Graph) -> impl Iterator<Item = NodeId> {
        graph.iter().filter_map(|(id, node)| {
            let effect = self.effect_of(&node.op, &node.attrs);
            matches!(effect, Effect::Writes | Effect::Stateful).then_some(id)
        })
    }

    fn effect_of_callees(&self, attrs: &Attrs, path: &mut Vec<Arc<str>>) -> Effect {
        let names = callees(attrs);
        names
            .into_iter()
            .map(|name| self.effect_of_function(&name, path))
            .fold(Effect::Pure, stronger)
    }

    fn effect_of_function(&self, name: &Arc<str>, path: &mut Vec<Arc<str>>) -> Effect {
        let Some(entry) = self.entry(name) else { return Effect::Stateful };
        if let Some(effect) = entry.effect.get() {
            return *effect;
        }
        let Ok(function) = entry.get() else { return Effect::Stateful };
        if path.contains(name) {
            return Effect::Stateful; // Recursion is refused when the function is called.
        }
        path.push(name.clone());
        let nodes = function.graph.iter();
        let effects = nodes.map(|(_, node)| self.effect_below(&node.op, &node.attrs, path));
        let effect = effects.fold(Effect::Pure, stronger);
        path.pop();
        *entry.effect.get_or_init(|| effect)
    }
}

impl Entry {
    fn get(&self) -> Result<Arc<FunctionDef>> {
        let make = || match &self.load {
            Some(load) => load().map(Arc::new),
            None => unreachable!("a function without a loader is there from the start"),
        };
        self.def.get_or_init(make).clone()
    }
}

impl fmt::Debug for FunctionLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The names of the functions that attributes refer to, also in the attributes of one another.
pub fn callees(attrs: &Attrs) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    let mut add = |function: &NameAttrList| {
        if !function.name.is_empty() {
            names.push(function.name.clone());
        }
        names.extend(callees(&function.attrs));
    };
    for (_, value) in attrs.iter() {
        match value {
            AttrValue::Func(function) => add(function),
            AttrValue::Funcs(list) => list.iter().for_each(&mut add),
            _ => {}
        }
    }
    names
}

/// The names of the functions that a call of `op` may run, in the order of the op's attributes.
pub(crate) fn functions_of(op: &OpDef, attrs: &Attrs) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for attr in op.attrs {
        match attrs.get(attr.name) {
            Some(AttrValue::Func(function)) => names.push(function.name.clone()),
            Some(AttrValue::Funcs(list)) => names.extend(list.iter().map(|f| f.name.clone())),
            _ => {}
        }
    }
    names
}

fn stronger(a: Effect, b: Effect) -> Effect {
    let rank = |effect| match effect {
        Effect::Pure => 0,
        Effect::Reads => 1,
        Effect::Writes => 2,
        Effect::Stateful | Effect::OfCallee => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

//! Scaffold: the pieces of a graph that a training needs.

use super::{
    collections::{at_most_one, has, messages, node, nodes},
    error::MonitoredError,
    event_file::{EventFile, EventFiles},
    global_step::GlobalStep,
    readiness::Readiness,
    saver::Saver,
    time::{SystemTimeSource, TimeSource},
};
use crate::{
    error::Result,
    proto::{self, GraphDef, MetaGraphDef, QueueRunnerDef, SaverDef, VariableDef},
    read_message,
    session::Session,
};
use ferroflow_ir::{free_name::free_name, tensor_name};
use ferroflow_runtime::EagerTensor;
use std::{fmt, path::Path, sync::Arc};

/// Code that initialises a model after its initialisers ran.
pub type InitFn = Box<dyn Fn(&Session) -> Result<()> + Send + Sync>;

/// Pieces of a graph that a training needs. By default they are what the collections of a MetaGraph
/// tell; each can be set.
pub struct Scaffold {
    /// The graph, with the collections that the pieces came from.
    pub meta_graph: MetaGraphDef,
    /// The ops that initialise the variables.
    pub init_op: Vec<String>,
    /// Tensors that are fed while these run.
    pub init_feeds: Vec<(String, EagerTensor)>,
    /// Code that runs after these.
    pub init_fn: Option<InitFn>,
    /// Check that the model is ready.
    pub ready_op: Readiness,
    /// Check that local variables can be initialised.
    pub ready_for_local_init_op: Readiness,
    /// The ops that initialise local variables and tables; they run in each new session.
    pub local_init_op: Vec<String>,
    /// Tensors that are fed while these run.
    pub local_init_feeds: Vec<(String, EagerTensor)>,
    /// The tensors with serialized summaries.
    pub summary_op: Vec<String>,
    /// The ops that threads run to fill queues.
    pub queue_runners: Vec<QueueRunnerDef>,
    /// The counter of steps, if there is one.
    pub global_step: Option<GlobalStep>,
    /// The saver of the variables.
    pub saver: Arc<Saver>,
    /// The clock of hooks and waits.
    pub time: Arc<dyn TimeSource>,
    event_files: Arc<EventFiles>,
}

impl fmt::Debug for Scaffold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scaffold")
            .field("init_op", &self.init_op)
            .field("ready_op", &self.ready_op)
            .field("local_init_op", &self.local_init_op)
            .field("summary_op", &self.summary_op)
            .field("global_step", &self.global_step)
            .field("saver", &self.saver)
            .finish_non_exhaustive()
    }
}

impl Scaffold {
    /// The scaffold of the graph in a file: a MetaGraph, as `export_meta_graph` and savers write
    /// it.
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged, and as [`of_meta_graph`](Scaffold::of_meta_graph).
    pub fn read(path: impl AsRef<Path>) -> Result<Scaffold> {
        Scaffold::of_meta_graph(read_message(path.as_ref())?)
    }

    /// The scaffold of a graph without collections: its initialisers have to be set.
    pub fn of_graph_def(graph: GraphDef) -> Scaffold {
        let global_step = global_step_node(&graph).then(|| GlobalStep::new("global_step"));
        Scaffold {
            meta_graph: MetaGraphDef { graph_def: Some(graph), ..MetaGraphDef::default() },
            init_op: Vec::new(),
            init_feeds: Vec::new(),
            init_fn: None,
            ready_op: Readiness::AllVariables,
            ready_for_local_init_op: Readiness::Variables(Vec::new()),
            local_init_op: Vec::new(),
            local_init_feeds: Vec::new(),
            summary_op: Vec::new(),
            queue_runners: Vec::new(),
            global_step,
            saver: Arc::new(Saver::of_all_variables()),
            time: Arc::new(SystemTimeSource::new()),
            event_files: Arc::default(),
        }
    }

    /// The scaffold of a graph, of what its collections tell.
    ///
    /// # Errors
    ///
    /// When a collection holds another kind of items, or several where there can be one.
    pub fn of_meta_graph(mut meta_graph: MetaGraphDef) -> Result<Scaffold> {
        let summary_op = summary_op(&mut meta_graph)?;
        let mut plain = Scaffold::of_graph_def(meta_graph.graph_def.take().unwrap_or_default());
        meta_graph.graph_def = plain.meta_graph.graph_def.take();
        let global = messages::<VariableDef>(&meta_graph, "variables")?;
        let local = messages::<VariableDef>(&meta_graph, "local_variables")?;
        let has_variables = has(&meta_graph, "variables");
        let readiness = |key, variables: Vec<String>| {
            Ok::<_, crate::Error>(match node(&meta_graph, key)? {
                Some(tensor) => Readiness::Tensor(tensor),
                None if has_variables => Readiness::Variables(variables),
                None => Readiness::AllVariables,
            })
        };
        let all = [names_of(&global), names_of(&local)].concat();
        Ok(Scaffold {
            init_op: init_op(&meta_graph, &global)?,
            ready_op: readiness("ready_op", all)?,
            ready_for_local_init_op: match has_variables {
                true => readiness("ready_for_local_init_op", names_of(&global))?,
                false => Readiness::Variables(Vec::new()),
            },
            local_init_op: local_init_op(&meta_graph, &local)?,
            global_step: global_step(&meta_graph)?,
            saver: Arc::new(saver(&meta_graph, has_variables.then(|| names_of(&global)))?),
            queue_runners: messages(&meta_graph, "queue_runners")?,
            summary_op,
            meta_graph,
            ..plain
        })
    }

    /// The counter of steps, for a hook.
    ///
    /// # Errors
    ///
    /// [`MonitoredError::NoGlobalStep`] when there is none.
    pub fn global_step_for(&self, hook: &'static str) -> Result<GlobalStep> {
        let step = self.global_step.clone();
        step.ok_or_else(|| MonitoredError::NoGlobalStep { hook }.into())
    }

    /// The event file of a folder, which all hooks of the training share.
    pub fn event_file(&self, folder: impl AsRef<Path>) -> Arc<EventFile> {
        self.event_files.of_folder(folder.as_ref())
    }

    /// The graph with the ops of its saver.
    pub(super) fn to_meta_graph(&self) -> MetaGraphDef {
        let saver_def = self.saver.def().cloned().or_else(|| self.meta_graph.saver_def.clone());
        MetaGraphDef { saver_def, ..self.meta_graph.clone() }
    }
}

fn names_of(variables: &[VariableDef]) -> Vec<String> {
    let names = variables.iter().map(|variable| tensor_name::parse(&variable.variable_name).0);
    names.map(str::to_string).collect()
}

fn initializers(variables: &[VariableDef]) -> impl Iterator<Item = String> {
    let names = variables.iter().map(|variable| variable.initializer_name.clone());
    names.filter(|name| !name.is_empty())
}

/// The op in the collection `init_op`, or the initialisers of all global variables.
fn init_op(meta_graph: &MetaGraphDef, global: &[VariableDef]) -> Result<Vec<String>> {
    if let Some(op) = node(meta_graph, "init_op")? {
        return Ok(vec![op]);
    }
    let models = nodes(meta_graph, "saved_model_initializers")?;
    Ok(initializers(global).chain(models.iter().cloned()).collect())
}

/// The op in the collection `local_init_op`, or the initialisers of local variables and tables.
fn local_init_op(meta_graph: &MetaGraphDef, local: &[VariableDef]) -> Result<Vec<String>> {
    if let Some(op) = node(meta_graph, "local_init_op")? {
        return Ok(vec![op]);
    }
    let tables = nodes(meta_graph, "table_initializer")?;
    Ok(initializers(local).chain(tables.iter().cloned()).collect())
}

/// The tensor in the collection `summary_op`, or one that is made of all summaries of the graph.
fn summary_op(meta_graph: &mut MetaGraphDef) -> Result<Vec<String>> {
    if let Some(tensor) = node(meta_graph, "summary_op")? {
        return Ok(vec![tensor]);
    }
    let summaries = nodes(meta_graph, "summaries")?.to_vec();
    if summaries.is_empty() {
        return Ok(Vec::new());
    }
    let graph = meta_graph.graph_def.get_or_insert_default();
    let is_taken = |name: &str| graph.node.iter().any(|node| node.name == name);
    let name = free_name("Merge/MergeSummary", is_taken);
    let n = proto::attr_value::Value::I(i64::try_from(summaries.len()).unwrap_or(i64::MAX));
    graph.node.push(proto::NodeDef {
        name: name.clone(),
        op: "MergeSummary".into(),
        input: summaries,
        attr: [("N".to_string(), proto::AttrValue { value: Some(n) })].into(),
        ..proto::NodeDef::default()
    });
    Ok(vec![format!("{name}:0")])
}

/// The variable in the collection `global_step`, or the node of this name.
fn global_step(meta_graph: &MetaGraphDef) -> Result<Option<GlobalStep>> {
    const KEY: &str = "global_step";
    if let Ok(variables) = messages::<VariableDef>(meta_graph, KEY)
        && let Some(variable) = at_most_one(KEY, &variables)?
    {
        return Ok(Some(GlobalStep::read_by(&variable.variable_name, &variable.snapshot_name)));
    }
    if let Some(tensor) = node(meta_graph, KEY)? {
        return Ok(Some(GlobalStep::read_by(&tensor, &tensor)));
    }
    let has_node = meta_graph.graph_def.as_ref().is_some_and(global_step_node);
    Ok(has_node.then(|| GlobalStep::new(KEY)))
}

fn global_step_node(graph: &GraphDef) -> bool {
    graph.node.iter().any(|node| node.name == "global_step")
}

/// The saver in the collection `savers`, that of the MetaGraph, or one of the variables.
fn saver(meta_graph: &MetaGraphDef, variables: Option<Vec<String>>) -> Result<Saver> {
    let savers = messages::<SaverDef>(meta_graph, "savers")?;
    let def = at_most_one("savers", &savers)?.or(meta_graph.saver_def.as_ref());
    Ok(match (def, variables) {
        (Some(def), _) => Saver::of_ops(def.clone()),
        (None, Some(names)) => Saver::of_variables(names),
        (None, None) => Saver::of_all_variables(),
    })
}

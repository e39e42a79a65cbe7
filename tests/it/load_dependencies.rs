//! Objects that say what has to be loaded before them.

use ferroflow::{
    Trackable, Variable, load,
    runtime::trackable::{Description, Identity},
    save,
    saved_model::{
        SaveOptions,
        proto::{SavedModel, saved_object::Kind},
        read_message,
    },
};
use std::{error::Error, path::Path, sync::Arc};

type Outcome = Result<(), Box<dyn Error>>;

/// An object that needs some of its children.
#[derive(Clone)]
struct Needs(Arc<Parts>);

struct Parts {
    children: Vec<(&'static str, Variable)>,
    needed: Vec<&'static str>,
}

impl Trackable for Needs {
    fn describe(&self, object: &mut Description<'_>) {
        object.has_type("example.Needs");
        for (name, child) in &self.0.children {
            object.child(name, child);
        }
        for name in &self.0.needed {
            object.dependency(name);
        }
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_address(Arc::as_ptr(&self.0) as usize))
    }
}

fn saved(needed: &[&'static str], folder: &Path) -> Outcome {
    let children =
        vec![("table", Variable::new([1.0f32, 2.0])?), ("cache", Variable::new(0.0f32)?)];
    let needs = Needs(Arc::new(Parts { children, needed: needed.into() }));
    save(&needs, folder, &SaveOptions::default())?;
    Ok(())
}

#[test]
fn dependencies_are_written_and_loaded() -> Outcome {
    let folder = tempfile::tempdir()?;
    saved(&["table"], folder.path())?;
    let model: SavedModel = read_message(&folder.path().join("saved_model.pb"))?;
    let objects = model.meta_graphs[0].object_graph_def.clone().ok_or("objects")?.nodes;
    let names = |id: usize| {
        objects[id].dependencies.iter().map(|edge| edge.local_name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["table"]);
    let id = objects[0].dependencies[0].node_id as usize;
    assert!(matches!(objects[id].kind, Some(Kind::Variable(_))));
    let loaded = load(folder.path())?;
    assert_eq!(loaded.variable("table")?.read()?.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn dependencies_that_are_no_children_are_refused() -> Outcome {
    let folder = tempfile::tempdir()?;
    let error = saved(&["tables"], folder.path()).unwrap_err().to_string();
    assert!(error.contains("there is no `tables`"), "{error}");
    Ok(())
}

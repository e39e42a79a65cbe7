//! The order in which objects are loaded: each after those that it depends on.

use crate::{
    error::{Error, Result},
    proto::{SavedConcreteFunction, SavedObject, saved_object::Kind},
};
use std::collections::{BTreeMap, HashSet};

/// Checks that slot variables are objects, each listed once, and that no object has to be loaded
/// before itself.
///
/// # Errors
///
/// [`Error::Object`] naming an object that breaks a rule.
pub(super) fn check(
    objects: &[SavedObject],
    concrete: &BTreeMap<String, SavedConcreteFunction>,
) -> Result<()> {
    let mut before: Vec<Vec<usize>> = Vec::with_capacity(objects.len());
    for object in objects {
        let ids = dependencies(object, concrete).into_iter();
        before.push(ids.filter_map(|id| usize::try_from(id).ok()).collect());
    }
    for (id, object) in objects.iter().enumerate() {
        add_slots(id, object, &mut before)?;
    }
    match on_cycle(&before) {
        Some(id) => {
            let rule = "it depends on itself: objects are loaded after those they depend on";
            Err(Error::Object { id, rule: rule.into() })
        }
        None => Ok(()),
    }
}

/// The objects that must be there before an object is made.
fn dependencies(
    object: &SavedObject,
    concrete: &BTreeMap<String, SavedConcreteFunction>,
) -> Vec<i32> {
    let mut ids: Vec<i32> = object.dependencies.iter().map(|edge| edge.node_id).collect();
    let bound = |name: &String| concrete.get(name).map_or(&[][..], |f| &f.bound_inputs);
    match &object.kind {
        Some(Kind::Function(function)) => {
            ids.extend(function.concrete_functions.iter().flat_map(bound));
        }
        Some(Kind::BareConcreteFunction(function)) => {
            ids.extend(bound(&function.concrete_function_name));
        }
        Some(Kind::Resource(_)) => {
            let creators = object.children.iter().filter(|c| c.local_name == "_create_resource");
            ids.extend(creators.map(|creator| creator.node_id));
        }
        _ => {}
    }
    ids
}

/// Notes that the slot variables of an object come after it, after the variables they belong to,
/// and one after the other.
fn add_slots(id: usize, object: &SavedObject, before: &mut [Vec<usize>]) -> Result<()> {
    let n_objects = before.len();
    let wrong = |rule: String| Error::Object { id, rule };
    let (mut slots, mut names, mut previous) = (HashSet::new(), HashSet::new(), None);
    for slot in &object.slot_variables {
        let object_index = |number: i32| {
            let object_index = usize::try_from(number).ok().filter(|&place| place < n_objects);
            object_index.ok_or_else(|| {
                wrong(format!("slot `{}` refers to object {number}", slot.slot_name))
            })
        };
        let original = object_index(slot.original_variable_node_id)?;
        let variable = object_index(slot.slot_variable_node_id)?;
        if !slots.insert(variable) || !names.insert((original, &slot.slot_name)) {
            return Err(wrong(format!(
                "slot `{}` of object {original} is listed twice",
                slot.slot_name
            )));
        }
        before[variable].extend([id, original]);
        before[variable].extend(previous.replace(variable));
    }
    Ok(())
}

/// A node of a cycle, if there is any.
fn on_cycle(before: &[Vec<usize>]) -> Option<usize> {
    let mut waiting_for: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for (id, needed) in before.iter().enumerate() {
        for &needed in needed {
            after.get_mut(needed)?.push(id);
        }
    }
    let mut ready: Vec<usize> = (0..before.len()).filter(|&id| waiting_for[id] == 0).collect();
    while let Some(id) = ready.pop() {
        for &user in &after[id] {
            waiting_for[user] -= 1;
            if waiting_for[user] == 0 {
                ready.push(user);
            }
        }
    }
    let is_stuck = |id: &usize| waiting_for[*id] > 0;
    let mut at = (0..before.len()).find(is_stuck)?;
    let mut seen = HashSet::new();
    while seen.insert(at) {
        at = *before[at].iter().find(|id| is_stuck(id))?;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::trackable_object_graph::trackable_object::{
        ObjectReference, SlotVariableReference,
    };

    fn after(ids: &[i32]) -> SavedObject {
        let edge = |&node_id: &i32| ObjectReference { node_id, local_name: "needed".into() };
        SavedObject { dependencies: ids.iter().map(edge).collect(), ..SavedObject::default() }
    }

    fn with_slots(slots: &[(i32, &str, i32)]) -> SavedObject {
        let slot = |&(original, name, slot): &(i32, &str, i32)| SlotVariableReference {
            original_variable_node_id: original,
            slot_name: name.into(),
            slot_variable_node_id: slot,
        };
        SavedObject { slot_variables: slots.iter().map(slot).collect(), ..SavedObject::default() }
    }

    fn fails(objects: &[SavedObject], expected: &str) {
        let error = check(objects, &BTreeMap::new()).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn objects_come_after_those_they_depend_on() {
        assert!(check(&[after(&[1, 2]), after(&[2]), after(&[])], &BTreeMap::new()).is_ok());
        let rule = "it depends on itself: objects are loaded after those they depend on";
        fails(&[after(&[]), after(&[1])], &format!("object 1: {rule}"));
        fails(&[after(&[1]), after(&[2]), after(&[1])], &format!("object 1: {rule}"));
    }

    #[test]
    fn slots_are_objects_that_are_listed_once() {
        let slots = [(1, "m", 2), (1, "v", 3)];
        let objects = |slots| [with_slots(slots), after(&[]), after(&[]), after(&[])];
        assert!(check(&objects(&slots), &BTreeMap::new()).is_ok());
        fails(&objects(&[(1, "m", 4)]), "object 0: slot `m` refers to object 4");
        fails(&objects(&[(-1, "m", 2)]), "object 0: slot `m` refers to object -1");
        let twice = "object 0: slot `m` of object 1 is listed twice";
        fails(&objects(&[(1, "m", 2), (1, "m", 3)]), twice);
        fails(&objects(&[(2, "m", 3), (1, "m", 3)]), twice);
        // A slot of the optimizer itself, or of itself, comes before itself.
        let rule = "it depends on itself: objects are loaded after those they depend on";
        fails(&objects(&[(1, "m", 0)]), &format!("object 0: {rule}"));
        fails(&objects(&[(2, "m", 2)]), &format!("object 2: {rule}"));
    }
}

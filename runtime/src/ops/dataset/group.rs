//! Data sets of what a function makes of groups of elements with the same key.

use super::{
    Cardinality, Components, Dataset, DatasetSource, KeptBytes, RoundLimit, Stream,
    function::ElementFunction, map,
};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    ops::RuntimeCall,
    scope::Scope,
    variant,
};
use ferroflow_ir::{Error as IrError, HostTensor};
use std::collections::{BTreeMap, btree_map::Entry};

/// The functions of a key, of the size of its windows, and of its windows.
#[derive(Debug, Clone)]
struct Functions {
    key: ElementFunction,
    reduce: ElementFunction,
    size: ElementFunction,
}

impl Functions {
    /// The stream that a group is reduced to. The group is one data set, however many components
    /// its elements have.
    fn reduce(&self, scope: Scope<'_>, key: i64, group: &Group) -> Result<Stream> {
        let elements = variant::scalar(Dataset::listed(group.elements.clone()));
        self.reduce.stream(scope, vec![HostTensor::scalar(key), elements])
    }

    /// The number of elements that make a group full.
    fn size(&self, scope: Scope<'_>, key: i64) -> Result<usize> {
        let size = self.size.number(scope, vec![HostTensor::scalar(key)])?;
        let fit = usize::try_from(size).ok().filter(|size| *size > 0);
        fit.ok_or_else(|| wrong("window_size_func", "greater than 0", size))
    }
}

fn wrong(argument: &'static str, expected: &'static str, found: i64) -> Error {
    IrError::argument("GroupByWindowDataset", argument, expected, found).into()
}

/// The elements of a key that wait for others.
struct Group {
    size: usize,
    elements: Vec<Components>,
}

#[derive(Debug)]
struct GroupByWindow {
    input: Dataset,
    functions: Functions,
}

impl DatasetSource for GroupByWindow {
    fn stream(&self) -> Stream {
        let (mut input, functions) = (Some(self.input.stream()), self.functions.clone());
        let (mut groups, mut current) = (BTreeMap::<i64, Group>::new(), None::<Stream>);
        let mut kept = KeptBytes::default();
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            loop {
                if let Some(stream) = &mut current {
                    if let Some(element) = stream.next(scope)? {
                        return Ok(Some(element));
                    }
                    current = None;
                }
                rounds.count()?;
                let Some(stream) = &mut input else {
                    // The rest comes in the order of the keys.
                    let Some((key, group)) = groups.pop_first() else { return Ok(None) };
                    current = Some(functions.reduce(scope, key, &group)?);
                    continue;
                };
                let Some(element) = stream.next(scope)? else {
                    input = None;
                    continue;
                };
                let key = functions.key.number(scope, element.clone())?;
                let group = match groups.entry(key) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        let size = functions.size(scope, key)?;
                        entry.insert(Group { size, elements: Vec::new() })
                    }
                };
                kept.add(scope, &element)?;
                group.elements.push(element);
                if group.elements.len() >= group.size
                    && let Some(group) = groups.remove(&key)
                {
                    group.elements.iter().for_each(|element| kept.remove(element));
                    current = Some(functions.reduce(scope, key, &group)?);
                }
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// The functions of a call, whose captured inputs follow each other behind the data set.
fn captured_in_turn<'a>(
    call: &'a RuntimeCall<'_>,
) -> impl FnMut(&str) -> Result<ElementFunction> + 'a {
    let mut start = 1;
    move |name| {
        let end = start + map::n_types(call, &format!("T{name}_other_arguments"))?;
        let function = ElementFunction::of(call, name, start..end);
        start = end;
        function
    }
}

pub(super) fn group_by_window(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut function = captured_in_turn(call);
    let functions = Functions {
        key: function("key_func")?,
        reduce: function("reduce_func")?,
        size: function("window_size_func")?,
    };
    call.dataset(GroupByWindow { input: call.input_dataset(0)?, functions })
}

/// The functions that fold the elements of a key to one.
#[derive(Debug, Clone)]
struct Folding {
    key: ElementFunction,
    init: ElementFunction,
    reduce: ElementFunction,
    finalize: ElementFunction,
}

/// The reductions of the elements of each key, in the order of the keys.
#[derive(Debug)]
struct GroupByReducer {
    input: Dataset,
    functions: Folding,
}

impl Folding {
    /// The states of all keys after the last element.
    fn states(&self, scope: Scope<'_>, mut input: Stream) -> Result<BTreeMap<i64, Components>> {
        let (mut states, mut kept) = (BTreeMap::<i64, Components>::new(), KeptBytes::default());
        let mut rounds = RoundLimit::new(scope);
        while let Some(element) = input.next(scope)? {
            rounds.count()?;
            let key = self.key.number(scope, element.clone())?;
            let state = match states.remove(&key) {
                Some(state) => {
                    kept.remove(&state);
                    state
                }
                None => self.init.call(scope, [HostTensor::scalar(key)])?,
            };
            let state = self.reduce.call(scope, state.into_iter().chain(element))?;
            kept.add(scope, &state)?;
            states.insert(key, state);
        }
        Ok(states)
    }
}

impl DatasetSource for GroupByReducer {
    fn stream(&self) -> Stream {
        let (mut input, functions) = (Some(self.input.stream()), self.functions.clone());
        let mut states = BTreeMap::new();
        Stream::new(move |scope| {
            if let Some(input) = input.take() {
                states = functions.states(scope, input)?;
            }
            let Some((_, state)) = states.pop_first() else { return Ok(None) };
            functions.finalize.call(scope, state).map(Some)
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

pub(super) fn group_by_reducer(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut function = captured_in_turn(call);
    let functions = Folding {
        key: function("key_func")?,
        init: function("init_func")?,
        reduce: function("reduce_func")?,
        finalize: function("finalize_func")?,
    };
    call.dataset(GroupByReducer { input: call.input_dataset(0)?, functions })
}

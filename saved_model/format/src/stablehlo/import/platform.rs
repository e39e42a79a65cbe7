//! The platform of a module that is for several: the values that are its number, and the branches that it
//! chooses. Others may call what their platform alone has, so they are not imported.

use super::super::module::{Attr, HloModule, HloOp, HloRegion, ValueNumber};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Operations that are looked at for the number of a branch; programs that JAX writes need four.
const MOST_STEPS: usize = 64;

/// The values of a module that are the number of the platform.
pub(super) struct Platform {
    /// The number among those of the module; `None` if it does not ask.
    pub(super) number: Option<i32>,
    values: HashSet<ValueNumber>,
}

impl Platform {
    /// The platform of this number, which is the first argument of `main`.
    pub(super) fn new(module: &HloModule, number: Option<i32>) -> Platform {
        let mut platform = Platform { number, values: HashSet::new() };
        if number.is_none() {
            return platform;
        }
        let calls = Calls::of(module);
        let first =
            |name: &str, index: usize| Some(module.functions.get(name)?.body.args.get(index)?.0);
        let mut waiting: Vec<ValueNumber> = first("main", 0).into_iter().collect();
        let mut passed: HashMap<&Argument, usize> = HashMap::new();
        while let Some(value) = waiting.pop() {
            if !platform.values.insert(value) {
                continue;
            }
            for argument in calls.passing.get(&value).into_iter().flatten() {
                let n = passed.entry(argument).or_default();
                *n += 1;
                // All calls of the function pass the number on.
                if *n == calls.of.get(&argument.0).copied().unwrap_or(0) {
                    waiting.extend(first(&argument.0, argument.1));
                }
            }
        }
        platform
    }

    /// The branch of a `case` that the platform chooses.
    pub(super) fn branch<'o>(
        &self,
        op: &'o HloOp,
        definitions: &HashMap<ValueNumber, &HloOp>,
    ) -> Option<&'o HloRegion> {
        if self.number.is_none() || &*op.name != "case" {
            return None;
        }
        let mut steps = MOST_STEPS;
        chosen(op, self.known(*op.operands.first()?, definitions, &mut steps)?)
    }

    /// The number that a value is on this platform.
    fn known(
        &self,
        mut value: ValueNumber,
        definitions: &HashMap<ValueNumber, &HloOp>,
        steps: &mut usize,
    ) -> Option<i64> {
        loop {
            *steps = steps.checked_sub(1)?;
            if self.values.contains(&value) {
                return self.number.map(i64::from);
            }
            let op = definitions.get(&value)?;
            match &*op.name {
                "constant" => {
                    return <[i64; 1]>::try_from(op.ints("value").ok()?).ok().map(|[n]| n);
                }
                "case" => {
                    let number = self.known(*op.operands.first()?, definitions, steps)?;
                    let index = op.results.iter().position(|(own, _)| *own == value)?;
                    value = *chosen(op, number)?.ops.last()?.operands.get(index)?;
                }
                _ => return None,
            }
        }
    }
}

/// The branch of a number; those that no branch has take the last one.
fn chosen(op: &HloOp, number: i64) -> Option<&HloRegion> {
    let index = usize::try_from(number).ok().filter(|index| *index < op.regions.len());
    index.map_or(op.regions.last(), |index| op.regions.get(index))
}

/// An argument of a function: its name and the index.
type Argument = (Arc<str>, usize);

/// The calls of functions in a module.
struct Calls {
    /// The number of calls of each function.
    of: HashMap<Arc<str>, usize>,
    /// The arguments that values are passed as.
    passing: HashMap<ValueNumber, Vec<Argument>>,
}

impl Calls {
    fn of(module: &HloModule) -> Calls {
        let mut calls = Calls { of: HashMap::new(), passing: HashMap::new() };
        for op in module.ops() {
            // Functions that others call take what these pass.
            if let Some(Attr::Array(others)) = op.attr("called_computations") {
                for name in others.iter().filter_map(|name| name.text()) {
                    *calls.of.entry(name.into()).or_default() += 1;
                }
            }
            let callee = match &*op.name {
                "call" => op.text("callee"),
                "composite" => op.text("decomposition"),
                _ => continue,
            };
            let Ok(callee) = callee.map(Arc::<str>::from) else { continue };
            *calls.of.entry(callee.clone()).or_default() += 1;
            for (index, value) in op.operands.iter().enumerate() {
                calls.passing.entry(*value).or_default().push((callee.clone(), index));
            }
        }
        calls
    }
}

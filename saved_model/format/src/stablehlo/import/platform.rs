//! The platform of a module that is for several: the values that are its number, and the branches that it
//! chooses. Others may call what their platform alone has, so they are not imported.

use super::super::module::{HloModule, HloOp, HloRegion, ValueNumber};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Operations that are looked at for the number of a branch; programs that JAX writes need four.
const MOST_STEPS: usize = 64;

/// The values of a module that are the number of the platform.
#[derive(Default)]
pub(super) struct Platform {
    number: i64,
    values: HashSet<ValueNumber>,
}

impl Platform {
    /// The platform of this number among those of the module, which is the first argument of `main`.
    pub(super) fn new(module: &HloModule, number: i64) -> Platform {
        let calls = Calls::of(module);
        let mut platform = Platform { number, values: HashSet::new() };
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
        if self.values.is_empty() || &*op.name != "case" {
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
                return Some(self.number);
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
        let mut waiting: Vec<&HloRegion> =
            module.functions.values().map(|function| &function.body).collect();
        while let Some(region) = waiting.pop() {
            for op in &region.ops {
                waiting.extend(&op.regions);
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
        }
        calls
    }
}

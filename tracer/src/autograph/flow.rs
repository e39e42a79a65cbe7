//! Ways out of parts of a graph, and how they are joined.
//!
//! A jump out of a branch that is traced cannot happen: it is known only when the graph runs whether
//! it does. So a part ends with a code that says how it was left: 0 where it was not, a number for
//! each jump. Where the codes of two branches differ, all that follows until the end of the code
//! around goes into a *guard*: a further branch, taken where the code is 0.

use crate::{
    context::Inside,
    control_flow::{
        stage::{ChoiceKind, Closed, RegionTrace, choose},
        structure::{difference, tensors, with_tensors},
    },
    error::{Error, Result},
    func_graph::FuncGraph,
    ops,
    tensor::{Repr, Tensor},
    value::NestedValue,
};
use ferroflow_ir::{DType, error::SourceLocation};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The code of parts that are not left.
pub(super) const STAYS: u32 = 0;
/// The code of `return`.
pub(super) const RETURNS: u32 = 1;

/// Exit from a region.
#[derive(Clone, Debug)]
pub(super) struct Exit {
    /// The ways there are.
    pub(super) codes: BTreeSet<u32>,
    /// Code of the way, where there are several.
    pub(super) code: Option<Tensor>,
    /// The values of those that have one: `return`, and `break` with a value.
    pub(super) values: BTreeMap<u32, NestedValue>,
}

impl Exit {
    /// By this way.
    pub(super) fn by(code: u32) -> Exit {
        Exit { codes: BTreeSet::from([code]), code: None, values: BTreeMap::new() }
    }

    /// By this way, with a value.
    pub(super) fn with(code: u32, value: NestedValue) -> Exit {
        Exit { values: BTreeMap::from([(code, value)]), ..Exit::by(code) }
    }

    /// The value that is returned.
    pub(super) fn returned(&mut self) -> NestedValue {
        self.values.remove(&RETURNS).unwrap_or_default()
    }

    pub(super) fn stays(&self) -> bool {
        self.codes.contains(&STAYS)
    }

    pub(super) fn leaves(&self) -> bool {
        self.codes.iter().any(|&code| code != STAYS)
    }

    /// The code as a tensor.
    pub(super) fn tensor(&self) -> Tensor {
        let only = || Tensor::from(self.codes.first().copied().unwrap_or(STAYS) as i32);
        self.code.clone().unwrap_or_else(only)
    }

    /// The exit in which the code `from` is `to`.
    pub(super) fn mapped(mut self, from: u32, to: u32) -> Result<Exit> {
        if self.codes.remove(&from) {
            self.codes.insert(to);
            self.code = match self.code {
                Some(code) if self.codes.len() > 1 => {
                    let is_from = code.equal(from as i32)?;
                    Some(is_from.select(Tensor::from(to as i32), &code)?)
                }
                _ => None,
            };
        }
        Ok(self)
    }
}

/// A part that has been traced: what variables are at its end, its value if it has one, and how it
/// ends.
#[derive(Debug)]
pub(super) struct TracedBranch {
    pub(super) graph: Arc<FuncGraph>,
    pub(super) vars: Vec<NestedValue>,
    pub(super) value: Option<NestedValue>,
    pub(super) exit: Exit,
}

/// Results of a choice between two sides.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) vars: Vec<NestedValue>,
    pub(super) value: Option<NestedValue>,
    pub(super) exit: Exit,
}

/// Stages the choice between two sides, which changes variables of these names.
pub(super) fn join(
    chooser: &Tensor,
    names: &[String],
    sides: [TracedBranch; 2],
    location: SourceLocation,
) -> Result<Joined> {
    let [a, b] = &sides;
    for ((a, b), name) in a.vars.iter().zip(&b.vars).zip(names) {
        check(a, b, name)?;
    }
    let mut outputs = Outputs { sides: [a.graph.clone(), b.graph.clone()], tensors: Vec::new() };
    let vars: Vec<Slots> = a.vars.iter().zip(&b.vars).map(|(a, b)| outputs.pair(a, b)).collect();
    let value = outputs.either(a.value.as_ref(), b.value.as_ref(), "the value of the branches")?;
    let values = outputs.values(&a.exit, &b.exit)?;
    let codes: BTreeSet<u32> = a.exit.codes.union(&b.exit.codes).copied().collect();
    let code = (codes.len() > 1).then(|| {
        let code = |side: &TracedBranch| NestedValue::Tensor(side.exit.tensor());
        outputs.pair(&code(a), &code(b))
    });
    let Outputs { sides: [a, b], tensors } = outputs;
    let (first, second) = tensors.into_iter().unzip();
    let branches = vec![Closed::of(a, first)?, Closed::of(b, second)?];
    let results = choose(ChoiceKind::If, chooser, branches, location)?;
    let filled = |slots: Slots| slots.filled(&results);
    Ok(Joined {
        vars: vars.into_iter().map(filled).collect(),
        value: value.map(filled),
        exit: Exit {
            codes,
            code: code.map(filled).and_then(|code| code.tensor().ok().cloned()),
            values: values.into_iter().map(|(code, slots)| (code, filled(slots))).collect(),
        },
    })
}

fn check(a: &NestedValue, b: &NestedValue, name: &str) -> Result<()> {
    match difference(a, b, name) {
        None => Ok(()),
        Some(found) => Err(Error::Branches {
            construct: "if",
            what: found.what,
            first: found.first,
            second: found.second,
        }),
    }
}

/// The results that the two sides of a choice will give.
struct Outputs {
    sides: [Arc<FuncGraph>; 2],
    tensors: Vec<(Tensor, Tensor)>,
}

/// A value whose tensors are results of a choice; those without a number are the same on both sides.
struct Slots {
    like: NestedValue,
    numbers: Vec<Option<usize>>,
}

impl Slots {
    fn filled(self, results: &[Tensor]) -> NestedValue {
        let own = tensors(&self.like);
        let tensors = own.iter().zip(&self.numbers).map(|(own, number)| {
            number.and_then(|number| results.get(number)).unwrap_or(own).clone()
        });
        with_tensors(&self.like, &mut tensors.collect::<Vec<_>>().into_iter())
    }
}

impl Outputs {
    fn pair(&mut self, a: &NestedValue, b: &NestedValue) -> Slots {
        let pairs = tensors(a).into_iter().zip(tensors(b));
        let numbers = pairs.map(|(a, b)| {
            if is_same(&a, &b) {
                return None;
            }
            self.tensors.push((a, b));
            Some(self.tensors.len() - 1)
        });
        Slots { numbers: numbers.collect(), like: a.clone() }
    }

    /// A value that one side may lack: there it is never looked at, and zeros stand for it.
    fn either(
        &mut self,
        a: Option<&NestedValue>,
        b: Option<&NestedValue>,
        what: &str,
    ) -> Result<Option<Slots>> {
        Ok(Some(match (a, b) {
            (None, None) => return Ok(None),
            (Some(a), Some(b)) => {
                check(a, b, what)?;
                self.pair(a, b)
            }
            (Some(a), None) => {
                let b = blank(a, &self.sides[1])?;
                self.pair(a, &b)
            }
            (None, Some(b)) => {
                let a = blank(b, &self.sides[0])?;
                self.pair(&a, b)
            }
        }))
    }
}

impl Outputs {
    /// The values that jumps take along.
    fn values(&mut self, a: &Exit, b: &Exit) -> Result<Vec<(u32, Slots)>> {
        let codes: BTreeSet<u32> = a.values.keys().chain(b.values.keys()).copied().collect();
        let mut values = Vec::new();
        for code in codes {
            let what = match code {
                RETURNS => "the value that is returned",
                _ => "the value of a `break`",
            };
            let slots = self.either(a.values.get(&code), b.values.get(&code), what)?;
            values.extend(slots.map(|slots| (code, slots)));
        }
        Ok(values)
    }
}

/// Whether the two are one tensor.
fn is_same(a: &Tensor, b: &Tensor) -> bool {
    match (&a.0, &b.0) {
        (Repr::Symbolic(a), Repr::Symbolic(b)) => {
            Arc::ptr_eq(&a.graph, &b.graph) && a.outlet == b.outlet
        }
        (Repr::Eager(a), Repr::Eager(b)) => match (a.host(), b.host()) {
            (Ok(a), Ok(b)) if a.is_plain() && b.is_plain() => {
                a.bytes().as_ptr() == b.bytes().as_ptr()
                    && a.shape() == b.shape()
                    && a.dtype() == b.dtype()
            }
            _ => false,
        },
        _ => false,
    }
}

/// A value like this one that nobody will look at, made in `graph`.
pub(super) fn blank(like: &NestedValue, graph: &Arc<FuncGraph>) -> Result<NestedValue> {
    let _inside = Inside::enter(graph.clone());
    let blanks = tensors(like).iter().map(blank_tensor).collect::<Result<Vec<_>>>()?;
    Ok(with_tensors(like, &mut blanks.into_iter()))
}

fn blank_tensor(like: &Tensor) -> Result<Tensor> {
    if matches!(like.dtype(), DType::Resource | DType::Variant) {
        return Err(Error::ControlFlow {
            what: format!("giving {like} on some ways only"),
            why: "which needs another value on the others, and such tensors have none",
        });
    }
    let shape = like.shape();
    let sizes = shape.dims().unwrap_or_default().iter();
    let sizes: Vec<i32> =
        sizes.map(|size| size.and_then(|size| size.try_into().ok()).unwrap_or(0)).collect();
    let zero = ferroflow_ir::HostTensor::zeros(like.dtype(), ferroflow_ir::Shape::scalar())?;
    ops::fill(&Tensor::from(sizes), &zero.into())
}

/// A part that is open, or a guard within one.
#[derive(Debug)]
struct Open {
    part: RegionTrace,
    /// Exit from the region so far.
    exit: Exit,
    guard: Option<Guard>,
}

/// A branch that holds what follows a choice that may leave.
#[derive(Debug)]
struct Guard {
    chooser: Tensor,
    /// Exit from the code before it.
    before: Exit,
    /// The variables before it.
    vars: Vec<NestedValue>,
    location: SourceLocation,
}

/// The parts that are open, innermost last.
#[derive(Debug, Default)]
pub(super) struct Flow(Vec<Open>);

impl Flow {
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Opens a part.
    pub(super) fn open(&mut self, name: &str) -> Result<&RegionTrace> {
        self.push(RegionTrace::open(name)?, None);
        Ok(&self.0[self.0.len() - 1].part)
    }

    fn push(&mut self, part: RegionTrace, guard: Option<Guard>) {
        self.0.push(Open { part, exit: Exit::by(STAYS), guard });
    }

    /// The innermost part is left by this way.
    pub(super) fn leave(&mut self, exit: Exit) {
        if let Some(open) = self.0.last_mut() {
            open.exit = exit;
        }
    }

    /// Exit from the innermost region so far.
    pub(super) fn exit(&self) -> Option<&Exit> {
        self.0.last().map(|open| &open.exit)
    }

    /// Puts what follows in a guard.
    pub(super) fn guard(
        &mut self,
        before: Exit,
        vars: Vec<NestedValue>,
        location: SourceLocation,
    ) -> Result<()> {
        let chooser = before.tensor().equal(STAYS as i32)?;
        let guard = Guard { chooser, before, vars, location };
        self.push(RegionTrace::open("cond_true")?, Some(guard));
        Ok(())
    }

    /// Closes the innermost part that is no guard, and the guards in it.
    pub(super) fn close(
        &mut self,
        names: &[String],
        mut vars: Vec<NestedValue>,
        mut value: Option<NestedValue>,
    ) -> Result<TracedBranch> {
        let mut later: Option<Exit> = None;
        while let Some(open) = self.0.pop() {
            let exit = later.take().unwrap_or(open.exit);
            let graph = open.part.leave();
            let Some(guard) = open.guard else {
                return Ok(TracedBranch { graph, vars, value, exit });
            };
            let joined = guard.close(names, TracedBranch { graph, vars, value, exit })?;
            (vars, value, later) = (joined.vars, joined.value, Some(joined.exit));
        }
        Err(unbalanced())
    }

    /// Closes the guards that stand outside all parts; gives how the code around ends.
    pub(super) fn close_guards(&mut self, returned: NestedValue) -> Result<Exit> {
        let mut exit = Exit::with(RETURNS, returned);
        while let Some(open) = self.0.pop() {
            let Some(guard) = open.guard else { return Err(unbalanced()) };
            let graph = open.part.leave();
            let side = TracedBranch { graph, vars: Vec::new(), value: None, exit };
            exit = guard.close(&[], side)?.exit;
        }
        Ok(exit)
    }

    /// Leaves all parts inside this depth as they are.
    pub(super) fn abandon(&mut self, depth: usize) {
        while self.0.len() > depth {
            self.0.pop();
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.abandon(0);
    }
}

impl Guard {
    fn close(self, names: &[String], inside: TracedBranch) -> Result<Joined> {
        let mut exit = self.before;
        exit.codes.remove(&STAYS);
        let part = RegionTrace::open("cond_false")?;
        let other = TracedBranch { graph: part.leave(), vars: self.vars, value: None, exit };
        join(&self.chooser, names, [inside, other], self.location)
    }
}

fn unbalanced() -> Error {
    Error::ControlFlow {
        what: "leaving a branch or loop by a jump that is hidden in a macro".into(),
        why: "where it is not seen: write it outside",
    }
}

//! Branches and loops.

use super::super::{
    program::{Head, Id, Invariant, ProgramBlock, StatementOperand},
    world::WorldValue,
};
use super::{
    Gen, Seen, Template,
    operands::{int, ints, value},
};
use ferroflow::{
    Tensor,
    ir::{Attrs, DType, HostTensor},
};

pub(super) const TEMPLATES: &[(f64, Template)] =
    &[(4.0, branch), (1.0, case), (5.0, repeat), (1.0, two_loops), (1.2, map), (1.0, fold)];

impl Gen {
    /// A true or false scalar of exact numbers.
    pub(super) fn predicate(&mut self) -> Option<Id> {
        let known = self.find(|seen| seen.dtype == DType::Bool && seen.rank() == Some(0));
        if known.is_some() && self.rng.chance(0.5) {
            return known;
        }
        let x = self.find(|seen| seen.is_number() && seen.is_exact)?;
        let dtype = self.type_of(x).dtype;
        let rank = self.type_of(x).rank()?;
        let sum = match rank {
            0 => x,
            _ => {
                let axes: Vec<i64> = (0..rank as i64).collect();
                self.op("Sum", vec![value(x), ints(&axes)], Attrs::new())?
            }
        };
        let bound = self.numbers(dtype, &[])?;
        let name = self.rng.pick(&["Less", "Greater"]);
        self.op(name, vec![value(sum), bound], Attrs::new())
    }

    /// A small count of a few iterations, sometimes known only when the program runs.
    pub(super) fn count(&mut self) -> Option<Id> {
        let scalar = self.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0));
        match scalar {
            Some(scalar) if self.rng.chance(0.6) => {
                let most = int(self.rng.within(2, 4));
                self.op("Minimum", vec![value(scalar), most], Attrs::new())
            }
            _ => {
                let n = int(self.rng.within(0, 4));
                self.op("Identity", vec![n], Attrs::new())
            }
        }
    }

    /// A value for the end of a block in place of `id`: of its dtype and mostly of its shape.
    pub(super) fn settle(&mut self, id: Id) -> Option<Id> {
        let seen = self.type_of(id).clone();
        if seen.dtype == DType::Variant {
            return self.find(|other| other.dtype == seen.dtype && other.element == seen.element);
        }
        let same = |other: &Seen| other.dtype == seen.dtype && other.shapes == seen.shapes;
        match self.rng.below(10) {
            0..=4 => self.find(same),
            5 | 6 if seen.is_number() => {
                let other = self.find(same)?;
                let name = self.rng.pick(&["AddV2", "Sub", "Maximum"]);
                self.call(name, &[id, other]).or(Some(id))
            }
            7 | 8 if seen.is_number() => {
                let constant = self.numbers(seen.dtype, &[])?;
                self.op("AddV2", vec![value(id), constant], Attrs::new()).or(Some(id))
            }
            _ => {
                let rank = seen.rank();
                self.find(|other| other.dtype == seen.dtype && other.rank() == rank)
            }
        }
    }

    fn settle_all(&mut self, ids: &[Id]) -> Option<Vec<Id>> {
        ids.iter().map(|&id| self.settle(id)).collect()
    }
}

fn branch(g: &mut Gen) -> Option<()> {
    let condition = g.predicate()?;
    choice(g, Head::If, condition, 2)
}

fn case(g: &mut Gen) -> Option<()> {
    let index = g.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0))?;
    let n = 2 + g.rng.below(2);
    choice(g, Head::Case, index, n)
}

fn choice(g: &mut Gen, head: Head, by: Id, n: usize) -> Option<()> {
    let n_results = 1 + g.rng.below(3);
    let results: Vec<Id> = (0..n_results)
        .map(|_| g.find(|seen| seen.dtype != DType::Resource))
        .collect::<Option<_>>()?;
    let element = results.iter().find_map(|&id| g.type_of(id).element);
    let lists: Vec<_> = results.iter().filter_map(|&id| g.type_of(id).element).collect();
    if lists.iter().any(|list| Some(*list) != element) {
        return None;
    }
    let mut blocks = Vec::new();
    for _ in 0..n {
        let len = g.rng.below(4);
        blocks.push(g.block(&[], len, |g, _| g.settle_all(&results))?);
    }
    g.emit(head, vec![value(by)], blocks, n_results, element).map(drop)
}

/// A loop that counts, over some values: the operands, the condition and the body.
pub(super) struct CountedLoop {
    pub(super) args: Vec<StatementOperand>,
    pub(super) blocks: Vec<ProgramBlock>,
    pub(super) element: Option<DType>,
}

impl Gen {
    /// A loop that changes these values.
    pub(super) fn counted(&mut self, changed: &[Id]) -> Option<CountedLoop> {
        self.looped(changed, |g, params| g.settle_all(&params[1..]))
    }

    /// A loop whose body ends with these changes of its parameters, the first of which counts.
    pub(super) fn looped(
        &mut self,
        changed: &[Id],
        change: impl FnOnce(&mut Gen, &[Id]) -> Option<Vec<Id>>,
    ) -> Option<CountedLoop> {
        let n = self.count()?;
        let zero = WorldValue { tensor: Tensor::from(0i32), is_exact: true };
        let counter = (vec![zero; self.lanes.len()], None);
        let mut params = vec![counter];
        params.extend(changed.iter().map(|&id| self.items(id)));
        let element = changed.iter().find_map(|&id| self.type_of(id).element);
        let stops_early = self.rng.chance(0.25);
        let condition = self.block(&params, 0, |g, params| {
            let more = g.call("Less", &[params[0], n])?;
            if !stops_early {
                return Some(vec![more]);
            }
            let before = g.stmts.len();
            let Some(goes_on) = g.predicate() else {
                g.stmts.truncate(before);
                return Some(vec![more]);
            };
            Some(vec![g.call("LogicalAnd", &[more, goes_on])?])
        })?;
        let len = 1 + self.rng.below(4);
        let body = self.block(&params, len, |g, params| {
            let next = g.op("AddV2", vec![value(params[0]), int(1)], Attrs::new())?;
            let mut results = vec![next];
            results.extend(change(g, params)?);
            Some(results)
        })?;
        let mut args = vec![int(0)];
        args.extend(changed.iter().map(|&id| value(id)));
        Some(CountedLoop { args, blocks: vec![condition, body], element })
    }

    /// Adds a loop, with invariants as weak as its variables need on these inputs.
    pub(super) fn emit_loop(&mut self, counted: CountedLoop) -> Option<Vec<Id>> {
        let CountedLoop { args, blocks, element } = counted;
        let n = args.len();
        let invariants = vec![Invariant::Same; n];
        let outs = self.emit(Head::While(invariants), args.clone(), blocks, n, element)?;
        let found = args.iter().zip(&outs).map(|(arg, &out)| match arg {
            StatementOperand::Value(id) => {
                let (before, after) = (self.type_of(*id), self.type_of(out));
                match (before.shapes == after.shapes, before.rank() == after.rank()) {
                    (true, _) => Invariant::Same,
                    (false, true) if after.rank().is_some() => Invariant::Rank,
                    _ => Invariant::Any,
                }
            }
            _ => Invariant::Same,
        });
        let found = found.collect();
        if let Some(stmt) = self.stmts.last_mut() {
            stmt.head = Head::While(found);
        }
        Some(outs)
    }
}

fn repeat(g: &mut Gen) -> Option<()> {
    let n = 1 + g.rng.below(3);
    let changed: Vec<Id> =
        (0..n).map(|_| g.find(|seen| seen.is_tensor())).collect::<Option<_>>()?;
    let counted = g.counted(&changed)?;
    g.emit_loop(counted).map(drop)
}

/// A loop, and another over its results, some of which it only reads.
fn two_loops(g: &mut Gen) -> Option<()> {
    let changed = [g.number()?, g.number()?];
    let counted = g.counted(&changed)?;
    let outs = g.emit_loop(counted)?;
    let later = if g.rng.chance(0.5) { vec![outs[1]] } else { vec![outs[2], outs[1]] };
    let counted = g.counted(&later)?;
    g.emit_loop(counted).map(drop)
}

/// The first row of a value on each input; zeros if there is none.
fn rows(g: &Gen, id: Id) -> Option<(Vec<WorldValue>, Option<DType>)> {
    let (items, _) = g.items(id);
    let row = |item: &WorldValue| {
        let host = item.tensor.host().ok()?;
        let dims: Vec<usize> = host.shape().iter().skip(1).copied().collect();
        let shape = ferroflow::ir::Shape::new(dims).ok()?;
        let row = match host.shape().first() {
            Some(0) => HostTensor::zeros(host.dtype(), shape).ok()?,
            _ => host.rows(0..1).ok()?.reshaped(shape).ok()?,
        };
        Some(WorldValue { tensor: row.into(), is_exact: item.is_exact })
    };
    Some((items.iter().map(row).collect::<Option<_>>()?, None))
}

fn map(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let row = rows(g, x)?;
    let n = 1 + g.rng.below(3);
    let block = g.block(&[row], n, |g, params| {
        let result = if g.rng.chance(0.6) { g.settle(params[0])? } else { g.number()? };
        Some(vec![result])
    })?;
    g.emit(Head::Map, vec![value(x)], vec![block], 1, None).map(drop)
}

fn fold(g: &mut Gen) -> Option<()> {
    let (x, initial) = (g.array()?, g.number()?);
    let (state, row) = (g.items(initial), rows(g, x)?);
    let n = 1 + g.rng.below(3);
    let block = g.block(&[state, row], n, |g, params| Some(vec![g.settle(params[0])?]))?;
    let head = if g.rng.chance(0.5) { Head::Fold } else { Head::Scan };
    g.emit(head, vec![value(x), value(initial)], vec![block], 1, None).map(drop)
}

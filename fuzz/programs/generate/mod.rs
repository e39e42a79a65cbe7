//! Random programs: every statement is tried eagerly on all inputs before it is taken.

mod calls;
mod control;
mod dynamic;
mod elementwise;
mod gradients;
mod inputs;
mod layers;
mod lists;
mod operands;
mod profiles;
mod reductions;
mod resize;
mod state;
mod strings;
mod views;
mod windows;

use super::{
    check::guarded,
    program::{FuzzProgram, Head, Id, ProgramBlock, StatementOperand, Stmt},
    rng::FuzzRng,
    switches,
    world::{FuzzWorld, WorldEnv, WorldValue},
};
use ferroflow::{
    Tensor,
    ir::{Attrs, DType, HostTensor, Shape},
    tracer::with_context,
};
use profiles::GeneratorProfile;
pub(crate) use profiles::PROFILES;
use std::sync::Arc;

/// A way to add a statement or a few; `None` if it does not fit what there is.
type Template = fn(&mut Gen) -> Option<()>;

/// The type of a value as far as the inputs show it.
#[derive(Clone)]
struct Seen {
    dtype: DType,
    /// The shape for each input.
    shapes: Vec<Shape>,
    is_exact: bool,
    /// The dtype of the elements, of a list of tensors.
    element: Option<DType>,
}

impl Seen {
    /// The rank, if it is the same for all inputs.
    fn rank(&self) -> Option<usize> {
        let rank = self.shapes.first()?.rank();
        self.shapes.iter().all(|shape| shape.rank() == rank).then_some(rank)
    }

    /// The sizes of a dimension, of a value that has a rank.
    fn sizes(&self, axis: usize) -> impl Iterator<Item = usize> {
        self.shapes.iter().map(move |shape| shape.get(axis).copied().unwrap_or(0))
    }

    /// The size of a dimension, if it is the same for all inputs.
    fn size(&self, axis: usize) -> Option<usize> {
        let size = self.sizes(axis).next()?;
        self.sizes(axis).all(|other| other == size).then_some(size)
    }

    fn is_number(&self) -> bool {
        matches!(self.dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64)
    }

    fn is_float(&self) -> bool {
        matches!(self.dtype, DType::F32 | DType::F64)
    }

    fn is_int(&self) -> bool {
        matches!(self.dtype, DType::I32 | DType::I64)
    }

    /// Whether it is a tensor with elements of its own.
    fn is_tensor(&self) -> bool {
        !matches!(self.dtype, DType::Variant | DType::Resource)
    }
}

/// An input, and the values that statements have for it.
struct Lane {
    world: FuzzWorld,
    env: WorldEnv,
}

struct Gen {
    rng: FuzzRng,
    profile: &'static GeneratorProfile,
    lanes: Vec<Lane>,
    /// Of all values, by number.
    seen: Vec<Option<Seen>>,
    /// The values that statements may use here.
    scope: Vec<Id>,
    stmts: Vec<Stmt>,
    depth: usize,
    /// The types that the functions of the program take.
    signatures: Vec<Vec<Seen>>,
    program: FuzzProgram,
}

/// The program of a seed, if one comes about.
pub(crate) fn generate(seed: u64, profile: &str) -> Option<FuzzProgram> {
    let number = PROFILES.iter().position(|known| known.name == profile)?;
    (0..4).find_map(|again| {
        attempt(FuzzRng::new(seed, (number * 16 + again) as u64), &PROFILES[number])
    })
}

fn attempt(mut rng: FuzzRng, profile: &'static GeneratorProfile) -> Option<FuzzProgram> {
    let program = inputs::program(&mut rng, profile);
    let setting = &switches::all()[0];
    with_context(&setting.context, || {
        let shared = Arc::new(program.clone());
        let lane = |list: &Vec<HostTensor>| {
            let world = FuzzWorld::new(&shared, &setting.devices).ok()?;
            let item = |tensor: &HostTensor| {
                Some(WorldValue { tensor: Tensor::from(tensor.clone()), is_exact: true })
            };
            Some(Lane { world, env: list.iter().map(item).collect() })
        };
        let lanes = program.inputs.iter().map(lane).collect::<Option<Vec<_>>>()?;
        let scope = program.main.params.clone();
        let (stmts, seen, signatures) = (Vec::new(), Vec::new(), Vec::new());
        let mut generator =
            Gen { rng, profile, lanes, seen, scope, stmts, depth: 0, signatures, program };
        for id in generator.scope.clone() {
            generator.see(id, None);
        }
        generator.fill();
        generator.finish()
    })
}

impl Gen {
    fn fill(&mut self) {
        let lengths: &[usize] =
            if self.profile.is_long { &[8, 14, 20, 28] } else { &[3, 5, 8, 12, 16] };
        let n = self.rng.pick(lengths);
        for _ in 0..n {
            self.step();
        }
    }

    /// Adds a statement of some kind.
    fn step(&mut self) -> bool {
        for _ in 0..10 {
            let templates = profiles::templates(self);
            let weights: Vec<f64> = templates.iter().map(|(weight, _)| *weight).collect();
            let (_, template) = templates[self.rng.weighted(&weights)];
            let before = (self.stmts.len(), self.scope.len());
            if template(self).is_some() {
                return true;
            }
            self.stmts.truncate(before.0);
            self.scope.truncate(before.1);
        }
        false
    }

    /// Chooses results.
    fn finish(mut self) -> Option<FuzzProgram> {
        let made: Vec<Id> = self.stmts.iter().flat_map(|stmt| stmt.outs.clone()).collect();
        let mut used: Vec<Id> = Vec::new();
        for stmt in &self.stmts {
            uses(stmt, &mut used);
        }
        let is_result = |id: &Id| self.seen[*id].as_ref().is_some_and(Seen::is_tensor);
        let results: Vec<Id> = made.into_iter().filter(is_result).collect();
        let mut ends: Vec<Id> = results.iter().copied().filter(|id| !used.contains(id)).collect();
        self.rng.shuffle(&mut ends);
        ends.truncate(if self.profile.is_digest { 2 } else { 5 });
        let others = if self.profile.is_digest { 0 } else { self.rng.below(3) };
        for _ in 0..others.min(results.len()) {
            ends.push(self.rng.pick(&results));
        }
        if ends.is_empty() {
            ends.push(*results.last()?);
        }
        self.program.main.stmts = self.stmts;
        self.program.main.results = ends;
        Some(self.program)
    }

    /// A value by number.
    fn type_of(&self, id: Id) -> &Seen {
        self.seen[id].as_ref().expect("values in scope have types")
    }

    /// Notes the type of a value.
    fn see(&mut self, id: Id, element: Option<DType>) -> Option<()> {
        let items = self.lanes.iter().map(|lane| lane.env.get(id).cloned().flatten());
        let items = items.collect::<Option<Vec<WorldValue>>>()?;
        let dtype = items.first()?.tensor.dtype();
        if items.iter().any(|item| item.tensor.dtype() != dtype) {
            return None;
        }
        let shapes = items.iter().map(|item| item.tensor.shape().known());
        let shapes = shapes.collect::<Option<Vec<Shape>>>()?;
        let is_exact = items.iter().all(|item| item.is_exact);
        let seen = Seen { dtype, shapes, is_exact, element };
        if self.seen.len() <= id {
            self.seen.resize(id + 1, None);
        }
        self.seen[id] = Some(seen);
        Some(())
    }

    fn next_id(&self) -> Id {
        self.seen.len().max(self.program.main.params.len())
    }

    /// Adds a statement with `n` results, if it runs on all inputs.
    fn emit(
        &mut self,
        head: Head,
        args: Vec<StatementOperand>,
        blocks: Vec<ProgramBlock>,
        n: usize,
        element: Option<DType>,
    ) -> Option<Vec<Id>> {
        let first = self.next_id();
        let outs: Vec<Id> = (first..first + n).collect();
        let chance = self.profile.devices;
        let device = self.rng.chance(chance).then(|| self.rng.below(6));
        let stmt = Stmt { outs: outs.clone(), head, args, blocks, device };
        for lane in &mut self.lanes {
            guarded(|| lane.world.statement(&stmt, &mut lane.env)).ok()?.ok()?;
        }
        self.seen.resize(first + n, None);
        for &id in &outs {
            self.see(id, None)?;
            if self.type_of(id).dtype == DType::Variant {
                self.see(id, element)?;
            }
        }
        self.stmts.push(stmt);
        self.scope.extend(&outs);
        Some(outs)
    }

    /// Calls an op with one result.
    fn op(&mut self, name: &'static str, args: Vec<StatementOperand>, attrs: Attrs) -> Option<Id> {
        self.emit(Head::Op(name, attrs), args, Vec::new(), 1, None).map(|outs| outs[0])
    }

    /// Calls an op without attributes on values.
    fn call(&mut self, name: &'static str, args: &[Id]) -> Option<Id> {
        self.op(name, args.iter().map(|&id| StatementOperand::Value(id)).collect(), Attrs::new())
    }

    /// A nested block with parameters of these values on each input.
    fn block(
        &mut self,
        params: &[(Vec<WorldValue>, Option<DType>)],
        n: usize,
        finish: impl FnOnce(&mut Gen, &[Id]) -> Option<Vec<Id>>,
    ) -> Option<ProgramBlock> {
        let first = self.next_id();
        let ids: Vec<Id> = (first..first + params.len()).collect();
        self.seen.resize(first + params.len(), None);
        for (&id, (items, element)) in ids.iter().zip(params) {
            for (lane, item) in self.lanes.iter_mut().zip(items) {
                if lane.env.len() <= id {
                    lane.env.resize(id + 1, None);
                }
                lane.env[id] = Some(item.clone());
            }
            self.see(id, *element)?;
        }
        let (scope, stmts) = (self.scope.clone(), std::mem::take(&mut self.stmts));
        self.scope.extend(&ids);
        self.depth += 1;
        for _ in 0..n {
            self.step();
        }
        let results = finish(self, &ids);
        self.depth -= 1;
        self.scope = scope;
        let stmts = std::mem::replace(&mut self.stmts, stmts);
        Some(ProgramBlock { params: ids, stmts, results: results? })
    }

    /// The items of a value on each input, to be those of a parameter.
    fn items(&self, id: Id) -> (Vec<WorldValue>, Option<DType>) {
        let item = |lane: &Lane| lane.env[id].clone().expect("a value in scope");
        (self.lanes.iter().map(item).collect(), self.type_of(id).element)
    }
}

/// Adds the values that a statement uses.
pub(super) fn uses(stmt: &Stmt, used: &mut Vec<Id>) {
    for arg in &stmt.args {
        if let StatementOperand::Value(id) = arg {
            used.push(*id);
        }
    }
    for block in &stmt.blocks {
        block.stmts.iter().for_each(|stmt| uses(stmt, used));
        used.extend(&block.results);
    }
}

//! Rows: reductions along the last dimensions with the expressions before, between and after them,
//! in one program.
//!
//! Some invocations share a row: each has every so-and-so-many-th element of it. For each reduction,
//! in the order of the expression, a loop folds an invocation's own elements, and the invocations of
//! the row then exchange their results; values of a whole row are computed by every invocation for
//! itself; a last loop computes the elements of the result. Elements that several loops need stay in
//! an array of the invocation, where it has few.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    dialect::WORKGROUP,
    elementwise::element,
    expr,
    reduce::extreme,
    scalar_type::{Caps, ScalarType},
    workgroup::{Fold, WARP, parts},
};
use crate::{
    device::{OpCall, OperandSpec},
    error::Result,
};
use ferroflow_ir::{
    DType, Expr, Prim, ReduceKind, Shape,
    expr::{ExprId, ExprKind},
    infer::reduced_axes,
};
use std::collections::{BTreeMap, BTreeSet};

/// Elements that an invocation keeps, of one value and of all.
const MOST_STEPS: usize = 32;
const MOST_KEPT: usize = 96;

/// Rows from which on a row of a group's length need not be shared by a whole group for the device
/// to be busy.
const MANY: usize = 1 << 11;

/// Rows of a region that are longer are worth a program of their own only if there are [`FEWEST`].
const LONG: usize = 1 << 13;

/// Longer rows are not one invocation's: it adds element by element, and would round too much off.
const LONG_OF_ONE: usize = 1 << 11;

/// The fewest rows that are worth a program where each is one invocation's, or where they are long.
const FEWEST: usize = 1 << 6;

/// The shader of a region without an anchor; `None` where it does not reduce along the last
/// dimensions, or rows are too few.
///
/// # Errors
///
/// When the attributes are not those of a region.
pub(super) fn region(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(expr) = call.expr else { return Ok(None) };
    let mut space = Shape::scalar();
    for input in call.inputs {
        space = space.broadcast(&input.shape)?;
    }
    let reduced = reduced_axes(call.attrs.ints("axes")?, space.rank())?;
    let n_last = reduced.iter().rev().take_while(|&&reduced| reduced).count();
    let row: usize = space[space.rank() - n_last..].iter().product();
    let is_apart = reduced[..reduced.len() - n_last].contains(&true);
    if is_apart || row == 0 {
        return Ok(None);
    }
    let rows = space.num_elements() / row;
    let serves = match caps.tiles {
        true => rows >= FEWEST || row <= LONG,
        false => rows >= FEWEST && row <= LONG_OF_ONE,
    };
    if !serves {
        return Ok(None);
    }
    let rows = Rows { expr, operands: call.inputs, space: &space, n_last, caps };
    rows.shader(call.attrs.bool("reduces")?)
}

/// The shader of an expression over the rows along an input's last dimension.
pub(super) fn of_one(call: &OpCall<'_>, expr: &Expr, caps: Caps) -> Result<Option<Shader>> {
    let space = call.shape(0);
    let rows = Rows { expr, operands: &call.inputs[..1], space, n_last: 1, caps };
    rows.shader(false)
}

/// An expression over operands that broadcast to a space, and how many of its last dimensions are a
/// row.
struct Rows<'a> {
    expr: &'a Expr,
    operands: &'a [OperandSpec],
    space: &'a Shape,
    n_last: usize,
    caps: Caps,
}

impl Rows<'_> {
    fn row(&self) -> usize {
        self.space[self.space.rank() - self.n_last..].iter().product()
    }

    /// Invocations that share a row.
    fn invocations(&self, rows: usize) -> usize {
        match self.row() {
            _ if !self.caps.tiles => 1,
            row if row >= WORKGROUP && (rows < MANY || row > WARP * MOST_STEPS) => WORKGROUP,
            _ => WARP,
        }
    }

    fn shader(&self, reduces: bool) -> Result<Option<Shader>> {
        let (k, row) = (KernelBuilder::new(self.caps), self.row());
        if self.space.num_elements() == 0 {
            // There is nothing to compute, and nothing that rows could be told by.
            k.requires(!reduces);
            k.output(self.expr.dtype());
            return k.finish(0);
        }
        let rows = self.space.num_elements() / row;
        let invocations = self.invocations(rows);
        let is_element = self.elements();
        if is_element[self.expr.root().index()] == reduces {
            return Ok(None);
        }
        let mut writer = RowsWriter::new(self, &k, is_element, (rows, invocations, reduces));
        match writer.write(rows, reduces) {
            None => Ok(None),
            Some(()) if invocations == 1 => k.finish(rows),
            Some(()) => k.finish(rows.div_ceil(WORKGROUP / invocations) * WORKGROUP),
        }
    }

    /// For each node, whether it has a value for each element of a row.
    fn elements(&self) -> Vec<bool> {
        let mut found: Vec<bool> = Vec::with_capacity(self.expr.nodes().len());
        for node in self.expr.nodes() {
            found.push(match &node.kind {
                ExprKind::Input(position) => self.has_elements(&self.operands[*position].shape),
                ExprKind::Const(_) | ExprKind::Reduce(..) => false,
                ExprKind::Apply(_, args) => args.iter().any(|arg| found[arg.index()]),
            });
        }
        found
    }

    /// Whether an operand of this shape has elements of its own along a row.
    fn has_elements(&self, shape: &Shape) -> bool {
        shape.iter().rev().take(self.n_last).any(|&size| size != 1)
    }

    /// The elements that the loop of a node computes, without those that are kept.
    fn needed(
        &self,
        root: ExprId,
        is_element: &[bool],
        kept: &BTreeSet<ExprId>,
    ) -> BTreeSet<ExprId> {
        let (mut found, mut open) = (BTreeSet::new(), vec![root]);
        while let Some(id) = open.pop() {
            if !is_element[id.index()] || kept.contains(&id) || !found.insert(id) {
                continue;
            }
            open.extend(self.expr.nodes()[id.index()].kind.args());
        }
        found
    }

    /// The elements worth keeping: the operands and costly arguments of reductions that several
    /// loops need.
    fn kept(&self, is_element: &[bool], reduces: bool, steps: usize) -> BTreeSet<ExprId> {
        let arguments = self.expr.nodes().iter().filter_map(|node| match node.kind {
            ExprKind::Reduce(_, arg) => Some(arg),
            ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Apply(..) => None,
        });
        let mut loops: Vec<ExprId> = arguments.collect();
        if !reduces {
            loops.push(self.expr.root());
        }
        let none = BTreeSet::new();
        let needs: Vec<BTreeSet<ExprId>> =
            loops.iter().map(|&root| self.needed(root, is_element, &none)).collect();
        let mut kept = BTreeSet::new();
        for (at, &root) in loops.iter().enumerate() {
            let is_costly = needs[at].iter().any(|id| match &self.expr.nodes()[id.index()].kind {
                ExprKind::Apply(prim, _) => is_costly(*prim),
                ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => false,
            });
            if is_costly && needs[at + 1..].iter().any(|later| later.contains(&root)) {
                kept.insert(root);
            }
        }
        let mut known = BTreeSet::new();
        let mut uses = vec![0; self.expr.nodes().len()];
        for &root in &loops {
            for id in self.needed(root, is_element, &known) {
                uses[id.index()] += 1;
            }
            known.extend(kept.get(&root));
        }
        for (id, node) in self.expr.iter() {
            if matches!(node.kind, ExprKind::Input(_)) && uses[id.index()] > 1 {
                kept.insert(id);
            }
        }
        // The arrays are of `f32`: other scalars would lose digits there.
        let is_float = |id: &ExprId| {
            let dtype = self.expr.nodes()[id.index()].dtype;
            ScalarType::of(dtype, self.caps) == Some(ScalarType::F32)
        };
        kept.into_iter().filter(is_float).take(MOST_KEPT / steps).collect()
    }
}

/// Whether computing a primitive again takes longer than keeping its result.
fn is_costly(prim: Prim) -> bool {
    use Prim::*;
    !matches!(prim, Neg | Abs | Add | Sub | Mul | Max | Min | Flush | Select | Cast)
}

/// A kernel of rows, as far as it is written.
struct RowsWriter<'a, 'k> {
    rows: &'a Rows<'a>,
    k: &'k KernelBuilder,
    buffers: Vec<KernelBuffer<'k>>,
    /// For each node, whether it has a value for each element of a row.
    is_element: Vec<bool>,
    invocations: usize,
    /// Elements of an invocation.
    steps: usize,
    /// The row of this invocation, and whether there is such a row.
    row: KernelValue<'k>,
    is_own: KernelValue<'k>,
    /// The position of its first element.
    base: KernelValue<'k>,
    /// The first element of this invocation, counted from there.
    first: KernelValue<'k>,
    /// Elements that are kept once a loop has computed them.
    kept: BTreeMap<ExprId, KernelBuffer<'k>>,
    /// Those that a loop has computed.
    known: BTreeSet<ExprId>,
    /// Values of the whole row.
    values: BTreeMap<ExprId, KernelValue<'k>>,
}

/// Where a loop over the elements of a row is.
#[derive(Debug, Clone, Copy)]
struct RowPosition<'k> {
    /// The element's position in the space, and in the row.
    at: KernelValue<'k>,
    column: KernelValue<'k>,
    /// The number of elements that the invocation had before.
    step: KernelValue<'k>,
}

impl<'a, 'k> RowsWriter<'a, 'k> {
    fn new(
        rows: &'a Rows<'a>,
        k: &'k KernelBuilder,
        is_element: Vec<bool>,
        (count, invocations, reduces): (usize, usize, bool),
    ) -> RowsWriter<'a, 'k> {
        let operands = rows.operands.iter().enumerate();
        let buffers =
            operands.map(|(position, operand)| k.input(position, operand.dtype)).collect();
        let length = rows.row();
        let (row, is_own, first) = match invocations {
            1 => (k.element(), k.bool(true), k.index(0)),
            _ => {
                parts(k);
                let number = k.workgroup() * (WORKGROUP / invocations) + k.local() / invocations;
                let number = k.bind("number", number);
                let row = k.bind("row", number.min(count - 1));
                (row, number.lt(count), k.bind("first", k.local() % invocations))
            }
        };
        let base = k.bind("base", row * length);
        let steps = length.div_ceil(invocations);
        let kept = match invocations == 1 || steps > MOST_STEPS {
            true => BTreeSet::new(),
            false => rows.kept(&is_element, reduces, steps),
        };
        let kept = kept.into_iter().map(|id| (id, k.private("kept", steps))).collect();
        let (known, values) = Default::default();
        RowsWriter {
            rows,
            k,
            buffers,
            is_element,
            invocations,
            steps,
            row,
            is_own,
            base,
            first,
            kept,
            known,
            values,
        }
    }

    /// Writes all of the kernel; `None` where a primitive has no code.
    fn write(&mut self, rows: usize, reduces: bool) -> Option<()> {
        self.compute_values()?;
        let (k, invocations, root) = (self.k, self.invocations, self.rows.expr.root());
        let out = k.output(self.rows.expr.dtype());
        if reduces {
            let value = self.values.get(&root).copied()?;
            let stores =
                if invocations == 1 { k.bool(true) } else { self.first.eq(0).and(self.is_own) };
            k.when(stores, || out.set(self.row, value));
            return Some(());
        }
        let ends = invocations < WORKGROUP
            && invocations > 1
            && !rows.is_multiple_of(WORKGROUP / invocations);
        let stores = if ends { self.is_own } else { k.bool(true) };
        let mut written = None;
        k.when(stores, || {
            written = self.compute_elements(root, |position, value| out.set(position.at, value));
        });
        written
    }

    /// The value of a node that is known, at a position where it has elements.
    fn value(
        &self,
        id: ExprId,
        elements: &BTreeMap<ExprId, KernelValue<'k>>,
        step: Option<KernelValue<'k>>,
    ) -> Option<KernelValue<'k>> {
        let node = &self.rows.expr.nodes()[id.index()];
        match (node.kind.clone(), step) {
            (ExprKind::Const(value), _) => Some(self.k.constant(self.k.scalar(node.dtype), value)),
            (_, Some(step)) if self.known.contains(&id) => Some(self.kept.get(&id)?.at(step)),
            _ => elements.get(&id).or_else(|| self.values.get(&id)).copied(),
        }
    }

    /// An element of an operand.
    fn loaded(&self, position: usize, place: Option<RowPosition<'k>>) -> KernelValue<'k> {
        let (rows, buffer) = (self.rows, self.buffers[position]);
        let operand = &rows.operands[position];
        // A row that all rows share is read by the position in it.
        let is_shared = operand.shape.rank() == rows.n_last
            && operand.shape[..] == rows.space[rows.space.rank() - rows.n_last..];
        match place {
            Some(place) if is_shared => buffer.at(place.column),
            place => {
                let at = place.map_or(self.base, |place| place.at);
                element(self.k, buffer, operand, rows.space, at)
            }
        }
    }

    /// Computes every value of a whole row.
    fn compute_values(&mut self) -> Option<()> {
        let (expr, none) = (self.rows.expr, BTreeMap::new());
        for (id, node) in expr.iter() {
            if self.is_element[id.index()] {
                continue;
            }
            let value = match &node.kind {
                ExprKind::Const(_) => continue,
                ExprKind::Input(position) => self.loaded(*position, None),
                ExprKind::Apply(..) => expr::applied(expr, id, |arg| self.value(arg, &none, None))?,
                ExprKind::Reduce(kind, arg) => self.reduced(*kind, *arg)?.rounded(node.dtype),
            };
            self.values.insert(id, self.k.bind("v", value));
        }
        Some(())
    }

    /// The reduction of a node.
    fn reduced(&mut self, kind: ReduceKind, arg: ExprId) -> Option<KernelValue<'k>> {
        let dtype = self.rows.expr.nodes()[arg.index()].dtype;
        let k = self.k;
        if !self.is_element[arg.index()] || k.scalar(dtype) != ScalarType::F32 {
            return None;
        }
        let (start, fold) = match kind {
            ReduceKind::Sum | ReduceKind::Mean => (k.float(0.0), Fold::Sum),
            ReduceKind::Max => (extreme(k, DType::F32, true), Fold::Function("max_")),
            ReduceKind::Min => (extreme(k, DType::F32, false), Fold::Function("min_")),
            ReduceKind::Prod | ReduceKind::All | ReduceKind::Any | ReduceKind::EuclideanNorm => {
                return None;
            }
        };
        let acc = k.variable("acc", start);
        self.compute_elements(arg, |_, value| acc.set(fold.combine(acc, value)))?;
        let whole = fold.whole(k, acc, self.invocations);
        Some(match kind {
            ReduceKind::Mean => whole / self.rows.row() as f32,
            _ => whole,
        })
    }

    /// Computes an invocation's elements of a node in a loop, and hands each on.
    fn compute_elements(
        &mut self,
        root: ExprId,
        finish: impl Fn(RowPosition<'k>, KernelValue<'k>),
    ) -> Option<()> {
        let needed = self.rows.needed(root, &self.is_element, &self.known);
        let mut is_written = true;
        self.for_each_element(|position| {
            let mut elements = BTreeMap::new();
            for &id in &needed {
                let value = match self.rows.expr.nodes()[id.index()].kind {
                    ExprKind::Input(operand) => Some(self.loaded(operand, Some(position))),
                    _ => expr::applied(self.rows.expr, id, |arg| {
                        self.value(arg, &elements, Some(position.step))
                    }),
                };
                let Some(value) = value else { return is_written = false };
                let value = self.k.bind("v", value);
                if let Some(kept) = self.kept.get(&id) {
                    kept.set(position.step, value);
                }
                elements.insert(id, value);
            }
            match self.value(root, &elements, Some(position.step)) {
                Some(value) => finish(position, value),
                None => is_written = false,
            }
        });
        self.known.extend(needed.into_iter().filter(|id| self.kept.contains_key(id)));
        is_written.then_some(())
    }

    fn for_each_element(&self, body: impl FnOnce(RowPosition<'k>)) {
        let (k, row, invocations) = (self.k, self.rows.row(), self.invocations);
        let position =
            |column, step| RowPosition { at: k.bind("at", self.base + column), column, step };
        if invocations == 1 {
            return k.for_below("column", row, |column| body(position(column, column)));
        }
        let step = |step: KernelValue<'k>| {
            let column = k.bind("column", self.first + step * invocations);
            let inside =
                if row.is_multiple_of(invocations) { k.bool(true) } else { column.lt(row) };
            k.when(inside, || body(position(column, step)));
        };
        match self.steps <= MOST_STEPS {
            true => k.unrolled_below("step", self.steps, step),
            false => k.for_below("step", self.steps, step),
        }
    }
}

//! Rows: reductions along the last dimensions with the expressions before, between and after them,
//! in one program.
//!
//! Some invocations, the lanes, share a row: each has every so-and-so-many-th element of it. For
//! each reduction, in the order of the expression, a loop folds the lane's own elements and the
//! lanes then tell each other; values of a whole row are computed by every lane for itself; a last
//! loop computes the elements of the result. Elements that several loops need stay with the lane,
//! in an array, where a lane has few.

use super::{
    Shader,
    elementwise::element,
    expr,
    reduce::extreme,
    scalar_type::{Caps, ScalarType, cut, float, literal},
    tiles::TEAM,
    workgroup::{Fold, PARTS, WARP},
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
use std::{collections::BTreeSet, fmt::Write};

/// Elements that a lane keeps, of one value and of all.
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
    Ok(rows.shader(call.attrs.bool("reduces")?))
}

/// The shader of an expression over the rows along an input's last dimension.
pub(super) fn of_one(call: &OpCall<'_>, expr: &Expr, caps: Caps) -> Option<Shader> {
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

    /// Lanes of a row.
    fn lanes(&self, rows: usize) -> usize {
        match self.row() {
            _ if !self.caps.tiles => 1,
            row if row >= TEAM && (rows < MANY || row > WARP * MOST_STEPS) => TEAM,
            _ => WARP,
        }
    }

    fn shader(&self, reduces: bool) -> Option<Shader> {
        let output = ScalarType::of(self.expr.dtype(), self.caps)?;
        let row = self.row();
        if self.space.num_elements() == 0 {
            // There is nothing to compute, and nothing that rows could be told by.
            return (!reduces).then(|| Shader::plain(Vec::new(), vec![output], String::new(), 0));
        }
        let rows = self.space.num_elements() / row;
        let lanes = self.lanes(rows);
        let mut inputs = Vec::new();
        for (position, operand) in self.operands.iter().enumerate() {
            inputs.push((position, ScalarType::of(operand.dtype, self.caps)?));
        }
        let is_element = self.elements();
        if is_element[self.expr.root().index()] == reduces {
            return None;
        }
        let steps = row.div_ceil(lanes);
        let mut body = match lanes {
            1 => "let row = n;\n".to_string(),
            _ => format!(
                "let own_row = team * {each}u + lane / {lanes}u;\n\
                 let row = min(own_row, {last}u);\nlet first = lane % {lanes}u;\n",
                each = TEAM / lanes,
                last = rows.saturating_sub(1),
            ),
        };
        let _ = writeln!(body, "let base = row * {row}u;");
        let kept = if lanes == 1 || steps > MOST_STEPS {
            BTreeSet::new()
        } else {
            self.kept(&is_element, reduces, steps)
        };
        let mut writer =
            Writer { rows: self, is_element, lanes, steps, kept, known: BTreeSet::new() };
        body += &writer.values()?;
        let is_own = format!("own_row < {rows}u");
        let root = self.expr.root();
        if reduces {
            let store = output.store("out0", "row", &writer.name(root)?);
            body += &match lanes {
                1 => store,
                _ => format!("if (first == 0u && {is_own}) {{ {store} }}\n"),
            };
        } else {
            let ends = lanes < TEAM && lanes > 1 && !rows.is_multiple_of(TEAM / lanes);
            let finish = |value: &str| output.store("out0", "at", value);
            let last = writer.elements(root, &finish)?;
            body += &if ends { format!("if ({is_own}) {{\n{last}}}\n") } else { last };
        }
        if lanes == 1 {
            return Some(Shader::plain(inputs, vec![output], body, rows));
        }
        let count = rows.div_ceil(TEAM / lanes) * TEAM;
        let arrays = writer.kept.iter().map(|id| (format!("kept{}", id.index()), steps)).collect();
        Some(Shader {
            shared: vec![PARTS],
            arrays,
            ..Shader::plain(inputs, vec![output], body, count)
        })
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

/// The text of rows, as far as it is written.
struct Writer<'a> {
    rows: &'a Rows<'a>,
    is_element: Vec<bool>,
    lanes: usize,
    /// Elements of a lane.
    steps: usize,
    /// Elements that are kept once a loop has computed them.
    kept: BTreeSet<ExprId>,
    /// Those that a loop has computed.
    known: BTreeSet<ExprId>,
}

impl Writer<'_> {
    /// The name of a node whose value is known.
    fn name(&self, id: ExprId) -> Option<String> {
        let node = &self.rows.expr.nodes()[id.index()];
        Some(match node.kind {
            ExprKind::Const(value) => literal(value, ScalarType::of(node.dtype, self.rows.caps)?)?,
            _ if self.known.contains(&id) => format!("kept{}[k]", id.index()),
            _ => format!("v{}", id.index()),
        })
    }

    /// The value of a primitive.
    fn applied(&self, id: ExprId) -> Option<String> {
        expr::applied(self.rows.expr, id, |arg| self.name(arg))
    }

    /// An element of an operand.
    fn loaded(&self, position: usize, at: &str) -> Option<String> {
        let rows = self.rows;
        let (operand, source) = (&rows.operands[position], format!("in{position}"));
        // A row that all rows share is read by the position in it.
        let is_shared = operand.shape.rank() == rows.n_last
            && operand.shape[..] == rows.space[rows.space.rank() - rows.n_last..];
        if is_shared && at == "at" {
            return Some(ScalarType::of(operand.dtype, rows.caps)?.load(&source, "i"));
        }
        Some(element(operand, &source, (rows.space, at), rows.caps)?.1)
    }

    /// The statements that compute every value of a whole row.
    fn values(&mut self) -> Option<String> {
        let (expr, mut text) = (self.rows.expr, String::new());
        for (id, node) in expr.iter() {
            if self.is_element[id.index()] {
                continue;
            }
            let value = match &node.kind {
                ExprKind::Const(_) => continue,
                ExprKind::Input(position) => self.loaded(*position, "base")?,
                ExprKind::Apply(..) => self.applied(id)?,
                ExprKind::Reduce(kind, arg) => {
                    let (lines, value) = self.reduced(id, *kind, *arg)?;
                    text += &lines;
                    cut(node.dtype, &value)
                }
            };
            let _ = writeln!(text, "let v{} = {value};", id.index());
        }
        Some(text)
    }

    /// The statements of a reduction, and its result.
    fn reduced(&mut self, id: ExprId, kind: ReduceKind, arg: ExprId) -> Option<(String, String)> {
        let dtype = self.rows.expr.nodes()[arg.index()].dtype;
        let is_float = ScalarType::of(dtype, self.rows.caps) == Some(ScalarType::F32);
        if !self.is_element[arg.index()] || !is_float {
            return None;
        }
        let (start, fold) = match kind {
            ReduceKind::Sum | ReduceKind::Mean => ("0.0f".to_string(), Fold::Sum),
            ReduceKind::Max => (extreme(DType::F32, true)?, Fold::Function("max_")),
            ReduceKind::Min => (extreme(DType::F32, false)?, Fold::Function("min_")),
            ReduceKind::Prod | ReduceKind::All | ReduceKind::Any | ReduceKind::EuclideanNorm => {
                return None;
            }
        };
        let (own, whole) = (format!("own{}", id.index()), format!("whole{}", id.index()));
        let step = |value: &str| format!("{own} = {};\n", fold.combine(&own, value));
        let lines = self.elements(arg, &step)?;
        let folded = fold.text(&own, &whole, self.lanes, self.rows.caps);
        let text = format!("var {own} = {start};\n{lines}{folded}");
        let value = match kind {
            ReduceKind::Mean => format!("{whole} / {}", float(self.rows.row() as f32)),
            _ => whole,
        };
        Some((text, value))
    }

    /// The loop over a lane's elements of a node.
    fn elements(&mut self, root: ExprId, finish: &dyn Fn(&str) -> String) -> Option<String> {
        let mut lines = String::new();
        for id in self.rows.needed(root, &self.is_element, &self.known) {
            let value = match self.rows.expr.nodes()[id.index()].kind {
                ExprKind::Input(position) => self.loaded(position, "at")?,
                _ => self.applied(id)?,
            };
            let _ = writeln!(lines, "let v{} = {value};", id.index());
            if self.kept.contains(&id) {
                let _ = writeln!(lines, "kept{}[k] = v{};", id.index(), id.index());
            }
        }
        lines += &finish(&self.name(root)?);
        let found = self.rows.needed(root, &self.is_element, &self.known);
        self.known.extend(found.intersection(&self.kept));
        let (row, lanes, steps) = (self.rows.row(), self.lanes, self.steps);
        if lanes == 1 {
            return Some(format!(
                "for (var i = 0u; i < {row}u; i++) {{\nlet at = base + i;\n{lines}}}\n"
            ));
        }
        let is_whole = row.is_multiple_of(lanes);
        let guard = if is_whole { String::new() } else { format!("if (i < {row}u) ") };
        let unroll = if self.steps <= MOST_STEPS { "unroll_ " } else { "" };
        Some(format!(
            "{unroll}for (var k = 0u; k < {steps}u; k++) {{\nlet i = first + k * {lanes}u;\n\
             {guard}{{\nlet at = base + i;\n{lines}}}\n}}\n"
        ))
    }
}

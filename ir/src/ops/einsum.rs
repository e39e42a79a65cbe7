//! `Einsum`: products and sums written as an equation of labelled axes.
//!
//! The rules are TensorFlow's (`tensorflow/core/util/einsum_op_util.cc`): one or two operands, an
//! explicit result, one byte per label, `...` for axes that broadcast. A label that occurs twice in
//! an operand takes its diagonal, twice in the result makes one.

use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value},
    error::Result,
    infer::OpContext,
    shape::{Dim, PartialShape},
    work,
};
use smallvec::SmallVec;
use std::collections::HashMap;

/// An axis of an operand: one with a label, or one that `...` stands for, counted from the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Axis {
    Label(u8),
    Broadcast(usize),
}

type Axes = SmallVec<[Axis; 6]>;

/// The labels of an operand: those before `...`, and those after it if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term<'a> {
    pub(crate) before: &'a [u8],
    pub(crate) after: Option<&'a [u8]>,
}

impl<'a> Term<'a> {
    fn parse(text: &'a str) -> Option<Term<'a>> {
        let (before, after) = match text.split_once("...") {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let dots = before.contains('.') || after.is_some_and(|after| after.contains('.'));
        (!dots).then(|| Term { before: before.as_bytes(), after: after.map(str::as_bytes) })
    }

    /// The labels.
    pub(crate) fn labels(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.before.iter().chain(self.after.unwrap_or(&[])).copied()
    }

    /// The number of labels.
    fn n_labels(&self) -> usize {
        self.before.len() + self.after.map_or(0, <[u8]>::len)
    }

    /// The axes when `...` stands for `n_broadcast` of them.
    fn axes(&self, n_broadcast: usize) -> Axes {
        let label = |&byte: &u8| Axis::Label(byte);
        let mut axes: Axes = self.before.iter().map(label).collect();
        if let Some(after) = self.after {
            axes.extend((0..n_broadcast).rev().map(Axis::Broadcast));
            axes.extend(after.iter().map(label));
        }
        axes
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Equation<'a> {
    pub(crate) inputs: Vec<Term<'a>>,
    pub(crate) output: Term<'a>,
}

impl<'a> Equation<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Equation<'a>> {
        let (inputs, output) = text.split_once("->")?;
        if output.contains("->") || output.contains(',') {
            return None;
        }
        let inputs: Option<Vec<Term<'a>>> = inputs.split(',').map(Term::parse).collect();
        Some(Equation { inputs: inputs?, output: Term::parse(output)? })
    }
}

pub(super) fn infer(context: &mut OpContext<'_>) -> Result<()> {
    let text = context.attrs.string("equation")?;
    let n = context.n_inputs();
    let wrong = |context: &OpContext<'_>, expected: &'static str| {
        Err(context.wrong_attr("equation", expected, text))
    };
    let Some(equation) = Equation::parse(text) else {
        return wrong(context, "operands separated by commas, `->` and the result");
    };
    if equation.inputs.len() != n || n > 2 {
        return wrong(context, "an equation of one or two operands, one for each input");
    }
    let mut sizes: HashMap<Axis, Dim> = HashMap::new();
    let mut n_broadcast = Some(0);
    for (index, term) in equation.inputs.iter().enumerate() {
        let labels = term.n_labels();
        let Some(dims) = context.shape(index).dims() else {
            for axis in term.axes(0) {
                sizes.entry(axis).or_insert(None);
            }
            n_broadcast = if term.after.is_some() { None } else { n_broadcast };
            continue;
        };
        match term.after {
            None => context.check_rank(index, labels)?,
            Some(_) => context.check_rank_at_least(index, labels)?,
        }
        let own = dims.len() - labels;
        for (axis, &dim) in term.axes(own).into_iter().zip(dims) {
            let size = sizes.entry(axis).or_insert(match axis {
                Axis::Label(_) => None,
                Axis::Broadcast(_) => Some(1),
            });
            *size = match axis {
                Axis::Label(_) => context.same("sizes of one label", *size, dim)?,
                Axis::Broadcast(_) => broadcast(*size, dim)?,
            };
        }
        n_broadcast = n_broadcast.map(|n| own.max(n));
    }
    let known = |label: &u8| sizes.contains_key(&Axis::Label(*label));
    let output = &equation.output;
    if !output.before.iter().chain(output.after.unwrap_or(&[])).all(known) {
        return wrong(context, "an equation whose result has labels of its operands");
    }
    if output.after.is_none() && n_broadcast.is_some_and(|n| n > 0) {
        return wrong(context, "an equation whose result has `...`");
    }
    context.set(
        0,
        match n_broadcast {
            None if output.after.is_some() => PartialShape::Unknown,
            n => PartialShape::ranked(output.axes(n.unwrap_or(0)).iter().map(|axis| sizes[axis])),
        },
    );
    Ok(())
}

/// Each element of the result of a product sums over all labels that the result has not.
pub(super) fn multiply_adds(context: &OpContext<'_>) -> Option<u64> {
    let equation = Equation::parse(context.attrs.string("equation").ok()?)?;
    let mut summed: HashMap<u8, usize> = HashMap::new();
    for (index, term) in equation.inputs.iter().enumerate() {
        let shape = context.shape(index).known()?;
        let axes = term.axes(shape.rank().checked_sub(term.n_labels())?);
        for (axis, &size) in axes.into_iter().zip(shape.iter()) {
            if let Axis::Label(label) = axis
                && equation.output.labels().all(|other| other != label)
            {
                summed.insert(label, size);
            }
        }
    }
    let result = context.output(0).known().filter(|_| equation.inputs.len() == 2)?;
    Some(work::product(result.iter().copied().chain(summed.into_values())))
}

fn broadcast(a: Dim, b: Dim) -> Result<Dim> {
    let (a, b) = (PartialShape::vector(a), PartialShape::vector(b));
    Ok(a.broadcast(&b)?.dim(0))
}

/// A tensor whose axes have names.
#[derive(Debug, Clone)]
struct Named<'e> {
    value: Value<'e>,
    axes: Axes,
}

pub(super) fn rule<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let equation = Equation::parse(c.string("equation"))
        .expect("the shape function has accepted the equation");
    let named = |(term, &value): (&Term<'_>, &Value<'e>)| {
        let n_broadcast = value.shape().rank() - term.n_labels();
        Named { value, axes: term.axes(n_broadcast) }.diagonal(c)
    };
    let operands: Vec<Named<'e>> = equation.inputs.iter().zip(c.inputs()).map(named).collect();
    let is_broadcast = |axis: &&Axis| matches!(axis, Axis::Broadcast(_));
    let n_broadcast = operands.iter().map(|x| x.axes.iter().filter(is_broadcast).count()).max();
    let output = equation.output.axes(n_broadcast.unwrap_or(0));
    let result = match &operands[..] {
        [x] => x.clone().summed(|axis| output.contains(axis)),
        [a, b] => {
            let needed =
                |other: &Named<'e>, axis: &Axis| output.contains(axis) || other.axes.contains(axis);
            product(
                a.clone().summed(|axis| needed(b, axis)),
                b.clone().summed(|axis| needed(a, axis)),
                &output,
            )
        }
        _ => unreachable!("the shape function has counted the operands"),
    };
    vec![result.spread(&output).value]
}

impl<'e> Named<'e> {
    fn size(&self, axis: Axis) -> i64 {
        let position = self.axes.iter().position(|&own| own == axis);
        position.map_or(1, |position| self.value.shape()[position] as i64)
    }

    fn sizes(&self, axes: &[Axis]) -> Vec<i64> {
        axes.iter().map(|&axis| self.size(axis)).collect()
    }

    /// The axes in another order; axes it does not have come in with size 1.
    fn arranged(self, axes: &[Axis]) -> Named<'e> {
        if self.axes[..] == *axes {
            return self;
        }
        let own: Axes = axes.iter().copied().filter(|axis| self.axes.contains(axis)).collect();
        let order: Vec<i64> = own
            .iter()
            .filter_map(|axis| self.axes.iter().position(|other| other == axis))
            .map(|position| position as i64)
            .collect();
        let value = match order.is_sorted() {
            true => self.value,
            false => self.value.transpose(&order),
        };
        let sizes = self.sizes(axes);
        let value = if own.len() == axes.len() { value } else { value.reshape(&sizes) };
        Named { value, axes: axes.into() }
    }

    /// Without the axes that are not wanted, which are summed.
    fn summed(self, wanted: impl Fn(&Axis) -> bool) -> Named<'e> {
        let positions = 0..self.axes.len();
        let summed: Vec<i64> =
            positions.filter(|&at| !wanted(&self.axes[at])).map(|at| at as i64).collect();
        if summed.is_empty() {
            return self;
        }
        let axes = self.axes.iter().copied().filter(&wanted).collect();
        Named { value: self.value.sum(&summed, false), axes }
    }

    /// Each label once: the diagonal of axes of one label. In a square matrix row by row, the
    /// diagonal is every element after `n + 1` others.
    fn diagonal(mut self, c: &Composite<'e>) -> Named<'e> {
        while let Some(first) = repeated(&self.axes) {
            let label = self.axes[first];
            let mut order: Vec<i64> = Vec::new();
            let mut pair: Vec<i64> = Vec::new();
            for (position, &axis) in self.axes.iter().enumerate() {
                let paired = axis == label && pair.len() < 2;
                if paired { &mut pair } else { &mut order }.push(position as i64);
            }
            let mut axes: Axes = order.iter().map(|&at| self.axes[at as usize]).collect();
            let mut sizes: Vec<i64> =
                order.iter().map(|&at| self.value.shape()[at as usize] as i64).collect();
            let n = self.value.shape()[first] as i64;
            order.extend(pair);
            sizes.push(n * n);
            let rows = self.value.transpose(&order).reshape(&sizes);
            axes.push(label);
            self = Named { value: every_nth(c, rows, n + 1), axes };
        }
        self
    }

    /// The axes of the result, in which a label that occurs again makes a diagonal: `n` elements
    /// with `n` zeros after each, cut into rows of `n`.
    fn spread(mut self, output: &[Axis]) -> Named<'e> {
        while let Some(&axis) = output.iter().find(|&axis| {
            let count = |axes: &[Axis]| axes.iter().filter(|&other| other == axis).count();
            count(output) > count(&self.axes)
        }) {
            let mut axes: Axes = self.axes.clone();
            let position = axes.iter().rposition(|&own| own == axis).unwrap_or(0);
            axes.remove(position);
            let mut order: Vec<i64> = (0..self.axes.len() as i64).collect();
            order.remove(position);
            order.push(position as i64);
            let value = self.value.transpose(&order);
            let outer: Vec<i64> = value.shape().to_i64()[..axes.len()].to_vec();
            let n = self.value.shape()[position] as i64;
            let with = |last: &[i64]| [&outer[..], last].concat();
            let zeros = value.like(0.0).broadcast_to(&with(&[n, n]));
            let padded = Value::concat(&[value.reshape(&with(&[n, 1])), zeros], -1);
            let begin = vec![0; outer.len() + 1];
            let square = padded.reshape(&with(&[n * (n + 1)])).slice(&begin, &with(&[n * n]));
            axes.extend([axis, axis]);
            self = Named { value: square.reshape(&with(&[n, n])), axes };
        }
        self.in_order(output)
    }

    /// The axes in the order of `output`, which has the same ones, some perhaps several times.
    fn in_order(self, output: &[Axis]) -> Named<'e> {
        let mut free: Vec<Option<Axis>> = self.axes.iter().copied().map(Some).collect();
        let mut order = Vec::new();
        for &axis in output {
            if let Some(position) = free.iter().position(|&own| own == Some(axis)) {
                free[position] = None;
                order.push(position as i64);
            }
        }
        let value = if order.is_sorted() { self.value } else { self.value.transpose(&order) };
        Named { value, axes: output.into() }
    }
}

/// The first axis whose label occurs again.
fn repeated(axes: &[Axis]) -> Option<usize> {
    (0..axes.len()).find(|&first| axes[first + 1..].contains(&axes[first]))
}

/// Every `step`th element along the last axis.
fn every_nth<'e>(c: &Composite<'e>, x: Value<'e>, step: i64) -> Value<'e> {
    let shape = x.shape().to_i64();
    let mut strides = vec![1; shape.len()];
    if let Some(last) = strides.last_mut() {
        *last = step;
    }
    let inputs = [x, c.vector(&vec![0i64; shape.len()]), c.vector(&shape), c.vector(&strides)];
    let attrs = Attrs::new().with("T", x.dtype()).with("Index", DType::I64);
    c.call1("StridedSlice", attrs, &inputs)
}

/// The sum of products along the axes that only the operands have.
fn product<'e>(a: Named<'e>, b: Named<'e>, output: &[Axis]) -> Named<'e> {
    let shared = |axis: &Axis| {
        matches!(axis, Axis::Broadcast(_)) || (a.axes.contains(axis) && b.axes.contains(axis))
    };
    let mut batch: Axes = Axes::new();
    for &axis in output.iter().filter(|axis| shared(axis)) {
        if !batch.contains(&axis) {
            batch.push(axis);
        }
    }
    let only = |x: &Named<'e>, other: &Named<'e>| -> Axes {
        let own = |axis: &&Axis| !batch.contains(axis) && !other.axes.contains(axis);
        x.axes.iter().filter(own).copied().collect()
    };
    let (left, right) = (only(&a, &b), only(&b, &a));
    let in_both = |axis: &&Axis| !batch.contains(axis) && b.axes.contains(axis);
    let summed: Axes = a.axes.iter().filter(in_both).copied().collect();
    let axes: Axes = [&batch[..], &left, &right].concat().into();
    let batch_sizes: Vec<i64> =
        batch.iter().map(|&axis| broadcast_size(a.size(axis), b.size(axis))).collect();
    let sizes = [batch_sizes, a.sizes(&left), b.sizes(&right)].concat();
    if summed.is_empty() {
        let a = a.arranged(&[&batch[..], &left].concat());
        let ones = vec![1; right.len()];
        let column = a.value.reshape(&[&a.value.shape().to_i64()[..], &ones].concat());
        let b = b.arranged(&axes);
        return Named { value: column * b.value, axes };
    }
    let (x, adj_x) = matrices(a, &batch, &left, &summed);
    let (y, adj_y) = matrices(b, &batch, &summed, &right);
    Named { value: x.batch_matmul(y, adj_x, adj_y).reshape(&sizes), axes }
}

/// A size of 1 broadcasts.
fn broadcast_size(a: i64, b: i64) -> i64 {
    if a == 1 { b } else { a }
}

/// Matrices of rows and columns, and whether they are transposed: where that saves moving the
/// elements. (A flag also conjugates, so complex elements are moved.)
fn matrices<'e>(x: Named<'e>, batch: &[Axis], rows: &[Axis], cols: &[Axis]) -> (Value<'e>, bool) {
    let transposed = x.axes[..] == [batch, cols, rows].concat() && !x.value.dtype().is_complex();
    let (first, second) = if transposed { (cols, rows) } else { (rows, cols) };
    let sizes = [
        x.sizes(batch),
        vec![x.sizes(first).iter().product()],
        vec![x.sizes(second).iter().product()],
    ];
    let x = x.arranged(&[batch, first, second].concat());
    (x.value.reshape(&sizes.concat()), transposed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_read() {
        let equation = Equation::parse("...ab,bc->...ac").unwrap();
        assert_eq!(equation.inputs.len(), 2);
        assert_eq!(equation.inputs[0], Term { before: b"", after: Some(b"ab") });
        let b = |byte| Axis::Label(byte);
        let expected = [Axis::Broadcast(1), Axis::Broadcast(0), b(b'a'), b(b'b')];
        assert_eq!(equation.inputs[0].axes(2)[..], expected);
        for wrong in ["ab", "a->b->c", "a.b->ab", "a->b,c"] {
            assert_eq!(Equation::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn repeated_labels_are_found() {
        let axes = Term::parse("abcb").unwrap().axes(0);
        assert_eq!(repeated(&axes), Some(1));
        assert_eq!(repeated(&axes[..3]), None);
    }
}

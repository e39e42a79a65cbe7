//! Random expressions over rows: what their kernels compute is what each node says by itself.

use super::{expressions, rows::RowRegion};
use crate::{
    device::{OpCall, OperandSpec},
    kernel::{Io, Kernel, Operand, Target},
    threads::Threads,
};
use ferroflow_ir::{
    Attrs, DType, Expr, HostTensor, ReduceKind, Shape,
    expr::{ExprKind, Replacement, Scalar},
    registry,
};
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// The most that a number may be, so that all are exact in each dtype.
const MOST: f64 = 100.0;

/// A value of the expression, and what it is for each element of all rows.
#[derive(Clone)]
struct Node {
    expr: Expr,
    elements: Vec<f64>,
}

impl Node {
    /// The results of a formula of nodes, by the kernel and by numbers of 64 bits.
    fn of(
        args: &[&Node],
        output: DType,
        formula: impl for<'s> Fn(&[Scalar<'s>]) -> Scalar<'s>,
        number: impl Fn(&[f64]) -> f64,
    ) -> Node {
        let types: Vec<DType> = args.iter().map(|arg| arg.expr.dtype()).collect();
        let expr = Expr::build(&Attrs::new(), &types, output, |s| {
            let args: Vec<Scalar<'_>> = (0..types.len()).map(|index| s.x(index)).collect();
            formula(&args)
        });
        let replacements: Vec<_> = args.iter().map(|arg| Replacement::Expr(&arg.expr)).collect();
        let expr = expr.expect("an expression").substitute(&replacements);
        let of_element = |at: usize| {
            let args: Vec<f64> = args.iter().map(|arg| arg.elements[at]).collect();
            number(&args)
        };
        Node { expr, elements: (0..args[0].elements.len()).map(of_element).collect() }
    }

    fn reduced(&self, kind: ReduceKind, cols: usize) -> Node {
        let of_row = |row: &[f64]| match kind {
            ReduceKind::Max => row.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            _ => row.iter().copied().fold(f64::INFINITY, f64::min),
        };
        let rows = self.elements.chunks(cols);
        let elements = rows.flat_map(|row| vec![of_row(row); row.len()]).collect();
        Node { expr: self.expr.reduced(kind), elements }
    }

    fn is_bool(&self) -> bool {
        self.expr.dtype() == DType::Bool
    }
}

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

/// The node that a step makes of those before it; nothing where the dtypes do not fit.
fn step(nodes: &[Node], (op, picks): &(u8, [usize; 3]), cols: usize) -> Option<Node> {
    let numbers: Vec<&Node> = nodes.iter().filter(|node| !node.is_bool()).collect();
    let bools: Vec<&Node> = nodes.iter().filter(|node| node.is_bool()).collect();
    // Mostly of those made last, so that the root has much below it.
    let number = |index: usize| numbers[numbers.len() - 1 - picks[index] % numbers.len().min(4)];
    let bool = |index: usize| {
        (!bools.is_empty()).then(|| bools[bools.len() - 1 - picks[index] % bools.len().min(2)])
    };
    let wide = |node: &Node| Node::of(&[node], DType::F32, |x| x[0].cast(DType::F32), |x| x[0]);
    let (a, b) = (&wide(number(0)), &wide(number(1)));
    let narrow = [DType::F16, DType::BF16, DType::I8][picks[1] % 3];
    Some(match op % 11 {
        0 => Node::of(&[a, b], DType::F32, |x| x[0] + x[1], |x| x[0] + x[1]),
        1 => Node::of(&[a, b], DType::F32, |x| x[0] - x[1], |x| x[0] - x[1]),
        2 => Node::of(&[a, b], DType::F32, |x| x[0].max(x[1]), |x| x[0].max(x[1])),
        3 => Node::of(&[a], DType::F32, |x| -x[0], |x| -x[0]),
        4 => a.reduced(ReduceKind::Max, cols),
        5 => a.reduced(ReduceKind::Min, cols),
        6 => Node::of(&[a, b], DType::Bool, |x| x[0].gt(x[1]), |x| truth(x[0] > x[1])),
        7 => Node::of(&[bool(0)?], DType::Bool, |x| x[0].not(), |x| 1.0 - x[0]),
        8 => Node::of(&[bool(0)?], DType::F32, |x| x[0].cast(DType::F32), |x| x[0]),
        9 => Node::of(&[a], narrow, |x| x[0].cast(narrow), |x| x[0]),
        _ => Node::of(
            &[bool(2)?, a, b],
            DType::F32,
            |x| x[0].select(x[1], x[2]),
            |x| if x[0] > 0.0 { x[1] } else { x[2] },
        ),
    })
}

fn run(expr: &Expr, x: &[f64], cols: usize) -> Option<HostTensor> {
    let shape = Shape::new([x.len() / cols, cols]).expect("a shape");
    let kernel = RowRegion::of_one(expr, DType::F32, &shape)?;
    let mut out = HostTensor::recycled(DType::F32, shape).expect("room");
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let (operands, threads) = ([Operand::Plain(bytemuck::cast_slice(&x))], Threads::single());
    let target = [Target::Plain(out.bytes_mut())];
    kernel.run(&mut Io::new(operands, target, &threads, usize::MAX)).expect("a result");
    Some(out)
}

/// The number for a row that operand 1 has, of which there are [`N_NUMBERS`] for any number of rows.
fn number_of(row: usize) -> f64 {
    (row % N_NUMBERS) as f64 - 1.0
}

const N_NUMBERS: usize = 5;

/// The results of nodes over a window of a tensor whose rows have `width` elements, and over numbers of rows,
/// which begin again; `None` where there is no code for them.
fn run_windows(
    nodes: &[&Node],
    x: &[f64],
    [rows, cols, begin, width]: [usize; 4],
    in_place: bool,
) -> Option<Vec<HostTensor>> {
    let (first, others) = nodes.split_first()?;
    let others: Vec<Expr> = others.iter().map(|node| node.expr.clone()).collect();
    let expr = Expr::joined(&first.expr, &others);
    let ints = |numbers: &[usize]| numbers.iter().map(|&n| n as i64).collect::<Vec<_>>();
    let attrs = Attrs::new()
        .with("Tin", vec![DType::F32; 2])
        .with("Tout", vec![DType::F32; nodes.len()])
        .with("shape", ints(&[rows / N_NUMBERS, N_NUMBERS, cols]))
        .with("views", ints(&[begin, N_NUMBERS * width, width, 1, 0, 0, 1, 0]));
    let spec = |dims: &[usize]| {
        OperandSpec::new(DType::F32, Shape::new(dims.iter().copied()).expect("a shape"))
    };
    let specs = [spec(&[rows, width]), spec(&[N_NUMBERS])];
    let op = registry::find("_FusedExpressions").expect("a record");
    let call = OpCall::new(op, &attrs, &specs, Some(&expr)).expect("a call");
    let kernel = expressions::compile(&call).expect("a call")?.kernel;
    // All else of the tensor is not to be read.
    let mut wide = vec![f32::NAN; rows * width];
    for (row, elements) in wide.chunks_mut(width).zip(x.chunks(cols)) {
        let window = row[begin..].iter_mut().zip(elements);
        window.for_each(|(to, &x)| *to = x as f32);
    }
    let numbers: Vec<f32> = (0..N_NUMBERS).map(|row| number_of(row) as f32).collect();
    let shape = Shape::new([rows, cols]).expect("a shape");
    let mut outs: Vec<HostTensor> = (0..nodes.len())
        .map(|_| HostTensor::recycled(DType::F32, shape.clone()).expect("room"))
        .collect();
    let threads = Threads::new(NonZeroUsize::new(2).expect("two"));
    let in_place = in_place && kernel.in_place(0);
    let operand = if in_place {
        outs[0].bytes_mut().copy_from_slice(bytemuck::cast_slice(&wide));
        Operand::InPlace
    } else {
        Operand::Plain(bytemuck::cast_slice(&wide))
    };
    let targets: Vec<Target<'_>> =
        outs.iter_mut().map(|out| Target::Plain(out.bytes_mut())).collect();
    let operands = [operand, Operand::Plain(bytemuck::cast_slice(&numbers))];
    kernel.run(&mut Io::new(operands, targets, &threads, usize::MAX)).expect("a result");
    Some(outs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn several_results_of_a_window_are_their_nodes_one_by_one(
        steps in prop::collection::vec((any::<u8>(), any::<[usize; 3]>()), 4..16),
        cols in prop::sample::select(vec![1usize, 48, 100, 128, 300]),
        rows in prop::sample::select(vec![1usize, 2, 14]),
        (begin, end) in prop::sample::select(vec![(0usize, 0usize), (0, 7), (5, 0), (64, 1)]),
        in_place: bool,
        n_results in 1usize..5,
    ) {
        let rows = rows * N_NUMBERS;
        let elements = (0..rows * cols).map(|at| ((at * 7919) % 23) as f64 - 9.0);
        let x = Node { expr: Expr::input(0, DType::F32), elements: elements.collect() };
        let elements = (0..rows * cols).map(|at| number_of(at / cols));
        let number = Node { expr: Expr::input(1, DType::F32), elements: elements.collect() };
        let sum = Node::of(&[&x, &number], DType::F32, |x| x[0] + x[1], |x| x[0] + x[1]);
        let mut nodes = vec![x.clone(), number, sum];
        for made in steps.iter().filter(|(op, _)| !matches!(op % 11, 4 | 5)) {
            let node = step(&nodes, made, cols);
            let fits = |node: &Node| node.elements.iter().all(|x| x.abs() <= MOST);
            nodes.extend(node.filter(fits));
        }
        let is_result = |node: &&Node| {
            let root = &node.expr.nodes()[node.expr.root().index()];
            root.dtype == DType::F32 && matches!(root.kind, ExprKind::Apply(..))
        };
        let results: Vec<&Node> =
            nodes.iter().rev().filter(is_result).take(n_results).collect();
        let size = [rows, cols, begin, begin + cols + end];
        if let Some(found) = run_windows(&results, &x.elements, size, in_place) {
            for (found, node) in found.iter().zip(results) {
                let found = found.as_slice::<f32>().expect("floats");
                prop_assert!(
                    found.iter().map(|&x| f64::from(x)).eq(node.elements.iter().copied()),
                    "{}",
                    node.expr
                );
            }
        }
    }

    #[test]
    fn kernels_over_rows_are_their_nodes_one_by_one(
        steps in prop::collection::vec((any::<u8>(), any::<[usize; 3]>()), 4..16),
        cols in prop::sample::select(vec![48usize, 100, 128, 300]),
        rows in 1usize..5,
    ) {
        let of_row = |at: usize, row: usize| ((at * 7919) % (3 + 2 * row)) as f64 - row as f64;
        let elements = (0..rows * cols).map(|at| of_row(at, at / cols));
        let x = Node { expr: Expr::input(0, DType::F32), elements: elements.collect() };
        let mut nodes = vec![x.clone()];
        for made in &steps {
            let node = step(&nodes, made, cols);
            let fits = |node: &Node| node.elements.iter().all(|x| x.abs() <= MOST);
            nodes.extend(node.filter(fits));
        }
        // The last node, as one with a value for each element.
        let last = &nodes[nodes.len() - 1];
        let root = Node::of(
            &[last, &x],
            DType::F32,
            |x| x[0].cast(DType::F32) + x[1],
            |x| x[0] + x[1],
        );
        if let Some(found) = run(&root.expr, &x.elements, cols) {
            let found = found.as_slice::<f32>().expect("floats").iter().map(|&x| f64::from(x));
            prop_assert!(found.eq(root.elements), "{:?}", root.expr);
        }
    }
}

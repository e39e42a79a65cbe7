//! Both machines give the same bits, whatever the dtype and the number of elements, of all ops but `Erf`.

use super::*;
#[cfg(target_arch = "x86_64")]
use crate::{OperandSpec, device::OpCall};
use crate::{
    elementwise::lines::{ElementLines, LinesSource},
    kernel::{Operand, Target},
    plan::broadcast::access,
    threads::Threads,
};
#[cfg(target_arch = "x86_64")]
use ferroflow_ir::build::infer_attrs;
use ferroflow_ir::{
    Attrs, HostTensor, Prim, ReduceKind, Shape,
    expr::{ExprId, ExprKind, Replacement, Scalar, Scalars},
    registry,
};
use machine::{Code, TileStep};
use proptest::prelude::*;

/// Result of a call on a machine; `None` if it does not take it.
#[cfg(target_arch = "x86_64")]
fn run<M: TileMachine<N>, const N: usize>(
    call: &OpCall<'_>,
    inputs: &[HostTensor],
) -> Option<Vec<u8>> {
    let dtypes: Vec<DType> = inputs.iter().map(HostTensor::dtype).collect();
    let output = call.output_shape(0).expect("a shape");
    let expr = Expr::of(call.op, call.attrs, &dtypes, call.outputs[0].dtype).expect("a formula");
    let accesses: Vec<InputAccess> = inputs.iter().map(|x| access(x.shape(), &output)).collect();
    let kernel = compile_for::<M, N>(&expr, &dtypes, &accesses)?;
    let mut out = vec![0; output.num_elements() * expr.dtype().size()?];
    let operands = inputs.iter().map(Operand::Tensor);
    let threads = Threads::single();
    let target = [Target::Plain(&mut out)];
    kernel.run(&mut Io::new(operands, target, &threads, usize::MAX)).expect("a result");
    Some(out)
}

/// Compares the machines; tells whether they take the call.
#[cfg(target_arch = "x86_64")]
fn check(op: &str, attrs: Attrs, inputs: &[&HostTensor]) -> bool {
    let record = registry::find(op).expect("a built-in record");
    let inputs: Vec<HostTensor> = inputs.iter().map(|&x| x.clone()).collect();
    let dtypes: Vec<DType> = inputs.iter().map(HostTensor::dtype).collect();
    let attrs = infer_attrs(record, attrs, &dtypes);
    let attrs = record.complete_attrs(attrs).expect("attributes");
    let spec = |x: &HostTensor| OperandSpec::new(x.dtype(), x.shape().clone());
    let specs: Vec<OperandSpec> = inputs.iter().map(spec).collect();
    let call = OpCall::new(record, &attrs, &specs, None).expect("a call");
    let (short, long) = (run::<Avx2, 64>(&call, &inputs), run::<Avx512, 128>(&call, &inputs));
    assert_eq!(short, long, "{op} of {specs:?}");
    short.is_some()
}

/// Numbers of all kinds.
fn floats(dims: [usize; 2], seed: usize) -> HostTensor {
    let special = [0.0, -0.0, 1e-40, -1e-39, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e30];
    let number = |at: usize| match at % 23 {
        0 => special[at / 23 % special.len()],
        _ => ((at * 7919) % 1009) as f32 / 64.0 - 7.0,
    };
    let numbers: Vec<f32> = (seed..seed + dims[0] * dims[1]).map(number).collect();
    HostTensor::from_slice(Shape::new(dims).expect("a shape"), &numbers).expect("a tensor")
}

#[cfg(target_arch = "x86_64")]
#[test]
fn machines_give_the_same_bits() {
    if !(Avx2::detected() && Avx512::detected()) {
        return;
    }
    let (x, y, row) = (floats([37, 11], 1), floats([37, 11], 500), floats([1, 11], 9));
    let (column, one) = (floats([37, 1], 40), floats([1, 1], 3));
    let integers: Vec<i32> = (0..37 * 11).map(|at| at * 5_000_001 - 1_000_000_000).collect();
    let integers = HostTensor::from_slice(x.shape().clone(), &integers).expect("a tensor");
    let truth: Vec<bool> = (0..37 * 11).map(|at| at % 3 == 0).collect();
    let truth = HostTensor::from_bools(x.shape().clone(), &truth).expect("a tensor");
    let plain = Attrs::new;
    let mut taken = 0;
    for op in [
        "Abs", "Ceil", "Cos", "Elu", "Erfc", "Exp", "Expm1", "Floor", "Inv", "IsFinite", "IsInf",
        "IsNan", "Log", "Log1p", "Neg", "Relu", "Relu6", "Rint", "Rsqrt", "Selu", "Sigmoid",
        "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Square", "Tanh", "Asinh", "Lgamma",
    ] {
        taken += usize::from(check(op, plain(), &[&x]));
    }
    for op in [
        "AddV2",
        "Atan2",
        "Equal",
        "Greater",
        "GreaterEqual",
        "Less",
        "LessEqual",
        "Maximum",
        "Minimum",
        "Mul",
        "NotEqual",
        "Pow",
        "RealDiv",
        "SquaredDifference",
        "Sub",
        "FloorDiv",
    ] {
        for other in [&y, &row, &column, &one] {
            taken += usize::from(check(op, plain(), &[&x, other]));
            taken += usize::from(check(op, plain(), &[other, &x]));
        }
    }
    for (from, to) in [
        (&x, DType::BF16),
        (&x, DType::F16),
        (&x, DType::Bool),
        (&integers, DType::F32),
        (&truth, DType::F32),
    ] {
        assert!(check("Cast", plain().with("DstT", to), &[from]), "to {to}");
    }
    assert!(check("LogicalNot", plain(), &[&truth]));
    assert!(check("LogicalAnd", plain(), &[&truth, &truth]));
    for (then, otherwise) in [(&x, &y), (&row, &x), (&x, &one)] {
        assert!(check("SelectV2", plain(), &[&truth, then, otherwise]));
    }
    assert!(taken > 140, "{taken} calls were taken");
}

/// The results of a kernel for inputs.
fn output_of(kernel: &dyn Kernel, inputs: &[HostTensor], n: usize) -> Vec<f32> {
    let mut out = vec![0; n * size_of::<f32>()];
    let operands = inputs.iter().map(Operand::Tensor);
    let (threads, target) = (Threads::single(), [Target::Plain(&mut out)]);
    kernel.run(&mut Io::new(operands, target, &threads, usize::MAX)).expect("a result");
    bytemuck::pod_collect_to_vec(&out)
}

proptest! {
    /// Formulas of any order and any number of readers, on subnormal and infinite numbers too: what
    /// is flushed when it is read, joined or put aside changes no bit.
    #[test]
    fn formulas_give_the_bits_of_the_portable_engine(
        steps in prop::collection::vec((0..7usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..14),
    ) {
        let inputs = [floats([37, 11], 1), floats([1, 11], 40), floats([37, 11], 500), floats([1, 1], 69)];
        let dtypes = [DType::F32; 4];
        let expr = Expr::build(&Attrs::new(), &dtypes, DType::F32, |s| {
            let mut values: Vec<_> = (0..4).map(|input| s.x(input)).collect();
            values.push(s.value(6.0, DType::F32));
            for (prim, x, y) in &steps {
                let (x, y) = (*x.get(&values), *y.get(&values));
                values.push(match prim {
                    0 => x + y,
                    1 => x - y,
                    2 => x * y,
                    3 => x.max(y),
                    4 => x.min(y),
                    5 => x.lt(y).select(x, y),
                    _ => -x,
                });
            }
            *values.last().expect("the inputs at least")
        })
        .expect("a formula");
        let output = inputs[0].shape();
        let accesses: Vec<InputAccess> = inputs.iter().map(|x| access(x.shape(), output)).collect();
        let Some(own) = compile(&expr, &dtypes, &accesses) else { return Ok(()) };
        let portable = crate::elementwise::portable::compile(&expr, &dtypes, accesses).expect("code");
        let n = output.num_elements();
        let (found, expected) = (output_of(&*own, &inputs, n), output_of(&*portable, &inputs, n));
        for (found, expected) in found.iter().zip(&expected) {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            prop_assert!(same, "{found} instead of {expected}: {expr}");
        }
    }
}

#[test]
fn an_affine_map_between_bounds_is_four_operations() {
    let expr = Expr::build(&Attrs::new(), &[DType::F32; 3], DType::F32, |s| {
        (s.x(0) * s.x(1) + s.x(2)).max(0.0).min(6.0)
    });
    let draft = super::compile::unscheduled(
        &expr.expect("a formula"),
        &[const { InputAccess::Contiguous }; 3],
    )
    .expect("steps");
    let codes = draft.steps.iter().map(|step| match step {
        TileStep::Own(code, ..) => *code,
        TileStep::Loop(..) => panic!("no loop"),
    });
    let expected = [Code::LoadFlushed, Code::MulAddFlushed, Code::MaxMin, Code::StoreFlushed];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}

#[test]
fn the_larger_and_the_smaller_of_two_zeros_is_the_second() {
    let zeros = HostTensor::from_slice(Shape::new([2]).expect("a shape"), &[0.0f32, -0.0]);
    let inputs = [zeros.expect("a tensor")];
    // The second operand of the first formula is at hand, the first of the other.
    let formulas: [for<'s> fn(&'s Scalars<'s>) -> Scalar<'s>; 4] = [
        |s| (-s.x(0)).max(s.x(0) + s.x(0)),
        |s| (s.x(0) + s.x(0)).max(-s.x(0)),
        |s| (-s.x(0)).min(s.x(0) + s.x(0)),
        |s| (s.x(0) + s.x(0)).min(-s.x(0)),
    ];
    let signs = formulas.map(|formula| {
        let expr =
            Expr::build(&Attrs::new(), &[DType::F32], DType::F32, formula).expect("a formula");
        let kernel =
            crate::elementwise::of_expr(&expr, &[DType::F32], vec![InputAccess::Contiguous]);
        let out = output_of(&*kernel.expect("a kernel"), &inputs, 2);
        [out[0].is_sign_negative(), out[1].is_sign_negative()]
    });
    assert_eq!(signs, [[false, true], [true, false], [false, true], [true, false]]);
}

/// On one thread and on two, and in the memory of an input.
#[test]
fn results_that_pass_the_caches_by_are_the_same() {
    let n = (STREAMED_FROM / size_of::<f32>()) + 37;
    let x: Vec<f32> = (0..n).map(|index| (index % 1009) as f32 - 500.0).collect();
    let y: Vec<f32> = (0..n).map(|index| (index % 997) as f32 / 8.0).collect();
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x * y + x).collect();
    let expr =
        Expr::build(&Attrs::new(), &[DType::F32; 2], DType::F32, |s| s.x(0) * s.x(1) + s.x(0));
    let expr = expr.expect("a formula");
    let accesses = [InputAccess::Contiguous, InputAccess::Contiguous];
    let Some(kernel) = compile(&expr, &[DType::F32; 2], &accesses) else { return };
    for threads in [1, 2] {
        let threads = Threads::new(threads.try_into().expect("not zero"));
        let mut out = HostTensor::recycled(DType::F32, Shape::new([n]).expect("a shape"));
        let out = out.as_mut().expect("room");
        for in_place in [false, true] {
            let first = match in_place {
                true => Operand::InPlace,
                false => Operand::Plain(bytemuck::cast_slice(&x)),
            };
            if in_place {
                out.bytes_mut().copy_from_slice(bytemuck::cast_slice(&x));
            }
            let operands = [first, Operand::Plain(bytemuck::cast_slice(&y))];
            let target = [Target::Plain(out.bytes_mut())];
            kernel.run(&mut Io::new(operands, target, &threads, usize::MAX)).expect("a result");
            assert!(out.as_slice::<f32>().expect("floats") == expected, "in place: {in_place}");
        }
    }
}

/// The expression of a stage over the elements of a line (input 0), two single numbers (1 and 2), two more
/// lines (3 and 4) and, where it is folded, the accumulator (5). All but input 0 are flushed already, as
/// results of other stages are.
fn of_stage(fold: Option<Prim>, build: impl for<'s> Fn(&'s Scalars<'_>) -> Scalar<'s>) -> Expr {
    let dtype = DType::F32;
    let mut expr = Expr::build(&Attrs::new(), &[dtype; 5], dtype, build).expect("an expression");
    if fold.is_some() {
        expr = expr.reduced(ReduceKind::Sum);
    }
    let results: Vec<Expr> =
        (1..5).map(|input| Expr::input(input, dtype).reduced(ReduceKind::Max)).collect();
    let line = [Replacement::Input(0, dtype)].into_iter();
    let all: Vec<Replacement<'_>> = line.chain(results.iter().map(Replacement::Expr)).collect();
    let expr = expr.substitute(&all);
    let folded = expr.nodes()[expr.root().index()].kind.args().first().filter(|_| fold.is_some());
    let input = |id: ExprId| match expr.nodes()[id.index()].kind {
        ExprKind::Input(position) => Some(position),
        _ => None,
    };
    let cut = |id: ExprId| match &expr.nodes()[id.index()].kind {
        ExprKind::Reduce(ReduceKind::Max, of) => input(*of),
        _ => None,
    };
    let expr = expr.part(*folded.unwrap_or(&expr.root()), cut);
    fold.map_or(expr.clone(), |prim| expr.combined(prim, 5))
}

/// Results of a program on three lines, as bits: in memory of the caches and past them, or totals.
fn results<M: TileMachine<N>, const N: usize>(program: &Program<M, N>) -> Vec<u32> {
    let (n, len) = (3, 3 * N + 5);
    let x = floats([n, len], 1);
    let (row, other) = (floats([1, len], 77), floats([1, len], 400));
    let single = |at: usize| LinesSource::Single { bytes: &x.bytes()[4 * at..], step: 4, width: 4 };
    let elements = |bytes, step| LinesSource::Elements { bytes, step, asked: [0, 8] };
    let sources = [
        elements(x.bytes(), 4 * len),
        single(23),
        single(46),
        elements(row.bytes(), 0),
        elements(other.bytes(), 0),
        LinesSource::Unread,
    ];
    let (lines, mut runner) =
        (ElementLines { sources: &sources, n, len, is_all: false }, program.runner());
    if program.accumulator.is_some() {
        let mut totals = vec![0f32; n];
        runner.fold_lines(&lines, ReduceKind::Sum, &mut totals);
        return totals.iter().map(|total| total.to_bits()).collect();
    }
    let mut out = HostTensor::recycled(DType::F32, x.shape().clone()).expect("room");
    let mut found = Vec::new();
    for streams in [false, true] {
        runner.run_lines(&lines, &mut [out.bytes_mut()], streams);
        runner.settle();
        found.extend(out.as_slice::<f32>().expect("floats").iter().map(|x| x.to_bits()));
    }
    found
}

fn check_whole_loops<M: TileMachine<N>, const N: usize>() {
    if !M::detected() {
        return;
    }
    let mut taken = 0;
    let dtypes = [DType::F32; 6];
    let affine = Expr::build(&Attrs::new(), &dtypes[..5], DType::F32, |s| {
        (s.x(0) - s.x(3)) * s.x(4) + s.x(1)
    });
    let squares =
        Expr::build(&Attrs::new(), &dtypes[..4], DType::F32, |s| (s.x(0) - s.x(3)).square());
    for (fold, expr) in [
        (true, of_stage(Some(Prim::Add), |s| s.x(0))),
        (true, of_stage(Some(Prim::Add), |s| s.x(0).square())),
        (true, of_stage(Some(Prim::Add), |s| (s.x(0) - s.x(1)).square())),
        (true, of_stage(Some(Prim::Max), |s| s.x(0))),
        (false, of_stage(None, |s| s.x(3) * s.x(1))),
        (false, of_stage(None, |s| (s.x(0) - s.x(1)) * s.x(2))),
        (false, of_stage(None, |s| (s.x(0) - s.x(1)) * s.x(2) + s.x(3))),
        (false, of_stage(None, |s| s.x(0) * s.x(1) * s.x(3))),
        (false, of_stage(None, |s| (s.x(0) - s.x(1)) * s.x(2) * s.x(3) + s.x(4))),
        (false, affine.expect("an expression")),
        (false, squares.expect("an expression")),
    ] {
        let mut accesses = vec![InputAccess::Contiguous; 6];
        accesses[1..3].fill(InputAccess::Scalar);
        let accumulator = fold.then_some(5);
        let program = compile_with::<M, N>(&expr, &dtypes, &accesses, accumulator);
        let mut program = program.expect("a program");
        let with = results(&program);
        for program in [&mut program.ops, &mut program.folding, &mut program.streaming] {
            taken += usize::from(program.whole.take().is_some());
        }
        assert_eq!(with, results(&program), "{expr:?}");
    }
    assert_eq!(taken, 17, "loops of whole programs");
}

/// Runs a check of every machine.
macro_rules! for_each_machine {
    ($check:ident) => {
        #[cfg(target_arch = "x86_64")]
        {
            $check::<Avx2, 64>();
            $check::<Avx512, 128>();
        }
        #[cfg(not(target_arch = "x86_64"))]
        $check::<Quad, 32>();
    };
}

#[test]
fn loops_of_whole_programs_give_the_bits_of_their_operations() {
    for_each_machine!(check_whole_loops);
}

#[test]
fn long_programs_fit_the_stack_of_a_thread() {
    fn chain<M: TileMachine<N>, const N: usize>() {
        if !M::detected() {
            return;
        }
        let x = floats([1, 300], 1);
        let log = registry::find("Log1p").expect("a built-in record");
        let log = Expr::of(log, &Attrs::new(), &[DType::F32], DType::F32).expect("a formula");
        let mut expr = log.clone();
        let longest = || access(x.shape(), x.shape());
        while let next = log.substitute(&[Replacement::Expr(&expr)])
            && compile_for::<M, N>(&next, &[DType::F32], &[longest()]).is_some()
        {
            expr = next;
        }
        assert!(expr.nodes().len() > 200);
        let kernel = compile_for::<M, N>(&expr, &[DType::F32], &[longest()]).expect("a kernel");
        let mut out = vec![0; x.bytes().len()];
        let threads = Threads::single();
        let (operands, target) = ([Operand::Tensor(&x)], [Target::Plain(&mut out)]);
        let mut io = Io::new(operands, target, &threads, usize::MAX);
        kernel.run(&mut io).expect("a result");
    }
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let run = small.spawn(|| {
        for_each_machine!(chain);
    });
    run.expect("a thread").join().expect("a stack that is large enough");
}

//! Epilogues that are linear steps and bounds on the result of an anchor: see
//! [`linear`](crate::cpu::gemm::linear).

use super::operand::{self, RegionOperand};
use crate::{
    cpu::gemm::linear::{LinearEpilogue, LinearSteps},
    elementwise::lines::Along,
};
use ferroflow_ir::{
    Expr, Prim,
    expr::{ExprId, ExprKind},
};
use std::borrow::Cow;

/// The other operand of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum StepOperand {
    /// An operand, flushed or not, and negated or not.
    Input {
        index: usize,
        flushed: bool,
        negated: bool,
    },
    Number(f32),
}

/// Effect of an op on its argument.
#[derive(Debug, Clone, Copy)]
enum Link {
    Flush,
    Times(StepOperand),
    Plus(StepOperand),
    AtLeast(f32),
    AtMost(f32),
}

/// Steps whose operands are not at hand yet, in their order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LinearPlan {
    flushes: bool,
    bias: Option<StepOperand>,
    factor: Option<StepOperand>,
    shift: Option<StepOperand>,
    residual: Option<usize>,
    /// Whether the residual is added before everything else, and not at last.
    adds_first: bool,
    bounds: Option<(f32, f32)>,
}

impl LinearPlan {
    /// An expression as steps from its input 0 on; `None` where it is something else. Operands are
    /// the other inputs, beside rows of `cols` elements.
    pub(super) fn of(expr: &Expr, operands: &[RegionOperand], cols: usize) -> Option<LinearPlan> {
        let (mut links, mut at) = (Vec::new(), expr.root());
        loop {
            let (link, next) = match &expr.nodes()[at.index()].kind {
                ExprKind::Input(0) => break,
                ExprKind::Apply(prim, args) => link(expr, *prim, args, operands, cols)?,
                ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => return None,
            };
            links.push(link);
            at = next;
        }
        let mut plan = LinearPlan::default();
        // In the other direction, from the result to what is done first.
        let mut links = links.into_iter().peekable();
        plan.flushes = links.next_if(|link| matches!(link, Link::Flush)).is_some();
        let high = match links.peek() {
            Some(&Link::AtMost(high)) => Some(high),
            _ => None,
        };
        links.next_if(|_| high.is_some());
        let low = match links.peek() {
            Some(&Link::AtLeast(low)) => Some(low),
            _ => None,
        };
        links.next_if(|_| low.is_some());
        if low.is_some() || high.is_some() {
            plan.bounds = Some((low.unwrap_or(f32::NEG_INFINITY), high.unwrap_or(f32::INFINITY)));
        }
        let is_residual = |operand: &StepOperand| match *operand {
            StepOperand::Input { index, .. } => is_elements(&operands[index], cols),
            StepOperand::Number(_) => false,
        };
        let rest: Vec<Link> = links.collect();
        let mut rest = &rest[..];
        if let [Link::Plus(operand), before @ ..] = rest
            && is_residual(operand)
        {
            (plan.residual, rest) = (Some(residual(operand)?), before);
        }
        if let [Link::Plus(operand), before @ ..] = rest {
            (plan.shift, rest) = (Some(*operand), before);
        }
        if let [Link::Times(operand), before @ ..] = rest {
            (plan.factor, rest) = (Some(*operand), before);
        }
        if let [Link::Plus(operand), before @ ..] = rest
            && !is_residual(operand)
        {
            (plan.bias, rest) = (Some(*operand), before);
        }
        if let [Link::Plus(operand), before @ ..] = rest
            && is_residual(operand)
            && plan.residual.is_none()
        {
            (plan.residual, plan.adds_first, rest) = (Some(residual(operand)?), true, before);
        }
        // Arithmetic flushes what goes in as well as what comes out.
        if plan.flushes {
            let [Link::Flush] = rest else { return None };
            rest = &[];
        }
        let columns = [plan.bias, plan.factor, plan.shift];
        let fits = rest.is_empty() && !columns.iter().flatten().any(is_residual);
        fits.then_some(plan)
    }

    /// The steps on `len` results whose operands have these bytes.
    pub(super) fn on<'a>(
        &self,
        operands: &[RegionOperand],
        bytes: &[&'a [u8]],
        cols: usize,
        len: usize,
    ) -> LinearEpilogue<'a> {
        let columns = |operand: Option<StepOperand>| match operand? {
            StepOperand::Number(number) => Some(Cow::Owned(vec![number; cols])),
            StepOperand::Input { index, flushed, negated } => {
                let row: &[f32] = bytemuck::cast_slice(operands[index].row(bytes[index], 0, 0));
                let mut row = if flushed { operand::flushed(row) } else { row.into() };
                if negated {
                    row.to_mut().iter_mut().for_each(|x| *x = -*x);
                }
                Some(match operands[index].along {
                    Along::Single => vec![row[0]; cols].into(),
                    Along::Elements | Along::Accumulator => row,
                })
            }
        };
        let steps = LinearSteps {
            flushes: self.flushes,
            bias: columns(self.bias),
            factor: columns(self.factor),
            shift: columns(self.shift),
            residual: self.residual.map(|index| bytemuck::cast_slice(bytes[index])),
            adds_first: self.adds_first,
            bounds: self.bounds,
        };
        LinearEpilogue::new(steps, cols, len)
    }
}

/// The input that is added to each result, unless it is subtracted.
fn residual(operand: &StepOperand) -> Option<usize> {
    match *operand {
        StepOperand::Input { index, negated: false, .. } => Some(index),
        StepOperand::Input { .. } | StepOperand::Number(_) => None,
    }
}

/// Whether an operand has an element for each result, and not the same ones for all rows.
fn is_elements(operand: &RegionOperand, cols: usize) -> bool {
    operand.is_whole(cols) && !operand.is_same_for_all()
}

/// Effect of an op on its argument, and that argument.
fn link(
    expr: &Expr,
    prim: Prim,
    args: &[ExprId],
    operands: &[RegionOperand],
    cols: usize,
) -> Option<(Link, ExprId)> {
    let operand = |id: ExprId| operand(expr, id, operands, cols);
    let number = |id: ExprId| match &expr.nodes()[id.index()].kind {
        ExprKind::Const(constant) => Some(constant.to_f64() as f32).filter(|x| !x.is_nan()),
        _ => None,
    };
    match (prim, args) {
        (Prim::Flush, &[x]) => Some((Link::Flush, x)),
        (Prim::Mul, &[x, y]) => {
            operand(y).map(|y| (Link::Times(y), x)).or_else(|| Some((Link::Times(operand(x)?), y)))
        }
        (Prim::Add, &[x, y]) => {
            operand(y).map(|y| (Link::Plus(y), x)).or_else(|| Some((Link::Plus(operand(x)?), y)))
        }
        (Prim::Sub, &[x, y]) => Some((Link::Plus(negated(operand(y)?)?), x)),
        (Prim::Max, &[x, low]) => Some((Link::AtLeast(number(low)?), x)),
        (Prim::Min, &[x, high]) => Some((Link::AtMost(number(high)?), x)),
        _ => None,
    }
}

/// The operand that a value is: a number, or an input that is the same for all rows, or flushed
/// with an element for each result.
fn operand(
    expr: &Expr,
    id: ExprId,
    operands: &[RegionOperand],
    cols: usize,
) -> Option<StepOperand> {
    let (id, flushed) = match &expr.nodes()[id.index()].kind {
        ExprKind::Apply(Prim::Flush, args) => (args[0], true),
        _ => (id, false),
    };
    match &expr.nodes()[id.index()].kind {
        ExprKind::Const(constant) if !flushed => {
            Some(StepOperand::Number(constant.to_f64() as f32))
        }
        ExprKind::Input(input) => {
            let index = input.checked_sub(1)?;
            let operand = &operands[index];
            let row = matches!(operand.along, Along::Single | Along::Elements);
            let serves = (row && operand.is_same_for_all()) || (flushed && operand.is_whole(cols));
            let serves = serves && operand.width == size_of::<f32>();
            serves.then_some(StepOperand::Input { index, flushed, negated: false })
        }
        _ => None,
    }
}

/// Operand whose sum subtracts another.
fn negated(operand: StepOperand) -> Option<StepOperand> {
    match operand {
        StepOperand::Number(number) => Some(StepOperand::Number(-number)),
        StepOperand::Input { index, flushed, .. } => {
            Some(StepOperand::Input { index, flushed, negated: true })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        super::{conv, depthwise, matmul},
        Anchored,
        epilogue::ExprEpilogue,
    };
    use super::*;
    use crate::{
        OperandSpec, Threads,
        device::OpCall,
        kernel::{Io, Operand as Argument, Target},
    };
    use ferroflow_ir::{
        AttrValue, Attrs, DType, HostTensor, Shape,
        build::infer_attrs,
        expr::{Scalar, Scalars},
        registry,
    };
    use std::num::NonZeroUsize;

    /// Numbers of all kinds, few of which are special.
    fn floats(dims: &[usize], seed: usize) -> HostTensor {
        let special = [0.0, -0.0, 1e-40, -1e-39, f32::INFINITY, f32::NAN, 1e-20, -1e-20];
        let shape = Shape::new(dims.iter().copied()).unwrap();
        let number = |at: usize| match at % 61 {
            0 => special[at / 61 % special.len()],
            _ => ((at * 7919) % 1009) as f32 / 64.0 - 7.0,
        };
        let numbers: Vec<f32> = (seed..seed + shape.num_elements()).map(number).collect();
        HostTensor::from_slice(shape, &numbers).unwrap()
    }

    type Formula = for<'s> fn(&'s Scalars) -> Scalar<'s>;

    /// Formulas of a result, a row or a single element, and something of the result's size.
    const FORMULAS: [Formula; 9] = [
        |s| (s.x(0) * s.x(1) + s.x(1)).max(0.0).min(6.0),
        |s| (s.x(0) + s.x(1) + s.x(2)).max(0.0),
        |s| ((s.x(0) - s.x(1)) * s.x(1)).min(3.0),
        |s| s.x(0) * 0.5 + 3.0,
        |s| s.x(0).max(0.0),
        |s| s.x(2) + ((s.x(0) + s.x(1)) * 2.0 - s.x(1)),
        |s| s.x(2) + s.x(0) + s.x(1),
        |s| (s.x(0) + s.x(2)).max(0.0),
        |s| (s.x(0) + s.x(2) + s.x(1)) * 0.5 - s.x(1),
    ];

    /// An op, its attributes, the shapes of its operands and of its result, and its kernel.
    type Case = (&'static str, Attrs, Vec<usize>, Vec<usize>, Vec<usize>, Anchored);

    fn cases() -> Vec<Case> {
        let image = |stride: i64, padding: &str| {
            Attrs::new()
                .with("strides", AttrValue::from(vec![1, stride, stride, 1]))
                .with("padding", padding)
        };
        let matmul_case = |m: usize, k: usize, n: usize| -> Case {
            let (a, b, out) = (vec![m, k], vec![k, n], vec![m, n]);
            ("MatMul", Attrs::new(), a, b, out, matmul::with_epilogue)
        };
        vec![
            matmul_case(7, 5, 17),
            matmul_case(1, 40, 300),
            matmul_case(300, 260, 130),
            matmul_case(90, 700, 24),
            matmul_case(20, 40, 1000),
            (
                "BatchMatMulV2",
                Attrs::new(),
                vec![3, 9, 20],
                vec![3, 20, 40],
                vec![3, 9, 40],
                matmul::with_epilogue,
            ),
            (
                "Conv2D",
                image(1, "SAME"),
                vec![2, 9, 9, 20],
                vec![3, 3, 20, 40],
                vec![2, 9, 9, 40],
                conv::with_epilogue,
            ),
            (
                "Conv2D",
                image(2, "VALID"),
                vec![2, 53, 41, 3],
                vec![3, 3, 3, 20],
                vec![2, 26, 20, 20],
                conv::with_epilogue,
            ),
            (
                "Conv2D",
                image(1, "SAME"),
                vec![1, 8, 8, 6],
                vec![3, 3, 3, 34],
                vec![1, 8, 8, 34],
                conv::with_epilogue,
            ),
            (
                "Conv2D",
                image(1, "VALID"),
                vec![2, 9, 9, 20],
                vec![1, 1, 20, 40],
                vec![2, 9, 9, 40],
                conv::with_epilogue,
            ),
            (
                "DepthwiseConv2dNative",
                image(1, "SAME"),
                vec![2, 9, 11, 21],
                vec![3, 3, 21, 1],
                vec![2, 9, 11, 21],
                depthwise::with_epilogue,
            ),
        ]
    }

    /// Bits, where all that is not a number is one.
    fn bits(floats: &[f32]) -> Vec<u32> {
        floats.iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
    }

    #[test]
    fn linear_steps_on_tiles_have_the_bits_of_programs_on_blocks() {
        for (name, attrs, a, b, out, build) in cases() {
            let op = registry::find(name).unwrap();
            let attrs = infer_attrs(op, attrs, &[DType::F32; 2]);
            let attrs = op.complete_attrs(attrs).unwrap();
            let (a, b, whole) = (floats(&a, 1), floats(&b, 700), floats(&out, 77));
            let space = whole.shape().clone();
            let cols = *out.last().unwrap();
            for (row, width) in [(floats(&[cols], 59), "a row"), (floats(&[1], 3), "one")] {
                for (index, &formula) in FORMULAS.iter().enumerate() {
                    let spec = |x: &HostTensor| OperandSpec::new(x.dtype(), x.shape().clone());
                    let own = [spec(&a), spec(&b)];
                    let call = OpCall::new(op, &attrs, &own, None).unwrap();
                    let expr =
                        Expr::build(&Attrs::new(), &[DType::F32; 3], DType::F32, formula).unwrap();
                    let extras = [spec(&row), spec(&whole)];
                    let what = format!("{name} {space:?}, formula {index} with {width}");
                    let run = |by_steps: bool| {
                        let epilogue = ExprEpilogue::new(&expr, &space, 1, &extras)?;
                        if space.num_elements() == cols && !epilogue.is_linear() {
                            return None; // Of a single row, a residual counts as one more shift.
                        }
                        assert!(epilogue.is_linear(), "{what}");
                        let epilogue = if by_steps { epilogue } else { epilogue.without_steps() };
                        let kernel = build(&call, epilogue).unwrap().unwrap();
                        let threads = Threads::new(NonZeroUsize::new(2).unwrap());
                        let mut out = HostTensor::recycled(DType::F32, space.clone()).unwrap();
                        let inputs = [&a, &b, &row, &whole].map(Argument::Tensor);
                        let target = [Target::Plain(out.bytes_mut())];
                        kernel.run(&mut Io::new(inputs, target, &threads, usize::MAX)).unwrap();
                        Some(bits(out.as_slice().unwrap()))
                    };
                    assert!(run(true) == run(false), "{what}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_linear_is_none() {
        let space = Shape::new([4, 8]).unwrap();
        let shapes = [Shape::new([8]).unwrap(), Shape::new([4, 1]).unwrap()];
        let operands = shapes.map(|shape| RegionOperand::new(&shape, &space, 1, 4).unwrap());
        let plan = |formula: Formula| {
            let expr = Expr::build(&Attrs::new(), &[DType::F32; 3], DType::F32, formula).unwrap();
            LinearPlan::of(&expr, &operands, 8)
        };
        assert!(plan(|s| s.x(0) + s.x(1)).is_some());
        for formula in [
            (|s| s.x(0) + s.x(2)) as Formula,
            |s| s.x(0) * s.x(0),
            |s| s.x(0).tanh(),
            |s| s.x(1) - s.x(0),
            |s| s.x(0).max(0.0) * s.x(1),
            |s| s.x(0) * s.x(0).max(0.0),
            |s| s.x(1) + s.x(1),
            |s| (s.x(0) + s.x(2)) * s.x(1) + s.x(2),
        ] {
            assert!(plan(formula).is_none());
        }
        let relu6 = plan(|s| s.x(0).max(0.0).min(6.0)).unwrap();
        assert_eq!(relu6.bounds, Some((0.0, 6.0)));
    }
}

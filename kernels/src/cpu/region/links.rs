//! Epilogues that are chains of steps on the result of an anchor: see
//! [`registers`](crate::cpu::gemm::registers).

use super::operand::Operand;
use crate::{
    cpu::gemm::registers::{RegisterEpilogue, RegisterStep, StepOperand},
    elementwise::lines::Along,
};
use ferroflow_ir::{
    Expr, Prim,
    expr::{ExprId, ExprKind},
};

/// The most steps that are worth doing in registers.
const MOST_LINKS: usize = 8;

/// A step, before its operands are at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Link {
    Flush,
    Times(LinkOperand),
    Plus(LinkOperand),
    AtLeast(f32),
    AtMost(f32),
    Between(f32, f32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LinkOperand {
    /// One of the operands, flushed or not, and negated or not.
    Input {
        index: usize,
        flushed: bool,
        negated: bool,
    },
    Number(f32),
}

/// A chain of steps.
#[derive(Debug)]
pub(super) struct Chain(Vec<Link>);

impl Chain {
    /// An expression as a chain from its input 0 on; `None` where it is not one. Operands are the
    /// other inputs, beside rows of `cols` elements.
    pub(super) fn of(expr: &Expr, operands: &[Operand], cols: usize) -> Option<Chain> {
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
        links.reverse();
        links.dedup_by(|later, earlier| match (*earlier, *later) {
            (Link::AtLeast(low), Link::AtMost(high)) => {
                *earlier = Link::Between(low, high);
                true
            }
            _ => false,
        });
        (links.len() <= MOST_LINKS).then_some(Chain(links))
    }

    /// The steps on results whose operands have these bytes.
    pub(super) fn on<'a>(
        &self,
        operands: &[Operand],
        bytes: &[&'a [u8]],
        cols: usize,
        len: usize,
    ) -> RegisterEpilogue<'a> {
        let of = |operand: LinkOperand| match operand {
            LinkOperand::Number(number) => StepOperand::Columns(vec![number; cols]),
            LinkOperand::Input { index, .. } if is_elements(&operands[index], cols) => {
                StepOperand::Elements(bytemuck::cast_slice(bytes[index]))
            }
            LinkOperand::Input { index, flushed, negated } => {
                let row: &[f32] = bytemuck::cast_slice(operands[index].row(bytes[index], 0, 0));
                let value = |&x: &f32| {
                    let x = if flushed && x.is_subnormal() { 0f32.copysign(x) } else { x };
                    if negated { -x } else { x }
                };
                StepOperand::Columns(row.iter().map(value).cycle().take(cols).collect())
            }
        };
        let steps = self.0.iter().map(|link| match *link {
            Link::Flush => RegisterStep::Flush,
            Link::Times(operand) => RegisterStep::Times(of(operand)),
            Link::Plus(operand) => RegisterStep::Plus(of(operand)),
            Link::AtLeast(low) => RegisterStep::AtLeast(low),
            Link::AtMost(high) => RegisterStep::AtMost(high),
            Link::Between(low, high) => RegisterStep::Between(low, high),
        });
        RegisterEpilogue::new(steps.collect(), cols, len)
    }
}

/// Whether an operand has an element for each result, and not the same ones for all rows.
fn is_elements(operand: &Operand, cols: usize) -> bool {
    operand.is_whole(cols) && !operand.is_same_for_all()
}

/// What an op does to its argument in a chain, and that argument.
fn link(
    expr: &Expr,
    prim: Prim,
    args: &[ExprId],
    operands: &[Operand],
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

/// The operand that a value is: a number, or an input that is the same for all rows, or flushed with an
/// element for each result.
fn operand(expr: &Expr, id: ExprId, operands: &[Operand], cols: usize) -> Option<LinkOperand> {
    let (id, flushed) = match &expr.nodes()[id.index()].kind {
        ExprKind::Apply(Prim::Flush, args) => (args[0], true),
        _ => (id, false),
    };
    match &expr.nodes()[id.index()].kind {
        ExprKind::Const(constant) if !flushed => {
            Some(LinkOperand::Number(constant.to_f64() as f32))
        }
        ExprKind::Input(input) => {
            let index = input.checked_sub(1)?;
            let operand = &operands[index];
            let row = matches!(operand.along, Along::Single | Along::Elements);
            let serves = (row && operand.is_same_for_all()) || (flushed && operand.is_whole(cols));
            let serves = serves && operand.width == size_of::<f32>();
            serves.then_some(LinkOperand::Input { index, flushed, negated: false })
        }
        _ => None,
    }
}

/// What is added to subtract an operand.
fn negated(operand: LinkOperand) -> Option<LinkOperand> {
    match operand {
        LinkOperand::Number(number) => Some(LinkOperand::Number(-number)),
        LinkOperand::Input { index, flushed, .. } => {
            Some(LinkOperand::Input { index, flushed, negated: true })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        super::{conv, depthwise, matmul},
        Anchored,
        epilogue::Epilogue,
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
    const CHAINS: [Formula; 6] = [
        |s| (s.x(0) * s.x(1) + s.x(1)).max(0.0).min(6.0),
        |s| (s.x(0) + s.x(1) + s.x(2)).max(0.0),
        |s| (s.x(2) * (s.x(0) - s.x(1))).min(3.0),
        |s| s.x(0) * 0.5 + 3.0,
        |s| s.x(0).max(0.0),
        |s| (s.x(1) + s.x(0)).max(-1.0).min(1.0) * 2.0,
    ];

    /// An op, its attributes, the shapes of its operands and of its result, and its kernel.
    type Case = (&'static str, Attrs, Vec<usize>, Vec<usize>, Vec<usize>, Anchored);

    fn cases() -> Vec<Case> {
        let image = |stride: i64, padding: &str| {
            Attrs::new()
                .with("strides", AttrValue::from(vec![1, stride, stride, 1]))
                .with("padding", padding)
        };
        let product = |m: usize, k: usize, n: usize| -> Case {
            let (a, b, out) = (vec![m, k], vec![k, n], vec![m, n]);
            ("MatMul", Attrs::new(), a, b, out, matmul::with_epilogue)
        };
        vec![
            product(7, 5, 17),
            product(300, 260, 130),
            product(90, 700, 24),
            product(20, 40, 1000),
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
    fn chains_in_registers_give_the_bits_of_blocks_in_memory() {
        for (name, attrs, a, b, out, build) in cases() {
            let op = registry::find(name).unwrap();
            let attrs = infer_attrs(op, attrs, &[DType::F32; 2]);
            let attrs = op.complete_attrs(attrs).unwrap();
            let (a, b, whole) = (floats(&a, 1), floats(&b, 700), floats(&out, 77));
            let space = whole.shape().clone();
            let cols = *out.last().unwrap();
            for (row, width) in [(floats(&[cols], 59), "a row"), (floats(&[1], 3), "one")] {
                for (index, &formula) in CHAINS.iter().enumerate() {
                    let spec = |x: &HostTensor| OperandSpec::new(x.dtype(), x.shape().clone());
                    let own = [spec(&a), spec(&b)];
                    let call = OpCall::new(op, &attrs, &own, None).unwrap();
                    let expr =
                        Expr::build(&Attrs::new(), &[DType::F32; 3], DType::F32, formula).unwrap();
                    let extras = [spec(&row), spec(&whole)];
                    let what = format!("{name} {space:?}, formula {index} with {width}");
                    let run = |in_registers: bool| {
                        let epilogue = Epilogue::new(&expr, &space, 1, &extras)?;
                        assert!(epilogue.is_chain(), "{what}");
                        let epilogue = if in_registers { epilogue } else { epilogue.unchained() };
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
    fn what_is_no_chain_is_none() {
        let space = Shape::new([4, 8]).unwrap();
        let shapes = [Shape::new([8]).unwrap(), Shape::new([4, 1]).unwrap()];
        let operands = shapes.map(|shape| Operand::new(&shape, &space, 1, 4).unwrap());
        let chain = |formula: Formula| {
            let expr = Expr::build(&Attrs::new(), &[DType::F32; 3], DType::F32, formula).unwrap();
            Chain::of(&expr, &operands, 8)
        };
        assert!(chain(|s| s.x(0) + s.x(1)).is_some());
        for formula in [
            (|s| s.x(0) + s.x(2)) as Formula,
            |s| s.x(0) * s.x(0),
            |s| s.x(0).tanh(),
            |s| s.x(1) - s.x(0),
            |s| s.x(0) * s.x(0).max(0.0),
            |s| s.x(1) + s.x(1),
        ] {
            assert!(chain(formula).is_none());
        }
        let joined = chain(|s| s.x(0).max(0.0).min(6.0)).unwrap();
        assert!(joined.0.contains(&Link::Between(0.0, 6.0)), "{joined:?}");
    }
}

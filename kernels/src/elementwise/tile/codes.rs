//! Codes of the operations of primitives.

use super::machine::{Code, TileStep};
use ferroflow_ir::{DType, Prim, expr::Constant};

/// The operation that ends a program with a result of this dtype.
pub(super) fn store_code(dtype: DType) -> Option<Code> {
    Some(match dtype {
        DType::F32 => Code::StoreF32,
        DType::F16 => Code::StoreF16,
        DType::BF16 => Code::StoreBf16,
        DType::Bool => Code::StoreBool,
        _ => return None,
    })
}

/// The operation of a primitive of one argument.
pub(super) fn unary_code(prim: Prim, dtype: DType) -> Option<Code> {
    if dtype == DType::Bool {
        return (prim == Prim::Not).then_some(Code::Not);
    }
    Some(match prim {
        Prim::Neg => Code::Neg,
        Prim::Abs => Code::Abs,
        Prim::Sign => Code::Sign,
        Prim::Flush => Code::Flush,
        Prim::Exp => Code::Exp,
        Prim::Expm1 => Code::Expm1,
        Prim::Log => Code::Log,
        Prim::Log1p => Code::Log1p,
        Prim::Tanh => Code::Tanh,
        Prim::Erf => Code::Erf,
        Prim::Erfc => Code::Erfc,
        Prim::Sin => Code::Sin,
        Prim::Cos => Code::Cos,
        Prim::Sqrt => Code::Sqrt,
        Prim::Rsqrt => Code::Rsqrt,
        Prim::Floor => Code::Floor,
        Prim::Ceil => Code::Ceil,
        Prim::Trunc => Code::Trunc,
        Prim::Rint => Code::Rint,
        Prim::IsNan => Code::IsNan,
        Prim::IsInf => Code::IsInf,
        Prim::IsFinite => Code::IsFinite,
        _ => return None,
    })
}

/// The operation with the first argument at hand, and the one with the second at hand.
pub(super) fn binary_code(prim: Prim, dtype: DType) -> Option<(Code, Option<Code>)> {
    let same = |entry: Code| Some((entry, Some(entry)));
    if dtype == DType::Bool {
        return match prim {
            Prim::And | Prim::Min => same(Code::And),
            Prim::Or | Prim::Max => same(Code::Or),
            Prim::Xor | Prim::Ne => same(Code::Xor),
            _ => None,
        };
    }
    match prim {
        Prim::Add => same(Code::Add),
        Prim::Mul => same(Code::Mul),
        Prim::Eq => same(Code::Eq),
        Prim::Ne => same(Code::Ne),
        // Of two zeros the second is the larger, and the smaller.
        Prim::Max => Some((Code::Max, Some(Code::MaxFrom))),
        Prim::Min => Some((Code::Min, Some(Code::MinFrom))),
        Prim::Sub => Some((Code::Sub, Some(Code::SubFrom))),
        Prim::Div => Some((Code::Div, Some(Code::DivInto))),
        Prim::Lt => Some((Code::Lt, Some(Code::Gt))),
        Prim::Le => Some((Code::Le, Some(Code::Ge))),
        Prim::Gt => Some((Code::Gt, Some(Code::Lt))),
        Prim::Ge => Some((Code::Ge, Some(Code::Le))),
        _ => None,
    }
}

/// The operation that flushes its operand in memory first.
pub(super) fn flushing(code: Code) -> Option<Code> {
    Some(match code {
        Code::Add => Code::AddFlushed,
        Code::Sub => Code::SubFlushed,
        Code::SubFrom => Code::SubFromFlushed,
        Code::Mul => Code::MulFlushed,
        Code::Div => Code::DivFlushed,
        Code::DivInto => Code::DivIntoFlushed,
        _ => return None,
    })
}

/// The one operation that does what two do, one after the other.
pub(super) fn joined(first: Code, second: Code) -> Option<Code> {
    Some(match (first, second) {
        (Code::LoadF32, Code::Flush) => Code::LoadFlushed,
        (Code::Mul, Code::Add) => Code::MulAdd,
        (Code::Sub, Code::Mul) => Code::SubMul,
        (Code::Sub, Code::Square) => Code::SubSquare,
        (Code::MulFlushed, Code::AddFlushed) => Code::MulAddFlushed,
        (Code::Max, Code::Min) => Code::MaxMin,
        (Code::Flush, Code::StoreF32) => Code::StoreFlushed,
        _ => return None,
    })
}

/// The program with a store that passes the caches by; nothing if there is none.
pub(super) fn streaming(steps: &[TileStep]) -> Vec<TileStep> {
    let Some((&TileStep::Own(store, a, b), before)) = steps.split_last() else { return Vec::new() };
    let store = match store {
        Code::StoreF32 => Code::StreamF32,
        Code::StoreFlushed => Code::StreamFlushed,
        _ => return Vec::new(),
    };
    before.iter().copied().chain([TileStep::Own(store, a, b)]).collect()
}

/// The program that folds its result into the memory of the output; `None` where it does not end with a
/// combination with the accumulator, the input at this slot.
pub(super) fn folding(steps: &[TileStep], accumulator: u32) -> Option<Vec<TileStep>> {
    let [before @ .., TileStep::Own(combine, other, _), TileStep::Own(Code::StoreF32, out, _)] =
        steps
    else {
        return None;
    };
    let fold = match combine {
        Code::Add => Code::AddInto,
        Code::Max => Code::MaxInto,
        Code::Min => Code::MinInto,
        _ => return None,
    };
    let steps = before.iter().copied().chain([TileStep::Own(fold, *out, 0)]);
    (*other == accumulator).then(|| steps.collect())
}

/// A constant as what a tile has in each lane.
pub(super) fn constant_bits(constant: Constant, dtype: DType) -> Option<u32> {
    match dtype {
        DType::F32 => Some((constant.to_f64() as f32).to_bits()),
        DType::Bool => Some(if constant.to_f64() != 0.0 { u32::MAX } else { 0 }),
        _ => None,
    }
}

//! A StableHLO module as read: functions of regions of ops, over numbered values.

use bytes::Bytes;
use ferroflow_ir::DType;
use std::{collections::HashMap, sync::Arc};

/// A module: functions by name.
#[derive(Debug, Default)]
pub(super) struct HloModule {
    pub(super) functions: HashMap<Arc<str>, HloFunction>,
    /// The number of values in all functions.
    pub(super) n_values: usize,
}

impl HloModule {
    /// All operations, those of regions among them, in no order.
    pub(super) fn ops(&self) -> impl Iterator<Item = &HloOp> {
        let mut waiting: Vec<&HloRegion> =
            self.functions.values().map(|function| &function.body).collect();
        let mut ops: &[HloOp] = &[];
        std::iter::from_fn(move || {
            while ops.is_empty() {
                ops = &waiting.pop()?.ops;
            }
            let (op, rest) = ops.split_first()?;
            ops = rest;
            waiting.extend(&op.regions);
            Some(op)
        })
    }
}

/// A function.
#[derive(Debug)]
pub(super) struct HloFunction {
    pub(super) body: HloRegion,
    pub(super) results: Vec<Type>,
}

/// A number that no other value of the module has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ValueNumber(pub(super) u32);

/// A block with arguments. The last op returns its results.
#[derive(Debug, Default)]
pub(super) struct HloRegion {
    pub(super) args: Vec<(ValueNumber, Type)>,
    pub(super) ops: Vec<HloOp>,
}

/// An operation.
#[derive(Debug)]
pub(super) struct HloOp {
    /// The name without the version: `add` of `vhlo.add_v1`.
    pub(super) name: Arc<str>,
    pub(super) attrs: Vec<(Arc<str>, Arc<Attr>)>,
    pub(super) operands: Vec<ValueNumber>,
    pub(super) results: Vec<(ValueNumber, Type)>,
    pub(super) regions: Vec<HloRegion>,
}

impl HloOp {
    pub(super) fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(own, _)| **own == *name).map(|(_, attr)| &**attr)
    }
}

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// The order of effects.
    Token,
    /// Several values as one.
    Tuple(Vec<Type>),
    /// The type of a function.
    Function(Vec<Type>, Vec<Type>),
    /// An element on its own, as attributes have.
    Element(HloElement),
    /// A type without a meaning here.
    Other(&'static str),
}

/// The type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TensorType {
    /// The sizes; `None` where only the call tells.
    pub(super) dims: Vec<Option<usize>>,
    pub(super) element: HloElement,
}

/// The type of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HloElement {
    /// A dtype of ours.
    Of(DType),
    /// A type that nothing here computes with.
    Unsupported(&'static str),
}

/// An attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attr {
    Array(Vec<Arc<Attr>>),
    Bool(bool),
    /// A case of one of the dialect's enumerations.
    Case(u64),
    Dict(Vec<(Arc<Attr>, Arc<Attr>)>),
    Float(f64),
    Int(i64),
    String(Bytes),
    Tensor(TensorType, Bytes),
    Type(Type),
    /// An attribute without a meaning here.
    Other,
}

impl Attr {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Attr::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

//! Builder of the expressions of formulas.

use super::{
    ExprId, ExprKind, ExprNode, Scalar, add,
    prim::{Constant, Prim},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Code, Error},
    hash::FastMap,
};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// Builder of the expression of a formula.
#[derive(Debug)]
pub struct Scalars<'a> {
    pub(super) attrs: &'a Attrs,
    pub(super) inputs: &'a [DType],
    pub(super) output: DType,
    pub(super) nodes: RefCell<Vec<ExprNode>>,
    pub(super) known: RefCell<FastMap<ExprNode, ExprId>>,
    pub(super) error: RefCell<Option<Error>>,
    pub(super) fault: Cell<Option<Code>>,
}

impl Scalars<'_> {
    /// Input `position`, in its compute type: 16-bit floats arrive as `f32`.
    pub fn x(&self, position: usize) -> Scalar<'_> {
        let raw = self.raw(position);
        let compute = raw.dtype().compute_type();
        if compute == raw.dtype() { raw } else { raw.cast(compute) }
    }

    /// Input `position` in its own dtype.
    pub fn raw(&self, position: usize) -> Scalar<'_> {
        let dtype = self.inputs[position];
        self.add(ExprKind::Input(position), dtype)
    }

    /// The dtype of input `position`.
    pub fn input_dtype(&self, position: usize) -> DType {
        self.inputs[position]
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The dtype of the output.
    pub fn output_dtype(&self) -> DType {
        self.output
    }

    /// A float constant of a dtype.
    pub fn value(&self, value: f64, dtype: DType) -> Scalar<'_> {
        let constant = if dtype.is_float() || dtype.is_complex() {
            Constant::Float(value)
        } else {
            Constant::Int(value as i128)
        };
        self.add(ExprKind::Const(constant), dtype)
    }

    /// An integer constant of a dtype.
    pub fn int(&self, value: i128, dtype: DType) -> Scalar<'_> {
        let constant = if dtype.is_float() || dtype.is_complex() {
            Constant::Float(value as f64)
        } else {
            Constant::Int(value)
        };
        self.add(ExprKind::Const(constant), dtype)
    }

    /// The float attribute `name`.
    pub fn float(&self, name: &str) -> f64 {
        self.attrs.float(name).map_or_else(|error| self.fail(error, 0.0), f64::from)
    }

    /// The integer attribute `name`.
    pub fn int_attr(&self, name: &str) -> i64 {
        self.attrs.int(name).unwrap_or_else(|error| self.fail(error, 0))
    }

    /// The flag `name`.
    pub fn flag(&self, name: &str) -> bool {
        self.attrs.bool(name).unwrap_or_else(|error| self.fail(error, false))
    }

    /// Sets the status of integer arithmetic that fails.
    pub fn fails_with(&self, code: Code) {
        self.fault.set(Some(code));
    }

    pub(super) fn fail<T>(&self, error: Error, instead: T) -> T {
        self.error.borrow_mut().get_or_insert(error);
        instead
    }

    /// `then` where `condition`, a bool, is true, else `otherwise`.
    pub fn select<'s>(
        &'s self,
        condition: Scalar<'s>,
        then: Scalar<'s>,
        otherwise: Scalar<'s>,
    ) -> Scalar<'s> {
        self.apply(Prim::Select, &[condition, then, otherwise])
    }

    /// The complex number of a real and an imaginary part.
    pub fn complex<'s>(&'s self, real: Scalar<'s>, imag: Scalar<'s>) -> Scalar<'s> {
        self.apply(Prim::Complex, &[real, imag])
    }

    pub(super) fn apply<'s>(&'s self, prim: Prim, args: &[Scalar<'s>]) -> Scalar<'s> {
        debug_assert_eq!(prim.arity(), args.len());
        let dtypes: SmallVec<[DType; 3]> = args.iter().map(|arg| arg.dtype()).collect();
        let flush = |arg: &Scalar<'s>| if arg.is_bare() { arg.flush() } else { *arg };
        let ids = match prim.keeps_bits() {
            true => args.iter().map(|arg| arg.id).collect(),
            false => args.iter().map(|arg| flush(arg).id).collect(),
        };
        self.add(ExprKind::Apply(prim, ids), prim.result(&dtypes))
    }

    pub(super) fn add(&self, kind: ExprKind, dtype: DType) -> Scalar<'_> {
        let (mut nodes, mut known) = (self.nodes.borrow_mut(), self.known.borrow_mut());
        Scalar { scalars: self, id: add(&mut nodes, &mut known, ExprNode { kind, dtype }) }
    }
}

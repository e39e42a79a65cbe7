//! Gradient rules of ops.
//!
//! The gradient of an op is a formula in its record ([`Gradient`]), written against a [`Backprop`]:
//! inputs `x`, results `y`, incoming gradients `dy`. Formulas emit ops, so they are differentiated
//! in turn, and inside a trace they are graph. The chores belong to the one walk that calls them,
//! [`backward`]: which calls matter, adding up what comes from several consumers, summing back
//! what broadcasting has repeated, and errors with the name of the op.
//!
//! - Conventions are TensorFlow's (`tensorflow/python/ops/*_grad.py`): the gradient of a complex
//!   value is the conjugate of the derivative, equal maxima share, `|x|` has gradient 0 at 0.
//! - Shapes may be unknown inside a trace. Helpers of [`Value`] and [`shapes`] give constants where
//!   shapes are known, and otherwise ops that compute them. A rule that cannot do without says so
//!   ([`Backprop::postponed`]), and formulas of composite ops are made for known shapes: their
//!   gradients are calls that are expanded when shapes are known (module `deferred`).
//! - A composite op without a rule is differentiated through its formula.
//! - Rows that were gathered send [`Grad::Slices`] back; they become a dense tensor where another
//!   rule needs one.
//! - `None` means that nothing goes back: to inputs that count or steer, and through ops with
//!   [`Gradient::Zero`]. An op whose rule nobody has written is an error, never a silent zero.

pub(crate) mod array;
mod back;
mod branch;
pub(crate) mod collective;
pub(crate) mod composite;
pub mod control;
pub(crate) mod conv;
mod copy;
#[cfg(test)]
mod coverage;
pub(crate) mod csr;
mod custom;
pub(crate) mod deferred;
pub(crate) mod einsum;
mod extent;
pub(crate) mod factor;
pub mod function;
#[cfg(test)]
mod hostile;
pub(crate) mod indexing;
pub(crate) mod linalg;
pub(crate) mod list;
mod loaded;
pub(crate) mod math;
pub(crate) mod matmul;
pub(crate) mod nn;
pub(crate) mod optional;
pub(crate) mod pool;
pub(crate) mod random;
mod reach;
pub(crate) mod recurrent;
pub(crate) mod reduce;
mod repeat;
pub(crate) mod segment;
pub mod shapes;
pub(crate) mod signal;
mod sketch;
pub(crate) mod sparse;
pub(crate) mod tensor_array;
mod walk;

pub use custom::{LoadedCapture, LoadedGradient};
pub use function::{Differentiated, GradientIndex, Kept, differentiate};
pub use loaded::{FoundGradient, custom_gradient, with_captures};
pub use sketch::Sketch;
pub use walk::{
    Cotangent, CustomGradient, RecordedCall, Refused, Slices, backward, dense, is_differentiable,
};

use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Emitter, Value, calls_with},
    error::Error,
    host_tensor::{Element, HostTensor},
    op::{Formula, OpDef},
};
use smallvec::SmallVec;
use std::cell::Cell;

/// Gradient rule of an op.
#[derive(Debug, Clone, Copy)]
pub enum Gradient {
    /// Through its formula if it is a composite op; otherwise it is not written yet.
    Missing,
    /// Not at all: the op is flat, discrete, or stops gradients on purpose.
    Zero,
    /// As it is, rows as rows: the result is the input.
    Same,
    /// By a formula.
    Rule(GradientRule),
    /// Through another formula of the same op: the gradients of the calls it consists of.
    Through(Formula),
    /// By a formula for inputs that broadcast: the walk sums each gradient to the shape of its
    /// input.
    Broadcast(GradientRule),
}

/// The gradients of the inputs of a call, from those of its results.
pub type GradientRule = for<'e> fn(&Backprop<'e>) -> Grads<'e>;

/// Gradients of the inputs, in order; inputs that are left out get none.
pub type Grads<'e> = Vec<Option<Grad<'e>>>;

/// The gradient of one value.
#[derive(Debug, Clone, Copy)]
pub enum Grad<'e> {
    /// A tensor of the shape of the value.
    Dense(Value<'e>),
    /// Rows for some indices of the first dimension, zero elsewhere. An index may occur many times.
    Slices {
        /// The rows.
        values: Value<'e>,
        /// Their indices, a vector.
        indices: Value<'e>,
    },
}

impl<'e> From<Value<'e>> for Grad<'e> {
    fn from(value: Value<'e>) -> Grad<'e> {
        Grad::Dense(value)
    }
}

/// Dense gradients of the first inputs.
pub fn grads<'e, const N: usize>(values: [Value<'e>; N]) -> Grads<'e> {
    values.into_iter().map(|value| Some(value.into())).collect()
}

/// A dense gradient of one input only.
pub fn only<'e>(index: usize, value: Value<'e>) -> Grads<'e> {
    let mut grads: Grads<'e> = vec![None; index];
    grads.push(Some(value.into()));
    grads
}

/// A call of an op on the way back, as the rule of its record sees it.
#[derive(Debug)]
pub struct Backprop<'e> {
    /// The record.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: &'e Attrs,
    x: SmallVec<[Value<'e>; 4]>,
    y: SmallVec<[Value<'e>; 2]>,
    dy: SmallVec<[Option<Value<'e>>; 2]>,
    needed: &'e [bool],
    emitter: &'e Emitter<'e>,
    walk: u64,
    is_postponed: Cell<bool>,
}

impl<'e> Backprop<'e> {
    /// Input `index`.
    pub fn x(&self, index: usize) -> Value<'e> {
        self.x[index]
    }

    /// All inputs.
    pub fn xs(&self) -> &[Value<'e>] {
        &self.x
    }

    /// Result `index`.
    pub fn y(&self, index: usize) -> Value<'e> {
        self.y[index]
    }

    /// All results.
    pub fn ys(&self) -> &[Value<'e>] {
        &self.y
    }

    /// The gradient of result `index`; zeros if nothing depends on it.
    pub fn dy(&self, index: usize) -> Value<'e> {
        self.dy[index].unwrap_or_else(|| self.y[index].zeros_like())
    }

    /// The gradient of result `index`, if anything depends on it.
    pub fn present_dy(&self, index: usize) -> Option<Value<'e>> {
        self.dy[index]
    }

    /// The number of the walk, which no other has.
    pub fn walk(&self) -> u64 {
        self.walk
    }

    /// Whether the gradient of input `index` is asked for; those of others may be left out.
    pub fn needs(&self, index: usize) -> bool {
        self.needed[index]
    }

    /// `x`, `y` and `dy` of a function of one argument.
    pub fn unary(&self) -> (Value<'e>, Value<'e>, Value<'e>) {
        (self.x(0), self.y(0), self.dy(0))
    }

    /// Both inputs of an operator, and `dy`.
    pub fn binary(&self) -> (Value<'e>, Value<'e>, Value<'e>) {
        (self.x(0), self.x(1), self.dy(0))
    }

    /// The gradients of two inputs, of which each is computed if it is asked for.
    pub fn both(
        &self,
        first: impl FnOnce() -> Value<'e>,
        second: impl FnOnce() -> Value<'e>,
    ) -> Grads<'e> {
        vec![self.needs(0).then(|| first().into()), self.needs(1).then(|| second().into())]
    }

    /// The first result of a call of another op with the attributes of this one that it knows.
    pub fn with_attrs<const N: usize>(&self, name: &str, inputs: [Value<'e>; N]) -> Value<'e> {
        calls_with(name, self.own_attrs(), &inputs).at(0)
    }

    /// The attributes but for those that say dtypes, which follow from inputs again.
    pub fn own_attrs(&self) -> Attrs {
        let is_type = |name: &str| {
            self.op.attr(name).is_some_and(|attr| attr.kind == crate::op::AttrKind::Type)
        };
        let kept = self.attrs.iter().filter(|(name, _)| !is_type(name));
        kept.map(|(name, value)| (name, value.clone())).collect()
    }

    /// A constant vector.
    pub fn vector<T: Element>(&self, elements: &[T]) -> Value<'e> {
        self.emitter.constant(HostTensor::vector(elements))
    }

    /// The integer attribute `name`.
    pub fn int(&self, name: &str) -> i64 {
        self.emitter.note(self.attrs.int(name)).unwrap_or_default()
    }

    /// The float attribute `name`.
    pub fn float(&self, name: &str) -> f64 {
        self.emitter.note(self.attrs.float(name)).map(f64::from).unwrap_or_default()
    }

    /// The flag `name`.
    pub fn flag(&self, name: &str) -> bool {
        self.emitter.note(self.attrs.bool(name)).unwrap_or_default()
    }

    /// The string attribute `name`.
    pub fn string(&self, name: &str) -> &str {
        self.emitter.note(self.attrs.string(name)).unwrap_or_default()
    }

    /// The list of integers `name`.
    pub fn int_list(&self, name: &str) -> Vec<i64> {
        self.emitter.note(self.attrs.ints(name).map(<[i64]>::to_vec)).unwrap_or_default()
    }

    /// The dtype attribute `name`.
    pub fn dtype(&self, name: &str) -> DType {
        self.emitter.note(self.attrs.dtype(name)).unwrap_or(DType::F32)
    }

    /// Fails unless more is known of shapes: the walk asks again when they are known.
    pub fn postponed(&self, what: &'static str) -> Grads<'e> {
        self.is_postponed.set(true);
        self.unsupported(what)
    }

    /// Fails: the gradient exists, but not for such a call.
    pub fn unsupported(&self, what: &'static str) -> Grads<'e> {
        let op = self.op.name.into();
        grads([self.emitter.fail(Error::Unsupported { op, what: what.into() })])
    }
}

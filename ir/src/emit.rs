//! How formulas become ops.
//!
//! A composite op is a formula over other ops. The formula runs against an [`Emit`]: one that adds
//! nodes to a graph, or one that executes. It returns no `Result`: the first error sticks to the
//! emitter and comes back from [`expand`].

use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    error::{Error, Result},
    host_tensor::{Element, HostTensor},
    infer::{Input, infer},
    op::{Lowering, OpDef},
    registry,
    shape::Shape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{cell::RefCell, fmt, ops};

/// A value inside an emitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueId(pub u32);

/// Something that takes ops one by one: a graph under construction, or an executor.
pub trait Emit {
    /// Adds a call of `op`; `attrs` may leave out defaults.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the call.
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>>;

    /// Adds a constant.
    ///
    /// # Errors
    ///
    /// When there is no room for it.
    fn constant(&mut self, tensor: HostTensor) -> Result<ValueId>;

    /// The type of a value.
    fn ty(&self, id: ValueId) -> ValueType;

    /// The value itself, where it is known.
    fn value(&self, id: ValueId) -> Option<HostTensor>;
}

/// Expands a call of a composite op into calls on `emit`; gives its results.
///
/// # Errors
///
/// Whatever was wrong with the first call that failed.
pub fn expand(
    emit: &mut dyn Emit,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueId],
) -> Result<Vec<ValueId>> {
    let Lowering::Composite(rule) = op.lowering else {
        let what = "it is not a formula over other ops".into();
        return Err(Error::Unsupported { op: op.name.into(), what });
    };
    let emitter = Emitter { emit: RefCell::new(emit), error: RefCell::new(None) };
    let inputs = inputs.iter().map(|&id| Value { emitter: &emitter, id: Some(id) }).collect();
    let results = rule(&Composite { op, attrs, inputs, emitter: &emitter });
    let ids: Option<Vec<ValueId>> = results.iter().map(|value| value.id).collect();
    let error = emitter.error.borrow_mut().take();
    match (error, ids) {
        (Some(error), _) => Err(error),
        (None, Some(ids)) => Ok(ids),
        (None, None) => unreachable!("a value without an id comes with an error"),
    }
}

/// Where formulas put their ops, and where their first error waits.
pub struct Emitter<'a> {
    emit: RefCell<&'a mut dyn Emit>,
    error: RefCell<Option<Error>>,
}

impl fmt::Debug for Emitter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<'a> Emitter<'a> {
    fn note<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.error.borrow_mut().get_or_insert(error).clone()).ok()
    }

    /// A call of the op `name`; its results are invalid if anything is wrong.
    fn call(
        &self,
        name: &str,
        attrs: Attrs,
        inputs: &[Value<'_>],
    ) -> SmallVec<[Option<ValueId>; 2]> {
        let result = registry::find(name)
            .ok_or_else(|| Error::NotFound { kind: "op", name: name.into() })
            .and_then(|op| {
                let ids: Option<SmallVec<[ValueId; 4]>> = inputs.iter().map(|x| x.id).collect();
                match ids {
                    Some(ids) => self.emit.borrow_mut().emit(op, attrs, &ids),
                    None => Ok(SmallVec::new()), // An earlier error is waiting already.
                }
            });
        self.note(result).into_iter().flatten().map(Some).collect()
    }
}

/// A call of a composite op, as its formula sees it.
///
/// Shapes are known, and so are the values of inputs declared `host`.
#[derive(Debug)]
pub struct Composite<'e> {
    /// The record.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: &'e Attrs,
    inputs: Vec<Value<'e>>,
    emitter: &'e Emitter<'e>,
}

impl<'e> Composite<'e> {
    /// Input `index`.
    pub fn x(&self, index: usize) -> Value<'e> {
        self.inputs[index]
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// All inputs.
    pub fn inputs(&self) -> &[Value<'e>] {
        &self.inputs
    }

    /// The dtype of input `index`.
    pub fn dtype(&self, index: usize) -> DType {
        self.x(index).dtype()
    }

    /// The elements of integer input `index`; none if its value is not known.
    pub fn ints(&self, index: usize) -> Vec<i64> {
        let x = self.x(index);
        let known = x.known().ok_or_else(|| {
            Error::argument(self.op.name, format!("input {index}"), "known", "an unknown value")
        });
        self.emitter.note(known.and_then(|value| value.to_i64s())).unwrap_or_default()
    }

    /// The integer attribute `name`.
    pub fn int(&self, name: &str) -> i64 {
        self.emitter.note(self.attrs.int(name)).unwrap_or_default()
    }

    /// The float attribute `name`.
    pub fn float(&self, name: &str) -> f32 {
        self.emitter.note(self.attrs.float(name)).unwrap_or_default()
    }

    /// The flag `name`.
    pub fn flag(&self, name: &str) -> bool {
        self.emitter.note(self.attrs.bool(name)).unwrap_or_default()
    }

    /// The string attribute `name`.
    pub fn string(&self, name: &str) -> &str {
        self.emitter.note(self.attrs.string(name)).unwrap_or_default()
    }

    /// The dtype attribute `name`.
    pub fn dtype_attr(&self, name: &str) -> DType {
        self.emitter.note(self.attrs.dtype(name)).unwrap_or(DType::F32)
    }

    /// A constant vector.
    pub fn vector<T: Element>(&self, elements: &[T]) -> Value<'e> {
        self.constant(HostTensor::vector(elements))
    }

    /// A constant scalar.
    pub fn scalar<T: Element>(&self, value: T) -> Value<'e> {
        self.constant(Ok(HostTensor::scalar(value)))
    }

    /// A constant.
    pub fn constant(&self, tensor: Result<HostTensor>) -> Value<'e> {
        let id = tensor.and_then(|tensor| self.emitter.emit.borrow_mut().constant(tensor));
        Value { emitter: self.emitter, id: self.emitter.note(id) }
    }

    /// Fails with an error of the formula's own.
    pub fn fail(&self, error: Error) -> Value<'e> {
        self.emitter.note::<()>(Err(error));
        Value { emitter: self.emitter, id: None }
    }

    /// The results of a call of the op `name`.
    pub fn call(&self, name: &str, attrs: Attrs, inputs: &[Value<'e>]) -> Vec<Value<'e>> {
        let ids = self.emitter.call(name, attrs, inputs);
        ids.into_iter().map(|id| Value { emitter: self.emitter, id }).collect()
    }

    /// The first result of a call of the op `name`.
    pub fn call1(&self, name: &str, attrs: Attrs, inputs: &[Value<'e>]) -> Value<'e> {
        let id = self.emitter.call(name, attrs, inputs).first().copied().flatten();
        Value { emitter: self.emitter, id }
    }
}

/// A value in a formula. Arithmetic emits ops.
#[derive(Debug, Clone, Copy)]
pub struct Value<'e> {
    emitter: &'e Emitter<'e>,
    id: Option<ValueId>,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:literal;)*) => {
        $($(#[$doc])* #[must_use]
        #[allow(clippy::should_implement_trait, reason = "methods chain as in formulas")]
        pub fn $name(self) -> Value<'e> {
            self.apply($op, Attrs::new(), &[self])
        })*
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:literal;)*) => {
        $($(#[$doc])* #[must_use]
        #[allow(clippy::should_implement_trait, reason = "methods chain as in formulas")]
        pub fn $name(self, rhs: impl IntoValue<'e>) -> Value<'e> {
            self.apply($op, Attrs::new(), &[self, rhs.into_value(self)])
        })*
    };
}

impl<'e> Value<'e> {
    /// The type.
    pub fn ty(self) -> ValueType {
        match self.id {
            Some(id) => self.emitter.emit.borrow().ty(id),
            None => ValueType::new(DType::F32, Shape::scalar()),
        }
    }

    /// The dtype.
    pub fn dtype(self) -> DType {
        self.ty().dtype
    }

    /// The shape; that of a scalar, with an error noted, where it is not known.
    pub fn shape(self) -> Shape {
        let shape = self.ty().shape;
        let known = shape
            .known()
            .ok_or_else(|| Error::argument("formula", "a value", "of known shape", &shape));
        self.emitter.note(known).unwrap_or_default()
    }

    /// The value itself, where it is known.
    pub fn known(self) -> Option<HostTensor> {
        self.id.and_then(|id| self.emitter.emit.borrow().value(id))
    }

    /// The first result of a call of the op `name` in which attribute `T` follows from `self`.
    fn apply(self, name: &str, attrs: Attrs, inputs: &[Value<'e>]) -> Value<'e> {
        let attrs = attrs.with("T", self.dtype());
        let id = self.emitter.call(name, attrs, inputs).first().copied().flatten();
        Value { emitter: self.emitter, id }
    }

    fn int_vector(self, elements: &[i64]) -> Value<'e> {
        let id = HostTensor::vector(elements)
            .and_then(|tensor| self.emitter.emit.borrow_mut().constant(tensor));
        Value { emitter: self.emitter, id: self.emitter.note(id) }
    }

    /// A scalar constant of the same dtype.
    #[must_use]
    pub fn like(self, value: f64) -> Value<'e> {
        let tensor = HostTensor::scalar(value);
        let id = self.emitter.note(self.emitter.emit.borrow_mut().constant(tensor));
        Value { emitter: self.emitter, id }.cast(self.dtype())
    }

    /// The elements converted to a dtype.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Value<'e> {
        if self.dtype() == dtype {
            return self;
        }
        let attrs = Attrs::new().with("SrcT", self.dtype()).with("DstT", dtype);
        self.apply("Cast", attrs, &[self])
    }

    /// The same elements under another shape; one size may be -1.
    #[must_use]
    pub fn reshape(self, dims: &[i64]) -> Value<'e> {
        let attrs = Attrs::new().with("Tshape", DType::I64);
        self.apply("Reshape", attrs, &[self, self.int_vector(dims)])
    }

    /// The dimensions in another order.
    #[must_use]
    pub fn transpose(self, permutation: &[i64]) -> Value<'e> {
        let attrs = Attrs::new().with("Tperm", DType::I64);
        self.apply("Transpose", attrs, &[self, self.int_vector(permutation)])
    }

    /// Repeated along dimensions of size 1.
    #[must_use]
    pub fn broadcast_to(self, dims: &[i64]) -> Value<'e> {
        let attrs = Attrs::new().with("Tidx", DType::I64);
        self.apply("BroadcastTo", attrs, &[self, self.int_vector(dims)])
    }

    /// A window that begins at `begin` and has `size` elements; a size of -1 means the rest.
    #[must_use]
    pub fn slice(self, begin: &[i64], size: &[i64]) -> Value<'e> {
        let attrs = Attrs::new().with("Index", DType::I64);
        self.apply("Slice", attrs, &[self, self.int_vector(begin), self.int_vector(size)])
    }

    /// The sum along axes.
    #[must_use]
    pub fn sum(self, axes: &[i64], keep_dims: bool) -> Value<'e> {
        self.reduce("Sum", axes, keep_dims)
    }

    /// The mean along axes.
    #[must_use]
    pub fn mean(self, axes: &[i64], keep_dims: bool) -> Value<'e> {
        self.reduce("Mean", axes, keep_dims)
    }

    /// The largest element along axes.
    #[must_use]
    pub fn reduce_max(self, axes: &[i64], keep_dims: bool) -> Value<'e> {
        self.reduce("Max", axes, keep_dims)
    }

    fn reduce(self, name: &str, axes: &[i64], keep_dims: bool) -> Value<'e> {
        let attrs = Attrs::new().with("Tidx", DType::I64).with("keep_dims", keep_dims);
        self.apply(name, attrs, &[self, self.int_vector(axes)])
    }

    /// The matrix product of two matrices.
    #[must_use]
    pub fn matmul(self, rhs: Value<'e>, transpose_a: bool, transpose_b: bool) -> Value<'e> {
        let attrs = Attrs::new().with("transpose_a", transpose_a).with("transpose_b", transpose_b);
        self.apply("MatMul", attrs, &[self, rhs])
    }

    /// The matrix products of two stacks of matrices.
    #[must_use]
    pub fn batch_matmul(self, rhs: Value<'e>, adj_x: bool, adj_y: bool) -> Value<'e> {
        let attrs = Attrs::new().with("adj_x", adj_x).with("adj_y", adj_y);
        self.apply("BatchMatMulV2", attrs, &[self, rhs])
    }

    /// `then` where this bool tensor is true, else `otherwise`.
    #[must_use]
    pub fn select(self, then: Value<'e>, otherwise: Value<'e>) -> Value<'e> {
        then.apply("SelectV2", Attrs::new(), &[self, then, otherwise])
    }

    /// The tensors one after the other along an axis.
    #[must_use]
    pub fn concat(parts: &[Value<'e>], axis: i64) -> Value<'e> {
        let first = parts[0];
        let id = first.emitter.emit.borrow_mut().constant(HostTensor::scalar(axis));
        let axis = Value { emitter: first.emitter, id: first.emitter.note(id) };
        let attrs = Attrs::new().with("N", parts.len() as i64).with("Tidx", DType::I64);
        let mut inputs = parts.to_vec();
        inputs.push(axis);
        first.apply("ConcatV2", attrs, &inputs)
    }

    unary! {
        /// `-x`
        neg => "Neg";
        /// `|x|`
        abs => "Abs";
        /// `x * x`
        square => "Square";
        /// Square root.
        sqrt => "Sqrt";
        /// `1 / sqrt(x)`
        rsqrt => "Rsqrt";
        /// Exponential function.
        exp => "Exp";
        /// Natural logarithm.
        log => "Log";
        /// `log(1 + x)`
        log1p => "Log1p";
        /// Hyperbolic tangent.
        tanh => "Tanh";
        /// `1 / (1 + exp(-x))`
        sigmoid => "Sigmoid";
        /// `max(x, 0)`
        relu => "Relu";
        /// Complex conjugate.
        conj => "Conj";
        /// Whether elements are false.
        logical_not => "LogicalNot";
    }

    binary! {
        /// The larger element.
        maximum => "Maximum";
        /// The smaller element.
        minimum => "Minimum";
        /// Power.
        pow => "Pow";
        /// Equal.
        equal => "Equal";
        /// Not equal.
        not_equal => "NotEqual";
        /// Less.
        less => "Less";
        /// Less or equal.
        less_equal => "LessEqual";
        /// Greater.
        greater => "Greater";
        /// Greater or equal.
        greater_equal => "GreaterEqual";
    }
}

/// A value, or a literal that becomes a scalar of the other operand's dtype.
pub trait IntoValue<'e> {
    /// The value, given the other operand.
    fn into_value(self, other: Value<'e>) -> Value<'e>;
}

impl<'e> IntoValue<'e> for Value<'e> {
    fn into_value(self, _: Value<'e>) -> Value<'e> {
        self
    }
}

impl<'e> IntoValue<'e> for f64 {
    fn into_value(self, other: Value<'e>) -> Value<'e> {
        other.like(self)
    }
}

macro_rules! operators {
    ($($trait:ident, $method:ident, $op:literal;)*) => {
        $(
            impl<'e, R: IntoValue<'e>> ops::$trait<R> for Value<'e> {
                type Output = Value<'e>;
                fn $method(self, rhs: R) -> Value<'e> {
                    self.apply($op, Attrs::new(), &[self, rhs.into_value(self)])
                }
            }
            impl<'e> ops::$trait<Value<'e>> for f64 {
                type Output = Value<'e>;
                fn $method(self, rhs: Value<'e>) -> Value<'e> {
                    rhs.apply($op, Attrs::new(), &[rhs.like(self), rhs])
                }
            }
        )*
    };
}

operators! {
    Add, add, "AddV2";
    Sub, sub, "Sub";
    Mul, mul, "Mul";
    Div, div, "RealDiv";
}

impl<'e> ops::Neg for Value<'e> {
    type Output = Value<'e>;

    fn neg(self) -> Value<'e> {
        Value::neg(self)
    }
}

/// Completes and checks a call that an [`Emit`] received: attributes with defaults, and the types
/// of the results.
///
/// # Errors
///
/// [`Error::Argument`] when the call does not fit the op.
pub fn check_call(
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[Input<'_>],
) -> Result<(Attrs, SmallVec<[ValueType; 2]>)> {
    let known = attrs.iter().filter(|(name, _)| op.attr(name).is_some());
    let attrs: Attrs = known.map(|(name, value)| (name, value.clone())).collect::<Attrs>();
    let attrs = op.complete_attrs(attrs)?;
    let outputs = infer(op, &attrs, inputs)?;
    Ok((attrs, outputs))
}

/// An attribute and its value, for lists of attributes in formulas.
pub fn attrs<const N: usize>(pairs: [(&str, AttrValue); N]) -> Attrs {
    pairs.into_iter().collect()
}

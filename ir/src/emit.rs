//! Emission of formulas as ops.
//!
//! A composite op is a formula over other ops. The formula runs against an [`Emit`]: one that adds
//! nodes to a graph, or one that executes. It returns no `Result`: the first error sticks to the
//! emitter and comes back from [`expand`].

use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    build::infer_attrs,
    dtype::DType,
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    host_tensor::{Element, HostTensor},
    infer::{InputFacts, infer},
    limits::Limits,
    op::{Formula, Lowering, OpDef},
    registry,
    shape::{PartialShape, Shape},
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt, ops,
    sync::Arc,
};

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

    /// Notes what is known of the shape of a value besides what its op tells. An emitter that
    /// knows all shapes need not care.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the shape contradicts what is known.
    fn refine(&mut self, id: ValueId, shape: &PartialShape) -> Result<()> {
        let _ = (id, shape);
        Ok(())
    }

    /// The functions that calls may name, where there are any.
    fn library(&self) -> Option<&FunctionLibrary> {
        None
    }

    /// The emitter as what it is, for gradients that are code and know who calls them.
    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

/// Expands a call of a composite op into calls on `emit`; returns its results.
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
    expand_by(rule, emit, op, attrs, inputs)
}

/// Makes the calls of a formula for an op on `emit`; returns its results.
///
/// # Errors
///
/// Whatever was wrong with the first call that failed.
pub fn expand_by(
    rule: Formula,
    emit: &mut dyn Emit,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueId],
) -> Result<Vec<ValueId>> {
    let emitter = Emitter::new(emit);
    let inputs = inputs.iter().map(|&id| emitter.at(id)).collect();
    let results = rule(&Composite { op, attrs, inputs, emitter: &emitter });
    let ids: Option<Vec<ValueId>> = results.iter().map(|value| value.id).collect();
    emitter.finish()?;
    Ok(ids.expect("a value without an id comes with an error"))
}

/// Where formulas put their ops, and where their first error waits.
pub struct Emitter<'a> {
    emit: RefCell<&'a mut dyn Emit>,
    error: RefCell<Option<Error>>,
    /// The calls that are left. A formula may make as many as a function may have nodes: sizes in
    /// shapes and attributes tell how many calls some make.
    left: Cell<usize>,
}

impl fmt::Debug for Emitter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<'a> Emitter<'a> {
    /// A position for the ops of one formula.
    pub fn new(emit: &'a mut dyn Emit) -> Emitter<'a> {
        let left = Cell::new(Limits::default().nodes);
        Emitter { emit: RefCell::new(emit), error: RefCell::new(None), left }
    }

    /// A value that is there already, for use in formulas.
    pub fn at(&'a self, id: ValueId) -> Value<'a> {
        Value { emitter: self, id: Some(id) }
    }

    /// The end of a formula.
    ///
    /// # Errors
    ///
    /// The first error that any of its calls met.
    pub fn finish(&self) -> Result<()> {
        self.error.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// A constant.
    pub fn constant(&'a self, tensor: Result<HostTensor>) -> Value<'a> {
        let id = tensor.and_then(|tensor| self.emit.borrow_mut().constant(tensor));
        Value { emitter: self, id: self.note(id) }
    }

    /// Fails with an error of the formula's own.
    pub fn fail(&'a self, error: Error) -> Value<'a> {
        self.note::<()>(Err(error));
        Value { emitter: self, id: None }
    }

    /// Notes what is known of the shape of a value.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the shape contradicts what is known.
    pub fn refine(&self, value: Value<'_>, shape: &PartialShape) -> Result<()> {
        match value.id {
            Some(id) => self.emit.borrow_mut().refine(id, shape),
            None => Ok(()),
        }
    }

    /// The results of a call whose attributes follow from its inputs, from what is passed, and from
    /// the defaults.
    pub fn calls(&'a self, name: &str, attrs: Attrs, inputs: &[Value<'a>]) -> Vec<Value<'a>> {
        let ids = self.infer(name, attrs, inputs);
        ids.into_iter().map(|id| Value { emitter: self, id }).collect()
    }

    /// A call whose attributes follow from its inputs, from `attrs`, of which the op takes those it
    /// knows, and from the defaults.
    fn infer(
        &self,
        name: &str,
        attrs: Attrs,
        inputs: &[Value<'_>],
    ) -> SmallVec<[Option<ValueId>; 2]> {
        let Some(op) = registry::find(name) else { return self.call(name, attrs, inputs) };
        let known = attrs.iter().filter(|(name, _)| op.attr(name).is_some());
        let attrs = known.map(|(name, value)| (name, value.clone())).collect::<Attrs>();
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|input| input.dtype()).collect();
        self.call(name, infer_attrs(op, attrs, &dtypes), inputs)
    }

    fn take_call(&self) -> Result<()> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| too_many("more"))?;
        self.left.set(left);
        Ok(())
    }

    /// The `n` parts of a formula, whose number a shape or an attribute tells, one after the other
    /// along an axis. An error if that takes more calls than there may be; after an error nothing
    /// more is called.
    fn concat_parts(&'a self, n: usize, part: impl Fn(usize) -> Value<'a>, axis: i64) -> Value<'a> {
        if n == 0 || n > self.left.get() {
            return self.fail(too_many(n));
        }
        let parts: Vec<Value<'a>> =
            (0..n).take_while(|_| self.error.borrow().is_none()).map(part).collect();
        match parts[..] {
            [] => Value { emitter: self, id: None },
            [part] => part,
            _ => Value::concat(&parts, axis),
        }
    }

    pub(crate) fn note<T>(&self, result: Result<T>) -> Option<T> {
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
                    Some(ids) => {
                        self.take_call()?;
                        self.emit.borrow_mut().emit(op, attrs, &ids)
                    }
                    None => Ok(SmallVec::new()), // An earlier error is waiting already.
                }
            });
        self.note(result).into_iter().flatten().map(Some).collect()
    }
}

fn too_many(needed: impl fmt::Display) -> Error {
    let limit = Limits::default().nodes as u64;
    Error::Limit { what: "the calls of a formula".into(), needed: needed.to_string(), limit }
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

    /// The function attribute `name`, and the function itself.
    pub fn function(&self, name: &str) -> Option<(&NameAttrList, Arc<FunctionDef>)> {
        let found = self.attrs.func(name).and_then(|callee| {
            let emit = self.emitter.emit.borrow();
            let library = emit.library().ok_or_else(|| Error::Unsupported {
                op: self.op.name.into(),
                what: "its function is not at hand here".into(),
            })?;
            Ok((callee, library.get(&callee.name)?))
        });
        self.emitter.note(found)
    }

    /// The result of `make` with the functions that calls may name.
    pub(crate) fn by_library<R>(
        &self,
        make: impl FnOnce(&FunctionLibrary) -> Result<R>,
    ) -> Option<R> {
        let made = {
            let emit = self.emitter.emit.borrow();
            let absent = || Error::Unsupported {
                op: self.op.name.into(),
                what: "its function is not at hand here".into(),
            };
            emit.library().ok_or_else(absent).and_then(make)
        };
        self.emitter.note(made)
    }

    /// Whether a function computes elements from the same elements of its arguments.
    pub fn is_elementwise(&self, def: &FunctionDef) -> bool {
        let emit = self.emitter.emit.borrow();
        emit.library().is_some_and(|library| crate::xla::region::is_elementwise(library, def))
    }

    /// Notes what is wrong with something.
    pub fn check(&self, result: Result<()>) {
        self.emitter.note(result);
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
        self.emitter.constant(tensor)
    }

    /// Fails with an error of the formula's own.
    pub fn fail(&self, error: Error) -> Value<'e> {
        self.emitter.fail(error)
    }

    /// The `n` parts of a formula, whose number a shape or an attribute tells, one after the other
    /// along an axis.
    pub fn concat_parts(
        &self,
        n: usize,
        part: impl Fn(usize) -> Value<'e>,
        axis: i64,
    ) -> Value<'e> {
        self.emitter.concat_parts(n, part, axis)
    }

    /// The results of another op, of the same inputs and with the attributes that it knows.
    pub fn renamed(&self, name: &str) -> Vec<Value<'e>> {
        match self.inputs().is_empty() {
            true => self.call(name, self.attrs.clone(), &[]),
            false => calls_with(name, self.attrs.clone(), self.inputs()).values().to_vec(),
        }
    }

    /// Results that `body` computes from the inputs, call by call.
    pub(crate) fn by_calls(
        &self,
        body: impl FnOnce(&mut dyn Emit, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Vec<Value<'e>> {
        let inputs: Option<Vec<ValueId>> = self.inputs.iter().map(|input| input.id).collect();
        let found = inputs.map(|inputs| body(&mut **self.emitter.emit.borrow_mut(), &inputs));
        let ids = found.and_then(|found| self.emitter.note(found)).unwrap_or_default();
        ids.into_iter().map(|id| Value { emitter: self.emitter, id: Some(id) }).collect()
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
    /// The `n` parts of a formula, whose number a shape or an attribute tells, one after the other
    /// along an axis.
    pub(crate) fn concat_parts(
        self,
        n: usize,
        part: impl Fn(usize) -> Value<'e>,
        axis: i64,
    ) -> Value<'e> {
        self.emitter.concat_parts(n, part, axis)
    }

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

    /// A constant vector of integers in the same formula.
    #[must_use]
    pub fn int_vector(self, elements: &[i64]) -> Value<'e> {
        self.emitter.constant(HostTensor::vector(elements))
    }

    /// A constant vector of `i32` in the same formula.
    #[must_use]
    pub fn int32_vector(self, elements: &[i64]) -> Value<'e> {
        let elements: Vec<i32> = elements.iter().map(|&element| element as i32).collect();
        self.emitter.constant(HostTensor::vector(&elements))
    }

    /// A constant in the same formula.
    #[must_use]
    pub fn literal<T: Element>(self, value: T) -> Value<'e> {
        self.emitter.constant(Ok(HostTensor::scalar(value)))
    }

    /// A scalar constant of the same dtype.
    #[must_use]
    pub fn like(self, value: f64) -> Value<'e> {
        match self.dtype() {
            DType::F32 => self.literal(value as f32),
            DType::F64 => self.literal(value),
            dtype => self.literal(value).cast(dtype),
        }
    }

    /// The id of the value; none after an error.
    pub fn id(self) -> Option<ValueId> {
        self.id
    }

    /// The shape, as far as it is known.
    pub fn partial_shape(self) -> PartialShape {
        match self.id {
            Some(id) => self.emitter.emit.borrow().ty(id).shape,
            None => PartialShape::scalar(),
        }
    }

    /// The number of dimensions, if known.
    pub fn rank(self) -> Option<usize> {
        self.partial_shape().rank()
    }

    /// The sizes, if all are known.
    pub fn dims(self) -> Option<Vec<i64>> {
        self.partial_shape().known().map(|shape| shape.to_i64())
    }

    /// The elements of an integer tensor, if known.
    pub fn ints(self) -> Option<Vec<i64>> {
        self.known().and_then(|value| value.to_i64s().ok())
    }

    /// The sizes as a vector of `i64`: a constant where they are known.
    #[must_use]
    pub fn shape_vector(self) -> Value<'e> {
        match self.dims() {
            Some(dims) => self.int_vector(&dims),
            None => call_with("Shape", Attrs::new().with("out_type", DType::I64), [self]),
        }
    }

    /// The complex conjugate of complex values; real ones as they are.
    #[must_use]
    pub fn adjoint(self) -> Value<'e> {
        if self.dtype().is_complex() { self.conj() } else { self }
    }

    /// Zeros of the same dtype and shape.
    #[must_use]
    pub fn zeros_like(self) -> Value<'e> {
        call("ZerosLike", [self])
    }

    /// Ones of the same dtype and shape.
    #[must_use]
    pub fn ones_like(self) -> Value<'e> {
        call("OnesLike", [self])
    }

    /// The same elements under the shape of another value.
    #[must_use]
    pub fn reshape_like(self, other: Value<'e>) -> Value<'e> {
        let (own, shape) = (self.partial_shape(), other.partial_shape());
        if own.is_known() && own == shape { self } else { self.reshape_to(other.shape_vector()) }
    }

    /// The same elements under a shape that is computed.
    #[must_use]
    pub fn reshape_to(self, shape: Value<'e>) -> Value<'e> {
        call("Reshape", [self, shape])
    }

    /// Repeated along dimensions of size 1, up to a shape that is computed.
    #[must_use]
    pub fn broadcast_to_vector(self, shape: Value<'e>) -> Value<'e> {
        call("BroadcastTo", [self, shape])
    }

    /// The sum along axes that are computed.
    #[must_use]
    pub fn sum_over(self, axes: Value<'e>, keep_dims: bool) -> Value<'e> {
        call_with("Sum", Attrs::new().with("keep_dims", keep_dims), [self, axes])
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
        if parts.len() == 1 {
            return first;
        }
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

/// The first result of a call whose attributes follow from its inputs and the defaults.
pub fn call<'e, const N: usize>(name: &str, inputs: [Value<'e>; N]) -> Value<'e> {
    call_with(name, Attrs::new(), inputs)
}

/// The first result of a call; attributes that the op does not know are left out, those that
/// follow from the inputs or have defaults may be absent.
pub fn call_with<'e, const N: usize>(
    name: &str,
    attrs: Attrs,
    inputs: [Value<'e>; N],
) -> Value<'e> {
    calls_with(name, attrs, &inputs).at(0)
}

/// The results of a call like that of [`call_with`]. At least one input is passed.
pub fn calls_with<'e>(name: &str, attrs: Attrs, inputs: &[Value<'e>]) -> CallResults<'e> {
    let emitter = inputs[0].emitter;
    let ids = emitter.infer(name, attrs, inputs);
    CallResults { emitter, values: ids.into_iter().map(|id| Value { emitter, id }).collect() }
}

/// The results of a call; all are invalid, with an error noted, when the call was.
#[derive(Debug, Clone)]
pub struct CallResults<'e> {
    emitter: &'e Emitter<'e>,
    values: Vec<Value<'e>>,
}

impl<'e> CallResults<'e> {
    /// The results.
    pub fn values(&self) -> &[Value<'e>] {
        &self.values
    }

    /// Result `index`.
    pub fn at(&self, index: usize) -> Value<'e> {
        let invalid = Value { emitter: self.emitter, id: None };
        self.values.get(index).copied().unwrap_or(invalid)
    }
}

/// A value, or a literal that becomes a scalar of the other operand's dtype.
pub trait IntoValue<'e> {
    /// The value, for the other operand.
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
    inputs: &[InputFacts<'_>],
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

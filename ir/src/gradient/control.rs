//! Gradients of branches and loops.
//!
//! A call of functions is replaced by one that also gives what its gradient needs. The gradient of a
//! branch is a branch, on the same condition, between the gradients of the two functions: each gets
//! what either of them keeps, zeros standing for what the other one would have kept. The gradient
//! of a loop is a loop that runs as many times, backwards: what each iteration keeps was appended to
//! lists, from which it is taken again, last first.

use super::{
    branch::branches,
    extent::CopyBudget,
    function::GradientIndex,
    reach::Reach,
    repeat::a_loop,
    shapes,
    sketch::{Sketch, type_of},
    walk::{CustomGradient, RecordedCall, Tangent},
};
use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    dtype::DType,
    emit::{self, Emit, Emitter, ValueId},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary, functions_of},
    host_tensor::HostTensor,
    op::{CallKind as Calls, OpDef},
    registry,
    spec::ValueType,
};
use std::{fmt, sync::Arc};

/// A call that also gives what its gradient needs.
pub struct Recorded {
    /// The attributes it has in place of those of the original.
    pub attrs: Attrs,
    /// Its inputs after those of the original.
    pub inputs: Vec<Extra>,
    /// The types of its results after those of the original.
    pub added: Vec<ValueType>,
    /// Gradient rule of the node.
    pub gradient: Arc<dyn CustomGradient>,
}

/// An input that a recorded call has besides those of the original.
#[derive(Debug, Clone)]
pub enum Extra {
    /// The number of iterations so far: none.
    Count,
    /// A list without elements.
    List(ValueType),
}

impl Extra {
    /// The value.
    ///
    /// # Errors
    ///
    /// Whatever the calls it takes meet.
    pub fn emit(&self, emit: &mut dyn Emit) -> Result<ValueId> {
        let element = match self {
            Extra::Count => return emit.constant(HostTensor::scalar(0i32)),
            Extra::List(element) => element,
        };
        let shape = match element.shape.dims() {
            None => HostTensor::scalar(-1i32),
            Some(dims) => {
                let sizes = dims.iter().map(|dim| dim.map_or(-1, |size| size as i32));
                HostTensor::vector(&sizes.collect::<Vec<_>>())?
            }
        };
        let inputs = [emit.constant(shape)?, emit.constant(HostTensor::scalar(-1i32))?];
        let attrs = Attrs::new().with("element_dtype", element.dtype);
        let attrs = attrs.with("shape_type", DType::I32);
        Ok(emit.emit(record("EmptyTensorList"), attrs, &inputs)?[0])
    }
}

pub(super) fn record(name: &str) -> &'static OpDef {
    registry::find(name).expect("a built-in record")
}

/// The call to make in place of a branch or a loop, if gradients are to go through it. Functions
/// that this takes are added to the library.
///
/// # Errors
///
/// As [`differentiate`](super::function::differentiate).
pub fn with_gradient(
    library: &FunctionLibrary,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
) -> Result<Recorded> {
    with_gradient_within(&CopyBudget::new(library), op, attrs, inputs)
}

/// As [`with_gradient`], inside functions that are being differentiated.
pub(super) fn with_gradient_within(
    extent: &CopyBudget<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
) -> Result<Recorded> {
    let functions = functions_of(op, attrs);
    let functions: Vec<Arc<FunctionDef>> =
        functions.iter().map(|name| extent.library().get(name)).collect::<Result<_>>()?;
    match (op.call, &functions[..], inputs) {
        (Calls::If | Calls::Case, [_, ..], [_, arguments @ ..]) => {
            let results = op.output_dtypes(attrs)?;
            for function in &functions {
                check_signature(function, &dtypes(arguments), &results)?;
            }
            branches(extent, op, attrs, inputs, &functions)
        }
        (Calls::While, [condition, body], _) => {
            let types = dtypes(inputs);
            check_arguments(condition, &types)?;
            if condition.results.is_empty() {
                return Err(misfit(condition, "results", "a condition".into(), 0));
            }
            check_signature(body, &types, &types)?;
            a_loop(extent, op, attrs, inputs, condition, body)
        }
        _ => {
            let what = "its gradient, without the functions it calls".into();
            Err(Error::Unsupported { op: op.name.into(), what })
        }
    }
}

/// Checks that a function takes and gives what its caller hands on: a file may say anything.
fn check_signature(def: &FunctionDef, arguments: &[DType], results: &[DType]) -> Result<()> {
    check_arguments(def, arguments)?;
    let found = dtypes(&result_types(def)?);
    match found == results {
        true => Ok(()),
        false => Err(misfit(def, "results", list(results), list(&found))),
    }
}

fn check_arguments(def: &FunctionDef, arguments: &[DType]) -> Result<()> {
    let found = def.arg_dtypes();
    match found == arguments {
        true => Ok(()),
        false => Err(misfit(def, "arguments", list(arguments), list(&found))),
    }
}

fn list(dtypes: &[DType]) -> String {
    let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
    format!("({})", names.join(", "))
}

fn misfit(
    def: &FunctionDef,
    what: &'static str,
    expected: String,
    found: impl fmt::Display,
) -> Error {
    Error::argument(def.name.to_string(), what, expected, found)
}

/// The attributes with other functions, in the order of [`functions_of`](crate::function::functions_of).
pub(super) fn with_functions(op: &OpDef, attrs: &Attrs, names: &[Arc<str>]) -> Attrs {
    let mut attrs = attrs.clone();
    let mut named = names.iter().map(|name| NameAttrList::new(name.clone()));
    for attr in op.attrs {
        match attrs.get(attr.name) {
            Some(AttrValue::Func(_)) => {
                if let Some(function) = named.next() {
                    attrs.set(attr.name, AttrValue::Func(function));
                }
            }
            Some(AttrValue::Funcs(list)) => {
                let list = named.by_ref().take(list.len()).collect();
                attrs.set(attr.name, AttrValue::Funcs(list));
            }
            _ => {}
        }
    }
    attrs
}

/// Attributes for inputs and results of other types.
pub(super) fn retyped(op: &OpDef, attrs: &Attrs, inputs: &[DType], outputs: &[DType]) -> Attrs {
    let mut attrs = attrs.clone();
    for (name, types) in [("Tin", inputs), ("Tout", outputs), ("T", inputs)] {
        if op.attr(name).is_some() {
            attrs.set(name, types.to_vec());
        }
    }
    if op.attr("output_shapes").is_some() {
        attrs.set("output_shapes", AttrValue::Shapes(Vec::new()));
    }
    attrs
}

/// The types of the results of a function.
///
/// # Errors
///
/// [`Error::Malformed`] for a result of an op that nobody knows the types of.
pub(super) fn result_types(def: &FunctionDef) -> Result<Vec<ValueType>> {
    def.results.iter().map(|(_, outlet)| type_of(&def.graph, *outlet)).collect()
}

pub(super) fn dtypes(types: &[ValueType]) -> Vec<DType> {
    types.iter().map(|ty| ty.dtype).collect()
}

/// Facts that the gradient of a branch or a loop needs.
pub(super) struct Backward {
    pub(super) op: &'static OpDef,
    pub(super) attrs: Attrs,
    /// The number of inputs and results of the original.
    pub(super) n_inputs: usize,
    pub(super) n_results: usize,
    /// The results whose gradients it takes.
    pub(super) seeds: Vec<usize>,
    /// For each input of the original, the result of the gradient that is its gradient.
    pub(super) gradients: Vec<Option<usize>>,
    pub(super) kind: BodyKind,
    /// Results that depend on arguments of its functions.
    pub(super) reach: Reach,
    /// Whether its functions, or what they call, have gradients of their own.
    pub(super) has_custom: bool,
}

pub(super) enum BodyKind {
    Branch,
    /// The inputs that are variables, whose gradients add up.
    Loop {
        variables: Vec<usize>,
    },
}

impl CustomGradient for Backward {
    fn keeps_zeros(&self) -> bool {
        !self.has_custom
    }

    fn is_zero(&self, input: usize, given: &[bool]) -> bool {
        let argument = match self.kind {
            BodyKind::Branch => input.checked_sub(1),
            BodyKind::Loop { .. } => (input < self.n_inputs).then_some(input),
        };
        let is_given = |result: usize| given.get(result) == Some(&true);
        // Gradients of what was added for this one are for another to refuse.
        let is_of_others = given.iter().skip(self.n_results).any(|&given| given);
        // An input with which no branch does anything that has a gradient has none, not one of zero.
        let has_gradient = self.gradients.get(input).is_some_and(Option::is_some);
        argument
            .filter(|_| has_gradient && !is_of_others && !self.has_custom)
            .is_some_and(|argument| !self.reach.has_any(argument, is_given))
    }

    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> Result<Vec<Option<Tangent>>> {
        if dys[self.n_results..].iter().any(Option::is_some) {
            let what = "a derivative of higher order than there were tapes around it".into();
            return Err(Error::Unsupported { op: call.op.name.into(), what });
        }
        let mut inputs = Vec::new();
        if let BodyKind::Branch = self.kind {
            inputs.push(call.inputs[0]);
        } else {
            inputs.push(call.outputs[self.n_results]);
        }
        for &seed in &self.seeds {
            inputs.push(match dys[seed] {
                Some(dy) => dy,
                None => emit.emit(record("ZerosLike"), Attrs::new(), &[call.outputs[seed]])?[0],
            });
        }
        match &self.kind {
            BodyKind::Branch => {
                inputs.extend(&call.inputs[1..self.n_inputs]);
                inputs.extend(&call.outputs);
            }
            BodyKind::Loop { variables } => {
                for &variable in variables {
                    inputs.push(zeros(emit, call.inputs[variable])?);
                }
                inputs.extend(&call.outputs[self.n_results + 1..]);
                inputs.extend(&call.outputs[..self.n_results]);
            }
        }
        let found = emit.emit(self.op, self.attrs.clone(), &inputs)?;
        let gradient = |place: &Option<usize>| place.map(|index| Tangent::Dense(found[index]));
        Ok(self.gradients.iter().map(gradient).collect())
    }
}

/// Zeros of the shape of a tensor, or of the value of a variable.
pub(super) fn zeros(emit: &mut dyn Emit, like: ValueId) -> Result<ValueId> {
    let ty = emit.ty(like);
    if ty.dtype != DType::Resource {
        return Ok(emit.emit(record("ZerosLike"), Attrs::new(), &[like])?[0]);
    }
    let dtype = ty.pointee.as_ref().map_or(DType::F32, |spec| spec.dtype);
    let emitter = Emitter::new(emit);
    let handle = emitter.at(like);
    let attrs = Attrs::new().with("out_type", DType::I32);
    let shape = emit::call_with("VariableShape", attrs, [handle]);
    let zeros = emit::call("Fill", [shape, handle.literal(0.0f64).cast(dtype)]);
    emitter.finish()?;
    Ok(zeros.id().expect("no error was noted"))
}

/// The gradient of an argument as a tensor; zeros where there is none.
pub(super) fn dense_or_zeros(
    sketch: &mut Sketch,
    place: Option<GradientIndex>,
    found: &[ValueId],
    like: ValueId,
) -> Result<ValueId> {
    match place {
        None => zeros(sketch, like),
        Some(GradientIndex::Dense(index)) => Ok(found[index]),
        Some(GradientIndex::Slices(index)) => {
            let emitter = Emitter::new(sketch);
            let rows = shapes::variable_dim(emitter.at(like), 0);
            emitter.finish()?;
            let rows = rows.id().expect("no error was noted");
            added_rows(sketch, [found[index], found[index + 1]], rows)
        }
    }
}

/// The gradient of a tensor of as many rows as `rows` says, from some of its rows and their
/// indices.
pub(super) fn added_rows(
    sketch: &mut Sketch,
    [values, indices]: [ValueId; 2],
    rows: ValueId,
) -> Result<ValueId> {
    Ok(sketch.call("UnsortedSegmentSum", Attrs::new(), &[values, indices, rows])?[0])
}

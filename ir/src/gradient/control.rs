//! Gradients of branches and loops.
//!
//! A call of functions is replaced by one that also gives what its gradient needs. The gradient of a
//! branch is a branch, on the same condition, between the gradients of the two functions: each gets
//! what either of them keeps, zeros standing for what the other one would have kept. The gradient
//! of a loop is a loop that runs as many times, backwards: what each iteration keeps was appended to
//! lists, from which it is taken again, last first.

use super::{
    function::{Differentiated, Kept, Place, differentiate, has_gradient, unique},
    shapes,
    sketch::{Sketch, without_shape},
    walk::{Call, CustomGradient, Tangent, is_differentiable},
};
use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    dtype::DType,
    emit::{self, Emit, Emitter, ValueId},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, Outlet},
    host_tensor::HostTensor,
    op::{Call as Calls, OpDef},
    registry,
    shape::{PartialShape, Shape},
    spec::ValueType,
};
use std::sync::Arc;

/// A call that also gives what its gradient needs.
pub struct Recorded {
    /// The attributes it has in place of those of the original.
    pub attrs: Attrs,
    /// Its inputs after those of the original.
    pub inputs: Vec<Extra>,
    /// The types of its results after those of the original.
    pub added: Vec<ValueType>,
    /// How gradients go through it.
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

fn record(name: &str) -> &'static OpDef {
    registry::find(name).expect("a built-in record")
}

/// The call to make in place of a branch or a loop, if gradients are to go through it. Functions
/// that this takes are added to the library.
///
/// # Errors
///
/// As [`differentiate`].
pub fn with_gradient(
    library: &FunctionLibrary,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
) -> Result<Recorded> {
    let functions = functions_of(op, attrs);
    let functions: Vec<Arc<FunctionDef>> =
        functions.iter().map(|name| library.get(name)).collect::<Result<_>>()?;
    match (op.call, &functions[..]) {
        (Calls::If | Calls::Case, [_, ..]) => branches(library, op, attrs, inputs, &functions),
        (Calls::While, [condition, body]) => a_loop(library, op, attrs, inputs, condition, body),
        _ => {
            let what = "its gradient, without the functions it calls".into();
            Err(Error::Unsupported { op: op.name.into(), what })
        }
    }
}

fn functions_of(op: &OpDef, attrs: &Attrs) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for attr in op.attrs {
        match attrs.get(attr.name) {
            Some(AttrValue::Func(function)) => names.push(function.name.clone()),
            Some(AttrValue::Funcs(list)) => names.extend(list.iter().map(|f| f.name.clone())),
            _ => {}
        }
    }
    names
}

/// The attributes with other functions, in the order of [`functions_of`].
fn with_functions(op: &OpDef, attrs: &Attrs, names: &[Arc<str>]) -> Attrs {
    let mut attrs = attrs.clone();
    let mut names = names.iter();
    let mut next = || NameAttrList::new(names.next().expect("as many names as before").clone());
    for attr in op.attrs {
        match attrs.get(attr.name) {
            Some(AttrValue::Func(_)) => attrs.set(attr.name, AttrValue::Func(next())),
            Some(AttrValue::Funcs(list)) => {
                let list = list.iter().map(|_| next()).collect();
                attrs.set(attr.name, AttrValue::Funcs(list));
            }
            _ => {}
        }
    }
    attrs
}

/// Attributes for inputs and results of other types.
fn retyped(op: &OpDef, attrs: &Attrs, inputs: &[DType], outputs: &[DType]) -> Attrs {
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

fn result_types(def: &FunctionDef) -> Vec<ValueType> {
    let ty = |outlet: &Outlet| def.graph.ty(*outlet).expect("every node is typed").clone();
    def.results.iter().map(|(_, outlet)| ty(outlet)).collect()
}

fn dtypes(types: &[ValueType]) -> Vec<DType> {
    types.iter().map(|ty| ty.dtype).collect()
}

/// What the gradient of a branch or a loop needs to know.
struct Backward {
    op: &'static OpDef,
    attrs: Attrs,
    /// The number of inputs and results of the original.
    n_inputs: usize,
    n_results: usize,
    /// The results whose gradients it takes.
    seeds: Vec<usize>,
    /// For each input of the original, the result of the gradient that is its gradient.
    gradients: Vec<Option<usize>>,
    kind: Kind,
}

enum Kind {
    Branch,
    /// The inputs that are variables, whose gradients add up.
    Loop {
        variables: Vec<usize>,
    },
}

impl CustomGradient for Backward {
    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &Call,
        dys: &[Option<ValueId>],
    ) -> Result<Vec<Option<Tangent>>> {
        if dys[self.n_results..].iter().any(Option::is_some) {
            let what = "a derivative of higher order than there were tapes around it".into();
            return Err(Error::Unsupported { op: call.op.name.into(), what });
        }
        let mut inputs = Vec::new();
        if let Kind::Branch = self.kind {
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
            Kind::Branch => {
                inputs.extend(&call.inputs[1..self.n_inputs]);
                inputs.extend(&call.outputs);
            }
            Kind::Loop { variables } => {
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
fn zeros(emit: &mut dyn Emit, like: ValueId) -> Result<ValueId> {
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
fn dense_or_zeros(
    sketch: &mut Sketch,
    place: Option<Place>,
    found: &[ValueId],
    like: ValueId,
) -> Result<ValueId> {
    match place {
        None => zeros(sketch, like),
        Some(Place::Dense(index)) => Ok(found[index]),
        Some(Place::Slices(index)) => {
            let emitter = Emitter::new(sketch);
            let (values, indices) = (emitter.at(found[index]), emitter.at(found[index + 1]));
            let rows = shapes::variable_dim(emitter.at(like), 0);
            let sum = emit::call("UnsortedSegmentSum", [values, indices, rows]);
            emitter.finish()?;
            Ok(sum.id().expect("no error was noted"))
        }
    }
}

fn branches(
    library: &FunctionLibrary,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
    functions: &[Arc<FunctionDef>],
) -> Result<Recorded> {
    let arguments = &inputs[1..];
    let wanted: Vec<bool> = arguments.iter().map(|ty| is_differentiable(ty.dtype)).collect();
    let parts: Vec<Differentiated> =
        functions.iter().map(|def| differentiate(library, def, &wanted)).collect::<Result<_>>()?;
    let n_results = functions[0].results.len();
    let kept: Vec<Vec<ValueType>> =
        parts.iter().map(|part| result_types(&part.forward)[n_results..].to_vec()).collect();
    let seeds = parts[0].seeds.clone();
    let with_any: Vec<usize> = (0..arguments.len())
        .filter(|&index| parts.iter().any(|part| part.gradients[index].is_some()))
        .collect();
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for (number, part) in parts.iter().enumerate() {
        forward.push(filled(library, &part.forward, n_results, number, &kept)?);
        let mut sketch = Sketch::on(Graph::new());
        let dys = seeds
            .iter()
            .map(|&seed| sketch.argument(without_shape(&result_types(&part.forward)[seed])));
        let mut given: Vec<ValueId> = dys.collect::<Result<_>>()?;
        let xs: Vec<ValueId> =
            arguments.iter().map(|ty| sketch.argument(ty.clone())).collect::<Result<_>>()?;
        let ys: Vec<ValueId> = result_types(&part.forward)[..n_results]
            .iter()
            .map(|ty| sketch.argument(without_shape(ty)))
            .collect::<Result<_>>()?;
        let mut own = Vec::new();
        for (other, types) in kept.iter().enumerate() {
            for ty in types {
                let id = sketch.argument(if other == number {
                    ty.clone()
                } else {
                    without_shape(ty)
                })?;
                if other == number {
                    own.push(id);
                }
            }
        }
        for place in &part.kept {
            given.push(match *place {
                Kept::Argument(index) => xs[index],
                Kept::Result(index) if index >= n_results => own[index - n_results],
                Kept::Result(index) => ys[index],
            });
        }
        library.share_function(&part.backward)?;
        let found = sketch.call_function(&part.backward, &given)?;
        let results: Vec<ValueId> = with_any
            .iter()
            .map(|&index| dense_or_zeros(&mut sketch, part.gradients[index], &found, xs[index]))
            .collect::<Result<_>>()?;
        let name = unique(&format!("{}_branch", part.backward.name));
        backward.push(sketch.finish(library, name, &results)?);
    }
    let added: Vec<ValueType> = kept.iter().flatten().map(without_shape).collect();
    let names: Vec<Arc<str>> = forward.iter().map(|def| def.name.clone()).collect();
    let mut outputs = dtypes(&result_types(&parts[0].forward)[..n_results]);
    outputs.extend(dtypes(&added));
    let recorded = retyped(op, attrs, &dtypes(arguments), &outputs);
    let recorded = with_functions(op, &recorded, &names);
    let names: Vec<Arc<str>> = backward.iter().map(|def| def.name.clone()).collect();
    let taken: Vec<DType> = backward[0]
        .args
        .iter()
        .enumerate()
        .map(|(index, _)| backward[0].arg_type(index).dtype)
        .collect();
    let attrs = retyped(op, attrs, &taken, &dtypes(&result_types(&backward[0])));
    let mut gradients = vec![None; inputs.len()];
    for (position, &index) in with_any.iter().enumerate() {
        gradients[index + 1] = Some(position);
    }
    let gradient = Backward {
        op,
        attrs: with_functions(op, &attrs, &names),
        n_inputs: inputs.len(),
        n_results,
        seeds,
        gradients,
        kind: Kind::Branch,
    };
    Ok(Recorded { attrs: recorded, inputs: Vec::new(), added, gradient: Arc::new(gradient) })
}

/// A branch that gives what all branches keep: its own values, zeros for those of others.
fn filled(
    library: &FunctionLibrary,
    forward: &FunctionDef,
    n_results: usize,
    number: usize,
    kept: &[Vec<ValueType>],
) -> Result<Arc<FunctionDef>> {
    let mut sketch = Sketch::on(forward.graph.clone());
    let mut results = forward.results[..n_results].to_vec();
    let own = forward.results[n_results..].iter();
    for (other, types) in kept.iter().enumerate() {
        if other == number {
            results.extend(own.clone().cloned());
            continue;
        }
        for ty in types {
            let id = filler(&mut sketch, ty)?;
            results.push((format!("filled_{}", results.len()), sketch.outlet(id)));
        }
    }
    let def = FunctionDef {
        name: unique(&forward.name),
        graph: sketch.graph,
        results,
        ..forward.clone()
    };
    library.insert(def)
}

fn filler(sketch: &mut Sketch, ty: &ValueType) -> Result<ValueId> {
    match ty.dtype {
        DType::Variant => {
            let dtype = ty.pointee.as_ref().map_or(DType::F32, |spec| spec.dtype);
            Extra::List(ValueType::new(dtype, PartialShape::Unknown)).emit(sketch)
        }
        DType::Resource => {
            let what = "its gradient needs state that only one of the branches makes".into();
            Err(Error::Unsupported { op: "If".into(), what })
        }
        dtype => match ty.shape.known() {
            Some(shape) => {
                let sizes: Vec<i64> = shape.to_i64();
                let sizes = sketch.constant(HostTensor::vector(&sizes)?)?;
                let zero = HostTensor::zeros(dtype, Shape::scalar())?;
                let zero = sketch.constant(zero)?;
                Ok(sketch.call("Fill", Attrs::new(), &[sizes, zero])?[0])
            }
            None => sketch.constant(HostTensor::zeros(dtype, Shape::scalar())?),
        },
    }
}

/// Whether the body of a loop gives argument `index` on as it is.
fn is_invariant(body: &FunctionDef, index: usize) -> bool {
    let mut outlet = body.results[index].1;
    loop {
        if outlet.node == body.args[index] {
            return true;
        }
        let node = &body.graph[outlet.node];
        match (node.op.name(), node.inputs()) {
            ("Identity", &[input]) => outlet = input,
            _ => return false,
        }
    }
}

/// The values that each iteration appends to lists.
struct Stack {
    kept: Kept,
    element: ValueType,
}

fn a_loop(
    library: &FunctionLibrary,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
    condition: &FunctionDef,
    body: &Arc<FunctionDef>,
) -> Result<Recorded> {
    let n = inputs.len();
    let wanted: Vec<bool> = inputs.iter().map(|ty| is_differentiable(ty.dtype)).collect();
    let part = differentiate(library, body, &wanted)?;
    let results = result_types(&part.forward);
    let mut stacks: Vec<Stack> = Vec::new();
    for &kept in &part.kept {
        let element = match kept {
            Kept::Argument(index) if is_invariant(body, index) => continue,
            Kept::Argument(index) => body.arg_type(index).clone(),
            Kept::Result(index) => results[index].clone(),
        };
        stacks.push(Stack { kept, element });
    }
    let mut types: Vec<ValueType> = (0..n).map(|index| body.arg_type(index).clone()).collect();
    let list = ValueType::new(DType::Variant, PartialShape::scalar());
    types.push(ValueType::new(DType::I32, PartialShape::scalar()));
    types.extend(stacks.iter().map(|_| list.clone()));
    library.share_function(&part.forward)?;
    library.share_function(&part.backward)?;
    let forward = [
        recording_condition(library, condition, &types)?,
        recording_body(library, &part.forward, n, &types, &stacks)?,
    ];
    let (backward, seeds, variables) = backward_loop(library, body, &part, &stacks, inputs)?;
    let names = |defs: &[Arc<FunctionDef>; 2]| defs.clone().map(|def| def.name.clone());
    let recorded = retyped(op, attrs, &dtypes(&types), &dtypes(&types));
    let taken: Vec<DType> = dtypes(&argument_types(&backward[0]));
    let attrs = retyped(op, attrs, &taken, &taken);
    let mut gradients = vec![None; n];
    for (position, &index) in seeds.iter().chain(&variables).enumerate() {
        // A tensor that the body only hands on, without using it, keeps the gradient it has.
        gradients[index] = Some(position + 1);
    }
    let gradient = Backward {
        op,
        attrs: with_functions(op, &attrs, &names(&backward)),
        n_inputs: n,
        n_results: n,
        seeds,
        gradients,
        kind: Kind::Loop { variables },
    };
    let mut extras = vec![Extra::Count];
    extras.extend(stacks.iter().map(|stack| Extra::List(stack.element.clone())));
    Ok(Recorded {
        attrs: with_functions(op, &recorded, &names(&forward)),
        inputs: extras,
        added: types[n..].to_vec(),
        gradient: Arc::new(gradient),
    })
}

fn argument_types(def: &FunctionDef) -> Vec<ValueType> {
    (0..def.args.len()).map(|index| def.arg_type(index).clone()).collect()
}

fn recording_condition(
    library: &FunctionLibrary,
    condition: &FunctionDef,
    types: &[ValueType],
) -> Result<Arc<FunctionDef>> {
    let mut sketch = Sketch::on(Graph::new());
    let xs: Vec<ValueId> =
        types.iter().map(|ty| sketch.argument(ty.clone())).collect::<Result<_>>()?;
    let found = sketch.call_function(condition, &xs[..condition.args.len()])?;
    sketch.finish(library, unique(&format!("{}_forward", condition.name)), &found)
}

fn recording_body(
    library: &FunctionLibrary,
    forward: &FunctionDef,
    n: usize,
    types: &[ValueType],
    stacks: &[Stack],
) -> Result<Arc<FunctionDef>> {
    let mut sketch = Sketch::on(Graph::new());
    let xs: Vec<ValueId> =
        types.iter().map(|ty| sketch.argument(ty.clone())).collect::<Result<_>>()?;
    let found = sketch.call_function(forward, &xs[..n])?;
    let mut results = found[..n].to_vec();
    let one = sketch.constant(HostTensor::scalar(1i32))?;
    results.push(sketch.call("AddV2", Attrs::new(), &[xs[n], one])?[0]);
    for (stack, &list) in stacks.iter().zip(&xs[n + 1..]) {
        let element = match stack.kept {
            Kept::Argument(index) => xs[index],
            Kept::Result(index) => found[index],
        };
        let attrs = Attrs::new().with("element_dtype", stack.element.dtype);
        results.push(sketch.call("TensorListPushBack", attrs, &[list, element])?[0]);
    }
    sketch.finish(library, unique(&format!("{}_loop", forward.name)), &results)
}

type BackwardLoop = ([Arc<FunctionDef>; 2], Vec<usize>, Vec<usize>);

/// Condition and body of the loop backwards. Its variables: the iterations left, the gradients of
/// the variables of the loop, those of the state it uses, the lists, and the results of the loop.
fn backward_loop(
    library: &FunctionLibrary,
    body: &FunctionDef,
    part: &Differentiated,
    stacks: &[Stack],
    inputs: &[ValueType],
) -> Result<BackwardLoop> {
    let n = inputs.len();
    let count = ValueType::new(DType::I32, PartialShape::scalar());
    let list = ValueType::new(DType::Variant, PartialShape::scalar());
    let seeds: Vec<usize> = (0..n).filter(|&index| has_gradient(inputs[index].dtype)).collect();
    let variables: Vec<usize> = (0..n)
        .filter(|&index| inputs[index].dtype == DType::Resource && part.gradients[index].is_some())
        .collect();
    let mut types = vec![count];
    types.extend(seeds.iter().map(|&index| body.arg_type(index).clone()));
    for &index in &variables {
        let pointee = inputs[index].pointee.as_ref();
        let value = pointee.map_or(ValueType::new(DType::F32, PartialShape::Unknown), |spec| {
            ValueType::new(spec.dtype, spec.shape.clone())
        });
        types.push(value);
    }
    types.extend(stacks.iter().map(|_| list.clone()));
    types.extend((0..n).map(|index| body.arg_type(index).clone()));
    let condition = {
        let mut sketch = Sketch::on(Graph::new());
        let xs: Vec<ValueId> =
            types.iter().map(|ty| sketch.argument(ty.clone())).collect::<Result<_>>()?;
        let zero = sketch.constant(HostTensor::scalar(0i32))?;
        let found = sketch.call("Greater", Attrs::new(), &[xs[0], zero])?;
        sketch.finish(library, unique(&format!("{}_left", body.name)), &found)?
    };
    let mut sketch = Sketch::on(Graph::new());
    let xs: Vec<ValueId> =
        types.iter().map(|ty| sketch.argument(ty.clone())).collect::<Result<_>>()?;
    let (n_seeds, n_variables) = (seeds.len(), variables.len());
    let dys = &xs[1..1 + n_seeds];
    let sums = &xs[1 + n_seeds..1 + n_seeds + n_variables];
    let lists = &xs[1 + n_seeds + n_variables..xs.len() - n];
    let finals = &xs[xs.len() - n..];
    let one = sketch.constant(HostTensor::scalar(1i32))?;
    let mut results = vec![sketch.call("Sub", Attrs::new(), &[xs[0], one])?[0]];
    let (mut popped, mut shorter) = (Vec::new(), Vec::new());
    for (stack, &list) in stacks.iter().zip(lists) {
        let any = sketch.constant(HostTensor::scalar(-1i32))?;
        let attrs = Attrs::new().with("element_dtype", stack.element.dtype);
        let found = sketch.call("TensorListPopBack", attrs, &[list, any])?;
        shorter.push(found[0]);
        popped.push((stack.kept, found[1]));
    }
    let mut given: Vec<ValueId> = part
        .seeds
        .iter()
        .map(|seed| dys[seeds.iter().position(|index| index == seed).expect("same rule")])
        .collect();
    for kept in &part.kept {
        let stacked = popped.iter().find(|(stacked, _)| stacked == kept).map(|(_, id)| *id);
        given.push(match (stacked, kept) {
            (Some(id), _) => id,
            (None, Kept::Argument(index)) => finals[*index],
            (None, Kept::Result(_)) => unreachable!("results that are kept have lists"),
        });
    }
    let found = sketch.call_function(&part.backward, &given)?;
    for (&index, &dy) in seeds.iter().zip(dys) {
        results.push(match part.gradients[index] {
            // What the body neither uses nor gives on has no gradient before it.
            None => zeros(&mut sketch, dy)?,
            place => dense_or_zeros(&mut sketch, place, &found, finals[index])?,
        });
    }
    for (&index, &sum) in variables.iter().zip(sums) {
        let gradient = dense_or_zeros(&mut sketch, part.gradients[index], &found, finals[index])?;
        results.push(sketch.call("AddV2", Attrs::new(), &[sum, gradient])?[0]);
    }
    results.extend(shorter);
    results.extend(finals);
    let body = sketch.finish(library, unique(&format!("{}_loop", part.backward.name)), &results)?;
    Ok(([condition, body], seeds, variables))
}

//! Gradients of loops.

use super::{
    carried::has_custom_gradient,
    control::{
        Backward, BodyKind, Extra, Recorded, added_rows, dense_or_zeros, dtypes, result_types,
        retyped, with_functions, zeros,
    },
    extent::CopyBudget,
    function::{Differentiated, GradientIndex, Kept, differentiate_within, has_gradient, unique},
    reach::Reach,
    sketch::Sketch,
    walk::is_differentiable,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Emit, Emitter, ValueId},
    error::Result,
    function::{FunctionDef, FunctionLibrary},
    graph::Graph,
    host_tensor::HostTensor,
    op::OpDef,
    passthrough::is_invariant,
    shape::PartialShape,
    spec::ValueType,
};
use std::sync::Arc;

/// Kind of the values that each iteration appends to a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saved {
    /// A value that the gradient of the body takes.
    Kept(Kept),
    /// The variable before the iteration, of which only zeros are made.
    Before(usize),
    /// The shape of the variable before the iteration.
    ShapeBefore(usize),
}

/// A list that each iteration appends to.
struct Stack {
    saved: Saved,
    element: ValueType,
}

/// The list of shapes of a variable before each iteration, for gradients that are made in that
/// shape: zeros, and rows that are added up. None where the iteration does not change the shape.
fn shape_before(
    library: &FunctionLibrary,
    body: &FunctionDef,
    part: &Differentiated,
    index: usize,
) -> Option<Stack> {
    let ty = body.arg_type(index);
    let is_made = match part.gradients[index] {
        None => true,
        Some(GradientIndex::Slices(_)) => !is_invariant(library, body, index),
        Some(GradientIndex::Dense(_)) => false,
    };
    if !is_made || !has_gradient(ty.dtype) {
        return None;
    }
    if ty.dtype == DType::Variant {
        return Some(Stack { saved: Saved::Before(index), element: ty.clone() });
    }
    let element = ValueType::new(DType::I64, PartialShape::vector(ty.shape.rank()));
    (!ty.shape.is_known()).then_some(Stack { saved: Saved::ShapeBefore(index), element })
}

/// A loop that also appends what each iteration keeps to lists.
pub(super) fn a_loop(
    extent: &CopyBudget<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
    condition: &FunctionDef,
    body: &Arc<FunctionDef>,
) -> Result<Recorded> {
    let (library, n) = (extent.library(), inputs.len());
    let wanted: Vec<bool> = inputs.iter().map(|ty| is_differentiable(ty.dtype)).collect();
    let part = differentiate_within(extent, body, &wanted)?;
    let results = result_types(&part.forward)?;
    let mut stacks: Vec<Stack> = Vec::new();
    for &kept in &part.kept {
        let element = match kept {
            Kept::Argument(index) if is_invariant(library, body, index) => continue,
            Kept::Argument(index) => body.arg_type(index).clone(),
            Kept::Result(index) => results[index].clone(),
        };
        stacks.push(Stack { saved: Saved::Kept(kept), element });
    }
    stacks.extend((0..n).filter_map(|index| shape_before(library, body, &part, index)));
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
        kind: BodyKind::Loop { variables },
        reach: Reach::of(body)?.of_iterations(),
        has_custom: has_custom_gradient(library, body),
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
        let element = match stack.saved {
            Saved::Kept(Kept::Argument(index)) | Saved::Before(index) => xs[index],
            Saved::Kept(Kept::Result(index)) => found[index],
            Saved::ShapeBefore(index) => {
                let attrs = Attrs::new().with("out_type", DType::I64);
                sketch.call("Shape", attrs, &[xs[index]])?[0]
            }
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
        popped.push((stack.saved, found[1]));
    }
    let popped_for =
        |saved: Saved| popped.iter().find(|(other, _)| *other == saved).map(|(_, id)| *id);
    let mut given: Vec<ValueId> = part
        .seeds
        .iter()
        .map(|seed| dys[seeds.iter().position(|index| index == seed).expect("same rule")])
        .collect();
    for kept in &part.kept {
        given.push(match (popped_for(Saved::Kept(*kept)), kept) {
            (Some(id), _) => id,
            (None, Kept::Argument(index)) => finals[*index],
            (None, Kept::Result(_)) => unreachable!("results that are kept have lists"),
        });
    }
    let found = sketch.call_function(&part.backward, &given)?;
    for (&index, &dy) in seeds.iter().zip(dys) {
        let shape = popped_for(Saved::ShapeBefore(index));
        results.push(match (part.gradients[index], shape, popped_for(Saved::Before(index))) {
            (Some(GradientIndex::Dense(index)), ..) => found[index],
            (Some(GradientIndex::Slices(index)), Some(shape), _) => {
                let emitter = Emitter::new(&mut sketch);
                let rows = emitter.at(shape).slice(&[0], &[1]).reshape(&[]);
                emitter.finish()?;
                let rows = rows.id().expect("no error was noted");
                added_rows(&mut sketch, [found[index], found[index + 1]], rows)?
            }
            (place @ Some(_), None, _) => {
                dense_or_zeros(&mut sketch, place, &found, finals[index])?
            }
            // What the body neither uses nor returns has no gradient before it.
            (None, Some(shape), _) => {
                let zero = sketch.constant(HostTensor::scalar(0.0f64))?;
                let attrs = Attrs::new().with("DstT", sketch.ty(dy).dtype);
                let zero = sketch.call("Cast", attrs, &[zero])?[0];
                sketch.call("Fill", Attrs::new(), &[shape, zero])?[0]
            }
            (None, None, Some(before)) => zeros(&mut sketch, before)?,
            (None, None, None) => zeros(&mut sketch, dy)?,
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

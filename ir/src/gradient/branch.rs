//! Gradients of branches.

use super::{
    carried::has_custom_gradient,
    control::{
        Backward, BodyKind, Extra, Recorded, dense_or_zeros, dtypes, result_types, retyped,
        with_functions,
    },
    extent::CopyBudget,
    function::{Differentiated, Kept, differentiate_within, unique},
    reach::Reach,
    sketch::{Sketch, without_shape},
    walk::is_differentiable,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Emit, ValueId},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    graph::Graph,
    host_tensor::HostTensor,
    op::OpDef,
    shape::{PartialShape, Shape},
    spec::ValueType,
};
use std::sync::Arc;

/// A choice that also gives what the branch that ran keeps.
pub(super) fn branches(
    extent: &CopyBudget<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[ValueType],
    functions: &[Arc<FunctionDef>],
) -> Result<Recorded> {
    let library = extent.library();
    let arguments = &inputs[1..];
    let wanted: Vec<bool> = arguments.iter().map(|ty| is_differentiable(ty.dtype)).collect();
    let parts: Vec<Differentiated> = functions
        .iter()
        .map(|def| differentiate_within(extent, def, &wanted))
        .collect::<Result<_>>()?;
    let n_results = functions[0].results.len();
    let types: Vec<Vec<ValueType>> =
        parts.iter().map(|part| result_types(&part.forward)).collect::<Result<_>>()?;
    let kept: Vec<Vec<ValueType>> = types.iter().map(|types| types[n_results..].to_vec()).collect();
    let seeds = parts[0].seeds.clone();
    let with_any: Vec<usize> = (0..arguments.len())
        .filter(|&index| parts.iter().any(|part| part.gradients[index].is_some()))
        .collect();
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for (number, part) in parts.iter().enumerate() {
        forward.push(filled(library, &part.forward, n_results, number, &kept)?);
        let mut sketch = Sketch::on(Graph::new());
        let dys = seeds.iter().map(|&seed| sketch.argument(without_shape(&types[number][seed])));
        let mut given: Vec<ValueId> = dys.collect::<Result<_>>()?;
        let xs: Vec<ValueId> =
            arguments.iter().map(|ty| sketch.argument(ty.clone())).collect::<Result<_>>()?;
        let ys: Vec<ValueId> = types[number][..n_results]
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
    let mut outputs = dtypes(&types[0][..n_results]);
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
    let attrs = retyped(op, attrs, &taken, &dtypes(&result_types(&backward[0])?));
    let reach = functions.iter().map(|def| Reach::of(def)).collect::<Result<Vec<_>>>()?;
    let reach = Reach::of_choice(reach);
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
        kind: BodyKind::Branch,
        reach,
        has_custom: functions.iter().any(|def| has_custom_gradient(library, def)),
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

//! Fused regions as one node.

use crate::{
    error::Result,
    infer::{InputFacts, OpContext, infer, reduced_axes},
    op::*,
    registry,
    shape::{PartialShape, Shape},
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[OpDef {
    // With an anchor: its first inputs are those of the op that `anchor` names, with that op's
    // attributes. The node's expression, the epilogue, is put on each element of the anchor's only
    // output, which is input 0 of the expression; the others are the inputs that follow.
    //
    // Without an anchor: the node's expression over all inputs, whose elements are those of the shape
    // that all inputs broadcast to. Reductions in the expression go over `axes` of that shape. With
    // `reduces` the expression has one value for all elements along those axes, and the result has
    // size 1 there, or no such dimensions without `keep_dims`.
    name: "_Region",
    summary: "Computes an op and the scalar expression of what comes before and after it.",
    inputs: &[args_list("inputs", "Tin")],
    outputs: &[arg("y", "T")],
    attrs: &[
        types("Tin").at_least(1),
        any_ty("T"),
        func("anchor").or(AttrDefault::Func),
        ints_or("axes", &[]),
        flag("reduces", false),
        flag("keep_dims", true),
    ],
    infer: region,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
}];

fn region(context: &mut OpContext<'_>) -> Result<()> {
    let anchor = context.attrs.func("anchor")?;
    if !anchor.name.is_empty() {
        return anchored(context);
    }
    let mut space = context.known(0)?;
    for index in 1..context.n_inputs() {
        space = space.broadcast(&context.known(index)?)?;
    }
    let reduced = reduced_axes(context.attrs.ints("axes")?, space.rank())?;
    let (reduces, keep) = (context.attrs.bool("reduces")?, context.attrs.bool("keep_dims")?);
    let dims =
        space.iter().zip(&reduced).filter_map(|(&size, &reduced)| match reduces && reduced {
            false => Some(Some(size)),
            true => keep.then_some(Some(1)),
        });
    context.set(0, PartialShape::ranked(dims));
    Ok(())
}

/// The shape of the anchor's output, to which the other inputs broadcast.
fn anchored(context: &mut OpContext<'_>) -> Result<()> {
    let anchor = context.attrs.func("anchor")?;
    let wrong = |what: &'static str| context.wrong_attr("anchor", what, &anchor.name);
    let op = registry::find(&anchor.name).ok_or_else(|| wrong("the name of an op"))?;
    let n = op.input_dtypes(&anchor.attrs)?.len();
    if n > context.n_inputs() {
        return Err(wrong("an op of no more inputs"));
    }
    let inputs: SmallVec<[InputFacts<'_>; 4]> = (0..n).map(|index| *context.input(index)).collect();
    let outputs = infer(op, &anchor.attrs, &inputs)?;
    let [output] = &outputs[..] else { return Err(wrong("an op of one output")) };
    let shape: Shape = output.shape.known().ok_or_else(|| wrong("an op of known shape"))?;
    for index in n..context.n_inputs() {
        let own = context.known(index)?;
        if own.broadcast(&shape).ok().as_ref() != Some(&shape) {
            return Err(context.wrong(index, format!("one that broadcasts to {shape}"), own));
        }
    }
    context.set(0, &shape);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::{Attrs, NameAttrList},
        dtype::DType,
        spec::ValueType,
    };

    fn shape_of(attrs: &Attrs, inputs: &[&[usize]]) -> Result<PartialShape> {
        let op = registry::find("_Region").unwrap();
        let dtypes = vec![DType::F32; inputs.len()];
        let attrs = op.complete_attrs(attrs.clone().with("Tin", dtypes).with("T", DType::F32))?;
        let types: Vec<ValueType> = inputs
            .iter()
            .map(|dims| ValueType::new(DType::F32, Shape::new(dims.iter().copied()).unwrap()))
            .collect();
        let inputs: Vec<InputFacts<'_>> =
            types.iter().map(|ty| InputFacts { ty, value: None }).collect();
        Ok(infer(op, &attrs, &inputs)?[0].shape.clone())
    }

    #[test]
    fn a_region_with_an_anchor_has_the_shape_of_its_anchor() {
        let op = registry::find("MatMul").unwrap();
        let own = op.complete_attrs(Attrs::new().with("T", DType::F32)).unwrap();
        let anchor = NameAttrList::with_attrs("MatMul", own);
        let attrs = Attrs::new().with("anchor", anchor);
        let found = shape_of(&attrs, &[&[2, 3], &[3, 5], &[5]]).unwrap();
        assert_eq!(found.to_string(), "[2,5]");
        assert!(shape_of(&attrs, &[&[2, 3], &[3, 5], &[4]]).is_err(), "a bias of another size");
        assert!(shape_of(&attrs, &[&[2, 3]]).is_err(), "an input too few");
    }

    #[test]
    fn a_region_without_an_anchor_has_the_shape_of_its_elements() {
        let rows = Attrs::new().with("axes", vec![1i64]);
        let inputs: [&[usize]; 2] = [&[2, 3], &[3]];
        assert_eq!(shape_of(&rows, &inputs).unwrap().to_string(), "[2,3]");
        let reduces = rows.with("reduces", true);
        assert_eq!(shape_of(&reduces, &inputs).unwrap().to_string(), "[2,1]");
        let drops = reduces.with("keep_dims", false);
        assert_eq!(shape_of(&drops, &inputs).unwrap().to_string(), "[2]");
    }
}

//! Calls that read rows of tensors where they are, as one node.

use crate::{
    error::Result,
    facts::HostReason,
    infer::{InputFacts, OpContext, infer},
    op::*,
    registry,
    shape::Shape,
    spec::ValueType,
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[OpDef {
    // The node is a call of the op that `call` names, with that op's attributes and the node's expression. The last
    // input is an index. Those inputs whose numbers `rows` has are tensors, of which the op reads the slice at the
    // index along the first dimension, as a tensor of shape `shape`.
    name: "_RowCall",
    summary: "Calls an op with a row of a tensor in place of some of its inputs.",
    inputs: &[args_list("inputs", "Tin")],
    outputs: &[args_list("outputs", "Tout")],
    attrs: &[
        types("Tin").at_least(2),
        types("Tout").at_least(1),
        func("call"),
        ints("rows"),
        ints("shape"),
    ],
    infer: row_call,
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
}];

fn row_call(context: &mut OpContext<'_>) -> Result<()> {
    let call = context.attrs.func("call")?;
    let unknown = || context.wrong_attr("call", "the name of an op", &call.name);
    let op = registry::find(&call.name).ok_or_else(unknown)?;
    let (row, rows) = row_shape(context)?;
    let last = context.n_inputs() - 1;
    if context.known(last)?.num_elements() != 1 {
        return Err(context.wrong(last, "a single index", context.shape(last)));
    }
    let types: SmallVec<[Option<ValueType>; 4]> = (0..last)
        .map(|input| {
            let is_row = rows.contains(&input);
            is_row.then(|| ValueType::new(context.input(input).ty.dtype, row.clone()))
        })
        .collect();
    let facts: SmallVec<[InputFacts<'_>; 4]> = types
        .iter()
        .enumerate()
        .map(|(input, ty)| match ty {
            Some(ty) => InputFacts { ty, value: None },
            None => *context.input(input),
        })
        .collect();
    for (output, ty) in infer(op, &call.attrs, &facts)?.into_iter().enumerate() {
        context.set(output, ty.shape);
    }
    Ok(())
}

/// The shape of the rows of a `_RowCall`, and the inputs that they are of.
///
/// # Errors
///
/// [`Error::Argument`](crate::Error::Argument) where `shape` is none of a tensor with elements, or an input in `rows`
/// does not have such rows.
pub fn row_shape(context: &OpContext<'_>) -> Result<(Shape, SmallVec<[usize; 4]>)> {
    let (shape, rows) = (context.attrs.ints("shape")?, context.attrs.ints("rows")?);
    let dims: Option<Vec<usize>> = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let row = dims.and_then(|dims| Shape::new(dims).ok()).filter(|row| row.num_elements() > 0);
    let wrong = |name, what: &'static str| {
        let found = if name == "shape" { shape } else { rows };
        context.wrong_attr(name, what, format!("{found:?}"))
    };
    let row = row.ok_or_else(|| wrong("shape", "the shape of a tensor with elements"))?;
    let mut inputs: SmallVec<[usize; 4]> = SmallVec::new();
    for &input in rows {
        let input = usize::try_from(input).ok().filter(|&input| input + 1 < context.n_inputs());
        let input = input.ok_or_else(|| wrong("rows", "inputs before the last"))?;
        let whole = context.known(input)?;
        let elements: Option<usize> = whole.get(1..).map(|dims| dims.iter().product());
        if elements != Some(row.num_elements()) {
            return Err(context.wrong(input, format!("of rows of {row}"), &whole));
        }
        inputs.push(input);
    }
    Ok((row, inputs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::{Attrs, NameAttrList},
        dtype::DType,
    };

    fn shapes(rows: &[i64], shape: &[i64], inputs: [&[usize]; 3]) -> Option<String> {
        let op = registry::find("_RowCall").unwrap();
        let own = registry::find("AddV2").unwrap();
        let own = own.complete_attrs(Attrs::new().with("T", DType::F32)).unwrap();
        let attrs = Attrs::new()
            .with("Tin", vec![DType::F32, DType::F32, DType::I32])
            .with("Tout", vec![DType::F32])
            .with("call", NameAttrList::with_attrs("AddV2", own))
            .with("rows", rows.to_vec())
            .with("shape", shape.to_vec());
        let attrs = op.complete_attrs(attrs).unwrap();
        let dtypes = [DType::F32, DType::F32, DType::I32];
        let types: Vec<ValueType> = dtypes
            .into_iter()
            .zip(inputs)
            .map(|(dtype, dims)| ValueType::new(dtype, Shape::new(dims.iter().copied()).unwrap()))
            .collect();
        let facts: Vec<InputFacts<'_>> =
            types.iter().map(|ty| InputFacts { ty, value: None }).collect();
        Some(infer(op, &attrs, &facts).ok()?[0].shape.to_string())
    }

    #[test]
    fn results_have_the_shape_of_a_call_with_rows() {
        let shape = |dims: &str| Some(dims.to_string());
        assert_eq!(shapes(&[1], &[3], [&[2, 3], &[9, 3], &[]]), shape("[2,3]"));
        assert_eq!(shapes(&[0], &[1, 3], [&[9, 3], &[3], &[1]]), shape("[1,3]"));
        assert_eq!(shapes(&[0, 1], &[6], [&[9, 2, 3], &[4, 6], &[]]), shape("[6]"));
        assert_eq!(shapes(&[1], &[3], [&[2, 3], &[9, 4], &[]]), None);
        assert_eq!(shapes(&[1], &[3], [&[2, 3], &[3], &[]]), None);
        assert_eq!(shapes(&[2], &[3], [&[2, 3], &[9, 3], &[]]), None);
        assert_eq!(shapes(&[1], &[3], [&[2, 3], &[9, 3], &[2]]), None);
    }
}

//! Several elementwise results, of windows of tensors, as one node.

use crate::{
    error::Result,
    facts::HostReason,
    infer::OpContext,
    op::*,
    shape::Shape,
    view::{StridedView, ViewDim},
};

pub(super) static OPS: &[OpDef] = &[OpDef {
    // The node's expression has a result for each output, its root for output 0. All have `shape`. The
    // elements of input `i` at which it is computed are a window of the input, of which `views` has `1 + rank`
    // numbers: the first element, and the distance of elements along each axis, 0 where all read the same.
    name: "_FusedExpressions",
    summary: "Computes the scalar expressions that the node holds, of windows of its inputs.",
    inputs: &[args_list("x", "Tin")],
    outputs: &[args_list("y", "Tout")],
    attrs: &[types("Tin").at_least(1), types("Tout").at_least(1), ints("shape"), ints("views")],
    infer: |context| {
        let (shape, _) = windows(context)?;
        for output in 0..context.attrs.types("Tout")?.len() {
            context.set(output, &shape);
        }
        Ok(())
    },
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
}];

/// The shape of the results of a `_FusedExpressions` call, and the window of each input, with an axis for each
/// of that shape.
///
/// # Errors
///
/// [`Error::Argument`](crate::Error::Argument) where `shape` is none of a tensor, and where `views` has
/// another number of numbers than windows have, or elements that an input does not have.
pub fn windows(context: &OpContext<'_>) -> Result<(Shape, Vec<StridedView>)> {
    let (shape, views) = (context.attrs.ints("shape")?, context.attrs.ints("views")?);
    let wrong = |name, what: &'static str| {
        let found = if name == "shape" { shape } else { views };
        context.wrong_attr(name, what, format!("{found:?}"))
    };
    let dims: Option<Vec<usize>> = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let known = dims.and_then(|dims| Shape::new(dims).ok());
    let known = known.filter(|shape| shape.num_elements() > 0);
    let known = known.ok_or_else(|| wrong("shape", "the shape of a tensor with elements"))?;
    let width = 1 + known.rank();
    let rows: Vec<&[i64]> = views.chunks(width).collect();
    let is_complete = rows.len() == context.n_inputs() && views.len() == rows.len() * width;
    if !is_complete {
        return Err(wrong("views", "a window for each input"));
    }
    let mut windows = Vec::with_capacity(rows.len());
    for (input, row) in rows.into_iter().enumerate() {
        let window = window(row, &known, context.known(input)?.num_elements());
        windows.push(window.ok_or_else(|| wrong("views", "windows of the inputs"))?);
    }
    Ok((known, windows))
}

/// A window of so many elements.
fn window(row: &[i64], shape: &Shape, elements: usize) -> Option<StridedView> {
    let (&offset, strides) = row.split_first()?;
    let mut last = u64::try_from(offset).ok()?;
    let mut dims = smallvec::SmallVec::new();
    for (&size, &stride) in shape.iter().zip(strides) {
        let reach = u64::try_from(stride).ok()?.checked_mul(size as u64 - 1)?;
        last = last.checked_add(reach)?;
        dims.push(ViewDim { size, stride: isize::try_from(stride).ok()? });
    }
    let offset = isize::try_from(offset).ok()?;
    (last < elements as u64).then_some(StridedView { offset, dims })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::Attrs,
        dtype::DType,
        infer::{InputFacts, infer},
        registry,
        spec::ValueType,
    };

    #[test]
    fn windows_are_of_elements_that_inputs_have() {
        let op = registry::find("_FusedExpressions").unwrap();
        let of = |shape: &[i64], views: &[i64]| {
            let attrs = Attrs::new()
                .with("Tin", vec![DType::F32])
                .with("Tout", vec![DType::F32; 2])
                .with("shape", shape.to_vec())
                .with("views", views.to_vec());
            let attrs = op.complete_attrs(attrs)?;
            let ty = ValueType::new(DType::F32, &Shape::new([4, 6])?);
            infer(op, &attrs, &[InputFacts { ty: &ty, value: None }])
        };
        let found = of(&[4, 2], &[4, 6, 1]).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].shape.to_string(), "[4,2]");
        let wrong: [(&[i64], &[i64]); 7] = [
            (&[4, 2], &[5, 6, 1]),
            (&[4, 2], &[-1, 6, 1]),
            (&[4, 2], &[0, i64::MAX, 1]),
            (&[4, 2], &[0, 6]),
            (&[4, 2], &[0, 6, 1, 0]),
            (&[4, 0], &[0, 6, 1]),
            (&[-4, 2], &[0, 6, 1]),
        ];
        for (shape, views) in wrong {
            assert!(of(shape, views).is_err(), "{shape:?} {views:?}");
        }
    }
}

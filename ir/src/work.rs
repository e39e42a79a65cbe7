//! Work of products: how many multiplications, each with an addition, calls make.

use crate::{infer::OpContext, shape::PartialShape};

/// The product of sizes.
pub(crate) fn product(sizes: impl IntoIterator<Item = usize>) -> u64 {
    sizes.into_iter().fold(1, |product, size| product.saturating_mul(size as u64))
}

/// Those of matmuls, alone or in batches: each element of the result sums over a row of the left operand.
pub(crate) fn matmul(context: &OpContext<'_>) -> Option<u64> {
    let (left, out) = (context.shape(0).known()?, context.output(0).known()?);
    let [transposed, _] = context.op.matmul.unwrap_or(["adj_x", "adj_y"]);
    let axis = if context.attrs.bool(transposed).ok()? { 2 } else { 1 };
    let depth = left.get(left.rank().checked_sub(axis)?)?;
    Some(product(out.iter().copied().chain([*depth])))
}

/// Those of windows: each element of `windows`, the result of a convolution or the gradient of it, takes part with
/// all of a filter but its last `n_channels` dimensions.
pub(crate) fn windows(
    windows: &PartialShape,
    filter: &PartialShape,
    n_channels: usize,
) -> Option<u64> {
    let (windows, filter) = (windows.known()?, filter.known()?);
    let offsets = &filter[..filter.rank().checked_sub(n_channels)?];
    Some(product(windows.iter().chain(offsets).copied()))
}

#[cfg(test)]
mod tests {
    use crate::{
        attr::Attrs,
        dtype::DType,
        host_tensor::HostTensor,
        infer::{InputFacts, OpContext},
        registry,
        shape::Shape,
        spec::ValueType,
    };

    /// The multiplications of a call on inputs of these shapes; input `known.0` has these elements.
    fn count(
        op: &str,
        attrs: Attrs,
        dims: &[&[usize]],
        known: Option<(usize, &[i32])>,
    ) -> Option<u64> {
        let op = registry::find(op).unwrap();
        let attrs = op.complete_attrs(attrs.with("T", DType::F32)).unwrap();
        let value = known.map(|(_, sizes)| HostTensor::vector(sizes).unwrap());
        let is_known = |index: usize| known.is_some_and(|(input, _)| input == index);
        let ty = |(index, dims): (usize, &&[usize])| {
            let dtype = if is_known(index) { DType::I32 } else { DType::F32 };
            ValueType::new(dtype, Shape::new(dims.iter().copied()).unwrap())
        };
        let types: Vec<ValueType> = dims.iter().enumerate().map(ty).collect();
        let inputs: Vec<InputFacts<'_>> = types
            .iter()
            .enumerate()
            .map(|(index, ty)| InputFacts { ty, value: value.as_ref().filter(|_| is_known(index)) })
            .collect();
        let mut context = OpContext::new(op, &attrs, &inputs).unwrap();
        context.infer().unwrap();
        (op.multiply_adds.unwrap())(&context)
    }

    #[test]
    fn products_are_counted() {
        let transposed = Attrs::new().with("transpose_a", true);
        assert_eq!(count("MatMul", Attrs::new(), &[&[2, 3], &[3, 5]], None), Some(30));
        assert_eq!(count("MatMul", transposed, &[&[3, 2], &[3, 5]], None), Some(30));
        let equation = |text: &str| Attrs::new().with("equation", text).with("N", 2i64);
        let einsum = |text, dims: [&[usize]; 2]| count("Einsum", equation(text), &dims, None);
        assert_eq!(einsum("abc,cd->abd", [&[2, 3, 5], &[5, 7]]), Some(210));
        assert_eq!(einsum("...ab,bc->...c", [&[4, 2, 3], &[3, 5]]), Some(120));
        let batches = Attrs::new().with("adj_x", true);
        assert_eq!(count("BatchMatMulV2", batches, &[&[7, 3, 2], &[3, 5]], None), Some(210));
    }

    #[test]
    fn a_convolution_and_its_gradients_have_as_many() {
        let attrs = || Attrs::new().with("strides", vec![1i64, 2, 2, 1]).with("padding", "SAME");
        let (image, filter, out): (&[usize], &[usize], &[usize]) =
            (&[2, 8, 8, 4], &[3, 3, 4, 6], &[2, 4, 4, 6]);
        let expected = Some(2 * 4 * 4 * 6 * 3 * 3 * 4);
        assert_eq!(count("Conv2D", attrs(), &[image, filter], None), expected);
        let sizes = [2, 8, 8, 4];
        let found = count("Conv2DBackpropInput", attrs(), &[&[4], filter, out], Some((0, &sizes)));
        assert_eq!(found, expected);
        let sizes = [3, 3, 4, 6];
        let found = count("Conv2DBackpropFilter", attrs(), &[image, &[4], out], Some((1, &sizes)));
        assert_eq!(found, expected);
        let found = count("DepthwiseConv2dNative", attrs(), &[image, &[3, 3, 4, 2]], None);
        assert_eq!(found, Some(2 * 4 * 4 * 8 * 9));
    }

    #[test]
    fn attention_multiplies_twice() {
        let attrs = Attrs::new().with("Tothers", Vec::<DType>::new());
        let found = count("_FusedAttention", attrs, &[&[2, 3, 4], &[2, 5, 4], &[2, 5, 6]], None);
        assert_eq!(found, Some(2 * 3 * 5 * (4 + 6)));
    }
}

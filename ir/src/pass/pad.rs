//! Zeros around an image: a convolution of a padded image becomes one that pads by itself.
//!
//! TensorFlow's optimiser for oneDNN does the same (`tensorflow/core/common_runtime/mkl_layout_pass.cc`,
//! `_MklPadWithConv2D`). Windows do not multiply by the zeros then: a weight that is infinite or not a
//! number does not spoil the windows whose taps with it lie in the padding.

use crate::{
    attr::AttrValue,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::OpDef,
    ops::names,
};

/// Lets convolutions pad by themselves where constants say how much. A padded image with other
/// users stays for these.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn pad_in_convolutions(graph: &mut Graph) -> Result<()> {
    let ids: Vec<NodeId> = graph.ids().collect();
    for id in ids {
        let Some((image, paddings)) = padded(graph, &graph[id]) else { continue };
        let mut inputs = graph[id].inputs().to_vec();
        inputs[0] = image;
        let controls = graph[id].controls().to_vec();
        let node = graph.node_mut(id);
        let mut attrs = (**node.attrs).clone();
        attrs.set("padding", "EXPLICIT");
        attrs.set("explicit_paddings", AttrValue::from(paddings));
        *node.attrs = attrs.into();
        graph.connect(id, inputs, controls)?;
    }
    Ok(())
}

/// The image that a convolution reads padded, and the paddings before and after each dimension.
fn padded(graph: &Graph, node: &NodeDef) -> Option<(Outlet, Vec<i64>)> {
    let text = |name: &str| node.attrs.string(name).ok();
    let fits = node.op.def().is_some_and(OpDef::is_convolution_of_images)
        && text("padding")? == "VALID"
        && text("data_format")? == "NHWC";
    let pad = &graph[node.inputs().first()?.node];
    if !fits || node.device != pad.device || pad.op.name() != names::PAD {
        return None;
    }
    let &[image, paddings] = pad.inputs() else { return None };
    let paddings = graph[paddings.node].constant()?.to_i64s().ok()?;
    match paddings[..] {
        [0, 0, top, bottom, left, right, 0, 0] => {
            let is_padding = [top, bottom, left, right].iter().all(|&size| size >= 0);
            is_padding.then_some((image, paddings))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::Attrs, build::GraphBuilder, dtype::DType, host_tensor::HostTensor, shape::Shape,
        spec::ValueType,
    };

    /// Padding, paddings and input of a convolution of a padded image, after the pass.
    fn after(paddings: [i32; 8], padding: &str, op: &str) -> (String, Vec<i64>, String) {
        let mut b = GraphBuilder::new();
        let arg = |b: &mut GraphBuilder, name: &str, dims: [usize; 4]| {
            b.arg(name, ValueType::new(DType::F32, Shape::new(dims).unwrap())).unwrap()
        };
        let (x, filter) = (arg(&mut b, "x", [2, 9, 9, 3]), arg(&mut b, "filter", [3, 3, 3, 1]));
        let paddings = HostTensor::from_slice(Shape::new([4, 2]).unwrap(), &paddings).unwrap();
        let paddings = b.constant("paddings", paddings).unwrap();
        let padded = b.call_with("Pad", "pad", Attrs::new(), &[x, paddings]).unwrap()[0];
        let strides = AttrValue::from(vec![1i64, 2, 2, 1]);
        let attrs = Attrs::new().with("strides", strides).with("padding", padding);
        let result = b.call_with(op, "result", attrs, &[padded, filter]).unwrap()[0];
        let mut function = b.finish_function("f", &[("result", result)]);
        pad_in_convolutions(&mut function.graph).unwrap();
        let node = &function.graph[result.node];
        let name = function.graph[node.inputs()[0].node].name.to_string();
        let paddings = node.attrs.ints("explicit_paddings").unwrap().to_vec();
        (node.attrs.string("padding").unwrap().to_string(), paddings, name)
    }

    #[test]
    fn convolutions_pad_by_themselves() {
        for op in ["Conv2D", "DepthwiseConv2dNative"] {
            let (padding, paddings, input) = after([0, 0, 0, 1, 2, 1, 0, 0], "VALID", op);
            assert_eq!((&*padding, &*input), ("EXPLICIT", "x"));
            assert_eq!(paddings, [0, 0, 0, 1, 2, 1, 0, 0]);
        }
    }

    #[test]
    fn other_paddings_stay() {
        let untouched = |paddings, padding, op| {
            let (after, explicit, input) = after(paddings, padding, op);
            assert_eq!((&*after, &*input, explicit.len()), (padding, "pad", 0));
        };
        untouched([0, 0, 0, 1, 0, 1, 0, 0], "SAME", "Conv2D");
        untouched([0, 1, 0, 1, 0, 1, 0, 0], "VALID", "Conv2D");
    }
}

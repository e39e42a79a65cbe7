//! Convolutions in as many groups as there are channels become depthwise convolutions.
//!
//! `Conv2D` whose filters have one channel in, over images of several channels, convolves each channel
//! by itself: its filters `[height, width, 1, channels · n]` lie in memory as those of
//! `DepthwiseConv2dNative`, `[height, width, channels, n]`, do. Programs made by Keras on JAX and
//! ConvNeXt have them.
//!
//! Calls on other devices than the host are left alone.

use super::{
    call::{add_call, add_sizes, call_types, record},
    rebuild::{Rebuilt, rebuild},
    specialize::Specialized,
};
use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, OpRef},
    ops::names,
};

/// Makes depthwise convolutions of those in as many groups as channels.
///
/// # Errors
///
/// None on a well-formed body.
pub fn depthwise(body: &mut Specialized) -> Result<()> {
    let graph = &body.graph;
    if !graph.ids().any(|id| filter_dims(graph, &graph[id]).is_some()) {
        return Ok(());
    }
    rebuild(body, |rebuilt, source, id, _| add(rebuilt, source, id))
}

fn add(rebuilt: &mut Rebuilt, source: &Graph, id: NodeId) -> Result<NodeId> {
    let node = rebuilt.node(&source[id]);
    let Some(dims) = filter_dims(source, &source[id]) else { return rebuilt.graph.add(node) };
    let (op, graph) = (record(names::DEPTHWISE_CONV_2D_NATIVE)?, &mut rebuilt.graph);
    let filter = format!("{}/filter", node.name);
    let sizes = add_sizes(graph, &filter, &dims)?;
    let filter =
        add_call(graph, &filter, names::RESHAPE, Attrs::new(), &[node.inputs()[1], sizes])?;
    let inputs = [node.inputs()[0], filter];
    let kept = ["T", "strides", "padding", "explicit_paddings", "data_format", "dilations"];
    let mut attrs = Attrs::new();
    for (name, value) in kept.iter().filter_map(|&name| Some((name, node.attrs.get(name)?))) {
        attrs.set(name, AttrValue::clone(value));
    }
    let (attrs, types) = call_types(graph, op, attrs, &inputs)?;
    let mut node = node.with_inputs(inputs).with_outputs(types);
    (node.op, node.attrs) = (OpRef::Known(op), attrs.into());
    graph.add(node)
}

/// The dimensions of the filters of a depthwise convolution, if a node is one by another name.
fn filter_dims(graph: &Graph, node: &NodeDef) -> Option<[usize; 4]> {
    let op = node.op.def()?;
    if op.name != names::CONV_2D || !node.device.is_empty() {
        return None;
    }
    let is_float = node.attrs.dtype("T").ok()? != DType::I32;
    let &[image, filter] = node.inputs() else { return None };
    let (image, filter) = (graph.ty(image)?.shape.known()?, graph.ty(filter)?.shape.known()?);
    let axis = if node.attrs.string("data_format").ok()? == "NHWC" { 3 } else { 1 };
    let (&channels, &[height, width, 1, filters]) = (image.get(axis)?, &*filter) else {
        return None;
    };
    let equal_strides = {
        let strides = node.attrs.ints("strides").ok()?;
        let spatial = if axis == 3 { strides.get(1..3)? } else { strides.get(2..4)? };
        spatial[0] == spatial[1]
    };
    let is_grouped = channels > 1 && filters % channels == 0 && filters > 0;
    (is_float && equal_strides && is_grouped).then(|| [height, width, channels, filters / channels])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host_tensor::HostTensor,
        pass::{
            test_bodies::{function, specialized},
            verify::verify,
        },
        shape::Shape,
        spec::ValueType,
    };

    /// The op of a convolution of images of 6 channels, and the dimensions of its filters.
    fn op_of(dtype: DType, filter: [usize; 4], strides: [i64; 4]) -> (String, Vec<usize>) {
        let images = ValueType::new(dtype, Shape::new([2, 8, 8, 6]).unwrap());
        let types = [images];
        let def = function(&types, |b, args| {
            let filter = HostTensor::zeros(dtype, Shape::new(filter)?)?;
            let filter = b.constant("filter", filter)?;
            let attrs = Attrs::new().with("strides", strides.to_vec()).with("padding", "SAME");
            Ok(vec![b.call_with("Conv2D", "conv", attrs, &[args[0], filter])?[0]])
        });
        let mut body = specialized(&def, &types);
        let before = body.graph.ty(body.results[0]).unwrap().shape.clone();
        depthwise(&mut body).unwrap();
        verify(&body, "depthwise convolutions").unwrap();
        let graph = &body.graph;
        assert_eq!(graph.ty(body.results[0]).unwrap().shape, before);
        let node = &graph[body.results[0].node];
        let filter = graph.ty(node.inputs()[1]).unwrap().shape.known().unwrap();
        (node.op.name().to_string(), filter.to_vec())
    }

    #[test]
    fn convolutions_of_each_channel_are_depthwise() {
        let depthwise = |dims: [usize; 4]| ("DepthwiseConv2dNative".to_string(), dims.to_vec());
        let dense = |dims: [usize; 4]| ("Conv2D".to_string(), dims.to_vec());
        let one = [1, 1, 1, 1];
        assert_eq!(op_of(DType::F32, [3, 5, 1, 6], one), depthwise([3, 5, 6, 1]));
        assert_eq!(op_of(DType::F64, [3, 3, 1, 12], [1, 2, 2, 1]), depthwise([3, 3, 6, 2]));
        assert_eq!(op_of(DType::F32, [3, 3, 2, 6], one), dense([3, 3, 2, 6]));
        assert_eq!(op_of(DType::F32, [3, 3, 6, 6], one), dense([3, 3, 6, 6]));
        assert_eq!(op_of(DType::F32, [3, 3, 1, 6], [1, 1, 2, 1]), dense([3, 3, 1, 6]));
        assert_eq!(op_of(DType::I32, [3, 3, 1, 6], one), dense([3, 3, 1, 6]));
    }
}

//! Strides of pointwise convolutions move up to where less is computed for it.
//!
//! A convolution of 1×1 windows with strides reads a part of its input only. Where all users of a value
//! read the same part, as the convolutions that begin a stage of a residual network do, only that is
//! computed: the elementwise calls before work on it, and the convolutions before those get the strides.
//! The same is known of other compilers (OpenVINO's `StridesOptimization`).
//!
//! Images have their channels last, and calls are on the host.

use super::{
    call::{add_call, add_sizes, call_types},
    execution::cannot_fail,
    prune::{live, prune_body},
    rebuild::{Rebuilt, rebuild},
    specialize::Specialized,
};
use crate::{
    attr::{AttrValue, Attrs},
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::Lowering,
    ops::names,
    window::{ImageLayout, Slide, convolution_steps},
};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Strides along both spatial dimensions.
type Strides = [usize; 2];

/// Every position.
const ALL: Strides = [1, 1];

const LAYOUT: ImageLayout = ImageLayout { spatial: 2, channels_last: true };

/// Computes of each value only the positions that are read, where that spares a convolution some.
///
/// # Errors
///
/// None on a well-formed body.
pub fn move_strides(body: &mut Specialized) -> Result<()> {
    let sampled = sampled_values(body);
    if sampled.is_empty() {
        return Ok(());
    }
    // Dead readers would read another shape than they were typed for.
    prune_body(body)?;
    let mut slices = HashMap::new();
    rebuild(body, |rebuilt, source, id, _| {
        Sampling { source, sampled: &sampled, slices: &mut slices, rebuilt }.add(id)
    })
}

/// The values of which only some positions are to be computed, and their distances.
fn sampled_values(body: &Specialized) -> FastMap<NodeId, Strides> {
    let (graph, live) = (&body.graph, live(body));
    let results: FastSet<NodeId> = body.results.iter().map(|result| result.node).collect();
    let ids: Vec<NodeId> = graph.ids().collect();
    let mut sampled: FastMap<NodeId, Strides> = FastMap::default();
    for &id in ids.iter().rev().filter(|id| live.contains(id) && !results.contains(id)) {
        if !can_be_sampled(graph, &graph[id]) {
            continue;
        }
        let mut reads =
            graph.data_consumers(id).filter(|user| live.contains(user)).flat_map(|user| {
                let strides = sampled.get(&user).copied().unwrap_or(ALL);
                let inputs = graph[user].inputs().iter().enumerate();
                let uses = inputs.filter(move |(_, input)| input.node == id);
                uses.map(move |(index, _)| read_strides(graph, &graph[user], index, strides))
            });
        let Some(first) = reads.next().filter(|&first| first != ALL) else { continue };
        if reads.all(|read| read == first) {
            sampled.insert(id, first);
        }
    }
    // Elementwise calls gain nothing if all that they read is there in full.
    for &id in &ids {
        let node = &graph[id];
        let is_profitable = slides(graph, node).is_some()
            || node.inputs().iter().any(|input| sampled.contains_key(&input.node));
        if !is_profitable {
            sampled.remove(&id);
        }
    }
    sampled
}

fn can_be_sampled(graph: &Graph, node: &NodeDef) -> bool {
    // Nothing of an image without positions is computed, so that nothing is spared.
    let is_image = node.outputs().len() == 1
        && node.outputs()[0]
            .shape
            .known()
            .is_some_and(|shape| shape.rank() == 4 && shape.num_elements() > 0);
    let samples_inputs = || {
        let mut inputs = 0..node.inputs().len();
        maps(graph, node)
            && inputs.all(|index| {
                is_of_image(graph, node, index) || is_alike_everywhere(graph, node, index)
            })
    };
    is_image && node.device.is_empty() && (slides(graph, node).is_some() || samples_inputs())
}

/// Whether a node computes each element from those at the same position.
fn maps(graph: &Graph, node: &NodeDef) -> bool {
    let is_elementwise =
        node.op.def().is_some_and(|op| matches!(op.lowering, Lowering::Elementwise(_)));
    is_elementwise && node.device.is_empty() && cannot_fail(graph, node)
}

/// The windows of a convolution of an image of known size.
fn slides(graph: &Graph, node: &NodeDef) -> Option<[Slide; 2]> {
    let op = node.op.def().filter(|_| node.device.is_empty())?;
    let is_nhwc = || node.attrs.string("data_format").is_ok_and(|format| format == "NHWC");
    if !op.is_convolution_of_images() || !is_nhwc() {
        return None;
    }
    let &[image, filter] = node.inputs() else { return None };
    let (image, filter) = (graph.ty(image)?.shape.known()?, graph.ty(filter)?.shape.known()?);
    let steps = convolution_steps(op.name, &node.attrs, LAYOUT).ok()?;
    let slide = |axis: usize| steps[axis].slide(*image.get(1 + axis)?, *filter.get(axis)?).ok();
    Some([slide(0)?, slide(1)?])
}

/// Whether windows are single positions of the input, and none is in the padding.
fn is_pointwise(slides: &[Slide; 2]) -> bool {
    slides.iter().all(|slide| {
        slide.size == 1 && slide.before == 0 && slide.output == slide.input.div_ceil(slide.stride)
    })
}

/// The distances of the positions of an input that a node reads, of whose own result such are computed.
fn read_strides(graph: &Graph, node: &NodeDef, input: usize, strides: Strides) -> Strides {
    match slides(graph, node) {
        Some(slides) if input == 0 && is_pointwise(&slides) => {
            [0, 1].map(|axis| slides[axis].stride * strides[axis])
        }
        Some(_) => ALL,
        None if maps(graph, node) && is_of_image(graph, node, input) => strides,
        None => ALL,
    }
}

/// Whether an input of an elementwise node has the positions of its result.
fn is_of_image(graph: &Graph, node: &NodeDef, input: usize) -> bool {
    let image = node.outputs()[0].shape.known();
    let input = node.inputs().get(input).and_then(|&input| graph.ty(input)?.shape.known());
    match (image.as_deref(), input.as_deref()) {
        (Some(&[_, rows, cols, _]), Some(&[_, own_rows, own_cols, _])) => {
            (rows, cols) == (own_rows, own_cols)
        }
        _ => false,
    }
}

/// Whether an input of an elementwise node has the same elements at all positions of its result.
fn is_alike_everywhere(graph: &Graph, node: &NodeDef, input: usize) -> bool {
    let shape = node.inputs().get(input).and_then(|&input| graph.ty(input)?.shape.known());
    shape.is_some_and(|shape| shape.iter().rev().skip(1).take(2).all(|&size| size == 1))
}

/// The body, and what is there again.
struct Sampling<'a> {
    source: &'a Graph,
    sampled: &'a FastMap<NodeId, Strides>,
    /// Parts of values that are computed in full.
    slices: &'a mut HashMap<(Outlet, Strides), Outlet>,
    rebuilt: &'a mut Rebuilt,
}

impl Sampling<'_> {
    fn add(&mut self, id: NodeId) -> Result<NodeId> {
        let node = &self.source[id];
        let own = self.sampled.get(&id).copied();
        let is_whole = |input: &Outlet| !self.sampled.contains_key(&input.node);
        let mut new = self.rebuilt.node(node);
        let Some(op) =
            node.op.def().filter(|_| own.is_some() || !node.inputs().iter().all(is_whole))
        else {
            return self.rebuilt.graph.add(new);
        };
        let mut inputs: SmallVec<[Outlet; 4]> = new.inputs().iter().copied().collect();
        for (index, &input) in node.inputs().iter().enumerate() {
            if let Some(strides) = own.filter(|_| !self.sampled.contains_key(&input.node))
                && maps(self.source, node)
                && is_of_image(self.source, node, index)
            {
                inputs[index] = self.slice(input, strides)?;
            }
        }
        let attrs = self.attrs(node, own.unwrap_or(ALL))?;
        let (attrs, types) = call_types(&self.rebuilt.graph, op, attrs, &inputs)?;
        new.attrs = attrs.into();
        self.rebuilt.graph.add(new.with_inputs(inputs).with_outputs(types))
    }

    /// The attributes of a node of whose result these positions are computed.
    fn attrs(&self, node: &NodeDef, strides: Strides) -> Result<Attrs> {
        let mut attrs = (*node.attrs).clone();
        let Some(slides) = slides(self.source, node) else { return Ok(attrs) };
        let (mut own, mut paddings) = ([1i64; 4], [0i64; 8]);
        if !self.sampled.contains_key(&node.inputs()[0].node) {
            for (axis, slide) in slides.iter().enumerate() {
                own[1 + axis] = (slide.stride * strides[axis]) as i64;
                let reach =
                    (slide.output - 1) * slide.stride + (slide.size - 1) * slide.dilation + 1;
                let before = slide.before.max(0) as usize;
                let after = reach.saturating_sub(slide.input + before);
                paddings[2 * (1 + axis)] = before as i64;
                paddings[2 * (1 + axis) + 1] = after as i64;
            }
        }
        attrs.set("strides", AttrValue::from(own.to_vec()));
        let (padding, paddings) = match paddings.iter().all(|&padding| padding == 0) {
            true => ("VALID", Vec::new()),
            false => ("EXPLICIT", paddings.to_vec()),
        };
        attrs.set("padding", padding);
        attrs.set("explicit_paddings", AttrValue::from(paddings));
        Ok(attrs)
    }

    /// The positions of a value that is computed in full.
    fn slice(&mut self, value: Outlet, strides: Strides) -> Result<Outlet> {
        if let Some(&slice) = self.slices.get(&(value, strides)) {
            return Ok(slice);
        }
        let name = format!("{}/part", self.source[value.node].name);
        let whole_value = self.rebuilt.outlet(value);
        let graph = &mut self.rebuilt.graph;
        let whole = add_sizes(graph, &name, &[0; 4])?;
        let [rows, cols] = strides;
        let steps = add_sizes(graph, &name, &[1, rows, cols, 1])?;
        let attrs = Attrs::new().with("begin_mask", 15i64).with("end_mask", 15i64);
        let inputs = [whole_value, whole, whole, steps];
        let slice = add_call(graph, &name, names::STRIDED_SLICE, attrs, &inputs)?;
        self.slices.insert((value, strides), slice);
        Ok(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        build::GraphBuilder,
        dtype::DType,
        host_tensor::HostTensor,
        pass::test_bodies::{function, specialized},
        shape::Shape,
        spec::ValueType,
    };

    fn images(dims: [usize; 4]) -> ValueType {
        ValueType::new(DType::F32, Shape::new(dims).unwrap())
    }

    fn conv(
        b: &mut GraphBuilder,
        name: &str,
        x: Outlet,
        size: usize,
        stride: i64,
    ) -> Result<Outlet> {
        let channels = b.graph().ty(x).and_then(|ty| ty.shape.known()).unwrap()[3];
        let shape = Shape::new([size, size, channels, 4])?;
        let filter =
            b.constant(&format!("{name}/filter"), HostTensor::zeros(DType::F32, shape)?)?;
        let strides = AttrValue::from(vec![1, stride, stride, 1]);
        let attrs = Attrs::new().with("strides", strides).with("padding", "SAME");
        Ok(b.call_with("Conv2D", name, attrs, &[x, filter])?[0])
    }

    type Build = fn(&mut GraphBuilder, Outlet) -> Result<Vec<Outlet>>;

    /// Strides and paddings of the convolutions after the pass, by name, and the number of slices.
    fn after(build: Build) -> (Vec<(String, i64, Vec<i64>)>, usize) {
        after_of([1, 9, 9, 4], build)
    }

    /// As [`after`], of images of another size.
    fn after_of(dims: [usize; 4], build: Build) -> (Vec<(String, i64, Vec<i64>)>, usize) {
        let types = [images(dims)];
        let def = function(&types, |b, args| build(b, args[0]));
        let mut body = specialized(&def, &types);
        move_strides(&mut body).unwrap();
        crate::pass::verify::verify(&body, "strides").unwrap();
        let of = |name: &str| {
            body.graph.iter().filter(|(_, node)| node.op.name() == name).collect::<Vec<_>>()
        };
        let convs = of("Conv2D").into_iter().map(|(_, node)| {
            let ints = |name: &str| node.attrs.ints(name).unwrap().to_vec();
            (node.name.to_string(), ints("strides")[1], ints("explicit_paddings"))
        });
        (convs.collect(), of("StridedSlice").len())
    }

    #[test]
    fn a_stage_computes_what_the_next_one_reads() {
        let (convs, slices) = after(|b, x| {
            let first = conv(b, "first", x, 3, 1)?;
            let second = conv(b, "second", first, 1, 1)?;
            let sum = b.call("AddV2", "sum", &[second, x])?[0];
            let stage = b.call("Relu", "stage", &[sum])?[0];
            Ok(vec![conv(b, "main", stage, 1, 2)?, conv(b, "shortcut", stage, 1, 2)?])
        });
        let padded = vec![0, 0, 1, 1, 1, 1, 0, 0];
        let expected = [("first", 2, padded), ("second", 1, vec![]), ("main", 1, vec![])];
        for (conv, (name, stride, paddings)) in convs.iter().zip(expected) {
            assert_eq!((&*conv.0, conv.1, &conv.2), (name, stride, &paddings));
        }
        assert_eq!((convs[3].1, slices), (1, 1), "the input of the stage is needed in full");
    }

    #[test]
    fn what_others_read_is_computed() {
        let strides = |build: Build| after(build).0.iter().map(|conv| conv.1).collect::<Vec<_>>();
        let other_distance: Build = |b, x| {
            let first = conv(b, "first", x, 3, 1)?;
            Ok(vec![conv(b, "a", first, 1, 2)?, conv(b, "b", first, 1, 3)?])
        };
        assert_eq!(strides(other_distance), [1, 2, 3]);
        let result: Build = |b, x| {
            let first = conv(b, "first", x, 3, 1)?;
            Ok(vec![conv(b, "a", first, 1, 2)?, first])
        };
        assert_eq!(strides(result), [1, 2]);
        let windows: Build = |b, x| {
            let first = conv(b, "first", x, 3, 1)?;
            Ok(vec![conv(b, "a", first, 3, 2)?])
        };
        assert_eq!(strides(windows), [1, 2]);
        let no_convolution: Build = |b, x| {
            let first = b.call("Relu", "first", &[x])?[0];
            Ok(vec![conv(b, "a", first, 1, 2)?])
        };
        assert_eq!((strides(no_convolution), after(no_convolution).1), (vec![2], 0));
    }

    /// Readers whose results are not needed do not keep a value whole, and go.
    #[test]
    fn dead_readers_go() {
        let (convs, slices) = after(|b, x| {
            let first = conv(b, "first", x, 3, 1)?;
            let dead = conv(b, "dead", first, 1, 1)?;
            b.call("Relu", "dead too", &[dead])?;
            Ok(vec![conv(b, "main", first, 1, 2)?])
        });
        let names: Vec<(&str, i64)> = convs.iter().map(|conv| (&*conv.0, conv.1)).collect();
        assert_eq!((names, slices), (vec![("first", 2), ("main", 1)], 0));
    }

    /// Values that differ from position to position, but are no images, are read whole.
    #[test]
    fn values_that_are_broadcast_over_rows_are_read_whole() {
        for dims in [&[9, 4][..], &[9, 9, 4], &[1, 9, 1, 4], &[1, 1, 9, 1]] {
            let shape = Shape::new(dims.iter().copied()).unwrap();
            let types = [images([1, 9, 9, 4]), ValueType::new(DType::F32, shape)];
            let def = function(&types, |b, args| {
                let first = conv(b, "first", args[0], 1, 1)?;
                let sum = b.call("AddV2", "sum", &[first, args[1]])?[0];
                Ok(vec![conv(b, "main", sum, 1, 2)?])
            });
            let mut body = specialized(&def, &types);
            move_strides(&mut body).unwrap();
            crate::pass::verify::verify(&body, "strides").unwrap();
        }
        let (convs, _) = after(|b, x| {
            let first = conv(b, "first", x, 1, 1)?;
            let bias = b.constant("bias", HostTensor::from_slice(Shape::new([4])?, &[1f32; 4])?)?;
            let sum = b.call("AddV2", "sum", &[first, bias])?[0];
            Ok(vec![conv(b, "main", sum, 1, 2)?])
        });
        assert_eq!(convs.iter().map(|conv| conv.1).collect::<Vec<_>>(), [2, 1]);
    }

    /// A window that is larger than its image has no result; with larger strides it must have none either.
    #[test]
    fn images_without_positions_stay_so() {
        let (convs, _) = after_of([1, 1, 1, 4], |b, x| {
            let filter = HostTensor::zeros(DType::F32, Shape::new([2, 2, 4, 4])?)?;
            let filter = b.constant("filter", filter)?;
            let strides = AttrValue::from(vec![1i64, 2, 2, 1]);
            let attrs = Attrs::new().with("strides", strides).with("padding", "VALID");
            let none = b.call_with("Conv2D", "none", attrs, &[x, filter])?[0];
            Ok(vec![conv(b, "next", none, 1, 2)?])
        });
        let strides: Vec<i64> = convs.iter().map(|conv| conv.1).collect();
        assert_eq!(strides, [2, 2]);
        assert!(convs.iter().all(|conv| conv.2.is_empty()), "{convs:?}");
    }
}

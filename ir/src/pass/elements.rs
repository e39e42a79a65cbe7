//! Elements of short integer tensors: what is known of each, where the tensor as a whole is not.
//!
//! An element is a constant, or an element of another tensor and a distance from it; and it is in a range. That
//! is enough to see that `clamp(i, 0, n - 4) + 4` is 4 more than where a window begins and not beyond its end:
//! such a window has a known size, wherever it is. JAX writes all slices of programs with symbolic sizes like
//! that. Elements are found from results to operands, a bounded number of nodes for each question.

use super::call::call_views;
use crate::{
    attr::Attrs,
    budget,
    dtype::DType,
    graph::{Graph, NodeDef, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    op::Lowering,
    ops::names,
    shape::Shape,
};
use smallvec::SmallVec;
use std::cell::Cell;

/// The nodes that a question may visit.
const VISITED_NODES: usize = 1 << 8;

/// The longest vectors that are looked at: no tensor of more dimensions is sliced.
const LONGEST: usize = 32;

/// An element of an integer tensor: a constant, or `base + offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Element {
    /// The tensor and the position of the element that this one is measured from; `None` for constants.
    base: Option<(Outlet, usize)>,
    offset: i64,
    /// The least and the greatest value it can have.
    range: (i64, i64),
}

impl Element {
    fn constant(value: i64) -> Element {
        Element { base: None, offset: value, range: (value, value) }
    }

    fn as_constant(self) -> Option<i64> {
        (self.range.0 == self.range.1).then_some(self.range.0)
    }

    /// The distance to an element that is measured from the same one.
    fn distance_to(self, other: Element) -> Option<i64> {
        match (self.as_constant(), other.as_constant()) {
            (Some(from), Some(to)) => to.checked_sub(from),
            _ if self.base.is_some() && self.base == other.base => {
                other.offset.checked_sub(self.offset)
            }
            _ => None,
        }
    }

    /// This element, farther from what it is measured from.
    fn moved(self, distance: i64) -> Option<Element> {
        let add = |x: i64| x.checked_add(distance);
        let range = (add(self.range.0)?, add(self.range.1)?);
        Some(Element { base: self.base, offset: add(self.offset)?, range })
    }
}

/// A slice whose size is known though its begin is not.
pub(super) struct Window {
    /// A vector of the index of the first element along each dimension, of `int32` or `int64`.
    pub begin: Outlet,
    /// The size of each dimension.
    pub size: Vec<i64>,
}

/// Elements of the tensors of a graph under construction.
pub(super) struct IndexElements<'a> {
    graph: &'a Graph,
    /// The values of outlets that are known as a whole.
    known: &'a FastMap<Outlet, HostTensor>,
    left: Cell<usize>,
}

impl<'a> IndexElements<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        known: &'a FastMap<Outlet, HostTensor>,
    ) -> IndexElements<'a> {
        IndexElements { graph, known, left: Cell::new(VISITED_NODES) }
    }

    /// The value of a short vector or scalar all of whose elements turn out to be known.
    pub(super) fn value(&self, outlet: Outlet) -> Option<HostTensor> {
        let ty = self.graph.ty(outlet)?;
        let shape = ty.shape.known().filter(|shape| shape.rank() < 2 && is_index(ty.dtype))?;
        let all = 0..shape.num_elements();
        if all.end > LONGEST {
            return None;
        }
        let values: Vec<i64> =
            all.map(|index| self.element(outlet, index)?.as_constant()).collect::<Option<_>>()?;
        index_vector(ty.dtype, &values)?.reshaped(shape).ok()
    }

    /// The window that a strided slice reads, if it is inside its input and of known size.
    pub(super) fn window(&self, attrs: &Attrs, inputs: &[Outlet]) -> Option<Window> {
        let &[input, begin, end, strides] = inputs else { return None };
        let masks =
            ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
        if masks.iter().any(|mask| !matches!(attrs.int(mask), Ok(0))) {
            return None;
        }
        let shape = self.graph.ty(input)?.shape.known()?;
        if !is_index(self.graph.ty(begin)?.dtype) {
            return None;
        }
        let (begins, ends) = (self.elements(begin)?, self.elements(end)?);
        let steps = self.elements(strides)?;
        if [&begins, &ends, &steps].iter().any(|entries| entries.len() != shape.rank()) {
            return None;
        }
        let mut size = Vec::with_capacity(shape.rank());
        for (axis, &n) in shape.iter().enumerate() {
            let length = begins[axis].distance_to(ends[axis])?;
            let is_inside =
                begins[axis].range.0 >= 0 && ends[axis].range.1 <= i64::try_from(n).ok()?;
            if length < 0 || !is_inside || steps[axis].as_constant() != Some(1) {
                return None;
            }
            size.push(length);
        }
        Some(Window { begin: self.source(begin, &begins), size })
    }

    /// The vector that `vector` was put together of, where that has the same elements; else `vector`.
    fn source(&self, vector: Outlet, elements: &[Element]) -> Outlet {
        let is_equal = |&source: &Outlet| {
            let ty = self.graph.ty(source);
            ty.is_some_and(|ty| is_index(ty.dtype) && ty.shape.rank() == Some(1))
                && self.elements(source).is_some_and(|found| found[..] == *elements)
        };
        let source = elements.iter().find_map(|element| element.base).map(|(source, _)| source);
        source.filter(is_equal).unwrap_or(vector)
    }

    /// All elements of a short vector or scalar.
    fn elements(&self, outlet: Outlet) -> Option<SmallVec<[Element; 4]>> {
        let n = self.graph.ty(outlet)?.shape.known()?.num_elements();
        let all = 0..n;
        if n > LONGEST {
            return None;
        }
        all.map(|index| self.element(outlet, index)).collect()
    }

    /// The knowledge about an element; `None` if the tensor is none of integers.
    fn element(&self, outlet: Outlet, index: usize) -> Option<Element> {
        let limits = limits(self.graph.ty(outlet)?.dtype)?;
        let unknown = Element { base: Some((outlet, index)), offset: 0, range: limits };
        let Some(left) = self.left.get().checked_sub(1) else { return Some(unknown) };
        self.left.set(left);
        budget::tick();
        if let Some(value) = self.known.get(&outlet) {
            return value.to_i64s().ok()?.get(index).copied().map(Element::constant);
        }
        let node = &self.graph[outlet.node];
        let found = self.computed(node, outlet, index, unknown).unwrap_or(unknown);
        let fits = found.range.0 >= limits.0 && found.range.1 <= limits.1;
        // Whatever does not fit its type has been wrapped around.
        Some(if fits { found } else { unknown })
    }

    /// An element of the result of a call, by its operands.
    fn computed(
        &self,
        node: &NodeDef,
        outlet: Outlet,
        index: usize,
        unknown: Element,
    ) -> Option<Element> {
        let (op, inputs) = (node.op.def()?, node.inputs());
        let n = self.graph.ty(outlet)?.shape.known()?.num_elements();
        // The element at this position of an operand that is broadcast to the shape of the result.
        let operand = |input: usize| {
            let input = *inputs.get(input)?;
            match self.graph.ty(input)?.shape.known()?.num_elements() {
                1 => self.element(input, 0),
                count if count == n => self.element(input, index),
                _ => None,
            }
        };
        match op.name {
            names::CAST => operand(0),
            names::ADD_V2 => {
                let (a, b) = (operand(0)?, operand(1)?);
                match (a.as_constant(), b.as_constant()) {
                    (_, Some(b)) => a.moved(b),
                    (Some(a), _) => b.moved(a),
                    _ => None,
                }
            }
            names::SUB => {
                let (a, b) = (operand(0)?, operand(1)?);
                match b.as_constant() {
                    Some(b) => a.moved(b.checked_neg()?),
                    None => b.distance_to(a).map(Element::constant),
                }
            }
            names::MINIMUM | names::MAXIMUM => {
                let (a, b) = (operand(0)?, operand(1)?);
                let (less, more) = if a.range.1 <= b.range.0 { (a, b) } else { (b, a) };
                let (is_ordered, is_minimum) =
                    (less.range.1 <= more.range.0, op.name == names::MINIMUM);
                let choose = if is_minimum { i64::min } else { i64::max };
                let range = (choose(a.range.0, b.range.0), choose(a.range.1, b.range.1));
                Some(match is_ordered {
                    true if is_minimum => less,
                    true => more,
                    false => Element { range, ..unknown },
                })
            }
            names::SHAPE => Some(match self.graph.ty(inputs[0])?.shape.dim(index as isize) {
                Some(size) => Element::constant(i64::try_from(size).ok()?),
                None => Element { range: (0, unknown.range.1), ..unknown },
            }),
            names::PACK => self.element(*inputs.get(index)?, 0).filter(|_| n == inputs.len()),
            names::CONCAT_V2 => {
                let (_, parts) = inputs.split_last()?;
                self.part(parts, index)
            }
            names::GATHER_V2 => {
                let &[params, indices, _] = inputs else { return None };
                let params_shape = self.graph.ty(params)?.shape.known()?;
                if params_shape.rank() != 1 || !matches!(node.attrs.int("batch_dims"), Ok(0)) {
                    return None;
                }
                let at = usize::try_from(self.element(indices, index)?.as_constant()?).ok()?;
                (at < params_shape[0]).then(|| self.element(params, at))?
            }
            _ => match op.lowering {
                Lowering::Alias(_) => {
                    let input = self.graph.ty(*inputs.first()?)?.dtype;
                    (input == self.graph.ty(outlet)?.dtype).then(|| operand(0))?
                }
                Lowering::View(_) => {
                    let views = call_views(self.graph, node)?;
                    let view = views.get(outlet.index as usize)?;
                    let dims: SmallVec<[usize; 6]> = view.dims.iter().map(|dim| dim.size).collect();
                    let strides = Shape::new(dims).ok()?.strides();
                    let mut at = view.offset;
                    for (dim, &step) in view.dims.iter().zip(&strides) {
                        at += (index / step % dim.size.max(1)) as isize * dim.stride;
                    }
                    self.element(*inputs.first()?, usize::try_from(at).ok()?)
                }
                _ => None,
            },
        }
    }

    /// An element of vectors one after the other.
    fn part(&self, parts: &[Outlet], mut index: usize) -> Option<Element> {
        for &part in parts {
            let shape = self.graph.ty(part)?.shape.known().filter(|shape| shape.rank() == 1)?;
            match index.checked_sub(shape[0]) {
                None => return self.element(part, index),
                Some(rest) => index = rest,
            }
        }
        None
    }
}

/// A vector of `int32` or `int64`.
pub(super) fn index_vector(dtype: DType, values: &[i64]) -> Option<HostTensor> {
    match dtype {
        DType::I64 => HostTensor::vector(values).ok(),
        DType::I32 => {
            let values: Result<Vec<i32>, _> = values.iter().map(|&x| i32::try_from(x)).collect();
            HostTensor::vector(&values.ok()?).ok()
        }
        _ => None,
    }
}

/// Whether begin and size of a slice may be of this type.
fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64)
}

/// The least and the greatest number of an integer type whose numbers an `i64` has.
fn limits(dtype: DType) -> Option<(i64, i64)> {
    let bits = u32::try_from(dtype.size()?).ok()? * 8;
    match dtype {
        _ if dtype.narrow_bits().is_some() || dtype == DType::U64 => None,
        _ if dtype.is_signed_integer() => Some((-1 << (bits - 1), i64::MAX >> (64 - bits))),
        _ if dtype.is_unsigned_integer() => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build::GraphBuilder, spec::ValueType};

    /// Numbers of a linear congruential generator.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }

        fn pick(&mut self, from: &[i64]) -> i64 {
            from[self.below(from.len())]
        }
    }

    /// A tensor of the program, and its elements in one run.
    #[derive(Clone)]
    struct Tensor {
        outlet: Outlet,
        dtype: DType,
        elements: Vec<i64>,
        is_scalar: bool,
    }

    const NUMBERS: [i64; 9] =
        [0, 1, 2, 3, -1, 7, i32::MAX as i64, i32::MIN as i64, i32::MAX as i64 - 2];

    fn wrapped(dtype: DType, number: i64) -> i64 {
        if dtype == DType::I32 { i64::from(number as i32) } else { number }
    }

    /// A program of additions, clamps and regroupings, with the value of each of its tensors.
    fn program(numbers: &mut Numbers) -> (GraphBuilder, Vec<Tensor>) {
        let mut b = GraphBuilder::new();
        let mut tensors = Vec::new();
        for (index, (dtype, n)) in
            [(DType::I32, 1), (DType::I64, 3), (DType::I32, 3)].into_iter().enumerate()
        {
            let is_scalar = n == 1;
            let shape = if is_scalar { Shape::scalar() } else { Shape::new([n]).unwrap() };
            let outlet = b.arg(&format!("x{index}"), ValueType::new(dtype, shape)).unwrap();
            let elements = (0..n).map(|_| numbers.pick(&NUMBERS)).collect();
            tensors.push(Tensor { outlet, dtype, elements, is_scalar });
        }
        for step in 0..16 {
            let added = statement(&mut b, &format!("n{step}"), numbers, &tensors);
            tensors.extend(added);
        }
        (b, tensors)
    }

    fn constant(
        b: &mut GraphBuilder,
        name: &str,
        numbers: &mut Numbers,
        dtype: DType,
        n: usize,
    ) -> Tensor {
        let elements: Vec<i64> = (0..n).map(|_| numbers.pick(&NUMBERS)).collect();
        let value = index_vector(dtype, &elements).unwrap();
        let outlet = b.constant(&format!("{name}_constant"), value).unwrap();
        Tensor { outlet, dtype, elements, is_scalar: false }
    }

    fn statement(
        b: &mut GraphBuilder,
        name: &str,
        numbers: &mut Numbers,
        tensors: &[Tensor],
    ) -> Option<Tensor> {
        let x = tensors[numbers.below(tensors.len())].clone();
        let n = x.elements.len();
        let (outlet, dtype, elements, is_scalar) = match numbers.below(8) {
            kind @ 0..4 => {
                let fits =
                    |y: &&Tensor| y.dtype == x.dtype && y.elements.len() == n && !y.is_scalar;
                let others: Vec<&Tensor> = tensors.iter().filter(fits).collect();
                let y = match numbers.below(3) {
                    0 if !others.is_empty() => others[numbers.below(others.len())].clone(),
                    _ => constant(b, name, numbers, x.dtype, n),
                };
                let (op, compute): (_, fn(i64, i64) -> i64) = [
                    (names::ADD_V2, i64::wrapping_add as fn(i64, i64) -> i64),
                    (names::SUB, i64::wrapping_sub),
                    (names::MINIMUM, i64::min),
                    (names::MAXIMUM, i64::max),
                ][kind];
                let (a, c) = if numbers.below(2) == 0 { (&x, &y) } else { (&y, &x) };
                let pairs = a.elements.iter().zip(&c.elements);
                let elements = pairs.map(|(&a, &c)| wrapped(x.dtype, compute(a, c))).collect();
                let is_scalar = x.is_scalar && y.is_scalar;
                (b.call(op, name, &[a.outlet, c.outlet]).ok()?[0], x.dtype, elements, is_scalar)
            }
            4 => {
                let dtype = if x.dtype == DType::I32 { DType::I64 } else { DType::I32 };
                let attrs = Attrs::new().with("DstT", dtype);
                let elements = x.elements.iter().map(|&x| wrapped(dtype, x)).collect();
                let outlet = b.call_with(names::CAST, name, attrs, &[x.outlet]).ok()?[0];
                (outlet, dtype, elements, x.is_scalar)
            }
            5 => {
                let at = numbers.below(n);
                let index = HostTensor::scalar(at as i32);
                let index = b.constant(&format!("{name}_index"), index).ok()?;
                let axis = b.constant(&format!("{name}_axis"), HostTensor::scalar(0i32)).ok()?;
                let outlet = b.call(names::GATHER_V2, name, &[x.outlet, index, axis]).ok()?[0];
                (outlet, x.dtype, vec![x.elements[at]], true)
            }
            6 => {
                let scalars = tensors.iter().filter(|y| y.is_scalar && y.dtype == x.dtype);
                let parts: Vec<&Tensor> = scalars.take(3).collect();
                let inputs: Vec<Outlet> = parts.iter().map(|part| part.outlet).collect();
                let elements = parts.iter().map(|part| part.elements[0]).collect();
                (b.call(names::PACK, name, &inputs).ok()?[0], x.dtype, elements, false)
            }
            _ => {
                let y = constant(b, name, numbers, x.dtype, 2);
                let axis = b.constant(&format!("{name}_axis"), HostTensor::scalar(0i32)).ok()?;
                let two = Attrs::new().with("N", 2i64);
                let inputs = [x.outlet, y.outlet, axis];
                let outlet = b.call_with(names::CONCAT_V2, name, two, &inputs).ok()?[0];
                (outlet, x.dtype, [x.elements, y.elements].concat(), false)
            }
        };
        Some(Tensor { outlet, dtype, elements, is_scalar })
    }

    /// Elements are in their ranges, and as far from their bases as stated.
    #[test]
    fn elements_are_what_is_said_of_them() {
        let (mut moved, mut limited) = (0, 0);
        for seed in 0..3000 {
            let (b, tensors) = program(&mut Numbers(seed));
            let graph = b.finish_function("f", &[]).graph;
            let constants = graph.iter().filter_map(|(id, node)| {
                let value = node.attrs.tensor("value").ok().filter(|_| node.inputs().is_empty())?;
                Some((Outlet::from(id), value.clone()))
            });
            let known: FastMap<Outlet, HostTensor> = constants.collect();
            for tensor in &tensors {
                for (index, &value) in tensor.elements.iter().enumerate() {
                    let elements = IndexElements::new(&graph, &known);
                    let found = elements.element(tensor.outlet, index).unwrap();
                    assert!((found.range.0..=found.range.1).contains(&value), "{seed} {found:?}");
                    let from = found.base.map_or(0, |(base, index)| {
                        tensors.iter().find(|tensor| tensor.outlet == base).unwrap().elements[index]
                    });
                    assert_eq!(from + found.offset, value, "{seed} {found:?}");
                    moved += usize::from(found.base.is_some() && found.offset != 0);
                    limited += usize::from(found.range != limits(tensor.dtype).unwrap());
                }
            }
        }
        assert!(moved > 1000 && limited > 1000, "{moved} {limited}");
    }
}

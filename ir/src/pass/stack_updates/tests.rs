//! Updates of stacks: what becomes of caches, and what stays.

use super::update_stacks;
use crate::{
    attr::Attrs,
    build::GraphBuilder,
    dtype::DType,
    error::Result,
    graph::Outlet,
    host_tensor::HostTensor,
    pass::{
        prune::live,
        test_bodies::{function, specialized},
        verify::verify,
    },
    shape::Shape,
    spec::ValueType,
};

/// A cache of two layers, of keys and values for three positions of four numbers each.
const CACHE: [usize; 4] = [2, 2, 3, 4];

struct Body<'a>(&'a mut GraphBuilder);

impl Body<'_> {
    fn name(&self, what: &str) -> String {
        format!("{what}{}", self.0.graph().iter().count())
    }

    fn ints(&mut self, values: &[i32]) -> Result<Outlet> {
        let name = self.name("ints");
        self.0.constant(&name, HostTensor::vector(values)?)
    }

    fn pick(&mut self, x: Outlet, index: i32) -> Result<Outlet> {
        let inputs = [x, self.ints(&[index])?, self.ints(&[index + 1])?, self.ints(&[1])?];
        let attrs = Attrs::new().with("shrink_axis_mask", 1i64);
        let name = self.name("slice");
        Ok(self.0.call_with("StridedSlice", &name, attrs, &inputs)?[0])
    }

    fn update(&mut self, x: Outlet, begin: Outlet, value: Outlet) -> Result<Outlet> {
        let sizes = self.ints(&[1, 4])?;
        let name = self.name("end");
        let end = self.0.call("AddV2", &name, &[begin, sizes])?[0];
        let inputs = [x, begin, end, self.ints(&[1, 1])?, value];
        let name = self.name("update");
        Ok(self.0.call("TensorStridedSliceUpdate", &name, &inputs)?[0])
    }

    fn call(&mut self, op: &str, inputs: &[Outlet]) -> Result<Outlet> {
        let name = self.name(op);
        Ok(self.0.call(op, &name, inputs)?[0])
    }

    /// Keys or values of a layer: the slice with a new row, and the next row, which depends on it.
    fn row(&mut self, x: Outlet, begin: Outlet, row: Outlet) -> Result<[Outlet; 2]> {
        let updated = self.update(x, begin, row)?;
        let axis = self.ints(&[0])?;
        let sum = self.call("Sum", &[updated, axis])?;
        let shape = self.ints(&[1, 4])?;
        Ok([updated, self.call("Reshape", &[sum, shape])?])
    }

    /// A step of a loop of two layers; `order` is that of the layers in the new cache.
    fn step(&mut self, args: &[Outlet], order: [usize; 2]) -> Result<Outlet> {
        let &[cache, begin, mut row] = args else { unreachable!("three arguments") };
        let mut layers = Vec::new();
        for layer in 0..2 {
            let own = self.pick(cache, layer)?;
            let (keys, values) = (self.pick(own, 0)?, self.pick(own, 1)?);
            let [keys, first] = self.row(keys, begin, row)?;
            let [values, second] = self.row(values, begin, first)?;
            row = second;
            layers.push(self.call("Pack", &[keys, values])?);
        }
        self.call("Pack", &order.map(|index| layers[index]))
    }
}

/// Numbers of stacks, of updates and of updates of the whole cache, after the pass.
fn after(build: impl Fn(&mut Body<'_>, &[Outlet]) -> Result<Vec<Outlet>>) -> [usize; 3] {
    let types = [
        ValueType::new(DType::F32, Shape::new(CACHE).unwrap()),
        ValueType::new(DType::I32, Shape::new([2]).unwrap()),
        ValueType::new(DType::F32, Shape::new([1, 4]).unwrap()),
    ];
    let def = function(&types, |b, args| build(&mut Body(b), args));
    let mut body = specialized(&def, &types);
    update_stacks(&mut body).unwrap();
    verify(&body, "updates of stacks").unwrap();
    let live = live(&body);
    let mut counts = [0; 3];
    for (id, node) in body.graph.iter().filter(|(id, _)| live.contains(id)) {
        let is_whole = body.graph.ty(id.into()).is_some_and(|ty| ty.shape.rank() == Some(4));
        match node.op.name() {
            "Pack" => counts[0] += 1,
            "TensorStridedSliceUpdate" if is_whole => counts[2] += 1,
            "TensorStridedSliceUpdate" => counts[1] += 1,
            _ => {}
        }
    }
    counts
}

#[test]
fn a_cache_is_updated_in_one_place() {
    assert_eq!(after(|body, args| Ok(vec![body.step(args, [0, 1])?])), [0, 0, 4]);
}

#[test]
fn two_steps_are_one_chain_after_the_other() {
    let counts = after(|body, args| {
        let cache = body.step(args, [0, 1])?;
        Ok(vec![body.step(&[cache, args[1], args[2]], [0, 1])?])
    });
    assert_eq!(counts, [0, 0, 8]);
}

#[test]
fn layers_in_another_order_stay_copies() {
    // Each layer alone is none of the whole cache.
    assert_eq!(after(|body, args| Ok(vec![body.step(args, [1, 0])?])), [3, 4, 0]);
}

#[test]
fn slices_that_are_read_later_stay_copies() {
    let counts = after(|body, args| {
        let &[cache, begin, row] = args else { unreachable!("three arguments") };
        let mut slices = Vec::new();
        for layer in 0..2 {
            let own = body.pick(cache, layer)?;
            let keys = body.pick(own, 0)?;
            let keys = body.update(keys, begin, row)?;
            let values = body.pick(own, 1)?;
            slices.push((body.call("Pack", &[keys, values])?, keys));
        }
        let late = body.call("AddV2", &[slices[0].1, slices[1].1])?;
        Ok(vec![body.call("Pack", &[slices[0].0, slices[1].0])?, late])
    });
    // What is read after the last update is a slice of the stack.
    assert_eq!(counts, [0, 0, 2]);
    let counts = after(|body, args| {
        let &[cache, begin, row] = args else { unreachable!("three arguments") };
        let first = body.pick(cache, 0)?;
        let keys = body.pick(first, 0)?;
        let keys = body.update(keys, begin, row)?;
        let flat = body.ints(&[-1])?;
        let flat = body.call("Reshape", &[keys, flat])?;
        let values = body.pick(first, 1)?;
        let values = body.update(values, begin, row)?;
        let first = body.call("Pack", &[keys, values])?;
        let second = body.pick(cache, 1)?;
        let pair = body.call("Pack", &[first, second])?;
        Ok(vec![pair, body.call("Neg", &[flat])?])
    });
    assert_eq!(counts, [2, 2, 0], "the view of the keys is read after the update of the values");
}

#[test]
fn results_stay() {
    let counts = after(|body, args| {
        let &[cache, begin, row] = args else { unreachable!("three arguments") };
        let first = body.pick(cache, 0)?;
        let keys = body.pick(first, 0)?;
        let keys = body.update(keys, begin, row)?;
        let values = body.pick(first, 1)?;
        let first = body.call("Pack", &[keys, values])?;
        let second = body.pick(cache, 1)?;
        Ok(vec![body.call("Pack", &[first, second])?, keys])
    });
    assert_eq!(counts, [2, 1, 0]);
}

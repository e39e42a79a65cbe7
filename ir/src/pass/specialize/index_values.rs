//! Values that steer shapes, and sizes of slices, as single elements of index vectors tell them.

use super::Body;
use crate::{
    attr::Attrs,
    error::Result,
    graph::Outlet,
    op::OpDef,
    ops::names,
    pass::elements::{IndexElements, Window, index_vector},
};
use smallvec::SmallVec;
use std::sync::Arc;

impl Body<'_> {
    /// The inputs, of which those that steer shapes are constants if all their elements turn out to be known.
    pub(super) fn with_host_values(
        &mut self,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[Outlet],
    ) -> Result<SmallVec<[Outlet; 4]>> {
        let mut inputs: SmallVec<[Outlet; 4]> = inputs.into();
        let all_known = inputs.iter().all(|input| self.known.contains_key(input));
        if all_known || !self.specializer.evaluate.folds() {
            return Ok(inputs);
        }
        for (input, host) in inputs.iter_mut().zip(op.host_inputs(attrs)?) {
            if host
                && !self.known.contains_key(input)
                && let Some(value) = IndexElements::new(&self.graph, &self.known).value(*input)
            {
                *input = self.constant("elements", value)?;
            }
        }
        Ok(inputs)
    }

    /// The tensor that an element of a stack along the first axis is, if the call reads one.
    pub(super) fn stacked_input(
        &self,
        op: &OpDef,
        attrs: &Attrs,
        inputs: &[Outlet],
    ) -> Option<Outlet> {
        let &[stack, index, axis] = inputs else { return None };
        let node = &self.graph[stack.node];
        let is_zero = |attrs: &Attrs, name: &str| attrs.int(name).is_ok_and(|value| value == 0);
        if op.name != names::GATHER_V2
            || node.op.name() != names::PACK
            || !is_zero(attrs, "batch_dims")
            || !is_zero(&node.attrs, "axis")
        {
            return None;
        }
        let number = |outlet: Outlet| {
            let value = self.known.get(&outlet).filter(|value| value.shape().rank() == 0)?;
            value.to_i64s().ok()?.first().copied()
        };
        let index = usize::try_from(number(index)?).ok()?;
        node.inputs().get(index).copied().filter(|_| number(axis) == Some(0))
    }

    /// A strided slice of computed bounds as the slice of known size that it is, if its elements tell.
    pub(super) fn sized_slice(
        &mut self,
        attrs: &Attrs,
        inputs: &[Outlet],
    ) -> Result<Option<(Arc<Attrs>, [Outlet; 3])>> {
        let all_known = inputs.iter().skip(1).all(|input| self.known.contains_key(input));
        if all_known || !self.specializer.evaluate.folds() {
            return Ok(None);
        }
        let window = IndexElements::new(&self.graph, &self.known).window(attrs, inputs);
        let Some(Window { begin, size }) = window else { return Ok(None) };
        let dtype = self.ty(begin).dtype;
        let Some(size) = index_vector(dtype, &size) else { return Ok(None) };
        let size = self.constant("size", size)?;
        let attrs = Attrs::new().with("T", self.ty(inputs[0]).dtype).with("Index", dtype);
        Ok(Some((Arc::new(attrs), [inputs[0], begin, size])))
    }
}

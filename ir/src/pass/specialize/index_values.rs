//! Values that steer shapes, and sizes of slices, as single elements of index vectors tell them.

use super::Body;
use crate::{
    attr::Attrs,
    error::Result,
    graph::Outlet,
    op::OpDef,
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

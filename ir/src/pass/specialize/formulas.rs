//! Calls that are computed ahead, and formulas of composite ops, which add their calls to the body.

use super::{Body, Outlets};
use crate::{
    attr::Attrs,
    emit::{self, Emit, ValueId},
    error::{Error, Result},
    function::FunctionLibrary,
    graph::{NodeDef, Outlet},
    host_tensor::HostTensor,
    infer::InputFacts,
    op::{Effect, Formula, Lowering, OpDef, XlaFormula},
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{mem, sync::Arc};

/// Results of up to this many bytes are computed ahead whatever their inputs are.
const FOLDED_BYTES: usize = 1 << 16;

impl Body<'_> {
    /// The results of a call that can be computed now.
    pub(super) fn fold(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[InputFacts<'_>],
        outputs: &[ValueType],
    ) -> Option<Vec<HostTensor>> {
        let runs = !matches!(op.lowering, Lowering::Runtime | Lowering::Interface);
        let enough = |input: &InputFacts<'_>| {
            input.value.is_some() || (op.shape_only && input.ty.shape.is_known())
        };
        if op.effect != Effect::Pure || !runs || inputs.is_empty() || !inputs.iter().all(enough) {
            return None;
        }
        let known: usize = inputs.iter().filter_map(|x| x.value).map(|x| x.bytes().len()).sum();
        let result: usize = outputs
            .iter()
            .map(|ty| match (ty.shape.known(), ty.dtype.size()) {
                (Some(shape), Some(size)) => shape.num_elements().saturating_mul(size),
                _ => 0,
            })
            .fold(0, usize::saturating_add);
        if result > known.saturating_mul(2).max(FOLDED_BYTES) {
            return None;
        }
        self.specializer.evaluate.evaluate(op, attrs, inputs)
    }

    pub(super) fn expand(
        &mut self,
        name: &str,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        let Lowering::Composite(formula) = op.lowering else {
            let what = "it is not a formula over other ops".into();
            return Err(Error::Unsupported { op: op.name.into(), what });
        };
        self.expand_by(name, formula, op, attrs, inputs)
    }

    /// Adds the calls by which XLA computes an op. XLA asks for known shapes as well. The calls of
    /// a formula are themselves what it means.
    pub(super) fn compile(
        &mut self,
        name: &str,
        formula: Formula,
        op: &'static OpDef,
        attrs: &Attrs,
        facts: &[InputFacts<'_>],
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        let asks = matches!(op.compiled, XlaFormula::OfKnownShapes(_));
        if asks && !is_expandable(op, attrs, facts)? {
            let what = "shapes that are not known ahead in a function compiled by XLA".into();
            return Err(Error::Unsupported { op: op.name.into(), what });
        }
        self.compiled = false;
        let results = self.expand_by(name, formula, op, attrs, inputs);
        self.compiled = true;
        results
    }

    fn expand_by(
        &mut self,
        name: &str,
        formula: Formula,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        let ids: Vec<ValueId> = inputs.iter().map(|&outlet| self.value_id(outlet)).collect();
        let inner = format!("{}{name}/", self.prefix);
        let outer = mem::replace(&mut self.prefix, inner);
        let results = emit::expand_by(formula, self, op, attrs, &ids);
        self.prefix = outer;
        Ok(results?.into_iter().map(|id| self.values[id.0 as usize]).collect())
    }

    fn value_id(&mut self, outlet: Outlet) -> ValueId {
        self.values.push(outlet);
        ValueId(self.values.len() as u32 - 1)
    }
}

/// A formula needs known shapes, and known values of inputs that steer shapes.
pub(super) fn is_expandable(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[InputFacts<'_>],
) -> Result<bool> {
    let host = op.host_inputs(attrs)?;
    let ready = |(input, &host): (&InputFacts<'_>, &bool)| {
        input.ty.shape.is_known() && (!host || input.value.is_some())
    };
    Ok(inputs.iter().zip(&host).all(ready))
}

/// Formulas add their calls to the body.
impl Emit for Body<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>> {
        let inputs: SmallVec<[Outlet; 4]> =
            inputs.iter().map(|id| self.values[id.0 as usize]).collect();
        let attrs = Arc::new(op.complete_attrs(attrs)?);
        let outlets = if op.effect == Effect::OfCallee {
            self.call(&NodeDef::new(op.name, op, attrs), op, &inputs)?
        } else {
            self.add(op.name, op, attrs, &inputs)?
        };
        Ok(outlets.into_iter().map(|outlet| self.value_id(outlet)).collect())
    }

    fn constant(&mut self, tensor: HostTensor) -> Result<ValueId> {
        let outlet = Body::constant(self, "constant", tensor)?;
        Ok(self.value_id(outlet))
    }

    fn ty(&self, id: ValueId) -> ValueType {
        Body::ty(self, self.values[id.0 as usize]).clone()
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        self.known.get(&self.values[id.0 as usize]).cloned()
    }

    fn library(&self) -> Option<&FunctionLibrary> {
        Some(self.specializer.library)
    }
}

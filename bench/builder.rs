//! Functions of a few ops.

use crate::Bench;
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{
        Attrs, DType, FunctionDef, FunctionLibrary, HostTensor, Outlet, Shape, ValueType,
        build::GraphBuilder, registry,
    },
    runtime::{CallableFunction, CapturedInput, EagerTensor},
};
use std::sync::Arc;

/// A graph under construction. Nodes are numbered.
#[derive(Default)]
pub(crate) struct Builder {
    graph: GraphBuilder,
    n_nodes: usize,
}

impl Builder {
    fn name(&mut self) -> String {
        self.n_nodes += 1;
        format!("n{}", self.n_nodes)
    }

    pub(crate) fn arg(&mut self, ty: ValueType) -> Result<Outlet> {
        let name = self.name();
        Ok(self.graph.arg(&name, ty)?)
    }

    pub(crate) fn constant(&mut self, tensor: HostTensor) -> Result<Outlet> {
        let name = self.name();
        Ok(self.graph.constant(&name, tensor)?)
    }

    pub(crate) fn number(&mut self, value: f32) -> Result<Outlet> {
        self.constant(HostTensor::scalar(value))
    }

    pub(crate) fn op(&mut self, op: &str, inputs: &[Outlet]) -> Result<Outlet> {
        self.op_with(op, Attrs::new(), inputs)
    }

    pub(crate) fn op_with(&mut self, op: &str, attrs: Attrs, inputs: &[Outlet]) -> Result<Outlet> {
        Ok(self.ops_with(op, attrs, inputs)?[0])
    }

    pub(crate) fn ops_with(
        &mut self,
        op: &str,
        attrs: Attrs,
        inputs: &[Outlet],
    ) -> Result<Vec<Outlet>> {
        let name = self.name();
        Ok(self.graph.call_with(op, &name, attrs, inputs)?)
    }
}

/// A function over arguments of these types.
pub(crate) fn define(
    name: &str,
    types: &[ValueType],
    body: impl FnOnce(&mut Builder, &[Outlet]) -> Result<Vec<Outlet>>,
) -> Result<FunctionDef> {
    let mut builder = Builder::default();
    let args: Vec<Outlet> =
        types.iter().map(|ty| builder.arg(ty.clone())).collect::<Result<_>>()?;
    let results = body(&mut builder, &args)?;
    let names: Vec<String> = (0..results.len()).map(|index| format!("r{index}")).collect();
    let results: Vec<(&str, Outlet)> =
        names.iter().map(String::as_str).zip(results.iter().copied()).collect();
    Ok(builder.graph.finish_function(name, &results))
}

pub(crate) fn ty(dtype: DType, dims: &[usize]) -> Result<ValueType> {
    Ok(ValueType::new(dtype, Shape::new(dims.iter().copied())?))
}

pub(crate) fn type_of(tensor: &EagerTensor) -> ValueType {
    ValueType::new(tensor.dtype(), tensor.shape())
}

impl Bench {
    /// A function over arguments like these.
    pub(crate) fn function(
        &self,
        args: &[EagerTensor],
        body: impl FnOnce(&mut Builder, &[Outlet]) -> Result<Vec<Outlet>>,
    ) -> Result<CallableFunction> {
        let types: Vec<ValueType> = args.iter().map(type_of).collect();
        self.of_library(define("f", &types, body)?, Vec::new(), Vec::new())
    }

    /// A function that calls others and captures values.
    pub(crate) fn of_library(
        &self,
        def: FunctionDef,
        others: Vec<FunctionDef>,
        captures: Vec<CapturedInput>,
    ) -> Result<CallableFunction> {
        let library = Arc::new(FunctionLibrary::new());
        for other in others {
            library.insert(other)?;
        }
        let resources = self.context.resources().clone();
        let def = Arc::new(def);
        Ok(CallableFunction::with_captures(&self.context, def, library, resources, captures))
    }

    /// Runs an op at once, as eager code does: what was compiled for such a call before is used again.
    pub(crate) fn eager(
        &self,
        op: &str,
        attrs: Attrs,
        inputs: &[EagerTensor],
    ) -> Result<Vec<EagerTensor>> {
        let op = registry::find(op).with_context(|| format!("no op is named {op}"))?;
        let inputs: Vec<&EagerTensor> = inputs.iter().collect();
        let mut calls = self.calls.borrow_mut();
        Ok(calls.execute(&self.context, op, &attrs, &inputs)?.into_iter().collect())
    }

    /// The first result of an op run at once.
    pub(crate) fn one(&self, op: &str, inputs: &[EagerTensor]) -> Result<EagerTensor> {
        self.one_with(op, Attrs::new(), inputs)
    }

    /// As [`one`](Bench::one), with attributes.
    pub(crate) fn one_with(
        &self,
        op: &str,
        attrs: Attrs,
        inputs: &[EagerTensor],
    ) -> Result<EagerTensor> {
        Ok(self.eager(op, attrs, inputs)?.swap_remove(0))
    }
}

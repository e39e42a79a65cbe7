//! Short ways to build functions.

use ferroflow_ir::{
    AttrValue, Attrs, DType, FunctionDef, FunctionLibrary, HostTensor, NameAttrList, Outlet,
    PartialShape, Shape, ValueType, build::GraphBuilder,
};
use ferroflow_runtime::{CallableFunction, CapturedInput, Context, EagerTensor, Result};
use std::{num::NonZeroUsize, sync::Arc};

pub(crate) fn context() -> Context {
    Context::with_options(ferroflow_runtime::ContextOptions {
        threads: NonZeroUsize::new(2),
        ..Default::default()
    })
}

pub(crate) fn f32s(dims: &[usize]) -> ValueType {
    ValueType::new(DType::F32, Shape::new(dims.iter().copied()).unwrap())
}

pub(crate) fn vectors() -> ValueType {
    ValueType::new(DType::F32, PartialShape::of_rank(1))
}

/// A function whose body `build` makes of its arguments.
pub(crate) fn function(
    name: &str,
    args: &[(&str, ValueType)],
    build: impl FnOnce(&mut GraphBuilder, &[Outlet]) -> ferroflow_ir::Result<Vec<Outlet>>,
) -> FunctionDef {
    let mut builder = GraphBuilder::new();
    let args: Vec<Outlet> =
        args.iter().map(|(name, ty)| builder.arg(name, ty.clone()).unwrap()).collect();
    let results = build(&mut builder, &args).unwrap();
    let names: Vec<String> = (0..results.len()).map(|index| format!("r{index}")).collect();
    let named: Vec<(&str, Outlet)> = names.iter().map(String::as_str).zip(results).collect();
    builder.finish_function(name, &named)
}

pub(crate) fn func(name: &str) -> AttrValue {
    AttrValue::Func(NameAttrList::new(name))
}

pub(crate) fn call_attrs(tin: &[DType], tout: &[DType], function: &str) -> Attrs {
    Attrs::new().with("Tin", tin.to_vec()).with("Tout", tout.to_vec()).with("f", func(function))
}

pub(crate) fn concrete(
    context: &Context,
    def: FunctionDef,
    library: Vec<FunctionDef>,
    captures: Vec<CapturedInput>,
) -> CallableFunction {
    let functions = Arc::new(FunctionLibrary::new());
    library.into_iter().for_each(|def| drop(functions.insert(def).unwrap()));
    let resources = context.resources().clone();
    CallableFunction::with_captures(context, Arc::new(def), functions, resources, captures)
}

pub(crate) fn vector(values: &[f32]) -> EagerTensor {
    HostTensor::vector(values).unwrap().into()
}

pub(crate) fn values(results: &[EagerTensor], index: usize) -> Vec<f32> {
    results[index].host().unwrap().as_slice::<f32>().unwrap().to_vec()
}

pub(crate) fn call(function: &CallableFunction, args: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
    function.call(args)
}

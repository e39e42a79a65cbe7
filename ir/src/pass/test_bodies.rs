//! Bodies that tests of passes begin with.

use super::specialize::{Argument, NoFolding, Specialized, Specializer};
use crate::{
    build::GraphBuilder,
    error::Result,
    function::{FunctionDef, FunctionLibrary},
    graph::Outlet,
    limits::Limits,
    spec::ValueType,
};

/// A function of arguments of these types.
pub(super) fn function(
    types: &[ValueType],
    build: impl FnOnce(&mut GraphBuilder, &[Outlet]) -> Result<Vec<Outlet>>,
) -> FunctionDef {
    let mut b = GraphBuilder::new();
    let args = types.iter().enumerate();
    let args: Vec<Outlet> =
        args.map(|(index, ty)| b.arg(&format!("x{index}"), ty.clone()).unwrap()).collect();
    let results = build(&mut b, &args).unwrap();
    let names: Vec<String> = (0..results.len()).map(|index| format!("r{index}")).collect();
    let named: Vec<(&str, Outlet)> = names.iter().map(String::as_str).zip(results).collect();
    b.finish_function("f", &named)
}

/// The body of a function for arguments of these types, without folding.
pub(super) fn specialized(def: &FunctionDef, types: &[ValueType]) -> Specialized {
    let (library, limits) = (FunctionLibrary::new(), Limits::default());
    let specializer = Specializer { library: &library, evaluate: &NoFolding, limits: &limits };
    let args: Vec<Argument> = types.iter().cloned().map(Argument::from).collect();
    specializer.specialize(def, &args).unwrap()
}

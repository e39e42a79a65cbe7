//! Functions from files may say anything: differentiating them returns a gradient or an error.

use super::{
    LoadedCapture, LoadedGradient, differentiate, extent::CopyBudget,
    function::differentiate_within,
};
use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    build::GraphBuilder,
    dtype::DType,
    function::{FunctionDef, FunctionLibrary},
    graph::{NodeDef, OpRef, Outlet},
    registry,
    shape::Shape,
    spec::ValueType,
};

fn ty(dtype: DType) -> ValueType {
    ValueType::new(dtype, Shape::scalar())
}

fn named(name: &str) -> AttrValue {
    AttrValue::Func(NameAttrList::new(name))
}

/// A function of a bool and a number that hands both to a call of functions.
fn caller(name: &str, op: &str, attrs: Attrs, results: &[DType]) -> FunctionDef {
    let mut builder = GraphBuilder::new();
    let condition = builder.arg("condition", ty(DType::Bool)).unwrap();
    let x = builder.arg("x", ty(DType::F32)).unwrap();
    let mut def = builder.finish_function(name, &[("y", x)]);
    let op = registry::find(op).unwrap();
    let node = NodeDef::new("call", op, op.complete_attrs(attrs).unwrap())
        .with_inputs([condition, x])
        .with_outputs(results.iter().map(|&dtype| ty(dtype)));
    let id = def.graph.add(node).unwrap();
    def.results[0].1 = Outlet::new(id, results.len() - 1);
    def
}

fn branches(then: &str, otherwise: &str) -> Attrs {
    Attrs::new()
        .with("Tcond", DType::Bool)
        .with("Tin", vec![DType::F32])
        .with("Tout", vec![DType::F32])
        .with("then_branch", named(then))
        .with("else_branch", named(otherwise))
}

fn same(name: &str, dtype: DType) -> FunctionDef {
    let mut builder = GraphBuilder::new();
    let x = builder.arg("x", ty(dtype)).unwrap();
    builder.finish_function(name, &[("y", x)])
}

fn error(library: &FunctionLibrary, def: &FunctionDef) -> String {
    differentiate(library, def, &vec![true; def.args.len()]).unwrap_err().to_string()
}

#[test]
fn a_branch_that_is_the_function_around_it_is_an_error() {
    let library = FunctionLibrary::new();
    let mut inner = caller("inner", "If", branches("leaf", "leaf"), &[DType::F32]);
    // The branch takes one argument: it makes the truth value itself.
    inner.args.remove(0);
    let node = inner.graph.find("call").unwrap();
    let again = Attrs::clone(&inner.graph[node].attrs).with("then_branch", named("inner"));
    *inner.graph.node_mut(node).attrs = again.into();
    library.insert(inner).unwrap();
    library.insert(same("leaf", DType::F32)).unwrap();
    let outer = caller("outer", "If", branches("inner", "leaf"), &[DType::F32]);
    let error = error(&library, &outer);
    assert!(error.contains("a call of `inner` inside itself"), "{error}");
}

#[test]
fn branches_that_do_not_fit_are_an_error() {
    let library = FunctionLibrary::new();
    library.insert(same("number", DType::F32)).unwrap();
    library.insert(same("text", DType::String)).unwrap();
    let def = caller("f", "If", branches("number", "text"), &[DType::F32]);
    let error = error(&library, &def);
    assert!(error.contains("text: arguments must be (float32), found (string)"), "{error}");
}

#[test]
fn loops_that_do_not_fit_are_an_error() {
    let library = FunctionLibrary::new();
    library.insert(caller("body", "If", branches("leaf", "leaf"), &[DType::F32])).unwrap();
    library.insert(caller("condition", "If", branches("leaf", "leaf"), &[DType::F32])).unwrap();
    library.insert(same("leaf", DType::F32)).unwrap();
    let attrs = Attrs::new()
        .with("T", vec![DType::Bool, DType::F32])
        .with("cond", named("condition"))
        .with("body", named("body"));
    let def = caller("f", "While", attrs, &[DType::Bool, DType::F32]);
    let error = error(&library, &def);
    assert!(error.contains("body: results must be (bool, float32), found (float32)"), "{error}");
}

#[test]
fn results_of_unknown_ops_are_an_error() {
    let library = FunctionLibrary::new();
    library.insert(same("leaf", DType::F32)).unwrap();
    let mut foreign = same("foreign", DType::F32);
    let node = NodeDef::new("odd", OpRef::Foreign("Odd".into()), Attrs::new());
    let id = foreign.graph.add(node).unwrap();
    foreign.results[0].1 = id.into();
    library.insert(foreign).unwrap();
    let def = caller("f", "If", branches("foreign", "leaf"), &[DType::F32]);
    let error = error(&library, &def);
    assert!(error.contains("malformed graph at `odd`"), "{error}");
}

#[test]
fn calls_that_double_at_every_level_meet_a_limit() {
    let library = FunctionLibrary::new();
    library.insert(same("level0", DType::F32)).unwrap();
    for level in 1..40 {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x", ty(DType::F32)).unwrap();
        let mut def = builder.finish_function(&format!("level{level}"), &[("y", x)]);
        let mut last = x;
        for call in 0..2 {
            let attrs = Attrs::new()
                .with("Tin", vec![DType::F32])
                .with("Tout", vec![DType::F32])
                .with("f", named(&format!("level{}", level - 1)));
            let op = registry::find("PartitionedCall").unwrap();
            let node = NodeDef::new(format!("call{call}"), op, op.complete_attrs(attrs).unwrap())
                .with_inputs([last])
                .with_outputs([ty(DType::F32)]);
            last = def.graph.add(node).unwrap().into();
        }
        def.results[0].1 = last;
        library.insert(def).unwrap();
    }
    let (extent, def) = (CopyBudget::limited(&library, 1000), library.get("level39").unwrap());
    let error = differentiate_within(&extent, &def, &[true]).unwrap_err().to_string();
    assert!(error.contains("needs more than 1000 nodes"), "{error}");
}

/// `Identity` whose gradient is `dy * factor`, where `factor` is a value of the function around.
fn with_own_gradient(library: &FunctionLibrary) -> FunctionDef {
    let mut builder = GraphBuilder::new();
    let [dy, factor] = ["dy", "factor"].map(|name| builder.arg(name, ty(DType::F32)).unwrap());
    let product = builder.call("Mul", "product", &[dy, factor]).unwrap()[0];
    library.insert(builder.finish_function("own", &[("dx", product)])).unwrap();
    let mut builder = GraphBuilder::new();
    let x = builder.arg("x", ty(DType::F32)).unwrap();
    builder.call("Exp", "factor", &[x]).unwrap();
    let y = builder.call("Identity", "y", &[x]).unwrap()[0];
    let mut def = builder.finish_function("f", &[("y", y)]);
    let attrs = Attrs::clone(&def.graph[y.node].attrs).with("_gradient_op_type", "Own-1");
    *def.graph.node_mut(y.node).attrs = attrs.into();
    def
}

fn loaded(function: &str, node: &str, gradients: Vec<Option<usize>>) -> LoadedGradient {
    let capture = LoadedCapture { function: "f".into(), node: node.into(), index: 0 };
    LoadedGradient { function: function.into(), gradients, captures: vec![capture] }
}

#[test]
fn a_gradient_that_is_part_of_the_program_is_called() {
    let library = FunctionLibrary::new();
    let def = with_own_gradient(&library);
    library.carry_gradient("Own-1", loaded("own", "factor", vec![Some(0)]));
    let parts = differentiate(&library, &def, &[true]).unwrap();
    let calls = parts
        .backward
        .graph
        .iter()
        .filter(|(_, node)| node.attrs.get("f").is_some_and(|f| *f == named("own")));
    assert_eq!(calls.count(), 1);
    // Twice: the form that keeps what the first takes has the gradient too.
    let again = differentiate(&library, &parts.forward, &[true]).unwrap();
    assert!(again.gradients[0].is_some());
}

/// As the body of a loop that keeps what the gradient of the loop takes: its original is called by
/// nothing.
#[test]
fn a_copy_of_a_function_has_the_values_that_gradients_in_the_original_take() {
    let library = FunctionLibrary::new();
    let original = with_own_gradient(&library);
    library.insert(original.clone()).unwrap();
    library.carry_gradient("Own-1", loaded("own", "factor", vec![Some(0)]));
    let copy = FunctionDef { name: "copy".into(), ..original.clone() };
    let n_calls = |def: &FunctionDef| {
        let parts = differentiate(&library, def, &[true]).unwrap();
        let is_call = |node: &NodeDef| node.attrs.get("f").is_some_and(|f| *f == named("own"));
        parts.backward.graph.iter().filter(|(_, node)| is_call(node)).count()
    };
    assert_eq!([&original, &copy].map(n_calls), [1, 1]);
    // A function that has a node of the name alone is something else.
    let mut other = copy.clone();
    let y = other.graph.find("y").unwrap();
    let attrs = Attrs::clone(&other.graph[y].attrs).with("_gradient_op_type", "Own-2");
    *other.graph.node_mut(y).attrs = attrs.into();
    library.carry_gradient("Own-2", loaded("own", "factor", vec![Some(0)]));
    let refused = error(&library, &other);
    assert!(refused.contains("takes `factor` of the function `f` around it"), "{refused}");
}

#[test]
fn gradients_that_do_not_fit_are_an_error() {
    for (gradient, expected) in [
        (loaded("absent", "factor", vec![Some(0)]), "function `absent` does not exist"),
        (loaded("own", "elsewhere", vec![Some(0)]), "value `elsewhere:0` does not exist"),
        (loaded("own", "factor", vec![Some(7)]), "`7 of `own`, for Identity`"),
        (loaded("f", "factor", vec![Some(0)]), "f: arguments must be 2 tensors, found 1"),
    ] {
        let library = FunctionLibrary::new();
        let def = with_own_gradient(&library);
        library.insert(def.clone()).unwrap();
        library.carry_gradient("Own-1", gradient);
        let error = error(&library, &def);
        assert!(error.contains(expected), "{error}");
    }
}

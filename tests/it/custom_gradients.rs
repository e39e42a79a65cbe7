//! Custom gradients of traced functions in SavedModels.

use ferroflow::{
    Function, GradientTape, Tensor, Trackable, Variable, function,
    ir::DType,
    loaded_function,
    runtime::Context,
    save,
    saved_model::{LoadOptions, Object, SaveOptions, load, proto, read_message},
    spec,
    tracer::{self, ConcreteFunction, cond, custom_gradient},
};
use std::{error::Error, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Unary = Function<(Tensor,), Tensor>;

#[derive(Trackable)]
struct Model {
    w: Variable,
    direct: Unary,
    branched: Unary,
    outer: Unary,
}

/// `x²`, whose gradient is `dy·(100·exp(x)·w) + sin(x)`, of which the sine is only there for it.
fn square(w: &Variable, x: &Tensor) -> tracer::Result<Tensor> {
    let f = |args: &[Tensor]| {
        let (w, e, s) = (w.clone(), args[0].exp()?, args[0].sin()?);
        let backward =
            move |dys: &[Tensor]| Ok(vec![Some(((((&dys[0] * 100.0)? * &e)? * w.read()?)? + &s)?)]);
        Ok((vec![args[0].square()?], backward))
    };
    Ok(custom_gradient(f, std::slice::from_ref(x))?.remove(0))
}

fn slope(x: f64) -> f64 {
    300.0 * x.exp() + x.sin()
}

fn model() -> tracer::Result<Model> {
    model_of(3.0)
}

fn model_of(w: f32) -> tracer::Result<Model> {
    let w = Variable::new(w)?;
    let named = |f: Unary, name: &str| {
        f.with_name(name).with_parameters(["x"]).with_input_signature([spec(DType::F32, [])])
    };
    let of = || w.clone();
    let direct = {
        let w = of();
        named(function(move |x: Tensor| square(&w, &x)), "direct")
    };
    let branched = {
        let w = of();
        let branch = move |x: Tensor| cond(&x.greater(0.0)?, || square(&w, &x), || &x * 7.0f32);
        named(function(branch), "branched")
    };
    let outer = {
        let direct = direct.clone();
        named(function(move |x: Tensor| direct.call((&x,))? * 2.0), "outer")
    };
    Ok(Model { w, direct, branched, outer })
}

/// A function of a model, and the model, which has its variables.
fn of_loaded(folder: &Path, name: &str) -> Outcome<(Object, ConcreteFunction)> {
    let model = load(&Context::new(), folder, &LoadOptions::default())?;
    let root = model.root().ok_or("a model with objects")?;
    let function = loaded_function(&root.get(name)?.function()?.traces()[0])?;
    Ok((root, function))
}

fn gradient(f: impl Fn(&Tensor) -> tracer::Result<Tensor>, x: f32) -> Outcome<f64> {
    let x = Tensor::from(x);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f(&x)?;
    Ok(f64::from(tape.gradient(&y, &x)?.ok_or("a gradient")?.to_scalar::<f32>()?))
}

fn check(folder: &Path) -> Outcome {
    for (name, x, expected) in [
        ("direct", 0.5, slope(0.5)),
        ("branched", 0.5, slope(0.5)),
        ("branched", -0.5, 7.0),
        ("outer", 0.5, 2.0 * (300.0 * 0.5f64.exp()) + 0.5f64.sin()),
    ] {
        let (_model, f) = of_loaded(folder, name)?;
        let found = gradient(|x| Ok(f.call_flat(std::slice::from_ref(x))?.remove(0)), x)?;
        assert!((found - expected).abs() < 1e-3, "{name} at {x}: {found} instead of {expected}");
    }
    Ok(())
}

fn library(folder: &Path) -> Outcome<proto::FunctionDefLibrary> {
    let file: proto::SavedModel = read_message(&folder.join("saved_model.pb"))?;
    let graph = file.meta_graphs.into_iter().next().and_then(|meta| meta.graph_def);
    Ok(graph.and_then(|graph| graph.library).ok_or("a library")?)
}

#[test]
fn custom_gradients_are_saved() -> Outcome {
    let folder = tempfile::tempdir()?;
    save(&model()?, folder.path(), &SaveOptions::default())?;
    check(folder.path())?;
    let library = library(folder.path())?;
    let mut types: Vec<_> =
        library.registered_gradients.iter().map(|g| g.registered_op_type.clone()).collect();
    types.sort();
    assert_eq!(types, ["CustomGradient-0", "CustomGradient-1"]);
    let nodes = library.function.iter().flat_map(|function| &function.node_def);
    let noted: Vec<_> = nodes.filter(|node| node.attr.contains_key("_gradient_op_type")).collect();
    assert!(noted.iter().all(|node| !node.attr.contains_key("_gradient_captures")));
    // What was loaded is saved again with the gradients it has.
    let again = folder.path().join("again");
    let loaded = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    save(&loaded.root().ok_or("objects")?, &again, &SaveOptions::default())?;
    check(&again)
}

#[test]
fn loaded_functions_keep_theirs_beside_traced_ones() -> Outcome {
    let folder = tempfile::tempdir()?;
    save(&model()?, folder.path(), &SaveOptions::default())?;
    // A function with a gradient of its own calls one that came with a model.
    #[derive(Trackable)]
    struct Both {
        w: Variable,
        model: Object,
        both: Unary,
    }
    let loaded = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    let model = loaded.root().ok_or("objects")?;
    let direct = loaded_function(&model.get("direct")?.function()?.traces()[0])?;
    let w = Variable::new(1.0f32)?;
    let own = w.clone();
    let both = function(move |x: Tensor| {
        direct.call_flat(std::slice::from_ref(&x))?.remove(0) + square(&own, &x)?
    });
    let both =
        both.with_name("both").with_parameters(["x"]).with_input_signature([spec(DType::F32, [])]);
    let expected = 400.0 * 0.5f64.exp() + 2.0 * 0.5f64.sin();
    let found = gradient(|x| both.call((x,)), 0.5)?;
    assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    let again = folder.path().join("again");
    save(&Both { w, model, both }, &again, &SaveOptions::default())?;
    let (_model, both) = of_loaded(&again, "both")?;
    let found = gradient(|x| Ok(both.call_flat(std::slice::from_ref(x))?.remove(0)), 0.5)?;
    assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
    Ok(())
}

#[test]
fn gradients_of_several_models_stay_apart() -> Outcome {
    #[derive(Trackable)]
    struct Pair {
        first: Object,
        second: Object,
    }
    let folder = tempfile::tempdir()?;
    let loaded = |w: f32| {
        let at = folder.path().join(w.to_string());
        save(&model_of(w)?, &at, &SaveOptions::default())?;
        let loaded = load(&Context::new(), &at, &LoadOptions::default())?;
        Ok::<_, Box<dyn Error>>(loaded.root().ok_or("objects")?)
    };
    let pair = Pair { first: loaded(5.0)?, second: loaded(7.0)? };
    let both = folder.path().join("both");
    save(&pair, &both, &SaveOptions::default())?;
    let root = load(&Context::new(), &both, &LoadOptions::default())?.root().ok_or("objects")?;
    for (name, w) in [("first", 5.0), ("second", 7.0)] {
        let direct = root.get(name)?.get("direct")?;
        let direct = loaded_function(&direct.function()?.traces()[0])?;
        let found = gradient(|x| Ok(direct.call_flat(std::slice::from_ref(x))?.remove(0)), 0.5)?;
        let expected = 100.0 * w * 0.5f64.exp() + 0.5f64.sin();
        assert!((found - expected).abs() < 1e-3, "{name}: {found} instead of {expected}");
    }
    Ok(())
}

#[test]
fn a_gradient_that_cannot_be_traced_cannot_be_saved() -> Outcome {
    #[derive(Trackable)]
    struct Broken {
        f: Unary,
    }
    let f = function(|x: Tensor| {
        let f = |args: &[Tensor]| {
            let backward = |dys: &[Tensor]| Ok(vec![Some(dys[0].expand_dims(5)?)]);
            Ok((vec![args[0].square()?], backward))
        };
        Ok::<_, tracer::Error>(custom_gradient(f, &[x])?.remove(0))
    });
    let model = Broken { f: f.with_name("f") };
    assert_eq!(model.f.call((3.0f32,))?.to_scalar::<f32>()?, 9.0);
    let folder = tempfile::tempdir()?;
    let error = save(&model, folder.path(), &SaveOptions::default()).unwrap_err().to_string();
    assert!(error.contains("IdentityN"), "{error}");
    Ok(())
}

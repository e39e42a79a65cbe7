//! Graphs of functions: looking at them, writing them, reading them, taking parts of them.

use ferroflow::{
    ConcreteFunction, Tensor, Variable, function,
    graph_def::{OtherEffects, graph_function, import_graph_def, to_graph_def, write_graph_def},
    ir::{DType, HostTensor, Shape, tensor_name},
    runtime::Context,
    saved_model::{Session, bundle::Reader, proto::GraphDef, read_message},
    session::to_session,
    spec,
    tracer::{Capture, Result, v1},
};
use std::error::Error;

type Outcome = std::result::Result<(), Box<dyn Error>>;

fn scalar(value: f32) -> Tensor {
    Tensor::from(value)
}

/// `square(square(x))` for a scalar `x`.
fn twice_squared() -> Result<ConcreteFunction> {
    let f = function(|x: Tensor| x.square()?.square()).with_parameters(["x"]);
    f.concrete_for([spec(DType::F32, [])])
}

/// `matmul(x, w)` for any number of rows.
fn layer(w: &Variable) -> Result<ConcreteFunction> {
    let w = w.clone();
    let f = function(move |x: Tensor| x.matmul(&w)).with_name("layer").with_parameters(["x"]);
    f.concrete_for([spec(DType::F32, [None, Some(10)])])
}

fn weights() -> Result<Variable> {
    let elements: Vec<f32> = (0..100).map(|index| index as f32 / 100.0).collect();
    Variable::named("weights", Tensor::from_slice(&[10, 10], &elements)?)
}

/// Names, ops and inputs of the nodes, in order.
fn nodes(graph: &GraphDef) -> Vec<String> {
    let line = |node: &ferroflow::saved_model::proto::NodeDef| {
        format!("{:?} -> {} ({})", node.input, node.name, node.op)
    };
    graph.node.iter().map(line).collect()
}

// spec: 151, 152
#[test]
fn captures_and_graph_of_a_function() -> Outcome {
    let (w, counter) = (weights()?, Variable::named("counter", 0i32)?);
    let table = Tensor::from_slice(&[200], &[1.0f32; 200])?;
    let f = {
        let (w, counter) = (w.clone(), counter.clone());
        function(move |x: Tensor| {
            counter.assign_add(1)?;
            &x.matmul(&w)? + &table.sum_all()?
        })
    };
    let f = f.concrete_for([spec(DType::F32, [None, Some(10)])])?;
    let names: Vec<String> = f.variables().iter().map(|v| v.name().to_string()).collect();
    assert_eq!(names, ["counter", "weights"]);
    let is_tensor = |capture: &&Capture| matches!(capture, Capture::Tensor(_));
    let tensors: Vec<&Capture> = f.captures().iter().filter(is_tensor).collect();
    assert_eq!((f.captures().len(), tensors.len()), (3, 1));
    let graph = f.graph();
    for node in ["AssignAddVariableOp", "MatMul", "Identity"] {
        assert_eq!(graph[graph.find(node).ok_or(node)?].op.name(), node);
    }
    Ok(())
}

// spec: 153
#[test]
fn nodes_of_the_graph_of_double() -> Outcome {
    let double = function(|a: Tensor| &a + &a).with_name("double").with_parameters(["a"]);
    let graph = to_graph_def(&double.concrete(("a",))?)?;
    assert_eq!(
        nodes(&graph),
        [
            r#"[] -> a (Placeholder)"#,
            r#"["a", "a"] -> add (Add)"#,
            r#"["add"] -> Identity (Identity)"#
        ]
    );
    let sum = import_graph_def(&graph, &[("a:0", Tensor::from("b"))], &["Identity:0"])?;
    assert_eq!(sum[0].to_text()?, "bb");
    Ok(())
}

// spec: 3, 154
#[test]
fn parameters_or_graph_or_both_are_saved() -> Outcome {
    let (folder, w) = (tempfile::tempdir()?, weights()?);
    let f = layer(&w)?;
    let in_session = to_session(&f)?;
    let checkpoint = folder.path().join("checkpoint");
    in_session.session.save_variables(&checkpoint)?;
    let stored = Reader::open(&checkpoint, &Default::default())?.read("weights")?;
    assert_eq!(stored.as_slice::<f32>()?, w.read()?.to_vec::<f32>()?);

    let file = folder.path().join("graph.pb");
    write_graph_def(&f, &file)?;
    let graph: GraphDef = read_message(&file)?;
    assert_eq!(graph, to_graph_def(&f)?);

    let both = folder.path().join("model");
    let (input, output) = (in_session.inputs[0].as_str(), in_session.outputs[0].as_str());
    ferroflow::saved_model::simple_save(
        &in_session.session,
        &both,
        &[("x", input)],
        &[("y", output)],
    )?;
    let loaded = ferroflow::saved_model::simple_load(&Context::new(), &both)?;
    let x = Tensor::from_slice(&[1, 10], &[1.0f32; 10])?;
    let y = loaded.session.run(
        &[(&loaded.inputs["x"], x.eager()?.clone())],
        &[&loaded.outputs["y"]],
        &[],
    )?;
    assert_eq!(y[0].host()?.as_slice::<f32>()?, f.call_flat(&[x])?[0].to_vec::<f32>()?);
    Ok(())
}

// spec: 156
#[test]
fn a_graph_goes_through_a_file() -> Outcome {
    let (folder, w) = (tempfile::tempdir()?, weights()?);
    let f = layer(&w)?;
    let file = folder.path().join("graph.pb");
    write_graph_def(&f, &file)?;
    let graph: GraphDef = read_message(&file)?;
    let x = Tensor::from_slice(&[2, 10], &[0.5f32; 20])?;
    let expected = f.call_flat(std::slice::from_ref(&x))?[0].to_vec::<f32>()?;

    let capture = "ReadVariableOp/resource:0";
    let found: Vec<&str> = graph.node.iter().map(|node| node.name.as_str()).collect();
    assert!(found.contains(&capture.trim_end_matches(":0")), "{found:?}");
    let feeds = [("x:0", x.clone()), (capture, w.handle())];
    let eager = import_graph_def(&graph, &feeds, &["Identity:0"])?;
    assert_eq!(eager[0].to_vec::<f32>()?, expected);

    let session = Session::of_graph(&Context::new(), &file)?;
    let value = w.read()?.eager()?.clone();
    let feeds = [("x:0", x.eager()?.clone()), ("ReadVariableOp:0", value)];
    let fetched = session.run(&feeds, &["Identity:0"], &[])?;
    assert_eq!(fetched[0].host()?.as_slice::<f32>()?, expected);

    let again = function(move |x: Tensor| {
        let feeds = [("x:0", x), (capture, w.handle())];
        import_graph_def(&graph, &feeds, &["MatMul:0"])
    });
    let traced = again.concrete_for([spec(DType::F32, [None, Some(10)])])?;
    assert_eq!(traced.call_flat(&[x])?[0].to_vec::<f32>()?, expected);
    Ok(())
}

// spec: 157
#[test]
fn graphs_can_be_walked() -> Outcome {
    let (f, mut path) = (twice_squared()?, Vec::new());
    let graph = f.graph();
    let mut at = graph.find("Identity").ok_or("no result")?;
    loop {
        path.push(graph[at].op.name());
        let Some(input) = graph[at].inputs().first() else { break };
        at = input.node;
    }
    assert_eq!(path, ["Identity", "Square", "Square", "_Arg"]);
    let users: Vec<&str> = graph.data_consumers(at).map(|id| &*graph[id].name).collect();
    assert_eq!(users, ["Square"]);
    let y = tensor_name::find(graph, "Square_1:0")?;
    assert_eq!(graph.ty(y).ok_or("no type")?.to_string(), "float32[]");
    Ok(())
}

// spec: 158, 159
#[test]
fn a_function_of_a_part_of_a_graph() -> Outcome {
    let f = twice_squared()?;
    let pruned = f.prune(&["Square:0"], &["Square_1:0"])?;
    assert_eq!(pruned.call_flat(&[scalar(2.0)])?[0].to_scalar::<f32>()?, 4.0);
    let graph = to_graph_def(&f)?;
    for effects in [OtherEffects::Drop, OtherEffects::Keep] {
        let f2 = graph_function(&graph, &["Square:0"], &["Square_1:0"], effects)?;
        assert_eq!(f2.call_flat(&[scalar(2.0)])?[0].to_scalar::<f32>()?, 4.0);
        assert_eq!(
            f2.call_named(&[], &[("Square", 2.0f32.into())])?.tensor()?.to_scalar::<f32>()?,
            4.0
        );
        assert!(f2.graph().find("x").is_none());
    }
    let absent = f.prune(&["Square:1"], &["Square_1:0"]).unwrap_err().to_string();
    assert_eq!(absent, "tensor `Square:1` does not exist");
    let unfed = f.prune(&[], &["Square_1:0"]).unwrap_err().to_string();
    assert!(unfed.contains("argument `x`, which is not fed"), "{unfed}");
    Ok(())
}

// spec: 160
#[test]
fn effects_beside_the_part_are_dropped_if_asked() -> Outcome {
    let count = Variable::named("count", 0i32)?;
    let f = {
        let count = count.clone();
        function(move |x: Tensor| {
            let y = x.square()?;
            count.assign_add(1)?;
            y.square()
        })
    };
    let f = f.concrete_for([spec(DType::F32, [])])?;
    let counted = |effects, calls: usize| -> Result<i32> {
        let before = count.read()?.to_scalar::<i32>()?;
        let part = f.carve(&["Square:0"], &["Square_1:0"], effects)?;
        for _ in 0..calls {
            assert_eq!(part.call_flat(&[scalar(3.0)])?[0].to_scalar::<f32>()?, 9.0);
        }
        Ok(count.read()?.to_scalar::<i32>()? - before)
    };
    assert_eq!(counted(OtherEffects::Drop, 3)?, 0);
    assert_eq!(counted(OtherEffects::Keep, 3)?, 3);

    let graph = to_graph_def(&f)?;
    let resource = "AssignAddVariableOp/resource:0";
    let kept =
        graph_function(&graph, &["Square:0", resource], &["Square_1:0"], OtherEffects::Keep)?;
    kept.call_flat(&[scalar(3.0), count.handle()])?;
    assert_eq!(count.read()?.to_scalar::<i32>()?, 4);
    let dropped = graph_function(&graph, &["Square:0"], &["Square_1:0"], OtherEffects::Drop)?;
    assert_eq!(dropped.call_flat(&[scalar(3.0)])?[0].to_scalar::<f32>()?, 9.0);
    assert!(dropped.graph().find("AssignAddVariableOp").is_none());
    Ok(())
}

// spec: 161
#[test]
fn a_graph_is_extended_by_calling_it() -> Outcome {
    let f = function(|x: Tensor| x.square());
    let g = {
        let f = f.clone();
        function(move |x: Tensor| f(x)?.square())
    };
    assert_eq!(g(scalar(2.0))?.to_scalar::<f32>()?, 16.0);

    let build_graph = function(|x: Tensor| x.square()).with_parameters(["Placeholder"]);
    let built = to_graph_def(&build_graph.concrete_for([spec(DType::F32, [])])?)?;
    let extended = function(move |x: Tensor| {
        import_graph_def(&built, &[("Placeholder:0", x)], &["Square:0"])?[0].square()
    });
    assert_eq!(extended(scalar(2.0))?.to_scalar::<f32>()?, 16.0);
    Ok(())
}

// spec: 5, 149
#[test]
fn code_that_builds_graphs_is_reused() -> Outcome {
    /// A layer as libraries of TensorFlow 1 had it.
    fn dense(x: &Tensor, units: usize) -> Result<Tensor> {
        let ones = |shape: &[usize]| {
            Ok(HostTensor::from_slice(Shape::new(shape.to_vec())?, &[1.0f32; 4])?.into())
        };
        let w = v1::get_variable("w", &[2, units], ones)?;
        x.matmul(&w)
    }
    let squares = to_graph_def(&twice_squared()?)?;
    let code = move |x: Tensor| {
        let y = dense(&x, 2)?;
        import_graph_def(&squares, &[("Square:0", y)], &["Square_1:0"])?[0].square()
    };
    let f = v1::wrap_function(code, [spec(DType::F32, [Some(1), Some(2)])])?;
    let x = Tensor::from([[1.0f32, 2.0]]);
    assert_eq!(f.call_flat(&[x])?[0].to_vec::<f32>()?, [81.0, 81.0]);
    let names: Vec<&str> = f.variables().iter().map(Variable::name).collect();
    assert_eq!(names, ["w"]);
    Ok(())
}

#[test]
fn a_graph_is_imported_twice_into_one_trace() -> Outcome {
    let square = function(|x: Tensor| x.square()).with_name("square");
    let calls = function(move |x: Tensor| square(x)).with_parameters(["x"]);
    let graph = to_graph_def(&calls.concrete_for([spec(DType::F32, [])])?)?;
    assert_eq!(graph.library.as_ref().map(|library| library.function.len()), Some(1));
    let twice = function(move |x: Tensor| {
        let y = import_graph_def(&graph, &[("x", x)], &["Identity"])?.remove(0);
        Ok::<_, ferroflow::tracer::Error>(
            import_graph_def(&graph, &[("x", y)], &["Identity"])?.remove(0),
        )
    });
    let twice = twice.concrete_for([spec(DType::F32, [])])?;
    assert_eq!(twice.call_flat(&[scalar(3.0)])?[0].to_scalar::<f32>()?, 81.0);
    // What was imported can be written again.
    let again = import_graph_def(
        &to_graph_def(&twice)?,
        &[(&format!("{}:0", twice.def().arg_name(0)), scalar(3.0))],
        &["Identity:0"],
    )?;
    assert_eq!(again[0].to_scalar::<f32>()?, 81.0);
    Ok(())
}

#[test]
fn what_does_not_fit_is_said() -> Outcome {
    let graph = to_graph_def(&twice_squared()?)?;
    let message = |feeds: &[(&str, Tensor)], fetch: &str| {
        import_graph_def(&graph, feeds, &[fetch]).map(drop).unwrap_err().to_string()
    };
    let absent = message(&[("y:0", scalar(1.0))], "Identity:0");
    assert_eq!(absent, "tensor `y:0` does not exist");
    assert_eq!(message(&[], "Square:3"), "tensor `Square:3` does not exist");
    let dtype = message(&[("x:0", Tensor::from(1i32))], "Identity:0");
    assert!(dtype.contains("was expected to be a float32 tensor but is a int32 tensor"), "{dtype}");
    let unfed = message(&[], "Identity:0");
    assert!(unfed.contains("(node `x`, op Placeholder"), "{unfed}");
    let twice = message(&[("x:0", scalar(1.0)), ("x", scalar(1.0))], "Identity:0");
    assert_eq!(twice, "fed tensor `x:0` exists already");
    Ok(())
}

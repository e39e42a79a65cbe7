//! A digest of "Analyzing tf.function", in Chinese: what it says beside the article, and its printed results.

use super::Outcome;
use ferroflow::{
    Tensor, Variable, function,
    ir::{FunctionLibrary, HostTensor, Shape, build::GraphBuilder},
    runtime::Context,
    saved_model::{Session, convert::graph_message},
    tracer::Result,
};

/// A graph of TensorFlow 1 and its session, with an initializer that is run by hand.
#[test]
fn a_session_runs_a_graph() -> Outcome {
    let mut g = GraphBuilder::new();
    let square = |values: &[f32]| HostTensor::from_slice(Shape::new([2, 2])?, values);
    let a = g.constant("a", square(&[10.0, 10.0, 11.0, 1.0])?)?;
    let x = g.constant("x", square(&[1.0, 0.0, 0.0, 1.0])?)?;
    let initial = g.constant("initial", HostTensor::scalar(12.0f32))?;
    let attrs = ferroflow::ir::Attrs::new()
        .with("dtype", ferroflow::ir::DType::F32)
        .with("shape", ferroflow::ir::PartialShape::scalar())
        .with("shared_name", "b");
    let b = g.call_with("VarHandleOp", "b", attrs, &[])?[0];
    g.call("AssignVariableOp", "init_op", &[b, initial])?;
    let dtype = ferroflow::ir::Attrs::new().with("dtype", ferroflow::ir::DType::F32);
    let read = g.call_with("ReadVariableOp", "read", dtype, &[b])?[0];
    let product = g.call("MatMul", "matmul", &[a, x])?[0];
    g.call("AddV2", "y", &[product, read])?;

    let graph = graph_message(g.graph(), &FunctionLibrary::new())?;
    let sess = Session::of_graph_def(&Context::new(), graph)?;
    sess.run(&[], &[], &["init_op"])?;
    let y = sess.run(&[], &["y:0"], &[])?;
    assert_eq!(y[0].host()?.to_string(), "[[22. 22.]\n [23. 13.]]");
    Ok(())
}

#[test]
fn eager_code_needs_neither() -> Outcome {
    let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
    let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
    let b = Variable::new(12.0)?;
    let y = a.matmul(&x)? + &b;
    assert_eq!(y?.to_string(), "[[22. 22.]\n [23. 13.]]");
    Ok(())
}

#[test]
fn a_function_of_a_variable_gives_the_same() -> Outcome {
    #[function]
    fn f(b: &Variable) -> Result<Tensor> {
        let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
        let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
        a.matmul(&x)? + b
    }
    let b = Variable::new(12.0)?;
    assert_eq!(f(&b)?.to_string(), "[[22. 22.]\n [23. 13.]]");
    Ok(())
}

#[test]
fn results_print_with_shape_and_dtype() -> Outcome {
    #[function]
    fn g(x: &Variable) -> Result<Tensor> {
        x.assign_add(1)?;
        x.read()
    }
    let a = Variable::new(0)?;
    let printed = |tensor: Tensor| format!("{tensor:?}");
    assert_eq!(printed(g(&a)?), "Tensor(1, shape=(), dtype=int32)");
    assert_eq!(printed(g(&a)?), "Tensor(2, shape=(), dtype=int32)");
    assert_eq!(printed(g(&a)?), "Tensor(3, shape=(), dtype=int32)");
    Ok(())
}

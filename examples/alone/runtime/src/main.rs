//! A function of a graph is compiled and called, by `ferroflow-runtime` alone.

use ferroflow_runtime::ir::{
    Attrs, DType, HostTensor, PartialShape, ValueType, build::GraphBuilder,
};
use ferroflow_runtime::{CallableFunction, Context, Result, execute};

fn main() -> Result<()> {
    let mut builder = GraphBuilder::new();
    let x = builder.arg("x", ValueType::new(DType::F32, PartialShape::of_rank(1)))?;
    let y = builder.call("Square", "y", &[x])?[0];
    let square = builder.finish_function("square", &[("y", y)]);
    let square = CallableFunction::new(&Context::new(), square)?;
    let y = square.call(&[HostTensor::vector(&[1.0f32, 2.0, 3.0])?.into()])?;
    assert_eq!(y[0].host()?.as_slice::<f32>()?, [1.0, 4.0, 9.0]);
    // The kernels of linear algebra are a feature, which is off here.
    let matrix = HostTensor::zeros(DType::F32, ferroflow_runtime::ir::Shape::new([2, 2])?)?;
    let error = execute(&Context::new(), "Cholesky", Attrs::new(), &[matrix.into()]).unwrap_err();
    assert!(error.to_string().contains("Cholesky needs the feature `linalg`"), "{error}");
    Ok(())
}

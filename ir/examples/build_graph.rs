//! Builds a graph, verifies it and prints it: `cargo run -p ferroflow-ir --example build_graph`

use ferroflow_ir::{DType, PartialShape, Result, build::GraphBuilder, verify::verify_graph};

fn main() -> Result<()> {
    let mut builder = GraphBuilder::new();
    let x = builder.placeholder("x", DType::F32, PartialShape::ranked([None, Some(3)]))?;
    let y = builder.call("Tanh", "y", &[x])?[0];
    builder.call("Mul", "z", &[x, y])?;
    let graph = builder.finish();
    verify_graph(&graph)?;
    println!("{graph}");
    Ok(())
}

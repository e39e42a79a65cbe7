//! A graph is built, verified and printed, by `ferroflow-ir` alone.

use ferroflow_ir::{DType, PartialShape, Result, build::GraphBuilder, verify::verify_graph};

fn main() -> Result<()> {
    let mut builder = GraphBuilder::new();
    let x = builder.placeholder("x", DType::F32, PartialShape::ranked([None, Some(3)]))?;
    builder.call("Tanh", "y", &[x])?;
    let graph = builder.finish();
    verify_graph(&graph)?;
    assert!(graph.to_string().contains("%y = Tanh(%x)"));
    Ok(())
}

//! A function is traced, called and differentiated, by `ferroflow-tracer` alone.

use ferroflow_tracer::{GradientTape, Result, Tensor, Variable, function};

fn main() -> Result<()> {
    let w = Variable::new([[2.0f32, 0.0], [0.0, 2.0]])?;
    let weight = w.clone();
    let f = function(move |x: Tensor| x.matmul(&weight)?.relu());
    let tape = GradientTape::new();
    let y = f(Tensor::from([[1.0f32, -1.0]]))?;
    let gradient = tape.gradient(&y, &w)?;
    println!("{y:?} {gradient:?}");
    Ok(())
}

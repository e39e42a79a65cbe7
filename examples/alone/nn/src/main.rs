//! A layer is called, by `ferroflow-nn` alone.

use ferroflow_nn::tracer::{Result, Tensor};
use ferroflow_nn::{Dense, Layer, Mode, Module, Weights};

fn main() -> Result<()> {
    let layer = Dense::new(&mut Weights::seeded(1), 3, 2)?;
    let y = layer.call(&Tensor::from([[1.0f32, 2.0, 3.0]; 4]), Mode::Inference)?;
    assert_eq!(y.shape().to_string(), "[4,2]");
    assert_eq!(layer.trainable_variables()?.len(), 2);
    Ok(())
}

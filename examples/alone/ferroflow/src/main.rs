//! An array of NumPy is written and read, by `ferroflow` without its program, devices and optional kernels.

use ferroflow::{ir::HostTensor, npy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("alone-{}.npy", std::process::id()));
    let x = HostTensor::vector(&[1.0f32, 2.0, 3.0])?;
    npy::write(&path, &x)?;
    assert_eq!(npy::read(&path)?, x);
    std::fs::remove_file(path)?;
    Ok(())
}

//! A variable is saved and restored, by `ferroflow-saved-model` alone.

use ferroflow_saved_model::{Checkpoint, Result, ir::HostTensor, runtime::ResourceVariable};

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("alone-{}", std::process::id()));
    let w = ResourceVariable::new("w", HostTensor::scalar(3.0f32));
    let checkpoint = Checkpoint::new().with("w", &w);
    let saved = checkpoint.save(folder.join("model"))?;
    w.assign(HostTensor::scalar(0.0f32))?;
    checkpoint.restore(&saved)?.assert_consumed()?;
    assert_eq!(w.read()?.as_scalar::<f32>()?, 3.0);
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

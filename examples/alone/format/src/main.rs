//! A checkpoint is written and read, by `ferroflow-format` alone.

use ferroflow_format::bundle::{Reader, Writer};
use ferroflow_format::{Result, ir::HostTensor, ir::Limits};

fn main() -> Result<()> {
    let prefix = std::env::temp_dir().join(format!("alone-{}/model", std::process::id()));
    let mut writer = Writer::create(&prefix)?;
    writer.add("dense/bias", &HostTensor::vector(&[0.5f32, 0.25])?)?;
    writer.finish()?;
    let reader = Reader::open(&prefix, &Limits::default())?;
    assert_eq!(reader.read("dense/bias")?.as_slice::<f32>()?, [0.5, 0.25]);
    std::fs::remove_dir_all(prefix.parent().unwrap()).unwrap();
    Ok(())
}

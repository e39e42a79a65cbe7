//! Writes a small checkpoint: `cargo run --example write_checkpoint -- path/to/model.ckpt-3`

use ferroflow_format::{Result, bundle::Writer};
use ferroflow_ir::{HostTensor, Shape};

fn main() -> Result<()> {
    let prefix = std::env::args().nth(1).unwrap_or_else(|| "model.ckpt".into());
    let mut writer = Writer::create(prefix)?;
    let kernel = HostTensor::from_slice(Shape::new([2, 3])?, &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    writer.add("dense/kernel", &kernel)?;
    writer.add("dense/bias", &HostTensor::vector(&[0.5f32, 0.25, 0.125])?)?;
    let words = vec!["a".into(), "".into(), "long ".repeat(100).into()];
    writer.add("words", &HostTensor::from_strings(Shape::new([3])?, words)?)?;
    let halves = [("0,1:-", [6.0f64, 7.0]), ("1,1:-", [8.0, 9.0])];
    for (slice, values) in halves {
        let spec = format!("2 2 {slice}").parse().expect("a slice as its text form asks for");
        let part = HostTensor::from_slice(Shape::new([1, 2])?, &values)?;
        writer.add_slice("partitioned", &spec, &part)?;
    }
    writer.finish()
}

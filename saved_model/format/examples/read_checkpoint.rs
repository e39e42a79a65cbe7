//! Lists the tensors of a checkpoint: `cargo run --example read_checkpoint -- path/to/model.ckpt-3`

use ferroflow_format::{Result, bundle::Reader};
use ferroflow_ir::Limits;

fn main() -> Result<()> {
    let prefix = std::env::args().nth(1).unwrap_or_else(|| "model.ckpt".into());
    let reader = Reader::open(prefix, &Limits::default())?;
    for (name, _) in reader.entries() {
        println!("{name}: {:?}", reader.read(name)?);
    }
    Ok(())
}

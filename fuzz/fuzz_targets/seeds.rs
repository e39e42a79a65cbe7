//! Writes the corpora: `cargo run --manifest-path fuzz/Cargo.toml --bin seeds -- TARGET…`.

use std::path::Path;

fn main() -> anyhow::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    for target in std::env::args().skip(1) {
        let corpus = here.join("corpus").join(&target);
        let count = ferroflow_fuzz::write_seeds(&target, &here.join(".."), &corpus)?;
        println!("{}: {count} files", corpus.display());
    }
    Ok(())
}

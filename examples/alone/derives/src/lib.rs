//! No code: features of the parser that derives are built with (`Cargo.toml`).

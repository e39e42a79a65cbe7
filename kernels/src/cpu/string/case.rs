//! Case and white space: `StringLower`, `StringUpper`, `StringStrip`.

use super::{Mapped, put_mapped, trimmed};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("StringLower", lower), ("StringStrip", strip), ("StringUpper", upper)];

fn lower(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    if call.attrs.string("encoding")?.is_empty() {
        return map(call, |text| text.to_ascii_lowercase().into());
    }
    map(call, |text| String::from_utf8_lossy(before_nul(text)).to_lowercase().into())
}

fn upper(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    if call.attrs.string("encoding")?.is_empty() {
        return map(call, |text| text.to_ascii_uppercase().into());
    }
    map(call, |text| String::from_utf8_lossy(before_nul(text)).to_uppercase().into())
}

/// The text before its first NUL, where TensorFlow ends texts of Unicode.
fn before_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn strip(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    map(call, |text| text.slice_ref(trimmed(text)))
}

fn map(call: &OpCall<'_>, change: fn(&Bytes) -> Bytes) -> Result<Option<Arc<dyn Kernel>>> {
    let mapped = Mapped::new(call);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| put_mapped(io, &mapped, |text| Ok(change(text))))))
}

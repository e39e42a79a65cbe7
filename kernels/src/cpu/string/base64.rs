//! Bytes as text: `EncodeBase64`, `DecodeBase64` (RFC 4648 §5, the web-safe alphabet).

use super::{Mapped, put_mapped};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::general_purpose::{GeneralPurpose, NO_PAD, PAD},
};
use bytes::Bytes;
use ferroflow_ir::Error;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("DecodeBase64", decode), ("EncodeBase64", encode)];

fn encode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (mapped, pad) = (Mapped::new(call), call.attrs.bool("pad")?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        put_mapped(io, &mapped, |bytes| Ok(Bytes::from(encoded(bytes, pad))))
    })))
}

fn decode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let mapped = Mapped::new(call);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        put_mapped(io, &mapped, |text| {
            let bytes = decoded(text).map(Bytes::from);
            bytes.ok_or_else(|| {
                let found = String::from_utf8_lossy(text);
                Error::argument("DecodeBase64", "input", "web-safe Base64", found).into()
            })
        })
    })))
}

/// The web-safe alphabet. Bits that are too many are ignored.
const NO_PADDING: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));
const PADDING: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, PAD);

fn encoded(bytes: &[u8], pad: bool) -> String {
    if pad { PADDING.encode(bytes) } else { NO_PADDING.encode(bytes) }
}

/// The bytes; `None` for text that is not encoded bytes. Padding may be missing, but not half of it.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let body = match text {
        [body @ .., b'=', b'='] | [body @ .., b'='] if text.len().is_multiple_of(4) => body,
        body => body,
    };
    NO_PADDING.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for length in 0..20u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(77)).collect();
            for pad in [false, true] {
                assert_eq!(decoded(encoded(&bytes, pad).as_bytes()), Some(bytes.clone()));
            }
        }
        assert_eq!(encoded(&[0xfb, 0xff, 0xfe, 0], true), "-__-AA==");
        assert_eq!(decoded(b"AB"), Some(vec![0]));
        for bad in ["A", "AA=", "!!!!", "+/+/", "AA=A", "====", "AAA=AAAA", "A==="] {
            assert_eq!(decoded(bad.as_bytes()), None, "{bad}");
        }
    }
}

//! Bytes as text: `EncodeBase64`, `DecodeBase64` (RFC 4648 §5, the web-safe alphabet).

use super::{Mapped, put_mapped};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::Error;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("DecodeBase64", decode), ("EncodeBase64", encode)];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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

fn encoded(bytes: &[u8], pad: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        let letters = (0..=group.len()).map(|n| ALPHABET[(bits >> (18 - 6 * n)) as usize & 63]);
        text.extend(letters);
        if pad {
            text.extend(std::iter::repeat_n(b'=', 3 - group.len()));
        }
    }
    text
}

/// The bytes; `None` for text that is not encoded bytes. Padding may be missing, and the bits that
/// are too many are ignored.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let body = match text.len() % 4 {
        0 => match text {
            [body @ .., b'=', b'='] | [body @ .., b'='] => body,
            body => body,
        },
        1 => return None,
        _ => text,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in body.chunks(4) {
        let mut bits = 0;
        for (n, &letter) in group.iter().enumerate() {
            bits |= value(letter)? << (18 - 6 * n);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..][..group.len() - 1]);
    }
    Some(bytes)
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for length in 0..20u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(77)).collect();
            for pad in [false, true] {
                assert_eq!(decoded(&encoded(&bytes, pad)), Some(bytes.clone()));
            }
        }
        assert_eq!(encoded(&[0xfb, 0xff, 0xfe, 0], true), b"-__-AA==");
        for bad in ["A", "AA=", "!!!!", "+/+/", "AA=A", "====", "AAA=AAAA", "A==="] {
            assert_eq!(decoded(bad.as_bytes()), None, "{bad}");
        }
    }
}

//! Strings as buckets: `StringToHashBucket`, `StringToHashBucketFast`, `StringToHashBucketStrong`;
//! rows as bytes: `Fingerprint`; strings as pairs of numbers: `SdcaFprint`.

use super::{Mapped, put_mapped};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    hash::{
        fingerprint::{fingerprint64, fingerprint128},
        murmur::hash64,
        siphash::siphash24,
    },
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, budget};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("Fingerprint", fingerprint),
    ("SdcaFprint", halves),
    ("StringToHashBucket", plain),
    ("StringToHashBucketFast", fast),
    ("StringToHashBucketStrong", strong),
];

fn plain(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    buckets(call, hash64)
}

fn fast(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    buckets(call, fingerprint64)
}

fn strong(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    match *call.attrs.ints("key")? {
        [low, high] => buckets(call, move |text| siphash24([low as u64, high as u64], text)),
        _ => Err(call.wrong("key", "2 integers", call.attrs.ints("key")?.len())),
    }
}

fn buckets(
    call: &OpCall<'_>,
    hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static,
) -> Result<Option<Arc<dyn Kernel>>> {
    let (mapped, n_buckets) = (Mapped::new(call), call.attrs.int("num_buckets")? as u64);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        put_mapped(io, &mapped, |text| Ok((hash(text) % n_buckets) as i64))
    })))
}

/// The two halves of the fingerprint of each string.
fn halves(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (strings, out): (_, &mut [i64]) = (io.strings(0)?, io.output(0));
        for (text, out) in strings.iter().zip(out.chunks_exact_mut(2)) {
            budget::tick();
            out.copy_from_slice(&fingerprint128(text).map(|half| half as i64));
        }
        Ok(())
    })))
}

/// Eight bytes for each row: those of its fingerprint, the lowest first. Strings in rows of several stand
/// for their own fingerprints.
fn fingerprint(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (op, dtype, shape) = (call.op.name, call.dtype(0), call.shape(0).clone());
    let n_rows = shape[0];
    let is_each_a_row = n_rows == shape.num_elements();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let method = &io.strings(1)?[0];
        if method != "farmhash64" {
            let found = String::from_utf8_lossy(method).into_owned();
            return Err(Error::argument(op, "method", "farmhash64", found).into());
        }
        let own: Vec<u8> = match dtype {
            DType::String => {
                let strings = io.strings(0)?.iter();
                strings.flat_map(|text| fingerprint64(text).to_le_bytes()).collect()
            }
            _ => io.bytes(0).to_vec(),
        };
        let bytes: Vec<u8> = match dtype {
            DType::String if is_each_a_row => own,
            _ => {
                let size = own.len() / n_rows.max(1);
                let row = |row: usize| &own[row * size..][..size];
                let rows = (0..n_rows).inspect(|_| budget::tick());
                rows.flat_map(|at| fingerprint64(row(at)).to_le_bytes()).collect()
            }
        };
        u8::write(io, 0, DType::U8, &Shape::new([n_rows, 8])?, |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })
    })))
}

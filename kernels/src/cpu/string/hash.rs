//! Strings as buckets: `StringToHashBucket`, `StringToHashBucketFast`, `StringToHashBucketStrong`.

use super::{Mapped, put_mapped};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    hash::{fingerprint::fingerprint64, murmur::hash64, siphash::siphash24},
    kernel::{Io, Kernel},
};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
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

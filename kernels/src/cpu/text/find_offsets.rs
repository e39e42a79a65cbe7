//! Offsets before normalization: `FindSourceOffsets`.

use super::{normalize::OffsetsMap, put_vector, rows};
use crate::{
    cpu::{Build, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("FindSourceOffsets", find_source_offsets)];

fn find_source_offsets(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(2);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (maps, offsets) = (io.handles(0)?, io.input::<i64>(1));
        let splits = integers(io, 2, dtype);
        let mut maps = maps.iter();
        let (mut sources, mut n_found) = (vec![0; offsets.len()], 0);
        for row in rows("FindSourceOffsets", &splits, offsets.len())? {
            // Rows without offsets have no map.
            if row.is_empty() {
                continue;
            }
            let map = maps.next().ok_or_else(|| mismatch("fewer"))?;
            let map: &OffsetsMap = map.as_any().downcast_ref().ok_or_else(|| {
                let found = format!("{map:?}");
                Error::argument("FindSourceOffsets", "offsets_map", "a map of offsets", found)
            })?;
            for &offset in &offsets[row] {
                let source_offset = sources.get_mut(n_found).ok_or_else(|| mismatch("fewer"))?;
                *source_offset = map.0.source(offset);
                n_found += 1;
            }
        }
        if maps.next().is_some() {
            return Err(mismatch("more"));
        }
        put_vector(io, 0, DType::I64, &sources)
    })))
}

fn mismatch(found: &'static str) -> crate::Error {
    let expected = "one map for each row with offsets";
    Error::argument("FindSourceOffsets", "offsets_map", expected, found).into()
}

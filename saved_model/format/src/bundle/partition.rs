//! Parts of tensors: cutting one out, and putting one together from the slices it is stored in.

use super::{
    Entry,
    data::check_limit,
    slice::{SliceRegion, TensorSlice},
};
use crate::error::{Error, Result};
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, Limits};

/// No variable has more slices than this; a file that says so is damaged. It keeps the check for
/// overlaps, which compares all pairs, short.
const MAX_SLICES: usize = 4096;

/// The part `region` of a whole tensor.
pub(super) fn crop(whole: HostTensor, region: &SliceRegion) -> Result<HostTensor> {
    let from = SliceRegion::whole(whole.shape());
    if *region == from {
        return Ok(whole);
    }
    let mut target = Target::new(whole.dtype(), region)?;
    target.copy(&whole, &from, region, region)?;
    target.finish(region)
}

/// The stored slices that `region` touches, after a check that together they hold all of it and
/// no element twice.
pub(super) fn cover<'a>(
    entry: &'a Entry,
    region: &SliceRegion,
) -> Result<Vec<(&'a TensorSlice, SliceRegion)>> {
    let wrong = |slice: &TensorSlice, rule| Error::Slice {
        slice: slice.to_string(),
        shape: entry.shape.clone(),
        rule,
    };
    if entry.slices.len() > MAX_SLICES {
        return Err(wrong(&entry.slices[0], "is one of too many"));
    }
    let mut parts: Vec<(&TensorSlice, SliceRegion)> = Vec::new();
    let mut n_covered = 0;
    for slice in &entry.slices {
        let stored = slice.region(&entry.shape)?;
        let Some(shared) = stored.intersect(region) else { continue };
        if parts.iter().any(|(_, other)| other.overlaps(&stored)) {
            return Err(wrong(slice, "overlaps another one"));
        }
        n_covered += shared.shape.num_elements();
        parts.push((slice, stored));
    }
    if n_covered != region.shape.num_elements() {
        return Err(wrong(&entry.slices[0], "and the others leave out elements"));
    }
    Ok(parts)
}

/// Puts `region` together from the parts that `cover` found.
pub(super) fn assemble(
    dtype: DType,
    region: &SliceRegion,
    parts: &[(&TensorSlice, SliceRegion)],
    limits: &Limits,
    mut read: impl FnMut(&TensorSlice) -> Result<HostTensor>,
) -> Result<HostTensor> {
    let size = dtype.size().unwrap_or(size_of::<Bytes>());
    check_limit(region.shape.num_elements().saturating_mul(size), limits)?;
    let mut target = Target::new(dtype, region)?;
    for (slice, stored) in parts {
        if let Some(shared) = stored.intersect(region) {
            target.copy(&read(slice)?, stored, &shared, region)?;
        }
    }
    target.finish(region)
}

/// A tensor that is filled piece by piece.
enum Target {
    Plain(HostTensor),
    Strings(Vec<Bytes>),
}

impl Target {
    fn new(dtype: DType, region: &SliceRegion) -> Result<Target> {
        if dtype == DType::String {
            return Ok(Target::Strings(vec![Bytes::new(); region.shape.num_elements()]));
        }
        Ok(Target::Plain(HostTensor::recycled(dtype, region.shape.clone())?))
    }

    /// Copies the elements of the box `shared` from a tensor that holds the box `from` to this
    /// one, which holds the box `to`.
    fn copy(
        &mut self,
        source: &HostTensor,
        from: &SliceRegion,
        shared: &SliceRegion,
        to: &SliceRegion,
    ) -> Result<()> {
        match self {
            Target::Strings(target) => {
                let source = source.strings()?;
                shared.runs(from, to, |at, into, len| {
                    target[into..into + len].clone_from_slice(&source[at..at + len]);
                });
            }
            Target::Plain(target) => {
                target.check(source.dtype())?;
                let size = source.dtype().size().unwrap_or(1);
                let (source, target) = (source.bytes(), target.bytes_mut());
                shared.runs(from, to, |at, into, len| {
                    let (at, into, len) = (at * size, into * size, len * size);
                    target[into..into + len].copy_from_slice(&source[at..at + len]);
                });
            }
        }
        Ok(())
    }

    fn finish(self, region: &SliceRegion) -> Result<HostTensor> {
        match self {
            Target::Plain(tensor) => Ok(tensor),
            Target::Strings(strings) => {
                Ok(HostTensor::from_strings(region.shape.clone(), strings)?)
            }
        }
    }
}

//! Data sets that are made of tensors.

use super::{Cardinality, Components, DatasetSource, Stream};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    files, glob,
    ops::RuntimeCall,
    rows::row,
};
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A data set of elements that are there.
#[derive(Debug, Clone)]
pub(super) struct Listed(pub(super) Arc<Vec<Components>>);

impl DatasetSource for Listed {
    fn stream(&self) -> Stream {
        let (elements, mut next) = (self.0.clone(), 0);
        Stream::new(move |_| {
            let element = elements.get(next).cloned();
            next += usize::from(element.is_some());
            Ok(element)
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Known(self.0.len() as u64)
    }
}

/// The elements along the first dimension of tensors.
#[derive(Debug, Clone)]
struct Slices {
    components: Arc<Vec<HostTensor>>,
    n: usize,
}

impl DatasetSource for Slices {
    fn stream(&self) -> Stream {
        let (Slices { components, n }, mut next) = (self.clone(), 0);
        Stream::new(move |_| {
            if next == n {
                return Ok(None);
            }
            let index = next;
            next += 1;
            let rows = components.iter().map(|component| row(component, index));
            rows.collect::<Result<_>>().map(Some)
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Known(self.n as u64)
    }
}

/// The paths of files that match patterns.
#[derive(Debug)]
struct MatchingFiles(Arc<Vec<PathBuf>>);

impl DatasetSource for MatchingFiles {
    fn stream(&self) -> Stream {
        let patterns = self.0.clone();
        let (mut next, mut found, mut has_match) = (0, VecDeque::new(), false);
        Stream::new(move |scope| {
            while found.is_empty() {
                let Some(pattern) = patterns.get(next) else { break };
                next += 1;
                let mut paths = Vec::new();
                glob::find(pattern, &|path: &Path| scope.check_file(path), &mut paths)?;
                paths.retain(|path| files::is_file(path));
                paths.sort();
                found.extend(paths);
            }
            let Some(path) = found.pop_front() else {
                if has_match {
                    return Ok(None);
                }
                let message = format!("no file matches {patterns:?}");
                return Err(Error::Status { code: Code::NotFound, message });
            };
            has_match = true;
            Ok(Some(vec![HostTensor::scalar_string(path.to_string_lossy().into_owned())]))
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

pub(super) fn matching_files(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let patterns = call.host(0)?;
    if patterns.shape().rank() > 1 {
        let (expected, found) = ("a scalar or a vector", patterns.shape());
        return Err(IrError::argument(call.op.name, "patterns", expected, found).into());
    }
    let paths = patterns.strings()?.iter().map(RuntimeCall::path_of);
    let paths = Arc::new(paths.collect::<Result<_>>()?);
    call.dataset(MatchingFiles(paths))
}

/// The common number of rows of tensors.
///
/// # Errors
///
/// [`IrError::Argument`] when a tensor is a scalar, or the numbers differ.
pub(super) fn n_rows(op: &'static str, components: &[HostTensor]) -> Result<usize> {
    let first = components.first().and_then(|tensor| tensor.shape().first().copied());
    let n =
        first.ok_or_else(|| IrError::argument(op, "components", "of rank 1 or more", "less"))?;
    match components.iter().find(|tensor| tensor.shape().first() != Some(&n)) {
        None => Ok(n),
        Some(other) => {
            let expected = format!("of {n} rows, as the first");
            Err(IrError::argument(op, "components", expected, other.shape()).into())
        }
    }
}

/// The numbers of a range.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: i64,
    step: i64,
    n: u64,
    dtype: DType,
}

impl DatasetSource for Range {
    fn stream(&self) -> Stream {
        let (Range { start, step, n, dtype }, mut next) = (*self, 0);
        Stream::new(move |_| {
            if next == n {
                return Ok(None);
            }
            let number = start.wrapping_add((next as i64).wrapping_mul(step));
            next += 1;
            Ok(Some(vec![number_of(number, dtype)?]))
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Known(self.n)
    }
}

/// An integer as a scalar of another dtype.
fn number_of(number: i64, dtype: DType) -> Result<HostTensor> {
    Ok(match dtype {
        DType::I64 => HostTensor::scalar(number),
        DType::I32 => HostTensor::scalar(number as i32),
        DType::I16 => HostTensor::scalar(number as i16),
        DType::I8 => HostTensor::scalar(number as i8),
        DType::U64 => HostTensor::scalar(number as u64),
        DType::U32 => HostTensor::scalar(number as u32),
        DType::U16 => HostTensor::scalar(number as u16),
        DType::U8 => HostTensor::scalar(number as u8),
        DType::F32 => HostTensor::scalar(number as f32),
        DType::F64 => HostTensor::scalar(number as f64),
        _ => {
            let what = format!("numbers of dtype {dtype}").into();
            return Err(IrError::Unsupported { op: "RangeDataset".into(), what }.into());
        }
    })
}

pub(super) fn tensor(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let element = call.tensors()?;
    call.dataset(Listed(Arc::new(vec![element])))
}

pub(super) fn slices(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let components = call.tensors()?;
    let n = n_rows(call.op.name, &components)?;
    call.dataset(Slices { components: Arc::new(components), n })
}

/// Elements whose components follow each other in the inputs.
pub(super) fn list(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_components = call.attrs.types("output_types")?.len();
    let tensors = call.tensors()?;
    if tensors.is_empty() || tensors.len() % n_components.max(1) != 0 {
        let expected = format!("a multiple of {n_components}");
        return Err(IrError::argument(call.op.name, "tensors", expected, tensors.len()).into());
    }
    let elements = tensors.chunks(n_components).map(<[HostTensor]>::to_vec).collect();
    call.dataset(Listed(Arc::new(elements)))
}

pub(super) fn range(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (start, stop, step) = (call.integer(0)?, call.integer(1)?, call.integer(2)?);
    if step == 0 {
        return Err(IrError::argument(call.op.name, "step", "not 0", step).into());
    }
    let distance = (i128::from(stop) - i128::from(start)) * i128::from(step.signum());
    let stride = i128::from(step).abs();
    let n = u64::try_from((distance + stride - 1).div_euclid(stride).max(0)).unwrap_or(u64::MAX);
    let dtype = call.attrs.types("output_types")?.first().copied().unwrap_or(DType::I64);
    number_of(0, dtype)?;
    call.dataset(Range { start, step, n, dtype })
}

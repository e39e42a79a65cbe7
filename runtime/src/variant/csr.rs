//! Sparse matrices, or batches of them, that know where each row begins: values of dtype variant.

use crate::{context::Context, error::Result};
use ferroflow_ir::{
    DType, Element, Error as IrError, Handle, HostTensor, Shape, budget, workspace,
};
use ferroflow_kernels::check_size;
use num_complex::Complex;
use std::{
    any::Any,
    collections::BTreeMap,
    ops::{Add, Mul, Range},
};

/// Types that entries of matrices may have.
pub(crate) trait MatrixEntry:
    Element + Default + Add<Output = Self> + Mul<Output = Self>
{
    /// The complex conjugate.
    fn conjugate(self) -> Self;
}

impl MatrixEntry for f32 {
    fn conjugate(self) -> f32 {
        self
    }
}

impl MatrixEntry for f64 {
    fn conjugate(self) -> f64 {
        self
    }
}

impl MatrixEntry for Complex<f32> {
    fn conjugate(self) -> Complex<f32> {
        self.conj()
    }
}

impl MatrixEntry for Complex<f64> {
    fn conjugate(self) -> Complex<f64> {
        self.conj()
    }
}

/// Calls a function for the type of the entries of a matrix.
macro_rules! by_number {
    ($dtype:expr, $function:ident($($arg:expr),*)) => {
        match $dtype {
            DType::F32 => $function::<f32>($($arg),*),
            DType::F64 => $function::<f64>($($arg),*),
            DType::C64 => $function::<Complex<f32>>($($arg),*),
            DType::C128 => $function::<Complex<f64>>($($arg),*),
            other => Err(wrong("dtype", "a float or complex one", other).into()),
        }
    };
}

/// A sparse matrix, or a batch of them.
///
/// **Invariant:** `starts` has one number more than there are rows, none less than the one before,
/// the last of them the number of entries; columns are columns of the matrix.
#[derive(Debug, Clone)]
pub(crate) struct Csr {
    batches: Option<usize>,
    rows: usize,
    width: usize,
    /// Where the entries of each row of each matrix begin.
    starts: Vec<usize>,
    columns: Vec<i32>,
    values: HostTensor,
}

impl Handle for Csr {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn wrong(
    argument: &'static str,
    expected: impl Into<String>,
    found: impl std::fmt::Display,
) -> IrError {
    IrError::argument("sparse matrix", argument, expected.into(), found)
}

/// Orientation of a matrix in a matmul.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Orientation {
    pub(crate) transposed: bool,
    pub(crate) conjugated: bool,
}

impl Orientation {
    pub(crate) fn is_none(self) -> bool {
        !self.transposed && !self.conjugated
    }
}

impl Csr {
    /// A matrix of entries at coordinates: row and column of each, after the matrix of the batch if
    /// there is one.
    ///
    /// # Errors
    ///
    /// When a place is outside, the rank is not 2 or 3, or there are too many rows.
    pub(crate) fn new(
        context: &Context,
        places: &HostTensor,
        values: HostTensor,
        dims: &[i64],
    ) -> Result<Csr> {
        let (batches, rows, width) = match *dims {
            [rows, width] => (None, rows, width),
            [batches, rows, width] => (Some(size(batches)?), rows, width),
            _ => return Err(wrong("dense_shape", "of 2 or 3 sizes", dims.len()).into()),
        };
        let (rows, width) = (size(rows)?, size(width)?);
        let n = values.len();
        if values.shape().rank() != 1 || places.shape()[..] != [n, dims.len()] {
            let expected = format!("of shape [{n}, {}]", dims.len());
            return Err(wrong("indices", expected, places.shape()).into());
        }
        let coordinates = places.as_slice::<i64>()?;
        let mut entries = Vec::with_capacity(n);
        for place in coordinates.chunks_exact(dims.len()) {
            if place.iter().zip(dims).any(|(index, size)| !(0..*size).contains(index)) {
                return Err(
                    wrong("indices", format!("within {dims:?}"), format!("{place:?}")).into()
                );
            }
            let [.., row, column] = *place else { continue };
            let batch = if batches.is_some() { place[0] as usize } else { 0 };
            entries.push((batch * rows + row as usize, column as i32));
        }
        let mut order: Vec<usize> = (0..n).collect();
        if !entries.is_sorted_by_key(|entry| entry.0) {
            order.sort_by_key(|&entry| entries[entry].0);
        }
        let matrix = Csr { batches, rows, width, starts: Vec::new(), columns: Vec::new(), values };
        matrix.filled(context, &entries, &order, false)
    }

    /// The same sizes with these entries (row among all rows, and column) in this order, whose
    /// values are at the same place among those of this matrix.
    fn filled(
        self,
        context: &Context,
        entries: &[(usize, i32)],
        order: &[usize],
        conjugated: bool,
    ) -> Result<Csr> {
        let n_rows = self.all_rows();
        check_size(DType::I64, &Shape::new([n_rows])?, context.limits().tensor_bytes)?;
        let mut starts: Vec<usize> = workspace::reserve(n_rows + 1)?;
        starts.resize(n_rows + 1, 0);
        for (row, _) in entries {
            starts[row + 1] += 1;
        }
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let columns = order.iter().map(|&entry| entries[entry].1).collect();
        let values = by_number!(self.values.dtype(), picked(&self.values, order, conjugated))?;
        Ok(Csr { starts, columns, values, ..self })
    }

    fn all_rows(&self) -> usize {
        self.batches.unwrap_or(1).saturating_mul(self.rows)
    }

    pub(crate) fn dims(&self) -> Vec<usize> {
        self.batches.into_iter().chain([self.rows, self.width]).collect()
    }

    /// # Errors
    ///
    /// When the entries have another dtype.
    pub(crate) fn check(&self, dtype: DType) -> Result<()> {
        Ok(self.values.check(dtype)?)
    }

    fn entries(&self, row: usize) -> Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The number of entries of each matrix: one number if this is no batch.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn n_entries(&self) -> Result<HostTensor> {
        let of = |batch: usize| {
            (self.starts[(batch + 1) * self.rows] - self.starts[batch * self.rows]) as i32
        };
        match self.batches {
            None => Ok(HostTensor::scalar(of(0))),
            Some(n) => Ok(HostTensor::vector(&(0..n).map(of).collect::<Vec<_>>())?),
        }
    }

    /// Where rows begin, columns and values of a matrix of the batch.
    ///
    /// # Errors
    ///
    /// When there is none of this number.
    pub(crate) fn components(&self, index: i32) -> Result<[HostTensor; 3]> {
        let n = self.batches.unwrap_or(1);
        let batch = usize::try_from(index).ok().filter(|batch| *batch < n);
        let batch = batch.ok_or_else(|| wrong("index", format!("less than {n}"), index))?;
        let starts = &self.starts[batch * self.rows..][..=self.rows];
        let range = starts[0]..starts[self.rows];
        let own: Vec<i32> = starts.iter().map(|start| (start - range.start) as i32).collect();
        let columns = HostTensor::vector(&self.columns[range.clone()])?;
        Ok([HostTensor::vector(&own)?, columns, self.values.rows(range)?])
    }

    /// The coordinates of the entries.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn coordinates(&self) -> Result<HostTensor> {
        let rank = self.dims().len();
        let mut coordinates = workspace::reserve(self.columns.len() * rank)?;
        for row in 0..self.all_rows() {
            for entry in self.entries(row) {
                if self.batches.is_some() {
                    coordinates.push((row / self.rows) as i64);
                }
                coordinates.extend([(row % self.rows) as i64, i64::from(self.columns[entry])]);
            }
        }
        Ok(HostTensor::from_slice(Shape::new([self.columns.len(), rank])?, &coordinates)?)
    }

    pub(crate) fn values(&self) -> &HostTensor {
        &self.values
    }

    /// All elements.
    ///
    /// # Errors
    ///
    /// When they are too many.
    pub(crate) fn to_dense(&self, context: &Context) -> Result<HostTensor> {
        by_number!(self.values.dtype(), dense(context, self))
    }

    /// The matrix with rows for columns, with the conjugates of its entries if it should be.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn turned(&self, context: &Context, turn: Orientation) -> Result<Csr> {
        let mut entries = Vec::with_capacity(self.columns.len());
        let rows = if turn.transposed { self.width } else { self.rows };
        for row in 0..self.all_rows() {
            let (batch, own) = (row / self.rows.max(1), row % self.rows.max(1));
            let columns = &self.columns[self.entries(row)];
            entries.extend(columns.iter().map(|&column| match turn.transposed {
                true => (batch * rows + column as usize, own as i32),
                false => (row, column),
            }));
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        if turn.transposed {
            order.sort_by_key(|&entry| entries[entry].0);
        }
        let width = if turn.transposed { self.rows } else { self.width };
        let width_fits = i32::try_from(width).is_ok();
        if !width_fits {
            return Err(wrong("columns", "at most those of int32", width).into());
        }
        let empty = Csr {
            batches: self.batches,
            rows,
            width,
            starts: Vec::new(),
            columns: Vec::new(),
            values: self.values.clone(),
        };
        empty.filled(context, &entries, &order, turn.conjugated)
    }

    /// The product with a dense matrix, or a batch of them.
    ///
    /// # Errors
    ///
    /// When the sizes do not go together, or the product is too large.
    pub(crate) fn times_dense(
        &self,
        context: &Context,
        dense: &HostTensor,
        turns: [Orientation; 2],
    ) -> Result<HostTensor> {
        by_number!(self.values.dtype(), matmul(context, self, dense, turns))
    }

    /// The product with another matrix, or batch of them.
    ///
    /// # Errors
    ///
    /// When the sizes do not go together, or the product is too large.
    pub(crate) fn times(&self, context: &Context, other: &Csr) -> Result<Csr> {
        other.check(self.values.dtype())?;
        if self.batches != other.batches || self.width != other.rows {
            let expected = format!("{} rows, and as many matrices", self.width);
            return Err(wrong("b", expected, format!("{:?}", other.dims())).into());
        }
        by_number!(self.values.dtype(), sparse_matmul(context, self, other))
    }

    /// The matrix with other values at the same coordinates.
    pub(crate) fn map(&self, change: &dyn Fn(&HostTensor) -> Result<HostTensor>) -> Result<Csr> {
        Ok(Csr { values: change(&self.values)?, ..self.clone() })
    }

    /// The sum with a matrix of entries at the same coordinates.
    ///
    /// # Errors
    ///
    /// When its entries are at others.
    pub(crate) fn add(
        &self,
        other: &Csr,
        sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
    ) -> Result<Csr> {
        let is_alike = self.dims() == other.dims() && self.starts == other.starts;
        if !is_alike || self.columns != other.columns {
            return Err(wrong("summand", "of entries at the same places", "others").into());
        }
        Ok(Csr { values: sum(&self.values, &other.values)?, ..self.clone() })
    }
}

fn size(dim: i64) -> Result<usize> {
    let fit = i32::try_from(dim).ok().and_then(|dim| usize::try_from(dim).ok());
    Ok(fit.ok_or_else(|| wrong("dense_shape", "of sizes that int32 has", dim))?)
}

fn picked<T: MatrixEntry>(
    values: &HostTensor,
    order: &[usize],
    conjugated: bool,
) -> Result<HostTensor> {
    let own = values.as_slice::<T>()?;
    let pick = |&entry: &usize| if conjugated { own[entry].conjugate() } else { own[entry] };
    Ok(HostTensor::vector(&order.iter().map(pick).collect::<Vec<T>>())?)
}

/// Zeros of a shape, as far as it is not too large.
fn blank<T: MatrixEntry>(
    context: &Context,
    dims: impl IntoIterator<Item = usize>,
) -> Result<HostTensor> {
    let shape = Shape::new(dims)?;
    check_size(T::DTYPE, &shape, context.limits().tensor_bytes)?;
    Ok(HostTensor::zeros(T::DTYPE, shape)?)
}

fn dense<T: MatrixEntry>(context: &Context, matrix: &Csr) -> Result<HostTensor> {
    let mut found = blank::<T>(context, matrix.dims())?;
    let (elements, values) = (found.as_mut_slice::<T>()?, matrix.values.as_slice::<T>()?);
    for row in 0..matrix.all_rows() {
        for entry in matrix.entries(row) {
            elements[row * matrix.width + matrix.columns[entry] as usize] = values[entry];
        }
    }
    Ok(found)
}

/// `a · turned(b)`, of which `turns[1]` is taken at last.
fn matmul<T: MatrixEntry>(
    context: &Context,
    a: &Csr,
    b: &HostTensor,
    [turn, last]: [Orientation; 2],
) -> Result<HostTensor> {
    let dims = b.shape();
    let (batches, height, n) = match (a.batches, &dims[..]) {
        (None, &[height, n]) => (1, height, n),
        (Some(batches), &[own, height, n]) if own == batches => (batches, height, n),
        (_, found) => {
            let expected = format!("as many matrices as {:?}", a.dims());
            return Err(wrong("b", expected, format!("{found:?}")).into());
        }
    };
    // How far it is from row to row, and from column to column, of the turned `b`.
    let (inner, n, strides) = match turn.transposed {
        false => (height, n, [n, 1]),
        true => (n, height, [1, n]),
    };
    if inner != a.width {
        return Err(wrong("b", format!("{} rows", a.width), inner).into());
    }
    let own = if last.transposed { [n, a.rows] } else { [a.rows, n] };
    let mut found = blank::<T>(context, a.batches.into_iter().chain(own))?;
    let out = found.as_mut_slice::<T>()?;
    let (values, factors) = (a.values.as_slice::<T>()?, b.as_slice::<T>()?);
    let mut sums = vec![T::default(); n];
    for row in 0..batches * a.rows {
        budget::check()?;
        let (batch, own) = (row / a.rows, row % a.rows);
        sums.fill(T::default());
        for entry in a.entries(row) {
            let first = batch * inner * n + a.columns[entry] as usize * strides[0];
            for (column, sum) in sums.iter_mut().enumerate() {
                let factor = factors[first + column * strides[1]];
                let factor = if turn.conjugated { factor.conjugate() } else { factor };
                *sum = *sum + values[entry] * factor;
            }
        }
        for (column, sum) in sums.iter().enumerate() {
            let index = if last.transposed { column * a.rows + own } else { own * n + column };
            let sum = if last.conjugated { sum.conjugate() } else { *sum };
            out[batch * a.rows * n + index] = sum;
        }
    }
    Ok(found)
}

fn sparse_matmul<T: MatrixEntry>(context: &Context, a: &Csr, b: &Csr) -> Result<Csr> {
    let (own, factors) = (a.values.as_slice::<T>()?, b.values.as_slice::<T>()?);
    let most = context.limits().tensor_bytes / size_of::<T>();
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::<T>::new());
    for row in 0..a.all_rows() {
        budget::check()?;
        let first = row / a.rows * b.rows;
        let mut sums: BTreeMap<i32, T> = BTreeMap::new();
        for entry in a.entries(row) {
            for other in b.entries(first + a.columns[entry] as usize) {
                let sum = sums.entry(b.columns[other]).or_default();
                *sum = *sum + own[entry] * factors[other];
            }
        }
        columns.extend(sums.keys());
        values.extend(sums.values());
        starts.push(columns.len());
        if columns.len() > most {
            let (what, needed) = ("a sparse product".into(), columns.len().to_string());
            return Err(IrError::Limit { what, needed, limit: most as u64 }.into());
        }
    }
    let values = HostTensor::vector(&values)?;
    Ok(Csr { batches: a.batches, rows: a.rows, width: b.width, starts, columns, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that no memory has are errors, and so are coordinates outside.
    #[test]
    fn hostile_sizes_are_refused() {
        let context = Context::new();
        let matrix = |places: &[i64], dims: &[i64]| {
            let n = places.len() / dims.len();
            let coordinates = HostTensor::from_slice(Shape::new([n, dims.len()])?, places)?;
            let values = HostTensor::from_slice(Shape::new([n])?, &vec![1.0f32; n])?;
            Csr::new(&context, &coordinates, values, dims)
        };
        let most = i64::from(i32::MAX);
        assert!(matrix(&[0, 0, 0], &[most, most, 1]).is_err());
        assert!(matrix(&[0, 0], &[most + 1, 1]).is_err());
        assert!(matrix(&[0, 0], &[-1, 1]).is_err());
        assert!(matrix(&[0, -1], &[1, 1]).is_err());
        let wide = matrix(&[1, most - 1], &[2, most]).unwrap();
        assert!(
            wide.times_dense(&context, &HostTensor::scalar(1.0f32), Default::default()).is_err()
        );
        assert_eq!(wide.n_entries().unwrap().as_scalar::<i32>().unwrap(), 1);
    }

    /// A matrix without rows or columns has no entries, and is a factor as others are.
    #[test]
    fn matrices_may_be_empty() {
        let context = Context::new();
        for dims in [[0, 3], [3, 0], [0, 0]] {
            let coordinates = HostTensor::zeros(DType::I64, Shape::new([0, 2]).unwrap()).unwrap();
            let values = HostTensor::zeros(DType::F32, Shape::new([0]).unwrap()).unwrap();
            let matrix = Csr::new(&context, &coordinates, values, &dims).unwrap();
            let turn = Orientation { transposed: true, conjugated: false };
            let turned = matrix.turned(&context, turn).unwrap();
            let matmul = matrix.times(&context, &turned).unwrap();
            assert_eq!(matmul.dims(), [dims[0] as usize; 2]);
            assert_eq!(matmul.to_dense(&context).unwrap().len(), (dims[0] * dims[0]) as usize);
            assert_eq!(matrix.coordinates().unwrap().shape()[..], [0, 2]);
        }
    }
}

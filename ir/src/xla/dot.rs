//! `dot_general`: sums of products along pairs of axes, for each pair of batch axes.

use super::size::{Size, product, rank, reshape, sizes_of_rank, transpose};
use crate::{dtype::DType, emit::Value};

/// The axes of the two operands.
#[derive(Debug, Clone, Default)]
pub struct DotAxes {
    /// Axes of the left operand that count the products.
    pub lhs_batch: Vec<usize>,
    /// The same axes of the right operand.
    pub rhs_batch: Vec<usize>,
    /// Axes of the left operand that are summed along.
    pub lhs_contracting: Vec<usize>,
    /// The same axes of the right operand.
    pub rhs_contracting: Vec<usize>,
}

/// The dtype that products are summed in for a result of a dtype.
pub(super) fn sum_type(result: DType, operands: [DType; 2]) -> DType {
    let narrow = |dtype: DType| !dtype.is_complex() && dtype.size() == Some(1);
    match result {
        DType::Bool | DType::I8 | DType::I16 | DType::I4 | DType::I2 => DType::I32,
        DType::U4 | DType::U2 => DType::U32,
        result if !result.is_float() && !result.is_integer() && narrow(result) => DType::F32,
        result if result.is_float() => {
            let wider = operands.into_iter().filter(|dtype| dtype.is_float());
            wider.fold(result, |a, b| if b.size() > a.size() { b } else { a })
        }
        result => result,
    }
}

/// The sums of products, as elements of `result`: batch axes, axes of the left operand, axes of
/// the right one.
pub fn dot_general<'e>(lhs: Value<'e>, rhs: Value<'e>, axes: &DotAxes, result: DType) -> Value<'e> {
    let sum = sum_type(result, [lhs.dtype(), rhs.dtype()]);
    let left = Factor::new(lhs, sum, &axes.lhs_batch, &axes.lhs_contracting);
    let right = Factor::new(rhs, sum, &axes.rhs_batch, &axes.rhs_contracting);
    let (a, a_swapped) = left.matrix(false);
    let (b, b_swapped) = right.matrix(true);
    let product = match axes.lhs_batch.is_empty() {
        true => a.matmul(b, a_swapped, !b_swapped),
        false => a.batch_matmul(b, a_swapped, !b_swapped),
    };
    let mut shape: Vec<Size<'e>> = left.sizes(&left.batch);
    shape.extend(left.sizes(&left.free));
    shape.extend(right.sizes(&right.free));
    reshape(product, &shape).cast(result)
}

/// An operand, its axes sorted by what they are for.
struct Factor<'e> {
    value: Value<'e>,
    all: Vec<Size<'e>>,
    batch: Vec<usize>,
    free: Vec<usize>,
    contracting: Vec<usize>,
}

impl<'e> Factor<'e> {
    fn new(value: Value<'e>, dtype: DType, batch: &[usize], contracting: &[usize]) -> Factor<'e> {
        let is_free = |axis: &usize| !batch.contains(axis) && !contracting.contains(axis);
        let n = rank(value);
        let free = (0..n).filter(is_free).collect();
        let value = value.cast(dtype);
        let (batch, contracting) = (batch.to_vec(), contracting.to_vec());
        Factor { value, all: sizes_of_rank(value, n), batch, free, contracting }
    }

    fn sizes(&self, axes: &[usize]) -> Vec<Size<'e>> {
        axes.iter().map(|&axis| self.all[axis]).collect()
    }

    /// The operand as matrices `[free, contracting]`, or the other way round if it is stored so,
    /// which the flag tells. Matrices of complex numbers are not turned by a product, as that
    /// would conjugate them; `right` says on which side they are then needed.
    fn matrix(&self, right: bool) -> (Value<'e>, bool) {
        let order = |last: [&[usize]; 2]| -> Vec<usize> {
            self.batch.iter().chain(last[0]).chain(last[1]).copied().collect()
        };
        let rows = order([&self.free, &self.contracting]);
        let columns = order([&self.contracting, &self.free]);
        let swapped = match self.value.dtype().is_complex() {
            true => right,
            false => !rows.is_sorted() && columns.is_sorted(),
        };
        let (order, groups) = match swapped {
            true => (columns, [&self.contracting, &self.free]),
            false => (rows, [&self.free, &self.contracting]),
        };
        let mut shape = Vec::new();
        if !self.batch.is_empty() {
            shape.push(product(&self.sizes(&self.batch)));
        }
        shape.extend(groups.map(|group| product(&self.sizes(group))));
        (reshape(transpose(self.value, &order), &shape), swapped)
    }
}

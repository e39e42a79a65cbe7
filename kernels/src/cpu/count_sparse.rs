//! Counts of integers: `DenseCountSparseOutput`, `SparseCountSparseOutput`,
//! `RaggedCountSparseOutput` as sparse tensors, `SparseBincount` as a tensor.
//!
//! The rules are those of `tensorflow/core/kernels/count_ops.cc` and `bincount_op.cc`.

use super::{
    Build,
    cell::Cell,
    dispatch::{with_index, with_real},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{Code, DType, Error, Shape, shape::counted, workspace};
use num_traits::AsPrimitive;
use std::{collections::BTreeMap, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("DenseCountSparseOutput", |call| count(call, Layout::Dense)),
    ("RaggedCountSparseOutput", |call| count(call, Layout::Ragged)),
    ("SparseBincount", sparse_bincount),
    ("SparseCountSparseOutput", |call| count(call, Layout::Sparse)),
];

fn fails(op: &'static str, detail: impl Into<String>) -> crate::Error {
    Error::Status { code: Code::InvalidArgument, op: op.into(), detail: detail.into() }.into()
}

/// Encoding of the integers to count.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    /// `values`, `weights`
    Dense,
    /// `splits`, `values`, `weights`
    Ragged,
    /// `indices`, `values`, `dense_shape`, `weights`
    Sparse,
}

impl Layout {
    /// The positions of values and weights among the inputs.
    fn inputs(self) -> (usize, usize) {
        match self {
            Layout::Dense => (0, 1),
            Layout::Ragged => (1, 2),
            Layout::Sparse => (1, 3),
        }
    }
}

/// The row of each value, and the number of rows; `None` where there are none, only values.
struct Rows {
    rows: Vec<usize>,
    n_rows: Option<usize>,
}

impl Rows {
    fn dense(op: &'static str, shape: &Shape) -> Result<Rows> {
        match shape.rank() {
            2 if shape[0] == 0 => Err(fails(op, "a matrix without rows")),
            2 => Ok(Rows {
                rows: (0..shape.num_elements()).map(|at| at / shape[1].max(1)).collect(),
                n_rows: Some(shape[0]),
            }),
            _ => Ok(Rows { rows: workspace::filled(0, shape.num_elements())?, n_rows: None }),
        }
    }

    fn ragged(op: &'static str, splits: &[i64], n_values: usize) -> Result<Rows> {
        let is_whole = splits.first() == Some(&0) && splits.last() == Some(&(n_values as i64));
        if !is_whole || !splits.is_sorted() {
            return Err(fails(op, "the splits must go from 0 to the number of values, in order"));
        }
        let lens = splits.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let rows = lens.enumerate().flat_map(|(row, len)| std::iter::repeat_n(row, len));
        Ok(Rows { rows: rows.collect(), n_rows: Some(splits.len() - 1) })
    }

    fn sparse(op: &'static str, indices: &[i64], rank: usize, dims: &[i64]) -> Result<Rows> {
        if dims.len() != rank || dims.is_empty() || dims.iter().any(|&dim| dim < 0) {
            return Err(fails(op, format!("a dense shape of {dims:?} for indices of rank {rank}")));
        }
        let coordinates = indices.chunks_exact(rank);
        let is_inside =
            |place: &[i64]| place.iter().zip(dims).all(|(&x, dim)| (0..*dim).contains(&x));
        if let Some(outside) = coordinates.clone().find(|place| !is_inside(place)) {
            return Err(fails(op, format!("an element at {outside:?}, outside of {dims:?}")));
        }
        Ok(match rank {
            1 => Rows { rows: workspace::filled(0, indices.len())?, n_rows: None },
            _ => Rows {
                rows: coordinates.map(|place| counted(place[0])).collect(),
                n_rows: Some(counted(dims[0])),
            },
        })
    }
}

/// Rule of counting.
#[derive(Debug, Clone, Copy)]
struct Rule {
    op: &'static str,
    /// Values from here on do not count, unless it is negative.
    end: i64,
    /// Columns of the result, at least.
    least: i64,
    /// Whether it is counted that a value occurs, not how often.
    is_binary: bool,
}

fn count(call: &OpCall<'_>, layout: Layout) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<I, T>(
        rule: Rule,
        layout: Layout,
        dtype: DType,
        values_shape: Shape,
        rank: usize,
    ) -> Arc<dyn Kernel>
    where
        I: bytemuck::Pod + AsPrimitive<i64> + Send + Sync,
        T: Number + Cell,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let (values, weights) = layout.inputs();
            let (values, weights) = (io.input::<I>(values), io.input::<T>(weights));
            if !weights.is_empty() && weights.len() != values.len() {
                return Err(fails(rule.op, "there must be a weight for each value, or none"));
            }
            let rows = match layout {
                Layout::Dense => Rows::dense(rule.op, &values_shape)?,
                Layout::Ragged => Rows::ragged(rule.op, io.input(0), values.len())?,
                Layout::Sparse => Rows::sparse(rule.op, io.input(0), rank, io.input(2))?,
            };
            let mut counts: BTreeMap<(usize, i64), T> = BTreeMap::new();
            let mut columns = rule.least.max(1);
            for (at, (value, &row)) in values.iter().zip(&rows.rows).enumerate() {
                let value: i64 = value.as_();
                if value < 0 {
                    return Err(fails(rule.op, format!("a value of {value}, below 0")));
                }
                if rule.end >= 0 && value >= rule.end {
                    continue;
                }
                let count = counts.entry((row, value)).or_insert(T::ZERO);
                *count = match (rule.is_binary, weights.get(at)) {
                    (true, _) => T::ONE,
                    (false, Some(&weight)) => count.plus(weight),
                    (false, None) => count.plus(T::ONE),
                };
                columns = columns.max(value.saturating_add(1));
            }
            if rule.end >= 0 {
                columns = rule.end;
            }
            write(io, dtype, &rows, columns, &counts)
        })
    }
    let (values, weights) = layout.inputs();
    let attr = |name: &str| call.attrs.int(name);
    let rule = Rule {
        op: call.op.name,
        end: attr("maxlength")?,
        least: attr("minlength")?,
        is_binary: call.attrs.bool("binary_output")?,
    };
    let shape = call.shape(values).clone();
    let rank = if layout == Layout::Sparse { call.shape(0)[1] } else { 0 };
    let dtype = call.dtype(weights);
    let kernel = with_index!(call.dtype(values), I => {
        with_real!(dtype, T => kernel::<I, T>(rule, layout, dtype, shape, rank))
    });
    Ok(kernel.flatten())
}

/// Writes counts as a sparse tensor.
fn write<T: Cell + Copy>(
    io: &mut Io<'_>,
    dtype: DType,
    rows: &Rows,
    columns: i64,
    counts: &BTreeMap<(usize, i64), T>,
) -> Result<()> {
    let rank = if rows.n_rows.is_some() { 2 } else { 1 };
    i64::write(io, 0, DType::I64, &Shape::new([counts.len(), rank])?, |out| {
        for (out, &(row, value)) in out.chunks_exact_mut(rank).zip(counts.keys()) {
            out[0] = row as i64;
            out[rank - 1] = value;
        }
        Ok(())
    })?;
    T::write(io, 1, dtype, &Shape::new([counts.len()])?, |out| {
        out.iter_mut().zip(counts.values()).for_each(|(out, &count)| *out = count);
        Ok(())
    })?;
    i64::write(io, 2, DType::I64, &Shape::new([rank])?, |out| {
        out[0] = rows.n_rows.map_or(0, |n_rows| n_rows as i64);
        out[rank - 1] = columns;
        Ok(())
    })
}

fn sparse_bincount(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<I, T>(op: &'static str, rank: usize, is_binary: bool, dtype: DType) -> Arc<dyn Kernel>
    where
        I: bytemuck::Pod + AsPrimitive<i64> + Send + Sync,
        T: Number + Cell,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let (values, weights) = (io.input::<I>(1), io.input::<T>(4));
            let rows = Rows::sparse(op, io.input(0), rank, io.input(2))?;
            if !weights.is_empty() && weights.len() != values.len() {
                return Err(fails(op, "there must be a weight for each value, or none"));
            }
            let size: i64 = io.scalar::<I>(3).as_();
            let size = usize::try_from(size).map_err(|_| fails(op, "a size below 0"))?;
            let shape = Shape::new(rows.n_rows.into_iter().chain([size]))?;
            T::write(io, 0, dtype, &shape, |out| {
                out.fill(T::ZERO);
                for (at, (value, row)) in values.iter().zip(&rows.rows).enumerate() {
                    let value: i64 = value.as_();
                    // Negative values are left out, as in TensorFlow.
                    let Some(value) = usize::try_from(value).ok().filter(|&value| value < size)
                    else {
                        continue;
                    };
                    let count = &mut out[row * size + value];
                    *count = match (is_binary, weights.get(at)) {
                        (true, _) => T::ONE,
                        (false, Some(&weight)) => count.plus(weight),
                        (false, None) => count.plus(T::ONE),
                    };
                }
                Ok(())
            })
        })
    }
    let (op, rank, dtype) = (call.op.name, call.shape(0)[1], call.dtype(4));
    let is_binary = call.attrs.bool("binary_output")?;
    let kernel = with_index!(call.dtype(1), I => {
        with_real!(dtype, T => kernel::<I, T>(op, rank, is_binary, dtype))
    });
    Ok(kernel.flatten())
}

//! Sets, as the elements of the last dimension: `DenseToDenseSetOperation`,
//! `DenseToSparseSetOperation`, `SparseToSparseSetOperation`, `SetSize`.

use super::{SparseInputs, put_coordinates, put_dims, put_values};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape};
use std::{collections::BTreeSet, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("DenseToDenseSetOperation", operation),
    ("DenseToSparseSetOperation", operation),
    ("SetSize", size),
    ("SparseToSparseSetOperation", operation),
];

/// A type that sets may hold.
trait Member: Cell + Ord {}

impl<T: Cell + Ord> Member for T {}

/// The Rust type of the elements of sets.
macro_rules! with_member {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::String => {
                type $T = Bytes;
                Some($body)
            }
            dtype => crate::cpu::dispatch::with_index!(dtype, $T => $body),
        }
    };
}

/// Where the sets of an operand are.
#[derive(Debug, Clone)]
enum Operand {
    Dense { input: usize, shape: Shape },
    Sparse { form: SparseInputs, ordered: bool },
}

/// Sets by their coordinates, which counts all dimensions but the last.
type Sets<T> = Vec<(usize, BTreeSet<T>)>;

impl Operand {
    /// The shape without the last dimension.
    fn outer(&self, io: &Io<'_>) -> Result<Shape> {
        let whole = match self {
            Operand::Dense { shape, .. } => shape.clone(),
            Operand::Sparse { form, .. } => form.coordinates(io).shape()?,
        };
        Ok(Shape::new(whole[..whole.rank() - 1].iter().copied())?)
    }

    /// The sets in order of their coordinates; empty ones may be missing.
    fn sets<T: Member>(&self, io: &Io<'_>) -> Result<Sets<T>> {
        match self {
            Operand::Dense { input, shape } => {
                let (values, length) = (T::read(io, *input)?, shape[shape.rank() - 1]);
                let rows = values.chunks_exact(length.max(1)).enumerate();
                Ok(rows.map(|(place, row)| (place, row.iter().cloned().collect())).collect())
            }
            Operand::Sparse { form, ordered } => {
                let (coordinates, values) = (form.coordinates(io), T::read(io, form.values)?);
                coordinates.check()?;
                if *ordered && !coordinates.iter().is_sorted_by(|a, b| a < b) {
                    let expected = "in row-major order, without repetitions";
                    return Err(Error::argument("sets", "indices", expected, "others").into());
                }
                let outer = self.outer(io)?;
                let mut sets: Sets<T> = Vec::new();
                for (place, value) in coordinates.iter().zip(values) {
                    let steps = place.iter().zip(outer.iter());
                    let set_index =
                        steps.fold(0, |sum, (&index, &size)| sum * size + index as usize);
                    match sets.last_mut() {
                        Some((last, set)) if *last == set_index => {
                            set.insert(value.clone());
                        }
                        Some(_) | None => sets.push((set_index, BTreeSet::from([value.clone()]))),
                    }
                }
                Ok(sets)
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Difference,
    ReverseDifference,
    Intersection,
    Union,
}

impl Operation {
    fn apply<T: Member>(self, a: &BTreeSet<T>, b: &BTreeSet<T>) -> Vec<T> {
        match self {
            Operation::Difference => a.difference(b).cloned().collect(),
            Operation::ReverseDifference => b.difference(a).cloned().collect(),
            Operation::Intersection => a.intersection(b).cloned().collect(),
            Operation::Union => a.union(b).cloned().collect(),
        }
    }
}

fn operation(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let operation = match call.attrs.string("set_operation")?.to_ascii_lowercase().as_str() {
        "a-b" => Operation::Difference,
        "b-a" => Operation::ReverseDifference,
        "intersection" => Operation::Intersection,
        _ => Operation::Union,
    };
    let ordered = call.attrs.bool("validate_indices")?;
    let dense = |input| Operand::Dense { input, shape: call.shape(input).clone() };
    let sparse = |first| Operand::Sparse { form: SparseInputs::new(call, first), ordered };
    let (operands, dtype) = match call.inputs.len() {
        2 => ([dense(0), dense(1)], call.dtype(0)),
        4 => ([dense(0), sparse(1)], call.dtype(0)),
        _ => ([sparse(0), sparse(3)], call.dtype(1)),
    };
    fn kernel<T: Member>(
        operands: [Operand; 2],
        operation: Operation,
        dtype: DType,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let [a, b] = &operands;
            let (outer, other) = (a.outer(io)?, b.outer(io)?);
            if outer != other {
                let expected = format!("of {outer} sets");
                return Err(Error::argument("sets", "set2", expected, other).into());
            }
            let results = combine(&a.sets::<T>(io)?, &b.sets::<T>(io)?, operation);
            put_sets(io, &outer, dtype, &results)
        })
    }
    Ok(with_member!(dtype, T => kernel::<T>(operands, operation, dtype)))
}

fn combine<T: Member>(
    a: &[(usize, BTreeSet<T>)],
    b: &[(usize, BTreeSet<T>)],
    operation: Operation,
) -> Vec<(usize, Vec<T>)> {
    let none = BTreeSet::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut results = Vec::new();
    while let Some(place) = [a.peek(), b.peek()].into_iter().flatten().map(|set| set.0).min() {
        let a = a.next_if(|set| set.0 == place).map_or(&none, |set| &set.1);
        let b = b.next_if(|set| set.0 == place).map_or(&none, |set| &set.1);
        results.push((place, operation.apply(a, b)));
    }
    results
}

fn put_sets<T: Member>(
    io: &mut Io<'_>,
    outer: &Shape,
    dtype: DType,
    sets: &[(usize, Vec<T>)],
) -> Result<()> {
    let (rank, strides) = (outer.rank() + 1, outer.strides());
    let mut indices = Vec::new();
    for (place, set) in sets {
        for n in 0..set.len() {
            let steps = strides.iter().zip(outer.iter());
            indices.extend(steps.map(|(stride, size)| (place / stride % size) as i64));
            indices.push(n as i64);
        }
    }
    let values: Vec<T> = sets.iter().flat_map(|(_, set)| set).cloned().collect();
    let largest = sets.iter().map(|(_, set)| set.len()).max().unwrap_or(0);
    let mut dims = outer.to_i64();
    dims.push(largest as i64);
    put_coordinates(io, 0, rank, &indices, values.len())?;
    put_values(io, 1, dtype, &values)?;
    put_dims(io, 2, &dims)
}

fn size(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let ordered = call.attrs.bool("validate_indices")?;
    let operand = Operand::Sparse { form: SparseInputs::new(call, 0), ordered };
    fn kernel<T: Member>(operand: Operand) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (outer, sets) = (operand.outer(io)?, operand.sets::<T>(io)?);
            i32::write(io, 0, DType::I32, &outer, |out| {
                out.fill(0);
                sets.iter().for_each(|(place, set)| out[*place] = set.len() as i32);
                Ok(())
            })
        })
    }
    Ok(with_member!(call.dtype(1), T => kernel::<T>(operand)))
}

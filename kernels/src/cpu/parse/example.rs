//! Examples: `ParseExample`, `ParseExampleV2`, `ParseSingleExample`
//! (`tensorflow/core/util/example_proto_fast_parsing.cc`).

use super::feature::{Column, DenseShape, Features, Values, damaged, read_map};
use crate::{
    cpu::{Build, index::put_integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{
    DType, Error, Shape,
    wire::{DamagedMessage, fields},
};
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("ParseExample", parse_example),
    ("ParseExampleV2", parse_example_v2),
    ("ParseSingleExample", parse_single_example),
];

/// Where the names of features are passed.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// In an attribute.
    Given(Vec<Bytes>),
    /// In scalar inputs.
    Scalars(Range<usize>),
    /// In a vector.
    Vector(usize),
}

impl Keys {
    pub(super) fn read(&self, op: &'static str, io: &Io<'_>, n: usize) -> Result<Vec<Bytes>> {
        let keys = match self {
            Keys::Given(keys) => keys.clone(),
            Keys::Scalars(inputs) => {
                let key =
                    |input: usize| Ok(io.strings(input)?.first().cloned().unwrap_or_default());
                inputs.clone().map(key).collect::<Result<Vec<Bytes>>>()?
            }
            Keys::Vector(input) => io.strings(*input)?.to_vec(),
        };
        match keys.len() == n {
            true => Ok(keys),
            false => Err(Error::argument(op, "keys", format!("{n} names"), keys.len()).into()),
        }
    }
}

/// A call of one of the ops.
struct Parse {
    op: &'static str,
    /// Whether there is one example, whose results lack the dimension of the examples.
    single: bool,
    sparse_keys: Keys,
    dense_keys: Keys,
    ragged_keys: Keys,
    sparse_types: Vec<DType>,
    dense_types: Vec<DType>,
    dense_shapes: Vec<DenseShape>,
    /// The input with the first default.
    first_default: usize,
    ragged_types: Vec<DType>,
    split_types: Vec<DType>,
}

impl Parse {
    fn new(call: &OpCall<'_>, keys: [Keys; 3], first_default: usize) -> Result<Parse> {
        let [sparse_keys, dense_keys, ragged_keys] = keys;
        let types = |name: &str| -> Result<Vec<DType>> {
            Ok(match call.op.attr(name) {
                Some(_) => call.attrs.types(name)?.to_vec(),
                None => Vec::new(),
            })
        };
        let mut parse = Parse {
            op: call.op.name,
            single: call.shape(0).rank() == 0,
            sparse_keys,
            dense_keys,
            ragged_keys,
            sparse_types: types("sparse_types")?,
            dense_types: types("Tdense")?,
            dense_shapes: Vec::new(),
            first_default,
            ragged_types: types("ragged_value_types")?,
            split_types: types("ragged_split_types")?,
        };
        for (n, shape) in call.attrs.shapes("dense_shapes")?.iter().enumerate() {
            let wrong = || call.wrong("dense_shapes", "known but for the first size", shape);
            let dense = DenseShape::new(shape).ok_or_else(wrong)?;
            let default = call.shape(first_default + n);
            let fits = match dense.open {
                true => default.num_elements() == 1,
                false => default.num_elements() == 0 || default.dims() == dense.sizes,
            };
            if !fits {
                let expected = format!("a default for {shape}");
                return Err(call.wrong("dense_defaults", expected, default));
            }
            parse.dense_shapes.push(dense);
        }
        Ok(parse)
    }
}

fn parse_example(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let n_sparse = call.attrs.types("sparse_types")?.len();
    let n_dense = call.attrs.types("Tdense")?.len();
    let (sparse, dense) = (2..2 + n_sparse, 2 + n_sparse..2 + n_sparse + n_dense);
    let first_default = dense.end;
    let keys = [Keys::Scalars(sparse), Keys::Scalars(dense), Keys::Given(Vec::new())];
    Ok(Some(kernel(Parse::new(call, keys, first_default)?)))
}

fn parse_example_v2(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let keys = [Keys::Vector(2), Keys::Vector(3), Keys::Vector(4)];
    Ok(Some(kernel(Parse::new(call, keys, 5)?)))
}

fn parse_single_example(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let keys = |name| call.attrs.strings(name).map(|keys| Keys::Given(keys.to_vec()));
    let keys = [keys("sparse_keys")?, keys("dense_keys")?, Keys::Given(Vec::new())];
    Ok(Some(kernel(Parse::new(call, keys, 1)?)))
}

fn kernel(parse: Parse) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let columns = read(&parse, io)?;
        put(&parse, io, &columns)
    })
}

/// The features asked for, of all examples.
struct Columns {
    sparse: Vec<Column>,
    dense: Vec<Column>,
    ragged: Vec<Column>,
}

fn read(parse: &Parse, io: &Io<'_>) -> Result<Columns> {
    let op = parse.op;
    let sparse_keys = parse.sparse_keys.read(op, io, parse.sparse_types.len())?;
    let dense_keys = parse.dense_keys.read(op, io, parse.dense_types.len())?;
    let ragged_keys = parse.ragged_keys.read(op, io, parse.ragged_types.len())?;
    let mut all = Columns {
        sparse: Column::all(op, &sparse_keys, &parse.sparse_types),
        dense: Column::all(op, &dense_keys, &parse.dense_types),
        ragged: Column::all(op, &ragged_keys, &parse.ragged_types),
    };
    for example in io.strings(0)? {
        let features = features(example).map_err(|_| damaged(op))?;
        let feature = |key: &Bytes| features.get(&key[..]).copied();
        for (column, key) in all.sparse.iter_mut().zip(&sparse_keys) {
            column.push(feature(key))?;
        }
        for (column, key) in all.ragged.iter_mut().zip(&ragged_keys) {
            column.push(feature(key))?;
        }
        let dense = all.dense.iter_mut().zip(&dense_keys).zip(&parse.dense_shapes);
        for (n, ((column, key), shape)) in dense.enumerate() {
            if !shape.open {
                let default = parse.first_default + n;
                column.push_dense(io, feature(key), default, shape.stride())?;
                continue;
            }
            column.push(feature(key))?;
            let (length, stride) = (column.lengths[column.lengths.len() - 1], shape.stride());
            if length != 0 && (stride == 0 || length % stride != 0) {
                let expected = format!("of a multiple of {stride} values");
                return Err(column.wrong_length(expected, length));
            }
        }
    }
    Ok(all)
}

/// The features of an example.
fn features(example: &[u8]) -> Result<Features<'_>, DamagedMessage> {
    let mut features = Features::new();
    for part in fields(example) {
        if let (1, field) = part? {
            read_map(field.bytes()?, &mut features)?;
        }
    }
    Ok(features)
}

fn put(parse: &Parse, io: &mut Io<'_>, all: &Columns) -> Result<()> {
    let (n_sparse, n_dense, n_ragged) = (all.sparse.len(), all.dense.len(), all.ragged.len());
    for (n, column) in all.sparse.iter().enumerate() {
        column.put_sparse(io, [n, n_sparse + n, 2 * n_sparse + n], parse.single)?;
    }
    for (n, (column, shape)) in all.dense.iter().zip(&parse.dense_shapes).enumerate() {
        put_dense(parse, io, n, 3 * n_sparse + n, column, shape)?;
    }
    let first = 3 * n_sparse + n_dense;
    for (n, column) in all.ragged.iter().enumerate() {
        let total = column.lengths.iter().sum();
        column.values.put(io, first + n, &Shape::new([total])?)?;
        // One example is no ragged tensor, so it has no splits.
        let splits = if parse.single { Vec::new() } else { column.splits() };
        let shape = Shape::new([splits.len()])?;
        put_integers(io, first + n_ragged + n, parse.split_types[n], &shape, splits.into_iter())?;
    }
    Ok(())
}

fn put_dense(
    parse: &Parse,
    io: &mut Io<'_>,
    n: usize,
    output: usize,
    column: &Column,
    shape: &DenseShape,
) -> Result<()> {
    let mut dims = Vec::new();
    if !parse.single {
        dims.push(column.lengths.len());
    }
    if !shape.open {
        dims.extend_from_slice(&shape.sizes);
        return column.values.put(io, output, &Shape::new(dims)?);
    }
    dims.push(column.longest().checked_div(shape.stride()).unwrap_or(0));
    dims.extend_from_slice(&shape.sizes);
    let default = parse.first_default + n;
    let filling = match column.values {
        Values::Texts(_) => Values::Texts(io.strings(default)?.to_vec()),
        Values::Floats(_) => Values::Floats(io.input(default).to_vec()),
        Values::Ints(_) => Values::Ints(io.input(default).to_vec()),
    };
    let padded = column.values.padded(io, &column.lengths, column.longest(), Some(&filling))?;
    padded.put(io, output, &Shape::new(dims)?)
}

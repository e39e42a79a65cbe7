//! Examples with lists of features: `ParseSequenceExample`, `ParseSequenceExampleV2`,
//! `ParseSingleSequenceExample` (`tensorflow/core/util/example_proto_fast_parsing.cc`).

use super::{
    example::Keys,
    feature::{Column, DenseShape, Features, Values, damaged, put_sparse, read_map, splits},
};
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
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("ParseSequenceExample", parse_sequences),
    ("ParseSequenceExampleV2", parse_sequences_v2),
    ("ParseSingleSequenceExample", parse_sequence),
];

/// Lists of features that may be absent.
enum MayLack {
    /// Those that the attribute or the vector names.
    Named(Keys),
    /// Those whose flag in the input is set.
    Flagged(usize),
}

/// A kind of features: their names and dtypes.
struct Wanted {
    keys: Keys,
    types: Vec<DType>,
}

/// A call of one of the ops.
struct Parse {
    op: &'static str,
    single: bool,
    context_sparse: Wanted,
    context_dense: Wanted,
    context_ragged: Wanted,
    sparse: Wanted,
    dense: Wanted,
    ragged: Wanted,
    may_lack: MayLack,
    context_split_types: Vec<DType>,
    split_types: Vec<DType>,
    first_default: usize,
    context_shapes: Vec<DenseShape>,
    shapes: Vec<DenseShape>,
    /// Whether the lengths of dense lists are a result.
    gives_lengths: bool,
}

/// The names of all features, context first: sparse, dense, ragged.
type AllKeys = [Keys; 6];

impl Parse {
    fn new(
        call: &OpCall<'_>,
        keys: AllKeys,
        may_lack: MayLack,
        first_default: usize,
    ) -> Result<Parse> {
        let types = |name: &str| -> Result<Vec<DType>> {
            Ok(match call.op.attr(name) {
                Some(_) => call.attrs.types(name)?.to_vec(),
                None => Vec::new(),
            })
        };
        let shapes = |name: &'static str| -> Result<Vec<DenseShape>> {
            let closed = |shape| DenseShape::new(shape).filter(|shape| !shape.open);
            let shapes = call.attrs.shapes(name)?.iter().map(closed).collect();
            let shapes: Option<Vec<DenseShape>> = shapes;
            shapes.ok_or_else(|| call.wrong(name, "fully known", "others"))
        };
        let [context_sparse, context_dense, context_ragged, sparse, dense, ragged] = keys;
        let wanted =
            |keys, name: &str| -> Result<Wanted> { Ok(Wanted { keys, types: types(name)? }) };
        let parse = Parse {
            op: call.op.name,
            single: call.shape(0).rank() == 0,
            context_sparse: wanted(context_sparse, "context_sparse_types")?,
            context_dense: wanted(context_dense, "Tcontext_dense")?,
            context_ragged: wanted(context_ragged, "context_ragged_value_types")?,
            sparse: wanted(sparse, "feature_list_sparse_types")?,
            dense: wanted(dense, "feature_list_dense_types")?,
            ragged: wanted(ragged, "feature_list_ragged_value_types")?,
            may_lack,
            context_split_types: types("context_ragged_split_types")?,
            split_types: types("feature_list_ragged_split_types")?,
            first_default,
            context_shapes: shapes("context_dense_shapes")?,
            shapes: shapes("feature_list_dense_shapes")?,
            gives_lengths: call
                .op
                .outputs
                .iter()
                .any(|out| out.name == "feature_list_dense_lengths"),
        };
        let same = |shapes: &[DenseShape], wanted: &Wanted| shapes.len() == wanted.types.len();
        if !same(&parse.context_shapes, &parse.context_dense) || !same(&parse.shapes, &parse.dense)
        {
            return Err(call.wrong("dense_shapes", "one for each dense feature", "others"));
        }
        Ok(parse)
    }
}

fn parse_sequences(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let listed = |name| call.attrs.strings(name).map(|keys| Keys::Given(keys.to_vec()));
    let none = || Keys::Given(Vec::new());
    let keys = [
        listed("context_sparse_keys")?,
        listed("context_dense_keys")?,
        none(),
        listed("feature_list_sparse_keys")?,
        listed("feature_list_dense_keys")?,
        none(),
    ];
    let may_lack = MayLack::Named(listed("feature_list_dense_missing_assumed_empty")?);
    Ok(Some(kernel(Parse::new(call, keys, may_lack, 2)?)))
}

fn parse_sequences_v2(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let keys = [2, 3, 4, 5, 6, 7].map(Keys::Vector);
    Ok(Some(kernel(Parse::new(call, keys, MayLack::Flagged(8), 9)?)))
}

fn parse_sequence(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let mut first = 2;
    let mut scalars = |n: &str| -> Result<Keys> {
        let inputs = first..first + call.attrs.size(n)?;
        first = inputs.end;
        Ok(Keys::Scalars(inputs))
    };
    let context_sparse = scalars("Ncontext_sparse")?;
    let context_dense = scalars("Ncontext_dense")?;
    let sparse = scalars("Nfeature_list_sparse")?;
    let dense = scalars("Nfeature_list_dense")?;
    let none = || Keys::Given(Vec::new());
    let keys = [context_sparse, context_dense, none(), sparse, dense, none()];
    Ok(Some(kernel(Parse::new(call, keys, MayLack::Named(Keys::Vector(1)), first)?)))
}

fn kernel(parse: Parse) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let columns = read(&parse, io)?;
        put(&parse, io, &columns)
    })
}

/// A list of features of many examples.
struct ListColumn {
    /// The features of all steps.
    steps: Column,
    /// Number of steps of each example.
    lengths: Vec<usize>,
}

impl ListColumn {
    /// Adds the list of one more example, if it has it.
    fn push(&mut self, list: Option<&[u8]>) -> Result<()> {
        let before = self.steps.lengths.len();
        for part in fields(list.unwrap_or(&[])) {
            let damaged = |_: DamagedMessage| damaged(self.steps.op);
            if let (1, feature) = part.map_err(damaged)? {
                self.steps.push(Some(feature.bytes().map_err(damaged)?))?;
            }
        }
        self.lengths.push(self.steps.lengths.len() - before);
        Ok(())
    }

    fn most_steps(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }
}

/// Requested features of all examples.
struct Columns {
    context_sparse: Vec<Column>,
    context_dense: Vec<Column>,
    context_ragged: Vec<Column>,
    sparse: Vec<ListColumn>,
    dense: Vec<ListColumn>,
    ragged: Vec<ListColumn>,
}

fn read(parse: &Parse, io: &Io<'_>) -> Result<Columns> {
    let op = parse.op;
    let columns =
        |wanted: &Wanted, keys: &[Bytes]| -> Vec<Column> { Column::all(op, keys, &wanted.types) };
    let lists = |wanted: &Wanted, keys: &[Bytes]| -> Vec<ListColumn> {
        let list = |steps| ListColumn { steps, lengths: Vec::new() };
        columns(wanted, keys).into_iter().map(list).collect()
    };
    let keys = |wanted: &Wanted| wanted.keys.read(op, io, wanted.types.len());
    let context_sparse = keys(&parse.context_sparse)?;
    let context_dense = keys(&parse.context_dense)?;
    let context_ragged = keys(&parse.context_ragged)?;
    let (sparse, dense, ragged) = (keys(&parse.sparse)?, keys(&parse.dense)?, keys(&parse.ragged)?);
    let mut all = Columns {
        context_sparse: columns(&parse.context_sparse, &context_sparse),
        context_dense: columns(&parse.context_dense, &context_dense),
        context_ragged: columns(&parse.context_ragged, &context_ragged),
        sparse: lists(&parse.sparse, &sparse),
        dense: lists(&parse.dense, &dense),
        ragged: lists(&parse.ragged, &ragged),
    };
    let may_lack = may_lack(parse, io, &dense)?;
    for example in io.strings(0)? {
        let (context, lists) = features(example).map_err(|_| damaged(op))?;
        let own = |key: &Bytes| context.get(&key[..]).copied();
        let list = |key: &Bytes| lists.get(&key[..]).copied();
        for (column, key) in all.context_sparse.iter_mut().zip(&context_sparse) {
            column.push(own(key))?;
        }
        for (column, key) in all.context_ragged.iter_mut().zip(&context_ragged) {
            column.push(own(key))?;
        }
        for (n, (column, key)) in all.context_dense.iter_mut().zip(&context_dense).enumerate() {
            let size = parse.context_shapes[n].stride();
            column.push_dense(io, own(key), parse.first_default + n, size)?;
        }
        for (column, key) in all.sparse.iter_mut().zip(&sparse) {
            column.push(list(key))?;
        }
        for (column, key) in all.ragged.iter_mut().zip(&ragged) {
            column.push(list(key))?;
        }
        for (n, (column, key)) in all.dense.iter_mut().zip(&dense).enumerate() {
            if list(key).is_none() && !may_lack[n] {
                let found = String::from_utf8_lossy(key);
                return Err(Error::argument(op, "a list of features", "there", found).into());
            }
            let before = column.steps.lengths.len();
            column.push(list(key))?;
            for &length in &column.steps.lengths[before..] {
                column.steps.check_length(length, parse.shapes[n].stride())?;
            }
        }
    }
    Ok(all)
}

fn may_lack(parse: &Parse, io: &Io<'_>, dense: &[Bytes]) -> Result<Vec<bool>> {
    let named = match &parse.may_lack {
        MayLack::Named(Keys::Given(keys)) => keys.clone(),
        MayLack::Named(Keys::Vector(input)) => io.strings(*input)?.to_vec(),
        MayLack::Named(Keys::Scalars(_)) => Vec::new(),
        MayLack::Flagged(input) => {
            let flags = io.bytes(*input);
            return Ok((0..dense.len()).map(|n| flags.get(n).is_some_and(|&f| f != 0)).collect());
        }
    };
    Ok(dense.iter().map(|key| named.contains(key)).collect())
}

/// The features of an example and its lists of features.
fn features(example: &[u8]) -> Result<(Features<'_>, Features<'_>), DamagedMessage> {
    let (mut context, mut lists) = (Features::new(), Features::new());
    for part in fields(example) {
        match part? {
            (1, field) => read_map(field.bytes()?, &mut context)?,
            (2, field) => read_map(field.bytes()?, &mut lists)?,
            _ => {}
        }
    }
    Ok((context, lists))
}

/// Hands out positions of outputs, one argument after the other.
struct Outputs(usize);

impl Outputs {
    fn take(&mut self, n: usize) -> usize {
        self.0 += n;
        self.0 - n
    }
}

fn put(parse: &Parse, io: &mut Io<'_>, all: &Columns) -> Result<()> {
    let mut outputs = Outputs(0);
    let n = all.context_sparse.len();
    let first = outputs.take(3 * n);
    for (at, column) in all.context_sparse.iter().enumerate() {
        column.put_sparse(io, [first + at, first + n + at, first + 2 * n + at], parse.single)?;
    }
    let first = outputs.take(all.context_dense.len());
    for (at, column) in all.context_dense.iter().enumerate() {
        let rows = column.lengths.len();
        let rows = (!parse.single).then_some(rows).into_iter();
        let shape = Shape::new(rows.chain(parse.context_shapes[at].sizes.iter().copied()))?;
        column.values.put(io, first + at, &shape)?;
    }
    let n = all.context_ragged.len();
    let first = outputs.take(2 * n);
    for (at, column) in all.context_ragged.iter().enumerate() {
        put_values(io, first + at, column)?;
        put_splits(parse, io, first + n + at, parse.context_split_types[at], &column.lengths)?;
    }
    let n = all.sparse.len();
    let first = outputs.take(3 * n);
    for (at, column) in all.sparse.iter().enumerate() {
        put_sparse_list(parse, io, [first + at, first + n + at, first + 2 * n + at], column)?;
    }
    let n = all.dense.len();
    let first = outputs.take(n);
    let lengths = if parse.gives_lengths { outputs.take(n) } else { 0 };
    for (at, column) in all.dense.iter().enumerate() {
        put_dense_list(parse, io, first + at, column, &parse.shapes[at])?;
        if parse.gives_lengths {
            let rows = (!parse.single).then_some(column.lengths.len());
            let own = column.lengths.iter().copied();
            put_integers(io, lengths + at, DType::I64, &Shape::new(rows)?, own)?;
        }
    }
    let n = all.ragged.len();
    let first = outputs.take(3 * n);
    for (at, column) in all.ragged.iter().enumerate() {
        let dtype = parse.split_types[at];
        put_values(io, first + at, &column.steps)?;
        put_splits(parse, io, first + n + at, dtype, &column.lengths)?;
        let inner = splits(&column.steps.lengths);
        let shape = Shape::new([inner.len()])?;
        put_integers(io, first + 2 * n + at, dtype, &shape, inner.into_iter())?;
    }
    Ok(())
}

fn put_values(io: &mut Io<'_>, output: usize, column: &Column) -> Result<()> {
    column.values.put(io, output, &Shape::new([column.lengths.iter().sum()])?)
}

/// Writes where examples begin and end; of a single one, 0.
fn put_splits(
    parse: &Parse,
    io: &mut Io<'_>,
    output: usize,
    dtype: DType,
    lengths: &[usize],
) -> Result<()> {
    if parse.single {
        return put_integers(io, output, dtype, &Shape::scalar(), std::iter::once(0));
    }
    let splits = splits(lengths);
    put_integers(io, output, dtype, &Shape::new([splits.len()])?, splits.into_iter())
}

fn put_sparse_list(
    parse: &Parse,
    io: &mut Io<'_>,
    outputs: [usize; 3],
    column: &ListColumn,
) -> Result<()> {
    let mut indices: Vec<i64> = Vec::new();
    let mut steps = column.steps.lengths.iter();
    for (row, &n_steps) in column.lengths.iter().enumerate() {
        for (step, &length) in steps.by_ref().take(n_steps).enumerate() {
            for n in 0..length {
                let coordinates = [row as i64, step as i64, n as i64];
                indices.extend_from_slice(&coordinates[usize::from(parse.single)..]);
            }
        }
    }
    let (n_rows, most) = (column.lengths.len() as i64, column.most_steps() as i64);
    let dims = [n_rows, most, column.steps.longest() as i64];
    let dims = &dims[usize::from(parse.single)..];
    put_sparse(io, outputs, &indices, dims, &column.steps.values)
}

fn put_dense_list(
    parse: &Parse,
    io: &mut Io<'_>,
    output: usize,
    column: &ListColumn,
    shape: &DenseShape,
) -> Result<()> {
    let (rows, most, stride) = (column.lengths.len(), column.most_steps(), shape.stride());
    let keys: Vec<usize> = column.lengths.iter().map(|steps| steps * stride).collect();
    let values: Values =
        column.steps.values.padded(io, &keys, most.saturating_mul(stride), None)?;
    let rows = (!parse.single).then_some(rows).into_iter();
    let dims = rows.chain([most]).chain(shape.sizes.iter().copied());
    values.put(io, output, &Shape::new(dims)?)
}

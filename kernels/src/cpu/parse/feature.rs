//! Features of examples: `tf.train.Feature` (`tensorflow/core/example/feature.proto`).

use crate::{cpu::cell::Cell, error::Result, kernel::Io};
use bytes::Bytes;
use ferroflow_ir::{
    DType, Error, PartialShape, Shape,
    shape::Dim,
    wire::{DamagedMessage, WireValue, fields},
    workspace,
};
use std::collections::HashMap;

/// Messages of features by their names.
pub(super) type Features<'a> = HashMap<&'a [u8], &'a [u8]>;

/// An error about an input that is no such message.
pub(super) fn damaged(op: &'static str) -> crate::Error {
    Error::argument(op, "serialized", "a well-formed message", "something else").into()
}

/// Adds the entries of map fields, which have a key and a message; the last one of a key counts.
pub(super) fn read_map<'a>(
    message: &'a [u8],
    into: &mut Features<'a>,
) -> Result<(), DamagedMessage> {
    for part in fields(message) {
        let (1, entry) = part? else { continue };
        let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
        for part in fields(entry.bytes()?) {
            match part? {
                (1, field) => key = field.bytes()?,
                (2, field) => value = field.bytes()?,
                _ => {}
            }
        }
        into.insert(key, value);
    }
    Ok(())
}

/// Values of many features, one after the other.
#[derive(Debug, Clone)]
pub(super) enum Values {
    Texts(Vec<Bytes>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

/// Runs an expression on the list that holds the values.
macro_rules! with_list {
    ($values:expr, $list:ident => $body:expr) => {
        match $values {
            Values::Texts($list) => $body,
            Values::Floats($list) => $body,
            Values::Ints($list) => $body,
        }
    };
}

impl Values {
    /// No values of this dtype.
    pub(super) fn new(dtype: DType) -> Values {
        match dtype {
            DType::String => Values::Texts(Vec::new()),
            DType::F32 => Values::Floats(Vec::new()),
            _ => Values::Ints(Vec::new()),
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Values::Texts(_) => DType::String,
            Values::Floats(_) => DType::F32,
            Values::Ints(_) => DType::I64,
        }
    }

    fn len(&self) -> usize {
        with_list!(self, list => list.len())
    }

    /// Adds the values of a feature and returns their number; `None` for a feature that holds
    /// nothing, not even a list.
    fn push(&mut self, op: &'static str, key: &[u8], feature: &[u8]) -> Result<Option<usize>> {
        let mut list = None;
        for part in fields(feature) {
            let (kind, field) = part.map_err(|_| damaged(op))?;
            if (1..=3).contains(&kind) {
                list = Some((kind, field.bytes().map_err(|_| damaged(op))?));
            }
        }
        let Some((kind, list)) = list else { return Ok(None) };
        let before = self.len();
        match (kind, &mut *self) {
            (1, Values::Texts(texts)) => each(list, |field| {
                texts.push(Bytes::copy_from_slice(field.bytes()?));
                Ok(())
            }),
            (2, Values::Floats(floats)) => each(list, |field| {
                floats.extend(field.fixed::<4>()?.iter().map(|bytes| f32::from_le_bytes(*bytes)));
                Ok(())
            }),
            (3, Values::Ints(ints)) => {
                each(list, |field| field.each_varint(|value| ints.push(value as i64)))
            }
            _ => {
                let found = ["bytes", "floats", "integers"][kind as usize - 1];
                let expected = self.dtype().name();
                return Err(Error::argument(op, named(key), expected, found).into());
            }
        }
        .map_err(|_| damaged(op))?;
        Ok(Some(self.len() - before))
    }

    /// Adds the elements of an input.
    fn extend(&mut self, io: &Io<'_>, input: usize) -> Result<usize> {
        let before = self.len();
        match self {
            Values::Texts(texts) => texts.extend_from_slice(io.strings(input)?),
            Values::Floats(floats) => floats.extend_from_slice(io.input(input)),
            Values::Ints(ints) => ints.extend_from_slice(io.input(input)),
        }
        Ok(self.len() - before)
    }

    /// Sets an output of this shape.
    pub(super) fn put(&self, io: &mut Io<'_>, output: usize, shape: &Shape) -> Result<()> {
        fn write<T: Cell>(
            io: &mut Io<'_>,
            output: usize,
            dtype: DType,
            shape: &Shape,
            list: &[T],
        ) -> Result<()> {
            T::write(io, output, dtype, shape, |out| {
                out.clone_from_slice(list);
                Ok(())
            })
        }
        with_list!(self, list => write(io, output, self.dtype(), shape, list))
    }

    /// The same values in rows of `width`, of which `lengths` says how much is passed; the rest is
    /// `filling`, or blank.
    pub(super) fn padded(
        &self,
        io: &Io<'_>,
        lengths: &[usize],
        width: usize,
        filling: Option<&Values>,
    ) -> Result<Values> {
        let rows = Shape::new([lengths.len(), width])?;
        io.check_size(self.dtype(), &rows)?;
        Ok(match (self, filling) {
            (Values::Texts(list), Some(Values::Texts(filling))) => {
                Values::Texts(pad(list, lengths, width, filling)?)
            }
            (Values::Floats(list), Some(Values::Floats(filling))) => {
                Values::Floats(pad(list, lengths, width, filling)?)
            }
            (Values::Ints(list), Some(Values::Ints(filling))) => {
                Values::Ints(pad(list, lengths, width, filling)?)
            }
            (Values::Texts(list), _) => Values::Texts(pad(list, lengths, width, &[])?),
            (Values::Floats(list), _) => Values::Floats(pad(list, lengths, width, &[])?),
            (Values::Ints(list), _) => Values::Ints(pad(list, lengths, width, &[])?),
        })
    }
}

fn each(
    list: &[u8],
    mut take: impl FnMut(WireValue<'_>) -> Result<(), DamagedMessage>,
) -> Result<(), DamagedMessage> {
    for part in fields(list) {
        if let (1, field) = part? {
            take(field)?;
        }
    }
    Ok(())
}

fn pad<T: Cell>(list: &[T], lengths: &[usize], width: usize, filling: &[T]) -> Result<Vec<T>> {
    let blank = filling.first().cloned().unwrap_or_else(T::blank);
    let mut padded = workspace::reserve(lengths.len() * width)?;
    let mut start = 0;
    for (row, &length) in lengths.iter().enumerate() {
        padded.extend_from_slice(&list[start..start + length]);
        padded.resize((row + 1) * width, blank.clone());
        start += length;
    }
    Ok(padded)
}

/// A feature as errors name it.
fn named(key: &[u8]) -> String {
    format!("the feature `{}`", String::from_utf8_lossy(key))
}

/// A feature of many examples.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) op: &'static str,
    key: Bytes,
    pub(super) values: Values,
    /// Number of values of each example.
    pub(super) lengths: Vec<usize>,
}

impl Column {
    /// Columns of these names and dtypes, without values.
    pub(super) fn all(op: &'static str, keys: &[Bytes], dtypes: &[DType]) -> Vec<Column> {
        let column = |(key, &dtype): (&Bytes, &DType)| Column {
            op,
            key: key.clone(),
            values: Values::new(dtype),
            lengths: Vec::new(),
        };
        keys.iter().zip(dtypes).map(column).collect()
    }

    /// Adds the feature of one more example, if it has it.
    pub(super) fn push(&mut self, feature: Option<&[u8]>) -> Result<()> {
        let length = match feature {
            Some(feature) => self.values.push(self.op, &self.key, feature)?,
            None => None,
        };
        self.lengths.push(length.unwrap_or(0));
        Ok(())
    }

    /// Adds the feature of one more example, which must have `size` values; the default in an input
    /// stands for one that is absent.
    pub(super) fn push_dense(
        &mut self,
        io: &Io<'_>,
        feature: Option<&[u8]>,
        default: usize,
        size: usize,
    ) -> Result<()> {
        let length = match feature {
            Some(feature) => self.values.push(self.op, &self.key, feature)?,
            None => None,
        };
        let length = match length {
            Some(length) => length,
            None => self.values.extend(io, default)?,
        };
        self.lengths.push(length);
        self.check_length(length, size)
    }

    pub(super) fn check_length(&self, length: usize, size: usize) -> Result<()> {
        if length == size {
            return Ok(());
        }
        Err(self.wrong_length(format!("of {size} values"), length))
    }

    /// An error about an example that has so many values.
    pub(super) fn wrong_length(&self, expected: String, length: usize) -> crate::Error {
        Error::argument(self.op, named(&self.key), expected, length).into()
    }

    pub(super) fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    /// Sets three outputs to a sparse tensor of rank 2, or 1 if there is one example only.
    pub(super) fn put_sparse(
        &self,
        io: &mut Io<'_>,
        outputs: [usize; 3],
        single: bool,
    ) -> Result<()> {
        let mut indices: Vec<i64> = Vec::new();
        for (row, &length) in self.lengths.iter().enumerate() {
            for n in 0..length {
                if !single {
                    indices.push(row as i64);
                }
                indices.push(n as i64);
            }
        }
        let dims = [self.lengths.len() as i64, self.longest() as i64];
        put_sparse(io, outputs, &indices, &dims[usize::from(single)..], &self.values)
    }

    /// The ends of the examples among the values.
    pub(super) fn splits(&self) -> Vec<usize> {
        splits(&self.lengths)
    }
}

/// Where things of these lengths begin, and where the last one ends.
pub(super) fn splits(lengths: &[usize]) -> Vec<usize> {
    let mut splits = vec![0];
    for (n, length) in lengths.iter().enumerate() {
        splits.push(splits[n] + length);
    }
    splits
}

/// Sets three outputs to a sparse tensor.
pub(super) fn put_sparse(
    io: &mut Io<'_>,
    outputs: [usize; 3],
    places: &[i64],
    dims: &[i64],
    values: &Values,
) -> Result<()> {
    let copy = |from: &[i64], out: &mut [i64]| {
        out.copy_from_slice(from);
        Ok(())
    };
    let n = values.len();
    let shape = Shape::new([n, dims.len()])?;
    i64::write(io, outputs[0], DType::I64, &shape, |out| copy(places, out))?;
    values.put(io, outputs[1], &Shape::new([n])?)?;
    i64::write(io, outputs[2], DType::I64, &Shape::new([dims.len()])?, |out| copy(dims, out))
}

/// The sizes that a dense feature is passed in an attribute. The first one may be open.
pub(super) struct DenseShape {
    pub(super) open: bool,
    /// The sizes that are not open.
    pub(super) sizes: Vec<usize>,
}

impl DenseShape {
    /// Reads a shape; `None` if more than the first size is open.
    pub(super) fn new(shape: &PartialShape) -> Option<DenseShape> {
        let dims: &[Dim] = shape.dims()?;
        let open = dims.first().is_some_and(Option::is_none);
        let sizes: Option<Vec<usize>> = dims[usize::from(open)..].iter().copied().collect();
        Some(DenseShape { open, sizes: sizes? })
    }

    /// The number of values of one step.
    pub(super) fn stride(&self) -> usize {
        self.sizes.iter().product()
    }
}

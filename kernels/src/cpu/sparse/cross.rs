//! Combinations of features: `SparseCross`, `SparseCrossHashed`, `SparseCrossV2`.
//!
//! Each example has any number of features in each column; the result is every combination of one
//! feature per column, the last column changing fastest (`sparse_cross_op.cc`).

use super::{SparseInputs, put_coordinates, put_dims, put_values};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    hash::{
        fingerprint::{fingerprint_cat64, fingerprint64},
        siphash::siphash24,
    },
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("SparseCross", cross), ("SparseCrossHashed", cross_hashed), ("SparseCrossV2", cross_text)];

/// The columns among the inputs of a call: sparse ones, then dense ones.
struct Inputs {
    sparse: Vec<(SparseInputs, DType)>,
    dense: Vec<(usize, DType, [usize; 2])>,
}

impl Inputs {
    fn new(call: &OpCall<'_>) -> Result<Inputs> {
        let n = call.attrs.types("sparse_types")?.len();
        let sparse = |column| {
            (SparseInputs::at(call, column, n + column, 2 * n + column), call.dtype(n + column))
        };
        let dense = |column| {
            let input = 3 * n + column;
            (input, call.dtype(input), [call.shape(input)[0], call.shape(input)[1]])
        };
        let n_dense = call.attrs.types("dense_types")?.len();
        Ok(Inputs {
            sparse: (0..n).map(sparse).collect(),
            dense: (0..n_dense).map(dense).collect(),
        })
    }

    /// The number of examples, which all columns must agree on.
    fn n_examples(&self, io: &Io<'_>) -> Result<usize> {
        let mut sizes = Vec::new();
        for (form, _) in &self.sparse {
            sizes.push(form.coordinates(io).shape()?[0]);
        }
        sizes.extend(self.dense.iter().map(|(_, _, [rows, _])| rows));
        let first = sizes.first().copied().unwrap_or(0);
        match sizes.iter().find(|&&size| size != first) {
            None => Ok(first),
            Some(other) => {
                let expected = format!("of {first} examples, as the others");
                Err(Error::argument("SparseCross", "a column", expected, other).into())
            }
        }
    }

    fn columns<'a>(&self, io: &Io<'a>, n_examples: usize) -> Result<Vec<FeatureColumn<'a>>> {
        let mut columns = Vec::new();
        for &(form, dtype) in &self.sparse {
            let features = FeatureValues::read(io, form.values, dtype)?;
            let mut examples = workspace::reserve(n_examples)?;
            let mut end = 0;
            for example in 0..n_examples {
                let start = end;
                let coordinates = form.coordinates(io);
                while end < form.n && coordinates.get(end)[0] == example as i64 {
                    end += 1;
                }
                examples.push(start..end);
            }
            columns.push(FeatureColumn { features, examples, dense: false });
        }
        for &(input, dtype, [rows, width]) in &self.dense {
            let features = FeatureValues::read(io, input, dtype)?;
            let examples = (0..rows).map(|row| row * width..(row + 1) * width).collect();
            columns.push(FeatureColumn { features, examples, dense: true });
        }
        Ok(columns)
    }
}

/// The features of one column, and which of them belong to each example.
pub(in crate::cpu) struct FeatureColumn<'a> {
    features: FeatureValues<'a>,
    examples: Vec<Range<usize>>,
    dense: bool,
}

impl<'a> FeatureColumn<'a> {
    /// A column of features.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when an example has features that are not there.
    pub(in crate::cpu) fn new(
        features: FeatureValues<'a>,
        examples: Vec<Range<usize>>,
        dense: bool,
    ) -> Result<FeatureColumn<'a>> {
        let n = features.len();
        match examples.iter().find(|own| own.start > own.end || own.end > n) {
            None => Ok(FeatureColumn { features, examples, dense }),
            Some(own) => {
                let (expected, found) = (format!("within {n} features"), format!("{own:?}"));
                Err(Error::argument("a cross of features", "a row", expected, found).into())
            }
        }
    }

    /// The number of features of an example.
    pub(in crate::cpu) fn len(&self, example: usize) -> usize {
        self.examples[example].len()
    }

    fn get(&self, index: usize) -> Feature<'a> {
        match self.features {
            FeatureValues::Texts(texts) => Feature::Text(&texts[index]),
            FeatureValues::Numbers(numbers) => Feature::Number(numbers[index]),
        }
    }
}

/// The features of a column.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum FeatureValues<'a> {
    Texts(&'a [Bytes]),
    Numbers(&'a [i64]),
}

impl<'a> FeatureValues<'a> {
    /// The features in an input.
    ///
    /// # Errors
    ///
    /// When it has strings and is not in host memory.
    pub(in crate::cpu) fn read(
        io: &Io<'a>,
        input: usize,
        dtype: DType,
    ) -> Result<FeatureValues<'a>> {
        Ok(match dtype {
            DType::String => FeatureValues::Texts(io.strings(input)?),
            _ => FeatureValues::Numbers(io.input(input)),
        })
    }

    fn len(&self) -> usize {
        match self {
            FeatureValues::Texts(texts) => texts.len(),
            FeatureValues::Numbers(numbers) => numbers.len(),
        }
    }
}

enum Feature<'a> {
    Text(&'a [u8]),
    Number(i64),
}

/// Result of a combination: which column each feature comes from, and which one it is there.
pub(in crate::cpu) trait CrossJoin {
    /// The type of results.
    type Out: Cell;

    /// The result of a combination.
    fn join(&self, combination: &[(&FeatureColumn<'_>, usize)]) -> Self::Out;
}

/// The features as text, with a separator between them.
pub(in crate::cpu) struct JoinedText(Bytes);

impl JoinedText {
    /// With this separator.
    pub(in crate::cpu) fn new(separator: &'static [u8]) -> JoinedText {
        JoinedText(Bytes::from_static(separator))
    }
}

impl CrossJoin for JoinedText {
    type Out = Bytes;

    fn join(&self, combination: &[(&FeatureColumn<'_>, usize)]) -> Bytes {
        let mut joined = Vec::new();
        for (n, (column, index)) in combination.iter().enumerate() {
            if n > 0 {
                joined.extend_from_slice(&self.0);
            }
            match column.get(*index) {
                Feature::Text(text) => joined.extend_from_slice(text),
                Feature::Number(number) => joined.extend_from_slice(number.to_string().as_bytes()),
            }
        }
        joined.into()
    }
}

/// A chain of fingerprints, reduced to a number of buckets; 0 stands for the most there can be.
pub(in crate::cpu) struct HashedCross {
    seed: Option<u64>,
    n_buckets: i64,
    scheme: Scheme,
}

impl HashedCross {
    /// A chain that begins with a seed, in which numbers stand for themselves.
    pub(in crate::cpu) fn seeded(seed: u64, n_buckets: i64) -> HashedCross {
        HashedCross { seed: Some(seed), n_buckets, scheme: Scheme::Plain }
    }
}

/// Hash of a feature.
enum Scheme {
    /// Numbers stand for themselves.
    Plain,
    /// Numbers in sparse columns are hashed too.
    Fingerprint,
    /// Everything is hashed under a key.
    Strong([u64; 2]),
}

impl Scheme {
    fn hash(&self, column: &FeatureColumn<'_>, index: usize) -> u64 {
        let feature = column.get(index);
        // Of a number, only the lower half is hashed.
        let half = |number: i64| (number as u32).to_le_bytes();
        match (self, feature) {
            (Scheme::Plain | Scheme::Fingerprint, Feature::Text(text)) => fingerprint64(text),
            (Scheme::Fingerprint, Feature::Number(number)) if !column.dense => {
                fingerprint64(&half(number))
            }
            (Scheme::Plain | Scheme::Fingerprint, Feature::Number(number)) => number as u64,
            (Scheme::Strong(key), Feature::Text(text)) => siphash24(*key, text),
            (Scheme::Strong(key), Feature::Number(number)) => siphash24(*key, &half(number)),
        }
    }
}

impl CrossJoin for HashedCross {
    type Out = i64;

    fn join(&self, combination: &[(&FeatureColumn<'_>, usize)]) -> i64 {
        let mut hashes = combination.iter().map(|(column, index)| self.scheme.hash(column, *index));
        let first = self.seed.or_else(|| hashes.next()).unwrap_or(0);
        let hash = hashes.fold(first, fingerprint_cat64);
        let n_buckets = if self.n_buckets > 0 { self.n_buckets } else { i64::MAX };
        (hash % n_buckets as u64) as i64
    }
}

fn cross(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let inputs = Inputs::new(call)?;
    let internal = call.attrs.dtype("internal_type")?;
    let mut dtypes = inputs.sparse.iter().map(|(_, dtype)| dtype);
    let mut dense = inputs.dense.iter().map(|(_, dtype, _)| dtype);
    if internal == DType::String
        && (dtypes.any(|dtype| *dtype == DType::I64) || dense.any(|dtype| *dtype == DType::I64))
    {
        return Err(call.wrong("internal_type", "int64, as some features are", internal));
    }
    let seed = call.attrs.int("hash_key")? as u64;
    let hashed = HashedCross::seeded(seed, call.attrs.int("num_buckets")?);
    let text = JoinedText::new(b"_X_");
    Ok(Some(match call.attrs.dtype("out_type")? {
        DType::String => Arc::new(move |io: &mut Io<'_>| run(io, &inputs, DType::String, &text)),
        _ => Arc::new(move |io: &mut Io<'_>| run(io, &inputs, DType::I64, &hashed)),
    }))
}

fn cross_hashed(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (inputs, first) = (Inputs::new(call)?, call.inputs.len() - 3);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let strong = io.scalar::<u8>(first + 1) != 0;
        let key: &[u64] = io.input(first + 2);
        let scheme = match *key {
            [low, high] if strong => Scheme::Strong([low, high]),
            [_, _] => Scheme::Fingerprint,
            _ => {
                let (expected, found) = ("of 2 elements", key.len());
                return Err(Error::argument("SparseCrossHashed", "salt", expected, found).into());
            }
        };
        let hashed = HashedCross { seed: None, n_buckets: io.scalar(first), scheme };
        run(io, &inputs, DType::I64, &hashed)
    })))
}

fn cross_text(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (inputs, separator) = (Inputs::new(call)?, call.inputs.len() - 1);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let text = JoinedText(io.strings(separator)?[0].clone());
        run(io, &inputs, DType::String, &text)
    })))
}

fn run<J: CrossJoin>(io: &mut Io<'_>, inputs: &Inputs, dtype: DType, join: &J) -> Result<()> {
    let n_examples = inputs.n_examples(io)?;
    io.check_size(DType::I64, &Shape::new([n_examples, 2])?)?;
    let columns = inputs.columns(io, n_examples)?;
    let (mut total, mut widest) = (0usize, 0);
    for example in 0..n_examples {
        let counts = columns.iter().map(|column| column.examples[example].len());
        let count = counts.fold(1usize, usize::saturating_mul);
        total = total.saturating_add(count);
        widest = widest.max(count);
    }
    io.check_size(DType::I64, &Shape::new([total, 2])?)?;
    let (mut indices, mut values) = (workspace::reserve(2 * total)?, workspace::reserve(total)?);
    for example in 0..n_examples {
        let mut n = 0;
        combinations(&columns, example, |combination| {
            indices.extend([example as i64, n]);
            values.push(join.join(combination));
            n += 1;
        });
    }
    put_coordinates(io, 0, 2, &indices, values.len())?;
    put_values(io, 1, dtype, &values)?;
    put_dims(io, 2, &[n_examples as i64, widest as i64])
}

/// Every combination of one feature of an example per column, the last column changing fastest.
pub(in crate::cpu) fn combinations<'c, 'a>(
    columns: &'c [FeatureColumn<'a>],
    example: usize,
    mut each: impl FnMut(&[(&'c FeatureColumn<'a>, usize)]),
) {
    let counts: Vec<usize> = columns.iter().map(|column| column.len(example)).collect();
    for n in 0..counts.iter().product() {
        let mut rest = n;
        let mut combination: Vec<(&FeatureColumn<'_>, usize)> = Vec::with_capacity(columns.len());
        for (column, count) in columns.iter().zip(&counts).rev() {
            combination.push((column, column.examples[example].start + rest % count));
            rest /= count;
        }
        combination.reverse();
        each(&combination);
    }
}

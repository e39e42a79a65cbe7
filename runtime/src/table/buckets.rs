//! Layout of the entries of a dense table in TensorFlow: in an array with more places than entries,
//! each entry at the place that its hash says, or at a free one after it. Such arrays are what
//! dense tables export and import, and checkpoints hold them.
//!
//! The hashes, the sequence of places and the growth are those of `MutableDenseHashTable` in
//! `tensorflow/core/kernels/lookup_table_op.cc`.

use super::{Column, Entries, Key, TableOptions};
use crate::error::Result;
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, HostTensor, Limits, Shape};
use ferroflow_kernels::{check_size, hash64};

/// Capacity of a dense table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Buckets {
    /// Before it grows; a power of 2.
    pub(crate) initial: usize,
    /// The part of the places that may be taken.
    pub(crate) load: f32,
}

impl Buckets {
    /// The places that so many entries need.
    fn needed(self, n_entries: usize) -> usize {
        let mut n = self.initial;
        while n_entries as f32 > n as f32 * self.load {
            match n.checked_mul(2) {
                Some(twice) => n = twice,
                // So many places are refused where they are asked for.
                None => return n,
            }
        }
        n
    }

    /// All places: keys and values. Places without an entry have the key `empty`.
    ///
    /// # Errors
    ///
    /// When the arrays would be too large, or keys are of a dtype that has no hash.
    pub(super) fn export(
        self,
        options: &TableOptions,
        entries: &Entries,
        empty: &Key,
        limits: &Limits,
    ) -> Result<(HostTensor, HostTensor)> {
        let n = self.needed(entries.keys.len());
        let shape = |width: usize| Shape::new([n, width]);
        let key_shape = shape(options.key_shape.num_elements())?;
        let value_shape = shape(entries.width)?;
        check_size(options.key_dtype, &key_shape, limits.tensor_bytes)?;
        check_size(options.value_dtype, &value_shape, limits.tensor_bytes)?;
        let mut places: Vec<Option<usize>> = vec![None; n];
        for (index, key) in entries.keys.iter().enumerate() {
            let mut place = hash(options, key)? as usize & (n - 1);
            let mut step = 0;
            while places[place].is_some() {
                step += 1;
                place = (place + step) & (n - 1);
            }
            places[place] = Some(index);
        }
        let keys = places.iter().map(|entry| entry.map_or(empty, |entry| &entries.keys[entry]));
        let keys = match options.key_dtype {
            DType::String => {
                let strings = keys.map(|key| Bytes::copy_from_slice(key)).collect();
                HostTensor::from_strings(key_shape, strings)?
            }
            dtype => {
                let bytes: Vec<u8> = keys.flat_map(|key| key.iter().copied()).collect();
                HostTensor::from_bytes(dtype, key_shape, &bytes)?
            }
        };
        let mut values = entries.values.empty();
        for place in places {
            match place {
                Some(entry) => values.push_row(&entries.values, entry, entries.width),
                None => values.push_zeros(entries.width),
            }
        }
        Ok((keys, values.into_tensor(options.value_dtype, value_shape)?))
    }
}

impl Column {
    fn push_zeros(&mut self, width: usize) {
        match self {
            Column::Plain { bytes, size } => bytes.resize(bytes.len() + width * *size, 0),
            Column::Strings(strings) => strings.resize(strings.len() + width, Bytes::new()),
        }
    }
}

/// Hash that tells the bucket of an entry.
fn hash(options: &TableOptions, key: &Key) -> Result<u64> {
    let size = match options.key_dtype {
        DType::String => return Ok(hash64(key)),
        DType::Bool | DType::U8 | DType::I8 => 1,
        DType::U16 | DType::I16 => 2,
        DType::U32 | DType::I32 => 4,
        DType::U64 | DType::I64 => 8,
        dtype => {
            let what = format!("places for keys of dtype {dtype}").into();
            return Err(IrError::Unsupported { op: "a dense table".into(), what }.into());
        }
    };
    let is_signed = matches!(options.key_dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let element = |bytes: &[u8]| {
        let is_negative = is_signed && bytes.last().is_some_and(|byte| *byte >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    let mut elements = key.chunks_exact(size).map(element);
    match options.key_shape.num_elements() {
        1 => Ok(elements.next().unwrap_or(0)),
        _ => Ok(elements.fold(0, combined)),
    }
}

/// The hash of a list whose last element has this hash, and the others that.
fn combined(others: u64, last: u64) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7800;
    let sum = last.wrapping_add(SPREAD).wrapping_add(others << 10).wrapping_add(others >> 4);
    others ^ sum
}

#[cfg(test)]
mod tests {
    use super::super::{LookupTable, TableKind};
    use super::*;
    use crate::context::Context;

    /// A table of 16 places or more.
    fn table(key_dtype: DType, reserved: [HostTensor; 2], value_shape: &[usize]) -> LookupTable {
        let buckets = Buckets { initial: 16, load: 0.8 };
        let options = TableOptions {
            key_dtype,
            key_shape: reserved[0].shape().clone(),
            value_dtype: DType::I64,
            value_shape: Shape::new(value_shape.iter().copied()).unwrap(),
            kind: TableKind::Dense { reserved, buckets },
        };
        LookupTable::new(options).unwrap()
    }

    fn ints(values: &[i64]) -> HostTensor {
        HostTensor::vector(values).unwrap()
    }

    /// The places of entries that hold something: of the values, which are not 0.
    fn places(table: &LookupTable) -> Vec<(usize, i64)> {
        let (_, values) = table.export(&Context::new()).unwrap();
        let values = values.as_slice::<i64>().unwrap().to_vec();
        values.into_iter().enumerate().filter(|(_, value)| *value != 0).collect()
    }

    // The places are those that TensorFlow 2.21 exports.
    #[test]
    fn entries_are_where_tensorflow_looks_for_them() {
        let scalars = || [HostTensor::scalar(-1i64), HostTensor::scalar(-2i64)];
        let of_ints = table(DType::I64, scalars(), &[]);
        of_ints.insert(&ints(&[5, 21, 37, 6, 7, 100]), &ints(&[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(places(&of_ints), [(4, 6), (5, 1), (6, 2), (7, 4), (8, 3), (10, 5)]);
        let (keys, values) = of_ints.export(&Context::new()).unwrap();
        assert_eq!((keys.shape().dims(), values.shape().dims()), (&[16, 1][..], &[16, 1][..]));
        assert_eq!(keys.as_slice::<i64>().unwrap()[..6], [-1, -1, -1, -1, 100, 5]);

        let reserved = [HostTensor::scalar(-1i32), HostTensor::scalar(-2i32)];
        let of_small = table(DType::I32, reserved, &[]);
        of_small.insert(&HostTensor::vector(&[5i32, 21, -7]).unwrap(), &ints(&[1, 2, 3])).unwrap();
        assert_eq!(places(&of_small), [(5, 1), (6, 2), (9, 3)]);

        let texts = ["", "$"].map(HostTensor::scalar_string);
        let of_texts = table(DType::String, texts, &[]);
        let words = ["a", "b", "c", "hello", "world"].map(|word| word.to_string().into());
        let shape = Shape::new([5]).unwrap();
        let words = HostTensor::from_strings(shape, words.to_vec()).unwrap();
        of_texts.insert(&words, &ints(&[1, 2, 3, 4, 5])).unwrap();
        assert_eq!(places(&of_texts), [(5, 3), (10, 2), (11, 4), (12, 1), (13, 5)]);

        let of_pairs = table(DType::I64, [ints(&[-1, -1]), ints(&[-2, -2])], &[]);
        let pairs = [1i64, 2, 3, 4, 17, 18];
        let pairs = HostTensor::from_slice(Shape::new([3, 2]).unwrap(), &pairs).unwrap();
        of_pairs.insert(&pairs, &ints(&[1, 2, 3])).unwrap();
        assert_eq!(places(&of_pairs), [(2, 3), (3, 1), (7, 2)]);
    }

    #[test]
    fn places_double_when_too_many_are_taken() {
        let buckets = Buckets { initial: 16, load: 0.8 };
        let needed = [0, 12, 13, 25, 26].map(|n| buckets.needed(n));
        assert_eq!(needed, [16, 16, 32, 32, 64]);
    }

    #[test]
    fn what_is_exported_is_imported() {
        let reserved = || [HostTensor::scalar(-1i64), HostTensor::scalar(-2i64)];
        let (first, second) =
            (table(DType::I64, reserved(), &[2]), table(DType::I64, reserved(), &[2]));
        let rows = HostTensor::from_slice(Shape::new([2, 2]).unwrap(), &[1i64, 2, 3, 4]).unwrap();
        first.insert(&ints(&[5, 21]), &rows).unwrap();
        let (keys, values) = first.export(&Context::new()).unwrap();
        assert_eq!((keys.shape().dims(), values.shape().dims()), (&[16, 1][..], &[16, 2][..]));
        second.import(&keys, &values).unwrap();
        let found = second.find(&Context::new(), &ints(&[21, 5]), &ints(&[0, 0])).unwrap();
        assert_eq!((second.len(), found.as_slice::<i64>().unwrap()), (2, &[3i64, 4, 1, 2][..]));
    }
}

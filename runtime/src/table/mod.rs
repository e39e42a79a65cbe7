//! Lookup tables: keys and the values they stand for.

pub(crate) mod buckets;
pub(crate) mod text;

use crate::{
    context::Context,
    error::{Error, Result},
    resource::Resource,
    rows::stacked,
    sync::RwLock,
};
use buckets::Buckets;
use bytes::Bytes;
use ferroflow_ir::{
    Code, DType, Error as IrError, HostTensor, Shape, TensorSpec,
    budget::{self, Charge},
};
use ferroflow_kernels::check_size;
use smallvec::SmallVec;
use std::{collections::HashMap, fmt, sync::Arc};

/// Properties of a table that are fixed when it is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableOptions {
    pub(crate) kind: TableKind,
    pub(crate) key_dtype: DType,
    pub(crate) key_shape: Shape,
    pub(crate) value_dtype: DType,
    pub(crate) value_shape: Shape,
}

/// Ways in which a table may change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableKind {
    /// It is filled once.
    Constant,
    /// Keys come and go.
    Mutable,
    /// Keys come and go, but for these, which no entry may have: the first marks positions without
    /// an entry where all are exported.
    Dense { reserved: [HostTensor; 2], buckets: Buckets },
}

/// A key: the bytes of its elements, or of its string.
type Key = SmallVec<[u8; 24]>;

/// A lookup table.
pub(crate) struct LookupTable {
    options: TableOptions,
    /// `None` until a constant table is filled.
    entries: RwLock<Option<Entries>>,
}

/// Keys with values, in the order in which they came, as long as none is removed.
#[derive(Clone)]
struct Entries {
    positions: HashMap<Key, usize>,
    keys: Vec<Key>,
    values: Column,
    /// The number of elements of a value.
    width: usize,
    /// The shares that entries have of budgets, one for each change.
    charges: Vec<Arc<Charge>>,
}

/// The elements of the values, one value after the other.
#[derive(Clone)]
enum Column {
    Plain { bytes: Vec<u8>, size: usize },
    Strings(Vec<Bytes>),
}

impl fmt::Debug for LookupTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("options", &self.options).finish_non_exhaustive()
    }
}

fn wrong(argument: &'static str, expected: impl Into<String>, found: impl fmt::Display) -> Error {
    IrError::argument("lookup table", argument, expected.into(), found).into()
}

fn precondition(message: impl Into<String>) -> Error {
    Error::Status { code: Code::FailedPrecondition, message: message.into() }
}

impl LookupTable {
    /// An empty table.
    ///
    /// # Errors
    ///
    /// [`IrError::Unsupported`] for keys or values that are handles.
    pub(crate) fn new(options: TableOptions) -> Result<LookupTable> {
        for dtype in [options.key_dtype, options.value_dtype] {
            if matches!(dtype, DType::Resource | DType::Variant) {
                let what = format!("keys or values of dtype {dtype}").into();
                return Err(IrError::Unsupported { op: "a lookup table".into(), what }.into());
            }
        }
        let filled = options.kind != TableKind::Constant;
        let entries = filled.then(|| Entries::new(&options));
        Ok(LookupTable { options, entries: RwLock::new(entries) })
    }

    /// Properties that are fixed.
    pub(crate) fn options(&self) -> &TableOptions {
        &self.options
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.read().as_ref().map_or(0, |entries| entries.keys.len())
    }

    /// Fills a constant table. Filling it again with as many entries does nothing.
    ///
    /// # Errors
    ///
    /// When the table is not constant, keys and values do not fit, a key comes twice with different
    /// values, or the table has another number of entries already.
    pub(crate) fn fill(&self, keys: &HostTensor, values: &HostTensor) -> Result<()> {
        if self.options.kind != TableKind::Constant {
            return Err(wrong("table", "one that is filled once", "one that may change"));
        }
        let list = self.checked_keys(keys, values)?;
        let mut entries = self.entries.write();
        if let Some(entries) = &*entries {
            if entries.keys.len() == list.len() {
                return Ok(());
            }
            return Err(precondition("the table is filled already"));
        }
        let mut new = Entries::new(&self.options);
        new.charge(&list, values)?;
        for (row, key) in list.into_iter().enumerate() {
            match new.positions.get(&key) {
                Some(&position) if new.values.equals(position, values, row, new.width)? => {}
                Some(_) => {
                    return Err(precondition("a key comes twice, with different values"));
                }
                None => new.insert(key, values, row)?,
            }
        }
        *entries = Some(new);
        Ok(())
    }

    /// Adds entries, or replaces their values.
    ///
    /// # Errors
    ///
    /// When the table is constant, or keys and values do not fit.
    pub(crate) fn insert(&self, keys: &HostTensor, values: &HostTensor) -> Result<()> {
        self.check_mutable()?;
        let list = self.checked_keys(keys, values)?;
        self.check_free(&list)?;
        let mut entries = self.entries.write();
        let entries = entries.get_or_insert_with(|| Entries::new(&self.options));
        entries.charge(&list, values)?;
        let mut rows = list.into_iter().enumerate();
        rows.try_for_each(|(row, key)| entries.insert(key, values, row))
    }

    /// Replaces all entries, or fills a constant table. Entries whose keys the table reserves,
    /// which TensorFlow exports, are left out.
    ///
    /// # Errors
    ///
    /// When keys and values do not fit, and those of [`fill`](Table::fill).
    pub(crate) fn import(&self, keys: &HostTensor, values: &HostTensor) -> Result<()> {
        if self.options.kind == TableKind::Constant {
            return self.fill(keys, values);
        }
        let rows = self.rows(keys, values)?;
        let (keys, values) = rows.as_ref().map_or((keys, values), |(keys, values)| (keys, values));
        let (list, reserved) = (self.checked_keys(keys, values)?, self.reserved()?);
        let mut new = Entries::new(&self.options);
        new.charge(&list, values)?;
        let rows = list.into_iter().enumerate();
        rows.filter(|(_, key)| !reserved.contains(key))
            .try_for_each(|(row, key)| new.insert(key, values, row))?;
        *self.entries.write() = Some(new);
        Ok(())
    }

    /// Keys and values as a dense table exports them, each a row, in the shapes that entries have.
    fn rows(
        &self,
        keys: &HostTensor,
        values: &HostTensor,
    ) -> Result<Option<(HostTensor, HostTensor)>> {
        let TableOptions { kind, key_shape, value_shape, .. } = &self.options;
        let widths = [key_shape.num_elements(), value_shape.num_elements()];
        match (kind, &keys.shape()[..], &values.shape()[..]) {
            (TableKind::Dense { .. }, &[n, key], &[rows, value])
                if n == rows && [key, value] == widths =>
            {
                let keys = keys.reshaped(stacked(n, key_shape)?)?;
                Ok(Some((keys, values.reshaped(stacked(n, value_shape)?)?)))
            }
            _ => Ok(None),
        }
    }

    /// Removes the entries of these keys, where there are any.
    ///
    /// # Errors
    ///
    /// When the table is constant, or the keys do not fit.
    pub(crate) fn remove(&self, keys: &HostTensor) -> Result<()> {
        self.check_mutable()?;
        let list = self.keys(keys)?;
        self.check_free(&list)?;
        if let Some(entries) = &mut *self.entries.write() {
            list.iter().for_each(|key| entries.remove(key));
        }
        Ok(())
    }

    fn check_mutable(&self) -> Result<()> {
        match self.options.kind {
            TableKind::Constant => Err(IrError::Unsupported {
                op: "a constant lookup table".into(),
                what: "its entries cannot be changed".into(),
            }
            .into()),
            TableKind::Mutable | TableKind::Dense { .. } => Ok(()),
        }
    }

    /// The values of keys; `default`, one for all or one for each, for keys without an entry.
    ///
    /// # Errors
    ///
    /// When the table is not filled yet, keys or defaults do not fit, or the result is too large.
    pub(crate) fn find(
        &self,
        context: &Context,
        keys: &HostTensor,
        default: &HostTensor,
    ) -> Result<HostTensor> {
        let list = self.keys(keys)?;
        self.check_free(&list)?;
        let shape = self.values_shape(keys)?;
        let (dtype, value_shape) = (self.options.value_dtype, &self.options.value_shape);
        if default.dtype() != dtype {
            return Err(wrong("default", format!("of dtype {dtype}"), default.dtype()));
        }
        let one = default.shape() == value_shape;
        if !one && *default.shape() != shape {
            return Err(wrong("default", format!("of shape {value_shape}"), default.shape()));
        }
        // As in TensorFlow, constant tables take the first default for all keys.
        let one = one || self.options.kind == TableKind::Constant;
        check_size(dtype, &shape, context.limits().tensor_bytes)?;
        let entries = self.entries.read();
        let entries =
            entries.as_ref().ok_or_else(|| precondition("the table is not filled yet"))?;
        let mut found = entries.values.empty();
        for (index, key) in list.iter().enumerate() {
            match entries.positions.get(key) {
                Some(&position) => found.push_row(&entries.values, position, entries.width),
                None => {
                    found.push(default, if one { 0 } else { index }, entries.width)?;
                }
            }
        }
        found.into_tensor(dtype, shape)
    }

    /// Runs `look` with a function that returns the integer a string stands for, if it stands for
    /// one.
    ///
    /// # Errors
    ///
    /// When the keys are not strings or the values not integers, or the table is not filled yet.
    #[cfg_attr(
        not(feature = "text"),
        expect(dead_code, reason = "tokenizers alone look up words without copies")
    )]
    pub(crate) fn look_up<R>(
        &self,
        look: impl FnOnce(&dyn Fn(&[u8]) -> Option<i64>) -> R,
    ) -> Result<R> {
        let TableOptions { key_dtype, value_dtype, value_shape, .. } = &self.options;
        if *key_dtype != DType::String || *value_dtype != DType::I64 || value_shape.rank() != 0 {
            let found = format!("from {key_dtype} to {value_dtype}");
            return Err(wrong("table", "from strings to integers of 64 bits", found));
        }
        let entries = self.entries.read();
        let entries =
            entries.as_ref().ok_or_else(|| precondition("the table is not filled yet"))?;
        let Column::Plain { bytes, .. } = &entries.values else {
            return Err(wrong("table", "of integers", "of strings"));
        };
        let numbers = bytes.as_chunks().0;
        Ok(look(&|key| {
            let number = numbers.get(*entries.positions.get(key)?)?;
            Some(i64::from_le_bytes(*number))
        }))
    }

    /// All keys and values, in no particular order; of a dense table all its positions.
    ///
    /// # Errors
    ///
    /// When they would be too large for tensors.
    pub(crate) fn export(&self, context: &Context) -> Result<(HostTensor, HostTensor)> {
        let (entries, options) = (self.entries.read(), &self.options);
        let message = || "the table is not filled yet".to_string();
        let entries = entries
            .as_ref()
            .ok_or_else(|| Error::Status { code: Code::Aborted, message: message() })?;
        if let TableKind::Dense { reserved: [empty, _], buckets } = &options.kind {
            let empty = self.key(empty, 0)?;
            return buckets.export(options, entries, &empty, context.limits());
        }
        let n = entries.keys.len();
        let (key_shape, value_shape) =
            (stacked(n, &options.key_shape)?, stacked(n, &options.value_shape)?);
        let limit = context.limits().tensor_bytes;
        check_size(options.key_dtype, &key_shape, limit)?;
        check_size(options.value_dtype, &value_shape, limit)?;
        let keys = match options.key_dtype {
            DType::String => {
                let strings = entries.keys.iter().map(|key| Bytes::copy_from_slice(key)).collect();
                HostTensor::from_strings(key_shape, strings)?
            }
            dtype => HostTensor::from_bytes(dtype, key_shape, &entries.keys.concat())?,
        };
        let values = entries.values.clone().into_tensor(options.value_dtype, value_shape)?;
        Ok((keys, values))
    }

    /// The keys of entries to be, of which there must be as many as values.
    fn checked_keys(&self, keys: &HostTensor, values: &HostTensor) -> Result<Vec<Key>> {
        let options = &self.options;
        if values.dtype() != options.value_dtype {
            return Err(wrong(
                "values",
                format!("of dtype {}", options.value_dtype),
                values.dtype(),
            ));
        }
        let list = self.keys(keys)?;
        let expected = self.values_shape(keys)?;
        if *values.shape() != expected {
            return Err(wrong("values", format!("of shape {expected}"), values.shape()));
        }
        Ok(list)
    }

    /// The shape of the values of these keys.
    fn values_shape(&self, keys: &HostTensor) -> Result<Shape> {
        let outer = keys.shape().rank() - self.options.key_shape.rank();
        let outer = keys.shape()[..outer].iter().copied();
        Ok(Shape::new(outer.chain(self.options.value_shape.iter().copied()))?)
    }

    fn keys(&self, keys: &HostTensor) -> Result<Vec<Key>> {
        let TableOptions { key_dtype, key_shape, .. } = &self.options;
        if keys.dtype() != *key_dtype {
            return Err(wrong("keys", format!("of dtype {key_dtype}"), keys.dtype()));
        }
        if !keys.shape().ends_with(key_shape) {
            return Err(wrong("keys", format!("keys of shape {key_shape}"), keys.shape()));
        }
        let n = keys.len() / key_shape.num_elements().max(1);
        (0..n).map(|index| self.key(keys, index)).collect()
    }

    /// The keys that no entry may have.
    fn reserved(&self) -> Result<Vec<Key>> {
        match &self.options.kind {
            TableKind::Dense { reserved, .. } => {
                reserved.iter().map(|key| self.key(key, 0)).collect()
            }
            TableKind::Constant | TableKind::Mutable => Ok(Vec::new()),
        }
    }

    /// Checks that the table reserves none of these keys.
    fn check_free(&self, keys: &[Key]) -> Result<()> {
        if self.reserved()?.iter().any(|reserved| keys.contains(reserved)) {
            return Err(wrong("keys", "none that the table reserves", "one of these"));
        }
        Ok(())
    }

    fn key(&self, keys: &HostTensor, index: usize) -> Result<Key> {
        if self.options.key_dtype == DType::String {
            return Ok(Key::from_slice(&keys.strings()?[index]));
        }
        let size = self.options.key_dtype.size().unwrap_or(0);
        let width = self.options.key_shape.num_elements() * size;
        Ok(Key::from_slice(&keys.bytes()[index * width..][..width]))
    }
}

impl Entries {
    /// Charges the budget of the call in progress for new entries of these keys. The charge lasts
    /// until the table is emptied.
    ///
    /// # Errors
    ///
    /// [`IrError::Limit`] when the budget has no room for them.
    fn charge(&mut self, keys: &[Key], values: &HostTensor) -> Result<()> {
        if !budget::is_bounded() {
            return Ok(());
        }
        let new = keys.iter().filter(|key| !self.positions.contains_key(*key));
        let (n_new, key_bytes) = new.fold((0usize, 0), |(n, sum), key| (n + 1, sum + key.len()));
        let value_bytes = match values.strings() {
            Ok(strings) => strings.iter().map(|text| text.len() + size_of::<Bytes>()).sum(),
            Err(_) => values.bytes().len(),
        };
        let of_value = value_bytes / keys.len().max(1);
        let bytes = n_new * (2 * size_of::<Key>() + of_value) + 2 * key_bytes;
        if n_new > 0 {
            self.charges.extend(budget::charge(bytes)?.map(Arc::new));
        }
        Ok(())
    }

    fn new(options: &TableOptions) -> Entries {
        let values = match options.value_dtype.size() {
            Some(size) => Column::Plain { bytes: Vec::new(), size },
            None => Column::Strings(Vec::new()),
        };
        let width = options.value_shape.num_elements();
        let (positions, keys, charges) = (HashMap::new(), Vec::new(), Vec::new());
        Entries { positions, keys, values, width, charges }
    }

    /// The value of `key` is row `row` of `values` from now on.
    fn insert(&mut self, key: Key, values: &HostTensor, row: usize) -> Result<()> {
        match self.positions.get(&key) {
            Some(&position) => self.values.replace(position, values, row, self.width),
            None => {
                self.values.push(values, row, self.width)?;
                self.positions.insert(key.clone(), self.keys.len());
                self.keys.push(key);
                Ok(())
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(position) = self.positions.remove(key) else { return };
        self.keys.swap_remove(position);
        self.values.swap_remove(position, self.width);
        if let Some(moved) = self.keys.get(position) {
            self.positions.insert(moved.clone(), position);
        }
    }
}

impl Column {
    /// A column of the same kind without rows.
    fn empty(&self) -> Column {
        match self {
            Column::Plain { size, .. } => Column::Plain { bytes: Vec::new(), size: *size },
            Column::Strings(_) => Column::Strings(Vec::new()),
        }
    }

    fn push(&mut self, values: &HostTensor, row: usize, width: usize) -> Result<()> {
        match self {
            Column::Plain { bytes, size } => {
                let row_bytes = width * *size;
                bytes.extend_from_slice(&values.bytes()[row * row_bytes..][..row_bytes]);
            }
            Column::Strings(strings) => {
                strings.extend_from_slice(&values.strings()?[row * width..][..width]);
            }
        }
        Ok(())
    }

    fn push_row(&mut self, other: &Column, row: usize, width: usize) {
        match (self, other) {
            (Column::Plain { bytes, size }, Column::Plain { bytes: other, .. }) => {
                let row_bytes = width * *size;
                bytes.extend_from_slice(&other[row * row_bytes..][..row_bytes]);
            }
            (Column::Strings(strings), Column::Strings(other)) => {
                strings.extend_from_slice(&other[row * width..][..width]);
            }
            (Column::Plain { .. } | Column::Strings(_), _) => {
                unreachable!("a column made empty from the other")
            }
        }
    }

    fn replace(
        &mut self,
        position: usize,
        values: &HostTensor,
        row: usize,
        width: usize,
    ) -> Result<()> {
        match self {
            Column::Plain { bytes, size } => {
                let row_bytes = width * *size;
                bytes[position * row_bytes..][..row_bytes]
                    .copy_from_slice(&values.bytes()[row * row_bytes..][..row_bytes]);
            }
            Column::Strings(strings) => {
                strings[position * width..][..width]
                    .clone_from_slice(&values.strings()?[row * width..][..width]);
            }
        }
        Ok(())
    }

    fn equals(
        &self,
        position: usize,
        values: &HostTensor,
        row: usize,
        width: usize,
    ) -> Result<bool> {
        Ok(match self {
            Column::Plain { bytes, size } => {
                let row_bytes = width * size;
                bytes[position * row_bytes..][..row_bytes]
                    == values.bytes()[row * row_bytes..][..row_bytes]
            }
            Column::Strings(strings) => {
                strings[position * width..][..width] == values.strings()?[row * width..][..width]
            }
        })
    }

    /// The last row replaces this one.
    fn swap_remove(&mut self, position: usize, width: usize) {
        fn remove<T: Clone>(cells: &mut Vec<T>, position: usize, width: usize) {
            let last = cells.len() - width;
            for offset in 0..width {
                cells.swap(position * width + offset, last + offset);
            }
            cells.truncate(last);
        }
        match self {
            Column::Plain { bytes, size } => remove(bytes, position, width * *size),
            Column::Strings(strings) => remove(strings, position, width),
        }
    }

    fn into_tensor(self, dtype: DType, shape: Shape) -> Result<HostTensor> {
        Ok(match self {
            Column::Plain { bytes, .. } => HostTensor::from_bytes(dtype, shape, &bytes)?,
            Column::Strings(strings) => HostTensor::from_strings(shape, strings)?,
        })
    }
}

impl Resource for LookupTable {
    fn kind(&self) -> &'static str {
        "a lookup table"
    }

    /// Dtype and shape of the value of one key.
    fn pointee(&self) -> Option<TensorSpec> {
        let scalar = self.options.key_shape.rank() == 0;
        scalar.then(|| TensorSpec::new(self.options.value_dtype, &self.options.value_shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(kind: TableKind, value_shape: &[usize]) -> LookupTable {
        let options = TableOptions {
            kind,
            key_dtype: DType::I64,
            key_shape: Shape::scalar(),
            value_dtype: DType::F32,
            value_shape: Shape::new(value_shape.iter().copied()).unwrap(),
        };
        LookupTable::new(options).unwrap()
    }

    fn ints(keys: &[i64]) -> HostTensor {
        HostTensor::vector(keys).unwrap()
    }

    fn floats(values: &[f32]) -> HostTensor {
        HostTensor::vector(values).unwrap()
    }

    #[test]
    fn constant_tables_are_filled_once() {
        let (context, table) = (Context::new(), table(TableKind::Constant, &[]));
        let default = HostTensor::scalar(-1.0f32);
        let unfilled = table.find(&context, &ints(&[1]), &default).unwrap_err();
        assert_eq!(unfilled.code(), Code::FailedPrecondition);
        assert!(table.fill(&ints(&[1, 1]), &floats(&[1.0, 2.0])).is_err());
        table.fill(&ints(&[1, 2]), &floats(&[1.0, 2.0])).unwrap();
        assert!(table.fill(&ints(&[1]), &floats(&[1.0])).is_err());
        let found = table.find(&context, &ints(&[2, 3]), &default).unwrap();
        assert_eq!(found, floats(&[2.0, -1.0]));
        assert!(table.insert(&ints(&[3]), &floats(&[3.0])).is_err());
    }

    #[test]
    fn entries_can_be_removed_in_any_order() {
        let (context, table) = (Context::new(), table(TableKind::Mutable, &[2]));
        let values =
            HostTensor::from_slice(Shape::new([3, 2]).unwrap(), &[1.0f32, 1.5, 2.0, 2.5, 3.0, 3.5]);
        table.insert(&ints(&[1, 2, 3]), &values.unwrap()).unwrap();
        table.remove(&ints(&[1, 7])).unwrap();
        assert_eq!(table.len(), 2);
        let found = table.find(&context, &ints(&[3, 1, 2]), &floats(&[0.0, 0.0])).unwrap();
        assert_eq!(found.as_slice::<f32>().unwrap(), [3.0, 3.5, 0.0, 0.0, 2.0, 2.5]);
    }

    #[test]
    fn reserved_keys_are_refused() {
        let reserved = [HostTensor::scalar(-1i64), HostTensor::scalar(-2i64)];
        let buckets = Buckets { initial: 4, load: 0.8 };
        let table = table(TableKind::Dense { reserved, buckets }, &[]);
        assert!(table.insert(&ints(&[4, -2]), &floats(&[0.0, 0.0])).is_err());
        assert_eq!(table.len(), 0);
        table.import(&ints(&[4, -2]), &floats(&[0.0, 0.0])).unwrap();
        assert_eq!(table.len(), 1);
    }
}

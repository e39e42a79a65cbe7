//! Maps from tensors to tensors.

use crate::error::Result;
use ferroflow_ir::{Error as IrError, Handle, HostTensor};
use std::{any::Any, collections::BTreeMap};

/// A map from tensors to tensors, as a value of dtype variant.
#[derive(Debug, Clone, Default)]
pub(crate) struct TensorMap {
    entries: BTreeMap<Vec<u8>, (HostTensor, HostTensor)>,
}

impl Handle for TensorMap {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl TensorMap {
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when there is none.
    pub(crate) fn get(&self, key: &HostTensor) -> Result<&HostTensor> {
        let found = self.entries.get(&identity(key)?);
        found.map(|(_, value)| value).ok_or_else(|| absent(key))
    }

    /// Whether there is an entry of this key.
    ///
    /// # Errors
    ///
    /// [`IrError::DType`] for keys that are handles.
    pub(crate) fn contains(&self, key: &HostTensor) -> Result<bool> {
        Ok(self.entries.contains_key(&identity(key)?))
    }

    /// Adds an entry, or replaces its value.
    ///
    /// # Errors
    ///
    /// [`IrError::DType`] for keys that are handles.
    pub(crate) fn insert(&mut self, key: HostTensor, value: HostTensor) -> Result<()> {
        self.entries.insert(identity(&key)?, (key, value));
        Ok(())
    }

    /// Takes an entry out.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when there is none.
    pub(crate) fn remove(&mut self, key: &HostTensor) -> Result<()> {
        self.entries.remove(&identity(key)?).map(|_| ()).ok_or_else(|| absent(key))
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The keys, in an order that depends on nothing but them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &HostTensor> {
        self.entries.values().map(|(key, _)| key)
    }

    /// The same keys with values that `change` makes.
    ///
    /// # Errors
    ///
    /// Those of `change`.
    pub(crate) fn map(
        &self,
        change: &dyn Fn(&HostTensor) -> Result<HostTensor>,
    ) -> Result<TensorMap> {
        let entries = self
            .entries
            .iter()
            .map(|(identity, (key, value))| Ok((identity.clone(), (key.clone(), change(value)?))));
        Ok(TensorMap { entries: entries.collect::<Result<_>>()? })
    }

    /// All entries of both; `sum` adds the values of keys that are in both.
    ///
    /// # Errors
    ///
    /// Those of `sum`.
    pub(crate) fn add(
        &self,
        other: &TensorMap,
        sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
    ) -> Result<TensorMap> {
        let mut entries = self.entries.clone();
        for (identity, (key, value)) in &other.entries {
            let value = match entries.get(identity) {
                Some((_, own)) => sum(own, value)?,
                None => value.clone(),
            };
            entries.insert(identity.clone(), (key.clone(), value));
        }
        Ok(TensorMap { entries })
    }
}

/// Bytes that are equal for equal tensors only: dtype, sizes and elements.
fn identity(key: &HostTensor) -> Result<Vec<u8>> {
    let mut bytes = key.dtype().number().to_be_bytes().to_vec();
    let number = |bytes: &mut Vec<u8>, number: usize| {
        bytes.extend_from_slice(&(number as u64).to_be_bytes());
    };
    number(&mut bytes, key.shape().rank());
    key.shape().dims().iter().for_each(|&dim| number(&mut bytes, dim));
    if key.is_plain() {
        bytes.extend_from_slice(key.bytes());
    } else {
        for string in key.strings()? {
            number(&mut bytes, string.len());
            bytes.extend_from_slice(string);
        }
    }
    Ok(bytes)
}

fn absent(key: &HostTensor) -> crate::Error {
    IrError::argument("tensor map", "key", "one of the map's", format!("{key:?}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_dtype_and_elements() {
        let mut map = TensorMap::default();
        let value = HostTensor::scalar(1.0f32);
        map.insert(HostTensor::scalar(1i32), value.clone()).unwrap();
        map.insert(HostTensor::scalar_string("1"), value.clone()).unwrap();
        assert_eq!(map.get(&HostTensor::scalar(1i32)).unwrap(), &value);
        assert!(!map.contains(&HostTensor::scalar(1i64)).unwrap());
        assert!(map.remove(&HostTensor::scalar(2i32)).is_err());
        map.remove(&HostTensor::scalar(1i32)).unwrap();
        assert_eq!(map.len(), 1);
    }

    #[test]
    fn sums_have_the_entries_of_both() {
        let of = |key: i32| {
            let mut map = TensorMap::default();
            map.insert(HostTensor::scalar(key), HostTensor::scalar(key)).unwrap();
            map
        };
        let sum = of(1).add(&of(2), &|a, _| Ok(a.clone())).unwrap();
        assert_eq!(sum.len(), 2);
    }
}

//! Meshes: devices in named dimensions.

use super::{UNSHARDED, has_twice};
use crate::error::{Error, Result};
use std::{fmt, sync::Arc};

/// The most dimensions of a mesh.
const MAX_DIMS: usize = 6;

/// Devices, arranged in named dimensions. Clones share the description.
///
/// ```
/// use ferroflow_ir::Mesh;
/// let devices = ["CPU:0", "CPU:1", "CPU:2", "CPU:3"];
/// let mesh = Mesh::new([("batch", 2), ("model", 2)], devices).unwrap();
/// assert_eq!(mesh.coordinates(2), [1, 0]);
/// assert!(Mesh::new([("batch", 3)], devices).is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mesh(Arc<MeshParts>);

#[derive(PartialEq, Eq, Hash)]
struct MeshParts {
    dims: Vec<(String, usize)>,
    devices: Vec<String>,
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.0.dims.iter().map(|(name, size)| format!("{name}={size}"));
        write!(f, "<mesh {}>", dims.collect::<Vec<_>>().join(", "))
    }
}

impl Mesh {
    /// A mesh of these dimensions, names and sizes, with its devices in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when names or devices are there twice, a size is 0, there are no dimensions or
    /// too many, or there are not as many devices as the sizes ask for.
    pub fn new<N: Into<String>, D: Into<String>>(
        dims: impl IntoIterator<Item = (N, usize)>,
        devices: impl IntoIterator<Item = D>,
    ) -> Result<Mesh> {
        let dims: Vec<(String, usize)> =
            dims.into_iter().map(|(name, size)| (name.into(), size)).collect();
        let devices: Vec<String> = devices.into_iter().map(Into::into).collect();
        let names: Vec<&str> = dims.iter().map(|(name, _)| name.as_str()).collect();
        if dims.is_empty() || dims.len() > MAX_DIMS || has_twice(&names) {
            let expected = format!("1 to {MAX_DIMS} dimensions of different names");
            return Err(wrong("dimensions", expected, format!("{names:?}")));
        }
        if let Some(name) = names.iter().find(|name| name.is_empty() || **name == UNSHARDED) {
            return Err(wrong("dimensions", format!("named other than `{UNSHARDED}`"), name));
        }
        let size = dims.iter().try_fold(1usize, |size, (_, n)| size.checked_mul(*n));
        if size != Some(devices.len()) || devices.is_empty() {
            let sizes: Vec<usize> = dims.iter().map(|(_, size)| *size).collect();
            let expected = format!("one for each position of {sizes:?}");
            return Err(wrong("devices", expected, devices.len()));
        }
        if has_twice(&devices) {
            return Err(wrong("devices", "of different names", format!("{devices:?}")));
        }
        Ok(Mesh(Arc::new(MeshParts { dims, devices })))
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.dims.len()
    }

    /// The names and sizes of the dimensions.
    pub fn dims(&self) -> &[(String, usize)] {
        &self.0.dims
    }

    /// The names of the devices, in row-major order.
    pub fn devices(&self) -> &[String] {
        &self.0.devices
    }

    /// The size of a dimension; 1 if there is none.
    pub fn dim_size(&self, dim: usize) -> usize {
        self.0.dims.get(dim).map_or(1, |(_, size)| *size)
    }

    /// The position of the dimension of a name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] when there is none.
    pub fn dim(&self, name: &str) -> Result<usize> {
        let found = self.0.dims.iter().position(|(known, _)| known == name);
        found.ok_or_else(|| Error::NotFound { kind: "mesh dimension", name: name.into() })
    }

    /// The coordinates of a device, by its number.
    pub fn coordinates(&self, device: usize) -> Vec<usize> {
        let mut rest = device;
        let mut coordinates: Vec<usize> = Vec::with_capacity(self.rank());
        for (_, size) in self.0.dims.iter().rev() {
            coordinates.push(rest % size);
            rest /= size;
        }
        coordinates.reverse();
        coordinates
    }

    /// The groups of devices that differ in some dimensions only: the key of each, and its members.
    pub fn groups(&self) -> Vec<(i32, Vec<usize>)> {
        let mut groups: Vec<(i32, Vec<usize>)> = Vec::new();
        for dims in 1..1u32 << self.rank() {
            for device in 0..self.devices().len() {
                let key = self.group_key(device, dims);
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, members)) => members.push(device),
                    None => groups.push((key, vec![device])),
                }
            }
        }
        groups
    }

    /// The number of devices that differ in these dimensions only, a bit each.
    pub(crate) fn group_size(&self, dims: u32) -> usize {
        (0..self.rank()).filter(|dim| dims >> dim & 1 == 1).map(|dim| self.dim_size(dim)).product()
    }

    /// The key of the group of devices that differ from one in these dimensions only. No two groups share
    /// a key, and none has the key of the group of all replicas of a strategy.
    pub(crate) fn group_key(&self, device: usize, dims: u32) -> i32 {
        let mut first = 0usize;
        for (dim, coordinate) in self.coordinates(device).into_iter().enumerate() {
            let own = if dims >> dim & 1 == 1 { 0 } else { coordinate };
            first = first * self.dim_size(dim) + own;
        }
        let key = dims as usize * self.devices().len() + first + 2;
        i32::try_from(key).unwrap_or(i32::MAX)
    }
}

fn wrong(what: &'static str, expected: impl Into<String>, found: impl fmt::Display) -> Error {
    Error::argument("mesh", what, expected.into(), found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A mesh of CPUs.
    pub(in crate::layout) fn mesh(dims: &[(&str, usize)]) -> Mesh {
        let n: usize = dims.iter().map(|(_, size)| size).product();
        Mesh::new(dims.iter().copied(), (0..n).map(|i| format!("CPU:{i}"))).unwrap()
    }

    #[test]
    fn groups_have_keys_of_their_own() {
        let mesh = mesh(&[("x", 2), ("y", 2)]);
        let keys = |dims| (0..4).map(|device| mesh.group_key(device, dims)).collect::<Vec<_>>();
        let (x, y, both) = (keys(1), keys(2), keys(3));
        assert!(x[0] == x[2] && x[1] == x[3] && x[0] != x[1]);
        assert!(y[0] == y[1] && y[2] == y[3] && y[0] != y[2]);
        assert!(both.iter().all(|&key| key == both[0] && !x.contains(&key) && !y.contains(&key)));
        assert_eq!((mesh.group_size(1), mesh.group_size(3)), (2, 4));
        let groups = mesh.groups();
        assert_eq!(groups.len(), 5);
        assert!(
            groups.contains(&(y[2], vec![2, 3])) && groups.contains(&(both[0], vec![0, 1, 2, 3]))
        );
    }
}

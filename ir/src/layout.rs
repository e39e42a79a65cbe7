//! Meshes of devices, and layouts of tensors on them.
//!
//! A [`Mesh`] names the dimensions in which devices are arranged; a [`Layout`] tells for each dimension of
//! a tensor along which mesh dimension it is split. A device holds one piece of a tensor: in a split
//! dimension the part of its coordinate, in all others everything. The words are those of TensorFlow's
//! `tf.experimental.dtensor`.

use crate::{
    error::{Error, Result},
    host_tensor::HostTensor,
    shape::Shape,
};
use smallvec::SmallVec;
use std::{fmt, ops::Range, sync::Arc};

/// The spec of a dimension that is not split.
pub const UNSHARDED: &str = "unsharded";

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

fn has_twice<T: PartialEq>(names: &[T]) -> bool {
    names.iter().enumerate().any(|(at, name)| names[..at].contains(name))
}

fn wrong(what: &'static str, expected: impl Into<String>, found: impl fmt::Display) -> Error {
    Error::argument("mesh", what, expected.into(), found)
}

/// Layout of a tensor on a mesh: for each of its dimensions, the mesh dimension that splits it.
///
/// ```
/// use ferroflow_ir::{HostTensor, Layout, Mesh, Shape};
/// let mesh = Mesh::new([("model", 2)], ["CPU:0", "CPU:1"]).unwrap();
/// let columns = Layout::new(&mesh, ["unsharded", "model"]).unwrap();
/// let matrix = HostTensor::from_slice(Shape::new([2, 2]).unwrap(), &[1i32, 2, 3, 4]).unwrap();
/// let pieces = columns.split(&matrix).unwrap();
/// assert_eq!(pieces[1].as_slice::<i32>().unwrap(), [2, 4]);
/// assert_eq!(columns.join(&pieces).unwrap().as_slice::<i32>().unwrap(), [1, 2, 3, 4]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    mesh: Mesh,
    specs: SmallVec<[Option<usize>; 4]>,
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<layout {self}>")
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |spec: &Option<usize>| match spec {
            Some(dim) => self.mesh.dims()[*dim].0.clone(),
            None => UNSHARDED.to_string(),
        };
        write!(f, "({})", self.specs.iter().map(name).collect::<Vec<_>>().join(", "))
    }
}

impl Layout {
    /// The layout with these specs, a name of a mesh dimension or [`UNSHARDED`] for each dimension of the
    /// tensor.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a name that is none of the mesh, [`Error::Argument`] for one that is there
    /// twice.
    pub fn new<S: AsRef<str>>(mesh: &Mesh, specs: impl IntoIterator<Item = S>) -> Result<Layout> {
        let spec = |spec: S| match spec.as_ref() {
            UNSHARDED => Ok(None),
            name => mesh.dim(name).map(Some),
        };
        let specs: Vec<Option<usize>> = specs.into_iter().map(spec).collect::<Result<_>>()?;
        Layout::of_dims(mesh, specs)
    }

    /// The layout that splits dimensions of the tensor along these dimensions of the mesh.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the mesh has no such dimension, or it is there twice.
    pub fn of_dims(mesh: &Mesh, specs: impl IntoIterator<Item = Option<usize>>) -> Result<Layout> {
        let specs: SmallVec<[Option<usize>; 4]> = specs.into_iter().collect();
        let used: Vec<usize> = specs.iter().flatten().copied().collect();
        if has_twice(&used) || used.iter().any(|&dim| dim >= mesh.rank()) {
            let expected = "dimensions of the mesh, none of them twice";
            return Err(Error::argument("layout", "specs", expected, format!("{used:?}")));
        }
        Ok(Layout { mesh: mesh.clone(), specs })
    }

    /// The layout of tensors of a rank of which every device has the whole.
    pub fn replicated(mesh: &Mesh, rank: usize) -> Layout {
        Layout { mesh: mesh.clone(), specs: SmallVec::from_elem(None, rank) }
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The mesh dimension that splits each dimension, if one does.
    pub fn specs(&self) -> &[Option<usize>] {
        &self.specs
    }

    /// The rank of the tensors.
    pub fn rank(&self) -> usize {
        self.specs.len()
    }

    /// Whether every device has the whole tensor.
    pub fn is_replicated(&self) -> bool {
        self.specs.iter().flatten().all(|&dim| self.mesh.dim_size(dim) == 1)
    }

    /// The shape of the piece of one device.
    ///
    /// # Errors
    ///
    /// [`Error::Layout`] when a size does not divide evenly or the rank is another one.
    pub fn piece_shape(&self, shape: &Shape) -> Result<Shape> {
        let uneven = || Error::Layout {
            what: "a tensor".into(),
            layout: self.to_string(),
            problem: format!("its shape {shape} cannot be split evenly over {:?}", self.mesh),
        };
        if shape.rank() != self.rank() {
            return Err(uneven());
        }
        let piece = |(&size, spec): (&usize, &Option<usize>)| {
            let parts = spec.map_or(1, |dim| self.mesh.dim_size(dim));
            (size % parts == 0).then_some(size / parts).ok_or_else(uneven)
        };
        Shape::new(shape.iter().zip(&self.specs).map(piece).collect::<Result<Vec<usize>>>()?)
    }

    /// The shape of the whole tensor, of that of a piece.
    ///
    /// # Errors
    ///
    /// [`Error::Layout`] when the rank is another one, [`Error::Size`] for too many elements.
    pub fn whole_shape(&self, piece: &Shape) -> Result<Shape> {
        if piece.rank() != self.rank() {
            return Err(self.not_of(piece));
        }
        let parts = |spec: &Option<usize>| spec.map_or(1, |dim| self.mesh.dim_size(dim));
        Shape::new(
            piece.iter().zip(&self.specs).map(|(size, spec)| size.saturating_mul(parts(spec))),
        )
    }

    fn not_of(&self, shape: &Shape) -> Error {
        let problem = format!("a piece has shape {shape}");
        Error::Layout { what: "a tensor".into(), layout: self.to_string(), problem }
    }

    /// The part of each dimension of a tensor that a device has.
    fn part(&self, piece: &Shape, device: usize) -> Vec<Range<usize>> {
        let coordinates = self.mesh.coordinates(device);
        let range = |(&size, spec): (&usize, &Option<usize>)| {
            let at = spec.map_or(0, |dim| coordinates[dim]);
            at * size..(at + 1) * size
        };
        piece.iter().zip(&self.specs).map(range).collect()
    }

    /// The pieces of a tensor, one for each device.
    ///
    /// # Errors
    ///
    /// As [`piece_shape`](Layout::piece_shape); [`Error::DType`] for handles that would be split.
    pub fn split(&self, tensor: &HostTensor) -> Result<Vec<HostTensor>> {
        let n_devices = self.mesh.devices().len();
        let piece = self.piece_shape(tensor.shape())?;
        if self.is_replicated() {
            return Ok(vec![tensor.clone(); n_devices]);
        }
        let cut = |device| {
            let part = self.part(&piece, device);
            collect(tensor, &runs(tensor.shape(), &part), piece.clone())
        };
        (0..n_devices).map(cut).collect()
    }

    /// The whole of a tensor, of the pieces of all devices.
    ///
    /// # Errors
    ///
    /// [`Error::Layout`] when there are not as many pieces as devices or their shapes or dtypes differ;
    /// [`Error::DType`] for handles.
    pub fn join(&self, pieces: &[HostTensor]) -> Result<HostTensor> {
        let unfit = |problem: String| Error::Layout {
            what: "a tensor".into(),
            layout: self.to_string(),
            problem,
        };
        let n_devices = self.mesh.devices().len();
        let Some(first) = pieces.first().filter(|_| pieces.len() == n_devices) else {
            return Err(unfit(format!("{} pieces for {n_devices} devices", pieces.len())));
        };
        let alike =
            |piece: &&HostTensor| piece.dtype() != first.dtype() || piece.shape() != first.shape();
        if let Some(piece) = pieces.iter().find(alike) {
            let found = format!("{}{}", piece.dtype(), piece.shape());
            return Err(unfit(format!("pieces of {}{} and {found}", first.dtype(), first.shape())));
        }
        let shape = self.whole_shape(first.shape())?;
        if self.is_replicated() {
            return Ok(first.clone());
        }
        assemble(pieces, &shape, |device| runs(&shape, &self.part(first.shape(), device)))
    }
}

/// The contiguous ranges of elements that a box of a tensor consists of, in order.
fn runs(shape: &Shape, part: &[Range<usize>]) -> Vec<Range<usize>> {
    let Some((last, outer)) = part.split_last() else { return std::iter::once(0..1).collect() };
    let mut starts = vec![0usize];
    for (&size, range) in shape.iter().zip(outer) {
        let next = starts.iter().flat_map(|start| range.clone().map(move |at| start * size + at));
        starts = next.collect();
    }
    let size = shape.last().copied().unwrap_or(1);
    starts.iter().map(|start| start * size + last.start..start * size + last.end).collect()
}

/// The elements of these ranges.
fn collect(tensor: &HostTensor, runs: &[Range<usize>], shape: Shape) -> Result<HostTensor> {
    let size = tensor.dtype().size().filter(|_| tensor.is_plain());
    let Some(size) = size else {
        let strings = tensor.strings()?;
        let taken = runs.iter().flat_map(|run| strings[run.clone()].iter().cloned()).collect();
        return HostTensor::from_strings(shape, taken);
    };
    let mut bytes = Vec::with_capacity(shape.num_elements() * size);
    for run in runs {
        bytes.extend_from_slice(&tensor.bytes()[run.start * size..run.end * size]);
    }
    HostTensor::from_bytes(tensor.dtype(), shape, &bytes)
}

/// A tensor of pieces, each of whose elements go to the ranges of its device, in order.
fn assemble(
    pieces: &[HostTensor],
    shape: &Shape,
    runs: impl Fn(usize) -> Vec<Range<usize>>,
) -> Result<HostTensor> {
    let dtype = pieces[0].dtype();
    let Some(size) = dtype.size().filter(|_| pieces.iter().all(HostTensor::is_plain)) else {
        let mut strings = vec![Default::default(); shape.num_elements()];
        for (device, piece) in pieces.iter().enumerate() {
            let positions = runs(device).into_iter().flatten();
            positions.zip(piece.strings()?).for_each(|(at, text)| strings[at] = text.clone());
        }
        return HostTensor::from_strings(shape.clone(), strings);
    };
    let mut whole = HostTensor::zeros(dtype, shape.clone())?;
    for (device, piece) in pieces.iter().enumerate() {
        let mut from = piece.bytes();
        for run in runs(device) {
            let (head, rest) = from.split_at(run.len() * size);
            whole.bytes_mut()[run.start * size..run.end * size].copy_from_slice(head);
            from = rest;
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(dims: &[(&str, usize)]) -> Mesh {
        let n: usize = dims.iter().map(|(_, size)| size).product();
        Mesh::new(dims.iter().copied(), (0..n).map(|i| format!("CPU:{i}"))).unwrap()
    }

    #[test]
    fn pieces_join_to_the_whole() {
        let mesh = mesh(&[("x", 2), ("y", 3)]);
        let shape = Shape::new([4, 2, 6]).unwrap();
        let numbers: Vec<i32> = (0..48).collect();
        let tensor = HostTensor::from_slice(shape.clone(), &numbers).unwrap();
        let texts = numbers.iter().map(|n| n.to_string().into()).collect();
        let strings = HostTensor::from_strings(shape, texts).unwrap();
        for specs in [["unsharded"; 3], ["x", "unsharded", "y"], ["unsharded", "x", "y"]] {
            let layout = Layout::new(&mesh, specs).unwrap();
            let pieces = layout.split(&tensor).unwrap();
            assert_eq!(pieces.len(), 6);
            assert_eq!(layout.join(&pieces).unwrap().bytes(), tensor.bytes());
            let pieces = layout.split(&strings).unwrap();
            assert_eq!(
                layout.join(&pieces).unwrap().strings().unwrap(),
                strings.strings().unwrap()
            );
        }
    }

    #[test]
    fn uneven_and_unknown_splits_are_errors() {
        let mesh = mesh(&[("x", 2)]);
        let rows = Layout::new(&mesh, ["x"]).unwrap();
        let odd = HostTensor::vector(&[1.0f32, 2.0, 3.0]).unwrap();
        assert!(matches!(rows.split(&odd), Err(Error::Layout { .. })));
        assert!(matches!(rows.split(&HostTensor::scalar(1.0f32)), Err(Error::Layout { .. })));
        assert!(Layout::new(&mesh, ["y"]).is_err());
        assert!(Layout::new(&mesh, ["x", "x"]).is_err());
        assert!(rows.join(&[odd.clone()]).is_err());
        assert!(rows.join(&[odd, HostTensor::scalar(1.0f32)]).is_err());
        let none = HostTensor::zeros(crate::DType::F32, Shape::new([0]).unwrap()).unwrap();
        assert_eq!(rows.join(&rows.split(&none).unwrap()).unwrap().len(), 0);
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

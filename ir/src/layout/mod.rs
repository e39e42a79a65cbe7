//! Meshes of devices, and layouts of tensors on them.
//!
//! A [`Mesh`] names the dimensions in which devices are arranged; a [`Layout`] tells for each dimension of
//! a tensor along which mesh dimension it is split. A device holds one piece of a tensor: in a split
//! dimension the part of its coordinate, in all others everything. The words are those of TensorFlow's
//! `tf.experimental.dtensor`.

mod mesh;
mod pieces;

use crate::{
    error::{Error, Result},
    shape::Shape,
};
use smallvec::SmallVec;
use std::fmt;

pub use mesh::Mesh;

/// The spec of a dimension that is not split.
pub const UNSHARDED: &str = "unsharded";

fn has_twice<T: PartialEq>(names: &[T]) -> bool {
    names.iter().enumerate().any(|(at, name)| names[..at].contains(name))
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
}

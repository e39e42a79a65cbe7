//! Tensors of which each device of a mesh has a piece.

use crate::{
    error::{Error, Result},
    tensor::Tensor,
};
use ferroflow_ir::{DType, HostTensor, Layout, Shape};
use std::fmt;

/// A tensor whose pieces are on the devices of a mesh.
///
/// ```
/// use ferroflow_tracer::{Tensor, distribute::{DistributedTensor, Layout, Mesh}};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let mesh = Mesh::new([("batch", 2)], ["CPU:0", "CPU:1"])?;
/// let rows = Layout::new(&mesh, ["batch"])?;
/// let x = DistributedTensor::new(&Tensor::from([1.0f32, 2.0]), &rows)?;
/// assert_eq!(x.unpack()[1].to_vec::<f32>()?, [2.0]);
/// assert_eq!(x.fetch()?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DistributedTensor {
    pieces: Vec<Tensor>,
    layout: Layout,
    shape: Shape,
    dtype: DType,
}

impl fmt::Debug for DistributedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}{} with layout {}>", self.dtype, self.shape, self.layout)
    }
}

impl DistributedTensor {
    /// A tensor with this layout: each device gets its piece.
    ///
    /// # Errors
    ///
    /// [`Layout`](ferroflow_ir::Error::Layout) when its shape cannot be split so, [`Error::Symbolic`] in a
    /// trace.
    pub fn new(tensor: &Tensor, layout: &Layout) -> Result<DistributedTensor> {
        let pieces = layout.split(tensor.host()?)?.into_iter().map(Tensor::from);
        DistributedTensor::pack(pieces, layout)
    }

    /// The tensor of pieces, one for each device of the mesh in its order. Where a dimension is not split, the
    /// pieces of the devices must have the same elements.
    ///
    /// # Errors
    ///
    /// [`Error::PerReplica`] when there are not as many as devices, [`Layout`](ferroflow_ir::Error::Layout)
    /// when their dtypes or shapes differ.
    pub fn pack(
        pieces: impl IntoIterator<Item = Tensor>,
        layout: &Layout,
    ) -> Result<DistributedTensor> {
        let pieces: Vec<Tensor> = pieces.into_iter().collect();
        let (found, replicas) = (pieces.len(), layout.mesh().devices().len());
        let Some(first) = pieces.first().filter(|_| found == replicas) else {
            return Err(Error::PerReplica { replicas, found });
        };
        let (dtype, piece) = (first.dtype(), first.eager()?.shape().clone());
        let shape = layout.whole_shape(&piece)?;
        for other in &pieces {
            let other = other.eager()?;
            if other.dtype() != dtype || *other.shape() != piece {
                let expected = format!("pieces of {dtype}{piece}");
                let found = format!("{}{}", other.dtype(), other.shape());
                return Err(Error::Conversion { expected, found });
            }
        }
        Ok(DistributedTensor { pieces, layout: layout.clone(), shape, dtype })
    }

    /// The pieces, in the order of the devices of the mesh.
    pub fn unpack(&self) -> &[Tensor] {
        &self.pieces
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The shape of the whole.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The whole tensor.
    ///
    /// # Errors
    ///
    /// When a piece cannot be copied from its device.
    pub fn fetch(&self) -> Result<Tensor> {
        let pieces: Result<Vec<HostTensor>> =
            self.pieces.iter().map(|piece| Ok(piece.host()?.clone())).collect();
        Ok(self.layout.join(&pieces?)?.into())
    }

    /// The tensor in another layout, of this or another mesh. It goes through the memory of the host.
    ///
    /// # Errors
    ///
    /// As [`new`](DistributedTensor::new).
    pub fn relayout(&self, layout: &Layout) -> Result<DistributedTensor> {
        if self.layout == *layout {
            return Ok(self.clone());
        }
        DistributedTensor::new(&self.fetch()?, layout)
    }
}

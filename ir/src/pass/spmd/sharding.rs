//! Shardings: what the pass knows of a value on the devices of a mesh.

use crate::{
    dtype::DType,
    layout::{Layout, Mesh},
    shape::PartialShape,
};
use smallvec::SmallVec;

/// A reduction that makes a whole value of partial ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TermMerge {
    Sum,
    Mean,
    Prod,
    Min,
    Max,
}

impl TermMerge {
    /// The attributes of a collective that say it: the reduction, and what is done with its result.
    pub(super) fn attrs(self) -> (&'static str, &'static str) {
        match self {
            TermMerge::Sum => ("Add", "Id"),
            TermMerge::Mean => ("Add", "Div"),
            TermMerge::Prod => ("Mul", "Id"),
            TermMerge::Min => ("Min", "Id"),
            TermMerge::Max => ("Max", "Id"),
        }
    }

    /// Whether sums of values may be merged in place of the values.
    pub(super) fn is_linear(self) -> bool {
        match self {
            TermMerge::Sum | TermMerge::Mean => true,
            TermMerge::Prod | TermMerge::Min | TermMerge::Max => false,
        }
    }
}

/// State of a value of which each device has a term: the mesh dimensions, a bit each, along which the
/// terms are merged, and the reduction that merges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Partial {
    pub(super) dims: u32,
    pub(super) merge: TermMerge,
}

/// The distribution of a value: the mesh dimension that splits each of its dimensions, and whether devices
/// have terms of it only. Mesh dimensions of size 1 split nothing and are not noted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sharding {
    pub(super) dims: SmallVec<[Option<usize>; 4]>,
    pub(super) partial: Option<Partial>,
}

impl Sharding {
    /// The whole value on every device; of an unknown rank if `None`.
    pub(super) fn replicated(rank: Option<usize>) -> Sharding {
        Sharding { dims: SmallVec::from_elem(None, rank.unwrap_or(0)), partial: None }
    }

    /// These dimensions, split.
    pub(super) fn of(dims: impl IntoIterator<Item = Option<usize>>) -> Sharding {
        Sharding { dims: dims.into_iter().collect(), partial: None }
    }

    /// The sharding that a layout asks for.
    pub(super) fn of_layout(layout: &Layout) -> Sharding {
        let mesh = layout.mesh();
        Sharding::of(layout.specs().iter().map(|spec| spec.filter(|&dim| mesh.dim_size(dim) > 1)))
    }

    /// Whether every device has the whole value.
    pub(super) fn is_replicated(&self) -> bool {
        self.partial.is_none() && !self.is_split()
    }

    /// Whether a dimension is split.
    pub(super) fn is_split(&self) -> bool {
        self.dims.iter().any(Option::is_some)
    }

    /// The shape of a piece of a value of this shape.
    pub(super) fn piece_shape(&self, mesh: &Mesh, shape: &PartialShape) -> PartialShape {
        let Some(dims) = shape.dims() else { return PartialShape::Unknown };
        let split = |(axis, size): (usize, &Option<usize>)| {
            let parts = self.dims.get(axis).copied().flatten().map_or(1, |dim| mesh.dim_size(dim));
            size.map(|size| size / parts)
        };
        PartialShape::ranked(dims.iter().enumerate().map(split))
    }

    /// It as text, such as `(batch, unsharded)`, with the partial dimensions behind.
    pub(super) fn text(&self, mesh: &Mesh) -> String {
        let split = Layout::of_dims(mesh, self.dims.iter().copied());
        let split = split.map_or_else(|error| error.to_string(), |layout| layout.to_string());
        match self.partial {
            None => split,
            Some(partial) => {
                let names = dim_names(mesh, partial.dims).join(", ");
                format!("{split} partial ({:?} over {names})", partial.merge)
            }
        }
    }
}

/// The names of mesh dimensions, of which there is a bit each.
pub(super) fn dim_names(mesh: &Mesh, dims: u32) -> Vec<String> {
    let names = mesh.dims().iter().enumerate();
    names.filter(|(dim, _)| dims >> dim & 1 == 1).map(|(_, (name, _))| name.clone()).collect()
}

/// Conversion of a tensor to a dtype that collectives take, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// They take it as it is.
    Direct,
    /// Its numbers as numbers of a wider dtype.
    Cast(DType),
    /// Its bits as a number of another dtype, or as two.
    Bits(DType),
}

/// The transport of a tensor whose elements stay as they are; `None` if there is none.
pub(super) fn to_move(dtype: DType) -> Option<Transport> {
    use DType::{BF16, Bool, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    match dtype {
        F16 | F32 | F64 | I32 | I64 => Some(Transport::Direct),
        BF16 => Some(Transport::Cast(F32)),
        Bool | I8 | U8 | I16 | U16 => Some(Transport::Cast(I32)),
        U32 => Some(Transport::Cast(I64)),
        U64 => Some(Transport::Bits(I64)),
        C64 => Some(Transport::Bits(F32)),
        C128 => Some(Transport::Bits(F64)),
        _ => None,
    }
}

/// The transport of terms of a tensor; `None` if they cannot be merged.
pub(super) fn to_merge(dtype: DType, merge: TermMerge) -> Option<Transport> {
    let is_real = matches!(dtype, DType::BF16 | DType::F16 | DType::F32 | DType::F64);
    let transport = if dtype == DType::BF16 { Some(Transport::Direct) } else { to_move(dtype) };
    match (merge, transport?) {
        (TermMerge::Mean, _) if !is_real => None,
        (
            TermMerge::Prod | TermMerge::Min | TermMerge::Max | TermMerge::Mean,
            Transport::Bits(_),
        ) => None,
        (TermMerge::Sum | TermMerge::Prod, _) if dtype == DType::Bool => None,
        (_, transport) => Some(transport),
    }
}

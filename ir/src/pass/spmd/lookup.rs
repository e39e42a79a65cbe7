//! Gathers from tables that are split along the axis of the indices, as vocabularies are.

use super::{
    sharding::{Merge, Partial, Sharding, to_merge},
    walk::Walk,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{NodeId, Outlet},
    host_tensor::HostTensor,
    infer::normalize_axis,
    pass::execution::constant,
    shape::Shape,
};

/// Adds the lookup of a node; `false` if its table is not split along the axis of the indices.
pub(super) fn lookup(walk: &mut Walk<'_>, id: NodeId) -> Result<bool> {
    let node = &walk.source()[id];
    let &[table, indices, axis] = node.inputs() else { return Ok(false) };
    let (Some(shape), Some(axis)) =
        (walk.ty(table)?.shape.known(), constant(walk.source(), axis).map(HostTensor::to_i64s))
    else {
        return Ok(false);
    };
    let &[axis] = axis?.as_slice() else { return Ok(false) };
    let axis = normalize_axis(axis, shape.rank())?;
    let (split, places) = (walk.value(table)?.sharding, walk.value(indices)?.sharding);
    let Some(mesh_dim) = split.dims[axis] else { return Ok(false) };
    let can = to_merge(walk.ty(table)?.dtype, Merge::Sum).is_some()
        && walk.ty(indices)?.shape.is_known()
        && walk.ty(indices)?.dtype != DType::I16;
    if !can || split.partial.is_some() {
        return Ok(false);
    }
    // A mesh dimension splits the table or the indices.
    let others = |dims: &Sharding| -> Vec<Option<usize>> {
        let used = |dim: &usize| split.dims.contains(&Some(*dim));
        dims.dims.iter().map(|dim| dim.filter(|dim| !used(dim))).collect()
    };
    let places = Sharding::of(others(&places));
    let parts = walk.mesh.dim_size(mesh_dim);
    let rows = shape[axis] / parts;
    let name = node.name.to_string();
    let local_table = walk.in_sharding(table, &split, &name)?;
    let local_indices = walk.in_sharding(indices, &places, &name)?;
    let terms = Lookup { walk, name: &name, rows, n_rows: shape[axis] }.terms(
        local_table,
        local_indices,
        axis,
        mesh_dim,
    )?;
    let mut dims = split.dims[..axis].to_vec();
    dims.extend(places.dims.iter().copied());
    dims.extend_from_slice(&split.dims[axis + 1..]);
    let partial = Some(Partial { dims: 1 << mesh_dim, merge: Merge::Sum });
    walk.set(id.into(), terms, Sharding { partial, ..Sharding::of(dims) });
    walk.note(id, false);
    Ok(true)
}

struct Lookup<'w, 'a, 'n> {
    walk: &'w mut Walk<'a>,
    name: &'n str,
    /// The rows that a device has.
    rows: usize,
    /// All rows.
    n_rows: usize,
}

impl Lookup<'_, '_, '_> {
    fn call(&mut self, op: &str, inputs: &[Outlet]) -> Result<Outlet> {
        self.walk.local.call(self.name, op, Attrs::new(), inputs)
    }

    /// A scalar of a dtype of indices.
    fn int(&mut self, value: usize, dtype: DType) -> Result<Outlet> {
        let value = match dtype {
            DType::I32 => HostTensor::scalar(value as i32),
            _ => HostTensor::scalar(value as i64),
        };
        self.walk.local.constant(self.name, value)
    }

    /// The rows that this device has, zeros for the others. An index that the whole table has not is one that
    /// no piece has: it fails, or not, as it does on one device.
    fn terms(
        &mut self,
        table: Outlet,
        indices: Outlet,
        axis: usize,
        mesh_dim: usize,
    ) -> Result<Outlet> {
        let dtype = self.walk.local.ty(indices)?.dtype;
        let (rows, n_rows) = (self.int(self.rows, dtype)?, self.int(self.n_rows, dtype)?);
        let zero = self.int(0, dtype)?;
        let coordinate = self.walk.local.coordinate_as(self.name, mesh_dim, dtype)?;
        let first = self.call("Mul", &[coordinate, rows])?;
        let own = self.call("Sub", &[indices, first])?;
        let (low, high) =
            (self.call("GreaterEqual", &[own, zero])?, self.call("Less", &[own, rows])?);
        let is_own = self.call("LogicalAnd", &[low, high])?;
        let (low, high) =
            (self.call("GreaterEqual", &[indices, zero])?, self.call("Less", &[indices, n_rows])?);
        let is_any = self.call("LogicalAnd", &[low, high])?;
        // An index that no device has stays outside on all of them.
        let outside = self.call("Sub", &[zero, n_rows])?;
        let other = self.call("SelectV2", &[is_any, zero, outside])?;
        let place = self.call("SelectV2", &[is_own, own, other])?;
        let at = self.walk.local.constant(self.name, HostTensor::scalar(axis as i32))?;
        let found = self.call("GatherV2", &[table, place, at])?;
        self.where_own(found, is_own, axis)
    }

    /// The rows that were found where the mask says so, and zeros elsewhere.
    fn where_own(&mut self, found: Outlet, is_own: Outlet, axis: usize) -> Result<Outlet> {
        let (dtype, shape) = {
            let ty = self.walk.local.ty(found)?;
            (ty.dtype, ty.shape.known().unwrap_or_default())
        };
        let mask = self.walk.local.ty(is_own)?.shape.known().unwrap_or_default();
        let after = shape.rank().saturating_sub(axis + mask.rank());
        let dims: Vec<usize> = std::iter::repeat_n(1, axis)
            .chain(mask.iter().copied())
            .chain(std::iter::repeat_n(1, after))
            .collect();
        let mask = self.walk.local.reshape(self.name, is_own, &dims)?;
        let zeros = HostTensor::zeros(dtype, Shape::scalar())?;
        let zeros = self.walk.local.constant(self.name, zeros)?;
        self.call("SelectV2", &[mask, found, zeros])
    }
}

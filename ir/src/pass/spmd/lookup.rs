//! Rows of tables in pieces, as vocabularies are: lookups and scatters by indices.

use super::{
    local::is_op,
    sharding::{Partial, Sharding, TermMerge, to_merge},
    walk::Walk,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{NodeId, Outlet},
    host_tensor::HostTensor,
    infer::normalize_axis,
    op::{Effect, OpDef},
    ops::names,
    pass::execution::constant,
    shape::Shape,
};

/// Adds the lookup of a gather; `false` if its table is not split along the axis of the indices.
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
    let split = walk.value(table)?.sharding;
    let Some(mesh_dim) = split.dims[axis].filter(|_| split.partial.is_none()) else {
        return Ok(false);
    };
    if !can_look_up(walk, table, indices)? {
        return Ok(false);
    }
    let local = walk.in_sharding(table, &split, &node.name)?;
    let rows = Rows { axis, mesh_dim, size: shape[axis] };
    add_lookup(walk, id, local, &split, indices, rows)?;
    Ok(true)
}

/// Adds the lookup in a variable; `false` if it cannot be split so.
pub(super) fn lookup_in_variable(
    walk: &mut Walk<'_>,
    id: NodeId,
    op: &'static OpDef,
    split: &Sharding,
) -> Result<bool> {
    let node = &walk.source()[id];
    let &[variable, indices] = node.inputs() else { return Ok(false) };
    let spec = walk.ty(variable)?.pointee.clone();
    let Some((spec, shape)) = spec.and_then(|spec| Some((spec.clone(), spec.shape.known()?)))
    else {
        return Ok(false);
    };
    let is_plain = is_op(node, names::RESOURCE_GATHER) && node.attrs.int("batch_dims")? == 0;
    let Some(rank) = walk.ty(indices)?.shape.rank().filter(|_| is_plain) else { return Ok(false) };
    let handle = walk.value(variable)?.outlet;
    let Some(mesh_dim) = split.dims.first().copied().flatten() else {
        let indices = walk.whole(indices, &node.name)?;
        let dims = std::iter::repeat_n(None, rank).chain(split.dims.iter().skip(1).copied());
        walk.add(id, op, &[handle, indices], vec![Sharding::of(dims)])?;
        return Ok(true);
    };
    if to_merge(spec.dtype, TermMerge::Sum).is_none() || !walk.ty(indices)?.shape.is_known() {
        return Ok(false);
    }
    let attrs = Attrs::new().with("dtype", spec.dtype);
    let table = walk.local.call(&node.name, names::READ_VARIABLE_OP, attrs, &[handle])?;
    let rows = Rows { axis: 0, mesh_dim, size: shape[0] };
    add_lookup(walk, id, table, split, indices, rows)?;
    Ok(true)
}

/// Adds a scatter into the rows of a variable in pieces; `false` if it cannot be split so. A device changes
/// the rows that it has, and adds zeros for the others.
pub(super) fn scatter(
    walk: &mut Walk<'_>,
    id: NodeId,
    op: &'static OpDef,
    split: &Sharding,
) -> Result<bool> {
    let node = &walk.source()[id];
    let &[variable, indices, updates] = node.inputs() else { return Ok(false) };
    let is_sum =
        is_op(node, names::RESOURCE_SCATTER_ADD) || is_op(node, names::RESOURCE_SCATTER_SUB);
    let is_scatter = op.effect == Effect::Writes
        && op.inputs.iter().map(|arg| arg.name).eq(["resource", "indices", "updates"]);
    let shape = walk.ty(variable)?.pointee.as_ref().and_then(|spec| spec.shape.known());
    let (Some(shape), Some(rank)) = (shape, walk.ty(indices)?.shape.rank()) else {
        return Ok(false);
    };
    let row_dim = split.dims.first().copied().flatten();
    let n_dims = (rank + shape.rank()).checked_sub(1);
    let fits = is_scatter && walk.ty(updates)?.shape.rank() == n_dims;
    let is_known = walk.ty(indices)?.shape.is_known() && walk.ty(updates)?.shape.is_known();
    if !fits || (row_dim.is_some() && !(is_sum && is_known)) {
        return Ok(false);
    }
    let name = node.name.to_string();
    let dims = std::iter::repeat_n(None, rank).chain(split.dims.iter().skip(1).copied());
    let mut local = walk.in_sharding(updates, &Sharding::of(dims), &name)?;
    let mut at = walk.whole(indices, &name)?;
    if let Some(mesh_dim) = row_dim {
        let rows = Rows { axis: 0, mesh_dim, size: shape[0] };
        let mut lookup = Lookup { walk, name: &name, rows };
        let is_own;
        (at, is_own) = lookup.own_indices(at)?;
        local = lookup.where_own(local, is_own)?;
    }
    let handle = walk.value(variable)?.outlet;
    walk.add(id, op, &[handle, at, local], Vec::new())?;
    Ok(true)
}

/// Whether terms of rows can be merged, and indices be compared.
fn can_look_up(walk: &Walk<'_>, table: Outlet, indices: Outlet) -> Result<bool> {
    let indices = walk.ty(indices)?;
    Ok(to_merge(walk.ty(table)?.dtype, TermMerge::Sum).is_some()
        && indices.shape.is_known()
        && indices.dtype != DType::I16)
}

/// Adds the lookup in the piece of a table, of which every device contributes a term.
fn add_lookup(
    walk: &mut Walk<'_>,
    id: NodeId,
    table: Outlet,
    split: &Sharding,
    indices: Outlet,
    rows: Rows,
) -> Result<()> {
    let name = walk.source()[id].name.to_string();
    // A mesh dimension splits the table or the indices.
    let own = walk.value(indices)?.sharding.dims;
    let is_free = |dim: &usize| !split.dims.contains(&Some(*dim));
    let sharding = Sharding::of(own.iter().map(|dim| dim.filter(is_free)));
    let local = walk.in_sharding(indices, &sharding, &name)?;
    let terms = Lookup { walk, name: &name, rows }.terms(table, local)?;
    let mut dims = split.dims[..rows.axis].to_vec();
    dims.extend(sharding.dims.iter().copied());
    dims.extend_from_slice(&split.dims[rows.axis + 1..]);
    let partial = Some(Partial { dims: 1 << rows.mesh_dim, merge: TermMerge::Sum });
    walk.set(id.into(), terms, Sharding { partial, ..Sharding::of(dims) });
    Ok(())
}

/// The dimension of a table that indices are about.
#[derive(Clone, Copy)]
struct Rows {
    axis: usize,
    /// The mesh dimension that splits it.
    mesh_dim: usize,
    /// Its size.
    size: usize,
}

struct Lookup<'w, 'a, 'n> {
    walk: &'w mut Walk<'a>,
    name: &'n str,
    rows: Rows,
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

    /// The indices of rows in the piece of this device, and whether it has them; 0 for those that it has
    /// not. An index that the whole table has not stays outside: it fails, or not, as it does on one device.
    fn own_indices(&mut self, indices: Outlet) -> Result<(Outlet, Outlet)> {
        let dtype = self.walk.local.ty(indices)?.dtype;
        let Rows { mesh_dim, size, .. } = self.rows;
        let rows = self.int(size / self.walk.mesh.dim_size(mesh_dim), dtype)?;
        let (n_rows, zero) = (self.int(size, dtype)?, self.int(0, dtype)?);
        let coordinate = self.walk.local.coordinate_as(self.name, mesh_dim, dtype)?;
        let first = self.call(names::MUL, &[coordinate, rows])?;
        let own = self.call(names::SUB, &[indices, first])?;
        let (low, high) =
            (self.call(names::GREATER_EQUAL, &[own, zero])?, self.call(names::LESS, &[own, rows])?);
        let is_own = self.call(names::LOGICAL_AND, &[low, high])?;
        let (low, high) = (
            self.call(names::GREATER_EQUAL, &[indices, zero])?,
            self.call(names::LESS, &[indices, n_rows])?,
        );
        let is_any = self.call(names::LOGICAL_AND, &[low, high])?;
        let outside = self.call(names::SUB, &[zero, n_rows])?;
        let other = self.call(names::SELECT_V2, &[is_any, zero, outside])?;
        Ok((self.call(names::SELECT_V2, &[is_own, own, other])?, is_own))
    }

    /// The rows that this device has, zeros for the others.
    fn terms(&mut self, table: Outlet, indices: Outlet) -> Result<Outlet> {
        let (at, is_own) = self.own_indices(indices)?;
        let axis = HostTensor::scalar(self.rows.axis as i32);
        let axis = self.walk.local.constant(self.name, axis)?;
        let found = self.call(names::GATHER_V2, &[table, at, axis])?;
        self.where_own(found, is_own)
    }

    /// The rows where a mask says so, and zeros elsewhere.
    fn where_own(&mut self, rows: Outlet, is_own: Outlet) -> Result<Outlet> {
        let axis = self.rows.axis;
        let (dtype, shape) = {
            let ty = self.walk.local.ty(rows)?;
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
        self.call(names::SELECT_V2, &[mask, rows, zeros])
    }
}

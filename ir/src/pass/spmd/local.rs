//! The program of one device, as it grows: calls, and the collectives that change layouts.

use super::{
    super::call::{add_call, add_sizes},
    sharding::{Partial, TermMerge, Transport, to_merge, to_move},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Error, Result},
    graph::{Graph, NodeDef, Outlet},
    host_tensor::HostTensor,
    layout::Mesh,
    ops::names,
    registry,
    shape::{PartialShape, Shape},
    spec::ValueType,
};

/// The graph of one device. The coordinates of the device and the keys of its groups are arguments, so that all
/// devices run the same program.
pub(super) struct Local {
    pub(super) graph: Graph,
    pub(super) mesh: Mesh,
    /// The coordinate in each mesh dimension.
    coordinates: Vec<Outlet>,
    /// The key of each group, by the mesh dimensions in which its members differ, less one.
    keys: Vec<Outlet>,
    /// The number of the last collective.
    instance: i32,
}

impl Local {
    pub(super) fn new(mesh: &Mesh) -> Result<Local> {
        let (graph, mesh) = (Graph::new(), mesh.clone());
        let mut local =
            Local { graph, mesh, coordinates: Vec::new(), keys: Vec::new(), instance: 0 };
        let int = || ValueType::new(DType::I32, PartialShape::scalar());
        for dim in 0..local.mesh.rank() {
            let coordinate = local.arg(&format!("mesh/coordinate_{dim}"), int())?;
            local.coordinates.push(coordinate);
        }
        for dims in 1..1u32 << local.mesh.rank() {
            let key = local.arg(&format!("mesh/group_{dims}"), int())?;
            local.keys.push(key);
        }
        Ok(local)
    }

    /// Numbers collectives after those of another graph.
    pub(super) fn go_on_from(&mut self, other: &Local) {
        self.instance = other.instance;
    }

    /// The arguments that tell about the device, in the order of [`mesh_arguments`](super::mesh_arguments).
    pub(super) fn mesh_args(&self) -> impl Iterator<Item = Outlet> {
        self.coordinates.iter().chain(&self.keys).copied()
    }

    pub(super) fn arg(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        let op = super::super::call::record(names::ARG)?;
        let attrs = Attrs::new().with("T", ty.dtype).with("index", self.graph.len() as i64);
        let node = NodeDef::new(self.graph.unique_name(name), op, attrs).with_outputs([ty]);
        Ok(self.graph.add(node)?.into())
    }

    pub(super) fn call(
        &mut self,
        name: &str,
        op: &str,
        attrs: Attrs,
        inputs: &[Outlet],
    ) -> Result<Outlet> {
        add_call(&mut self.graph, name, op, attrs, inputs)
    }

    pub(super) fn constant(&mut self, name: &str, value: HostTensor) -> Result<Outlet> {
        let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
        self.call(name, names::CONST, attrs, &[])
    }

    /// A constant vector of sizes, of the dtype of a shape operand.
    pub(super) fn sizes(&mut self, name: &str, sizes: &[i64], dtype: DType) -> Result<Outlet> {
        let value = match dtype {
            DType::I32 => {
                let narrow = |&size: &i64| {
                    let large = |_| Error::Size { what: "a size".into(), size: size.to_string() };
                    i32::try_from(size).map_err(large)
                };
                HostTensor::vector(&sizes.iter().map(narrow).collect::<Result<Vec<i32>>>()?)?
            }
            _ => HostTensor::vector(sizes)?,
        };
        self.constant(name, value)
    }

    fn int(&mut self, name: &str, value: i32) -> Result<Outlet> {
        self.constant(name, HostTensor::scalar(value))
    }

    fn coordinate(&self, mesh_dim: usize) -> Outlet {
        self.coordinates[mesh_dim]
    }

    /// The coordinate of the device in a mesh dimension, as a scalar of a dtype.
    pub(super) fn coordinate_as(
        &mut self,
        name: &str,
        mesh_dim: usize,
        dtype: DType,
    ) -> Result<Outlet> {
        match dtype {
            DType::I32 => Ok(self.coordinate(mesh_dim)),
            _ => self.cast(name, self.coordinate(mesh_dim), dtype),
        }
    }

    pub(super) fn ty(&self, value: Outlet) -> Result<&ValueType> {
        let unknown = || Error::NotFound { kind: "value", name: format!("{value:?}") };
        self.graph.ty(value).ok_or_else(unknown)
    }

    /// The shape of a value that is to be split or joined.
    fn shape(&self, value: Outlet) -> Result<Shape> {
        let node = &self.graph[value.node];
        self.ty(value)?.shape.known().ok_or_else(|| Error::Unsupported {
            op: node.op.name().to_string().into(),
            what: format!("a layout of `{}`, whose shape is not known", node.name).into(),
        })
    }

    /// The size, in bytes, of a value; 0 if it is not known.
    pub(super) fn bytes(&self, value: Outlet) -> usize {
        let bytes = |ty: &ValueType| {
            Some(ty.shape.known()?.num_elements().saturating_mul(ty.dtype.size()?))
        };
        self.graph.ty(value).and_then(bytes).unwrap_or(0)
    }

    pub(super) fn reshape(&mut self, name: &str, value: Outlet, dims: &[usize]) -> Result<Outlet> {
        let shape = add_sizes(&mut self.graph, &format!("{name}/shape"), dims)?;
        self.call(name, names::RESHAPE, Attrs::new(), &[value, shape])
    }

    fn transpose(&mut self, name: &str, value: Outlet, order: &[usize]) -> Result<Outlet> {
        let order = add_sizes(&mut self.graph, &format!("{name}/order"), order)?;
        self.call(name, names::TRANSPOSE, Attrs::new(), &[value, order])
    }

    /// The piece of this device of a value that it has whole, along a dimension.
    pub(super) fn slice(&mut self, value: Outlet, axis: usize, mesh_dim: usize) -> Result<Outlet> {
        let name = format!("{}/piece", self.graph[value.node].name);
        let (shape, parts) = (self.shape(value)?, self.mesh.dim_size(mesh_dim));
        let mut dims = shape.dims().to_vec();
        dims.splice(axis..=axis, [parts, shape[axis] / parts]);
        let parted = self.reshape(&name, value, &dims)?;
        let axis = self.int(&format!("{name}/axis"), axis as i32)?;
        let inputs = [parted, self.coordinate(mesh_dim), axis];
        self.call(&name, names::GATHER_V2, Attrs::new(), &inputs)
    }

    /// The result of a collective of the devices that differ in these mesh dimensions only.
    fn collective(
        &mut self,
        name: &str,
        op: &str,
        mesh_dims: u32,
        attrs: Attrs,
        value: Option<Outlet>,
    ) -> Result<Outlet> {
        let size = self.mesh.group_size(mesh_dims) as i32;
        let size = self.int(&format!("{name}/size"), size)?;
        self.instance += 1;
        let instance = self.int(&format!("{name}/instance"), self.instance)?;
        let key = self.keys[mesh_dims as usize - 1];
        let inputs: Vec<Outlet> = value.into_iter().chain([size, key, instance]).collect();
        self.call(name, op, attrs, &inputs)
    }

    /// The whole, along a dimension, of a value of which devices have pieces.
    pub(super) fn all_gather(
        &mut self,
        value: Outlet,
        axis: usize,
        mesh_dim: usize,
    ) -> Result<Outlet> {
        let name = format!("{}/all_gather", self.graph[value.node].name);
        let dtype = self.ty(value)?.dtype;
        let transport = to_move(dtype).ok_or_else(|| unmovable(&name, dtype))?;
        let sent = self.sent(&name, value, transport)?;
        let piece = self.shape(sent)?;
        let gather = names::COLLECTIVE_GATHER_V2;
        let whole = if axis == 0 {
            self.collective(&name, gather, 1 << mesh_dim, Attrs::new(), Some(sent))?
        } else {
            let dims: Vec<usize> = std::iter::once(1).chain(piece.iter().copied()).collect();
            let row = self.reshape(&name, sent, &dims)?;
            let rows = self.collective(&name, gather, 1 << mesh_dim, Attrs::new(), Some(row))?;
            let order = (1..=axis).chain([0]).chain(axis + 1..dims.len()).collect::<Vec<_>>();
            let ordered = self.transpose(&name, rows, &order)?;
            let mut dims = piece.dims().to_vec();
            dims[axis] *= self.mesh.dim_size(mesh_dim);
            self.reshape(&name, ordered, &dims)?
        };
        self.received(&name, whole, dtype, transport)
    }

    /// The whole of a value of which devices have terms.
    pub(super) fn all_reduce(&mut self, value: Outlet, partial: Partial) -> Result<Outlet> {
        let name = format!("{}/all_reduce", self.graph[value.node].name);
        self.reduced(&name, names::COLLECTIVE_REDUCE_V2, value, partial)
    }

    /// The piece, along a dimension, of the whole of a value of which devices have terms.
    pub(super) fn reduce_scatter(
        &mut self,
        value: Outlet,
        axis: usize,
        mesh_dim: usize,
        merge: TermMerge,
    ) -> Result<Outlet> {
        let name = format!("{}/reduce_scatter", self.graph[value.node].name);
        let (rank, partial) = (self.shape(value)?.rank(), Partial { dims: 1 << mesh_dim, merge });
        let op = names::COLLECTIVE_REDUCE_SCATTER_V2;
        if axis == 0 {
            return self.reduced(&name, op, value, partial);
        }
        let front: Vec<usize> =
            std::iter::once(axis).chain((0..rank).filter(|&d| d != axis)).collect();
        let back: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..rank).collect();
        let value = self.transpose(&name, value, &front)?;
        let piece = self.reduced(&name, op, value, partial)?;
        self.transpose(&name, piece, &back)
    }

    fn reduced(&mut self, name: &str, op: &str, value: Outlet, partial: Partial) -> Result<Outlet> {
        let dtype = self.ty(value)?.dtype;
        let transport = to_merge(dtype, partial.merge).ok_or_else(|| unmovable(name, dtype))?;
        let sent = self.sent(name, value, transport)?;
        let (merge, last) = partial.merge.attrs();
        let attrs = Attrs::new().with("merge_op", merge).with("final_op", last);
        let whole = self.collective(name, op, partial.dims, attrs, Some(sent))?;
        self.received(name, whole, dtype, transport)
    }

    /// A value of the first device, on all devices. The first one has it as `value`.
    pub(super) fn broadcast(
        &mut self,
        name: &str,
        ty: &ValueType,
        value: Option<Outlet>,
    ) -> Result<Outlet> {
        let all = (1u32 << self.mesh.rank()) - 1;
        let transport = to_move(ty.dtype).ok_or_else(|| unmovable(name, ty.dtype))?;
        let shape = ty.shape.known().ok_or_else(|| Error::Unsupported {
            op: "broadcast".into(),
            what: format!("a result of `{name}`, whose shape is not known").into(),
        })?;
        let (dtype, mut dims) = (transported(ty.dtype, transport), shape.dims().to_vec());
        if let (Transport::Bits(_), true) = (transport, ty.dtype.size() != dtype.size()) {
            dims.push(2);
        }
        let whole = match value {
            Some(value) => {
                let sent = self.sent(name, value, transport)?;
                self.collective(
                    name,
                    names::COLLECTIVE_BCAST_SEND_V2,
                    all,
                    Attrs::new(),
                    Some(sent),
                )?
            }
            None => {
                self.instance += 1;
                let size = self.int(&format!("{name}/size"), self.mesh.group_size(all) as i32)?;
                let instance = self.int(&format!("{name}/instance"), self.instance)?;
                let shape = add_sizes(&mut self.graph, &format!("{name}/shape"), &dims)?;
                let inputs = [size, self.keys[all as usize - 1], instance, shape];
                let attrs = Attrs::new().with("T", dtype);
                self.call(name, names::COLLECTIVE_BCAST_RECV_V2, attrs, &inputs)?
            }
        };
        self.received(name, whole, ty.dtype, transport)
    }

    /// A value as collectives take it.
    fn sent(&mut self, name: &str, value: Outlet, transport: Transport) -> Result<Outlet> {
        match transport {
            Transport::Direct => Ok(value),
            Transport::Cast(to) => self.cast(name, value, to),
            Transport::Bits(to) => self.bitcast(name, value, to),
        }
    }

    /// A value as it was before it was sent.
    fn received(
        &mut self,
        name: &str,
        value: Outlet,
        dtype: DType,
        transport: Transport,
    ) -> Result<Outlet> {
        match transport {
            Transport::Direct => Ok(value),
            Transport::Cast(_) => self.cast(name, value, dtype),
            Transport::Bits(_) => self.bitcast(name, value, dtype),
        }
    }

    pub(super) fn cast(&mut self, name: &str, value: Outlet, to: DType) -> Result<Outlet> {
        self.call(&format!("{name}/cast"), names::CAST, Attrs::new().with("DstT", to), &[value])
    }

    fn bitcast(&mut self, name: &str, value: Outlet, to: DType) -> Result<Outlet> {
        self.call(
            &format!("{name}/bitcast"),
            names::BITCAST,
            Attrs::new().with("type", to),
            &[value],
        )
    }

    /// A node of a known op, whose attributes are complete.
    pub(super) fn node(
        &mut self,
        name: &str,
        source: &NodeDef,
        inputs: &[Outlet],
        types: impl IntoIterator<Item = ValueType>,
    ) -> Result<crate::graph::NodeId> {
        let mut node = source.clone();
        node.name = self.graph.unique_name(name).into();
        node.device = "".into();
        self.graph
            .add(node.with_inputs(inputs.iter().copied()).with_controls([]).with_outputs(types))
    }
}

fn transported(dtype: DType, transport: Transport) -> DType {
    match transport {
        Transport::Direct => dtype,
        Transport::Cast(to) | Transport::Bits(to) => to,
    }
}

fn unmovable(name: &str, dtype: DType) -> Error {
    let what = format!("tensors of dtype {dtype} (for `{name}`)").into();
    Error::Unsupported { op: "a collective".into(), what }
}

/// Whether the record of an op is that of a name.
pub(super) fn is_op(node: &NodeDef, name: &str) -> bool {
    node.op.def().zip(registry::find(name)).is_some_and(|(op, other)| std::ptr::eq(op, other))
}

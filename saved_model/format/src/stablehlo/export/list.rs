//! Tensor lists as tensors with one more dimension: lists of a known number of elements of one shape.
//!
//! Indices outside a list are moved inside, as XLA does, where TensorFlow has errors.

use super::{
    block::{Block, Typed, attrs, ints},
    lower::LoweredNode,
    scalar::element,
};
use ferroflow_ir::{
    Attrs, DType, FunctionDef, Graph, HostTensor, NodeDef, Outlet, Result, Shape, ValueType,
    expr::Constant,
    op::CallKind,
    pass::{execution::constant, specialize::Specialized},
    registry,
};

/// Adds the operations of an op of lists; `None` if it is none of them.
pub(super) fn lower(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Option<Result<Typed>> {
    let rule: fn(&mut Block<'_>, &LoweredNode<'_>) -> Result<Typed> = match node.op.name {
        "TensorListFromTensor" | "TensorListStack" => |_, node| node.x(0).cloned(),
        "TensorListGetItem" => item,
        "TensorListLength" => |block, node| {
            let length = node.x(0)?.dims[0] as i32;
            Ok(block.constant(&HostTensor::scalar(length)))
        },
        "TensorListReserve" => reserve,
        "TensorListSetItem" => set,
        _ => return None,
    };
    Some(rule(block, node))
}

fn reserve(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Typed> {
    let dtype = node.node.attrs.dtype("element_dtype")?;
    let pointee = node.node.outputs().first().and_then(|ty| ty.pointee.as_ref());
    let shape = pointee.and_then(|pointee| pointee.shape.known());
    let shape = shape.ok_or_else(|| node.refused("a list of elements whose shape is not known"))?;
    let n = usize::try_from(node.int(1)?).map_err(|_| node.refused("a negative length"))?;
    let zero = element(Constant::Int(0), dtype)?;
    Ok(block.splat(dtype, zero.bytes(), &[&[n], shape.dims()].concat()))
}

/// A function whose ops tell of lists what a specialisation of it shows: the shape of elements that are
/// written later, and the number of elements. `None` if there is nothing more to tell.
pub(super) fn with_shapes(
    def: &FunctionDef,
    specialized: &Specialized,
) -> Result<Option<FunctionDef>> {
    let mut changed = None;
    for (id, node) in specialized.graph.iter() {
        let Some(own) = def.graph.find(&node.name) else { continue };
        let found = match node.op.name() {
            "TensorListReserve" if is_unknown(node) => shape_of_items(specialized, id.into()),
            "TensorListStack" if node.attrs.int("num_elements")? < 0 => {
                length_of(specialized, node.inputs()[0]).map(|n| Shape::new([n])).transpose()?
            }
            _ => None,
        };
        let Some(found) = found else { continue };
        let graph = &mut changed.get_or_insert_with(|| def.clone()).graph;
        let attrs = Attrs::clone(&graph[own].attrs);
        if node.op.name() == "TensorListStack" {
            *graph.node_mut(own).attrs = attrs.with("num_elements", found[0] as i64).into();
            continue;
        }
        let dims: Vec<i64> = found.iter().map(|&dim| dim as i64).collect();
        let shape = shape_operand(graph, HostTensor::vector(&dims)?)?;
        let mut inputs = graph[own].inputs().to_vec();
        let controls = graph[own].controls().to_vec();
        inputs[0] = shape;
        *graph.node_mut(own).attrs = attrs.with("shape_type", DType::I64).into();
        graph.connect(own, inputs, controls)?;
    }
    Ok(changed)
}

/// The number of elements of a list.
fn length_of(function: &Specialized, list: Outlet) -> Option<usize> {
    let node = &function.graph[list.node];
    let input = |index: usize| node.inputs().get(index).copied();
    match (node.op.name(), node.op.def()?.call) {
        ("TensorListReserve", _) => {
            let length = constant(&function.graph, input(1)?)?.to_i64s().ok()?;
            usize::try_from(*length.first()?).ok()
        }
        ("TensorListFromTensor", _) => Some(function.graph.ty(input(0)?)?.shape.known()?[0]),
        ("TensorListSetItem", _) => length_of(function, input(0)?),
        (_, CallKind::While) => length_of(function, input(list.index as usize)?),
        _ => None,
    }
}

/// Whether a node reserves a list of elements of unknown shape.
fn is_unknown(node: &NodeDef) -> bool {
    let pointee = node.outputs().first().and_then(|ty| ty.pointee.as_ref());
    node.op.name() == "TensorListReserve" && pointee.is_none_or(|pointee| !pointee.shape.is_known())
}

fn shape_operand(graph: &mut Graph, value: HostTensor) -> Result<Outlet> {
    let op = registry::find("Const").expect("a built-in record");
    let ty = ValueType::new(value.dtype(), value.shape());
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    let name = graph.unique_name("element_shape");
    Ok(graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?.into())
}

/// The shape of the first element that is written to a list, perhaps in a loop or a branch.
fn shape_of_items(function: &Specialized, list: Outlet) -> Option<Shape> {
    let graph = &function.graph;
    graph.consumers(list.node).find_map(|id| {
        let node = &graph[id];
        let at = node.inputs().iter().position(|&input| input == list)?;
        let op = node.op.def()?;
        let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
        let inner = |body: &Specialized, at: usize| shape_of_items(body, *body.args.get(at)?);
        match op.call {
            CallKind::While => bodies.iter().find_map(|body| inner(body, at)),
            CallKind::If | CallKind::Case => {
                bodies.iter().find_map(|body| inner(body, at.checked_sub(1)?))
            }
            _ if op.name == "TensorListSetItem" => graph.ty(*node.inputs().get(2)?)?.shape.known(),
            _ => None,
        }
    })
}

/// The starts of a slice of one element.
fn starts(block: &mut Block<'_>, node: &LoweredNode<'_>, rank: usize) -> Result<Vec<Typed>> {
    let index = block.convert(node.x(1)?, DType::I32);
    let zero = block.constant(&HostTensor::scalar(0i32));
    Ok([index].into_iter().chain(vec![zero; rank - 1]).collect())
}

fn item(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Typed> {
    let list = node.x(0)?.clone();
    let starts = starts(block, node, list.rank())?;
    let sizes = [&[1], &list.dims[1..]].concat();
    let operands: Vec<&Typed> = [&list].into_iter().chain(&starts).collect();
    let attrs = attrs([("slice_sizes", ints(&sizes))]);
    let row = block.op("dynamic_slice", attrs, &operands, (list.dtype, &sizes));
    Ok(block.reshape(&row, &list.dims[1..]))
}

fn set(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Typed> {
    let (list, item) = (node.x(0)?.clone(), node.x(2)?);
    if item.dims != list.dims[1..] {
        return Err(node.refused("elements of several shapes in a list"));
    }
    let row = block.reshape(item, &[&[1], &item.dims[..]].concat());
    let starts = starts(block, node, list.rank())?;
    let operands: Vec<&Typed> = [&list, &row].into_iter().chain(&starts).collect();
    Ok(block.op("dynamic_update_slice", Vec::new(), &operands, (list.dtype, &list.dims)))
}

//! Lists of tensors, filled in one loop and read in another.

use super::super::program::{Head, Id, ProgramBlock, StatementOperand, Stmt};
use super::{
    Gen, Seen, Template,
    operands::{int, value},
};
use ferroflow::ir::{Attrs, DType, HostTensor, Shape};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (2.0, empty),
    (2.0, of_tensor),
    (2.0, reserved),
    (3.0, push),
    (2.0, stack),
    (2.0, item),
    (1.0, pop),
    (1.0, length),
    (1.0, concat),
    (3.0, filled_in_loop),
    (4.0, written_in_loop),
    (3.0, read_in_loop),
];

/// An element shape of which nothing is known.
fn any_shape() -> StatementOperand {
    int(-1)
}

fn list(g: &mut Gen) -> Option<(Id, DType)> {
    let list = g.find(|seen| seen.dtype == DType::Variant)?;
    Some((list, g.type_of(list).element?))
}

fn of(element: DType) -> Attrs {
    Attrs::new().with("element_dtype", element)
}

fn element_dtype(g: &mut Gen) -> DType {
    g.rng.pick(&[DType::F32, DType::F32, DType::I32])
}

fn emit_list(
    g: &mut Gen,
    name: &'static str,
    args: Vec<StatementOperand>,
    element: DType,
) -> Option<Id> {
    let outs = g.emit(Head::Op(name, of(element)), args, Vec::new(), 1, Some(element))?;
    Some(outs[0])
}

fn empty(g: &mut Gen) -> Option<()> {
    let dtype = element_dtype(g);
    emit_list(g, "EmptyTensorList", vec![any_shape(), int(-1)], dtype).map(drop)
}

fn of_tensor(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let dtype = g.type_of(x).dtype;
    emit_list(g, "TensorListFromTensor", vec![value(x), any_shape()], dtype).map(drop)
}

fn reserved(g: &mut Gen) -> Option<()> {
    let x = g.number()?;
    let dtype = g.type_of(x).dtype;
    let n = g.rng.within(1, 3);
    let list = emit_list(g, "TensorListReserve", vec![any_shape(), int(n)], dtype)?;
    let args = vec![value(list), int(g.rng.within(0, n - 1)), value(x)];
    emit_list(g, "TensorListSetItem", args, dtype).map(drop)
}

fn push(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    let x = g.find(|seen| seen.dtype == dtype)?;
    emit_list(g, "TensorListPushBack", vec![value(list), value(x)], dtype).map(drop)
}

fn stack(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    g.op("TensorListStack", vec![value(list), any_shape()], of(dtype)).map(drop)
}

fn item(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    let index = match g.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0)) {
        Some(index) if g.rng.chance(0.5) => value(index),
        _ => int(0),
    };
    g.op("TensorListGetItem", vec![value(list), index, any_shape()], of(dtype)).map(drop)
}

fn pop(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    let head = Head::Op("TensorListPopBack", of(dtype));
    let args = vec![value(list), any_shape()];
    let outs = g.emit(head, args, Vec::new(), 2, Some(dtype))?;
    debug_assert_eq!(outs.len(), 2);
    Some(())
}

fn length(g: &mut Gen) -> Option<()> {
    let (list, _) = list(g)?;
    g.call("TensorListLength", &[list]).map(drop)
}

fn concat(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    let none = HostTensor::from_slice::<i64>(Shape::new([0]).ok()?, &[]).ok()?;
    let args = vec![value(list), any_shape(), StatementOperand::Const(none)];
    let head = Head::Op("TensorListConcatV2", of(dtype));
    g.emit(head, args, Vec::new(), 2, None).map(drop)
}

fn filled_in_loop(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    let x = g.find(|seen| seen.dtype == dtype)?;
    let mut counted = g.counted(&[list, x])?;
    // The body pushes one of its values.
    let body = counted.blocks.pop()?;
    let args = vec![value(body.results[1]), value(body.results[2])];
    counted.blocks.push(changed_list(g, body, Head::Op("TensorListPushBack", of(dtype)), args));
    g.emit_loop(counted).map(drop)
}

/// A list that each round writes an item of, and what is read of it after the loop.
fn written_in_loop(g: &mut Gen) -> Option<()> {
    let x = g.number()?;
    let dtype = g.type_of(x).dtype;
    let n = g.rng.within(1, 4);
    let list = emit_list(g, "TensorListReserve", vec![any_shape(), int(n)], dtype)?;
    let mut counted = g.counted(&[list, x])?;
    let body = counted.blocks.pop()?;
    let index = match g.rng.chance(0.7) {
        true => value(body.params[0]),
        false => int(g.rng.within(0, n - 1)),
    };
    let args = vec![value(body.results[1]), index, value(body.results[2])];
    counted.blocks.push(changed_list(g, body, Head::Op("TensorListSetItem", of(dtype)), args));
    let outs = g.emit_loop(counted)?;
    let n_reads = 1 + g.rng.below(2);
    for _ in 0..n_reads {
        match g.rng.below(4) {
            0 => {
                let args = vec![value(outs[1]), int(g.rng.within(0, n - 1)), any_shape()];
                g.op("TensorListGetItem", args, of(dtype))?
            }
            1 if g.rng.chance(0.2) => g.call("TensorListLength", &[outs[1]])?,
            _ => g.op("TensorListStack", vec![value(outs[1]), any_shape()], of(dtype))?,
        };
    }
    Some(())
}

/// A body of a loop over a list and a tensor whose list is last changed by a call.
fn changed_list(
    g: &mut Gen,
    mut body: ProgramBlock,
    head: Head,
    args: Vec<StatementOperand>,
) -> ProgramBlock {
    let id = g.next_id();
    g.seen.resize(id + 1, None);
    body.stmts.push(Stmt { outs: vec![id], head, args, blocks: Vec::new(), device: None });
    body.results[1] = id;
    body
}

fn read_in_loop(g: &mut Gen) -> Option<()> {
    let (list, dtype) = list(g)?;
    let x = g.find(|seen| seen.dtype == dtype)?;
    let mut counted = g.counted(&[x])?;
    let body = counted.blocks.last_mut()?;
    let (counter, result) = (body.params[0], body.results[1]);
    let [item, sum] = [g.next_id(), g.next_id() + 1];
    g.seen.resize(sum + 1, None);
    let stmt =
        |outs, head, args| Stmt { outs: vec![outs], head, args, blocks: Vec::new(), device: None };
    let args = vec![value(list), value(counter), any_shape()];
    body.stmts.push(stmt(item, Head::Op("TensorListGetItem", of(dtype)), args));
    let args = vec![value(result), value(item)];
    body.stmts.push(stmt(sum, Head::Op("AddV2", Attrs::new()), args));
    body.results[1] = sum;
    let is_number = |seen: &Seen| seen.is_number();
    if !is_number(g.type_of(x)) {
        return None;
    }
    g.emit_loop(counted).map(drop)
}

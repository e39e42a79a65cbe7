//! State: who owns it, and in which order it changes.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, HostTensor, NodeDef, Outlet, Shape, TensorSpec, ValueType};
use ferroflow_runtime::{CallableFunction, CapturedInput, Error, ResourceVariable};

fn handle() -> ValueType {
    ValueType::handle(DType::Resource, TensorSpec::new(DType::F32, Shape::new([2]).unwrap()))
}

#[test]
fn effects_happen_in_the_order_of_the_graph() {
    // v = v + 1; v = 2 · v; read v.
    let context = context();
    let variable = ResourceVariable::new("v", HostTensor::vector(&[1.0f32, 5.0]).unwrap());
    let mut def = function("update", &[("v", handle())], |b, args| {
        let attrs = || Attrs::new().with("dtype", DType::F32);
        let one = b.constant("one", HostTensor::vector(&[1.0f32, 1.0]).unwrap())?;
        b.call_with("AssignAddVariableOp", "add", attrs(), &[args[0], one])?;
        let read = b.call_with("ReadVariableOp", "read", attrs(), args)?[0];
        let double = b.call("AddV2", "double", &[read, read])?[0];
        b.call_with("AssignVariableOp", "assign", attrs(), &[args[0], double])?;
        Ok(vec![b.call_with("ReadVariableOp", "last", attrs(), args)?[0]])
    });
    let find = |name: &str| def.graph.find(name).unwrap();
    let order = [("read", "add"), ("assign", "read"), ("last", "assign")];
    let edges: Vec<_> = order.iter().map(|(after, before)| (find(after), find(before))).collect();
    for (after, before) in edges {
        let inputs = def.graph[after].inputs().to_vec();
        def.graph.connect(after, inputs, [before]).unwrap();
    }
    let captures = vec![CapturedInput::Resource(variable.handle())];
    let update = concrete(&context, def, Vec::new(), captures);
    assert_eq!(values(&update.call(&[]).unwrap(), 0), [4.0, 12.0]);
    assert_eq!(values(&update.call(&[]).unwrap(), 0), [10.0, 26.0]);
    assert_eq!(variable.read().unwrap().as_slice::<f32>().unwrap(), [10.0, 26.0]);
}

#[test]
fn a_value_that_was_read_stays_as_it_was() {
    let context = context();
    let variable = ResourceVariable::new("v", HostTensor::vector(&[1.0f32, 2.0]).unwrap());
    let before = variable.read().unwrap();
    let def = function("bump", &[("v", handle())], |b, args| {
        let attrs = || Attrs::new().with("dtype", DType::F32);
        let one = b.constant("one", HostTensor::vector(&[1.0f32, 1.0]).unwrap())?;
        b.call_with("AssignAddVariableOp", "add", attrs(), &[args[0], one])?;
        Ok(Vec::new())
    });
    let bump =
        concrete(&context, def, Vec::new(), vec![CapturedInput::Resource(variable.handle())]);
    bump.call(&[]).unwrap();
    assert_eq!(before.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(variable.read().unwrap().as_slice::<f32>().unwrap(), [2.0, 3.0]);
}

#[test]
fn functions_do_not_keep_variables_alive() {
    let context = context();
    let variable = ResourceVariable::new("weights", HostTensor::vector(&[1.0f32, 2.0]).unwrap());
    let def = function("read", &[("v", handle())], |b, args| {
        b.call_with("ReadVariableOp", "read", Attrs::new().with("dtype", DType::F32), args)
    });
    let read =
        concrete(&context, def, Vec::new(), vec![CapturedInput::Resource(variable.handle())]);
    assert!(read.call(&[]).is_ok());
    drop(variable);
    let error = read.call(&[]).unwrap_err();
    assert!(error.to_string().contains("`weights` does not exist any more"), "{error}");
}

#[test]
fn unfed_and_unset_values_are_errors() {
    let context = context();
    let variable =
        ResourceVariable::uninitialized("v", DType::F32, Shape::new([2]).unwrap().into(), true);
    let def = function("read", &[("v", handle())], |b, args| {
        b.call_with("ReadVariableOp", "read", Attrs::new().with("dtype", DType::F32), args)
    });
    let read =
        concrete(&context, def, Vec::new(), vec![CapturedInput::Resource(variable.handle())]);
    let error = read.call(&[]).unwrap_err();
    let Error::AtNode { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(**source, Error::Uninitialized { .. }), "{error}");

    let def = function("unfed", &[], |b, _| {
        Ok(vec![b.placeholder("x", DType::F32, Shape::scalar().into())?])
    });
    let error = CallableFunction::new(&context, def).unwrap().call(&[]).unwrap_err();
    assert!(error.to_string().contains("node `x`"), "{error}");
}

#[test]
fn an_op_nobody_knows_fails_only_when_it_is_needed() {
    let context = context();
    let build = |used: bool| {
        let mut def = function("f", &[("x", f32s(&[1]))], |_, args| Ok(args.to_vec()));
        let foreign =
            NodeDef::new("mystery", ferroflow_ir::OpRef::Foreign("NoSuchOp".into()), Attrs::new());
        let id = def.graph.add(foreign).unwrap();
        if used {
            def.results = vec![("y".into(), Outlet::from(id))];
        }
        def
    };
    let error =
        CallableFunction::new(&context, build(true)).unwrap().call(&[vector(&[1.0])]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("NoSuchOp") && text.contains("`mystery`") && text.contains("`f`"),
        "{text}"
    );
}

//! Expressions over strings: joining, comparing and choosing.

use crate::{
    error::Result,
    kernel::{Io, Kernel},
    plan::{broadcast::InputAccess, strided},
};
use bytes::Bytes;
use ferroflow_ir::{
    DType, Expr, HostTensor, Prim, Shape,
    expr::{ExprId, ExprKind},
};
use std::sync::Arc;

/// A value of an expression: a string, or the truth of something.
#[derive(Clone)]
enum Value {
    Text(Bytes),
    Truth(bool),
}

/// Compiles an expression over strings; `None` when it uses a primitive strings do not have.
pub(super) fn compile(
    expr: &Expr,
    accesses: Vec<InputAccess>,
    shape: Shape,
) -> Option<Arc<dyn Kernel>> {
    let known = expr.nodes().iter().all(|node| match &node.kind {
        ExprKind::Input(_) => matches!(node.dtype, DType::String | DType::Bool),
        ExprKind::Const(_) | ExprKind::Reduce(..) => false,
        ExprKind::Apply(prim, _) => {
            matches!(prim, Prim::Add | Prim::Eq | Prim::Ne | Prim::Not | Prim::Select)
        }
    });
    let expr = expr.clone();
    known.then(|| {
        Arc::new(move |io: &mut Io<'_>| run(&expr, &accesses, &shape, io)) as Arc<dyn Kernel>
    })
}

fn run(expr: &Expr, accesses: &[InputAccess], shape: &Shape, io: &mut Io<'_>) -> Result<()> {
    let n = shape.num_elements();
    let inputs: Vec<Vec<Value>> = (0..accesses.len())
        .map(|input| {
            let values: Vec<Value> = match io.strings(input) {
                Ok(strings) => strings.iter().cloned().map(Value::Text).collect(),
                Err(_) => io.bytes(input).iter().map(|&byte| Value::Truth(byte != 0)).collect(),
            };
            broadcast(&accesses[input], values, n)
        })
        .collect();
    let mut texts = Vec::new();
    let mut truths = Vec::new();
    #[expect(clippy::needless_range_loop, reason = "the inputs are walked together")]
    for position in 0..n {
        match evaluate(expr, &|input| inputs[input][position].clone()) {
            Value::Text(text) => texts.push(text),
            Value::Truth(truth) => truths.push(u8::from(truth)),
        }
    }
    if expr.dtype() == DType::String {
        return io.put(0, HostTensor::from_strings(shape.clone(), texts)?);
    }
    io.output::<u8>(0).copy_from_slice(&truths);
    Ok(())
}

fn broadcast(access: &InputAccess, values: Vec<Value>, n: usize) -> Vec<Value> {
    match access {
        InputAccess::Contiguous => values,
        InputAccess::Scalar => vec![values[0].clone(); n],
        InputAccess::Strided(view) => {
            let mut all = vec![Value::Truth(false); n];
            strided::read(view, &values, 0, &mut all);
            all
        }
    }
}

fn evaluate(expr: &Expr, input: &dyn Fn(usize) -> Value) -> Value {
    let mut values: Vec<Value> = Vec::with_capacity(expr.nodes().len());
    for node in expr.nodes() {
        let value = match &node.kind {
            ExprKind::Input(position) => input(*position),
            ExprKind::Const(_) | ExprKind::Reduce(..) => Value::Truth(false),
            ExprKind::Apply(prim, args) => {
                let text = |arg: ExprId| match &values[arg.index()] {
                    Value::Text(text) => text.clone(),
                    Value::Truth(_) => Bytes::new(),
                };
                let truth = |arg: ExprId| matches!(values[arg.index()], Value::Truth(true));
                match prim {
                    Prim::Add => Value::Text([text(args[0]), text(args[1])].concat().into()),
                    Prim::Eq => Value::Truth(text(args[0]) == text(args[1])),
                    Prim::Ne => Value::Truth(text(args[0]) != text(args[1])),
                    Prim::Not => Value::Truth(!truth(args[0])),
                    _ if truth(args[0]) => values[args[1].index()].clone(),
                    _ => values[args[2].index()].clone(),
                }
            }
        };
        values.push(value);
    }
    values[expr.root().index()].clone()
}

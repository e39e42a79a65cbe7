//! Choices, loops and arrays.

mod by_hand;
mod datasets;
mod effects;
mod errors;
mod host;
mod positions;
mod program;
mod random;
mod ranges;
mod rewritten;
mod values;

use ferroflow_ir::{FunctionDef, FunctionLibrary, PartialShape, TraceType};
use ferroflow_tracer::{ConcreteFunction, Result, Tensor, function};

/// The end of a closure, whose type of errors nothing else tells.
fn ok<T>(value: T) -> Result<T> {
    Ok(value)
}

/// Runs `program` eagerly and traced, with arguments of known and of unknown sizes; gives what all
/// of them give.
fn same(
    program: impl Fn(Vec<Tensor>) -> Result<Tensor> + Send + Sync + Clone + 'static,
    args: &[Tensor],
) -> Result<Tensor> {
    let eager = program(args.to_vec())?;
    let traced = function(program);
    let known = traced(args.to_vec())?;
    let unknown = args.iter().map(|arg| {
        let rank = arg.shape().rank().unwrap();
        TraceType::tensor(arg.dtype(), PartialShape::of_rank(rank))
    });
    let unknown: Vec<TraceType> = unknown.collect();
    let unknown = traced.concrete_for([TraceType::List(unknown)])?;
    let values: Vec<_> = args.iter().map(Into::into).collect();
    let unknown = unknown.call(&[ferroflow_tracer::NestedValue::List(values)])?;
    assert_eq!(eager.to_string(), known.to_string());
    assert_eq!(eager.to_string(), unknown.tensor()?.to_string());
    assert_eq!((eager.dtype(), eager.shape()), (known.dtype(), known.shape()));
    Ok(eager)
}

/// The ops that a trace calls in all its functions, in the order of their names, constants and
/// arguments left out.
fn ops(concrete: &ConcreteFunction) -> Vec<String> {
    let mut names = Vec::new();
    visit(concrete.def(), concrete.library(), &mut names);
    names.sort();
    names
}

fn visit(def: &FunctionDef, library: &FunctionLibrary, names: &mut Vec<String>) {
    for (_, node) in def.graph.iter() {
        let op = node.op.name();
        if !matches!(op, "_Arg" | "Const" | "Identity") {
            names.push(op.to_string());
        }
        for callee in ferroflow_ir::function::callees(&node.attrs) {
            visit(&library.get(&callee).unwrap(), library, names);
        }
    }
}

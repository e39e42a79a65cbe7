//! Support of models, which `cargo xtask interleavings` runs: a context, and a function whose calls let others
//! run in their midst.
//!
//! The models themselves are beside the state that they are about, in files of this name.

use crate::{
    context::{Context, ContextOptions},
    eager_tensor::EagerTensor,
    ops::one,
    runtime_call::RuntimeCall,
};
use ferroflow_ir::{
    Attrs, DType, Effect, FunctionDef, Graph, HostTensor, Lowering, NodeDef, OpDef, Outlet,
    PartialShape, Shape, ValueType, infer, op::arg_of, registry,
};
use shuttle::thread;
use std::{num::NonZeroUsize, panic::resume_unwind};

/// The argument of the function at which the op panics.
pub(crate) const FAILS: f32 = 7.0;

/// The message of that panic.
pub(crate) const FAILURE: &str = "the op fails";

/// An op that returns its input after other threads had a chance to run.
static SWITCHING: OpDef = OpDef {
    name: "SwitchesThreads",
    summary: "Returns the input.",
    inputs: &[arg_of("x", DType::F32)],
    outputs: &[arg_of("y", DType::F32)],
    infer: infer::unchanged,
    effect: Effect::Stateful,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

/// A context of one thread per call.
pub(crate) fn context(options: ContextOptions) -> Context {
    let context =
        Context::with_options(ContextOptions { threads: Some(NonZeroUsize::MIN), ..options });
    context.add_host_op(SWITCHING.name, |call: &mut RuntimeCall<'_>| {
        thread::yield_now();
        let x = call.host(0)?.clone();
        if x.as_slice::<f32>()?.first() == Some(&(2.0 * FAILS)) {
            fail();
        }
        one(x)
    });
    context
}

/// A panic without the hook, which would print it.
pub(crate) fn fail() -> ! {
    resume_unwind(Box::new(FAILURE))
}

pub(crate) fn vectors(len: Option<usize>) -> ValueType {
    match len {
        Some(len) => ValueType::new(DType::F32, Shape::new([len]).expect("a small shape")),
        None => ValueType::new(DType::F32, PartialShape::of_rank(1)),
    }
}

pub(crate) fn vector(len: usize, value: f32) -> HostTensor {
    HostTensor::vector(&vec![value; len]).expect("a small tensor")
}

/// The function `sums * switching(sums + sums)` of vectors, where `sums` are the cumulative sums of its argument.
/// They wait in the arena while the op runs.
pub(crate) fn switching_function() -> FunctionDef {
    let mut graph = Graph::default();
    let mut add = |name: &str, op: &'static OpDef, attrs: Attrs, inputs: &[Outlet], ty| {
        let node = NodeDef::new(name, op, attrs).with_inputs(inputs.iter().copied());
        graph.add(node.with_outputs([ty])).expect("a new name")
    };
    let find = |name| registry::find(name).expect("built in");
    let of_f32 = || Attrs::new().with("T", DType::F32);
    let arg = add("x", find("_Arg"), of_f32().with("index", 0i64), &[], vectors(None));
    let axis = HostTensor::scalar(0i32);
    let (ty, attrs) =
        (ValueType::new(DType::I32, axis.shape()), Attrs::new().with("dtype", DType::I32));
    let axis = add("axis", find("Const"), attrs.with("value", axis), &[], ty);
    let attrs = of_f32().with("Tidx", DType::I32).with("exclusive", false).with("reverse", false);
    let sums = add("sums", find("Cumsum"), attrs, &[arg.into(), axis.into()], vectors(None)).into();
    let twice = add("twice", find("AddV2"), of_f32(), &[sums, sums], vectors(None)).into();
    let switched = add("switched", &SWITCHING, Attrs::new(), &[twice], vectors(None)).into();
    let result = add("result", find("Mul"), of_f32(), &[sums, switched], vectors(None)).into();
    FunctionDef {
        name: "switching".into(),
        graph,
        args: vec![arg],
        results: vec![("y".to_string(), result)],
        control_results: Vec::new(),
        attrs: Attrs::new(),
    }
}

/// Checks a result of that function, whose argument had this value in all elements.
pub(crate) fn check(results: &[EagerTensor], len: usize, value: f32) {
    let found = results[0].host().expect("on the host").as_slice::<f32>().expect("floats");
    let sums = (1..=len).map(|n| n as f32 * value);
    assert_eq!(found, sums.map(|sum| sum * (sum + sum)).collect::<Vec<f32>>());
}

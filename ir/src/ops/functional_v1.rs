//! Ops on functions from before TensorFlow 2: a loop over a range, and the gradient of a function.
//!
//! Both become calls of functions that are made here and added to the library, once for each function
//! that they are about.

use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    build::GraphBuilder,
    dtype::DType,
    emit::{Composite, Emit, Value, ValueId, call},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary},
    gradient::function::{Differentiated, GradientIndex, Kept, differentiate},
    graph::Outlet,
    host_tensor::HostTensor,
    infer::OpContext,
    op::*,
    registry,
    shape::{PartialShape, Shape},
    spec::ValueType,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "For",
        summary: "Calls `body` on its own results for each number from `start` to `limit`.",
        inputs: &[
            arg_of("start", DType::I32),
            arg_of("limit", DType::I32),
            arg_of("delta", DType::I32),
            args_list("input", "T"),
        ],
        outputs: &[args_list("output", "T")],
        attrs: &[types("T").at_least(0), func("body")],
        infer: |context| (0..3).try_for_each(|index| context.check_rank(index, 0)),
        lowering: Lowering::Composite(repeated),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SymbolicGradient",
        summary: "Computes the gradients of the arguments of a function from those of its results.",
        inputs: &[args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[types("Tin").at_least(1), types("Tout").at_least(1), func("f")],
        infer: gradients_of_arguments,
        lowering: Lowering::Composite(|c| {
            let Some((_, def)) = c.function("f") else { return Vec::new() };
            c.by_calls(|emit, inputs| symbolic_gradient(emit, &def, inputs))
        }),
        ..OpDef::STATEFUL
    },
];

/// A gradient has the shape of its argument.
fn gradients_of_arguments(context: &mut OpContext<'_>) -> Result<()> {
    let (n_inputs, n_outputs) = (context.n_inputs(), context.n_outputs());
    if n_outputs > n_inputs {
        let expected = format!("at most {n_inputs} dtypes");
        return Err(context.wrong_attr("Tout", expected, n_outputs));
    }
    for index in 0..n_outputs {
        if context.dtype(index) != context.output_dtype(index) {
            let expected = format!("{}, as of the argument", context.dtype(index));
            return Err(context.wrong_attr("Tout", expected, context.output_dtype(index)));
        }
        context.set(index, context.shape(index).clone());
    }
    Ok(())
}

/// The function of a name in the library, made if it is not there.
fn made(
    library: &FunctionLibrary,
    name: &str,
    make: impl FnOnce() -> Result<FunctionDef>,
) -> Result<NameAttrList> {
    if !library.contains(name) {
        match library.insert(make()?) {
            Ok(_) | Err(Error::Duplicate { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(NameAttrList::new(name))
}

fn any_shape(dtype: DType) -> ValueType {
    ValueType::new(dtype, PartialShape::Unknown)
}

/// Calls a function of the library from a function that is being built.
fn call_function(
    builder: &mut GraphBuilder,
    library: &FunctionLibrary,
    name: &str,
    callee: &NameAttrList,
    [inputs, results]: [&[DType]; 2],
    args: &[Outlet],
) -> Result<Vec<Outlet>> {
    let attrs = Attrs::new()
        .with("Tin", inputs.to_vec())
        .with("Tout", results.to_vec())
        .with("f", AttrValue::Func(callee.clone()));
    let op = registry::find("StatefulPartitionedCall").map(Into::into);
    let is_pure = op.is_none_or(|op| library.effect_of(&op, &attrs) == Effect::Pure);
    let call = if is_pure { "PartitionedCall" } else { "StatefulPartitionedCall" };
    builder.call_with(call, name, attrs, args)
}

/// The variables of a loop that come before those of the program: the number of the round, the
/// number of rounds, the first number and the step.
const OWN: usize = 4;

fn repeated<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let Some((body, _)) = c.function("body") else { return Vec::new() };
    let (start, limit, delta) = (c.x(0), c.x(1), c.x(2));
    // An impossible range is refused as `Range` refuses it.
    let rounds = call("Size", [call("Range", [start, limit, delta])]);
    let mut inputs = vec![c.scalar(0i32), rounds, start, delta];
    inputs.extend_from_slice(&c.inputs()[3..]);
    let types: Vec<DType> = inputs.iter().map(|value| value.dtype()).collect();
    let body = body.clone();
    let mut results = c
        .by_library(|library| {
            let key: Vec<&str> = types.iter().map(|dtype| dtype.name()).collect();
            let mut base = format!("{}/for/{}", body.name, key.join("_"));
            for (name, value) in body.attrs.iter() {
                base += &format!(",{name}={value}");
            }
            let condition =
                made(library, &format!("{base}/cond"), || round_is_left(&base, &types))?;
            let step =
                made(library, &format!("{base}/body"), || round(library, &base, &body, &types))?;
            Ok(Attrs::new()
                .with("T", types.clone())
                .with("cond", AttrValue::Func(condition))
                .with("body", AttrValue::Func(step)))
        })
        .map(|attrs| c.call("While", attrs, &inputs))
        .unwrap_or_default();
    results.drain(..OWN.min(results.len()));
    results
}

fn loop_arguments(builder: &mut GraphBuilder, types: &[DType]) -> Result<Vec<Outlet>> {
    let scalar = |dtype| ValueType::new(dtype, Shape::scalar());
    let ty = |(index, &dtype)| if index < OWN { scalar(dtype) } else { any_shape(dtype) };
    let all = types.iter().enumerate();
    all.map(|at| builder.arg(&format!("x{}", at.0), ty(at))).collect()
}

fn round_is_left(base: &str, types: &[DType]) -> Result<FunctionDef> {
    let mut builder = GraphBuilder::new();
    let args = loop_arguments(&mut builder, types)?;
    let less = builder.call("Less", "less", &args[..2])?[0];
    Ok(builder.finish_function(&format!("{base}/cond"), &[("less", less)]))
}

fn round(
    library: &FunctionLibrary,
    base: &str,
    body: &NameAttrList,
    types: &[DType],
) -> Result<FunctionDef> {
    let mut builder = GraphBuilder::new();
    let args = loop_arguments(&mut builder, types)?;
    let one = builder.constant("one", HostTensor::scalar(1i32))?;
    let next = builder.call("AddV2", "next", &[args[0], one])?[0];
    let way = builder.call("Mul", "way", &[args[0], args[3]])?[0];
    let number = builder.call("AddV2", "number", &[args[2], way])?[0];
    let own = &types[OWN..];
    let inputs: Vec<DType> = std::iter::once(DType::I32).chain(own.iter().copied()).collect();
    let passed: Vec<Outlet> = std::iter::once(number).chain(args[OWN..].iter().copied()).collect();
    let results = call_function(&mut builder, library, "call", body, [&inputs, own], &passed)?;
    let names: Vec<String> = (0..types.len()).map(|index| format!("y{index}")).collect();
    let all = std::iter::once(next).chain(args[1..OWN].iter().copied()).chain(results);
    let all: Vec<(&str, Outlet)> = names.iter().map(String::as_str).zip(all).collect();
    Ok(builder.finish_function(&format!("{base}/body"), &all))
}

fn symbolic_gradient(
    emit: &mut dyn Emit,
    def: &FunctionDef,
    inputs: &[ValueId],
) -> Result<Vec<ValueId>> {
    let op = "SymbolicGradient";
    let (n_args, n_results) = (def.args.len(), def.results.len());
    if inputs.len() != n_args + n_results {
        let expected = format!("{n_args} arguments and {n_results} gradients of results");
        return Err(Error::argument(op, "input", expected, inputs.len()));
    }
    let types: Vec<DType> = inputs.iter().map(|&id| emit.ty(id).dtype).collect();
    let outputs = types[..n_args].to_vec();
    let absent =
        || Error::Unsupported { op: op.into(), what: "its function is not at hand here".into() };
    let library = emit.library().ok_or_else(absent)?;
    let name = format!("{}/gradient", def.name);
    let gradient = made(library, &name, || gradient_function(library, &name, def, &types))?;
    let attrs =
        Attrs::new().with("Tin", types).with("Tout", outputs).with("f", AttrValue::Func(gradient));
    let call = registry::find("StatefulPartitionedCall").ok_or_else(absent)?;
    Ok(emit.emit(call, attrs, inputs)?.into_vec())
}

/// The function of arguments and gradients of results that returns the gradients of the arguments:
/// zeros where a result does not depend on one.
fn gradient_function(
    library: &FunctionLibrary,
    name: &str,
    def: &FunctionDef,
    types: &[DType],
) -> Result<FunctionDef> {
    let n_args = def.args.len();
    let found = differentiate(library, def, &vec![true; n_args])?;
    let Differentiated { forward, backward, seeds, kept, gradients } = &found;
    library.share_function(forward)?;
    library.share_function(backward)?;
    let mut builder = GraphBuilder::new();
    let mut args = Vec::with_capacity(types.len());
    for (index, &dtype) in types.iter().enumerate() {
        let ty = if index < n_args { def.arg_type(index).clone() } else { any_shape(dtype) };
        args.push(builder.arg(&format!("x{index}"), ty)?);
    }
    let run = |builder: &mut GraphBuilder, what: &str, def: &FunctionDef, args: &[Outlet]| {
        let results = result_dtypes(def)?;
        let callee = NameAttrList::new(def.name.clone());
        call_function(builder, library, what, &callee, [&def.arg_dtypes(), &results], args)
    };
    let results = run(&mut builder, "forward", forward, &args[..n_args])?;
    let mut passed: Vec<Outlet> = seeds.iter().map(|&seed| args[n_args + seed]).collect();
    passed.extend(kept.iter().map(|kept| match *kept {
        Kept::Argument(index) => args[index],
        Kept::Result(index) => results[index],
    }));
    let found = run(&mut builder, "backward", backward, &passed)?;
    let mut all = Vec::with_capacity(n_args);
    for (index, gradient) in gradients.iter().enumerate() {
        let arg = args[index];
        all.push(match *gradient {
            None => builder.call("ZerosLike", &format!("zeros{index}"), &[arg])?[0],
            Some(GradientIndex::Dense(at)) => found[at],
            Some(GradientIndex::Slices(at)) => {
                added_rows(&mut builder, index, arg, [found[at], found[at + 1]])?
            }
        });
    }
    let names: Vec<String> = (0..n_args).map(|index| format!("dx{index}")).collect();
    let all: Vec<(&str, Outlet)> = names.iter().map(String::as_str).zip(all).collect();
    Ok(builder.finish_function(name, &all))
}

/// The tensor of the shape of an argument that rows are the parts of.
fn added_rows(
    builder: &mut GraphBuilder,
    index: usize,
    arg: Outlet,
    [rows, indices]: [Outlet; 2],
) -> Result<Outlet> {
    let shape = builder.call("Shape", &format!("shape{index}"), &[arg])?[0];
    let zero = builder.constant(&format!("zero{index}"), HostTensor::scalar(0i32))?;
    let first = builder.call("GatherV2", &format!("first{index}"), &[shape, zero, zero])?[0];
    let name = format!("rows{index}");
    Ok(builder.call("UnsortedSegmentSum", &name, &[rows, indices, first])?[0])
}

fn result_dtypes(def: &FunctionDef) -> Result<Vec<DType>> {
    let ty = |(_, outlet): &(String, Outlet)| def.graph.ty(*outlet).map(|ty| ty.dtype);
    let dtypes: Option<Vec<DType>> = def.results.iter().map(ty).collect();
    dtypes.ok_or_else(|| Error::Malformed {
        node: def.name.to_string(),
        rule: "the results of a function have dtypes".into(),
    })
}

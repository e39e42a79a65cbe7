//! Sequences recorded on a graph: each step adds a node, and a run fetches the results of one step.
//! Variables keep their values between runs.

use super::{judge, value};
use crate::outcome::CaseOutcome;
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    ir::{AttrValue, DType, HostTensor, PartialShape, build::infer_attrs},
    runtime::{Context, EagerTensor},
    saved_model::{
        Error, Session,
        convert::shape_message,
        proto::{
            AttrValue as AttrMessage, GraphDef, NodeDef, TensorProto, TensorShapeProto, VersionDef,
            attr_value::{ListValue, Value as Message},
            tensor_shape_proto::Dim,
        },
    },
};
use serde_json::Value;
use std::collections::BTreeMap;

/// A version of GraphDef that knows all this needs.
const PRODUCER: i32 = 2000;

/// Runs the steps one after another.
pub(super) fn run(context: &Context, steps: &[Value]) -> Result<CaseOutcome> {
    let (session, refused) = session(context, steps, false)?;
    let mut feeds = Vec::new();
    for (number, step) in steps.iter().enumerate().filter(|(_, step)| step["feed"].is_object()) {
        feeds.push((name(number), EagerTensor::from(value::tensor(&step["feed"])?)));
    }
    let feeds: Vec<(&str, EagerTensor)> =
        feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    for (number, step) in steps.iter().enumerate() {
        let op = op_of(step)?;
        let result = match refused.get(&number) {
            Some(error) => Err((error.code(), error.to_string())),
            None => match run_step(context, &session, &feeds, number, step)? {
                Some(result) => result.map_err(|error| (error.code(), error.to_string())),
                None => continue,
            },
        };
        match judge(op, step, result)?.0 {
            CaseOutcome::Passed => {}
            CaseOutcome::Failed(why) => {
                return Ok(CaseOutcome::Failed(format!("step {number} {op}: {why}")));
            }
            unsupported => return Ok(unsupported),
        }
    }
    Ok(CaseOutcome::Passed)
}

/// Runs all steps in one run, each after the one before it.
pub(super) fn run_once(context: &Context, steps: &[Value]) -> Result<CaseOutcome> {
    let (session, _) = session(context, steps, true)?;
    let (mut fetches, mut targets) = (Vec::new(), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        targets.push(name(number));
        let outputs = flat(&step["outputs"]);
        let fetched = outputs.iter().enumerate().filter(|(_, output)| is_fetched(output));
        fetches.extend(fetched.map(|(output, _)| (number, format!("{}:{output}", name(number)))));
    }
    let names: Vec<&str> = fetches.iter().map(|(_, name)| name.as_str()).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let mut fetched = match session.run(&[], &names, &targets) {
        Ok(fetched) => fetched.into_iter(),
        Err(error) => return Ok(CaseOutcome::of_error(error.code(), error.to_string())),
    };
    for (number, step) in steps.iter().enumerate() {
        let mut next = |output: &Value| {
            let fetched = if is_fetched(output) { fetched.next() } else { None };
            fetched.unwrap_or_else(|| EagerTensor::scalar(0.0f32))
        };
        let results = flat(&step["outputs"]).iter().map(&mut next).collect();
        if let CaseOutcome::Failed(why) = judge(op_of(step)?, step, Ok(results))?.0 {
            return Ok(CaseOutcome::Failed(format!("step {number}: {why}")));
        }
    }
    Ok(CaseOutcome::Passed)
}

/// Whether a result is recorded.
fn is_fetched(output: &Value) -> bool {
    output["opaque"].as_bool() != Some(true)
}

/// The session of all steps, but for those that must fail and are refused when the graph is built.
fn session(
    context: &Context,
    steps: &[Value],
    in_order: bool,
) -> Result<(Session, BTreeMap<usize, Error>)> {
    let mut refused: BTreeMap<usize, Error> = BTreeMap::new();
    let build = |n_steps: usize, refused: &BTreeMap<usize, Error>| -> Result<_> {
        let versions = VersionDef { producer: PRODUCER, ..VersionDef::default() };
        let mut graph = GraphDef { versions: Some(versions), ..GraphDef::default() };
        for number in 0..n_steps {
            if !refused.contains_key(&number) {
                add(context, &mut graph, number, steps, in_order)?;
            }
        }
        Ok(Session::of_graph_def(context, graph))
    };
    for number in (0..steps.len()).filter(|&number| steps[number]["error"].is_object()) {
        if let Err(error) = build(number + 1, &refused)? {
            refused.insert(number, error);
        }
    }
    Ok((build(steps.len(), &refused)??, refused))
}

fn op_of(step: &Value) -> Result<&str> {
    step["op"].as_str().context("an op")
}

fn name(step: usize) -> String {
    format!("step{step}")
}

/// Lists among arguments or results stand for their elements.
fn flat(list: &Value) -> Vec<Value> {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    list.iter()
        .flat_map(|item| item.as_array().cloned().unwrap_or_else(|| vec![item.clone()]))
        .collect()
}

/// Adds the node of a step, and a constant for each tensor it is passed; the node runs after the one
/// of the step before it if it is to be `in_order`.
fn add(
    context: &Context,
    graph: &mut GraphDef,
    number: usize,
    steps: &[Value],
    in_order: bool,
) -> Result<()> {
    let step = &steps[number];
    let op = op_of(step)?;
    let record = context.registry().find(op).with_context(|| format!("op {op}"))?;
    let (mut inputs, mut dtypes) = (Vec::new(), Vec::new());
    for (index, input) in flat(&step["inputs"]).iter().enumerate() {
        if let Some(from) = input["from"].as_array() {
            let position = |index: usize| from.get(index).and_then(Value::as_u64);
            let (Some(source), Some(output)) = (position(0), position(1)) else {
                bail!("a bad reference")
            };
            let outputs = flat(&steps[source as usize]["outputs"]);
            let dtype = outputs.get(output as usize).and_then(|output| output["dtype"].as_str());
            dtypes.push(dtype.context("the dtype of a result")?.parse::<DType>()?);
            inputs.push(format!("{}:{output}", name(source as usize)));
            continue;
        }
        let tensor = value::tensor(input)?;
        let node = format!("{}/input{index}", name(number));
        dtypes.push(tensor.dtype());
        inputs.push(node.clone());
        let attrs = [
            ("dtype".to_string(), AttrValue::Type(tensor.dtype())),
            ("value".to_string(), AttrValue::Tensor(tensor)),
        ];
        graph.node.push(message(node, "Const", Vec::new(), attrs.into_iter())?);
    }
    if in_order && number > 0 {
        inputs.push(format!("^{}", name(number - 1)));
    }
    let attrs = infer_attrs(record, super::attrs_of(record, step)?, &dtypes);
    let attrs = attrs.iter().map(|(name, value)| (name.to_string(), value.clone()));
    graph.node.push(message(name(number), op, inputs, attrs)?);
    Ok(())
}

fn message(
    name: String,
    op: &str,
    input: Vec<String>,
    attrs: impl Iterator<Item = (String, AttrValue)>,
) -> Result<NodeDef> {
    let attr = attrs
        .map(|(name, value)| Ok((name, AttrMessage { value: Some(attr(value)?) })))
        .collect::<Result<_>>()?;
    Ok(NodeDef { name, op: op.into(), input, attr, ..NodeDef::default() })
}

fn attr(value: AttrValue) -> Result<Message> {
    let list = |list: ListValue| Message::List(list);
    Ok(match value {
        AttrValue::String(text) => Message::S(text),
        AttrValue::Int(value) => Message::I(value),
        AttrValue::Float(value) => Message::F(value),
        AttrValue::Bool(value) => Message::B(value),
        AttrValue::Type(dtype) => Message::Type(dtype.number()),
        AttrValue::Shape(found) => Message::Shape(shape(&found)),
        AttrValue::Tensor(found) => Message::Tensor(tensor(&found)?),
        AttrValue::Strings(s) => list(ListValue { s, ..ListValue::default() }),
        AttrValue::Ints(i) => list(ListValue { i, ..ListValue::default() }),
        AttrValue::Floats(f) => list(ListValue { f, ..ListValue::default() }),
        AttrValue::Bools(b) => list(ListValue { b, ..ListValue::default() }),
        AttrValue::Types(types) => {
            let r#type = types.iter().map(|dtype| dtype.number()).collect();
            list(ListValue { r#type, ..ListValue::default() })
        }
        AttrValue::Shapes(shapes) => {
            let shape = shapes.iter().map(shape).collect();
            list(ListValue { shape, ..ListValue::default() })
        }
        AttrValue::Func(_)
        | AttrValue::Funcs(_)
        | AttrValue::Tensors(_)
        | AttrValue::Placeholder(_) => bail!("no sequence on a graph has such an attribute"),
    })
}

fn shape(shape: &PartialShape) -> TensorShapeProto {
    let Some(dims) = shape.dims() else {
        return TensorShapeProto { unknown_rank: true, ..TensorShapeProto::default() };
    };
    let size = |dim: &Option<usize>| dim.map_or(-1, |size| size as i64);
    let dim = dims.iter().map(|dim| Dim { size: size(dim), name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

fn tensor(tensor: &HostTensor) -> Result<TensorProto> {
    let mut message = TensorProto {
        dtype: tensor.dtype().number(),
        tensor_shape: Some(shape_message(tensor.shape())),
        ..TensorProto::default()
    };
    match tensor.dtype() {
        DType::String => message.string_val = tensor.strings()?.to_vec(),
        _ => message.tensor_content = tensor.bytes().to_vec().into(),
    }
    Ok(message)
}

/// Results of a run that fetches those of a step, results that are not recorded left out; nothing
/// where there is nothing to fetch or to run.
fn run_step(
    context: &Context,
    session: &Session,
    feeds: &[(&str, EagerTensor)],
    number: usize,
    step: &Value,
) -> Result<Option<Result<Vec<EagerTensor>, Error>>> {
    let node = name(number);
    let expected = flat(&step["outputs"]);
    let record = context.registry().find(op_of(step)?).context("the op of a step")?;
    if record.outputs.is_empty() {
        return Ok(Some(session.run(feeds, &[], &[&node])));
    }
    let fetches: Vec<String> = if step["error"].is_object() {
        vec![format!("{node}:0")]
    } else {
        let numbered = expected.iter().enumerate().filter(|(_, output)| is_fetched(output));
        numbered.map(|(output, _)| format!("{node}:{output}")).collect()
    };
    if fetches.is_empty() {
        return Ok(None);
    }
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    Ok(Some(session.run(feeds, &fetches, &[]).map(|fetched| {
        let mut fetched = fetched.into_iter();
        let mut next = |output: &Value| {
            let fetched = if is_fetched(output) { fetched.next() } else { None };
            fetched.unwrap_or_else(|| EagerTensor::scalar(0.0f32))
        };
        expected.iter().map(&mut next).collect()
    })))
}

//! Data sets from outside: how deep they nest, what they call, what they are given.

use crate::{
    context::{Context, ContextOptions},
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    execute::execute,
    execute_op::{complete, execute_op},
    scope::Scope,
};
use ferroflow_ir::{
    AttrValue, Attrs, Code, DType, FunctionDef, FunctionLibrary, HostTensor, Limits, NameAttrList,
    NodeDef, Outlet, PartialShape, ValueType, build::GraphBuilder, registry,
};
use std::sync::Arc;

/// The attributes of elements of one scalar of 64 bits.
fn numbers() -> Attrs {
    Attrs::new()
        .with("output_types", AttrValue::Types(vec![DType::I64]))
        .with("output_shapes", AttrValue::Shapes(vec![PartialShape::scalar()]))
}

fn number(value: i64) -> EagerTensor {
    EagerTensor::scalar(value)
}

fn call(context: &Context, op: &str, attrs: Attrs, inputs: &[EagerTensor]) -> Result<EagerTensor> {
    Ok(execute(context, op, attrs, inputs)?.remove(0))
}

fn range(context: &Context, n: i64) -> EagerTensor {
    call(context, "RangeDataset", numbers(), &[number(0), number(n), number(1)]).unwrap()
}

fn code(result: Result<impl Sized>) -> Code {
    result.err().expect("an error").code()
}

#[test]
fn data_sets_do_not_nest_without_bound() {
    let context = Context::new();
    let mut dataset = range(&context, 3);
    let refused = (0..100_000).find_map(|_| {
        let inputs = [dataset.clone(), number(2)];
        match call(&context, "TakeDataset", numbers(), &inputs) {
            Ok(next) => {
                dataset = next;
                None
            }
            Err(error) => Some(error),
        }
    });
    assert_eq!(refused.expect("an error").code(), Code::ResourceExhausted);
}

/// The attributes of a reduction of one number by a function.
fn reduction(function: &str) -> Attrs {
    numbers()
        .with("f", AttrValue::Func(NameAttrList::new(function)))
        .with("Tstate", AttrValue::Types(vec![DType::I64]))
        .with("Targuments", AttrValue::Types(Vec::new()))
}

/// A node of a function.
fn node(def: &mut FunctionDef, op: &str, attrs: Attrs, inputs: &[Outlet], ty: ValueType) -> Outlet {
    let record = registry::find(op).expect("a record");
    let attrs = record.complete_attrs(attrs).expect("all attributes");
    let node = NodeDef::new(op, record, attrs);
    let node = node.with_inputs(inputs.iter().copied()).with_outputs([ty]);
    Outlet::new(def.graph.add(node).expect("a node"), 0)
}

/// A function of a state and a number that reduces a range by itself.
fn endless() -> FunctionDef {
    let mut builder = GraphBuilder::new();
    let ty = ValueType::new(DType::I64, PartialShape::scalar());
    let state = builder.arg("state", ty.clone()).unwrap();
    builder.arg("number", ty.clone()).unwrap();
    let ends = [0i64, 2, 1]
        .map(|value| builder.constant(&format!("c{value}"), HostTensor::scalar(value)).unwrap());
    let mut def = builder.finish_function("f", &[]);
    let variant = ValueType::new(DType::Variant, PartialShape::scalar());
    let dataset = node(&mut def, "RangeDataset", numbers(), &ends, variant);
    let sum = node(&mut def, "ReduceDataset", reduction("f"), &[dataset, state], ty);
    def.results = vec![("sum".into(), sum)];
    def
}

#[test]
fn functions_of_data_sets_do_not_call_each_other_without_bound() {
    let context = Context::new();
    let library = FunctionLibrary::new();
    library.insert(endless()).unwrap();
    let library = Arc::new(library);
    let scope = Scope::eager(&context, &library);
    let op = registry::find("ReduceDataset").expect("a record");
    let inputs = [range(&context, 2), number(0)];
    let attrs = complete(op, reduction("f"), inputs.iter().map(EagerTensor::dtype)).unwrap();
    let found: Result<Results> = execute_op(scope, op, &attrs, inputs.into_iter().collect());
    assert_eq!(code(found), Code::ResourceExhausted);
}

#[test]
fn what_data_sets_cannot_do_is_an_error() {
    let context = Context::new();
    let step = [number(0), number(3), number(0)];
    assert_eq!(code(call(&context, "RangeDataset", numbers(), &step)), Code::InvalidArgument);
    let batch = |size: i64, drop: bool| {
        let drop = HostTensor::scalar_bool(drop).into();
        call(&context, "BatchDatasetV2", numbers(), &[range(&context, 3), number(size), drop])
    };
    assert_eq!(code(batch(0, false)), Code::InvalidArgument);
    assert_eq!(code(batch(i64::MIN, true)), Code::InvalidArgument);
    assert!(batch(i64::MAX, true).is_ok());
    let no_dataset = [number(1), number(2)];
    assert_eq!(code(call(&context, "TakeDataset", numbers(), &no_dataset)), Code::InvalidArgument);
    let unknown = call(&context, "TFRecordDataset", Attrs::new(), &[]);
    let unknown: Error = unknown.expect_err("an error");
    assert!(unknown.to_string().contains("TFRecordDataset"), "{unknown}");
}

#[test]
fn iterators_without_a_data_set_are_errors() {
    let context = Context::new();
    let iterator = call(&context, "AnonymousIteratorV3", numbers(), &[]).unwrap();
    let next = || call(&context, "IteratorGetNext", numbers(), std::slice::from_ref(&iterator));
    assert_eq!(code(next()), Code::FailedPrecondition);
    let begin = [range(&context, 1), iterator.clone()];
    execute(&context, "MakeIterator", Attrs::new(), &begin).unwrap();
    assert_eq!(next().unwrap().host().unwrap().as_scalar::<i64>().unwrap(), 0);
    assert_eq!(code(next()), Code::OutOfRange);
    assert_eq!(code(next()), Code::OutOfRange);
}

#[test]
fn elements_are_not_kept_without_bound() {
    let limits = Limits { tensor_bytes: 1 << 16, ..Limits::default() };
    let context = Context::with_options(ContextOptions { limits, ..ContextOptions::default() });
    let endless = [range(&context, 3), number(-1)];
    let endless = call(&context, "RepeatDataset", numbers(), &endless).unwrap();
    let no = || EagerTensor::from(HostTensor::scalar_bool(false));
    let most = || number(i64::MAX);
    let batch = [endless.clone(), most(), no()];
    let shuffle = [endless.clone(), most(), number(1), number(2), call_dummy(&context)];
    let window = [endless, most(), number(1), number(1), no()];
    let each = [
        ("BatchDatasetV2", &batch[..]),
        ("ShuffleDatasetV3", &shuffle),
        ("WindowDataset", &window),
    ];
    for (op, inputs) in each {
        let dataset = call(&context, op, numbers(), inputs).unwrap();
        let found = call(&context, "DatasetToSingleElement", numbers(), &[dataset]);
        assert_eq!(code(found), Code::ResourceExhausted, "{op}");
    }
}

fn call_dummy(context: &Context) -> EagerTensor {
    call(context, "DummySeedGenerator", Attrs::new(), &[]).unwrap()
}

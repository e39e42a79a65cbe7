//! Programs of devices: layouts, and the collectives between them.

use super::{
    CollectiveKind::{self, AllGather, AllReduce, Broadcast, ReduceScatter},
    PartitionRequest, Partitioned, mesh_arguments, partition,
};
use crate::{
    attr::Attrs,
    build::GraphBuilder,
    dtype::DType,
    error::{Error, Result},
    graph::Outlet,
    host_tensor::HostTensor,
    layout::{Layout, Mesh},
    pass::{
        execution::constant,
        test_bodies::{function, specialized},
        verify::verify,
    },
    shape::Shape,
    spec::{TensorSpec, ValueType},
};

fn mesh() -> Mesh {
    Mesh::new([("x", 2), ("y", 2)], ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]).unwrap()
}

fn layout(specs: &[&str]) -> Layout {
    Layout::new(&mesh(), specs).unwrap()
}

fn floats(dims: &[usize]) -> ValueType {
    ValueType::new(DType::F32, Shape::new(dims.iter().copied()).unwrap())
}

fn variable(dims: &[usize]) -> ValueType {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    ValueType::handle(DType::Resource, TensorSpec::new(DType::F32, shape))
}

type Build = fn(&mut GraphBuilder, &[Outlet]) -> Result<Vec<Outlet>>;

/// The program of the first device of a function of arguments of these types and layouts.
fn partitioned(
    args: &[(ValueType, &[&str])],
    results: &[&[&str]],
    build: Build,
) -> Result<Partitioned> {
    let types: Vec<ValueType> = args.iter().map(|(ty, _)| ty.clone()).collect();
    let body = specialized(&function(&types, build), &types);
    let mesh = mesh();
    let given = |specs: &&[&str]| (!specs.is_empty()).then(|| layout(specs));
    let arguments: Vec<Option<Layout>> = args.iter().map(|(_, specs)| given(specs)).collect();
    let results: Vec<Option<Layout>> = results.iter().map(given).collect();
    let n_inputs = args.len();
    let request = PartitionRequest {
        mesh: &mesh,
        arguments: &arguments,
        results: &results,
        n_inputs,
        is_leader: true,
    };
    let program = partition(&body, "f", &request)?;
    // The program is a function like others.
    let types: Vec<ValueType> =
        (0..program.def.args.len()).map(|index| program.def.arg_type(index).clone()).collect();
    verify(&specialized(&program.def, &types), "partitioning").unwrap();
    Ok(program)
}

fn kinds(program: &Partitioned) -> Vec<CollectiveKind> {
    program.report.collectives.iter().map(|collective| collective.kind).collect()
}

fn layouts(program: &Partitioned) -> Vec<String> {
    program.results.iter().map(ToString::to_string).collect()
}

const WHOLE: &[&str] = &["unsharded", "unsharded"];
const ROWS: &[&str] = &["x", "unsharded"];
const COLUMNS: &[&str] = &["unsharded", "x"];

fn matrix(specs: &[&'static str]) -> (ValueType, Vec<&'static str>) {
    (floats(&[4, 4]), specs.to_vec())
}

/// Layouts of the results, and the collectives, of a function of matrices in these layouts.
fn check(
    args: &[&[&'static str]],
    build: Build,
    expected: &[&str],
    collectives: &[CollectiveKind],
) -> Partitioned {
    let args: Vec<(ValueType, Vec<&str>)> = args.iter().map(|specs| matrix(specs)).collect();
    let args: Vec<(ValueType, &[&str])> =
        args.iter().map(|(ty, specs)| (ty.clone(), specs.as_slice())).collect();
    let program = partitioned(&args, &[], build).unwrap();
    assert_eq!(layouts(&program), expected, "{}", program.report);
    assert_eq!(kinds(&program), collectives, "{}", program.report);
    program
}

#[test]
fn columns_then_rows_take_one_all_reduce() {
    let pair: Build = |b, x| {
        let hidden = b.call("MatMul", "hidden", &[x[0], x[1]])?[0];
        let hidden = b.call("Tanh", "tanh", &[hidden])?[0];
        b.call("MatMul", "out", &[hidden, x[2]])
    };
    let program = check(&[WHOLE, COLUMNS, ROWS], pair, &["(unsharded, unsharded)"], &[AllReduce]);
    let collective = &program.report.collectives[0];
    assert_eq!((&*collective.value, collective.bytes), ("out", 64));
    assert_eq!(collective.mesh_dims, ["x"]);
    assert_eq!(program.report.bytes(), 64);
    // Data and weights in pieces, along different dimensions.
    let batch: &[&str] = &["y", "unsharded"];
    check(&[batch, COLUMNS, ROWS], pair, &["(y, unsharded)"], &[AllReduce]);
}

#[test]
fn sums_of_terms_are_merged_once() {
    check(
        &[COLUMNS, ROWS],
        |b, x| {
            let one = b.call("MatMul", "one", &[x[0], x[1]])?[0];
            let other = b.call("MatMul", "other", &[x[0], x[1]])?[0];
            let negative = b.call("Neg", "negative", &[other])?[0];
            let sum = b.call("AddV2", "sum", &[one, negative])?[0];
            let order = b.constant("order", HostTensor::vector(&[1i32, 0])?)?;
            let turned = b.call("Transpose", "turned", &[sum, order])?[0];
            b.call("Tanh", "result", &[turned])
        },
        &["(unsharded, unsharded)"],
        &[AllReduce],
    );
}

#[test]
fn terms_that_several_use_are_merged_once() {
    check(
        &[COLUMNS, ROWS],
        |b, x| {
            let product = b.call("MatMul", "product", &[x[0], x[1]])?[0];
            let sum = b.call("AddV2", "sum", &[product, product])?[0];
            Ok(vec![sum, b.call("Neg", "negative", &[product])?[0]])
        },
        &["(unsharded, unsharded)"; 2],
        &[AllReduce],
    );
}

#[test]
fn terms_that_are_wanted_in_pieces_are_scattered() {
    let args = [(floats(&[4, 4]), COLUMNS), (floats(&[4, 4]), ROWS)];
    for specs in [ROWS, COLUMNS] {
        let program = partitioned(&args, &[specs], |b, x| b.call("MatMul", "y", x)).unwrap();
        assert_eq!(kinds(&program), [ReduceScatter]);
        assert_eq!(program.results[0], layout(specs));
    }
}

#[test]
fn whole_operands_are_sliced_for_free() {
    check(&[ROWS, WHOLE], |b, x| b.call("Mul", "y", x), &["(x, unsharded)"], &[]);
    check(&[ROWS, COLUMNS], |b, x| b.call("Mul", "y", x), &["(x, unsharded)"], &[AllGather]);
}

#[test]
fn ops_without_a_rule_have_whole_operands_and_say_so() {
    let program = check(
        &[ROWS],
        |b, x| b.call("MatrixInverse", "inverse", x),
        &["(unsharded, unsharded)"],
        &[AllGather],
    );
    let gathered: Vec<&str> = program.report.gathered().map(|node| node.node.as_str()).collect();
    assert_eq!(gathered, ["inverse"]);
    assert!(program.report.to_string().contains("no rule, operands gathered"));
}

/// The constant vectors of a program.
fn vectors(program: &Partitioned) -> Vec<Vec<i64>> {
    let graph = &program.def.graph;
    let values = graph.ids().filter_map(|id| constant(graph, id.into()));
    values
        .filter(|value| value.shape().rank() == 1)
        .filter_map(|value| value.to_i64s().ok())
        .collect()
}

#[test]
fn shape_operands_are_those_of_pieces() {
    let program = check(
        &[ROWS],
        |b, x| {
            let begin = b.constant("begin", HostTensor::vector(&[0i32, 1])?)?;
            let size = b.constant("size", HostTensor::vector(&[4i32, 3])?)?;
            let part = b.call("Slice", "part", &[x[0], begin, size])?[0];
            let shape = b.constant("shape", HostTensor::vector(&[2i64, 4, 3])?)?;
            b.call("BroadcastTo", "y", &[part, shape])
        },
        &["(unsharded, x, unsharded)"],
        &[],
    );
    let vectors = vectors(&program);
    assert!(vectors.contains(&vec![2, 3]), "{vectors:?}");
    assert!(vectors.contains(&vec![2, 2, 3]), "{vectors:?}");
}

#[test]
fn random_ops_run_on_the_first_device() {
    let build: Build = |b, x| {
        let shape = b.constant("shape", HostTensor::vector(&[4i32, 4])?)?;
        let attrs = Attrs::new().with("dtype", DType::F32);
        let noise = b.call_with("RandomStandardNormal", "noise", attrs, &[shape])?[0];
        b.call("AddV2", "y", &[x[0], noise])
    };
    let program = check(&[ROWS], build, &["(x, unsharded)"], &[Broadcast]);
    assert!(program.is_led);
    assert!(!check(&[ROWS], |b, x| b.call("Neg", "y", x), &["(x, unsharded)"], &[]).is_led);
}

#[test]
fn slots_are_split_as_their_weights() {
    let args = [
        (variable(&[4, 4]), ROWS),
        (variable(&[4, 4]), &[][..]),
        (variable(&[]), &[][..]),
        (floats(&[4, 4]), WHOLE),
    ];
    let program = partitioned(&args, &[], |b, x| {
        let rate = b.constant("rate", HostTensor::scalar(0.1f32))?;
        let inputs = [x[0], x[1], rate, x[3], rate];
        b.call("ResourceApplyMomentum", "step", &inputs)?;
        b.call_with("ReadVariableOp", "y", Attrs::new().with("dtype", DType::F32), &[x[1]])
    });
    let program = program.unwrap();
    assert_eq!(program.arguments[1], layout(ROWS));
    assert_eq!(program.arguments[2].rank(), 0);
    assert_eq!((layouts(&program), kinds(&program)), (vec!["(x, unsharded)".to_string()], vec![]));
}

#[test]
fn layouts_that_do_not_fit_are_errors_with_their_node() {
    let uneven = partitioned(&[(floats(&[3, 4]), ROWS)], &[], |b, x| b.call("Neg", "y", x));
    let message = uneven.unwrap_err().to_string();
    assert!(message.contains("`x0` cannot have layout (x, unsharded)"), "{message}");
    let result = partitioned(&[(floats(&[3, 4]), WHOLE)], &[ROWS], |b, x| b.call("Neg", "y", x));
    let error = result.unwrap_err();
    assert!(matches!(error.root(), Error::Layout { .. }));
    assert!(error.to_string().contains("(node `y`, op Neg"), "{error}");
}

#[test]
fn devices_know_where_they_are() {
    let arguments: Vec<Vec<i32>> = (0..4).map(|device| mesh_arguments(&mesh(), device)).collect();
    assert_eq!(arguments[2][..2], [1, 0]);
    // Devices 0 and 1 differ along y, devices 0 and 2 along x.
    assert_eq!(arguments[0][3], arguments[1][3]);
    assert_eq!(arguments[0][2], arguments[2][2]);
    assert!(arguments[0][2] != arguments[1][2]);
    assert!(arguments.iter().all(|own| own[4] == arguments[0][4]));
}

//! Collective ops on the engine of threads.

use crate::support::{context, f32s, function};
use ferroflow_ir::{Attrs, Code, DType, FunctionDef, HostTensor, Shape};
use ferroflow_runtime::{
    CallableFunction, CompileOptions, Context, ContextOptions, EagerTensor, Error, Result, Results,
    collective::{
        CollectiveCall, CollectiveError, CommunicationThreads, Engine, Group, GroupKey, Replica,
        ThreadsEngine, threads,
    },
    execute,
};
use proptest::prelude::*;
use std::{
    num::NonZeroUsize,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

fn replica(component: usize, n_components: usize, engine: Arc<dyn Engine>) -> Replica {
    let device = "/device:CPU:0".into();
    let next_key = Arc::default();
    Replica { component, n_components, device, engine, next_key, mesh: None, is_updating: false }
}

/// Runs `body` in a replica for each rank, and collects what they return.
fn replicas<R: Send>(size: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    replicas_of(size, |engine| engine, body)
}

/// As [`replicas`], each with an engine that is made of that of threads.
fn replicas_of<R: Send>(
    size: usize,
    engine: impl Fn(Arc<ThreadsEngine>) -> Arc<dyn Engine>,
    body: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let names: Vec<String> = (0..size).map(|rank| format!("replica {rank}")).collect();
    let engines = threads(&names);
    thread::scope(|scope| {
        let start = |(rank, engine): (usize, Arc<dyn Engine>)| {
            let body = &body;
            scope.spawn(move || {
                let _guard = replica(rank, size, engine).enter();
                body(rank)
            })
        };
        let engines = engines.into_iter().map(engine).enumerate();
        let running: Vec<_> = engines.map(start).collect();
        running.into_iter().map(|replica| replica.join().unwrap()).collect()
    })
}

fn scalars(values: [i32; 3]) -> [EagerTensor; 3] {
    values.map(EagerTensor::scalar)
}

fn reduce_attrs(merge: &str, last: &str) -> Attrs {
    Attrs::new().with("merge_op", merge).with("final_op", last)
}

/// A call of an op whose group is in its inputs: group 1, instance 7.
fn grouped(
    context: &Context,
    op: &str,
    attrs: Attrs,
    size: usize,
    tensor: HostTensor,
) -> Result<Results> {
    let [size, group, instance] = scalars([size as i32, 1, 7]);
    execute(context, op, attrs, &[tensor.into(), size, group, instance])
}

/// Numbers of a dtype, different for each rank.
fn numbers(context: &Context, dtype: DType, len: usize, rank: usize) -> HostTensor {
    let values: Vec<f64> =
        (0..len).map(|i| ((i * 7 + rank * 13) % 23) as f64 * 0.37 - 2.0).collect();
    let attrs = Attrs::new().with("DstT", dtype);
    let values = HostTensor::vector(&values).unwrap();
    execute(context, "Cast", attrs, &[values.into()]).unwrap().remove(0).into_host().unwrap()
}

/// Result of collective ops for the tensors of all ranks, in their order.
fn folded(context: &Context, op: &str, parts: &[HostTensor]) -> HostTensor {
    let add = |sum: HostTensor, part: &HostTensor| {
        let inputs = [sum.into(), part.clone().into()];
        execute(context, op, Attrs::new(), &inputs).unwrap().remove(0).into_host().unwrap()
    };
    parts[1..].iter().fold(parts[0].clone(), add)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_reduction_is_that_of_the_tensors_in_the_order_of_the_ranks(
        dtype in prop::sample::select(vec![
            DType::BF16, DType::F16, DType::F32, DType::F64, DType::I32, DType::I64,
        ]),
        len in prop::sample::select(vec![0usize, 1, 15, 16, 17, 1001]),
        size in 1usize..=5,
        (merge, op) in prop::sample::select(vec![
            ("Add", "AddV2"), ("Mul", "Mul"), ("Min", "Minimum"), ("Max", "Maximum"),
        ]),
    ) {
        let context = context();
        let parts: Vec<HostTensor> =
            (0..size).map(|rank| numbers(&context, dtype, len, rank)).collect();
        let expected = folded(&context, op, &parts);
        let results = replicas(size, |rank| {
            let attrs = reduce_attrs(merge, "Id");
            grouped(&context, "CollectiveReduceV2", attrs, size, parts[rank].clone()).unwrap()
        });
        for result in results {
            let result = result[0].host().unwrap();
            prop_assert_eq!(result.bytes(), expected.bytes());
            prop_assert_eq!(result.shape(), expected.shape());
        }
    }

    #[test]
    fn gathers_scatters_and_exchanges_agree(size in 1usize..=5, rows in 0usize..4) {
        let context = context();
        let parts: Vec<HostTensor> = (0..size)
            .map(|rank| numbers(&context, DType::F32, size * rows * 3, rank))
            .map(|part| part.reshaped(Shape::new([size * rows, 3]).unwrap()).unwrap())
            .collect();
        let sum = folded(&context, "AddV2", &parts);
        let results = replicas(size, |rank| {
            let call = |op, attrs| {
                let results = grouped(&context, op, attrs, size, parts[rank].clone()).unwrap();
                results[0].host().unwrap().clone()
            };
            [
                call("CollectiveGatherV2", Attrs::new()),
                call("CollectiveReduceScatterV2", reduce_attrs("Add", "Id")),
                call("CollectiveAllToAllV2", Attrs::new()),
            ]
        });
        let all: Vec<u8> = parts.iter().flat_map(|part| part.bytes().to_vec()).collect();
        for (rank, [gathered, scattered, exchanged]) in results.iter().enumerate() {
            prop_assert_eq!(gathered.bytes(), &all);
            prop_assert_eq!(gathered.shape().dims(), &[size * size * rows, 3]);
            let mine = rank * rows..(rank + 1) * rows;
            prop_assert_eq!(scattered, &sum.rows(mine.clone()).unwrap());
            let sent: Vec<u8> = parts
                .iter()
                .flat_map(|part| part.rows(mine.clone()).unwrap().bytes().to_vec())
                .collect();
            prop_assert_eq!(exchanged.bytes(), &sent);
        }
    }
}

#[test]
fn one_node_meets_its_like_again_and_again() {
    let context = context();
    let results = replicas(3, |rank| {
        (0..100)
            .map(|step| {
                let x = HostTensor::scalar((rank * 100 + step) as i64);
                let attrs = reduce_attrs("Add", "Div");
                let sum = grouped(&context, "CollectiveReduceV2", attrs, 3, x).unwrap();
                sum[0].host().unwrap().as_scalar::<i64>().unwrap()
            })
            .collect::<Vec<_>>()
    });
    for sums in results {
        assert_eq!(sums, (0..100).map(|step| 100 + step).collect::<Vec<i64>>());
    }
}

#[test]
fn one_member_sends_to_all() {
    let context = context();
    let results = replicas(4, |rank| {
        let keys = scalars([4, 1, 3]);
        let result = if rank == 2 {
            let sent = HostTensor::vector(&[1.0f32, 2.0]).unwrap();
            let inputs: Vec<EagerTensor> = std::iter::once(sent.into()).chain(keys).collect();
            execute(&context, "CollectiveBcastSendV2", Attrs::new(), &inputs)
        } else {
            let shape = HostTensor::vector(&[2i32]).unwrap().into();
            let inputs: Vec<EagerTensor> = keys.into_iter().chain([shape]).collect();
            let attrs = Attrs::new().with("T", DType::F32);
            execute(&context, "CollectiveBcastRecvV2", attrs, &inputs)
        };
        result.unwrap()[0].host().unwrap().as_slice::<f32>().unwrap().to_vec()
    });
    assert_eq!(results, vec![vec![1.0, 2.0]; 4]);
}

fn matrix(rows: usize, values: &[i32]) -> EagerTensor {
    let shape = Shape::new([rows, values.len() / rows]).unwrap();
    HostTensor::from_slice(shape, values).unwrap().into()
}

#[test]
fn permutations_leave_zeros_where_nothing_is_sent() {
    let context = context();
    let results = replicas(3, |rank| {
        let x = EagerTensor::scalar(rank as f32 + 1.0);
        let inputs = [x, matrix(2, &[0, 1, 1, 2])];
        let y = execute(&context, "CollectivePermute", Attrs::new(), &inputs).unwrap();
        y[0].host().unwrap().as_scalar::<f32>().unwrap()
    });
    assert_eq!(results, [0.0, 1.0, 2.0]);
}

#[test]
fn parts_of_a_group_reduce_for_themselves() {
    let context = context();
    let results = replicas(4, |rank| {
        let x = EagerTensor::scalar(10i32.pow(rank as u32));
        let rows = matrix(2, &[0, 2, 1, 3]);
        let inputs = [x.clone(), rows.clone()];
        let sum = execute(&context, "CrossReplicaSum", Attrs::new(), &inputs).unwrap();
        let keys = scalars([9, rank as i32, 4]);
        let communicator =
            execute(&context, "CollectiveInitializeCommunicator", Attrs::new(), &keys).unwrap();
        let inputs = [x, communicator[0].clone(), rows];
        let attrs = Attrs::new().with("reduction", "Max");
        let most = execute(&context, "CollectiveReduceV3", attrs, &inputs).unwrap();
        [sum, most].map(|result| result[0].host().unwrap().as_scalar::<i32>().unwrap())
    });
    assert_eq!(results, [[101, 100], [1010, 1000], [101, 100], [1010, 1000]]);
}

#[test]
fn smaller_groups_are_of_those_who_ask() {
    let context = context();
    let results = replicas(4, |rank| {
        let inputs = [matrix(2, &[0, 3, 1, 2]), EagerTensor::scalar(rank as i32)];
        let inputs = [&inputs[..], &[EagerTensor::scalar(40i32)]].concat();
        let group = execute(&context, "CollectiveAssignGroupV2", Attrs::new(), &inputs).unwrap();
        let key = group[1].host().unwrap().as_scalar::<i32>().unwrap();
        let x = EagerTensor::scalar(rank as i32);
        let inputs = [x, group[0].clone(), group[1].clone(), EagerTensor::scalar(5i32)];
        let attrs = reduce_attrs("Add", "Id");
        let sum = execute(&context, "CollectiveReduceV2", attrs, &inputs).unwrap();
        (key, sum[0].host().unwrap().as_scalar::<i32>().unwrap())
    });
    assert_eq!(results, [(40, 3), (41, 3), (41, 3), (40, 3)]);
}

/// A function of a vector that reduces it over a group, as files of TensorFlow hold it.
fn reducing(size: i64) -> FunctionDef {
    function("reducing", &[("x", f32s(&[2]))], |builder, args| {
        let attrs = reduce_attrs("Add", "Id")
            .with("group_size", size)
            .with("group_key", 1i64)
            .with("instance_key", 1i64)
            .with("subdiv_offsets", ferroflow_ir::AttrValue::Ints(vec![0]));
        let sum = builder.call_with("CollectiveReduce", "sum", attrs, &[args[0]])?[0];
        Ok(vec![builder.call("Neg", "y", &[sum])?[0]])
    })
}

#[test]
fn one_compiled_function_runs_in_all_replicas() {
    let context = context();
    let negated = CallableFunction::new(&context, reducing(3)).unwrap();
    let results = replicas(3, |rank| {
        let x = HostTensor::vector(&[rank as f32, 1.0]).unwrap();
        let y = negated.call(&[x.into()]).unwrap();
        y[0].host().unwrap().as_slice::<f32>().unwrap().to_vec()
    });
    assert_eq!(results, vec![vec![-3.0, -3.0]; 3]);
}

/// The engine of threads, with others for the reductions, as engines between processes have them.
#[derive(Debug)]
struct BackgroundEngine(Arc<ThreadsEngine>, CommunicationThreads);

impl Engine for BackgroundEngine {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn resolve(
        &self,
        key: GroupKey,
        size: usize,
        call: &CollectiveCall<'_>,
    ) -> Result<Arc<dyn Group>> {
        self.0.resolve(key, size, call)
    }

    fn communication_threads(&self) -> Option<&CommunicationThreads> {
        Some(&self.1)
    }

    fn leave(&self, reason: &str) {
        self.0.leave(reason);
    }
}

/// A backward pass of three layers, whose gradients are reduced at its end.
fn reducing_gradients() -> FunctionDef {
    function("gradients", &[("x", f32s(&[3]))], |builder, args| {
        let (mut x, mut gradients) = (args[0], Vec::new());
        for layer in 0..3 {
            x = builder.call("Sin", &format!("layer_{layer}"), &[x])?[0];
            gradients.push(x);
        }
        let mut sums = Vec::new();
        for (layer, gradient) in gradients.into_iter().enumerate() {
            let numbers = [2i32, 1].map(HostTensor::scalar).into_iter().enumerate();
            let numbers =
                numbers.map(|(i, number)| builder.constant(&format!("c{layer}{i}"), number));
            let keys = numbers.collect::<ferroflow_ir::Result<Vec<_>>>()?;
            let key = builder.call("_CollectiveKey", &format!("key_{layer}"), &[])?[0];
            let attrs = reduce_attrs("Add", "Div");
            let inputs = [gradient, keys[0], keys[1], key];
            let name = format!("sum_{layer}");
            let sum = builder.call_with("CollectiveReduceV2", &name, attrs, &inputs)?[0];
            sums.push(builder.call("Neg", &format!("step_{layer}"), &[sum])?[0]);
        }
        sums.reverse();
        Ok(sums)
    })
}

#[test]
fn reductions_in_the_background_give_what_those_in_place_do() {
    let run = |has_background: bool, overlap: bool| -> Vec<Vec<Vec<f32>>> {
        let compile = CompileOptions { overlap, ..CompileOptions::default() };
        let options = ContextOptions { compile, ..ContextOptions::default() };
        let context = Context::with_options(options);
        let gradients = CallableFunction::new(&context, reducing_gradients()).unwrap();
        replicas_of(
            2,
            |engine| match has_background {
                true => {
                    let threads = CommunicationThreads::new(NonZeroUsize::new(2).unwrap());
                    Arc::new(BackgroundEngine(engine, threads))
                }
                false => engine,
            },
            |rank| {
                let x = HostTensor::vector(&[rank as f32, 0.5, -1.0]).unwrap();
                let mut values = Vec::new();
                for _ in 0..20 {
                    let results = gradients.call(&[x.clone().into()]).unwrap();
                    for result in results {
                        values.push(result.host().unwrap().as_slice::<f32>().unwrap().to_vec());
                    }
                }
                values
            },
        )
    };
    let expected = run(false, false);
    for (has_background, overlap) in [(false, true), (true, false), (true, true)] {
        assert_eq!(run(has_background, overlap), expected, "{has_background}, {overlap}");
    }
    assert_eq!(expected[0], expected[1]);
}

#[test]
fn a_group_of_one_needs_no_strategy_and_a_larger_one_does() {
    let context = context();
    let x = || EagerTensor::from(HostTensor::vector(&[1.0f32, 2.0]).unwrap());
    let alone = CallableFunction::new(&context, reducing(1)).unwrap();
    let y = alone.call(&[x()]).unwrap();
    assert_eq!(y[0].host().unwrap().as_slice::<f32>().unwrap(), [-1.0, -2.0]);
    let error = CallableFunction::new(&context, reducing(2)).unwrap().call(&[x()]).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.to_string().contains("node `sum`, op CollectiveReduce"), "{error}");
}

fn collective_error(error: Error) -> CollectiveError {
    match error {
        Error::Collective(error) => error,
        other => panic!("{other}"),
    }
}

fn sum(context: &Context, size: usize, tensor: HostTensor, timeout: f32) -> Result<Results> {
    let attrs = reduce_attrs("Add", "Id").with("timeout_seconds", timeout);
    grouped(context, "CollectiveReduceV2", attrs, size, tensor)
}

#[test]
fn whoever_came_names_the_missing() {
    let context = context();
    let begun = Instant::now();
    let results = replicas(3, |rank| {
        if rank != 1 {
            return Some(sum(&context, 3, HostTensor::scalar(1.0f32), 0.05).unwrap_err());
        }
        thread::sleep(Duration::from_millis(300));
        None
    });
    for error in results.into_iter().flatten() {
        assert_eq!(error.code(), Code::DeadlineExceeded);
        let CollectiveError::Deadline { missing, .. } = collective_error(error) else { panic!() };
        assert_eq!(missing, ["replica 1"]);
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_member_that_has_ended_or_panicked_is_not_waited_for() {
    let context = context();
    let names: Vec<String> = (0..3).map(|rank| format!("replica {rank}")).collect();
    let engines = threads(&names);
    thread::scope(|scope| {
        let [a, b, c] = [0, 1, 2].map(|rank| {
            let engine: Arc<dyn Engine> = engines[rank].clone();
            replica(rank, 3, engine)
        });
        let panicking = scope.spawn(move || {
            let _guard = c.enter();
            panic!("on purpose");
        });
        assert!(panicking.join().is_err());
        let waiting = [a, b].map(|replica| {
            let context = &context;
            scope.spawn(move || {
                let _guard = replica.enter();
                sum(context, 3, HostTensor::scalar(1.0f32), 0.0).unwrap_err()
            })
        });
        for waiting in waiting {
            let error = waiting.join().unwrap();
            assert_eq!(error.code(), Code::Unavailable);
            let text = error.to_string();
            assert!(
                text.contains("replica 2 is gone: it panicked") || text.contains("it has ended")
            );
        }
    });
}

#[test]
fn members_that_call_something_else_are_found_out() {
    let context = context();
    let check = |of: &(dyn Fn(usize) -> HostTensor + Sync), found: &str| {
        let errors = replicas(2, |rank| sum(&context, 2, of(rank), 0.0).unwrap_err());
        for error in errors {
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.to_string().contains(found), "{error}");
        }
    };
    check(&|rank| HostTensor::vector(&vec![0.0f32; rank + 1]).unwrap(), "float32[2]");
    check(
        &|rank| if rank == 0 { HostTensor::scalar(1i32) } else { HostTensor::scalar(1i64) },
        "int64",
    );
    let sizes = replicas(2, |rank| sum(&context, rank + 1, HostTensor::scalar(1.0f32), 0.0));
    assert!(sizes.iter().any(Result::is_err));
}

#[test]
fn keys_and_assignments_that_make_no_sense_are_errors() {
    let context = context();
    let x = || EagerTensor::scalar(1.0f32);
    let check = |op: &str, attrs: Attrs, inputs: &[EagerTensor], expected: &str| {
        let error = execute(&context, op, attrs, inputs).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    let [size, group, instance] = scalars([-3, 1, 1]);
    let inputs = [x(), size, group, instance];
    check("CollectiveReduceV2", reduce_attrs("Add", "Id"), &inputs, "group_size");
    check("CrossReplicaSum", Attrs::new(), &[x(), matrix(2, &[0, 1, 1, 2])], "1 twice");
    check("CrossReplicaSum", Attrs::new(), &[x(), matrix(1, &[0, 1])], "runs none");
    check("CollectivePermute", Attrs::new(), &[x(), matrix(1, &[0, 5])], "below 1");
    let inputs = [matrix(1, &[0, 1]), EagerTensor::scalar(4i32), EagerTensor::scalar(1i32)];
    check("CollectiveAssignGroupV2", Attrs::new(), &inputs, "device_index");
    let inputs = [matrix(1, &[0]), EagerTensor::scalar(0i32), EagerTensor::scalar(i32::MAX)];
    assert!(execute(&context, "CollectiveAssignGroupV2", Attrs::new(), &inputs).is_ok());
}

#[test]
fn reductions_of_one_graph_need_no_group() {
    let context = context();
    let parts = [1.0f32, 2.0, 3.5].map(EagerTensor::scalar);
    let attrs = Attrs::new().with("reduction", "prod").with("num_devices", 3i64);
    let y = execute(&context, "NcclReduce", attrs, &parts).unwrap();
    assert_eq!(y[0].host().unwrap().as_scalar::<f32>().unwrap(), 7.0);
    let sums = replicas(2, |rank| {
        let attrs = Attrs::new().with("reduction", "sum").with("num_devices", 2i64);
        let x = [EagerTensor::scalar(rank as f32 + 1.0)];
        let attrs = attrs.with("shared_name", "c0");
        let y = execute(&context, "NcclAllReduce", attrs, &x).unwrap();
        y[0].host().unwrap().as_scalar::<f32>().unwrap()
    });
    assert_eq!(sums, [3.0, 3.0]);
}

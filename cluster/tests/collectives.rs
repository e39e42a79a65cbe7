//! Clusters of several tasks, all in this process, on loopback.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

use ferroflow_cluster::{ClusterConfig, ClusterWorker, Error, JoinOptions};
use ferroflow_ir::{Code, DType, HostTensor, Shape};
use ferroflow_runtime::{
    Context, Result,
    collective::{Broadcast, CollectiveCall, Group, InstanceKey, Reduction, WORLD},
    execute,
};
use std::{
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

/// Addresses that are free.
fn addresses(n: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

/// Runs `body` in each task of a cluster.
fn cluster<R: Send>(n: usize, body: impl Fn(ClusterWorker, &Context) -> R + Sync) -> Vec<R> {
    let tasks = addresses(n);
    thread::scope(|scope| {
        let start = |index: usize| {
            let config = ClusterConfig { tasks: tasks.clone(), index };
            let body = &body;
            scope.spawn(move || {
                let options = JoinOptions { timeout: Duration::from_secs(60) };
                body(ClusterWorker::join(&config, &options).unwrap(), &Context::new())
            })
        };
        let running: Vec<_> = (0..n).map(start).collect();
        running.into_iter().map(|task| task.join().unwrap()).collect()
    })
}

fn reduce(
    worker: &ClusterWorker,
    context: &Context,
    key: i32,
    tensor: HostTensor,
    reduction: Reduction,
) -> Result<HostTensor> {
    let engine = worker.engine();
    let call = CollectiveCall::new(context, "CollectiveReduceV2", InstanceKey::Number(key));
    let call = call.within(Duration::from_secs(30));
    engine.resolve(WORLD, engine.size(), &call)?.all_reduce(&call, tensor, reduction)
}

fn numbers(context: &Context, dtype: DType, len: usize, rank: usize) -> HostTensor {
    let values: Vec<f64> = (0..len).map(|i| ((i * 7 + rank * 13) % 23) as f64 - 9.0).collect();
    let attrs = ferroflow_ir::Attrs::new().with("DstT", dtype);
    let values = HostTensor::vector(&values).unwrap();
    execute(context, "Cast", attrs, &[values.into()]).unwrap().remove(0).into_host().unwrap()
}

#[test]
fn reductions_are_alike_in_all_tasks() {
    let cases: Vec<(DType, usize)> =
        [DType::BF16, DType::F16, DType::F32, DType::F64, DType::I32, DType::I64]
            .into_iter()
            .flat_map(|dtype| [0, 1, 15, 16, 17, 1001].map(|len| (dtype, len)))
            .collect();
    for tasks in 1..=4 {
        let results = cluster(tasks, |worker, context| {
            let rank = worker.index();
            let mut key = 100;
            let mut results = Vec::new();
            for &(dtype, len) in &cases {
                for reduction in [Reduction::SUM, Reduction::named("Max").unwrap()] {
                    let mine = numbers(context, dtype, len, rank);
                    results.push(reduce(&worker, context, key, mine, reduction).unwrap());
                    key += 1;
                }
            }
            results
        });
        let context = Context::new();
        for (number, expected) in results[0].iter().enumerate() {
            let (dtype, len) = cases[number / 2];
            assert!(results.iter().all(|other| other[number].bytes() == expected.bytes()));
            // Sums of small integers are exact in any order.
            let parts: Vec<HostTensor> =
                (0..tasks).map(|rank| numbers(&context, dtype, len, rank)).collect();
            let reduction = [Reduction::SUM, Reduction::named("Max").unwrap()][number % 2];
            let whole = reduction.reduce(&context, &parts).unwrap().unwrap();
            assert_eq!(whole.bytes(), expected.bytes(), "{tasks} tasks, {dtype}[{len}]");
        }
    }
}

/// A vector that says which member it is of.
fn of_member(rank: usize, len: usize) -> HostTensor {
    HostTensor::vector(&(0..len).map(|i| (100 * rank + i) as i32).collect::<Vec<_>>()).unwrap()
}

fn ints(tensor: &HostTensor) -> Vec<i32> {
    tensor.as_slice::<i32>().unwrap().to_vec()
}

/// Runs `body` in the group of all members of a cluster.
fn in_group<R: Send>(
    n: usize,
    body: impl Fn(&dyn Group, &dyn Fn(i32) -> Call) -> R + Sync,
) -> Vec<R> {
    cluster(n, |worker, context| {
        let engine = worker.engine();
        let call = |key: i32| Call { context: context.clone(), key };
        let group = call(0).with(|call| engine.resolve(WORLD, n, call).unwrap());
        body(&*group, &call)
    })
}

/// A call of a collective that ends after half a minute.
struct Call {
    context: Context,
    key: i32,
}

impl Call {
    fn with<R>(&self, body: impl FnOnce(&CollectiveCall<'_>) -> R) -> R {
        let call = CollectiveCall::new(&self.context, "collective", InstanceKey::Number(self.key));
        body(&call.within(Duration::from_secs(30)))
    }
}

#[test]
fn gathers_join_what_all_bring_in_the_order_of_ranks() {
    for n in 1..=4 {
        for len in [0, 1, 40] {
            let expected: Vec<i32> = (0..n).flat_map(|rank| ints(&of_member(rank, len))).collect();
            let gathered = in_group(n, |group, call| {
                call(100).with(|call| group.all_gather(call, of_member(group.rank(), len)).unwrap())
            });
            assert!(gathered.iter().all(|tensor| ints(tensor) == expected), "{gathered:?}");
        }
    }
}

#[test]
fn broadcasts_reach_all_from_any_member() {
    for n in 1..=5 {
        let received = in_group(n, |group, call| {
            let broadcast = |source: usize| {
                let tensor = if source == group.rank() {
                    Broadcast::Send(of_member(source, 33))
                } else {
                    Broadcast::Receive(DType::I32, Shape::new([33]).unwrap().into())
                };
                call(100 + source as i32).with(|call| ints(&group.broadcast(call, tensor).unwrap()))
            };
            (0..n).chain(0..n).map(broadcast).collect::<Vec<_>>()
        });
        let expected: Vec<_> = (0..n).chain(0..n).map(|rank| ints(&of_member(rank, 33))).collect();
        assert!(received.iter().all(|tensors| *tensors == expected), "{n}: {received:?}");
    }
}

#[test]
fn broadcasts_of_two_members_are_errors() {
    let errors = in_group(2, |group, call| {
        call(100).with(|call| {
            let tensor = Broadcast::Send(of_member(group.rank(), 2));
            group.broadcast(call, tensor).map(drop).map_err(|error| error.code())
        })
    });
    assert!(errors.contains(&Err(Code::InvalidArgument)), "{errors:?}");
}

#[test]
fn exchanges_and_permutations_send_each_part_to_its_member() {
    let exchanged = in_group(3, |group, call| {
        let all =
            call(100).with(|call| group.all_to_all(call, of_member(group.rank(), 6)).unwrap());
        let pairs = [(0, 2), (2, 1)];
        let moved = call(101).with(|call| group.permute(call, of_member(group.rank(), 2), &pairs));
        (ints(&all), ints(&moved.unwrap()))
    });
    let expected = [
        (vec![0, 1, 100, 101, 200, 201], vec![0, 0]),
        (vec![2, 3, 102, 103, 202, 203], vec![200, 201]),
        (vec![4, 5, 104, 105, 204, 205], vec![0, 1]),
    ];
    assert_eq!(exchanged, expected);
}

#[test]
fn parts_of_a_group_compute_apart() {
    let sums = in_group(4, |group, call| {
        let rank = group.rank();
        let row = if rank % 2 == 0 { [0, 2] } else { [1, 3] };
        let part = call(99).with(|call| group.part(call, &row)).unwrap();
        let sum = |key: i32| {
            call(key).with(|call| {
                let sum = part.all_reduce(call, of_member(rank, 2), Reduction::SUM).unwrap();
                ints(&sum)
            })
        };
        assert!(call(99).with(|call| group.part(call, &[9, rank])).is_err());
        (sum(100), sum(100))
    });
    for (rank, sum) in sums.into_iter().enumerate() {
        let expected = if rank % 2 == 0 { vec![200, 202] } else { vec![400, 402] };
        assert_eq!(sum, (expected.clone(), expected));
    }
}

/// Two tasks make calls of the same keys and sizes, which are not the same calls.
#[test]
fn programs_that_differ_are_told() {
    let check = |brought: [(HostTensor, Reduction); 2], expected: &str| {
        let errors = cluster(2, |worker, context| {
            let (tensor, reduction) = brought[worker.index()].clone();
            let error = reduce(&worker, context, 100, tensor, reduction).unwrap_err();
            (error.code(), error.to_string())
        });
        let told = |(code, text): &(Code, String)| {
            *code == Code::InvalidArgument && text.contains(expected)
        };
        assert!(errors.iter().any(told), "{errors:?}");
    };
    let floats = || HostTensor::vector(&[1.0f32; 40]).unwrap();
    let ints = HostTensor::vector(&[1i32; 40]).unwrap();
    let max = Reduction::named("Max").unwrap();
    check([(floats(), Reduction::SUM), (ints, Reduction::SUM)], "int32[40]");
    check([(floats(), max), (floats(), Reduction::SUM)], "Max");
    let matrix = floats().reshaped(Shape::new([4, 10]).unwrap()).unwrap();
    check([(matrix, Reduction::SUM), (floats(), Reduction::SUM)], "float32[4,10]");
}

#[test]
fn strings_do_not_travel() {
    let codes = in_group(1, |group, call| {
        let text = HostTensor::scalar_string("x");
        call(100).with(|call| group.all_gather(call, text).unwrap_err().code())
    });
    assert_eq!(codes, [Code::Unimplemented]);
}

#[test]
fn a_key_is_used_again_and_again() {
    let means = cluster(3, |worker, context| {
        let rank = worker.index();
        (0..50)
            .map(|step| {
                let mine = HostTensor::vector(&[rank as f32, step as f32]).unwrap();
                let mean = reduce(&worker, context, 100, mine, Reduction::MEAN).unwrap();
                mean.as_slice::<f32>().unwrap().to_vec()
            })
            .collect::<Vec<_>>()
    });
    for mean in means {
        assert_eq!(mean, (0..50).map(|step| vec![1.0, step as f32]).collect::<Vec<_>>());
    }
}

#[test]
fn a_task_that_ends_is_an_error_of_those_who_wait() {
    let errors = cluster(2, |worker, context| {
        let one = HostTensor::scalar(1.0f32);
        reduce(&worker, context, 100, one.clone(), Reduction::SUM).unwrap();
        if worker.index() == 1 {
            return None;
        }
        let begun = Instant::now();
        let error = reduce(&worker, context, 101, one, Reduction::SUM).unwrap_err();
        Some((error.code(), error.to_string(), begun.elapsed()))
    });
    let (code, text, took) = errors[0].clone().unwrap();
    assert_eq!(code, Code::Unavailable);
    assert!(text.contains("/job:worker/task:1"), "{text}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn tensors_of_other_shapes_and_groups_of_other_sizes_are_errors() {
    let errors = cluster(2, |worker, context| {
        let len = 40 * (worker.index() + 1);
        let mine = HostTensor::zeros(DType::F32, Shape::new([len]).unwrap()).unwrap();
        reduce(&worker, context, 100, mine, Reduction::SUM).map(drop)
    });
    assert!(errors.iter().any(|error| {
        error
            .as_ref()
            .is_err_and(|error| matches!(error.code(), Code::InvalidArgument | Code::Unavailable))
    }));
    let errors = cluster(2, |worker, context| {
        let call = CollectiveCall::new(context, "barrier", InstanceKey::Number(1));
        worker.engine().resolve(7, 3, &call).map(drop).unwrap_err().code()
    });
    assert_eq!(errors, [Code::InvalidArgument; 2]);
}

#[test]
fn a_leader_that_does_not_come_is_an_error_in_time() {
    let config = ClusterConfig { tasks: addresses(2), index: 1 };
    let begun = Instant::now();
    let options = JoinOptions { timeout: Duration::from_millis(500) };
    let error = ClusterWorker::join(&config, &options).unwrap_err();
    assert!(matches!(&error, Error::Task { task, .. } if task == "/job:worker/task:0"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let tasks = vec![taken.local_addr().unwrap().to_string()];
    let error = ClusterWorker::join(&ClusterConfig { tasks, index: 0 }, &options).unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
}

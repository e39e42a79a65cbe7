//! Models of queues: no tuple is lost or taken twice, and no thread waits for what will not come.

use super::*;
use ferroflow_ir::{
    budget::{CallBudget, CallOptions, Cancellation},
    sync::explore,
};
use shuttle::thread;

fn queue(kind: QueueKind, capacity: usize) -> Queue {
    let (dtypes, shapes) = (vec![DType::I32], vec![PartialShape::scalar()]);
    Queue::new(QueueOptions { kind, dtypes, shapes, capacity }).expect("a queue")
}

fn put(queue: &Queue, value: i32) -> Result<()> {
    queue.enqueue(vec![HostTensor::scalar(value)])
}

fn value(tuple: &Tuple) -> i32 {
    tuple[0].as_scalar().expect("a number")
}

/// All that comes until the queue is closed and empty.
fn drain(queue: &Queue) -> Vec<i32> {
    let mut all = Vec::new();
    loop {
        match queue.dequeue() {
            Ok(tuple) => all.push(value(&tuple)),
            Err(error) => {
                assert_eq!(error.code(), Code::OutOfRange, "{error}");
                return all;
            }
        }
    }
}

fn sorted(mut values: Vec<i32>) -> Vec<i32> {
    values.sort_unstable();
    values
}

#[test]
fn each_tuple_is_taken_once_and_in_order() {
    for capacity in [1, 2] {
        explore(700, move || {
            let queue = queue(QueueKind::Fifo, capacity);
            let produce =
                |values: [i32; 2]| values.map(|value| put(&queue, value).expect("it is open"));
            let mut taken = thread::scope(|scope| {
                let producers =
                    [[1, 2], [11, 12]].map(|values| scope.spawn(move || produce(values)));
                let consumers = [(); 2].map(|()| scope.spawn(|| drain(&queue)));
                for producer in producers {
                    producer.join().expect("it ends");
                }
                queue.close(false).expect("it is open");
                consumers.map(|consumer| consumer.join().expect("it ends"))
            });
            for own in &taken {
                let of = |from: i32| own.iter().copied().filter(move |value| value / 10 == from);
                assert!(of(0).is_sorted() && of(1).is_sorted(), "{own:?}");
            }
            let [first, second] = &mut taken;
            first.append(second);
            assert_eq!(sorted(first.clone()), [1, 2, 11, 12]);
        });
    }
}

#[test]
fn what_was_put_in_before_the_end_is_taken_before_it() {
    explore(1500, || {
        let queue = queue(QueueKind::Fifo, 1);
        let (put_in, taken) = thread::scope(|scope| {
            let producers = [1, 2, 3].map(|value| {
                let queue = &queue;
                scope.spawn(move || put(queue, value).ok().map(|()| value))
            });
            let consumer = scope.spawn(|| drain(&queue));
            queue.close(false).expect("it is open");
            let put_in = producers.map(|producer| producer.join().expect("it ends"));
            (put_in, consumer.join().expect("it ends"))
        });
        let put_in: Vec<i32> = put_in.into_iter().flatten().collect();
        assert_eq!(sorted(taken), put_in, "tuples whose producer was told that they are in");
        assert_eq!(queue.len(), 0);
    });
}

#[test]
fn a_queue_that_is_cancelled_ends_all_waits() {
    explore(1500, || {
        let queue = queue(QueueKind::Fifo, 1);
        let (put_in, taken) = thread::scope(|scope| {
            let producers = [1, 2].map(|value| {
                let queue = &queue;
                scope.spawn(move || match put(queue, value) {
                    Ok(()) => Some(value),
                    Err(error) => {
                        assert_eq!(error.code(), Code::Cancelled, "{error}");
                        None
                    }
                })
            });
            let rows = scope.spawn(|| queue.enqueue_many(&[HostTensor::vector(&[8, 9])?]));
            queue.close(true).expect("it is open");
            assert_eq!(queue.close(true).expect_err("it is closed").code(), Code::Cancelled);
            let put_in = producers.map(|producer| producer.join().expect("it ends"));
            // Rows that were put in before the others stay, as in TensorFlow.
            let _ = rows.join().expect("it ends");
            (put_in, drain(&queue))
        });
        let put_in: Vec<i32> = put_in.into_iter().flatten().collect();
        let own: Vec<i32> = taken.into_iter().filter(|value| *value < 8).collect();
        assert_eq!(sorted(own), put_in);
    });
}

#[test]
fn takers_of_several_tuples_are_served_one_after_the_other() {
    explore(1500, || {
        let (queue, context) =
            (queue(QueueKind::Fifo, 4), crate::interleavings::context(Default::default()));
        let take = || queue.dequeue_many(&context, 2, false);
        let outcomes = thread::scope(|scope| {
            let takers = [(); 2].map(|()| scope.spawn(take));
            put(&queue, 1).expect("it is open");
            put(&queue, 2).expect("it is open");
            // One of them has both; the other one waits for the end.
            while queue.len() > 0 {
                thread::yield_now();
            }
            queue.close(false).expect("it is open");
            takers.map(|taker| taker.join().expect("it ends"))
        });
        let n_served = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(n_served, 1);
        for tensors in outcomes.into_iter().flatten() {
            assert_eq!(tensors[0].as_slice::<i32>().expect("numbers"), [1, 2]);
        }
    });
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_takes_nothing_along() {
    explore(1000, || {
        let (queue, context) =
            (queue(QueueKind::Fifo, 2), crate::interleavings::context(Default::default()));
        let cancellation = Cancellation::new();
        let options =
            CallOptions { cancellation: Some(cancellation.clone()), ..Default::default() };
        let outcome = thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let _entered = CallBudget::new(options.clone(), None).enter();
                queue.dequeue_many(&context, 2, false)
            });
            put(&queue, 1).expect("it is open");
            cancellation.cancel();
            put(&queue, 2).expect("it is open");
            taker.join().expect("it ends")
        });
        queue.close(false).expect("it is open");
        let rest = drain(&queue);
        match outcome {
            Ok(tensors) => {
                assert_eq!(tensors[0].as_slice::<i32>().expect("numbers"), [1, 2]);
                assert!(rest.is_empty(), "{rest:?}");
            }
            Err(error) => {
                assert_eq!(error.code(), Code::Cancelled, "{error}");
                assert_eq!(rest, [1, 2]);
            }
        }
    });
}

//! Pipelines as a whole: order, epochs, errors, batches.

use super::{DataPipeline, Example};
use crate::data::{Error, Result};
use ferroflow_ir::DType;
use ferroflow_tracer::Tensor;
use proptest::prelude::*;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

fn numbers(n: usize) -> DataPipeline<usize> {
    DataPipeline::of((0..n).collect::<Vec<_>>())
}

fn all<T: Send + 'static>(pipeline: &DataPipeline<T>, epoch: u64) -> Vec<T> {
    pipeline.epoch(epoch).collect::<Result<_>>().unwrap()
}

fn vector(numbers: &[i32]) -> Example {
    vec![Tensor::from(numbers.to_vec())]
}

#[test]
fn items_are_taken_joined_and_parted() {
    let evens = numbers(10).filter(|n| n % 2 == 0).map(|n| n * 10);
    assert_eq!(all(&evens, 0), [0, 20, 40, 60, 80]);
    assert_eq!(all(&evens.skip(1).take(2).concatenate(&numbers(2)), 0), [20, 40, 0, 1]);
    assert_eq!(all(&numbers(3).zip(&evens), 0), [(0, 0), (1, 20), (2, 40)]);
    assert_eq!(all(&numbers(3).repeat(2), 0), [0, 1, 2, 0, 1, 2]);
    let parts: Vec<Vec<usize>> = (0..3).map(|index| all(&numbers(7).shard(3, index), 0)).collect();
    assert_eq!(parts, [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
}

#[test]
fn pipelines_are_gone_through_in_turn() {
    let tens = |n: usize| numbers(n).map(move |i| 10 * n + i);
    assert_eq!(all(&numbers(4).interleave(2, 2, tens), 0), [10, 20, 21, 30, 31, 32]);
    assert_eq!(all(&numbers(4).flat_map(tens), 0), [10, 20, 21, 30, 31, 32]);
    let three = DataPipeline::of(vec![3, 3, 1]).interleave(2, 1, tens);
    assert_eq!(all(&three, 0), [30, 30, 31, 31, 32, 32, 10]);
}

#[test]
fn epochs_are_shuffled_by_seed_and_number() {
    let shuffled = numbers(50).shuffle(50, 3);
    let (first, second) = (all(&shuffled, 0), all(&shuffled, 1));
    assert_ne!(first, second);
    assert_eq!(first, all(&shuffled, 0));
    assert_ne!(first, all(&numbers(50).shuffle(50, 4), 0));
    let once_more = shuffled.repeat(2);
    assert_eq!(all(&once_more, 0), [first, second].concat());
}

#[test]
fn what_is_cached_is_made_once_and_only_when_it_is_whole() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = {
        let made = made.clone();
        numbers(4).map(move |n| (made.fetch_add(1, Ordering::Relaxed), n).1)
    };
    let cached = counted.cache();
    assert_eq!(cached.epoch(0).take(2).count(), 2);
    assert_eq!((all(&cached, 1), all(&cached, 2)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
    assert_eq!(made.load(Ordering::Relaxed), 2 + 4);
}

#[test]
fn threads_keep_the_order() {
    let slow = |n: usize| {
        std::thread::yield_now();
        Ok::<_, Error>(n * n)
    };
    for threads in [1, 3, 8] {
        let squares = numbers(100).map_in_parallel(threads, slow).prefetch(3);
        assert_eq!(all(&squares, 0), (0..100).map(|n| n * n).collect::<Vec<_>>());
        assert_eq!(squares.epoch(0).take(5).count(), 5);
    }
}

#[test]
#[should_panic(expected = "item 7")]
fn panics_of_threads_go_on() {
    let checked = numbers(20).map_in_parallel(2, |n| {
        assert!(n != 7, "item {n}");
        Ok::<_, Error>(n)
    });
    checked.epoch(0).for_each(drop);
}

#[test]
fn an_error_ends_an_epoch() {
    let check = |n: usize| if n == 3 { Err("three") } else { Ok(n) };
    for found in [numbers(9).try_map(check), numbers(9).map_in_parallel(2, check)] {
        let items: Vec<_> = found.epoch(0).collect();
        assert_eq!(items.len(), 4);
        assert_eq!(items[3].as_ref().unwrap_err().to_string(), "three");
    }
}

#[test]
fn batches_have_one_shape_and_padded_ones_the_largest() {
    let examples = DataPipeline::of(vec![vector(&[1, 2]), vector(&[3, 4]), vector(&[5, 6])]);
    let found: Vec<Vec<i32>> =
        all(&examples.batch(2, false), 0).iter().map(|b| b[0].to_vec().unwrap()).collect();
    assert_eq!(found, [vec![1, 2, 3, 4], vec![5, 6]]);
    assert_eq!(examples.batch(2, true).len(), Some(1));
    let ragged = DataPipeline::of(vec![vector(&[1]), vector(&[2, 3, 4]), vector(&[])]);
    let error = ragged.batch(3, false).epoch(0).next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "example 1 of the batch, tensor 0: int32[3] beside int32[1]");
    let padded = all(&ragged.padded_batch(3, false), 0);
    assert_eq!(padded[0][0].to_vec::<i32>().unwrap(), [1, 0, 0, 2, 3, 4, 0, 0, 0]);
    let words = |words: &[&'static str]| {
        vec![Tensor::from_strings(&[1, words.len()], words.iter().copied()).unwrap()]
    };
    let words = DataPipeline::of(vec![words(&["a", "b"]), words(&["c"])]);
    let padded = all(&words.padded_batch(2, false), 0);
    assert_eq!(padded[0][0].host().unwrap().strings().unwrap(), ["a", "b", "c", ""]);
}

#[test]
fn buckets_hold_examples_of_similar_length() {
    let examples: Vec<Example> =
        [1usize, 5, 2, 6, 3, 1].iter().map(|&n| vector(&vec![7; n])).collect();
    let length = |example: &Example| example[0].host().map_or(0, |host| host.shape()[0]);
    let buckets =
        DataPipeline::of(examples).bucket_by_sequence_length(length, &[3], &[2, 2], false);
    let shapes: Vec<String> = all(&buckets, 0).iter().map(|b| b[0].shape().to_string()).collect();
    assert_eq!(shapes, ["[2,2]", "[2,6]", "[1,1]", "[1,3]"]);
}

proptest! {
    #[test]
    fn shuffled_items_are_the_items(n in 0usize..60, buffer in 0usize..70, seed: u64, epoch: u64) {
        let mut found = all(&numbers(n).shuffle(buffer, seed), epoch);
        found.sort_unstable();
        prop_assert_eq!(found, (0..n).collect::<Vec<_>>());
    }

    #[test]
    fn lengths_that_are_known_are_right(n in 0usize..20, m in 1usize..5, drop: bool) {
        let examples = numbers(n).map(|n| vec![Tensor::from(n as i32)]);
        for batches in [
            examples.batch(m, drop),
            examples.skip(m).take(7),
            examples.shard(m, m / 2),
            examples.repeat(m).concatenate(&examples),
        ] {
            prop_assert_eq!(batches.len(), Some(batches.epoch(0).count()));
        }
    }

    #[test]
    fn padding_keeps_elements(shapes in prop::collection::vec((0usize..4, 0usize..4, 1usize..3), 1..5)) {
        let tensor = |(a, b, c): (usize, usize, usize)| {
            Tensor::from_slice(&[a, b, c], &vec![1.5f32; a * b * c]).unwrap()
        };
        let examples: Vec<Example> = shapes.iter().map(|&shape| vec![tensor(shape)]).collect();
        let batch = all(&DataPipeline::of(examples).padded_batch(9, false), 0).remove(0).remove(0);
        prop_assert_eq!(batch.dtype(), DType::F32);
        let sizes = batch.host().unwrap().shape().dims().to_vec();
        let values = batch.to_vec::<f32>().unwrap();
        for (row, &(a, b, c)) in shapes.iter().enumerate() {
            for i in 0..sizes[1] { for j in 0..sizes[2] { for k in 0..sizes[3] {
                let value = values[((row * sizes[1] + i) * sizes[2] + j) * sizes[3] + k];
                prop_assert_eq!(value, if i < a && j < b && k < c { 1.5 } else { 0.0 });
            } } }
        }
    }
}

/// Items of every kind of pipeline, whose epochs are resumed at each position.
#[test]
fn epochs_go_on_at_any_position() {
    let numbers = DataPipeline::of((0..23).collect::<Vec<i32>>());
    let other = DataPipeline::of((100..117).collect::<Vec<i32>>());
    let filtered = numbers.filter(|n| n % 3 > 0);
    let (sum, pair) = (|n: i32| n + 1, |(a, b): (i32, i32)| a * 1000 + b);
    let kinds: Vec<(&str, DataPipeline<i32>)> = vec![
        ("of", numbers.clone()),
        ("map", numbers.map(sum)),
        ("try_map", numbers.try_map(move |n| Ok::<_, Error>(n + 1))),
        ("filter", filtered.clone()),
        ("take", filtered.take(9)),
        ("skip", filtered.skip(5)),
        ("shard", numbers.shard(4, 2)),
        ("concatenate", filtered.concatenate(&other)),
        ("zip", numbers.zip(&other).map(pair)),
        ("repeat", other.shuffle(5, 1).repeat(3)),
        ("shuffle", numbers.shuffle(7, 3)),
        ("interleave", other.interleave(3, 2, |n| DataPipeline::of(vec![n, n + 1, n + 2]))),
        ("prefetch", numbers.prefetch(3)),
        ("parallel", numbers.map_in_parallel(3, move |n| Ok::<_, Error>(n + 1))),
        ("all", numbers.shuffle(23, 5).map(sum).shard(2, 1).take(8).prefetch(2)),
    ];
    for (name, pipeline) in kinds {
        let cached = pipeline.cache();
        for pipeline in [&pipeline, &cached, &cached] {
            for epoch in [0, 4] {
                let of = |n| pipeline.epoch_from(epoch, n).collect::<Result<Vec<_>>>().unwrap();
                let all = of(0);
                for n in 0..all.len() + 2 {
                    assert_eq!(of(n), all[n.min(all.len())..], "{name} {n}");
                }
            }
        }
    }
    let examples = numbers.map(|n| vec![Tensor::from(n)]);
    for batches in [
        examples.batch(4, false),
        examples.batch(4, true),
        examples.bucket_by_sequence_length(
            |x| x[0].to_scalar::<i32>().unwrap() as usize % 5,
            &[2],
            &[3, 4],
            false,
        ),
    ] {
        let of = |n| -> Vec<Vec<i32>> {
            let batches = batches.epoch_from(1, n).map(|batch| batch.unwrap().remove(0));
            batches.map(|x| x.to_vec::<i32>().unwrap()).collect()
        };
        let all = of(0);
        for n in 0..all.len() + 2 {
            assert_eq!(of(n), all[n.min(all.len())..]);
        }
    }
}

#[test]
fn errors_before_a_position_are_not_passed_over() {
    let failing = DataPipeline::of((0..5).collect::<Vec<i32>>())
        .filter(|_| true)
        .try_map(|n| if n == 1 { Err(std::io::Error::other("broken")) } else { Ok(n) });
    let items: Vec<_> = failing.filter(|_| true).epoch_from(0, 3).collect();
    assert!(items.len() == 1 && items[0].is_err(), "{items:?}");
}

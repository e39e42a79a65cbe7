//! Forests that are built by hand.

use super::*;
use std::num::NonZeroUsize;

fn at_least(column: usize, threshold: f32) -> SplitCondition {
    SplitCondition::AtLeast { column, threshold }
}

/// A tree of one split.
fn stump(
    builder: &mut ForestBuilder,
    condition: SplitCondition,
    if_missing: bool,
    leaves: [Leaf; 2],
) {
    builder.split(condition, if_missing).unwrap();
    leaves.into_iter().for_each(|leaf| builder.leaf(leaf).unwrap());
}

fn predictions(forest: &Forest, examples: &ForestExamples<'_>) -> Vec<f32> {
    let mut found = vec![f32::NAN; examples.len * forest.width()];
    forest.predict(examples, &Threads::single(), &mut found).unwrap();
    found
}

/// Whether the condition, on examples of one column of each type, goes to the positive child; the
/// missing value goes to the negative one.
fn holds(condition: SplitCondition, examples: &ForestExamples<'_>) -> Vec<f32> {
    let columns = Columns { numbers: 1, booleans: 1, categories: vec![5], sets: vec![20] };
    let mut builder = ForestBuilder::new(columns, ForestPrediction::Mean).unwrap();
    stump(&mut builder, condition, false, [Leaf::Score(0.0), Leaf::Score(1.0)]);
    predictions(&builder.finish().unwrap(), examples)
}

#[test]
fn conditions_read_their_columns() {
    let examples = ForestExamples {
        len: 4,
        numbers: &[1.5, 2.0, f32::NAN, f32::INFINITY],
        booleans: &[0.0, 1.0, f32::NAN, 0.5],
        categories: &[3, 0, -1, 9],
        sets: Sets { values: &[4, 17, 3, -1], splits: &[0, 2, 2, 3, 4] },
    };
    let category = |categories| SplitCondition::Category { column: 0, categories };
    let set = |categories| SplitCondition::CategorySet { column: 0, categories };
    let bits = |bytes: &[u8]| Categories::Bitmap(bytes.into());
    let cases = [
        (at_least(0, 2.0), [0.0, 1.0, 0.0, 1.0]),
        (SplitCondition::True { column: 0 }, [0.0, 1.0, 0.0, 1.0]),
        // 9 is no category: it counts as 0.
        (category(Categories::of_list(vec![3, 0])), [1.0, 1.0, 0.0, 1.0]),
        (category(bits(&[0b1000])), [1.0, 0.0, 0.0, 0.0]),
        (set(Categories::of_list(vec![17])), [1.0, 0.0, 0.0, 0.0]),
        (set(bits(&[0b1000])), [0.0, 0.0, 1.0, 0.0]),
        (SplitCondition::Missing(ForestColumn::Number(0)), [0.0, 0.0, 1.0, 0.0]),
        (SplitCondition::Missing(ForestColumn::Set(0)), [0.0, 0.0, 0.0, 1.0]),
    ];
    for (condition, expected) in cases {
        assert_eq!(holds(condition.clone(), &examples), expected, "{condition:?}");
    }
}

#[test]
fn oblique_conditions_replace_missing_numbers_or_have_no_value() {
    let columns = Columns { numbers: 2, ..Columns::default() };
    let examples = ForestExamples {
        len: 3,
        numbers: &[1.0, 1.0, f32::NAN, 1.0, 4.0, 4.0],
        ..ForestExamples::default()
    };
    for (replacement, expected) in [(None, [0.0, 1.0, 1.0]), (Some(-9.0), [0.0, 0.0, 1.0])] {
        let term = |column, weight| ObliqueTerm { column, weight, replacement };
        let terms = Box::new([term(0, 1.0), term(1, 0.5)]);
        let mut builder = ForestBuilder::new(columns.clone(), ForestPrediction::Mean).unwrap();
        let condition = SplitCondition::Oblique { terms, threshold: 2.0 };
        stump(&mut builder, condition, true, [Leaf::Score(0.0), Leaf::Score(1.0)]);
        assert_eq!(predictions(&builder.finish().unwrap(), &examples), expected);
    }
}

#[test]
fn trees_are_walked_to_their_leaves() {
    let columns = Columns { numbers: 1, ..Columns::default() };
    let mut builder = ForestBuilder::new(columns, ForestPrediction::Mean).unwrap();
    // Two levels on both sides, and a tree that is one leaf.
    builder.split(at_least(0, 0.0), false).unwrap();
    stump(&mut builder, at_least(0, -5.0), false, [Leaf::Score(1.0), Leaf::Score(2.0)]);
    assert_eq!(builder.n_whole_trees(), 0);
    stump(&mut builder, at_least(0, 5.0), false, [Leaf::Score(3.0), Leaf::Score(4.0)]);
    builder.leaf(Leaf::Score(10.0)).unwrap();
    assert_eq!(builder.n_whole_trees(), 2);
    let forest = builder.finish().unwrap();
    let examples =
        ForestExamples { len: 4, numbers: &[-9.0, -1.0, 1.0, 9.0], ..ForestExamples::default() };
    assert_eq!(predictions(&forest, &examples), [5.5, 6.0, 6.5, 7.0]);
    let mut leaves = [0; 8];
    forest.leaves(&examples, &mut leaves).unwrap();
    assert_eq!(leaves, [0, 0, 1, 0, 2, 0, 3, 0]);
}

#[test]
fn classes_are_voted_for_or_shared() {
    let columns = Columns { numbers: 1, ..Columns::default() };
    let examples = ForestExamples { len: 1, numbers: &[1.0], ..ForestExamples::default() };
    let of = |by_votes, leaves: [Leaf; 3]| {
        let prediction = ForestPrediction::Classes { n: 3, by_votes };
        let mut builder = ForestBuilder::new(columns.clone(), prediction).unwrap();
        leaves.into_iter().for_each(|leaf| builder.leaf(leaf).unwrap());
        predictions(&builder.finish().unwrap(), &examples)
    };
    let third = 1.0f32 / 3.0;
    assert_eq!(of(true, [2, 0, 2].map(Leaf::Class)), [third, 0.0, 2.0 / 3.0]);
    let shares = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [0.0, 0.0, 1.0]];
    let shared = of(false, shares.map(|shares| Leaf::Shares(shares.into())));
    assert_eq!(shared, [0.25, 0.25, 0.5]);
}

#[test]
fn boosted_trees_take_turns_and_end_in_a_link() {
    let columns = Columns::default();
    let examples = ForestExamples { len: 1, ..ForestExamples::default() };
    let of = |initial: &[f32], link, scores: &[f32]| {
        let prediction = ForestPrediction::Boosted { initial: initial.into(), link };
        let mut builder = ForestBuilder::new(columns.clone(), prediction).unwrap();
        scores.iter().for_each(|score| builder.leaf(Leaf::Score(*score)).unwrap());
        predictions(&builder.finish().unwrap(), &examples)
    };
    assert_eq!(of(&[1.0, -1.0], Link::Identity, &[0.5, 0.25, 2.0, 3.0]), [3.5, 2.25]);
    assert_eq!(of(&[0.0], Link::Logistic, &[]), [0.5, 0.5]);
    assert_eq!(of(&[30.0], Link::Exponential, &[5.0]), [19f32.exp()]);
    assert_eq!(of(&[1e5, 1e5], Link::Softmax, &[0.0, 0.0]), [0.5, 0.5]);
}

#[test]
fn isolated_examples_are_near_one() {
    let prediction = ForestPrediction::Isolation { n_examples: 256 };
    let mut builder =
        ForestBuilder::new(Columns { numbers: 1, ..Columns::default() }, prediction).unwrap();
    stump(&mut builder, at_least(0, 5.0), false, [Leaf::Examples(255), Leaf::Examples(1)]);
    let forest = builder.finish().unwrap();
    let examples = ForestExamples { len: 2, numbers: &[0.0, 9.0], ..ForestExamples::default() };
    let found = predictions(&forest, &examples);
    // By hand: c(256) = 10.244771, c(255) = 10.236912.
    let expected = [-(1.0 + 10.236_912f32) / 10.244_771, -1.0 / 10.244_771];
    for (found, expected) in found.iter().zip(expected.map(f32::exp2)) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn predictions_do_not_depend_on_threads() {
    let columns = Columns { numbers: 1, ..Columns::default() };
    let mut builder = ForestBuilder::new(columns, ForestPrediction::Mean).unwrap();
    for tree in 0..50 {
        let threshold = tree as f32 * 7.0;
        stump(&mut builder, at_least(0, threshold), false, [Leaf::Score(0.1), Leaf::Score(0.7)]);
    }
    let forest = builder.finish().unwrap();
    let numbers: Vec<f32> = (0..1000).map(|index| (index * 37 % 1000) as f32 / 3.0).collect();
    let examples =
        ForestExamples { len: numbers.len(), numbers: &numbers, ..ForestExamples::default() };
    let mut by_three = vec![0.0; numbers.len()];
    let threads = Threads::new(NonZeroUsize::new(3).unwrap());
    forest.predict(&examples, &threads, &mut by_three).unwrap();
    assert_eq!(by_three, predictions(&forest, &examples));
}

#[test]
fn what_does_not_fit_is_refused() {
    let one = || Columns { numbers: 1, sets: vec![3], ..Columns::default() };
    let builder = || ForestBuilder::new(one(), ForestPrediction::Mean).unwrap();
    assert!(builder().split(at_least(1, 0.0), false).is_err());
    assert!(builder().leaf(Leaf::Class(0)).is_err());
    let mut part = builder();
    part.split(at_least(0, 0.0), false).unwrap();
    part.leaf(Leaf::Score(1.0)).unwrap();
    assert!(part.finish().is_err());
    let classes = ForestPrediction::Classes { n: 2, by_votes: true };
    assert!(ForestBuilder::new(one(), classes).unwrap().leaf(Leaf::Class(2)).is_err());
    let boosted = ForestPrediction::Boosted { initial: vec![0.0; 2], link: Link::Identity };
    let mut odd = ForestBuilder::new(one(), boosted).unwrap();
    odd.leaf(Leaf::Score(1.0)).unwrap();
    assert!(odd.finish().is_err());
    let initial = ForestPrediction::Boosted { initial: vec![], link: Link::Softmax };
    assert!(ForestBuilder::new(one(), initial).is_err());

    let forest = builder().finish().unwrap();
    let values = [0, 1];
    let refused = |numbers: &[f32], splits: &[i64]| {
        let sets = Sets { values: &values, splits };
        let examples = ForestExamples { len: 2, numbers, sets, ..ForestExamples::default() };
        forest.predict(&examples, &Threads::single(), &mut [0.0; 2]).is_err()
    };
    assert!(!refused(&[0.0; 2], &[0, 1, 2]));
    assert!(refused(&[0.0; 3], &[0, 1, 2]));
    for splits in [&[][..], &[0, 1], &[0, 2, 1], &[-1, 0, 1], &[0, 1, 3]] {
        assert!(refused(&[0.0; 2], splits), "{splits:?}");
    }
}

/// A class is a number in a header: there may be more than any memory holds.
#[test]
fn no_examples_have_any_number_of_classes() {
    let prediction = ForestPrediction::Classes { n: usize::MAX / 2, by_votes: true };
    let mut builder = ForestBuilder::new(Columns::default(), prediction).unwrap();
    builder.leaf(Leaf::Class(5)).unwrap();
    let forest = builder.finish().unwrap();
    forest.predict(&ForestExamples::default(), &Threads::single(), &mut []).unwrap();
}

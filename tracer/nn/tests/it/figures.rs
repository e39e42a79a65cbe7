//! Figures that programs of Keras printed: a name, a kind and elements on each line.

use ferroflow_tracer::Tensor;
use std::collections::BTreeMap;

/// The elements by name and kind.
pub(crate) type Figures = BTreeMap<(&'static str, &'static str), Vec<f32>>;

pub(crate) fn figures(text: &'static str) -> Figures {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let key = (words.next().unwrap(), words.next().unwrap());
        (key, words.map(|word| word.parse().unwrap()).collect())
    };
    text.lines().map(line).collect()
}

/// `fractions` of the programs of Keras, from an index on.
pub(crate) fn fractions(n: usize, start: usize) -> Vec<f32> {
    (start..start + n).map(|i| ((i * 7 % 23) as f64 + 1.0) as f32 / 25.0).collect()
}

/// `classes` of the programs of Keras, of five, from an index on.
pub(crate) fn classes(n: usize, start: usize) -> Vec<i32> {
    (start..start + n).map(|i| (i as i32 * 5 + 2) % 5).collect()
}

/// A row of 0 with one 1 for each class of five.
pub(crate) fn one_hot(classes: &[i32]) -> Vec<f32> {
    let bit = |set: bool| f32::from(u8::from(set));
    classes.iter().flat_map(|&class| (0..5).map(move |other| bit(other == class))).collect()
}

#[track_caller]
pub(crate) fn near(name: &str, found: &Tensor, expected: &[f32]) {
    let found = found.to_vec::<f32>().unwrap();
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0));
    assert!(same, "{name}: {found:?} instead of {expected:?}");
}

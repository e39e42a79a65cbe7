//! Distributions over classes, from which candidates for sampled losses are drawn.
//!
//! Sources: `range_sampler.cc`, `weighted_picker.cc` and `distribution_sampler.h` of TensorFlow.

use crate::{error::Result, resource::Resource, sync::Mutex};
use ferroflow_ir::{DType, Error as IrError, Shape};
use ferroflow_kernels::{check_size, philox::Words};

/// A distribution over the classes `0..range`.
pub(crate) trait Classes {
    /// The number of classes.
    fn range(&self) -> i64;

    /// A class.
    fn draw(&self, words: &mut Words) -> i64;

    /// The probability of a class.
    fn probability(&self, class: i64) -> f32;

    /// Whether every class is a candidate.
    fn all(&self) -> bool {
        false
    }
}

/// The classes `0..n`, each once.
#[derive(Debug)]
pub(crate) struct AllClasses(pub(crate) i64);

impl Classes for AllClasses {
    fn range(&self) -> i64 {
        self.0
    }

    fn draw(&self, _: &mut Words) -> i64 {
        0
    }

    fn probability(&self, _: i64) -> f32 {
        1.0
    }

    fn all(&self) -> bool {
        true
    }
}

/// The classes `0..n`, equally often.
#[derive(Debug)]
pub(crate) struct UniformClasses(pub(crate) i64);

impl Classes for UniformClasses {
    fn range(&self) -> i64 {
        self.0
    }

    fn draw(&self, words: &mut Words) -> i64 {
        words.below_u64(self.0.unsigned_abs()) as i64
    }

    fn probability(&self, _: i64) -> f32 {
        (1.0 / self.0 as f64) as f32
    }
}

/// The classes `0..n`, of which the logarithm is uniform.
#[derive(Debug)]
pub(crate) struct LogUniformClasses(pub(crate) i64);

impl LogUniformClasses {
    fn log_range(&self) -> f64 {
        (self.0 as f64).ln_1p()
    }
}

impl Classes for LogUniformClasses {
    fn range(&self) -> i64 {
        self.0
    }

    fn draw(&self, words: &mut Words) -> i64 {
        ((words.next_f64() * self.log_range()).exp() as i64 - 1).rem_euclid(self.0)
    }

    fn probability(&self, class: i64) -> f32 {
        (((class as f64 + 2.0) / (class as f64 + 1.0)).ln() / self.log_range()) as f32
    }
}

/// Weights of classes, by the alias method: a class or another one, for each position.
#[derive(Debug)]
pub(crate) struct WeightedClasses {
    weights: Vec<f32>,
    total: f32,
    /// Probability of the class of an index against its alias, and the alias.
    places: Vec<(f32, usize)>,
}

impl WeightedClasses {
    /// Classes as often as their weights say.
    pub(crate) fn new(weights: Vec<f32>) -> WeightedClasses {
        let n = weights.len();
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let mut shares: Vec<f64> =
            weights.iter().map(|&weight| f64::from(weight * n as f32) / sum).collect();
        let (mut low, mut high): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&class| shares[class] < 1.0);
        let mut others: Vec<usize> = (0..n).collect();
        while let (Some(&poor), Some(&rich)) = (low.last(), high.last()) {
            low.pop();
            high.pop();
            others[poor] = rich;
            shares[rich] -= 1.0 - shares[poor];
            if shares[rich] < 1.0 { low.push(rich) } else { high.push(rich) }
        }
        for class in low.into_iter().chain(high) {
            (shares[class], others[class]) = (1.0, class);
        }
        let alias_table = shares.into_iter().map(|share| share as f32).zip(others).collect();
        WeightedClasses { total: weights.iter().sum(), weights, places: alias_table }
    }
}

impl Classes for WeightedClasses {
    fn range(&self) -> i64 {
        self.weights.len() as i64
    }

    fn draw(&self, words: &mut Words) -> i64 {
        let choice = words.next_f32();
        let class_index = words.below_u32(self.places.len() as u32) as usize;
        let (share, other) = self.places[class_index];
        (if choice < share { class_index } else { other }) as i64
    }

    fn probability(&self, class: i64) -> f32 {
        let weight = usize::try_from(class).ok().and_then(|class| self.weights.get(class));
        weight.copied().unwrap_or(0.0) / self.total
    }
}

/// The weights in the last columns of comma-separated values.
///
/// # Errors
///
/// When a weight is no number.
pub(crate) fn last_columns(text: &[u8]) -> Result<Vec<f32>> {
    let text = String::from_utf8_lossy(text);
    let weight = |line: &str| {
        let last = line.rsplit(',').next().unwrap_or(line).trim();
        last.parse().map_err(|_| {
            let found = line.to_string();
            IrError::argument("a file of classes", "line", "with a weight at the end", found).into()
        })
    };
    text.lines().map(weight).collect()
}

/// Classes as often as they were seen, and once more.
#[derive(Debug)]
pub(crate) struct CountedClasses(Mutex<Levels>);

/// Counts of classes, and above them sums of two neighbours, up to the total.
#[derive(Debug)]
struct Levels {
    range: usize,
    /// From the total down to the counts.
    sums: Vec<Vec<u32>>,
}

impl CountedClasses {
    /// Counts of 1 for so many classes.
    ///
    /// # Errors
    ///
    /// When there is no room for them.
    pub(crate) fn new(range: i64, limit: usize) -> Result<CountedClasses> {
        let wrong = || {
            let expected = format!("below {}", i32::MAX);
            IrError::argument("a candidate sampler", "range_max", expected, range)
        };
        let fit = usize::try_from(range).ok().filter(|&range| range < i32::MAX as usize);
        let range = fit.ok_or_else(wrong)?;
        check_size(DType::I64, &Shape::new([range])?, limit)?;
        let mut counts = vec![1; range];
        counts.resize(range.next_power_of_two(), 0);
        let mut sums = vec![counts];
        while sums[0].len() > 1 {
            let above = sums[0].chunks(2).map(|pair| pair.iter().sum()).collect();
            sums.insert(0, above);
        }
        Ok(CountedClasses(Mutex::new(Levels { range, sums })))
    }

    /// Counts classes that were seen.
    pub(crate) fn add(&self, classes: &[i64]) {
        let levels = &mut *self.0.lock();
        let room = (i32::MAX as u32).saturating_sub(levels.sums[0][0]) as usize;
        let known = |class: &i64| usize::try_from(*class).ok().filter(|&c| c < levels.range);
        let seen: Vec<usize> = classes.iter().take(room).filter_map(known).collect();
        for class in seen {
            let n_levels = levels.sums.len();
            for (depth, sums) in levels.sums.iter_mut().enumerate() {
                sums[class >> (n_levels - 1 - depth)] += 1;
            }
        }
    }
}

impl Classes for CountedClasses {
    fn range(&self) -> i64 {
        self.0.lock().range as i64
    }

    fn draw(&self, words: &mut Words) -> i64 {
        let levels = self.0.lock();
        let mut position = words.below_u32(levels.sums[0][0]);
        let mut index = 0;
        for sums in &levels.sums[1..] {
            index *= 2;
            if position >= sums[index] {
                position -= sums[index];
                index += 1;
            }
        }
        index as i64
    }

    fn probability(&self, class: i64) -> f32 {
        let levels = self.0.lock();
        let counts = levels.sums.last().map_or(&[][..], Vec::as_slice);
        let count = usize::try_from(class).ok().and_then(|class| counts.get(class));
        count.copied().unwrap_or(0) as f32 / levels.sums[0][0] as f32
    }
}

impl Resource for CountedClasses {
    fn kind(&self) -> &'static str {
        "counts of classes"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_kernels::philox::Philox;

    fn frequencies(classes: &dyn Classes) -> Vec<f32> {
        let mut words = Words::new(Philox::new(3, 4));
        let mut counts = vec![0.0f32; classes.range() as usize];
        (0..20_000).for_each(|_| counts[classes.draw(&mut words) as usize] += 1.0);
        counts.iter().map(|count| count / 20_000.0).collect()
    }

    fn check(classes: &dyn Classes) {
        for (class, found) in frequencies(classes).into_iter().enumerate() {
            assert!((found - classes.probability(class as i64)).abs() < 0.02, "{class}: {found}");
        }
    }

    #[test]
    fn classes_are_as_frequent_as_they_are_probable() {
        check(&UniformClasses(5));
        check(&LogUniformClasses(5));
        check(&WeightedClasses::new(vec![3.0, 0.0, 1.0, 0.5, 2.0]));
        let counts = CountedClasses::new(5, 1 << 20).unwrap();
        counts.add(&[4, 4, 4, 1, 99, -1]);
        assert_eq!(counts.probability(4), 4.0 / 9.0);
        check(&counts);
    }
}

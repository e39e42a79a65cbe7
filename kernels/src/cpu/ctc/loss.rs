//! The loss: how improbable a sequence of labels is, by the forward and backward variables of
//! Graves et al. 2006.

use super::{Sizes, log_add, log_softmax};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{Code, DType, Error, workspace};
use num_traits::AsPrimitive;
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
struct Rule {
    sizes: Sizes,
    /// Whether repeated labels of the target count once.
    collapse: bool,
    /// Whether repeated labels without a blank between them count once.
    merge: bool,
    /// Whether targets that are too long are passed over.
    ignore_longer: bool,
}

pub(super) fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let rule = Rule {
        sizes: Sizes::new(call.op.name, call.shape(0)),
        collapse: call.attrs.bool("preprocess_collapse_repeated")?,
        merge: call.attrs.bool("ctc_merge_repeated")?,
        ignore_longer: call.attrs.bool("ignore_longer_outputs_than_inputs")?,
    };
    Ok(match call.dtype(0) {
        DType::F32 => Some(kernel::<f32>(rule)),
        DType::F64 => Some(kernel::<f64>(rule)),
        _ => None,
    })
}

fn kernel<T: Number + Into<f64>>(rule: Rule) -> Arc<dyn Kernel>
where
    f64: AsPrimitive<T>,
{
    Arc::new(move |io: &mut Io<'_>| {
        let Sizes { batch, classes, .. } = rule.sizes;
        let scores: &[T] = io.input(0);
        let lengths = rule.sizes.lengths(io, 3, Code::InvalidArgument)?;
        let targets = rule.targets(io)?;
        for (index, (target, &length)) in targets.iter().zip(&lengths).enumerate() {
            if target.len() > length && !rule.ignore_longer {
                let found = format!("{} labels in {length} steps of {index}", target.len());
                return Err(rule.wrong("no longer than the sequence", found));
            }
        }
        let mut results: Vec<(f64, Vec<f64>)> = workspace::filled((0.0, Vec::new()), batch)?;
        io.threads().for_each(results.iter_mut().enumerate(), |(index, result)| {
            let (target, length) = (&targets[index], lengths[index]);
            if length > 0 && target.len() <= length {
                let row = |time| log_softmax(rule.sizes.row(scores, time, index));
                let rows: Vec<Vec<f64>> = (0..length).map(row).collect();
                *result = rule.loss(target, &rows);
            }
        });
        let (loss, gradient): (&mut [T], &mut [T]) = (io.output(0), io.output(1));
        loss.iter_mut().zip(&results).for_each(|(out, (loss, _))| *out = loss.as_());
        for (row, out) in gradient.chunks_mut(classes).enumerate() {
            let (time, index) = (row / batch, row % batch);
            match results[index].1.get(time * classes..(time + 1) * classes) {
                Some(gradient) => out.iter_mut().zip(gradient).for_each(|(out, x)| *out = x.as_()),
                None => out.fill(T::ZERO),
            }
        }
        Ok(())
    })
}

impl Rule {
    fn wrong(&self, expected: &'static str, found: impl std::fmt::Display) -> crate::Error {
        Error::argument(self.sizes.op, "labels", expected, found).into()
    }

    /// The labels of each element of the batch.
    fn targets(&self, io: &Io<'_>) -> Result<Vec<Vec<usize>>> {
        let Sizes { batch, classes, .. } = self.sizes;
        let (indices, values): (&[i64], &[i32]) = (io.input(1), io.input(2));
        let mut labels: Vec<Vec<i32>> = workspace::filled(Vec::new(), batch)?;
        let mut before = None;
        for (place, &value) in indices.as_chunks::<2>().0.iter().zip(values) {
            let [index, step] = *place;
            let in_order = before.is_none_or(|before| before < *place);
            let labels = usize::try_from(index).ok().and_then(|index| labels.get_mut(index));
            match labels {
                Some(labels) if in_order && step >= 0 => labels.push(value),
                _ => return Err(self.wrong("a sparse matrix in order", format!("{place:?}"))),
            }
            before = Some(*place);
        }
        let blank = classes - 1;
        let target = |(index, mut labels): (usize, Vec<i32>)| {
            if self.collapse {
                labels.dedup();
            }
            if labels.is_empty() {
                return Err(self.wrong("there", format!("none for {index} of the batch")));
            }
            let is_label = |label: i32| usize::try_from(label).is_ok_and(|label| label < blank);
            let end = labels.iter().rposition(|&label| label < blank as i32);
            let labels = &labels[..end.map_or(0, |last| last + 1)];
            match labels.iter().find(|&&label| !is_label(label)) {
                Some(label) => Err(self.wrong("of a class that is not the blank", label)),
                None => Ok(labels.iter().map(|&label| label as usize).collect()),
            }
        };
        labels.into_iter().enumerate().map(target).collect()
    }

    /// The loss of a target, and its gradient by the scores, `[time, classes]`.
    fn loss(&self, target: &[usize], rows: &[Vec<f64>]) -> (f64, Vec<f64>) {
        let blank = self.sizes.classes - 1;
        let states: Vec<usize> =
            target.iter().flat_map(|&label| [blank, label]).chain([blank]).collect();
        let forward = self.forward(&states, rows);
        // Backward in time is forward through everything reversed.
        let (reversed, later): (Vec<usize>, Vec<Vec<f64>>) =
            (states.iter().rev().copied().collect(), rows.iter().rev().cloned().collect());
        let backward = self.forward(&reversed, &later);
        let n = states.len();
        // Both count the score of the time step.
        let both = |time: usize, state: usize| match rows[time][states[state]] {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            score => forward[time][state] + backward[rows.len() - 1 - time][n - 1 - state] - score,
        };
        let total = (0..n).fold(f64::NEG_INFINITY, |sum, state| log_add(sum, both(0, state)));
        let mut gradient = Vec::with_capacity(rows.len() * rows[0].len());
        for (time, row) in rows.iter().enumerate() {
            let mut used = vec![f64::NEG_INFINITY; row.len()];
            for (state, &label) in states.iter().enumerate() {
                used[label] = log_add(used[label], both(time, state));
            }
            let share =
                |used: f64| if total > f64::NEG_INFINITY { (used - total).exp() } else { 0.0 };
            gradient.extend(row.iter().zip(used).map(|(y, used)| y.exp() - share(used)));
        }
        (-total, gradient)
    }

    /// For each time step and state, the probability of being there, over all ways from the start.
    fn forward(&self, states: &[usize], rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let blank = self.sizes.classes - 1;
        let mut result: Vec<Vec<f64>> = Vec::with_capacity(rows.len());
        for row in rows {
            let sum = |state: usize| {
                let Some(before) = result.last() else {
                    return if state < 2 { 0.0 } else { f64::NEG_INFINITY };
                };
                let label = states[state];
                let mut sum = f64::NEG_INFINITY;
                if self.merge || label == blank {
                    sum = before[state];
                }
                if state > 0 {
                    sum = log_add(sum, before[state - 1]);
                }
                if state > 1 && label != blank && !(self.merge && label == states[state - 2]) {
                    sum = log_add(sum, before[state - 2]);
                }
                sum
            };
            let next = (0..states.len()).map(|state| sum(state) + row[states[state]]).collect();
            result.push(next);
        }
        result
    }
}

//! The choice of boxes that do not overlap: `NonMaxSuppression…`, `CombinedNonMaxSuppression`.
//!
//! The rules are those of `tensorflow/core/kernels/image/non_max_suppression_op.cc`.

use super::equal_order::{self, LargestFirst};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered as _},
    wide::WideElement,
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use half::f16;
use std::{cmp::Ordering, collections::BinaryHeap, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("CombinedNonMaxSuppression", combined),
    ("NonMaxSuppression", build),
    ("NonMaxSuppressionV2", build),
    ("NonMaxSuppressionV3", build),
    ("NonMaxSuppressionV4", build),
    ("NonMaxSuppressionV5", build),
    ("NonMaxSuppressionWithOverlaps", with_overlaps),
];

/// Two opposite corners, as row and column each.
type Corners = [f32; 4];

/// The part of the area of two boxes that both have.
fn overlap(a: &Corners, b: &Corners) -> f32 {
    let sides = |x: &Corners, axis: usize| (x[axis].min(x[axis + 2]), x[axis].max(x[axis + 2]));
    let area = |x: &Corners| {
        let ((top, bottom), (left, right)) = (sides(x, 0), sides(x, 1));
        (bottom - top) * (right - left)
    };
    let (area_a, area_b) = (area(a), area(b));
    if area_a <= 0.0 || area_b <= 0.0 {
        return 0.0;
    }
    let common = |axis: usize| {
        let ((a, b), (c, d)) = (sides(a, axis), sides(b, axis));
        (b.min(d) - a.max(c)).max(0.0)
    };
    let common = common(0) * common(1);
    common / (area_a + area_b - common)
}

/// Overlap of the boxes of a list.
fn among(boxes: &[Corners]) -> impl Fn(usize, usize) -> f32 {
    |a, b| overlap(&boxes[a], &boxes[b])
}

/// When boxes are chosen.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// Greatest number.
    most: usize,
    /// Boxes that overlap more exclude each other, unless overlap lowers scores.
    overlap: f32,
    /// Boxes need a higher score.
    score: f32,
    /// Where positive, the width of the bell curve by which overlap lowers scores.
    sigma: f32,
}

impl Rule {
    fn is_above(&self, score: f32) -> bool {
        score.flushed() > self.score.flushed()
    }
}

/// A box that may be chosen. The best is the largest: a high score, then a low index.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    score: f32,
    index: usize,
    /// Number of chosen boxes it has been compared with.
    compared: usize,
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.score.flushed().total_cmp(&other.score.flushed()).then(other.index.cmp(&self.index))
    }
}

/// The chosen boxes with their scores, best first.
fn choose(rule: Rule, overlap: impl Fn(usize, usize) -> f32, scores: &[f32]) -> Vec<(usize, f32)> {
    let candidate = |(index, &score): (usize, &f32)| {
        rule.is_above(score).then_some(Candidate { score, index, compared: 0 })
    };
    let mut queue: BinaryHeap<Candidate> =
        scores.iter().enumerate().filter_map(candidate).collect();
    let soft = rule.sigma > 0.0;
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    while chosen.len() < rule.most
        && let Some(mut next) = queue.pop()
    {
        let before = next.score;
        let mut excluded = false;
        for &(other, _) in chosen[next.compared..].iter().rev() {
            let common = overlap(next.index, other);
            if soft {
                next.score *= (-0.5 / rule.sigma * common * common).exp();
            } else if common > rule.overlap {
                excluded = true;
            }
            if excluded || !rule.is_above(next.score) {
                break;
            }
        }
        next.compared = chosen.len();
        if excluded {
            continue;
        }
        if next.score == before {
            chosen.push((next.index, next.score));
        } else if rule.is_above(next.score) {
            queue.push(next);
        }
    }
    chosen
}

/// A box among those of all classes; one that is absent has a class of -1.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    score: f32,
    class: f32,
    corners: Corners,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen { score: -1.0, class: -1.0, corners: [0.0; 4] }
    }
}

/// The chosen boxes of a class with their scores, best first. Those of one score come in the order of a
/// heap.
fn choose_of_class(
    rule: Rule,
    overlap: impl Fn(usize, usize) -> f32,
    scores: &[f32],
) -> Vec<(usize, f32)> {
    let mut queue = LargestFirst::new(|a: &(usize, f32), b| a.1.flushed() < b.1.flushed());
    let above = scores.iter().copied().enumerate().filter(|(_, score)| rule.is_above(*score));
    above.for_each(|candidate| queue.push(candidate));
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    while chosen.len() < rule.most
        && let Some((index, score)) = queue.pop()
    {
        if chosen.iter().rev().all(|&(other, _)| !(overlap(index, other) > rule.overlap)) {
            chosen.push((index, score));
        }
    }
    chosen
}

fn threshold(op: &'static str, value: f32) -> Result<f32> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(Error::argument(op, "iou_threshold", "between 0 and 1", value).into()),
    }
}

/// A scalar input of 16 or 32 bits.
fn float(io: &Io<'_>, call: &[DType], index: usize) -> f32 {
    match call[index] {
        DType::F16 => io.scalar::<f16>(index).to_f32(),
        _ => io.scalar(index),
    }
}

fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc = f32> + Cell>(
        op: &'static str,
        dtypes: Vec<DType>,
        fixed: Option<f32>,
        (with_scores, with_count): (bool, bool),
        pad: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (boxes, scores) = (T::widen(io.input(0)), T::widen(io.input(1)));
            let most: i32 = io.scalar(2);
            let most = usize::try_from(most)
                .map_err(|_| Error::argument(op, "max_output_size", "not negative", most))?;
            let n = dtypes.len();
            let scalar_or = |index: usize, default: f32| {
                if index < n { float(io, &dtypes, index) } else { default }
            };
            let rule = Rule {
                most,
                overlap: threshold(op, fixed.unwrap_or_else(|| scalar_or(3, 0.5)))?,
                score: scalar_or(4, f32::NEG_INFINITY),
                sigma: scalar_or(5, 0.0),
            };
            let chosen = choose(rule, among(boxes.as_chunks().0), &scores);
            let shape = Shape::new([if pad { most } else { chosen.len() }])?;
            i32::write(io, 0, DType::I32, &shape, |out| {
                out.fill(0);
                out.iter_mut().zip(&chosen).for_each(|(out, &(index, _))| *out = index as i32);
                Ok(())
            })?;
            if with_scores {
                T::write(io, 1, dtypes[0], &shape, |out| {
                    out.fill(<T as Number>::ZERO);
                    let scores = chosen.iter().map(|&(_, score)| T::from_acc(score));
                    out.iter_mut().zip(scores).for_each(|(out, score)| *out = score);
                    Ok(())
                })?;
            }
            if with_count {
                io.output::<i32>(1 + usize::from(with_scores))[0] = chosen.len() as i32;
            }
            Ok(())
        })
    }
    let fixed = match call.attrs.get("iou_threshold") {
        Some(_) => Some(call.attrs.float("iou_threshold")?),
        None => None,
    };
    let pad = match call.attrs.get("pad_to_max_output_size") {
        Some(_) => call.attrs.bool("pad_to_max_output_size")?,
        None => false,
    };
    let dtypes: Vec<DType> = call.inputs.iter().map(|input| input.dtype).collect();
    let outputs = (call.outputs.len() == 3, call.outputs.len() > 1);
    let op = call.op.name;
    Ok(match dtypes[0] {
        DType::F16 => Some(kernel::<f16>(op, dtypes, fixed, outputs, pad)),
        DType::F32 => Some(kernel::<f32>(op, dtypes, fixed, outputs, pad)),
        _ => None,
    })
}

/// Boxes of which it is said how much each overlaps each.
fn with_overlaps(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (op, n) = (call.op.name, call.shape(0)[0]);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (overlaps, scores) = (io.input::<f32>(0), io.input::<f32>(1));
        let most: i32 = io.scalar(2);
        let wrong = || Error::argument(op, "max_output_size", "not negative", most);
        let most = usize::try_from(most).map_err(|_| wrong())?;
        let rule = Rule { most, overlap: io.scalar(3), score: io.scalar(4), sigma: 0.0 };
        let chosen = choose(rule, |a, b| overlaps[a * n + b], scores);
        i32::write(io, 0, DType::I32, &Shape::new([chosen.len()])?, |out| {
            out.iter_mut().zip(&chosen).for_each(|(out, &(index, _))| *out = index as i32);
            Ok(())
        })
    })))
}

fn combined(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (boxes, scores) = (call.shape(0).clone(), call.shape(1).clone());
    let [batch, n, own, classes] = [boxes[0], boxes[1], boxes[2], scores[2]];
    let per_class = call.ints(2)?[0] as usize;
    let most = call.output_shape(1)?[1];
    let (clip, op) = (call.attrs.bool("clip_boxes")?, call.op.name);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (corners, scores): (_, &[f32]) = (io.input::<f32>(0).as_chunks::<4>().0, io.input(1));
        let (common, score) = (threshold(op, io.scalar(4))?, io.scalar(5));
        let rule = Rule { most: per_class.min(n), overlap: common, score, sigma: 0.0 };
        let out_boxes = io.output::<f32>(0).as_chunks_mut::<4>().0;
        let (out_scores, out_classes): (&mut [f32], &mut [f32]) = (io.output(1), io.output(2));
        let counts: &mut [i32] = io.output(3);
        out_boxes.fill([0.0; 4]);
        out_scores.fill(0.0);
        out_classes.fill(0.0);
        for image in 0..batch {
            let mut found = workspace::filled(Chosen::default(), rule.most * classes)?;
            for class in 0..classes {
                let of_class = |index: usize| corners[(image * n + index) * own + class % own];
                let boxes: Vec<Corners> = (0..n).map(of_class).collect();
                let scores: Vec<f32> =
                    (0..n).map(|index| scores[(image * n + index) * classes + class]).collect();
                let chosen = choose_of_class(rule, among(&boxes), &scores);
                for (found, (index, score)) in found[rule.most * class..].iter_mut().zip(chosen) {
                    *found = Chosen { score, class: class as f32, corners: boxes[index] };
                }
            }
            let count = found.iter().filter(|chosen| chosen.class >= 0.0).count().min(most);
            equal_order::sort(&mut found, |a, b| a.score.flushed() > b.score.flushed());
            counts[image] = count as i32;
            for (index, chosen) in found.into_iter().take(count).enumerate() {
                let box_index = image * most + index;
                let corners = chosen.corners;
                out_boxes[box_index] =
                    if clip { corners.map(|x| x.clamp(0.0, 1.0)) } else { corners };
                out_scores[box_index] = chosen.score;
                out_classes[box_index] = chosen.class;
            }
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOXES: [Corners; 3] = [[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 1.0, 3.0]];

    #[test]
    fn equal_boxes_exclude_each_other() {
        let rule = Rule { most: 3, overlap: 0.5, score: 0.0, sigma: 0.0 };
        assert_eq!(choose(rule, among(&BOXES), &[0.5, 0.5, 0.4]), [(0, 0.5), (2, 0.4)]);
        let tiny = choose(Rule { score: -1.0, ..rule }, among(&BOXES), &[-0.0, -1.0, 1e-40]);
        assert_eq!(tiny, [(0, -0.0), (2, 1e-40)], "equal scores");
        assert!(choose(rule, among(&BOXES), &[1e-40; 3]).is_empty(), "not above 0");
        assert_eq!(choose(Rule { most: 1, ..rule }, among(&BOXES), &[0.5, 0.6, 0.4]), [(1, 0.6)]);
    }

    #[test]
    fn where_overlap_lowers_scores_it_excludes_nothing() {
        let rule = Rule { most: 3, overlap: 0.1, score: 0.0, sigma: 0.5 };
        let chosen = choose(rule, among(&BOXES), &[0.5, 0.5, 0.4]);
        assert_eq!(chosen.iter().map(|chosen| chosen.0).collect::<Vec<_>>(), [0, 2, 1]);
        // A score that falls to the threshold is no longer above it.
        let low = Rule { score: 0.2, ..rule };
        assert_eq!(choose(low, among(&BOXES), &[0.5, 0.5, 0.4]), [(0, 0.5), (2, 0.4)]);
    }

    #[test]
    fn overlap_lowers_scores() {
        let rule = Rule { most: 3, overlap: 1.0, score: 0.0, sigma: 0.5 };
        let chosen = choose(rule, among(&BOXES), &[0.5, 0.5, 0.4]);
        assert_eq!(chosen.iter().map(|chosen| chosen.0).collect::<Vec<_>>(), [0, 2, 1]);
        assert!((chosen[2].1 - 0.5 * (-1.0f32).exp()).abs() < 1e-6);
    }
}

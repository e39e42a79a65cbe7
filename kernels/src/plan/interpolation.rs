//! Interpolation weights: the positions of a dimension that make up a position of another, with
//! their shares.
//!
//! The rules are those of `tensorflow/core/util/image_resizer_state.h` and the kernels that use it,
//! in single precision as there.

use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Shape, budget, workspace};

/// Correspondence of the positions of a dimension to those of another size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaling {
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// Whether the first and the last position of both are the same.
    pub(crate) aligned: bool,
    /// Whether positions are the middles of pixels.
    pub(crate) centred: bool,
}

impl Scaling {
    /// Positions of the input from one of the output to the next.
    pub(crate) fn scale(&self) -> f32 {
        match self.aligned && self.output > 1 {
            true => (self.input - 1) as f32 / (self.output - 1) as f32,
            false => self.input as f32 / self.output as f32,
        }
    }

    /// Where in the input a position of the output is.
    fn source_position(&self, index: usize) -> f32 {
        match self.centred {
            true => (index as f32 + 0.5) * self.scale() - 0.5,
            false => index as f32 * self.scale(),
        }
    }

    /// The position of the input nearest to one of the output.
    pub(crate) fn nearest(&self, index: usize) -> usize {
        let source_position = match (self.centred, self.aligned) {
            (true, _) => ((index as f32 + 0.5) * self.scale()).floor(),
            (false, true) => (index as f32 * self.scale()).round(),
            (false, false) => (index as f32 * self.scale()).floor(),
        };
        (source_position.max(0.0) as usize).min(self.input - 1)
    }
}

/// Correspondence of height and width of images; not at all where there are no images.
///
/// # Errors
///
/// When images without pixels are to become images that have some.
pub(crate) fn scalings(call: &OpCall<'_>, input: &Shape, output: &Shape) -> Result<[Scaling; 2]> {
    let aligned = call.attrs.bool("align_corners")?;
    let centred = match call.attrs.get("half_pixel_centers") {
        Some(_) => call.attrs.bool("half_pixel_centers")?,
        None => false,
    };
    let is_empty = input.num_elements() == 0 || output.num_elements() == 0;
    if is_empty && input[0] * input[3] > 0 && output.num_elements() > 0 {
        return Err(call.wrong("images", "not empty", input));
    }
    let sizes = |axis: usize| if is_empty { (input[axis], 0) } else { (input[axis], output[axis]) };
    Ok([1, 2].map(|axis| {
        let (input, output) = sizes(axis);
        Scaling { input, output, aligned, centred }
    }))
}

/// For each position of an output, positions of an input with their weights.
#[derive(Debug, Clone)]
pub(crate) struct InterpolationWeights {
    list: Vec<(usize, f32)>,
    ends: Vec<usize>,
}

/// Positions between two looks at the budget of the call.
const TICKS: usize = 1 << 16;

impl InterpolationWeights {
    /// The weights of `n` positions. Those of 0 are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`](ferroflow_ir::Error::Limit) when they are too many.
    fn new<W: IntoIterator<Item = (usize, f32)>>(
        n: usize,
        weights_of: impl Fn(usize) -> W,
    ) -> Result<InterpolationWeights> {
        let (mut list, mut ends) = (Vec::new(), workspace::reserve(n)?);
        for index in 0..n {
            if index % TICKS == 0 {
                budget::tick();
            }
            let own = weights_of(index).into_iter().filter(|&(_, weight)| weight != 0.0);
            workspace::extend(&mut list, own)?;
            ends.push(list.len());
        }
        Ok(InterpolationWeights { list, ends })
    }

    /// The weights of each position.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[(usize, f32)]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.list[start..end])
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: usize) -> &[(usize, f32)] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.list[start..self.ends[index]]
    }
}

impl InterpolationWeights {
    /// For each of `n` positions of the input, positions of the output with their weights.
    pub(crate) fn transposed(&self, n: usize) -> Vec<Vec<(usize, f32)>> {
        let mut found = vec![Vec::new(); n];
        for (index, taps) in self.iter().enumerate() {
            taps.iter().for_each(|&(position, weight)| found[position].push((index, weight)));
        }
        found
    }
}

/// The weights of each dimension.
///
/// # Errors
///
/// As those of the rule.
pub(crate) fn of_each(
    scalings: [Scaling; 2],
    rule: fn(Scaling) -> Result<InterpolationWeights>,
) -> Result<[InterpolationWeights; 2]> {
    let [rows, columns] = scalings;
    Ok([rule(rows)?, rule(columns)?])
}

/// The nearest position.
pub(crate) fn nearest(scaling: Scaling) -> Result<InterpolationWeights> {
    InterpolationWeights::new(scaling.output, |index| [(scaling.nearest(index), 1.0)])
}

/// The positions on both sides of one of the output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Neighbours {
    pub(crate) low: usize,
    pub(crate) high: usize,
    /// The share of the way from the low one to the high one.
    pub(crate) part: f32,
}

/// The neighbours of each position of the output.
///
/// # Errors
///
/// [`Error::Limit`](ferroflow_ir::Error::Limit) when they are too many.
pub(crate) fn neighbours(scaling: Scaling) -> Result<Vec<Neighbours>> {
    let of = |index: usize| {
        let source_position = scaling.source_position(index);
        let (floor, last) = (source_position.floor(), scaling.input - 1);
        let high = (source_position.ceil().max(0.0) as usize).min(last);
        let low = (floor.max(0.0) as usize).min(high);
        Neighbours { low, high, part: source_position - floor }
    };
    Ok(workspace::collected((0..scaling.output).map(of))?)
}

/// Linear interpolation between two positions.
pub(crate) fn bilinear(scaling: Scaling) -> Result<InterpolationWeights> {
    let neighbours = neighbours(scaling)?;
    InterpolationWeights::new(scaling.output, |index| {
        let Neighbours { low, high, part } = neighbours[index];
        let part = if low == high { 0.0 } else { part };
        [(low, 1.0 - part), (high, part)]
    })
}

/// Steps between two positions for which cubic weights are computed.
const STEPS: i64 = 1 << 10;

/// Cubic interpolation between four positions (Keys 1981). Between centres with `a = -0.5` and
/// without positions outside, otherwise with `a = -0.75` and the nearest positions inside.
pub(crate) fn bicubic(scaling: Scaling) -> Result<InterpolationWeights> {
    let a = if scaling.centred { -0.5f64 } else { -0.75 };
    // Computed in doubles, as there, and then rounded.
    let near = |step: i64| {
        let x = step as f64 / STEPS as f64;
        (((a + 2.0) * x - (a + 3.0)) * x * x + 1.0) as f32
    };
    let far = |step: i64| {
        let x = step as f64 / STEPS as f64 + 1.0;
        (((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a) as f32
    };
    let last = scaling.input as i64 - 1;
    InterpolationWeights::new(scaling.output, |index| {
        let source_position = scaling.source_position(index);
        let first = source_position.floor();
        let step = ((source_position - first) * STEPS as f32).round_ties_even() as i64;
        let nearby = [far(step), near(step), near(STEPS - step), far(STEPS - step)];
        let position = |index: usize| first as i64 - 1 + index as i64;
        let bounded = |index: usize| position(index).clamp(0, last);
        let mut own: [(usize, f32); 4] =
            std::array::from_fn(|index| (bounded(index) as usize, nearby[index]));
        if scaling.centred {
            for (index, tap) in own.iter_mut().enumerate() {
                tap.1 = if bounded(index) == position(index) { tap.1 } else { 0.0 };
            }
            normalize(&mut own);
        }
        own
    })
}

/// Scales weights so that their sum is 1, unless it is about 0, which it returns `false` for.
fn normalize(taps: &mut [(usize, f32)]) -> bool {
    let sum: f32 = taps.iter().map(|tap| tap.1).sum();
    let scalable = sum.abs() >= 1000.0 * f32::MIN_POSITIVE;
    if scalable {
        let scale = 1.0 / sum;
        taps.iter_mut().for_each(|tap| tap.1 *= scale);
    }
    scalable
}

/// The mean over the area that a position of the output covers.
pub(crate) fn area(scaling: Scaling) -> Result<InterpolationWeights> {
    covered(scaling, scaling.scale())
}

/// The parts of positions that a position of the output covers, divided by `by`.
pub(crate) fn covered(scaling: Scaling, by: f32) -> Result<InterpolationWeights> {
    let scale = scaling.scale();
    InterpolationWeights::new(scaling.output, |index| {
        // All outputs are of the one pixel where corners are aligned.
        if scale == 0.0 {
            return vec![(0, 1.0)];
        }
        let (start, end) = (index as f32 * scale, (index + 1) as f32 * scale);
        let part = |position: i64| {
            let begin = if (position as f32) < start { start } else { position as f32 };
            let whole = (position as f32) >= start;
            match (whole, (position + 1) as f32 > end) {
                (true, false) => 1.0,
                (false, true) => scale,
                (true, true) => end - position as f32,
                (false, false) => (position + 1) as f32 - begin,
            }
        };
        let positions = start.floor() as i64..end.ceil() as i64;
        let last = scaling.input as i64 - 1;
        let mut own: Vec<(usize, f32)> = Vec::new();
        for position in positions {
            own.push((position.clamp(0, last) as usize, part(position) / by));
        }
        own
    })
}

/// A filter: a function of the distance, and the distance beyond which it is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) radius: f32,
    pub(crate) weight: fn(f32) -> f32,
}

/// Positions that a filter reaches, where positions are scaled and then moved.
pub(crate) fn filtered(
    filter: Filter,
    (input, output): (usize, usize),
    scale: f32,
    translation: f32,
    antialias: bool,
) -> Result<InterpolationWeights> {
    let inverse = 1.0 / scale;
    let shift = -inverse * translation;
    let width = if antialias { inverse.max(1.0) } else { 1.0 };
    let (reach, inverse_width) = (filter.radius * width, 1.0 / width);
    InterpolationWeights::new(output, |index| {
        let middle = (index as f32 + 0.5) * inverse + shift;
        if !(0.0..=input as f32).contains(&middle) {
            return Vec::new();
        }
        let last = (input - 1) as i64;
        let first = ((middle - reach - 0.5).ceil() as i64).clamp(0, last);
        let end = ((middle + reach - 0.5).floor() as i64).clamp(0, last);
        let weight = |position: i64| {
            let distance = position as f32 + 0.5 - middle;
            (position as usize, (filter.weight)((distance * inverse_width).abs()))
        };
        let mut own: Vec<(usize, f32)> = (first..=end).map(weight).collect();
        if normalize(&mut own) { own } else { Vec::new() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = [(usize, f32)];

    fn check(taps: &InterpolationWeights, expected: &[&Row]) {
        assert_eq!(taps.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn linear_weights() {
        let scaling = Scaling { input: 2, output: 4, aligned: false, centred: false };
        let last: &Row = &[(1, 1.0)];
        let between: &Row = &[(0, 0.5), (1, 0.5)];
        check(&bilinear(scaling).unwrap(), &[&[(0, 1.0)], between, last, last]);
        let centred = Scaling { centred: true, ..scaling };
        let near: &Row = &[(0, 0.75), (1, 0.25)];
        let far: &Row = &[(0, 0.25), (1, 0.75)];
        check(&bilinear(centred).unwrap(), &[&[(0, 1.0)], near, far, last]);
    }

    #[test]
    fn areas_are_shared() {
        let scaling = Scaling { input: 3, output: 2, aligned: false, centred: false };
        let third = 1.0 / 3.0;
        let found = area(scaling).unwrap();
        let sums: Vec<f32> = found.iter().map(|taps| taps.iter().map(|tap| tap.1).sum()).collect();
        assert_eq!(sums, [1.0, 1.0]);
        assert!((found.get(0)[1].1 - third).abs() < 1e-6);
    }
}

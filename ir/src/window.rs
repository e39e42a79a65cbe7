//! Windows that slide over dimensions: the arithmetic of convolutions and pools.
//!
//! The rules are TensorFlow's (`tensorflow/core/framework/kernel_shape_util.cc`).

use crate::{
    attr::Attrs,
    error::{Error, Result},
    shape::{Dim, PartialShape, counted},
};
use smallvec::SmallVec;
use std::ops::Range;

/// Padding of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowPadding {
    /// As much on both sides as it takes to have one window per stride; where that is odd, one
    /// more at the end.
    Same,
    /// Nothing: windows are inside.
    Valid,
    /// So many positions at the beginning and at the end.
    Explicit {
        /// Positions before the first.
        before: usize,
        /// Positions after the last.
        after: usize,
    },
}

/// Steps of windows along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowStep {
    /// Positions from one window to the next.
    pub stride: usize,
    /// Positions from one kernel offset of a window to the next.
    pub dilation: usize,
    /// Padding of the dimension.
    pub padding: WindowPadding,
}

/// Windows of `size` kernel offsets over a dimension of known size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slide {
    /// Positions of the dimension.
    pub input: usize,
    /// Number of windows.
    pub output: usize,
    /// Kernel offsets of a window.
    pub size: usize,
    /// Positions from one window to the next.
    pub stride: usize,
    /// Positions from one kernel offset to the next.
    pub dilation: usize,
    /// Positions of padding before the first; negative where windows begin inside.
    pub before: isize,
}

/// Numbers beyond this are refused, so that sums and products of a few of them fit an `i64`.
const LARGEST: i64 = i32::MAX as i64;

/// A size, stride or rate of windows as attributes return it: positive, and small enough that sums
/// and products of a few of them fit. TensorFlow refuses others too, as they are no `int32`.
pub fn countable(number: i64) -> Option<usize> {
    (1..=LARGEST).contains(&number).then_some(number as usize)
}

impl WindowStep {
    /// The number of windows of `size` kernel offsets over `input` positions, where both are known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the window has no taps or is longer than what it slides over.
    pub fn output(&self, input: Dim, size: Dim) -> Result<Dim> {
        match (input, size) {
            (Some(input), Some(size)) => Ok(Some(self.slide(input, size)?.output)),
            (Some(input), None) if self.padding == WindowPadding::Same => {
                Ok(Some(input.div_ceil(self.stride)))
            }
            _ => Ok(None),
        }
    }

    /// The windows of `size` kernel offsets over `input` positions.
    ///
    /// # Errors
    ///
    /// As [`output`](WindowStep::output).
    pub fn slide(&self, input: usize, size: usize) -> Result<Slide> {
        let WindowStep { stride, dilation, padding } = *self;
        let wrong = |expected: &'static str, found: String| {
            Err(Error::argument("window", "size", expected, found))
        };
        if size == 0 || size as i64 > LARGEST || input as i64 > i64::MAX >> 2 {
            return wrong("positive and countable", format!("{size} over {input}"));
        }
        let reach = (size as i64 - 1) * dilation as i64 + 1;
        let (n, step) = (input as i64, stride as i64);
        let (output, before) = match padding {
            WindowPadding::Same => {
                let output = (n + step - 1) / step;
                (output, ((output - 1) * step + reach - n).max(0) / 2)
            }
            WindowPadding::Valid => ((n - reach + step) / step, 0),
            WindowPadding::Explicit { before, after } => {
                let n = n + before as i64 + after as i64;
                ((n - reach + step) / step, before as i64)
            }
        };
        if output < 0 {
            return wrong("no longer than what it slides over", format!("{reach} over {n}"));
        }
        let (output, before) = (counted(output), before as isize);
        Ok(Slide { input, output, size, stride, dilation, before })
    }
}

impl Slide {
    /// A dimension of size 1 that nothing slides over.
    pub const NONE: Slide =
        Slide { input: 1, output: 1, size: 1, stride: 1, dilation: 1, before: 0 };

    /// The position of the first kernel offset of a window; negative inside the padding.
    pub fn first(&self, window: usize) -> isize {
        (window * self.stride) as isize - self.before
    }

    /// The kernel offsets of a window that are not in the padding.
    #[inline]
    pub fn kernel_offsets(&self, window: usize) -> Range<usize> {
        let (first, dilation) = (self.first(window), self.dilation as isize);
        // Most windows are inside: divisions take longer than what is done with them.
        if first >= 0 && first + (self.size as isize - 1) * dilation < self.input as isize {
            return 0..self.size;
        }
        let steps = |distance: isize| ((distance + dilation - 1) / dilation).max(0) as usize;
        let end = steps(self.input as isize - first).min(self.size);
        steps(-first).min(end)..end
    }

    /// The positions of a window of neighbouring kernel offsets that are not in the padding.
    pub fn positions(&self, window: usize) -> Range<usize> {
        let kernel_offsets = self.kernel_offsets(window);
        let first = self.first(window);
        (first + kernel_offsets.start as isize).max(0) as usize
            ..(first + kernel_offsets.end as isize).max(0) as usize
    }

    /// The kernel offsets that are at a position, each with its window.
    pub fn covering(&self, position: usize) -> impl Iterator<Item = (usize, usize)> {
        let Slide { output, size, stride, dilation, before, .. } = *self;
        (0..size).filter_map(move |tap| {
            let first = position as isize + before - (tap * dilation) as isize;
            let window = usize::try_from(first).ok().filter(|first| first % stride == 0)? / stride;
            (window < output).then_some((tap, window))
        })
    }

    /// Whether window `n` is position `n` and nothing else.
    pub fn is_identity(&self) -> bool {
        self.size == 1 && self.stride == 1 && self.before == 0 && self.output == self.input
    }

    /// The windows of the gradient by the input, over the gradient of the output, for a stride of
    /// 1: the same window, reversed.
    #[must_use]
    pub fn reversed(&self) -> Slide {
        let reach = (self.size - 1) * self.dilation;
        let before = reach as isize - self.before;
        Slide { input: self.output, output: self.input, before, ..*self }
    }
}

/// Where batch, channels and spatial dimensions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLayout {
    /// The number of spatial dimensions.
    pub spatial: usize,
    /// Whether the channels come last; otherwise they follow the batch.
    pub channels_last: bool,
}

impl ImageLayout {
    /// The layout that attribute `data_format` names; channels come last where there is none.
    ///
    /// # Errors
    ///
    /// When the attribute is no string.
    pub fn read(attrs: &Attrs, spatial: usize) -> Result<ImageLayout> {
        let channels_last = match attrs.get("data_format") {
            Some(_) => !attrs.string("data_format")?.starts_with("NC"),
            None => true,
        };
        Ok(ImageLayout { spatial, channels_last })
    }

    /// The number of dimensions.
    pub fn rank(self) -> usize {
        self.spatial + 2
    }

    /// The dimension of the channels.
    pub fn channels(self) -> usize {
        if self.channels_last { self.spatial + 1 } else { 1 }
    }

    /// The dimension of spatial dimension `index`.
    pub fn at(self, index: usize) -> usize {
        if self.channels_last { index + 1 } else { index + 2 }
    }

    /// A shape in this layout.
    pub fn shape(self, batch: Dim, spatial: &[Dim], channels: Dim) -> PartialShape {
        let mut dims: SmallVec<[Dim; 6]> = SmallVec::from_slice(spatial);
        dims.insert(0, batch);
        dims.insert(self.channels(), channels);
        PartialShape::Ranked(dims)
    }
}

/// Steps of windows, one per spatial dimension.
pub type WindowSteps = SmallVec<[WindowStep; 3]>;

/// Steps of the windows of a convolution: attributes `strides`, `dilations`, `padding` and
/// `explicit_paddings`.
///
/// # Errors
///
/// [`Error::Argument`] for lists of the wrong length and for numbers out of range,
/// [`Error::Unsupported`] for steps along batch or channels.
pub fn convolution_steps(
    op: &'static str,
    attrs: &Attrs,
    layout: ImageLayout,
) -> Result<WindowSteps> {
    steps(op, attrs, layout, "dilations")
}

/// Steps of windows: attributes `strides`, `padding` and `explicit_paddings`, and the steps within
/// a window in an attribute of this name.
///
/// # Errors
///
/// As [`convolution_steps`].
pub fn steps(
    op: &'static str,
    attrs: &Attrs,
    layout: ImageLayout,
    dilations: &'static str,
) -> Result<WindowSteps> {
    let paddings = paddings(op, attrs, layout)?;
    let strides = along(op, "strides", attrs.ints("strides")?, layout)?;
    let dilations = along(op, dilations, attrs.ints(dilations)?, layout)?;
    let steps = strides.iter().zip(&dilations).zip(paddings);
    Ok(steps
        .map(|((&stride, &dilation), padding)| WindowStep { stride, dilation, padding })
        .collect())
}

/// The windows of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Where the dimensions are.
    pub layout: ImageLayout,
    /// Steps of windows along the spatial dimensions.
    pub steps: WindowSteps,
    /// The sizes of windows along the spatial dimensions.
    pub sizes: SmallVec<[usize; 3]>,
    /// The size of windows, and how far they move, along the channels.
    pub depth: usize,
}

/// The windows of a pool, of lists of sizes and strides with an entry per dimension, and attributes
/// `padding`, `explicit_paddings` and `data_format`.
///
/// # Errors
///
/// [`Error::Argument`] for lists of the wrong length and for numbers out of range,
/// [`Error::Unsupported`] for windows over the batch, and over channels and space at once.
pub fn pool(op: &'static str, attrs: &Attrs, sizes: &[i64], strides: &[i64]) -> Result<Pool> {
    let layout = ImageLayout::read(attrs, sizes.len().max(3) - 2)?;
    let paddings = paddings(op, attrs, layout)?;
    let over_channels =
        |list: &[i64]| list.get(layout.channels()).copied().filter(|&entry| entry != 1);
    let depth = match (over_channels(sizes), over_channels(strides)) {
        (Some(size), Some(stride))
            if size == stride
                && (1..=LARGEST).contains(&size)
                && sizes.iter().filter(|&&size| size != 1).count() == 1 =>
        {
            size as usize
        }
        _ => 1,
    };
    let spatial = |list: &[i64]| {
        let mut list = list.to_vec();
        if depth > 1 {
            list[layout.channels()] = 1;
        }
        list
    };
    let strides = along(op, "strides", &spatial(strides), layout)?;
    let sizes = along(op, "ksize", &spatial(sizes), layout)?;
    let too_large = |(padding, &size): (&WindowPadding, &usize)| match padding {
        WindowPadding::Explicit { before, after } => *before.max(after) >= size,
        WindowPadding::Same | WindowPadding::Valid => false,
    };
    if paddings.iter().zip(&sizes).any(too_large) {
        let found = format!("{paddings:?} of windows {sizes:?}");
        return Err(Error::argument(op, "explicit_paddings", "smaller than the window", found));
    }
    let steps = strides.iter().zip(paddings);
    let steps =
        steps.map(|(&stride, padding)| WindowStep { stride, dilation: 1, padding }).collect();
    Ok(Pool { layout, steps, sizes, depth })
}

/// The spatial entries of a list with one positive number per dimension.
fn along(
    op: &'static str,
    name: &'static str,
    list: &[i64],
    layout: ImageLayout,
) -> Result<SmallVec<[usize; 3]>> {
    let wrong = |expected: String| Error::argument(op, name, expected, format!("{list:?}"));
    if list.len() != layout.rank() {
        return Err(wrong(format!("{} numbers", layout.rank())));
    }
    if list.iter().any(|entry| !(1..=LARGEST).contains(entry)) {
        return Err(wrong("positive".into()));
    }
    if list[0] != 1 || list[layout.channels()] != 1 {
        let what = format!("{name} {list:?} along batch or channels").into();
        return Err(Error::Unsupported { op: op.into(), what });
    }
    Ok((0..layout.spatial).map(|index| list[layout.at(index)] as usize).collect())
}

fn paddings(
    op: &'static str,
    attrs: &Attrs,
    layout: ImageLayout,
) -> Result<SmallVec<[WindowPadding; 3]>> {
    let explicit = match attrs.get("explicit_paddings") {
        Some(_) => attrs.ints("explicit_paddings")?,
        None => &[],
    };
    let wrong = |expected: String| {
        Err(Error::argument(op, "explicit_paddings", expected, format!("{explicit:?}")))
    };
    let padding = match attrs.string("padding")? {
        "SAME" => WindowPadding::Same,
        "VALID" => WindowPadding::Valid,
        _ => {
            if explicit.len() != 2 * layout.rank() {
                return wrong(format!("{} numbers", 2 * layout.rank()));
            }
            if explicit.iter().any(|entry| !(0..=LARGEST).contains(entry)) {
                return wrong("not negative".into());
            }
            let pair = |axis: usize| (explicit[2 * axis] as usize, explicit[2 * axis + 1] as usize);
            if pair(0) != (0, 0) || pair(layout.channels()) != (0, 0) {
                return wrong("0 along batch and channels".into());
            }
            let pairs = (0..layout.spatial).map(|index| pair(layout.at(index)));
            return Ok(pairs
                .map(|(before, after)| WindowPadding::Explicit { before, after })
                .collect());
        }
    };
    if !explicit.is_empty() {
        return wrong("empty unless the padding is EXPLICIT".into());
    }
    Ok(SmallVec::from_elem(padding, layout.spatial))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        padding: WindowPadding,
        input: usize,
        size: usize,
        stride: usize,
        dilation: usize,
    ) -> Slide {
        WindowStep { stride, dilation, padding }.slide(input, size).unwrap()
    }

    #[test]
    fn outputs_are_counted_as_tensorflow_does() {
        let same = check(WindowPadding::Same, 5, 3, 2, 1);
        assert_eq!((same.output, same.before), (3, 1));
        let same = check(WindowPadding::Same, 4, 3, 2, 1);
        assert_eq!((same.output, same.before), (2, 0));
        assert_eq!(check(WindowPadding::Valid, 5, 3, 1, 2).output, 1);
        assert_eq!(check(WindowPadding::Valid, 2, 3, 1, 1).output, 0);
        assert_eq!(check(WindowPadding::Explicit { before: 2, after: 1 }, 2, 3, 1, 1).output, 3);
        assert!(
            WindowStep { stride: 1, dilation: 1, padding: WindowPadding::Valid }
                .slide(1, 3)
                .is_err()
        );
    }

    #[test]
    fn offsets_in_the_padding_are_left_out() {
        let slide = check(WindowPadding::Same, 5, 3, 2, 1);
        assert_eq!(
            (0..3).map(|window| slide.kernel_offsets(window)).collect::<Vec<_>>(),
            [1..3, 0..3, 0..2]
        );
        let slide = check(WindowPadding::Explicit { before: 4, after: 4 }, 3, 2, 1, 3);
        let kernel_offsets: Vec<_> =
            (0..slide.output).map(|window| slide.kernel_offsets(window)).collect();
        assert_eq!(kernel_offsets, [2..2, 1..2, 1..2, 1..2, 0..1, 0..1, 0..1, 0..0]);
    }

    #[test]
    fn every_offset_is_found_from_its_position() {
        let slide = check(WindowPadding::Explicit { before: 2, after: 3 }, 7, 3, 2, 2);
        let kernel_offsets = (0..slide.output).flat_map(|window| {
            let position = move |tap| (slide.first(window) + 2 * tap as isize) as usize;
            slide.kernel_offsets(window).map(move |tap| (position(tap), tap, window))
        });
        let covering = (0..slide.input).flat_map(|position| {
            slide.covering(position).map(move |(tap, window)| (position, tap, window))
        });
        let sorted = |mut list: Vec<(usize, usize, usize)>| {
            list.sort();
            list
        };
        assert_eq!(sorted(kernel_offsets.collect()), sorted(covering.collect()));
    }

    #[test]
    fn the_reversed_window_finds_each_output() {
        for before in [0, 1, 6] {
            let slide = check(WindowPadding::Explicit { before, after: 2 }, 6, 3, 1, 2);
            let back = slide.reversed();
            for window in 0..slide.output {
                for tap in slide.kernel_offsets(window) {
                    let position = (slide.first(window) + (tap * 2) as isize) as usize;
                    let offset = slide.size - 1 - tap;
                    assert!(back.kernel_offsets(position).contains(&offset));
                    assert_eq!(back.first(position) + (offset * 2) as isize, window as isize);
                }
            }
        }
    }
}

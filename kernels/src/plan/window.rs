//! Windows over tensors `[batch, depth, height, width, channels]`, and their taps as matrices.

use ferroflow_ir::window::Slide;
use std::ops::Range;

/// Elements that are nearer to the largest of a window of three dimensions than this are as large, as
/// TensorFlow's kernel has it (`tensorflow/core/kernels/pooling_ops_3d.cc`). An infinite element is
/// near to none.
pub(crate) const NEAR_LARGEST: f32 = 1e-5;

/// Windows over up to three spatial dimensions; the ones that are missing have size 1.
///
/// Windows are counted in the order of the output, taps in that of the filter.
#[derive(Debug, Clone)]
pub(crate) struct Sweep {
    pub(crate) batch: usize,
    pub(crate) channels: usize,
    pub(crate) slides: [Slide; 3],
}

/// Windows along one dimension that have the same taps inside.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    pub(crate) windows: Range<usize>,
    pub(crate) taps: Range<usize>,
}

impl Stretch {
    /// The stretches of a dimension, in order.
    pub(crate) fn along(slide: &Slide) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for window in 0..slide.output {
            let taps = slide.taps(window);
            match stretches.last_mut() {
                Some(last) if last.taps == taps => last.windows.end = window + 1,
                _ => stretches.push(Stretch { windows: window..window + 1, taps }),
            }
        }
        stretches
    }

    /// The position of the first tap inside, of a window.
    pub(crate) fn first(&self, slide: &Slide, window: usize) -> usize {
        let first = slide.first(window) + (self.taps.start * slide.dilation) as isize;
        first.max(0) as usize
    }
}

/// Neighbouring taps of a window: all in the padding, or all in one line of the input.
struct Run {
    /// The window, counted from the first one asked for.
    window: usize,
    /// The first tap, counted from the first one asked for.
    tap: usize,
    count: usize,
    /// Where the first tap lies, counted in positions of the input.
    position: Option<usize>,
}

impl Sweep {
    /// Windows that slide along the last dimensions but the channels.
    ///
    /// # Panics
    ///
    /// When there are more than three.
    pub(crate) fn new(batch: usize, channels: usize, slides: &[Slide]) -> Sweep {
        let mut all = [Slide::NONE; 3];
        all[3 - slides.len()..].copy_from_slice(slides);
        Sweep { batch, channels, slides: all }
    }

    /// The number of windows in the whole batch.
    pub(crate) fn n_windows(&self) -> usize {
        self.batch * self.windows_per_image()
    }

    /// The number of windows in one element of the batch.
    pub(crate) fn windows_per_image(&self) -> usize {
        self.slides.iter().map(|slide| slide.output).product()
    }

    /// The number of taps of a window.
    pub(crate) fn n_taps(&self) -> usize {
        self.slides.iter().map(|slide| slide.size).product()
    }

    /// Whether window `n` is position `n` of the input and nothing else.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.slides.iter().all(Slide::is_identity)
    }

    /// Whether neighbouring windows are one position apart.
    pub(crate) fn has_unit_stride(&self) -> bool {
        self.slides.iter().all(|slide| slide.stride == 1)
    }

    /// Where a window begins: its element of the batch, and its position along each dimension.
    pub(crate) fn place(&self, window: usize) -> (usize, [usize; 3]) {
        let [a, b, c] = self.slides.map(|slide| slide.output);
        let (rest, z) = (window / c, window % c);
        let (rest, y) = (rest / b, rest % b);
        (rest / a, [rest % a, y, z])
    }

    /// Lists the positions of the input that a window covers, in order.
    pub(crate) fn positions(&self, window: usize, list: &mut Vec<usize>) {
        let (image, at) = self.place(window);
        let [a, b, c] = &self.slides;
        list.clear();
        for x in a.positions(at[0]) {
            for y in b.positions(at[1]) {
                let line = ((image * a.input + x) * b.input + y) * c.input;
                list.extend(c.positions(at[2]).map(|z| line + z));
            }
        }
    }

    /// Writes a matrix with a row per window and, in each row, the `channels` of each tap; zeros
    /// where taps lie in the padding.
    pub(crate) fn gather<T: Copy + Default>(
        &self,
        input: &[T],
        windows: Range<usize>,
        taps: Range<usize>,
        channels: Range<usize>,
        out: &mut [T],
    ) {
        let (width, row) = (channels.len(), taps.len() * channels.len());
        let step = self.slides[2].dilation * self.channels;
        let whole = step == width;
        self.runs(windows, taps, |run| {
            let out = &mut out[run.window * row + run.tap * width..][..run.count * width];
            let Some(position) = run.position else { return out.fill(T::default()) };
            let first = position * self.channels + channels.start;
            if whole {
                return out.copy_from_slice(&input[first..first + out.len()]);
            }
            for (index, out) in out.chunks_mut(width).enumerate() {
                out.copy_from_slice(&input[first + index * step..][..width]);
            }
        });
    }

    /// Adds the rows of a matrix as [`gather`](Sweep::gather) writes it to where they came from.
    pub(crate) fn scatter<T: Copy>(
        &self,
        rows: &[T],
        windows: Range<usize>,
        channels: Range<usize>,
        out: &mut [T],
        add: impl Fn(T, T) -> T,
    ) {
        let taps = 0..self.n_taps();
        let (width, row) = (channels.len(), taps.len() * channels.len());
        let step = self.slides[2].dilation * self.channels;
        self.runs(windows, taps, |run| {
            let Some(position) = run.position else { return };
            let rows = &rows[run.window * row + run.tap * width..][..run.count * width];
            let first = position * self.channels + channels.start;
            for (index, row) in rows.chunks(width).enumerate() {
                let out = &mut out[first + index * step..][..width];
                out.iter_mut().zip(row).for_each(|(out, &x)| *out = add(*out, x));
            }
        });
    }

    /// Visits the taps of windows, run by run.
    #[inline(always)]
    fn runs(&self, windows: Range<usize>, taps: Range<usize>, mut visit: impl FnMut(Run)) {
        let [a, b, c] = &self.slides;
        let (mut image, mut at) = self.place(windows.start);
        for window in 0..windows.len() {
            let (rows, columns, inside) = (a.taps(at[0]), b.taps(at[1]), c.taps(at[2]));
            let first = [a.first(at[0]), b.first(at[1]), c.first(at[2])];
            for line in taps.start / c.size..taps.end.div_ceil(c.size) {
                let (row, column) = (line / b.size, line % b.size);
                let begin = line * c.size;
                let asked = taps.start.max(begin) - begin..taps.end.min(begin + c.size) - begin;
                let line_inside = rows.contains(&row) && columns.contains(&column);
                let start = if line_inside { inside.start } else { c.size };
                let (start, end) = (start.clamp(asked.start, asked.end), inside.end);
                let end = end.clamp(start, asked.end);
                let mut run = |tap: usize, end: usize, position: Option<usize>| {
                    if tap < end {
                        let (count, tap) = (end - tap, begin + tap - taps.start);
                        visit(Run { window, tap, count, position });
                    }
                };
                run(asked.start, start, None);
                if start < end {
                    let along = |slide: &Slide, first: isize, tap: usize| {
                        (first + (tap * slide.dilation) as isize) as usize
                    };
                    let x = along(a, first[0], row);
                    let y = along(b, first[1], column);
                    let z = along(c, first[2], start);
                    run(start, end, Some(((image * a.input + x) * b.input + y) * c.input + z));
                }
                run(end, asked.end, None);
            }
            for (axis, slide) in self.slides.iter().enumerate().rev() {
                at[axis] += 1;
                if at[axis] < slide.output {
                    break;
                }
                at[axis] = 0;
                image += usize::from(axis == 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::window::{WindowPadding, WindowStep};

    fn sweep(size: [usize; 2], window: usize, dilation: usize) -> Sweep {
        let step = WindowStep { stride: 1, dilation, padding: WindowPadding::Same };
        let slides = size.map(|size| step.slide(size, window).unwrap());
        Sweep::new(2, 2, &slides)
    }

    /// The taps of a window one by one.
    fn expected(sweep: &Sweep, input: &[i32], window: usize, tap: usize, channel: usize) -> i32 {
        let [_, b, c] = &sweep.slides;
        let (image, [_, y, z]) = sweep.place(window);
        let at = |slide: &Slide, window: usize, tap: usize| {
            let position = slide.first(window) + (tap * slide.dilation) as isize;
            usize::try_from(position).ok().filter(|&position| position < slide.input)
        };
        match (at(b, y, tap / c.size), at(c, z, tap % c.size)) {
            (Some(y), Some(z)) => input[((image * b.input + y) * c.input + z) * 2 + channel],
            _ => 0,
        }
    }

    #[test]
    fn taps_are_gathered() {
        for (window, dilation) in [(1, 1), (3, 1), (3, 2), (2, 4)] {
            let sweep = sweep([3, 4], window, dilation);
            let input: Vec<i32> = (1..=2 * 3 * 4 * 2).collect();
            let (n, n_taps) = (sweep.n_windows(), sweep.n_taps());
            for taps in [0..n_taps, n_taps / 3..n_taps / 3 + 1] {
                for channels in [0..2, 1..2] {
                    let row = taps.len() * channels.len();
                    let mut out = vec![-1; (n - 3) * row];
                    sweep.gather(&input, 3..n, taps.clone(), channels.clone(), &mut out);
                    for (index, &found) in out.iter().enumerate() {
                        let (window, rest) = (3 + index / row, index % row);
                        let tap = taps.start + rest / channels.len();
                        let channel = channels.start + rest % channels.len();
                        assert_eq!(found, self::expected(&sweep, &input, window, tap, channel));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_scattered_was_gathered() {
        let sweep = sweep([3, 4], 3, 1);
        let input: Vec<i32> = (1..=2 * 3 * 4 * 2).collect();
        let mut rows = vec![0; sweep.n_windows() * 9 * 2];
        sweep.gather(&input, 0..sweep.n_windows(), 0..9, 0..2, &mut rows);
        let mut sums = vec![0; input.len()];
        sweep.scatter(&rows, 0..sweep.n_windows(), 0..2, &mut sums, |a, b| a + b);
        // Positions in a corner belong to 4 windows, at an edge to 6, inside to 9.
        assert_eq!(sums[..4], [4, 8, 6 * 3, 6 * 4]);
        assert_eq!(sums[10..12], [9 * 11, 9 * 12]);
    }
}

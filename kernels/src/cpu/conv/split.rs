//! Convolutions of `f32` in the tile registers of AMX, by inputs and filters that are split into parts
//! ([`split`](super::super::gemm::split)).
//!
//! Some lines of the input, a band, are split with their padding, and positions that are a stride apart
//! are put side by side, into a phase each: whatever the strides, windows that follow each other are one
//! position apart then, so that rows of tiles are read where they lie. Windows are counted through the
//! lines of a band without a break; those across the end of a line are computed and dropped. Bands are cut
//! by the geometry alone.

use super::super::gemm::{
    BlockEpilogue, Matrix,
    linear::{LinearEpilogue, LinearSteps},
    rect::Rect,
    split::{
        BLOCK, DEPTH, LINES, Magnitudes, Panel, Parts, SplitRows, SplitUnit, pack_panels,
        panel_len, split_positions, sum,
    },
    vector::InstructionSet,
    weights::{PackedLayout, PackedMatrix, PackedWeights},
};
use super::{Geometry, direct::DirectPlan};
use crate::{Precision, error::Result, scratch::Scratch, threads::Threads};
use ferroflow_ir::{HostTensor, window::Slide};
use std::ops::Range;

/// Bytes of a band, roughly: it stays in the second-level cache with a panel of the filter.
const BAND: usize = 768 << 10;

/// The most bytes of a band.
const LARGEST_BAND: usize = 4 << 20;

/// The fewest channels, and filters: tiles would be mostly empty.
const FEWEST: usize = 24;

/// The fewest filters and kernel offsets multiplied: splitting a position costs more than tiles save.
const FEWEST_USES: usize = 80;

/// The fewest multiplications.
const LEAST_WORK: u64 = 1 << 20;

/// Panels of the filter that a thread takes at a time, where threads share them.
const SHARED_PANELS: usize = 2;

/// Plan of the convolutions of a geometry.
pub(super) struct SplitPlan {
    unit: SplitUnit,
    machine: InstructionSet,
    /// Lines of windows in a band.
    lines: usize,
    band: Band,
    /// Where the steps of a window are, in bytes from its first position.
    steps: Vec<usize>,
    packed: PackedWeights,
}

/// Layout of a split band: parts, in each of them phases, and in each of those positions.
#[derive(Debug)]
struct Band {
    /// Positions along each dimension, with padding.
    positions: [usize; 3],
    /// Those of a phase.
    dims: [usize; 3],
    /// For each phase, counted along the dimensions, where it is among those that are read.
    slots: Vec<Option<usize>>,
    /// Groups of a position.
    groups: usize,
    /// Groups of a part.
    part: usize,
}

impl Band {
    /// The layout for so many lines; `None` where they are too many.
    fn new(g: &Geometry, lines: usize, parts: Parts) -> Option<Band> {
        let slides = &g.sweep.slides;
        let windows = [1, lines, slides[2].output];
        let extent = |slide: &Slide, windows: usize| {
            let window = (slide.size - 1).checked_mul(slide.dilation)?;
            (windows - 1).checked_mul(slide.stride)?.checked_add(window)?.checked_add(1)
        };
        let mut positions = [0; 3];
        for ((out, slide), windows) in positions.iter_mut().zip(slides).zip(windows) {
            *out = extent(slide, windows)?;
        }
        let [a, b, c] = slides.each_ref().map(|slide| slide.stride);
        let dims = [positions[0].div_ceil(a), positions[1].div_ceil(b), positions[2].div_ceil(c)];
        let mut slots = vec![None; a.checked_mul(b)?.checked_mul(c).filter(|&n| n <= 64)?];
        let mut used = 0;
        for (_, phase) in offsets(g) {
            let slot = &mut slots[phase_index(slides, phase)];
            if slot.is_none() {
                *slot = Some(used);
                used += 1;
            }
        }
        let groups = g.sweep.channels.next_multiple_of(DEPTH) / 2;
        // The last tiles of windows read beyond the last position.
        let n = dims[0].checked_mul(dims[1])?.checked_mul(dims[2])?.checked_mul(used)?;
        let part = n.checked_add(BLOCK)?.checked_mul(groups)?;
        let bytes = part.checked_mul(parts.count() * size_of::<u32>())?;
        (bytes <= LARGEST_BAND).then_some(Band { positions, dims, slots, groups, part })
    }

    /// Groups of a line of a phase.
    fn line(&self) -> usize {
        self.dims[2] * self.groups
    }

    /// Where a position of a phase is, counted in groups.
    fn at(&self, slot: usize, [x, y, z]: [usize; 3]) -> usize {
        let [a, b, c] = self.dims;
        (((slot * a + x) * b + y) * c + z) * self.groups
    }

    /// Where the steps of a window are, in bytes from its first position.
    fn steps(&self, g: &Geometry) -> Vec<usize> {
        let mut steps = Vec::new();
        for (at, phase) in offsets(g) {
            let slot = self.slots[phase_index(&g.sweep.slides, phase)].expect("it is read");
            let first = self.at(slot, at);
            let groups = (first..first + self.groups).step_by(DEPTH / 2);
            steps.extend(groups.map(|group| group * size_of::<u32>()));
        }
        steps
    }
}

/// The kernel offsets of a window in order: their positions in a phase, and the phase.
fn offsets(g: &Geometry) -> impl Iterator<Item = ([usize; 3], [usize; 3])> {
    let slides = &g.sweep.slides;
    let [a, b, c] = slides.each_ref().map(|slide| slide.size);
    let all = (0..a).flat_map(move |x| (0..b).flat_map(move |y| (0..c).map(move |z| [x, y, z])));
    all.map(|offset| {
        let along = |index: usize| (offset[index] * slides[index].dilation, slides[index].stride);
        let at = [0, 1, 2].map(along);
        (
            at.map(|(position, stride)| position / stride),
            at.map(|(position, stride)| position % stride),
        )
    })
}

/// The number of a phase.
fn phase_index(slides: &[Slide; 3], [x, y, z]: [usize; 3]) -> usize {
    (x * slides[1].stride + y) * slides[2].stride + z
}

impl SplitPlan {
    /// The way, where it is a good one.
    pub(super) fn new(g: &Geometry, precision: Precision) -> Option<SplitPlan> {
        let (unit, machine) = SplitUnit::detect(precision).zip(InstructionSet::detect())?;
        let parts = unit.parts;
        let Geometry { sweep, groups, filters } = g;
        let [_, b, c] = &sweep.slides;
        let channels = sweep.channels;
        let is_empty = sweep.slides.iter().any(|slide| slide.output == 0 || slide.size == 0);
        let uses = sweep.n_kernel_offsets().saturating_mul(*filters);
        let is_small = channels < FEWEST || *filters < FEWEST || uses < FEWEST_USES;
        if is_empty || *groups != 1 || is_small {
            return None;
        }
        // As many lines as there is room for, and bands of as many, give or take one.
        let mut lines = b.output;
        let band = loop {
            match Band::new(g, lines, parts) {
                Some(band)
                    if lines == 1 || parts.count() * size_of::<u32>() * band.part <= BAND =>
                {
                    break band;
                }
                None if lines == 1 => return None,
                _ => lines = lines.div_ceil(2),
            }
        };
        let even = b.output.div_ceil(b.output.div_ceil(lines));
        let (lines, band) = (even, if even == lines { band } else { Band::new(g, even, parts)? });
        let windows = (lines - 1) * band.dims[2] + c.output;
        let padded = |len: usize, to: usize| len.next_multiple_of(to) as f64 / len as f64;
        let waste = padded(channels, DEPTH)
            * padded(*filters, LINES)
            * windows.next_multiple_of(LINES) as f64
            / (lines * c.output) as f64;
        let work = (sweep.n_windows() as u64)
            .saturating_mul(g.depth() as u64)
            .saturating_mul(*filters as u64);
        let rows = sweep.windows_per_image();
        let serves = waste <= 1.7
            && rows >= parts.fewest_rows(g.depth().saturating_mul(*filters))
            && work >= LEAST_WORK;
        serves.then(|| {
            let (steps, packed) = (band.steps(g), PackedWeights::default());
            SplitPlan { unit, machine, lines, band, steps, packed }
        })
    }
}

/// The positions in the input among `n` that are a stride apart from this one on.
fn positions_inside(slide: &Slide, first: isize, n: usize) -> Range<usize> {
    let before = |position: isize| {
        let distance = position.saturating_sub(first).max(0) as usize;
        distance.div_ceil(slide.stride).min(n)
    };
    before(0)..before(isize::try_from(slide.input).unwrap_or(isize::MAX))
}

/// Lines of windows, with the parts of the input that they read.
struct SplitBand {
    groups: Scratch<u32>,
    magnitudes: Magnitudes,
}

/// Lines of windows: the first among all, and their number.
#[derive(Debug, Clone, Copy)]
struct Lines {
    first: usize,
    count: usize,
}

/// Panels of the filter.
enum Panels<'a> {
    Kept(&'a PackedMatrix),
    Fresh { groups: Scratch<u32>, magnitudes: Vec<Magnitudes>, len: usize },
}

impl Panels<'_> {
    /// The panel that begins with this filter.
    fn of(&self, filter: usize) -> Panel<'_> {
        match self {
            Panels::Kept(packed) => packed.split_panel(filter),
            Panels::Fresh { groups, magnitudes, len } => {
                let index = filter / BLOCK;
                Panel::new(&groups[index * len..][..*len], magnitudes[index])
            }
        }
    }
}

/// A convolution in tile registers.
pub(super) struct Split<'a> {
    pub(super) g: &'a Geometry,
    pub(super) plan: &'a SplitPlan,
    /// The way for numbers that cannot be split.
    pub(super) direct: &'a DirectPlan,
    pub(super) input: &'a [f32],
    /// The matrix `[kernel offsets, channels, filters]`.
    pub(super) filter: &'a [f32],
}

impl Split<'_> {
    /// Computes all windows, and finishes them. The filter is all of `tensor`, if it is that.
    pub(super) fn forward(
        &self,
        threads: &Threads,
        tensor: Option<&HostTensor>,
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
    ) -> Result<()> {
        let Split { g, plan, .. } = *self;
        let (depth, filters, channels) = (g.depth(), g.filters, g.sweep.channels);
        let layout = PackedLayout::split((plan.unit, plan.machine), depth, filters, channels);
        let packed = plan.packed.of(threads, g.sweep.n_windows(), tensor, layout);
        let panels = match &packed {
            Some(packed) => Panels::Kept(packed),
            None => self.pack(threads)?,
        };
        let [_, b, c] = &g.sweep.slides;
        let mut rect = Rect::new(out, g.sweep.n_windows(), filters, filters);
        let mut bands = Vec::new();
        for plane in 0..rect.rows() / (b.output * c.output) {
            for line in (0..b.output).step_by(plan.lines) {
                let count = plan.lines.min(b.output - line);
                let lines = Lines { first: plane * b.output + line, count };
                bands.push((lines, rect.take_rows(count * c.output)));
            }
        }
        let single = Threads::single();
        // With few bands the filters are what threads can share, if there are enough of them.
        let (n_bands, count) = (bands.len(), threads.count());
        let is_even = n_bands >= 2 * count || n_bands.is_multiple_of(count);
        let shares = !is_even && filters.div_ceil(SHARED_PANELS * BLOCK) >= count;
        let (outer, inner) = if shares { (&single, threads) } else { (threads, &single) };
        outer.try_for_each_piece(&mut bands, 1, |_, bands| {
            bands.iter_mut().try_for_each(|(lines, out)| {
                self.band(inner, *lines, &panels, out.reborrow(), finish)
            })
        })
    }

    /// Packs the filter.
    fn pack(&self, threads: &Threads) -> Result<Panels<'static>> {
        let (depth, channels) = (self.g.depth(), self.g.sweep.channels);
        let len = depth / channels * panel_len(self.plan.unit, channels);
        let mut groups = Scratch::new(self.g.filters.div_ceil(BLOCK) * len)?;
        let filter = Matrix::row_major(self.filter, self.g.filters);
        let (with, cols) = ((self.plan.unit, threads), 0..self.g.filters);
        let magnitudes = pack_panels(with, filter, cols, 0..depth, channels, &mut groups);
        Ok(Panels::Fresh { groups, magnitudes, len })
    }

    /// Computes the windows of a band.
    fn band(
        &self,
        threads: &Threads,
        lines: Lines,
        panels: &Panels<'_>,
        mut out: Rect<'_>,
        finish: Option<&dyn BlockEpilogue>,
    ) -> Result<()> {
        let linear = finish.and_then(BlockEpilogue::linear);
        let finish = finish.filter(|_| linear.is_none());
        let band = self.split(lines)?;
        let (filters, row) = (self.g.filters, lines.first * self.g.sweep.slides[2].output);
        let suits = |filter: usize| band.magnitudes.suit(panels.of(filter).magnitudes);
        if !(0..filters).step_by(BLOCK).all(suits) {
            let parts = (self.g, self.direct, self.input, self.filter);
            super::direct::lines(parts, linear, lines.first, out.reborrow())?;
            if let Some(finish) = finish {
                finish.apply(row, 0, out);
            }
            return Ok(());
        }
        let most = if threads.count() == 1 { filters } else { SHARED_PANELS };
        let mut pieces: Vec<_> = out.even_panels(threads, BLOCK, most).collect();
        threads.try_for_each_piece(&mut pieces, 1, |_, pieces| {
            for (first, out) in pieces {
                self.columns(&band, lines, panels, *first, linear, out.reborrow())?;
                if let Some(finish) = finish {
                    finish.apply(row, *first, out.reborrow());
                }
            }
            Ok(())
        })
    }

    /// Splits the part of the input that the windows of some lines read.
    fn split(&self, lines: Lines) -> Result<SplitBand> {
        let Split { g, plan, input, .. } = *self;
        let (band, slides, channels) = (&plan.band, &g.sweep.slides, g.sweep.channels);
        let [a, b, c] = slides;
        let (plane, line) = (lines.first / b.output, lines.first % b.output);
        let (image, plane) = (plane / a.output, plane % a.output);
        let firsts = [a.first(plane), b.first(line), c.first(0)];
        let mut groups = Scratch::new(plan.unit.parts.count() * band.part)?;
        let mut magnitudes = Magnitudes::NONE;
        let [n_a, _, n_c] = band.positions;
        let n_b = (lines.count - 1) * b.stride + (b.size - 1) * b.dilation + 1;
        for (x, y) in (0..n_a).flat_map(|x| (0..n_b).map(move |y| (x, y))) {
            let inside = |slide: &Slide, first: isize, index: usize| {
                let at = first.checked_add_unsigned(index)?;
                usize::try_from(at).ok().filter(|&at| at < slide.input)
            };
            let at = inside(a, firsts[0], x).zip(inside(b, firsts[1], y));
            for z in 0..c.stride.min(n_c) {
                let phase = [x % a.stride, y % b.stride, z];
                let Some(slot) = band.slots[phase_index(slides, phase)] else { continue };
                let first = band.at(slot, [x / a.stride, y / b.stride, 0]);
                let n = (n_c - z).div_ceil(c.stride);
                let own = at.map_or(0..0, |_| positions_inside(c, firsts[2] + z as isize, n));
                for part in 0..plan.unit.parts.count() {
                    let line = &mut groups[part * band.part + first..][..band.line()];
                    line[..own.start * band.groups].fill(0);
                    line[own.end * band.groups..].fill(0);
                }
                let Some((x, y)) = at.filter(|_| !own.is_empty()) else { continue };
                let from = (firsts[2] + (z + own.start * c.stride) as isize) as usize;
                let at = (((image * a.input + x) * b.input + y) * c.input + from) * channels;
                let len = ((own.len() - 1) * c.stride + 1) * channels;
                let (elements, at) = (&input[at..at + len], first + own.start * band.groups);
                let is_whole = c.stride == 1 && channels.is_multiple_of(DEPTH);
                let each = if is_whole { (len, len) } else { (channels, c.stride * channels) };
                let met = split_positions(plan.unit, elements, each, &mut groups[at..], band.part);
                magnitudes = magnitudes.and(met);
            }
        }
        Ok(SplitBand { groups, magnitudes })
    }

    /// Multiplies the windows of a band by some filters, of which this is the first.
    fn columns(
        &self,
        band: &SplitBand,
        lines: Lines,
        panels: &Panels<'_>,
        first: usize,
        linear: Option<(&LinearEpilogue<'_>, usize)>,
        mut out: Rect<'_>,
    ) -> Result<()> {
        let plan = self.plan;
        let (groups, steps) = (plan.band.groups, &plan.steps[..]);
        let (pitch, width) = (plan.band.dims[2], self.g.sweep.slides[2].output);
        let windows = (lines.count - 1) * pitch + width;
        let mut sums = Scratch::<f32>::new(windows.next_multiple_of(BLOCK) * BLOCK)?;
        let registers = plan.unit.registers();
        let results = self.g.sweep.n_windows() * self.g.filters;
        let none = LinearEpilogue::new(LinearSteps::default(), self.g.filters, results);
        let bytes = size_of::<u32>();
        let mut filter = first;
        while out.cols() > 0 {
            let mut column = out.take_cols(BLOCK);
            let cols = column.cols();
            let panel = panels.of(filter);
            for (index, sums) in sums.as_chunks_mut::<{ BLOCK * BLOCK }>().0.iter_mut().enumerate()
            {
                let first = index * BLOCK;
                let rows = (windows - first).min(BLOCK);
                let a = SplitRows {
                    parts: plan.unit.parts,
                    data: &band.groups[first * groups..],
                    steps,
                    row: bytes * groups,
                    part: bytes * plan.band.part,
                    tile: bytes * LINES * groups,
                };
                let panel = panel.before(panel.groups.len(), index);
                sum(&registers, a, panel, (rows, cols), sums);
            }
            for (line, sums) in sums.chunks(pitch * BLOCK).take(lines.count).enumerate() {
                let row = column.take_rows(width);
                let (epilogue, before) = linear.unwrap_or((&none, 0));
                let at = before + (lines.first + line) * width;
                epilogue.tile(at, filter, 1).put(plan.machine, sums, BLOCK, row);
            }
            filter += cols;
        }
        Ok(())
    }
}

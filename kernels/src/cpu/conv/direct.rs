//! Convolutions of `f32` without an im2col matrix: tiles of sums read the input without a copy.
//!
//! Windows of an area have the same taps inside the input. Those in a line are as far apart as the
//! stride says, so a few of them are the rows of a tile, and its steps are their taps and channels.
//! Padding is never read. Each element is a chain over its taps in order, cut by the geometry
//! alone.

use super::super::gemm::{
    BlockEpilogue, Matrix, apply_all,
    linear::LinearEpilogue,
    pack::pack_columns,
    rect::Rect,
    tile::{LeftOperand, PanelTiles, Right, Span},
    vector::InstructionSet,
    weights::{PackedLayout, PackedMatrix, PackedWeights},
};
use super::Geometry;
use crate::{error::Result, plan::window::Stretch, scratch::Scratch, threads::Threads};
use ferroflow_ir::HostTensor;
use std::{cmp::Reverse, ops::Range, sync::Arc};

/// The most steps of a tile: a panel of the filter fits the first-level cache.
const DEPTH: usize = 256;

/// The most panels of the filter that are packed at a time: reading longer parts of its rows pays.
const PANELS: usize = 4;

/// The most spans of all areas together. What has more has filters as large as the image.
const MAX_SPANS: usize = 1 << 16;

/// Fewer windows than this are worth no filter packed in advance: threads share the filters.
const FEW_WINDOWS: usize = 512;

/// Lines of windows that threads take at a time hold so many windows, roughly.
const WINDOWS_PER_PIECE: usize = 256;

/// Windows that have the same kernel offsets inside.
struct Area {
    stretches: [Stretch; 3],
    /// The steps of a window from its first kernel offset inside on, some at a time.
    blocks: Vec<Vec<Span>>,
}

impl Area {
    fn n_windows(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.windows.len()).product()
    }
}

/// Plan of the direct convolutions of a geometry.
pub(super) struct DirectPlan {
    machine: InstructionSet,
    areas: Vec<Area>,
    packed: PackedWeights,
}

impl DirectPlan {
    /// The way, where it is a good one.
    pub(super) fn new(g: &Geometry) -> Option<DirectPlan> {
        let machine = InstructionSet::detect()?;
        let stretches = g.sweep.slides.each_ref().map(Stretch::along);
        let n_areas: usize = stretches.iter().map(Vec::len).product();
        if n_areas.saturating_mul(g.sweep.n_kernel_offsets()) > MAX_SPANS || g.depth() == 0 {
            return None;
        }
        let mut areas = Vec::with_capacity(n_areas);
        for a in &stretches[0] {
            for b in &stretches[1] {
                for c in &stretches[2] {
                    let stretches = [a.clone(), b.clone(), c.clone()];
                    let blocks = blocks(g, machine, &stretches);
                    areas.push(Area { stretches, blocks });
                }
            }
        }
        // The many tiles of a large area ask for the filter ahead, and smaller ones find it in the cache.
        areas.sort_by_key(|area| Reverse(area.n_windows()));
        Some(DirectPlan { machine, areas, packed: PackedWeights::default() })
    }
}

/// A group of filters, and the epilogue of its tiles with the row of all results that is the first
/// here.
#[derive(Clone, Copy)]
struct Group<'a> {
    index: usize,
    linear: Option<(&'a LinearEpilogue<'a>, usize)>,
}

/// Where the windows of an area are.
struct AreaOffset {
    /// The image, and the plane of its output.
    place: (usize, usize),
    /// Lines of the plane.
    lines: Range<usize>,
    /// The number of the first of their windows among all, and of the first filter.
    row: usize,
    column: usize,
}

/// Computes lines of windows that begin with this one of all, which `out` holds. There is one group.
#[cfg(target_arch = "x86_64")]
pub(super) fn lines(
    (g, plan, input, filter): (&Geometry, &DirectPlan, &[f32], &[f32]),
    linear: Option<(&LinearEpilogue<'_>, usize)>,
    first: usize,
    out: Rect<'_>,
) -> Result<()> {
    let (machine, areas) = (plan.machine, &plan.areas);
    let direct = Direct { g, machine, areas, input, filter, packed: None };
    let mut panels = Scratch::new(g.own_filters().next_multiple_of(machine.cols()) * g.depth())?;
    direct.pack(&Threads::single(), 0, 0, &mut panels);
    direct.lines(Group { index: 0, linear }, &panels, (first, 0), out);
    Ok(())
}

/// A convolution by areas.
pub(super) struct Direct<'a> {
    g: &'a Geometry,
    machine: InstructionSet,
    areas: &'a [Area],
    input: &'a [f32],
    /// The matrix `[kernel offsets, channels of a group, filters]`.
    filter: &'a [f32],
    /// The filter in panels as wide as a tile, where there is one group.
    packed: Option<Arc<PackedMatrix>>,
}

impl<'a> Direct<'a> {
    /// A convolution with a filter that is all of `tensor`, if it is that.
    pub(super) fn new(
        threads: &Threads,
        g: &'a Geometry,
        plan: &'a DirectPlan,
        input: &'a [f32],
        filter: &'a [f32],
        tensor: Option<&HostTensor>,
    ) -> Direct<'a> {
        let (machine, areas) = (plan.machine, &plan.areas);
        let layout = PackedLayout::whole(machine, g.depth(), g.filters);
        let tensor = tensor.filter(|_| g.groups == 1);
        let packed = plan.packed.of(threads, g.sweep.n_windows(), tensor, layout);
        Direct { g, machine, areas, input, filter, packed }
    }

    /// Computes all windows, and finishes them: by lines where all filters are in one group.
    pub(super) fn forward(
        &self,
        threads: &Threads,
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
    ) -> Result<()> {
        let g = self.g;
        let has_few = g.sweep.n_windows() <= FEW_WINDOWS;
        let linear = finish.and_then(BlockEpilogue::linear);
        let epilogue = finish.filter(|_| linear.is_none());
        let by_lines = epilogue.filter(|_| g.groups == 1 && !has_few);
        let mut rect = Rect::new(out, g.sweep.n_windows(), g.filters, g.filters);
        for index in 0..g.groups {
            let own = rect.take_cols(g.own_filters());
            let group = Group { index, linear };
            if has_few {
                self.by_filters(threads, group, own)?;
            } else {
                self.by_lines(threads, group, own, by_lines)?;
            }
        }
        if let (Some(finish), None) = (epilogue, by_lines) {
            apply_all(threads, finish, out, g.filters);
        }
        Ok(())
    }

    /// The columns of the filter of a group, from the `first` on, in panels as wide as a tile.
    fn pack(&self, threads: &Threads, group: usize, first: usize, panels: &mut [f32]) {
        let (own, depth) = (self.g.own_filters(), self.g.depth());
        let last = own.min(first + panels.len() / depth);
        let columns = group * own + first..group * own + last;
        let filter = Matrix::row_major(self.filter, self.g.filters);
        pack_columns(threads, self.machine, filter, columns, &(0..depth), panels);
    }

    /// Threads share the filters; each packs its own.
    fn by_filters(&self, threads: &Threads, group: Group<'_>, out: Rect<'_>) -> Result<()> {
        let (wide, depth) = (self.machine.cols(), self.g.depth());
        let cached = (self.machine.cached() / (wide * depth)).clamp(2, PANELS);
        let mut pieces: Vec<_> = out.even_panels(threads, wide, cached).collect();
        threads.try_for_each_piece(&mut pieces, 1, |_, pieces| {
            for (first, out) in pieces {
                let n = out.cols().next_multiple_of(wide) * depth;
                if let Some(packed) = &self.packed {
                    let panels = &packed.panels(&(0..depth), *first)[..n];
                    self.lines(group, panels, (0, *first), out.reborrow());
                    continue;
                }
                // The memory that the last piece had, as a rule, and still in the cache.
                let mut panels = Scratch::new(n)?;
                self.pack(&Threads::single(), group.index, *first, &mut panels);
                self.lines(group, &panels, (0, *first), out.reborrow());
            }
            Ok(())
        })
    }

    /// Threads share lines of windows, and apply the epilogue.
    fn by_lines(
        &self,
        threads: &Threads,
        group: Group<'_>,
        mut out: Rect<'_>,
        finish: Option<&dyn BlockEpilogue>,
    ) -> Result<()> {
        let (wide, depth) = (self.machine.cols(), self.g.depth());
        let mut room;
        let panels: &[f32] = if let Some(packed) = &self.packed {
            packed.panels(&(0..depth), 0)
        } else {
            room = Scratch::new(self.g.own_filters().next_multiple_of(wide) * depth)?;
            self.pack(threads, group.index, 0, &mut room);
            &room
        };
        let [_, b, c] = &self.g.sweep.slides;
        // Pieces end where planes do.
        let mut pieces = Vec::new();
        for plane in 0..out.rows() / (b.output * c.output) {
            for lines in threads.even_ranges(b.output, WINDOWS_PER_PIECE / c.output) {
                let rows = out.take_rows(lines.len() * c.output);
                pieces.push((plane * b.output + lines.start, rows));
            }
        }
        threads.for_each(pieces.into_iter(), |(line, mut out)| {
            self.lines(group, panels, (line, 0), out.reborrow());
            if let Some(finish) = finish {
                finish.apply(line * c.output, 0, out);
            }
        });
        Ok(())
    }

    /// Computes the windows of `out`: lines and filters of a group from those with these numbers
    /// on, as many filters as there are panels.
    fn lines(
        &self,
        group: Group<'_>,
        panels: &[f32],
        (first, first_filter): (usize, usize),
        mut out: Rect<'_>,
    ) {
        let [a, b, c] = &self.g.sweep.slides;
        let n_lines = out.rows() / c.output;
        let panels = panels.chunks(self.machine.cols() * self.g.depth());
        for (index, panel) in panels.enumerate() {
            let mut columns = out.take_cols(self.machine.cols());
            let filter = first_filter + index * self.machine.cols();
            let column = group.index * self.g.own_filters() + filter;
            let mut line = first;
            while line < first + n_lines {
                // What lies in one plane of the output.
                let (plane, begin) = (line / b.output, line % b.output);
                let end = b.output.min(begin + first + n_lines - line);
                let mut part = columns.reborrow().every(
                    (line - first) * c.output,
                    1,
                    (end - begin) * c.output,
                );
                let offset = (plane / a.output, plane % a.output);
                for area in self.areas {
                    if area.stretches[0].windows.contains(&offset.1) {
                        let offset = AreaOffset {
                            place: offset,
                            lines: begin..end,
                            row: line * c.output,
                            column,
                        };
                        self.area(area, group, panel, offset, &mut part);
                    }
                }
                line += end - begin;
            }
        }
    }

    /// Computes the windows of an area that are in some lines of a plane, which `out` holds.
    fn area(
        &self,
        area: &Area,
        group: Group<'_>,
        panel: &[f32],
        place: AreaOffset,
        out: &mut Rect<'_>,
    ) {
        let AreaOffset { place: (image, plane), lines, row, column: first_column } = place;
        let channels = self.g.sweep.channels;
        let [a, b, c] = &self.g.sweep.slides;
        let [of_a, of_b, of_c] = &area.stretches;
        let begin = of_b.windows.start.max(lines.start);
        let end = of_b.windows.end.min(lines.end);
        if begin >= end {
            return;
        }
        let (height, width) = (end - begin, of_c.windows.len());
        // Tiles go along the longer side.
        let along_lines = width >= height;
        let (outer, inner) = if along_lines { (height, width) } else { (width, height) };
        let (row_stride, out_step) = match along_lines {
            true => (c.stride * channels, 1),
            false => (b.stride * c.input * channels, c.output),
        };
        let tile_rows = inner.div_ceil(inner.div_ceil(self.machine.rows()));
        let (wide, n_tiles) = (self.machine.cols(), outer * inner.div_ceil(tile_rows));
        let x = image * a.input + of_a.first(a, plane);
        for (index, block) in area.blocks.iter().enumerate() {
            let steps = block.iter().map(|span| span.len).sum();
            let tiles = PanelTiles::new(wide, steps, n_tiles);
            let mut tile = 0;
            for outer in 0..outer {
                for inner_first in (0..inner).step_by(tile_rows) {
                    let right = Right::panel(panel, wide, tile, &tiles);
                    tile += 1;
                    let (line, column) =
                        if along_lines { (outer, inner_first) } else { (inner_first, outer) };
                    let (y, z) = (begin + line, of_c.windows.start + column);
                    let position = (x * b.input + of_b.first(b, y)) * c.input + of_c.first(c, z);
                    let at = position * channels + self.g.channels(group.index).start;
                    let left = &self.input[at.min(self.input.len())..];
                    let left = LeftOperand { data: left, row_stride, step_stride: 1 };
                    let rows = tile_rows.min(inner - inner_first);
                    let window = (y - lines.start) * c.output + z;
                    let offset = out.reborrow().every(window, out_step, rows);
                    let last = group.linear.filter(|_| index + 1 == area.blocks.len());
                    let epilogue = last.map(|(epilogue, first)| {
                        epilogue.tile(first + row + window, first_column, out_step)
                    });
                    self.machine.tile(left, right, block, offset, index > 0, epilogue);
                }
            }
        }
    }
}

/// The steps of the windows that have these kernel offsets inside, [`DEPTH`] at a time. There is
/// one block at least.
fn blocks(g: &Geometry, machine: InstructionSet, stretches: &[Stretch; 3]) -> Vec<Vec<Span>> {
    let [a, b, c] = &g.sweep.slides;
    let [of_a, of_b, of_c] = stretches;
    let (channels, own) = (g.sweep.channels, g.channels(0).len());
    // Neighbouring taps that follow each other in the input.
    let joined = if c.dilation == 1 && own == channels { of_c.taps.len().max(1) } else { 1 };
    let mut blocks = vec![Vec::new()];
    let mut room = DEPTH;
    for x in of_a.taps.clone() {
        for y in of_b.taps.clone() {
            for z in of_c.taps.clone().step_by(joined) {
                let position = ((x - of_a.taps.start) * a.dilation * b.input
                    + (y - of_b.taps.start) * b.dilation)
                    * c.input
                    + (z - of_c.taps.start) * c.dilation;
                let kernel_offset = (x * b.size + y) * c.size + z;
                let (mut left, mut step, mut rest) =
                    (position * channels, kernel_offset * own, joined * own);
                while rest > 0 {
                    if room == 0 {
                        blocks.push(Vec::new());
                        room = DEPTH;
                    }
                    let len = rest.min(room);
                    let span = Span { left, right: step * machine.cols(), len };
                    blocks.last_mut().expect("there is one").push(span);
                    (left, step, rest, room) = (left + len, step + len, rest - len, room - len);
                }
            }
        }
    }
    blocks
}

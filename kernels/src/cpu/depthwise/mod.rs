//! Depthwise convolutions and their gradients: every channel has filters of its own.
//!
//! Convolutions of `f32` go through tiles of sums in registers ([`lines`]); sums of others, which
//! are kept in `f32` for 16-bit floats, go position by position. Threads share the rows of the
//! output; for the gradient by the filter they share its taps.

mod lines;
#[cfg(test)]
mod tests;
mod tile;

use super::{Build, conv::channels_first, dispatch::with_float, gemm::GemmElement};
use super::{
    gemm::{BlockEpilogue, apply_all},
    region::epilogue::ExprEpilogue,
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    plan::{sliding, window::Sweep},
    simd::{Vectorized, vectorize},
    threads::Threads,
    wide::{Round, WideElement},
};
use ferroflow_ir::{Shape, window::Slide};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("DepthwiseConv2dNative", convolution),
    ("DepthwiseConv2dNativeBackpropFilter", backprop_filter),
    ("DepthwiseConv2dNativeBackpropInput", backprop_input),
];

/// Windows over `channels` channels, each with `multiplier` filters.
#[derive(Debug, Clone)]
struct Geometry {
    sweep: Sweep,
    multiplier: usize,
}

impl Geometry {
    fn new(call: &OpCall<'_>, input: &Shape, filter: &Shape) -> Result<Geometry> {
        let sweep = sliding::convolution(call, input, filter)?;
        let sweep = sweep.ok_or_else(|| channels_first(call))?;
        Ok(Geometry { sweep, multiplier: filter[3] })
    }

    /// The channels of the output.
    fn filters(&self) -> usize {
        self.sweep.channels * self.multiplier
    }
}

/// A term that contributes to an output position: where its weights and its factors begin.
type Pair = (usize, usize);

/// Correspondence of the channels of factors to those of the output.
#[derive(Debug, Clone, Copy)]
enum ChannelMap {
    /// A channel each.
    Plain,
    /// Each channel of the factors has so many of the output.
    Spread(usize),
    /// Each channel of the output has so many of the factors.
    Fold(usize),
}

/// Elements per piece of work.
const PIECE: usize = 1 << 14;

/// Computes `[batch, rows, columns, width]`: each position is the sum of the terms that `pairs`
/// lists for its element of the batch, row and column.
fn sum_pairs<A: Number<Acc = A>>(
    threads: &Threads,
    form: ChannelMap,
    [rows, columns, width]: [usize; 3],
    weights: &[A],
    factors: &[A],
    out: &mut [A],
    pairs: impl Fn([usize; 3], &mut Vec<Pair>) + Sync,
) {
    let line = columns * width;
    if out.is_empty() {
        return;
    }
    threads.for_each_piece(out, (PIECE / line).max(1) * line, |start, out| {
        let mut list = Vec::new();
        for (index, out) in out.chunks_mut(line).enumerate() {
            let index = start / line + index;
            let (image, row) = (index / rows, index % rows);
            let pairs = |column, list: &mut Vec<Pair>| pairs([image, row, column], list);
            vectorize(Line { form, width, weights, factors, out, pairs, list: &mut list });
        }
    });
}

struct Line<'a, A, P> {
    form: ChannelMap,
    width: usize,
    weights: &'a [A],
    factors: &'a [A],
    out: &'a mut [A],
    pairs: P,
    list: &'a mut Vec<Pair>,
}

impl<A: Number<Acc = A>, P: Fn(usize, &mut Vec<Pair>)> Vectorized for Line<'_, A, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (column, out) in self.out.chunks_mut(self.width).enumerate() {
            self.list.clear();
            (self.pairs)(column, self.list);
            match self.form {
                ChannelMap::Plain => plain(self.weights, self.factors, self.list, out),
                ChannelMap::Spread(n) => {
                    out.fill(A::ZERO);
                    for &(weights, factors) in &*self.list {
                        let weights = self.weights[weights..].chunks_exact(n);
                        let factors = &self.factors[factors..];
                        for ((out, weights), &factor) in
                            out.chunks_exact_mut(n).zip(weights).zip(factors)
                        {
                            for (out, &weight) in out.iter_mut().zip(weights) {
                                *out = out.plus(factor.times(weight));
                            }
                        }
                    }
                }
                ChannelMap::Fold(n) => {
                    out.fill(A::ZERO);
                    for &(weights, factors) in &*self.list {
                        let weights = self.weights[weights..].chunks_exact(n);
                        let factors = self.factors[factors..].chunks_exact(n);
                        for ((out, weights), factors) in out.iter_mut().zip(weights).zip(factors) {
                            for (&weight, &factor) in weights.iter().zip(factors) {
                                *out = out.plus(factor.times(weight));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sums with as many channels at a time as registers hold.
#[inline(always)]
fn plain<A: Number<Acc = A>>(weights: &[A], factors: &[A], pairs: &[Pair], out: &mut [A]) {
    let (wide, rest) = out.as_chunks_mut::<32>();
    let first = wide.len() * 32;
    for (index, out) in wide.iter_mut().enumerate() {
        *out = block(weights, factors, pairs, index * 32);
    }
    let (narrow, rest) = rest.as_chunks_mut::<8>();
    let last = first + narrow.len() * 8;
    for (index, out) in narrow.iter_mut().enumerate() {
        *out = block(weights, factors, pairs, first + index * 8);
    }
    for (index, out) in rest.iter_mut().enumerate() {
        [*out] = block(weights, factors, pairs, last + index);
    }
}

#[inline(always)]
fn block<A: Number<Acc = A>, const N: usize>(
    weights: &[A],
    factors: &[A],
    pairs: &[Pair],
    channel: usize,
) -> [A; N] {
    let mut sums = [A::ZERO; N];
    for &(weight, factor) in pairs {
        let weights = &weights[weight + channel..][..N];
        let factors = &factors[factor + channel..][..N];
        for ((sum, &weight), &factor) in sums.iter_mut().zip(weights).zip(factors) {
            *sum = sum.plus(weight.times(factor));
        }
    }
    sums
}

fn convolution(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: GemmElement>>(g: Geometry) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (input, filter) = (T::widen(io.input(0)), T::widen(io.input(1)));
            let threads = io.threads();
            T::through_acc(io.output(0), |out| forward(threads, &g, &input, &filter, out));
            Ok(())
        })
    }
    let geometry = Geometry::new(call, call.shape(0), call.shape(1))?;
    Ok(with_float!(call.dtype(0), T => kernel::<T>(geometry)))
}

/// A convolution of `f32` that is computed some rows of an image at a time.
pub(super) struct DepthwiseRows(Geometry);

impl DepthwiseRows {
    /// The convolution of a call; `None` where there are no lines for it.
    pub(super) fn new(call: &OpCall<'_>) -> Result<Option<DepthwiseRows>> {
        let g = Geometry::new(call, call.shape(0), call.shape(1))?;
        let serves = lines::DepthwiseLines::new(&g, &[], &[]).is_some();
        Ok(serves.then_some(DepthwiseRows(g)))
    }

    pub(super) fn sweep(&self) -> &Sweep {
        &self.0.sweep
    }

    /// Computes the rows of all images that fill `out`, from row `start` on, and finishes them.
    /// `input` begins with row `first` of all images.
    pub(super) fn compute(
        &self,
        (input, first): (&[f32], usize),
        filter: &[f32],
        (out, start): (&mut [f32], usize),
        finish: Option<&dyn BlockEpilogue>,
    ) {
        let lines = lines::DepthwiseLines::new(&self.0, input, filter).expect("asked before");
        lines.starting_at(first).compute(start, out, finish);
    }
}

/// Convolutions of `f32` with an epilogue.
pub(super) fn with_epilogue(
    call: &OpCall<'_>,
    epilogue: ExprEpilogue,
) -> Result<Option<Arc<dyn Kernel>>> {
    let g = Geometry::new(call, call.shape(0), call.shape(1))?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let epilogue = epilogue.on(io, 2);
        let (input, filter): (&[f32], &[f32]) = (io.input(0), io.input(1));
        let (threads, out) = (io.threads(), io.output(0));
        match lines::DepthwiseLines::new(&g, input, filter) {
            Some(lines) => lines.forward(threads, out, Some(&epilogue)),
            None => {
                forward(threads, &g, input, filter, out);
                apply_all(threads, &epilogue, out, g.filters());
            }
        }
        Ok(())
    })))
}

fn forward<A: GemmElement<Acc = A>>(
    threads: &Threads,
    g: &Geometry,
    input: &[A],
    filter: &[A],
    out: &mut [A],
) {
    if let (Some(input), Some(filter)) = (A::floats(input), A::floats(filter))
        && let Some(lines) = lines::DepthwiseLines::new(g, input, filter)
        && let Some(out) = A::floats_mut(out)
    {
        return lines.forward(threads, out, None);
    }
    let [_, rows, columns] = &g.sweep.slides;
    let channel_map =
        if g.multiplier == 1 { ChannelMap::Plain } else { ChannelMap::Spread(g.multiplier) };
    let size = [rows.output, columns.output, g.filters()];
    let pairs = |[image, row, column]: [usize; 3], pairs: &mut Vec<Pair>| {
        for y in rows.kernel_offsets(row) {
            let line = image * rows.input + at(rows, row, y);
            for x in columns.kernel_offsets(column) {
                let position = line * columns.input + at(columns, column, x);
                let kernel_offset = y * columns.size + x;
                pairs.push((kernel_offset * g.filters(), position * g.sweep.channels));
            }
        }
    };
    sum_pairs(threads, channel_map, size, filter, input, out, pairs);
}

/// The position of a kernel offset that is not in the padding.
fn at(slide: &Slide, window: usize, tap: usize) -> usize {
    (slide.first(window) + (tap * slide.dilation) as isize) as usize
}

fn backprop_input(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement>(g: Geometry) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (filter, dy) = (T::widen(io.input(1)), T::widen(io.input(2)));
            let threads = io.threads();
            T::through_acc(io.output(0), |dx| by_input(threads, &g, &filter, &dy, dx));
            Ok(())
        })
    }
    let geometry = Geometry::new(call, &call.output_shape(0)?, call.shape(1))?;
    Ok(with_float!(call.dtype(1), T => kernel::<T>(geometry)))
}

/// Each position of the input sums over the windows that have a kernel offset there.
fn by_input<A: Number<Acc = A>>(
    threads: &Threads,
    g: &Geometry,
    filter: &[A],
    dy: &[A],
    dx: &mut [A],
) {
    if g.multiplier == 0 {
        return dx.fill(A::ZERO);
    }
    let [_, rows, columns] = &g.sweep.slides;
    let channel_map =
        if g.multiplier == 1 { ChannelMap::Plain } else { ChannelMap::Fold(g.multiplier) };
    let size = [rows.input, columns.input, g.sweep.channels];
    let pairs = |[image, row, column]: [usize; 3], pairs: &mut Vec<Pair>| {
        for (y, window_y) in rows.covering(row) {
            for (x, window_x) in columns.covering(column) {
                let window = (image * rows.output + window_y) * columns.output + window_x;
                pairs.push(((y * columns.size + x) * g.filters(), window * g.filters()));
            }
        }
    };
    sum_pairs(threads, channel_map, size, filter, dy, dx, pairs);
}

fn backprop_filter(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement>(g: Geometry) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (input, dy) = (T::widen(io.input(0)), T::widen(io.input(2)));
            let threads = io.threads();
            T::through_acc(io.output(0), |dw| by_filter(threads, &g, &input, &dy, dw, T::ROUND));
            Ok(())
        })
    }
    let geometry = Geometry::new(call, call.shape(0), &call.output_shape(0)?)?;
    Ok(with_float!(call.dtype(0), T => kernel::<T>(geometry)))
}

/// Each kernel offset sums over all windows, line by line. With `round`, image by image, and every
/// sum is rounded at every step, as TensorFlow does for 16-bit floats
/// (`depthwise_conv_grad_op.cc`).
fn by_filter<A: Number<Acc = A>>(
    threads: &Threads,
    g: &Geometry,
    input: &[A],
    dy: &[A],
    dw: &mut [A],
    round: Option<Round<A>>,
) {
    let [_, rows, columns] = &g.sweep.slides;
    let filters = g.filters();
    if dw.is_empty() {
        return;
    }
    threads.for_each_piece(dw, filters, |start, dw| {
        let kernel_offset = start / filters;
        let (y, x) = (kernel_offset / columns.size, kernel_offset % columns.size);
        let inside = |slide: &Slide, tap: usize| {
            let windows =
                (0..slide.output).filter(|&window| slide.kernel_offsets(window).contains(&tap));
            windows.map(|window| (window, at(slide, window, tap))).collect::<Vec<_>>()
        };
        let (lines, windows) = (inside(rows, y), inside(columns, x));
        let mut sums = vec![A::ZERO; filters];
        dw.fill(A::ZERO);
        for image in 0..g.sweep.batch {
            sums.fill(A::ZERO);
            for &(window_y, position_y) in &lines {
                let dy_line = (image * rows.output + window_y) * columns.output;
                let x_line = (image * rows.input + position_y) * columns.input;
                let line = AddLine {
                    windows: &windows,
                    channels: g.sweep.channels,
                    input: &input[x_line * g.sweep.channels..],
                    dy: &dy[dy_line * filters..],
                    sums: &mut sums,
                };
                match round {
                    Some(round) => line.run_rounded(round),
                    None => vectorize(line),
                }
            }
            for (dw, &sum) in dw.iter_mut().zip(&sums) {
                let sum = dw.plus(sum);
                *dw = round.map_or(sum, |round| round(sum));
            }
        }
    });
}

/// Sum of a line of windows for a single kernel offset of the filter.
struct AddLine<'a, A> {
    windows: &'a [(usize, usize)],
    channels: usize,
    input: &'a [A],
    dy: &'a [A],
    sums: &'a mut [A],
}

impl<A: Number<Acc = A>> AddLine<'_, A> {
    fn run_rounded(self, round: Round<A>) {
        let multiplier = self.sums.len() / self.channels;
        for &(window, position) in self.windows {
            let x = &self.input[position * self.channels..][..self.channels];
            let dy = &self.dy[window * self.sums.len()..][..self.sums.len()];
            for (index, (sum, &dy)) in self.sums.iter_mut().zip(dy).enumerate() {
                *sum = round(sum.plus(x[index / multiplier].times(dy)));
            }
        }
    }
}

impl<A: Number<Acc = A>> Vectorized for AddLine<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let multiplier = self.sums.len() / self.channels;
        for &(window, position) in self.windows {
            let x = &self.input[position * self.channels..][..self.channels];
            let dy = &self.dy[window * self.sums.len()..][..self.sums.len()];
            if multiplier == 1 {
                for ((sum, &x), &dy) in self.sums.iter_mut().zip(x).zip(dy) {
                    *sum = sum.plus(x.times(dy));
                }
                continue;
            }
            let (sums, dy) = (self.sums.chunks_exact_mut(multiplier), dy.chunks_exact(multiplier));
            for ((sums, &x), dy) in sums.zip(x).zip(dy) {
                for (sum, &dy) in sums.iter_mut().zip(dy) {
                    *sum = sum.plus(x.times(dy));
                }
            }
        }
    }
}

//! Convolutions over two and three spatial dimensions, and their gradients, as matmuls.
//!
//! Those of `f32` go through tiles that read the input where it lies ([`direct`],
//! [`direct_filter`]). For others, the taps of a tile of windows are laid out as the rows of a
//! matrix, which is multiplied by the filter. Gradients by the input of stride 1 are convolutions
//! with the reversed filter; other strides multiply first and add the rows to where the taps came
//! from. Sums are kept in `f32` for 16-bit floats. Tiles are cut by sizes alone.

mod direct;
mod direct_filter;
mod float;
#[cfg(target_arch = "x86_64")]
mod split;

#[cfg(test)]
mod tests;

use super::region::epilogue::ExprEpilogue;
use super::{
    Build,
    dispatch::with_real,
    gemm::{GemmElement, GemmOutput, GemmSizes, Matrix, gemm},
};
use crate::{
    Precision,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::{sliding, window::Sweep},
    scratch::Scratch,
    threads::Threads,
    wide::{Round, WideElement},
};
use ferroflow_ir::{Error, Shape};
use float::FloatConvolution;
pub(super) use float::PointwiseRows;
use std::{ops::Range, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("Conv2D", convolution),
    ("Conv2DBackpropFilter", backprop_filter),
    ("Conv2DBackpropFilterV2", backprop_filter),
    ("Conv2DBackpropInput", backprop_input),
    ("Conv2DBackpropInputV2", backprop_input),
    ("Conv3D", convolution),
    ("Conv3DBackpropFilterV2", backprop_filter),
    ("Conv3DBackpropInputV2", backprop_input),
];

/// A convolution `[windows, offsets × channels] × [offsets × channels, filters]`, group by group.
#[derive(Debug, Clone)]
pub(super) struct Geometry {
    sweep: Sweep,
    groups: usize,
    filters: usize,
}

impl Geometry {
    /// The geometry of a call that convolves tensors of these shapes.
    pub(super) fn new(call: &OpCall<'_>, input: &Shape, filter: &Shape) -> Result<Geometry> {
        let sweep = sliding::convolution(call, input, filter)?;
        let sweep = sweep.ok_or_else(|| channels_first(call))?;
        let (own, filters) = (filter[filter.rank() - 2], filter[filter.rank() - 1]);
        let groups = sweep.channels.checked_div(own).unwrap_or(1).max(1);
        Ok(Geometry { sweep, groups, filters })
    }

    /// The channels of group `index`.
    fn channels(&self, index: usize) -> Range<usize> {
        let width = self.sweep.channels / self.groups;
        index * width..(index + 1) * width
    }

    /// The number of filters of a group.
    fn own_filters(&self) -> usize {
        self.filters / self.groups
    }

    /// The elements of one group's window.
    fn depth(&self) -> usize {
        self.sweep.n_kernel_offsets() * (self.sweep.channels / self.groups)
    }

    /// The sizes of the matmul that a pointwise convolution is.
    fn pointwise(&self) -> GemmSizes {
        GemmSizes { m: self.sweep.n_windows(), k: self.depth(), n: self.filters }
    }

    /// The convolution that returns the gradient by the input, where the stride is 1.
    fn reversed(&self) -> Geometry {
        let slides = self.sweep.slides.map(|slide| slide.reversed());
        let sweep = Sweep { batch: self.sweep.batch, channels: self.filters, slides };
        Geometry { sweep, groups: self.groups, filters: self.sweep.channels }
    }
}

/// The error that channels must come last.
pub(super) fn channels_first(call: &OpCall<'_>) -> crate::Error {
    let what = "channels before the spatial dimensions".into();
    Error::Unsupported { op: call.op.name.into(), what }.into()
}

/// Elements of the im2col matrix that are worked on at a time, if that makes enough windows.
const TILE: usize = 1 << 17;

/// Windows that are worth a tile, if their kernel offsets take no more than [`LARGEST_TILE`]
/// elements.
const ENOUGH_WINDOWS: usize = 64;

const LARGEST_TILE: usize = 1 << 22;

/// Windows per tile, when the kernel offsets of one take `depth` elements.
fn windows_per_tile(depth: usize) -> usize {
    let depth = depth.max(1);
    (TILE / depth).max(ENOUGH_WINDOWS).min(LARGEST_TILE / depth).clamp(1, 1024)
}

fn convolution(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: GemmElement + Default>>(g: Geometry) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (input, filter) = (T::widen(io.input(0)), T::widen(io.input(1)));
            let threads = io.threads();
            T::through_acc(io.output(0), |out| forward(threads, &g, &input, &filter, out))
        })
    }
    let geometry = Geometry::new(call, call.shape(0), call.shape(1))?;
    if call.dtype(0) == ferroflow_ir::DType::F32 {
        let convolution = FloatConvolution::new(geometry, call.precision);
        return Ok(Some(Arc::new(move |io: &mut Io<'_>| convolution.run(io, None))));
    }
    Ok(with_real!(call.dtype(0), T => kernel::<T>(geometry)))
}

/// Computes the windows of `input` times `filter`,
/// `[kernel offsets, channels of a group, filters]`.
pub(super) fn forward<A: GemmElement<Acc = A> + Default>(
    threads: &Threads,
    g: &Geometry,
    input: &[A],
    filter: &[A],
    out: &mut [A],
) -> Result<()> {
    if let (Some(input), Some(filter)) = (A::floats(input), A::floats(filter))
        && let Some(out) = A::floats_mut(out)
    {
        let convolution = FloatConvolution::new(g.clone(), Precision::Full);
        return convolution.forward(threads, input, (filter, None), out, None);
    }
    by_im2col(threads, g, input, filter, out)
}

/// Computes the windows with their kernel offsets laid out as rows of matrices.
fn by_im2col<A: GemmElement<Acc = A> + Default>(
    threads: &Threads,
    g: &Geometry,
    input: &[A],
    filter: &[A],
    out: &mut [A],
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let (n_windows, depth) = (g.sweep.n_windows(), g.depth());
    if g.groups == 1 && g.sweep.is_pointwise() {
        let (a, b) = (Matrix::row_major(input, depth), Matrix::row_major(filter, g.filters));
        gemm(threads, g.pointwise(), a, b, GemmOutput::row_major(out, g.filters));
        return Ok(());
    }
    let per_tile = windows_per_tile(depth);
    let single = Threads::single();
    // With few windows the columns of the product are what threads can share.
    let (outer, inner) =
        if n_windows <= 2 * per_tile { (&single, threads) } else { (threads, &single) };
    outer.try_for_each_piece(out, per_tile * g.filters, |start, out| {
        let first = start / g.filters;
        let windows = first..first + out.len() / g.filters;
        let mut offsets = Scratch::<A>::new(windows.len() * depth)?;
        for group in 0..g.groups {
            let channels = g.channels(group);
            g.sweep.gather(
                input,
                windows.clone(),
                0..g.sweep.n_kernel_offsets(),
                channels,
                &mut offsets,
            );
            let own = g.own_filters();
            let sizes = GemmSizes { m: windows.len(), k: depth, n: own };
            let filter = Matrix::row_major(&filter[(group * own).min(filter.len())..], g.filters);
            let data = &mut out[group * own..];
            let output = GemmOutput { data, row_stride: g.filters, accumulate: false };
            gemm(inner, sizes, Matrix::row_major(&offsets, depth), filter, output);
        }
        Ok(())
    })
}

/// Convolutions of `f32` with an epilogue.
pub(super) fn with_epilogue(
    call: &OpCall<'_>,
    epilogue: ExprEpilogue,
) -> Result<Option<Arc<dyn Kernel>>> {
    let geometry = Geometry::new(call, call.shape(0), call.shape(1))?;
    let convolution = FloatConvolution::new(geometry, call.precision);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let epilogue = epilogue.on(io, 2);
        convolution.run(io, Some(&epilogue))
    })))
}

fn backprop_input(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: GemmElement + Default>>(g: Geometry) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (filter, dy) = (T::widen(io.input(1)), T::widen(io.input(2)));
            let threads = io.threads();
            T::through_acc(io.output(0), |dx| {
                if g.groups == 1 && g.sweep.is_pointwise() {
                    let sizes = GemmSizes { m: g.sweep.n_windows(), k: g.filters, n: g.depth() };
                    let transposed = Matrix::row_major(&filter, g.filters).transposed();
                    let dy = Matrix::row_major(&dy, g.filters);
                    gemm(threads, sizes, dy, transposed, GemmOutput::row_major(dx, sizes.n));
                    Ok(())
                } else if g.sweep.has_unit_stride() {
                    let filter = reversed_filter(&g, &filter)?;
                    forward(threads, &g.reversed(), &dy, &filter, dx)
                } else {
                    scatter_matmuls(threads, &g, &filter, &dy, dx)
                }
            })
        })
    }
    let geometry = Geometry::new(call, &call.output_shape(0)?, call.shape(1))?;
    Ok(with_real!(call.dtype(1), T => kernel::<T>(geometry)))
}

/// The filter of the gradient by the input: kernel offsets in reverse order, and for each
/// `[filters of a group, channels]`.
fn reversed_filter<A: GemmElement>(g: &Geometry, filter: &[A]) -> Result<Scratch<A>> {
    let (channels, own) = (g.sweep.channels, g.own_filters());
    let mut reversed = Scratch::new(g.sweep.n_kernel_offsets() * own * channels)?;
    let offset_len = g.channels(0).len() * g.filters;
    if offset_len == 0 {
        return Ok(reversed);
    }
    let offsets = filter.chunks(offset_len).rev();
    for (tap, out) in offsets.zip(reversed.chunks_mut(own * channels)) {
        for (row, out) in out.chunks_mut(channels).enumerate() {
            for (channel, out) in out.iter_mut().enumerate() {
                let (group, channel) =
                    (channel / g.channels(0).len(), channel % g.channels(0).len());
                *out = tap[channel * g.filters + group * own + row];
            }
        }
    }
    Ok(reversed)
}

/// Adds what each window contributes to the gradient by the input, image by image.
fn scatter_matmuls<A: GemmElement<Acc = A> + Default>(
    threads: &Threads,
    g: &Geometry,
    filter: &[A],
    dy: &[A],
    dx: &mut [A],
) -> Result<()> {
    if dx.is_empty() {
        return Ok(());
    }
    let (depth, own) = (g.depth(), g.own_filters());
    let per_image = g.sweep.windows_per_image();
    let per_tile = windows_per_tile(depth);
    let image_len = dx.len() / g.sweep.batch;
    let image = Sweep { batch: 1, ..g.sweep.clone() };
    let single = Threads::single();
    let inner = if g.sweep.batch == 1 { threads } else { &single };
    threads.try_for_each_piece(dx, image_len, |start, dx| {
        dx.fill(A::ZERO);
        let dy = &dy[start / image_len * per_image * g.filters..][..per_image * g.filters];
        let mut rows = Scratch::<A>::new(per_tile.min(per_image) * depth)?;
        for first in (0..per_image).step_by(per_tile) {
            let windows = first..per_image.min(first + per_tile);
            for group in 0..g.groups {
                let sizes = GemmSizes { m: windows.len(), k: own, n: depth };
                let at = first * g.filters + group * own;
                let dy = Matrix::row_major(&dy[at.min(dy.len())..], g.filters);
                let filter = &filter[(group * own).min(filter.len())..];
                let filter = Matrix::row_major(filter, g.filters).transposed();
                let rows = &mut rows[..windows.len() * depth];
                gemm(inner, sizes, dy, filter, GemmOutput::row_major(rows, depth));
                image.scatter(rows, windows.clone(), g.channels(group), dx, A::plus);
            }
        }
        Ok(())
    })
}

fn backprop_filter(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: GemmElement + Default>>(
        g: Geometry,
        round: Option<Round<T::Acc>>,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (input, dy) = (T::widen(io.input(0)), T::widen(io.input(2)));
            let threads = io.threads();
            T::through_acc(io.output(0), |dw| sum_matmuls(threads, &g, &input, &dy, dw, round))
        })
    }
    let geometry = Geometry::new(call, call.shape(0), &call.output_shape(0)?)?;
    let rounds =
        call.op.name.starts_with("Conv2D") && geometry.sweep.n_windows() <= ROUNDED_WINDOWS;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(geometry, T::ROUND.filter(|_| rounds))))
}

/// The most windows over which TensorFlow's sums of 16-bit floats are rounded at every step. It takes more of them
/// in blocks, where rounding at every step would stop at 256 ones.
const ROUNDED_WINDOWS: usize = 360;

/// Adds `[k, m]` transposed, times `[k, n]`, to sums: rows of both others are `stride` apart.
fn add_rounded<A: GemmElement<Acc = A>>(
    sizes: GemmSizes,
    rows: &[A],
    dy: &[A],
    sums: &mut [A],
    stride: usize,
    round: Round<A>,
) {
    for (row, dy) in rows.chunks_exact(sizes.m).zip(dy.chunks(stride)) {
        for (&x, sums) in row.iter().zip(sums.chunks_mut(stride)) {
            for (sum, &dy) in sums.iter_mut().zip(&dy[..sizes.n]) {
                *sum = round(sum.plus(x.times(dy)));
            }
        }
    }
}

/// Rows of the filter that are worth a piece of work.
const ROWS_PER_PIECE: usize = 32;

/// Computes the gradient by the filter: the kernel offsets of all windows, transposed, times the
/// gradient of the output. Threads share the taps. With `round`, every sum is rounded at every
/// step, as TensorFlow does for 16-bit floats of few windows (`conv_grad_filter_ops.cc`, by Eigen's
/// scalar products).
fn sum_matmuls<A: GemmElement<Acc = A> + Default>(
    threads: &Threads,
    g: &Geometry,
    input: &[A],
    dy: &[A],
    dw: &mut [A],
    round: Option<Round<A>>,
) -> Result<()> {
    if dw.is_empty() || input.is_empty() || dy.is_empty() {
        dw.fill(A::ZERO);
        return Ok(());
    }
    let (n_windows, own) = (g.sweep.n_windows(), g.own_filters());
    if g.groups == 1 && g.sweep.is_pointwise() && round.is_none() {
        let sizes = GemmSizes { m: g.depth(), k: n_windows, n: g.filters };
        let offsets = Matrix::row_major(input, g.depth()).transposed();
        let dy = Matrix::row_major(dy, g.filters);
        gemm(threads, sizes, offsets, dy, GemmOutput::row_major(dw, g.filters));
        return Ok(());
    }
    if round.is_none()
        && let (Some(input), Some(dy)) = (A::floats(input), A::floats(dy))
        && let Some(direct) = direct_filter::DirectFilter::new(g, input, dy)
        && let Some(dw) = A::floats_mut(dw)
    {
        direct.sum(threads, dw);
        return Ok(());
    }
    let width = g.channels(0).len();
    let offsets_per_piece = ROWS_PER_PIECE.div_ceil(width);
    let offset_len = width * g.filters;
    let single = Threads::single();
    threads.try_for_each_piece(dw, offsets_per_piece * offset_len, |start, dw| {
        let offsets = start / offset_len..start / offset_len + dw.len() / offset_len;
        let depth = offsets.len() * width;
        let per_tile = windows_per_tile(depth);
        let mut rows = Scratch::<A>::new(per_tile.min(n_windows) * depth)?;
        dw.fill(A::ZERO);
        for first in (0..n_windows).step_by(per_tile) {
            let windows = first..n_windows.min(first + per_tile);
            let rows = &mut rows[..windows.len() * depth];
            for group in 0..g.groups {
                let channels = g.channels(group);
                g.sweep.gather(input, windows.clone(), offsets.clone(), channels, rows);
                let sizes = GemmSizes { m: depth, k: windows.len(), n: own };
                let at = first * g.filters + group * own;
                if let Some(round) = round {
                    let (dy, dw) = (&dy[at..], &mut dw[group * own..]);
                    add_rounded(sizes, rows, dy, dw, g.filters, round);
                    continue;
                }
                let output = GemmOutput {
                    data: &mut dw[group * own..],
                    row_stride: g.filters,
                    accumulate: true,
                };
                let offsets = Matrix::row_major(&*rows, depth).transposed();
                gemm(&single, sizes, offsets, Matrix::row_major(&dy[at..], g.filters), output);
            }
        }
        Ok(())
    })
}

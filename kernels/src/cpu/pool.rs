//! Pools over two and three spatial dimensions, and their gradients.
//!
//! Windows are folded channel by channel, as many at a time as registers hold. Gradients add to
//! what windows share, so threads share the batch there. Sums are kept in `f32` for 16-bit floats.

use super::{
    Build,
    dispatch::{with_float, with_index, with_real},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
    plan::{
        sliding,
        window::{NEAR_LARGEST, Sweep},
    },
    simd::{Vectorized, vectorize},
    threads::Threads,
    wide::WideElement,
};
use ferroflow_ir::{
    DType, Error, Shape,
    window::{Pool, Slide},
};
use half::{bf16, f16};
use num_traits::{Bounded, NumCast};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("AvgPool", average),
    ("AvgPool3D", average),
    ("AvgPool3DGrad", average_grad),
    ("AvgPoolGrad", average_grad),
    ("MaxPool", largest::<false>),
    ("MaxPool3D", largest::<true>),
    ("MaxPool3DGrad", all_largest_grad),
    ("MaxPool3DGradGrad", grad_grad),
    ("MaxPoolGrad", first_largest_grad),
    ("MaxPoolGradGrad", grad_grad),
    ("MaxPoolGradGradV2", grad_grad),
    ("MaxPoolGradV2", first_largest_grad),
    ("MaxPoolV2", largest::<false>),
    ("MaxPoolWithArgmax", argmax),
];

/// Elements per piece of work.
const PIECE: usize = 1 << 13;

/// The windows of a call over a tensor of shape `input`.
fn windows(call: &OpCall<'_>, input: &Shape) -> Result<Pool> {
    let windows = sliding::pool(call)?;
    if !windows.layout.channels_last {
        let format = call.attrs.string("data_format")?;
        return Err(call.wrong("data_format", "one with the channels last", format));
    }
    if input.rank() != windows.layout.rank() {
        let expected = format!("of length {}", input.rank());
        return Err(call.wrong("ksize", expected, windows.layout.rank()));
    }
    Ok(windows)
}

/// Windows over space alone.
pub(super) fn spatial(call: &OpCall<'_>, input: &Shape) -> Result<Sweep> {
    let pool = windows(call, input)?;
    if pool.depth > 1 {
        let what = "windows over channels".into();
        return Err(Error::Unsupported { op: call.op.name.into(), what }.into());
    }
    sliding::windows(&pool, input)
}

/// Windows over space, or over channels as a spatial dimension of one channel.
fn any_windows(call: &OpCall<'_>, input: &Shape) -> Result<Sweep> {
    let pool = windows(call, input)?;
    if pool.depth == 1 {
        return sliding::windows(&pool, input);
    }
    let channels = input[pool.layout.channels()];
    let (size, output) = (pool.depth, channels / pool.depth);
    let slide = Slide { input: channels, output, size, stride: size, ..Slide::NONE };
    Ok(Sweep::new(input.num_elements() / channels.max(1), 1, &[slide]))
}

/// Folds windows: `combine` from `start` on, then a function of the sum and the number of
/// positions.
struct Fold<C, F> {
    combine: C,
    finish: F,
}

fn fold<T, C, F>(sweep: Sweep, start: T::Acc, fold: Fold<C, F>) -> Arc<dyn Kernel>
where
    T: WideElement,
    C: Fn(T::Acc, T::Acc) -> T::Acc + Send + Sync + 'static,
    F: Fn(T::Acc, usize) -> T::Acc + Send + Sync + 'static,
{
    Arc::new(move |io: &mut Io<'_>| {
        let x = T::widen(io.input(0));
        fold_windows::<T, C, F>(io.threads(), &sweep, &x, start, &fold, io.output(0));
        Ok(())
    })
}

fn fold_windows<T, C, F>(
    threads: &Threads,
    sweep: &Sweep,
    x: &[T::Acc],
    start: T::Acc,
    fold: &Fold<C, F>,
    out: &mut [T],
) where
    T: WideElement,
    C: Fn(T::Acc, T::Acc) -> T::Acc + Sync,
    F: Fn(T::Acc, usize) -> T::Acc + Sync,
{
    let channels = sweep.channels;
    if out.is_empty() {
        return;
    }
    threads.for_each_piece(out, piece_of(channels), |first, out| {
        T::through_acc(out, |out| {
            vectorize(Windows { x, sweep, first: first / channels, start, fold, out });
        });
    });
}

/// The windows from number `first` on that fill `out`.
struct Windows<'a, A, C, F> {
    x: &'a [A],
    sweep: &'a Sweep,
    first: usize,
    start: A,
    fold: &'a Fold<C, F>,
    out: &'a mut [A],
}

impl<A, C, F> Vectorized for Windows<'_, A, C, F>
where
    A: Number,
    C: Fn(A, A) -> A,
    F: Fn(A, usize) -> A,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut positions = Vec::new();
        for (index, out) in self.out.chunks_mut(self.sweep.channels).enumerate() {
            self.sweep.positions(self.first + index, &mut positions);
            fold_window(self.x, &positions, self.start, self.fold, out);
        }
    }
}

/// Folds the channels of a window.
#[inline(always)]
fn fold_window<A: Number, C: Fn(A, A) -> A, F: Fn(A, usize) -> A>(
    x: &[A],
    positions: &[usize],
    start: A,
    fold: &Fold<C, F>,
    out: &mut [A],
) {
    let channels = out.len();
    let (wide, rest) = out.as_chunks_mut::<32>();
    let first = wide.len() * 32;
    for (index, out) in wide.iter_mut().enumerate() {
        block(x, positions, channels, index * 32, start, fold, out);
    }
    let (narrow, rest) = rest.as_chunks_mut::<8>();
    let last = first + narrow.len() * 8;
    for (index, out) in narrow.iter_mut().enumerate() {
        block(x, positions, channels, first + index * 8, start, fold, out);
    }
    for (index, out) in rest.iter_mut().enumerate() {
        block(x, positions, channels, last + index, start, fold, std::array::from_mut(out));
    }
}

/// Folds `N` channels from `channel` on.
#[inline(always)]
fn block<A: Number, C: Fn(A, A) -> A, F: Fn(A, usize) -> A, const N: usize>(
    x: &[A],
    positions: &[usize],
    channels: usize,
    channel: usize,
    start: A,
    fold: &Fold<C, F>,
    out: &mut [A; N],
) {
    let mut folded = [start; N];
    for &position in positions {
        let x = &x[position * channels + channel..][..N];
        for (folded, &x) in folded.iter_mut().zip(x) {
            *folded = (fold.combine)(*folded, x);
        }
    }
    // Not `map`, which is compiled without vectors of this width.
    for (out, folded) in out.iter_mut().zip(folded) {
        *out = (fold.finish)(folded, positions.len());
    }
}

fn average(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement>(sweep: Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let x = T::widen(io.input(0));
            average_windows::<T>(io.threads(), &sweep, &x, io.output(0));
            Ok(())
        })
    }
    let sweep = spatial(call, call.shape(0))?;
    Ok(with_float!(call.dtype(0), T => kernel::<T>(sweep)))
}

/// Computes the mean of each window; that of integers truncates.
pub(super) fn average_windows<T: WideElement>(
    threads: &Threads,
    sweep: &Sweep,
    x: &[T::Acc],
    out: &mut [T],
) {
    let mean = |sum: T::Acc, count| sum.over(T::Acc::count(count));
    let fold = Fold { combine: |a: T::Acc, b: T::Acc| a.plus(b), finish: mean };
    fold_windows(threads, sweep, x, T::Acc::ZERO, &fold, out);
}

/// Starts from the lowest finite value and passes NaN over, as TensorFlow does: all of them, or those that are not
/// at the last position of a window.
pub(super) fn largest<const KEEPS_LAST: bool>(
    call: &OpCall<'_>,
) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: Ordered> + Bounded, const KEEPS_LAST: bool>(
        sweep: Sweep,
    ) -> Arc<dyn Kernel> {
        let combine = |a, b| {
            let takes = if KEEPS_LAST { !(a > b) } else { b > a };
            if takes { b } else { a }
        };
        fold::<T, _, _>(sweep, T::min_value().to_acc(), Fold { combine, finish: |x, _| x })
    }
    let sweep = any_windows(call, call.shape(0))?;
    Ok(with_real!(call.dtype(0), T => kernel::<T, KEEPS_LAST>(sweep)))
}

/// A window whose gradient is computed.
struct Gathered<'a> {
    /// The window's number.
    window: usize,
    /// The first element of its image in the input.
    image: usize,
    /// The positions of the image that it covers.
    positions: &'a [usize],
}

/// Computes the gradient by the input, image by image: `add` adds to an image what a window
/// contributes.
fn scatter<T: WideElement>(
    io: &mut Io<'_>,
    sweep: &Sweep,
    add: impl Fn(Gathered<'_>, &mut [T::Acc]) + Sync,
) {
    let out: &mut [T] = io.output(0);
    if out.is_empty() {
        return;
    }
    let image_len = out.len() / sweep.batch;
    let per_image = sweep.windows_per_image();
    let single = Sweep { batch: 1, ..sweep.clone() };
    io.threads().for_each_piece(out, image_len, |image, out| {
        let first = image / image_len * per_image;
        T::through_acc(out, |out| {
            out.fill(T::Acc::ZERO);
            let mut positions = Vec::new();
            for window in 0..per_image {
                single.positions(window, &mut positions);
                let window = first + window;
                add(Gathered { window, image, positions: &positions }, out);
            }
        });
    });
}

fn average_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement>(sweep: Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let dy = T::widen(io.input(1));
            let channels = sweep.channels;
            scatter::<T>(io, &sweep, |window, dx| {
                let dy = &dy[window.window * channels..][..channels];
                let count = T::Acc::count(window.positions.len());
                for &position in window.positions {
                    let dx = &mut dx[position * channels..][..channels];
                    dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx = dx.plus(dy.over(count)));
                }
            });
            Ok(())
        })
    }
    let sweep = spatial(call, &call.output_shape(0)?)?;
    Ok(with_float!(call.dtype(1), T => kernel::<T>(sweep)))
}

/// Where, of these positions, a channel is largest: the first position if there are several. NaN
/// stays if it comes first and is passed over otherwise; subnormal numbers are zeros.
fn index_of_largest<T: Number<Acc: Ordered>>(
    x: &[T],
    positions: &[usize],
    channels: usize,
    channel: usize,
) -> Option<usize> {
    let mut indices = positions.iter().map(|position| position * channels + channel);
    let first = indices.next()?;
    let element = |index: usize| x[index].to_acc().flushed();
    let (index, _) = indices.fold((first, element(first)), |(place, largest), next| {
        let x = element(next);
        if x > largest { (next, x) } else { (place, largest) }
    });
    Some(index)
}

/// Adds what a window sends back to where, in each channel, it is largest for the first time; NaN
/// stays if it comes first and is passed over otherwise.
struct Largest<'a, T: Number> {
    x: &'a [T],
    /// Cotangents, for each channel.
    dy: &'a [T],
    positions: &'a [usize],
    dx: &'a mut [T::Acc],
}

impl<T: Number<Acc: Ordered>> Vectorized for Largest<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (wide, rest) = self.dy.as_chunks::<8>();
        for (index, dy) in wide.iter().enumerate() {
            add_largest(self.x, dy, self.positions, self.dy.len(), index * 8, self.dx);
        }
        let first = wide.len() * 8;
        for (index, dy) in rest.as_chunks::<1>().0.iter().enumerate() {
            add_largest(self.x, dy, self.positions, self.dy.len(), first + index, self.dx);
        }
    }
}

/// Does so for `N` channels from `channel` on.
#[inline(always)]
fn add_largest<T: Number<Acc: Ordered>, const N: usize>(
    x: &[T],
    dy: &[T; N],
    positions: &[usize],
    channels: usize,
    channel: usize,
    dx: &mut [T::Acc],
) {
    let Some((&first, rest)) = positions.split_first() else { return };
    let at = |position: usize| -> &[T] { &x[position * channels + channel..][..N] };
    let x = at(first);
    let mut largest: [T::Acc; N] = std::array::from_fn(|index| x[index].to_acc().flushed());
    let mut indices = [0u32; N];
    for (number, &position) in (1..).zip(rest) {
        for ((largest, place), x) in largest.iter_mut().zip(&mut indices).zip(at(position)) {
            let x = x.to_acc().flushed();
            let is_larger = x > *largest;
            *largest = if is_larger { x } else { *largest };
            *place = if is_larger { number } else { *place };
        }
    }
    for (number, &position) in (0..).zip(positions) {
        let dx = &mut dx[position * channels + channel..][..N];
        for ((dx, &place), dy) in dx.iter_mut().zip(&indices).zip(dy) {
            let sum = dx.plus(dy.to_acc());
            *dx = if place == number { sum } else { *dx };
        }
    }
}

fn first_largest_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: Ordered>>(sweep: Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, dy): (&[T], &[T]) = (io.input(0), io.input(2));
            let channels = sweep.channels;
            scatter::<T>(io, &sweep, |window, dx| {
                let x = &x[window.image..][..dx.len()];
                let dy = &dy[window.window * channels..][..channels];
                vectorize(Largest { x, dy, positions: window.positions, dx });
            });
            Ok(())
        })
    }
    let sweep = spatial(call, call.shape(0))?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(sweep)))
}

fn all_largest_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement + Number<Acc = f32>>(sweep: Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, y, dy): (&[T], &[T], &[T]) = (io.input(0), io.input(1), io.input(2));
            let channels = sweep.channels;
            scatter::<T>(io, &sweep, |window, dx| {
                let x = &x[window.image..][..dx.len()];
                let own = window.window * channels..(window.window + 1) * channels;
                for &position in window.positions {
                    let first = position * channels;
                    for (channel, (y, dy)) in
                        y[own.clone()].iter().zip(&dy[own.clone()]).enumerate()
                    {
                        if (x[first + channel].to_acc() - y.to_acc()).abs() < NEAR_LARGEST {
                            dx[first + channel] += dy.to_acc();
                        }
                    }
                }
            });
            Ok(())
        })
    }
    if call.dtype(0) != call.dtype(2) {
        return Ok(None);
    }
    let sweep = spatial(call, call.shape(0))?;
    Ok(match call.dtype(0) {
        DType::F16 => Some(kernel::<f16>(sweep)),
        DType::BF16 => Some(kernel::<bf16>(sweep)),
        DType::F32 => Some(kernel::<f32>(sweep)),
        _ => None,
    })
}

/// The element of input 2 where the window is first as large as input 1 says; 0 if nowhere.
fn grad_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number>(sweep: Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, y, dy): (&[T], &[T], &[T]) = (io.input(0), io.input(1), io.input(2));
            let channels = sweep.channels;
            io.threads().for_each_piece(
                io.output(0),
                piece_of(channels),
                |start, out: &mut [T]| {
                    let mut positions = Vec::new();
                    for (index, out) in out.chunks_mut(channels).enumerate() {
                        let first = start + index * channels;
                        sweep.positions(first / channels, &mut positions);
                        for (channel, out) in out.iter_mut().enumerate() {
                            let mut indices = positions.iter().map(|at| at * channels + channel);
                            let largest = indices.find(|&at| x[at] == y[first + channel]);
                            *out = largest.map_or(T::ZERO, |at| dy[at]);
                        }
                    }
                },
            );
            Ok(())
        })
    }
    let sweep = spatial(call, call.shape(0))?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(sweep)))
}

/// Elements of a piece of work, whole positions.
fn piece_of(channels: usize) -> usize {
    (PIECE / channels.max(1)).max(1) * channels
}

/// The positions of the largest elements are counted within an image, or from the first one.
fn argmax(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T, I>(sweep: Sweep, from_first: bool) -> Arc<dyn Kernel>
    where
        T: Number<Acc: Ordered>,
        I: bytemuck::Pod + NumCast + Send,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let x: &[T] = io.input(0);
            let (channels, per_image) = (sweep.channels, sweep.windows_per_image());
            let (out, places): (&mut [T], &mut [I]) = (io.output(0), io.output(1));
            let image_len = x.len() / sweep.batch.max(1);
            let piece = piece_of(channels);
            let pieces = out.chunks_mut(piece.max(1)).zip(places.chunks_mut(piece.max(1)));
            io.threads().for_each(pieces.enumerate(), |(index, (out, places))| {
                let mut positions = Vec::new();
                let start = index * piece;
                for (index, (out, place)) in out.iter_mut().zip(places).enumerate() {
                    let (window, channel) =
                        ((start + index) / channels, (start + index) % channels);
                    if channel == 0 {
                        sweep.positions(window, &mut positions);
                    }
                    let Some(found) = index_of_largest(x, &positions, channels, channel) else {
                        (*out, *place) = (T::ZERO, I::zeroed());
                        continue;
                    };
                    *out = x[found];
                    let counted_from = if from_first { 0 } else { window / per_image * image_len };
                    *place = I::from(found - counted_from).unwrap_or_else(I::zeroed);
                }
            });
            Ok(())
        })
    }
    let sweep = spatial(call, call.shape(0))?;
    let from_first = call.attrs.bool("include_batch_in_index")?;
    Ok(with_real!(call.dtype(0), T => {
        with_index!(call.outputs[1].dtype, I => kernel::<T, I>(sweep, from_first))
    })
    .flatten())
}

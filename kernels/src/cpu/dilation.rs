//! Grey-scale dilation: `Dilation2D` and its gradients.

use super::{Build, dispatch::with_real};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    plan::{sliding::dilation as sweep, window::Sweep},
    wide::WideElement,
};
use ferroflow_ir::window::Slide;
use num_traits::Bounded;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("Dilation2D", dilation),
    ("Dilation2DBackpropFilter", |call| gradient(call, By::Filter)),
    ("Dilation2DBackpropInput", |call| gradient(call, By::Input)),
];

/// Output elements per piece of work.
const PIECE: usize = 1 << 10;

/// The taps of a window that are not in the padding: the first element of each in the filter, and
/// of what it covers in the input.
fn taps(sweep: &Sweep, window: usize, list: &mut Vec<(usize, usize)>) {
    let (image, [_, row, column]) = sweep.place(window);
    let [_, rows, columns] = &sweep.slides;
    let at = |slide: &Slide, window, tap: usize| {
        (slide.first(window) + (tap * slide.dilation) as isize) as usize
    };
    list.clear();
    for y in rows.taps(row) {
        let line = (image * rows.input + at(rows, row, y)) * columns.input;
        for x in columns.taps(column) {
            let tap = (y * columns.size + x) * sweep.channels;
            list.push((tap, (line + at(columns, column, x)) * sweep.channels));
        }
    }
}

/// An element type with a smallest value; sums of 16-bit floats are rounded before they are
/// compared.
trait Grey: WideElement + PartialOrd + Bounded {}

impl<T: WideElement + PartialOrd + Bounded> Grey for T {}

/// The largest sum of a channel, and the place of its tap. NaN is passed over.
fn largest<T: Grey>(
    input: &[T],
    filter: &[T],
    taps: &[(usize, usize)],
    channel: usize,
) -> (T, usize) {
    let mut best = (T::min_value(), 0);
    for (place, (tap, position)) in taps.iter().enumerate() {
        let sum = input[position + channel].plus(filter[tap + channel]);
        if sum > best.0 {
            best = (sum, place);
        }
    }
    best
}

fn dilation(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Grey>(sweep: Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (input, filter): (&[T], &[T]) = (io.input(0), io.input(1));
            let out: &mut [T] = io.output(0);
            let channels = sweep.channels.max(1);
            let piece = (PIECE / channels).max(1) * channels;
            io.threads().for_each_piece(out, piece, |start, out| {
                let mut list = Vec::new();
                for (index, out) in out.chunks_mut(channels).enumerate() {
                    taps(&sweep, start / channels + index, &mut list);
                    for (channel, out) in out.iter_mut().enumerate() {
                        *out = largest(input, filter, &list, channel).0;
                    }
                }
            });
            Ok(())
        })
    }
    let sweep = sweep(call)?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(sweep)))
}

#[derive(Debug, Clone, Copy)]
enum By {
    Input,
    Filter,
}

/// The gradient of each output goes to the first tap that gave the largest sum.
fn gradient(call: &OpCall<'_>, by: By) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Grey>(sweep: Sweep, by: By) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (input, filter): (&[T], &[T]) = (io.input(0), io.input(1));
            let dy = T::widen(io.input(2));
            let channels = sweep.channels.max(1);
            T::through_acc(io.output(0), |out| {
                out.fill(T::Acc::ZERO);
                let mut list = Vec::new();
                for (window, dy) in dy.chunks(channels).enumerate() {
                    taps(&sweep, window, &mut list);
                    for (channel, &dy) in dy.iter().enumerate() {
                        let place = largest(input, filter, &list, channel).1;
                        let Some(&(tap, position)) = list.get(place) else { continue };
                        let at = match by {
                            By::Input => position,
                            By::Filter => tap,
                        };
                        out[at + channel] = out[at + channel].plus(dy);
                    }
                }
            });
            Ok(())
        })
    }
    let sweep = sweep(call)?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(sweep, by)))
}

//! Components as planes of samples, and their rows as wide as the image.
//!
//! Where a component has fewer samples than the image has pixels, pixels between two samples take
//! three parts of the nearer and one of the other, rounded as in libjpeg-turbo (jdsample.c).

use super::{
    Damage, DecodeSettings,
    frame::{JpegComponent, JpegFrame},
    idct::Inverse,
};
use crate::threads::Threads;

/// The samples of a component.
struct Plane {
    samples: Vec<u8>,
    stride: usize,
    /// Rows of samples that belong to the image.
    height: usize,
    widening: Widening,
}

/// Conversion of samples to pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Widening {
    /// Each is repeated in a row and in a column.
    Repeat {
        across: usize,
        down: usize,
    },
    /// Two pixels of each in a row.
    SmoothAcross,
    /// Two pixels of each in a column.
    SmoothDown,
    SmoothBoth,
}

/// The components of an image.
pub(super) struct Planes {
    planes: Vec<Plane>,
    /// Pixels of a unit in a row and in a column.
    unit: (usize, usize),
    /// Pixels of a sample in a column, at most.
    down: usize,
}

impl Planes {
    pub(super) fn new(
        frame: &JpegFrame,
        settings: &DecodeSettings,
        n_components: usize,
        threads: &Threads,
    ) -> Result<Planes, Damage> {
        let size = 8 / settings.ratio;
        let needed = frame.components.iter().take(n_components);
        let planes = needed.map(|component| plane(frame, component, settings, size, threads));
        let across = if frame.components.len() == 1 { 1 } else { frame.across };
        let unit = (across * size, frame.down * size);
        Ok(Planes { planes: planes.collect::<Result<_, _>>()?, unit, down: frame.down })
    }

    /// Rows of pixels that are known when the file ends after so many rows of units.
    pub(super) fn n_rows(&self, n_units: usize) -> usize {
        let is_down = |plane: &Plane| match plane.widening {
            Widening::SmoothDown | Widening::SmoothBoth => true,
            Widening::SmoothAcross | Widening::Repeat { .. } => false,
        };
        let waiting = if self.planes.iter().any(is_down) { self.down } else { 0 };
        (n_units * self.unit.1).saturating_sub(waiting)
    }

    /// The planes as far as columns of pixels need them.
    pub(super) fn view(&self, left: usize, columns: usize) -> PlaneView<'_> {
        let first = left / self.unit.0 * self.unit.0;
        PlaneView { planes: self, first, width: left + columns - first, skipped: left - first }
    }
}

fn plane(
    frame: &JpegFrame,
    component: &JpegComponent,
    settings: &DecodeSettings,
    least: usize,
    threads: &Threads,
) -> Result<Plane, Damage> {
    let divides = |size: usize| {
        (frame.across * least).is_multiple_of(component.across * size * 2)
            && (frame.down * least).is_multiple_of(component.down * size * 2)
    };
    let mut size = least;
    while size < 8 && divides(size) {
        size *= 2;
    }
    let width = (frame.width * component.across * size).div_ceil(frame.across * 8);
    let height = (frame.height * component.down * size).div_ceil(frame.down * 8);
    let divisors = component.divisors.unwrap_or([0; 64]);
    let inverse = Inverse::new(&divisors, size, settings.is_accurate);
    let stride = component.stride * size;
    let mut samples = vec![0; stride * component.height * size];
    let rows = component.coefficients.chunks_exact(component.stride);
    threads.for_each(samples.chunks_exact_mut(stride * size).zip(rows), |(out, blocks)| {
        for (at, block) in blocks.iter().enumerate() {
            inverse.write(block, &mut out[at * size..], stride);
        }
    });
    let (across, down) = (component.across * size / least, component.down * size / least);
    let is_smooth = settings.is_smooth && least > 1;
    let is_wide = width > 2;
    let widening = match (frame.across, frame.down) {
        (all, rows) if all == across * 2 && rows == down && is_smooth && is_wide => {
            Widening::SmoothAcross
        }
        (all, rows) if all == across && rows == down * 2 && is_smooth => Widening::SmoothDown,
        (all, rows) if all == across * 2 && rows == down * 2 && is_smooth && is_wide => {
            Widening::SmoothBoth
        }
        (all, rows) if all.is_multiple_of(across) && rows.is_multiple_of(down) => {
            Widening::Repeat { across: all / across, down: rows / down }
        }
        _ => return Err(Damage::Kind("fractions of samples")),
    };
    Ok(Plane { samples, stride, height, widening })
}

/// Some columns of an image's components.
pub(super) struct PlaneView<'a> {
    planes: &'a Planes,
    /// The first column, at the beginning of a unit.
    first: usize,
    /// Columns from there.
    pub(super) width: usize,
    /// Columns from there that nobody asked for.
    pub(super) skipped: usize,
}

impl PlaneView<'_> {
    /// A row of pixels of a component, with `buffer` for those that are not in the plane.
    pub(super) fn line<'b>(
        &'b self,
        component: usize,
        row: usize,
        buffer: &'b mut [u8],
    ) -> &'b [u8] {
        let plane = &self.planes.planes[component];
        let across = match plane.widening {
            Widening::Repeat { across, .. } => across,
            Widening::SmoothAcross | Widening::SmoothBoth => 2,
            Widening::SmoothDown => 1,
        };
        let (first, width) = (self.first / across, self.width.div_ceil(across));
        let line = |row: usize| {
            let row = row.min(plane.height - 1);
            &plane.samples[row * plane.stride + first..][..width]
        };
        // The next row on the same side of a sample as the pixel.
        let beside = |row: usize| match row % 2 {
            0 => (row / 2).saturating_sub(1),
            _ => row / 2 + 1,
        };
        match plane.widening {
            Widening::Repeat { across: 1, down } => return line(row / down),
            Widening::SmoothAcross if width > 1 => {
                across_line(line(row).iter().map(|&x| i32::from(x)), buffer, 0);
            }
            Widening::SmoothBoth if width > 1 => {
                let pairs = line(row / 2).iter().zip(line(beside(row)));
                let sums = pairs.map(|(&near, &far)| i32::from(near) * 3 + i32::from(far));
                across_line(sums, buffer, 2);
            }
            Widening::SmoothDown => {
                let bias = if row.is_multiple_of(2) { 1 } else { 2 };
                let pairs = line(row / 2).iter().zip(line(beside(row)));
                for (out, (&near, &far)) in buffer.iter_mut().zip(pairs) {
                    *out = ((i32::from(near) * 3 + i32::from(far) + bias) >> 2) as u8;
                }
            }
            Widening::Repeat { down, .. } => repeat(line(row / down), across, buffer),
            Widening::SmoothAcross => repeat(line(row), across, buffer),
            Widening::SmoothBoth => repeat(line(row / 2), across, buffer),
        }
        buffer
    }
}

fn repeat(line: &[u8], times: usize, out: &mut [u8]) {
    for (out, &sample) in out.chunks_mut(times).zip(line) {
        out.fill(sample);
    }
}

/// Two pixels for each of a row's sums of samples, which have `bits` bits more than samples.
fn across_line(sums: impl Iterator<Item = i32> + Clone, out: &mut [u8], bits: u32) {
    // What rounds the left and the right pixel.
    let (left, right) = if bits == 0 { (1, 2) } else { (8, 7) };
    let shift = bits + 2;
    let before = std::iter::once(None).chain(sums.clone().map(Some));
    let after = sums.clone().skip(1).map(Some).chain([None]);
    for (out, ((sum, before), after)) in out.chunks_mut(2).zip(sums.zip(before).zip(after)) {
        // At the edges four parts of the sample itself stand for three and one.
        let first = sum * 3 + before.unwrap_or(sum);
        let second = sum * 3 + after.unwrap_or(sum);
        out[0] = ((first + left) >> shift) as u8;
        if let Some(out) = out.get_mut(1) {
            *out = ((second + right) >> shift) as u8;
        }
    }
}

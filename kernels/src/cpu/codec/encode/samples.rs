//! Pixels to planes of samples, in the integer arithmetic of libjpeg-turbo (jccolor.c,
//! jcsample.c).

use super::Image;

const SCALE: u32 = 16;
const HALF: i32 = 1 << (SCALE - 1);

/// The samples of a component, in whole blocks.
pub(super) struct Plane {
    pub(super) samples: Vec<u8>,
    /// Blocks in a row and in a column.
    pub(super) across: usize,
    pub(super) down: usize,
}

/// Luminance and, for images in colour, two differences of colour.
pub(super) fn planes(image: &Image<'_>, has_less_colour: bool) -> Vec<Plane> {
    let (height, width) = (image.height, image.width);
    if image.channels == 1 {
        return vec![plane(image, 1, |row, column| image.samples[row * width + column])];
    }
    let part = |which: fn([i32; 3]) -> i32| {
        let pixels = image.samples.as_chunks::<3>().0;
        pixels.iter().map(move |&pixel| which(pixel.map(i32::from)) as u8).collect::<Vec<u8>>()
    };
    let luminance = part(luminance);
    let colours = [part(blueness), part(redness)];
    let mut planes = vec![plane(image, 1, |row, column| luminance[row * width + column])];
    planes.extend(colours.iter().map(|all| match has_less_colour {
        false => plane(image, 1, |row, column| all[row * width + column]),
        true => plane(image, 2, |row, column| {
            let line = |row: usize| &all[row.min(height - 1) * width..][..width];
            let pair = |line: &[u8]| {
                let at = |column: usize| i32::from(line[column.min(width - 1)]);
                at(column * 2) + at(column * 2 + 1)
            };
            let sum = pair(line(row * 2)) + pair(line(row * 2 + 1));
            ((sum + 1 + (column % 2) as i32) >> 2) as u8
        }),
    }));
    planes
}

fn luminance([r, g, b]: [i32; 3]) -> i32 {
    (19595 * r + 38470 * g + 7471 * b + HALF) >> SCALE
}

fn blueness([r, g, b]: [i32; 3]) -> i32 {
    (-11059 * r - 21709 * g + 32768 * b + (128 << SCALE) + HALF - 1) >> SCALE
}

fn redness([r, g, b]: [i32; 3]) -> i32 {
    (32768 * r - 27439 * g - 5329 * b + (128 << SCALE) + HALF - 1) >> SCALE
}

/// A plane of one sample for `share` pixels each way. Blocks at the edges are filled with what
/// `sample` gives beyond the last column, and with the last row.
fn plane(image: &Image<'_>, share: usize, sample: impl Fn(usize, usize) -> u8) -> Plane {
    let (height, width) = (image.height.div_ceil(share), image.width.div_ceil(share));
    let (across, down) = (width.div_ceil(8), height.div_ceil(8));
    // Columns of half as many samples are sums of pixels beyond the edge.
    let last = if share == 1 { width - 1 } else { usize::MAX };
    let mut samples = Vec::with_capacity(across * down * 64);
    for row in 0..down * 8 {
        let row = row.min(height - 1);
        samples.extend((0..across * 8).map(|column| sample(row, column.min(last))));
    }
    Plane { samples, across, down }
}

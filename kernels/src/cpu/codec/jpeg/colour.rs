//! Components to colours, in the integer arithmetic of libjpeg-turbo.

use super::{Colours, Damage, Image};

/// Fractions are in parts of `1 << 16`.
const SCALE: u32 = 16;
const HALF: i32 = 1 << (SCALE - 1);

/// Conversion of components to samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ColourConversion {
    /// The first component alone.
    Luminance,
    /// A single component for all three colours.
    GreyAsRgb,
    RgbToGrey,
    Rgb,
    YCbCrToRgb,
    CmykToRgb {
        is_inverted: bool,
    },
    YcckToRgb {
        is_inverted: bool,
    },
}

impl ColourConversion {
    pub(super) fn new(image: &Image, channels: usize) -> Result<ColourConversion, Damage> {
        let is_inverted = image.is_adobe;
        Ok(match (image.colours, channels) {
            (Colours::Grey, 0 | 1) | (Colours::YCbCr, 1) => ColourConversion::Luminance,
            (Colours::Grey, _) => ColourConversion::GreyAsRgb,
            (Colours::Rgb, 1) => ColourConversion::RgbToGrey,
            (Colours::Rgb, _) => ColourConversion::Rgb,
            (Colours::YCbCr, _) => ColourConversion::YCbCrToRgb,
            (Colours::Cmyk | Colours::Ycck, 1) => return Err(Damage::Colours),
            (Colours::Cmyk, _) => ColourConversion::CmykToRgb { is_inverted },
            (Colours::Ycck, _) => ColourConversion::YcckToRgb { is_inverted },
        })
    }

    /// Components that it takes.
    pub(super) fn n_components(self) -> usize {
        match self {
            ColourConversion::Luminance | ColourConversion::GreyAsRgb => 1,
            ColourConversion::RgbToGrey | ColourConversion::Rgb | ColourConversion::YCbCrToRgb => 3,
            ColourConversion::CmykToRgb { .. } | ColourConversion::YcckToRgb { .. } => 4,
        }
    }

    /// Samples of a pixel.
    pub(super) fn channels(self) -> usize {
        match self {
            ColourConversion::Luminance | ColourConversion::RgbToGrey => 1,
            ColourConversion::GreyAsRgb
            | ColourConversion::Rgb
            | ColourConversion::YCbCrToRgb
            | ColourConversion::CmykToRgb { .. }
            | ColourConversion::YcckToRgb { .. } => 3,
        }
    }

    /// Writes a row of pixels from a row of each component.
    pub(super) fn write(self, lines: &[&[u8]], out: &mut [u8]) {
        match (self, lines) {
            (ColourConversion::Luminance, [grey, ..]) => out.copy_from_slice(&grey[..out.len()]),
            (ColourConversion::GreyAsRgb, [grey, ..]) => {
                pixels(out, grey.iter().map(|&grey| [grey; 3]));
            }
            (ColourConversion::RgbToGrey, [r, g, b, ..]) => {
                for (out, [r, g, b]) in out.iter_mut().zip(three(r, g, b)) {
                    *out = grey([r, g, b].map(i32::from));
                }
            }
            (ColourConversion::Rgb, [r, g, b, ..]) => pixels(out, three(r, g, b)),
            (ColourConversion::YCbCrToRgb, [y, cb, cr, ..]) => {
                pixels(out, three(y, cb, cr).map(|ycc| rgb(ycc).map(clamp)));
            }
            (ColourConversion::CmykToRgb { is_inverted }, [c, m, y, k]) => {
                let inks = three(c, m, y).zip(*k);
                pixels(out, inks.map(|(inks, &k)| without_inks(inks, k, is_inverted)));
            }
            (ColourConversion::YcckToRgb { is_inverted }, [y, cb, cr, k]) => {
                let inks = three(y, cb, cr).map(|ycc| rgb(ycc).map(|x| clamp(255 - x)));
                let inks = inks.zip(*k);
                pixels(out, inks.map(|(inks, &k)| without_inks(inks, k, is_inverted)));
            }
            _ => unreachable!("a target comes with its number of components"),
        }
    }
}

fn three(a: &[u8], b: &[u8], c: &[u8]) -> impl Iterator<Item = [u8; 3]> {
    a.iter().zip(b).zip(c).map(|((&a, &b), &c)| [a, b, c])
}

fn pixels(out: &mut [u8], pixels: impl Iterator<Item = [u8; 3]>) {
    out.as_chunks_mut().0.iter_mut().zip(pixels).for_each(|(out, pixel)| *out = pixel);
}

fn clamp(value: i32) -> u8 {
    value.clamp(0, 255) as u8
}

fn rgb([y, cb, cr]: [u8; 3]) -> [i32; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((91881 * cr + HALF) >> SCALE);
    let green = y + ((-22554 * cb - 46802 * cr + HALF) >> SCALE);
    let blue = y + ((116130 * cb + HALF) >> SCALE);
    [red, green, blue]
}

fn grey([r, g, b]: [i32; 3]) -> u8 {
    ((19595 * r + 38470 * g + 7471 * b + HALF) >> SCALE) as u8
}

/// Red, green and blue of cyan, magenta, yellow and black; TensorFlow's own formula.
fn without_inks(inks: [u8; 3], black: u8, is_inverted: bool) -> [u8; 3] {
    let light = |ink: u8| if is_inverted { u32::from(ink) } else { 255 - u32::from(ink) };
    inks.map(|ink| (light(black) * light(ink) / 255) as u8)
}

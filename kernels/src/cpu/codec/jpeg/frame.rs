//! The header of a file in JPEG format: what an image is made of, and the tables to read it with.

use super::{Damage, bits::HuffmanDecoder};

/// No side is longer; libjpeg has the same bound.
const MAX_SIDE: usize = 65500;
/// The order in which the coefficients of a block lie in files.
pub(in super::super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Colour space of the components together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Colours {
    Grey,
    Rgb,
    /// Luminance and two differences of colour.
    YCbCr,
    Cmyk,
    /// CMY as `YCbCr`, and black.
    Ycck,
}

/// A component of an image.
#[derive(Debug, Clone)]
pub(super) struct JpegComponent {
    pub(super) id: u8,
    /// Its share of samples in a row and in a column.
    pub(super) across: usize,
    pub(super) down: usize,
    pub(super) table: usize,
    /// Divisors as they were at the first scan.
    pub(super) divisors: Option<[u16; 64]>,
    /// Blocks that hold samples.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Blocks in a row of storage.
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) coefficients: Vec<[i16; 64]>,
}

/// An image, without its scans.
#[derive(Debug, Clone)]
pub(super) struct JpegFrame {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) is_progressive: bool,
    pub(super) components: Vec<JpegComponent>,
    /// The largest `across` and `down`.
    pub(super) across: usize,
    pub(super) down: usize,
}

impl JpegFrame {
    /// Reads a frame header.
    pub(super) fn read(segment: &[u8], is_progressive: bool) -> Result<JpegFrame, Damage> {
        let &[precision, h1, h0, w1, w0, count, ref rest @ ..] = segment else {
            return Err(Damage::Header);
        };
        let height = usize::from(u16::from_be_bytes([h1, h0]));
        let width = usize::from(u16::from_be_bytes([w1, w0]));
        let is_sized = (1..=MAX_SIDE).contains(&width) && (1..=MAX_SIDE).contains(&height);
        let is_counted = (1..=4).contains(&count) && rest.len() == 3 * usize::from(count);
        if precision != 8 || !is_sized || !is_counted {
            return Err(Damage::Header);
        }
        let shares = |byte: u8| (usize::from(byte >> 4), usize::from(byte & 15));
        let all = rest.chunks_exact(3).map(|part| shares(part[1]));
        if all.clone().any(|(across, down)| !(1..=4).contains(&across) || !(1..=4).contains(&down))
        {
            return Err(Damage::Header);
        }
        let across = all.clone().map(|shares| shares.0).max().unwrap_or(1);
        let down = all.map(|shares| shares.1).max().unwrap_or(1);
        let component = |part: &[u8]| {
            let own = shares(part[1]);
            JpegComponent {
                id: part[0],
                across: own.0,
                down: own.1,
                table: usize::from(part[2]),
                divisors: None,
                width: (width * own.0).div_ceil(across * 8),
                height: (height * own.1).div_ceil(down * 8),
                stride: width.div_ceil(across * 8) * own.0,
                rows: height.div_ceil(down * 8) * own.1,
                coefficients: Vec::new(),
            }
        };
        let components = rest.chunks_exact(3).map(component).collect();
        Ok(JpegFrame { width, height, is_progressive, components, across, down })
    }

    /// Coefficients of all components.
    pub(super) fn n_coefficients(&self) -> usize {
        self.components.iter().map(|component| component.stride * component.rows * 64).sum()
    }

    /// Units of one block, or of a block of each component for each share, in a row and a column.
    pub(super) fn units(&self, scan: &[usize]) -> (usize, usize) {
        match *scan {
            [only] => (self.components[only].width, self.components[only].height),
            _ => (self.width.div_ceil(self.across * 8), self.height.div_ceil(self.down * 8)),
        }
    }
}

/// Tables from the segments before a scan.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) divisors: [Option<[u16; 64]>; 4],
    pub(super) means: [Option<HuffmanDecoder>; 4],
    pub(super) others: [Option<HuffmanDecoder>; 4],
    /// Units between restarts, 0 for none.
    pub(super) restart: usize,
    is_jfif: bool,
    /// The transform that Adobe's marker tells.
    pub(super) adobe: Option<u8>,
}

impl Tables {
    /// Takes a segment in, unless it is of no concern.
    pub(super) fn read(&mut self, marker: u8, segment: &[u8]) -> Result<(), Damage> {
        match marker {
            0xc4 => self.read_codes(segment)?,
            0xdb => self.read_divisors(segment)?,
            0xdd => match *segment {
                [high, low] => self.restart = usize::from(u16::from_be_bytes([high, low])),
                _ => return Err(Damage::Header),
            },
            0xe0 if segment.len() >= 14 && segment.starts_with(b"JFIF\0") => self.is_jfif = true,
            0xee if segment.len() >= 12 && segment.starts_with(b"Adobe") => {
                self.adobe = Some(segment[11]);
            }
            _ => {}
        }
        Ok(())
    }

    fn read_codes(&mut self, mut segment: &[u8]) -> Result<(), Damage> {
        while let Some((&place, rest)) = segment.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or(Damage::Header)?;
            let count = counts.iter().map(|&count| usize::from(count)).sum();
            let (symbols, rest) = rest.split_at_checked(count).ok_or(Damage::Codes)?;
            let codes = HuffmanDecoder::new(counts, symbols)?;
            let tables = if place & 0x10 == 0 { &mut self.means } else { &mut self.others };
            *tables.get_mut(usize::from(place & 0xef)).ok_or(Damage::Header)? = Some(codes);
            segment = rest;
        }
        Ok(())
    }

    fn read_divisors(&mut self, mut segment: &[u8]) -> Result<(), Damage> {
        while let Some((&place, rest)) = segment.split_first() {
            let size = if place >> 4 == 0 { 1 } else { 2 };
            let (values, rest) = rest.split_at_checked(64 * size).ok_or(Damage::Header)?;
            let mut divisors = [0; 64];
            for (value, &at) in values.chunks_exact(size).zip(&ZIGZAG) {
                let value = value.iter().fold(0, |value, &byte| value << 8 | u16::from(byte));
                divisors[usize::from(at)] = value;
            }
            *self.divisors.get_mut(usize::from(place & 15)).ok_or(Damage::Header)? = Some(divisors);
            segment = rest;
        }
        Ok(())
    }

    /// Colour space of the components, as libjpeg guesses; two have no meaning.
    pub(super) fn colours(&self, frame: &JpegFrame) -> Result<Colours, Damage> {
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        match (ids.as_slice(), self.adobe) {
            ([_], _) => Ok(Colours::Grey),
            ([_, _, _], _) if self.is_jfif => Ok(Colours::YCbCr),
            ([_, _, _], Some(0)) => Ok(Colours::Rgb),
            ([_, _, _], Some(_)) => Ok(Colours::YCbCr),
            ([b'R', b'G', b'B'], None) => Ok(Colours::Rgb),
            ([_, _, _], None) => Ok(Colours::YCbCr),
            ([_, _, _, _], Some(0) | None) => Ok(Colours::Cmyk),
            ([_, _, _, _], Some(_)) => Ok(Colours::Ycck),
            _ => Err(Damage::Header),
        }
    }
}

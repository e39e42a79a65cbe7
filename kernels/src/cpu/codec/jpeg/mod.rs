//! Images in JPEG format.
//!
//! TensorFlow decodes with libjpeg-turbo. Its integer arithmetic is repeated here, so that samples
//! are the same to the last bit: both transforms (`dct_method`), reduced sizes (`ratio`), smooth
//! and plain widening of colour (`fancy_upscaling`), all spaces of colour, parts of images, and
//! files that end early. Two things are not: arithmetic codes, which are refused, and the smoothing
//! of blocks of progressive files that miss scans.

mod bits;
mod colour;
mod frame;
mod idct;
mod scan;
mod widen;

use super::{Pixels, check_room, wrong};
use crate::{error::Result, kernel::Io};
use bits::BitReader;
use colour::ColourConversion;
use ferroflow_ir::{DType, Shape, workspace};
pub(super) use frame::ZIGZAG;
use frame::{Colours, JpegFrame, Tables};
use scan::JpegScan;
use widen::Planes;

/// No file needs more scans; each takes as long as the image is large.
const MAX_SCANS: usize = 500;
/// TensorFlow decodes no larger images, in samples.
const MAX_SAMPLES: usize = 1 << 29;

/// Rows of pixels per piece of work.
const PIECE: usize = 16;

/// Requested form of the image.
#[derive(Debug, Clone)]
pub(super) struct DecodeSettings {
    /// 0 for as many as there are, 1 or 3.
    pub(super) channels: usize,
    /// Divisor of the sides: 1, 2, 4 or 8.
    pub(super) ratio: usize,
    /// Whether colours go over into each other where there are fewer samples of them.
    pub(super) is_smooth: bool,
    /// Whether the slower, more exact transform is used.
    pub(super) is_accurate: bool,
    /// Whether a file that ends early is decoded all the same.
    pub(super) recover: bool,
    /// The share of rows that must be there.
    pub(super) fraction: f32,
    /// The rows and columns wanted: first row, first column, height, width.
    pub(super) window: Option<[usize; 4]>,
}

impl Default for DecodeSettings {
    fn default() -> DecodeSettings {
        DecodeSettings {
            channels: 0,
            ratio: 1,
            is_smooth: true,
            is_accurate: false,
            recover: false,
            fraction: 1.0,
            window: None,
        }
    }
}

/// Damage of a file.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(super) enum Damage {
    #[error("JPEG data that does not begin as it should")]
    Header,
    #[error("JPEG data with a wrong or missing table of codes")]
    Codes,
    #[error("JPEG data that ends before the image does")]
    Short,
    #[error("JPEG data without an end")]
    Missing,
    #[error("JPEG data of a kind that is not decoded: {0}")]
    Kind(&'static str),
    #[error("JPEG data of {0} scans")]
    Scans(usize),
    #[error("a JPEG image without the rows or columns asked for")]
    Window,
    #[error("a JPEG image of colours that do not become those asked for")]
    Colours,
}

/// An image, decoded as far as coefficients.
struct Image {
    frame: JpegFrame,
    colours: Colours,
    /// Whether a marker says that Adobe's programs wrote the file: their CMYK is inverted.
    is_adobe: bool,
    /// Rows of units before the file's end, where that comes early.
    n_rows: Option<usize>,
}

/// Height, width and components, after the headers are read.
pub(super) fn shape(contents: &[u8]) -> Result<[usize; 3], Damage> {
    let mut reader = Reader::new(contents)?;
    reader.headers()?;
    let frame = reader.frame.ok_or(Damage::Header)?;
    Ok([frame.height, frame.width, frame.components.len()])
}

/// The image that a file holds.
pub(super) fn decode(
    op: &'static str,
    io: &Io<'_>,
    contents: &[u8],
    settings: &DecodeSettings,
) -> Result<Pixels> {
    let image = read(op, io, contents, settings)?;
    render(op, io, &image, settings)
}

fn read(
    op: &'static str,
    io: &Io<'_>,
    contents: &[u8],
    settings: &DecodeSettings,
) -> Result<Image> {
    let damaged = |damage: Damage| wrong(op, damage);
    let mut reader = Reader::new(contents).map_err(damaged)?;
    let first = reader.headers().map_err(damaged)?;
    let mut frame = reader.frame.take().ok_or_else(|| damaged(Damage::Header))?;
    let sides = frame.width.div_ceil(settings.ratio) * frame.height.div_ceil(settings.ratio);
    if sides * frame.components.len() >= MAX_SAMPLES {
        return Err(wrong(op, format!("an image of {} by {}", frame.width, frame.height)));
    }
    io.check_size(DType::I16, &Shape::new([frame.n_coefficients()])?)?;
    for component in &mut frame.components {
        component.coefficients = workspace::filled([0; 64], component.stride * component.rows)?;
    }
    let n_rows = reader.scans(&mut frame, first, settings.recover).map_err(damaged)?;
    let colours = reader.tables.colours(&frame).map_err(damaged)?;
    Ok(Image { frame, colours, is_adobe: reader.tables.adobe.is_some(), n_rows })
}

/// A reader of segments.
struct Reader<'a> {
    data: &'a [u8],
    position: usize,
    /// A marker that was met in a scan.
    marker: Option<u8>,
    tables: Tables,
    frame: Option<JpegFrame>,
}

impl<'a> Reader<'a> {
    fn new(data: &'a [u8]) -> Result<Reader<'a>, Damage> {
        match data.starts_with(&[0xff, 0xd8]) {
            true => {
                let tables = Tables::default();
                Ok(Reader { data, position: 2, marker: None, tables, frame: None })
            }
            false => Err(Damage::Header),
        }
    }

    /// Reads up to a scan, and gives the scan's header; `None` at the end of the image.
    fn next_scan(&mut self) -> Result<Option<&'a [u8]>, Damage> {
        loop {
            let marker = self.next_marker()?;
            match marker {
                0xd9 => return Ok(None),
                0x01 | 0xd0..=0xd7 => continue,
                0xd8 | 0x02..0xc0 => return Err(Damage::Header),
                _ => {}
            }
            let segment = self.segment()?;
            match marker {
                0xda => return Ok(Some(segment)),
                0xc0..=0xc2 if self.frame.is_some() => return Err(Damage::Header),
                0xc0..=0xc2 => self.frame = Some(JpegFrame::read(segment, marker == 0xc2)?),
                0xc9 | 0xca => return Err(Damage::Kind("arithmetic codes")),
                0xc3 => return Err(Damage::Kind("no loss")),
                0xc5..=0xc8 | 0xcb | 0xcd..=0xcf => return Err(Damage::Kind("differences")),
                _ => self.tables.read(marker, segment)?,
            }
        }
    }

    /// Reads up to the first scan.
    fn headers(&mut self) -> Result<&'a [u8], Damage> {
        self.next_scan()?.ok_or(Damage::Header)
    }

    fn next_marker(&mut self) -> Result<u8, Damage> {
        if let Some(marker) = self.marker.take() {
            return Ok(marker);
        }
        loop {
            let rest = self.data.get(self.position..).unwrap_or_default();
            let mark = rest.iter().position(|&byte| byte == 0xff).ok_or(Damage::Missing)?;
            let marks = rest[mark..].iter().position(|&byte| byte != 0xff);
            let at = mark + marks.ok_or(Damage::Missing)?;
            self.position += at + 1;
            if rest[at] != 0 {
                return Ok(rest[at]);
            }
        }
    }

    fn segment(&mut self) -> Result<&'a [u8], Damage> {
        let rest = self.data.get(self.position..).ok_or(Damage::Missing)?;
        let &[high, low] = rest.first_chunk().ok_or(Damage::Missing)?;
        let size = usize::from(u16::from_be_bytes([high, low]));
        let segment = rest.get(2..size.max(2)).ok_or(Damage::Missing)?;
        self.position += size.max(2);
        Ok(segment)
    }

    /// Reads all scans into `frame`. Gives the number of rows of units where the file ends before
    /// the last.
    fn scans(
        &mut self,
        frame: &mut JpegFrame,
        mut header: &'a [u8],
        recover: bool,
    ) -> Result<Option<usize>, Damage> {
        self.frame = None;
        for n_scans in 0.. {
            if n_scans == MAX_SCANS {
                return Err(Damage::Scans(n_scans));
            }
            let scan = JpegScan::read(header, frame)?;
            self.latch_divisors(frame, &scan)?;
            let is_only = !frame.is_progressive && scan.components.len() == frame.components.len();
            let mut bits = BitReader::new(self.data, self.position, recover);
            let (n_rows, damage) = scan.decode(frame, &self.tables, &mut bits)?;
            match damage {
                Some(Damage::Short) if is_only && n_scans == 0 => {
                    // Blocks that are alone come in rows, other units as high as the largest share.
                    let height = match scan.components.len() {
                        1 => frame.down,
                        _ => 1,
                    };
                    return Ok(Some(n_rows / height));
                }
                Some(damage) => return Err(damage),
                None => {}
            }
            (self.data, self.position, self.marker) = bits.rest();
            header = match self.next_scan() {
                Ok(Some(_)) if is_only && n_scans == 0 => return Err(Damage::Header),
                Ok(Some(header)) => header,
                Err(Damage::Missing) if recover => break,
                Ok(None) => break,
                Err(damage) => return Err(damage),
            };
            if self.frame.is_some() {
                return Err(Damage::Header);
            }
        }
        Ok(None)
    }

    /// Gives components their divisors at their first scan.
    fn latch_divisors(&self, frame: &mut JpegFrame, scan: &JpegScan) -> Result<(), Damage> {
        for &place in &scan.components {
            let component = &mut frame.components[place];
            if component.divisors.is_none() {
                let divisors = self.tables.divisors.get(component.table).copied().flatten();
                component.divisors = Some(divisors.ok_or(Damage::Header)?);
            }
        }
        Ok(())
    }
}

/// The samples of an image, as many and in such colours as `settings` say.
fn render(
    op: &'static str,
    io: &Io<'_>,
    image: &Image,
    settings: &DecodeSettings,
) -> Result<Pixels> {
    let damaged = |damage: Damage| wrong(op, damage);
    let frame = &image.frame;
    let target = ColourConversion::new(image, settings.channels).map_err(damaged)?;
    let channels = target.channels();
    let height = frame.height.div_ceil(settings.ratio);
    let width = frame.width.div_ceil(settings.ratio);
    let [top, left, rows, columns] = settings.window.unwrap_or([0, 0, height, width]);
    let fits = |from: usize, size: usize, all: usize| {
        size > 0 && from.checked_add(size).is_some_and(|end| end <= all)
    };
    if !fits(top, rows, height) || !fits(left, columns, width) {
        return Err(damaged(Damage::Window));
    }
    check_room(io, height, width, frame.components.len().max(channels))?;
    let planes =
        Planes::new(frame, settings, target.n_components(), io.threads()).map_err(damaged)?;
    let n_there = match image.n_rows {
        Some(n_rows) => planes.n_rows(n_rows).clamp(top, top + rows) - top,
        None => rows,
    };
    if (n_there as f32 / rows as f32) < settings.fraction.min(1.0) {
        return Err(damaged(Damage::Short));
    }
    let view = planes.view(left, columns);
    let row_len = columns * channels;
    let mut samples = workspace::filled(0, rows * row_len)?;
    io.threads().for_each_piece(
        &mut samples[..n_there * row_len],
        PIECE * row_len,
        |start, out| {
            let mut buffers = vec![vec![0; view.width]; target.n_components()];
            for (row, out) in (top + start / row_len..).zip(out.chunks_exact_mut(row_len)) {
                let buffers = buffers.iter_mut().map(Vec::as_mut_slice).enumerate();
                let lines = buffers.map(|(at, buffer)| &view.line(at, row, buffer)[view.skipped..]);
                target.write(&lines.collect::<Vec<&[u8]>>(), out);
            }
        },
    );
    let samples = samples.into_iter().map(u16::from).collect();
    Ok(Pixels { frames: None, height: rows, width: columns, channels, wide: false, samples })
}

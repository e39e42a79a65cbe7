//! The segments of a file in JPEG format.

use super::super::jpeg::ZIGZAG;
use super::{
    Image, Settings,
    codes::HuffmanCodes,
    forward, progressive, samples,
    scan::{self, EncodedComponent, HuffmanTable, SymbolSink},
};
use bytes::Bytes;

/// Prefix of a segment with a description of the image.
pub(super) const METADATA_NAME: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// Divisors of annex K.1 of the standard, for quality 50.
const LUMINANCE: [u16; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
const COLOUR: [u16; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

/// An image as a file.
pub(super) fn write(image: &Image<'_>, settings: &Settings) -> Bytes {
    let divisors = [LUMINANCE, COLOUR].map(|table| scaled(&table, settings.quality));
    let planes = samples::planes(image, settings.has_less_colour);
    let is_colour = planes.len() > 1;
    let share = if is_colour && settings.has_less_colour { 2 } else { 1 };
    let components: Vec<EncodedComponent> = planes
        .iter()
        .enumerate()
        .map(|(at, plane)| EncodedComponent {
            blocks: forward::coefficients(plane, &divisors[usize::from(at > 0)]),
            across: plane.across,
            down: plane.down,
            share: if at == 0 { share } else { 1 },
        })
        .collect();
    let mut file = File { bytes: vec![0xff, 0xd8], codes: Vec::new(), buffer: 0, n_bits: 0 };
    file.density(settings);
    if !settings.metadata.is_empty() {
        file.segment(0xe1, &[METADATA_NAME, &settings.metadata].concat());
    }
    for (place, divisors) in divisors.iter().enumerate().take(if is_colour { 2 } else { 1 }) {
        let values = ZIGZAG.iter().map(|&at| divisors[usize::from(at)] as u8);
        file.segment(0xdb, &std::iter::once(place as u8).chain(values).collect::<Vec<u8>>());
    }
    file.frame(image, &components, settings.is_progressive);
    match settings.is_progressive {
        true => file.progressive(&components),
        false => file.whole(&components, settings.is_small),
    }
    file.bytes.extend([0xff, 0xd9]);
    file.bytes.into()
}

/// Divisors for a quality from 1 to 100.
fn scaled(table: &[u16; 64], quality: i32) -> [u16; 64] {
    let quality = quality.clamp(1, 100);
    let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    table.map(|divisor| ((i32::from(divisor) * percent + 50) / 100).clamp(1, 255) as u16)
}

/// Counts of symbols, by `HuffmanTable::index`.
struct Counts([[u32; 256]; 4]);

impl SymbolSink for Counts {
    fn symbol(&mut self, table: HuffmanTable, symbol: u8) {
        self.0[table.index()][usize::from(symbol)] += 1;
    }

    fn bits(&mut self, _: u32, _: u32) {}
}

struct File {
    bytes: Vec<u8>,
    /// The codes of symbols, by `HuffmanTable::index`.
    codes: Vec<[(u16, u8); 256]>,
    buffer: u64,
    n_bits: u32,
}

impl SymbolSink for File {
    fn symbol(&mut self, table: HuffmanTable, symbol: u8) {
        let (code, length) = self.codes[table.index()][usize::from(symbol)];
        self.bits(code.into(), length.into());
    }

    fn bits(&mut self, value: u32, n_bits: u32) {
        self.buffer = self.buffer << n_bits | u64::from(value);
        self.n_bits += n_bits;
        while self.n_bits >= 8 {
            self.n_bits -= 8;
            let byte = (self.buffer >> self.n_bits) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
    }
}

impl File {
    fn segment(&mut self, marker: u8, contents: &[u8]) {
        self.bytes.extend([0xff, marker]);
        self.bytes.extend((contents.len() as u16 + 2).to_be_bytes());
        self.bytes.extend(contents);
    }

    fn density(&mut self, settings: &Settings) {
        let mut contents = b"JFIF\0\x01\x01".to_vec();
        contents.push(settings.density_unit);
        contents.extend(settings.density.into_iter().flat_map(u16::to_be_bytes));
        contents.extend([0, 0]);
        self.segment(0xe0, &contents);
    }

    fn frame(&mut self, image: &Image<'_>, components: &[EncodedComponent], is_progressive: bool) {
        let mut contents = vec![8];
        contents.extend((image.height as u16).to_be_bytes());
        contents.extend((image.width as u16).to_be_bytes());
        contents.push(components.len() as u8);
        for (at, component) in components.iter().enumerate() {
            let shares = (component.share << 4 | component.share) as u8;
            contents.extend([at as u8 + 1, shares, u8::from(at > 0)]);
        }
        self.segment(if is_progressive { 0xc2 } else { 0xc0 }, &contents);
    }

    fn whole(&mut self, components: &[EncodedComponent], is_small: bool) {
        let counts = is_small.then(|| counts(|sink| scan::write(components, sink)));
        let n_tables = if components.len() > 1 { 4 } else { 2 };
        self.codes = vec![[(0, 0); 256]; 4];
        for at in 0..n_tables {
            let (is_colour, is_mean) = (at / 2 > 0, at % 2 == 0);
            let table = HuffmanTable { is_mean, is_colour };
            let codes = match (&counts, is_mean) {
                (Some(counts), _) => HuffmanCodes::shortest(&counts.0[table.index()]),
                (None, true) => HuffmanCodes::usual_means(is_colour),
                (None, false) => HuffmanCodes::usual_others(is_colour),
            };
            self.table(table, &codes);
        }
        let places: Vec<usize> = (0..components.len()).collect();
        self.scan_header(&places, |at| if at > 0 { 0x11 } else { 0 }, [0, 63, 0]);
        scan::write(components, self);
        self.end_bits();
    }

    fn progressive(&mut self, components: &[EncodedComponent]) {
        self.codes = vec![[(0, 0); 256]; 4];
        for scan in progressive::scans(components.len() > 1) {
            let counts = counts(|sink| scan.write(components, sink));
            let places: Vec<usize> = match scan.component {
                Some(place) => vec![place],
                None => (0..components.len()).collect(),
            };
            let is_mean = scan.component.is_none();
            let mut tables: Vec<bool> = places.iter().map(|&place| place > 0).collect();
            tables.dedup();
            for is_colour in tables.into_iter().filter(|_| scan.has_codes()) {
                let table = HuffmanTable { is_mean, is_colour };
                self.table(table, &HuffmanCodes::shortest(&counts.0[table.index()]));
            }
            let place = |at: usize| match (at > 0 && scan.has_codes(), is_mean) {
                (false, _) => 0,
                (true, true) => 0x10,
                (true, false) => 0x01,
            };
            let bits = (scan.before << 4 | scan.after) as u8;
            self.scan_header(&places, place, [scan.first as u8, scan.last as u8, bits]);
            scan.write(components, self);
            self.end_bits();
        }
    }

    fn table(&mut self, table: HuffmanTable, codes: &HuffmanCodes) {
        self.codes[table.index()] = codes.by_symbol();
        let place = u8::from(table.is_colour) | if table.is_mean { 0 } else { 0x10 };
        let contents = [&[place], codes.counts.as_slice(), &codes.symbols].concat();
        self.segment(0xc4, &contents);
    }

    fn scan_header(&mut self, places: &[usize], tables: impl Fn(usize) -> u8, ending: [u8; 3]) {
        let mut contents = vec![places.len() as u8];
        contents.extend(places.iter().flat_map(|&at| [at as u8 + 1, tables(at)]));
        contents.extend(ending);
        self.segment(0xda, &contents);
    }

    /// Fills the last byte with ones.
    fn end_bits(&mut self) {
        self.bits(0x7f, 7);
        (self.buffer, self.n_bits) = (0, 0);
    }
}

fn counts(write: impl FnOnce(&mut Counts)) -> Counts {
    let mut counts = Counts([[0; 256]; 4]);
    write(&mut counts);
    counts
}

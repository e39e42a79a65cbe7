//! The coefficients of a scan as symbols and bits.

use super::super::jpeg::ZIGZAG;

/// Consumer of symbols and bits: a count of symbols, or a file.
pub(super) trait SymbolSink {
    /// The next codes are those of a component's place: 0 for luminance, 1 for colour.
    fn symbol(&mut self, table: HuffmanTable, symbol: u8);
    fn bits(&mut self, value: u32, n_bits: u32);
}

/// Codes of symbols.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HuffmanTable {
    pub(super) is_mean: bool,
    pub(super) is_colour: bool,
}

impl HuffmanTable {
    pub(super) fn index(self) -> usize {
        usize::from(self.is_mean) + 2 * usize::from(self.is_colour)
    }
}

/// The coefficients of a component.
pub(super) struct EncodedComponent {
    pub(super) blocks: Vec<[i16; 64]>,
    /// Blocks in a row and in a column.
    pub(super) across: usize,
    pub(super) down: usize,
    /// Blocks of a unit, in a row and in a column.
    pub(super) share: usize,
}

impl EncodedComponent {
    /// The block at a row and a column; at the edges of the image, one with the mean of the last.
    pub(super) fn block(&self, row: usize, column: usize) -> [i16; 64] {
        let is_there = row < self.down && column < self.across;
        // Below the image units repeat the last mean of their own row.
        let column = match row < self.down {
            true => column.min(self.across - 1),
            false => ((column / self.share + 1) * self.share - 1).min(self.across - 1),
        };
        let row = row.min(self.down - 1);
        let block = self.blocks[row * self.across + column];
        match is_there {
            true => block,
            false => std::array::from_fn(|at| if at == 0 { block[0] } else { 0 }),
        }
    }

    /// Units in a row and in a column.
    pub(super) fn units(&self) -> (usize, usize) {
        (self.across.div_ceil(self.share), self.down.div_ceil(self.share))
    }
}

/// Visits the blocks of all components, unit by unit, each with its component's place.
pub(super) fn for_each_block(
    components: &[EncodedComponent],
    mut visit: impl FnMut(usize, &[i16; 64]),
) {
    let (across, down) = components[0].units();
    for unit in 0..across * down {
        let (row, column) = (unit / across, unit % across);
        for (at, component) in components.iter().enumerate() {
            let share = component.share;
            for block in 0..share * share {
                let (y, x) = (row * share + block / share, column * share + block % share);
                visit(at, &component.block(y, x));
            }
        }
    }
}

/// Writes whole blocks of all components.
pub(super) fn write(components: &[EncodedComponent], sink: &mut impl SymbolSink) {
    let mut means = vec![0; components.len()];
    for_each_block(components, |at, block| {
        let is_colour = at > 0;
        mean(i32::from(block[0]), &mut means[at], is_colour, sink);
        others(block, is_colour, sink);
    });
}

/// Bits of a number's size.
pub(super) fn size(value: i32) -> u32 {
    32 - value.unsigned_abs().leading_zeros()
}

/// A number in as many bits as its size has; negative ones are one less.
pub(super) fn signed(value: i32) -> (u32, u32) {
    let n_bits = size(value);
    let value = if value < 0 { value - 1 } else { value };
    ((value as u32) & ((1 << n_bits) - 1), n_bits)
}

/// Writes a mean as its difference from the last.
pub(super) fn mean(value: i32, last: &mut i32, is_colour: bool, sink: &mut impl SymbolSink) {
    let (bits, n_bits) = signed(value - *last);
    *last = value;
    sink.symbol(HuffmanTable { is_mean: true, is_colour }, n_bits as u8);
    sink.bits(bits, n_bits);
}

fn others(block: &[i16; 64], is_colour: bool, sink: &mut impl SymbolSink) {
    let table = HuffmanTable { is_mean: false, is_colour };
    let mut run = 0;
    for &at in &ZIGZAG[1..] {
        let value = i32::from(block[usize::from(at)]);
        if value == 0 {
            run += 1;
            continue;
        }
        while run > 15 {
            sink.symbol(table, 0xf0);
            run -= 16;
        }
        let (bits, n_bits) = signed(value);
        sink.symbol(table, run << 4 | n_bits as u8);
        sink.bits(bits, n_bits);
        run = 0;
    }
    if run > 0 {
        sink.symbol(table, 0);
    }
}

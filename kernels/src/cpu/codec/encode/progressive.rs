//! The scans of progressive files (jcphuff.c): a part of the bits of some coefficients each.

use super::super::jpeg::ZIGZAG;
use super::scan::{EncodedComponent, HuffmanTable, SymbolSink, for_each_block, mean, signed, size};

/// The longest run of blocks without more coefficients.
const MAX_RUN: u32 = 0x7fff;
/// Bits that wait for the end of such a run, at most; room for a block's is kept.
const MAX_WAITING: usize = 1000 - 63;

/// Parts of a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodedScan {
    /// The component; all for means.
    pub(super) component: Option<usize>,
    pub(super) first: usize,
    pub(super) last: usize,
    /// Bits that came before, 0 for the first scan of them, and bits that are yet to come.
    pub(super) before: u32,
    pub(super) after: u32,
}

/// The scans of an image, as libjpeg chooses them.
pub(super) fn scans(is_colour: bool) -> Vec<EncodedScan> {
    let scan = |component, first, last, before, after| EncodedScan {
        component,
        first,
        last,
        before,
        after,
    };
    match is_colour {
        true => vec![
            scan(None, 0, 0, 0, 1),
            scan(Some(0), 1, 5, 0, 2),
            scan(Some(2), 1, 63, 0, 1),
            scan(Some(1), 1, 63, 0, 1),
            scan(Some(0), 6, 63, 0, 2),
            scan(Some(0), 1, 63, 2, 1),
            scan(None, 0, 0, 1, 0),
            scan(Some(2), 1, 63, 1, 0),
            scan(Some(1), 1, 63, 1, 0),
            scan(Some(0), 1, 63, 1, 0),
        ],
        false => vec![
            scan(None, 0, 0, 0, 1),
            scan(Some(0), 1, 5, 0, 2),
            scan(Some(0), 6, 63, 0, 2),
            scan(Some(0), 1, 63, 2, 1),
            scan(None, 0, 0, 1, 0),
            scan(Some(0), 1, 63, 1, 0),
        ],
    }
}

impl EncodedScan {
    /// Whether it has symbols, not bits alone.
    pub(super) fn has_codes(self) -> bool {
        self.first > 0 || self.before == 0
    }

    pub(super) fn write(self, components: &[EncodedComponent], sink: &mut impl SymbolSink) {
        match self.component {
            None => self.means(components, sink),
            Some(at) => {
                let table = HuffmanTable { is_mean: false, is_colour: at > 0 };
                let mut run = Run { table, blocks: 0, waiting: Vec::new() };
                for block in &components[at].blocks {
                    match self.before {
                        0 => self.first_bits(block, &mut run, sink),
                        _ => self.more_bits(block, &mut run, sink),
                    }
                }
                run.end(sink);
            }
        }
    }

    fn means(self, components: &[EncodedComponent], sink: &mut impl SymbolSink) {
        let mut means = vec![0; components.len()];
        for_each_block(components, |at, block| {
            let value = i32::from(block[0]) >> self.after;
            match self.before {
                0 => mean(value, &mut means[at], at > 0, sink),
                _ => sink.bits(value as u32 & 1, 1),
            }
        });
    }

    /// The coefficients of a block without the bits that are yet to come.
    fn values(self, block: &[i16; 64]) -> Vec<i32> {
        let value = |&at: &u8| {
            let value = i32::from(block[usize::from(at)]);
            value.signum() * (value.abs() >> self.after)
        };
        ZIGZAG[self.first..=self.last].iter().map(value).collect()
    }

    fn first_bits(self, block: &[i16; 64], run: &mut Run, sink: &mut impl SymbolSink) {
        let mut zeros = 0;
        for value in self.values(block) {
            if value == 0 {
                zeros += 1;
                continue;
            }
            run.end(sink);
            while zeros > 15 {
                sink.symbol(run.table, 0xf0);
                zeros -= 16;
            }
            let (bits, n_bits) = signed(value);
            sink.symbol(run.table, zeros << 4 | n_bits as u8);
            sink.bits(bits, n_bits);
            zeros = 0;
        }
        if zeros > 0 {
            run.blocks += 1;
            if run.blocks == MAX_RUN {
                run.end(sink);
            }
        }
    }

    fn more_bits(self, block: &[i16; 64], run: &mut Run, sink: &mut impl SymbolSink) {
        let values = self.values(block);
        // After the last coefficient that is new there are bits of old ones alone.
        let last_new = values.iter().rposition(|value| value.abs() == 1);
        let mut zeros = 0;
        let mut own = Vec::new();
        for (at, &value) in values.iter().enumerate() {
            if value == 0 {
                zeros += 1;
                continue;
            }
            while zeros > 15 && last_new.is_some_and(|last| at <= last) {
                run.end(sink);
                sink.symbol(run.table, 0xf0);
                zeros -= 16;
                own.drain(..).for_each(|bit| sink.bits(bit, 1));
            }
            if value.abs() > 1 {
                own.push(value.unsigned_abs() & 1);
                continue;
            }
            run.end(sink);
            sink.symbol(run.table, zeros << 4 | 1);
            sink.bits(u32::from(value > 0), 1);
            own.drain(..).for_each(|bit| sink.bits(bit, 1));
            zeros = 0;
        }
        if zeros > 0 || !own.is_empty() {
            run.blocks += 1;
            run.waiting.append(&mut own);
            if run.blocks == MAX_RUN || run.waiting.len() > MAX_WAITING {
                run.end(sink);
            }
        }
    }
}

/// Blocks that have no more new coefficients, and the bits of their old ones.
struct Run {
    table: HuffmanTable,
    blocks: u32,
    waiting: Vec<u32>,
}

impl Run {
    fn end(&mut self, sink: &mut impl SymbolSink) {
        if self.blocks > 0 {
            let n_bits = size(self.blocks as i32) - 1;
            sink.symbol(self.table, (n_bits as u8) << 4);
            sink.bits(self.blocks & ((1 << n_bits) - 1), n_bits);
            self.blocks = 0;
            self.waiting.drain(..).for_each(|bit| sink.bits(bit, 1));
        }
    }
}

//! The coefficients of a scan: all of them, or a part of their bits in progressive files.

use super::{
    Damage,
    bits::{BitReader, HuffmanDecoder},
    frame::{JpegFrame, Tables, ZIGZAG},
};
use ferroflow_ir::budget;

/// Blocks of a unit, at most.
const MAX_UNIT: usize = 10;

/// Parts of a scan.
#[derive(Debug)]
pub(super) struct JpegScan {
    /// Components, by their places in the frame.
    pub(super) components: Vec<usize>,
    /// Places of the tables of means and of other coefficients.
    tables: Vec<(usize, usize)>,
    /// The first and last coefficient.
    first: usize,
    last: usize,
    /// Bits that came before, 0 for the first scan of them, and bits that are yet to come.
    before: u32,
    after: u32,
}

impl JpegScan {
    /// Reads a scan header.
    pub(super) fn read(segment: &[u8], frame: &JpegFrame) -> Result<JpegScan, Damage> {
        let (&count, rest) = segment.split_first().ok_or(Damage::Header)?;
        let (parts, ending) =
            rest.split_at_checked(2 * usize::from(count)).ok_or(Damage::Header)?;
        let &[first, last, bits] = ending else { return Err(Damage::Header) };
        let (mut components, mut tables) = (Vec::new(), Vec::new());
        for part in parts.chunks_exact(2) {
            let is_meant = |place: &usize| {
                frame.components[*place].id == part[0] && !components.contains(place)
            };
            let place = (0..frame.components.len()).find(is_meant).ok_or(Damage::Header)?;
            components.push(place);
            tables.push((usize::from(part[1] >> 4), usize::from(part[1] & 15)));
        }
        let (before, after) = (u32::from(bits >> 4), u32::from(bits & 15));
        let (first, last) = (usize::from(first), usize::from(last));
        let scan = JpegScan { components, tables, first, last, before, after };
        scan.check(frame)?;
        Ok(scan)
    }

    fn check(&self, frame: &JpegFrame) -> Result<(), Damage> {
        let shares = |&place: &usize| frame.components[place].across * frame.components[place].down;
        let unit: usize = self.components.iter().map(shares).sum();
        if self.components.is_empty() || (self.components.len() > 1 && unit > MAX_UNIT) {
            return Err(Damage::Header);
        }
        let is_part = match self.first {
            0 => self.last == 0,
            first => first <= self.last && self.last < 64 && self.components.len() == 1,
        };
        let is_refined = self.before == 0 || self.before == self.after + 1;
        match !frame.is_progressive || (is_part && is_refined && self.after <= 13) {
            true => Ok(()),
            false => Err(Damage::Header),
        }
    }

    /// Reads the scan's units into the frame's coefficients. Gives the number of whole rows of
    /// units, and the damage that ended them early.
    pub(super) fn decode(
        &self,
        frame: &mut JpegFrame,
        tables: &Tables,
        bits: &mut BitReader<'_>,
    ) -> Result<(usize, Option<Damage>), Damage> {
        let codes = self.codes(frame, tables)?;
        let (across, down) = frame.units(&self.components);
        let mut state = State { means: [0; 4], zeros: 0 };
        let mut left = tables.restart;
        for row in 0..down {
            budget::tick();
            for column in 0..across {
                if tables.restart > 0 && left == 0 {
                    if let Err(damage) = bits.restart() {
                        return Ok((row, Some(damage)));
                    }
                    state = State { means: [0; 4], zeros: 0 };
                    left = tables.restart;
                }
                if let Err(damage) = self.unit(frame, &codes, bits, &mut state, (row, column)) {
                    return Ok((row, Some(damage)));
                }
                bits.end_unit();
                left = left.wrapping_sub(1);
            }
        }
        Ok((down, None))
    }

    /// The tables of each component, as far as the scan reads any.
    fn codes(&self, frame: &JpegFrame, tables: &Tables) -> Result<Vec<Pair>, Damage> {
        let is_refinement = self.before > 0;
        let reads_means = !frame.is_progressive || (self.first == 0 && !is_refinement);
        let reads_others = !frame.is_progressive || self.first > 0;
        let pick = |wanted: bool, tables: &[Option<HuffmanDecoder>; 4], place: usize| match wanted {
            false => Ok(None),
            true => tables.get(place).cloned().flatten().ok_or(Damage::Codes).map(Some),
        };
        let pair = |&(mean, other): &(usize, usize)| {
            let mean = pick(reads_means, &tables.means, mean)?;
            if mean.as_ref().is_some_and(|codes| !codes.are_sizes()) {
                return Err(Damage::Codes);
            }
            Ok(Pair { mean, other: pick(reads_others, &tables.others, other)? })
        };
        self.tables.iter().map(pair).collect()
    }

    fn unit(
        &self,
        frame: &mut JpegFrame,
        codes: &[Pair],
        bits: &mut BitReader<'_>,
        state: &mut State,
        (row, column): (usize, usize),
    ) -> Result<(), Damage> {
        let is_progressive = frame.is_progressive;
        let is_alone = self.components.len() == 1;
        // More bits of means come one by one, and are zeros where there are none.
        if bits.exhausted && !(is_progressive && self.first == 0 && self.before > 0) {
            return Ok(());
        }
        for (at, (&place, codes)) in self.components.iter().zip(codes).enumerate() {
            let component = &mut frame.components[place];
            let (down, across) = match is_alone {
                true => (1, 1),
                false => (component.down, component.across),
            };
            for block in 0..down * across {
                let (y, x) = (row * down + block / across, column * across + block % across);
                let block = &mut component.coefficients[y * component.stride + x];
                match is_progressive {
                    false => whole(block, codes, bits, &mut state.means[at])?,
                    true => self.part(block, codes, bits, state, at)?,
                }
            }
        }
        Ok(())
    }

    fn part(
        &self,
        block: &mut [i16; 64],
        codes: &Pair,
        bits: &mut BitReader<'_>,
        state: &mut State,
        at: usize,
    ) -> Result<(), Damage> {
        match (self.first, self.before) {
            (0, 0) => {
                let mean = mean(codes, bits, &mut state.means[at])?;
                block[0] = (mean << self.after) as i16;
            }
            (0, _) => {
                if bits.take(1)? != 0 {
                    block[0] |= 1 << self.after;
                }
            }
            (_, 0) => self.first_bits(block, codes, bits, state)?,
            _ => self.more_bits(block, codes, bits, state)?,
        }
        Ok(())
    }

    /// The first bits of coefficients that are no means.
    fn first_bits(
        &self,
        block: &mut [i16; 64],
        codes: &Pair,
        bits: &mut BitReader<'_>,
        state: &mut State,
    ) -> Result<(), Damage> {
        if state.zeros > 0 {
            state.zeros -= 1;
            return Ok(());
        }
        let mut at = self.first;
        while at <= self.last {
            let symbol = codes.other(bits)?;
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            at += run as usize;
            match (run, size) {
                (15, 0) => {}
                (_, 0) => {
                    state.zeros = (1 << run) + bits.take(run)? - 1;
                    break;
                }
                _ => {
                    let value = bits.signed(size)?;
                    block[place(at)] = (value << self.after) as i16;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Reads a further bit of coefficients that are no means: of each that has bits already, and
    /// the first of some others.
    fn more_bits(
        &self,
        block: &mut [i16; 64],
        codes: &Pair,
        bits: &mut BitReader<'_>,
        state: &mut State,
    ) -> Result<(), Damage> {
        let bit = 1 << self.after;
        let mut at = self.first;
        while at <= self.last && state.zeros == 0 {
            let symbol = codes.other(bits)?;
            let (run, size) = (u32::from(symbol >> 4), symbol & 15);
            let mut value = 0;
            if size > 0 {
                value = if bits.take(1)? != 0 { bit } else { -bit };
            } else if run < 15 {
                state.zeros = (1 << run) + bits.take(run)?;
                break;
            }
            let mut skipped = 0;
            while at <= self.last {
                let coefficient = &mut block[place(at)];
                if *coefficient != 0 {
                    refine(coefficient, bit, bits)?;
                } else if skipped == run {
                    break;
                } else {
                    skipped += 1;
                }
                at += 1;
            }
            if value != 0 {
                block[place(at)] = value;
            }
            at += 1;
        }
        if state.zeros > 0 {
            for at in at..=self.last {
                let coefficient = &mut block[place(at)];
                if *coefficient != 0 {
                    refine(coefficient, bit, bits)?;
                }
            }
            state.zeros -= 1;
        }
        Ok(())
    }
}

/// State of decoding between blocks.
struct State {
    /// The last mean of each component.
    means: [i32; 4],
    /// Blocks to come that have no more coefficients.
    zeros: i32,
}

/// The tables that a component is read with.
struct Pair {
    mean: Option<HuffmanDecoder>,
    other: Option<HuffmanDecoder>,
}

impl Pair {
    fn other(&self, bits: &mut BitReader<'_>) -> Result<u8, Damage> {
        bits.symbol(self.other.as_ref().ok_or(Damage::Codes)?)
    }
}

/// Where the coefficient of a place in the file's order lies; beyond the last, in the last.
fn place(at: usize) -> usize {
    ZIGZAG.get(at).copied().map_or(63, usize::from)
}

fn mean(codes: &Pair, bits: &mut BitReader<'_>, last: &mut i32) -> Result<i32, Damage> {
    let size = bits.symbol(codes.mean.as_ref().ok_or(Damage::Codes)?)?;
    *last = last.wrapping_add(bits.signed(u32::from(size))?);
    Ok(*last)
}

fn whole(
    block: &mut [i16; 64],
    codes: &Pair,
    bits: &mut BitReader<'_>,
    last: &mut i32,
) -> Result<(), Damage> {
    block[0] = mean(codes, bits, last)? as i16;
    let others = codes.other.as_ref().ok_or(Damage::Codes)?;
    let mut at = 1;
    while at < 64 {
        let symbol = bits.symbol(others)?;
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        match (run, size) {
            (15, 0) => at += 16,
            (_, 0) => break,
            _ => {
                at += run;
                block[place(at)] = bits.signed(size)? as i16;
                at += 1;
            }
        }
    }
    Ok(())
}

fn refine(coefficient: &mut i16, bit: i16, bits: &mut BitReader<'_>) -> Result<(), Damage> {
    if bits.take(1)? != 0 && *coefficient & bit == 0 {
        *coefficient =
            coefficient.wrapping_add(if *coefficient >= 0 { bit } else { bit.wrapping_neg() });
    }
    Ok(())
}

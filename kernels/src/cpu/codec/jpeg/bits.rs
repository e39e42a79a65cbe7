//! The bits of a scan, and Huffman codes in them.
//!
//! Reading past the end follows libjpeg with TensorFlow's source of bytes: a read that wants more
//! than there is ends the decoding (`Damage::Short`), unless the decoder is asked to go on; then it
//! meets an end-of-image marker, or the bytes since the last whole unit once more.

use super::Damage;

/// Bits are taken in until so many are at hand.
const FULL: u32 = 57;
/// Codes of so many bits are looked up at once.
const LOOKAHEAD: u32 = 8;
const END_OF_IMAGE: u8 = 0xd9;
const FIRST_RESTART: u8 = 0xd0;
/// Number of repeated readings of the same bytes after which a file counts as damaged.
const MAX_REWINDS: usize = 4096;

/// The codes of a table of a file.
#[derive(Debug, Clone)]
pub(super) struct HuffmanDecoder {
    /// For each beginning of 8 bits the length of its code and its symbol; 0 for longer codes.
    short: Vec<u16>,
    /// The largest code of each length, -1 for none; a sentinel ends the list.
    largest: [i32; 18],
    /// Distance from a code of a length to the index of its symbol.
    offset: [i32; 17],
    symbols: Vec<u8>,
}

impl HuffmanDecoder {
    /// Codes of which `counts[n]` have `n + 1` bits, in order.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<HuffmanDecoder, Damage> {
        let (mut short, mut largest) = (vec![0; 1 << LOOKAHEAD], [-1; 18]);
        let mut offset = [0; 17];
        let (mut code, mut place) = (0_i32, 0_usize);
        for (length, &count) in (1..=16_u32).zip(counts) {
            let count = usize::from(count);
            offset[length as usize] = place as i32 - code;
            for &symbol in symbols.get(place..place + count).ok_or(Damage::Codes)? {
                if code >= 1 << length {
                    return Err(Damage::Codes);
                }
                if let Some(free) = LOOKAHEAD.checked_sub(length) {
                    let entry = (length as u16) << 8 | u16::from(symbol);
                    short[(code as usize) << free..][..1 << free].fill(entry);
                }
                code += 1;
            }
            if count > 0 {
                largest[length as usize] = code - 1;
            }
            place += count;
            code <<= 1;
        }
        largest[17] = i32::MAX;
        Ok(HuffmanDecoder { short, largest, offset, symbols: symbols.to_vec() })
    }

    /// Whether every symbol is a number of bits that a mean value can have.
    pub(super) fn are_sizes(&self) -> bool {
        self.symbols.iter().all(|&symbol| symbol < 16)
    }
}

/// A reader of bits.
pub(super) struct BitReader<'a> {
    data: &'a [u8],
    position: usize,
    /// Where the unit that is being read began.
    unit: usize,
    buffer: u64,
    n_bits: u32,
    /// The marker that ended the bits.
    marker: Option<u8>,
    /// Whether there have been too few bits since the last restart.
    pub(super) exhausted: bool,
    next_restart: u8,
    recover: bool,
    rewinds: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(data: &'a [u8], position: usize, recover: bool) -> BitReader<'a> {
        BitReader {
            data,
            position,
            unit: position,
            buffer: 0,
            n_bits: 0,
            marker: None,
            exhausted: false,
            next_restart: 0,
            recover,
            rewinds: 0,
        }
    }

    /// Says that a unit has been read whole.
    pub(super) fn end_unit(&mut self) {
        self.unit = self.position;
    }

    /// The rest of the data, and the marker that was read already.
    pub(super) fn rest(self) -> (&'a [u8], usize, Option<u8>) {
        (self.data, self.position, self.marker)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        if self.position == self.data.len() {
            match (self.unit < self.data.len(), self.recover) {
                (true, true) if self.rewinds < MAX_REWINDS => {
                    self.rewinds += 1;
                    self.position = self.unit;
                }
                (true, false) => return Err(Damage::Short),
                (false, true) if self.data != ENDING => {
                    (self.data, self.position, self.unit) = (ENDING, 0, 0);
                }
                _ => return Err(Damage::Missing),
            }
        }
        let byte = self.data[self.position];
        self.position += 1;
        Ok(byte)
    }

    /// The byte after any number of filling bytes.
    fn byte_after_marks(&mut self) -> Result<u8, Damage> {
        loop {
            let byte = self.byte()?;
            if byte != 0xff {
                return Ok(byte);
            }
        }
    }

    /// Takes bits in; where a marker ends them, zeros stand for the `wanted` ones that are missing.
    #[cold]
    fn fill(&mut self, wanted: u32) -> Result<(), Damage> {
        while self.marker.is_none() && self.n_bits < FULL {
            let mut byte = self.byte()?;
            if byte == 0xff {
                byte = match self.byte_after_marks()? {
                    0 => 0xff,
                    marker => {
                        self.marker = Some(marker);
                        break;
                    }
                };
            }
            self.buffer = self.buffer << 8 | u64::from(byte);
            self.n_bits += 8;
        }
        if wanted > self.n_bits {
            self.exhausted = true;
            self.buffer <<= FULL - self.n_bits;
            self.n_bits = FULL;
        }
        Ok(())
    }

    /// The next bits as a number; 16 at most.
    pub(super) fn take(&mut self, n_bits: u32) -> Result<i32, Damage> {
        if self.n_bits < n_bits {
            self.fill(n_bits)?;
        }
        self.n_bits -= n_bits;
        Ok((self.buffer >> self.n_bits & ((1 << n_bits) - 1)) as i32)
    }

    /// A number whose sign and size `n_bits` bits tell.
    pub(super) fn signed(&mut self, n_bits: u32) -> Result<i32, Damage> {
        let value = self.take(n_bits)?;
        let is_negative = n_bits > 0 && value < 1 << (n_bits - 1);
        Ok(if is_negative { value - (1 << n_bits) + 1 } else { value })
    }

    /// The symbol of the next code; 0 for bits that are no code.
    pub(super) fn symbol(&mut self, codes: &HuffmanDecoder) -> Result<u8, Damage> {
        if self.n_bits < LOOKAHEAD {
            self.fill(0)?;
        }
        let mut length = 1;
        if self.n_bits >= LOOKAHEAD {
            let beginning = self.buffer >> (self.n_bits - LOOKAHEAD) & 0xff;
            let entry = codes.short[beginning as usize];
            if entry != 0 {
                self.n_bits -= u32::from(entry >> 8);
                return Ok(entry as u8);
            }
            length = LOOKAHEAD + 1;
        }
        let mut code = self.take(length)?;
        while code > codes.largest[length as usize] {
            code = code << 1 | self.take(1)?;
            length += 1;
        }
        if length > 16 {
            return Ok(0);
        }
        let place = code + codes.offset[length as usize];
        let symbol = usize::try_from(place).ok().and_then(|place| codes.symbols.get(place));
        Ok(symbol.copied().unwrap_or(0))
    }

    /// Goes to the next restart marker, or to where libjpeg goes when another stands there.
    pub(super) fn restart(&mut self) -> Result<(), Damage> {
        self.n_bits = 0;
        self.end_unit();
        let expected = FIRST_RESTART + self.next_restart;
        let nth = |n: u8| FIRST_RESTART + (self.next_restart.wrapping_add(n) & 7);
        let (ahead, behind) = ([nth(1), nth(2)], [nth(7), nth(6)]);
        loop {
            let marker = match self.marker.take() {
                Some(marker) => marker,
                None => self.next_marker()?,
            };
            let is_restart = (FIRST_RESTART..FIRST_RESTART + 8).contains(&marker);
            let is_skipped = marker < 0xc0 || behind.contains(&marker);
            let is_left = !is_restart || ahead.contains(&marker);
            if marker == expected {
                break;
            }
            if is_skipped {
                continue;
            }
            if is_left {
                self.marker = Some(marker);
            }
            break;
        }
        self.next_restart = (self.next_restart + 1) & 7;
        if self.marker.is_none() {
            self.exhausted = false;
        }
        Ok(())
    }

    fn next_marker(&mut self) -> Result<u8, Damage> {
        loop {
            while self.byte()? != 0xff {
                self.end_unit();
            }
            let marker = self.byte_after_marks()?;
            self.end_unit();
            if marker != 0 {
                return Ok(marker);
            }
        }
    }
}

/// Bytes in place of the missing end of a file.
const ENDING: &[u8] = &[0xff, END_OF_IMAGE];

//! The registers that sums are made in, and the form that numbers have for them.

use super::super::{
    amx::{Configured, TileUnit},
    dots::DotUnit,
};
use crate::Precision;

/// Lines of a tile.
pub(in crate::cpu) const LINES: usize = 16;

/// Elements of the summed dimension that one step of a tile takes: the first half of them are in the lower
/// halves of the groups, the second half in the upper ones.
pub(in crate::cpu) const DEPTH: usize = 32;

/// 32-bit groups of a tile.
pub(super) const TILE: usize = LINES * DEPTH / 2;

/// The elements of a large right operand.
const LARGE: usize = 1 << 19;

/// Parts of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) enum Parts {
    /// The `bfloat16` that is nearest.
    One,
    /// All bits of the number.
    Three,
}

impl Parts {
    pub(in crate::cpu) const fn count(self) -> usize {
        match self {
            Parts::One => 1,
            Parts::Three => 3,
        }
    }

    /// The fewest rows by which a right operand of so many elements is multiplied: tiles would be mostly empty, and three
    /// parts of a large operand are half as large again as it is, and come from memory.
    pub(in crate::cpu) fn fewest_rows(self, elements: usize) -> usize {
        match self {
            Parts::One => 8,
            Parts::Three if elements > LARGE => 40,
            Parts::Three => 24,
        }
    }

    /// The fewest columns: splitting rows costs more than tiles save.
    pub(super) fn fewest_cols(self) -> usize {
        match self {
            Parts::One => 32,
            Parts::Three => 80,
        }
    }

    /// The most multiplications, zeros included, for two that are asked for.
    pub(super) fn most_padded(self) -> u64 {
        match self {
            Parts::One => 4,
            Parts::Three => 3,
        }
    }

    /// 32-bit groups of two tiles for one step: all parts, the highest first.
    pub(super) const fn step(self) -> usize {
        self.count() * PART
    }
}

/// 32-bit groups of a part of two tiles.
pub(super) const PART: usize = 2 * TILE;

/// Instructions that multiply `bfloat16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Tiles(TileUnit),
    Dots(DotUnit),
}

/// Instructions that multiply `bfloat16`, and how numbers become that for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct SplitUnit {
    unit: Unit,
    pub(in crate::cpu) parts: Parts,
}

/// The registers that sums are made in.
#[derive(Debug)]
pub(in crate::cpu) enum SumRegisters {
    /// Tile registers.
    Tiles(Configured),
    /// Registers of AVX-512, for numbers of one part.
    Dots(DotUnit),
}

impl SumRegisters {
    /// The rows that are computed for so many: those of whole tiles, or as many.
    pub(super) fn rows(&self, rows: usize) -> usize {
        match self {
            SumRegisters::Tiles(_) => rows.next_multiple_of(LINES),
            SumRegisters::Dots(_) => rows,
        }
    }
}

impl SplitUnit {
    /// The unit, if there is one. In registers of AVX-512, three parts would take longer than whole numbers.
    pub(in crate::cpu) fn detect(precision: Precision) -> Option<SplitUnit> {
        let tiles = TileUnit::detect().map(Unit::Tiles);
        let (unit, parts) = match precision {
            Precision::BFloat16 => (tiles.or(SplitUnit::dots()), Parts::One),
            _ => (tiles, Parts::Three),
        };
        unit.map(|unit| SplitUnit { unit, parts })
    }

    /// The unit for few rows of numbers of one part, if there is one: tiles would be mostly empty.
    pub(super) fn for_few_rows() -> Option<SplitUnit> {
        SplitUnit::dots().map(|unit| SplitUnit { unit, parts: Parts::One })
    }

    fn dots() -> Option<Unit> {
        DotUnit::detect().map(Unit::Dots)
    }

    /// The registers of this thread, made ready.
    pub(in crate::cpu) fn registers(self) -> SumRegisters {
        match self.unit {
            Unit::Tiles(tiles) => SumRegisters::Tiles(tiles.registers()),
            Unit::Dots(dots) => SumRegisters::Dots(dots),
        }
    }
}

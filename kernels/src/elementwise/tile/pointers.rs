//! Where the operands of a tile program are, from tile to tile.

use super::machine::TileFrame;
use crate::simd::prefetch;
use smallvec::SmallVec;

/// A local variable that lets the frames of calls begin at a page. Operations keep registers on the
/// stack, and one of them across two pages, which depends on the address that the system gives the
/// stack, makes a program take three times as long (Zen 3).
#[repr(align(4096))]
pub(super) struct StackPage(u8);

impl StackPage {
    /// The variable.
    #[inline(always)]
    pub(super) fn begin() -> StackPage {
        StackPage(0)
    }

    /// Sees to it that the variable is in memory.
    #[inline(always)]
    pub(super) fn hold(&mut self) {
        std::hint::black_box(&mut self.0);
    }
}

/// Bytes that memory is asked for at a time.
const LINE: usize = 64;

/// A slot that moves on from tile to tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct MovingSlot {
    slot: usize,
    /// Bytes of a tile.
    step: usize,
    /// Memory is asked for so many bytes ahead of the next tile; as many as it has, if any.
    ahead: usize,
    asked: usize,
}

impl MovingSlot {
    /// Moves the pointer of the slot on.
    #[inline(always)]
    pub(super) fn advance(&self, pointers: &mut [*mut u8]) {
        let pointer = pointers[self.slot].wrapping_add(self.step);
        pointers[self.slot] = pointer;
        if self.asked > 0 {
            prefetch(pointer.wrapping_add(self.ahead), self.asked);
        }
    }
}

/// A slot that moves on from tile to tile, and begins again.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurningSlot {
    slot: usize,
    step: usize,
    /// The address from which on the slot has begun again, so many bytes before.
    end: usize,
    period: usize,
}

impl TurningSlot {
    /// Moves the pointer of the slot on.
    #[inline(always)]
    pub(super) fn advance(&self, pointers: &mut [*mut u8]) {
        let mut pointer = pointers[self.slot].wrapping_add(self.step);
        if pointer as usize >= self.end {
            pointer = pointer.wrapping_sub(self.period);
        }
        pointers[self.slot] = pointer;
    }
}

/// The table of a running program: a pointer for each slot, and those that move on to the next
/// tile.
#[derive(Default)]
pub(super) struct PointerTable {
    pointers: SmallVec<[*mut u8; 32]>,
    moving: SmallVec<[MovingSlot; 18]>,
    turning: SmallVec<[TurningSlot; 4]>,
}

impl PointerTable {
    /// Moves a slot.
    #[inline(always)]
    pub(super) fn set(&mut self, slot: usize, pointer: *mut u8) {
        self.pointers[slot] = pointer;
    }

    /// Adds a slot that stays where it is.
    pub(super) fn stay(&mut self, pointer: *mut u8) {
        self.pointers.push(pointer);
    }

    /// Adds a slot that moves on by `step` bytes, with memory asked for so many tiles ahead.
    pub(super) fn go(&mut self, pointer: *mut u8, step: usize, ahead: Option<usize>) {
        self.go_sharing(pointer, step, ahead, [0, 8]);
    }

    /// As [`go`](PointerTable::go), with memory asked for a part of each tile alone, from an eighth to
    /// another.
    #[inline(always)]
    pub(super) fn go_sharing(
        &mut self,
        pointer: *mut u8,
        step: usize,
        ahead: Option<usize>,
        [from, to]: [u8; 2],
    ) {
        let share = |eighth: u8| step.div_ceil(LINE) * usize::from(eighth) / 8 * LINE;
        let asked = if ahead.is_some() { share(to) - share(from) } else { 0 };
        let ahead = ahead.unwrap_or(0).saturating_sub(1) * step + share(from);
        if step > 0 {
            self.moving.push(MovingSlot { slot: self.pointers.len(), step, ahead, asked });
        }
        self.pointers.push(pointer);
    }

    /// Adds a slot that moves on by `step` bytes, from `at` on, and begins again at `first` after
    /// `period` bytes.
    pub(super) fn turn(&mut self, first: *mut u8, at: usize, step: usize, period: usize) {
        let (slot, step) = (self.pointers.len(), step % period);
        if step > 0 {
            let end = first as usize + period;
            self.turning.push(TurningSlot { slot, step, end, period });
        }
        self.pointers.push(first.wrapping_add(at));
    }

    /// The frame of a program on these slots.
    pub(super) fn frame(&mut self) -> TileFrame<'_> {
        TileFrame { places: &mut self.pointers, moving: &self.moving, turning: &self.turning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_move_on_or_stay_or_begin_again() {
        let mut bytes = [0u8; 64];
        let base = bytes.as_mut_ptr();
        let mut indices = PointerTable::default();
        indices.stay(base);
        indices.go(base, 8, Some(2));
        indices.go(base.wrapping_add(1), 4, None);
        indices.turn(base, 3, 14, 5);
        for _ in 0..2 {
            indices.frame().advance();
        }
        let pointers = indices.frame().places.iter();
        let offsets: Vec<usize> =
            pointers.map(|&pointer| pointer as usize - base as usize).collect();
        assert_eq!(offsets, [0, 16, 9, 1]);
    }
}

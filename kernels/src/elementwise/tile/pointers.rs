//! Where the operands of a tile program are, from tile to tile.

use super::lanes::prefetch;
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

/// The table of a running program: a pointer for each slot, and how far it moves on to the next
/// tile.
#[derive(Default)]
pub(super) struct PointerTable {
    pointers: SmallVec<[*mut u8; 16]>,
    steps: SmallVec<[usize; 16]>,
    /// Slots ahead of which memory is asked for: so many bytes ahead of the next tile, as many
    /// bytes as one takes.
    asked: SmallVec<[(usize, usize, usize); 4]>,
}

impl PointerTable {
    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Adds a slot that stays where it is.
    pub(super) fn stay(&mut self, pointer: *mut u8) {
        self.go(pointer, 0, None);
    }

    /// Adds a slot that moves on by `step` bytes, with memory asked for so many tiles ahead.
    pub(super) fn go(&mut self, pointer: *mut u8, step: usize, ahead: Option<usize>) {
        if let Some(tiles) = ahead {
            self.asked.push((self.pointers.len(), tiles.saturating_sub(1) * step, step));
        }
        self.pointers.push(pointer);
        self.steps.push(step);
    }

    /// The pointers.
    pub(super) fn pointers(&mut self) -> &mut [*mut u8] {
        &mut self.pointers
    }

    /// Moves on to the next tile.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        let pointers = &mut self.pointers[..];
        for (pointer, &step) in pointers.iter_mut().zip(&self.steps[..]) {
            *pointer = pointer.wrapping_add(step);
        }
        for &(index, ahead, len) in &self.asked {
            prefetch(pointers[index].wrapping_add(ahead), len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_move_on_or_stay() {
        let mut bytes = [0u8; 64];
        let base = bytes.as_mut_ptr();
        let mut indices = PointerTable::default();
        indices.stay(base);
        indices.go(base, 8, Some(2));
        indices.go(base.wrapping_add(1), 4, None);
        indices.advance();
        indices.advance();
        let offsets: Vec<usize> =
            indices.pointers().iter().map(|place| *place as usize - base as usize).collect();
        assert_eq!((indices.len(), offsets), (3, vec![0, 16, 9]));
    }
}

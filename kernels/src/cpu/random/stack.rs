//! Numbers for rejection methods: drawn block by block, used one by one.

use super::variate::Variate;
use crate::philox::Philox;

/// Numbers of one distribution, of each block the last first.
pub(super) struct Stack {
    draw: fn([u32; 4]) -> [f64; 4],
    numbers: [f64; 4],
    left: usize,
}

impl Stack {
    pub(super) fn new(draw: fn([u32; 4]) -> [f64; 4]) -> Stack {
        Stack { draw, numbers: [0.0; 4], left: 0 }
    }

    pub(super) fn next(&mut self, generator: &mut Philox) -> f64 {
        if self.left == 0 {
            (self.numbers, self.left) = ((self.draw)(generator.next_block()), f64::PER_BLOCK);
        }
        self.left -= 1;
        self.numbers[self.left]
    }
}

/// Uniform numbers with a generator of their own.
pub(super) struct Uniform {
    generator: Philox,
    stack: Stack,
}

impl Uniform {
    pub(super) fn new(generator: Philox) -> Uniform {
        Uniform { generator, stack: Stack::new(f64::uniform) }
    }

    pub(super) fn next(&mut self) -> f64 {
        self.stack.next(&mut self.generator)
    }
}

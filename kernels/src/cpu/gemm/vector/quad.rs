//! Vectors of four floats.

use super::Vector;
use crate::elementwise::tile::{Lanes, Quad};

#[expect(unsafe_code, reason = "the registers are filled through pointers")]
// SAFETY: of every block: the caller vouches for the memory.
impl Vector for Quad {
    const LANES: usize = Quad::LEN;

    /// Their number.
    type Part = usize;

    type Lanes = Quad;

    #[inline(always)]
    fn to_lanes(self) -> Quad {
        self
    }

    #[inline(always)]
    fn of_lanes(lanes: Quad) -> Self {
        lanes
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        Quad::splat(0.0)
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        Quad::splat(unsafe { *from })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Lanes::load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { Lanes::store(self, to.cast()) }
    }

    #[inline(always)]
    unsafe fn times_plus(self, b: Self, c: Self) -> Self {
        Lanes::times_plus(self, b, c)
    }

    #[inline(always)]
    unsafe fn plus(self, b: Self) -> Self {
        Lanes::plus(self, b)
    }

    #[inline(always)]
    unsafe fn part(len: usize) -> usize {
        len
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, part: usize) -> Self {
        let mut lanes = [0.0; 4];
        unsafe {
            match part {
                0 => {}
                1 => lanes[0] = *from,
                2 => lanes[..2].copy_from_slice(&*from.cast::<[f32; 2]>()),
                3 => lanes[..3].copy_from_slice(&*from.cast::<[f32; 3]>()),
                _ => return <Quad as Vector>::load(from),
            }
            <Quad as Vector>::load(lanes.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, part: usize) {
        unsafe {
            let lanes = self.to_array();
            match part {
                0 => {}
                1 => *to = lanes[0],
                2 => *to.cast::<[f32; 2]>() = [lanes[0], lanes[1]],
                3 => *to.cast::<[f32; 3]>() = [lanes[0], lanes[1], lanes[2]],
                _ => Vector::store(self, to),
            }
        }
    }
}

//! Tiles of a matmul in vector registers: sums that stay there while steps of the summed dimension
//! go by. The same code is compiled for each instruction set.

#[cfg(not(target_arch = "x86_64"))]
use super::vector::quad;
#[cfg(target_arch = "x86_64")]
use super::vector::{avx2, avx512};
use super::{
    linear::LinearTile,
    rect::Rect,
    vector::{Compiled, InstructionSet, Vector, VectorFunction},
};
use crate::simd::{prefetch_line, unrolled};

/// The left operand: element `step` of row `row` is at `row * row_stride + step * step_stride`.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct LeftOperand<'a> {
    pub(in crate::cpu) data: &'a [f32],
    pub(in crate::cpu) row_stride: usize,
    /// Stride of the steps; either this or the other stride is 1.
    pub(in crate::cpu) step_stride: usize,
}

/// The right operand: the columns of step `step` begin at `step * step_stride`.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct Right<'a> {
    pub(in crate::cpu) data: &'a [f32],
    pub(in crate::cpu) step_stride: usize,
    pub(in crate::cpu) ahead: Ahead,
}

/// The memory that a tile asks for before it is read: from an offset of its first step on, so many floats
/// further with each step. It may be anywhere.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct Ahead {
    offset: usize,
    step: usize,
}

impl<'a> Right<'a> {
    /// An operand that is read for the first time: it is asked for some steps before.
    pub(in crate::cpu) fn new(data: &'a [f32], step_stride: usize) -> Right<'a> {
        Right { data, step_stride, ahead: Ahead { offset: NEAR, step: step_stride } }
    }

    /// A packed panel of steps of `wide` floats, which tile `tile` of those that `tiles` stands for reads.
    #[inline]
    pub(in crate::cpu) fn panel(
        data: &'a [f32],
        wide: usize,
        tile: usize,
        tiles: &PanelTiles,
    ) -> Right<'a> {
        if tiles.is_single {
            return Right::new(data, wide);
        }
        let ahead = Ahead { offset: tiles.next + tile * tiles.part, step: tiles.step };
        Right { data, step_stride: wide, ahead }
    }
}

/// The tiles that read a packed panel in turn. Together they ask for the next panel in memory, which may come from
/// the third-level cache: one tile alone would wait for it.
pub(in crate::cpu) struct PanelTiles {
    is_single: bool,
    /// Where the next panel begins, and the floats of it that each tile asks for, in all and in a step.
    next: usize,
    part: usize,
    step: usize,
}

impl PanelTiles {
    /// `n` tiles that read a panel of `len` steps of `wide` floats.
    pub(in crate::cpu) fn new(wide: usize, len: usize, n: usize) -> PanelTiles {
        let next = wide * len;
        let n = n.max(1);
        PanelTiles { is_single: n == 1, next, part: next.div_ceil(n), step: wide.div_ceil(n) }
    }
}

/// Steps that are contiguous in both operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct Span {
    /// Where the first step is in the left operand.
    pub(in crate::cpu) left: usize,
    /// Where it is in the right one.
    pub(in crate::cpu) right: usize,
    /// The number of steps.
    pub(in crate::cpu) len: usize,
}

/// A function for tiles of one size.
type Run = for<'a> unsafe fn(&'a Call<'a>);

/// The functions of an instruction set: for each number of rows those for the forms that [`specialization`]
/// counts.
macro_rules! forms {
    ($set:ident, $($rows:literal)*) => {
        &[$([
            $set::<Sums<false, false, $rows, 1>>,
            $set::<Sums<false, false, $rows, 2>>,
            $set::<Sums<false, true, $rows, 1>>,
            $set::<Sums<false, true, $rows, 2>>,
            $set::<Sums<true, false, $rows, 1>>,
            $set::<Sums<true, false, $rows, 2>>,
            $set::<Sums<true, true, $rows, 1>>,
            $set::<Sums<true, true, $rows, 2>>,
        ]),*]
    };
}

/// The functions of all instruction sets. With two vectors for each row, the sums take three quarters of the
/// registers of AVX2 and of AVX-512, and half of those that others have.
static FUNCTIONS: Compiled<&[[Run; 8]]> = Compiled {
    #[cfg(target_arch = "x86_64")]
    avx2: forms!(avx2, 1 2 3 4 5 6),
    #[cfg(target_arch = "x86_64")]
    avx512: forms!(avx512, 1 2 3 4 5 6 7 8 9 10 11 12),
    #[cfg(target_arch = "wasm32")]
    quad: forms!(quad, 1 2 3 4),
    #[cfg(not(any(target_arch = "x86_64", target_arch = "wasm32")))]
    quad: forms!(quad, 1 2 3 4 5 6 7 8),
};

/// Elements that the second-level cache has room for, about half of it.
const CACHED: Compiled<usize> = Compiled {
    #[cfg(target_arch = "x86_64")]
    avx2: 1 << 17,
    #[cfg(target_arch = "x86_64")]
    avx512: 1 << 18,
    #[cfg(not(target_arch = "x86_64"))]
    quad: 1 << 16,
};

/// The number of a form: whether steps of a row are contiguous, whether the last vector is only a
/// part of one, and whether there are two.
fn specialization(by_rows: bool, cols: usize, lanes: usize) -> usize {
    let part = !cols.is_multiple_of(lanes);
    usize::from(by_rows) * 4 + usize::from(part) * 2 + usize::from(cols > lanes)
}

impl InstructionSet {
    /// The most rows of a tile.
    pub(in crate::cpu) fn rows(self) -> usize {
        self.choose(&FUNCTIONS).len()
    }

    /// Elements that the second-level cache has room for, about half of it.
    pub(in crate::cpu) const fn cached(self) -> usize {
        self.choose(&CACHED)
    }

    /// The most columns of a tile.
    pub(in crate::cpu) const fn cols(self) -> usize {
        2 * self.lanes()
    }

    /// Multiplies the rows of `a` by the columns of `b` along all spans, and puts the matmul into
    /// `out`, or adds it to what is there. Every element is a chain of multiplications and additions, in the
    /// order of the steps, fused where vectors do that; an epilogue is what is done to it at last.
    ///
    /// # Panics
    ///
    /// When an operand is too short, or `out` larger than a tile or empty.
    // Not a call: arguments on the stack would be read back behind all stores of the tile before.
    #[inline(always)]
    pub(in crate::cpu) fn tile(
        self,
        a: LeftOperand<'_>,
        b: Right<'_>,
        spans: &[Span],
        out: Rect<'_>,
        add: bool,
        epilogue: Option<LinearTile<'_>>,
    ) {
        let (rows, cols) = (out.rows(), out.cols());
        assert!((1..=self.rows()).contains(&rows) && (1..=self.cols()).contains(&cols), "a tile");
        assert!(a.row_stride == 1 || a.step_stride == 1, "rows or columns that are contiguous");
        for span in spans {
            let last = span.len.saturating_sub(1);
            let left = span.left + (rows - 1) * a.row_stride + last * a.step_stride;
            let right = span.right + last * b.step_stride + cols;
            assert!(left < a.data.len() && right <= b.data.len(), "the elements of the operands");
        }
        let specialization = specialization(a.step_stride == 1, cols, self.lanes());
        let run = self.choose(&FUNCTIONS)[rows - 1][specialization];
        if let Some(epilogue) = &epilogue {
            epilogue.check(&out);
        }
        let call = Call {
            a: a.data.as_ptr(),
            out: out.as_ptr(),
            row_stride: a.row_stride,
            b: b.data.as_ptr(),
            step_stride: a.step_stride,
            out_stride: out.row_stride(),
            b_stride: b.step_stride,
            ahead: b.ahead,
            spans,
            cols,
            add,
            epilogue: epilogue.as_ref(),
        };
        if let Some(epilogue) = &epilogue {
            epilogue.prefetch(&out);
        }
        // SAFETY: this value proves that the processor has the features; the assertions above say
        // that the operands hold every step; `out` is a place of as many rows and columns as the
        // function computes, inside the results of the epilogue.
        #[expect(unsafe_code, reason = "the registers are filled through pointers")]
        unsafe {
            run(&call);
        }
    }
}

/// Operands of a tile.
struct Call<'a> {
    a: *const f32,
    out: *mut f32,
    row_stride: usize,
    b: *const f32,
    step_stride: usize,
    out_stride: usize,
    b_stride: usize,
    ahead: Ahead,
    spans: &'a [Span],
    cols: usize,
    add: bool,
    epilogue: Option<&'a LinearTile<'a>>,
}

/// [`sums`] for any vector.
struct Sums<const BY_ROWS: bool, const PART: bool, const R: usize, const V: usize>;

#[expect(unsafe_code, reason = "the registers are filled through pointers")]
impl<const BY_ROWS: bool, const PART: bool, const R: usize, const V: usize> VectorFunction
    for Sums<BY_ROWS, PART, R, V>
{
    type Call<'a> = &'a Call<'a>;

    #[inline(always)]
    unsafe fn run<X: Vector>(call: &Call<'_>) {
        // SAFETY: the caller vouches for it.
        unsafe { sums::<X, BY_ROWS, PART, R, V>(call) }
    }
}

/// Computes a tile of `R` rows and `V` vectors of columns, the last of which is only a part of one
/// with `PART`. With `BY_ROWS` the steps of a row follow each other, else the rows of a step.
///
/// # Safety
///
/// The processor has the features of the vector. The spans lie inside the operands; `out` points to
/// `R` rows of `cols` floats that nobody else refers to, `out_stride` apart, and a tile that the epilogue
/// has checked.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn sums<X: Vector, const BY_ROWS: bool, const PART: bool, const R: usize, const V: usize>(
    call: &Call<'_>,
) {
    let (row_stride, step_stride) = match BY_ROWS {
        true => (call.row_stride, 1),
        false => (1, call.step_stride),
    };
    let b_stride = call.b_stride;
    // SAFETY: the caller vouches for the features and the memory.
    unsafe {
        let part = X::part(call.cols - (V - 1) * X::LANES);
        let mut sums = [[X::zero(); V]; R];
        // Results that the next tile writes, as a rule: the third-level cache takes longer than a tile of
        // few steps.
        for row in R..2 * R {
            let address = call.out.wrapping_add(row * call.out_stride);
            for vector in 0..V {
                prefetch_line(address.wrapping_add(vector * X::LANES));
            }
            prefetch_line(address.wrapping_add(call.cols - 1));
        }
        for span in call.spans {
            let mut a = call.a.add(span.left);
            let mut b = call.b.add(span.right);
            let mut ahead = b.wrapping_add(call.ahead.offset);
            // Many rows that are apart are not unrolled: the loads of several steps would not all find
            // registers.
            let unrolled = if BY_ROWS && R > UNROLLED { 0 } else { span.len / UNROLLED };
            for _ in 0..unrolled {
                for index in 0..UNROLLED {
                    prefetch_line(ahead);
                    ahead = ahead.wrapping_add(call.ahead.step);
                    let at = a.wrapping_add(index * step_stride);
                    step::<X, PART, R, V>(&mut sums, at, row_stride, b, part);
                    b = b.wrapping_add(b_stride);
                }
                a = a.wrapping_add(UNROLLED * step_stride);
            }
            for _ in 0..span.len - unrolled * UNROLLED {
                prefetch_line(ahead);
                ahead = ahead.wrapping_add(call.ahead.step);
                step::<X, PART, R, V>(&mut sums, a, row_stride, b, part);
                a = a.wrapping_add(step_stride);
                b = b.wrapping_add(b_stride);
            }
        }
        if call.add {
            unrolled!(row < R, 12, {
                unrolled!(vector < V, 2, {
                    let address = call.out.add(row * call.out_stride + vector * X::LANES);
                    let before = match PART && vector + 1 == V {
                        true => X::load_part(address, part),
                        false => X::load(address),
                    };
                    sums[row][vector] = before.plus(sums[row][vector]);
                });
            });
        }
        // An epilogue takes a copy, as its own loops are not all unrolled: sums that those reach by an index would
        // be stored in every step above.
        let mut results = [[X::zero(); V]; R];
        unrolled!(row < R, 12, {
            unrolled!(vector < V, 2, {
                results[row][vector] = sums[row][vector];
            });
        });
        if let Some(epilogue) = call.epilogue {
            epilogue.finish::<X, PART, R, V>(&mut results, part);
        }
        unrolled!(row < R, 12, {
            unrolled!(vector < V, 2, {
                let address = call.out.add(row * call.out_stride + vector * X::LANES);
                match PART && vector + 1 == V {
                    true => results[row][vector].store_part(address, part),
                    false => results[row][vector].store(address),
                }
            });
        });
    }
}

/// Steps of packed rows that are written out one after the other.
const UNROLLED: usize = 4;

/// Floats from a step to what is asked for then, where nothing else is. Operands that are not packed have
/// something near there, too: asking for as many steps of theirs would fill the cache.
const NEAR: usize = 1 << 10;

/// Adds the terms of one step to the sums.
///
/// # Safety
///
/// As for [`sums`].
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn step<X: Vector, const PART: bool, const R: usize, const V: usize>(
    sums: &mut [[X; V]; R],
    a: *const f32,
    row_stride: usize,
    b: *const f32,
    part: X::Part,
) {
    // SAFETY: the caller vouches for the features and the memory.
    unsafe {
        let mut columns = [X::zero(); V];
        unrolled!(vector < V, 2, {
            let at = b.add(vector * X::LANES);
            columns[vector] =
                if PART && vector + 1 == V { X::load_part(at, part) } else { X::load(at) };
        });
        unrolled!(row < R, 12, {
            let factor = X::splat(a.add(row * row_stride));
            unrolled!(vector < V, 2, {
                sums[row][vector] = factor.times_plus(columns[vector], sums[row][vector]);
            });
        });
    }
}

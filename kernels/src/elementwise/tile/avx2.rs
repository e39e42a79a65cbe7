//! The machine that runs tile programs on AVX2.
//!
//! A tile is 64 floats. The value at hand stays in eight vector registers, which every operation
//! takes as arguments and passes on: an operation ends with a call of the next in tail position, so
//! that a program runs without loads, stores or returns between its operations. Optimised builds
//! turn those calls into jumps; since Rust does not promise it, programs are kept short enough for
//! the stack to hold if they are not.

#![expect(unsafe_code, reason = "operations pass pointers and vectors to each other")]

use super::math;
use crate::elementwise::spelling::Loop;
use std::arch::x86_64::*;

/// Floats in a tile.
pub(super) const TILE: usize = 64;

/// Memory of one tile.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Tile(pub(super) [f32; TILE]);

/// One operation of a program: what it does, and where its operands are in the frame's table.
#[derive(Clone, Copy)]
pub(super) struct Op {
    pub(super) run: Entry,
    pub(super) a: u32,
    pub(super) b: u32,
    /// For operations without an entry of their own, the loop that does the work.
    pub(super) fallback: Option<Loop>,
}

/// What the operations of a program work on. Entries of `places` point to a tile each: 64 floats,
/// or as many elements of a narrower type.
pub(super) struct Frame<'a> {
    pub(super) places: &'a mut [*mut u8],
}

/// The code of an operation.
#[expect(improper_ctypes_definitions, reason = "the convention fixes how vectors are passed")]
pub(super) type Entry = unsafe extern "sysv64" fn(
    *const Op,
    *mut Frame<'_>,
    __m256,
    __m256,
    __m256,
    __m256,
    __m256,
    __m256,
    __m256,
    __m256,
);

/// Runs a program on the tiles its frame points to.
///
/// # Safety
///
/// The processor has AVX2, FMA and F16C. `program` ends with a store. Every operand of every
/// operation is an index into `frame.places` that points to readable memory of a tile of the type
/// the operation reads; the operand of a store, and `a` of a fallback or a spill, points to
/// writable memory.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn run(program: &[Op], frame: &mut Frame<'_>) {
    let zero = _mm256_setzero_ps();
    let first = program.as_ptr();
    // SAFETY: the caller vouches for the program and its operands.
    unsafe { ((*first).run)(first, frame, zero, zero, zero, zero, zero, zero, zero, zero) }
}

/// The pointer that an operand names.
///
/// # Safety
///
/// `index` is one of the frame's places.
#[inline(always)]
unsafe fn place(frame: *mut Frame<'_>, index: u32) -> *mut u8 {
    // SAFETY: the caller vouches for the index; the frame outlives the program's run.
    unsafe { *(*frame).places.as_ptr().add(index as usize) }
}

/// Defines operations that end with a jump to the next: `unary` from the value at hand, `binary`
/// from it and the tile at operand `a`, `ternary` with the tile at operand `b` too, `load` from a
/// tile alone, `keep` writes a tile and goes on, and `store` writes a tile and ends the program.
macro_rules! operations {
    (unary $($name:ident |$x:ident| $body:expr;)*) => {
        $(operations!(@ $name |_operand, _other, lane, $x| $body, v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7);)*
    };
    (binary $($name:ident |$x:ident, $y:ident| $body:expr;)*) => {
        $(operations!(@ $name |operand, _other, lane, $x| {
            let $y = _mm256_loadu_ps(operand.cast::<f32>().add(8 * lane));
            $body
        }, v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7);)*
    };
    (ternary $($name:ident |$x:ident, $y:ident, $z:ident| $body:expr;)*) => {
        $(operations!(@ $name |operand, other, lane, $x| {
            let $y = _mm256_loadu_ps(operand.cast::<f32>().add(8 * lane));
            let $z = _mm256_loadu_ps(other.cast::<f32>().add(8 * lane));
            $body
        }, v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7);)*
    };
    (load $($name:ident |$operand:ident, $lane:ident| $body:expr;)*) => {
        $(operations!(@ $name |$operand, _other, $lane, _value| $body,
            v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7);)*
    };
    (keep $($name:ident |$operand:ident, $lane:ident, $x:ident| $body:expr;)*) => {
        $(operations!(@ $name |$operand, _other, $lane, $x| {
            $body;
            $x
        }, v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7);)*
    };
    (store $($name:ident |$operand:ident, $lane:ident, $x:ident| $body:expr;)*) => {
        $(operations!(@last $name |$operand, $lane, $x| $body,
            v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7);)*
    };
    (@last $name:ident |$a:ident, $lane:ident, $x:ident| $body:expr, $($v:ident $n:literal)*) => {
        #[expect(improper_ctypes_definitions, reason = "as in `Entry`")]
        #[target_feature(enable = "avx2,fma,f16c")]
        pub(super) unsafe extern "sysv64" fn $name(
            pc: *const Op,
            frame: *mut Frame<'_>,
            $($v: __m256),*
        ) {
            // SAFETY: the program was checked when it was made: the operand is a place that may
            // be written; see `run`.
            unsafe {
                let $a = place(frame, (*pc).a);
                $({ let ($lane, $x) = ($n, $v); $body };)*
            }
        }
    };
    (@ $name:ident |$a:ident, $b:ident, $lane:ident, $x:pat_param| $body:expr, $($v:ident $n:literal)*) => {
        #[expect(improper_ctypes_definitions, reason = "as in `Entry`")]
        #[target_feature(enable = "avx2,fma,f16c")]
        pub(super) unsafe extern "sysv64" fn $name(
            pc: *const Op,
            frame: *mut Frame<'_>,
            $($v: __m256),*
        ) {
            // SAFETY: the program was checked when it was made: operands are places, and since it
            // ends with a store there is a next operation; see `run`.
            unsafe {
                let ($a, $b) = (place(frame, (*pc).a), place(frame, (*pc).b));
                $(
                    let $v = {
                        let ($lane, $x) = ($n, $v);
                        // Most operations do the same in every lane.
                        let _ = $lane;
                        $body
                    };
                )*
                let next = pc.add(1);
                ((*next).run)(next, frame, $($v),*)
            }
        }
    };
}

operations! { load
    load_f32 |tile, lane| _mm256_loadu_ps(tile.cast::<f32>().add(8 * lane));
    load_f16 |tile, lane| _mm256_cvtph_ps(_mm_loadu_si128(tile.cast::<__m128i>().add(lane)));
    load_bf16 |tile, lane| {
        let narrow = _mm_loadu_si128(tile.cast::<__m128i>().add(lane));
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(narrow)))
    };
    load_bool |tile, lane| {
        let narrow = _mm_loadl_epi64(tile.add(8 * lane).cast::<__m128i>());
        let wide = _mm256_cvtepi8_epi32(narrow);
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()))
    };
    load_i32 |tile, lane| _mm256_cvtepi32_ps(_mm256_loadu_si256(tile.cast::<__m256i>().add(lane)));
}

operations! { unary
    neg |x| math::neg(x);
    abs |x| math::abs(x);
    sign |x| math::sign(x);
    flush |x| math::flush(x);
    exp |x| math::exp(x);
    expm1 |x| math::expm1(x);
    log |x| math::log(x);
    log1p |x| math::log1p(x);
    tanh |x| math::tanh(x);
    erf |x| math::erf(x);
    sin |x| math::sin_any(x);
    cos |x| math::cos_any(x);
    sqrt |x| _mm256_sqrt_ps(x);
    rsqrt |x| _mm256_div_ps(math::splat(1.0), _mm256_sqrt_ps(x));
    floor |x| _mm256_floor_ps(x);
    ceil |x| _mm256_ceil_ps(x);
    trunc |x| _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
    rint |x| math::rint(x);
    is_nan |x| _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
    is_inf |x| _mm256_cmp_ps::<_CMP_EQ_OQ>(math::abs(x), math::splat(f32::INFINITY));
    is_finite |x| _mm256_cmp_ps::<_CMP_LT_OQ>(math::abs(x), math::splat(f32::INFINITY));
    not |x| _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
    mask_to_f32 |x| _mm256_and_ps(x, math::splat(1.0));
    f32_to_mask |x| _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, _mm256_setzero_ps());
}

operations! { binary
    add |x, y| _mm256_add_ps(x, y);
    sub |x, y| _mm256_sub_ps(x, y);
    sub_from |x, y| _mm256_sub_ps(y, x);
    mul |x, y| _mm256_mul_ps(x, y);
    div |x, y| _mm256_div_ps(x, y);
    div_into |x, y| _mm256_div_ps(y, x);
    max |x, y| math::larger(x, y);
    min |x, y| math::smaller(x, y);
    eq |x, y| _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y);
    ne |x, y| _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, y);
    lt |x, y| _mm256_cmp_ps::<_CMP_LT_OQ>(x, y);
    le |x, y| _mm256_cmp_ps::<_CMP_LE_OQ>(x, y);
    gt |x, y| _mm256_cmp_ps::<_CMP_GT_OQ>(x, y);
    ge |x, y| _mm256_cmp_ps::<_CMP_GE_OQ>(x, y);
    and |x, y| _mm256_and_ps(x, y);
    or |x, y| _mm256_or_ps(x, y);
    xor |x, y| _mm256_xor_ps(x, y);
}

operations! { ternary
    select_by |condition, then, otherwise| _mm256_blendv_ps(otherwise, then, condition);
    select_then |then, condition, otherwise| _mm256_blendv_ps(otherwise, then, condition);
    select_else |otherwise, condition, then| _mm256_blendv_ps(otherwise, then, condition);
}

operations! { keep
    spill |tile, lane, x| _mm256_storeu_ps(tile.cast::<f32>().add(8 * lane), x);
}

operations! { store
    store_f32 |tile, lane, x| _mm256_storeu_ps(tile.cast::<f32>().add(8 * lane), x);
    store_f16 |tile, lane, x| {
        let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
        _mm_storeu_si128(tile.cast::<__m128i>().add(lane), narrow);
    };
    store_bf16 |tile, lane, x| {
        _mm_storeu_si128(tile.cast::<__m128i>().add(lane), math::to_bf16(x));
    };
    store_bool |tile, lane, x| {
        _mm_storel_epi64(tile.add(8 * lane).cast::<__m128i>(), math::to_bytes(x));
    };
}

/// Operations without vector code: the loop of the portable engine works on the tile in memory.
/// `a` names the other operand; where there is none, any tile of floats.
///
/// # Safety
///
/// As for the other operations; see [`run`].
#[expect(improper_ctypes_definitions, reason = "as in `Entry`")]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe extern "sysv64" fn fallback(
    pc: *const Op,
    frame: *mut Frame<'_>,
    v0: __m256,
    v1: __m256,
    v2: __m256,
    v3: __m256,
    v4: __m256,
    v5: __m256,
    v6: __m256,
    v7: __m256,
) {
    let own: [f32; TILE] = bytemuck::cast([v0, v1, v2, v3, v4, v5, v6, v7]);
    let mut out = [0f32; TILE];
    // SAFETY: operand `a` is a place of a tile of floats; see `run`.
    let (operation, other) = unsafe { (*pc, &*place(frame, (*pc).a).cast::<[f32; TILE]>()) };
    let (own, other): (&[u8], &[u8]) = (bytemuck::bytes_of(&own), bytemuck::bytes_of(other));
    if let Some(run) = operation.fallback {
        run(bytemuck::bytes_of_mut(&mut out), own, other, &[]);
    }
    let [v0, v1, v2, v3, v4, v5, v6, v7]: [__m256; 8] = bytemuck::cast(out);
    // SAFETY: a program ends with a store, so there is a next operation.
    unsafe {
        let next = pc.add(1);
        ((*next).run)(next, frame, v0, v1, v2, v3, v4, v5, v6, v7)
    }
}

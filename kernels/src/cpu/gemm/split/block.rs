//! Blocks of 32 by 32 sums of a matmul of split operands.

#![expect(unsafe_code, reason = "instructions that the language has no names for")]

use super::{
    super::{
        amx::Configured,
        dots::{DotCols, DotRows},
        rect::Rect,
    },
    Panel,
    unit::{LINES, PART, Parts, SumRegisters},
};
use std::{arch::asm, mem::offset_of};

/// Rows and columns of a block of sums, four tiles.
pub(in crate::cpu) const BLOCK: usize = 2 * LINES;

/// Bytes of a row of a tile.
const ROW: usize = 64;

/// Bytes of a 32-bit group.
const GROUP: usize = size_of::<u32>();

/// Rows of a split left operand in memory: two tiles for each step, and each of them in all parts.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct SplitRows<'a> {
    pub(in crate::cpu) parts: Parts,
    /// Groups of two `bfloat16`.
    pub(in crate::cpu) data: &'a [u32],
    /// Where the first row of the first tile is in each step, in bytes.
    pub(in crate::cpu) steps: &'a [usize],
    /// Bytes from a row to the next.
    pub(in crate::cpu) row: usize,
    /// Bytes from a part to the next.
    pub(in crate::cpu) part: usize,
    /// Bytes from the first tile to the second.
    pub(in crate::cpu) tile: usize,
}

impl<'a> SplitRows<'a> {
    /// A packed block, of which these are the steps.
    pub(super) fn packed(parts: Parts, data: &'a [u32], steps: &'a [usize]) -> SplitRows<'a> {
        SplitRows { parts, data, steps, row: ROW, part: GROUP * PART, tile: ROW * LINES }
    }
}

/// Adds matmuls of parts to the four tile registers that hold sums: `$step` for each step, which begins with the first
/// part of the first tile of the left operand in `at`. `$rows` and `$cols` are [`all`] where there are two tiles
/// of rows or columns, and [`none`] where there is one.
macro_rules! sums {
    ($rows:ident, $cols:ident, $call:expr, $($step:expr,)*) => {
        asm!(
            "mov {stride}, [{call} + {OUT_ROW}]",
            "mov {at}, [{call} + {OUT}]",
            "test {add:e}, {add:e}",
            "jnz 3f",
            "tilezero tmm0",
            $cols!("tilezero tmm1"),
            $rows!("tilezero tmm2"),
            $rows!($cols!("tilezero tmm3")),
            "jmp 4f",
            "3:",
            "tileloadd tmm0, [{at} + {stride}*1]",
            $cols!("tileloadd tmm1, [{at} + {stride}*1 + 64]"),
            $rows!("mov {at}, [{call} + {LOW}]"),
            $rows!("tileloadd tmm2, [{at} + {stride}*1]"),
            $rows!($cols!("tileloadd tmm3, [{at} + {stride}*1 + 64]")),
            "4:",
            // `add` has been read: from here on it is the row of a panel.
            "mov {add:e}, 64",
            "2:",
            "mov {at}, [{steps}]",
            "add {steps}, 8",
            "add {at}, {a}",
            $($step,)*
            "cmp {steps}, [{call} + {END}]",
            "jne 2b",
            "mov {stride}, [{call} + {OUT_ROW}]",
            "mov {at}, [{call} + {OUT}]",
            "tilestored [{at} + {stride}*1], tmm0",
            $cols!("tilestored [{at} + {stride}*1 + 64], tmm1"),
            $rows!("mov {at}, [{call} + {LOW}]"),
            $rows!("tilestored [{at} + {stride}*1], tmm2"),
            $rows!($cols!("tilestored [{at} + {stride}*1 + 64], tmm3")),
            "/* {tile}, {LOW}: for two tiles of rows alone, {part}: for three parts */",
            call = in(reg) &raw const $call,
            a = in(reg) $call.a,
            b = inout(reg) $call.b => _,
            steps = inout(reg) $call.steps => _,
            row = in(reg) $call.row,
            part = in(reg) $call.part,
            tile = in(reg) $call.tile,
            ahead = inout(reg) $call.ahead => _,
            add = inout(reg) usize::from($call.add) => _,
            at = out(reg) _,
            stride = out(reg) _,
            OUT = const offset_of!(Call, out),
            LOW = const offset_of!(Call, low),
            OUT_ROW = const offset_of!(Call, out_row),
            END = const offset_of!(Call, end),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

/// Adds six matmuls of three parts, those that are small first. Meanwhile it asks for memory, a quarter of a step of the
/// right operand in each step.
macro_rules! sums_of_three {
    ($rows:ident, $cols:ident, $call:expr) => {
        sums!(
            $rows,
            $cols,
            $call,
            "lea {at}, [{at} + 2*{part}]",
            "tileloadd tmm4, [{at} + {row}*1]",
            "tileloadd tmm6, [{b} + {add}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 0]",
            $cols!("tileloadd tmm7, [{b} + {add}*1 + 1024]"),
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 64]",
            $rows!("add {at}, {tile}"),
            $rows!("tileloadd tmm5, [{at} + {row}*1]"),
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 128]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 192]",
            $rows!("sub {at}, {tile}"),
            "sub {at}, {part}",
            "tileloadd tmm4, [{at} + {row}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 256]",
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 320]",
            $rows!("add {at}, {tile}"),
            $rows!("tileloadd tmm5, [{at} + {row}*1]"),
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 384]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 448]",
            $rows!("sub {at}, {tile}"),
            "tileloadd tmm6, [{b} + {add}*1 + 2048]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 512]",
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 576]",
            $cols!("tileloadd tmm7, [{b} + {add}*1 + 3072]"),
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 640]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 704]",
            "sub {at}, {part}",
            "tileloadd tmm4, [{at} + {row}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 768]",
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 832]",
            $rows!("add {at}, {tile}"),
            $rows!("tileloadd tmm5, [{at} + {row}*1]"),
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 896]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 960]",
            "tileloadd tmm6, [{b} + {add}*1 + 4096]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 1024]",
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 1088]",
            $cols!("tileloadd tmm7, [{b} + {add}*1 + 5120]"),
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 1152]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 1216]",
            "tileloadd tmm6, [{b} + {add}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 1280]",
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 1344]",
            $cols!("tileloadd tmm7, [{b} + {add}*1 + 1024]"),
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 1408]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 1472]",
            "add {b}, 6144",
            "add {ahead}, 1536",
        )
    };
}

/// As [`sums_of_three`], one matmul of the only part.
macro_rules! sums_of_one {
    ($rows:ident, $cols:ident, $call:expr) => {
        sums!(
            $rows,
            $cols,
            $call,
            "tileloadd tmm4, [{at} + {row}*1]",
            "tileloadd tmm6, [{b} + {add}*1]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "prefetcht1 [{ahead} + 0]",
            $cols!("tileloadd tmm7, [{b} + {add}*1 + 1024]"),
            $cols!("tdpbf16ps tmm1, tmm4, tmm7"),
            "prefetcht1 [{ahead} + 64]",
            "prefetcht1 [{ahead} + 128]",
            "prefetcht1 [{ahead} + 192]",
            $rows!("add {at}, {tile}"),
            $rows!("tileloadd tmm5, [{at} + {row}*1]"),
            $rows!("tdpbf16ps tmm2, tmm5, tmm6"),
            "prefetcht1 [{ahead} + 256]",
            "prefetcht1 [{ahead} + 320]",
            $rows!($cols!("tdpbf16ps tmm3, tmm5, tmm7")),
            "prefetcht1 [{ahead} + 384]",
            "prefetcht1 [{ahead} + 448]",
            "add {b}, 2048",
            "add {ahead}, 512",
        )
    };
}

macro_rules! all {
    ($line:expr) => {
        $line
    };
}

macro_rules! none {
    ($line:expr) => {
        ""
    };
}

/// Operands of a block.
#[repr(C)]
struct Call {
    a: *const u32,
    b: *const u32,
    steps: *const usize,
    end: *const usize,
    row: usize,
    part: usize,
    tile: usize,
    out: *mut f32,
    /// The first row of the lower tiles.
    low: *mut f32,
    /// Bytes from a row to the next.
    out_row: usize,
    add: bool,
    /// The memory that is asked for. It may be anywhere.
    ahead: *const u32,
}

/// Sums of a block, row by row.
pub(in crate::cpu) type Sums = [f32; BLOCK * BLOCK];

/// Multiplies a block of rows by a packed block of columns, and puts the sums into `out`, or adds them to what
/// is there. Where `out` ends inside a tile, the rows and columns of the operands go on, with any numbers, and
/// sums are made aside.
///
/// # Panics
///
/// When an operand is too short, or `out` larger than a block or empty.
pub(super) fn multiply(
    registers: &SumRegisters,
    a: SplitRows<'_>,
    b: Panel<'_>,
    mut out: Rect<'_>,
    add: bool,
    aside: &mut Sums,
) {
    let (rows, cols) = (out.rows(), out.cols());
    assert!((1..=BLOCK).contains(&rows) && (1..=BLOCK).contains(&cols), "a block");
    let (tall, wide) = (registers.rows(rows), cols.next_multiple_of(LINES));
    if (tall, wide) == (rows, cols) {
        return run(registers, a, b, out, add);
    }
    // The sums go on from what is there, as those of whole tiles do.
    for row in 0..if add { rows } else { 0 } {
        aside[row * BLOCK..][..cols].copy_from_slice(out.row(row));
    }
    run(registers, a, b, Rect::new(aside, tall, wide, BLOCK), add);
    put(&aside[..], BLOCK, &mut out, false);
}

/// Multiplies a block of so many rows by so many packed columns. The sums of whole tiles are written.
///
/// # Panics
///
/// When an operand is too short, or there are more rows or columns than a block has, or none.
pub(in crate::cpu) fn sum(
    registers: &SumRegisters,
    a: SplitRows<'_>,
    b: Panel<'_>,
    (rows, cols): (usize, usize),
    sums: &mut Sums,
) {
    assert!((1..=BLOCK).contains(&rows) && (1..=BLOCK).contains(&cols), "a block");
    let (tall, wide) = (registers.rows(rows), cols.next_multiple_of(LINES));
    run(registers, a, b, Rect::new(sums, tall, wide, BLOCK), false);
}

/// Puts rows of sums, so far apart, into `out`, or adds them to what is there.
pub(super) fn put(sums: &[f32], stride: usize, out: &mut Rect<'_>, add: bool) {
    for (row, sums) in (0..out.rows()).zip(sums.chunks(stride)) {
        for (x, sum) in out.row(row).iter_mut().zip(sums) {
            *x = if add { *x + sum } else { *sum };
        }
    }
}

/// As [`multiply`], for whole tiles.
fn run(registers: &SumRegisters, a: SplitRows<'_>, b: Panel<'_>, out: Rect<'_>, add: bool) {
    match registers {
        SumRegisters::Tiles(registers) => in_tiles(registers, a, b, out, add),
        SumRegisters::Dots(unit) => {
            assert!(a.parts == Parts::One, "numbers of one part");
            let rows = DotRows { data: a.data, steps: a.steps, row: a.row, tile: a.tile };
            unit.multiply(rows, DotCols { data: b.groups, ahead: b.ahead }, out, add);
        }
    }
}

/// As [`run`], in tile registers.
fn in_tiles(_: &Configured, a: SplitRows<'_>, b: Panel<'_>, out: Rect<'_>, add: bool) {
    let two = [out.rows() == BLOCK, out.cols() == BLOCK];
    let second = if two[0] { a.tile } else { 0 };
    let step = a.parts.step();
    let beyond = second + (a.parts.count() - 1) * a.part + (LINES - 1) * a.row + ROW;
    let last = a.steps.iter().copied().max().unwrap_or_default();
    assert!(!a.steps.is_empty() && last + beyond <= a.data.len() * GROUP, "the left operand");
    assert!(b.groups.len() >= a.steps.len() * step && PART * GROUP == 2048, "the right one");
    let ends = a.steps.as_ptr_range();
    let (data, stride) = (out.as_ptr(), out.row_stride());
    let call = Call {
        a: a.data.as_ptr(),
        b: b.groups.as_ptr(),
        steps: ends.start,
        end: ends.end,
        row: a.row,
        part: a.part,
        tile: a.tile,
        out: data,
        low: data.wrapping_add(LINES * stride),
        out_row: size_of::<f32>() * stride,
        add,
        ahead: b.ahead,
    };
    // SAFETY: the registers are configured as 16 rows of 64 bytes on this thread, as there is a `Configured`.
    // Every step reads two tiles at most of each part of the left operand, of which the last byte is
    // inside (see the first assertion), and a kilobyte of groups of each part of the right one for each of its tiles
    // (see the second). What is written, and read before where it is added to, are the rows of `out`, an exclusive
    // borrow: sixteen or thirty-two of as many columns.
    unsafe {
        match (a.parts, two) {
            (Parts::Three, [true, true]) => sums_of_three!(all, all, call),
            (Parts::Three, [true, false]) => sums_of_three!(all, none, call),
            (Parts::Three, [false, true]) => sums_of_three!(none, all, call),
            (Parts::Three, [false, false]) => sums_of_three!(none, none, call),
            (Parts::One, [true, true]) => sums_of_one!(all, all, call),
            (Parts::One, [true, false]) => sums_of_one!(all, none, call),
            (Parts::One, [false, true]) => sums_of_one!(none, all, call),
            (Parts::One, [false, false]) => sums_of_one!(none, none, call),
        }
    }
}

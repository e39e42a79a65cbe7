//! The machines that run tile programs: one for each vector.
//!
//! A tile is what eight vector registers hold. The value at hand stays in them, and every operation
//! takes them as arguments and passes them on: an operation ends with a call of the next in tail
//! position, so that a program runs without loads, stores or returns between its operations.
//! Optimised builds turn those calls into jumps; since Rust does not promise it, programs are kept
//! short enough for the stack to hold if they are not. The programs of a list ([`whole_programs`]) run
//! as one loop each, made of the same bodies.

#![expect(unsafe_code, reason = "operations pass pointers and vectors to each other")]

#[cfg(not(target_arch = "x86_64"))]
use super::lanes::Quad;
#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2, Avx512};
use super::{
    lanes::Lanes,
    math,
    operations::{operations, whole_programs},
    pointers::{MovingSlot, TurningSlot},
};
use crate::elementwise::loops::BlockLoop;

/// Memory of one tile of `N` floats.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Tile<const N: usize>(pub(super) [f32; N]);

/// An operation of a program on vectors `V`: its code, and where its operands are in the frame's
/// table.
pub(super) struct TileOp<V> {
    run: Entry<V>,
    a: u32,
    b: u32,
    /// For operations without an entry of their own, the loop that does the work.
    fallback: Option<BlockLoop>,
}

/// Action of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum TileStep {
    /// Action of a machine, on the tiles at these indices.
    Own(Code, u32, u32),
    /// A loop over a tile and that at this slot.
    Loop(BlockLoop, u32),
}

/// Memory that the operations of a program work on. Its entries point to a tile each: as
/// many floats as it has, or as many elements of a narrower type.
pub(super) struct TileFrame<'a> {
    pub(super) places: &'a mut [*mut u8],
    /// Those that move on from tile to tile.
    pub(super) moving: &'a [MovingSlot],
    /// Those of them that begin again.
    pub(super) turning: &'a [TurningSlot],
}

impl TileFrame<'_> {
    /// Moves on to the next tile.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        for moving in self.moving {
            moving.advance(self.places);
        }
        for turning in self.turning {
            turning.advance(self.places);
        }
    }
}

/// The code of an operation.
#[cfg(target_arch = "x86_64")]
type Entry<V> =
    unsafe extern "sysv64" fn(*const TileOp<V>, *mut TileFrame<'_>, V, V, V, V, V, V, V, V);
#[cfg(not(target_arch = "x86_64"))]
type Entry<V> = unsafe extern "C" fn(*const TileOp<V>, *mut TileFrame<'_>, V, V, V, V, V, V, V, V);

/// A processor's way to run programs, with tiles of `N` floats.
pub(super) trait TileMachine<const N: usize>: Lanes + Send + Sync + 'static {
    /// The operation that takes a step.
    fn op(step: TileStep) -> TileOp<Self>;

    /// The loop that does the same as a program with these codes, if there is one.
    fn whole(codes: &[Code]) -> Option<WholeLoop<Self>>;

    /// Runs a program on the tiles its frame points to, `n` times: entries that move on, do so
    /// after each time.
    ///
    /// # Safety
    ///
    /// The processor has the vector's instructions. `program` ends with a store. Every operand of
    /// every operation is an index into `frame.places` that points, each time, to readable memory of
    /// a tile of the type the operation reads; the operand of a store, and `a` of a spill, points to
    /// writable memory.
    unsafe fn run(program: &TileProgram<Self>, frame: &mut TileFrame<'_>, n: usize);
}

/// The operations of a program.
pub(super) struct TileProgram<V> {
    ops: Vec<TileOp<V>>,
    /// The loop that does all of them, if there is one.
    pub(super) whole: Option<WholeLoop<V>>,
}

/// A loop over `n` tiles that does all operations.
type WholeLoop<V> = unsafe fn(&[TileOp<V>], &mut TileFrame<'_>, usize);

impl<V> TileProgram<V> {
    /// The program of steps of a machine.
    pub(super) fn new<const N: usize>(steps: &[TileStep]) -> TileProgram<V>
    where
        V: TileMachine<N>,
    {
        let code = |step: &TileStep| match step {
            TileStep::Own(code, ..) => Some(*code),
            TileStep::Loop(..) => None,
        };
        let codes: Option<Vec<Code>> = steps.iter().map(code).collect();
        let whole = codes.and_then(|codes| V::whole(&codes));
        TileProgram { ops: steps.iter().copied().map(V::op).collect(), whole }
    }

    /// Whether there is no operation.
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The pointer that an operand names.
///
/// # Safety
///
/// `index` is one of the frame's places.
#[inline(always)]
unsafe fn slot_pointer(frame: *mut TileFrame<'_>, index: u32) -> *mut u8 {
    // SAFETY: the caller vouches for the index; the frame outlives the program's run.
    unsafe { *(*frame).places.as_ptr().add(index as usize) }
}

macro_rules! codes {
    ($($kind:ident { $($code:ident $name:ident $($width:literal)? |$($x:ident),*| $body:expr;)* })*) => {
        /// An operation that machines have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Code {
            /// Writes the value at hand to the tile at operand `a`, and goes on.
            Spill,
            $($($code,)*)*
        }
    };
}

operations! { codes!() }

/// Defines the machine of a vector.
macro_rules! machine {
    (
        $machine:ident $abi:literal $vector:ident $tile:literal $features:tt
        load { $($load:ident $load_name:ident $load_width:literal |$from:ident| $loaded:expr;)* }
        unary { $($unary:ident $unary_name:ident |$x1:ident| $f1:expr;)* }
        binary { $($binary:ident $binary_name:ident |$x2:ident, $y2:ident| $f2:expr;)* }
        ternary { $($ternary:ident $ternary_name:ident |$x3:ident, $y3:ident, $z3:ident| $f3:expr;)* }
        store { $($store:ident $store_name:ident $width:literal |$to:ident, $value:ident| $stored:expr;)* }
    ) => {
        mod $machine {
            use super::*;

            type V = $vector;

            const TILE: usize = $tile;

            /// The memory of a register's floats in a tile.
            #[inline(always)]
            fn lanes(tile: *mut u8, register: usize, width: usize) -> *mut u8 {
                tile.wrapping_add(register * V::LEN * width)
            }

            /// Action of each operation on a register: from the tiles of both operands, the number of the
            /// register and its value.
            #[expect(non_snake_case, reason = "they have the names of the codes")]
            mod bodies {
                use super::*;

                $(body! { $load |a, _b, register, _x| {
                    let $from = lanes(a, register, $load_width).cast_const();
                    $loaded
                } })*
                $(body! { $unary |_a, _b, _register, $x1| $f1 })*
                $(body! { $binary |a, _b, register, $x2| {
                    let $y2 = V::load(lanes(a, register, 4));
                    $f2
                } })*
                $(body! { $ternary |a, b, register, $x3| {
                    let ($y3, $z3) = (V::load(lanes(a, register, 4)), V::load(lanes(b, register, 4)));
                    $f3
                } })*
                body! { Spill |a, _b, register, x| {
                    x.store(lanes(a, register, 4));
                    x
                } }
                $(body! { $store |a, _b, register, $value| {
                    let $to = lanes(a, register, $width);
                    $stored;
                    $value
                } })*
            }

            $(operation! { V $abi $features $load_name $load })*
            $(operation! { V $abi $features $unary_name $unary })*
            $(operation! { V $abi $features $binary_name $binary })*
            $(operation! { V $abi $features $ternary_name $ternary })*
            operation! { V $abi $features spill Spill }
            $(last! { V $abi $features $store_name $store })*
            fallback! { V $abi $features TILE }

            impl TileMachine<TILE> for V {
                fn op(step: TileStep) -> TileOp<V> {
                    let (code, a, b) = match step {
                        TileStep::Own(code, a, b) => (code, a, b),
                        TileStep::Loop(run, a) => {
                            return TileOp { run: fallback, a, b: 0, fallback: Some(run) };
                        }
                    };
                    let run: Entry<V> = match code {
                        Code::Spill => spill,
                        $(Code::$load => $load_name,)*
                        $(Code::$unary => $unary_name,)*
                        $(Code::$binary => $binary_name,)*
                        $(Code::$ternary => $ternary_name,)*
                        $(Code::$store => $store_name,)*
                    };
                    TileOp { run, a, b, fallback: None }
                }

                fn whole(codes: &[Code]) -> Option<WholeLoop<V>> {
                    whole_programs! { choose!(V $features codes) }
                    None
                }

                unsafe fn run(program: &TileProgram<V>, frame: &mut TileFrame<'_>, n: usize) {
                    with_features! { $features
                        unsafe fn start(first: &TileOp<V>, frame: &mut TileFrame<'_>, n: usize) {
                            // SAFETY: the caller vouches for the processor, the program and its
                            // operands. What is at hand first is not used.
                            unsafe {
                                let none = [0f32; V::LEN];
                                for _ in 0..n {
                                    let x = V::load(none.as_ptr().cast());
                                    (first.run)(first, frame, x, x, x, x, x, x, x, x);
                                    frame.advance();
                                }
                            }
                        }
                    }
                    // SAFETY: the caller vouches for the processor, the program and its operands.
                    unsafe {
                        match program.whole {
                            Some(run) => run(&program.ops, frame, n),
                            None => start(&program.ops[0], frame, n),
                        }
                    }
                }
            }
        }
    };
}

/// A function that is compiled for processors with these features.
macro_rules! with_features {
    ([$($features:meta)?] $function:item) => { $(#[$features])? $function };
}

/// Defines the function of an operation, from the operation, the frame and the registers.
macro_rules! entry {
    ($vector:ident $abi:literal [$($features:meta)?] $name:ident
        |$pc:ident, $frame:ident, $($v:ident)*| $body:block) => {
        #[allow(improper_ctypes_definitions, reason = "the convention fixes how vectors are passed")]
        $(#[$features])?
        unsafe extern $abi fn $name(
            $pc: *const TileOp<$vector>,
            $frame: *mut TileFrame<'_>,
            $($v: $vector),*
        ) $body
    };
}

/// Defines what an operation does to a register.
macro_rules! body {
    ($name:ident
        |$a:pat_param, $b:pat_param, $register:pat_param, $x:pat_param| $body:expr) => {
        #[allow(unused_unsafe, reason = "not all bodies need it")]
        #[inline(always)]
        pub(super) unsafe fn $name($a: *mut u8, $b: *mut u8, $register: usize, $x: V) -> V {
            // SAFETY: the caller vouches for the tiles.
            unsafe { $body }
        }
    };
}

/// Defines an operation that ends with a jump to the next.
macro_rules! operation {
    ($vector:ident $abi:literal $features:tt $name:ident $body:ident) => {
        operation! { @ $vector $abi $features $name $body,
            v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7 }
    };
    (@ $vector:ident $abi:literal $features:tt $name:ident $body:ident, $($v:ident $n:literal)*) => {
        entry! { $vector $abi $features $name |pc, frame, $($v)*| {
            // SAFETY: the program was checked when it was made: operands are places, and since it
            // ends with a store there is a next operation; see `TileMachine::run`.
            unsafe {
                #[cfg(not(debug_assertions))]
                use bodies::$body as apply;
                #[cfg(debug_assertions)]
                with_features! { $features
                    /// In builds that are not optimised, operations stay on the stack: not so what
                    /// they compute in, which takes up to 25 KB for a register.
                    ///
                    /// # Safety
                    ///
                    /// As for the operation.
                    #[inline(never)]
                    unsafe fn apply(a: *mut u8, b: *mut u8, register: usize, x: $vector) -> $vector {
                        // SAFETY: as for the operation.
                        unsafe { bodies::$body(a, b, register, x) }
                    }
                }
                // Once for all registers, which stores would not allow.
                let (a, b) = (slot_pointer(frame, (*pc).a), slot_pointer(frame, (*pc).b));
                $(let $v = apply(a, b, $n, $v);)*
                let next = pc.add(1);
                ((*next).run)(next, frame, $($v),*)
            }
        } }
    };
}

/// Defines an operation that ends the program.
macro_rules! last {
    ($vector:ident $abi:literal $features:tt $name:ident $body:ident) => {
        last! { @ $vector $abi $features $name $body, v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7 }
    };
    (@ $vector:ident $abi:literal $features:tt $name:ident $body:ident, $($v:ident $n:literal)*) => {
        entry! { $vector $abi $features $name |pc, frame, $($v)*| {
            // SAFETY: the program was checked when it was made: the operand is a place that may be
            // written; see `TileMachine::run`.
            unsafe {
                let (a, b) = (slot_pointer(frame, (*pc).a), slot_pointer(frame, (*pc).b));
                $(bodies::$body(a, b, $n, $v);)*
            }
        } }
    };
}

/// Returns the loop of the program that has these codes, if it is one of the list.
macro_rules! choose {
    ($vector:ident $features:tt $codes:ident $([$($code:ident)*])*) => {$(
        if matches!($codes, [$(Code::$code),*]) {
            with_features! { $features
                /// Computes a register after the other, with the operands of all operations at hand.
                unsafe fn run(ops: &[TileOp<$vector>], frame: &mut TileFrame<'_>, n: usize) {
                    const REGISTERS: usize = TILE / $vector::LEN;
                    const LEN: usize = [$(Code::$code),*].len();
                    // SAFETY: as for an operation alone, of which these are several. Each register's results
                    // go where nothing but the same register of inputs in place was.
                    unsafe {
                        let none = [0f32; $vector::LEN];
                        let none = $vector::load(none.as_ptr().cast());
                        let Some(ops) = ops.first_chunk::<LEN>() else { return };
                        for _ in 0..n {
                            let mut at = [(frame.places[0], frame.places[0]); LEN];
                            for index in 0..LEN {
                                let (a, b) = (ops[index].a, ops[index].b);
                                at[index] = (slot_pointer(frame, a), slot_pointer(frame, b));
                            }
                            for register in 0..REGISTERS {
                                let (mut x, mut index) = (none, 0);
                                $({
                                    x = bodies::$code(at[index].0, at[index].1, register, x);
                                    index += 1;
                                })*
                                let _ = (x, index);
                            }
                            frame.advance();
                        }
                    }
                }
            }
            return Some(run);
        }
    )*};
}

/// Defines the operation without vector code: the loop of the portable engine works on the tile in
/// memory. `a` names the other operand; where there is none, any tile of floats.
macro_rules! fallback {
    ($vector:ident $abi:literal $features:tt $tile:ident) => {
        fallback! { @ $vector $abi $features $tile, v0 0 v1 1 v2 2 v3 3 v4 4 v5 5 v6 6 v7 7 }
    };
    (@ $vector:ident $abi:literal $features:tt $tile:ident, $($v:ident $n:literal)*) => {
        entry! { $vector $abi $features fallback |pc, frame, $($v)*| {
            let mut own = [0f32; $tile];
            let mut out = [0f32; $tile];
            // SAFETY: operand `a` is a place of a tile of floats, and a program ends with a store,
            // so that there is a next operation; see `TileMachine::run`. The arrays are tiles.
            unsafe {
                $($v.store(lanes(own.as_mut_ptr().cast(), $n, 4));)*
                let other = &*slot_pointer(frame, (*pc).a).cast::<[f32; $tile]>();
                if let Some(run) = (*pc).fallback {
                    let (own, other) = (bytemuck::bytes_of(&own), bytemuck::bytes_of(other));
                    run(bytemuck::bytes_of_mut(&mut out), own, other, &[]);
                }
                $(let $v = $vector::load(lanes(out.as_mut_ptr().cast(), $n, 4));)*
                let next = pc.add(1);
                ((*next).run)(next, frame, $($v),*)
            }
        } }
    };
}

#[cfg(target_arch = "x86_64")]
operations! { machine!(avx2 "sysv64" Avx2 64 [target_feature(enable = "avx2,fma,f16c")]) }
#[cfg(target_arch = "x86_64")]
operations! {
    machine!(
        avx512 "sysv64" Avx512 128
        [target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    )
}
#[cfg(not(target_arch = "x86_64"))]
operations! { machine!(quad "C" Quad 32 []) }

//! Weights in the order in which tiles read them, kept from call to call.
//!
//! A right operand that is the same tensor in two calls of a kernel, one after the other, counts as
//! weights: it is packed then, and the calls that follow read the packed form, as long as the
//! tensor is not changed. Kernels of other shapes share it. Training changes weights at each step:
//! kernels that find others again and again look ever more rarely.

use super::{
    GemmSizes, Matrix,
    pack::pack_columns,
    packed::depth,
    split::{self, BLOCK, Magnitudes, SplitUnit},
    vector::InstructionSet,
};
use crate::{Precision, threads::Threads};
use ferroflow_ir::{HostTensor, TensorIdentity, memory::HostMemory};
use parking_lot::Mutex;
use std::{
    ops::Range,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The most bytes of packed weights in a process.
const MOST_BYTES: usize = 1 << 30;

/// Packing counts for little where so many rows use it.
const MOST_ROWS: usize = 1 << 12;

/// Matrices of fewer elements are as fast without.
const LEAST_ELEMENTS: usize = 1 << 12;

/// The most calls without a look, as a power of two.
const RAREST_LOOK: u32 = 8;

/// Bytes of packed weights in this process.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Packed matrices that kernels may share.
static SHARED: Mutex<Vec<Weak<PackedMatrix>>> = Mutex::new(Vec::new());

/// Layout of a packed matrix `[steps, cols]`: blocks of steps one after the other, and in each
/// block panels as wide as a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct PackedLayout {
    machine: InstructionSet,
    steps: usize,
    cols: usize,
    /// Where the elements are before.
    row_stride: usize,
    col_stride: usize,
    /// Steps of a block.
    depth: usize,
    /// Contiguous steps that tile registers take, where numbers are split into parts.
    run: Option<(SplitUnit, usize)>,
}

impl PackedLayout {
    /// The layout of the right operand of a matmul.
    pub(in crate::cpu) fn of_matmul(
        machine: InstructionSet,
        (sizes, precision): (GemmSizes, Precision),
        b: Matrix<'_, f32>,
    ) -> PackedLayout {
        let Matrix { row_stride, col_stride, .. } = b;
        let GemmSizes { k, n, .. } = sizes;
        let run = split::packing_unit(sizes, precision).map(|unit| (unit, k));
        // In parts, a panel has all steps, whatever the rows: kernels for other numbers of them share it.
        let depth = if run.is_some() { k } else { depth(sizes) };
        PackedLayout { machine, steps: k, cols: n, row_stride, col_stride, depth, run }
    }

    /// The layout of contiguous rows in one block.
    pub(in crate::cpu) fn whole(
        machine: InstructionSet,
        steps: usize,
        cols: usize,
    ) -> PackedLayout {
        let (row_stride, col_stride) = (cols, 1);
        PackedLayout { machine, steps, cols, row_stride, col_stride, depth: steps, run: None }
    }

    /// As [`whole`](PackedLayout::whole), for tile registers that take runs of so many steps.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::cpu) fn split(
        (unit, machine): (SplitUnit, InstructionSet),
        steps: usize,
        cols: usize,
        run: usize,
    ) -> PackedLayout {
        PackedLayout { run: Some((unit, run)), ..PackedLayout::whole(machine, steps, cols) }
    }

    fn padded(&self) -> usize {
        self.cols.next_multiple_of(self.machine.cols())
    }

    /// The 32-bit words of a panel of these runs of steps.
    fn panel_len(&self, (unit, run): (SplitUnit, usize)) -> usize {
        self.steps / run.max(1) * split::panel_len(unit, run)
    }

    /// The 32-bit words of all blocks or panels.
    fn len(&self) -> Option<usize> {
        match self.run {
            Some(run) => self.panel_len(run).checked_mul(self.cols.div_ceil(BLOCK)),
            None => self.steps.checked_mul(self.padded()),
        }
    }

    /// Packs the elements of a matrix in memory, and returns the magnitudes of each panel if numbers are
    /// split.
    fn pack(&self, threads: &Threads, data: &[f32], packed: &mut [u32]) -> Vec<Magnitudes> {
        let PackedLayout { row_stride, col_stride, .. } = *self;
        let matrix = Matrix { data, row_stride, col_stride, conjugate: false };
        if let Some((unit, run)) = self.run {
            let (cols, steps) = (0..self.cols, 0..self.steps);
            return split::pack_panels((unit, threads), matrix, cols, steps, run, packed);
        }
        for start in (0..self.steps).step_by(self.depth) {
            let steps = start..self.steps.min(start + self.depth);
            let block = &mut packed[start * self.padded()..steps.end * self.padded()];
            let block = bytemuck::cast_slice_mut(block);
            pack_columns(threads, self.machine, matrix, 0..self.cols, &steps, block);
        }
        Vec::new()
    }
}

/// A matrix in the order in which tiles read it.
pub(in crate::cpu) struct PackedMatrix {
    /// The elements that were packed.
    source: TensorIdentity,
    layout: PackedLayout,
    memory: HostMemory,
    /// Those of each panel, where numbers are split.
    magnitudes: Vec<Magnitudes>,
}

impl PackedMatrix {
    /// Packs a matrix; `None` where that takes too much memory.
    fn new(threads: &Threads, weights: &HostTensor, layout: PackedLayout) -> Option<PackedMatrix> {
        let (data, source) = (weights.as_slice().ok()?, TensorIdentity::of(weights)?);
        let bytes = layout.len()?.checked_mul(size_of::<u32>())?;
        let room = |all: usize| all.checked_add(bytes).filter(|&all| all <= MOST_BYTES);
        BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        let Ok(memory) = HostMemory::pooled(bytes) else {
            BYTES.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        };
        let mut packed = PackedMatrix { source, layout, memory, magnitudes: Vec::new() };
        let memory = bytemuck::cast_slice_mut(packed.memory.bytes_mut());
        packed.magnitudes = layout.pack(threads, data, memory);
        Some(packed)
    }

    /// Whether this is what `weights` are in a layout.
    fn is_of(&self, weights: &HostTensor, layout: PackedLayout) -> bool {
        self.source.is_of(weights) && self.layout == layout
    }

    /// The panels of a block, from the one that begins with column `first` on.
    pub(in crate::cpu) fn panels(&self, steps: &Range<usize>, first: usize) -> &[f32] {
        debug_assert!(self.layout.run.is_none(), "whole numbers");
        debug_assert!(first.is_multiple_of(self.layout.machine.cols()), "the first of a panel");
        let packed: &[f32] = bytemuck::cast_slice(self.memory.bytes());
        &packed[steps.start * self.layout.padded() + first * steps.len()..]
    }

    /// The panel that begins with column `first`, where numbers are split.
    ///
    /// # Panics
    ///
    /// Where they are not.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::cpu) fn split_panel(&self, first: usize) -> split::Panel<'_> {
        debug_assert!(first.is_multiple_of(BLOCK), "the first of a panel");
        let run = self.layout.run.expect("numbers are split");
        let len = self.layout.panel_len(run);
        let packed: &[u32] = bytemuck::cast_slice(self.memory.bytes());
        let index = first / BLOCK;
        split::Panel::new(&packed[index * len..][..len], self.magnitudes[index])
    }
}

impl Drop for PackedMatrix {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.memory.bytes().len(), Ordering::Relaxed);
    }
}

/// The packed weights of a kernel.
#[derive(Default)]
pub(in crate::cpu) struct PackedWeights(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// Identity of the weights of the last call that looked.
    seen: Option<TensorIdentity>,
    packed: Option<Arc<PackedMatrix>>,
    /// Number of times in a row that other weights were found.
    changes: u32,
    /// The calls until the next look.
    unlooked: u32,
}

impl PackedWeights {
    /// The packed form of `weights`, which `rows` of the other operand meet; `None` where it is
    /// not worth while, or the weights are not known to stay as they are.
    pub(in crate::cpu) fn of(
        &self,
        threads: &Threads,
        rows: usize,
        weights: Option<&HostTensor>,
        layout: PackedLayout,
    ) -> Option<Arc<PackedMatrix>> {
        let worth = rows <= MOST_ROWS && layout.steps * layout.cols >= LEAST_ELEMENTS;
        let weights = weights.filter(|_| worth)?;
        match self.look_up(weights, layout) {
            Lookup::Packed(packed) => Some(packed),
            Lookup::Known => {
                // Whoever comes at the same time may pack them, too, and one of both is dropped.
                let packed = shared(threads, weights, layout)?;
                self.0.lock().packed = Some(packed.clone());
                Some(packed)
            }
            Lookup::Unknown => None,
        }
    }

    /// State of the packed form of weights. Kernels are shared by callers: others may have come
    /// meanwhile, so what is there is asked whose it is under one lock.
    fn look_up(&self, weights: &HostTensor, layout: PackedLayout) -> Lookup {
        let mut kept = self.0.lock();
        kept.packed = kept.packed.take().filter(|packed| packed.is_of(weights, layout));
        if let Some(packed) = &kept.packed {
            return Lookup::Packed(packed.clone());
        }
        if kept.seen.as_ref().is_some_and(|seen| seen.is_of(weights)) {
            kept.changes = 0;
            return Lookup::Known;
        }
        if kept.unlooked > 0 {
            kept.unlooked -= 1;
            kept.seen = None;
            return Lookup::Unknown;
        }
        kept.seen = TensorIdentity::of(weights);
        kept.unlooked = (1 << kept.changes.min(RAREST_LOOK)) - 1;
        kept.changes += 1;
        Lookup::Unknown
    }
}

/// State of a kernel's weights.
enum Lookup {
    Packed(Arc<PackedMatrix>),
    /// The last call had them, too.
    Known,
    Unknown,
}

/// The packed form that some kernel has already, or a new one.
fn shared(
    threads: &Threads,
    weights: &HostTensor,
    layout: PackedLayout,
) -> Option<Arc<PackedMatrix>> {
    let mut all = SHARED.lock();
    all.retain(|packed| packed.upgrade().is_some_and(|packed| packed.source.is_alive()));
    let found = all.iter().filter_map(Weak::upgrade).find(|packed| packed.is_of(weights, layout));
    drop(all);
    if found.is_some() {
        return found;
    }
    let packed = Arc::new(PackedMatrix::new(threads, weights, layout)?);
    SHARED.lock().push(Arc::downgrade(&packed));
    Some(packed)
}

#[cfg(test)]
mod tests {
    use super::super::{GemmOutput, GemmWeights, gemm, gemm_by_weights};
    use super::*;
    use ferroflow_ir::Shape;

    fn numbers(dims: [usize; 2], seed: usize) -> HostTensor {
        let n = dims[0] * dims[1];
        let numbers: Vec<f32> =
            (0..n).map(|index| ((index * 7919 + seed) % 1009) as f32 / 64.0 - 7.0).collect();
        HostTensor::from_slice(Shape::new(dims).unwrap(), &numbers).unwrap()
    }

    #[test]
    fn matmuls_by_packed_weights_have_the_same_bits() {
        let mut packed = 0;
        for (m, k, n) in
            [(2, 300, 40), (8, 257, 530), (13, 600, 24), (49, 64, 130), (300, 70, 600), (700, 9, 9)]
        {
            let sizes = GemmSizes { m, k, n };
            for transposed in [false, true] {
                let (a, b) = (numbers([m, k], 1), numbers([k, n], 5));
                let a = Matrix::row_major(a.as_slice().unwrap(), k);
                let data = b.as_slice().unwrap();
                let matrix = match transposed {
                    true => Matrix::row_major(data, k).transposed(),
                    false => Matrix::row_major(data, n),
                };
                let mut expected = vec![0.0; m * n];
                let threads = Threads::available();
                gemm(&threads, sizes, a, matrix, GemmOutput::row_major(&mut expected, n));
                let kept = PackedWeights::default();
                for _ in 0..3 {
                    let mut found = vec![f32::NAN; m * n];
                    let (tensor, precision) = (Some(&b), Precision::Full);
                    let weights = GemmWeights { tensor, kept: &kept, precision };
                    gemm_by_weights(&threads, sizes, a, matrix, weights, &mut found, None);
                    assert_eq!(found, expected, "{sizes:?} {transposed}");
                }
                packed += usize::from(kept.0.lock().packed.is_some());
            }
        }
        assert!(InstructionSet::detect().is_none() || packed >= 8, "{packed} of 12 were packed");
    }

    #[test]
    fn weights_are_packed_in_their_second_call_shared_and_forgotten_when_they_change() {
        let Some(machine) = InstructionSet::detect() else { return };
        let (threads, layout) = (Threads::single(), PackedLayout::whole(machine, 100, 50));
        let mut weights = numbers([100, 50], 3);
        let (kernel, other) = (PackedWeights::default(), PackedWeights::default());
        let call = |kernel: &PackedWeights, weights: &HostTensor| {
            kernel.of(&threads, 10, Some(weights), layout)
        };
        assert!(call(&kernel, &weights).is_none());
        let packed = call(&kernel, &weights).expect("known by now");
        assert!(Arc::ptr_eq(&packed, &call(&kernel, &weights).unwrap()), "kept");
        assert!(call(&other, &weights).is_none());
        assert!(Arc::ptr_eq(&packed, &call(&other, &weights).unwrap()), "shared");
        weights.as_mut_slice::<f32>().unwrap()[0] = 99.0;
        assert!(call(&kernel, &weights).is_none(), "others now");
        let again = call(&kernel, &weights).unwrap();
        assert_eq!(
            (packed.panels(&(0..100), 0)[0], again.panels(&(0..100), 0)[0]),
            (-6.953125, 99.0)
        );
        assert!(kernel.of(&threads, 10_000, Some(&weights), layout).is_none(), "many rows");
    }

    #[test]
    fn kernels_that_find_other_weights_each_time_look_rarely() {
        let Some(machine) = InstructionSet::detect() else { return };
        let (threads, layout) = (Threads::single(), PackedLayout::whole(machine, 100, 50));
        let (kernel, mut weights) = (PackedWeights::default(), numbers([100, 50], 3));
        let mut looks = 0;
        for step in 0..1000 {
            weights.as_mut_slice::<f32>().unwrap()[0] = step as f32;
            assert!(kernel.of(&threads, 10, Some(&weights), layout).is_none());
            looks += usize::from(kernel.0.lock().seen.is_some());
        }
        assert!(looks <= 12, "{looks} looks");
        let packs = |_: &usize| kernel.of(&threads, 10, Some(&weights), layout).is_some();
        assert!((0..300).any(|call| packs(&call)), "and find out when they stay");
    }

    /// A kernel is shared by callers, whose weights differ.
    #[test]
    fn callers_at_the_same_time_get_their_own_weights() {
        let Some(machine) = InstructionSet::detect() else { return };
        let (layout, kernel) = (PackedLayout::whole(machine, 64, 64), PackedWeights::default());
        let caller = &|value: f32| {
            let weights = HostTensor::from_slice(Shape::new([64, 64]).unwrap(), &[value; 4096]);
            let (weights, threads) = (weights.unwrap(), Threads::single());
            let mut packed = 0;
            for call in 0..200_000 {
                if let Some(found) = kernel.of(&threads, 10, Some(&weights), layout) {
                    assert_eq!(found.panels(&(0..64), 0)[0], value, "call {call}");
                    packed += 1;
                }
            }
            packed
        };
        let packed: u32 = std::thread::scope(|scope| {
            let callers = [1.0, 2.0, 3.0].map(|value| scope.spawn(move || caller(value)));
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        assert!(packed > 0, "none was packed");
    }
}

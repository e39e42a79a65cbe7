//! The memory a compiled program runs in, and calls of kernels on it.
//!
//! A [`Frame`] is one arena, planned when the program was compiled, and a list of slots, which hold
//! whole tensors: arguments, constants, results, and everything whose size is not known ahead.
//! [`Step`]s are checked once, when they are made; running them allocates nothing but the tensors
//! that go to slots.

use crate::{
    error::Result,
    kernel::{Io, Kernel, Operand, Target},
    threads::Threads,
};
use ferroflow_ir::{DType, HostTensor, Shape, memory::HostMemory};
use smallvec::SmallVec;
use std::{fmt, ops::Range, slice, sync::Arc};

/// A range of bytes of the arena.
pub type Region = Range<usize>;

/// Where a step reads an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// From the arena.
    Arena(Region),
    /// From a slot.
    Slot(usize),
    /// From a slot, these bytes only.
    SlotBytes(usize, Region),
}

/// Where a step writes an output.
#[derive(Debug, Clone, PartialEq)]
pub enum Sink {
    /// To the arena.
    Arena(Region),
    /// To a new tensor of known type, put into a slot.
    Slot(usize, DType, Shape),
    /// To whatever tensor the kernel gives, put into a slot.
    Unknown(usize),
}

/// The memory of one run of a program.
pub struct Frame {
    arena: HostMemory,
    slots: Vec<Option<HostTensor>>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arena = self.arena.bytes().len();
        f.debug_struct("Frame").field("arena", &arena).field("slots", &self.slots).finish()
    }
}

impl Frame {
    /// An arena of `arena` bytes, and `n_slots` empty slots.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory.
    pub fn new(arena: usize, n_slots: usize) -> Result<Frame> {
        Ok(Frame { arena: HostMemory::recycled(arena)?, slots: vec![None; n_slots] })
    }

    /// The tensor in a slot.
    pub fn slot(&self, slot: usize) -> Option<&HostTensor> {
        self.slots[slot].as_ref()
    }

    /// A slot, to be filled, changed or emptied.
    pub fn slot_mut(&mut self, slot: usize) -> &mut Option<HostTensor> {
        &mut self.slots[slot]
    }

    /// Bytes of the arena.
    pub fn arena(&self, region: &Region) -> &[u8] {
        &self.arena.bytes()[region.clone()]
    }

    /// Bytes of the arena, to be written.
    pub fn arena_mut(&mut self, region: &Region) -> &mut [u8] {
        &mut self.arena.bytes_mut()[region.clone()]
    }

    /// Copies bytes within the arena; the regions may overlap.
    pub fn copy_arena(&mut self, from: &Region, to: usize) {
        self.arena.bytes_mut().copy_within(from.clone(), to);
    }
}

/// A kernel call on a frame.
pub struct Step {
    kernel: Arc<dyn Kernel>,
    sources: SmallVec<[Source; 3]>,
    sinks: SmallVec<[Sink; 1]>,
    /// The input that lies where output 0 goes.
    in_place: Option<usize>,
    /// The bytes of arena it needs.
    arena: usize,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} -> {:?}", self.sources, self.sinks)
    }
}

impl Step {
    /// A call of `kernel`.
    ///
    /// # Panics
    ///
    /// When an output overlaps another output, or an input that the kernel does not take in
    /// place: such a plan is a defect of the planner.
    pub fn new(
        kernel: Arc<dyn Kernel>,
        sources: impl IntoIterator<Item = Source>,
        sinks: impl IntoIterator<Item = Sink>,
    ) -> Step {
        let sources: SmallVec<[Source; 3]> = sources.into_iter().collect();
        let sinks: SmallVec<[Sink; 1]> = sinks.into_iter().collect();
        let mut arena = 0;
        for source in &sources {
            if let Source::Arena(region) = source {
                assert!(region.start <= region.end, "regions are not reversed");
                arena = arena.max(region.end);
            }
        }
        let mut in_place = None;
        for (index, sink) in sinks.iter().enumerate() {
            let Sink::Arena(region) = sink else { continue };
            assert!(region.start <= region.end, "regions are not reversed");
            arena = arena.max(region.end);
            for other in &sinks[..index] {
                let apart = !matches!(other, Sink::Arena(other) if overlap(region, other));
                assert!(apart, "outputs lie apart");
            }
            for (input, source) in sources.iter().enumerate() {
                let Source::Arena(source) = source else { continue };
                if !overlap(region, source) {
                    continue;
                }
                let first = in_place.replace(input).is_none();
                let fits = index == 0 && source == region && kernel.in_place(input);
                assert!(first && fits, "only an input taken in place lies where an output goes");
            }
        }
        Step { kernel, sources, sinks, in_place, arena }
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    ///
    /// # Panics
    ///
    /// When the frame is not one of the program the step belongs to.
    pub fn run(&self, frame: &mut Frame, threads: &Threads, limit: usize) -> Result<()> {
        let mut made: SmallVec<[Option<HostTensor>; 1]> = SmallVec::new();
        for sink in &self.sinks {
            made.push(match sink {
                Sink::Slot(_, dtype, shape) if dtype.size().is_some() => {
                    Some(HostTensor::recycled(*dtype, shape.clone())?)
                }
                Sink::Slot(..) | Sink::Arena(_) | Sink::Unknown(_) => None,
            });
        }
        self.call(frame, &mut made, threads, limit)?;
        for (sink, tensor) in self.sinks.iter().zip(made) {
            if let Sink::Slot(slot, ..) | Sink::Unknown(slot) = sink {
                frame.slots[*slot] = tensor;
            }
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "inputs and outputs share the arena; see the SAFETY comment")]
    fn call(
        &self,
        frame: &mut Frame,
        made: &mut [Option<HostTensor>],
        threads: &Threads,
        limit: usize,
    ) -> Result<()> {
        let arena = frame.arena.bytes_mut();
        assert!(self.arena <= arena.len(), "the step belongs to this frame's program");
        let base = arena.as_mut_ptr();
        // SAFETY: `frame` is borrowed exclusively, so nobody else reaches the arena while these
        // slices live. Every region ends within the arena (asserted above against the largest end
        // that `new` saw). `new` has checked that no output overlaps another output or an input,
        // but for the one input taken in place, for which no slice is made. Arena memory is
        // always initialised.
        let read = |region: &Region| unsafe {
            slice::from_raw_parts(base.add(region.start).cast_const(), region.len())
        };
        let write = |region: &Region| unsafe {
            slice::from_raw_parts_mut(base.add(region.start), region.len())
        };
        let slots = &frame.slots;
        let tensor =
            |slot: usize| slots[slot].as_ref().expect("the planner fills slots before use");
        let inputs = self.sources.iter().enumerate().map(|(index, source)| match source {
            Source::Arena(_) if self.in_place == Some(index) => Operand::InPlace,
            Source::Arena(region) => Operand::Plain(read(region)),
            Source::Slot(slot) => Operand::Tensor(tensor(*slot)),
            Source::SlotBytes(slot, bytes) => Operand::Plain(&tensor(*slot).bytes()[bytes.clone()]),
        });
        let outputs = self.sinks.iter().zip(made).map(|(sink, made)| match (sink, made) {
            (Sink::Arena(region), _) => Target::Plain(write(region)),
            (_, Some(tensor)) => Target::Plain(tensor.bytes_mut()),
            (_, empty) => Target::Empty(empty),
        });
        self.kernel.run(&mut Io::new(inputs, outputs, threads, limit))
    }
}

fn overlap(a: &Region, b: &Region) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_one() -> Arc<dyn Kernel> {
        struct AddOne;
        impl Kernel for AddOne {
            fn run(&self, io: &mut Io<'_>) -> Result<()> {
                let in_place = io.is_in_place(0);
                let input: &[u8] = io.bytes(0);
                let out = io.output_bytes(0);
                if !in_place {
                    out.copy_from_slice(input);
                }
                out.iter_mut().for_each(|byte| *byte += 1);
                Ok(())
            }
            fn in_place(&self, index: usize) -> bool {
                index == 0
            }
        }
        Arc::new(AddOne)
    }

    #[test]
    fn steps_work_in_the_arena_in_place_and_in_slots() {
        let mut frame = Frame::new(64, 1).unwrap();
        frame.arena_mut(&(0..4)).copy_from_slice(&[1, 2, 3, 4]);
        let threads = Threads::single();
        let shape = Shape::new([4]).unwrap();
        let steps = [
            Step::new(add_one(), [Source::Arena(0..4)], [Sink::Arena(8..12)]),
            Step::new(add_one(), [Source::Arena(8..12)], [Sink::Arena(8..12)]),
            Step::new(add_one(), [Source::Arena(8..12)], [Sink::Slot(0, DType::U8, shape)]),
        ];
        steps.iter().for_each(|step| step.run(&mut frame, &threads, usize::MAX).unwrap());
        assert_eq!(frame.arena(&(0..4)), [1, 2, 3, 4]);
        assert_eq!(frame.slot(0).unwrap().bytes(), [4, 5, 6, 7]);
    }

    #[test]
    #[should_panic(expected = "only an input taken in place")]
    fn overlapping_plans_are_refused() {
        let _ = Step::new(add_one(), [Source::Arena(0..4)], [Sink::Arena(2..6)]);
    }
}

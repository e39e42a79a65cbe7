//! The memory a compiled program runs in, and calls of kernels on it.
//!
//! A [`Frame`] is one arena, planned when the program was compiled, and a list of slots, which hold
//! whole tensors of the host or of devices: arguments, constants, results, everything in the memory
//! of devices, and everything whose size is not known ahead. [`LaunchStep`]s are checked once, when
//! they are made; running them allocates nothing but the tensors that go to slots.

use crate::{
    buffer::Buffer,
    device::Device,
    error::Result,
    kernel::{Io, Kernel, Operand, Target},
    threads::Threads,
};
use ferroflow_ir::{DType, HostTensor, Shape, memory::HostMemory};
use smallvec::SmallVec;
use std::{fmt, ops::Range, slice, sync::Arc};

/// A range of bytes of the arena.
pub type ArenaRange = Range<usize>;

/// Where a step reads an input.
#[derive(Debug, Clone, PartialEq)]
pub enum StepSource {
    /// From the arena.
    Arena(ArenaRange),
    /// From a slot.
    Slot(usize),
    /// From a slot, these bytes only.
    SlotBytes(usize, ArenaRange),
    /// From nowhere: the kernel was compiled with the value.
    Compiled,
}

/// Where a step writes an output.
#[derive(Debug, Clone, PartialEq)]
pub enum StepSink {
    /// To the arena.
    Arena(ArenaRange),
    /// To a new tensor of known type, put into a slot.
    Slot(usize, DType, Shape),
    /// To whatever tensor the kernel returns, put into a slot.
    Unknown(usize),
    /// To nowhere: nothing reads it, and its size is not known ahead.
    Unread,
}

impl StepSource {
    fn slot(&self) -> Option<usize> {
        match self {
            StepSource::Slot(slot) | StepSource::SlotBytes(slot, _) => Some(*slot),
            StepSource::Arena(_) | StepSource::Compiled => None,
        }
    }
}

impl StepSink {
    fn slot(&self) -> Option<usize> {
        match self {
            StepSink::Slot(slot, ..) | StepSink::Unknown(slot) => Some(*slot),
            StepSink::Arena(_) | StepSink::Unread => None,
        }
    }

    /// Whether the kernel makes the tensor: its size is not known ahead, or it is not plain.
    fn is_made_by_kernel(&self) -> bool {
        match self {
            StepSink::Arena(_) | StepSink::Unread => false,
            StepSink::Slot(_, dtype, _) => dtype.size().is_none(),
            StepSink::Unknown(_) => true,
        }
    }
}

/// The memory of one run of a program.
pub struct Frame {
    arena: HostMemory,
    slots: Vec<Option<Buffer>>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arena = self.arena.bytes().len();
        f.debug_struct("Frame").field("arena", &arena).field("slots", &self.slots).finish()
    }
}

impl Frame {
    /// An arena of `arena` bytes, and `n_slots` empty slots. The arena counts as memory that calls
    /// share.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory.
    pub fn new(arena: usize, n_slots: usize) -> Result<Frame> {
        let (arena, slots) = (HostMemory::pooled(arena)?, vec![None; n_slots]);
        Ok(Frame { arena, slots })
    }

    /// The tensor in a slot.
    pub fn slot(&self, slot: usize) -> Option<&Buffer> {
        self.slots[slot].as_ref()
    }

    /// A slot, to be filled, changed or emptied.
    pub fn slot_mut(&mut self, slot: usize) -> &mut Option<Buffer> {
        &mut self.slots[slot]
    }

    /// Bytes of the arena.
    pub fn arena(&self, region: &ArenaRange) -> &[u8] {
        &self.arena.bytes()[region.clone()]
    }

    /// Bytes of the arena, to be written.
    pub fn arena_mut(&mut self, region: &ArenaRange) -> &mut [u8] {
        &mut self.arena.bytes_mut()[region.clone()]
    }

    /// Copies bytes within the arena; the regions may overlap.
    pub fn copy_arena(&mut self, from: &ArenaRange, to: usize) {
        self.arena.bytes_mut().copy_within(from.clone(), to);
    }
}

/// A kernel call on a frame.
pub struct LaunchStep {
    kernel: Arc<dyn Kernel>,
    /// The device that the kernel runs on and whose memory the results are in; the host if `None`.
    device: Option<Arc<dyn Device>>,
    sources: SmallVec<[StepSource; 3]>,
    sinks: SmallVec<[StepSink; 1]>,
    /// The input that is where output 0 goes.
    in_place: Option<usize>,
    /// The bytes of arena it needs.
    arena: usize,
    /// The slots it needs.
    slots: usize,
    /// The number of outputs that are tensors which the kernel makes.
    n_empty: usize,
}

impl fmt::Debug for LaunchStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} -> {:?}", self.sources, self.sinks)
    }
}

/// Checks that no output shares a slot.
fn check_slots(sources: &[StepSource], sinks: &[StepSink]) {
    let mut written: SmallVec<[usize; 1]> = sinks.iter().filter_map(StepSink::slot).collect();
    written.sort_unstable();
    let is_once = written.windows(2).all(|pair| pair[0] < pair[1]);
    let mut read = sources.iter().filter_map(StepSource::slot);
    let is_read = read.any(|slot| written.binary_search(&slot).is_ok());
    assert!(is_once && !is_read, "the slot of an output is that of nothing else");
}

/// The input that the kernel replaces; checks that outputs overlap nothing else. Calls may have a million of
/// them, so each is compared with its neighbours.
fn input_in_place(
    kernel: &dyn Kernel,
    sources: &[StepSource],
    sinks: &[StepSink],
) -> Option<usize> {
    let mut written: SmallVec<[&ArenaRange; 1]> = sinks.iter().filter_map(written_region).collect();
    written.sort_unstable_by_key(|region| region.start);
    let apart = written.windows(2).all(|pair| pair[0].end <= pair[1].start);
    assert!(apart, "outputs lie apart");
    let first = sinks.first().and_then(written_region);
    let mut in_place = None;
    for (input, source) in sources.iter().enumerate() {
        let StepSource::Arena(source) = source else { continue };
        let next = written.partition_point(|region| region.end <= source.start);
        if written.get(next).is_none_or(|region| !overlap(region, source)) {
            continue;
        }
        let is_only = in_place.replace(input).is_none();
        let fits = first == Some(source) && kernel.in_place(input);
        assert!(is_only && fits, "only an input taken in place lies where an output goes");
    }
    in_place
}

impl LaunchStep {
    /// A call of `kernel`.
    ///
    /// # Panics
    ///
    /// When an output overlaps another output, or an input that the kernel does not take in
    /// place, or shares a slot: such a plan is a defect of the planner.
    pub fn new(
        kernel: Arc<dyn Kernel>,
        sources: impl IntoIterator<Item = StepSource>,
        sinks: impl IntoIterator<Item = StepSink>,
    ) -> LaunchStep {
        let sources: SmallVec<[StepSource; 3]> = sources.into_iter().collect();
        let sinks: SmallVec<[StepSink; 1]> = sinks.into_iter().collect();
        let (mut arena, mut slots) = (0, 0);
        for source in &sources {
            match source {
                StepSource::Arena(region) => {
                    assert!(region.start <= region.end, "regions are not reversed");
                    arena = arena.max(region.end);
                }
                StepSource::Slot(slot) | StepSource::SlotBytes(slot, _) => {
                    slots = slots.max(slot + 1)
                }
                StepSource::Compiled => {}
            }
        }
        for sink in &sinks {
            slots = sink.slot().map_or(slots, |slot| slots.max(slot + 1));
            if let StepSink::Arena(region) = sink {
                assert!(region.start <= region.end, "regions are not reversed");
                arena = arena.max(region.end);
            }
        }
        check_slots(&sources, &sinks);
        let in_place = input_in_place(&*kernel, &sources, &sinks);
        let n_empty = sinks.iter().filter(|sink| sink.is_made_by_kernel()).count();
        LaunchStep { kernel, device: None, sources, sinks, in_place, arena, slots, n_empty }
    }

    /// The call on a device, in whose memory the inputs are, and whose memory it allocates for the
    /// results.
    #[must_use]
    pub fn on(mut self, device: Arc<dyn Device>) -> LaunchStep {
        self.device = Some(device);
        self
    }

    /// The same call on other regions of an arena.
    ///
    /// # Panics
    ///
    /// As [`new`](LaunchStep::new).
    #[must_use]
    pub fn relocated(self, region: &dyn Fn(&ArenaRange) -> ArenaRange) -> LaunchStep {
        let sources = self.sources.into_iter().map(|source| match source {
            StepSource::Arena(bytes) => StepSource::Arena(region(&bytes)),
            other => other,
        });
        let sinks = self.sinks.into_iter().map(|sink| match sink {
            StepSink::Arena(bytes) => StepSink::Arena(region(&bytes)),
            other => other,
        });
        let step = LaunchStep::new(self.kernel, sources, sinks);
        LaunchStep { device: self.device, ..step }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    /// The device that it runs on; `None` for the host.
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.device.as_ref()
    }

    /// Where it reads its inputs.
    pub fn sources(&self) -> &[StepSource] {
        &self.sources
    }

    /// Where it writes its outputs.
    pub fn sinks(&self) -> &[StepSink] {
        &self.sinks
    }

    /// Bytes of the results, once it has run.
    pub fn output_bytes(&self, frame: &Frame) -> usize {
        let bytes = |sink: &StepSink| match sink {
            StepSink::Arena(region) => region.len(),
            StepSink::Unread => 0,
            StepSink::Slot(slot, ..) | StepSink::Unknown(slot) => {
                frame.slot(*slot).map_or(0, byte_len)
            }
        };
        self.sinks.iter().map(bytes).sum()
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// Those of the kernel, and when there is no memory for a result.
    ///
    /// # Panics
    ///
    /// When the frame is not one of the program the step belongs to.
    pub fn run(&self, frame: &mut Frame, threads: &Threads, limit: usize) -> Result<()> {
        for sink in &self.sinks {
            let Some(slot) = sink.slot() else { continue };
            frame.slots[slot] = match (sink, &self.device) {
                (StepSink::Slot(_, dtype, shape), Some(device)) => {
                    Some(device.allocate(*dtype, shape)?)
                }
                (StepSink::Slot(_, dtype, shape), None) if dtype.size().is_some() => {
                    Some(Buffer::Host(HostTensor::recycled(*dtype, shape.clone())?))
                }
                _ => None,
            };
        }
        if self.n_empty == 0 {
            return self.call(frame, &mut [], threads, limit);
        }
        let mut made: SmallVec<[Option<HostTensor>; 2]> = SmallVec::new();
        made.resize(self.n_empty, None);
        self.call(frame, &mut made, threads, limit)?;
        let empty = self.sinks.iter().filter(|sink| sink.is_made_by_kernel());
        for (slot, tensor) in empty.filter_map(StepSink::slot).zip(made) {
            frame.slots[slot] = tensor.map(Buffer::Host);
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "inputs and outputs share the frame; see the SAFETY comment")]
    fn call(
        &self,
        frame: &mut Frame,
        made: &mut [Option<HostTensor>],
        threads: &Threads,
        limit: usize,
    ) -> Result<()> {
        let arena = frame.arena.bytes_mut();
        assert!(self.arena <= arena.len(), "the step belongs to this frame's program");
        assert!(self.slots <= frame.slots.len(), "the step belongs to this frame's program");
        let (base, slots) = (arena.as_mut_ptr(), frame.slots.as_mut_ptr());
        // SAFETY: `frame` is borrowed exclusively, so nobody else reaches its arena and its slots
        // while these references live. Every region ends within the arena and every slot is one of
        // the frame's (asserted above against the largest that `new` saw). `new` has checked that
        // no output overlaps another output or an input, be it in the arena or in a slot, but for
        // the one input taken in place, for which no slice is made. Arena memory is always
        // initialised.
        let read = |region: &ArenaRange| unsafe {
            slice::from_raw_parts(base.add(region.start).cast_const(), region.len())
        };
        let write = |region: &ArenaRange| unsafe {
            slice::from_raw_parts_mut(base.add(region.start), region.len())
        };
        let tensor = |slot: usize| {
            // SAFETY: as above.
            let slot = unsafe { &*slots.add(slot) };
            slot.as_ref().expect("the planner fills slots before use")
        };
        // SAFETY: as above.
        let slot_mut = |slot: usize| unsafe { &mut *slots.add(slot) };
        let inputs = self.sources.iter().enumerate().map(|(index, source)| match source {
            StepSource::Arena(_) if self.in_place == Some(index) => Operand::InPlace,
            StepSource::Arena(region) => Operand::Plain(read(region)),
            StepSource::Slot(slot) => match tensor(*slot) {
                Buffer::Host(tensor) => Operand::Tensor(tensor),
                Buffer::Device(buffer) => Operand::Device(buffer),
            },
            StepSource::SlotBytes(slot, bytes) => {
                let host = tensor(*slot).as_host().expect("windows are of tensors of the host");
                Operand::Plain(&host.bytes()[bytes.clone()])
            }
            StepSource::Compiled => Operand::Plain(&[]),
        });
        let mut made = made.iter_mut();
        let outputs = self.sinks.iter().map(|sink| match sink {
            StepSink::Arena(region) => Target::Plain(write(region)),
            StepSink::Unread => Target::Unread,
            StepSink::Slot(slot, ..) | StepSink::Unknown(slot) => match slot_mut(*slot) {
                Some(Buffer::Host(tensor)) => Target::Plain(tensor.bytes_mut()),
                Some(Buffer::Device(buffer)) => Target::Device(buffer),
                None => Target::Empty(made.next().expect("as many as there are empty outputs")),
            },
        });
        self.kernel.run(&mut Io::new(inputs, outputs, threads, limit))
    }
}

/// The bytes of a tensor of plain elements.
fn byte_len(buffer: &Buffer) -> usize {
    match buffer {
        Buffer::Host(tensor) if tensor.is_plain() => tensor.bytes().len(),
        Buffer::Host(_) => 0,
        Buffer::Device(buffer) => {
            let size = buffer.dtype.size().unwrap_or(0);
            buffer.shape.num_elements().saturating_mul(size)
        }
    }
}

/// The part of an arena that an output takes.
fn written_region(sink: &StepSink) -> Option<&ArenaRange> {
    match sink {
        StepSink::Arena(region) if !region.is_empty() => Some(region),
        _ => None,
    }
}

fn overlap(a: &ArenaRange, b: &ArenaRange) -> bool {
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
            LaunchStep::new(add_one(), [StepSource::Arena(0..4)], [StepSink::Arena(8..12)]),
            LaunchStep::new(add_one(), [StepSource::Arena(8..12)], [StepSink::Arena(8..12)]),
            LaunchStep::new(
                add_one(),
                [StepSource::Arena(8..12)],
                [StepSink::Slot(0, DType::U8, shape)],
            ),
        ];
        steps.iter().for_each(|step| step.run(&mut frame, &threads, usize::MAX).unwrap());
        assert_eq!(frame.arena(&(0..4)), [1, 2, 3, 4]);
        assert_eq!(frame.slot(0).unwrap().as_host().unwrap().bytes(), [4, 5, 6, 7]);
    }

    #[test]
    #[should_panic(expected = "that of nothing else")]
    fn shared_slots_are_refused() {
        let _ = LaunchStep::new(add_one(), [StepSource::Slot(2)], [StepSink::Unknown(2)]);
    }

    #[test]
    #[should_panic(expected = "only an input taken in place")]
    fn overlapping_plans_are_refused() {
        let _ = LaunchStep::new(add_one(), [StepSource::Arena(0..4)], [StepSink::Arena(2..6)]);
    }

    #[test]
    #[should_panic(expected = "outputs lie apart")]
    fn outputs_that_overlap_are_refused() {
        let sinks = [0..10, 20..30, 5..6].map(StepSink::Arena);
        let _ = LaunchStep::new(add_one(), [StepSource::Arena(40..44)], sinks);
    }

    #[test]
    #[should_panic(expected = "only an input taken in place")]
    fn inputs_in_later_outputs_are_refused() {
        let sinks = [20..30, 0..10].map(StepSink::Arena);
        let _ = LaunchStep::new(add_one(), [StepSource::Arena(0..10)], sinks);
    }
}

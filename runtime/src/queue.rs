//! Queues of tuples of tensors. Who finds one empty, or full, waits for others.

#[cfg(all(test, shuttle))]
mod interleavings;

use crate::{
    budget::{KeptTensors, wait},
    context::Context,
    error::{Error, Result},
    execute::execute,
    generator::seeded,
    resource::Resource,
    rows::{RowRun, join, row, stacked},
    sync::{Condvar, Mutex, MutexGuard},
};
use ferroflow_ir::{
    Attrs, Code, DType, Error as IrError, HostTensor, PartialShape, Shape, ops::names,
};
use ferroflow_kernels::philox::Words;
use std::collections::VecDeque;

/// Properties of a queue that are fixed when it is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueOptions {
    pub(crate) kind: QueueKind,
    pub(crate) dtypes: Vec<DType>,
    /// The shapes of the tensors in a tuple; empty if they may have any.
    pub(crate) shapes: Vec<PartialShape>,
    pub(crate) capacity: usize,
}

/// In which order, and how stacked, a queue returns what is in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum QueueKind {
    /// First in, first out.
    Fifo,
    /// First in, first out; shapes may differ, and stacking pads with zeros.
    Padding,
    /// By the number that is the first tensor of a tuple; among equals, first in, first out.
    Priority,
    /// In random order.
    Shuffle {
        /// As many tuples stay until the queue is closed.
        kept: usize,
        /// The seeds of the generator.
        seeds: [i64; 2],
    },
}

type Tuple = Vec<HostTensor>;

/// A queue.
#[derive(Debug)]
pub(crate) struct Queue {
    options: QueueOptions,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tuples: VecDeque<KeptTensors<Tuple>>,
    closed: bool,
    /// Whether those who wait to put something in are to stop.
    cancelled: bool,
    /// The numbers that choose tuples of a queue in random order.
    words: Option<Words>,
    /// Calls that put tuples in, and calls that take some out.
    putters: Turns,
    takers: Turns,
}

/// Calls in progress in the order in which they began: each waits for those before it, as in TensorFlow.
#[derive(Debug, Default)]
struct Turns {
    last: u64,
    waiting: VecDeque<u64>,
}

impl Turns {
    fn enter(&mut self) -> u64 {
        self.last += 1;
        self.waiting.push_back(self.last);
        self.last
    }

    fn is_next(&self, turn: u64) -> bool {
        self.waiting.front() == Some(&turn)
    }

    fn leave(&mut self, turn: u64) {
        self.waiting.retain(|other| *other != turn);
    }
}

fn wrong(
    argument: &'static str,
    expected: impl Into<String>,
    found: impl std::fmt::Display,
) -> Error {
    IrError::argument("queue", argument, expected.into(), found).into()
}

fn cancelled() -> Error {
    Error::Status { code: Code::Cancelled, message: "the queue is closed".into() }
}

impl Queue {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when the shapes do not go with the dtypes or the kind of queue.
    pub(crate) fn new(options: QueueOptions) -> Result<Queue> {
        let QueueOptions { kind, dtypes, shapes, .. } = &options;
        let padding = *kind == QueueKind::Padding;
        if shapes.len() != dtypes.len() && (padding || !shapes.is_empty()) {
            return Err(wrong("shapes", format!("{} shapes", dtypes.len()), shapes.len()));
        }
        let fits = |shape: &&PartialShape| match padding {
            true => shape.rank().is_none(),
            false => !shape.is_known(),
        };
        if let Some(shape) = shapes.iter().find(fits) {
            return Err(wrong("shapes", "known", shape));
        }
        if let QueueKind::Shuffle { kept, .. } = options.kind
            && kept >= options.capacity
        {
            let expected = format!("below the capacity, {}", options.capacity);
            return Err(wrong("min_after_dequeue", expected, kept));
        }
        Ok(Queue { options, state: Mutex::default(), changed: Condvar::new() })
    }

    pub(crate) fn options(&self) -> &QueueOptions {
        &self.options
    }

    /// The number of tuples in it.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().tuples.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Nothing can be put in any more. With `cancel`, those who wait to do so stop.
    ///
    /// # Errors
    ///
    /// A status `Cancelled` when it was closed before.
    pub(crate) fn close(&self, cancel: bool) -> Result<()> {
        let mut state = self.state.lock();
        if state.closed && (!cancel || state.cancelled) {
            return Err(cancelled());
        }
        state.closed = true;
        state.cancelled |= cancel;
        self.changed.notify_all();
        Ok(())
    }

    /// Puts a tuple in.
    ///
    /// # Errors
    ///
    /// When it does not fit the queue, or the queue is closed.
    pub(crate) fn enqueue(&self, tuple: Tuple) -> Result<()> {
        self.check_dtypes(tuple.iter().map(HostTensor::dtype))?;
        self.check_shapes(&tuple)?;
        self.put(vec![tuple])
    }

    /// Puts the rows of tensors in, as a tuple each.
    ///
    /// # Errors
    ///
    /// When they do not fit the queue, or the queue is closed.
    pub(crate) fn enqueue_many(&self, tensors: &[HostTensor]) -> Result<()> {
        self.check_dtypes(tensors.iter().map(HostTensor::dtype))?;
        let lengths: Option<Vec<usize>> =
            tensors.iter().map(|tensor| tensor.shape().first().copied()).collect();
        let n = match lengths.as_deref() {
            Some([n, rest @ ..]) if rest.iter().all(|other| other == n) => *n,
            _ => return Err(wrong("components", "of as many rows each", format!("{lengths:?}"))),
        };
        let tuple = |at: usize| tensors.iter().map(|tensor| row(tensor, at)).collect();
        let tuples: Vec<Tuple> = (0..n).map(tuple).collect::<Result<_>>()?;
        tuples.iter().try_for_each(|tuple| self.check_shapes(tuple))?;
        self.put(tuples)
    }

    /// Checks what a caller takes the tensors of a tuple for.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when they are of other dtypes.
    pub(crate) fn check_dtypes(&self, found: impl Iterator<Item = DType>) -> Result<()> {
        let found: Vec<DType> = found.collect();
        if found == self.options.dtypes {
            return Ok(());
        }
        let expected = format!("of dtypes {:?}", self.options.dtypes);
        Err(wrong("components", expected, format!("{found:?}")))
    }

    fn check_shapes(&self, tuple: &Tuple) -> Result<()> {
        for (tensor, shape) in tuple.iter().zip(&self.options.shapes) {
            if !shape.is_compatible_with(&tensor.shape().into()) {
                return Err(wrong("components", format!("of shape {shape}"), tensor.shape()));
            }
        }
        Ok(())
    }

    fn put(&self, tuples: Vec<Tuple>) -> Result<()> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(cancelled());
        }
        let put = |state: &mut MutexGuard<'_, State>, turn| self.put_at_turn(state, turn, tuples);
        self.in_turn(&mut state, |state| &mut state.putters, put)
    }

    /// Runs a call with the number of its turn, which ends with it.
    fn in_turn<R>(
        &self,
        state: &mut MutexGuard<'_, State>,
        turns: fn(&mut State) -> &mut Turns,
        call: impl FnOnce(&mut MutexGuard<'_, State>, u64) -> R,
    ) -> R {
        let turn = turns(state).enter();
        let outcome = call(state, turn);
        turns(state).leave(turn);
        self.changed.notify_all();
        outcome
    }

    fn put_at_turn(
        &self,
        state: &mut MutexGuard<'_, State>,
        turn: u64,
        tuples: Vec<Tuple>,
    ) -> Result<()> {
        for tuple in tuples {
            while !state.putters.is_next(turn) || state.tuples.len() >= self.options.capacity {
                if state.cancelled {
                    return Err(cancelled());
                }
                wait(&self.changed, state)?;
            }
            let position = match self.options.kind {
                QueueKind::Fifo | QueueKind::Padding | QueueKind::Shuffle { .. } => {
                    state.tuples.len()
                }
                QueueKind::Priority => {
                    let own = priority(&tuple);
                    state.tuples.partition_point(|other| priority(&other.value) <= own)
                }
            };
            let n_tensors = tuple.len();
            state.tuples.insert(position, KeptTensors::new(tuple, n_tensors)?);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Takes a tuple out.
    ///
    /// # Errors
    ///
    /// A status `OutOfRange` when the queue is empty and closed.
    pub(crate) fn dequeue(&self) -> Result<Tuple> {
        Ok(self.take(1, false)?.remove(0))
    }

    /// Takes `n` tuples out, stacked; with `up_to` fewer if the queue is closed.
    ///
    /// # Errors
    ///
    /// A status `OutOfRange` when the queue is closed and has too few, [`IrError::Argument`] when
    /// it does not know the shapes of what is in it.
    pub(crate) fn dequeue_many(&self, context: &Context, n: i64, up_to: bool) -> Result<Tuple> {
        let n = usize::try_from(n).map_err(|_| wrong("n", "not negative", n))?;
        if self.options.shapes.len() != self.options.dtypes.len() {
            return Err(wrong("queue", "of known shapes", "one of any"));
        }
        let tuples = if n == 0 { Vec::new() } else { self.take(n, up_to)? };
        (0..self.options.dtypes.len()).map(|index| self.stack(context, &tuples, index)).collect()
    }

    fn take(&self, n: usize, up_to: bool) -> Result<Vec<Tuple>> {
        let mut state = self.state.lock();
        let take =
            |state: &mut MutexGuard<'_, State>, turn| self.take_at_turn(state, turn, n, up_to);
        self.in_turn(&mut state, |state| &mut state.takers, take)
    }

    fn take_at_turn(
        &self,
        state: &mut MutexGuard<'_, State>,
        turn: u64,
        n: usize,
        up_to: bool,
    ) -> Result<Vec<Tuple>> {
        let mut taken = Vec::new();
        loop {
            while state.takers.is_next(turn)
                && taken.len() < n
                && let Some(tuple) = self.next(state)
            {
                taken.push(tuple);
                self.changed.notify_all();
            }
            // Calls that wait to put something in are let in before a closed queue is at its end.
            let is_over =
                state.closed && state.takers.is_next(turn) && state.putters.waiting.is_empty();
            if taken.len() == n || (up_to && is_over && !taken.is_empty()) {
                return Ok(taken.into_iter().map(|tuple| tuple.value).collect());
            }
            if is_over {
                let found = taken.len();
                put_back(state, taken);
                return Err(closed(found, n));
            }
            if let Err(error) = wait(&self.changed, state) {
                put_back(state, taken);
                return Err(error);
            }
        }
    }

    /// The tuple that is next, if one may be taken.
    fn next(&self, state: &mut State) -> Option<KeptTensors<Tuple>> {
        let QueueKind::Shuffle { kept, seeds } = self.options.kind else {
            return state.tuples.pop_front();
        };
        let n = state.tuples.len();
        if n <= if state.closed { 0 } else { kept } {
            return None;
        }
        let words = state.words.get_or_insert_with(|| Words::new(seeded(seeds)));
        state.tuples.swap_remove_back(words.next_word() as usize % n)
    }

    /// Tensor `index` of all tuples.
    fn stack(&self, context: &Context, tuples: &[Tuple], index: usize) -> Result<HostTensor> {
        let expected = &self.options.shapes[index];
        let mut dims: Vec<usize> =
            expected.dims().unwrap_or_default().iter().map(|dim| dim.unwrap_or(0)).collect();
        for tuple in tuples {
            let found = tuple[index].shape();
            dims.iter_mut().zip(found.dims()).for_each(|(dim, &found)| *dim = found.max(*dim));
        }
        let padded: Vec<HostTensor> =
            tuples.iter().map(|tuple| pad(context, &tuple[index], &dims)).collect::<Result<_>>()?;
        let parts: Vec<RowRun<'_>> = padded.iter().map(RowRun::Tensor).collect();
        join(context, self.options.dtypes[index], stacked(parts.len(), &dims)?, &parts)
    }
}

fn put_back(state: &mut State, taken: Vec<KeptTensors<Tuple>>) {
    taken.into_iter().rev().for_each(|tuple| state.tuples.push_front(tuple));
}

fn closed(found: usize, n: usize) -> Error {
    let message = format!("the queue is closed and has {found} tuples, {n} are asked for");
    Error::Status { code: Code::OutOfRange, message }
}

fn priority(tuple: &Tuple) -> i64 {
    tuple.first().and_then(|tensor| tensor.as_scalar::<i64>().ok()).unwrap_or(0)
}

/// A tensor with zeros after its elements, so that it has these sizes.
fn pad(context: &Context, tensor: &HostTensor, dims: &[usize]) -> Result<HostTensor> {
    if tensor.shape()[..] == *dims {
        return Ok(tensor.clone());
    }
    let after = dims.iter().zip(tensor.shape().dims()).map(|(&dim, &own)| (dim - own) as i64);
    let paddings: Vec<i64> = after.flat_map(|after| [0, after]).collect();
    let paddings = HostTensor::from_slice(Shape::new([dims.len(), 2])?, &paddings)?;
    let inputs = [tensor.clone().into(), paddings.into()];
    execute(context, names::PAD, Attrs::new(), &inputs)?.remove(0).into_host()
}

impl Resource for Queue {
    fn kind(&self) -> &'static str {
        "a queue"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(kind: QueueKind, dtypes: &[DType], shapes: &[&[i64]], capacity: usize) -> Queue {
        let shapes = shapes.iter().map(|dims| PartialShape::from_i64(dims).unwrap()).collect();
        Queue::new(QueueOptions { kind, dtypes: dtypes.into(), shapes, capacity }).unwrap()
    }

    #[test]
    fn a_closed_queue_returns_what_is_left() {
        let (context, queue) = (Context::new(), queue(QueueKind::Fifo, &[DType::I32], &[&[]], 9));
        queue.enqueue_many(&[HostTensor::vector(&[1i32, 2, 3]).unwrap()]).unwrap();
        queue.close(false).unwrap();
        assert_eq!(queue.close(false).unwrap_err().code(), Code::Cancelled);
        let one = HostTensor::scalar(4i32);
        assert_eq!(queue.enqueue(vec![one]).unwrap_err().code(), Code::Cancelled);
        assert_eq!(queue.dequeue_many(&context, 5, false).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(queue.dequeue().unwrap()[0], HostTensor::scalar(1i32));
        let rest = queue.dequeue_many(&context, 5, true).unwrap();
        assert_eq!(rest[0], HostTensor::vector(&[2i32, 3]).unwrap());
        assert_eq!(queue.dequeue().unwrap_err().code(), Code::OutOfRange);
    }

    #[test]
    fn padding_makes_shapes_equal() {
        let (context, queue) =
            (Context::new(), queue(QueueKind::Padding, &[DType::F32], &[&[-1]], 9));
        for values in [&[1.0f32][..], &[2.0, 3.0]] {
            queue.enqueue(vec![HostTensor::vector(values).unwrap()]).unwrap();
        }
        let both = queue.dequeue_many(&context, 2, false).unwrap();
        assert_eq!(both[0].as_slice::<f32>().unwrap(), [1.0, 0.0, 2.0, 3.0]);
    }

    #[test]
    fn priorities_order_tuples() {
        let dtypes = [DType::I64, DType::I32];
        let queue = queue(QueueKind::Priority, &dtypes, &[&[], &[]], 9);
        for (priority, value) in [(3i64, 30i32), (1, 10), (3, 31), (2, 20)] {
            let tuple = vec![HostTensor::scalar(priority), HostTensor::scalar(value)];
            queue.enqueue(tuple).unwrap();
        }
        let values: Vec<i32> =
            (0..4).map(|_| queue.dequeue().unwrap()[1].as_scalar().unwrap()).collect();
        assert_eq!(values, [10, 20, 30, 31]);
    }

    #[test]
    fn who_finds_a_queue_full_or_empty_waits() {
        let queue = queue(QueueKind::Fifo, &[DType::I32], &[&[]], 1);
        std::thread::scope(|scope| {
            let rows = HostTensor::vector(&(0..50).collect::<Vec<i32>>()).unwrap();
            scope.spawn(|| queue.enqueue_many(&[rows]).unwrap());
            let context = Context::new();
            let all = queue.dequeue_many(&context, 50, false).unwrap();
            assert_eq!(all[0].as_slice::<i32>().unwrap(), (0..50).collect::<Vec<i32>>());
        });
    }
}

//! Barriers: tuples that wait, by their keys, until they are complete.
//!
//! Source: `barrier_ops.cc` of TensorFlow for the numbers of tuples and for what a closed barrier
//! still takes.

use crate::{
    budget::{KeptTensors, wait},
    context::Context,
    error::{Error, Result},
    resource::Resource,
    rows::{RowRun, join, row, stacked},
    sync::{Condvar, Mutex},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor, Shape};
use std::collections::HashMap;

/// A barrier.
#[derive(Debug)]
pub(crate) struct Barrier {
    dtypes: Vec<DType>,
    shapes: Vec<Shape>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    incomplete: HashMap<Bytes, KeptTensors<Incomplete>>,
    /// By their numbers; among equals, first complete, first out.
    ready: Vec<KeptTensors<Complete>>,
    /// The number of the next tuples.
    number: i64,
    closed: bool,
    cancelled: bool,
}

#[derive(Debug)]
struct Incomplete {
    number: i64,
    components: Vec<Option<HostTensor>>,
}

#[derive(Debug)]
struct Complete {
    number: i64,
    key: Bytes,
    components: Vec<HostTensor>,
}

/// Tuples that were taken, stacked.
#[derive(Debug)]
pub(crate) struct TakenTuples {
    pub(crate) numbers: Vec<i64>,
    pub(crate) keys: Vec<Bytes>,
    pub(crate) components: Vec<HostTensor>,
}

fn wrong(
    argument: &'static str,
    expected: impl Into<String>,
    found: impl std::fmt::Display,
) -> Error {
    IrError::argument("barrier", argument, expected.into(), found).into()
}

fn cancelled(message: &str) -> Error {
    Error::Status { code: Code::Cancelled, message: message.into() }
}

impl Barrier {
    /// An empty barrier for tuples of these components.
    pub(crate) fn new(dtypes: Vec<DType>, shapes: Vec<Shape>) -> Barrier {
        let state = State {
            incomplete: HashMap::new(),
            ready: Vec::new(),
            number: i64::MIN,
            closed: false,
            cancelled: false,
        };
        Barrier { dtypes, shapes, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whether tuples have these components.
    pub(crate) fn is_of(&self, dtypes: &[DType], shapes: &[Shape]) -> bool {
        self.dtypes == dtypes && self.shapes == shapes
    }

    /// Checks what a caller takes the components of a tuple for.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when they are of other dtypes.
    pub(crate) fn check_dtypes(&self, dtypes: &[DType]) -> Result<()> {
        if dtypes == self.dtypes {
            return Ok(());
        }
        let expected = format!("{:?}", self.dtypes);
        Err(wrong("component_types", expected, format!("{dtypes:?}")))
    }

    /// The number of complete tuples.
    pub(crate) fn n_ready(&self) -> usize {
        self.state.lock().ready.len()
    }

    /// The number of tuples that are not complete.
    pub(crate) fn n_incomplete(&self) -> usize {
        self.state.lock().incomplete.len()
    }

    /// Puts a component of tuples in: a row for each key. Those before one that does not fit stay.
    /// Shapes are checked when a tuple is complete; one that has others is dropped.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] for a component that the tuple has, and for a tuple of other shapes; a
    /// status `Cancelled` for a new key when the barrier is closed.
    pub(crate) fn insert(&self, component: i64, keys: &[Bytes], values: &HostTensor) -> Result<()> {
        let known = usize::try_from(component).ok().filter(|&index| index < self.dtypes.len());
        let absent = || {
            let expected = format!("below {}", self.dtypes.len());
            wrong("component_index", expected, component)
        };
        let index = known.ok_or_else(absent)?;
        values.check(self.dtypes[index])?;
        if values.shape().first() != Some(&keys.len()) {
            return Err(wrong("values", format!("{} rows", keys.len()), values.shape()));
        }
        let mut state = self.state.lock();
        let mut has_new = false;
        for (at, key) in keys.iter().enumerate() {
            let value = row(values, at)?;
            has_new |= self.insert_one(&mut state, index, key, value)?;
        }
        if has_new {
            state.number = state.number.saturating_add(1);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Puts a component of one tuple in. Whether the tuple is a new one.
    fn insert_one(
        &self,
        state: &mut State,
        index: usize,
        key: &Bytes,
        value: HostTensor,
    ) -> Result<bool> {
        let is_new = !state.incomplete.contains_key(key);
        if is_new {
            if state.closed {
                return Err(cancelled("the barrier is closed, it takes no new keys"));
            }
            let components = vec![None; self.dtypes.len()];
            let tuple = Incomplete { number: state.number, components };
            let kept = KeptTensors::new(tuple, self.dtypes.len())?;
            state.incomplete.insert(key.clone(), kept);
        }
        let Some(tuple) = state.incomplete.get_mut(key) else {
            return Err(Error::missing("a tuple that was just put in"));
        };
        let slot = &mut tuple.value.components[index];
        if slot.is_some() {
            let key = String::from_utf8_lossy(key).into_owned();
            return Err(wrong("keys", format!("without component {index}"), key));
        }
        *slot = Some(value);
        if tuple.value.components.iter().all(Option::is_some)
            && let Some(tuple) = state.incomplete.remove(key)
        {
            let Incomplete { number, components } = tuple.value;
            let components: Vec<HostTensor> = components.into_iter().flatten().collect();
            let mut pairs = components.iter().zip(&self.shapes);
            if let Some((found, expected)) = pairs.find(|(value, shape)| value.shape() != *shape) {
                return Err(wrong("values", format!("of shape {expected}"), found.shape()));
            }
            let n_tensors = components.len();
            let complete = Complete { number, key: key.clone(), components };
            let index = state.ready.partition_point(|other| other.value.number <= number);
            state.ready.insert(index, KeptTensors::new(complete, n_tensors)?);
        }
        Ok(is_new)
    }

    /// Takes `n` complete tuples out, waiting for them; with `fewer` what there is once the
    /// barrier is closed.
    ///
    /// # Errors
    ///
    /// A status `OutOfRange` when the barrier is closed and has too few; [`IrError::Argument`] when
    /// the number is negative or the tuples would be too large.
    pub(crate) fn take(&self, context: &Context, n: i32, fewer: bool) -> Result<TakenTuples> {
        let n = usize::try_from(n).map_err(|_| wrong("num_elements", "not negative", n))?;
        let mut state = self.state.lock();
        loop {
            let wanted = match state.closed {
                true => self.still_wanted(&state, n, fewer)?,
                false => n,
            };
            if state.ready.len() >= wanted {
                let taken: Vec<Complete> =
                    state.ready.drain(..wanted).map(|tuple| tuple.value).collect();
                drop(state);
                return self.stack(context, &taken);
            }
            wait(&self.changed, &mut state)?;
        }
    }

    /// The number of tuples that a closed barrier returns to a caller that asks for `n`.
    fn still_wanted(&self, state: &State, n: usize, fewer: bool) -> Result<usize> {
        let (wanted, available) = match fewer {
            true => (n.min(state.ready.len()), state.ready.len()),
            false => (n, state.ready.len() + state.incomplete.len()),
        };
        if wanted.max(1) > available {
            let message = format!("the barrier is closed: it has {available} tuples and not {n}");
            return Err(Error::Status { code: Code::OutOfRange, message });
        }
        Ok(wanted)
    }

    fn stack(&self, context: &Context, taken: &[Complete]) -> Result<TakenTuples> {
        let component = |index: usize| {
            let parts: Vec<RowRun<'_>> =
                taken.iter().map(|tuple| RowRun::Tensor(&tuple.components[index])).collect();
            let shape = stacked(taken.len(), &self.shapes[index])?;
            join(context, self.dtypes[index], shape, &parts)
        };
        Ok(TakenTuples {
            numbers: taken.iter().map(|tuple| tuple.number).collect(),
            keys: taken.iter().map(|tuple| tuple.key.clone()).collect(),
            components: (0..self.dtypes.len()).map(component).collect::<Result<_>>()?,
        })
    }

    /// Takes no new keys any more; with `cancel`, forgets the tuples that are not complete.
    ///
    /// # Errors
    ///
    /// A status `Cancelled` when it was closed before.
    pub(crate) fn close(&self, cancel: bool) -> Result<()> {
        let mut state = self.state.lock();
        if state.closed && (!cancel || state.cancelled) {
            return Err(cancelled("the barrier was closed before"));
        }
        state.closed = true;
        if cancel {
            state.cancelled = true;
            state.incomplete.clear();
        }
        self.changed.notify_all();
        Ok(())
    }
}

impl Resource for Barrier {
    fn kind(&self) -> &'static str {
        "a barrier"
    }
}

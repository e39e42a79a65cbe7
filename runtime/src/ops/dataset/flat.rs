//! Data sets of the elements of data sets that a function makes.

use super::{
    Cardinality, Dataset, DatasetSource, RoundLimit, Stream, function::ElementFunction, map,
};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall};
use ferroflow_ir::Error as IrError;

/// All elements of the data set that a function makes of each element.
#[derive(Debug)]
struct FlatMap {
    input: Dataset,
    function: ElementFunction,
}

impl DatasetSource for FlatMap {
    fn stream(&self) -> Stream {
        let (mut input, function) = (self.input.stream(), self.function.clone());
        let mut current: Option<Stream> = None;
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            loop {
                if let Some(stream) = &mut current {
                    if let Some(element) = stream.next(scope)? {
                        return Ok(Some(element));
                    }
                    current = None;
                }
                rounds.count()?;
                let Some(element) = input.next(scope)? else { return Ok(None) };
                current = Some(function.stream(scope, element)?);
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// Blocks of elements of several data sets in turn, each made of an element.
#[derive(Debug)]
struct Interleave {
    input: Dataset,
    function: ElementFunction,
    cycle: usize,
    block: u64,
}

/// The data sets that have their turns.
struct Turns {
    /// By turn; nothing where a data set has ended.
    open: Vec<Option<Stream>>,
    /// The number of turns.
    cycle: usize,
    at: usize,
    /// Elements of this turn that are done.
    done: u64,
    /// The end of the input is reached.
    ended: bool,
}

impl Turns {
    fn advance(&mut self) {
        (self.at, self.done) = ((self.at + 1) % self.cycle, 0);
    }

    /// Whether all data sets have ended.
    fn is_over(&self) -> bool {
        self.ended && self.open.iter().all(Option::is_none)
    }

    fn open(&mut self, stream: Stream) {
        if self.open.len() <= self.at {
            self.open.resize_with(self.at + 1, || None);
        }
        self.open[self.at] = Some(stream);
    }
}

impl DatasetSource for Interleave {
    fn stream(&self) -> Stream {
        let (mut input, function, block) = (self.input.stream(), self.function.clone(), self.block);
        let mut turns = Turns { open: Vec::new(), cycle: self.cycle, at: 0, done: 0, ended: false };
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            loop {
                let at = turns.at;
                if let Some(Some(stream)) = turns.open.get_mut(at) {
                    let Some(element) = stream.next(scope)? else {
                        turns.open[at] = None;
                        turns.advance();
                        continue;
                    };
                    turns.done += 1;
                    if turns.done == block {
                        turns.advance();
                    }
                    return Ok(Some(element));
                }
                if turns.is_over() {
                    return Ok(None);
                }
                if turns.ended {
                    // Turns that never had a data set are passed all at once.
                    if at >= turns.open.len() {
                        (turns.at, turns.done) = (0, 0);
                    } else {
                        turns.advance();
                    }
                    continue;
                }
                rounds.count()?;
                match input.next(scope)? {
                    Some(element) => turns.open(function.stream(scope, element)?),
                    None => turns.ended = true,
                }
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

pub(super) fn flat_map(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (input, function) = (call.input_dataset(0)?, map::function(call, "f")?);
    call.dataset(FlatMap { input, function })
}

/// The number of turns where TensorFlow takes the number of processors.
const AUTOMATIC_CYCLE: usize = 16;

pub(super) fn interleave(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (input, function) = (call.input_dataset(0)?, map::function(call, "f")?);
    let others = 1 + map::n_types(call, "Targuments")?;
    let cycle_length = call.integer_named(others, "cycle_length")?;
    let cycle = match cycle_length {
        -1 => AUTOMATIC_CYCLE,
        n => usize::try_from(n).unwrap_or(0),
    };
    let block = u64::try_from(call.integer_named(others + 1, "block_length")?).unwrap_or(0);
    let limit = if cycle_length == -1 { i64::MAX } else { cycle_length };
    call.check_parallel_calls(call.inputs.len() - 1, limit)?;
    if cycle == 0 || block == 0 {
        let (expected, found) = ("greater than 0", format!("{cycle} and {block}"));
        let argument = "cycle_length and block_length";
        return Err(IrError::argument(call.op.name, argument, expected, found).into());
    }
    call.dataset(Interleave { input, function, cycle, block })
}

//! Data sets of the elements of another in random order.

use super::{Cardinality, Components, Dataset, DatasetSource, KeptBytes, Stream, iterator::Dummy};
use crate::{
    error::Result,
    execute::Results,
    generator::unforeseen,
    ops::{RuntimeCall, one},
    resource::{Resource, ResourceHandle},
};
use ferroflow_kernels::philox::{Philox, Words};
use parking_lot::Mutex;
use std::{any::Any, collections::VecDeque, sync::Arc};

/// A source of seeds, one pair for each run over a data set.
///
/// Source: `SeedGenerator` in TensorFlow's `random_seed_ops.cc`.
#[derive(Debug)]
struct Seeds {
    seed: [u64; 2],
    /// The words that the next seeds are made of; none where all runs have the same seeds.
    words: Option<Mutex<Words>>,
}

impl Resource for Seeds {
    fn kind(&self) -> &'static str {
        "a generator of seeds"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

fn words(seed: [u64; 2]) -> Words {
    Words::new(Philox::new(seed[0], u128::from(seed[1]) << 64))
}

impl Seeds {
    fn new(seed: [u64; 2], each_new: bool) -> Seeds {
        Seeds { seed, words: each_new.then(|| Mutex::new(words(seed))) }
    }

    /// The seeds of a run.
    fn next(&self) -> [u64; 2] {
        let Some(words) = &self.words else { return self.seed };
        let mut words = words.lock();
        [words.next_word().into(), words.next_word().into()]
    }
}

#[derive(Debug)]
struct Shuffle {
    input: Dataset,
    /// The number of elements to choose from.
    size: usize,
    seeds: Arc<Seeds>,
}

impl DatasetSource for Shuffle {
    /// Source of the order: `ShuffleDatasetOpBase` in TensorFlow's `shuffle_dataset_op.cc`. The first
    /// element takes the place of the one that is drawn.
    fn stream(&self) -> Stream {
        let (mut input, size) = (Some(self.input.stream()), self.size);
        let (mut words, mut buffer) = (words(self.seeds.next()), VecDeque::<Components>::new());
        let mut kept = KeptBytes::default();
        Stream::new(move |scope| {
            while buffer.len() < size
                && let Some(stream) = &mut input
            {
                match stream.next(scope)? {
                    Some(element) => {
                        kept.add(scope, &element)?;
                        buffer.push_back(element);
                    }
                    None => input = None,
                }
            }
            if buffer.is_empty() {
                return Ok(None);
            }
            let drawn = words.next_word() as usize % buffer.len();
            buffer.swap(0, drawn);
            let element = buffer.pop_front();
            kept.remove(element.as_deref().unwrap_or_default());
            Ok(element)
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

/// The seeds in two inputs; others than 0, which stands for any.
fn seed(call: &RuntimeCall<'_>, first: usize) -> Result<[u64; 2]> {
    let seed = [call.integer(first)? as u64, call.integer(first + 1)? as u64];
    Ok(if seed == [0, 0] { [unforeseen(), unforeseen()] } else { seed })
}

/// The generator of seeds in an input of a call, or one for its own seeds.
fn seeds(call: &RuntimeCall<'_>) -> Result<Arc<Seeds>> {
    let each_new = call.attrs.bool("reshuffle_each_iteration")?;
    if call.inputs.len() > 4 && call.resource::<Dummy>(4, "no generator").is_err() {
        return call.resource(4, "a generator of seeds");
    }
    Ok(Arc::new(Seeds::new(seed(call, 2)?, each_new)))
}

pub(super) fn shuffle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    // A buffer without a size holds everything.
    let size = match call.integer_named(1, "buffer_size")? {
        -1 => usize::MAX,
        _ => call.count(1, "buffer_size")?,
    };
    let (input, seeds) = (call.input_dataset(0)?, seeds(call)?);
    call.dataset(Shuffle { input, size, seeds })
}

pub(super) fn anonymous_generator(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let seeds = Seeds::new(seed(call, 0)?, call.host(2)?.as_bool()?);
    let deleter = call.op.outputs.len() > 1;
    let handle = ResourceHandle::owning("", Arc::new(seeds)).to_tensor();
    let mut results = one(handle)?;
    if deleter {
        results.push(super::iterator::deleter());
    }
    Ok(results)
}

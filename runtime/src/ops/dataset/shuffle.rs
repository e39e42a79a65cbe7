//! Data sets of the elements of another in random order, and of random numbers.

use super::{
    Cardinality, Components, Dataset, DatasetSource, KeptBytes, RoundLimit, Stream, iterator::Dummy,
};
use crate::{
    eager_tensor::Results,
    error::Result,
    ops::{RuntimeCall, one},
    resource::{Resource, ResourceHandle},
    scope::Scope,
    sync::Mutex,
};
use ferroflow_ir::{HostTensor, entropy::unforeseen};
use ferroflow_kernels::philox::{Philox, Words};
use std::{collections::VecDeque, sync::Arc};

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
}

pub(super) fn words(seed: [u64; 2]) -> Words {
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
    /// The number of times that the elements come; nothing for ever.
    epochs: Option<u64>,
}

/// Elements that wait to be drawn, by epoch. Those of an epoch come before those of the next.
#[derive(Default)]
struct Waiting {
    epochs: VecDeque<VecDeque<Components>>,
    n: usize,
    kept: KeptBytes,
}

impl Waiting {
    fn push(&mut self, scope: Scope<'_>, element: Components) -> Result<()> {
        self.kept.add(scope, &element)?;
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.push_back(element);
            self.n += 1;
        }
        Ok(())
    }

    /// Takes an element of the first epoch, in whose position the first one comes. Every epoch has
    /// words of its own.
    fn draw(&mut self, words: &mut Words, seeds: &Seeds) -> Option<Components> {
        if self.n == 0 {
            return None;
        }
        while self.epochs.front().is_some_and(VecDeque::is_empty) {
            self.epochs.pop_front();
            *words = self::words(seeds.next());
        }
        let epoch = self.epochs.front_mut()?;
        let drawn = words.next_word() as usize % epoch.len();
        epoch.swap(0, drawn);
        let element = epoch.pop_front()?;
        self.n -= 1;
        self.kept.remove(&element);
        Some(element)
    }
}

impl DatasetSource for Shuffle {
    /// Source of the order: `ShuffleDatasetOpBase` in TensorFlow's `shuffle_dataset_op.cc`. The
    /// first element takes the place of the one that is drawn.
    fn stream(&self) -> Stream {
        let (source, size, epochs) = (self.input.clone(), self.size, self.epochs);
        let (seeds, mut waiting) = (self.seeds.clone(), Waiting::default());
        let mut words = words(seeds.next());
        let (mut input, mut epoch, mut is_empty) = (None, 0, true);
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            while waiting.n < size {
                let Some(stream) = &mut input else {
                    // An epoch without elements is followed by none.
                    if epochs.is_some_and(|n| epoch == n) || (epoch > 0 && is_empty) {
                        break;
                    }
                    rounds.count()?;
                    epoch += 1;
                    waiting.epochs.push_back(VecDeque::new());
                    input = Some(source.stream());
                    continue;
                };
                match Stream::next(stream, scope)? {
                    Some(element) => {
                        is_empty = false;
                        waiting.push(scope, element)?;
                    }
                    None => input = None,
                }
            }
            Ok(waiting.draw(&mut words, &seeds))
        })
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.epochs) {
            (Cardinality::Known(0), _) | (_, Some(0)) => Cardinality::Known(0),
            (Cardinality::Unknown, _) => Cardinality::Unknown,
            (own, Some(n)) => own.map(|own| own.saturating_mul(n)),
            (_, None) => Cardinality::Infinite,
        }
    }
}

/// The words of a generator, as numbers without end.
#[derive(Debug)]
struct RandomWords {
    seeds: Arc<Seeds>,
}

impl DatasetSource for RandomWords {
    fn stream(&self) -> Stream {
        let mut words = words(self.seeds.next());
        Stream::new(move |_| {
            let number = i64::from(words.next_word());
            Ok(Some(vec![HostTensor::scalar(number)]))
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Infinite
    }
}

/// The seeds in two inputs; others than 0, which stands for any.
pub(super) fn seed(call: &RuntimeCall<'_>, first: usize) -> Result<[u64; 2]> {
    let seed = [call.integer(first)? as u64, call.integer(first + 1)? as u64];
    Ok(if seed == [0, 0] { [unforeseen(), unforeseen()] } else { seed })
}

/// The generator of seeds in input `index` of a call, if it has one.
fn generator(call: &RuntimeCall<'_>, index: usize) -> Result<Option<Arc<Seeds>>> {
    if call.inputs.len() <= index || call.resource::<Dummy>(index, "no generator").is_ok() {
        return Ok(None);
    }
    call.resource(index, "a generator of seeds").map(Some)
}

/// The generator of seeds in input `index` of a call, or one for the seeds in inputs `first` and
/// the next, which are others for each run if the attribute says so.
fn seeds(call: &RuntimeCall<'_>, first: usize, index: usize, attr: &str) -> Result<Arc<Seeds>> {
    if let Some(seeds) = generator(call, index)? {
        return Ok(seeds);
    }
    let each_new = call.attrs.bool(attr).unwrap_or(false);
    Ok(Arc::new(Seeds::new(seed(call, first)?, each_new)))
}

/// The number of elements to choose from. A buffer without a size holds everything.
fn size(call: &RuntimeCall<'_>) -> Result<usize> {
    match call.integer_named(1, "buffer_size")? {
        -1 => Ok(usize::MAX),
        _ => call.count(1, "buffer_size"),
    }
}

pub(super) fn shuffle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let seeds = seeds(call, 2, 4, "reshuffle_each_iteration")?;
    let (input, size) = (call.input_dataset(0)?, size(call)?);
    call.dataset(Shuffle { input, size, seeds, epochs: Some(1) })
}

/// `ShuffleDatasetV2`, whose seeds are those of a generator.
pub(super) fn shuffle_by_generator(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let seeds = match generator(call, 2)? {
        Some(seeds) => seeds,
        None => Arc::new(Seeds::new([unforeseen(), unforeseen()], true)),
    };
    let (input, size) = (call.input_dataset(0)?, size(call)?);
    call.dataset(Shuffle { input, size, seeds, epochs: Some(1) })
}

pub(super) fn shuffle_and_repeat(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let seeds = seeds(call, 2, 5, "reshuffle_each_iteration")?;
    let epochs = match call.integer_named(4, "count")? {
        -1 => None,
        count => Some(u64::try_from(count).unwrap_or(0)),
    };
    let (input, size) = (call.input_dataset(0)?, size(call)?);
    call.dataset(Shuffle { input, size, seeds, epochs })
}

pub(super) fn random(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let seeds = seeds(call, 0, 2, "rerandomize_each_iteration")?;
    call.dataset(RandomWords { seeds })
}

pub(super) fn anonymous_generator(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reshuffles = match call.inputs.get(2) {
        Some(input) => input.host()?.as_bool()?,
        None => true,
    };
    let seeds = Seeds::new(seed(call, 0)?, reshuffles);
    let deleter = call.op.outputs.len() > 1;
    let handle = ResourceHandle::owning("", Arc::new(seeds)).to_tensor();
    let mut results = one(handle)?;
    if deleter {
        results.push(super::iterator::deleter());
    }
    Ok(results)
}

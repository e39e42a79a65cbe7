//! Random generators of hidden state: the state of ops such as `RandomUniform`.
//!
//! Each node of a function has a generator of its own, as has each pair of seeds in eager code. It
//! begins where the seeds say, and each call goes on where the last one ended.

use crate::{origin::NodeOrigin, sync::Mutex};
use ferroflow_ir::entropy::unforeseen;
use ferroflow_kernels::philox::Philox;
use std::{collections::HashMap, sync::Arc};

/// The generators of one model, or of eager code.
#[derive(Debug, Default)]
pub(crate) struct Generators(Mutex<HashMap<GeneratorOwner, Philox>>);

/// Whose generator it is: function and node, the op, and its seeds.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct GeneratorOwner {
    place: Option<(Arc<str>, Box<str>)>,
    op: &'static str,
    seeds: [i64; 2],
}

impl GeneratorOwner {
    /// The owner of the generator of a call: of a node of a function, or of eager code.
    pub(crate) fn new(
        origin: Option<&NodeOrigin>,
        op: &'static str,
        seeds: [i64; 2],
    ) -> GeneratorOwner {
        let owner_node = origin.map(|origin| (origin.function.clone(), origin.node.clone()));
        GeneratorOwner { place: owner_node, op, seeds }
    }
}

impl Generators {
    /// Sets `blocks` aside for a call; returns the position where they begin.
    pub(crate) fn reserve(&self, owner: GeneratorOwner, blocks: u128) -> Philox {
        let seeds = owner.seeds;
        let mut generators = self.0.lock();
        let generator = generators.entry(owner).or_insert_with(|| seeded(seeds));
        let owner_node = *generator;
        *generator = generator.skipped(blocks);
        owner_node
    }
}

/// The generator of two seeds; if both are 0, one that cannot be predicted.
///
/// Source: `GuardedPhiloxRandom::Init` in TensorFlow's `guarded_philox_random.cc`.
pub(crate) fn seeded(seeds: [i64; 2]) -> Philox {
    let [key, counter] = match seeds {
        [0, 0] => [unforeseen(), unforeseen()],
        [first, second] => [first as u64, second as u64],
    };
    Philox::new(key, u128::from(counter) << 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(seeds: [i64; 2]) -> GeneratorOwner {
        GeneratorOwner::new(None, "RandomUniform", seeds)
    }

    #[test]
    fn calls_go_on_where_the_last_one_ended() {
        let generators = Generators::default();
        let first = generators.reserve(owner([1, 2]), 10);
        assert_eq!((first.key(), first.counter()), (1, [0, 2]));
        assert_eq!(generators.reserve(owner([1, 2]), 10), first.skipped(10));
        assert_eq!(generators.reserve(owner([1, 3]), 10).counter(), [0, 3]);
    }

    #[test]
    fn without_seeds_nothing_repeats() {
        let generators = [(); 2].map(|()| Generators::default().reserve(owner([0, 0]), 1));
        assert_ne!(generators[0], generators[1]);
    }
}

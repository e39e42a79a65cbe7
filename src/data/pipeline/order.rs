//! The order of items: shuffled, and of several pipelines in turn.

use super::{DataPipeline, PipelineItems};
use crate::data::{Result, random::SplitMix};
use std::{collections::VecDeque, sync::Arc};

impl<T: Send + 'static> DataPipeline<T> {
    /// The items in an order that seed and epoch decide: each is drawn from the next `buffer` ones.
    /// With a buffer as long as an epoch all orders are possible.
    pub fn shuffle(&self, buffer: usize, seed: u64) -> DataPipeline<T> {
        self.then(self.len(), move |items, epoch| Shuffled {
            items,
            waiting: Vec::new(),
            buffer: buffer.max(1),
            random: SplitMix::new(seed, epoch),
        })
    }

    /// The items of the pipelines that `f` makes of items here: `block` items of each of `cycle`
    /// pipelines in turn. One that ends makes room for that of the next item.
    pub fn interleave<U: Send + 'static>(
        &self,
        cycle: usize,
        block: usize,
        f: impl Fn(T) -> DataPipeline<U> + Send + Sync + 'static,
    ) -> DataPipeline<U> {
        let f = Arc::new(f);
        self.then(None, move |items, epoch| {
            let f = f.clone();
            Interleaved {
                sources: Box::new(items.map(move |item| Ok(f(item?).epoch(epoch)))),
                open: VecDeque::new(),
                cycle: cycle.max(1),
                block: block.max(1),
                taken: 0,
            }
        })
    }

    /// The items of the pipelines that `f` makes of items here, one pipeline after the other.
    pub fn flat_map<U: Send + 'static>(
        &self,
        f: impl Fn(T) -> DataPipeline<U> + Send + Sync + 'static,
    ) -> DataPipeline<U> {
        self.interleave(1, 1, f)
    }
}

struct Shuffled<T> {
    items: PipelineItems<T>,
    waiting: Vec<T>,
    buffer: usize,
    random: SplitMix,
}

impl<T> Iterator for Shuffled<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        while self.waiting.len() < self.buffer {
            match self.items.next() {
                Some(Ok(item)) => self.waiting.push(item),
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            }
        }
        let n = self.waiting.len();
        (n > 0).then(|| Ok(self.waiting.swap_remove(self.random.below(n))))
    }
}

struct Interleaved<U> {
    sources: Box<dyn Iterator<Item = Result<PipelineItems<U>>> + Send>,
    /// Those whose turn it is, the present one first.
    open: VecDeque<PipelineItems<U>>,
    cycle: usize,
    block: usize,
    /// Items of the present one in this turn.
    taken: usize,
}

impl<U: Send + 'static> Iterator for Interleaved<U> {
    type Item = Result<U>;

    fn next(&mut self) -> Option<Result<U>> {
        loop {
            while self.open.len() < self.cycle
                && let Some(source) = self.sources.next()
            {
                match source {
                    Ok(items) => self.open.push_back(items),
                    Err(error) => return Some(Err(error)),
                }
            }
            if self.taken == self.block {
                self.taken = 0;
                self.open.rotate_left(1);
            }
            match self.open.front_mut()?.next() {
                Some(item) => {
                    self.taken += 1;
                    return Some(item);
                }
                None => {
                    self.taken = 0;
                    self.replace_first();
                }
            }
        }
    }
}

impl<U: Send + 'static> Interleaved<U> {
    /// Replaces the one that has ended by the next source, and passes the turn to the one
    /// after it.
    fn replace_first(&mut self) {
        self.open.pop_front();
        match self.sources.next() {
            Some(Ok(items)) => self.open.push_back(items),
            Some(Err(error)) => self.open.push_front(Box::new(std::iter::once(Err(error)))),
            None => {}
        }
    }
}

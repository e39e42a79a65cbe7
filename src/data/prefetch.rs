//! Preparing what comes next while the program computes.

use std::{
    sync::mpsc::{Receiver, sync_channel},
    thread::{self, JoinHandle},
};

/// The items of an iterator, up to `n` of which are prepared ahead on a thread of their own.
///
/// A panic of the iterator is one of whoever asks for the next item. Dropping this waits for the
/// item that is being prepared.
pub fn prefetch<I>(items: I, n: usize) -> Prefetch<I::Item>
where
    I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static>,
{
    let items = items.into_iter();
    let (sender, receiver) = sync_channel(n);
    let thread = thread::spawn(move || {
        for item in items {
            if sender.send(item).is_err() {
                return; // Nobody wants more.
            }
        }
    });
    Prefetch { receiver: Some(receiver), thread: Some(thread) }
}

/// Items that are prepared ahead.
#[derive(Debug)]
pub struct Prefetch<T> {
    receiver: Option<Receiver<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T> Iterator for Prefetch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let next = self.receiver.as_ref()?.recv().ok();
        if next.is_none() {
            self.receiver = None;
            if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                std::panic::resume_unwind(panic);
            }
        }
        next
    }
}

impl<T> Drop for Prefetch<T> {
    fn drop(&mut self) {
        self.receiver = None;
        if let Some(thread) = self.thread.take() {
            // A panic that nobody asked for any more is nobody's.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_order_and_may_be_left() {
        assert_eq!(prefetch(0..5, 0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(prefetch(0.., 3).take(2).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    #[should_panic(expected = "the third")]
    fn panics_are_passed_on() {
        prefetch((1..).inspect(|&number| assert!(number < 3, "the third")), 1).for_each(drop);
    }
}

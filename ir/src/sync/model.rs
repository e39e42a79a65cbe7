//! Locks of the model checker with the methods of `parking_lot`: none is poisoned.

use shuttle::{
    sync as checked,
    thread::{self, ThreadId},
};
use std::{
    ops::{Deref, DerefMut},
    sync::{PoisonError, TryLockError},
    time::Duration,
};

/// A mutex.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(checked::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex that no thread holds.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(checked::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { mutex: self, held: Some(held) }
    }

    /// Takes the mutex, unless another thread holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { mutex: self, held: Some(held) })
    }
}

/// A mutex that is held.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Absent while the thread waits for a condition.
    held: Option<checked::MutexGuard<'a, T>>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_deref().expect("the thread does not wait")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_deref_mut().expect("the thread does not wait")
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(checked::Condvar);

impl Condvar {
    /// A condition that no thread waits for.
    pub const fn new() -> Condvar {
        Condvar(checked::Condvar::new())
    }

    /// Waits for a notification.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("the thread does not wait");
        guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets other threads run, as a wait does whose time is over.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: Duration) {
        guard.held = None;
        thread::yield_now();
        guard.held = guard.mutex.lock().held.take();
    }

    /// Wakes a thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A mutex that the thread that holds it may take again.
#[derive(Debug, Default)]
pub struct ReentrantMutex<T> {
    owner: Mutex<Option<Owner>>,
    released: Condvar,
    value: T,
}

/// The thread that holds a mutex, and how many times.
#[derive(Debug)]
struct Owner {
    thread: ThreadId,
    depth: usize,
}

impl<T> ReentrantMutex<T> {
    /// A mutex that no thread holds.
    pub const fn new(value: T) -> ReentrantMutex<T> {
        ReentrantMutex { owner: Mutex::new(None), released: Condvar::new(), value }
    }

    /// Waits for the mutex, unless this thread holds it.
    pub fn lock(&self) -> ReentrantMutexGuard<'_, T> {
        let this = thread::current().id();
        let mut owner = self.owner.lock();
        loop {
            match &mut *owner {
                Some(owner) if owner.thread == this => owner.depth += 1,
                Some(_) => {
                    self.released.wait(&mut owner);
                    continue;
                }
                None => *owner = Some(Owner { thread: this, depth: 1 }),
            }
            return ReentrantMutexGuard(self);
        }
    }
}

/// A reentrant mutex that is held.
#[derive(Debug)]
pub struct ReentrantMutexGuard<'a, T>(&'a ReentrantMutex<T>);

impl<T> Deref for ReentrantMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> Drop for ReentrantMutexGuard<'_, T> {
    fn drop(&mut self) {
        let mut owner = self.0.owner.lock();
        let depth = owner.as_mut().map_or(0, |owner| {
            owner.depth -= 1;
            owner.depth
        });
        if depth == 0 {
            *owner = None;
            self.0.released.notify_one();
        }
    }
}

/// A lock of many readers or one writer.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(checked::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock that no thread holds.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(checked::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until no thread writes.
    pub fn read(&self) -> checked::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread reads or writes.
    pub fn write(&self) -> checked::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

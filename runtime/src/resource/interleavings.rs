//! Models of resources: made once, found while they live, dropped where no lock is held.

use super::*;
use crate::sync::atomic::{AtomicUsize, Ordering};
use ferroflow_ir::sync::explore;
use shuttle::thread;

/// A resource that looks for others when it is dropped, as one that owns a model may.
struct Watcher {
    manager: Weak<ResourceManager>,
    n_dropped: Arc<AtomicUsize>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(manager) = self.manager.upgrade() {
            manager.entries();
        }
        self.n_dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Resource for Watcher {
    fn kind(&self) -> &'static str {
        "a watcher"
    }
}

#[derive(Default, Clone)]
struct Watched {
    manager: Arc<ResourceManager>,
    n_made: Arc<AtomicUsize>,
    n_dropped: Arc<AtomicUsize>,
}

impl Watched {
    fn make(&self) -> Arc<dyn Resource> {
        self.n_made.fetch_add(1, Ordering::SeqCst);
        let (manager, n_dropped) = (Arc::downgrade(&self.manager), self.n_dropped.clone());
        Arc::new(Watcher { manager, n_dropped })
    }

    fn find_or_create(&self) -> Arc<dyn Resource> {
        let create = || {
            thread::yield_now();
            Ok(self.make())
        };
        self.manager.find_or_create("", "r", create).expect("it is made")
    }

    fn n_living(&self) -> usize {
        self.n_made.load(Ordering::SeqCst) - self.n_dropped.load(Ordering::SeqCst)
    }
}

#[test]
fn a_resource_of_one_name_is_made_once() {
    explore(2000, || {
        let watched = Watched::default();
        let find = || watched.find_or_create();
        let found = thread::scope(|scope| {
            [(); 3].map(|()| scope.spawn(find)).map(|thread| thread.join().expect("it ends"))
        });
        assert!(found.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
        assert_eq!(watched.n_made.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn resources_live_as_long_as_their_owners() {
    explore(2000, || {
        let watched = Watched::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                let owned = watched.find_or_create();
                let known = ResourceHandle::knowing("r", &owned);
                assert!(known.resource().is_ok());
                let was_there = watched.manager.remove(&owned);
                assert!(!watched.manager.remove(&owned), "it was there twice");
                drop(owned);
                // No entry has it any more, and no other thread takes it out of this one.
                assert!(!was_there || known.resource().is_err());
            });
            for _ in 0..2 {
                scope.spawn(|| watched.manager.insert("", "r", watched.make()));
            }
        });
        let n_entries = watched.manager.entries().len();
        assert_eq!(watched.n_living(), n_entries);
        let Watched { manager, n_made, n_dropped } = watched;
        drop(manager);
        assert_eq!(n_made.load(Ordering::SeqCst), n_dropped.load(Ordering::SeqCst));
    });
}

#[test]
fn living_resources_have_numbers_of_their_own() {
    explore(2000, || {
        let watched = Watched::default();
        let shared = watched.make();
        let numbers = || {
            let own = watched.make();
            let numbers = [&shared, &own].map(|resource| watched.manager.number_of(resource));
            let found = watched.manager.numbered(numbers[1]).expect("it lives");
            assert!(Arc::ptr_eq(&found, &own));
            (numbers, own)
        };
        let [(a, own), (b, other)] = thread::scope(|scope| {
            [(); 2].map(|()| scope.spawn(numbers)).map(|thread| thread.join().expect("it ends"))
        });
        assert_eq!(a[0], b[0]);
        assert!(a[0] != a[1] && b[0] != b[1] && a[1] != b[1]);
        drop((own, other));
        assert!(watched.manager.numbered(a[1]).is_none());
    });
}

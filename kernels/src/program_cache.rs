//! Compiled programs of a device by their text. The cache is bounded: executables keep the programs
//! that they run, so that one that is forgotten here is only compiled again when it is next asked for.

use parking_lot::Mutex;
use std::collections::HashMap;

/// The most programs of a device that are kept for those who ask next.
const CAPACITY: usize = 1024;

/// Programs of one device, `P` being cheap to clone.
#[derive(Debug)]
pub(crate) struct ProgramCache<P>(Mutex<Entries<P>>);

#[derive(Debug)]
struct Entries<P> {
    by_text: HashMap<Box<str>, Entry<P>>,
    n_uses: u64,
}

#[derive(Debug)]
struct Entry<P> {
    program: P,
    last_use: u64,
}

impl<P> Default for ProgramCache<P> {
    fn default() -> ProgramCache<P> {
        ProgramCache(Mutex::new(Entries { by_text: HashMap::new(), n_uses: 0 }))
    }
}

impl<P: Clone> ProgramCache<P> {
    /// The program of a text, if it is kept.
    pub(crate) fn get(&self, text: &str) -> Option<P> {
        let mut entries = self.0.lock();
        entries.n_uses += 1;
        let now = entries.n_uses;
        let entry = entries.by_text.get_mut(text)?;
        entry.last_use = now;
        Some(entry.program.clone())
    }

    /// Keeps a program. Where there are too many, the half that was not used for longest goes.
    pub(crate) fn insert(&self, text: &str, program: P) {
        let mut entries = self.0.lock();
        if entries.by_text.len() >= CAPACITY {
            let mut uses: Vec<u64> = entries.by_text.values().map(|entry| entry.last_use).collect();
            let (_, &mut median, _) = uses.select_nth_unstable(CAPACITY / 2);
            entries.by_text.retain(|_, entry| entry.last_use >= median);
        }
        entries.n_uses += 1;
        let entry = Entry { program, last_use: entries.n_uses };
        entries.by_text.insert(text.into(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_go() {
        let cache = ProgramCache::default();
        let text = |number: usize| format!("program {number}");
        for number in 0..4 * CAPACITY {
            cache.insert(&text(number), number);
            assert_eq!(cache.get(&text(0)), Some(0), "it is used all the time");
        }
        let n_kept = (0..4 * CAPACITY).filter(|&number| cache.get(&text(number)).is_some()).count();
        assert!((CAPACITY / 2..=CAPACITY).contains(&n_kept), "{n_kept}");
        assert_eq!(cache.get(&text(1)), None);
    }
}

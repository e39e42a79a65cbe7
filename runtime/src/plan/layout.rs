//! When values live, and where in the arena.

use ferroflow_ir::memory::ALIGNMENT;

/// Positions of actions, and the scopes they are in: the whole program, the loops, the arms of
/// branches.
#[derive(Debug)]
pub(super) struct Timeline {
    scopes: Vec<Scope>,
    scope: usize,
    now: usize,
}

#[derive(Debug)]
struct Scope {
    parent: usize,
    /// The position after its last action.
    end: usize,
}

impl Timeline {
    pub(super) fn new() -> Timeline {
        let root = Scope { parent: 0, end: usize::MAX };
        Timeline { scopes: vec![root], scope: 0, now: 0 }
    }

    /// The scope being planned.
    pub(super) fn scope(&self) -> usize {
        self.scope
    }

    /// The position of the next action.
    pub(super) fn now(&self) -> usize {
        self.now
    }

    /// Gives the next action its position.
    pub(super) fn advance(&mut self) -> usize {
        self.now += 1;
        self.now - 1
    }

    /// What is planned from here on is in a scope of its own.
    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope { parent: self.scope, end: usize::MAX });
        self.scope = self.scopes.len() - 1;
    }

    /// Closes the scope; the position of its end is that of the action that contains it.
    pub(super) fn leave(&mut self) {
        let scope = &mut self.scopes[self.scope];
        scope.end = self.now;
        self.scope = scope.parent;
    }

    /// A position in scope `from` as the scope `to` around it sees it: what happens in a loop
    /// happens until the loop ends.
    fn project(&self, from: usize, position: usize, to: usize) -> usize {
        let (mut scope, mut position) = (from, position);
        while scope != to && scope != 0 {
            position = self.scopes[scope].end;
            scope = self.scopes[scope].parent;
        }
        position
    }
}

impl Timeline {
    /// Whether a scope is `outer` or one in it.
    pub(super) fn is_inside(&self, scope: usize, outer: usize) -> bool {
        let mut scope = scope;
        while scope != outer && scope != 0 {
            scope = self.scopes[scope].parent;
        }
        scope == outer
    }
}

/// The lifetimes of buffers, or of slots, by number.
#[derive(Debug, Default)]
pub(super) struct Lifetimes {
    all: Vec<Lifetime>,
    uses: Vec<Use>,
}

#[derive(Debug)]
struct Lifetime {
    scope: usize,
    first: usize,
    last: usize,
}

#[derive(Debug)]
struct Use {
    of: usize,
    scope: usize,
    position: usize,
    read: bool,
}

impl Lifetimes {
    /// A new thing, defined by the next action.
    pub(super) fn define(&mut self, timeline: &Timeline) -> usize {
        let (scope, now) = (timeline.scope, timeline.now);
        self.all.push(Lifetime { scope, first: now, last: now });
        self.all.len() - 1
    }

    /// Notes that the next action reads it.
    pub(super) fn read(&mut self, of: usize, timeline: &Timeline) {
        self.note(of, timeline, true);
    }

    /// Notes that it must last until the next action.
    pub(super) fn keep(&mut self, of: usize, timeline: &Timeline) {
        self.note(of, timeline, false);
    }

    fn note(&mut self, of: usize, timeline: &Timeline, read: bool) {
        self.uses.push(Use { of, scope: timeline.scope, position: timeline.now, read });
    }

    /// Where it is read for the last time within a scope, as that scope sees it.
    pub(super) fn last_read_in(
        &self,
        of: usize,
        scope: usize,
        timeline: &Timeline,
    ) -> Option<usize> {
        let reads = self.uses.iter().filter(|used| used.of == of && used.read);
        let inside = reads.filter(|used| timeline.is_inside(used.scope, scope));
        inside.map(|used| timeline.project(used.scope, used.position, scope)).max()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The scope it was defined in.
    pub(super) fn scope(&self, of: usize) -> usize {
        self.all[of].scope
    }

    /// Where it was used for the last time, as its own scope sees it. Uses count once all scopes
    /// are closed and [`close`](Self::close) was called.
    pub(super) fn last(&self, of: usize) -> usize {
        self.all[of].last
    }

    /// Extends every lifetime over its uses.
    pub(super) fn close(&mut self, timeline: &Timeline) {
        for used in &self.uses {
            let lifetime = &mut self.all[used.of];
            let position = timeline.project(used.scope, used.position, lifetime.scope);
            lifetime.last = lifetime.last.max(position);
        }
    }

    /// Gives each an offset so that things alive at the same time lie apart; gives the offsets and
    /// the bytes needed for all. `bytes` are the sizes.
    pub(super) fn place(&self, bytes: &[usize]) -> (Vec<usize>, usize) {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|&id| self.all[id].first);
        let mut offsets = vec![0; self.all.len()];
        let mut total = 0;
        // What is alive, by offset.
        let mut alive: Vec<usize> = Vec::new();
        for id in order {
            let first = self.all[id].first;
            alive.retain(|&other| self.all[other].last >= first);
            let size = bytes[id].next_multiple_of(ALIGNMENT);
            let mut offset = 0;
            let mut at = alive.len();
            for (index, &other) in alive.iter().enumerate() {
                if offsets[other] >= offset + size {
                    at = index;
                    break;
                }
                offset = offset.max(offsets[other] + bytes[other].next_multiple_of(ALIGNMENT));
            }
            offsets[id] = offset;
            alive.insert(at, id);
            total = total.max(offset + size);
        }
        (offsets, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_alive_together_lie_apart() {
        let mut timeline = Timeline::new();
        let mut lifetimes = Lifetimes::default();
        let a = lifetimes.define(&timeline);
        timeline.advance();
        let b = lifetimes.define(&timeline);
        lifetimes.read(a, &timeline);
        timeline.advance();
        let c = lifetimes.define(&timeline);
        lifetimes.read(b, &timeline);
        timeline.advance();
        lifetimes.close(&timeline);
        let (offsets, total) = lifetimes.place(&[100, 100, 100]);
        assert_eq!((offsets[a], offsets[b], offsets[c], total), (0, 128, 0, 256));
    }

    #[test]
    fn what_a_loop_uses_lives_until_its_end() {
        let mut timeline = Timeline::new();
        let mut lifetimes = Lifetimes::default();
        let outer = lifetimes.define(&timeline);
        timeline.advance();
        timeline.enter();
        lifetimes.read(outer, &timeline);
        timeline.advance();
        timeline.advance();
        timeline.leave();
        let end = timeline.advance();
        lifetimes.close(&timeline);
        assert_eq!(lifetimes.last(outer), end);
    }
}

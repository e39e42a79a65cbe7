//! A binary heap in which equal priorities come out in the order that C++'s standard library
//! returns them: the n best splits of a text are told in that order.

/// Numbers by their priorities, the highest first.
#[derive(Debug, Default)]
pub(super) struct Heap(Vec<(f32, u32)>);

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, priority: f32, number: u32) {
        self.0.push((priority, number));
        self.rise(self.0.len() - 1);
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.pop_with_priority().map(|(_, number)| number)
    }

    pub(super) fn pop_with_priority(&mut self) -> Option<(f32, u32)> {
        let last = self.0.pop()?;
        let Some(&top) = self.0.first() else { return Some(last) };
        // The gap sinks to a leaf along the higher children, and the last one rises from there.
        let (mut gap, n) = (0, self.0.len());
        while 2 * gap + 2 < n {
            let right = 2 * gap + 2;
            let higher = if self.0[right].0 < self.0[right - 1].0 { right - 1 } else { right };
            self.0[gap] = self.0[higher];
            gap = higher;
        }
        if 2 * gap + 2 == n {
            self.0[gap] = self.0[n - 1];
            gap = n - 1;
        }
        self.0[gap] = last;
        self.rise(gap);
        Some(top)
    }

    fn rise(&mut self, mut place: usize) {
        let own = self.0[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.0[parent].0 >= own.0 || own.0.is_nan() {
                break;
            }
            self.0[place] = self.0[parent];
            place = parent;
        }
        self.0[place] = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_comes_first() {
        let mut heap = Heap::default();
        for (number, priority) in [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0].into_iter().enumerate() {
            heap.push(priority, number as u32);
        }
        let order: Vec<u32> = std::iter::from_fn(|| heap.pop()).collect();
        assert_eq!(order[..6], [5, 7, 4, 2, 0, 6]);
        assert_eq!(order.len(), 8);
    }
}

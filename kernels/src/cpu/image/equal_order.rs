//! The order of equal elements in TensorFlow's results.
//!
//! Where a kernel of TensorFlow takes candidates from a `std::priority_queue` or sorts them by `std::sort`,
//! those that compare equal come out in an order that the algorithms of GNU's C++ library give them: a
//! binary heap whose holes sink to the bottom first, and an introsort that leaves 16 elements to an
//! insertion sort. The same steps are taken here.

/// Whether one element comes before another in the order of a comparison.
type Less<T> = fn(&T, &T) -> bool;

/// Elements that are left to the insertion sort.
const FEW: usize = 16;

/// A queue whose largest element comes out first.
pub(super) struct LargestFirst<T> {
    items: Vec<T>,
    less: Less<T>,
}

impl<T: Copy> LargestFirst<T> {
    pub(super) fn new(less: Less<T>) -> LargestFirst<T> {
        LargestFirst { items: Vec::new(), less }
    }

    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
        let hole = self.items.len() - 1;
        rise(&mut self.items, hole, 0, item, self.less);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let Some(&first) = self.items.first() else { return Some(last) };
        sink(&mut self.items, 0, last, self.less);
        Some(first)
    }
}

/// Moves a hole up to where a value belongs.
fn rise<T: Copy>(items: &mut [T], mut hole: usize, top: usize, value: T, less: Less<T>) {
    while hole > top {
        let parent = (hole - 1) / 2;
        if !less(&items[parent], &value) {
            break;
        }
        items[hole] = items[parent];
        hole = parent;
    }
    items[hole] = value;
}

/// Moves a hole to the bottom, and up from there to where a value belongs.
fn sink<T: Copy>(items: &mut [T], top: usize, value: T, less: Less<T>) {
    let mut hole = top;
    while 2 * hole + 2 < items.len() {
        let right = 2 * hole + 2;
        let child = if less(&items[right], &items[right - 1]) { right - 1 } else { right };
        items[hole] = items[child];
        hole = child;
    }
    if 2 * hole + 2 == items.len() {
        items[hole] = items[2 * hole + 1];
        hole = 2 * hole + 1;
    }
    rise(items, hole, top, value, less);
}

/// Sorts elements, the least first.
pub(super) fn sort<T: Copy>(items: &mut [T], less: Less<T>) {
    if items.len() < 2 {
        return;
    }
    partition(items, 2 * items.len().ilog2(), less);
    let few = items.len().min(FEW);
    insertion_sort(&mut items[..few], less);
    for at in few..items.len() {
        insert(items, at, less);
    }
}

/// Splits elements by pivots until few are left together.
fn partition<T: Copy>(mut items: &mut [T], mut depth: u32, less: Less<T>) {
    while items.len() > FEW {
        if depth == 0 {
            return heap_sort(items, less);
        }
        depth -= 1;
        let cut = split(items, less);
        let (before, after) = items.split_at_mut(cut);
        partition(after, depth, less);
        items = before;
    }
}

/// Puts elements before and after the median of three of them; returns where those after it begin.
fn split<T: Copy>(items: &mut [T], less: Less<T>) -> usize {
    let (a, b, c) = (1, items.len() / 2, items.len() - 1);
    let below = |x: usize, y: usize| less(&items[x], &items[y]);
    let median = match below(a, b) {
        true if below(b, c) => b,
        true if below(a, c) => c,
        true => a,
        false if below(a, c) => a,
        false if below(b, c) => c,
        false => b,
    };
    items.swap(0, median);
    let (mut first, mut last) = (1, items.len());
    loop {
        while first < items.len() && less(&items[first], &items[0]) {
            first += 1;
        }
        last -= 1;
        while last > 0 && less(&items[0], &items[last]) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        items.swap(first, last);
        first += 1;
    }
}

fn heap_sort<T: Copy>(items: &mut [T], less: Less<T>) {
    for top in (0..items.len() / 2).rev() {
        sink(items, top, items[top], less);
    }
    for end in (1..items.len()).rev() {
        let value = items[end];
        items[end] = items[0];
        sink(&mut items[..end], 0, value, less);
    }
}

fn insertion_sort<T: Copy>(items: &mut [T], less: Less<T>) {
    for at in 1..items.len() {
        insert(items, at, less);
    }
}

/// Moves an element before those that it is less than, from the end of a sorted part.
fn insert<T: Copy>(items: &mut [T], mut at: usize, less: Less<T>) {
    let value = items[at];
    while at > 0 && less(&value, &items[at - 1]) {
        items[at] = items[at - 1];
        at -= 1;
    }
    items[at] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = (u32, usize);

    fn less(a: &Item, b: &Item) -> bool {
        a.0 < b.0
    }

    /// Numbers that repeat, with their positions.
    fn items(n: usize, values: u32) -> Vec<Item> {
        (0..n).map(|at| ((at as u32).wrapping_mul(2_654_435_761) % values, at)).collect()
    }

    #[test]
    fn all_come_out_in_order() {
        for (n, values) in [(1, 1), (16, 3), (17, 3), (100, 7), (1000, 2), (1000, 1000)] {
            let mut sorted = items(n, values);
            sort(&mut sorted, less);
            assert!(sorted.is_sorted_by_key(|item| item.0));
            let mut heap = items(n, values);
            heap_sort(&mut heap, less);
            assert!(heap.is_sorted_by_key(|item| item.0));
            let mut queue = LargestFirst::new(less);
            items(n, values).into_iter().for_each(|item| queue.push(item));
            let popped: Vec<Item> = std::iter::from_fn(|| queue.pop()).collect();
            assert!(popped.iter().rev().is_sorted_by_key(|item| item.0));
            for mut found in [sorted, heap, popped] {
                found.sort_by_key(|item| item.1);
                assert_eq!(found, items(n, values));
            }
        }
    }

    /// The order in which four elements leave a `std::priority_queue`, of which three are equal.
    #[test]
    fn equal_elements_leave_a_queue_from_the_right() {
        let mut queue = LargestFirst::new(less);
        [(7, 0), (2, 1), (2, 2), (2, 4)].into_iter().for_each(|item| queue.push(item));
        let order: Vec<usize> = std::iter::from_fn(|| queue.pop()).map(|item| item.1).collect();
        assert_eq!(order, [0, 2, 1, 4]);
    }
}

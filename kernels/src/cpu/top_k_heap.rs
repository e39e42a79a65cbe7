//! The largest elements of a row in the order in which a heap holds them, which is what TensorFlow
//! gives where `sorted` is not asked for (`gtl::TopN` in `tensorflow/core/lib/gtl/top_n.h`).

/// An element: what is smaller comes before others, and where it is.
pub(super) type HeapElement = (u64, usize);

/// Calls `visit` with 0, 1, …, `k - 1` and the position of each of the first `k` elements, of which
/// there are more.
pub(super) fn heaped(
    elements: impl Iterator<Item = HeapElement>,
    k: usize,
    mut visit: impl FnMut(usize, usize),
) {
    let mut heap: Vec<HeapElement> = Vec::with_capacity(k + 1);
    for element in elements {
        if heap.len() <= k {
            heap.push(element);
            if heap.len() == k + 1 {
                for hole in (0..=(k - 1) / 2).rev() {
                    let element = heap[hole];
                    settle(&mut heap, hole, element);
                }
                remove_last(&mut heap);
            }
        } else if element < heap[0] {
            remove_last(&mut heap[..k]);
            raise(&mut heap[..k], k - 1, 0, element);
        }
    }
    heap.iter().take(k).enumerate().for_each(|(n, &(_, index))| visit(n, index));
}

/// Puts an element at a hole or, while it comes after what is above, further up to `top`.
fn raise(heap: &mut [HeapElement], mut hole: usize, top: usize, element: HeapElement) {
    while hole > top && heap[(hole - 1) / 2] < element {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = element;
}

/// Puts an element below a hole, where the elements that are last move up.
fn settle(heap: &mut [HeapElement], top: usize, element: HeapElement) {
    let n = heap.len();
    let mut hole = top;
    while 2 * hole + 1 < n {
        let (left, right) = (2 * hole + 1, 2 * hole + 2);
        let child = if right < n && heap[right] >= heap[left] { right } else { left };
        heap[hole] = heap[child];
        hole = child;
    }
    raise(heap, hole, top, element);
}

/// Moves the element that comes last behind the others.
fn remove_last(heap: &mut [HeapElement]) {
    if let [first, .., last] = heap {
        let element = std::mem::replace(last, *first);
        let n = heap.len() - 1;
        settle(&mut heap[..n], 0, element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The positions are those that TensorFlow 2.21 gives.
    #[test]
    fn elements_are_in_the_order_of_a_heap() {
        let row = || (0..23usize).map(|n| (22 - (n as u64 * 37) % 23, n));
        let of = |k: usize| {
            let mut found = Vec::new();
            heaped(row(), k, |_, index| found.push(index));
            found
        };
        assert_eq!(of(1), [18]);
        assert_eq!(of(2), [13, 18]);
        assert_eq!(of(5), [21, 3, 8, 18, 13]);
        assert_eq!(of(9), [1, 11, 6, 16, 18, 8, 3, 13, 21]);
        assert_eq!(
            of(22),
            [5, 10, 2, 15, 20, 12, 14, 7, 17, 9, 22, 11, 4, 13, 6, 3, 16, 8, 18, 19, 1, 21]
        );
    }
}

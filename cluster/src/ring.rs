//! The ring: how tensors of all members are reduced.
//!
//! A tensor is cut into as many chunks as there are members. In pass 0 each chunk goes around the ring
//! from the member of its number on, and every member adds its part; in pass 1 the complete chunk goes
//! around once more; empty chunks do not travel. Keys, order and sizes of chunks are TensorFlow's (`ring_reducer.cc`, `ring_alg.cc`
//! and `collective_util.cc` of 2.21): its workers take part.

use std::ops::Range;

/// The memory alignment of chunks, in bytes.
const ALIGNMENT: usize = 64;

/// The work of a member on a chunk in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The pass.
    pub(crate) pass: usize,
    /// The chunk.
    pub(crate) chunk: usize,
    /// Whether the member fetches it from the one before.
    pub(crate) receives: bool,
    /// Whether the one behind fetches it.
    pub(crate) sends: bool,
}

/// The turns of a member, in an order in which no member waits in a circle.
pub(crate) fn turns(rank: usize, members: usize) -> Vec<Turn> {
    let before = |chunk: usize, steps: usize| (chunk + members - steps % members) % members;
    // In pass 0 the member's own chunk comes first, in pass 1 the one that is complete here.
    let order = (0..2).flat_map(|pass| {
        (0..members).map(move |step| (pass, (rank + pass + members - step) % members))
    });
    let turn = |(pass, chunk)| match pass {
        0 => Turn { pass, chunk, receives: chunk != rank, sends: rank != before(chunk, 1) },
        _ => Turn {
            pass,
            chunk,
            receives: rank != before(chunk, 1),
            sends: rank != before(chunk, 2),
        },
    };
    order.map(turn).collect()
}

/// The elements of each chunk.
pub(crate) fn chunks(elements: usize, element_bytes: usize, members: usize) -> Vec<Range<usize>> {
    let even = elements.div_ceil(members);
    let bytes = even * element_bytes;
    let padding = match bytes {
        bytes if bytes < ALIGNMENT => ALIGNMENT - bytes,
        bytes => ALIGNMENT - bytes % ALIGNMENT,
    };
    let each = even + padding / element_bytes.max(1);
    (0..members)
        .map(|chunk| (chunk * each).min(elements)..((chunk + 1) * each).min(elements))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_those_of_tensorflow() {
        assert_eq!(chunks(64, 4, 2), [0..48, 48..64]);
        assert_eq!(chunks(1, 4, 2), [0..1, 1..1]);
        assert_eq!(chunks(0, 4, 3), [0..0, 0..0, 0..0]);
        for (elements, size, members) in [(1000, 8, 3), (17, 2, 5), (15, 4, 4)] {
            let chunks = chunks(elements, size, members);
            assert_eq!(chunks.iter().cloned().flatten().count(), elements);
        }
    }

    /// Runs all members turn by turn, and checks that each gets the sum of all.
    #[test]
    fn every_member_ends_with_every_chunk_complete() {
        for members in 1..=6 {
            let mut held: Vec<Vec<u64>> =
                (0..members).map(|rank| vec![1 << rank; members]).collect();
            let mut sent = std::collections::HashMap::new();
            let mut queues: Vec<_> = (0..members).map(|rank| turns(rank, members)).collect();
            while queues.iter().any(|queue| !queue.is_empty()) {
                let mut moved = false;
                for rank in 0..members {
                    let Some(turn) = queues[rank].first().copied() else { continue };
                    let from = (rank + members - 1) % members;
                    if turn.receives {
                        let Some(value) = sent.remove(&(turn.pass, turn.chunk, from)) else {
                            continue;
                        };
                        match turn.pass {
                            0 => held[rank][turn.chunk] += value,
                            _ => held[rank][turn.chunk] = value,
                        }
                    }
                    if turn.sends {
                        sent.insert((turn.pass, turn.chunk, rank), held[rank][turn.chunk]);
                    }
                    queues[rank].remove(0);
                    moved = true;
                }
                assert!(moved, "{members} members wait in a circle");
            }
            assert!(sent.is_empty());
            assert!(held.iter().flatten().all(|value| *value == (1 << members) - 1), "{held:?}");
        }
    }
}

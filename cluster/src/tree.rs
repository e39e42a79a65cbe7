//! The tree of a broadcast: who takes the tensor of whom, and who hands it on.
//!
//! The members are a binary heap: member `r` hands on to `2r + 1` and `2r + 2`. A member other than the
//! first that sends stands above the root as well, as if all ranks were one higher. The order is
//! TensorFlow's (`hierarchical_tree_broadcaster.cc` of 2.21, with a device in each task): its workers take part.

/// The member that `rank` takes the tensor of; none for the one that sends it first.
pub(crate) fn parent(rank: usize, source: usize) -> Option<usize> {
    match (rank, source) {
        (rank, source) if rank == source => None,
        (rank, 0) => Some((rank - 1) / 2),
        // Ranks 0 and 1 take it of the source.
        (rank, source) => Some((rank / 2).checked_sub(1).unwrap_or(source)),
    }
}

/// The members that `rank` hands the tensor on to.
pub(crate) fn children(rank: usize, source: usize, members: usize) -> Vec<usize> {
    (0..members).filter(|&other| parent(other, source) == Some(rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_takes_the_tensor_once() {
        for members in 1..12 {
            for source in 0..members {
                let mut reached = vec![source];
                let mut at = 0;
                while let Some(&rank) = reached.get(at) {
                    reached.extend(children(rank, source, members));
                    at += 1;
                }
                reached.sort_unstable();
                assert_eq!(reached, (0..members).collect::<Vec<_>>(), "from {source}");
            }
        }
    }

    /// Ranks and targets of `TreeSendTo` in TensorFlow.
    #[test]
    fn trees_are_those_of_tensorflow() {
        assert_eq!(children(0, 0, 5), [1, 2]);
        assert_eq!(children(1, 0, 5), [3, 4]);
        assert_eq!(children(2, 2, 4), [0, 1]);
        assert_eq!(children(0, 2, 4), [3]);
        assert_eq!(children(1, 1, 2), [0]);
        assert_eq!(children(0, 1, 3), [2]);
    }
}

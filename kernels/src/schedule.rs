//! Concurrency of the parts of a plan, and the layout of inner values.
//!
//! Each inner value has a place in one block of memory, and each call a lane: calls of one lane run
//! in order, those of different lanes side by side, but for the calls they wait for. Memory is used
//! again only by calls that come after everybody who used it before, so that saving memory never
//! makes a call wait.

use crate::sequence::{KernelGraphPlan, PlanValue};
use ferroflow_ir::{DType, Shape};
use smallvec::SmallVec;

/// Lanes that are worth having: more than that rarely have work.
pub(crate) const MOST_LANES: usize = 4;

/// When calls run, and where inner values lie.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct LaunchSchedule {
    /// The lane of each call.
    pub(crate) lanes: Vec<usize>,
    /// The calls of other lanes that a call waits for.
    pub(crate) waits: Vec<SmallVec<[usize; 2]>>,
    /// Where each inner value begins in their memory; `None` for the others.
    pub(crate) offsets: Vec<Option<usize>>,
    /// Bytes of that memory.
    pub(crate) bytes: usize,
}

impl LaunchSchedule {
    /// A schedule, where inner values take `size` bytes and begin at multiples of `alignment`.
    pub(crate) fn new(
        plan: &KernelGraphPlan,
        size: impl Fn(DType, &Shape) -> usize,
        alignment: usize,
    ) -> LaunchSchedule {
        let graph = Graph::new(plan);
        let (lanes, waits) = graph.lanes();
        let (offsets, bytes) = graph.places(plan, size, alignment);
        LaunchSchedule { lanes, waits, offsets, bytes }
    }
}

/// Order between calls.
struct Graph {
    /// The calls whose results a call reads.
    parents: Vec<SmallVec<[usize; 4]>>,
    /// All calls before each, and itself, as bits.
    before: Vec<Vec<u64>>,
    /// The calls that write or read each value.
    users: Vec<Vec<usize>>,
}

impl Graph {
    fn new(plan: &KernelGraphPlan) -> Graph {
        let mut writers: Vec<Option<usize>> = vec![None; plan.values.len()];
        let mut users = vec![Vec::new(); plan.values.len()];
        let (mut parents, mut before) = (Vec::new(), Vec::<Vec<u64>>::new());
        for (at, call) in plan.calls.iter().enumerate() {
            let mut own: SmallVec<[usize; 4]> = SmallVec::new();
            let mut bits = vec![0u64; plan.calls.len().div_ceil(64)];
            bits[at / 64] |= 1 << (at % 64);
            for &source in call.sources.iter().flatten() {
                users[source].push(at);
                let Some(parent) = writers[source] else { continue };
                if !own.contains(&parent) {
                    own.push(parent);
                    bits.iter_mut().zip(&before[parent]).for_each(|(bits, more)| *bits |= more);
                }
            }
            for &sink in &call.sinks {
                writers[sink] = Some(at);
                users[sink].push(at);
            }
            parents.push(own);
            before.push(bits);
        }
        Graph { parents, before, users }
    }

    fn is_before(&self, first: usize, then: usize) -> bool {
        self.before[then][first / 64] >> (first % 64) & 1 == 1
    }

    /// The lane of each call, and whom it waits for in others. A call goes on where one whose result
    /// it reads was the last.
    fn lanes(&self) -> (Vec<usize>, Vec<SmallVec<[usize; 2]>>) {
        let mut lasts: SmallVec<[usize; MOST_LANES]> = SmallVec::new();
        let (mut lanes, mut waits) = (Vec::new(), Vec::new());
        for (call, parents) in self.parents.iter().enumerate() {
            let follows = lasts.iter().position(|last| parents.contains(last));
            // Whoever waits for all of a lane anyway loses nothing there.
            let ended = || lasts.iter().position(|&last| self.is_before(last, call));
            let lane = follows.or_else(ended).unwrap_or_else(|| {
                if lasts.len() < MOST_LANES { lasts.len() } else { call % MOST_LANES }
            });
            if lane == lasts.len() {
                lasts.push(call);
            }
            lasts[lane] = call;
            let elsewhere = parents.iter().copied().filter(|&parent| lanes[parent] != lane);
            waits.push(elsewhere.collect());
            lanes.push(lane);
        }
        (lanes, waits)
    }

    /// Where inner values lie, and how many bytes that takes.
    fn places(
        &self,
        plan: &KernelGraphPlan,
        size: impl Fn(DType, &Shape) -> usize,
        alignment: usize,
    ) -> (Vec<Option<usize>>, usize) {
        let mut offsets = vec![None; plan.values.len()];
        let mut taken: Vec<(usize, usize, usize)> = Vec::new();
        for (at, call) in plan.calls.iter().enumerate() {
            for &value in &call.sinks {
                let PlanValue::Inner(dtype, shape) = &plan.values[value] else { continue };
                let size = size(*dtype, shape).max(1).next_multiple_of(alignment);
                // In the way is what somebody may still use while this call runs.
                let mut in_the_way: Vec<(usize, usize)> = taken
                    .iter()
                    .filter(|(_, _, other)| {
                        self.users[*other]
                            .iter()
                            .any(|&user| user == at || !self.is_before(user, at))
                    })
                    .map(|&(start, end, _)| (start, end))
                    .collect();
                in_the_way.sort_unstable();
                let mut start = 0;
                for (from, to) in in_the_way {
                    if from >= start + size {
                        break;
                    }
                    start = start.max(to);
                }
                offsets[value] = Some(start);
                taken.push((start, start + size, value));
            }
        }
        let bytes = taken.iter().map(|&(_, end, _)| end).max().unwrap_or(0);
        (offsets, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::{Io, Kernel},
        sequence::KernelLaunch,
    };
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Calls that read these values and write one each, which are numbered after two inputs. A
    /// value of number `n` has `n` elements.
    fn plan(reads: &[Vec<usize>], outputs: &[usize]) -> KernelGraphPlan {
        let mut plan = KernelGraphPlan::default();
        plan.values.extend([PlanValue::Input(0), PlanValue::Input(1)]);
        for (at, reads) in reads.iter().enumerate() {
            let kernel: Arc<dyn Kernel> = Arc::new(|_: &mut Io<'_>| Ok(()));
            let sources = reads.iter().copied().map(Some).collect();
            plan.calls.push(KernelLaunch {
                kernel,
                sources,
                sinks: [at + 2].into_iter().collect(),
            });
            let output = outputs.iter().position(|&output| output == at + 2);
            let inner = PlanValue::Inner(DType::F32, Shape::new([at + 2]).unwrap());
            plan.values.push(output.map_or(inner, PlanValue::Output));
        }
        plan
    }

    #[test]
    fn a_chain_is_one_lane_in_two_places() {
        let plan = plan(&[vec![0], vec![2], vec![3], vec![4]], &[5]);
        let schedule = LaunchSchedule::new(&plan, |_, _| 4, 256);
        assert_eq!(schedule.lanes, [0, 0, 0, 0]);
        assert!(schedule.waits.iter().all(|waits| waits.is_empty()));
        assert_eq!(schedule.offsets, [None, None, Some(0), Some(256), Some(0), None]);
        assert_eq!(schedule.bytes, 512);
    }

    #[test]
    fn what_has_nothing_to_do_with_each_other_runs_side_by_side() {
        let plan = plan(&[vec![0], vec![1], vec![2], vec![3], vec![4, 5]], &[6]);
        let schedule = LaunchSchedule::new(&plan, |_, _| 4, 256);
        assert_eq!(schedule.lanes, [0, 1, 0, 1, 0]);
        assert_eq!(schedule.waits[4][..], [3]);
    }

    proptest! {
        /// A call that runs later, in any order that lanes and waits allow, finds its operands, and
        /// no call writes memory that another may still read.
        #[test]
        fn any_order_that_is_allowed_is_right(
            picks in prop::collection::vec((0usize..100, 0usize..100, any::<bool>()), 1..40),
        ) {
            let mut reads = Vec::new();
            for (at, &(a, b, _)) in picks.iter().enumerate() {
                reads.push(vec![a % (at + 2), b % (at + 2)]);
            }
            let outputs: Vec<usize> =
                picks.iter().enumerate().filter(|(_, pick)| pick.2).map(|(at, _)| at + 2).collect();
            let plan = plan(&reads, &outputs);
            let size = |value: usize| 4 + value * 37 % 900;
            let schedule = LaunchSchedule::new(&plan, |_, shape| size(shape.num_elements()), 256);
            let n = plan.calls.len();
            // What is ordered: the lane before, and whom a call waits for.
            let mut before = vec![vec![false; n]; n];
            for at in 0..n {
                let lane = (0..at).rev().find(|&other| schedule.lanes[other] == schedule.lanes[at]);
                for first in schedule.waits[at].iter().copied().chain(lane) {
                    prop_assert!(first < at);
                    let earlier = before[first].clone();
                    before[at].iter_mut().zip(earlier).for_each(|(own, more)| *own |= more);
                    before[at][first] = true;
                }
            }
            let users = |value: usize| -> Vec<usize> {
                let uses = |call: &KernelLaunch| {
                    call.sinks.contains(&value) || call.sources.contains(&Some(value))
                };
                (0..n).filter(|&at| uses(&plan.calls[at])).collect()
            };
            for (at, call) in plan.calls.iter().enumerate() {
                for &source in call.sources.iter().flatten() {
                    prop_assert!(source < 2 || before[at][source - 2]);
                }
            }
            for one in 2..plan.values.len() {
                for other in one + 1..plan.values.len() {
                    let (Some(a), Some(b)) = (schedule.offsets[one], schedule.offsets[other]) else {
                        continue;
                    };
                    if a + size(one) <= b || b + size(other) <= a {
                        continue;
                    }
                    let all_before = |first: usize, then: usize| {
                        users(first).iter().all(|&user| before[then - 2][user])
                    };
                    prop_assert!(all_before(one, other), "{one} and {other}");
                }
            }
        }
    }
}

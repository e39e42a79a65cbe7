//! Replicas of a strategy as ranks of an MPI job: `mpirun -n 4 program`.
//!
//! [`MpiEngine`] is an [`Engine`] as the cluster's is, so that a strategy takes it:
//! `Strategy::with_engine("CPU:0", engine)`. Reductions, gathers, broadcasts and exchanges are those of the MPI library
//! (tested with Open MPI), by whatever network that knows.
//!
//! - `world.rs`: the thread that calls MPI, and how ranks meet before each collective. `group.rs`: the collectives.
//!   `error.rs`: why a process is no rank.
//!
//! **All ranks call the same collectives in the same order**, as MPI asks. Before each of them they compare what they are about
//! to do, within its deadline: ranks of different programs, and those that are gone, are errors and do not
//! hang. A rank that is killed ends the job, which `mpirun` sees to. After an error of a collective the ranks are
//! out of step: every later call fails, and the job is to be started again from a checkpoint.
//!
//! ```no_run
//! use ferroflow_mpi::MpiEngine;
//! use ferroflow_runtime::collective::Engine;
//!
//! let engine = MpiEngine::initialize()?;
//! println!("rank {} of {}", engine.rank(), engine.size());
//! # Ok::<(), ferroflow_mpi::Error>(())
//! ```

mod error;
mod group;
mod world;

pub use error::{Error, Result};

use ferroflow_runtime::{
    Result as RuntimeResult,
    collective::{CollectiveCall, CollectiveError, Engine, Group, GroupKey},
};
use group::MpiGroup;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use world::{Member, World};

/// Bytes of a bucket of gradients: long beside what a message costs.
const BUCKET: usize = 4 << 20;

/// The side of this process in an MPI job. The last reference to it waits for the other ranks to end, too.
#[derive(Debug)]
pub struct MpiEngine {
    world: Arc<World>,
    whole: Member,
    /// The groups that are less than all ranks.
    groups: Mutex<HashMap<GroupKey, Member>>,
}

impl MpiEngine {
    /// Makes this process a rank of the job that started it; a process that no launcher started is a job of
    /// its own.
    ///
    /// # Errors
    ///
    /// When MPI runs in this process already, or has ended in it: it starts once.
    pub fn initialize() -> Result<Arc<MpiEngine>> {
        let (world, whole) = World::start()?;
        Ok(Arc::new(MpiEngine { world: Arc::new(world), whole, groups: Mutex::default() }))
    }
}

impl Engine for MpiEngine {
    fn rank(&self) -> usize {
        self.whole.rank
    }

    fn size(&self) -> usize {
        self.whole.size
    }

    /// The group of all ranks, or the ranks that ask for the same key: all ranks ask for theirs at the same point of the
    /// program.
    fn resolve(
        &self,
        key: GroupKey,
        size: usize,
        call: &CollectiveCall<'_>,
    ) -> RuntimeResult<Arc<dyn Group>> {
        let group = |member| Arc::new(MpiGroup::new(self.world.clone(), key, member));
        if size == self.whole.size {
            return Ok(group(self.whole));
        }
        let known = self.groups.lock().get(&key).copied();
        let member = match known {
            Some(member) => member,
            None => {
                let member = group(self.whole).split(call, key)?;
                self.groups.lock().insert(key, member);
                member
            }
        };
        if member.size != size {
            return Err(CollectiveError::Group {
                group: key,
                what: "the number of members",
                expected: member.size.to_string(),
                found: size.to_string(),
            }
            .into());
        }
        Ok(group(member))
    }

    fn bucket_bytes(&self) -> Option<usize> {
        Some(BUCKET)
    }

    fn leave(&self, _: &str) {
        // A step that ends is not the end of the rank, of which the others learn when the engine ends.
    }
}

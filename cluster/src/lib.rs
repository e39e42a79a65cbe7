//! Programs on several machines, by TensorFlow's cluster protocol.
//!
//! A process joins a cluster as a task ([`ClusterWorker::join`]); the engine it gets lets the replica of this
//! process meet those of the others, which may be processes of TensorFlow: its
//! `MultiWorkerMirroredStrategy` takes part.
//!
//! ```no_run
//! use ferroflow_cluster::{ClusterConfig, JoinOptions, ClusterWorker};
//! # fn main() -> ferroflow_cluster::Result<()> {
//! let worker = ClusterWorker::join(&ClusterConfig::from_env()?, &JoinOptions::default())?;
//! let engine = worker.engine();
//! println!("replica {} of {}", engine.rank(), engine.size());
//! # Ok(())
//! # }
//! ```
//!
//! - `config.rs`: which cluster, as the environment says.
//! - `worker.rs`: the life of a task. `state.rs`: what its services share. `services.rs`: the services.
//! - `client.rs`: calls of other tasks. `rpc.rs`: answers to calls. `messages.rs`: the messages. `status.rs`: codes.
//! - `engine.rs`: which groups there are. `group.rs`: what the members of a group do together.
//! - `buffers.rs`: what travels between members. `source.rs`: who sends in a broadcast.
//! - `ring.rs`: who sends which chunk when. `tree.rs`: who hands a broadcast on to whom.
//!
//! # Absent
//!
//! Tensors of strings do not travel in collectives.
//! TensorFlow's protocol knows neither encryption nor authentication: a task listens on the address that
//! the configuration says, so use it on networks that are trusted.

#![forbid(unsafe_code)]

mod buffers;
mod client;
mod config;
mod engine;
pub mod error;
mod group;
mod messages;
pub mod remote;
mod ring;
mod rpc;
mod services;
mod source;
mod state;
mod status;
mod tree;
mod worker;

pub use config::ClusterConfig;
pub use error::{Error, Result};
pub use ferroflow_runtime as runtime;
pub use worker::{ClusterWorker, JoinOptions};

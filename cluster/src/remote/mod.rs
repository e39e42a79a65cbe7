//! Ops and functions on devices of other processes, by TensorFlow's eager service.
//!
//! - `server.rs`: a process that computes for others ([`WorkerServer`]), as TensorFlow's `tf.distribute.Server`.
//!   `service.rs`: the calls it answers. `session.rs`: what it holds for a client.
//! - `task.rs`: the connection to such a process, or to one of TensorFlow ([`connect_to_host`]).
//!   `device.rs`: its device, on which ops run as on any device of a context.
//! - `messages.rs`: the messages. `handoff.rs`: tensors on their way to a client.
//!
//! A tensor on a remote device is a handle; its value travels when somebody reads it. The client names
//! its handles, so that it need not wait for answers to go on; this one waits all the same, so that
//! errors are those of the call that made them.
//!
//! ```
//! use ferroflow_cluster::remote::{ConnectOptions, ServerOptions, WorkerServer, connect_to_host};
//! use ferroflow_runtime::Context;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = WorkerServer::start("127.0.0.1:0", &ServerOptions::default())?;
//! let context = Context::new();
//! let device = connect_to_host(&context, server.address(), &ConnectOptions::default())?.remove(0);
//! assert_eq!(device, "/job:worker/replica:0/task:0/device:CPU:0");
//! // From here on the device is one of the context.
//! assert!(context.device_of("/job:worker/task:0").is_some());
//! # Ok(())
//! # }
//! ```

mod device;
mod handoff;
mod messages;
mod server;
mod service;
mod session;
mod task;

pub use server::{ServerOptions, WorkerServer};
pub use task::{ConnectOptions, connect_to_host};

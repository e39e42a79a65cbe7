//! Reasons for placements.

use crate::op::HostReason;
use std::fmt;

/// The reason why a call runs where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The function was called there, or it says so itself, or its inputs are there.
    Asked,
    /// Nothing says otherwise.
    Default,
    /// It works on state of the host: variables, tables, files.
    State,
    /// It repeats or chooses, which the host does.
    Control,
    /// It computes single whole numbers in a loop, which the host needs to go on.
    Steering,
    /// Its shapes are not known before it runs.
    UnknownShape,
    /// The device that it should run on cannot hold a dtype of it.
    Unheld,
    /// No device but the CPU runs such ops.
    HostOnly(HostReason),
    /// The device that it should run on has no kernel for it.
    NoKernel,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Asked => "asked for",
            Reason::Default => "default",
            Reason::State => "works on state of the host",
            Reason::Control => "control flow",
            Reason::Steering => "steers a loop",
            Reason::UnknownShape => "shapes known at run time only",
            Reason::Unheld => "the device cannot hold a type of it",
            Reason::HostOnly(reason) => return write!(f, "a kernel of the host: {reason}"),
            Reason::NoKernel => "no kernel on the device",
        })
    }
}

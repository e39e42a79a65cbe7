//! The device that cases run on, and what ran there.

use crate::compare::Tolerance;
use ferroflow::{
    ir::{HostReason, device_name::DeviceName},
    runtime::{Context, ContextOptions, FileAccess, Precision, placement::Reason},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock},
};

static DEVICE: OnceLock<DeviceName> = OnceLock::new();

/// The contexts of the case at hand.
static CONTEXTS: Mutex<Vec<Context>> = Mutex::new(Vec::new());

/// Makes cases run on the device that the command line names, if it names one.
pub(crate) fn read_arguments() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, device] = &arguments[..]
        && flag == "--device"
    {
        let name: DeviceName = device.parse()?;
        Context::new().device(&name)?;
        DEVICE.get_or_init(|| name);
    }
    Ok(())
}

/// Whether the command line names a device. Exact cases may have a tolerance that is for devices.
pub(crate) fn is_named() -> bool {
    DEVICE.get().is_some()
}

/// A context that runs ops without a device of their own on the device of the cases.
pub(crate) fn context() -> Context {
    context_with(FileAccess::default())
}

/// The same, whose ops may touch these files.
pub(crate) fn context_with(files: FileAccess) -> Context {
    let device = DEVICE.get().cloned();
    let is_placed = device.is_some();
    // What is compared was computed by a CPU.
    let precision = Precision::Full;
    let options = ContextOptions { files, device, precision, ..ContextOptions::default() };
    let context = Context::with_options(options);
    if is_placed {
        context.keep_placements();
        CONTEXTS.lock().expect("nobody panics with it").push(context.clone());
    }
    context
}

/// Messages about values, not shapes or attributes, that a device's kernel would have to look at
/// before it could fail.
const OF_VALUES: [&str; 16] = [
    " is not in [0, ",
    " does not index into ",
    "out of range",
    "outside the valid range of [0, ",
    " is not between 0 and ",
    "has values outside [0, batch_size)",
    " is duplicated in the input",
    "must be negative or less or equal to number of ",
    "must be non-negative",
    "must have last dimension > n",
    "seq_lens(",
    "segment ids are not increasing",
    "segment ids must be < num_segments",
    "value_range should satisfy value_range[0] < value_range[1]",
    "Integer division by zero",
    "Integers to negative integer powers are not allowed",
];

/// Whether the cases' device may return a result where this error was recorded. TensorFlow reports
/// indices outside, zero divisors and the like on the CPU only: its accelerators read zeros there,
/// leave updates out, and divide, as ours do.
pub(crate) fn goes_on_in_spite_of(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or("");
    // What TensorFlow says of quotients by zero where it expects none.
    let is_quotient = message.starts_with("Unexpected error in binary operator");
    let is_of_values = OF_VALUES.iter().any(|what| message.contains(what)) || is_quotient;
    DEVICE.get().is_some() && is_of_values
}

/// Tolerance of results beside the recorded ones, in a call of this type (attribute `T`).
/// TensorFlow's CPU rounds sums of 16-bit floats at every step, and so do our kernels there;
/// devices round once.
pub(crate) fn tolerance(dtype: &Value, tolerance: Tolerance) -> Tolerance {
    let is_short = matches!(dtype.as_str(), Some("float16" | "bfloat16"));
    let factor = if DEVICE.get().is_some() && is_short { 2.0 } else { 1.0 };
    Tolerance { rtol: factor * tolerance.rtol, atol: factor * tolerance.atol }
}

/// Devices of the calls since the last report: how many calls on devices, and by op those that were
/// placed on the CPU for want of a kernel, as the device cannot hold what they compute, or as such
/// ops stay on the host.
pub(crate) fn report() -> Value {
    if DEVICE.get().is_none() {
        return Value::Null;
    }
    let contexts = std::mem::take(&mut *CONTEXTS.lock().expect("nobody panics with it"));
    let mut placed = 0;
    let (mut fallbacks, mut unheld) = (BTreeMap::<String, usize>::new(), BTreeMap::new());
    let mut hosted = BTreeMap::<String, usize>::new();
    for call in contexts.iter().flat_map(Context::take_placements).flat_map(|p| p.calls) {
        match call.reason {
            Reason::Asked => placed += 1,
            Reason::NoKernel | Reason::HostOnly(HostReason::NotWritten) => {
                *fallbacks.entry(call.op).or_default() += 1;
            }
            Reason::HostOnly(_) => *hosted.entry(call.op).or_default() += 1,
            Reason::Unheld => *unheld.entry(call.op).or_insert(0) += 1,
            Reason::Default
            | Reason::State
            | Reason::Control
            | Reason::Steering
            | Reason::UnknownShape => {}
        }
    }
    json!({ "placed": placed, "fallbacks": fallbacks, "unheld": unheld, "hosted": hosted })
}

//! Contexts that programs run in: with every pass of the compiler switched off, with several
//! threads, on each device.

use ferroflow::runtime::{Context, ContextOptions, Precision};
use std::{num::NonZeroUsize, sync::OnceLock};

/// A context with a name.
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) context: Context,
    /// The devices that statements may ask for, the CPU last.
    pub(super) devices: std::sync::Arc<[String]>,
}

const CPU: &str = "/device:CPU:0";

/// All settings, the plain one first.
pub(super) fn all() -> &'static [Setting] {
    static ALL: OnceLock<Vec<Setting>> = OnceLock::new();
    ALL.get_or_init(|| {
        let cpu: std::sync::Arc<[String]> = [CPU.to_string()].into();
        let on_cpu = |name: &str, options| Setting {
            name: name.into(),
            context: Context::with_options(options),
            devices: cpu.clone(),
        };
        let mut settings = vec![on_cpu("plain", plain()), on_cpu("3 threads", threads(3))];
        let names = settings[0].context.device_names();
        let others: Vec<String> = names.into_iter().skip(1).collect();
        for name in &others {
            let options = ContextOptions { device: name.parse().ok(), ..plain() };
            let devices = others.iter().cloned().chain([CPU.to_string()]).collect();
            let context = Context::with_options(options);
            settings.push(Setting { name: format!("on {name}"), context, devices });
        }
        settings
    })
}

fn threads(n: usize) -> ContextOptions {
    ContextOptions { threads: NonZeroUsize::new(n), ..ContextOptions::default() }
}

fn plain() -> ContextOptions {
    ContextOptions { precision: Precision::Full, ..threads(1) }
}

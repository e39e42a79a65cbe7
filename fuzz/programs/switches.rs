//! Contexts that programs run in: with every pass of the compiler switched off, with several
//! threads, on each device.

use ferroflow::runtime::{CompileOptions, Context, ContextOptions, Precision};
use std::{
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
};

/// A context with a name.
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) context: Context,
    /// The devices that statements may ask for, the CPU last.
    pub(super) devices: Arc<[String]>,
}

const CPU: &str = "/device:CPU:0";

/// A switch of the compiler, by name.
type Switch = (&'static str, fn(&mut CompileOptions));

/// The passes that are switched off in turn, regions that would be too small to pay, and the verifiers
/// on.
const SWITCHES: &[Switch] = &[
    ("no fold", |options| options.fold = false),
    ("no outline", |options| options.outline = false),
    ("no hoist", |options| options.hoist = false),
    ("no cse", |options| options.cse = false),
    ("no fuse", |options| options.fuse = false),
    ("no attention", |options| options.attention = false),
    ("no regions", |options| options.regions = false),
    ("small regions", |options| options.small_regions = true),
    ("no scalar", |options| options.scalar = false),
    ("no reuse", |options| options.reuse = false),
    ("no donate", |options| options.donate = false),
    ("verified", |options| options.verify = true),
];

/// All settings, the plain one first.
pub(super) fn all() -> &'static [Setting] {
    static ALL: OnceLock<Vec<Setting>> = OnceLock::new();
    ALL.get_or_init(|| {
        let cpu: Arc<[String]> = [CPU.to_string()].into();
        let on_cpu = |name: &str, options| Setting {
            name: name.into(),
            context: Context::with_options(options),
            devices: cpu.clone(),
        };
        let mut settings = vec![on_cpu("plain", plain()), on_cpu("3 threads", threads(3))];
        for (name, switch) in SWITCHES {
            let mut compile = CompileOptions::default();
            switch(&mut compile);
            settings.push(on_cpu(name, ContextOptions { compile, ..plain() }));
        }
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

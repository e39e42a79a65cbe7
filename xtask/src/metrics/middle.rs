//! Measures of the compiler in the middle: planner, executor, devices.

use super::tree::SourceFile;
use syn::{Item, TraitItem, Type};

/// Files of the plan, the executor, placement and the routes of eager ops. A folder ends with a
/// slash.
const MIDDLE: &[&str] = &[
    "runtime/src/plan/",
    "runtime/src/call_cache.rs",
    "runtime/src/call_key.rs",
    "runtime/src/compile.rs",
    "runtime/src/device_run.rs",
    "runtime/src/execute.rs",
    "runtime/src/execute_op.rs",
    "runtime/src/executor.rs",
    "runtime/src/kernel_call.rs",
    "runtime/src/optimize.rs",
    "runtime/src/origin.rs",
    "runtime/src/assign_devices.rs",
    "runtime/src/placed_calls.rs",
    "runtime/src/placement.rs",
    "runtime/src/run.rs",
    "runtime/src/scope.rs",
    "runtime/src/single_op.rs",
    "runtime/src/specializations.rs",
    "runtime/src/staging.rs",
];

/// Parts of these that check, and are counted apart.
const CHECKS: &[&str] = &["runtime/src/plan/validate/", "runtime/src/plan/faults.rs"];

pub(super) fn print(files: &[SourceFile]) {
    let of_runtime = || files.iter().filter(|file| file.name.starts_with("runtime/src/"));
    let lines = |parts: &[&str]| -> usize {
        let is_part = |name: &str| {
            parts.iter().any(|part| name == *part || part.ends_with('/') && name.starts_with(part))
        };
        of_runtime().filter(|file| is_part(&file.name)).map(|file| file.text.lines().count()).sum()
    };
    let checks = lines(CHECKS);
    println!(
        "plan, executor, placement and eager routes: {} lines, {checks} more that check plans",
        lines(MIDDLE) - checks,
    );
    let mut variants = Vec::new();
    let mut planners = 0;
    for file in of_runtime() {
        planners += usize::from(file.syntax.items.iter().any(is_planner));
        for item in &file.syntax.items {
            if let Item::Enum(item) = item
                && item.ident.to_string().ends_with("Action")
            {
                variants.push((item.ident.to_string(), item.variants.len()));
            }
        }
    }
    let n: usize = variants.iter().map(|(_, n)| n).sum();
    let each: Vec<String> = variants.iter().map(|(name, n)| format!("{name} {n}")).collect();
    println!("action variants: {n}: {}", each.join(", "));
    println!("files with `impl Planner`: {planners}");
    println!("methods of `Device`: {}", device_methods(files));
}

fn is_planner(item: &Item) -> bool {
    let Item::Impl(item) = item else { return false };
    let Type::Path(path) = &*item.self_ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Planner")
}

fn device_methods(files: &[SourceFile]) -> usize {
    let items = files
        .iter()
        .filter(|file| file.name.starts_with("kernels/src/"))
        .flat_map(|file| &file.syntax.items);
    let methods = items.filter_map(|item| match item {
        Item::Trait(item) if item.ident == "Device" => {
            Some(item.items.iter().filter(|item| matches!(item, TraitItem::Fn(_))).count())
        }
        _ => None,
    });
    methods.sum()
}

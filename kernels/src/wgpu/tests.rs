//! Failures that only this device can be brought to.

use super::{WgpuDevice, gpu};
use crate::{
    Device, Error,
    shader::{
        ShaderDialect, shader,
        tests::{check, doubled, groups::tiled, is_required},
    },
};
use ferroflow_ir::{Code, DType, Shape};
use std::sync::Arc;

/// New connections, which nothing else uses.
fn devices() -> Vec<WgpuDevice> {
    connections().into_iter().map(|gpu| WgpuDevice { gpu: Arc::new(gpu) }).collect()
}

fn connections() -> Vec<gpu::Gpu> {
    let mut found = gpu::connect();
    found.extend(gpu::connect());
    if found.is_empty() {
        assert!(!is_required("wgpu"), "no adapter was found");
        eprintln!("skipped: no adapter was found");
    }
    found
}

#[test]
fn a_text_that_is_none_is_refused() {
    let Some(device) = devices().into_iter().next() else { return };
    for text in ["not a program", "@compute @workgroup_size(1) fn other() {}"] {
        let Err(error) = device.gpu.pipeline("Broken", text, (0, 1)) else { panic!("{text}") };
        assert!(matches!(error, Error::Compile { op: "Broken", .. }), "{error:?}");
        assert_eq!(error.code(), Code::Internal);
    }
    assert_eq!(doubled(&device), [2.0, 4.0]);
}

#[test]
fn a_lost_device_stays_lost_and_others_go_on() {
    let devices = devices();
    let [lost, other, ..] = &devices[..] else { return };
    assert_eq!(doubled(lost), [2.0, 4.0]);
    let shape = Shape::new([4]).unwrap();
    let before = lost.allocate(DType::F32, &shape).unwrap();
    lost.gpu.connection.destroy();
    for _ in 0..2 {
        assert!(matches!(lost.synchronize(), Err(Error::DeviceLost { .. })));
        let is_lost = |error| matches!(error, Error::DeviceLost { .. });
        assert!(lost.allocate(DType::F32, &shape).is_err_and(is_lost));
        assert!(before.host().is_err_and(is_lost));
        let text = "@compute @workgroup_size(1) fn main() {}";
        assert!(lost.gpu.pipeline("Any", text, (0, 0)).is_err_and(is_lost));
    }
    assert_eq!(doubled(other), [2.0, 4.0]);
}

#[test]
fn waiting_ends_what_was_given_to_a_device() {
    let Some(device) = devices().into_iter().next() else { return };
    assert!(device.model().is_some_and(|model| !model.is_empty()));
    // There is nothing to wait for.
    device.synchronize().unwrap();
    assert_eq!(doubled(&device), [2.0, 4.0]);
    assert!(!device.gpu.has_recorded());
    let text = "@compute @workgroup_size(1) fn main() {}";
    let pipeline = device.gpu.pipeline("Nothing", text, (0, 0)).unwrap();
    device.gpu.dispatch(&pipeline, &[], (1, 1)).unwrap();
    assert!(device.gpu.has_recorded());
    device.synchronize().unwrap();
    assert!(!device.gpu.has_recorded());
}

#[test]
fn groups_give_what_single_invocations_do() {
    for (mut gpu, subgroups) in connections().into_iter().zip([true, false].into_iter().cycle()) {
        gpu.caps.tiles = true;
        gpu.caps.subgroups &= subgroups;
        let device = WgpuDevice { gpu: Arc::new(gpu) };
        for case in tiled() {
            let shader = case.with_call(|call| shader(call, device.gpu.caps).unwrap().unwrap());
            let text = ShaderDialect::Wgsl.print(&shader.unwrap());
            assert!(text.contains("barrier_"));
            assert!(device.gpu.caps.subgroups || !text.contains("subgroup"));
            assert_eq!(check(&device, &case), None, "{}", case.name());
        }
    }
}

/// Calls that come again find the memory of earlier ones, and their bind groups.
#[test]
fn calls_that_come_again_bind_nothing_anew() {
    for device in devices() {
        assert_eq!(doubled(&device), [2.0, 4.0]);
        let bound = device.gpu.connection.n_groups();
        assert!(bound > 0);
        for _ in 0..10 {
            assert_eq!(doubled(&device), [2.0, 4.0]);
        }
        assert_eq!(device.gpu.connection.n_groups(), bound);
        // Memory that leaves the pool is not kept by them.
        device.gpu.connection.forget_groups();
        assert_eq!(device.gpu.connection.n_groups(), 0);
        assert_eq!(doubled(&device), [2.0, 4.0]);
    }
}

//! Records say which kernels are of the host alone: those that have no shader.

use super::super::{PRODUCTS, SHADERS, by_name};
use ferroflow_ir::{Lowering, OpRegistry};

#[test]
fn kernels_of_devices_have_shaders_and_those_of_the_host_have_none() {
    for op in OpRegistry::default().implemented() {
        let has_shader =
            by_name(SHADERS, op.name).is_some() || by_name(PRODUCTS, op.name).is_some();
        match op.lowering {
            // It has the shader of its anchor.
            Lowering::Kernel => assert!(has_shader || op.name == "_Region", "{}", op.name),
            Lowering::HostKernel(_) => assert!(!has_shader, "{}", op.name),
            _ => {}
        }
    }
}

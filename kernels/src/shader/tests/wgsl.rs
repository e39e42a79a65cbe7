//! naga parses and checks every text as WebGPU would.

use super::{super::Dialect, programs};
use naga::valid::{Capabilities, ValidationFlags, Validator};

#[test]
fn every_text_is_valid() {
    let programs = programs(Dialect::Wgsl);
    for (text, name) in &programs {
        let module = naga::front::wgsl::parse_str(text)
            .unwrap_or_else(|error| panic!("{name}: {}\n{text}", error.emit_to_string(text)));
        Validator::new(ValidationFlags::all(), Capabilities::SHADER_INT64)
            .validate(&module)
            .unwrap_or_else(|error| panic!("{name}: {}\n{text}", error.emit_to_string(text)));
    }
    assert!(programs.len() > 500, "{} texts were checked", programs.len());
}

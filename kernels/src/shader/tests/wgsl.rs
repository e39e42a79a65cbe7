//! naga parses and checks every text as WebGPU would.

use super::{
    super::{Caps, ShaderDialect},
    programs,
};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Checks the texts for devices with these abilities and no more; gives how many there are.
fn check(caps: Caps, capabilities: Capabilities) -> usize {
    let programs = programs(ShaderDialect::Wgsl, caps);
    for (text, name) in &programs {
        let module = naga::front::wgsl::parse_str(text)
            .unwrap_or_else(|error| panic!("{name}: {}\n{text}", error.emit_to_string(text)));
        Validator::new(ValidationFlags::all(), capabilities)
            .validate(&module)
            .unwrap_or_else(|error| panic!("{name}: {}\n{text}", error.emit_to_string(text)));
    }
    programs.len()
}

#[test]
fn every_text_is_valid() {
    let all = Capabilities::SHADER_INT64 | Capabilities::SUBGROUP | Capabilities::SHADER_FLOAT16;
    let n = check(
        Caps {
            int64: true,
            tiles: true,
            subgroups: true,
            warps: false,
            matrices: false,
            halves: true,
        },
        all,
    );
    assert!(n > 500, "{n} texts were checked");
}

#[test]
fn without_abilities_there_are_fewer_texts_and_they_are_valid() {
    let n = check(Caps::default(), Capabilities::empty());
    assert!(n > 400, "{n} texts were checked");
}

/// Browsers read a literal as a double and refuse it beyond the range of its type; naga rounds it first.
#[test]
fn literals_are_within_the_range_of_f32() {
    let caps = Caps { tiles: true, halves: true, ..Caps::default() };
    let mut found = 0;
    for (text, name) in programs(ShaderDialect::Wgsl, caps) {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || ".+-".contains(c)));
        for literal in words.filter_map(|word| word.strip_suffix('f')) {
            if let Ok(value) = literal.parse::<f64>() {
                found += 1;
                assert!(value.abs() <= f64::from(f32::MAX), "{name}: {literal}f");
            }
        }
    }
    assert!(found > 1000, "{found} literals were read");
}

//! What the macros say to code that they cannot make something of.

// spec: 197
#[test]
fn errors_point_at_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

//! The book and the README: what in them follows from the records.

use ferroflow::{
    coverage::{is_supported, table},
    ir::ops::tensorflow_names,
    runtime::Context,
};

const INTRODUCTION: &str = "# Table of operations\n\n\
    This page is generated from the records (`UPDATE_EXPECT=1 cargo test -p ferroflow --test it book`).\n\n\
    - *dtypes* are those of the type attributes in TensorFlow's interface.\n\
    - *Gradient*: `yes` where a rule is written, `of its parts` for a formula of other operations, `none by definition` where \
    the operation is flat, discrete or stops gradients; empty where there is none.\n\
    - *Devices*: `all` where every device has a kernel, `CPU` where the host runs it by design: sizes that follow from data, \
    state, text, files.\n\n";

#[test]
fn the_table_of_operations_is_that_of_the_records() {
    let page = format!("{INTRODUCTION}{}", table(&Context::new()));
    expect_test::expect_file!["../../docs/book/src/operations.md"].assert_eq(&page);
}

#[test]
fn the_readme_counts_the_operations_that_run() {
    let context = Context::new();
    let (running, all) = (
        tensorflow_names().filter(|op| is_supported(&context, op)).count(),
        tensorflow_names().count(),
    );
    let line = format!("| {running} of TensorFlow's {all}: ");
    assert!(include_str!("../../README.md").contains(&line), "README.md says no `{line}`");
}

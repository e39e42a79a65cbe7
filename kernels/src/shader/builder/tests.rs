//! Operands that do not fit, names, folding and parentheses.

use super::{KernelBuilder, KernelValue};
use crate::shader::{Caps, ScalarType, ShaderDialect};
use ferroflow_ir::DType;
use proptest::prelude::*;

/// The statements that a kernel of one output of `u32` has, in WGSL.
fn text(write: impl for<'k> FnOnce(&'k KernelBuilder) -> KernelValue<'k>) -> String {
    let k = KernelBuilder::new(Caps::default());
    let out = k.output(DType::U32);
    let value = write(&k);
    out.set(k.element(), value);
    let shader = k.finish(1).unwrap().unwrap();
    shader.body.print(ShaderDialect::Wgsl, &[], 0)
}

#[test]
fn operands_of_other_types_are_an_error() {
    let error = |write: for<'k> fn(&'k KernelBuilder) -> KernelValue<'k>| {
        let k = KernelBuilder::new(Caps::default());
        write(&k);
        k.finish(1).unwrap_err().to_string()
    };
    let mixed = error(|k| k.element() + k.float(1.0));
    assert!(mixed.contains("u32 + f32"), "{mixed}");
    let negated = error(|k| k.element().lt(1.5));
    assert!(negated.contains("1.5 beside u32"), "{negated}");
    let condition = error(|k| {
        k.when(k.element(), || {});
        k.element()
    });
    assert!(condition.contains("a condition of type u32"), "{condition}");
    let large = error(|k| k.element() + (1usize << 32));
    assert!(large.contains("4294967296 as u32"), "{large}");
    let ordered = error(|k| k.bool(true).lt(k.element().eq(1)));
    assert!(ordered.contains("bool < bool"), "{ordered}");
}

#[test]
fn dtypes_that_a_device_does_not_hold_make_no_kernel() {
    let k = KernelBuilder::new(Caps::default());
    k.output(DType::I64).set(k.element(), 0);
    assert!(k.finish(1).unwrap().is_none());
    let k = KernelBuilder::new(Caps { int64: true, ..Caps::default() });
    k.output(DType::I64).set(k.element(), 0);
    assert!(k.finish(1).unwrap().is_some());
}

#[test]
fn equal_names_are_made_different() {
    let text = text(|k| {
        let outer = k.bind("x", k.element() + 1);
        k.for_below("x", 3, |x| {
            k.bind("n", outer + x);
        });
        outer
    });
    let expected = "let x = n + 1u;\nfor (var x_2 = 0u; x_2 < 3u; x_2++) {\n    \
                    let n_2 = x + x_2;\n}\nout0[n] = x;\n";
    assert_eq!(text, expected);
}

#[test]
fn known_index_arithmetic_is_folded_and_wraps() {
    let folded = |write: for<'k> fn(&'k KernelBuilder) -> KernelValue<'k>| text(write);
    assert_eq!(folded(|k| (k.element() * k.index(1) + k.index(0)) / k.index(1)), "out0[n] = n;\n");
    assert_eq!(folded(|k| k.element() % k.index(1) + 2), "out0[n] = 2u;\n");
    assert_eq!(folded(|k| k.index(2) - k.index(3)), "out0[n] = 4294967295u;\n");
    // Nothing is known of what a condition that is false leaves out.
    let text = text(|k| {
        let sum = k.variable("sum", k.index(0));
        k.when(k.index(3).lt(2usize), || sum.set(1));
        k.when_else(k.element().lt(2).and(k.bool(true)), || sum.set(2), || sum.set(3));
        sum
    });
    let expected =
        "var sum = 0u;\nif (n < 2u) {\n    sum = 2u;\n} else {\n    sum = 3u;\n}\nout0[n] = sum;\n";
    assert_eq!(text, expected);
}

#[test]
fn a_single_round_is_a_loop_only_if_something_leaves_it() {
    let round = |leaves: bool| {
        text(move |k| {
            let sum = k.variable("sum", k.index(0));
            k.for_below("i", 1, |i| {
                k.when(sum.gt(i).and(k.bool(leaves)), || k.end_loop());
                sum.set(sum + 1);
            });
            sum
        })
    };
    assert!(round(true).contains("for (var i = 0u; i < 1u; i++) {"), "{}", round(true));
    assert!(round(true).contains("break;"), "{}", round(true));
    let plain = text(|k| {
        k.for_below("i", 1, |_| {
            k.for_below("j", 2, |j| k.when(k.element().gt(j), || k.end_loop()));
        });
        k.element()
    });
    assert!(!plain.contains("i < 1u") && plain.contains("j < 2u"), "{plain}");
}

#[test]
fn bools_are_numbers_in_memory() {
    let k = KernelBuilder::new(Caps::default());
    let (x, y, n) = (k.input(0, DType::Bool), k.output(DType::Bool), k.element());
    y.set(n, x.at(n));
    y.set(n, !x.at(n));
    let shader = k.finish(1).unwrap().unwrap();
    let text = shader.body.print(ShaderDialect::Wgsl, &[], 0);
    let expected = "out0[n] = in0[n];\nout0[n] = select(0u, 1u, !(in0[n] != 0u));\n";
    assert_eq!(text, expected);
}

/// The number of operators of random expressions.
const OPERATIONS: usize = 7;

/// A random expression of the numbers 2, 3 and 5, in the notation of a stack, and its value.
fn evaluate<'k>(k: &'k KernelBuilder, code: &[usize]) -> (KernelValue<'k>, u64) {
    let names = [("two", 2), ("three", 3), ("five", 5)];
    let mut stack: Vec<(KernelValue<'k>, u64)> = Vec::new();
    for &step in code {
        if step < names.len() || stack.len() < 2 {
            let (name, value) = names[step % names.len()];
            stack.push((k.opaque(name, ScalarType::U32), value));
            continue;
        }
        let ((b, y), (a, x)) = (stack.pop().unwrap(), stack.pop().unwrap());
        stack.push(match (step - names.len()) % OPERATIONS {
            0 => (a + b, x + y),
            1 if x < 1 << 16 && y < 1 << 16 => (a * b, x * y),
            2 if y > 0 => (a / b, x / y),
            3 if y > 0 => (a % b, x % y),
            4 if x >= y => (a - b, x - y),
            5 => (a & b, x & y),
            _ => (a ^ b, x ^ y),
        });
    }
    stack.pop().unwrap()
}

proptest! {
    /// naga computes constants: the text means what was built.
    #[test]
    fn texts_mean_what_was_built(code in proptest::collection::vec(0usize..10, 1..24)) {
        let k = KernelBuilder::new(Caps::default());
        let (value, expected) = evaluate(&k, &code);
        prop_assume!(expected <= u64::from(u32::MAX));
        k.bind("found", value);
        let shader = k.finish(1).unwrap().unwrap();
        let text = shader.body.print(ShaderDialect::Wgsl, &[], 0);
        let constant = text.trim_end().replace("let found", "const found");
        let means = |number: u64| {
            let text = format!(
                "const two = 2u;\nconst three = 3u;\nconst five = 5u;\n{constant}\n\
                 const_assert found == {number}u;\n",
            );
            naga::front::wgsl::parse_str(&text).is_ok()
        };
        prop_assert!(means(expected), "{text} is not {expected}");
        prop_assert!(!means(expected ^ 1), "{text} is anything");
    }
}

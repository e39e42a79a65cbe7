//! Functions of integers that shaders call.
//!
//! A device cannot report that a divisor is zero. As XLA has it on accelerators, quotients by zero
//! have all bits set and the remainder is the dividend; the lowest number by -1 is itself. Powers
//! with exponents below zero are rounded towards zero.

use super::math::ShaderFunction;

/// A function of two numbers of a type, and what it returns.
macro_rules! function {
    ($name:literal, $t:literal, $($body:expr),+) => {
        ShaderFunction {
            name: concat!($name, "_", $t, "_"),
            args: &[("x", $t), ("y", $t)],
            result: $t,
            body: concat!($($body),+),
        }
    };
}

/// The product of as many `x` as `y` says, by squares.
macro_rules! power {
    ($t:literal) => {
        concat!(
            "var base = x;\nvar left = y;\nvar result = ",
            $t,
            "(1);\nfor (var i = 0u; i < 64u; i++) {\nif (left == ",
            $t,
            "(0)) { break; }\nif ((left & ",
            $t,
            "(1)) == ",
            $t,
            "(1)) { result = result * base; }\nbase = base * base;\nleft = left >> 1u;\n}\nreturn result;\n"
        )
    };
}

/// Constants of signed types.
macro_rules! signed {
    ($t:literal) => {
        [
            function!(
                "div",
                $t,
                "if (y == ",
                $t,
                "(0)) { return ",
                $t,
                "(-1); }\n",
                "if (y == ",
                $t,
                "(-1)) { return ",
                $t,
                "(0) - x; }\nreturn x / y;\n"
            ),
            function!(
                "rem",
                $t,
                "if (y == ",
                $t,
                "(0)) { return x; }\n",
                "if (y == ",
                $t,
                "(-1)) { return ",
                $t,
                "(0); }\nreturn x % y;\n"
            ),
            function!(
                "floor_div",
                $t,
                "let q = div_",
                $t,
                "_(x, y);\nlet r = rem_",
                $t,
                "_(x, y);\n",
                "let down = y != ",
                $t,
                "(0) && r != ",
                $t,
                "(0) && (r < ",
                $t,
                "(0)) != (y < ",
                $t,
                "(0));\nreturn q - select(",
                $t,
                "(0), ",
                $t,
                "(1), down);\n"
            ),
            function!(
                "floor_mod",
                $t,
                "let r = rem_",
                $t,
                "_(x, y);\n",
                "let other = r != ",
                $t,
                "(0) && (r < ",
                $t,
                "(0)) != (y < ",
                $t,
                "(0));\n",
                "return select(r, r + y, other);\n"
            ),
            function!(
                "power",
                $t,
                "if (y < ",
                $t,
                "(0)) {\n",
                "if (x == ",
                $t,
                "(1)) { return x; }\n",
                "if (x != ",
                $t,
                "(-1)) { return ",
                $t,
                "(0); }\n",
                "}\n",
                power!($t)
            ),
        ]
    };
}

/// Constants of unsigned types.
macro_rules! unsigned {
    ($t:literal) => {
        [
            function!("div", $t, "if (y == ", $t, "(0)) { return ~", $t, "(0); }\nreturn x / y;\n"),
            function!("rem", $t, "if (y == ", $t, "(0)) { return x; }\nreturn x % y;\n"),
            function!("floor_div", $t, "return div_", $t, "_(x, y);\n"),
            function!("floor_mod", $t, "return rem_", $t, "_(x, y);\n"),
            function!("power", $t, power!($t)),
        ]
    };
}

const I32: [ShaderFunction; 5] = signed!("i32");
const I64: [ShaderFunction; 5] = signed!("i64");
const U32: [ShaderFunction; 5] = unsigned!("u32");
const U64: [ShaderFunction; 5] = unsigned!("u64");

/// All functions, each after those it calls.
pub(super) const FUNCTIONS: [&[ShaderFunction]; 4] = [&I32, &I64, &U32, &U64];

//! Work that the invocations of a workgroup do together: each has a part, and all get the whole.

use super::{scalar_type::Caps, tiles::TEAM};

/// Invocations of a warp.
pub(super) const WARP: usize = 32;

/// The shared array that parts go through.
pub(super) const PARTS: (&str, usize) = ("parts", TEAM);

/// Combination of two parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fold<'a> {
    Sum,
    /// By a function of the common language.
    Function(&'a str),
}

impl Fold<'_> {
    /// The expression that combines two parts.
    pub(super) fn combine(self, a: &str, b: &str) -> String {
        match self {
            Fold::Sum => format!("{a} + {b}"),
            Fold::Function(name) => format!("{name}({a}, {b})"),
        }
    }

    /// The statements that make `whole` of the `part` of each of so many invocations beside each
    /// other, a power of two that divides the group. All of a group come by here.
    pub(super) fn text(self, part: &str, whole: &str, lanes: usize, caps: Caps) -> String {
        match lanes {
            1 => format!("let {whole} = {part};\n"),
            WARP if caps.warps => self.of_warp(part, whole),
            TEAM if caps.warps => {
                let near = format!("{whole}_near");
                self.of_warp(part, &near) + &self.of_subgroups(&near, whole)
            }
            TEAM if caps.subgroups && self == Fold::Sum => {
                let near = format!("{whole}_near");
                let sum = format!("let {near} = subgroup_sum_({part});\n");
                sum + &self.of_subgroups(&near, whole)
            }
            lanes => self.by_halves(part, whole, lanes),
        }
    }

    /// Each of a warp has the whole of it, after as many exchanges as it has halves.
    fn of_warp(self, part: &str, whole: &str) -> String {
        let mut text = format!("var {whole} = {part};\n");
        let mut far = WARP / 2;
        while far > 0 {
            let step = self.combine(whole, &format!("subgroup_xor_({whole}, {far}u)"));
            text += &format!("{whole} = {step};\n");
            far /= 2;
        }
        text
    }

    /// The subgroups exchange their results through shared memory.
    fn of_subgroups(self, near: &str, whole: &str) -> String {
        let step = self.combine(whole, "parts[i]");
        format!(
            "if (subgroup_lane == 0u) {{ parts[subgroup] = {near}; }}\nbarrier_();\n\
             var {whole} = parts[0];\n\
             for (var i = 1u; i < subgroups; i++) {{ {whole} = {step}; }}\nbarrier_();\n"
        )
    }

    fn by_halves(self, part: &str, whole: &str, lanes: usize) -> String {
        let step = self.combine("parts[lane]", "parts[lane + half]");
        let (own, first) = match lanes {
            TEAM => ("lane".to_string(), "0".to_string()),
            lanes => (format!("lane % {lanes}u"), format!("lane - lane % {lanes}u")),
        };
        format!(
            "parts[lane] = {part};\nbarrier_();\n\
             for (var half = {}u; half > 0u; half = half >> 1u) {{\n\
             if ({own} < half) {{ parts[lane] = {step}; }}\nbarrier_();\n}}\n\
             let {whole} = parts[{first}];\nbarrier_();\n",
            lanes / 2
        )
    }
}

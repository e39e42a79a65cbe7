//! Work that the invocations of a workgroup do together: each has a part, and all get the whole.

use super::{scalar_type::Caps, tiles::TEAM};

/// The shared array that parts go through.
pub(super) const PARTS: (&str, usize) = ("parts", TEAM);

/// Combination of two parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fold<'a> {
    Sum,
    /// The larger; which of NaN and a number is not told.
    Max,
    /// By a function of the common language.
    Function(&'a str),
}

impl Fold<'_> {
    fn combine(self, a: &str, b: &str) -> String {
        match self {
            Fold::Sum => format!("{a} + {b}"),
            Fold::Max => format!("max({a}, {b})"),
            Fold::Function(name) => format!("{name}({a}, {b})"),
        }
    }

    /// The function that does so for neighbours, without memory.
    fn of_subgroups(self, caps: Caps) -> Option<&'static str> {
        match self {
            _ if !caps.subgroups => None,
            Fold::Sum => Some("subgroup_sum_"),
            Fold::Max => Some("subgroup_max_"),
            Fold::Function(_) => None,
        }
    }

    /// The statements that make `whole` of every invocation's `part`. All of a group come by here.
    pub(super) fn text(self, part: &str, whole: &str, caps: Caps) -> String {
        if let Some(function) = self.of_subgroups(caps) {
            let step = self.combine(whole, "parts[i]");
            return format!(
                "let {whole}_near = {function}({part});\n\
                 if (subgroup_lane == 0u) {{ parts[subgroup] = {whole}_near; }}\nbarrier_();\n\
                 var {whole} = parts[0];\n\
                 for (var i = 1u; i < subgroups; i++) {{ {whole} = {step}; }}\nbarrier_();\n"
            );
        }
        let step = self.combine("parts[lane]", "parts[lane + half]");
        format!(
            "parts[lane] = {part};\nbarrier_();\n\
             for (var half = {}u; half > 0u; half = half >> 1u) {{\n\
             if (lane < half) {{ parts[lane] = {step}; }}\nbarrier_();\n}}\n\
             let {whole} = parts[0];\nbarrier_();\n",
            TEAM / 2
        )
    }
}

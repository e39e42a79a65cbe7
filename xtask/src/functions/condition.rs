//! Conditions: of Rust, of tensors, and of both.

use super::{Pair, alike, dice::Dice, filled, scope::GeneratorScope};

/// The comparisons: a method of tensors, an operator of numbers.
const COMPARISONS: &[(&str, &str)] = &[
    ("less", "<"),
    ("less_equal", "<="),
    ("greater", ">"),
    ("greater_equal", ">="),
    ("equal", "=="),
    ("not_equal", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("eq", "=="),
    ("ne", "!="),
];

impl GeneratorScope {
    /// Random condition after `if` or `while`.
    pub(super) fn condition(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        match dice.roll(if depth == 0 { 3 } else { 8 }) {
            0..3 => self.tensor_condition(dice, depth.min(1)),
            3 => self.host_condition(dice),
            4 | 5 => {
                let sides = (self.condition(dice, depth - 1), self.condition(dice, depth - 1));
                alike(
                    dice.one_of::<&str>(&["$0 && $1", "($0 || $1)", "$0 && ($1)"]),
                    &[&sides.0, &sides.1],
                )
            }
            6 => alike("!($0)", &[&self.condition(dice, depth - 1)]),
            _ => {
                let sides = (self.host_condition(dice), self.tensor_condition(dice, depth - 1));
                alike(dice.one_of::<&str>(&["$0 && $1", "$1 || !$0"]), &[&sides.0, &sides.1])
            }
        }
    }

    /// A tensor of one bool.
    pub(super) fn tensor_condition(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (method, operator) = *dice.one_of(COMPARISONS);
        let left = match dice.roll(3) {
            0 if depth > 0 => {
                let value = self.owned(dice, depth - 1);
                filled("($0)", "($0)", &[&value])
            }
            0 | 1 => Pair::same(dice.one_of(&self.references).clone()),
            _ => Pair::same(dice.one_of(&self.variables).clone()),
        };
        let right = match dice.roll(3) {
            0 if depth > 0 && left.tensors.starts_with('(') => self.owned(dice, depth - 1),
            0 | 1 => Pair::same(format!("{}", dice.roll(12))),
            _ => {
                let name = dice.one_of(&self.variables).clone();
                Pair::new(format!("&{name}"), name)
            }
        };
        filled(
            &format!("$0.{method}($1)?"),
            &format!("($0 {operator} ({{ $1 }}))"),
            &[&left, &right],
        )
    }

    pub(super) fn host_condition(&mut self, dice: &mut Dice) -> Pair {
        Pair::same(*dice.one_of(&["flag", "(n > 1)", "(n == 0)", "is_small(n)"]))
    }
}

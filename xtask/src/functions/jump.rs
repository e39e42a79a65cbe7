//! Jumps, and the ends of functions.

use super::{
    Pair, alike,
    dice::Dice,
    filled,
    scope::{EnclosingScope, GeneratorScope},
};

impl GeneratorScope {
    /// The last expression of a function.
    pub(super) fn end(&mut self, dice: &mut Dice) -> Pair {
        match dice.roll(3) {
            0 => {
                let value = self.owned(dice, 2);
                filled("Ok($0)\n", "$0\n", &[&value])
            }
            1 => {
                let name = self.variables[0].clone();
                Pair::new(format!("Ok({name})\n"), format!("{name}\n"))
            }
            _ => alike("$0\n", &[&self.result(dice, 3)]),
        }
    }

    /// `break`, `continue` or `return`, or nothing where none may stand.
    pub(super) fn jump(&mut self, dice: &mut Dice) -> Pair {
        if self.shadows || self.around.is_empty() {
            return Pair::default();
        }
        if dice.is_one_in(3) {
            let value = self.owned(dice, 1);
            self.ends();
            return filled("return Ok($0);\n", "return $0;\n", &[&value]);
        }
        let targets = self.targets();
        if targets.is_empty() {
            return Pair::default();
        }
        let (number, is_innermost) = *dice.one_of(&targets);
        if number == 0 && !is_innermost {
            return Pair::default();
        }
        let label = match number == 0 || is_innermost && dice.is_one_in(2) {
            true => String::new(),
            false => format!(" 'l{number}"),
        };
        self.ends();
        Pair::same(format!("{}{label};\n", dice.one_of(&["break", "continue"])))
    }

    /// The loops that may be left: those of the graph, and of Rust where nothing staged is between.
    fn targets(&self) -> Vec<(u32, bool)> {
        let (mut targets, mut is_staged, mut is_innermost) = (Vec::new(), false, true);
        for around in self.around.iter().rev() {
            match around {
                EnclosingScope::Branch => is_staged = true,
                EnclosingScope::Loop(number) => {
                    targets.push((*number, is_innermost));
                    (is_staged, is_innermost) = (true, false);
                }
                EnclosingScope::HostLoop(number) => {
                    if !is_staged {
                        targets.push((*number, is_innermost));
                    }
                    is_innermost = false;
                }
                EnclosingScope::Value => (is_staged, is_innermost) = (true, false),
                EnclosingScope::Closure => break,
            }
        }
        targets
    }
}

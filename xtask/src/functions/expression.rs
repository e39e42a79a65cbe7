//! Values: tensors that are owned, operands, and results.

use super::{
    Pair, alike,
    dice::Dice,
    filled,
    scope::{EnclosingScope, GeneratorScope},
};

impl GeneratorScope {
    /// An expression for a tensor that is owned; may begin with a block.
    pub(super) fn owned(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        match dice.roll(if depth == 0 { 3 } else { 19 }) {
            0 | 1 => self.copied(dice),
            2 => constant(dice),
            3 | 4 => {
                let result = self.operation(dice, depth - 1);
                filled("($0)?", "($0)", &[&result])
            }
            5 => {
                let result = self.result(dice, depth - 1);
                filled("($0)?", "($0)", &[&result])
            }
            6 | 7 => self.choice(dice, depth - 1, |scope, dice, depth| scope.owned(dice, depth)),
            8 => self.method(dice, depth - 1),
            9 => self.picked(dice, depth - 1),
            10 => self.arms(dice, depth - 1),
            11 => self.moved(dice, depth - 1),
            12 => self.called(dice, depth - 1),
            13 => {
                let condition = self.tensor_condition(dice, depth - 1);
                filled("$0.cast(DType::I32)?", "i32::from($0)", &[&condition])
            }
            14 | 15 => self.integer_arms(dice, depth - 1),
            16 => self.value_of_loop(dice, depth - 1),
            17 => self.option_arms(dice, depth - 1),
            _ => {
                let value = self.result(dice, depth - 1);
                filled("twice($0)?", "twice($0)", &[&value])
            }
        }
    }

    fn copied(&mut self, dice: &mut Dice) -> Pair {
        let names = [&self.variables[..], &self.references].concat();
        let name = dice.one_of(&names).clone();
        Pair::new(format!("{name}.clone()"), name)
    }

    /// Either side of an operator, tensors where `is_left`.
    fn operand(&mut self, dice: &mut Dice, depth: u32, is_left: bool) -> Pair {
        match dice.roll(7) {
            3 if depth > 0 => {
                // An operator takes what another gives.
                let result = self.operation(dice, depth - 1);
                filled("($0)", "($0)", &[&result])
            }
            0 if !is_left => number(dice),
            0 | 1 => {
                let name = dice.one_of(&self.references).clone();
                Pair::same(name)
            }
            2 => {
                let name = dice.one_of(&self.variables).clone();
                Pair::new(format!("&{name}"), name)
            }
            _ => self.owned(dice, depth),
        }
    }

    /// An operator, whose value is a result.
    fn operation(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (operator, function) = *dice.one_of(&[("+", "add"), ("-", "sub"), ("*", "mul")]);
        if dice.is_one_in(6) {
            let (number, right) = (number(dice), self.operand(dice, depth, true));
            let numbers = format!("{function}($0, $1)");
            return filled(&format!("$0 {operator} $1"), &numbers, &[&number, &right]);
        }
        if dice.is_one_in(8) {
            // Rust expects a generic call to return what the operator does.
            let value = match dice.is_one_in(2) {
                true => self.operand(dice, 0, true),
                false => self.choice(dice, depth, |scope, dice, depth| scope.owned(dice, depth)),
            };
            return filled("-$0", "sub(0, $0)", &[&value]);
        }
        if dice.is_one_in(6) {
            let left = self.operand(dice, depth, true);
            let divisor = 2 + dice.roll(5);
            let numbers = format!("rem($0, {divisor})");
            let tensors = match begins_with_block(&left) {
                true => format!("($0 % {divisor})"),
                false => format!("$0 % {divisor}"),
            };
            return filled(&tensors, &numbers, &[&left]);
        }
        let left = self.operand(dice, depth, true);
        // What is borrowed on the left is not assigned on the right.
        let depth = if left.tensors.starts_with('&') { 0 } else { depth };
        let right = self.operand(dice, depth, false);
        let numbers = format!("{function}($0, $1)");
        // At the end of a block, what begins with a block would end with that.
        let tensors = match begins_with_block(&left) {
            true => format!("($0 {operator} $1)"),
            false => format!("$0 {operator} $1"),
        };
        filled(&tensors, &numbers, &[&left, &right])
    }

    /// An expression for a `Result<Tensor>`, whose errors are known.
    pub(super) fn result(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        match dice.roll(if depth == 0 { 2 } else { 6 }) {
            0 => self.operation(dice, 0),
            1 => self.operation(dice, depth),
            2 => {
                let (left, right) = (self.owned(dice, depth - 1), self.operand(dice, 0, false));
                filled("$0.maximum($1)", "(($0).max($1))", &[&left, &right])
            }
            3 => {
                let value = self.owned(dice, depth - 1);
                filled("Result::<Tensor>::Ok($0)", "$0", &[&value])
            }
            _ => self.choice(dice, depth - 1, |scope, dice, depth| scope.result(dice, depth)),
        }
    }

    /// `if`, with or without tensors.
    fn choice(
        &mut self,
        dice: &mut Dice,
        depth: u32,
        mut value: impl FnMut(&mut GeneratorScope, &mut Dice, u32) -> Pair,
    ) -> Pair {
        let condition = self.condition(dice, depth.min(2));
        let mut branch = |scope: &mut GeneratorScope, dice: &mut Dice, may_jump: bool| {
            let around = EnclosingScope::Branch;
            scope.inside(around, |scope| {
                let before = match (dice.is_one_in(3), may_jump) {
                    (true, true) => scope.statement(dice, depth.min(1)),
                    (true, false) => scope.declaration(dice, depth.min(1)),
                    (false, _) => Pair::default(),
                };
                match scope.is_over() {
                    true => before,
                    false => alike("$0$1", &[&before, &value(scope, dice, depth)]),
                }
            })
        };
        let then = branch(self, dice, true);
        if dice.is_one_in(4) {
            let other = self.condition(dice, depth.min(1));
            let (second, third) = (branch(self, dice, true), branch(self, dice, false));
            let template = "if $0 { $1 } else if $2 { $3 } else { $4 }";
            return alike(template, &[&condition, &then, &other, &second, &third]);
        }
        let otherwise = branch(self, dice, false);
        alike("if $0 { $1 } else { $2 }", &[&condition, &then, &otherwise])
    }

    fn method(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (left, right) = (self.owned(dice, depth), self.operand(dice, depth, false));
        let (method, numbers) = *dice.one_of(&[
            ("$0.maximum($1)?", "$0.max($1)"),
            ("$0.minimum($1)?", "$0.min($1)"),
            ("$0.floor_mod(7)?", "rem($0, 7)"),
            ("$0.abs()?", "$0.wrapping_abs()"),
        ]);
        filled(method, &format!("({})", numbers.replace("$0", "($0)")), &[&left, &right])
    }

    /// An element of a tuple or array.
    fn picked(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (a, b) = (self.owned(dice, depth), self.owned(dice, depth));
        if dice.is_one_in(2) {
            let side = dice.roll(2);
            return alike(&format!("($0, $1).{side}"), &[&a, &b]);
        }
        let condition = self.host_condition(dice);
        let tensors = "[$0, $1][if $2 { 0 } else { 1 }].clone()";
        filled(tensors, "[$0, $1][if $2 { 0 } else { 1 }]", &[&a, &b, &condition])
    }

    /// `match` on a number of Rust.
    fn arms(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let parts = [(); 3].map(|()| {
            let value = self.block(|scope| scope.owned(dice, depth));
            match dice.is_one_in(2) {
                true => alike("{ $0 }", &[&value]),
                false => alike("($0)", &[&value]),
            }
        });
        let [a, b, c] = &parts;
        alike("match n { 0 => $0, 1 | 2 => $1, _ => $2 }", &[a, b, c])
    }

    /// `match` on an option of Rust, with a tensor in it.
    fn option_arms(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (condition, inside) = (self.host_condition(dice), self.owned(dice, depth));
        let name = format!("o{}", self.fresh());
        let some = self.block(|scope| {
            scope.variables.push(name.clone());
            scope.owned(dice, depth)
        });
        let none = self.block(|scope| scope.owned(dice, depth));
        let template = *dice.one_of(&[
            "match if $0 { Some($1) } else { None } { Some(mut $2) => $3, None => $4 }",
            "if let Some(mut $2) = option($0, $1) { $3 } else { $4 }",
        ]);
        alike(template, &[&condition, &inside, &Pair::same(name), &some, &none])
    }

    /// `match` on a tensor of an integer.
    fn integer_arms(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let over = self.copied(dice);
        let parts = [(); 3].map(|()| {
            self.inside(EnclosingScope::Branch, |scope| {
                let value = scope.owned(dice, depth);
                match dice.is_one_in(2) {
                    true => alike("{ $0 }", &[&value]),
                    false => alike("($0)", &[&value]),
                }
            })
        });
        let [a, b, c] = &parts;
        let template = *dice.one_of(&[
            "match $3 { 0 => $0, 1 | -3 | 4..=6 => $1, _ => $2 }",
            "match $3 { -2..=2 => $0, 5 => $1, _ => $2 }",
        ]);
        alike(template, &[a, b, c, &over])
    }

    /// A loop that jumps end with a value.
    fn value_of_loop(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let counter = Pair::same(format!("k{}", self.fresh()));
        let most = Pair::same(dice.roll(4).to_string());
        let condition = self.condition(dice, 1);
        let inside = |scope: &mut GeneratorScope, dice: &mut Dice| scope.owned(dice, depth);
        let mut value = || self.inside(EnclosingScope::Value, |scope| inside(scope, dice));
        let (first, second) = (value(), value());
        filled(
            "{\nlet mut $0 = Tensor::from(0);\nloop {\n$0 = (&$0 + 1)?;\nif $2 {\nbreak \
             $3;\n}\nif $0.greater($1)? {\nbreak ($4);\n}\n}\n}",
            "{\nlet mut $0 = 0;\nloop {\n$0 += 1;\nif $2 {\nbreak $3;\n}\nif $0 > $1 {\nbreak \
             ($4);\n}\n}\n}",
            &[&counter, &most, &condition, &first, &second],
        )
    }

    /// A block whose last expression moves a variable of its own.
    fn moved(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let name = format!("t{}", self.fresh());
        let value = self.owned(dice, depth);
        let last = *dice.one_of(&[("$1", "$1"), ("($1 * 2)?", "mul($1, 2)")]);
        let template = |last: &str| format!("{{ let $1 = $0; {last} }}");
        filled(&template(last.0), &template(last.1), &[&value, &Pair::same(name)])
    }

    fn called(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let argument = self.owned(dice, depth);
        if self.closures.is_empty() {
            return filled("keep(&$0)", "$0", &[&argument]);
        }
        let name = Pair::same(dice.one_of(&self.closures).clone());
        filled("$0(&$1)?", "$0($1)", &[&name, &argument])
    }
}

fn begins_with_block(code: &Pair) -> bool {
    ["if ", "match ", "{", "loop "].iter().any(|block| code.tensors.starts_with(block))
}

fn constant(dice: &mut Dice) -> Pair {
    let number = dice.number();
    Pair::new(format!("Tensor::from({number})"), format!("({number}i32)"))
}

fn number(dice: &mut Dice) -> Pair {
    let number = dice.roll(9);
    Pair::new(format!("{number}"), format!("{number}i32"))
}

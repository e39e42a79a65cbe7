//! Statements.

use super::{
    Pair, alike,
    dice::Dice,
    filled,
    scope::{EnclosingScope, GeneratorScope},
};

impl GeneratorScope {
    pub(super) fn statements(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let mut code = Pair::default();
        for _ in 0..=dice.roll(3) {
            if self.is_over() {
                break;
            }
            code.push(&self.statement(dice, depth));
        }
        code
    }

    pub(super) fn statement(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        match dice.roll(if depth == 0 { 8 } else { 20 }) {
            0 | 1 => self.assignment(dice, depth),
            2 => self.two_assignments(dice, depth),
            3 if dice.is_one_in(3) => self.structure(dice, depth),
            3 => self.declaration(dice, depth),
            4 | 5 => self.jump(dice),
            6 => self.assertion(dice),
            7 => self.compound(dice, depth),
            8..12 => self.branches(dice, depth - 1),
            12 => self.while_loop(dice, depth - 1),
            13 => self.counted_loop(dice, depth - 1),
            14 => self.host_loop(dice, depth - 1),
            15 => self.endless_loop(dice, depth - 1),
            16 => self.set_in_branches(dice, depth - 1),
            17 => self.host_arms(dice, depth - 1),
            18 => self.rows(dice, depth - 1),
            _ => self.nested(dice, depth - 1),
        }
    }

    fn variable(&mut self, dice: &mut Dice) -> Pair {
        Pair::same(dice.one_of(&self.variables).clone())
    }

    fn assignment(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (name, value) = (self.variable(dice), self.owned(dice, depth));
        alike("$0 = $1;\n", &[&name, &value])
    }

    fn compound(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (name, value) = (self.variable(dice), self.owned(dice, depth));
        let (operator, function) = *dice.one_of(&[("+", "add"), ("-", "sub"), ("*", "mul")]);
        let numbers = format!("$0 = {function}($0, $1);\n");
        if dice.is_one_in(2) {
            // The variable is borrowed while the value is computed, which assigns to none.
            let value = match dice.is_one_in(2) {
                true => {
                    let (a, b) = (self.owned(dice, 0), self.owned(dice, 0));
                    filled("$0 * $1", "mul($0, $1)", &[&a, &b])
                }
                false => self.owned(dice, 0),
            };
            return filled(&format!("$0 {operator}= $1;\n"), &numbers, &[&name, &value]);
        }
        filled(
            &format!("$0 = ($1 {operator} &$0)?;\n"),
            &numbers.replace("$0, $1", "$1, $0"),
            &[&name, &value],
        )
    }

    fn two_assignments(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let values = (self.owned(dice, depth), self.owned(dice, depth));
        let (a, b) = (self.variable(dice), self.variable(dice));
        if a.tensors == b.tensors {
            return alike("$0 = $1;\n", &[&a, &values.0]);
        }
        alike("($0, $1) = ($2, $3);\n", &[&a, &b, &values.0, &values.1])
    }

    pub(super) fn declaration(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let value = self.owned(dice, depth);
        let shadowed = match self.shadows && self.around.is_empty() && dice.is_one_in(2) {
            true => Some(dice.one_of(&self.variables).clone()),
            false => None,
        };
        let shadowed = shadowed.filter(|name| !name.contains('.'));
        let name = shadowed.unwrap_or_else(|| format!("v{}", self.fresh()));
        self.variables.push(name.clone());
        alike("let mut $0 = $1;\n", &[&Pair::same(name), &value])
    }

    /// A structure whose fields are variables.
    fn structure(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let values = (self.owned(dice, depth), self.owned(dice, depth));
        let name = format!("s{}", self.fresh());
        self.variables.extend([format!("{name}.a"), format!("{name}.b")]);
        alike("let mut $0 = Fields { a: $1, b: $2 };\n", &[&Pair::same(name), &values.0, &values.1])
    }

    fn assertion(&mut self, dice: &mut Dice) -> Pair {
        let condition = self.tensor_condition(dice, 0);
        alike("assert!($0 || !$0, \"always\");\n", &[&condition])
    }

    fn branch(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        self.inside(EnclosingScope::Branch, |scope| scope.statements(dice, depth))
    }

    fn branches(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (condition, then) = (self.condition(dice, 2), self.branch(dice, depth));
        match dice.roll(3) {
            0 => alike("if $0 {\n$1}\n", &[&condition, &then]),
            1 => {
                let otherwise = self.branch(dice, depth);
                alike("if $0 {\n$1} else {\n$2}\n", &[&condition, &then, &otherwise])
            }
            _ => {
                let other = self.condition(dice, 1);
                let (second, third) = (self.branch(dice, depth), self.branch(dice, depth));
                let template = "if $0 {\n$1} else if $2 {\n$3} else {\n$4}\n";
                alike(template, &[&condition, &then, &other, &second, &third])
            }
        }
    }

    /// A variable that all branches initialize.
    fn set_in_branches(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let (condition, name) = (self.condition(dice, 2), format!("v{}", self.fresh()));
        let variable = Pair::same(name.clone());
        // A jump before the assignment would need a value that is not there.
        let shadows = std::mem::replace(&mut self.shadows, true);
        let mut set = |scope: &mut GeneratorScope| {
            scope.inside(EnclosingScope::Branch, |scope| {
                let before = match dice.is_one_in(2) {
                    true => scope.declaration(dice, depth),
                    false => Pair::default(),
                };
                let value = scope.owned(dice, depth);
                alike("$0$1 = $2;\n", &[&before, &variable, &value])
            })
        };
        let [a, b, c] = [set(self), set(self), set(self)];
        self.shadows = shadows;
        let template = *dice.one_of(&[
            "let mut $0;\nif $1 {\n$2} else {\n$3}\n",
            "let mut $0;\nif $1 {\n$2} else if flag {\n$3} else {\n$4}\n",
            "let mut $0;\nmatch n {\n0 => {\n$4}\n_ => if $1 {\n$2} else {\n$3}\n}\n",
        ]);
        self.variables.push(name);
        alike(template, &[&variable, &condition, &a, &b, &c])
    }

    fn host_arms(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let [a, b] = [(); 2].map(|()| self.block(|scope| scope.statements(dice, depth)));
        alike("match n {\n1 => {\n$0}\n_ => {\n$1}\n}\n", &[&a, &b])
    }

    fn nested(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let body = self.block(|scope| scope.statements(dice, depth));
        alike("{\n$0}\n", &[&body])
    }

    /// The label and name of a loop.
    fn labelled(&mut self, dice: &mut Dice) -> (u32, Pair) {
        let number = self.fresh();
        // Every loop has a label, which jumps may use or not.
        let label = if dice.is_one_in(9) { String::new() } else { format!("'l{number}: ") };
        let number = if label.is_empty() { 0 } else { number };
        (number, Pair::same(label))
    }

    fn while_loop(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let counter = Pair::same(format!("k{}", self.fresh()));
        let ((number, label), most) = (self.labelled(dice), Pair::same(dice.roll(5).to_string()));
        let condition = self.condition(dice, 1);
        let body = self.inside(EnclosingScope::Loop(number), |scope| scope.statements(dice, depth));
        filled(
            "let mut $0 = Tensor::from(0);\n$1while $0.less($2)? && ($3) {\n$0 = (&$0 + 1)?;\n$4}\n",
            "let mut $0 = 0;\n$1while $0 < $2 && ($3) {\n$0 += 1;\n$4}\n",
            &[&counter, &label, &most, &condition, &body],
        )
    }

    fn counted_loop(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let ((number, label), name) = (self.labelled(dice), format!("i{}", self.fresh()));
        let end = self.owned(dice, 0);
        let index = Pair::same(name.clone());
        let body = self.inside(EnclosingScope::Loop(number), |scope| {
            scope.variables.push(name);
            scope.statements(dice, depth)
        });
        let (tensors, numbers) = *dice.one_of(&[
            ("range(($2).floor_mod(4)?)", "0..rem($2, 4)"),
            ("range(-1, ($2).floor_mod(3)?)", "-1..rem($2, 3)"),
            ("range(&($2).floor_mod(6)?, 0, -2)", "counts(rem($2, 6), 0, -2)"),
            ("0..($2).floor_mod(4)?", "0..rem($2, 4)"),
        ]);
        filled(
            &format!("$1for mut $0 in {tensors} {{\n$3}}\n"),
            &format!("$1for mut $0 in {numbers} {{\n$3}}\n"),
            &[&index, &label, &end, &body],
        )
    }

    fn rows(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let ((number, label), name) = (self.labelled(dice), format!("r{}", self.fresh()));
        let row = Pair::same(name.clone());
        let body = self.inside(EnclosingScope::Loop(number), |scope| {
            scope.variables.push(name);
            scope.statements(dice, depth)
        });
        let tensors = *dice.one_of(&["Tensor::from([3, -1, 5])", "&Elements([3, -1, 5])"]);
        filled(
            &format!("$1for mut $0 in {tensors} {{\n$2}}\n"),
            "$1for mut $0 in [3i32, -1, 5] {\n$2}\n",
            &[&row, &label, &body],
        )
    }

    fn host_loop(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let ((number, label), name) = (self.labelled(dice), format!("h{}", self.fresh()));
        let index = Pair::same(name.clone());
        let body =
            self.inside(EnclosingScope::HostLoop(number), |scope| scope.statements(dice, depth));
        let over = Pair::same(*dice.one_of(&["0..2", "0..n", "(0..3).rev()"]));
        let first = self.variable(dice);
        filled(
            "$1for $0 in $2 {\n$4 = (&$4 + $0 as i32)?;\n$3}\n",
            "$1for $0 in $2 {\n$4 = add($4, $0 as i32);\n$3}\n",
            &[&index, &label, &over, &body, &first],
        )
    }

    fn endless_loop(&mut self, dice: &mut Dice, depth: u32) -> Pair {
        let counter = Pair::same(format!("k{}", self.fresh()));
        let ((number, label), most) = (self.labelled(dice), Pair::same(dice.roll(4).to_string()));
        let body = self.inside(EnclosingScope::Loop(number), |scope| scope.statements(dice, depth));
        filled(
            "let mut $0 = Tensor::from(0);\n$1loop {\nif $0.greater($2)? {\nbreak;\n}\n$0 = (&$0 + \
             1)?;\n$3}\n",
            "let mut $0 = 0;\n$1loop {\nif $0 > $2 {\nbreak;\n}\n$0 += 1;\n$3}\n",
            &[&counter, &label, &most, &body],
        )
    }

    /// A closure that uses what cannot be assigned.
    pub(super) fn closure(&mut self, dice: &mut Dice) -> Pair {
        let name = format!("c{}", self.fresh());
        let variables = std::mem::replace(&mut self.variables, vec!["z".into()]);
        let around = std::mem::replace(&mut self.around, vec![EnclosingScope::Closure]);
        let references = self.references.len();
        self.references.push("t".into());
        let body = self.block(|scope| {
            let before = scope.statements(dice, 1);
            match scope.is_over() {
                true => before,
                false => alike("$0$1", &[&before, &scope.end(dice)]),
            }
        });
        self.references.truncate(references);
        (self.variables, self.around) = (variables, around);
        self.closures.push(name.clone());
        filled(
            "let $0 = |t: &Tensor| -> Result<Tensor> {\nlet mut z = t.clone();\n$1};\n",
            "let $0 = |t: i32| -> i32 {\nlet mut z = t;\n$1};\n",
            &[&Pair::same(name), &body],
        )
    }
}

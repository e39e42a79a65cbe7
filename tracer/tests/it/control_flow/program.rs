//! Random programs, and one full of jumps: what they give in Rust, and how they are traced. The
//! tests of the facade save and load the same programs.

use ferroflow_tracer::{
    Result, Tensor, WhileOptions, cond, function, range, switch_case, while_loop, while_loop_with,
};
use std::sync::Arc;

/// Numbers that look random, the same in every run (a linear congruential generator; its constants
/// are those of Knuth's MMIX).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    pub(crate) fn number(&mut self) -> i32 {
        self.roll(21) as i32 - 10
    }
}

pub(crate) const VARIABLES: u64 = 3;

#[derive(Debug)]
pub(crate) enum Expr {
    Constant(i32),
    Variable(usize),
    Add(Arc<Expr>, Arc<Expr>),
    Subtract(Arc<Expr>, Arc<Expr>),
    Multiply(Arc<Expr>, Arc<Expr>),
}

#[derive(Debug)]
pub(crate) struct Condition {
    left: Expr,
    right: Expr,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Assign(usize, Expr),
    If(Condition, Vec<Statement>, Vec<Statement>),
    /// At most so many times.
    While(Condition, i32, Vec<Statement>),
    Repeat(i32, Vec<Statement>),
    Switch(usize, Vec<Vec<Statement>>),
}

impl Expr {
    fn random(dice: &mut Dice, depth: u32) -> Expr {
        let side = |dice: &mut Dice| Arc::new(Expr::random(dice, depth - 1));
        match dice.roll(if depth == 0 { 2 } else { 5 }) {
            0 => Expr::Constant(dice.number()),
            1 => Expr::Variable(dice.roll(VARIABLES) as usize),
            2 => Expr::Add(side(dice), side(dice)),
            3 => Expr::Subtract(side(dice), side(dice)),
            _ => Expr::Multiply(side(dice), side(dice)),
        }
    }

    fn value(&self, state: &[i32]) -> i32 {
        match self {
            Expr::Constant(value) => *value,
            Expr::Variable(index) => state[*index],
            Expr::Add(a, b) => a.value(state).wrapping_add(b.value(state)),
            Expr::Subtract(a, b) => a.value(state).wrapping_sub(b.value(state)),
            Expr::Multiply(a, b) => a.value(state).wrapping_mul(b.value(state)),
        }
    }

    fn tensor(&self, state: &[Tensor]) -> Result<Tensor> {
        match self {
            Expr::Constant(value) => Ok(Tensor::from(*value)),
            Expr::Variable(index) => Ok(state[*index].clone()),
            Expr::Add(a, b) => a.tensor(state)? + b.tensor(state)?,
            Expr::Subtract(a, b) => a.tensor(state)? - b.tensor(state)?,
            Expr::Multiply(a, b) => a.tensor(state)? * b.tensor(state)?,
        }
    }
}

impl Condition {
    fn random(dice: &mut Dice) -> Condition {
        Condition { left: Expr::random(dice, 1), right: Expr::random(dice, 1) }
    }

    fn value(&self, state: &[i32]) -> bool {
        self.left.value(state) < self.right.value(state)
    }

    fn tensor(&self, state: &[Tensor]) -> Result<Tensor> {
        self.left.tensor(state)?.less(self.right.tensor(state)?)
    }
}

pub(crate) fn block(dice: &mut Dice, depth: u32) -> Vec<Statement> {
    (0..=dice.roll(3)).map(|_| Statement::random(dice, depth)).collect()
}

impl Statement {
    fn random(dice: &mut Dice, depth: u32) -> Statement {
        match dice.roll(if depth == 0 { 1 } else { 5 }) {
            0 => Statement::Assign(dice.roll(VARIABLES) as usize, Expr::random(dice, 2)),
            1 => {
                let condition = Condition::random(dice);
                Statement::If(condition, block(dice, depth - 1), block(dice, depth - 1))
            }
            2 => {
                let (condition, most) = (Condition::random(dice), dice.roll(5) as i32);
                Statement::While(condition, most, block(dice, depth - 1))
            }
            3 => Statement::Repeat(dice.roll(4) as i32, block(dice, depth - 1)),
            _ => {
                let branches = (0..=dice.roll(3)).map(|_| block(dice, depth - 1)).collect();
                Statement::Switch(dice.roll(VARIABLES) as usize, branches)
            }
        }
    }

    pub(crate) fn run(&self, state: &mut [i32]) {
        match self {
            Statement::Assign(index, value) => state[*index] = value.value(state),
            Statement::If(condition, then, otherwise) => {
                let branch = if condition.value(state) { then } else { otherwise };
                branch.iter().for_each(|statement| statement.run(state));
            }
            Statement::While(condition, most, body) => {
                let mut left = *most;
                while left > 0 && condition.value(state) {
                    body.iter().for_each(|statement| statement.run(state));
                    left -= 1;
                }
            }
            Statement::Repeat(times, body) => {
                for _ in 0..*times {
                    body.iter().for_each(|statement| statement.run(state));
                }
            }
            Statement::Switch(index, branches) => {
                let number = usize::try_from(state[*index]).ok();
                let branch = number.and_then(|number| branches.get(number));
                let branch = branch.unwrap_or(&branches[branches.len() - 1]);
                branch.iter().for_each(|statement| statement.run(state));
            }
        }
    }
}

/// The program by hand.
pub(crate) fn staged(program: &[Statement], mut state: Vec<Tensor>) -> Result<Vec<Tensor>> {
    for statement in program {
        state = match statement {
            Statement::Assign(index, value) => {
                let value = value.tensor(&state)?;
                state[*index] = value;
                state
            }
            Statement::If(condition, then, otherwise) => cond(
                &condition.tensor(&state)?,
                || staged(then, state.clone()),
                || staged(otherwise, state.clone()),
            )?,
            Statement::While(condition, most, body) => {
                let options = WhileOptions {
                    maximum_iterations: Some(Tensor::from(*most)),
                    ..WhileOptions::default()
                };
                let holds = |state: &Vec<Tensor>| condition.tensor(state);
                while_loop_with(&options, holds, |state| staged(body, state), state)?
            }
            Statement::Repeat(times, body) => {
                let more = |(i, _): &(Tensor, Vec<Tensor>)| i.less(*times);
                let step = |(i, state): (Tensor, Vec<Tensor>)| Ok(((i + 1)?, staged(body, state)?));
                while_loop(more, step, (Tensor::from(0), state))?.1
            }
            Statement::Switch(index, branches) => {
                let run: Vec<Box<dyn Fn() -> Result<Vec<Tensor>>>> = branches
                    .iter()
                    .map(|branch| {
                        let state = state.clone();
                        Box::new(move || staged(branch, state.clone())) as Box<dyn Fn() -> _>
                    })
                    .collect();
                let run: Vec<&dyn Fn() -> Result<Vec<Tensor>>> =
                    run.iter().map(|branch| &**branch).collect();
                switch_case(&state[*index], &run)?
            }
        };
    }
    Ok(state)
}

/// Loops within loops, left by those of nine jumps that are switched on.
pub(crate) fn jumping(on: i64, a: &[i32]) -> i32 {
    let is_on = |jump: i64| on & (1 << jump) != 0;
    let (mut x, mut steps) = (a[0], 0);
    'outer: for i in 0..4 {
        x += 1;
        if is_on(0) && x > a[1] {
            continue;
        }
        let mut j = 0;
        'middle: while j < 3 {
            j += 1;
            x += j;
            if is_on(1) && x == a[2] {
                break 'outer;
            }
            if is_on(2) && (x > 40 || i > 2) {
                break;
            }
            let mut k = i;
            loop {
                k += 1;
                steps += 1;
                if k > 3 {
                    break;
                }
                if is_on(3) && k == a[3] {
                    continue 'middle;
                }
                if is_on(4) && steps > 9 {
                    return x * 1000 + steps;
                }
                if is_on(5) {
                    if steps == a[1] {
                        x += 7;
                        continue 'outer;
                    } else if steps == a[2] {
                        x -= 9;
                    }
                }
                if is_on(6) && steps >= 7 && x > a[2] {
                    break 'middle;
                }
                x += 2;
            }
            if is_on(7) && x > 60 {
                return -x;
            }
            x += 1;
        }
        if is_on(8) && x > 30 {
            break;
        }
        x += 10;
    }
    x * 100 + steps
}

/// The same with tensors; what is switched on is known while tracing.
#[function]
pub(crate) fn jumping_tensors(on: i64, a: &[Tensor]) -> Result<Tensor> {
    let is_on = |jump: i64| on & (1 << jump) != 0;
    let (mut x, mut steps) = (a[0].clone(), Tensor::from(0));
    'outer: for i in range(Tensor::from(4)) {
        x = (x + 1)?;
        if is_on(0) && x.greater(&a[1])? {
            continue;
        }
        let mut j = Tensor::from(0);
        'middle: while j.less(3)? {
            j = (j + 1)?;
            x = (x + &j)?;
            if is_on(1) && x.equal(&a[2])? {
                break 'outer;
            }
            if is_on(2) && (x.greater(40)? || i.greater(2)?) {
                break;
            }
            let mut k = i.clone();
            loop {
                k = (k + 1)?;
                steps = (steps + 1)?;
                if k.greater(3)? {
                    break;
                }
                if is_on(3) && k.equal(&a[3])? {
                    continue 'middle;
                }
                if is_on(4) && steps.greater(9)? {
                    return (x * 1000)? + steps;
                }
                if is_on(5) {
                    if steps.equal(&a[1])? {
                        x = (x + 7)?;
                        continue 'outer;
                    } else if steps.equal(&a[2])? {
                        x = (x - 9)?;
                    }
                }
                if is_on(6) && !steps.less(7)? && x.greater(&a[2])? {
                    break 'middle;
                }
                x = (x + 2)?;
            }
            if is_on(7) && x.greater(60)? {
                return x.neg();
            }
            x = (x + 1)?;
        }
        if is_on(8) && x.greater(30)? {
            break;
        }
        x = (x + 10)?;
    }
    (x * 100)? + steps
}

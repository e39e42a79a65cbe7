//! Smaller programs with the same fault.

use super::{
    check::{Divergence, Verdict, check_again},
    program::{FuzzProgram, Head, Id, ProgramBlock, StatementOperand, Stmt},
};
use std::time::{Duration, Instant};

/// The smallest program found that fails in the same way, and its fault.
pub(crate) fn shrink(
    program: FuzzProgram,
    fault: Divergence,
    limit: Duration,
) -> (FuzzProgram, Divergence) {
    let end = Instant::now() + limit;
    let (mut program, mut fault) = (program, fault);
    'smaller: loop {
        for mut candidate in variants(&program) {
            if Instant::now() > end {
                return (program, fault);
            }
            if let Verdict::Failed(found) = check_again(&mut candidate, &fault)
                && found.is_like(&fault)
            {
                (program, fault) = (candidate, found);
                continue 'smaller;
            }
        }
        return (program, fault);
    }
}

/// Programs that are smaller in one respect, the boldest first.
pub(crate) fn variants(program: &FuzzProgram) -> Vec<FuzzProgram> {
    let mut variants = Variants { program, size: size(program), list: Vec::new() };
    // Statements that nothing uses may matter: they are part of what is traced.
    variants.add(drop_unused_calls);
    variants.results_and_calls();
    variants.statements();
    variants.arguments_for_results();
    variants.blocks();
    variants.parameters();
    variants.options();
    variants.list
}

fn size(program: &FuzzProgram) -> usize {
    program.to_string().len()
}

struct Variants<'a> {
    program: &'a FuzzProgram,
    size: usize,
    list: Vec<FuzzProgram>,
}

impl Variants<'_> {
    /// Adds a changed program, if it still is one and got smaller.
    fn add(&mut self, change: impl FnOnce(&mut FuzzProgram)) {
        let mut program = self.program.clone();
        change(&mut program);
        sweep(&mut program);
        if !program.main.results.is_empty() && size(&program) < self.size {
            self.list.push(program);
        }
    }

    fn results_and_calls(&mut self) {
        let results = &self.program.main.results;
        if results.len() > 1 {
            for &result in results {
                self.add(|program| program.main.results = vec![result]);
            }
            for at in 0..results.len() {
                self.add(|program| {
                    program.main.results.remove(at);
                });
            }
        }
        let calls = &self.program.calls;
        for at in 0..calls.len() {
            self.add(|program| program.calls = vec![program.calls[at]]);
        }
        for at in 0..calls.len() {
            self.add(|program| {
                program.calls.remove(at);
            });
        }
    }

    fn statements(&mut self) {
        for number in 0..n_blocks(self.program) {
            let len = with_block(self.program, number, |block| block.stmts.len());
            let mut part = len / 2;
            while part > 0 {
                for at in (0..len).step_by(part).rev() {
                    self.add(|program| {
                        change_block(program, number, |block| {
                            block.stmts.drain(at..(at + part).min(len));
                        });
                    });
                }
                part /= 2;
            }
        }
    }

    /// Puts operands in place of results.
    fn arguments_for_results(&mut self) {
        for number in 0..n_blocks(self.program) {
            let stmts = with_block(self.program, number, |block| block.stmts.clone());
            for (at, stmt) in stmts.iter().enumerate().rev() {
                for arg in &stmt.args {
                    let StatementOperand::Value(arg) = *arg else { continue };
                    self.add(|program| {
                        change_block(program, number, |block| {
                            let stmt = block.stmts.remove(at);
                            stmt.outs.iter().for_each(|&out| rename(block, out, arg));
                        });
                    });
                }
            }
        }
    }

    /// Puts a block in place of the statement that has it, and drops variables of loops.
    fn blocks(&mut self) {
        for number in 0..n_blocks(self.program) {
            let stmts = with_block(self.program, number, |block| block.stmts.clone());
            for (at, stmt) in stmts.iter().enumerate() {
                for inner in &stmt.blocks {
                    self.add(|program| {
                        change_block(program, number, |block| inline(block, at, inner));
                    });
                }
                if let Head::Call(callee) = stmt.head
                    && let Some(inner) = self.program.funcs.get(callee).cloned()
                {
                    self.add(|program| {
                        let fresh = renumbered(&inner, program.n_ids());
                        change_block(program, number, |block| inline(block, at, &fresh));
                    });
                }
                if matches!(stmt.head, Head::While(_)) {
                    for variable in 1..stmt.args.len() {
                        self.add(|program| {
                            change_block(program, number, |block| {
                                drop_variable(block, at, variable);
                            });
                        });
                    }
                }
                for (index, inner) in stmt.blocks.iter().enumerate() {
                    self.block_results(number, at, index, inner, stmt);
                }
            }
        }
    }

    /// Puts parameters in place of the results of a nested block.
    fn block_results(
        &mut self,
        number: usize,
        at: usize,
        index: usize,
        inner: &ProgramBlock,
        stmt: &Stmt,
    ) {
        let is_body = matches!(stmt.head, Head::While(_)) && index == 1;
        for (result, &param) in inner.params.iter().enumerate() {
            if is_body && result > 0 && inner.results.get(result) != Some(&param) {
                self.add(|program| {
                    change_block(program, number, |block| {
                        block.stmts[at].blocks[index].results[result] = param;
                    });
                });
            }
        }
    }

    fn parameters(&mut self) {
        for at in 0..self.program.main.params.len() {
            self.add(|program| {
                program.main.params.remove(at);
                program.inputs.iter_mut().for_each(|list| drop(list.remove(at)));
            });
        }
        for at in 0..self.program.vars.len() {
            self.add(|program| drop_var(program, at));
        }
    }

    fn options(&mut self) {
        self.add(|program| program.has_outer_gradient = false);
        self.add(|program| {
            let clear = &mut |stmt: &mut Stmt| stmt.device = None;
            program.main.visit_stmts(clear);
            program.funcs.iter_mut().for_each(|block| block.visit_stmts(clear));
            program.vars.iter_mut().for_each(|variable| variable.device = None);
        });
        self.add(|program| {
            program.vars.iter_mut().for_each(|variable| variable.is_flexible = false);
        });
    }
}

/// Drops what refers to values that are not there, and inputs that no call takes.
fn sweep(program: &mut FuzzProgram) {
    for block in &mut program.funcs {
        sweep_block(block, &[]);
    }
    sweep_block(&mut program.main, &[]);
    let used: Vec<usize> =
        (0..program.inputs.len()).filter(|number| program.calls.contains(number)).collect();
    program.inputs = used.iter().map(|&number| program.inputs[number].clone()).collect();
    for call in &mut program.calls {
        *call = used.iter().position(|number| number == call).unwrap_or(0);
    }
    while program.funcs.pop_if_unused(&program.main) {}
}

trait PopUnused {
    /// Drops the last function if no statement calls it.
    fn pop_if_unused(&mut self, main: &ProgramBlock) -> bool;
}

impl PopUnused for Vec<ProgramBlock> {
    fn pop_if_unused(&mut self, main: &ProgramBlock) -> bool {
        let Some(last) = self.len().checked_sub(1) else { return false };
        let mut is_used = false;
        for block in self.iter().chain([main]) {
            block.visit(&mut |block| {
                is_used |= block.stmts.iter().any(|stmt| stmt.head == Head::Call(last));
            });
        }
        if !is_used {
            self.pop();
        }
        !is_used
    }
}

/// Drops statements with operands that are not there, and results that are not.
fn sweep_block(block: &mut ProgramBlock, around: &[Id]) {
    let mut known = around.to_vec();
    known.extend(&block.params);
    let stmts = std::mem::take(&mut block.stmts);
    for mut stmt in stmts {
        let is_known = |arg: &StatementOperand| match arg {
            StatementOperand::Value(id) => known.contains(id),
            StatementOperand::Variable(_) | StatementOperand::Const(_) => true,
        };
        if !stmt.args.iter().all(is_known) {
            continue;
        }
        let lens: Vec<usize> = stmt.blocks.iter().map(|block| block.results.len()).collect();
        stmt.blocks.iter_mut().for_each(|inner| sweep_block(inner, &known));
        if stmt.blocks.iter().zip(lens).all(|(block, len)| block.results.len() == len) {
            known.extend(&stmt.outs);
            block.stmts.push(stmt);
        }
    }
    block.results.retain(|id| known.contains(id));
}

/// Drops statements without effects whose results nothing uses.
fn drop_unused_calls(program: &mut FuzzProgram) {
    for block in program.funcs.iter_mut().chain([&mut program.main]) {
        while drop_unused(block, &[]) {}
    }
}

fn drop_unused(block: &mut ProgramBlock, around: &[Id]) -> bool {
    let mut used = around.to_vec();
    used.extend(&block.results);
    block.stmts.iter().for_each(|stmt| super::generate::uses(stmt, &mut used));
    let before = block.stmts.len();
    block.stmts.retain(|stmt| {
        stmt.outs.is_empty() || has_effect(stmt) || stmt.outs.iter().any(|out| used.contains(out))
    });
    let mut is_changed = block.stmts.len() < before;
    for inner in block.stmts.iter_mut().flat_map(|stmt| &mut stmt.blocks) {
        is_changed |= drop_unused(inner, &[]);
    }
    is_changed
}

fn has_effect(stmt: &Stmt) -> bool {
    let is_write = matches!(stmt.head, Head::Op(..)) && stmt.outs.is_empty();
    is_write
        || matches!(stmt.head, Head::Call(_))
        || stmt.blocks.iter().any(|block| block.stmts.iter().any(has_effect))
}

fn n_blocks(program: &FuzzProgram) -> usize {
    let mut n = 0;
    program.funcs.iter().chain([&program.main]).for_each(|block| block.visit(&mut |_| n += 1));
    n
}

fn with_block<R>(program: &FuzzProgram, number: usize, look: impl FnOnce(&ProgramBlock) -> R) -> R {
    let mut blocks = Vec::new();
    for block in program.funcs.iter().chain([&program.main]) {
        block.visit(&mut |block| blocks.push(block));
    }
    look(blocks[number])
}

fn change_block(program: &mut FuzzProgram, number: usize, change: impl FnOnce(&mut ProgramBlock)) {
    fn find<'a>(block: &'a mut ProgramBlock, left: &mut usize) -> Option<&'a mut ProgramBlock> {
        if *left == 0 {
            return Some(block);
        }
        *left -= 1;
        block.stmts.iter_mut().flat_map(|stmt| &mut stmt.blocks).find_map(|block| find(block, left))
    }
    let mut left = number;
    let mut blocks = program.funcs.iter_mut().chain([&mut program.main]);
    if let Some(block) = blocks.find_map(|block| find(block, &mut left)) {
        change(block);
    }
}

/// Puts another value in place of one.
fn rename(block: &mut ProgramBlock, from: Id, to: Id) {
    let put = |id: &mut Id| *id = if *id == from { to } else { *id };
    for stmt in &mut block.stmts {
        for arg in &mut stmt.args {
            if let StatementOperand::Value(id) = arg {
                put(id);
            }
        }
        stmt.blocks.iter_mut().for_each(|inner| rename(inner, from, to));
    }
    block.results.iter_mut().for_each(put);
}

/// Puts a block in place of the statement at `at`.
fn inline(block: &mut ProgramBlock, at: usize, inner: &ProgramBlock) {
    let stmt = block.stmts.remove(at);
    let mut inner = inner.clone();
    for (&param, arg) in inner.params.clone().iter().zip(&stmt.args) {
        match arg {
            StatementOperand::Value(arg) => rename(&mut inner, param, *arg),
            constant => {
                let head = Head::Op("Identity", Default::default());
                let (args, blocks, device) = (vec![constant.clone()], Vec::new(), None);
                inner.stmts.insert(0, Stmt { outs: vec![param], head, args, blocks, device });
            }
        }
    }
    for (&out, &result) in stmt.outs.iter().zip(&inner.results) {
        rename(block, out, result);
    }
    block.stmts.splice(at..at, inner.stmts);
}

/// The block with values of its own.
fn renumbered(block: &ProgramBlock, first: Id) -> ProgramBlock {
    let mut ids = Vec::new();
    block.visit(&mut |block| {
        ids.extend(&block.params);
        block.stmts.iter().for_each(|stmt| ids.extend(&stmt.outs));
    });
    let mut block = block.clone();
    for (index, &id) in ids.iter().enumerate() {
        rename_all(&mut block, id, first + index);
    }
    block
}

/// As `rename`, also where the value is assigned.
fn rename_all(block: &mut ProgramBlock, from: Id, to: Id) {
    rename(block, from, to);
    fn assigned(block: &mut ProgramBlock, from: Id, to: Id) {
        let put = |id: &mut Id| *id = if *id == from { to } else { *id };
        block.params.iter_mut().for_each(put);
        for stmt in &mut block.stmts {
            stmt.outs.iter_mut().for_each(put);
            stmt.blocks.iter_mut().for_each(|inner| assigned(inner, from, to));
        }
    }
    assigned(block, from, to);
}

/// Drops a variable of the loop at `at`: it has its first value throughout.
fn drop_variable(block: &mut ProgramBlock, at: usize, variable: usize) {
    let stmt = &mut block.stmts[at];
    let StatementOperand::Value(initial) = stmt.args.remove(variable) else { return };
    let out = stmt.outs.remove(variable);
    if let Head::While(invariants) = &mut stmt.head {
        invariants.remove(variable);
    }
    for inner in &mut stmt.blocks {
        let param = inner.params.remove(variable);
        rename(inner, param, initial);
    }
    if let Some(body) = stmt.blocks.get_mut(1) {
        body.results.remove(variable);
    }
    rename(block, out, initial);
}

/// Drops a variable and the statements that use it.
fn drop_var(program: &mut FuzzProgram, number: usize) {
    fn visit(block: &mut ProgramBlock, number: usize) {
        block.stmts.retain(|stmt| !stmt.args.contains(&StatementOperand::Variable(number)));
        for stmt in &mut block.stmts {
            for arg in &mut stmt.args {
                if let StatementOperand::Variable(other) = arg {
                    *other -= usize::from(*other > number);
                }
            }
            stmt.blocks.iter_mut().for_each(|inner| visit(inner, number));
        }
    }
    program.vars.remove(number);
    program.funcs.iter_mut().chain([&mut program.main]).for_each(|block| visit(block, number));
}

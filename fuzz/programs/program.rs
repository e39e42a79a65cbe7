//! Programs as data: statements, blocks, inputs.

use ferroflow::ir::{Attrs, HostTensor};

/// The number of a value; each is assigned once.
pub(crate) type Id = usize;

/// An operand of a statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum StatementOperand {
    /// A value.
    Value(Id),
    /// The handle of a variable.
    Variable(usize),
    /// A constant.
    Const(HostTensor),
}

/// The shape invariant of a loop variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Invariant {
    /// The shape before the loop.
    Same,
    /// The rank before the loop.
    Rank,
    /// None.
    Any,
}

/// The kind of a statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Head {
    /// A call of an op.
    Op(&'static str, Attrs),
    /// The first block if the operand is true, the second otherwise.
    If,
    /// The block with the index that the operand is; the last for other indices.
    Case,
    /// A loop: the first block is the condition, the second the body; both take all variables.
    While(Vec<Invariant>),
    /// A call of a function of the program.
    Call(usize),
    /// The gradients of the sum of the results of the block by the operands, which it takes.
    Grad,
    /// The block with a gradient of its own: that of the first result times this factor.
    Custom(i64),
    /// The block for each row of the operand.
    Map,
    /// The block for each row of the first operand, which takes the last result and the row.
    Fold,
    /// As `Fold`, with all results.
    Scan,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Stmt {
    pub(crate) outs: Vec<Id>,
    pub(crate) head: Head,
    pub(crate) args: Vec<StatementOperand>,
    pub(crate) blocks: Vec<ProgramBlock>,
    /// The device that it asks for, by index; indices beyond the last device begin anew.
    pub(crate) device: Option<usize>,
}

/// Statements with parameters and results. A block sees the values of the blocks around it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct ProgramBlock {
    pub(crate) params: Vec<Id>,
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) results: Vec<Id>,
}

/// A variable.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct VarDecl {
    pub(crate) initial: HostTensor,
    /// Whether values of any shape of this rank may be assigned.
    pub(crate) is_flexible: bool,
    /// Whether it may hold numbers that are rounded.
    pub(crate) is_inexact: bool,
    /// The device it is on, by index.
    pub(crate) device: Option<usize>,
}

/// A program with the inputs it is called with.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct FuzzProgram {
    pub(crate) vars: Vec<VarDecl>,
    /// Functions; each calls only those before it, and sees no values but its parameters.
    pub(crate) funcs: Vec<ProgramBlock>,
    pub(crate) main: ProgramBlock,
    /// Lists of arguments.
    pub(crate) inputs: Vec<Vec<HostTensor>>,
    /// The list of arguments of each call.
    pub(crate) calls: Vec<usize>,
    /// Whether the gradients of the results by the arguments are compared too, by a tape outside.
    pub(crate) has_outer_gradient: bool,
}

impl FuzzProgram {
    /// The number above those of all values.
    pub(crate) fn n_ids(&self) -> usize {
        let mut n = 0;
        for block in self.funcs.iter().chain([&self.main]) {
            block.visit(&mut |block| {
                let outs = block.stmts.iter().flat_map(|stmt| &stmt.outs);
                n = block.params.iter().chain(outs).fold(n, |n, id| n.max(id + 1));
            });
        }
        n
    }

    /// Makes the invariants of all loops weaker; whether there were any left to weaken.
    pub(crate) fn loosen(&mut self) -> bool {
        let mut is_changed = false;
        let mut weaken = |stmt: &mut Stmt| {
            let Head::While(invariants) = &mut stmt.head else { return };
            for invariant in invariants {
                is_changed |= *invariant != Invariant::Any;
                *invariant = match invariant {
                    Invariant::Same => Invariant::Rank,
                    Invariant::Rank | Invariant::Any => Invariant::Any,
                };
            }
        };
        for block in self.funcs.iter_mut().chain([&mut self.main]) {
            block.visit_stmts(&mut weaken);
        }
        is_changed
    }
}

impl ProgramBlock {
    /// Visits the block and the blocks in it.
    pub(crate) fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a ProgramBlock)) {
        visit(self);
        for block in self.stmts.iter().flat_map(|stmt| &stmt.blocks) {
            block.visit(visit);
        }
    }

    /// Visits the statements of the block and of the blocks in it.
    pub(crate) fn visit_stmts(&mut self, visit: &mut impl FnMut(&mut Stmt)) {
        for stmt in &mut self.stmts {
            visit(stmt);
            stmt.blocks.iter_mut().for_each(|block| block.visit_stmts(visit));
        }
    }
}

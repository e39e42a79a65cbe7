//! Variables in scope at the position that is written: variables, and the constructs around.

use super::{Pair, dice::Dice};

/// A construct around.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EnclosingScope {
    /// Staged: an `if` on a tensor.
    Branch,
    /// A loop of the graph, with its number.
    Loop(u32),
    /// A loop of Rust.
    HostLoop(u32),
    /// A loop of the graph that has a value, so that jumps without one do not lead to it.
    Value,
    /// A closure, which jumps do not leave.
    Closure,
}

pub(super) struct GeneratorScope {
    /// Variables that can be assigned, owned tensors.
    pub(super) variables: Vec<String>,
    /// Tensors behind references.
    pub(super) references: Vec<String>,
    /// Closures of one tensor.
    pub(super) closures: Vec<String>,
    pub(super) around: Vec<EnclosingScope>,
    /// Whether names are declared again; then there are no jumps, which would need those they hide.
    pub(super) shadows: bool,
    /// Whether what is written last does not go on.
    over: bool,
    last: u32,
}

impl GeneratorScope {
    pub(super) fn new(dice: &mut Dice) -> GeneratorScope {
        GeneratorScope {
            variables: Vec::new(),
            references: vec!["p".into(), "q".into()],
            closures: Vec::new(),
            around: Vec::new(),
            shadows: dice.is_one_in(4),
            over: false,
            last: 0,
        }
    }

    /// The declarations that every function begins with.
    pub(super) fn beginning(&mut self, dice: &mut Dice) -> Pair {
        let mut code = Pair::new(
            "let mut x = p.clone();\nlet mut y = Tensor::from(1);\n",
            "let mut x = p;\nlet mut y = 1i32;\n",
        );
        self.variables.extend(["x".into(), "y".into()]);
        if dice.is_one_in(3) {
            code.push(&self.closure(dice));
        }
        code
    }

    pub(super) fn fresh(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Writes what stands inside a construct.
    pub(super) fn inside<R>(
        &mut self,
        around: EnclosingScope,
        write: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.around.push(around);
        let result = self.block(write);
        self.around.pop();
        result
    }

    /// Writes a block, whose variables end with it.
    pub(super) fn block<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        let lengths = (self.variables.len(), self.references.len(), self.closures.len());
        let result = write(self);
        self.variables.truncate(lengths.0);
        self.references.truncate(lengths.1);
        self.closures.truncate(lengths.2);
        self.over = false;
        result
    }

    /// Notes that what follows is not reached.
    pub(super) fn ends(&mut self) {
        self.over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }
}

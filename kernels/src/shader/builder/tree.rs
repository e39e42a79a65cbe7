//! The source of a kernel as a tree: typed expressions and the statements that use them.
//!
//! Expressions lie in one table and name their operands by position, so that handles to them are
//! small and can be copied. A tree knows nothing of a language; `print` writes it in each.

use super::super::scalar_type::ScalarType;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Position of an expression in the table of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelExprId(pub(super) u32);

/// Position of a name in the table of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelNameId(pub(super) u32);

/// A number that stands in the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum KernelLiteral {
    F32(f32),
    /// Of any integer type, which the expression tells.
    Int(i128),
    Bool(bool),
}

/// Operators of two operands, as both languages write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinaryOperator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
}

impl BinaryOperator {
    /// The symbol in both languages.
    pub(super) fn symbol(self) -> &'static str {
        use BinaryOperator::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            Rem => "%",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            Shl => "<<",
            Shr => ">>",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            Eq => "==",
            Ne => "!=",
            And => "&&",
            Or => "||",
        }
    }

    /// Whether the result is a bool, whatever the operands are.
    pub(super) fn compares(self) -> bool {
        use BinaryOperator::*;
        matches!(self, Lt | Le | Gt | Ge | Eq | Ne)
    }
}

/// Operators of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnaryOperator {
    Neg,
    Not,
    Complement,
}

impl UnaryOperator {
    /// The symbol in both languages.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            UnaryOperator::Neg => "-",
            UnaryOperator::Not => "!",
            UnaryOperator::Complement => "~",
        }
    }
}

/// An expression without its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KernelExprKind {
    Literal(KernelLiteral),
    /// A constant, a variable, or a position that the entry point defines.
    Name(KernelNameId),
    /// An element of a buffer, or of an array in workgroup or private memory.
    Element(KernelNameId, KernelExprId),
    Unary(UnaryOperator, KernelExprId),
    Binary(BinaryOperator, KernelExprId, KernelExprId),
    /// A function of the language, or of the library in `math`.
    Call(Cow<'static, str>, SmallVec<[KernelExprId; 3]>),
}

/// A statement.
#[derive(Debug, Clone)]
pub(super) enum KernelStatement {
    /// Declares a name with its first value.
    Declare {
        name: KernelNameId,
        value: KernelExprId,
        is_variable: bool,
    },
    /// Assigns to a variable or an element.
    Assign {
        target: KernelExprId,
        value: KernelExprId,
    },
    If {
        condition: KernelExprId,
        then: Vec<KernelStatement>,
        otherwise: Vec<KernelStatement>,
    },
    /// A loop over the values of a variable, from the first one while a condition holds.
    For {
        name: KernelNameId,
        first: KernelExprId,
        condition: KernelExprId,
        next: KernelExprId,
        is_unrolled: bool,
        body: Vec<KernelStatement>,
    },
    Break,
    /// A call for its effect.
    Run(KernelExprId),
}

impl KernelStatement {
    /// Whether the statement may leave the loop that it is in.
    pub(super) fn leaves_loop(&self) -> bool {
        match self {
            KernelStatement::Break => true,
            KernelStatement::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).any(KernelStatement::leaves_loop)
            }
            KernelStatement::Declare { .. }
            | KernelStatement::Assign { .. }
            | KernelStatement::For { .. }
            | KernelStatement::Run(_) => false,
        }
    }
}

/// The body of a kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelTree {
    pub(super) exprs: Vec<(KernelExprKind, ScalarType)>,
    pub(super) names: Vec<String>,
    pub(super) statements: Vec<KernelStatement>,
}

impl KernelTree {
    pub(super) fn kind(&self, id: KernelExprId) -> &KernelExprKind {
        &self.exprs[id.0 as usize].0
    }

    pub(super) fn scalar(&self, id: KernelExprId) -> ScalarType {
        self.exprs[id.0 as usize].1
    }

    /// The value of a literal.
    pub(super) fn literal(&self, id: KernelExprId) -> Option<KernelLiteral> {
        match self.kind(id) {
            KernelExprKind::Literal(literal) => Some(*literal),
            _ => None,
        }
    }
}

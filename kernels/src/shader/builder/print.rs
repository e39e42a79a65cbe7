//! Trees as text in each dialect.

use super::{
    super::{dialect::ShaderDialect, scalar_type::ScalarType},
    tree::{
        BinaryOperator, KernelExprId, KernelExprKind, KernelLiteral, KernelNameId, KernelStatement,
        KernelTree,
    },
};
use std::fmt::Write;

/// Strength with which the parts of a text hold together. WGSL mixes neither bits with numbers nor `&&` with
/// `||` unless there are parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Bits,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Sign,
    Atom,
}

impl BinaryOperator {
    fn binding(self) -> Binding {
        use BinaryOperator::*;
        match self {
            Add | Sub => Binding::Sum,
            Mul | Div | Rem => Binding::Product,
            BitAnd | BitOr | BitXor | Shl | Shr => Binding::Bits,
            Lt | Le | Gt | Ge | Eq | Ne => Binding::Comparison,
            And => Binding::And,
            Or => Binding::Or,
        }
    }

    /// Whether an operand with this binding stands without parentheses.
    fn takes(self, operand: Binding, is_left: bool) -> bool {
        match self.binding() {
            Binding::Bits => operand >= Binding::Sign,
            Binding::Or => operand >= Binding::Comparison || (is_left && operand == Binding::Or),
            Binding::And => operand >= Binding::Comparison || (is_left && operand == Binding::And),
            Binding::Comparison => operand >= Binding::Sum,
            own => operand > own || (is_left && operand == own),
        }
    }
}

impl KernelTree {
    /// The text of the body. Elements of the buffers in `halves` are 16-bit floats in memory, which
    /// WGSL widens where they are read and narrows where they are written.
    pub(crate) fn print(&self, dialect: ShaderDialect, halves: &[String], depth: usize) -> String {
        let mut printer = Printer { tree: self, dialect, halves, text: String::new(), depth };
        printer.block(&self.statements);
        printer.text
    }
}

struct Printer<'a> {
    tree: &'a KernelTree,
    dialect: ShaderDialect,
    halves: &'a [String],
    text: String,
    depth: usize,
}

impl Printer<'_> {
    fn name(&self, name: KernelNameId) -> &str {
        &self.tree.names[name.0 as usize]
    }

    fn is_half(&self, name: KernelNameId) -> bool {
        self.halves.iter().any(|half| half == self.name(name))
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "", indent = self.depth * 4);
    }

    fn block(&mut self, statements: &[KernelStatement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn indented(&mut self, statements: &[KernelStatement]) {
        self.depth += 1;
        self.block(statements);
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &KernelStatement) {
        match statement {
            KernelStatement::Declare { name, value, is_variable } => {
                let declared = self.declared(*name, *value, *is_variable);
                self.line(&format!("{declared};"));
            }
            KernelStatement::Assign { target, value } => {
                let assigned = self.assigned(*target, *value);
                self.line(&assigned);
            }
            KernelStatement::If { condition, then, otherwise } => {
                let condition = self.expr(*condition);
                self.line(&format!("if ({condition}) {{"));
                self.indented(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.indented(otherwise);
                }
                self.line("}");
            }
            KernelStatement::For { name, first, condition, next, is_unrolled, body } => {
                if *is_unrolled && self.dialect == ShaderDialect::Cuda {
                    self.line("#pragma unroll");
                }
                let head = format!(
                    "for ({}; {}; {}) {{",
                    self.declared(*name, *first, true),
                    self.expr(*condition),
                    self.step(*name, *next),
                );
                self.line(&head);
                self.indented(body);
                self.line("}");
            }
            KernelStatement::Break => self.line("break;"),
            KernelStatement::Run(call) => {
                let call = self.expr(*call);
                self.line(&format!("{call};"));
            }
        }
    }

    fn declared(&self, name: KernelNameId, value: KernelExprId, is_variable: bool) -> String {
        let (name, scalar) = (self.name(name), self.tree.scalar(value).name());
        let value = self.expr(value);
        match (self.dialect, is_variable) {
            (ShaderDialect::Wgsl, true) => format!("var {name} = {value}"),
            (ShaderDialect::Wgsl, false) => format!("let {name} = {value}"),
            (ShaderDialect::Cuda, true) => format!("{scalar} {name} = {value}"),
            (ShaderDialect::Cuda, false) => format!("const {scalar} {name} = {value}"),
        }
    }

    fn assigned(&self, target: KernelExprId, value: KernelExprId) -> String {
        let value = self.expr(value);
        match self.tree.kind(target) {
            KernelExprKind::Element(array, at) if self.is_half(*array) => {
                format!("{}[{}] = f16({value});", self.name(*array), self.expr(*at))
            }
            _ => format!("{} = {value};", self.expr(target)),
        }
    }

    /// The step of a loop.
    fn step(&self, name: KernelNameId, next: KernelExprId) -> String {
        let own = self.name(name);
        if let KernelExprKind::Binary(BinaryOperator::Add, left, right) = self.tree.kind(next)
            && *self.tree.kind(*left) == KernelExprKind::Name(name)
            && self.tree.literal(*right) == Some(KernelLiteral::Int(1))
        {
            return format!("{own}++");
        }
        format!("{own} = {}", self.expr(next))
    }

    fn expr(&self, id: KernelExprId) -> String {
        self.bound(id).0
    }

    /// The text of an operand, in parentheses unless it holds together without them.
    fn operand(&self, id: KernelExprId, stands: impl Fn(Binding) -> bool) -> String {
        let (text, binding) = self.bound(id);
        if stands(binding) { text } else { format!("({text})") }
    }

    fn bound(&self, id: KernelExprId) -> (String, Binding) {
        match self.tree.kind(id) {
            KernelExprKind::Literal(literal) => {
                (literal_text(*literal, self.tree.scalar(id)), Binding::Atom)
            }
            KernelExprKind::Name(name) => (self.name(*name).to_string(), Binding::Atom),
            KernelExprKind::Element(array, at) => {
                let element = format!("{}[{}]", self.name(*array), self.expr(*at));
                let text = if self.is_half(*array) { format!("f32({element})") } else { element };
                (text, Binding::Atom)
            }
            KernelExprKind::Unary(operator, value) => {
                let value = self.operand(*value, |binding| binding == Binding::Atom);
                (format!("{}{value}", operator.symbol()), Binding::Sign)
            }
            KernelExprKind::Binary(operator, left, right) => {
                let left = self.operand(*left, |binding| operator.takes(binding, true));
                let right = self.operand(*right, |binding| operator.takes(binding, false));
                (format!("{left} {} {right}", operator.symbol()), operator.binding())
            }
            KernelExprKind::Call(function, args) => {
                let args: Vec<String> = args.iter().map(|&arg| self.expr(arg)).collect();
                (format!("{function}({})", args.join(", ")), Binding::Atom)
            }
        }
    }
}

/// A literal of a type.
fn literal_text(literal: KernelLiteral, scalar: ScalarType) -> String {
    match literal {
        KernelLiteral::F32(value) => float(value),
        KernelLiteral::Bool(value) => value.to_string(),
        KernelLiteral::Int(value) => integer(value, scalar),
    }
}

/// A whole number, which the type has, as text.
fn integer(value: i128, scalar: ScalarType) -> String {
    let halves = |bits: u64| format!("(u64({}u) << 32u) | u64({}u)", bits >> 32, bits as u32);
    match scalar {
        ScalarType::F32 => float(value as f32),
        ScalarType::Bool => (value != 0).to_string(),
        // The lowest number has no literal of its own.
        ScalarType::I32 if value == i32::MIN.into() => "(-2147483647 - 1)".into(),
        ScalarType::I32 if value < 0 => format!("({value})"),
        ScalarType::I32 => format!("{value}"),
        ScalarType::U32 => format!("{value}u"),
        ScalarType::I64 if value.unsigned_abs() < 1 << 31 => format!("i64({value})"),
        ScalarType::I64 => format!("i64({})", halves(value as i64 as u64)),
        ScalarType::U64 if value < 1 << 32 => format!("u64({value}u)"),
        ScalarType::U64 => format!("({})", halves(value as u64)),
    }
}

/// A float as text. Infinities and NaN are made of bits at run time, as constants may not be such.
pub(in crate::shader) fn float(value: f32) -> String {
    if !value.is_finite() {
        return format!("of_bits({}u)", value.to_bits());
    }
    if value != 0.0 && !value.is_normal() {
        return format!("of_bits({}u)", value.to_bits());
    }
    // The shortest decimal of the largest number is beyond it, and browsers refuse it.
    let text = match value.abs() == f32::MAX {
        true => format!("{:e}f", f64::from(value)),
        false => format!("{value:?}f"),
    };
    if value.is_sign_negative() { format!("({text})") } else { text }
}

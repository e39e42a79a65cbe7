//! Programs as text.

use super::program::{FuzzProgram, Head, Id, Invariant, ProgramBlock, StatementOperand, Stmt};
use ferroflow::ir::{AttrValue, DType, HostTensor, PartialShape};
use std::fmt::{self, Display, Write};

impl Display for FuzzProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, variable) in self.vars.iter().enumerate() {
            write!(f, "var{number} = variable({}", literal(&variable.initial))?;
            f.write_str(if variable.is_flexible { ", flexible" } else { "" })?;
            f.write_str(if variable.is_inexact { ", inexact" } else { "" })?;
            writeln!(f, "){}", device(variable.device))?;
        }
        for (number, block) in self.funcs.iter().enumerate() {
            writeln!(f, "def f{number}({}):", values(&block.params))?;
            body(f, block, 1)?;
        }
        writeln!(f, "def main({}):", values(&self.main.params))?;
        body(f, &self.main, 1)?;
        for list in &self.inputs {
            let list: Vec<String> = list.iter().map(literal).collect();
            writeln!(f, "input: {}", list.join(", "))?;
        }
        let calls: Vec<String> = self.calls.iter().map(usize::to_string).collect();
        writeln!(f, "calls: {}", calls.join(" "))?;
        if self.has_outer_gradient { writeln!(f, "outer gradient") } else { Ok(()) }
    }
}

fn body(f: &mut fmt::Formatter<'_>, block: &ProgramBlock, depth: usize) -> fmt::Result {
    for stmt in &block.stmts {
        statement(f, stmt, depth)?;
    }
    writeln!(f, "{}return {}", "    ".repeat(depth), values(&block.results))
}

fn statement(f: &mut fmt::Formatter<'_>, stmt: &Stmt, depth: usize) -> fmt::Result {
    f.write_str(&"    ".repeat(depth))?;
    if !stmt.outs.is_empty() {
        write!(f, "{} = ", values(&stmt.outs))?;
    }
    let mut args: Vec<String> = stmt.args.iter().map(operand).collect();
    let name = match &stmt.head {
        Head::Op(name, attrs) => {
            args.extend(attrs.iter().map(|(name, value)| format!("{name}={}", attribute(value))));
            (*name).to_string()
        }
        Head::If => "if".into(),
        Head::Case => "case".into(),
        Head::While(invariants) => {
            let word = |invariant: &Invariant| match invariant {
                Invariant::Same => "same",
                Invariant::Rank => "rank",
                Invariant::Any => "any",
            };
            args.extend(invariants.iter().map(|invariant| word(invariant).to_string()));
            "while".into()
        }
        Head::Call(number) => format!("f{number}"),
        Head::Grad => "gradient".into(),
        Head::Custom(factor) => {
            args.push(factor.to_string());
            "custom_gradient".into()
        }
        Head::Map => "map".into(),
        Head::Fold => "fold".into(),
        Head::Scan => "scan".into(),
    };
    write!(f, "{name}({}){}", args.join(", "), device(stmt.device))?;
    f.write_str(if stmt.blocks.is_empty() { "\n" } else { ":\n" })?;
    for block in &stmt.blocks {
        writeln!(f, "{}block({}):", "    ".repeat(depth + 1), values(&block.params))?;
        body(f, block, depth + 2)?;
    }
    Ok(())
}

fn device(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!(" on {index}"))
}

fn values(ids: &[Id]) -> String {
    let names: Vec<String> = ids.iter().map(|id| format!("v{id}")).collect();
    names.join(", ")
}

fn operand(operand: &StatementOperand) -> String {
    match operand {
        StatementOperand::Value(id) => format!("v{id}"),
        StatementOperand::Variable(number) => format!("var{number}"),
        StatementOperand::Const(tensor) => literal(tensor),
    }
}

/// A tensor: `3`, `2.5`, `[1, 2]` and `"text"` for scalars of `int32` and `float32`, vectors of `int32`
/// and texts, `float32[2,1]{1.0 2.5}` for the rest.
pub(super) fn literal(tensor: &HostTensor) -> String {
    let elements: Vec<String> = match tensor.strings() {
        Ok(strings) => strings.iter().map(|s| quoted(&String::from_utf8_lossy(s))).collect(),
        Err(_) => (0..tensor.len()).map(|index| element(tensor, index)).collect(),
    };
    match (tensor.dtype(), tensor.shape().rank()) {
        (DType::I32 | DType::F32 | DType::String, 0) => elements.concat(),
        (DType::I32, 1) => format!("[{}]", elements.join(", ")),
        (dtype, _) => {
            let dims: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
            format!("{dtype}[{}]{{{}}}", dims.join(","), elements.join(" "))
        }
    }
}

fn element(tensor: &HostTensor, index: usize) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = tensor.fmt_element(index, &mut text);
    text
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

fn attribute(value: &AttrValue) -> String {
    match value {
        AttrValue::String(bytes) => quoted(&String::from_utf8_lossy(bytes)),
        AttrValue::Int(number) => number.to_string(),
        AttrValue::Float(number) => format!("{number:?}"),
        AttrValue::Bool(flag) => flag.to_string(),
        AttrValue::Type(dtype) => dtype.to_string(),
        AttrValue::Shape(shape) => shape_text(shape),
        AttrValue::Ints(numbers) => format!("{numbers:?}"),
        other => format!("{other:?}"),
    }
}

/// A shape: `shape[2,?]`, or `shape[*]` for any.
fn shape_text(shape: &PartialShape) -> String {
    let mut text = String::from("shape[");
    match shape.dims() {
        None => text.push('*'),
        Some(dims) => {
            for (index, dim) in dims.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                // Writing to a string does not fail.
                let _ = match dim {
                    Some(size) => write!(text, "{comma}{size}"),
                    None => write!(text, "{comma}?"),
                };
            }
        }
    }
    text + "]"
}

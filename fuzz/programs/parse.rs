//! Programs from text, as they are printed.

use super::program::{
    FuzzProgram, Head, Id, Invariant, ProgramBlock, StatementOperand, Stmt, VarDecl,
};
use anyhow::{Context as _, Result, bail, ensure};
use ferroflow::ir::{AttrValue, Attrs, DType, HostTensor, PartialShape, Shape, registry};
use std::str::FromStr;

impl FromStr for FuzzProgram {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<FuzzProgram> {
        let mut parser = Parser { lines: Vec::new(), at: 0 };
        for (number, line) in text.lines().enumerate() {
            let code = line.trim();
            if !code.is_empty() && !code.starts_with('#') {
                let depth = (line.len() - line.trim_start().len()) / 4;
                parser.lines.push((number + 1, depth, code));
            }
        }
        parser.program()
    }
}

struct Parser<'a> {
    /// Number, depth and code of each line.
    lines: Vec<(usize, usize, &'a str)>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn program(&mut self) -> Result<FuzzProgram> {
        let mut program = FuzzProgram::default();
        while let Some(&(number, _, code)) = self.lines.get(self.at) {
            self.at += 1;
            self.declaration(&mut program, code).with_context(|| format!("line {number}"))?;
        }
        ensure!(!program.inputs.is_empty(), "a program has inputs");
        let fits = |list: &Vec<HostTensor>| list.len() == program.main.params.len();
        ensure!(program.inputs.iter().all(fits), "an input has a tensor for each parameter");
        ensure!(program.calls.iter().all(|&n| n < program.inputs.len()), "calls name inputs");
        Ok(program)
    }

    fn declaration(&mut self, program: &mut FuzzProgram, code: &'a str) -> Result<()> {
        let mut line = Line(code);
        if code == "outer gradient" {
            program.has_outer_gradient = true;
        } else if line.takes("input:") {
            let mut list = Vec::new();
            while !line.is_empty() {
                list.push(line.literal()?);
                line.takes(",");
            }
            program.inputs.push(list);
        } else if line.takes("calls:") {
            let calls = line.0.split_whitespace().map(str::parse::<usize>);
            program.calls = calls.collect::<Result<_, _>>()?;
        } else if line.takes("def ") {
            let name = line.word();
            let params = line.ids_in_parentheses()?;
            let block = self.block(params, 1)?;
            match name {
                "main" => program.main = block,
                _ => program.funcs.push(block),
            }
        } else {
            program.vars.push(variable(&mut line)?);
        }
        Ok(())
    }

    /// The statements at a depth, up to the results.
    fn block(&mut self, params: Vec<Id>, depth: usize) -> Result<ProgramBlock> {
        let mut block = ProgramBlock { params, ..ProgramBlock::default() };
        loop {
            let &(number, at, code) = self.lines.get(self.at).context("a block returns")?;
            ensure!(at == depth, "line {number} is at another depth than its block");
            self.at += 1;
            if code == "return" || code.starts_with("return ") {
                block.results = ids(&code["return".len()..])?;
                return Ok(block);
            }
            let stmt = self.statement(code, depth).with_context(|| format!("line {number}"))?;
            block.stmts.push(stmt);
        }
    }

    fn statement(&mut self, code: &'a str, depth: usize) -> Result<Stmt> {
        let (outs, call) = match code.split_once(" = ") {
            Some((outs, call)) if outs.starts_with('v') => (ids(outs)?, call),
            _ => (Vec::new(), code),
        };
        let mut line = Line(call);
        let name = line.word();
        ensure!(line.takes("("), "a call has operands");
        let (mut args, mut attrs, mut invariants) = (Vec::new(), Attrs::new(), Vec::new());
        while !line.takes(")") {
            match line.invariant() {
                Some(invariant) => invariants.push(invariant),
                None => match line.attribute_name() {
                    Some(name) => attrs.set(name, line.attribute()?),
                    None => args.push(line.operand()?),
                },
            }
            line.takes(",");
        }
        let device = line.device()?;
        let head = head(name, &mut args, attrs, invariants)?;
        let mut blocks = Vec::new();
        if line.takes(":") {
            while let Some(&(_, at, code)) = self.lines.get(self.at)
                && at == depth + 1
                && code.starts_with("block(")
            {
                self.at += 1;
                let params = Line(&code["block".len()..]).ids_in_parentheses()?;
                blocks.push(self.block(params, depth + 2)?);
            }
        }
        Ok(Stmt { outs, head, args, blocks, device })
    }
}

fn head(
    name: &str,
    args: &mut Vec<StatementOperand>,
    attrs: Attrs,
    invariants: Vec<Invariant>,
) -> Result<Head> {
    Ok(match name {
        "if" => Head::If,
        "case" => Head::Case,
        "while" => Head::While(invariants),
        "gradient" => Head::Grad,
        "map" => Head::Map,
        "fold" => Head::Fold,
        "scan" => Head::Scan,
        "custom_gradient" => match args.pop() {
            Some(StatementOperand::Const(factor)) => {
                Head::Custom(factor.as_scalar::<i32>()?.into())
            }
            _ => bail!("a custom gradient has a factor"),
        },
        _ => match registry::find(name) {
            Some(op) => Head::Op(op.name, attrs),
            None => Head::Call(name.strip_prefix('f').unwrap_or(name).parse()?),
        },
    })
}

fn variable(line: &mut Line<'_>) -> Result<VarDecl> {
    line.word();
    ensure!(line.takes("=") && line.takes("variable("), "a variable, a function or inputs");
    let initial = line.literal()?;
    let is_flexible = line.takes(", flexible");
    let is_inexact = line.takes(", inexact");
    ensure!(line.takes(")"), "a closing parenthesis");
    Ok(VarDecl { initial, is_flexible, is_inexact, device: line.device()? })
}

fn ids(text: &str) -> Result<Vec<Id>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let ids = names.map(|name| Ok(name.strip_prefix('v').context("a value")?.parse::<Id>()?));
    ids.collect()
}

/// The rest of a line.
struct Line<'a>(&'a str);

impl<'a> Line<'a> {
    fn is_empty(&mut self) -> bool {
        self.0 = self.0.trim_start();
        self.0.is_empty()
    }

    fn takes(&mut self, expected: &str) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        self.0 = self.0.trim_start();
        let end = self.0.find(is_end).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    fn word(&mut self) -> &'a str {
        self.until(|c| !c.is_alphanumeric() && c != '_')
    }

    fn ids_in_parentheses(&mut self) -> Result<Vec<Id>> {
        ensure!(self.takes("("), "parameters");
        let list = ids(self.until(|c| c == ')'))?;
        ensure!(self.takes("):"), "parameters end");
        Ok(list)
    }

    fn device(&mut self) -> Result<Option<usize>> {
        Ok(if self.takes("on ") { Some(self.word().parse()?) } else { None })
    }

    fn invariant(&mut self) -> Option<Invariant> {
        let all = [("same", Invariant::Same), ("rank", Invariant::Rank), ("any", Invariant::Any)];
        all.into_iter().find(|(word, _)| self.takes(word)).map(|(_, invariant)| invariant)
    }

    fn attribute_name(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start();
        let end = self.0.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let (name, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix('=')?;
        Some(name)
    }

    fn operand(&mut self) -> Result<StatementOperand> {
        if self.takes("var") {
            return Ok(StatementOperand::Variable(self.word().parse()?));
        }
        if self.0.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_numeric())) {
            return Ok(StatementOperand::Value(self.word()[1..].parse()?));
        }
        Ok(StatementOperand::Const(self.literal()?))
    }

    fn quoted(&mut self) -> Result<String> {
        ensure!(self.takes("\""), "a text");
        let (mut text, mut is_escaped) = (String::new(), false);
        for (at, letter) in self.0.char_indices() {
            match letter {
                '\\' if !is_escaped => is_escaped = true,
                '"' if !is_escaped => {
                    self.0 = &self.0[at + 1..];
                    return Ok(text);
                }
                _ => {
                    text.push(letter);
                    is_escaped = false;
                }
            }
        }
        bail!("a text ends")
    }

    fn numbers(&mut self) -> Result<Vec<i64>> {
        let list = self.until(|c| c == ']');
        ensure!(self.takes("]"), "a list ends");
        let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
        Ok(numbers.map(str::parse).collect::<Result<_, _>>()?)
    }

    fn literal(&mut self) -> Result<HostTensor> {
        if self.takes("[") {
            let numbers: Vec<i32> = self.numbers()?.into_iter().map(|n| n as i32).collect();
            return Ok(HostTensor::vector(&numbers)?);
        }
        if self.0.starts_with('"') {
            return Ok(HostTensor::scalar_string(self.quoted()?));
        }
        if self.0.starts_with(|c: char| c == '-' || c.is_numeric()) {
            let number = self.until(|c| matches!(c, ',' | ')' | ' '));
            return Ok(match number.parse::<i32>() {
                Ok(number) => HostTensor::scalar(number),
                Err(_) => HostTensor::scalar(number.parse::<f32>()?),
            });
        }
        let dtype: DType = self.word().parse()?;
        ensure!(self.takes("["), "the shape of a tensor");
        let shape = Shape::from_i64(&self.numbers()?)?;
        ensure!(self.takes("{"), "the elements of a tensor");
        if dtype == DType::String {
            let mut strings = Vec::new();
            while !self.takes("}") {
                strings.push(self.quoted()?.into());
            }
            return Ok(HostTensor::from_strings(shape, strings)?);
        }
        let elements = self.until(|c| c == '}');
        ensure!(self.takes("}"), "a tensor ends");
        elements_of(dtype, shape, elements)
    }

    fn attribute(&mut self) -> Result<AttrValue> {
        self.0 = self.0.trim_start();
        if self.0.starts_with('"') {
            return Ok(AttrValue::string(self.quoted()?));
        }
        if self.takes("shape[*]") {
            return Ok(AttrValue::Shape(PartialShape::Unknown));
        }
        if self.takes("shape[") {
            let dims = self.until(|c| c == ']').replace('?', "-1");
            ensure!(self.takes("]"), "a shape ends");
            let dims = dims.split(',').filter(|dim| !dim.is_empty()).map(str::parse);
            return Ok(AttrValue::Shape(PartialShape::from_i64(
                &dims.collect::<Result<Vec<_>, _>>()?,
            )?));
        }
        if self.takes("[") {
            return Ok(AttrValue::Ints(self.numbers()?));
        }
        let word = self.until(|c| matches!(c, ',' | ')'));
        Ok(match word {
            "true" | "false" => AttrValue::Bool(word == "true"),
            _ => match (word.parse::<i64>(), word.parse::<f32>()) {
                (Ok(number), _) => AttrValue::Int(number),
                (_, Ok(number)) => AttrValue::Float(number),
                _ => AttrValue::Type(word.parse()?),
            },
        })
    }
}

fn elements_of(dtype: DType, shape: Shape, text: &str) -> Result<HostTensor> {
    macro_rules! parsed {
        ($rust:ty) => {{
            let elements = text.split_whitespace().map(str::parse::<$rust>);
            Ok(HostTensor::from_slice(shape, &elements.collect::<Result<Vec<_>, _>>()?)?)
        }};
    }
    match dtype {
        DType::F32 => parsed!(f32),
        DType::F64 => parsed!(f64),
        DType::I8 => parsed!(i8),
        DType::I16 => parsed!(i16),
        DType::I32 => parsed!(i32),
        DType::I64 => parsed!(i64),
        DType::U8 => parsed!(u8),
        DType::Bool => {
            let elements = text.split_whitespace().map(str::parse::<bool>);
            Ok(HostTensor::from_bools(shape, &elements.collect::<Result<Vec<_>, _>>()?)?)
        }
        other => bail!("no literals of {other}"),
    }
}

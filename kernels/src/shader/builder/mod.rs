//! A builder of kernels: typed values, variables, loops and memory, which dialects print.
//!
//! A kernel is written as the statements that one invocation runs. [`KernelBuilder`] declares the
//! buffers and records statements in the order of the calls; a [`KernelValue`] is an expression with
//! the operators of its [`ScalarType`]. Loops and conditions take closures, which record their
//! bodies. Names are made different where they are equal, so that no statement means another's name.
//!
//! ```text
//! let k = KernelBuilder::new(caps);
//! let ([values, ids], out) = (k.inputs(call, [0, 1]), k.result(call));
//! let (n, sum) = (k.element(), k.variable("sum", values.zero()));
//! k.for_below("i", rows, |i| {
//!     k.when(ids.at(i).as_index().eq(n / inner), || sum.set(sum + values.at(i * inner + n % inner)));
//! });
//! out.set(n, sum);
//! k.finish(count)
//! ```
//!
//! A dtype that the device does not hold makes the kernel `None`. Operands of different types are a
//! defect of the kernel's author: an error, never a text.

mod buffer;
mod print;
#[cfg(test)]
mod tests;
mod tree;
mod value;

use super::{
    body::{KernelBody, Shader},
    dialect::ShaderDialect,
    scalar_type::{Caps, ScalarType},
};
use crate::error::{Error, Result};
pub use buffer::KernelBuffer;
use ferroflow_ir::{DType, expr::Constant};
pub(super) use print::float;
use std::{borrow::Cow, cell::RefCell, collections::HashMap};
pub(crate) use tree::KernelTree;
use tree::{
    BinaryOperator, KernelExprId, KernelExprKind, KernelLiteral, KernelNameId, KernelStatement,
};
pub use value::{KernelOperand, KernelValue};

/// Names that entry points define.
const BUILTINS: &[&str] = &["local", "n", "subgroup", "subgroup_lane", "subgroups", "workgroup"];

/// Records the source of a kernel.
#[derive(Debug)]
pub struct KernelBuilder {
    caps: Caps,
    code: RefCell<RecordedCode>,
}

#[derive(Debug, Default)]
struct RecordedCode {
    /// The expressions and names; its statements are the last thing that is put there.
    tree: KernelTree,
    /// Statements of the blocks that are open, outermost first.
    blocks: Vec<Vec<KernelStatement>>,
    /// The number of times that a name was asked for.
    uses: HashMap<String, usize>,
    inputs: Vec<(usize, DType)>,
    outputs: Vec<DType>,
    tables: Vec<Vec<u32>>,
    shared: Vec<(&'static str, usize)>,
    arrays: Vec<(String, usize)>,
    /// The buffers of bools, which are numbers in memory.
    bools: Vec<KernelNameId>,
    is_unsupported: bool,
    mismatch: Option<String>,
}

impl KernelBuilder {
    /// An empty kernel for a device with these abilities.
    pub fn new(caps: Caps) -> KernelBuilder {
        let uses = BUILTINS.iter().map(|name| (name.to_string(), 1)).collect();
        let code = RecordedCode { blocks: vec![Vec::new()], uses, ..RecordedCode::default() };
        KernelBuilder { caps, code: code.into() }
    }

    /// The abilities of the device.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Notes that the device cannot run this kernel.
    pub fn unsupported(&self) {
        self.code.borrow_mut().is_unsupported = true;
    }

    /// Leaves the kernel out unless a condition holds.
    pub fn requires(&self, holds: bool) {
        if !holds {
            self.unsupported();
        }
    }

    fn mismatch(&self, reason: String) {
        self.code.borrow_mut().mismatch.get_or_insert(reason);
    }

    /// The scalar type of a dtype. Where the device has none there will be no kernel.
    pub fn scalar(&self, dtype: DType) -> ScalarType {
        ScalarType::of(dtype, self.caps).unwrap_or_else(|| {
            self.unsupported();
            ScalarType::U32
        })
    }

    /// The number of the element that this invocation computes.
    pub fn element(&self) -> KernelValue<'_> {
        self.builtin("n")
    }

    /// The number of this workgroup.
    pub fn workgroup(&self) -> KernelValue<'_> {
        self.builtin("workgroup")
    }

    /// The number of this invocation in its workgroup.
    pub fn local(&self) -> KernelValue<'_> {
        self.builtin("local")
    }

    /// A `u32` that the entry point defines.
    pub fn builtin(&self, name: &str) -> KernelValue<'_> {
        let name = self.named(name);
        self.expr(KernelExprKind::Name(name), ScalarType::U32)
    }

    /// A float.
    pub fn float(&self, value: f32) -> KernelValue<'_> {
        self.expr(KernelExprKind::Literal(KernelLiteral::F32(value)), ScalarType::F32)
    }

    /// An index or a size.
    pub fn index(&self, value: usize) -> KernelValue<'_> {
        self.integer(ScalarType::U32, value as i128)
    }

    /// A condition that is known.
    pub fn bool(&self, value: bool) -> KernelValue<'_> {
        self.expr(KernelExprKind::Literal(KernelLiteral::Bool(value)), ScalarType::Bool)
    }

    /// A small whole number of any type; of bools, whether it is not 0.
    pub fn number(&self, scalar: ScalarType, value: i32) -> KernelValue<'_> {
        self.integer(scalar, value.into())
    }

    /// A number of a type. Numbers that the type does not have are a defect.
    pub fn constant(&self, scalar: ScalarType, value: Constant) -> KernelValue<'_> {
        match (scalar, value) {
            (ScalarType::F32, value) => self.float(value.to_f64() as f32),
            (_, Constant::Int(value)) => self.integer(scalar, value),
            (_, Constant::Float(value)) => {
                self.mismatch(format!("{value} as {}", scalar.name()));
                self.integer(scalar, 0)
            }
        }
    }

    fn integer(&self, scalar: ScalarType, value: i128) -> KernelValue<'_> {
        let fits = match scalar {
            ScalarType::F32 => return self.float(value as f32),
            ScalarType::Bool => return self.bool(value != 0),
            ScalarType::I32 => i32::try_from(value).is_ok(),
            ScalarType::U32 => u32::try_from(value).is_ok(),
            ScalarType::I64 => i64::try_from(value).is_ok(),
            ScalarType::U64 => u64::try_from(value).is_ok(),
        };
        if !fits {
            self.mismatch(format!("{value} as {}", scalar.name()));
        }
        self.expr(KernelExprKind::Literal(KernelLiteral::Int(value)), scalar)
    }

    /// A function of the language, or of the library, with the type of its result.
    pub fn call<'k, const N: usize>(
        &'k self,
        function: impl Into<Cow<'static, str>>,
        result: ScalarType,
        args: [KernelValue<'k>; N],
    ) -> KernelValue<'k> {
        let args = args.iter().map(|arg| arg.id).collect();
        self.expr(KernelExprKind::Call(function.into(), args), result)
    }

    /// Binds a value to a name, so that it is computed once, here. Numbers are left as they are.
    pub fn bind<'k>(&'k self, name: &str, value: KernelValue<'k>) -> KernelValue<'k> {
        let is_literal = self.code.borrow().tree.literal(value.id).is_some();
        if is_literal { value } else { self.declare(name, value, false) }
    }

    /// Declares a variable with its first value; [`KernelValue::set`] assigns to it.
    pub fn variable<'k>(&'k self, name: &str, first: KernelValue<'k>) -> KernelValue<'k> {
        self.declare(name, first, true)
    }

    fn declare<'k>(
        &'k self,
        name: &str,
        value: KernelValue<'k>,
        is_variable: bool,
    ) -> KernelValue<'k> {
        let name = self.unused(name);
        self.push(KernelStatement::Declare { name, value: value.id, is_variable });
        self.expr(KernelExprKind::Name(name), value.scalar())
    }

    /// Runs statements where a condition holds.
    pub fn when(&self, condition: KernelValue<'_>, then: impl FnOnce()) {
        self.when_else(condition, then, || {});
    }

    /// Runs the first statements where a condition holds, and the second ones elsewhere.
    pub fn when_else(
        &self,
        condition: KernelValue<'_>,
        then: impl FnOnce(),
        otherwise: impl FnOnce(),
    ) {
        let known = self.code.borrow().tree.literal(condition.id);
        match known {
            Some(KernelLiteral::Bool(true)) => return then(),
            Some(KernelLiteral::Bool(false)) => return otherwise(),
            _ => {}
        }
        self.expect(condition);
        let (then, otherwise) = (self.block(then), self.block(otherwise));
        self.push(KernelStatement::If { condition: condition.id, then, otherwise });
    }

    /// Runs statements for every number below a count, in order.
    pub fn for_below<'k>(
        &'k self,
        name: &str,
        count: impl KernelOperand<'k>,
        body: impl FnOnce(KernelValue<'k>),
    ) {
        self.for_range(name, (0usize, count, 1usize), body);
    }

    /// The same, asking the compiler to write out every round.
    pub fn unrolled_below<'k>(
        &'k self,
        name: &str,
        count: impl KernelOperand<'k>,
        body: impl FnOnce(KernelValue<'k>),
    ) {
        self.counted(name, (0usize, count, 1usize), true, body);
    }

    /// Runs statements for every so-and-so-many-th number from a first one on, below an end.
    pub fn for_range<'k>(
        &'k self,
        name: &str,
        range: (impl KernelOperand<'k>, impl KernelOperand<'k>, impl KernelOperand<'k>),
        body: impl FnOnce(KernelValue<'k>),
    ) {
        self.counted(name, range, false, body);
    }

    fn counted<'k>(
        &'k self,
        name: &str,
        (first, end, step): (
            impl KernelOperand<'k>,
            impl KernelOperand<'k>,
            impl KernelOperand<'k>,
        ),
        is_unrolled: bool,
        body: impl FnOnce(KernelValue<'k>),
    ) {
        let first = first.value(self, ScalarType::U32);
        let end = end.value(self, ScalarType::U32);
        let known = |value: KernelValue<'k>| self.code.borrow().tree.literal(value.id);
        // A single round needs no loop, unless something leaves it.
        let (zero, one) = (Some(KernelLiteral::Int(0)), Some(KernelLiteral::Int(1)));
        if known(first) == zero && known(end) == one {
            let round = self.block(|| body(first));
            let leaves = round.iter().any(KernelStatement::leaves_loop);
            let again = || round.into_iter().for_each(|statement| self.push(statement));
            return match leaves {
                false => again(),
                true => self.for_each(name, first, false, |i| (i.lt(end), i + step), |_| again()),
            };
        }
        self.for_each(name, first, is_unrolled, |i| (i.lt(end), i + step), body);
    }

    /// Runs statements for half a number, a quarter of it and so on, as long as it is not 0.
    pub fn for_halves<'k>(&'k self, name: &str, whole: usize, body: impl FnOnce(KernelValue<'k>)) {
        let first = self.index(whole / 2);
        self.for_each(name, first, false, |half| (half.gt(0usize), half >> 1usize), body);
    }

    /// A loop over a variable: its first value, the condition that it goes on by, and the next value.
    fn for_each<'k>(
        &'k self,
        name: &str,
        first: KernelValue<'k>,
        is_unrolled: bool,
        head: impl FnOnce(KernelValue<'k>) -> (KernelValue<'k>, KernelValue<'k>),
        body: impl FnOnce(KernelValue<'k>),
    ) {
        let name = self.unused(name);
        let own = self.expr(KernelExprKind::Name(name), first.scalar());
        let (condition, next) = head(own);
        self.expect(condition);
        let body = self.block(|| body(own));
        let (first, condition, next) = (first.id, condition.id, next.id);
        let looped = KernelStatement::For { name, first, condition, next, is_unrolled, body };
        self.push(looped);
    }

    /// Ends the innermost loop.
    pub fn end_loop(&self) {
        self.push(KernelStatement::Break);
    }

    /// Waits for the whole workgroup, whose writes to workgroup memory can be read then.
    pub fn barrier(&self) {
        let barrier = self.call("barrier_", ScalarType::U32, []);
        self.push(KernelStatement::Run(barrier.id));
    }

    /// A variable or an expression of the text that this kernel's source is put into.
    pub(crate) fn opaque(&self, text: &str, scalar: ScalarType) -> KernelValue<'_> {
        let name = self.named(text);
        self.expr(KernelExprKind::Name(name), scalar)
    }

    /// The statements so far, as part of a text.
    pub(crate) fn text(&self, dialect: ShaderDialect) -> String {
        let mut tree = self.code.borrow().tree.clone();
        tree.statements = self.code.borrow().blocks.concat();
        tree.print(dialect, &[], 0)
    }

    /// The kernel of so many invocations; `None` where the device cannot run it.
    ///
    /// # Errors
    ///
    /// When operands do not fit each other, which is a defect of the kernel.
    pub fn finish(&self, count: usize) -> Result<Option<Shader>> {
        let mut code = self.code.take();
        if code.is_unsupported {
            return Ok(None);
        }
        if let Some(reason) = code.mismatch {
            let (device, op) = ("the builder of kernels".to_string(), "a kernel");
            return Err(Error::Compile { device, op, reason });
        }
        code.tree.statements = code.blocks.pop().unwrap_or_default();
        Ok(Some(Shader {
            inputs: code.inputs,
            tables: code.tables,
            outputs: code.outputs,
            halves: self.caps.halves,
            body: KernelBody::Tree(code.tree),
            count,
            turns: 1,
            shared: code.shared,
            arrays: code.arrays,
        }))
    }

    fn expect(&self, condition: KernelValue<'_>) {
        if condition.scalar() != ScalarType::Bool {
            self.mismatch(format!("a condition of type {}", condition.scalar().name()));
        }
    }

    fn block(&self, body: impl FnOnce()) -> Vec<KernelStatement> {
        self.code.borrow_mut().blocks.push(Vec::new());
        body();
        self.code.borrow_mut().blocks.pop().unwrap_or_default()
    }

    fn push(&self, statement: KernelStatement) {
        if let Some(block) = self.code.borrow_mut().blocks.last_mut() {
            block.push(statement);
        }
    }

    fn assign(&self, target: KernelExprId, value: KernelExprId) {
        self.push(KernelStatement::Assign { target, value });
    }

    fn expr(&self, kind: KernelExprKind, scalar: ScalarType) -> KernelValue<'_> {
        let mut code = self.code.borrow_mut();
        let id = KernelExprId(code.tree.exprs.len() as u32);
        code.tree.exprs.push((kind, scalar));
        KernelValue { builder: self, id }
    }

    fn named(&self, name: &str) -> KernelNameId {
        let names = &mut self.code.borrow_mut().tree.names;
        let found = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_string());
            names.len() - 1
        });
        KernelNameId(found as u32)
    }

    /// A name like this one that nothing else has.
    fn unused(&self, name: &str) -> KernelNameId {
        let uses = {
            let mut code = self.code.borrow_mut();
            let uses = code.uses.entry(name.to_string()).or_default();
            *uses += 1;
            *uses
        };
        match uses {
            1 => self.named(name),
            uses => self.named(&format!("{name}_{uses}")),
        }
    }
}

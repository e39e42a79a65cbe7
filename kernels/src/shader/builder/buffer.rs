//! Memory of kernels: the buffers of a call, tables, workgroup memory and private arrays.

use super::{
    BinaryOperator, KernelBuilder, KernelExprKind, KernelNameId, KernelOperand, KernelValue,
    ScalarType,
};
use crate::device::OpCall;
use ferroflow_ir::DType;

/// Elements of one type under a name.
#[derive(Debug, Clone, Copy)]
pub struct KernelBuffer<'k> {
    builder: &'k KernelBuilder,
    name: KernelNameId,
    /// The type of the values.
    pub scalar: ScalarType,
}

impl<'k> KernelBuffer<'k> {
    /// The element at a position.
    pub fn at(self, index: impl KernelOperand<'k>) -> KernelValue<'k> {
        let stored = self.stored(index);
        // Bools are stored as 0 or 1.
        if self.scalar == ScalarType::Bool { stored.ne(0usize) } else { stored }
    }

    /// Writes the element at a position.
    pub fn set(self, index: impl KernelOperand<'k>, value: impl KernelOperand<'k>) {
        let value = value.value(self.builder, self.scalar);
        if self.scalar != ScalarType::Bool {
            return self.stored(index).set(value);
        }
        let stored = self.builder.stored_bool(value).unwrap_or_else(|| value.to(ScalarType::U32));
        self.stored(index).set(stored);
    }

    /// Zero of this type.
    pub fn zero(self) -> KernelValue<'k> {
        self.builder.number(self.scalar, 0)
    }

    fn stored(self, index: impl KernelOperand<'k>) -> KernelValue<'k> {
        let index = index.value(self.builder, ScalarType::U32);
        if index.scalar() != ScalarType::U32 {
            self.builder.mismatch(format!("an index of type {}", index.scalar().name()));
        }
        let is_bool = self.scalar == ScalarType::Bool;
        let scalar = if is_bool { ScalarType::U32 } else { self.scalar };
        self.builder.expr(KernelExprKind::Element(self.name, index.id), scalar)
    }
}

impl KernelBuilder {
    /// Input `position` of a call, of a dtype.
    pub fn input(&self, position: usize, dtype: DType) -> KernelBuffer<'_> {
        let scalar = self.scalar(dtype);
        let number = {
            let inputs = &mut self.code.borrow_mut().inputs;
            inputs.push((position, dtype));
            inputs.len() - 1
        };
        self.buffer(&format!("in{number}"), scalar)
    }

    /// Inputs of a call.
    pub fn inputs<const N: usize>(
        &self,
        call: &OpCall<'_>,
        positions: [usize; N],
    ) -> [KernelBuffer<'_>; N] {
        positions.map(|position| self.input(position, call.dtype(position)))
    }

    /// The first output of a call.
    pub fn result(&self, call: &OpCall<'_>) -> KernelBuffer<'_> {
        self.output(call.outputs[0].dtype)
    }

    /// The next output, of a dtype.
    pub fn output(&self, dtype: DType) -> KernelBuffer<'_> {
        let scalar = self.scalar(dtype);
        let number = {
            let outputs = &mut self.code.borrow_mut().outputs;
            outputs.push(dtype);
            outputs.len() - 1
        };
        self.buffer(&format!("out{number}"), scalar)
    }

    /// Constants that are too many for the text.
    pub fn table(&self, values: Vec<u32>) -> KernelBuffer<'_> {
        let number = {
            let tables = &mut self.code.borrow_mut().tables;
            tables.push(values);
            tables.len() - 1
        };
        self.buffer(&format!("table{number}"), ScalarType::U32)
    }

    /// Floats that the invocations of a workgroup share, so many at least. Kernels that have such run
    /// by workgroups.
    pub fn shared(&self, name: &'static str, length: usize) -> KernelBuffer<'_> {
        {
            let shared = &mut self.code.borrow_mut().shared;
            match shared.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = length.max(*known),
                None => shared.push((name, length)),
            }
        }
        self.buffer(name, ScalarType::F32)
    }

    /// Floats that each invocation has for itself. Loops over them are unrolled, so that compilers
    /// keep them in registers.
    pub fn private(&self, name: &str, length: usize) -> KernelBuffer<'_> {
        let name = self.unused(name);
        let mut code = self.code.borrow_mut();
        let own = code.tree.names[name.0 as usize].clone();
        code.arrays.push((own, length));
        KernelBuffer { builder: self, name, scalar: ScalarType::F32 }
    }

    fn buffer(&self, name: &str, scalar: ScalarType) -> KernelBuffer<'_> {
        let name = self.named(name);
        if scalar == ScalarType::Bool {
            self.code.borrow_mut().bools.push(name);
        }
        KernelBuffer { builder: self, name, scalar }
    }

    /// The number in memory of a bool that was read from there and not changed.
    fn stored_bool<'k>(&'k self, value: KernelValue<'k>) -> Option<KernelValue<'k>> {
        let code = self.code.borrow();
        let KernelExprKind::Binary(BinaryOperator::Ne, stored, _) = *code.tree.kind(value.id)
        else {
            return None;
        };
        let KernelExprKind::Element(buffer, _) = *code.tree.kind(stored) else { return None };
        code.bools.contains(&buffer).then_some(KernelValue { builder: self, id: stored })
    }
}

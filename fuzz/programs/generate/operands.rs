//! Choices of operands: values that fit, constants.

use super::super::program::{Id, StatementOperand};
use super::{Gen, Seen};
use ferroflow::ir::{DType, HostTensor, Shape};

impl Gen {
    /// A value in scope with a property, a late one more often.
    pub(super) fn find(&mut self, fits: impl Fn(&Seen) -> bool) -> Option<Id> {
        let found: Vec<Id> =
            self.scope.iter().copied().filter(|&id| fits(self.type_of(id))).collect();
        if found.is_empty() {
            return None;
        }
        let late = if found.len() > 4 && self.rng.chance(0.5) { found.len() - 4 } else { 0 };
        Some(self.rng.pick(&found[late..]))
    }

    /// A tensor of numbers.
    pub(super) fn number(&mut self) -> Option<Id> {
        match self.rng.chance(0.6) {
            true => self.find(Seen::is_float),
            false => self.find(Seen::is_number),
        }
    }

    /// A tensor of numbers with a dimension or more.
    pub(super) fn array(&mut self) -> Option<Id> {
        let is_float = self.rng.chance(0.6);
        self.find(|seen| {
            seen.rank() > Some(0) && if is_float { seen.is_float() } else { seen.is_number() }
        })
    }

    /// A tensor of any dtype with a dimension or more.
    pub(super) fn any_array(&mut self) -> Option<Id> {
        match self.rng.chance(0.2) {
            true => self.find(|seen| seen.is_tensor() && seen.rank() > Some(0)),
            false => self.array(),
        }
    }

    /// A value of the same dtype that broadcasts with another, perhaps that itself.
    pub(super) fn fitting(&mut self, id: Id) -> Option<Id> {
        let seen = self.type_of(id).clone();
        self.find(|other| {
            let shapes = seen.shapes.iter().zip(&other.shapes);
            other.dtype == seen.dtype && shapes.into_iter().all(|(a, b)| a.broadcast(b).is_ok())
        })
    }

    /// A value of the same dtype and shape as another, perhaps that itself.
    pub(super) fn like(&mut self, id: Id) -> Option<Id> {
        let seen = self.type_of(id).clone();
        self.find(|other| other.dtype == seen.dtype && other.shapes == seen.shapes)
    }

    /// An axis of a value that has a rank above 0, sometimes counted from the end.
    pub(super) fn axis(&mut self, id: Id) -> Option<i64> {
        let rank = self.type_of(id).rank().filter(|&rank| rank > 0)? as i64;
        let axis = self.rng.within(0, rank - 1);
        Some(if self.rng.chance(0.3) { axis - rank } else { axis })
    }

    /// The index of an axis.
    pub(super) fn index_of(&self, id: Id, axis: i64) -> usize {
        let rank = self.type_of(id).rank().unwrap_or(0) as i64;
        (if axis < 0 { axis + rank } else { axis }) as usize
    }

    /// Small numbers: integers, or halves too for floats.
    pub(super) fn numbers(&mut self, dtype: DType, dims: &[usize]) -> Option<StatementOperand> {
        let shape = Shape::new(dims.iter().copied()).ok()?;
        let n = shape.num_elements();
        let numbers: Vec<i64> = (0..n).map(|_| self.rng.within(-4, 4)).collect();
        tensor(dtype, shape, &numbers).map(StatementOperand::Const)
    }
}

/// A tensor of these numbers, halved for floats.
pub(super) fn tensor(dtype: DType, shape: Shape, numbers: &[i64]) -> Option<HostTensor> {
    let made = match dtype {
        DType::F32 => {
            let halves: Vec<f32> = numbers.iter().map(|&n| n as f32 / 2.0).collect();
            HostTensor::from_slice(shape, &halves)
        }
        DType::F64 => {
            let halves: Vec<f64> = numbers.iter().map(|&n| n as f64 / 2.0).collect();
            HostTensor::from_slice(shape, &halves)
        }
        DType::I64 => HostTensor::from_slice(shape, numbers),
        DType::I32 => {
            let numbers: Vec<i32> = numbers.iter().map(|&n| n as i32).collect();
            HostTensor::from_slice(shape, &numbers)
        }
        DType::Bool => {
            let flags: Vec<bool> = numbers.iter().map(|&n| n > 0).collect();
            HostTensor::from_bools(shape, &flags)
        }
        _ => return None,
    };
    made.ok()
}

/// An `int32` scalar.
pub(super) fn int(number: i64) -> StatementOperand {
    StatementOperand::Const(HostTensor::scalar(number as i32))
}

/// An `int32` vector.
pub(super) fn ints(numbers: &[i64]) -> StatementOperand {
    let numbers: Vec<i32> = numbers.iter().map(|&n| n as i32).collect();
    StatementOperand::Const(HostTensor::vector(&numbers).expect("a short vector"))
}

/// An `int32` matrix.
pub(super) fn pairs(rows: &[[i64; 2]]) -> Option<StatementOperand> {
    let numbers: Vec<i32> = rows.iter().flatten().map(|&n| n as i32).collect();
    let shape = Shape::new([rows.len(), 2]).ok()?;
    Some(StatementOperand::Const(HostTensor::from_slice(shape, &numbers).ok()?))
}

/// A value as an operand.
pub(super) fn value(id: Id) -> StatementOperand {
    StatementOperand::Value(id)
}

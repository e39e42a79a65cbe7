//! Dimension numbers of XLA as graphs hold them: messages of `xla/xla_data.proto` in attributes.

use super::{conv::ConvAxes, dot::DotAxes, gather::GatherAxes, scatter::ScatterAxes};
use crate::{Error, Result, wire::fields};
use std::collections::HashMap;

/// The integers of a message, by the numbers of their fields.
#[derive(Debug, Default)]
pub(crate) struct MessageNumbers(HashMap<u64, Vec<i64>>);

impl MessageNumbers {
    /// Reads a message, of which only integers count.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the attribute is no message.
    pub(crate) fn read(op: &'static str, message: &[u8]) -> Result<MessageNumbers> {
        let wrong = || Error::argument(op, "dimension_numbers", "a message", "damaged bytes");
        let mut numbers = MessageNumbers::default();
        for field in fields(message) {
            let (number, value) = field.map_err(|_| wrong())?;
            let values = numbers.0.entry(number).or_default();
            value.each_varint(|value| values.push(value as i64)).map_err(|_| wrong())?;
        }
        Ok(numbers)
    }

    /// The elements of a repeated field as axes; one that cannot be an axis is far out of range.
    fn axes(&self, field: u64) -> Vec<usize> {
        let values = self.0.get(&field).into_iter().flatten();
        values.map(|&value| usize::try_from(value).unwrap_or(usize::MAX)).collect()
    }

    /// A field of one axis.
    fn axis(&self, field: u64) -> usize {
        self.axes(field).last().copied().unwrap_or(0)
    }

    /// `DotDimensionNumbers`.
    pub(crate) fn dot(&self) -> DotAxes {
        let [lhs_contracting, rhs_contracting, lhs_batch, rhs_batch] =
            [1, 2, 3, 4].map(|field| self.axes(field));
        DotAxes { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting }
    }

    /// `ConvolutionDimensionNumbers`.
    pub(crate) fn conv(&self) -> ConvAxes {
        ConvAxes {
            input: [self.axis(7), self.axis(8)],
            input_spatial: self.axes(11),
            kernel: [self.axis(3), self.axis(4)],
            kernel_spatial: self.axes(6),
            output: [self.axis(9), self.axis(10)],
            output_spatial: self.axes(12),
        }
    }

    /// `UniformQuantizedConvolutionDimensionNumbersAttr`.
    pub(crate) fn uniform_conv(&self) -> ConvAxes {
        ConvAxes {
            input: [self.axis(1), self.axis(2)],
            input_spatial: self.axes(3),
            kernel: [self.axis(4), self.axis(5)],
            kernel_spatial: self.axes(6),
            output: [self.axis(7), self.axis(8)],
            output_spatial: self.axes(9),
        }
    }

    /// `GatherDimensionNumbers`.
    pub(crate) fn gather(&self) -> GatherAxes {
        GatherAxes {
            offset: self.axes(1),
            collapsed: self.axes(2),
            start_map: self.axes(3),
            index_vector: self.axis(4),
            operand_batch: self.axes(5),
            indices_batch: self.axes(6),
        }
    }

    /// `ScatterDimensionNumbers`.
    pub(crate) fn scatter(&self) -> ScatterAxes {
        ScatterAxes {
            window: self.axes(1),
            inserted: self.axes(2),
            start_map: self.axes(3),
            index_vector: self.axis(4),
            operand_batch: self.axes(5),
            indices_batch: self.axes(6),
        }
    }
}

impl DotAxes {
    /// Whether the axes fit operands of these ranks.
    pub fn fits(&self, lhs: usize, rhs: usize) -> bool {
        let good = |batch: &[usize], contracting: &[usize], rank: usize| {
            let all = [batch, contracting].concat();
            all.iter().all(|&axis| axis < rank) && super::region::distinct(&all)
        };
        self.lhs_batch.len() == self.rhs_batch.len()
            && self.lhs_contracting.len() == self.rhs_contracting.len()
            && good(&self.lhs_batch, &self.lhs_contracting, lhs)
            && good(&self.rhs_batch, &self.rhs_contracting, rhs)
    }
}

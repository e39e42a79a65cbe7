//! Calls that read rows of tensors where they are: `_RowCall`.

use super::{Build, index::checked_index, kernel_of};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::DType;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("_RowCall", row_call)];

/// A kernel some of whose inputs are rows.
struct RowCall {
    kernel: Arc<dyn Kernel>,
    /// The inputs that are rows; the number of rows and the bytes of one.
    rows: Vec<RowInput>,
    /// The input that is the index.
    index: usize,
    index_dtype: DType,
}

struct RowInput {
    input: usize,
    n_rows: usize,
    bytes: usize,
}

fn row_call(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    call.with_rows(|own, inputs| {
        let Some(kernel) = kernel_of(own)? else { return Ok(None) };
        let index = call.inputs.len() - 1;
        let row = |&input: &usize| {
            let size = own.dtype(input).size()?;
            let bytes = own.shape(input).num_elements() * size;
            Some(RowInput { input, n_rows: *call.shape(input).first()?, bytes })
        };
        let Some(rows) = inputs.iter().map(row).collect() else { return Ok(None) };
        let index_dtype = call.dtype(index);
        Ok(Some(Arc::new(RowCall { kernel, rows, index, index_dtype }) as Arc<dyn Kernel>))
    })
}

impl Kernel for RowCall {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        for row in &self.rows {
            let position = checked_index(io, self.index, self.index_dtype, row.n_rows)?;
            io.narrow(row.input, position * row.bytes..(position + 1) * row.bytes);
        }
        self.kernel.run(io)
    }

    fn in_place(&self, index: usize) -> bool {
        let is_row = self.rows.iter().any(|row| row.input == index);
        !is_row && index != self.index && self.kernel.in_place(index)
    }
}

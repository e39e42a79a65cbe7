//! `MatMul` and `BatchMatMul`.

use super::{
    Build,
    dispatch::with_number,
    gemm::{Byte, GemmElement, GemmOutput, GemmSizes, Matrix, gemm, gemm_of_bytes},
};
use super::{
    gemm::{BlockEpilogue, GemmWeights, gemm_by_weights, rows::RowsFrom, weights::PackedWeights},
    region::epilogue::ExprEpilogue,
};
use crate::{
    Precision,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    threads::Threads,
};
use ferroflow_ir::{DType, Shape, StridedView, view::ViewDim};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("BatchMatMul", batch_matmul),
    ("BatchMatMulV2", batch_matmul),
    ("MatMul", matmul),
    ("_WideningMatMul", widening),
];

/// An operand of a matmul: the layout of its matrices, and which of them meets which of the
/// other's.
struct Side {
    shape: Shape,
    transposed: bool,
    conjugate: bool,
    /// The number of the matrix that is needed for each matrix of the result.
    order: StridedView,
}

impl Side {
    /// An operand whose matrices broadcast to `batch`, the leading dimensions of the result.
    fn new(shape: &Shape, transposed: bool, conjugate: bool, batch: &[usize]) -> Result<Side> {
        let own = &shape[..shape.rank() - 2];
        let strides = Shape::new(own.iter().copied())?.strides();
        let missing = batch.len() - own.len();
        let dims = batch.iter().enumerate().map(|(axis, &size)| {
            let own = axis.checked_sub(missing).filter(|&axis| own[axis] != 1);
            ViewDim { size, stride: own.map_or(0, |axis| strides[axis] as isize) }
        });
        let order = StridedView { offset: 0, dims: dims.collect() }.simplified();
        Ok(Side { shape: shape.clone(), transposed, conjugate, order })
    }

    fn rows_and_cols(&self) -> (usize, usize) {
        let rank = self.shape.rank();
        let (rows, cols) = (self.shape[rank - 2], self.shape[rank - 1]);
        if self.transposed { (cols, rows) } else { (rows, cols) }
    }

    /// Whether all matrices of the result need the same one.
    fn is_single(&self) -> bool {
        self.order.dims.iter().all(|dim| dim.stride == 0)
    }

    /// Whether matrix `n` of the result needs matrix `n`.
    fn is_in_order(&self) -> bool {
        self.order.is_contiguous()
    }

    /// The matrix that matrix `index` of the result needs.
    fn matrix<'a, T>(&self, data: &'a [T], index: usize) -> Matrix<'a, T> {
        let rank = self.shape.rank();
        let (rows, cols) = (self.shape[rank - 2], self.shape[rank - 1]);
        let first = self.order.position(index) as usize * rows * cols;
        let matrix = Matrix::row_major(&data[first..], cols);
        let matrix = if self.transposed { matrix.transposed() } else { matrix };
        Matrix { conjugate: self.conjugate, ..matrix }
    }
}

/// Matmuls of pairs of matrices.
struct Plan {
    sizes: GemmSizes,
    count: usize,
    precision: Precision,
    a: Side,
    b: Side,
}

impl Plan {
    fn new(a: Side, b: Side, batch: &[usize], precision: Precision) -> Plan {
        let ((m, k), (_, n)) = (a.rows_and_cols(), b.rows_and_cols());
        let (sizes, count) = (GemmSizes { m, k, n }, batch.iter().product());
        let plan = Plan { sizes, count, precision, a, b };
        plan.merged()
    }

    /// Many matrices times one are one tall matrix times it.
    fn merged(mut self) -> Plan {
        if self.count > 1 && self.b.is_single() && self.a.is_in_order() && !self.a.transposed {
            self.sizes.m *= self.count;
            self.count = 1;
        }
        self
    }

    /// Computes all matmuls with a function for one.
    fn run<A: Sync, B: Sync, R: Send>(
        &self,
        threads: &Threads,
        (a, b): (&[A], &[B]),
        out: &mut [R],
        gemm: impl Fn(&Threads, GemmSizes, Matrix<'_, A>, Matrix<'_, B>, GemmOutput<'_, R>) + Sync,
    ) {
        self.for_each_matmul(threads, out, |threads, index, out| {
            let (a, b) = (self.a.matrix(a, index), self.b.matrix(b, index));
            gemm(threads, self.sizes, a, b, GemmOutput::row_major(out, self.sizes.n));
        });
    }

    /// Calls `one` with the number and the position of each matmul: threads share a large matmul,
    /// or the products.
    fn for_each_matmul<R: Send>(
        &self,
        threads: &Threads,
        out: &mut [R],
        one: impl Fn(&Threads, usize, &mut [R]) + Sync,
    ) {
        let GemmSizes { m, n, .. } = self.sizes;
        if out.is_empty() {
            return;
        }
        if self.count == 1 || self.sizes.work() >= PIECE {
            out.chunks_mut(m * n).enumerate().for_each(|(index, out)| one(threads, index, out));
            return;
        }
        let single = Threads::single();
        let per_piece = (PIECE / self.sizes.work().max(1)).max(1) as usize;
        threads.for_each_piece(out, per_piece.saturating_mul(m * n), |start, out| {
            let first = start / (m * n);
            for (index, out) in out.chunks_mut(m * n).enumerate() {
                one(&single, first + index, out);
            }
        });
    }
}

/// Matmuls of `f32` with an epilogue.
pub(super) fn with_epilogue(
    call: &OpCall<'_>,
    epilogue: ExprEpilogue,
) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = match call.op.name {
        "MatMul" => plan_of_two(call)?,
        _ => plan_of_batch(call)?,
    };
    let kept = PackedWeights::default();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let epilogue = epilogue.on(io, 2);
        plan.run_by_weights(io, &kept, Some(&epilogue));
        Ok(())
    })))
}

/// Matmuls of `f32`.
fn float_kernel(plan: Plan) -> Arc<dyn Kernel> {
    let kept = PackedWeights::default();
    Arc::new(move |io: &mut Io<'_>| {
        plan.run_by_weights(io, &kept, None);
        Ok(())
    })
}

impl Plan {
    /// Computes the matmuls, and applies the epilogue.
    fn run_by_weights(
        &self,
        io: &mut Io<'_>,
        kept: &PackedWeights,
        finish: Option<&dyn BlockEpilogue>,
    ) {
        let (a, b): (&[f32], &[f32]) = (io.input(0), io.input(1));
        let tensor = io.tensor(1).filter(|_| self.count == 1);
        let weights = GemmWeights { tensor, kept, precision: self.precision };
        self.for_each_matmul(io.threads(), io.output(0), |threads, index, out| {
            let (a, b) = (self.a.matrix(a, index), self.b.matrix(b, index));
            let epilogue = finish.map(|finish| RowsFrom { finish, row: index * self.sizes.m });
            let epilogue = epilogue.as_ref().map(|finish| finish as &dyn BlockEpilogue);
            gemm_by_weights(threads, self.sizes, a, b, weights, out, epilogue);
        });
    }
}

/// Multiplications per piece of work.
const PIECE: u64 = 1 << 21;

fn kernel<T: GemmElement>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let (a, b): (&[T], &[T]) = (io.input(0), io.input(1));
        plan.run(io.threads(), (a, b), io.output(0), gemm::<T>);
        Ok(())
    })
}

fn widening(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Byte, B: Byte>(plan: Plan) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (a, b): (&[A], &[B]) = (io.input(0), io.input(1));
            plan.run(io.threads(), (a, b), io.output(0), gemm_of_bytes);
            Ok(())
        })
    }
    let plan = plan_of_batch(call)?;
    Ok(Some(match (call.dtype(0), call.dtype(1)) {
        (DType::I8, DType::I8) => kernel::<i8, i8>(plan),
        (DType::I8, DType::U8) => kernel::<i8, u8>(plan),
        (DType::U8, DType::I8) => kernel::<u8, i8>(plan),
        (DType::U8, DType::U8) => kernel::<u8, u8>(plan),
        _ => return Ok(None),
    }))
}

fn matmul(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = plan_of_two(call)?;
    if call.dtype(0) == DType::F32 {
        return Ok(Some(float_kernel(plan)));
    }
    Ok(with_number!(call.dtype(0), T => kernel::<T>(plan)))
}

fn plan_of_two(call: &OpCall<'_>) -> Result<Plan> {
    let a = Side::new(call.shape(0), call.attrs.bool("transpose_a")?, false, &[])?;
    let b = Side::new(call.shape(1), call.attrs.bool("transpose_b")?, false, &[])?;
    Ok(Plan::new(a, b, &[], call.precision))
}

fn batch_matmul(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = plan_of_batch(call)?;
    if call.dtype(0) == DType::F32 {
        return Ok(Some(float_kernel(plan)));
    }
    Ok(with_number!(call.dtype(0), T => kernel::<T>(plan)))
}

/// A matrix that is taken "adjoint" is conjugated as well as transposed.
fn plan_of_batch(call: &OpCall<'_>) -> Result<Plan> {
    let shape = call.output_shape(0)?;
    let batch = &shape[..shape.rank() - 2];
    let (adj_x, adj_y) = (call.attrs.bool("adj_x")?, call.attrs.bool("adj_y")?);
    let x = Side::new(call.shape(0), adj_x, adj_x, batch)?;
    let y = Side::new(call.shape(1), adj_y, adj_y, batch)?;
    Ok(Plan::new(x, y, batch, call.precision))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &[usize], b: &[usize], batch: &[usize], count: usize, m: usize) {
        let side = |dims: &[usize]| {
            Side::new(&Shape::new(dims.iter().copied()).unwrap(), false, false, batch).unwrap()
        };
        let plan = Plan::new(side(a), side(b), batch, Precision::Full);
        assert_eq!((plan.count, plan.sizes.m), (count, m));
    }

    #[test]
    fn a_single_right_matrix_makes_one_tall_matmul() {
        check(&[2, 3, 4, 5], &[5, 6], &[2, 3], 1, 24);
        check(&[2, 3, 4, 5], &[3, 5, 6], &[2, 3], 6, 4);
        check(&[1, 3, 4, 5], &[1, 1, 5, 6], &[1, 3], 1, 12);
        check(&[4, 5], &[7, 5, 6], &[7], 7, 4);
    }
}

//! Where the matrices of an attention are, and what happens to its scores.

use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Attrs, DType, Expr, Shape, StridedView, expr::Replacement, view::ViewDim};
use smallvec::SmallVec;

/// Matrices in a tensor, one for each of a batch: element `[row, col]` of matrix `n` is at
/// `first.position(n) + row * row_step + col * col_step`.
#[derive(Debug, Clone)]
pub(crate) struct Matrices {
    pub(crate) first: StridedView,
    pub(crate) row_step: usize,
    pub(crate) col_step: usize,
}

impl Matrices {
    /// Those of a tensor whose dimensions are seen in this order; sizes of 1 broadcast to `batch`.
    fn new(shape: &Shape, order: &[usize], batch: &[usize]) -> Matrices {
        let strides = shape.strides();
        let step = |axis: usize| if shape[axis] == 1 { 0 } else { strides[axis] };
        let missing = batch.len() + 2 - order.len();
        let dims = batch.iter().enumerate().map(|(axis, &size)| {
            let own = axis.checked_sub(missing).map(|axis| step(order[axis]));
            ViewDim { size, stride: own.unwrap_or(0) as isize }
        });
        let first = StridedView { offset: 0, dims: dims.collect() }.simplified();
        let [row, col] = [order.len() - 2, order.len() - 1].map(|axis| step(order[axis]));
        Matrices { first, row_step: row, col_step: col }
    }

    /// Where an element of matrix `n` is.
    pub(crate) fn at(&self, n: usize, row: usize, col: usize) -> usize {
        self.first.position(n) as usize + row * self.row_step + col * self.col_step
    }
}

/// A call of `_FusedAttention`.
#[derive(Debug)]
pub(crate) struct Attention {
    pub(crate) batch: SmallVec<[usize; 4]>,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// The size of a query and of a key.
    pub(crate) depth: usize,
    /// The size of a value.
    pub(crate) width: usize,
    pub(crate) query: Matrices,
    pub(crate) key: Matrices,
    pub(crate) value: Matrices,
    pub(crate) output: Matrices,
    /// Matrices that the expression reads besides the score.
    pub(crate) others: Vec<Matrices>,
    /// The input among these where weights that count are true.
    pub(crate) keep: Option<usize>,
    /// From the score, in the type of sums, and the others to what the softmax is taken of.
    pub(crate) expr: Option<Expr>,
}

impl Attention {
    /// The parts of a call.
    ///
    /// # Errors
    ///
    /// When the call's attributes do not fit it.
    pub(crate) fn new(call: &OpCall<'_>) -> Result<Attention> {
        let rank = call.shape(0).rank();
        let order = |name| -> Result<Vec<usize>> {
            let order = call.attrs.ints(name)?;
            let in_order = || (0..rank).collect();
            let axes = || order.iter().map(|&axis| axis as usize).collect();
            Ok(if order.is_empty() { in_order() } else { axes() })
        };
        let orders = [order("query_order")?, order("key_order")?, order("value_order")?];
        let size = |input: usize, axis: usize| call.shape(input)[orders[input][axis]];
        let batch: SmallVec<[usize; 4]> = (0..rank - 2)
            .map(|axis| (0..3).map(|input| size(input, axis)).find(|&size| size != 1).unwrap_or(1))
            .collect();
        let matrices = |input: usize| Matrices::new(call.shape(input), &orders[input], &batch);
        let made = order("output_order")?;
        // Where in the output each dimension of the averages is.
        let mut seen = vec![0; rank];
        made.iter().enumerate().for_each(|(at, &axis)| seen[axis] = at);
        let others = call.inputs[3..].iter().map(|input| {
            let mut dims: SmallVec<[usize; 6]> = input.shape.iter().copied().collect();
            while dims.len() < 2 {
                dims.insert(0, 1);
            }
            let order: Vec<usize> = (0..dims.len()).collect();
            Ok(Matrices::new(&Shape::new(dims)?, &order, &batch))
        });
        let others: Result<Vec<Matrices>> = others.collect();
        Ok(Attention {
            queries: size(0, rank - 2),
            keys: size(1, rank - 2),
            depth: size(0, rank - 1),
            width: size(2, rank - 1),
            query: matrices(0),
            key: matrices(1),
            value: matrices(2),
            output: Matrices::new(&call.output_shape(0)?, &seen, &batch),
            others: others?,
            keep: usize::try_from(call.attrs.int("keep")?).ok(),
            expr: call.expr.map(|expr| in_sums(call, expr)).transpose()?,
            batch,
        })
    }

    /// The number of matrices.
    pub(crate) fn count(&self) -> usize {
        self.batch.iter().product()
    }

    /// The number of scores.
    pub(crate) fn scores(&self) -> usize {
        [self.count(), self.queries, self.keys].into_iter().fold(1, usize::saturating_mul)
    }
}

/// The expression of the score in the type of sums: scores are rounded to that of the operands.
fn in_sums(call: &OpCall<'_>, expr: &Expr) -> Result<Expr> {
    let dtype = call.dtype(0);
    let sums = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let cast = |from: DType, to: DType| Expr::build(&Attrs::new(), &[from], to, |s| s.x(0));
    let rounded = cast(sums, dtype)?;
    let others = call.inputs[3..].iter().enumerate();
    let mut inputs = vec![match dtype == sums {
        true => Replacement::Input(0, sums),
        false => Replacement::Expr(&rounded),
    }];
    inputs.extend(others.map(|(index, input)| Replacement::Input(index + 1, input.dtype)));
    let expr = expr.substitute(&inputs);
    if expr.dtype() == sums {
        return Ok(expr);
    }
    Ok(cast(expr.dtype(), sums)?.substitute(&[Replacement::Expr(&expr)]))
}

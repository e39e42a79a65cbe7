//! Epilogues of matmuls, as the library names them: a bias for each column, and a rectifier.

use super::problem::{LibraryEpilogue, LibraryProblem, MatmulNode};
use crate::{
    device::{OpCall, Then},
    error::Result,
};
use ferroflow_ir::{Attrs, DType, Expr, expr::Replacement, registry};

impl MatmulNode {
    /// The product that a call is with what follows it, if the library knows that.
    ///
    /// # Errors
    ///
    /// When the call's attributes do not fit its op.
    pub(super) fn followed(call: &OpCall<'_>, then: &Then<'_>) -> Result<Option<MatmulNode>> {
        let Some(product) = MatmulNode::of(call)? else { return Ok(None) };
        let (dtype, problem) = (call.outputs[0].dtype, &product.problem);
        let [bias] = then.others else { return Ok(None) };
        let fits = bias.dtype == dtype && bias.shape[..] == [problem.rows] && problem.batch == 1;
        if !fits || problem.epilogue != LibraryEpilogue::None {
            return Ok(None);
        }
        for epilogue in [LibraryEpilogue::Bias, LibraryEpilogue::BiasRelu] {
            if formulas(epilogue, dtype)?.contains(then.expr) {
                let problem = LibraryProblem { epilogue, ..product.problem };
                return Ok(Some(MatmulNode { problem, bias: Some(call.inputs.len()), ..product }));
            }
        }
        Ok(None)
    }
}

/// Expressions of an epilogue of input 0, a matmul, and input 1, a bias: a sum has two ways.
fn formulas(epilogue: LibraryEpilogue, dtype: DType) -> Result<[Expr; 2]> {
    let of = |op: &'static str, inputs: &[DType]| {
        let op = registry::find(op).expect("a built-in record");
        Expr::of(op, &Attrs::new().with("T", dtype), inputs, dtype)
    };
    let sum = of("AddV2", &[dtype, dtype])?;
    let turned = [Replacement::Input(1, dtype), Replacement::Input(0, dtype)];
    let sums = [sum.substitute(&turned), sum];
    Ok(match epilogue {
        LibraryEpilogue::BiasRelu => {
            let relu = of("Relu", &[dtype])?;
            sums.map(|sum| relu.substitute(&[Replacement::Expr(&sum)]))
        }
        LibraryEpilogue::None | LibraryEpilogue::Bias | LibraryEpilogue::BiasGelu => sums,
    })
}

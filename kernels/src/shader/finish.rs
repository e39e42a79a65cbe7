//! Epilogues of matmuls, from sums to elements of the output: rounded, and put through what follows
//! the call.

use super::{
    Shader,
    elementwise::element,
    expr,
    word::{Caps, Word, cut},
};
use crate::{
    device::{OpCall, Then},
    error::Result,
};
use ferroflow_ir::DType;

/// Longer expressions, written out for each element of a block, are long to compile.
const MOST_NODES: usize = 48;

/// The end of a program whose elements are written once each.
pub(super) struct EpilogueWriter {
    /// Dtype that the call's own elements are rounded to.
    dtype: DType,
    then: Option<Follows>,
}

/// Source of an epilogue.
struct Follows {
    /// The statements that make of `sum_`, the element at `end_`, one of the output, and store it.
    statements: String,
    others: Vec<(usize, Word)>,
    output: Word,
}

impl EpilogueWriter {
    /// Of a call that nothing follows.
    pub(super) fn plain(call: &OpCall<'_>) -> EpilogueWriter {
        EpilogueWriter { dtype: call.outputs[0].dtype, then: None }
    }

    /// Of a call whose program reads `first` inputs; `None` where what follows cannot be written down.
    ///
    /// # Errors
    ///
    /// When the shape of the output is not known.
    pub(super) fn of(
        call: &OpCall<'_>,
        then: &Then<'_>,
        first: usize,
        caps: Caps,
    ) -> Result<Option<EpilogueWriter>> {
        let output = call.output_shape(0)?;
        if call.outputs.len() != 1 || then.expr.nodes().len() > MOST_NODES {
            return Ok(None);
        }
        let (mut values, mut others) = (vec!["sum_".to_string()], Vec::new());
        for (number, other) in then.others.iter().enumerate() {
            let source = format!("in{}", first + number);
            let Some((word, value)) = element(other, &source, (&output, "end_"), caps) else {
                return Ok(None);
            };
            values.push(value);
            others.push((call.inputs.len() + number, word));
        }
        let (printed, word) =
            (expr::print(then.expr, &values, caps), Word::of(then.expr.dtype(), caps));
        let (Some((lines, result)), Some(output)) = (printed, word) else { return Ok(None) };
        let statements = lines + &output.store("out0", "end_", &result);
        let then = Some(Follows { statements, others, output });
        Ok(Some(EpilogueWriter { dtype: call.outputs[0].dtype, then }))
    }

    /// The statement that stores a sum as the element at a place.
    pub(super) fn store(&self, at: &str, sum: &str) -> String {
        let sum = cut(self.dtype, sum);
        match &self.then {
            None => format!("out0[{at}] = {sum};\n"),
            Some(Follows { statements, .. }) => {
                format!("{{\nlet end_ = {at};\nlet sum_ = {sum};\n{statements}}}\n")
            }
        }
    }

    /// The program that reads these inputs of the call itself, and computes words of one kind.
    pub(super) fn shader(
        &self,
        mut inputs: Vec<(usize, Word)>,
        word: Word,
        body: String,
        count: usize,
    ) -> Shader {
        let output = match &self.then {
            None => word,
            Some(then) => {
                inputs.extend(&then.others);
                then.output
            }
        };
        Shader::plain(inputs, vec![output], body, count)
    }
}

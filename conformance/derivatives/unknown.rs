//! Gradients of functions whose shapes are not known, against those where they are.

use super::{FeedInput, FeedRng, Program, Ran, moved};
use crate::{
    compare::{Compare, Tolerance, elements},
    ops::gradients,
    outcome::CaseOutcome,
};
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    ir::{
        Attrs, Code, FunctionDef, FunctionLibrary, HostTensor, OpDef, PartialShape, ValueType,
        build::GraphBuilder,
        gradient::{GradientIndex, Kept, differentiate, is_differentiable},
    },
    runtime::{CallableFunction, Context, EagerTensor, execute},
};
use std::sync::Arc;

/// Knowledge about the inputs of an op when its gradient is made.
#[derive(Debug, Clone, Copy)]
struct Knowledge {
    /// Whether ranks are known.
    ranks: bool,
    /// Whether inputs that decide shapes are constants.
    shape_operands: bool,
}

const KNOWLEDGE: [Knowledge; 4] = [
    Knowledge { ranks: true, shape_operands: true },
    Knowledge { ranks: true, shape_operands: false },
    Knowledge { ranks: false, shape_operands: true },
    Knowledge { ranks: false, shape_operands: false },
];

/// Compares the gradients of a call whose shapes are not known, as far as the op allows that, with
/// those of the same call where they are.
pub(super) fn check(
    context: &Context,
    op: &'static OpDef,
    attrs: &Attrs,
    program: &Program<'_>,
    inputs: &[FeedInput],
    counted: Option<&[usize]>,
) -> Result<CaseOutcome> {
    let mut rng = FeedRng::new(inputs.len() as u64 + 11);
    let values = moved(inputs, &vec![None; inputs.len()], 0.0)?;
    let mut ran = Ran::new(context, program, &values)?;
    let weights = ran.weights(&mut rng, counted)?;
    let (outputs, sources) = (ran.outputs.clone(), ran.inputs.clone());
    let seeds = ran.seeds(&outputs, &weights);
    let expected = gradients(&mut ran.tape, &seeds, &sources)?;
    let value = |id: &_| Ok(ran.tape.value_of(*id).host()?.clone());
    let expected: Vec<Option<HostTensor>> =
        expected.iter().map(|id| id.as_ref().map(value).transpose()).collect::<Result<_>>()?;
    let given: Vec<HostTensor> = outputs.iter().map(value).collect::<Result<_>>()?;
    let call = Called { context, op, attrs, values, given, weights };
    for knowledge in KNOWLEDGE {
        let found = call.gradients(knowledge).with_context(|| format!("{knowledge:?}"))?;
        for (index, (found, expected)) in found.iter().flatten().zip(&expected).enumerate() {
            if let Err(why) = same(found.as_ref(), expected.as_ref()) {
                return Ok(CaseOutcome::Failed(format!("{knowledge:?}: gradient {index}: {why}")));
            }
        }
    }
    Ok(CaseOutcome::Passed)
}

/// A call, with what it gives.
struct Called<'a> {
    context: &'a Context,
    op: &'static OpDef,
    attrs: &'a Attrs,
    values: Vec<HostTensor>,
    given: Vec<HostTensor>,
    weights: Vec<Option<HostTensor>>,
}

impl Called<'_> {
    /// The gradients of the inputs; none where the op does not allow that so little is known.
    fn gradients(&self, knowledge: Knowledge) -> Result<Option<Vec<Option<HostTensor>>>> {
        let Ok((def, arguments)) = self.function(knowledge) else { return Ok(None) };
        let library = Arc::new(FunctionLibrary::new());
        let run = |def: &Arc<FunctionDef>, args: &[EagerTensor]| {
            let resources = self.context.resources().clone();
            let library = library.clone();
            CallableFunction::with_captures(
                self.context,
                def.clone(),
                library,
                resources,
                Vec::new(),
            )
            .call(args)
        };
        let args: Vec<EagerTensor> =
            arguments.iter().map(|&index| self.values[index].clone().into()).collect();
        let def = Arc::new(def);
        if run(&def, &args).is_err() {
            return Ok(None);
        }
        let wanted: Vec<bool> =
            arguments.iter().map(|&index| is_differentiable(self.values[index].dtype())).collect();
        let parts = differentiate(&library, &def, &wanted).context("differentiating")?;
        let results = run(&parts.forward, &args).context("forward")?;
        let mut taken: Vec<EagerTensor> = Vec::new();
        for &seed in &parts.seeds {
            taken.push(match self.weights.get(seed).and_then(Option::as_ref) {
                Some(weight) => weight.clone().into(),
                None => self.one("ZerosLike", &[self.given[seed].clone().into()])?,
            });
        }
        taken.extend(parts.kept.iter().map(|kept| match *kept {
            Kept::Argument(index) => args[index].clone(),
            Kept::Result(index) => results[index].clone(),
        }));
        let found = match run(&parts.backward, &taken) {
            // Some rules need values that only the caller knows, and say so.
            Err(error) if error.code() == Code::Unimplemented => return Ok(None),
            found => found.context("backward")?,
        };
        let mut gradients = vec![None; self.values.len()];
        for (&index, place) in arguments.iter().zip(&parts.gradients) {
            gradients[index] = self.dense(index, *place, &found)?;
        }
        Ok(Some(gradients))
    }

    /// A function of the call alone, and which of the inputs are its arguments.
    fn function(&self, knowledge: Knowledge) -> Result<(FunctionDef, Vec<usize>)> {
        let mut builder = GraphBuilder::new();
        let is_host = self.op.host_inputs(&self.op.complete_attrs(self.typed())?)?;
        let (mut outlets, mut arguments) = (Vec::new(), Vec::new());
        for (index, value) in self.values.iter().enumerate() {
            let name = format!("x{index}");
            if knowledge.shape_operands && is_host[index] {
                outlets.push(builder.constant(&name, value.clone())?);
                continue;
            }
            let shape = match knowledge.ranks {
                true => PartialShape::of_rank(value.shape().rank()),
                false => PartialShape::Unknown,
            };
            outlets.push(builder.arg(&name, ValueType::new(value.dtype(), shape))?);
            arguments.push(index);
        }
        let results = builder.call_with(self.op.name, "y", self.attrs.clone(), &outlets)?;
        let names: Vec<String> = (0..results.len()).map(|index| format!("y{index}")).collect();
        let named: Vec<_> = names.iter().map(String::as_str).zip(results).collect();
        Ok((builder.finish_function("f", &named), arguments))
    }

    /// The attributes with those that follow from inputs.
    fn typed(&self) -> Attrs {
        let dtypes: Vec<_> = self.values.iter().map(HostTensor::dtype).collect();
        ferroflow::ir::build::infer_attrs(self.op, self.attrs.clone(), &dtypes)
    }

    fn one(&self, op: &str, inputs: &[EagerTensor]) -> Result<EagerTensor> {
        Ok(execute(self.context, op, Attrs::new(), inputs)?.remove(0))
    }

    fn dense(
        &self,
        index: usize,
        place: Option<GradientIndex>,
        found: &[EagerTensor],
    ) -> Result<Option<HostTensor>> {
        let dense = match place {
            None => return Ok(None),
            Some(GradientIndex::Dense(at)) => found[at].clone(),
            Some(GradientIndex::Slices(at)) => {
                let rows = self.values[index].shape().first().copied().unwrap_or(0) as i64;
                let rows = HostTensor::scalar(rows).into();
                let inputs = [found[at].clone(), found[at + 1].clone(), rows];
                self.one("UnsortedSegmentSum", &inputs)?
            }
        };
        Ok(Some(dense.host()?.clone()))
    }
}

/// Whether two gradients are equal; none is as good as zeros.
fn same(found: Option<&HostTensor>, expected: Option<&HostTensor>) -> Result<()> {
    let is_zero =
        |tensor: &HostTensor| elements(tensor).is_some_and(|all| all.iter().all(|&x| x == 0.0));
    match (found, expected) {
        (Some(found), Some(expected)) => {
            let tolerance = Tolerance { rtol: 1e-5, atol: 1e-6 };
            Compare::Close(tolerance).check(found, expected)
        }
        (None, None) => Ok(()),
        (Some(one), None) | (None, Some(one)) if is_zero(one) => Ok(()),
        (found, _) => bail!("{} gradient", if found.is_some() { "a" } else { "no" }),
    }
}

//! Gradients of ops against differences of their results: first order, and second. Gradients of
//! functions whose shapes are not known against those.
//!
//! The cases are made for each record through which gradients go: by its interface where its
//! inputs are numbers, else from a line of [`cases`]. An op that has neither, and is not among
//! those left out with a reason, fails.

mod cases;
mod feed;
mod programs;
mod unknown;

use crate::{
    compare::{elements, with_elements},
    ops::{CallTape, gradients},
    outcome::CaseOutcome,
};
use anyhow::{Context as _, Result};
use feed::{FeedInput, FeedRng, Floats, Moves, feed};
use ferroflow::{
    ir::{
        Attrs, DType, HostTensor, OpDef,
        emit::ValueId,
        gradient::Gradient,
        op::{ArgKind, ArgType, CallKind, Lowering},
    },
    runtime::Context,
};
use serde_json::{Value, json};

/// A function of tensors, made of calls of ops.
type Program<'a> = dyn Fn(&mut CallTape<'_>, &[ValueId]) -> Result<Vec<ValueId>> + 'a;

/// Checks every op, or those whose names the job lists.
pub(crate) fn run(only: Option<&Value>, report: &mut dyn FnMut(Value) -> Result<()>) -> Result<()> {
    let is_asked = |name: &str| match only.and_then(Value::as_array) {
        Some(names) => names.iter().any(|asked| asked == name),
        None => true,
    };
    let mut result = |name: &str, outcome: CaseOutcome| {
        report(outcome.report(json!({ "op": name, "family": "derivatives", "case": name })))
    };
    for op in ferroflow::ir::ops::all().filter(|op| has_gradient(op) && is_asked(op.name)) {
        if let Some((_, why)) = cases::LEFT_OUT.iter().find(|(name, _)| *name == op.name) {
            result(op.name, CaseOutcome::Unsupported(why.to_string()))?;
            continue;
        }
        let found = cases::CASES.iter().filter(|case| case.0 == op.name);
        let mut found: Vec<(&str, &str)> = found.map(|case| (case.1, case.2)).collect();
        let by_interface = cases::by_interface(op);
        if let (true, Some(inputs)) = (found.is_empty(), &by_interface) {
            found.push((inputs, "{}"));
        }
        if found.is_empty() {
            result(op.name, CaseOutcome::Failed("no case, and no reason to have none".into()))?;
        }
        for (inputs, attrs) in found {
            let outcome = CaseOutcome::of(|| check_op(&Context::new(), op, inputs, attrs));
            result(op.name, outcome)?;
            let outcome = CaseOutcome::of(|| check_unknown(&Context::new(), op, inputs, attrs));
            result(&format!("{} of unknown shapes", op.name), outcome)?;
        }
    }
    for (name, inputs, order, program) in programs::PROGRAMS {
        if is_asked(name) {
            let outcome = CaseOutcome::of(|| {
                let inputs = feed(inputs, Floats { dtype: DType::F64, domain: (0.0, 1.0) })?;
                check(&Context::new(), program, &inputs, None, *order)
            });
            result(name, outcome)?;
        }
    }
    Ok(())
}

/// Whether gradients go through an op, from numbers to numbers.
fn has_gradient(op: &OpDef) -> bool {
    let is_there = match op.gradient {
        Gradient::Zero => false,
        Gradient::Missing => matches!(op.lowering, Lowering::Composite(_)),
        Gradient::Same | Gradient::Rule(_) | Gradient::Through(_) | Gradient::Broadcast(_) => true,
    };
    let may_be_float = |kind: &ArgKind| match *kind {
        ArgKind::One(of) | ArgKind::Repeated { of, .. } => match of {
            ArgType::Fixed(dtype) => dtype.is_float(),
            ArgType::Attr(name) => cases::allows(op, name, |d| d.is_float() || d.is_complex()),
        },
        ArgKind::Types(_) => true,
    };
    let floats =
        |args: &[ferroflow::ir::op::ArgDef]| args.iter().any(|arg| may_be_float(&arg.kind));
    is_there && op.call == CallKind::None && floats(op.inputs) && floats(op.outputs)
}

/// Order up to which a case is differentiated.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    First,
    Second,
}

/// A case of an op: the inputs, the attributes, and the outputs that are counted.
struct Case {
    op: &'static OpDef,
    inputs: Vec<FeedInput>,
    attrs: Attrs,
    counted: Option<Vec<usize>>,
}

impl Case {
    fn new(op: &'static OpDef, inputs: &str, attrs: &str) -> Result<Case> {
        let inputs = feed(inputs, cases::floats(op))?;
        let attrs: Value = serde_json::from_str(attrs).context("attributes")?;
        let counted = attrs["counted"].as_array().map(|counted| {
            counted.iter().filter_map(Value::as_u64).map(|index| index as usize).collect()
        });
        Ok(Case { op, inputs, attrs: crate::ops::attrs(op, &attrs)?, counted })
    }

    fn run(&self, tape: &mut CallTape<'_>, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        use ferroflow::ir::emit::Emit as _;
        Ok(tape.emit(self.op, self.attrs.clone(), inputs)?.into_vec())
    }
}

/// The same gradients where shapes are not known.
fn check_unknown(
    context: &Context,
    op: &'static OpDef,
    inputs: &str,
    attrs: &str,
) -> Result<CaseOutcome> {
    let case = Case::new(op, inputs, attrs)?;
    let program = |tape: &mut CallTape<'_>, inputs: &[ValueId]| case.run(tape, inputs);
    let counted = case.counted.as_deref();
    unknown::check(context, op, &case.attrs, &program, &case.inputs, counted)
}

fn check_op(
    context: &Context,
    op: &'static OpDef,
    inputs: &str,
    attrs: &str,
) -> Result<CaseOutcome> {
    let case = Case::new(op, inputs, attrs)?;
    let program = |tape: &mut CallTape<'_>, inputs: &[ValueId]| case.run(tape, inputs);
    let (inputs, counted) = (&case.inputs[..], case.counted.as_deref());
    match cases::FIRST_ONLY.iter().any(|(name, _)| *name == op.name) {
        false => check(context, &program, inputs, counted, Order::Second),
        true => {
            let outcome = check(context, &program, inputs, counted, Order::First)?;
            let beyond = check(context, &program, inputs, counted, Order::Second);
            Ok(match (outcome, beyond) {
                (CaseOutcome::Passed, Ok(CaseOutcome::Passed)) => {
                    CaseOutcome::Failed("of second order too, although it is listed without".into())
                }
                (outcome, _) => outcome,
            })
        }
    }
}

/// Random directions for inputs to move in.
fn directions(rng: &mut FeedRng, inputs: &[FeedInput]) -> Result<Vec<Option<HostTensor>>> {
    inputs.iter().map(|input| input.direction(rng)).collect()
}

/// The sum of the products of elements.
fn dot(a: &HostTensor, b: &HostTensor) -> f64 {
    let (a, b) = (elements(a).unwrap_or_default(), elements(b).unwrap_or_default());
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

/// Inputs moved along directions.
fn moved(
    inputs: &[FeedInput],
    directions: &[Option<HostTensor>],
    by: f64,
) -> Result<Vec<HostTensor>> {
    let one = |(input, direction): (&FeedInput, &Option<HostTensor>)| {
        let Some(direction) = direction.as_ref().and_then(elements) else {
            return Ok(input.tensor.clone());
        };
        let values = elements(&input.tensor).unwrap_or_default();
        let values: Vec<f64> = values.iter().zip(direction).map(|(x, d)| x + by * d).collect();
        with_elements(&input.tensor, &values)
    };
    inputs.iter().zip(directions).map(one).collect()
}

/// A program run on inputs, and what went on.
struct Ran<'a> {
    tape: CallTape<'a>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
}

impl<'a> Ran<'a> {
    fn new(context: &'a Context, program: &Program<'_>, inputs: &[HostTensor]) -> Result<Ran<'a>> {
        let mut tape = CallTape::new(context);
        let inputs: Vec<ValueId> =
            inputs.iter().map(|tensor| tape.add(tensor.clone().into())).collect();
        let outputs = program(&mut tape, &inputs)?;
        Ok(Ran { tape, inputs, outputs })
    }

    /// Random weights for the outputs that are counted: all if none are named.
    fn weights(
        &self,
        rng: &mut FeedRng,
        counted: Option<&[usize]>,
    ) -> Result<Vec<Option<HostTensor>>> {
        let weight = |(index, &id): (usize, &ValueId)| {
            let is_counted = counted.is_none_or(|counted| counted.contains(&index));
            let moves = if is_counted { Moves::Freely } else { Moves::Not };
            let tensor = self.tape.value_of(id).host()?.clone();
            FeedInput { tensor, moves }.direction(rng)
        };
        self.outputs.iter().enumerate().map(weight).collect()
    }

    /// The sum of the outputs, weighed.
    fn weighed(&self, weights: &[Option<HostTensor>]) -> Result<f64> {
        let mut sum = 0.0;
        for (&output, weight) in self.outputs.iter().zip(weights) {
            if let Some(weight) = weight {
                sum += dot(self.tape.value_of(output).host()?, weight);
            }
        }
        Ok(sum)
    }

    /// Values with their weights, as the walk takes them.
    fn seeds(
        &mut self,
        values: &[ValueId],
        weights: &[Option<HostTensor>],
    ) -> Vec<(ValueId, ValueId)> {
        let weighed = values.iter().zip(weights);
        weighed
            .filter_map(|(&id, weight)| Some((id, self.tape.add(weight.clone()?.into()))))
            .collect()
    }
}

/// Compares gradients with differences. Outputs that are not counted have no gradients.
fn check(
    context: &Context,
    program: &Program<'_>,
    inputs: &[FeedInput],
    counted: Option<&[usize]>,
    order: Order,
) -> Result<CaseOutcome> {
    let mut rng = FeedRng::new(inputs.len() as u64 + 7);
    let mut ran = Ran::new(context, program, &moved(inputs, &vec![None; inputs.len()], 0.0)?)?;
    let outputs = ran.outputs.clone();
    let weights = ran.weights(&mut rng, counted)?;
    let along = directions(&mut rng, inputs)?;
    let single = inputs.iter().any(|input| input.tensor.dtype() == DType::F32);
    let (step, tolerance) = if single { (1.0 / 512.0, 2e-2) } else { (1e-5, 1e-6) };
    let difference = |of: &dyn Fn(f64) -> Result<f64>| -> Result<f64> {
        Ok((of(step)? - of(-step)?) / (2.0 * step))
    };
    let seeds = ran.seeds(&outputs, &weights);
    let sources = ran.inputs.clone();
    let first = gradients(&mut ran.tape, &seeds, &sources)?;
    let expected = difference(&|by| {
        Ran::new(context, program, &moved(inputs, &along, by)?)?.weighed(&weights)
    })?;
    let found = weighed_gradients(&ran, &first, &along)?;
    if let Some(why) = apart("first order", found, expected, tolerance) {
        return Ok(CaseOutcome::Failed(why));
    }
    if order == Order::First {
        return Ok(CaseOutcome::Passed);
    }
    // Of the gradients, weighed, once more.
    let slope = |by: f64, towards: &[Option<HostTensor>]| -> Result<f64> {
        let mut ran = Ran::new(context, program, &moved(inputs, towards, by)?)?;
        let (outputs, sources) = (ran.outputs.clone(), ran.inputs.clone());
        let seeds = ran.seeds(&outputs, &weights);
        let first = gradients(&mut ran.tape, &seeds, &sources)?;
        weighed_gradients(&ran, &first, &along)
    };
    let towards = directions(&mut rng, inputs)?;
    let expected = difference(&|by| slope(by, &towards))?;
    let there: Vec<ValueId> = first.iter().flatten().copied().collect();
    let weights: Vec<Option<HostTensor>> =
        first.iter().zip(&along).filter(|(id, _)| id.is_some()).map(|(_, v)| v.clone()).collect();
    let seeds = ran.seeds(&there, &weights);
    let second = gradients(&mut ran.tape, &seeds, &sources)?;
    let found = weighed_gradients(&ran, &second, &towards)?;
    let tolerance = if single { 6e-2 } else { 1e-5 };
    Ok(apart("second order", found, expected, tolerance)
        .map_or(CaseOutcome::Passed, CaseOutcome::Failed))
}

fn weighed_gradients(
    ran: &Ran<'_>,
    gradients: &[Option<ValueId>],
    along: &[Option<HostTensor>],
) -> Result<f64> {
    let mut sum = 0.0;
    for (gradient, along) in gradients.iter().zip(along) {
        if let (Some(id), Some(along)) = (gradient, along) {
            sum += dot(ran.tape.value_of(*id).host()?, along);
        }
    }
    Ok(sum)
}

fn apart(what: &str, found: f64, expected: f64, tolerance: f64) -> Option<String> {
    let is_near = (found - expected).abs() <= tolerance * expected.abs().max(1.0);
    (!is_near).then(|| format!("{what}: {found:e}, by differences {expected:e}"))
}

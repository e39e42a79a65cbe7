//! Gradients of calls whose shapes are not known yet.
//!
//! The formula of a composite op is written for known shapes and known shape operands, so the
//! gradient through it is, too; some rules cannot do without a rank or a size. Where a function is
//! differentiated before they are known, its gradient has a `_DeferredGradient`: a composite op
//! itself, which is expanded like any other when they are.

use super::{
    Gradient, GradientRule,
    walk::{Cotangent, RecordedCall, Ruled, by_rule, dense, expanded},
};
use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    emit::{Composite, Emit, Emitter, Value, ValueId},
    error::{Error, Result},
    infer::OpContext,
    op::{Formula, Lowering, OpDef},
    registry,
};
use smallvec::SmallVec;
use std::sync::{PoisonError, RwLock};

/// The records that such gradients belong to, by number: programs may bring their own.
static RECORDS: RwLock<Vec<&'static OpDef>> = RwLock::new(Vec::new());

fn number_of(op: &'static OpDef) -> usize {
    let mut records = RECORDS.write().unwrap_or_else(PoisonError::into_inner);
    let known = records.iter().position(|&known| std::ptr::eq(known, op));
    known.unwrap_or_else(|| {
        records.push(op);
        records.len() - 1
    })
}

fn record_of(number: i64) -> Result<&'static OpDef> {
    let records = RECORDS.read().unwrap_or_else(PoisonError::into_inner);
    let found = usize::try_from(number).ok().and_then(|number| records.get(number).copied());
    let absent = || Error::NotFound { kind: "record", name: number.to_string() };
    found.ok_or_else(absent)
}

/// Gradient rule of an op, chosen once its shapes are known.
enum Way {
    Rule(GradientRule, bool),
    Formula(Formula),
}

impl Way {
    fn of(op: &'static OpDef) -> Result<Way> {
        match (op.gradient, op.lowering) {
            (Gradient::Rule(rule), _) => Ok(Way::Rule(rule, false)),
            (Gradient::Broadcast(rule), _) => Ok(Way::Rule(rule, true)),
            (Gradient::Through(formula), _) | (_, Lowering::Composite(formula)) => {
                Ok(Way::Formula(formula))
            }
            _ => Err(Error::Unsupported { op: op.name.into(), what: "it has no formula".into() }),
        }
    }
}

/// Whether the formula of a call may be expanded.
pub(super) fn is_expandable(emit: &dyn Emit, call: &RecordedCall) -> Result<bool> {
    let host = call.op.host_inputs(&call.attrs)?;
    let mut inputs = call.inputs.iter().zip(&host);
    Ok(inputs
        .all(|(&id, &host)| emit.ty(id).shape.is_known() && (!host || emit.value(id).is_some())))
}

/// Whether all is known that a rule may ask for.
pub(super) fn is_known(emit: &dyn Emit, call: &RecordedCall) -> Result<bool> {
    let mut outputs = call.outputs.iter();
    Ok(is_expandable(emit, call)? && outputs.all(|&id| emit.ty(id).shape.is_known()))
}

/// The gradients of a call as a call that is expanded later.
pub(super) fn deferred(
    emit: &mut dyn Emit,
    call: &RecordedCall,
    dys: &[Option<ValueId>],
    wanted: &[bool],
) -> Result<Vec<Option<Cotangent>>> {
    let host = call.op.host_inputs(&call.attrs)?;
    let pick =
        |of_host: bool| call.inputs.iter().zip(&host).filter(move |(_, host)| **host == of_host);
    let present = |index: &usize| dys[*index].is_some();
    let present: Vec<i64> = (0..dys.len()).filter(present).map(|index| index as i64).collect();
    let asked: Vec<usize> = (0..call.inputs.len()).filter(|&index| wanted[index]).collect();
    // Rules take results, formulas compute theirs.
    let results = match Way::of(call.op)? {
        Way::Rule(..) => &call.outputs[..],
        Way::Formula(_) => &[],
    };
    let inputs: SmallVec<[ValueId; 8]> = pick(true)
        .chain(pick(false))
        .map(|(&id, _)| id)
        .chain(results.iter().copied())
        .chain(dys.iter().flatten().copied())
        .collect();
    let dtypes = |ids: &mut dyn Iterator<Item = ValueId>| -> Vec<_> {
        ids.map(|id| emit.ty(id).dtype).collect()
    };
    let function = NameAttrList::with_attrs(call.op.name, Attrs::clone(&call.attrs));
    let attrs = Attrs::new()
        .with("record", number_of(call.op) as i64)
        .with("of", AttrValue::Func(function))
        .with("present", present)
        .with("wanted", asked.iter().map(|&index| index as i64).collect::<Vec<i64>>())
        .with("Thost", dtypes(&mut pick(true).map(|(&id, _)| id)))
        .with("Tx", dtypes(&mut pick(false).map(|(&id, _)| id)))
        .with("Ty", dtypes(&mut results.iter().copied()))
        .with("Tdy", dtypes(&mut dys.iter().flatten().copied()))
        .with("Tdx", dtypes(&mut asked.iter().map(|&index| call.inputs[index])));
    let op = registry::find("_DeferredGradient").expect("a built-in record");
    let found = emit.emit(op, attrs, &inputs)?;
    let mut gradients = vec![None; call.inputs.len()];
    for (index, id) in asked.into_iter().zip(found) {
        gradients[index] = Some(Cotangent::Dense(id));
    }
    Ok(gradients)
}

/// The inputs of the call that a `_DeferredGradient` is of, among its own, in their order.
fn positions(op: &'static OpDef, attrs: &Attrs) -> Result<Vec<usize>> {
    let host = op.host_inputs(attrs)?;
    let n_host = host.iter().filter(|&&host| host).count();
    let (mut of_host, mut others) = (0..n_host, n_host..);
    let next = |&host: &bool| if host { of_host.next() } else { others.next() };
    Ok(host.iter().filter_map(next).collect())
}

/// Op and attributes that a `_DeferredGradient` is of: the record, and the attributes of the call.
fn subject(attrs: &Attrs) -> Result<(&'static OpDef, &Attrs)> {
    let of = match attrs.get("of") {
        Some(AttrValue::Func(of)) => &of.attrs,
        _ => return Err(Error::argument("_DeferredGradient", "of", "a call", "nothing")),
    };
    Ok((record_of(attrs.int("record")?)?, of))
}

/// The gradients have the types of the inputs they belong to.
pub(crate) fn infer(context: &mut OpContext<'_>) -> Result<()> {
    let (op, attrs) = subject(context.attrs)?;
    let positions = positions(op, attrs)?;
    let wanted = context.attrs.ints("wanted")?.to_vec();
    for (output, index) in wanted.into_iter().enumerate() {
        let position = usize::try_from(index).ok().and_then(|index| positions.get(index).copied());
        let position =
            position.filter(|&position| position < context.n_inputs()).ok_or_else(|| {
                Error::argument("_DeferredGradient", "wanted", "inputs of the call", index)
            })?;
        let shape = context.shape(position).clone();
        context.set(output, shape);
    }
    Ok(())
}

/// The gradients of the call, now that its shapes are known.
pub(crate) fn formula<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    c.by_calls(|emit, inputs| {
        let (op, attrs) = subject(c.attrs)?;
        let xs: Vec<ValueId> = positions(op, attrs)?.into_iter().map(|at| inputs[at]).collect();
        let (ys, given) = inputs[xs.len()..].split_at(c.attrs.types("Ty")?.len());
        let mut dys = vec![None; op.output_dtypes(attrs)?.len()];
        for (&index, &dy) in c.attrs.ints("present")?.iter().zip(given) {
            dys[index as usize] = Some(dy);
        }
        let asked = c.attrs.ints("wanted")?;
        let wanted: Vec<bool> =
            (0..xs.len()).map(|index| asked.contains(&(index as i64))).collect();
        let call = RecordedCall::new(op, attrs.clone(), &xs, ys);
        let found = match Way::of(op)? {
            Way::Formula(formula) => expanded(formula, emit, &call, &dys)?,
            Way::Rule(rule, broadcasts) => {
                match by_rule((rule, broadcasts), emit, &call, &dys, &wanted, 0)? {
                    Ruled::Found(found) => found,
                    Ruled::Postponed(error) => return Err(error),
                }
            }
        };
        let gradient = |&index: &i64| match found.get(index as usize).copied().flatten() {
            Some(tangent) => dense(emit, tangent, xs[index as usize]),
            None => zeros(emit, xs[index as usize]),
        };
        asked.iter().map(gradient).collect()
    })
}

fn zeros(emit: &mut dyn Emit, like: ValueId) -> Result<ValueId> {
    let emitter = Emitter::new(emit);
    let zeros = emitter.at(like).zeros_like();
    emitter.finish()?;
    Ok(zeros.id().expect("no error was noted"))
}

//! Regions that are functions of scalars: applied to tensors, or as functions of their own.

use super::{
    super::{
        constant::malformed,
        module::{HloOp, HloRegion, ValueNumber},
    },
    HloEnv, HloOperands, HloValue, Import, ImportScope, type_of,
};
use ferroflow_ir::{FunctionDef, Result, ValueType, emit::Value, xla::region::Monoid};
use std::{collections::HashSet, sync::Arc};

impl Import<'_> {
    /// The region of number `index`.
    pub(super) fn region<'o>(&self, op: &'o HloOp, index: usize) -> Result<&'o HloRegion> {
        op.regions.get(index).ok_or_else(|| malformed(op, "it has as many regions as it needs"))
    }

    /// The results of a region applied to the elements of tensors.
    pub(super) fn applied<'e>(
        &self,
        scope: ImportScope<'e>,
        region: &HloRegion,
        args: &[Value<'e>],
        around: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        if region.args.len() != args.len() {
            return Err(ferroflow_ir::Error::Malformed {
                node: "a region of a StableHLO program".into(),
                rule: format!("it has {} arguments", args.len()).into(),
            });
        }
        let mut env: HloEnv<'e> = around.clone();
        for ((number, _), &value) in region.args.iter().zip(args) {
            env.insert(*number, HloValue::Tensor(value));
        }
        self.ops(ImportScope { operands: HloOperands::Elements, ..scope }, region, &mut env)
    }

    /// A region of scalars as a function, for ops that call one.
    pub(super) fn scalar_function(
        &self,
        region: &HloRegion,
        name: &str,
    ) -> Result<Arc<FunctionDef>> {
        let args: Vec<(ValueNumber, ValueType)> = region
            .args
            .iter()
            .map(|(number, ty)| Ok((*number, type_of(ty)?)))
            .collect::<Result<_>>()?;
        self.body(region, &args, (name, HloOperands::Scalars), &mut |_, results| Ok(results))
    }

    /// Adds to the values at hand the constants around a region that it uses.
    pub(super) fn add_constants<'e>(
        &self,
        scope: ImportScope<'e>,
        region: &HloRegion,
        env: &mut HloEnv<'e>,
    ) -> Result<()> {
        let mut used = HashSet::new();
        used_values(region, &mut used);
        for number in used {
            if !env.contains_key(&number)
                && let Some(op) = self.constant_op(number)
                && let Some(value) = super::elementwise::elementwise(scope, op, &[])?
            {
                env.insert(number, HloValue::Tensor(value));
            }
        }
        Ok(())
    }

    /// The operation of a value, if it is a constant.
    fn constant_op(&self, number: ValueNumber) -> Option<&HloOp> {
        self.definitions.get(&number).copied().filter(|op| &*op.name == "constant")
    }

    /// Whether a region of scalars uses values around it that are no constants.
    pub(super) fn uses_values(&self, op: &HloOp, env: &HloEnv<'_>) -> Result<bool> {
        let captures = self.captures(op, env)?;
        Ok(captures.iter().any(|(number, _)| self.constant_op(*number).is_none()))
    }

    /// The function of two scalars that a region is, if ops have a name for it.
    pub(super) fn monoid(&self, region: &HloRegion) -> Option<Monoid> {
        let [(a, _), (b, _)] = region.args[..] else { return None };
        let (last, ops) = region.ops.split_last()?;
        let [result] = last.operands[..] else { return None };
        if &*last.name != "return" {
            return None;
        }
        match ops {
            [] if result == a => Some(Monoid::First),
            [] if result == b => Some(Monoid::Second),
            [op] if op.results.first().map(|(number, _)| *number) == Some(result) => {
                let operands: HashSet<ValueNumber> = op.operands.iter().copied().collect();
                let both = op.operands.len() == 2 && operands == HashSet::from([a, b]);
                monoid_of(&op.name).filter(|_| both)
            }
            _ => None,
        }
    }

    /// The values around an operation that its regions use, in the order of their numbers.
    pub(super) fn captures<'e>(
        &self,
        op: &HloOp,
        env: &HloEnv<'e>,
    ) -> Result<Vec<(ValueNumber, Value<'e>)>> {
        let mut used = HashSet::new();
        op.regions.iter().for_each(|region| used_values(region, &mut used));
        let mut captures: Vec<(ValueNumber, Value<'e>)> = Vec::new();
        for number in used {
            match env.get(&number) {
                Some(HloValue::Tensor(value)) => captures.push((number, *value)),
                Some(HloValue::Tuple(_)) => {
                    return Err(super::super::constant::unsupported(op, "tuples inside regions"));
                }
                None => {}
            }
        }
        captures.sort_by_key(|(number, _)| number.0);
        Ok(captures)
    }
}

fn monoid_of(op: &str) -> Option<Monoid> {
    Some(match op {
        "add" => Monoid::Add,
        "multiply" => Monoid::Mul,
        "minimum" => Monoid::Min,
        "maximum" => Monoid::Max,
        "and" => Monoid::And,
        "or" => Monoid::Or,
        _ => return None,
    })
}

/// All values that operations of a region use, those of the region itself among them.
fn used_values(region: &HloRegion, used: &mut HashSet<ValueNumber>) {
    for op in &region.ops {
        used.extend(op.operands.iter().copied());
        op.regions.iter().for_each(|region| used_values(region, used));
    }
}

//! `while`, `case`, `if`: calls of functions that regions become.

use super::{
    super::{
        constant::{malformed, unsupported},
        module::{HloOp, HloRegion, ValueNumber},
    },
    HloEnv, HloOperands, HloValue, Import, ImportScope, type_of,
};
use ferroflow_ir::{
    AttrValue, Attrs, DType, FunctionDef, NameAttrList, Result, ValueType,
    emit::{Value, call},
};
use std::sync::Arc;

fn name_of(function: &FunctionDef) -> NameAttrList {
    NameAttrList::new(function.name.clone())
}

impl Import<'_> {
    /// The results of a branch or a loop.
    pub(super) fn control<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let captures = self.captures(op, env)?;
        if let Some(region) = self.platform.branch(op, &self.definitions) {
            return self.inlined(scope, region, &captures);
        }
        match (&*op.name, scope.operands) {
            ("while", HloOperands::Elements) => Err(unsupported(op, "in a function of scalars")),
            ("while", _) => self.repeat(scope, op, x, &captures),
            (_, HloOperands::Tensors) => self.branch(scope, op, x, &captures),
            _ => self.selected(scope, op, x, &captures),
        }
    }

    /// The results of a region without arguments, whose operations become some of those around it.
    fn inlined<'e>(
        &self,
        scope: ImportScope<'e>,
        region: &HloRegion,
        captures: &[(ValueNumber, Value<'e>)],
    ) -> Result<Vec<Value<'e>>> {
        let values = captures.iter().map(|(number, value)| (*number, HloValue::Tensor(*value)));
        let mut env: HloEnv<'e> = values.collect();
        self.add_constants(scope, region, &mut env)?;
        self.ops(scope, region, &mut env)
    }

    /// The results of a branch inside of a function of scalars: all branches are computed.
    fn selected<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        captures: &[(ValueNumber, Value<'e>)],
    ) -> Result<Vec<Value<'e>>> {
        let [predicate] = *super::exactly(op, x)?;
        let branch = |region| -> Result<Vec<Value<'e>>> {
            let results = self.inlined(scope, region, captures)?;
            match results.len() == op.results.len() {
                true => Ok(results),
                false => Err(malformed(op, "branches have the results of the operation")),
            }
        };
        let number = |index: usize| call("Equal", [predicate, predicate.like(index as f64)]);
        let (conditions, branches): (Vec<Value<'e>>, &[HloRegion]) =
            match (&*op.name, &op.regions[..]) {
                ("if", branches @ [_, _]) => (vec![predicate], branches),
                ("case", branches @ [_, ..]) => {
                    ((0..branches.len() - 1).map(number).collect(), branches)
                }
                _ => return Err(malformed(op, "it has as many regions as it needs")),
            };
        let (last, branches) =
            branches.split_last().ok_or_else(|| malformed(op, "it has a region"))?;
        let mut results = branch(last)?;
        for (region, condition) in branches.iter().zip(conditions) {
            for (result, value) in results.iter_mut().zip(branch(region)?) {
                *result = condition.select(value, *result);
            }
        }
        Ok(results)
    }

    fn repeat<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        captures: &[(ValueNumber, Value<'e>)],
    ) -> Result<Vec<Value<'e>>> {
        let n = x.len();
        let condition = self.loop_function(op, 0, n, captures, "cond", false)?;
        let body = self.loop_function(op, 1, n, captures, "body", true)?;
        let inputs: Vec<Value<'e>> =
            x.iter().copied().chain(captures.iter().map(|(_, value)| *value)).collect();
        let types: Vec<DType> = inputs.iter().map(|value| value.dtype()).collect();
        if body.arg_dtypes() != types {
            return Err(malformed(op, "a loop has variables of the types of its operands"));
        }
        if condition.results.len() != 1 || body.results.len() != inputs.len() {
            return Err(malformed(op, "a loop has a condition and a body of its variables"));
        }
        let attrs = Attrs::new()
            .with("T", types)
            .with("cond", AttrValue::Func(name_of(&condition)))
            .with("body", AttrValue::Func(name_of(&body)));
        let mut results = scope.call("While", attrs, &inputs);
        results.truncate(n);
        Ok(results)
    }

    /// The condition or the body of a loop; a body returns the values around as they are.
    fn loop_function(
        &self,
        op: &HloOp,
        index: usize,
        n: usize,
        captures: &[(ValueNumber, Value<'_>)],
        name: &str,
        passes: bool,
    ) -> Result<Arc<FunctionDef>> {
        let region = self.region(op, index)?;
        if region.args.len() != n {
            return Err(malformed(op, "a region of a loop has its variables as arguments"));
        }
        let mut args: Vec<(ValueNumber, ValueType)> = region
            .args
            .iter()
            .map(|(number, ty)| Ok((*number, type_of(ty)?)))
            .collect::<Result<_>>()?;
        args.extend(captures.iter().map(|(number, value)| (*number, value.ty())));
        self.body(region, &args, (name, HloOperands::Tensors), &mut |arguments, mut results| {
            if passes {
                results.extend_from_slice(&arguments[n..]);
            }
            Ok(results)
        })
    }

    fn branch<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        captures: &[(ValueNumber, Value<'e>)],
    ) -> Result<Vec<Value<'e>>> {
        let [predicate] = *super::exactly(op, x)?;
        let args: Vec<(ValueNumber, ValueType)> =
            captures.iter().map(|(number, value)| (*number, value.ty())).collect();
        let mut branches = Vec::with_capacity(op.regions.len());
        for region in &op.regions {
            if !region.args.is_empty() {
                return Err(malformed(op, "a branch takes no arguments"));
            }
            let function =
                self.body(region, &args, ("branch", HloOperands::Tensors), &mut |_, results| {
                    Ok(results)
                })?;
            if function.results.len() != op.results.len() {
                return Err(malformed(op, "branches have the results of the operation"));
            }
            branches.push(function);
        }
        let inputs: Vec<Value<'e>> = captures.iter().map(|(_, value)| *value).collect();
        let tin: Vec<DType> = inputs.iter().map(|value| value.dtype()).collect();
        let tout: Vec<DType> =
            op.results.iter().map(|(_, ty)| Ok(type_of(ty)?.dtype)).collect::<Result<_>>()?;
        let attrs = Attrs::new().with("Tin", tin).with("Tout", tout);
        let all: Vec<Value<'e>> = std::iter::once(predicate).chain(inputs).collect();
        match (&*op.name, &branches[..]) {
            ("if", [then, otherwise]) => {
                let attrs = attrs
                    .with("Tcond", predicate.dtype())
                    .with("then_branch", AttrValue::Func(name_of(then)))
                    .with("else_branch", AttrValue::Func(name_of(otherwise)));
                Ok(scope.call("If", attrs, &all))
            }
            ("case", [_, ..]) => {
                let names = branches.iter().map(|branch| name_of(branch)).collect();
                Ok(scope.call("Case", attrs.with("branches", AttrValue::Funcs(names)), &all))
            }
            _ => Err(malformed(op, "it has as many regions as it needs")),
        }
    }
}

//! Calls of functions: inlined, decided, or with bodies that are specialised too.

use super::{Argument, Body, Outlets, Specialized};
use crate::{
    attr::NameAttrList,
    dtype::DType,
    error::{Error, Result},
    function::FunctionDef,
    graph::{NodeDef, Outlet},
    host_tensor::HostTensor,
    op::{CallKind, OpDef},
    passthrough::is_invariant,
    shape::PartialShape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::mem;

impl Body<'_> {
    /// Adds a call of functions: inlined, decided, or with specialised bodies.
    pub(super) fn call(
        &mut self,
        node: &NodeDef,
        op: &'static OpDef,
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        let mut functions: SmallVec<[&NameAttrList; 2]> = SmallVec::new();
        for attr in op.attrs {
            match node.attrs.get(attr.name) {
                Some(crate::AttrValue::Func(function)) => functions.push(function),
                Some(crate::AttrValue::Funcs(list)) => functions.extend(list),
                _ => {}
            }
        }
        match op.call {
            CallKind::None => {
                let what = "it calls functions in a way nothing here knows".into();
                Err(Error::Unsupported { op: op.name.into(), what })
            }
            CallKind::Inline => self.inline_call(node, functions[0], op.handed_on(inputs)),
            CallKind::Module => {
                let function = self.specializer.library.module(&node.attrs)?;
                self.inline_function(node, &function, inputs)
            }
            CallKind::If | CallKind::Case => self.branch(node, op, &functions, inputs),
            CallKind::While => self.repeat(node, op, &functions, inputs),
        }
    }

    fn inline_call(
        &mut self,
        node: &NodeDef,
        callee: &NameAttrList,
        args: &[Outlet],
    ) -> Result<Outlets> {
        let function = self.specializer.library.get(&callee.name)?;
        self.inline_function(node, &function, args)
    }

    fn inline_function(
        &mut self,
        node: &NodeDef,
        function: &FunctionDef,
        args: &[Outlet],
    ) -> Result<Outlets> {
        let inner = format!("{}{}/", self.prefix, node.name);
        let outer = mem::replace(&mut self.prefix, inner);
        let results = self.inline(function, args);
        self.prefix = outer;
        Ok(results?.into())
    }

    /// A choice between functions by input 0: taken now if that is known.
    fn branch(
        &mut self,
        node: &NodeDef,
        op: &'static OpDef,
        functions: &[&NameAttrList],
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        let (predicate, args) = (inputs[0], &inputs[1..]);
        if let Some(value) = self.known.get(&predicate) {
            let taken = chosen_branch(op.call, value, functions.len())?;
            return self.inline_call(node, functions[taken], args);
        }
        let known: Vec<Argument> = args
            .iter()
            .map(|arg| Argument { ty: self.ty(*arg).clone(), value: self.known.get(arg).cloned() })
            .collect();
        let bodies: Vec<Specialized> = functions
            .iter()
            .map(|function| self.nested_body(function, &known))
            .collect::<Result<_>>()?;
        let outputs = joined_types(op, node, &bodies)?;
        let outlets = self.push(&node.name, op, node.attrs.clone(), inputs, outputs)?;
        self.attach(&outlets, bodies);
        Ok(outlets)
    }

    /// A loop: the types of its variables are widened until the body returns what it takes.
    fn repeat(
        &mut self,
        node: &NodeDef,
        op: &'static OpDef,
        functions: &[&NameAttrList],
        inputs: &[Outlet],
    ) -> Result<Outlets> {
        let [condition, body] = functions else {
            let found = functions.len();
            return Err(Error::argument(op.name, "functions", "a condition and a body", found));
        };
        let mut types: Vec<ValueType> = inputs.iter().map(|&x| self.ty(x).clone()).collect();
        let values: Vec<Option<HostTensor>> = self
            .invariants(body, &types)?
            .into_iter()
            .zip(inputs)
            .map(|(invariant, input)| if invariant { self.known.get(input).cloned() } else { None })
            .collect();
        loop {
            let args: Vec<Argument> = types
                .iter()
                .zip(&values)
                .map(|(ty, value)| Argument { ty: ty.clone(), value: value.clone() })
                .collect();
            let specialized = self.nested_body(body, &args)?;
            let widened = widen(op, &types, &specialized)?;
            if widened != types {
                types = widened;
                continue;
            }
            let condition = self.nested_body(condition, &args)?;
            let bodies = vec![condition, specialized];
            let outlets = self.push(&node.name, op, node.attrs.clone(), inputs, types)?;
            self.attach(&outlets, bodies);
            let known = outlets.iter().zip(values);
            self.known.extend(known.filter_map(|(&outlet, value)| Some((outlet, value?))));
            return Ok(outlets);
        }
    }

    /// Arguments that the body returns unchanged.
    fn invariants(&self, body: &NameAttrList, types: &[ValueType]) -> Result<Vec<bool>> {
        let function = self.specializer.library.get(&body.name)?;
        let library = &self.specializer.library;
        Ok((0..types.len()).map(|index| is_invariant(library, &function, index)).collect())
    }

    fn nested_body(&mut self, callee: &NameAttrList, args: &[Argument]) -> Result<Specialized> {
        let function = self.specializer.library.get(&callee.name)?;
        if function.args.len() != args.len() {
            let expected = format!("{} tensors", function.args.len());
            let name = function.name.to_string();
            return Err(Error::argument(name, "arguments", expected, args.len()));
        }
        self.specializer.body(&function, args, &mut self.path, &self.device, self.compiled)
    }

    fn attach(&mut self, outlets: &[Outlet], bodies: Vec<Specialized>) {
        let id = match outlets.first() {
            Some(outlet) => outlet.node,
            None => self.graph.ids().last().expect("the node was just added"),
        };
        self.nested.insert(id, bodies);
    }
}

/// The function that input 0 of an `If` or a `Case` chooses.
///
/// # Errors
///
/// [`Error::DType`] or [`Error::ElementCount`] when the value is none that could choose.
pub fn chosen_branch(call: CallKind, value: &HostTensor, n_branches: usize) -> Result<usize> {
    let last = n_branches.saturating_sub(1);
    if call == CallKind::Case {
        let index = value.as_scalar::<i32>()?;
        return Ok(usize::try_from(index).map_or(last, |index| index.min(last)));
    }
    truthiness(value).map(|truth| usize::from(!truth).min(last))
}

/// Whether a tensor counts as true: a number that is not zero, a string that is not empty, any
/// other tensor that has elements.
///
/// # Errors
///
/// [`Error::DType`] for handles.
pub fn truthiness(value: &HostTensor) -> Result<bool> {
    if value.shape().rank() > 0 {
        return Ok(!value.is_empty());
    }
    match value.dtype() {
        DType::String => Ok(!value.strings()?[0].is_empty()),
        DType::F32 => Ok(value.as_scalar::<f32>()? != 0.0),
        DType::F64 => Ok(value.as_scalar::<f64>()? != 0.0),
        DType::Resource | DType::Variant => {
            Err(Error::DType { expected: DType::Bool, found: value.dtype() })
        }
        _ => Ok(value.bytes().iter().any(|&byte| byte != 0)),
    }
}

/// The types that results of all branches have in common.
fn joined_types(
    op: &'static OpDef,
    node: &NodeDef,
    bodies: &[Specialized],
) -> Result<Vec<ValueType>> {
    let dtypes = op.output_dtypes(&node.attrs)?;
    let mut joined = Vec::with_capacity(dtypes.len());
    for (index, &dtype) in dtypes.iter().enumerate() {
        let mut found: Option<ValueType> = None;
        for body in bodies.iter().filter(|body| body.failure.is_none()) {
            let ty = body.result_type(index).filter(|ty| ty.dtype == dtype).ok_or_else(|| {
                let found = body.result_type(index).map_or("none".into(), ToString::to_string);
                Error::argument(op.name, format!("branch result {index}"), dtype.name(), found)
            })?;
            found = Some(found.map_or_else(|| ty.clone(), |known| known.generalize(ty)));
        }
        joined.push(found.unwrap_or_else(|| ValueType::new(dtype, PartialShape::Unknown)));
    }
    Ok(joined)
}

/// The types of loop variables that also hold after one more iteration.
fn widen(op: &'static OpDef, types: &[ValueType], body: &Specialized) -> Result<Vec<ValueType>> {
    if body.failure.is_some() {
        return Ok(types.to_vec());
    }
    let one = |(index, ty): (usize, &ValueType)| {
        let after = body.result_type(index);
        match after.filter(|after| after.dtype == ty.dtype) {
            Some(after) => Ok(ty.generalize(after)),
            None => {
                let found = after.map_or("none".into(), ToString::to_string);
                Err(Error::argument(
                    op.name,
                    format!("body result {index}"),
                    ty.dtype.name(),
                    found,
                ))
            }
        }
    };
    types.iter().enumerate().map(one).collect()
}

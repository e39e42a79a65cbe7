//! Custom calls: annotations, assertions, calls of TensorFlow functions, and primitives that JAX
//! writes as such.

use super::{
    super::{
        constant::{dtype, malformed, unsupported, value_type},
        module::{Attr, HloOp},
    },
    Import, ImportScope, exactly, lapack, linalg,
};
use bytes::Bytes;
use ferroflow_ir::{
    AttrValue, Attrs, DType, HostTensor, NameAttrList, Result, Shape,
    emit::{Value, call, call_with, calls_with},
    ops::names,
    xla::{
        bits::threefry2x32,
        size::{Size, broadcast, of_vector, rank, reshape, sizes, transpose},
        sort::top_k,
    },
};

/// Calls that annotate a value.
const ANNOTATIONS: &[&str] = &[
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "LayoutConstraint",
    "annotate_device_placement",
    "MoveToHost",
    "MoveToDevice",
    "PinToDevice",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
];

/// Functions that old exporters write as custom calls, and the ops that compute them.
const FUNCTIONS: &[(&str, &str)] = &[
    ("mhlo.acos", "Acos"),
    ("mhlo.acosh", "Acosh"),
    ("mhlo.asin", "Asin"),
    ("mhlo.asinh", "Asinh"),
    ("mhlo.atan", "Atan"),
    ("mhlo.atanh", "Atanh"),
    ("mhlo.cosh", "Cosh"),
    ("mhlo.erf", "Erf"),
    ("mhlo.sinh", "Sinh"),
    ("mhlo.tan", "Tan"),
    ("chlo.erf", "Erf"),
    ("chlo.erf_inv", "Erfinv"),
];

impl Import<'_> {
    pub(super) fn custom_call<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        let target = op.text("call_target_name")?;
        // Operands that tell the shapes of results, for programs of any size.
        let shapes = op.axes("indices_of_shape_operands", x.len())?;
        let operands = x.iter().enumerate().filter(|(index, _)| !shapes.contains(index));
        let x: &[Value<'e>] = &operands.map(|(_, &value)| value).collect::<Vec<_>>();
        if ANNOTATIONS.contains(&target) {
            let [a] = *exactly(op, x)?;
            return Ok(vec![a]);
        }
        if let Some((_, name)) = FUNCTIONS.iter().find(|(own, _)| *own == target) {
            let [a] = *exactly(op, x)?;
            return Ok(vec![call(name, [a])]);
        }
        match target {
            "shape_assertion" => self.assertion(scope, op, x),
            "tf.call_tf_function" => self.call_tf(scope, op, x),
            "threefry2x32" | "cu_threefry2x32" | "cu_threefry2x32_ffi" | "hip_threefry2x32" => {
                let [a, b, c, d] = *exactly(op, x)?;
                Ok(threefry2x32([a, b], [c, d]).to_vec())
            }
            "TopK" | "mhlo.topk" | "stablehlo.dynamic_top_k" => largest(op, x),
            "ApproxTopK" | "stablehlo.dynamic_approx_top_k" => approximate(op, x),
            "stablehlo.dynamic_rng_bit_generator" => {
                let [state, shape] = *exactly(op, x)?;
                let algorithm = op.case("rng_algorithm").unwrap_or(0) as i32;
                let ty = op.results.get(1).map(|(_, ty)| ty);
                let Some(super::super::module::Type::Tensor(ty)) = ty else {
                    return Err(malformed(op, "it has a state and bits as results"));
                };
                linalg::random_bits(algorithm, state, shape, dtype(ty.element)?)
            }
            "stablehlo.dynamic_reduce_window" => self.dynamic_reduce_window(op, x),
            "AllocateBuffer" => Ok(vec![unwritten(scope, op)?]),
            _ => match lapack::routine(target) {
                Some(routine) => routine.results(op, x),
                None => Err(unsupported(op, format!("the custom call `{target}`"))),
            },
        }
    }

    /// Fails where a condition on shapes does not hold. The message has the sizes where it says
    /// `{0}`, `{1}`, ….
    fn assertion<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        let (&holds, numbers) =
            x.split_first().ok_or_else(|| malformed(op, "an assertion has a condition"))?;
        let message = op.text("error_message").unwrap_or("a condition on shapes does not hold");
        let text = HostTensor::scalar_string(Bytes::copy_from_slice(message.as_bytes()));
        let data: Vec<Value<'e>> =
            [scope.constant(text)].into_iter().chain(numbers.iter().copied()).collect();
        let types: Vec<DType> = data.iter().map(|value| value.dtype()).collect();
        let inputs: Vec<Value<'e>> = [holds].into_iter().chain(data).collect();
        scope.call(names::REQUIRE, Attrs::new().with("T", types), &inputs);
        Ok(Vec::new())
    }

    /// Calls a function of the graph around the module.
    fn call_tf<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        let config = op.attr("tf.backend_config").or_else(|| op.attr("backend_config"));
        let Some(Attr::Dict(entries)) = config else {
            return Err(malformed(op, "a call of a TensorFlow function says which"));
        };
        let find = |name: &str| {
            let mut entries = entries.iter();
            entries.find(|(own, _)| own.text() == Some(name)).map(|(_, value)| &**value)
        };
        let Some(&Attr::Int(index)) = find("called_index") else {
            return Err(malformed(op, "a call of a TensorFlow function has its number"));
        };
        let callee = usize::try_from(index).ok().and_then(|index| self.callees.get(index));
        let callee = callee.ok_or_else(|| malformed(op, "the function that it calls is listed"))?;
        let has_token = matches!(find("has_token_input_output"), Some(Attr::Bool(true)));
        let (token, args) = match (has_token, x) {
            (true, [token, args @ ..]) => (Some(*token), args),
            (true, []) => return Err(malformed(op, "a call with a token has one")),
            (false, args) => (None, args),
        };
        let skipped = usize::from(has_token);
        let tout: Vec<DType> = op.results[skipped.min(op.results.len())..]
            .iter()
            .map(|(_, ty)| Ok(super::type_of(ty)?.dtype))
            .collect::<Result<_>>()?;
        let attrs = Attrs::new()
            .with("Tin", args.iter().map(|arg| arg.dtype()).collect::<Vec<_>>())
            .with("Tout", tout)
            .with("f", AttrValue::Func(callee.clone()));
        let mut results: Vec<Value<'e>> = token.into_iter().collect();
        results.extend(scope.call("StatefulPartitionedCall", attrs, args));
        Ok(results)
    }

    /// A window whose extent and padding are operands, which specialisation finds known.
    fn dynamic_reduce_window<'e>(&self, op: &HloOp, x: &[Value<'e>]) -> Result<Vec<Value<'e>>> {
        let n = op.results.len();
        if n == 0 || x.len() != 2 * n + 5 {
            return Err(malformed(op, "it has operands, initial values and a window"));
        }
        let body = match op.attr("called_computations") {
            Some(Attr::Array(list)) => list.first().and_then(|name| name.text()),
            _ => None,
        };
        let function = self.function(body.ok_or_else(|| malformed(op, "it has a function"))?)?;
        let attrs = Attrs::new()
            .with("T", x[..n].iter().map(|x| x.dtype()).collect::<Vec<_>>())
            .with("computation", AttrValue::Func(NameAttrList::new(function.name.clone())));
        let mut inputs: Vec<Value<'e>> = x[..2 * n].to_vec();
        inputs.extend(x[2 * n..].iter().map(|list| list.cast(DType::I64)));
        Ok(calls_with("_XlaReduceWindow", attrs, &inputs).values().to_vec())
    }
}

/// Memory of any contents, which are zeros here.
fn unwritten<'e>(scope: ImportScope<'e>, op: &HloOp) -> Result<Value<'e>> {
    let ty = value_type(op.result_type(0)?)?;
    let sizes =
        ty.shape.known().ok_or_else(|| unsupported(op, "memory of sizes that are not told"))?;
    let zero = scope.constant(HostTensor::zeros(ty.dtype, Shape::scalar())?);
    let sizes: Vec<Size<'e>> = sizes.iter().map(|&size| Size::Known(size as i64)).collect();
    Ok(broadcast(zero, &sizes))
}

/// The `k` largest elements of the last axis and their indices. `k` is an operand, an attribute, or
/// the size of the result.
fn largest<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Vec<Value<'e>>> {
    let a = *x.first().ok_or_else(|| malformed(op, "it has an operand"))?;
    let told = match x {
        [_, k, ..] => of_vector(super::elementwise::as_vector(*k)).first().copied(),
        _ => None,
    };
    let last = op.result_type(0)?.dims.last().copied().flatten();
    let k = last.map(|size| Size::Known(size as i64)).or(told);
    let k = k.ok_or_else(|| malformed(op, "the number of elements is told"))?;
    let smallest = match op.attr("mhlo.attributes") {
        Some(Attr::Dict(entries)) => entries
            .iter()
            .any(|(name, value)| name.text() == Some("largest") && **value == Attr::Bool(false)),
        _ => false,
    };
    Ok(extreme(a, k, smallest).to_vec())
}

/// Exactly what an approximate search looks for: the largest or smallest elements along an axis.
fn approximate<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Vec<Value<'e>>> {
    let [a, places] = match x {
        [a, places, ..] => [*a, *places],
        _ => return Err(malformed(op, "it has elements and their places")),
    };
    let Some(Attr::Dict(config)) =
        op.attr("mhlo.backend_config").or_else(|| op.attr("backend_config"))
    else {
        return Err(malformed(op, "it says what is looked for"));
    };
    let int = |name: &str| {
        config.iter().find(|(own, _)| own.text() == Some(name)).and_then(|(_, value)| match **value
        {
            Attr::Int(value) => Some(value),
            _ => None,
        })
    };
    let axis = int("reduction_dim").map(|axis| if axis < 0 { axis + rank(a) as i64 } else { axis });
    let axis = axis.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < rank(a));
    let axis = axis.ok_or_else(|| malformed(op, "it names an axis of its operand"))?;
    // The comparison is a function of the module, named by what it prefers.
    let body = match op.attr("called_computations") {
        Some(Attr::Array(list)) => list.first().and_then(|name| name.text()).unwrap_or(""),
        _ => "",
    };
    let smallest = match body {
        name if name.contains("lt") => true,
        name if name.contains("gt") => false,
        _ => return Err(unsupported(op, "a comparison that is neither `gt` nor `lt`")),
    };
    let k = op
        .result_type(0)?
        .dims
        .get(axis)
        .copied()
        .flatten()
        .or_else(|| int("top_k").and_then(|k| usize::try_from(k).ok()));
    let k = Size::Known(k.ok_or_else(|| malformed(op, "the number of elements is told"))? as i64);
    let last = rank(a) - 1;
    let mut order: Vec<usize> = (0..rank(a)).collect();
    order.swap(axis, last);
    // Exchanging two axes undoes itself.
    let turned = |x| if axis == last { x } else { transpose(x, &order) };
    let pivots = turned(reshape(places, &sizes(a)));
    let [found, at] = extreme(turned(a), k, smallest);
    let attrs = Attrs::new().with("batch_dims", last as i64);
    let at = call_with("GatherV2", attrs, [pivots, at, a.literal(last as i64)]);
    Ok(vec![turned(found), turned(at)])
}

/// The `k` largest or smallest elements of the last axis and their indices.
fn extreme<'e>(a: Value<'e>, k: Size<'e>, smallest: bool) -> [Value<'e>; 2] {
    if !smallest {
        return top_k(a, k);
    }
    let turned = |x: Value<'e>| if a.dtype().is_float() { x.neg() } else { call("Invert", [x]) };
    let [found, at] = top_k(turned(a), k);
    [turned(found), at]
}

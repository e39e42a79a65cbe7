//! Products and convolutions with what follows them: what devices do at once is what the CPU does
//! one after the other.

use super::{
    super::{Caps, PRODUCTS, Shader, ShaderDialect, by_name, with_epilogue},
    cases::{Case, cases, on_cpu, run_on_cpu},
    difference_after,
    groups::positive,
    launched, one_of_each_kind,
};
use crate::{Device, OpCall, OperandSpec, device::Then};
use ferroflow_ir::{Attrs, DType, Expr, HostTensor, NameAttrList, Shape, registry};
use std::collections::{BTreeMap, BTreeSet};

/// A call, and a formula of its result and others.
struct Followed {
    case: Case,
    /// The dtype of the call's own result.
    dtype: DType,
    expr: Expr,
    others: Vec<HostTensor>,
}

fn spec(tensor: &HostTensor) -> OperandSpec {
    OperandSpec::new(tensor.dtype(), tensor.shape().clone())
}

impl Followed {
    fn name(&self) -> String {
        let others = self.others.iter().map(|x| x.shape().to_string()).collect::<Vec<_>>();
        format!("{}, then {} with {}", self.case.name(), self.expr.dtype(), others.join(" "))
    }

    fn with_call<R>(&self, look: impl FnOnce(&OpCall<'_>, &Then<'_>) -> R) -> Option<R> {
        let others: Vec<OperandSpec> = self.others.iter().map(spec).collect();
        self.case.with_call(|call| look(call, &Then { expr: &self.expr, others: &others }))
    }

    fn on_cpu(&self) -> Option<HostTensor> {
        let mut inputs = on_cpu(&self.case)?;
        inputs.extend(self.others.iter().cloned());
        let dtypes: Vec<DType> = inputs.iter().map(HostTensor::dtype).collect();
        let attrs = Attrs::new().with("Tin", dtypes).with("T", self.expr.dtype());
        let specs: Vec<OperandSpec> = inputs.iter().map(spec).collect();
        let op = registry::find("_FusedElementwise")?;
        let call = OpCall::new(op, &attrs, &specs, Some(&self.expr)).ok()?;
        Some(run_on_cpu(&call, &inputs)?.remove(0))
    }

    fn on_device(&self, device: &dyn Device) -> Option<HostTensor> {
        let op = registry::find("_Region")?;
        let (kernel, shape) = self.with_call(|call, then| {
            let anchor = NameAttrList::with_attrs(call.op.name, call.attrs.clone());
            let inputs: Vec<OperandSpec> = call.inputs.iter().chain(then.others).cloned().collect();
            let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
            let attrs = Attrs::new()
                .with("anchor", anchor)
                .with("Tin", dtypes)
                .with("T", self.expr.dtype());
            let attrs = op.complete_attrs(attrs).unwrap();
            let region = OpCall::new(op, &attrs, &inputs, Some(&self.expr)).unwrap();
            let shape = region.output_shape(0).unwrap();
            Some((device.kernel(&region).unwrap()?, shape))
        })??;
        let inputs: Vec<HostTensor> =
            self.case.inputs.iter().chain(&self.others).cloned().collect();
        Some(launched(device, &*kernel, &inputs, &[(self.expr.dtype(), shape)]).remove(0))
    }
}

/// An expression among several, none of which makes small errors large: others of the result's
/// shape, of columns, of rows and single ones; of the result's dtype and another.
fn then(kind: usize, case: &Case, dtype: DType, shape: &Shape) -> Followed {
    let case = Case { op: case.op, attrs: case.attrs.clone(), inputs: case.inputs.clone() };
    let none = Attrs::new();
    let of = |dims: &[usize]| positive(dtype, dims);
    let last = shape[shape.rank() - 1];
    let mut rows = shape.to_vec();
    rows[shape.rank() - 1] = 1;
    let (expr, others) = match kind % 3 {
        0 => {
            let leaky = Expr::build(&none, &[dtype; 2], dtype, |s| {
                let scaled = s.x(0) * s.x(1);
                scaled.max(scaled * 0.25)
            });
            (leaky, vec![of(&[last])])
        }
        1 => {
            let between =
                Expr::build(&none, &[dtype; 3], dtype, |s| s.x(0).max(s.x(1)).min(s.x(2)));
            (between, vec![of(shape), of(&[])])
        }
        _ => {
            let to = if dtype == DType::F32 { DType::F16 } else { DType::F32 };
            (Expr::build(&none, &[dtype; 2], to, |s| s.x(0) * s.x(1)), vec![of(&rows)])
        }
    };
    let expr = expr.unwrap();
    Followed { case, dtype, expr, others }
}

/// Every product of floats in the matrix with one formula or another.
fn all() -> Vec<Followed> {
    let of = |(kind, case): (usize, Case)| {
        by_name(PRODUCTS, case.op)?;
        let ty = |call: &OpCall<'_>| Some((call.outputs[0].dtype, call.output_shape(0).ok()?));
        let (dtype, shape) = case.with_call(ty)??;
        (dtype.is_float() && shape.num_elements() > 0).then(|| then(kind, &case, dtype, &shape))
    };
    let products = cases().into_iter().filter(|case| by_name(PRODUCTS, case.op).is_some());
    products.enumerate().filter_map(of).collect()
}

/// The texts, each with the first call that needs it.
pub(super) fn programs(dialect: ShaderDialect, caps: Caps) -> BTreeMap<String, String> {
    let text = |one: Followed| {
        let shader: Option<Shader> =
            one.with_call(|call, then| with_epilogue(call, then, caps).unwrap())?;
        Some((dialect.print(&shader?), one.name()))
    };
    all().into_iter().filter_map(text).collect()
}

#[test]
fn every_product_may_be_followed() {
    let caps = Caps { int64: true, ..Caps::default() };
    let mut missing: BTreeSet<&str> =
        PRODUCTS.iter().flat_map(|rows| *rows).map(|row| row.0).collect();
    for one in all() {
        if one.with_call(|call, then| with_epilogue(call, then, caps).unwrap().is_some())
            == Some(true)
        {
            missing.remove(one.case.op);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn devices_compute_what_follows_too() {
    for device in one_of_each_kind() {
        let (mut n, mut wrong) = (0, Vec::new());
        for one in all() {
            let Some(found) = one.on_device(&*device) else { continue };
            let expected = one.on_cpu().unwrap();
            n += 1;
            if let Some(difference) = difference_after(one.dtype, &found, &expected) {
                wrong.push(format!("{}: {difference}", one.name()));
            }
        }
        assert!(wrong.is_empty(), "{} of {n}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(n > 20, "{n} calls were compared");
    }
}

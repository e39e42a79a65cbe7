//! Checking values: `CheckNumerics`.

use super::{Build, dispatch::with_float};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{Code, Error};
use num_traits::Float;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("CheckNumerics", check_numerics), ("CheckNumericsV2", check_numerics)];

fn check_numerics(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn checking<T: Float + bytemuck::Pod>(op: &'static str, message: String) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let values = io.input::<T>(0);
            let found = |test: fn(&T) -> bool, name| values.iter().any(test).then_some(name);
            let bad = [
                found(|x| x.is_nan(), "NaN"),
                found(|x| *x == T::infinity(), "+Inf"),
                found(|x| *x == T::neg_infinity(), "-Inf"),
            ];
            let bad: Vec<&str> = bad.into_iter().flatten().collect();
            if !bad.is_empty() {
                let detail = format!("{message} : Tensor had {} values", bad.join(" and "));
                return Err(
                    Error::Status { code: Code::InvalidArgument, op: op.into(), detail }.into()
                );
            }
            io.output::<T>(0).copy_from_slice(values);
            Ok(())
        })
    }
    let message = call.attrs.string("message")?.to_string();
    Ok(with_float!(call.dtype(0), T => checking::<T>(call.op.name, message)))
}

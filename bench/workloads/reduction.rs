//! Reductions of a matrix of 4096 × 1024.

use crate::{
    Bench,
    inputs::array,
    measure::{Unit::Microseconds, Workload},
};
use anyhow::Result;
use ferroflow::{
    ir::{Attrs, HostTensor},
    runtime::EagerTensor,
};

const BYTES: f64 = 4.0 * 4096.0 * 1024.0;

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    let x = array(3, &[4096, 1024], -2.0, 2.0)?;
    let along = |op: &'static str, axes: &[i32]| -> Result<Workload<'a>> {
        let args = [x.clone(), HostTensor::vector(axes)?.into()];
        let body = move || bench.eager(op, Attrs::new(), &args);
        Ok(Workload::new(Microseconds, body).bytes(BYTES))
    };
    Ok(Some(match name {
        "sum_all" => along("Sum", &[0, 1])?,
        "sum_rows" => along("Sum", &[1])?,
        "sum_cols" => along("Sum", &[0])?,
        "mean_rows" => along("Mean", &[1])?,
        "argmax_rows" => {
            let args = [x, EagerTensor::scalar(1i32)];
            let body = move || bench.eager("ArgMax", Attrs::new(), &args);
            Workload::new(Microseconds, body).bytes(BYTES)
        }
        "softmax_rows" => {
            let args = [x];
            let body = move || bench.eager("Softmax", Attrs::new(), &args);
            Workload::new(Microseconds, body).bytes(2.0 * BYTES)
        }
        "layernorm_fn" => {
            let args = [x, array(13, &[1024], 0.5, 1.5)?, array(14, &[1024], -0.5, 0.5)?];
            let f = bench.function(&args, |b, args| {
                let axis = b.constant(HostTensor::vector(&[-1i32])?)?;
                let keep = || Attrs::new().with("keep_dims", true);
                let mean = b.op_with("Mean", keep(), &[args[0], axis])?;
                let squares = b.op("SquaredDifference", &[args[0], mean])?;
                let variance = b.op_with("Mean", keep(), &[squares, axis])?;
                let epsilon = b.number(1e-5)?;
                let shifted = b.op("AddV2", &[variance, epsilon])?;
                let (scale, centred) = (b.op("Rsqrt", &[shifted])?, b.op("Sub", &[args[0], mean])?);
                let normal = b.op("Mul", &[centred, scale])?;
                let scaled = b.op("Mul", &[normal, args[1]])?;
                Ok(vec![b.op("AddV2", &[scaled, args[2]])?])
            })?;
            Workload::new(Microseconds, move || Ok(f.call(&args)?)).bytes(2.0 * BYTES)
        }
        _ => return Ok(None),
    }))
}

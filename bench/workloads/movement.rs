//! Ops that move elements, or choose among them.

use super::N;
use crate::{
    Bench,
    inputs::{array, ids},
    measure::{Unit::Microseconds, Workload},
};
use anyhow::Result;
use ferroflow::{
    ir::{Attrs, DType, HostTensor, Shape},
    runtime::EagerTensor,
};

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    let matrix = || array(3, &[4096, 1024], -2.0, 2.0);
    let bytes = 4.0 * N as f64;
    let ints = |values: &[i32]| -> Result<EagerTensor> { Ok(HostTensor::vector(values)?.into()) };
    let op = |op: &'static str, attrs: Attrs, args: Vec<EagerTensor>| {
        Workload::new(Microseconds, move || bench.eager(op, attrs.clone(), &args))
    };
    let plain = Attrs::new;
    Ok(Some(match name {
        "transpose4096" => {
            let args = vec![array(4, &[4096, 4096], -1.0, 1.0)?, ints(&[1, 0])?];
            op("Transpose", plain(), args).bytes(8.0 * 4096.0 * 4096.0)
        }
        "transpose_nhwc_nchw" => {
            let args = vec![array(4, &[8, 56, 56, 64], -1.0, 1.0)?, ints(&[0, 3, 1, 2])?];
            op("Transpose", plain(), args).bytes(8.0 * (8 * 56 * 56 * 64) as f64)
        }
        "gather" => {
            let table = array(5, &[1_000_000, 64], -1.0, 1.0)?;
            let args = vec![table, ids(6, &[65536], 1_000_000)?, EagerTensor::scalar(0i32)];
            op("GatherV2", plain(), args).bytes(8.0 * 65536.0 * 64.0)
        }
        "cumsum" => {
            op("Cumsum", plain(), vec![matrix()?, EagerTensor::scalar(1i32)]).bytes(2.0 * bytes)
        }
        "top_k" => op("TopKV2", plain(), vec![matrix()?, EagerTensor::scalar(10i32)])
            .bytes(bytes)
            .unchecked(),
        "sort" => {
            let x = array(7, &[1 << 20], -1.0, 1.0)?;
            Workload::new(Microseconds, move || {
                let negative = bench.one("Neg", std::slice::from_ref(&x))?;
                let sorted = bench.one("TopKV2", &[negative, EagerTensor::scalar(1i32 << 20)])?;
                bench.eager("Neg", Attrs::new(), &[sorted])
            })
        }
        "one_hot" => {
            let number = EagerTensor::scalar::<f32>;
            let depth = EagerTensor::scalar(128i32);
            let args = vec![ids(8, &[65536], 128)?, depth, number(1.0), number(0.0)];
            op("OneHot", plain(), args).bytes(4.0 * 65536.0 * 128.0)
        }
        "concat" => {
            let (x, y) = (array(9, &[4096, 512], -1.0, 1.0)?, array(10, &[4096, 512], -1.0, 1.0)?);
            let attrs = plain().with("N", 2i64);
            op("ConcatV2", attrs, vec![x, y, EagerTensor::scalar(1i32)]).bytes(2.0 * bytes)
        }
        "split" => {
            let attrs = plain().with("num_split", 4i64);
            op("Split", attrs, vec![EagerTensor::scalar(1i32), matrix()?]).bytes(2.0 * bytes)
        }
        "strided_slice" => {
            let attrs = plain().with("begin_mask", 3i64).with("end_mask", 3i64);
            let args = vec![matrix()?, ints(&[0, 0])?, ints(&[0, 0])?, ints(&[2, 2])?];
            op("StridedSlice", attrs, args).bytes(0.75 * bytes)
        }
        "pad" => {
            let one = HostTensor::from_slice(Shape::new([2, 2])?, &[1i32; 4])?;
            op("Pad", plain(), vec![matrix()?, one.into()]).bytes(2.0 * bytes)
        }
        "where" => {
            let x = matrix()?;
            Workload::new(Microseconds, move || {
                let zero = EagerTensor::scalar(0.0f32);
                let positive = bench.one("Greater", &[x.clone(), zero])?;
                let small = bench.one("Mul", &[x.clone(), EagerTensor::scalar(0.1f32)])?;
                bench.eager("SelectV2", Attrs::new(), &[positive, x.clone(), small])
            })
            .bytes(2.0 * bytes)
        }
        "boolean_mask" => {
            let x = array(1, &[N], -2.0, 2.0)?;
            Workload::new(Microseconds, move || {
                let zero = EagerTensor::scalar(0.0f32);
                let mask = bench.one("Greater", &[x.clone(), zero])?;
                let coordinates = bench.one("Where", &[mask])?;
                let squeeze = Attrs::new().with("squeeze_dims", vec![1i64]);
                let coordinates = bench.one_with("Squeeze", squeeze, &[coordinates])?;
                let axis = EagerTensor::scalar(0i32);
                bench.eager("GatherV2", Attrs::new(), &[x.clone(), coordinates, axis])
            })
        }
        "unique" => op("Unique", plain(), vec![ids(6, &[65536], 10000)?]).unchecked(),
        "scatter_nd_add" => {
            let table = array(5, &[65536, 64], -1.0, 1.0)?;
            let updates = array(15, &[16384, 64], -1.0, 1.0)?;
            let args = vec![table, ids(6, &[16384, 1], 65536)?, updates];
            op("TensorScatterAdd", plain(), args)
        }
        "segment_sum" => {
            let segments: Vec<i32> = (0..65536i64).map(|at| (at * 1000 / 65536) as i32).collect();
            let args = vec![array(3, &[65536, 64], -1.0, 1.0)?, ints(&segments)?];
            op("SegmentSum", plain().with("Tindices", DType::I32), args).bytes(bytes)
        }
        _ => return Ok(None),
    }))
}

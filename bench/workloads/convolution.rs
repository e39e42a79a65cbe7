//! Convolutions, pools and batch norms over images, channels last.

use crate::{
    Bench,
    inputs::array,
    measure::{Unit::Microseconds, Workload},
};
use anyhow::Result;
use ferroflow::{
    ir::{AttrValue, Attrs, HostTensor, Shape},
    runtime::EagerTensor,
};

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    let conv = |x: [usize; 4], f: [usize; 4], stride: i64| -> Result<Workload<'a>> {
        let args = [image(&x)?, array(22, &f, -0.1, 0.1)?];
        let outputs = x[0] * (x[1] / stride as usize) * (x[2] / stride as usize) * f[3];
        let body = move || bench.eager("Conv2D", strides(stride), &args);
        Ok(Workload::new(Microseconds, body).flops((2 * outputs * f[0] * f[1] * f[2]) as f64))
    };
    let backward = |op: &'static str, sizes_of_filter: bool| -> Result<Workload<'a>> {
        let (dims, filter) = ([8, 28, 28, 128], [3, 3, 128, 128]);
        let (x, f) = (image(&dims)?, array(22, &filter, -0.1, 0.1)?);
        let sizes = if sizes_of_filter { filter } else { dims };
        let sizes = HostTensor::vector(&sizes.map(|size| size as i32))?.into();
        let args = match sizes_of_filter {
            true => [x.clone(), sizes, x],
            false => [sizes, f, x],
        };
        let body = move || bench.eager(op, strides(1), &args);
        let flops = 2 * 8 * 28 * 28 * 128 * 3 * 3 * 128;
        Ok(Workload::new(Microseconds, body).flops(f64::from(flops)))
    };
    let pool = |op: &'static str, dims: [usize; 4], size: i64| -> Result<Workload<'a>> {
        let args = [image(&dims)?];
        let attrs = strides(2).with("ksize", vec![1, size, size, 1]);
        let body = move || bench.eager(op, attrs.clone(), &args);
        let bytes = 5.0 * dims.iter().product::<usize>() as f64;
        Ok(Workload::new(Microseconds, body).bytes(bytes))
    };
    Ok(Some(match name {
        "7x7s2_224" => conv([1, 224, 224, 3], [7, 7, 3, 64], 2)?,
        "3x3_56_64" => conv([1, 56, 56, 64], [3, 3, 64, 64], 1)?,
        "3x3_28_128_b8" => conv([8, 28, 28, 128], [3, 3, 128, 128], 1)?,
        "1x1_56_64_256" => conv([1, 56, 56, 64], [1, 1, 64, 256], 1)?,
        "dw3x3_112_96" => {
            let args = [image(&[1, 112, 112, 96])?, array(22, &[3, 3, 96, 1], -0.1, 0.1)?];
            let body = move || bench.eager("DepthwiseConv2dNative", strides(1), &args);
            Workload::new(Microseconds, body).flops((2 * 112 * 112 * 96 * 9) as f64)
        }
        "3x3_28_128_b8_bwd_input" => backward("Conv2DBackpropInput", false)?,
        "3x3_28_128_b8_bwd_filter" => backward("Conv2DBackpropFilter", true)?,
        "max3s2_112_64" => pool("MaxPool", [1, 112, 112, 64], 3)?,
        "avg2s2_b8_56_64" => pool("AvgPool", [8, 56, 56, 64], 2)?,
        "bn_infer_56_64" => batch_norm(bench, false)?,
        "bn_train_56_64" => batch_norm(bench, true)?,
        _ => return Ok(None),
    }))
}

fn image(dims: &[usize; 4]) -> Result<EagerTensor> {
    array(21, dims, -1.0, 1.0)
}

fn strides(stride: i64) -> Attrs {
    Attrs::new()
        .with("strides", vec![1, stride, stride, 1])
        .with("padding", AttrValue::string("SAME"))
}

fn batch_norm(bench: &Bench, training: bool) -> Result<Workload<'_>> {
    let (scale, offset) = (array(13, &[64], 0.5, 1.5)?, array(14, &[64], -1.0, 1.0)?);
    let empty: EagerTensor = HostTensor::from_slice::<f32>(Shape::new([0])?, &[])?.into();
    let (mean, variance) = match training {
        true => (empty.clone(), empty),
        false => (offset.clone(), scale.clone()),
    };
    let args = [image(&[8, 56, 56, 64])?, scale, offset, mean, variance];
    let attrs = Attrs::new().with("is_training", training);
    let body = move || {
        let mut results = bench.eager("FusedBatchNormV3", attrs.clone(), &args)?;
        results.truncate(1);
        Ok(results)
    };
    Ok(Workload::new(Microseconds, body).bytes((8 * 56 * 56 * 64 * 8) as f64))
}

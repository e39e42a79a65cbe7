//! Matrix products.

use crate::{
    Bench,
    inputs::array,
    measure::{Unit::Microseconds, Workload},
};
use anyhow::Result;
use ferroflow::{
    ir::{AttrValue, Attrs, DType},
    runtime::EagerTensor,
};

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    let pair = |a: &[usize], b: &[usize]| -> Result<Vec<EagerTensor>> {
        Ok(vec![array(11, a, -1.0, 1.0)?, array(12, b, -1.0, 1.0)?])
    };
    let matmul = |op: &'static str, attrs: Attrs, args: Vec<EagerTensor>, flops: usize| {
        let body = move || bench.eager(op, attrs.clone(), &args);
        Workload::new(Microseconds, body).flops(flops as f64)
    };
    let cast = |tensors: Vec<EagerTensor>, to: DType| -> Result<Vec<EagerTensor>> {
        let cast = |x| bench.one_with("Cast", Attrs::new().with("DstT", to), &[x]);
        tensors.into_iter().map(cast).collect()
    };
    let plain = Attrs::new;
    let size = |text: &str| -> Option<[usize; 3]> {
        let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.parse().ok()).collect();
        match sizes?[..] {
            [n] => Some([n; 3]),
            [m, k, n] => Some([m, k, n]),
            _ => None,
        }
    };
    Ok(Some(match name {
        "f32_tb_512" => {
            let attrs = plain().with("transpose_b", true);
            matmul("MatMul", attrs, pair(&[512, 512], &[512, 512])?, 2 << 27)
        }
        "bias_relu_fn_128x768x3072" => {
            let mut args = pair(&[128, 768], &[768, 3072])?;
            args.push(array(13, &[3072], -1.0, 1.0)?);
            let f = bench.function(&args, |b, args| {
                let matmul = b.op("MatMul", &args[..2])?;
                let sum = b.op("BiasAdd", &[matmul, args[2]])?;
                Ok(vec![b.op("Relu", &[sum])?])
            })?;
            let body = move || Ok(f.call(&args)?);
            Workload::new(Microseconds, body).flops((2 * 128 * 768 * 3072) as f64)
        }
        "batched_64x128" => {
            let args = pair(&[64, 128, 128], &[64, 128, 128])?;
            matmul("BatchMatMulV2", plain(), args, 2 * 64 * 128 * 128 * 128)
        }
        "einsum_attn" => {
            let equation = AttrValue::string("bqhd,bkhd->bhqk");
            let attrs = plain().with("equation", equation).with("N", 2i64);
            let args = pair(&[8, 128, 12, 64], &[8, 128, 12, 64])?;
            matmul("Einsum", attrs, args, 2 * 8 * 12 * 128 * 128 * 64)
        }
        "bf16_1024" => {
            let args = cast(pair(&[1024, 1024], &[1024, 1024])?, DType::BF16)?;
            matmul("MatMul", plain(), args, 2 << 30).unchecked()
        }
        "f64_512" => {
            let args = cast(pair(&[512, 512], &[512, 512])?, DType::F64)?;
            matmul("MatMul", plain(), args, 2 << 27)
        }
        "int8_1024" => {
            let scaled = pair(&[1024, 1024], &[1024, 1024])?
                .into_iter()
                .map(|x| bench.one("Mul", &[x, EagerTensor::scalar(127.0f32)]))
                .collect::<Result<_>>()?;
            let attrs = plain().with("Tout", DType::I32);
            matmul("BatchMatMulV3", attrs, cast(scaled, DType::I8)?, 2 << 30)
        }
        _ => match name.strip_prefix("f32_").and_then(size) {
            Some([m, k, n]) => matmul("MatMul", plain(), pair(&[m, k], &[k, n])?, 2 * m * k * n),
            None => return Ok(None),
        },
    }))
}

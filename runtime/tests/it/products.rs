//! Products of bytes: one call that reads the bytes, with the values of casts and a product.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, HostTensor, Shape, ValueType};
use ferroflow_runtime::{Context, EagerTensor, execute};

/// Bytes of no pattern, as a dtype of bytes.
fn bytes(dims: &[usize], dtype: DType, seed: usize) -> EagerTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let byte = |index: usize| (index.wrapping_mul(7919) + seed) as u8;
    let unsigned: Vec<u8> = (0..shape.num_elements()).map(byte).collect();
    let signed: Vec<i8> = unsigned.iter().map(|&x| x as i8).collect();
    match dtype {
        DType::I8 => HostTensor::from_slice(shape, &signed).unwrap().into(),
        _ => HostTensor::from_slice(shape, &unsigned).unwrap().into(),
    }
}

#[test]
fn products_of_bytes_have_sums_of_32_bits() {
    let context = Context::new();
    let one = |op: &str, attrs: Attrs, inputs: &[EagerTensor]| {
        execute(&context, op, attrs, inputs).unwrap().into_iter().next().unwrap()
    };
    for (x, y) in [(DType::I8, DType::I8), (DType::U8, DType::I8), (DType::U8, DType::U8)] {
        for (dims_x, dims_y, adj_x, adj_y) in [
            ([3, 5, 4], [3, 4, 6], false, false),
            ([2, 40, 70], [1, 70, 33], false, false),
            ([1, 70, 40], [2, 33, 70], true, true),
            ([2, 64, 300], [2, 40, 300], false, true),
        ] {
            let (a, b) = (bytes(&dims_x, x, 3), bytes(&dims_y, y, 91));
            let flags = Attrs::new().with("adj_x", adj_x).with("adj_y", adj_y);
            let wide = |x: &EagerTensor| {
                let attrs = Attrs::new().with("DstT", DType::I32);
                one("Cast", attrs, std::slice::from_ref(x))
            };
            let expected = one("BatchMatMulV2", flags.clone(), &[wide(&a), wide(&b)]);
            let types = [&a, &b].map(|x| ValueType::new(x.dtype(), x.shape()));
            let [x_type, y_type] = types.clone();
            let def = function("f", &[("x", x_type), ("y", y_type)], |builder, args| {
                let attrs = flags.clone().with("Tout", DType::I32);
                Ok(builder.call_with("BatchMatMulV3", "product", attrs, args)?.to_vec())
            });
            let product = concrete(&context, def, Vec::new(), Vec::new());
            let text = product.optimized_text(&types).unwrap();
            assert!(text.contains("_WideningMatMul") && !text.contains("Cast"), "{text}");
            let found = product.call(&[a, b]).unwrap();
            let (found, expected) = (found[0].host().unwrap(), expected.host().unwrap());
            assert_eq!(found.as_slice::<i32>().unwrap(), expected.as_slice::<i32>().unwrap());
        }
    }
}

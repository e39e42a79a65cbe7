//! Tensors.

use crate::{
    convert::{StoredHandle, shape_message},
    proto::TensorProto,
};
use bytemuck::{Pod, pod_collect_to_vec};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, HostTensor, Result};

/// The message of a tensor.
///
/// A list goes without the repetitions of its last element. Elements are in the list of the dtype
/// if that leaves at most half of them, otherwise in `tensor_content`.
///
/// # Errors
///
/// [`Error::Unsupported`] for handles of this process, which mean nothing elsewhere.
pub fn tensor_message(tensor: &HostTensor) -> Result<TensorProto> {
    let mut message = TensorProto {
        dtype: tensor.dtype().number(),
        tensor_shape: Some(shape_message(tensor.shape())),
        ..TensorProto::default()
    };
    match tensor.dtype() {
        DType::String => {
            let strings = tensor.strings()?;
            message.string_val = strings[..n_listed(strings.iter().rev())].to_vec();
        }
        DType::Resource | DType::Variant => add_handles(&mut message, tensor)?,
        dtype => add_plain(&mut message, dtype, tensor.bytes()),
    }
    Ok(message)
}

/// Number of elements that remain without the repetitions of the last one.
fn n_listed<T: PartialEq>(mut from_the_last: impl ExactSizeIterator<Item = T>) -> usize {
    let n_elements = from_the_last.len();
    let Some(last) = from_the_last.next() else { return 0 };
    n_elements - from_the_last.take_while(|element| *element == last).count()
}

fn add_plain(message: &mut TensorProto, dtype: DType, bytes: &[u8]) {
    let size = dtype.size().expect("plain elements have a size");
    let n_listed = n_listed(bytes.rchunks_exact(size));
    if n_listed * 2 <= bytes.len() / size + 1 {
        add_listed(message, dtype, &bytes[..n_listed * size]);
    } else {
        message.tensor_content = Bytes::copy_from_slice(bytes);
    }
}

fn add_listed(message: &mut TensorProto, dtype: DType, bytes: &[u8]) {
    fn widen<T: Pod + Into<i32>>(bytes: &[u8]) -> Vec<i32> {
        pod_collect_to_vec::<u8, T>(bytes).into_iter().map(Into::into).collect()
    }
    match dtype {
        DType::F32 => message.float_val = pod_collect_to_vec(bytes),
        DType::F64 => message.double_val = pod_collect_to_vec(bytes),
        DType::I32 | DType::QI32 => message.int_val = pod_collect_to_vec(bytes),
        DType::I16 | DType::QI16 => message.int_val = widen::<i16>(bytes),
        DType::U16 | DType::QU16 => message.int_val = widen::<u16>(bytes),
        DType::I8 | DType::QI8 | DType::I4 | DType::I2 => message.int_val = widen::<i8>(bytes),
        DType::U8 | DType::QU8 | DType::U4 | DType::U2 => message.int_val = widen::<u8>(bytes),
        DType::I64 => message.int64_val = pod_collect_to_vec(bytes),
        DType::U32 => message.uint32_val = pod_collect_to_vec(bytes),
        DType::U64 => message.uint64_val = pod_collect_to_vec(bytes),
        DType::F16 | DType::BF16 => message.half_val = widen::<u16>(bytes),
        DType::Bool => message.bool_val = bytes.iter().map(|&byte| byte != 0).collect(),
        DType::C64 => message.scomplex_val = pod_collect_to_vec(bytes),
        DType::C128 => message.dcomplex_val = pod_collect_to_vec(bytes),
        DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F8E4M3FNUZ
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F4E2M1FN => message.float8_val = Bytes::copy_from_slice(bytes),
        DType::String | DType::Resource | DType::Variant => {
            unreachable!("their elements are no plain bytes")
        }
    }
}

fn add_handles(message: &mut TensorProto, tensor: &HostTensor) -> Result<()> {
    for handle in tensor.handles()? {
        match handle.as_any().downcast_ref::<StoredHandle>() {
            Some(StoredHandle::Resource(proto)) => message.resource_handle_val.push(proto.clone()),
            Some(StoredHandle::Variant(proto)) => message.variant_val.push(proto.clone()),
            None => {
                let what = format!("a file cannot hold {handle:?}").into();
                return Err(Error::Unsupported { op: "tensor".into(), what });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert;
    use ferroflow_ir::{Limits, Shape};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn floats(elements: &[f32]) -> TensorProto {
        tensor_message(&HostTensor::vector(elements).unwrap()).unwrap()
    }

    #[test]
    fn repetitions_are_left_out() {
        assert_eq!(floats(&[1.5; 100]).float_val, [1.5]);
        assert_eq!(floats(&[1.0, 2.0, 2.0, 2.0]).float_val, [1.0, 2.0]);
        assert_eq!(floats(&[-0.0, 0.0]).tensor_content.len(), 8);
        assert_eq!(floats(&[]), TensorProto { tensor_content: Bytes::new(), ..floats(&[]) });
        let text = HostTensor::from_strings(Shape::new([3]).unwrap(), vec!["a".into(); 3]).unwrap();
        assert_eq!(tensor_message(&text).unwrap().string_val, ["a"]);
    }

    #[test]
    fn small_integers_keep_their_sign() {
        let scalar = |tensor: HostTensor| tensor_message(&tensor).unwrap().int_val;
        assert_eq!(scalar(HostTensor::scalar(-1i8)), [-1]);
        assert_eq!(scalar(HostTensor::scalar(255u8)), [255]);
        assert_eq!(scalar(HostTensor::scalar(u16::MAX)), [65535]);
        assert_eq!(scalar(HostTensor::scalar(i16::MIN)), [-32768]);
    }

    #[test]
    fn handles_go_back_as_they_came_and_others_not_at_all() {
        #[derive(Debug)]
        struct Live;
        impl ferroflow_ir::Handle for Live {
            fn as_any(&self) -> &dyn std::any::Any {
                self
            }
        }
        let stored = crate::proto::ResourceHandleProto { name: "t".into(), ..Default::default() };
        let handle = Arc::new(StoredHandle::Resource(stored.clone()));
        let tensor = HostTensor::scalar_handle(DType::Resource, handle);
        assert_eq!(tensor_message(&tensor).unwrap().resource_handle_val, [stored]);
        let live = HostTensor::scalar_handle(DType::Resource, Arc::new(Live));
        let message = tensor_message(&live).unwrap_err().to_string();
        assert_eq!(message, "tensor is not supported: a file cannot hold Live");
    }

    fn plain_dtypes() -> Vec<DType> {
        DType::ALL.iter().copied().filter(|dtype| dtype.size().is_some()).collect()
    }

    proptest! {
        #[test]
        fn bytes_come_back(
            dtype in prop::sample::select(plain_dtypes()),
            start in prop::collection::vec(any::<u8>(), 0..40),
            n_zeros in 0usize..40,
        ) {
            let size = dtype.size().unwrap();
            let mut bytes = start;
            bytes.resize(bytes.len() + n_zeros, 0);
            bytes.truncate(bytes.len() / size * size);
            if dtype == DType::Bool {
                bytes.iter_mut().for_each(|byte| *byte &= 1);
            }
            let shape = Shape::new([bytes.len() / size]).unwrap();
            let tensor = HostTensor::from_bytes(dtype, shape, &bytes).unwrap();
            let message = tensor_message(&tensor).unwrap();
            let back = convert::tensor(&message, &Limits::default()).unwrap();
            prop_assert_eq!(back.dtype(), dtype);
            prop_assert_eq!(back.shape(), tensor.shape());
            prop_assert_eq!(back.bytes(), tensor.bytes());
        }

        #[test]
        fn strings_come_back(
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3), 0..20),
        ) {
            let shape = Shape::new([strings.len()]).unwrap();
            let strings: Vec<Bytes> = strings.into_iter().map(Bytes::from).collect();
            let tensor = HostTensor::from_strings(shape, strings.clone()).unwrap();
            let message = tensor_message(&tensor).unwrap();
            let back = convert::tensor(&message, &Limits::default()).unwrap();
            prop_assert_eq!(back.strings().unwrap(), strings);
        }
    }
}

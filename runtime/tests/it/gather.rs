//! Rows of tensors and variables without elements: when an index is looked at.

use crate::support::context;
use ferroflow_ir::{Attrs, HostTensor, Shape};
use ferroflow_runtime::{EagerTensor, ResourceVariable, execute};

fn empty(dims: &[usize]) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    HostTensor::from_slice(shape, &vec![0.5f32; dims.iter().product()]).unwrap()
}

fn indices(dims: &[usize], index: i32) -> EagerTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    HostTensor::from_slice(shape, &vec![index; dims.iter().product()]).unwrap().into()
}

/// The shape of the result, none where the call fails.
fn shape(name: &str, inputs: Vec<EagerTensor>) -> Option<Vec<usize>> {
    let results = execute(&context(), name, Attrs::new(), &inputs).ok()?;
    Some(results[0].host().unwrap().shape().dims().to_vec())
}

fn along(params: &[usize], axis: i32, dims: &[usize], index: i32) -> Option<Vec<usize>> {
    let axis = HostTensor::scalar(axis).into();
    shape("GatherV2", vec![empty(params).into(), indices(dims, index), axis])
}

#[test]
fn indices_of_empty_results_are_not_looked_at() {
    assert_eq!(along(&[3, 0], 0, &[2], 0), Some(vec![2, 0]));
    assert_eq!(along(&[3, 0], 0, &[1], 7), Some(vec![1, 0]));
    assert_eq!(along(&[0, 0], 0, &[2], 0), Some(vec![2, 0]));
    assert_eq!(along(&[0, 0], 1, &[1, 2], -1), Some(vec![0, 1, 2]));
    assert_eq!(along(&[0, 3], 1, &[], 5), Some(vec![0]));
    assert_eq!(along(&[0, 3], 0, &[0], 0), Some(vec![0, 3]));
    assert_eq!(shape("Gather", vec![empty(&[0, 0]).into(), indices(&[2], 4)]), Some(vec![2, 0]));
}

#[test]
fn indices_of_other_results_are_checked() {
    assert_eq!(along(&[0], 0, &[2], 0), None);
    assert_eq!(along(&[0, 3], 0, &[1], 0), None);
    assert_eq!(along(&[2, 0, 3], 1, &[1], 0), None);
    assert_eq!(along(&[2, 3], 0, &[1], 2), None);
}

#[test]
fn vectors_of_indices_need_elements_to_name() {
    let nd = |params: &[usize], dims: &[usize]| {
        shape("GatherNd", vec![empty(params).into(), indices(dims, 0)])
    };
    assert_eq!(nd(&[3, 0], &[0, 1]), Some(vec![0, 0]));
    assert_eq!(nd(&[0, 3], &[0, 2]), Some(vec![0]));
    assert_eq!(nd(&[2, 3], &[2, 0]), Some(vec![2, 2, 3]));
    for dims in [&[1, 1][..], &[2, 0], &[1]] {
        assert_eq!(nd(&[3, 0], dims), None, "{dims:?}");
    }
}

#[test]
fn indices_of_variables_are_always_checked() {
    let rows = |params: &[usize], index: i32| {
        let variable = ResourceVariable::new("v", empty(params));
        let handle = variable.handle().to_tensor();
        let attrs = Attrs::new().with("dtype", ferroflow_ir::DType::F32);
        let inputs = [handle.into(), indices(&[1], index)];
        let results = execute(&context(), "ResourceGather", attrs, &inputs).ok()?;
        Some(results[0].host().unwrap().shape().dims().to_vec())
    };
    assert_eq!(rows(&[3, 0], 0), Some(vec![1, 0]));
    assert_eq!(rows(&[3, 0], 5), None);
    assert_eq!(rows(&[0, 0], 0), None);
    assert_eq!(rows(&[0, 3], 0), None);
}

//! Shapes.

use crate::proto::{TensorShapeProto, tensor_shape_proto};
use ferroflow_ir::{Error, PartialShape, Result, Shape};

/// The format allows no more dimensions than this.
const MAX_RANK: usize = 254;

/// A shape of which some sizes may be unknown.
///
/// # Errors
///
/// [`Error::Size`] for sizes below -1 and for too many dimensions.
pub fn shape(shape: &TensorShapeProto) -> Result<PartialShape> {
    if shape.unknown_rank {
        return Ok(PartialShape::Unknown);
    }
    PartialShape::from_i64(&sizes(shape)?)
}

/// A shape, unknown where there is none.
///
/// # Errors
///
/// As [`shape`](fn@shape).
pub fn optional_shape(proto: Option<&TensorShapeProto>) -> Result<PartialShape> {
    proto.map_or(Ok(PartialShape::Unknown), shape)
}

/// A shape of which everything must be known. None at all is that of a scalar.
///
/// # Errors
///
/// [`Error::Size`] for unknown or negative sizes, and for too many dimensions or elements.
pub fn known_shape(shape: Option<&TensorShapeProto>) -> Result<Shape> {
    let Some(shape) = shape else { return Ok(Shape::scalar()) };
    if shape.unknown_rank {
        return Err(Error::Size { what: "rank".into(), size: "unknown".into() });
    }
    Shape::from_i64(&sizes(shape)?)
}

fn sizes(shape: &TensorShapeProto) -> Result<Vec<i64>> {
    if shape.dim.len() > MAX_RANK {
        return Err(Error::Size { what: "rank".into(), size: shape.dim.len().to_string() });
    }
    Ok(shape.dim.iter().map(|dim| dim.size).collect())
}

/// The message of a shape.
pub fn shape_message(shape: &Shape) -> TensorShapeProto {
    ranked_message(shape.to_i64())
}

/// The message of a shape of which some sizes, or all, may be unknown.
pub fn partial_shape_message(shape: &PartialShape) -> TensorShapeProto {
    match shape.dims() {
        Some(dims) => ranked_message(dims.iter().map(|dim| dim.map_or(-1, |size| size as i64))),
        None => TensorShapeProto { dim: Vec::new(), unknown_rank: true },
    }
}

fn ranked_message(sizes: impl IntoIterator<Item = i64>) -> TensorShapeProto {
    let dim = |size| tensor_shape_proto::Dim { size, name: String::new() };
    TensorShapeProto { dim: sizes.into_iter().map(dim).collect(), unknown_rank: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tensor_shape_proto::Dim;

    fn proto(sizes: &[i64]) -> TensorShapeProto {
        let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
        TensorShapeProto { dim, unknown_rank: false }
    }

    #[test]
    fn sizes_may_be_unknown_or_not() {
        assert_eq!(shape(&proto(&[-1, 3])).unwrap(), PartialShape::ranked([None, Some(3)]));
        assert!(shape(&proto(&[-2])).is_err());
        assert!(shape(&proto(&[1; 255])).is_err());
        assert!(known_shape(Some(&proto(&[-1]))).is_err());
        assert!(known_shape(Some(&proto(&[1 << 62, 1 << 62]))).is_err());
        assert_eq!(known_shape(Some(&proto(&[2, 0]))).unwrap().dims(), [2, 0]);
        assert_eq!(known_shape(None).unwrap(), Shape::scalar());
        let unranked = TensorShapeProto { unknown_rank: true, ..TensorShapeProto::default() };
        assert_eq!(shape(&unranked).unwrap(), PartialShape::Unknown);
        assert!(known_shape(Some(&unranked)).is_err());
    }
}

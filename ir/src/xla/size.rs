//! Sizes that may be known only in a call.

use crate::{
    dtype::DType,
    emit::{Value, call, calls_with},
};

/// A size: a number, or a scalar of `i64` that a graph computes.
#[derive(Debug, Clone, Copy)]
pub enum Size<'e> {
    /// A number.
    Known(i64),
    /// A scalar of `i64`.
    Computed(Value<'e>),
}

impl<'e> Size<'e> {
    /// The number, if it is one.
    pub fn known(self) -> Option<i64> {
        match self {
            Size::Known(size) => Some(size),
            Size::Computed(value) => value.ints().and_then(|ints| ints.first().copied()),
        }
    }

    /// The size as a scalar of `i64`, in the formula of `anchor`.
    #[must_use]
    pub fn value(self, anchor: Value<'e>) -> Value<'e> {
        match self {
            Size::Known(size) => anchor.literal(size),
            Size::Computed(value) => value,
        }
    }

    fn combine(
        self,
        other: Size<'e>,
        numbers: fn(i64, i64) -> i64,
        values: fn(Value<'e>, Value<'e>) -> Value<'e>,
    ) -> Size<'e> {
        match (self, other) {
            (Size::Known(a), Size::Known(b)) => Size::Known(numbers(a, b)),
            (Size::Computed(a), b) => Size::Computed(values(a, b.value(a))),
            (a, Size::Computed(b)) => Size::Computed(values(a.value(b), b)),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: impl Into<Size<'e>>) -> Size<'e> {
        match (self, other.into()) {
            (size, Size::Known(0)) | (Size::Known(0), size) => size,
            (a, b) => a.combine(b, i64::wrapping_add, |a, b| a + b),
        }
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: impl Into<Size<'e>>) -> Size<'e> {
        match (self, other.into()) {
            (size, Size::Known(0)) => size,
            (a, b) => a.combine(b, i64::wrapping_sub, |a, b| a - b),
        }
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: impl Into<Size<'e>>) -> Size<'e> {
        match (self, other.into()) {
            (size, Size::Known(1)) | (Size::Known(1), size) => size,
            (a, b) => a.combine(b, i64::wrapping_mul, |a, b| a * b),
        }
    }

    /// The quotient rounded down.
    #[must_use]
    pub fn divided(self, other: impl Into<Size<'e>>) -> Size<'e> {
        match (self, other.into()) {
            (size, Size::Known(1)) => size,
            (a, b) => a.combine(
                b,
                |a, b| a.checked_div_euclid(b).unwrap_or(0),
                |a, b| call("FloorDiv", [a, b]),
            ),
        }
    }

    /// The larger one.
    #[must_use]
    pub fn at_least(self, other: impl Into<Size<'e>>) -> Size<'e> {
        self.combine(other.into(), i64::max, |a, b| a.maximum(b))
    }

    /// The smaller one.
    #[must_use]
    pub fn at_most(self, other: impl Into<Size<'e>>) -> Size<'e> {
        self.combine(other.into(), i64::min, |a, b| a.minimum(b))
    }
}

impl From<i64> for Size<'_> {
    fn from(size: i64) -> Self {
        Size::Known(size)
    }
}

/// The sizes of a value of known rank.
pub fn sizes<'e>(x: Value<'e>) -> Vec<Size<'e>> {
    let shape = x.partial_shape();
    let Some(dims) = shape.dims() else {
        x.shape(); // Notes the error.
        return Vec::new();
    };
    let computed = if shape.is_known() { None } else { Some(x.shape_vector()) };
    let one = |(axis, dim): (usize, &Option<usize>)| match (dim, computed) {
        (Some(size), _) => Size::Known(*size as i64),
        (None, Some(vector)) => Size::Computed(element(vector, axis)),
        (None, None) => unreachable!("a shape is not known when one of its sizes is not"),
    };
    dims.iter().enumerate().map(one).collect()
}

/// The sizes of a value that has `rank` axes, unless an earlier error has made it invalid.
pub fn sizes_of_rank<'e>(x: Value<'e>, rank: usize) -> Vec<Size<'e>> {
    let mut all = sizes(x);
    all.resize(rank, Size::Known(1));
    all
}

/// The rank of a value; 0, with an error noted, where it is not known.
pub fn rank(x: Value<'_>) -> usize {
    x.rank().unwrap_or_else(|| x.shape().rank())
}

/// Element `index` of a vector.
pub fn element<'e>(vector: Value<'e>, index: usize) -> Value<'e> {
    call("GatherV2", [vector, vector.literal(index as i64), vector.literal(0i32)])
}

/// The elements of an integer vector of known length as sizes.
pub fn of_vector<'e>(vector: Value<'e>) -> Vec<Size<'e>> {
    if let Some(known) = vector.ints() {
        return known.into_iter().map(Size::Known).collect();
    }
    let length = vector.partial_shape().dim(0).or_else(|| {
        vector.shape(); // Notes the error.
        None
    });
    let vector = vector.cast(DType::I64);
    (0..length.unwrap_or(0)).map(|index| Size::Computed(element(vector, index))).collect()
}

/// Sizes as a vector of `i64`, in the formula of `anchor`.
pub fn vector<'e>(sizes: &[Size<'e>], anchor: Value<'e>) -> Value<'e> {
    let known: Option<Vec<i64>> = sizes.iter().map(|size| size.known()).collect();
    match known {
        Some(known) => anchor.int_vector(&known),
        None => {
            let values: Vec<Value<'e>> = sizes.iter().map(|size| size.value(anchor)).collect();
            calls_with("Pack", crate::Attrs::new().with("N", values.len() as i64), &values).at(0)
        }
    }
}

/// The product of sizes.
pub fn product<'e>(sizes: &[Size<'e>]) -> Size<'e> {
    sizes.iter().fold(Size::Known(1), |a, &b| a.times(b))
}

/// The same elements under other sizes.
pub fn reshape<'e>(x: Value<'e>, sizes: &[Size<'e>]) -> Value<'e> {
    let known: Vec<Option<i64>> = sizes.iter().map(|size| size.known()).collect();
    let dims = x.dims();
    let whole: Option<Vec<i64>> = known.iter().copied().collect();
    match whole {
        Some(whole) if dims.as_ref() == Some(&whole) => x,
        Some(whole) => x.reshape(&whole),
        // One size that is not known follows from the others, if none of them is 0.
        None if known.iter().flatten().all(|&size| size > 0)
            && known.iter().filter(|size| size.is_none()).count() == 1 =>
        {
            let dims: Vec<i64> = known.into_iter().map(|size| size.unwrap_or(-1)).collect();
            x.reshape(&dims)
        }
        None => x.reshape_to(vector(sizes, x)),
    }
}

/// Repeated along dimensions of size 1, up to these sizes.
pub fn broadcast<'e>(x: Value<'e>, sizes: &[Size<'e>]) -> Value<'e> {
    let known: Option<Vec<i64>> = sizes.iter().map(|size| size.known()).collect();
    match known {
        Some(known) if x.dims().as_ref() == Some(&known) => x,
        Some(known) => x.broadcast_to(&known),
        None => x.broadcast_to_vector(vector(sizes, x)),
    }
}

/// The dimensions in another order.
pub fn transpose<'e>(x: Value<'e>, order: &[usize]) -> Value<'e> {
    if order.is_sorted() {
        return x;
    }
    let order: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
    x.transpose(&order)
}

/// A window of these sizes that begins at `begin`.
pub fn window<'e>(x: Value<'e>, begin: &[Size<'e>], size: &[Size<'e>]) -> Value<'e> {
    call("Slice", [x, vector(begin, x), vector(size, x)])
}

/// `0, 1, 2, …` as `i64`, up to a size.
pub fn range<'e>(size: Size<'e>, anchor: Value<'e>) -> Value<'e> {
    call("Range", [anchor.literal(0i64), size.value(anchor), anchor.literal(1i64)])
}

/// `0, 1, 2, …` along axis `axis` of `rank` axes, the others of size 1.
pub fn range_along<'e>(size: Size<'e>, axis: usize, rank: usize, anchor: Value<'e>) -> Value<'e> {
    let mut sizes = vec![Size::Known(1); rank];
    if let Some(own) = sizes.get_mut(axis) {
        *own = size;
    }
    reshape(range(size, anchor), &sizes)
}

//! Shape inference: what an op call's results look like, before it runs.

use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Error, Result},
    host_tensor::HostTensor,
    op::OpDef,
    shape::{Dim, PartialShape, Shape},
    spec::{ListItems, TensorSpec, ValueType},
};
use smallvec::SmallVec;
use std::{borrow::Cow, fmt};

/// Knowledge about an input of an op call.
#[derive(Debug, Clone, Copy)]
pub struct InputFacts<'a> {
    /// Its type.
    pub ty: &'a ValueType,
    /// Its value, where it is known before the op runs.
    pub value: Option<&'a HostTensor>,
}

/// An op call under inspection: its record, attributes and what is known of its inputs; collects
/// the result shapes.
#[derive(Debug)]
pub struct OpContext<'a> {
    /// The record.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: &'a Attrs,
    inputs: SmallVec<[InputFacts<'a>; 4]>,
    outputs: SmallVec<[ValueType; 2]>,
}

/// Result types of an op call.
pub type OutputTypes = SmallVec<[ValueType; 2]>;

/// Checks an op call and tells the types of its results.
///
/// # Errors
///
/// [`Error::Argument`] when inputs or attributes do not fit the op.
pub fn infer(op: &'static OpDef, attrs: &Attrs, inputs: &[InputFacts<'_>]) -> Result<OutputTypes> {
    let mut context = OpContext::new(op, attrs, inputs)?;
    context.infer()?;
    Ok(context.outputs)
}

impl<'a> OpContext<'a> {
    /// A call, with number and dtypes of the inputs checked.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when number or dtypes of the inputs do not fit the record.
    pub fn new(
        op: &'static OpDef,
        attrs: &'a Attrs,
        inputs: &[InputFacts<'a>],
    ) -> Result<OpContext<'a>> {
        let dtypes: SmallVec<[DType; 6]> = inputs.iter().map(|input| input.ty.dtype).collect();
        op.check_dtypes(attrs, &dtypes)?;
        let unknown = |&dtype: &DType| ValueType::new(dtype, PartialShape::Unknown);
        let outputs = op.output_dtypes(attrs)?.iter().map(unknown).collect();
        Ok(OpContext { op, attrs, inputs: inputs.into(), outputs })
    }

    /// Runs the shape function of the op, and checks that every known result can be counted.
    ///
    /// # Errors
    ///
    /// Those of the shape function; [`Error::Size`] for more elements than an `i64` counts.
    pub fn infer(&mut self) -> Result<()> {
        (self.op.infer)(self)?;
        for output in &self.outputs {
            if let Some(dims) = output.shape.dims()
                && let Some(dims) = dims.iter().copied().collect::<Option<SmallVec<[usize; 6]>>>()
            {
                Shape::new(dims)?;
            }
        }
        Ok(())
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Knowledge about input `index`.
    pub fn input(&self, index: usize) -> &InputFacts<'a> {
        &self.inputs[index]
    }

    /// The dtype of input `index`.
    pub fn dtype(&self, index: usize) -> DType {
        self.inputs[index].ty.dtype
    }

    /// The shape of input `index`, as far as it is known.
    pub fn shape(&self, index: usize) -> &'a PartialShape {
        &self.inputs[index].ty.shape
    }

    /// The shape of input `index`, which must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is not.
    pub fn known(&self, index: usize) -> Result<Shape> {
        let shape = self.shape(index);
        shape.known().ok_or_else(|| self.wrong(index, "of known shape", shape))
    }

    /// The value of input `index`, where it is known.
    pub fn value(&self, index: usize) -> Option<&'a HostTensor> {
        self.inputs[index].value
    }

    /// The value of input `index`, which must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is not.
    pub fn known_value(&self, index: usize) -> Result<&'a HostTensor> {
        self.value(index).ok_or_else(|| self.wrong(index, "known", "an unknown value"))
    }

    /// Whether the values of all inputs that steer shapes are known.
    pub fn host_values_known(&self) -> bool {
        let host = self.op.host_inputs(self.attrs).unwrap_or_default();
        self.inputs.iter().zip(host).all(|(input, host)| !host || input.value.is_some())
    }

    /// The elements of integer input `index`, where its value is known.
    ///
    /// # Errors
    ///
    /// [`Error::DType`] when it is not an integer tensor.
    pub fn ints(&self, index: usize) -> Result<Option<Vec<i64>>> {
        self.value(index).map(HostTensor::to_i64s).transpose()
    }

    /// The elements of integer input `index`, whose value must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is not, [`Error::DType`] when it is not an integer tensor.
    pub fn known_ints(&self, index: usize) -> Result<Vec<i64>> {
        self.known_value(index)?.to_i64s()
    }

    /// The integer in scalar input `index`, where its value is known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the input is not a scalar.
    pub fn int(&self, index: usize) -> Result<Option<i64>> {
        let shape = self.shape(index);
        if shape.rank().is_some_and(|rank| rank != 0) {
            return Err(self.wrong(index, "a scalar", shape));
        }
        Ok(self.ints(index)?.and_then(|ints| ints.first().copied()))
    }

    /// The sizes in integer input `index` as a shape, in which `-1` is unknown.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the input is no vector, or its value no shape.
    pub fn shape_value(&self, index: usize) -> Result<PartialShape> {
        self.check_rank(index, 1)?;
        match self.ints(index)? {
            Some(dims) => PartialShape::from_i64(&dims)
                .map_err(|_| self.wrong(index, "a shape", format!("{dims:?}"))),
            None => Ok(match self.shape(index).dim(0) {
                Some(rank) => PartialShape::of_rank(rank),
                None => PartialShape::Unknown,
            }),
        }
    }

    /// The sizes of input `index`, all unknown if the rank is; the rank is checked.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the rank is another one.
    pub fn dims<const RANK: usize>(&self, index: usize) -> Result<[Dim; RANK]> {
        self.check_rank(index, RANK)?;
        let mut dims = [None; RANK];
        if let Some(known) = self.shape(index).dims() {
            dims.copy_from_slice(known);
        }
        Ok(dims)
    }

    /// Checks the rank of input `index`, where it is known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is another one.
    pub fn check_rank(&self, index: usize, rank: usize) -> Result<()> {
        let shape = self.shape(index);
        match shape.rank() {
            Some(found) if found != rank => {
                let expected = match rank {
                    0 => "a scalar".to_string(),
                    1 => "a vector".to_string(),
                    rank => format!("of rank {rank}"),
                };
                Err(self.wrong(index, expected, shape))
            }
            _ => Ok(()),
        }
    }

    /// Checks that input `index` has at least this rank, where it is known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it has not.
    pub fn check_rank_at_least(&self, index: usize, rank: usize) -> Result<()> {
        let shape = self.shape(index);
        match shape.rank() {
            Some(found) if found < rank => {
                Err(self.wrong(index, format!("of rank {rank} or more"), shape))
            }
            _ => Ok(()),
        }
    }

    /// Checks that two sizes, where known, agree, and returns the size.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when they do not.
    pub fn same(&self, what: &'static str, a: Dim, b: Dim) -> Result<Dim> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                Err(Error::argument(self.op.name, what, "equal", format!("{a} and {b}")))
            }
            (a, b) => Ok(a.or(b)),
        }
    }

    /// Shape that the shapes of inputs `a` and `b` agree on.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when they contradict each other.
    pub fn merged(&self, a: usize, b: usize) -> Result<PartialShape> {
        let (left, right) = (self.shape(a), self.shape(b));
        left.merge(right)
            .ok_or_else(|| self.wrong(b, format!("of shape {left}, as the other"), right))
    }

    /// The dimension that `axis` names in a tensor of this rank; negative axes count from the end.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when there is no such dimension.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        normalize_axis(axis, rank)
    }

    /// Sets the shape of output `index`.
    pub fn set(&mut self, index: usize, shape: impl Into<PartialShape>) {
        self.outputs[index].shape = shape.into();
    }

    /// Sets the shape of every output.
    pub fn set_all(&mut self, shape: &PartialShape) {
        self.outputs.iter_mut().for_each(|output| output.shape = shape.clone());
    }

    /// Sets what the handle in output `index` refers to.
    pub fn set_pointee(&mut self, index: usize, spec: TensorSpec) {
        self.outputs[index].pointee = Some(Box::new(spec));
    }

    /// Sets what is known of the elements that were written to the list in output `index`.
    pub fn set_items(&mut self, index: usize, items: Option<ListItems>) {
        self.outputs[index].items = items.map(Box::new);
    }

    /// The dtype of output `index`.
    pub fn output_dtype(&self, index: usize) -> DType {
        self.outputs[index].dtype
    }

    /// The shape set for output `index`.
    pub fn output(&self, index: usize) -> &PartialShape {
        &self.outputs[index].shape
    }

    /// The types of the outputs, as far as they have been set.
    pub fn outputs(&self) -> &[ValueType] {
        &self.outputs
    }

    /// An error about input `index`.
    pub fn wrong(
        &self,
        index: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Error {
        Error::argument(self.op.name, input_name(self.op, self.attrs, index), expected, found)
    }

    /// An error about an attribute.
    pub fn wrong_attr(
        &self,
        name: &'static str,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Error {
        Error::argument(self.op.name, name, expected, found)
    }
}

/// The name of the argument that flat input `index` belongs to.
fn input_name(op: &'static OpDef, attrs: &Attrs, index: usize) -> Cow<'static, str> {
    let mut end = 0;
    for arg in op.inputs {
        let count = arg.count(attrs).unwrap_or(1);
        if index < end + count {
            let many = count > 1;
            return if many {
                format!("{}[{}]", arg.name, index - end).into()
            } else {
                arg.name.into()
            };
        }
        end += count;
    }
    format!("input {index}").into()
}

/// The dimension that `axis` names in a tensor of this rank; negative axes count from the end.
///
/// # Errors
///
/// [`Error::Index`] when there is no such dimension.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    let normalized = if axis < 0 { axis + rank } else { axis };
    if (0..rank).contains(&normalized) {
        Ok(normalized as usize)
    } else {
        Err(Error::Index { what: "axis".into(), index: axis, low: -rank, high: rank })
    }
}

/// Nothing is known of the results.
///
/// # Errors
///
/// None.
pub fn unknown(_: &mut OpContext<'_>) -> Result<()> {
    Ok(())
}

/// Every result is a scalar.
///
/// # Errors
///
/// None.
pub fn scalar(context: &mut OpContext<'_>) -> Result<()> {
    context.set_all(&PartialShape::scalar());
    Ok(())
}

/// Every result has the shape of input 0.
///
/// # Errors
///
/// None.
pub fn unchanged(context: &mut OpContext<'_>) -> Result<()> {
    context.set_all(context.shape(0));
    Ok(())
}

/// Result `n` has the shape of input `n`, and refers to the same if it is a handle.
///
/// # Errors
///
/// None.
pub fn each_unchanged(context: &mut OpContext<'_>) -> Result<()> {
    for index in 0..context.n_outputs() {
        let ty = context.input(index).ty;
        context.outputs[index].clone_from(ty);
    }
    Ok(())
}

/// All inputs have one shape, which is that of every result.
///
/// # Errors
///
/// [`Error::Argument`] when the shapes contradict each other.
pub fn all_same(context: &mut OpContext<'_>) -> Result<()> {
    let mut shape = context.shape(0).clone();
    for index in 1..context.n_inputs() {
        let other = context.shape(index);
        shape = shape
            .merge(other)
            .ok_or_else(|| context.wrong(index, format!("of shape {shape}"), other))?;
    }
    context.set_all(&shape);
    Ok(())
}

/// The inputs broadcast against each other.
///
/// # Errors
///
/// [`Error::Broadcast`] when they cannot.
pub fn broadcast(context: &mut OpContext<'_>) -> Result<()> {
    let mut shape = context.shape(0).clone();
    for index in 1..context.n_inputs() {
        shape = shape.broadcast(context.shape(index))?;
    }
    context.set_all(&shape);
    Ok(())
}

/// A reduction of input 0 along the axes in input 1, with attribute `keep_dims`.
///
/// # Errors
///
/// [`Error::Index`] for an axis out of range, [`Error::Argument`] for axes of rank above 1.
pub fn reduction(context: &mut OpContext<'_>) -> Result<()> {
    let keep = context.attrs.bool("keep_dims")?;
    let axes_shape = context.shape(1);
    if axes_shape.rank().is_some_and(|rank| rank > 1) {
        return Err(context.wrong(1, "a scalar or a vector", axes_shape));
    }
    let shape = match (context.shape(0).dims(), context.ints(1)?) {
        (Some(dims), Some(axes)) => {
            let reduced = reduced_axes(&axes, dims.len())?;
            let kept = dims.iter().zip(&reduced).filter_map(|(&dim, &reduced)| match reduced {
                false => Some(dim),
                true => keep.then_some(Some(1)),
            });
            PartialShape::ranked(kept)
        }
        (Some(dims), None) if keep => PartialShape::of_rank(dims.len()),
        _ => PartialShape::Unknown,
    };
    context.set(0, shape);
    Ok(())
}

/// For each dimension, whether a reduction along `axes` takes it away.
///
/// # Errors
///
/// [`Error::Index`] for an axis out of range, [`Error::Argument`] for one that is named twice.
pub fn reduced_axes(axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>> {
    let mut reduced: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    for &axis in axes {
        let flag = &mut reduced[normalize_axis(axis, rank)?];
        if *flag {
            return Err(Error::argument(
                "reduction",
                "axes",
                "named once each",
                format!("{axes:?}"),
            ));
        }
        *flag = true;
    }
    Ok(reduced)
}

/// For each dimension, whether a reduction of a sparse tensor along `axes` keeps it. An axis may be
/// named more than once.
///
/// # Errors
///
/// [`Error::Index`] for an axis out of range.
pub fn kept_axes(axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>> {
    let mut kept: SmallVec<[bool; 6]> = SmallVec::from_elem(true, rank);
    for &axis in axes {
        kept[normalize_axis(axis, rank)?] = false;
    }
    Ok(kept)
}

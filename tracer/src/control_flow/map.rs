//! Functions over the rows of tensors: mapped, scanned, folded.

use super::{
    stage::{RegionTrace, StagedLoop, repeat},
    structure::{tensors, with_tensors},
    tensor_array::{TensorArray, TensorArrayOptions, shape_of_rows},
    while_loop::{WhileOptions, while_loop_with},
};
use crate::{
    context,
    error::{Error, Result},
    func_graph::{Creation, FuncGraph, Semantics, unique_id},
    nest::Nest,
    ops,
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::{DType, PartialShape, TensorSpec, ValueType, error::SourceLocation};
use std::panic::Location;

/// The results of `f` for each row of the tensors in `elems`, stacked.
///
/// `elems` holds tensors of one length; `f` gets a value of the same structure with one row of each.
/// In a trace this is one loop.
///
/// ```
/// use ferroflow_tracer::{Tensor, map_fn};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let (x, y) = (Tensor::from([1, 2, 3]), Tensor::from([-1, 1, -1]));
/// let products = map_fn(|(x, y): (Tensor, Tensor)| x * y, &(x, y))?;
/// assert_eq!(products.to_vec::<i32>()?, [-1, 2, -3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of `f`; when the tensors have no rows, or different numbers of them.
#[track_caller]
pub fn map_fn<E: Nest, R: Nest>(mut f: impl FnMut(E) -> Result<R>, elems: &E) -> Result<R> {
    let location = Location::caller();
    let rows = Rows::of(elems)?;
    if context::is_tracing() {
        return staged_map(f, &rows, location);
    }
    let results = (0..rows.eager_len()?).map(|index| f(rows.at(&index_of(index))?));
    let results: Vec<NestedValue> =
        results.map(|result| Ok(result?.to_value())).collect::<Result<_>>()?;
    match results.first() {
        Some(first) => R::from_value(stacked(first, &results)?),
        None => no_results(f, &rows),
    }
}

fn index_of(index: usize) -> Tensor {
    Tensor::from(i32::try_from(index).unwrap_or(i32::MAX))
}

/// Values of one structure as one value of stacked tensors.
fn stacked(like: &NestedValue, values: &[NestedValue]) -> Result<NestedValue> {
    let leaves: Vec<Vec<Tensor>> = values.iter().map(tensors).collect();
    let columns = (0..tensors(like).len()).map(|column| {
        let column: Option<Vec<&Tensor>> = leaves.iter().map(|row| row.get(column)).collect();
        ops::pack(&column.unwrap_or_default())
    });
    let columns: Vec<Tensor> = columns.collect::<Result<_>>()?;
    Ok(with_tensors(like, &mut columns.into_iter()))
}

/// The result for no rows: as many results as rows, of the type that `f` gives.
fn no_results<E: Nest, R: Nest>(mut f: impl FnMut(E) -> Result<R>, rows: &Rows) -> Result<R> {
    let graph = FuncGraph::new("map", unique_id(), Semantics::Program, Creation::Forbidden);
    let value = {
        let _trace = context::enter_trace(Some(graph.clone()));
        let row = rows.elems.iter().map(|elem| graph.argument("row", row_type(elem)));
        let row = row.collect::<Result<Vec<_>>>()?;
        f(E::from_value(with_tensors(&rows.value, &mut row.into_iter()))?)?.to_value()
    };
    let empty = tensors(&value).into_iter().map(|tensor| {
        let dims = tensor.shape().dims().unwrap_or_default().to_vec();
        let sizes = std::iter::once(0).chain(dims.into_iter().map(|dim| dim.unwrap_or(0)));
        let shape = ferroflow_ir::Shape::new(sizes)?;
        Ok(ferroflow_ir::HostTensor::zeros(tensor.dtype(), shape)?.into())
    });
    let empty: Vec<Tensor> = empty.collect::<Result<_>>()?;
    R::from_value(with_tensors(&value, &mut empty.into_iter()))
}

fn staged_map<E: Nest, R: Nest>(
    mut f: impl FnMut(E) -> Result<R>,
    rows: &Rows,
    location: SourceLocation,
) -> Result<R> {
    let number = ValueType::new(DType::I32, PartialShape::scalar());
    let body = RegionTrace::open("map_while_body")?;
    let index = body.argument("i", number.clone())?;
    let result = f(rows.at(&index)?)?.to_value();
    let results = tensors(&result);
    let (mut types, mut outputs) = (vec![number], vec![(&index + 1)?]);
    for result in &results {
        let element = TensorSpec::new(result.dtype(), result.shape());
        let ty = ValueType::handle(DType::Variant, element);
        let list = body.argument("results", ty.clone())?;
        outputs.push(ops::tensor_list_set_item(&list, &index, result)?);
        types.push(ty);
    }
    let body = body.close(outputs)?;
    let condition = RegionTrace::open("map_while_cond")?;
    let params = types.iter().map(|ty| condition.argument("loop", ty.clone()));
    let params = params.collect::<Result<Vec<_>>>()?;
    let holds = params[0].less(&rows.len)?;
    let condition = condition.close(vec![holds])?;
    let mut initial = vec![Tensor::from(0)];
    for result in &results {
        let shape = shape_of_rows(&result.shape());
        initial.push(ops::tensor_list_reserve(&shape, &rows.len, result.dtype())?);
    }
    let (initial, types) = (&initial[..], &types[..]);
    let repeated = StagedLoop { condition, body, initial, types, parallel_iterations: 10 };
    let lists = repeat(repeated, location)?;
    let columns = lists.iter().skip(1).zip(&results).map(|(list, result)| {
        let attrs = ops::TensorListStackAttrs { num_elements: rows.static_len() };
        let shape = shape_of_rows(&result.shape());
        ops::tensor_list_stack_with(list, &shape, result.dtype(), &attrs)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    R::from_value(with_tensors(&result, &mut columns.into_iter()))
}

/// All states of `f` applied to the state before and one row of `elems` after the other, stacked.
///
/// ```
/// use ferroflow_tracer::{Tensor, scan};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let sums = scan(|sum, x: Tensor| sum + x, &Tensor::from([1, 2, 3, 4]), Tensor::from(0))?;
/// assert_eq!(sums.to_vec::<i32>()?, [1, 3, 6, 10]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`map_fn`]; when `f` changes structure, dtypes or shapes of the state.
#[track_caller]
pub fn scan<S: Nest, E: Nest>(
    mut f: impl FnMut(S, E) -> Result<S>,
    elems: &E,
    initial: S,
) -> Result<S> {
    let rows = Rows::of(elems)?;
    let first = initial.to_value();
    let arrays = tensors(&first).into_iter().map(|state| {
        let options =
            TensorArrayOptions { element_shape: state.shape(), ..TensorArrayOptions::default() };
        Ok(TensorArray::with_options(state.dtype(), &rows.len, options)?.to_value())
    });
    let arrays = NestedValue::List(arrays.collect::<Result<_>>()?);
    let step = |index: &Tensor, (state, arrays): (NestedValue, NestedValue)| {
        let state = f(S::from_value(state)?, rows.at(index)?)?.to_value();
        let arrays: Vec<TensorArray> = Nest::from_value(arrays)?;
        let written = arrays.iter().zip(tensors(&state)).map(|(array, x)| array.write(index, &x));
        let written = written.collect::<Result<Vec<_>>>()?;
        Ok((state, written.to_value()))
    };
    let (state, arrays) = each(&rows, Order::Forward, step, (first, arrays))?;
    let arrays: Vec<TensorArray> = Nest::from_value(arrays)?;
    let columns = arrays.iter().map(TensorArray::stack).collect::<Result<Vec<_>>>()?;
    S::from_value(with_tensors(&state, &mut columns.into_iter()))
}

/// The state after `f` was applied to it and the rows of `elems`, from the first to the last.
///
/// ```
/// use ferroflow_tracer::{Tensor, foldl};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let digits = Tensor::from([1, 2, 3]);
/// let number = foldl(|number, digit: Tensor| (number * 10)? + digit, &digits, Tensor::from(0))?;
/// assert_eq!(number.to_scalar::<i32>()?, 123);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`scan`].
#[track_caller]
pub fn foldl<S: Nest, E: Nest>(
    f: impl FnMut(S, E) -> Result<S>,
    elems: &E,
    initial: S,
) -> Result<S> {
    fold(f, elems, initial, Order::Forward)
}

/// The state after `f` was applied to it and the rows of `elems`, from the last to the first.
///
/// # Errors
///
/// As [`scan`].
#[track_caller]
pub fn foldr<S: Nest, E: Nest>(
    f: impl FnMut(S, E) -> Result<S>,
    elems: &E,
    initial: S,
) -> Result<S> {
    fold(f, elems, initial, Order::Backward)
}

#[track_caller]
fn fold<S: Nest, E: Nest>(
    mut f: impl FnMut(S, E) -> Result<S>,
    elems: &E,
    initial: S,
    order: Order,
) -> Result<S> {
    let rows = Rows::of(elems)?;
    each(&rows, order, |index, state| f(state, rows.at(index)?), initial)
}

/// Order of the rows.
#[derive(Clone, Copy)]
enum Order {
    Forward,
    Backward,
}

/// Repeats `step` for the index of each row.
#[track_caller]
fn each<S: Nest>(
    rows: &Rows,
    order: Order,
    mut step: impl FnMut(&Tensor, S) -> Result<S>,
    initial: S,
) -> Result<S> {
    let step = |(index, state): (Tensor, S)| {
        let row = match order {
            Order::Forward => index.clone(),
            Order::Backward => ((&rows.len - 1)? - &index)?,
        };
        Ok(((&index + 1)?, step(&row, state)?))
    };
    let more = |(index, _): &(Tensor, S)| index.less(&rows.len);
    let options = WhileOptions::default();
    Ok(while_loop_with(&options, more, step, (Tensor::from(0), initial))?.1)
}

/// A value whose tensors are taken row by row.
struct Rows {
    value: NestedValue,
    elems: Vec<Tensor>,
    /// Their number.
    len: Tensor,
}

impl Rows {
    fn of(elems: &impl Nest) -> Result<Rows> {
        let value = elems.to_value();
        let elems = tensors(&value);
        let wrong = |found: String| Error::Conversion {
            expected: "tensors with the same number of rows".into(),
            found,
        };
        let Some(first) = elems.first() else { return Err(wrong("no tensor".into())) };
        if let Some(scalar) = elems.iter().find(|elem| elem.shape().rank() == Some(0)) {
            return Err(wrong(format!("the scalar {scalar}")));
        }
        let known: Vec<usize> = elems.iter().filter_map(|elem| elem.shape().dim(0)).collect();
        if let Some(other) = known.iter().find(|&&len| len != known[0]) {
            return Err(wrong(format!("{} and {other} rows", known[0])));
        }
        let len = match known.first() {
            Some(&len) => index_of(len),
            None => first.shape_tensor()?.gather(&Tensor::from(0))?,
        };
        Ok(Rows { value, elems, len })
    }

    fn eager_len(&self) -> Result<usize> {
        Ok(usize::try_from(self.len.to_scalar::<i32>()?).unwrap_or(0))
    }

    /// The number of rows, or -1 where it is not known.
    fn static_len(&self) -> i64 {
        self.len.to_scalar::<i32>().map_or(-1, i64::from)
    }

    /// The value made of one row of each tensor.
    #[track_caller]
    fn at<E: Nest>(&self, index: &Tensor) -> Result<E> {
        let rows = self.elems.iter().map(|elem| elem.gather(index));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        E::from_value(with_tensors(&self.value, &mut rows.into_iter()))
    }
}

fn row_type(elem: &Tensor) -> ValueType {
    let shape = match elem.shape().dims() {
        Some([_, rest @ ..]) => PartialShape::ranked(rest.iter().copied()),
        Some([]) | None => PartialShape::Unknown,
    };
    ValueType::new(elem.dtype(), shape)
}

//! Tensor lists that rounds of a loop write.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, FunctionDef, HostTensor, PartialShape, Shape, ValueType};
use ferroflow_runtime::{
    CompileOptions, Context, ContextOptions, EagerTensor, RunOptions, TraceLevel,
};

/// A loop `while test(i, limit)` from `first` on, by steps of `step`. Each round doubles `h`, and writes it to the
/// list of `n_items`: at `i`, or at the same index in all rounds.
#[derive(Clone, Copy)]
struct Writing {
    /// The shape that the list asks of its items; none if it is not known.
    shape: Option<[i32; 1]>,
    n_items: i32,
    first: i32,
    step: i32,
    test: (&'static str, i32),
    index: Option<i32>,
}

const UP: Writing =
    Writing { shape: Some([2]), n_items: 3, first: 0, step: 1, test: ("Less", 3), index: None };
const DOWN: Writing = Writing { first: 2, step: -1, test: ("GreaterEqual", 0), ..UP };
const LAST: Writing = Writing { n_items: 1, index: Some(0), ..UP };

fn list() -> ValueType {
    ValueType::new(DType::Variant, PartialShape::scalar())
}

fn int() -> ValueType {
    ValueType::new(DType::I32, Shape::scalar())
}

/// The element type of the list, to be completed by what reads it.
fn element() -> Attrs {
    Attrs::new().with("element_dtype", DType::F32)
}

impl Writing {
    /// The function of `h` that runs the loop, and returns what `read` makes of the list and its element shape.
    fn function(self, read: Read) -> (FunctionDef, Vec<FunctionDef>) {
        let variables = [("i", int()), ("h", f32s(&[2])), ("list", list())];
        let condition = function("condition", &variables, |b, args| {
            let limit = b.constant("limit", HostTensor::scalar(self.test.1))?;
            let test = b.call(self.test.0, "test", &[args[0], limit])?[0];
            let finite = b.constant("finite", HostTensor::scalar_bool(true))?;
            b.call("LogicalAnd", "both", &[finite, test])
        });
        let body = function("body", &variables, |b, args| {
            let step = b.constant("step", HostTensor::scalar(self.step))?;
            let next = b.call("AddV2", "next", &[args[0], step])?[0];
            let h = b.call("AddV2", "double", &[args[1], args[1]])?[0];
            let index = match self.index {
                Some(index) => b.constant("index", HostTensor::scalar(index))?,
                None => args[0],
            };
            let written = [args[2], index, h];
            let list = b.call_with("TensorListSetItem", "written", element(), &written)?[0];
            Ok(vec![next, h, list])
        });
        let main = function("main", &[("h", f32s(&[2]))], |b, args| {
            let first = b.constant("first", HostTensor::scalar(self.first))?;
            let shape = match self.shape {
                Some(shape) => HostTensor::vector(&shape)?,
                None => HostTensor::scalar(-1i32),
            };
            let shape = b.constant("shape", shape)?;
            let length = b.constant("length", HostTensor::scalar(self.n_items))?;
            let list = b.call_with("TensorListReserve", "list", element(), &[shape, length])?[0];
            let attrs = Attrs::new()
                .with("T", vec![DType::I32, DType::F32, DType::Variant])
                .with("cond", func("condition"))
                .with("body", func("body"));
            let results = b.call_with("StatelessWhile", "loop", attrs, &[first, args[0], list])?;
            read(b, results[2], shape).map(|read| vec![results[1], read])
        });
        (main, vec![condition, body])
    }

    /// The results, or the error, and how often a list was written.
    fn run(self, hoist: bool, read: Read) -> (Result<[Vec<f32>; 2], String>, usize) {
        let compile = CompileOptions { hoist, verify: true, ..Default::default() };
        let context = Context::with_options(ContextOptions { compile, ..Default::default() });
        let (main, library) = self.function(read);
        let main = concrete(&context, main, library, Vec::new());
        let h: EagerTensor = vector(&[1.0, -0.5]);
        let options = RunOptions { trace_level: TraceLevel::Ops };
        match main.call_with_options(&options, &[&h]) {
            Ok((results, metadata)) => {
                let is_write = |op: &str| op == "TensorListSetItem";
                let writes = metadata.ops.iter().filter(|op| is_write(&op.op)).count();
                (Ok([0, 1].map(|index| values(&results, index))), writes)
            }
            Err(error) => (Err(error.to_string()), 0),
        }
    }
}

type Builder = ferroflow_ir::build::GraphBuilder;
type Read = fn(
    &mut Builder,
    ferroflow_ir::Outlet,
    ferroflow_ir::Outlet,
) -> ferroflow_ir::Result<ferroflow_ir::Outlet>;

fn stacked(
    b: &mut Builder,
    list: ferroflow_ir::Outlet,
    shape: ferroflow_ir::Outlet,
) -> ferroflow_ir::Result<ferroflow_ir::Outlet> {
    Ok(b.call_with("TensorListStack", "stacked", element(), &[list, shape])?[0])
}

/// Lists are tensors where all indices are known to be of items, and the results are the same.
#[test]
fn lists_become_tensors_where_indices_are_known_to_be_of_items() {
    let cases = [
        (UP, true),
        (DOWN, true),
        (Writing { test: ("LessEqual", 2), ..UP }, true),
        (Writing { step: 2, ..UP }, true),
        (Writing { first: 1, ..UP }, true),
        (Writing { first: 7, ..UP }, true),
        (Writing { test: ("Less", 2), ..UP }, true),
        (Writing { test: ("Greater", -1), ..DOWN }, true),
        (Writing { first: 1, ..DOWN }, true),
        (Writing { test: ("Less", 9), index: Some(1), ..UP }, true),
        (Writing { index: Some(0), ..UP }, true),
        (Writing { shape: None, ..UP }, true),
        (Writing { shape: None, test: ("Less", 2), ..UP }, true),
        (Writing { shape: None, ..LAST }, true),
        // Without a round nothing tells the shape of the items.
        (Writing { shape: None, first: 3, ..UP }, false),
        (Writing { shape: None, first: 3, ..LAST }, false),
        (LAST, true),
        (Writing { first: 3, ..LAST }, true),
        (Writing { test: ("Less", 4), ..UP }, false),
        (Writing { test: ("LessEqual", 3), ..UP }, false),
        (Writing { first: -1, ..UP }, false),
        (Writing { test: ("NotEqual", 3), ..UP }, false),
        (Writing { test: ("Greater", -2), ..DOWN }, false),
        (Writing { first: 3, ..DOWN }, false),
        (Writing { index: Some(3), ..UP }, false),
        (Writing { index: Some(-1), ..UP }, false),
    ];
    for (number, (writing, is_dense)) in cases.into_iter().enumerate() {
        let (plain, writes) = writing.run(false, stacked);
        let (dense, left) = writing.run(true, stacked);
        assert_eq!(dense, plain, "case {number}");
        let expected = if is_dense { 0 } else { writes };
        assert_eq!(left, expected, "case {number}");
        assert!(!is_dense || plain.is_ok(), "case {number}");
    }
}

#[test]
fn items_that_are_read_after_the_loop_are_rows() {
    let read: Read = |b, list, shape| {
        let last = b.constant("last", HostTensor::scalar(2i32))?;
        let item = [list, last, shape];
        Ok(b.call_with("TensorListGetItem", "item", element(), &item)?[0])
    };
    let (plain, dense) = (UP.run(false, read), UP.run(true, read));
    assert_eq!((plain.1, dense.1), (3, 0));
    assert_eq!(plain.0, dense.0);
    assert_eq!(plain.0.unwrap()[1], [8.0, -4.0]);
}

/// The only item is that of the last round, and zeros if there is no round.
#[test]
fn the_item_of_the_last_round_is_read_from_its_variable() {
    let item: Read = |b, list, shape| {
        let first = b.constant("only", HostTensor::scalar(0i32))?;
        Ok(b.call_with("TensorListGetItem", "item", element(), &[list, first, shape])?[0])
    };
    for read in [stacked, item] {
        let (results, writes) = LAST.run(true, read);
        assert_eq!((results, writes), (Ok([vec![8.0, -4.0], vec![8.0, -4.0]]), 0));
        let (results, _) = Writing { first: 3, ..LAST }.run(true, read);
        assert_eq!(results, Ok([vec![1.0, -0.5], vec![0.0, 0.0]]));
    }
}

/// The list is needed as such: for its length, or with another number of items.
#[test]
fn lists_that_are_read_otherwise_stay() {
    let length: Read = |b, list, _| {
        let length = b.call("TensorListLength", "items", &[list])?;
        let attrs = Attrs::new().with("DstT", DType::F32);
        Ok(b.call_with("Cast", "cast", attrs, &length)?[0])
    };
    let both: Read = |b, list, shape| {
        let item = stacked(b, list, shape)?;
        let added = b.call_with("TensorListPushBack", "longer", element(), &[list, shape]);
        assert!(added.is_err(), "an item of another type");
        let row = b.constant("row", HostTensor::vector(&[0.5f32, 0.5])?)?;
        let longer = b.call_with("TensorListPushBack", "longer", element(), &[list, row])?[0];
        let all = b.call_with("TensorListStack", "all", element(), &[longer, shape])?[0];
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        Ok(b.call_with("ConcatV2", "both", Attrs::new(), &[item, all, axis])?[0])
    };
    for read in [length, both] {
        let (plain, left) = (UP.run(false, read), UP.run(true, read));
        assert_eq!(left, plain);
        assert_eq!((left.1, left.0.is_ok()), (3, true));
    }
}

//! The primitives of XLA that apply functions of graphs: reductions, windows, scatters, sorts.

use super::{
    sets::*,
    xla::{NUMBER_TYPES, NUMBER_TYPES_AND_BOOL, numbers, same_shapes, wrong},
};
use crate::{
    attr::{Attrs, NameAttrList},
    dtype::DType,
    emit::{Composite, Value, call},
    error::Error,
    op::*,
    xla::{
        MessageNumbers, Size,
        reduce::{are_identities, combine, reduce_by, reduce_tree},
        region::{Monoid, call_function},
        scatter::{ScatterRows, scatter_by},
        select::{MOST_ELEMENTS, chosen_indices, select_and_scatter},
        size::{broadcast, product, rank, reshape, sizes, sizes_of_rank},
        sort::{SortKey, sort_by, sort_by_keys},
        window::{Windows, reduce_window},
    },
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "XlaReduce",
        summary: "Combines elements along axes by a function.",
        inputs: &[arg("input", "T"), arg("init_value", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBER_TYPES_AND_BOOL), ints("dimensions_to_reduce"), func("reducer")],
        lowering: Lowering::Composite(|c| reduced(c, 1)),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaReduceWindow",
        summary: "Combines the elements of windows by a function.",
        inputs: &[
            arg("input", "T"),
            arg("init_value", "T"),
            arg("window_dimensions", "Tindices").host(),
            arg("window_strides", "Tindices").host(),
            arg("base_dilations", "Tindices").host(),
            arg("window_dilations", "Tindices").host(),
            arg("padding", "Tindices").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBER_TYPES_AND_BOOL), ty("Tindices", INDEX), func("computation")],
        lowering: Lowering::Composite(windowed),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaScatter",
        summary: "Updates slices by a function, at places that vectors of indices name.",
        inputs: &[arg("operand", "T"), arg("scatter_indices", "Tindices"), arg("updates", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            func("update_computation"),
            string("dimension_numbers"),
            required_flag("indices_are_sorted"),
            ty("T", NUMBER_TYPES_AND_BOOL),
            ty("Tindices", INDEX),
        ],
        infer: crate::infer::unchanged,
        lowering: Lowering::Composite(scattered),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaSelectAndScatter",
        summary: "Chooses an element of each window and adds to it what a source has.",
        inputs: &[
            arg("operand", "T"),
            arg("window_dimensions", "Tindices").host(),
            arg("window_strides", "Tindices").host(),
            arg("padding", "Tindices").host(),
            arg("source", "T"),
            arg("init_value", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBER_TYPES), ty("Tindices", INDEX), func("select"), func("scatter")],
        infer: crate::infer::unchanged,
        lowering: Lowering::Composite(selected),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaVariadicReduce",
        summary: "Combines the elements of several tensors along axes by a function.",
        inputs: &[args("input", "N", "T"), args("init_value", "N", "T")],
        outputs: &[args("output", "N", "T")],
        attrs: &[
            int("N").at_least(1),
            ty("T", NUMBER_TYPES_AND_BOOL),
            ints("dimensions_to_reduce"),
            func("reducer"),
        ],
        lowering: Lowering::Composite(|c| reduced(c, c.n_inputs() / 2)),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaVariadicReduceV2",
        summary: "Combines the elements of several tensors along axes by a function.",
        inputs: &[args_list("inputs", "T"), args_list("init_values", "T")],
        outputs: &[args_list("outputs", "T")],
        attrs: &[types("T").at_least(1), ints("dimensions_to_reduce"), func("reducer")],
        lowering: Lowering::Composite(|c| reduced(c, c.n_inputs() / 2)),
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaVariadicSort",
        summary: "Sorts tensors along an axis by a comparison of their elements.",
        inputs: &[args_list("inputs", "T"), arg_of("dimension", DType::I32).host()],
        outputs: &[args_list("outputs", "T")],
        attrs: &[types("T").at_least(1), func("comparator"), required_flag("is_stable")],
        infer: same_shapes,
        lowering: Lowering::Composite(sorted),
        ..OpDef::PURE
    },
    OpDef {
        name: "_XlaReduceWindow",
        summary: "Combines the elements of windows of several tensors by a function.",
        inputs: &[
            args_list("inputs", "T"),
            args_list("init_values", "T"),
            arg_of("window_dimensions", DType::I64).host(),
            arg_of("window_strides", DType::I64).host(),
            arg_of("base_dilations", DType::I64).host(),
            arg_of("window_dilations", DType::I64).host(),
            arg_of("padding", DType::I64).host(),
        ],
        outputs: &[args_list("outputs", "T")],
        attrs: &[types("T").at_least(1), func("computation")],
        lowering: Lowering::Composite(windowed),
        ..OpDef::PURE
    },
    OpDef {
        name: "_XlaScatter",
        summary: "Updates slices of several tensors by a function, one update after the other.",
        inputs: &[
            args_list("operands", "T"),
            arg_of("scatter_indices", DType::I64),
            args_list("updates", "T"),
        ],
        outputs: &[args_list("outputs", "T")],
        attrs: &[
            types("T").at_least(1),
            func("update_computation"),
            string("dimension_numbers"),
            flag("unique_indices", false),
        ],
        infer: same_shapes,
        lowering: Lowering::Composite(scattered),
        ..OpDef::PURE
    },
];

/// A function attribute: what it is if ops have a name for it, and how it is called.
struct Callee<'c> {
    function: &'c NameAttrList,
    monoid: Option<Monoid>,
    results: Vec<DType>,
}

impl<'c> Callee<'c> {
    /// The function of an attribute, which works on elements one by one.
    fn of(c: &'c Composite<'_>, name: &str, n_args: usize, n_results: usize) -> Option<Callee<'c>> {
        let (function, def) = c.function(name)?;
        let refused = |what: &'static str| {
            c.fail(Error::Unsupported { op: c.op.name.into(), what: what.into() });
            None
        };
        if def.args.len() != n_args {
            return refused("a function of another number of arguments");
        }
        if !c.is_elementwise(&def) {
            return refused("a function of more than elementwise ops");
        }
        let ty = |(_, outlet): &(String, crate::Outlet)| def.graph.ty(*outlet).map(|ty| ty.dtype);
        let results: Option<Vec<DType>> = def.results.iter().map(ty).collect();
        let results = results.unwrap_or_default();
        if results.len() != n_results {
            return refused("a function of another number of results");
        }
        Some(Callee { function, monoid: Monoid::of_function(&def), results })
    }

    fn call<'e>(&self, args: &[Value<'e>]) -> Vec<Value<'e>> {
        call_function(self.function, args, &self.results)
    }

    fn pairwise<'e>(&self, a: &[Value<'e>], b: &[Value<'e>]) -> Vec<Value<'e>> {
        match (self.monoid, a, b) {
            (Some(monoid), [a], [b]) => vec![combine(monoid, *a, *b)],
            _ => self.call(&[a, b].concat()),
        }
    }
}

fn axes_of(c: &Composite<'_>, name: &str, rank: usize) -> Option<Vec<usize>> {
    let listed = c.attrs.ints(name).unwrap_or_default();
    let axes: Option<Vec<usize>> =
        listed.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect();
    axes.filter(|axes| crate::xla::region::distinct(axes))
}

/// Whether tensors have the same rank, and initial values none.
fn alike(xs: &[Value<'_>], initial: &[Value<'_>]) -> bool {
    xs.iter().all(|&x| rank(x) == rank(xs[0])) && initial.iter().all(|&value| rank(value) == 0)
}

fn reduced<'e>(c: &Composite<'e>, n: usize) -> Vec<Value<'e>> {
    let (xs, initial) = c.inputs().split_at(n);
    let Some(axes) = axes_of(c, "dimensions_to_reduce", rank(c.x(0))) else {
        return wrong(c, "dimensions_to_reduce", "axes of the input");
    };
    if !alike(xs, initial) {
        return wrong(c, "inputs", "of one rank, with scalars to begin with");
    }
    let Some(callee) = Callee::of(c, "reducer", 2 * n, n) else { return Vec::new() };
    if let ([x], [value], Some(monoid)) = (xs, initial, callee.monoid)
        && let Some(reduced) = reduce_by(*x, *value, &axes, monoid)
    {
        return vec![reduced];
    }
    reduce_tree(xs, initial, &axes, &|a, b| callee.pairwise(a, b))
}

fn windowed<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let first = c.n_inputs() - 5;
    let (xs, initial) = c.inputs()[..first].split_at(first / 2);
    let list = |index: usize| c.ints(first + index);
    let one = |values: Vec<i64>, n: usize| if values.is_empty() { vec![1; n] } else { values };
    let n = rank(c.x(0));
    let (padding, size) = (list(4), list(0));
    let windows = Windows {
        size,
        stride: one(list(1), n),
        base_dilation: one(list(2), n),
        dilation: one(list(3), n),
        padding: padding.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].into())).collect(),
    };
    if !windows.fits(n) || !alike(xs, initial) {
        return wrong(c, "window", "of as many axes as the inputs, with scalars to begin with");
    }
    let Some(callee) = Callee::of(c, "computation", 2 * xs.len(), xs.len()) else {
        return Vec::new();
    };
    let are_identities = are_identities(callee.monoid, initial);
    reduce_window(xs, initial, &windows, are_identities, &|a, b| callee.pairwise(a, b))
}

fn selected<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let n = rank(c.x(0));
    let padding = c.ints(3);
    let windows = Windows {
        size: c.ints(1),
        stride: c.ints(2),
        base_dilation: vec![1; n],
        dilation: vec![1; n],
        padding: padding.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].into())).collect(),
    };
    let elements = windows.size.iter().try_fold(1i64, |a, &b| a.checked_mul(b));
    if !windows.fits(n) || elements.is_none_or(|count| count > MOST_ELEMENTS) {
        return wrong(c, "window_dimensions", "of as many axes as the input, and not too large");
    }
    let select = Callee::of(c, "select", 2, 1);
    let (Some(select), Some(scatter)) = (select, Callee::of(c, "scatter", 2, 1)) else {
        return Vec::new();
    };
    let choose = |a: Value<'e>, b: Value<'e>| select.call(&[a, b]).first().copied().unwrap_or(a);
    let (operand, source, initial) = (c.x(0), c.x(4), c.x(5));
    let by_op = scatter
        .monoid
        .and_then(|monoid| select_and_scatter(operand, source, initial, &windows, &choose, monoid));
    if let Some(result) = by_op {
        return vec![result];
    }
    let indices = chosen_indices(operand, &windows, &choose);
    let count = product(&sizes(source));
    let whole = [product(&sizes(operand))];
    let rows = broadcast(initial.reshape(&[1]), &whole);
    let updates = reshape(source, &[count]);
    let indices = reshape(indices, &[count]);
    let rows = one_by_one(c, &[rows], indices, &[updates], &scatter);
    rows.into_iter().map(|row| reshape(row, &sizes(operand))).collect()
}

fn scattered<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let n = (c.n_inputs() - 1) / 2;
    let (operands, rest) = c.inputs().split_at(n);
    let (indices, updates) = (rest[0], &rest[1..]);
    let ranks = [rank(operands[0]), rank(indices), rank(updates[0])];
    let axes = numbers(c, MessageNumbers::scatter, |axes| axes.fits(ranks[0], ranks[1], ranks[2]));
    let callee = Callee::of(c, "update_computation", 2 * n, n);
    let (Some(axes), Some(callee)) = (axes, callee) else { return Vec::new() };
    if let ([operand], [update], Some(monoid)) = (operands, updates, callee.monoid)
        && let Some(result) = scatter_by(*operand, indices, *update, &axes, monoid)
    {
        return vec![result];
    }
    let rows = ScatterRows::new(operands[0], indices, updates[0], &axes);
    let before: Vec<Value<'e>> = operands.iter().map(|&x| rows.operand(x)).collect();
    let new: Vec<Value<'e>> = updates.iter().map(|&x| rows.updates(x)).collect();
    let after = one_by_one(c, &before, rows.places, &new, &callee);
    after.into_iter().map(|x| rows.result(x)).collect()
}

/// The most rounds of updates that a formula makes.
const MOST_ROUNDS: i64 = 2048;

/// Rows with updates made by a function: all at once where no position occurs twice, otherwise one
/// after the other.
fn one_by_one<'e>(
    c: &Composite<'e>,
    before: &[Value<'e>],
    places: Value<'e>,
    updates: &[Value<'e>],
    callee: &Callee<'_>,
) -> Vec<Value<'e>> {
    let count = sizes_of_rank(places, 1)[0].known().unwrap_or(0);
    let unique = c.attrs.bool("unique_indices").unwrap_or(false);
    let known = places.ints().map(|mut places| {
        places.retain(|&place| place >= 0);
        let n = places.len();
        places.sort_unstable();
        places.dedup();
        places.len() == n
    });
    if unique || known == Some(true) || count <= 1 {
        return round(before, places, updates, callee);
    }
    if count > MOST_ROUNDS {
        let what = format!("a function of its own for more than {MOST_ROUNDS} updates");
        c.fail(Error::Unsupported { op: c.op.name.into(), what: what.into() });
        return before.to_vec();
    }
    let mut rows = before.to_vec();
    for index in 0..count {
        let part = |x: Value<'e>| {
            let n = rank(x).max(1);
            let mut begin = vec![Size::Known(0); n];
            let mut size = sizes_of_rank(x, n);
            (begin[0], size[0]) = (Size::Known(index), Size::Known(1));
            crate::xla::size::window(x, &begin, &size)
        };
        let updates: Vec<Value<'e>> = updates.iter().map(|&x| part(x)).collect();
        rows = round(&rows, part(places), &updates, callee);
    }
    rows
}

/// Rows with updates at positions that differ; those at -1 are left out.
fn round<'e>(
    rows: &[Value<'e>],
    places: Value<'e>,
    updates: &[Value<'e>],
    callee: &Callee<'_>,
) -> Vec<Value<'e>> {
    let inside = places.maximum(places.literal(0i64));
    let current: Vec<Value<'e>> =
        rows.iter().map(|&x| call("GatherV2", [x, inside, x.literal(0i32)])).collect();
    let new = callee.call(&[current.as_slice(), updates].concat());
    let indices = reshape(places, &[sizes_of_rank(places, 1)[0], Size::Known(1)]);
    let attrs = || Attrs::new().with("bad_indices_policy", "IGNORE");
    let each = rows.iter().zip(new).zip(updates);
    each.map(|((&row, new), &like)| {
        let new = broadcast(new, &sizes(like));
        crate::emit::call_with("TensorScatterUpdate", attrs(), [row, indices, new])
    })
    .collect()
}

/// Sorts by the keys that a comparison consists of, or by the comparison itself.
fn sorted<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let n = c.n_inputs() - 1;
    let xs = &c.inputs()[..n];
    let dims = rank(xs[0]) as i64;
    let axis = c.ints(n).first().copied().unwrap_or(-1);
    let axis = if axis < 0 { axis + dims } else { axis };
    let Some(axis) = usize::try_from(axis).ok().filter(|&axis| (axis as i64) < dims) else {
        return wrong(c, "dimension", "an axis of the inputs");
    };
    if let Some(key) = single_key(c, xs) {
        return sort_by_keys(xs, axis, &[key]);
    }
    let Some(callee) = Callee::of(c, "comparator", 2 * n, 1) else { return Vec::new() };
    // Arguments come in pairs of elements of one tensor.
    sort_by(xs, axis, &|a, b| {
        let pairs: Vec<Value<'e>> = a.iter().zip(b).flat_map(|(&a, &b)| [a, b]).collect();
        callee.call(&pairs).first().copied().unwrap_or(a[0])
    })
}

/// The key of a comparison that is one op on the elements of one tensor of integers.
fn single_key<'e>(c: &Composite<'e>, xs: &[Value<'e>]) -> Option<SortKey<'e>> {
    let (_, def) = c.function("comparator")?;
    let (_, result) = def.results.first()?;
    let node = &def.graph[result.node];
    let descending = match node.op.name() {
        "Less" => false,
        "Greater" => true,
        _ => return None,
    };
    let [a, b] = node.inputs() else { return None };
    let position = |outlet: &crate::Outlet| def.args.iter().position(|&arg| arg == outlet.node);
    let (a, b) = (position(a)?, position(b)?);
    let tensor = a / 2;
    let reversed = match (a % 2, b % 2) {
        (0, 1) => false,
        (1, 0) => true,
        _ => return None,
    };
    let value = *xs.get(tensor).filter(|_| b / 2 == tensor)?;
    value.dtype().is_integer().then_some(SortKey { value, descending: descending != reversed })
}

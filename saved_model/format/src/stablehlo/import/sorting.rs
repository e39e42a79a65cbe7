//! `sort`: by the keys that a comparison consists of, or by the comparison itself.

use super::{
    super::{
        constant::malformed,
        module::{HloOp, HloRegion, ValueNumber},
    },
    HloEnv, HloOperands, HloValue, Import, ImportScope,
};
use ferroflow_ir::{
    Result,
    emit::Value,
    xla::{
        bits::total_order,
        carrier::widened,
        size::rank,
        sort::{SortKey, sort_by, sort_by_keys},
    },
};
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

/// Greatest depth of expressions of a comparison.
const DEPTH: usize = 64;

/// The cases of `comparison_direction`.
const EQUAL: u64 = 0;
const GREATER: u64 = 3;
const LESS: u64 = 5;

/// A comparison of two elements by one key: two values that are the same function of the one
/// element and of the other.
struct Order {
    key: ValueNumber,
    descending: bool,
}

/// The operations of a comparison, by their results.
struct Comparison<'a> {
    region: &'a HloRegion,
    ops: HashMap<ValueNumber, &'a HloOp>,
    /// The argument that is the same of the other element.
    other: HashMap<ValueNumber, ValueNumber>,
}

impl<'a> Comparison<'a> {
    fn new(region: &'a HloRegion) -> Comparison<'a> {
        let ops = region.ops.iter();
        let ops = ops.flat_map(|op| op.results.iter().map(move |(number, _)| (*number, op)));
        let pairs = region.args.chunks_exact(2);
        let other =
            pairs.flat_map(|pair| [(pair[0].0, pair[1].0), (pair[1].0, pair[0].0)]).collect();
        Comparison { region, ops: ops.collect(), other }
    }

    /// The keys, if the comparison is one by keys, the first one first.
    fn keys(&self) -> Option<Vec<Order>> {
        let last = self.region.ops.last().filter(|op| &*op.name == "return")?;
        let [result] = last.operands[..] else { return None };
        self.lexicographic(result, DEPTH)
    }

    /// `a < b`, or `a < b || (a == b && …)`.
    fn lexicographic(&self, value: ValueNumber, depth: usize) -> Option<Vec<Order>> {
        let depth = depth.checked_sub(1)?;
        let op = self.ops.get(&value)?;
        match (&*op.name, &op.operands[..]) {
            ("compare", _) => self.order(op).map(|order| vec![order]),
            ("or", &[a, b]) => self.chain(a, b, depth).or_else(|| self.chain(b, a, depth)),
            _ => None,
        }
    }

    /// The keys of `before || (equal && rest)`.
    fn chain(&self, before: ValueNumber, rest: ValueNumber, depth: usize) -> Option<Vec<Order>> {
        let first = self.ops.get(&before).filter(|op| &*op.name == "compare")?;
        let first_key = self.order(first)?;
        let both = self.ops.get(&rest).filter(|op| &*op.name == "and")?;
        let &[a, b] = &both.operands[..] else { return None };
        for (equal, rest) in [(a, b), (b, a)] {
            let Some(equal) = self.ops.get(&equal) else { continue };
            if self.is_equality(equal, first)
                && let Some(mut keys) = self.lexicographic(rest, depth)
            {
                keys.insert(0, first_key);
                return Some(keys);
            }
        }
        None
    }

    /// Whether an operation compares what another one compares, for equality.
    fn is_equality(&self, equal: &HloOp, first: &HloOp) -> bool {
        let same = |a: ValueNumber, b: ValueNumber| self.same(a, b, false, DEPTH);
        let (&[a, b], &[x, y]) = (&equal.operands[..], &first.operands[..]) else { return false };
        let total = |op: &HloOp| op.case("compare_type").ok();
        &*equal.name == "compare"
            && equal.case("comparison_direction").ok() == Some(EQUAL)
            && total(equal) == total(first)
            && (same(a, x) && same(b, y) || same(a, y) && same(b, x))
    }

    fn order(&self, op: &HloOp) -> Option<Order> {
        let &[a, b] = &op.operands[..] else { return None };
        let descending = match op.case("comparison_direction").ok()? {
            LESS => false,
            GREATER => true,
            _ => return None,
        };
        if !self.same(a, b, true, DEPTH) {
            return None;
        }
        match (self.side(a, DEPTH)?, self.side(b, DEPTH)?) {
            (0, 1) => Some(Order { key: a, descending }),
            (1, 0) => Some(Order { key: b, descending: !descending }),
            _ => None,
        }
    }

    /// Element of the two that a value depends on; `None` for both or neither.
    fn side(&self, value: ValueNumber, depth: usize) -> Option<usize> {
        let mut used = HashSet::new();
        self.arguments(value, depth, &mut used)?;
        let position = |number: &ValueNumber| {
            self.region.args.iter().position(|(own, _)| own == number).map(|at| at % 2)
        };
        let mut sides = used.iter().filter_map(position);
        let first = sides.next()?;
        sides.all(|side| side == first).then_some(first)
    }

    fn arguments(
        &self,
        value: ValueNumber,
        depth: usize,
        used: &mut HashSet<ValueNumber>,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        if self.other.contains_key(&value) {
            used.insert(value);
            return Some(());
        }
        let op = self.ops.get(&value)?;
        op.operands.iter().try_for_each(|&operand| self.arguments(operand, depth, used))
    }

    /// Whether two values are the same function, with the elements exchanged if `swapped`.
    fn same(&self, a: ValueNumber, b: ValueNumber, swapped: bool, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if let Some(&other) = self.other.get(&a) {
            return b == if swapped { other } else { a };
        }
        if a == b && !swapped {
            return true;
        }
        let (Some(x), Some(y)) = (self.ops.get(&a), self.ops.get(&b)) else { return false };
        x.name == y.name
            && x.attrs == y.attrs
            && x.regions.is_empty()
            && y.regions.is_empty()
            && x.results.len() == 1
            && x.operands.len() == y.operands.len()
            && x.operands.iter().zip(&y.operands).all(|(&a, &b)| self.same(a, b, swapped, depth))
    }
}

impl Import<'_> {
    pub(super) fn sort<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let first = x.first().ok_or_else(|| malformed(op, "it has an operand"))?;
        let dims = rank(*first);
        let axis = op.int("dimension")?;
        let axis = if axis < 0 { axis.saturating_add(dims as i64) } else { axis };
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < dims);
        let axis = axis.ok_or_else(|| malformed(op, "`dimension` is an axis"))?;
        let region = self.region(op, 0)?;
        if region.args.len() != 2 * x.len() {
            return Err(malformed(op, "a comparison takes two elements of each operand"));
        }
        if let Some(orders) = Comparison::new(region).keys() {
            let keys = self.keys(scope, region, x, env, &orders)?;
            return Ok(sort_by_keys(x, axis, &keys));
        }
        let error = RefCell::new(None);
        let sorted = sort_by(x, axis, &|a, b| {
            let pairs: Vec<Value<'e>> = a.iter().zip(b).flat_map(|(&a, &b)| [a, b]).collect();
            match self.applied(scope, region, &pairs, env) {
                Ok(results) => results.first().copied().unwrap_or(a[0]),
                Err(found) => {
                    error.borrow_mut().get_or_insert(found);
                    a[0]
                }
            }
        });
        error.into_inner().map_or(Ok(sorted), Err)
    }

    /// The keys of whole tensors. Floats compare as a total order compares them, which tells
    /// zeros apart, or as numbers, which does not.
    fn keys<'e>(
        &self,
        scope: ImportScope<'e>,
        region: &HloRegion,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
        orders: &[Order],
    ) -> Result<Vec<SortKey<'e>>> {
        let doubled: Vec<Value<'e>> = x.iter().flat_map(|&value| [value, value]).collect();
        let mut inner: HloEnv<'e> = env.clone();
        for ((number, _), &value) in region.args.iter().zip(&doubled) {
            inner.insert(*number, HloValue::Tensor(value));
        }
        self.ops(ImportScope { operands: HloOperands::Elements, ..scope }, region, &mut inner)?;
        let total = |order: &Order| {
            let mut ops = region.ops.iter();
            ops.any(|op| {
                op.operands.contains(&order.key) && op.case("compare_type").ok() == Some(2)
            })
        };
        orders
            .iter()
            .map(|order| {
                let Some(HloValue::Tensor(value)) = inner.get(&order.key) else {
                    return Err(ferroflow_ir::Error::NotFound {
                        kind: "value",
                        name: "the key of a comparison".into(),
                    });
                };
                let value = widened(*value);
                let value = match value.dtype().is_float() && !total(order) {
                    // Adding zero makes the zeros equal.
                    true => total_order(value + 0.0),
                    false => value,
                };
                Ok(SortKey { value, descending: order.descending })
            })
            .collect()
    }
}

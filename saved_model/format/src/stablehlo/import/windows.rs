//! Reductions, windows, scatters: operations that apply a region to elements.

use super::{
    super::{
        constant::{malformed, unsupported},
        module::{HloOp, HloRegion},
    },
    HloEnv, Import, ImportScope, numbers,
};
use ferroflow_ir::{
    AttrValue, Attrs, DType, Error, NameAttrList, Result,
    emit::{Value, calls_with},
    xla::{
        reduce::{are_identities, combine, reduce_by},
        region::Monoid,
        scatter::{ScatterAxes, scatter_by},
        select::{MOST_ELEMENTS, select_and_scatter},
        size::{Size, broadcast, rank, sizes},
        window::{Windows, reduce_window},
    },
};
use std::cell::RefCell;

/// A region that is applied where only values are returned: its first error waits.
struct Applied<'i, 'm, 'e, 'a> {
    import: &'i Import<'m>,
    scope: ImportScope<'e>,
    region: &'a HloRegion,
    env: &'a HloEnv<'e>,
    error: RefCell<Option<Error>>,
}

impl<'e> Applied<'_, '_, 'e, '_> {
    fn call(&self, args: &[Value<'e>]) -> Vec<Value<'e>> {
        match self.import.applied(self.scope, self.region, args, self.env) {
            Ok(results) => results,
            Err(error) => {
                self.error.borrow_mut().get_or_insert(error);
                args[..args.len() / 2].to_vec()
            }
        }
    }

    fn finish<T>(self, value: T) -> Result<T> {
        self.error.into_inner().map_or(Ok(value), Err)
    }
}

impl<'m> Import<'m> {
    fn apply<'i, 'e, 'a>(
        &'i self,
        scope: ImportScope<'e>,
        region: &'a HloRegion,
        env: &'a HloEnv<'e>,
    ) -> Applied<'i, 'm, 'e, 'a> {
        Applied { import: self, scope, region, env, error: RefCell::new(None) }
    }

    /// Operands and their initial values.
    fn halves<'a, 'e>(
        &self,
        op: &HloOp,
        x: &'a [Value<'e>],
    ) -> Result<(&'a [Value<'e>], &'a [Value<'e>])> {
        let (xs, initial) = x.split_at(x.len() / 2);
        let same = xs.iter().all(|&x| rank(x) == rank(xs[0]));
        let scalars = initial.iter().all(|&value| rank(value) == 0);
        match !xs.is_empty() && x.len() == 2 * op.results.len() && same && scalars {
            true => Ok((xs, initial)),
            false => Err(malformed(op, "it has an initial value for each operand")),
        }
    }

    pub(super) fn reduce<'e>(
        &self,
        _scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let (xs, initial) = self.halves(op, x)?;
        let axes = op.axes("dimensions", rank(xs[0]))?;
        let region = self.region(op, 0)?;
        if let ([x], [initial], Some(monoid)) = (xs, initial, self.monoid(region))
            && let Some(result) = reduce_by(*x, *initial, &axes, monoid)
        {
            return Ok(vec![result]);
        }
        self.no_captures(op, env)?;
        let function = self.scalar_function(region, "reducer")?;
        let axes: Vec<i64> = axes.into_iter().map(|axis| axis as i64).collect();
        let attrs = Attrs::new()
            .with("T", xs.iter().map(|x| x.dtype()).collect::<Vec<_>>())
            .with("dimensions_to_reduce", axes)
            .with("reducer", AttrValue::Func(NameAttrList::new(function.name.clone())));
        Ok(calls_with("XlaVariadicReduceV2", attrs, x).values().to_vec())
    }

    /// Functions that ops call take nothing from around.
    fn no_captures(&self, op: &HloOp, env: &HloEnv<'_>) -> Result<()> {
        match self.uses_values(op, env)? {
            false => Ok(()),
            true => Err(unsupported(op, "a function of scalars that uses values around it")),
        }
    }

    fn windows<'e>(&self, op: &HloOp, rank: usize) -> Result<Windows<'e>> {
        let one = |name: &str| -> Result<Vec<i64>> {
            let ints = op.ints(name)?;
            Ok(if ints.is_empty() { vec![1; rank] } else { ints })
        };
        let padding = op.ints("padding")?;
        let padding = if padding.is_empty() { vec![0; 2 * rank] } else { padding };
        let windows = Windows {
            size: one("window_dimensions")?,
            stride: one("window_strides")?,
            base_dilation: one("base_dilations")?,
            dilation: one("window_dilations")?,
            padding: padding.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].into())).collect(),
        };
        match windows.fits(rank) {
            true => Ok(windows),
            false => Err(malformed(op, "a window has as many axes as its operand")),
        }
    }

    pub(super) fn reduce_window<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let (xs, initial) = self.halves(op, x)?;
        let windows = self.windows(op, rank(xs[0]))?;
        self.windowed(scope, xs, initial, &windows, self.region(op, 0)?, env)
    }

    pub(super) fn windowed<'e>(
        &self,
        scope: ImportScope<'e>,
        xs: &[Value<'e>],
        initial: &[Value<'e>],
        windows: &Windows<'e>,
        region: &HloRegion,
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let monoid = self.monoid(region);
        let applied = self.apply(scope, region, env);
        let function = |a: &[Value<'e>], b: &[Value<'e>]| match (monoid, a, b) {
            (Some(monoid), [a], [b]) => vec![combine(monoid, *a, *b)],
            _ => applied.call(&[a, b].concat()),
        };
        let are_identities = are_identities(monoid, initial);
        let results = reduce_window(xs, initial, windows, are_identities, &function);
        applied.finish(results)
    }

    pub(super) fn select_and_scatter<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let [operand, source, initial] = *super::exactly(op, x)?;
        let windows = self.windows(op, rank(operand))?;
        let elements = windows.size.iter().try_fold(1i64, |a, &b| a.checked_mul(b));
        if elements.is_none_or(|count| count > MOST_ELEMENTS) {
            return Err(unsupported(op, format!("windows of more than {MOST_ELEMENTS} elements")));
        }
        let (select, scatter) = (self.region(op, 0)?, self.region(op, 1)?);
        if let Some(monoid) = self.monoid(scatter) {
            let applied = self.apply(scope, select, env);
            let choose =
                |a: Value<'e>, b: Value<'e>| applied.call(&[a, b]).first().copied().unwrap_or(a);
            let result = select_and_scatter(operand, source, initial, &windows, &choose, monoid);
            let result = applied.finish(result)?;
            if let Some(result) = result {
                return Ok(vec![result]);
            }
        }
        self.no_captures(op, env)?;
        let function = |region: &HloRegion, name: &str| -> Result<AttrValue> {
            let function = self.scalar_function(region, name)?;
            Ok(AttrValue::Func(NameAttrList::new(function.name.clone())))
        };
        let attrs = Attrs::new()
            .with("select", function(select, "select")?)
            .with("scatter", function(scatter, "scatter")?);
        let padding: Vec<Size<'e>> =
            windows.padding.iter().flat_map(|(low, high)| [*low, *high]).collect();
        let padding = ferroflow_ir::xla::size::vector(&padding, operand);
        let n = windows.size.len() as i64;
        let inputs = [
            operand,
            operand.int_vector(&windows.size),
            operand.int_vector(&windows.stride),
            padding.reshape(&[n, 2]),
            source,
            initial,
        ];
        Ok(calls_with("XlaSelectAndScatter", attrs, &inputs).values().to_vec())
    }

    pub(super) fn scatter<'e>(
        &self,
        _scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let n = op.results.len();
        if n == 0 || x.len() != 2 * n + 1 {
            return Err(malformed(op, "it has operands, indices and updates"));
        }
        let (operands, indices, updates) = (&x[..n], x[n], &x[n + 1..]);
        let ranks = [rank(operands[0]), rank(indices), rank(updates[0])];
        let axes = ScatterAxes {
            window: op.axes("update_window_dims", ranks[2])?,
            inserted: op.axes("inserted_window_dims", ranks[0])?,
            operand_batch: op.axes("input_batching_dims", ranks[0])?,
            indices_batch: op.axes("scatter_indices_batching_dims", ranks[1])?,
            start_map: op.axes("scatter_dims_to_operand_dims", ranks[0])?,
            index_vector: op.axis("index_vector_dim", ranks[1] + 1)?,
        };
        if !axes.fits(ranks[0], ranks[1], ranks[2]) {
            return Err(malformed(op, "its axes are those of its operands"));
        }
        let region = self.region(op, 0)?;
        if let ([operand], [update], Some(monoid)) = (operands, updates, self.monoid(region)) {
            if monoid == Monoid::First {
                return Ok(vec![*operand]);
            }
            if let Some(result) = scatter_by(*operand, indices, *update, &axes, monoid) {
                return Ok(vec![result]);
            }
        }
        self.no_captures(op, env)?;
        let function = self.scalar_function(region, "update")?;
        let attrs = Attrs::new()
            .with("T", operands.iter().map(|x| x.dtype()).collect::<Vec<_>>())
            .with("update_computation", AttrValue::Func(NameAttrList::new(function.name.clone())))
            .with("dimension_numbers", numbers::scatter(&axes))
            .with("unique_indices", op.flag("unique_indices")?);
        let inputs: Vec<Value<'e>> = operands
            .iter()
            .copied()
            .chain([indices.cast(DType::I64)])
            .chain(updates.iter().copied())
            .collect();
        Ok(calls_with("_XlaScatter", attrs, &inputs).values().to_vec())
    }

    pub(super) fn map<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let first = x.first().ok_or_else(|| malformed(op, "it has an operand"))?;
        let results = self.applied(scope, self.region(op, 0)?, x, env)?;
        let shape = sizes(*first);
        Ok(results.into_iter().map(|result| broadcast(result, &shape)).collect())
    }
}

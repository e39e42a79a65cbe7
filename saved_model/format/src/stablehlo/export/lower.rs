//! The walk over a specialised function.

use super::{
    super::module::{HloRegion, TensorType},
    block::{Block, Numbers, Typed},
    control, kernel, list, scalar, slices, view,
};
use ferroflow_ir::{
    DType, Error, Expr, FunctionDef, FunctionLibrary, Graph, Limits, Lowering, NodeDef, NodeId,
    OpDef, Outlet, PartialShape, ReduceKind, Result, ValueType,
    expr::Constant,
    hash::FastMap,
    infer::{InputFacts, OpContext, infer, reduced_axes},
    op::CallKind,
    pass::{
        execution::constant,
        specialize::{Argument, Evaluate, Specialized, Specializer},
    },
};
use smallvec::SmallVec;

/// The body of a function, the types of its results, and the number of values.
pub(super) fn function(
    def: &FunctionDef,
    library: &FunctionLibrary,
    args: &[ValueType],
    evaluate: &dyn Evaluate,
    limits: &Limits,
) -> Result<(HloRegion, Vec<TensorType>, usize)> {
    let args: Vec<Argument> = args.iter().cloned().map(Argument::from).collect();
    let specializer = Specializer { library, evaluate, limits };
    let mut specialized = specializer.specialize(def, &args)?;
    let mut own = None;
    while let Some(changed) = list::with_shapes(own.as_ref().unwrap_or(def), &specialized)? {
        specialized = specializer.specialize(&changed, &args)?;
        own = Some(changed);
    }
    let numbers = Numbers::default();
    let mut block = Block::new(&numbers);
    let mut values = Vec::with_capacity(args.len());
    for (index, arg) in args.iter().enumerate() {
        let located = |error: Error| error.at_node(def.arg_name(index), "_Arg", &def.name);
        let (dtype, dims) = known(&arg.ty).map_err(located)?;
        values.push(numbers.value(dtype, &dims));
    }
    let results = body(&mut block, &specialized, &values)?;
    let types = results.iter().map(Typed::tensor_type).collect();
    let region = block.region(&values, &results.iter().collect::<Vec<_>>());
    Ok((region, types, numbers.count()))
}

/// Adds the operations of a body, whose arguments these are; its results.
pub(super) fn body(
    block: &mut Block<'_>,
    function: &Specialized,
    args: &[Typed],
) -> Result<Vec<Typed>> {
    if let Some(error) = &function.failure {
        return Err(error.clone());
    }
    let mut values: FastMap<Outlet, Typed> =
        function.args.iter().copied().zip(args.iter().cloned()).collect();
    let graph = &function.graph;
    let roots = function.results.iter().map(|outlet| outlet.node);
    let live = graph.reachable_from(roots);
    for id in graph.topological_order()? {
        let is_argument = function.args.iter().any(|arg| arg.node == id);
        if is_argument || !live.contains(&id) {
            continue;
        }
        let node = &graph[id];
        let location = |error: Error| node.locate("")(error);
        let results = LoweredNode::new(graph, id, &values)
            .and_then(|node| node.lower(block, function))
            .map_err(location)?;
        for (index, value) in results.into_iter().enumerate() {
            values.insert(Outlet::new(id, index), value);
        }
    }
    function
        .results
        .iter()
        .map(|outlet| {
            let absent = || Error::NotFound { kind: "result", name: format!("{outlet:?}") };
            values.get(outlet).cloned().ok_or_else(absent)
        })
        .collect()
}

/// The dtype and the sizes of a type that StableHLO has a form of.
fn known(ty: &ValueType) -> Result<(DType, Vec<usize>)> {
    let refused = |what: String| Error::Unsupported { op: "StableHLO".into(), what: what.into() };
    let shape = ty.shape.known().ok_or_else(|| {
        refused(format!("the shape {}, which is not known before the call", ty.shape))
    })?;
    match ty.dtype {
        DType::String | DType::Resource | DType::Variant => {
            Err(refused(format!("values of dtype {}", ty.dtype)))
        }
        dtype => Ok((dtype, shape.dims().to_vec())),
    }
}

/// A node with its operands.
pub(super) struct LoweredNode<'a> {
    pub(super) graph: &'a Graph,
    pub(super) id: NodeId,
    pub(super) node: &'a NodeDef,
    pub(super) op: &'static OpDef,
    inputs: SmallVec<[Option<Typed>; 4]>,
    /// The types of its inputs and results; the graph does not know those that come out of lists.
    types: SmallVec<[ValueType; 4]>,
    results: Vec<ValueType>,
}

impl<'a> LoweredNode<'a> {
    fn new(
        graph: &'a Graph,
        id: NodeId,
        values: &FastMap<Outlet, Typed>,
    ) -> Result<LoweredNode<'a>> {
        let node = &graph[id];
        let op = node.op.def().ok_or_else(|| Error::Unsupported {
            op: node.op.name().to_string().into(),
            what: "no op of this name is known".into(),
        })?;
        let inputs: SmallVec<[Option<Typed>; 4]> =
            node.inputs().iter().map(|input| values.get(input).cloned()).collect();
        let ty = |(&outlet, input): (&Outlet, &Option<Typed>)| {
            let own = graph.ty(outlet).cloned();
            let is_list = own.as_ref().is_some_and(|ty| ty.dtype == DType::Variant);
            match input {
                Some(input) if !is_list => {
                    let shape = PartialShape::ranked(input.dims.iter().copied().map(Some));
                    Some(ValueType::new(input.dtype, shape))
                }
                _ => own,
            }
        };
        let types: Option<SmallVec<[ValueType; 4]>> =
            node.inputs().iter().zip(&inputs).map(ty).collect();
        let types = types.unwrap_or_default();
        let mut results = node.outputs().to_vec();
        if results.iter().any(|ty| !ty.shape.is_known()) && op.call == CallKind::None {
            results = infer(op, &node.attrs, &facts(graph, node, &types))?.to_vec();
        }
        Ok(LoweredNode { graph, id, node, op, inputs, types, results })
    }

    /// The error that StableHLO has no form of this node.
    pub(super) fn refused(&self, what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::Unsupported { op: self.op.name.into(), what: what.into() }
    }

    /// Operand `index`.
    pub(super) fn x(&self, index: usize) -> Result<&Typed> {
        let input = self.inputs.get(index).and_then(Option::as_ref);
        input.ok_or_else(|| self.refused(format!("input {index}, which has no form in StableHLO")))
    }

    pub(super) fn xs(&self) -> Result<Vec<&Typed>> {
        (0..self.inputs.len()).map(|index| self.x(index)).collect()
    }

    /// The integers of an operand that is a constant.
    pub(super) fn ints(&self, index: usize) -> Result<Vec<i64>> {
        let value = self.node.inputs().get(index).and_then(|&input| constant(self.graph, input));
        let value = value.ok_or_else(|| {
            self.refused(format!("input {index} that is no constant once shapes are known"))
        })?;
        value.to_i64s()
    }

    pub(super) fn int(&self, index: usize) -> Result<i64> {
        self.ints(index)?.first().copied().ok_or_else(|| self.refused("an empty operand"))
    }

    /// Type of result `index`: dtype and sizes.
    pub(super) fn result(&self, index: usize) -> Result<(DType, Vec<usize>)> {
        let ty = self.results.get(index);
        known(ty.ok_or_else(|| self.refused("a result without a type"))?)
    }

    fn lower(&self, block: &mut Block<'_>, function: &Specialized) -> Result<Vec<Typed>> {
        if let (true, Ok(value)) = (self.op.inputs.is_empty(), self.node.attrs.tensor("value")) {
            return match value.is_plain() {
                true => Ok(vec![block.constant(value)]),
                // Those that only steer ops of the host are never asked for.
                false => Ok(Vec::new()),
            };
        }
        if self.op.call != CallKind::None {
            return control::lower(block, self, function);
        }
        match self.op.lowering {
            Lowering::Elementwise(_) => Ok(vec![self.elementwise(block)?]),
            Lowering::Reduce(kind) => Ok(vec![self.reduce(block, kind)?]),
            Lowering::Alias(_) => Ok(vec![self.alias(block)?]),
            Lowering::View(_) if self.has_open_begin() => {
                let (x, begin) = (self.x(0)?.clone(), self.x(1)?.clone());
                Ok(vec![slices::slice(block, &x, &begin, &self.result(0)?.1)])
            }
            Lowering::View(_) => self.views(block),
            Lowering::Kernel | Lowering::HostKernel(_) => kernel::lower(block, self),
            _ => match list::lower(block, self) {
                Some(result) => Ok(vec![result?]),
                None => Err(self.refused("StableHLO has no form of it")),
            },
        }
    }

    /// Whether it is a slice of known size that begins where only data tells.
    fn has_open_begin(&self) -> bool {
        let begin = self.node.inputs().get(1);
        self.op.name == "Slice" && begin.is_some_and(|&begin| constant(self.graph, begin).is_none())
    }

    fn elementwise(&self, block: &mut Block<'_>) -> Result<Typed> {
        let inputs: Vec<Typed> = self.xs()?.into_iter().cloned().collect();
        let dtypes: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
        let (dtype, dims) = self.result(0)?;
        let expr = Expr::of(self.op, &self.node.attrs, &dtypes, dtype)?;
        scalar::expression(block, &expr, &inputs, &dims)
    }

    /// Sums are of `f32` where elements are narrower floats.
    fn reduce(&self, block: &mut Block<'_>, kind: ReduceKind) -> Result<Typed> {
        let x = self.x(0)?;
        let (dtype, dims) = self.result(0)?;
        let axes = reduced_axes(&self.ints(1)?, x.rank())?;
        let axes: Vec<usize> = (0..x.rank()).filter(|&axis| axes[axis]).collect();
        let count: usize = axes.iter().map(|&axis| x.dims[axis]).product();
        let is_narrow = matches!(x.dtype, DType::F16 | DType::BF16);
        let sums = if is_narrow { DType::F32 } else { x.dtype };
        let x = block.convert(x, sums);
        let scalar = |block: &mut Block<'_>, value: Constant| -> Result<Typed> {
            Ok(block.constant(&scalar::element(value, sums)?))
        };
        let by = |block: &mut Block<'_>, x: &Typed, initial: Constant, by: &str| {
            let initial = scalar(block, initial)?;
            Ok::<_, Error>(block.reduce(x, &initial, &axes, by))
        };
        let zero = Constant::Int(0);
        let reduced = match kind {
            ReduceKind::Sum => by(block, &x, zero, "add")?,
            ReduceKind::Mean => {
                let sum = by(block, &x, zero, "add")?;
                let divisor = scalar::element(Constant::Int(count as i128), sums)?;
                let divisor = block.splat(sums, divisor.bytes(), &sum.dims);
                block.same("divide", &[&sum, &divisor])
            }
            ReduceKind::Prod => by(block, &x, Constant::Int(1), "multiply")?,
            ReduceKind::Max => by(block, &x, bound(sums, false), "maximum")?,
            ReduceKind::Min => by(block, &x, bound(sums, true), "minimum")?,
            ReduceKind::All => by(block, &x, Constant::Int(1), "and")?,
            ReduceKind::Any => by(block, &x, zero, "or")?,
            ReduceKind::EuclideanNorm if sums.is_complex() => {
                return Err(self.refused("norms of complex numbers"));
            }
            ReduceKind::EuclideanNorm => {
                let squares = block.same("multiply", &[&x, &x]);
                let sum = by(block, &squares, zero, "add")?;
                block.same("sqrt", &[&sum])
            }
        };
        let narrow = block.convert(&reduced, dtype);
        Ok(block.reshape(&narrow, &dims))
    }

    fn alias(&self, block: &mut Block<'_>) -> Result<Typed> {
        let (x, (dtype, dims)) = (self.x(0)?, self.result(0)?);
        if x.dtype != dtype {
            return Ok(block.op("bitcast_convert", Vec::new(), &[x], (dtype, &dims)));
        }
        Ok(block.reshape(x, &dims))
    }

    fn views(&self, block: &mut Block<'_>) -> Result<Vec<Typed>> {
        let Lowering::View(rule) = self.op.lowering else { return Ok(Vec::new()) };
        let inputs = facts(self.graph, self.node, &self.types);
        let mut context = OpContext::new(self.op, &self.node.attrs, &inputs)?;
        context.infer()?;
        let views = rule(&context)?;
        let x = self.x(0)?;
        let each = views.iter().enumerate().map(|(index, own)| {
            let (_, dims) = self.result(index)?;
            let made = view::view(block, x, own, &dims);
            made.ok_or_else(|| self.refused("a view that is no slice, transposition or broadcast"))
        });
        each.collect()
    }
}

/// The inputs of a node of these types, with the values of those that are constants.
fn facts<'f>(
    graph: &'f Graph,
    node: &NodeDef,
    types: &'f [ValueType],
) -> SmallVec<[InputFacts<'f>; 4]> {
    let inputs = node.inputs().iter().zip(types);
    inputs.map(|(&input, ty)| InputFacts { ty, value: constant(graph, input) }).collect()
}

/// The least value of a dtype, or the greatest.
pub(super) fn bound(dtype: DType, greatest: bool) -> Constant {
    if dtype.is_float() {
        return Constant::Float(if greatest { f64::INFINITY } else { f64::NEG_INFINITY });
    }
    let bits = dtype.size().unwrap_or(8) as u32 * 8;
    Constant::Int(match (dtype, dtype.is_signed_integer(), greatest) {
        (DType::Bool, _, _) => i128::from(greatest),
        (_, true, true) => (1 << (bits - 1)) - 1,
        (_, true, false) => -(1 << (bits - 1)),
        (_, false, true) => (1 << bits) - 1,
        (_, false, false) => 0,
    })
}

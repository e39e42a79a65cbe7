//! The import of a module: a function of ours for each of its functions and regions.

mod control;
mod custom_call;
mod elementwise;
mod lapack;
mod linalg;
mod numbers;
mod platform;
mod region;
mod shaping;
mod sorting;
mod windows;

use super::{
    artifact,
    constant::{malformed, value_type},
    module::{HloFunction, HloModule, HloOp, HloRegion, Type, ValueNumber},
};
use ferroflow_ir::{
    AttrValue, Attrs, DType, Error, FunctionDef, FunctionLibrary, HostTensor, Limits, NameAttrList,
    Result, ValueType,
    build::Sketch,
    emit::{Emit, Emitter, Value, ValueId},
    xla::carrier::{carrier, widened},
};
use platform::Platform;
use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The function of a call of `XlaCallModule`, from its attributes.
///
/// # Errors
///
/// What is wrong with the module, with the operation where it is.
pub(crate) fn import(attrs: &Attrs, library: &FunctionLibrary) -> Result<Arc<FunctionDef>> {
    import_within(attrs, library, &Limits::default())
}

pub(super) fn import_within(
    attrs: &Attrs,
    library: &FunctionLibrary,
    limits: &Limits,
) -> Result<Arc<FunctionDef>> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Some(AttrValue::String(bytes)) = attrs.get("module") else {
        return Err(Error::argument("XlaCallModule", "module", "given", "nothing"));
    };
    let module = artifact::read(bytes)?;
    let prefix = format!("__stablehlo_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let callees = attrs.funcs("function_list").unwrap_or_default().to_vec();
    let platform = Platform::new(&module, platform_number(attrs)?);
    let import = Import {
        module: &module,
        library,
        limits,
        callees,
        prefix,
        n_parts: Cell::new(0),
        n_nodes: Cell::new(0),
        functions: RefCell::default(),
        open: RefCell::default(),
        definitions: definitions(&module),
        platform,
    };
    import.main(attrs)
}

/// The operations of a module by their results.
fn definitions(module: &HloModule) -> HashMap<ValueNumber, &HloOp> {
    module.ops().flat_map(|op| op.results.iter().map(move |(number, _)| (*number, op))).collect()
}

/// The module while it is imported.
pub(super) struct Import<'m> {
    pub(super) module: &'m HloModule,
    pub(super) library: &'m FunctionLibrary,
    limits: &'m Limits,
    /// The functions of the graph that the module may call.
    pub(super) callees: Vec<NameAttrList>,
    prefix: String,
    n_parts: Cell<usize>,
    n_nodes: Cell<usize>,
    functions: RefCell<HashMap<Arc<str>, Arc<FunctionDef>>>,
    /// The functions that are being imported.
    open: RefCell<HashSet<Arc<str>>>,
    /// The operations by their results.
    definitions: HashMap<ValueNumber, &'m HloOp>,
    platform: Platform,
}

/// The number of the platform here among those that a module is for; `None` if it does not ask.
fn platform_number(attrs: &Attrs) -> Result<Option<i32>> {
    let platforms = attrs.strings("platforms").unwrap_or_default();
    let is_cpu = |name: &bytes::Bytes| name.eq_ignore_ascii_case(b"cpu");
    let disabled = attrs.strings("disabled_checks").unwrap_or_default();
    let unchecked = disabled.iter().any(|check| &**check == b"platform");
    let index = platforms.iter().position(is_cpu);
    if index.is_none() && !platforms.is_empty() && !unchecked {
        let names: Vec<_> = platforms.iter().map(|name| String::from_utf8_lossy(name)).collect();
        return Err(refused(format!("a program for {} only", names.join(", "))));
    }
    Ok((platforms.len() > 1).then_some(index.unwrap_or(0) as i32))
}

/// The values at hand.
pub(super) type HloEnv<'e> = HashMap<ValueNumber, HloValue<'e>>;

/// A value of a module.
#[derive(Clone)]
pub(super) enum HloValue<'e> {
    Tensor(Value<'e>),
    Tuple(Vec<HloValue<'e>>),
}

/// Where operations of one function go.
#[derive(Clone, Copy)]
pub(super) struct ImportScope<'e> {
    pub(super) emitter: &'e Emitter<'e>,
    pub(super) operands: HloOperands,
}

/// Operands of the operations of a region.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum HloOperands {
    /// Those that the operations name.
    Tensors,
    /// Those that the operations name, which are scalars.
    Scalars,
    /// Tensors instead of scalars.
    Elements,
}

impl<'e> ImportScope<'e> {
    /// A constant.
    pub(super) fn constant(&self, tensor: HostTensor) -> Value<'e> {
        self.emitter.constant(Ok(tensor))
    }

    /// The first result of a call without inputs that tell its attributes.
    pub(super) fn call(&self, name: &str, attrs: Attrs, inputs: &[Value<'e>]) -> Vec<Value<'e>> {
        self.emitter.calls(name, attrs, inputs)
    }
}

/// The token of effects: their order is that of the nodes.
fn token() -> ValueType {
    ValueType::new(DType::Bool, ferroflow_ir::Shape::scalar())
}

/// The type of an argument or of a result.
fn type_of(ty: &Type) -> Result<ValueType> {
    match ty {
        Type::Tensor(ty) => value_type(ty),
        Type::Token => Ok(token()),
        Type::Tuple(_) => Err(refused("tuples as arguments or results of functions")),
        Type::Function(..) | Type::Element(_) => Err(refused("a value that is no tensor")),
        Type::Other(name) => Err(refused(format!("values of the type {name}"))),
    }
}

fn refused(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::Unsupported { op: "XlaCallModule".into(), what: what.into() }
}

impl<'m> Import<'m> {
    /// The function `main`, which takes the inputs of the call.
    fn main(&self, attrs: &Attrs) -> Result<Arc<FunctionDef>> {
        let main = self.function_of("main")?;
        let leading = self.leading(attrs, main)?;
        if leading.is_empty() && !main.body.args.iter().any(|(_, ty)| *ty == Type::Token) {
            return self.function("main");
        }
        self.wrapped(main, leading)
    }

    /// Arguments of `main` before the inputs of the call.
    fn leading(&self, attrs: &Attrs, main: &HloFunction) -> Result<Vec<Leading>> {
        let platform = self.platform.number;
        let mut leading: Vec<Leading> = platform.into_iter().map(Leading::Platform).collect();
        for spec in attrs.strings("dim_args_spec").unwrap_or_default() {
            let text = std::str::from_utf8(spec).ok();
            let parts = text.and_then(|text| text.split_once('.'));
            let axes = parts.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (arg, axis) = axes.ok_or_else(|| {
                let found = String::from_utf8_lossy(spec).into_owned();
                Error::argument("XlaCallModule", "dim_args_spec", "an argument and an axis", found)
            })?;
            leading.push(Leading::Size { arg, axis });
        }
        if leading.len() > main.body.args.len() {
            return Err(refused("a function `main` that takes no platform or sizes"));
        }
        Ok(leading)
    }

    /// A function that calls `main` with what it takes besides the inputs of the call.
    fn wrapped(&self, main: &HloFunction, leading: Vec<Leading>) -> Result<Arc<FunctionDef>> {
        let callee = self.function("main")?;
        let mut sketch = Sketch::new();
        let rest = &main.body.args[leading.len()..];
        let mut inputs = Vec::new();
        for (_, ty) in rest.iter().filter(|(_, ty)| *ty != Type::Token) {
            inputs.push(sketch.argument(type_of(ty)?)?);
        }
        let emitter = Emitter::new(&mut sketch);
        let mut passed = inputs.iter().map(|&id| emitter.at(id));
        let mut args = Vec::new();
        for (part, (_, ty)) in leading.iter().zip(&main.body.args) {
            let dtype = type_of(ty)?.dtype;
            let value = match *part {
                Leading::Platform(index) => emitter.constant(Ok(HostTensor::scalar(index))),
                Leading::Size { arg, axis } => {
                    let input = inputs.get(arg).map(|&id| emitter.at(id));
                    let input = input.ok_or_else(|| refused("the size of an absent argument"))?;
                    let sizes = ferroflow_ir::xla::size::sizes(input);
                    let size = sizes.get(axis).copied();
                    size.ok_or_else(|| refused("the size of an absent axis"))?.value(input)
                }
            };
            args.push(value.cast(dtype));
        }
        for (_, ty) in rest {
            args.push(match ty {
                Type::Token => emitter.constant(Ok(HostTensor::scalar_bool(false))),
                _ => passed.next().ok_or_else(|| refused("an argument without a value"))?,
            });
        }
        let results = self.call_function(&emitter, &callee, &args)?;
        let kept = results.iter().zip(&main.results).filter(|(_, ty)| **ty != Type::Token);
        let ids: Vec<Option<ValueId>> = kept.map(|(value, _)| value.id()).collect();
        emitter.finish()?;
        let ids: Option<Vec<ValueId>> = ids.into_iter().collect();
        let ids = ids.ok_or_else(|| refused("a result without a value"))?;
        self.finished(sketch, "call", &ids)
    }

    pub(super) fn function_of(&self, name: &str) -> Result<&'m HloFunction> {
        let found = self.module.functions.get(name);
        found.ok_or_else(|| Error::NotFound { kind: "function", name: name.into() })
    }

    /// A function of the module, imported when it is first asked for.
    pub(super) fn function(&self, name: &str) -> Result<Arc<FunctionDef>> {
        if let Some(found) = self.functions.borrow().get(name) {
            return Ok(found.clone());
        }
        let key: Arc<str> = name.into();
        if !self.open.borrow_mut().insert(key.clone()) {
            return Err(malformed_function(name, "no function calls itself"));
        }
        if self.open.borrow().len() > self.limits.call_depth {
            let what = "calls of functions".into();
            let needed = "more levels".into();
            return Err(Error::Limit { what, needed, limit: self.limits.call_depth as u64 });
        }
        let function = self.function_of(name)?;
        let args: Vec<(ValueNumber, ValueType)> = function
            .body
            .args
            .iter()
            .map(|(number, ty)| Ok((*number, type_of(ty)?)))
            .collect::<Result<_>>()?;
        let made =
            self.body(&function.body, &args, (name, HloOperands::Tensors), &mut |_, results| {
                Ok(results)
            })?;
        self.open.borrow_mut().remove(&key);
        if made.results.len() != function.results.len() {
            return Err(malformed_function(name, "a function has the results that its type says"));
        }
        self.functions.borrow_mut().insert(key, made.clone());
        Ok(made)
    }

    /// A region as a function of its arguments, and of values around it. `results` makes the
    /// results of the function from those of the region.
    pub(super) fn body(
        &self,
        region: &HloRegion,
        args: &[(ValueNumber, ValueType)],
        (name, operands): (&str, HloOperands),
        results: RegionResults<'_>,
    ) -> Result<Arc<FunctionDef>> {
        let mut sketch = Sketch::new();
        let ids: Vec<ValueId> =
            args.iter().map(|(_, ty)| sketch.argument(ty.clone())).collect::<Result<_>>()?;
        let found = {
            let emitter = Emitter::new(&mut sketch);
            let scope = ImportScope { emitter: &emitter, operands };
            let mut env: HloEnv<'_> = HashMap::new();
            for ((number, _), &id) in args.iter().zip(&ids) {
                env.insert(*number, HloValue::Tensor(emitter.at(id)));
            }
            self.add_constants(scope, region, &mut env)?;
            let values = self.ops(scope, region, &mut env)?;
            let arguments: Vec<Value<'_>> = ids.iter().map(|&id| emitter.at(id)).collect();
            let values = results(&arguments, values)?;
            let found: Option<Vec<ValueId>> = values.iter().map(|value| value.id()).collect();
            emitter.finish()?;
            found.ok_or_else(|| refused("a result without a value"))?
        };
        self.finished(sketch, name, &found)
    }

    fn finished(
        &self,
        mut sketch: Sketch,
        name: &str,
        results: &[ValueId],
    ) -> Result<Arc<FunctionDef>> {
        let mut outlets = Vec::with_capacity(results.len());
        for &id in results {
            // A result has a node of its own, so that a function passes its arguments on.
            let op = ferroflow_ir::registry::find("Identity").expect("a built-in record");
            outlets.push(sketch.emit(op, Attrs::new(), &[id])?[0]);
        }
        self.n_nodes.set(self.n_nodes.get() + sketch.len());
        if self.n_nodes.get() > self.limits.nodes {
            let what = "a StableHLO program".into();
            let needed = format!("{} nodes", self.n_nodes.get());
            return Err(Error::Limit { what, needed, limit: self.limits.nodes as u64 });
        }
        self.n_parts.set(self.n_parts.get() + 1);
        let name = format!("{}_{}_{name}", self.prefix, self.n_parts.get());
        sketch.finish(self.library, name.into(), &outlets)
    }

    /// The results of a call of a function.
    pub(super) fn call_function<'e>(
        &self,
        emitter: &'e Emitter<'e>,
        function: &FunctionDef,
        args: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        let types = result_types(function)?;
        let tin: Vec<DType> = args.iter().map(|arg| arg.dtype()).collect();
        if tin != function.arg_dtypes() {
            return Err(malformed_function(
                &function.name,
                "a call has the arguments of its callee",
            ));
        }
        let attrs = Attrs::new()
            .with("Tin", tin)
            .with("Tout", types.iter().map(|ty| ty.dtype).collect::<Vec<_>>())
            .with("f", AttrValue::Func(NameAttrList::new(function.name.clone())));
        let results = emitter.calls("StatefulPartitionedCall", attrs, args);
        for (value, ty) in results.iter().zip(&types) {
            emitter.refine(*value, &ty.shape)?;
        }
        Ok(results)
    }

    /// The operations of a region; returns what its last one returns.
    pub(super) fn ops<'e>(
        &self,
        scope: ImportScope<'e>,
        region: &HloRegion,
        env: &mut HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        for op in &region.ops {
            if &*op.name == "return" {
                return operands(op, env);
            }
            let located = |error: Error| {
                error.at_node(&format!("stablehlo.{}", op.name), "XlaCallModule", "")
            };
            let items = self.op(scope, op, env).map_err(located)?;
            scope.emitter.finish().map_err(located)?;
            if items.len() != op.results.len() {
                return Err(malformed(op, "it has as many results as it computes"));
            }
            for ((number, ty), item) in op.results.iter().zip(items) {
                let item = self.checked(scope, op, ty, item).map_err(located)?;
                env.insert(*number, item);
            }
        }
        Err(Error::Malformed {
            node: "a region of a StableHLO program".into(),
            rule: "it returns results".into(),
        })
    }

    /// A result of the type that the operation says.
    fn checked<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        ty: &Type,
        item: HloValue<'e>,
    ) -> Result<HloValue<'e>> {
        let (HloValue::Tensor(value), Type::Tensor(_) | Type::Token) = (&item, ty) else {
            return Ok(item);
        };
        let expected = type_of(ty)?;
        if value.dtype() != expected.dtype {
            let found = value.dtype();
            return Err(malformed(op, format!("its result is of {}, not {found}", expected.dtype)));
        }
        if scope.operands != HloOperands::Elements {
            scope.emitter.refine(*value, &expected.shape)?;
        }
        Ok(item)
    }

    /// The results of an operation.
    fn op<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        env: &mut HloEnv<'e>,
    ) -> Result<Vec<HloValue<'e>>> {
        match &*op.name {
            "tuple" => {
                let items = op.operands.iter().map(|number| item(op, env, *number));
                return Ok(vec![HloValue::Tuple(items.collect::<Result<_>>()?)]);
            }
            "get_tuple_element" => {
                let HloValue::Tuple(items) = item(op, env, first_operand(op)?)? else {
                    return Err(malformed(op, "its operand is a tuple"));
                };
                let index = op.axis("index", items.len())?;
                return Ok(vec![items[index].clone()]);
            }
            _ => {}
        }
        let values = operands(op, env)?;
        let results = self.tensors(scope, op, &values, env)?;
        Ok(results.into_iter().map(HloValue::Tensor).collect())
    }

    /// The results of an operation on tensors.
    fn tensors<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        if let Some(result) = self.divided_by_constant(op, x) {
            return Ok(vec![result]);
        }
        if let Some(result) = elementwise::elementwise(scope, op, x)? {
            return Ok(vec![result]);
        }
        if &*op.name == "call" {
            return self.call(scope, op, x);
        }
        if &*op.name == "composite" {
            return self.composite(scope, op, x);
        }
        if matches!(&*op.name, "case" | "if" | "while") {
            return self.control(scope, op, x, env);
        }
        if scope.operands == HloOperands::Elements {
            return Err(super::constant::unsupported(op, "in a function of scalars"));
        }
        let narrow = x.iter().any(|x| carrier(x.dtype()).is_some());
        if narrow && op.regions.is_empty() && &*op.name != "custom_call" {
            return self.by_carriers(scope, op, x, env);
        }
        if let Some(results) = shaping::shaping(scope, op, x)? {
            return Ok(results);
        }
        if let Some(results) = linalg::linalg(scope, op, x)? {
            return Ok(results);
        }
        match &*op.name {
            "reduce" => self.reduce(scope, op, x, env),
            "reduce_window" => self.reduce_window(scope, op, x, env),
            "select_and_scatter" => self.select_and_scatter(scope, op, x, env),
            "scatter" => self.scatter(scope, op, x, env),
            "sort" => self.sort(scope, op, x, env),
            "map" => self.map(scope, op, x, env),
            "all_reduce" | "reduce_scatter" => Ok(x.to_vec()),
            "custom_call" => self.custom_call(scope, op, x),
            _ => Err(super::constant::unsupported(op, "nothing here computes it")),
        }
    }

    /// The results of an operation that computes with the carriers of elements.
    fn by_carriers<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
        env: &HloEnv<'e>,
    ) -> Result<Vec<Value<'e>>> {
        let wide: Vec<Value<'e>> = x.iter().map(|&x| widened(x)).collect();
        let results = self.tensors(scope, op, &wide, env)?;
        let numbered = results.into_iter().enumerate();
        numbered
            .map(|(index, value)| {
                Ok(value.cast(super::constant::dtype(op.result_type(index)?.element)?))
            })
            .collect()
    }

    /// A quotient of 16-bit floats by a constant: XLA multiplies by the reciprocal, which has an
    /// effect on the last bit.
    fn divided_by_constant<'e>(&self, op: &HloOp, x: &[Value<'e>]) -> Option<Value<'e>> {
        let (&[a, b], [_, divisor]) = (x, &op.operands[..]) else { return None };
        let narrow = matches!(a.dtype(), DType::F16 | DType::BF16);
        let constant = &*op.name == "divide" && narrow && self.is_constant(*divisor);
        constant.then(|| a * ferroflow_ir::emit::call("Reciprocal", [b]))
    }

    /// Whether all elements of a value are the same constant.
    fn is_constant(&self, number: ValueNumber) -> bool {
        let mut number = number;
        loop {
            let Some(op) = self.definitions.get(&number) else { return false };
            match (&*op.name, &op.operands[..]) {
                ("constant", _) => return true,
                ("broadcast_in_dim" | "dynamic_broadcast_in_dim" | "broadcast", &[x, ..]) => {
                    number = x;
                }
                _ => return false,
            }
        }
    }

    fn call<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        self.call_named(scope, op.text("callee")?, x)
    }

    /// A composite operation: its decomposition.
    fn composite<'e>(
        &self,
        scope: ImportScope<'e>,
        op: &HloOp,
        x: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        self.call_named(scope, op.text("decomposition")?, x)
    }

    pub(super) fn call_named<'e>(
        &self,
        scope: ImportScope<'e>,
        name: &str,
        x: &[Value<'e>],
    ) -> Result<Vec<Value<'e>>> {
        if scope.operands == HloOperands::Elements {
            let depth = self.open.borrow().len() + 1;
            if depth > self.limits.call_depth || !self.open.borrow_mut().insert(name.into()) {
                return Err(malformed_function(name, "no function calls itself"));
            }
            let function = self.function_of(name)?;
            let results = self.applied(scope, &function.body, x, &HashMap::new());
            self.open.borrow_mut().remove(name);
            return results;
        }
        let function = self.function(name)?;
        self.call_function(scope.emitter, &function, x)
    }
}

/// Function from the arguments of a function and the results of a region to results.
pub(super) type RegionResults<'f> =
    &'f mut dyn for<'e> FnMut(&[Value<'e>], Vec<Value<'e>>) -> Result<Vec<Value<'e>>>;

/// Argument of `main` before the inputs of a call.
enum Leading {
    /// The number of the platform among those that the module is for.
    Platform(i32),
    /// The size of an axis of an argument.
    Size { arg: usize, axis: usize },
}

fn malformed_function(name: &str, rule: &'static str) -> Error {
    Error::Malformed { node: format!("function {name}"), rule: rule.into() }
}

/// The types of a function's results.
fn result_types(function: &FunctionDef) -> Result<Vec<ValueType>> {
    let ty = |(name, outlet): &(String, ferroflow_ir::Outlet)| {
        let found = function.graph.ty(*outlet).cloned();
        found.ok_or_else(|| Error::NotFound { kind: "type", name: name.clone() })
    };
    function.results.iter().map(ty).collect()
}

fn first_operand(op: &HloOp) -> Result<ValueNumber> {
    op.operands.first().copied().ok_or_else(|| malformed(op, "it has an operand"))
}

fn item<'e>(op: &HloOp, env: &HloEnv<'e>, number: ValueNumber) -> Result<HloValue<'e>> {
    env.get(&number).cloned().ok_or_else(|| malformed(op, "its operands are computed before it"))
}

/// The operands of an operation on tensors.
pub(super) fn operands<'e>(op: &HloOp, env: &HloEnv<'e>) -> Result<Vec<Value<'e>>> {
    op.operands
        .iter()
        .map(|&number| match item(op, env, number)? {
            HloValue::Tensor(value) => Ok(value),
            HloValue::Tuple(_) => Err(malformed(op, "its operands are tensors")),
        })
        .collect()
}

/// Exactly as many operands as an operation has.
pub(super) fn exactly<'a, 'e, const N: usize>(
    op: &HloOp,
    x: &'a [Value<'e>],
) -> Result<&'a [Value<'e>; N]> {
    x.try_into().map_err(|_| malformed(op, format!("it has {N} operands")))
}

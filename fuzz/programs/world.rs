//! Interpretation of programs: eagerly, with control flow in Rust, or in a trace.

use super::{
    observe,
    program::{FuzzProgram, Head, Id, Invariant, ProgramBlock, StatementOperand, Stmt, VarDecl},
};
use ferroflow::{
    Function, GradientTape, Tensor, Variable, WhileOptions, cond, device, foldl, function,
    ir::{DType, PartialShape, registry},
    map_fn, ops, scan, switch_case,
    tracer::{
        Error, Result, custom_gradient, gradients::GradientOptions, variable::VariableOptions,
    },
    while_loop_with,
};
use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

type Inner = Function<(Vec<Tensor>,), Vec<Tensor>>;

/// So many statements may run in one call.
const MAX_STEPS: usize = 20_000;

/// A value, and whether it is exact; in traces all count as exact.
#[derive(Clone)]
pub(super) struct WorldValue {
    pub(super) tensor: Tensor,
    pub(super) is_exact: bool,
}

/// The values of a block and those around it, by number.
pub(super) type WorldEnv = Vec<Option<WorldValue>>;

/// A program with its variables.
#[derive(Clone)]
pub(super) struct FuzzWorld {
    pub(super) program: Arc<FuzzProgram>,
    pub(super) variables: Vec<Variable>,
    devices: Arc<[String]>,
    /// The functions of the program, where they are traced.
    functions: Option<Vec<Inner>>,
    coverage: Arc<Mutex<Coverage>>,
}

/// The statements of a program that were reached, and the shapes of their operands.
#[derive(Default)]
struct Coverage {
    input: usize,
    executed: HashMap<Reached, Vec<OperandShapes>>,
    /// The statement at which the last trace failed.
    failed: Option<(Reached, OperandShapes)>,
}

/// A statement by its address, and the number of the input.
type Reached = (usize, usize);

/// The shapes of the values that a statement reads.
type OperandShapes = Vec<PartialShape>;

impl Coverage {
    fn execute(&mut self, reached: Reached, shapes: OperandShapes) {
        let executed = self.executed.entry(reached).or_default();
        if !executed.contains(&shapes) {
            executed.push(shapes);
        }
    }

    /// Whether a statement has executed with operands of shapes that these may stand for.
    fn has_executed(&self, reached: Reached, shapes: &OperandShapes) -> bool {
        let fits = |executed: &OperandShapes| {
            executed.iter().zip(shapes).all(|(executed, shape)| executed.is_compatible_with(shape))
        };
        self.executed.get(&reached).is_some_and(|executed| executed.iter().any(fits))
    }
}

impl FuzzWorld {
    /// A program with new variables, to be run eagerly.
    pub(super) fn new(program: &Arc<FuzzProgram>, devices: &Arc<[String]>) -> Result<FuzzWorld> {
        let (program, devices) = (program.clone(), devices.clone());
        let variables = program.vars.iter().map(|declared| variable(declared, &devices));
        let variables = variables.collect::<Result<_>>()?;
        Ok(FuzzWorld { program, variables, devices, functions: None, coverage: Arc::default() })
    }

    /// Makes `input` the one that statements are run or traced for from now on.
    pub(super) fn begin(&self, input: usize) {
        self.coverage().input = input;
    }

    /// Whether the last trace failed at a statement that no eager run of `other`, the same program,
    /// has executed with such operands. As in TensorFlow, operands that cannot be right are refused where an op is
    /// staged, though it may be in a branch that never runs.
    pub(super) fn failed_beside(&self, other: &FuzzWorld) -> bool {
        let failed = self.coverage().failed.take();
        failed.is_some_and(|(reached, shapes)| !other.coverage().has_executed(reached, &shapes))
    }

    /// The same for traces of another world of this program.
    pub(super) fn sharing_coverage(self, other: &FuzzWorld) -> FuzzWorld {
        FuzzWorld { coverage: other.coverage.clone(), ..self }
    }

    fn coverage(&self) -> std::sync::MutexGuard<'_, Coverage> {
        self.coverage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same program and variables, to be traced.
    pub(super) fn to_trace(&self) -> FuzzWorld {
        let mut world = FuzzWorld { functions: Some(Vec::new()), ..self.clone() };
        for number in 0..self.program.funcs.len() {
            let inner = world.clone();
            let call = move |args: Vec<Tensor>| {
                let run = Run::new(&inner);
                let args = args.into_iter().map(exact).collect();
                run.block(&inner.program.funcs[number], &WorldEnv::new(), args).map(tensors)
            };
            world.functions.get_or_insert_default().push(function(call));
        }
        world
    }

    /// Sets the variables to their initial values.
    pub(super) fn reset(&self) -> Result<()> {
        for (variable, declared) in self.variables.iter().zip(&self.program.vars) {
            variable.assign(Tensor::from(declared.initial.clone()))?;
        }
        Ok(())
    }

    /// Runs the program.
    pub(super) fn run(&self, args: Vec<Tensor>) -> Result<Vec<WorldValue>> {
        let args = args.into_iter().map(exact).collect();
        Run::new(self).block(&self.program.main, &WorldEnv::new(), args)
    }

    /// Runs a statement.
    pub(super) fn statement(&self, stmt: &Stmt, env: &mut WorldEnv) -> Result<()> {
        Run::new(self).statement(stmt, env)
    }
}

/// The name of a device by index.
pub(super) fn device_name(devices: &[String], index: usize) -> &str {
    &devices[index % devices.len()]
}

fn variable(declared: &VarDecl, devices: &[String]) -> Result<Variable> {
    let initial = Tensor::from(declared.initial.clone());
    let shape =
        declared.is_flexible.then(|| PartialShape::of_rank(declared.initial.shape().rank()));
    let make = || Variable::with_options(initial, VariableOptions { shape, ..Default::default() });
    match declared.device {
        Some(index) => device(device_name(devices, index), make),
        None => make(),
    }
}

fn exact(tensor: Tensor) -> WorldValue {
    WorldValue { tensor, is_exact: true }
}

fn tensors(items: Vec<WorldValue>) -> Vec<Tensor> {
    items.into_iter().map(|item| item.tensor).collect()
}

/// The error of a program that is none that can be compared.
fn refused(why: &str) -> Error {
    Error::Conversion { expected: "a program within bounds".into(), found: why.into() }
}

/// A run of a program, or of a part of it.
struct Run<'a> {
    world: &'a FuzzWorld,
    steps: Cell<usize>,
    n_gradients: Cell<usize>,
    /// Number of values that were not exact.
    n_inexact: Cell<usize>,
}

impl Run<'_> {
    fn new(world: &FuzzWorld) -> Run<'_> {
        let n_gradients = Cell::new(usize::from(world.program.has_outer_gradient));
        Run { world, steps: Cell::new(0), n_gradients, n_inexact: Cell::new(0) }
    }

    fn is_eager(&self) -> bool {
        self.world.functions.is_none()
    }

    fn block(
        &self,
        block: &ProgramBlock,
        env: &WorldEnv,
        args: Vec<WorldValue>,
    ) -> Result<Vec<WorldValue>> {
        let mut env = env.clone();
        if args.len() != block.params.len() {
            return Err(refused("a block with other parameters"));
        }
        for (&id, item) in block.params.iter().zip(args) {
            bind(&mut env, id, item);
        }
        for stmt in &block.stmts {
            self.statement(stmt, &mut env)?;
        }
        block.results.iter().map(|&id| value(&env, id)).collect()
    }

    fn statement(&self, stmt: &Stmt, env: &mut WorldEnv) -> Result<()> {
        let outputs = match stmt.device {
            Some(index) => {
                device(device_name(&self.world.devices, index), || self.outputs(stmt, env))
            }
            None => self.outputs(stmt, env),
        };
        let mut coverage = self.world.coverage();
        let reached = (std::ptr::from_ref(stmt) as usize, coverage.input);
        if self.is_eager() {
            coverage.execute(reached, shapes(stmt, env));
        } else if outputs.is_err() {
            coverage.failed.get_or_insert_with(|| (reached, shapes(stmt, env)));
        }
        drop(coverage);
        let outputs = outputs?;
        if stmt.outs.len() > outputs.len() {
            return Err(refused("a statement with fewer results"));
        }
        for (&id, mut item) in stmt.outs.iter().zip(outputs) {
            if self.is_eager() {
                self.observe(&mut item)?;
            }
            bind(env, id, item);
        }
        Ok(())
    }

    /// Notes whether a value is exact.
    fn observe(&self, item: &mut WorldValue) -> Result<()> {
        let dtype = item.tensor.dtype();
        if !matches!(dtype, DType::Variant | DType::Resource) {
            let found = observe::exactness(item.tensor.host()?);
            item.is_exact &= found.ok_or_else(|| refused("large or infinite numbers"))?;
        }
        if !item.is_exact {
            self.n_inexact.set(self.n_inexact.get() + 1);
        }
        Ok(())
    }

    fn outputs(&self, stmt: &Stmt, env: &WorldEnv) -> Result<Vec<WorldValue>> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_STEPS {
            return Err(refused("a loop without end"));
        }
        let args = stmt.args.iter().map(|operand| self.operand(operand, env));
        let args = args.collect::<Result<Vec<WorldValue>>>()?;
        let is_exact = args.iter().all(|arg| arg.is_exact);
        if self.is_eager()
            && !is_exact
            && observe::is_discrete(&stmt.head, self.n_gradients.get() > 0)
        {
            return Err(refused("a decision on rounded numbers"));
        }
        if self.is_eager()
            && let Some(most) = observe::saturation(&stmt.head)
            && args
                .iter()
                .any(|arg| arg.tensor.host().is_ok_and(|value| observe::exceeds(value, most)))
        {
            return Err(refused("the slope of a function that is nearly constant"));
        }
        let block =
            |index: usize| stmt.blocks.get(index).ok_or_else(|| refused("a block is missing"));
        match &stmt.head {
            Head::Op(name, _) => {
                let is_exact = is_exact && !observe::is_inexact(&stmt.head);
                self.op(name, stmt, args, is_exact)
            }
            Head::If => self.choose(stmt, env, first(&args)?),
            Head::Case => self.case(stmt, env, first(&args)?),
            Head::While(invariants) => self.repeat(block(0)?, block(1)?, invariants, env, args),
            Head::Call(number) => self.call(*number, args),
            Head::Grad => self.gradient(stmt, block(0)?, env, args),
            Head::Custom(factor) => self.custom(*factor, block(0)?, env, &args),
            Head::Map | Head::Fold | Head::Scan => self.rows(&stmt.head, block(0)?, env, &args),
        }
    }

    fn operand(&self, operand: &StatementOperand, env: &WorldEnv) -> Result<WorldValue> {
        match operand {
            StatementOperand::Value(id) => value(env, *id),
            StatementOperand::Const(tensor) => Ok(exact(tensor.clone().into())),
            StatementOperand::Variable(number) => {
                let variable = self.variable(*number)?;
                let is_exact = !self.world.program.vars[*number].is_inexact;
                Ok(WorldValue { tensor: variable.handle(), is_exact })
            }
        }
    }

    fn variable(&self, number: usize) -> Result<&Variable> {
        self.world.variables.get(number).ok_or_else(|| refused("a variable is missing"))
    }

    fn op(
        &self,
        name: &str,
        stmt: &Stmt,
        args: Vec<WorldValue>,
        is_exact: bool,
    ) -> Result<Vec<WorldValue>> {
        if let ("ReadVariableOp", [StatementOperand::Variable(number)]) = (name, &stmt.args[..]) {
            let tensor = self.variable(*number)?.read()?;
            return Ok(vec![WorldValue { tensor, is_exact }]);
        }
        let Head::Op(_, attrs) = &stmt.head else { return Err(refused("no op")) };
        let mut variables =
            stmt.args.iter().zip(&args).filter_map(|(operand, item)| match operand {
                StatementOperand::Variable(_) => Some(item),
                StatementOperand::Value(_) | StatementOperand::Const(_) => None,
            });
        if self.is_eager() && !is_exact && variables.any(|variable| variable.is_exact) {
            return Err(refused("rounded numbers in a variable of exact ones"));
        }
        let op = registry::find(name).ok_or_else(|| refused("an unknown op"))?;
        let inputs: Vec<&Tensor> = args.iter().map(|arg| &arg.tensor).collect();
        let outputs = ops::raw(op, attrs.clone(), &inputs)?;
        Ok(outputs.into_iter().map(|tensor| WorldValue { tensor, is_exact }).collect())
    }

    fn choose(
        &self,
        stmt: &Stmt,
        env: &WorldEnv,
        condition: &WorldValue,
    ) -> Result<Vec<WorldValue>> {
        let [then, otherwise] = &stmt.blocks[..] else { return Err(refused("two branches")) };
        let branch = |block: &ProgramBlock| self.block(block, env, Vec::new());
        if self.is_eager() {
            return branch(if condition.tensor.to_bool()? { then } else { otherwise });
        }
        let branch = |block: &ProgramBlock| branch(block).map(tensors);
        let results = cond(&condition.tensor, || branch(then), || branch(otherwise))?;
        Ok(results.into_iter().map(exact).collect())
    }

    fn case(&self, stmt: &Stmt, env: &WorldEnv, index: &WorldValue) -> Result<Vec<WorldValue>> {
        let branch = |block: &ProgramBlock| self.block(block, env, Vec::new());
        if self.is_eager() {
            let index = usize::try_from(index.tensor.to_scalar::<i32>()?).ok();
            let chosen = index.and_then(|index| stmt.blocks.get(index)).or(stmt.blocks.last());
            return branch(chosen.ok_or_else(|| refused("a branch"))?);
        }
        let traced = |block: &'_ ProgramBlock| branch(block).map(tensors);
        let branches: Vec<_> = stmt.blocks.iter().map(|block| move || traced(block)).collect();
        let branches: Vec<&dyn Fn() -> Result<Vec<Tensor>>> =
            branches.iter().map(|branch| branch as &dyn Fn() -> Result<Vec<Tensor>>).collect();
        let results = switch_case(&index.tensor, &branches)?;
        Ok(results.into_iter().map(exact).collect())
    }

    fn repeat(
        &self,
        condition: &ProgramBlock,
        body: &ProgramBlock,
        invariants: &[Invariant],
        env: &WorldEnv,
        mut state: Vec<WorldValue>,
    ) -> Result<Vec<WorldValue>> {
        if self.is_eager() {
            loop {
                let goes_on = self.block(condition, env, state.clone())?;
                if !first(&goes_on)?.tensor.to_bool()? {
                    return Ok(state);
                }
                state = self.block(body, env, state)?;
            }
        }
        let shapes = invariants.iter().zip(&state);
        let shapes = shapes.map(|(invariant, item)| invariant_shape(*invariant, &item.tensor));
        let options =
            WhileOptions { shape_invariants: shapes.collect(), ..WhileOptions::default() };
        let items = |state: &[Tensor]| state.iter().cloned().map(exact).collect();
        let results = while_loop_with(
            &options,
            |state: &Vec<Tensor>| {
                Ok(first(&self.block(condition, env, items(state))?)?.tensor.clone())
            },
            |state: Vec<Tensor>| Ok(tensors(self.block(body, env, items(&state))?)),
            tensors(state),
        )?;
        Ok(results.into_iter().map(exact).collect())
    }

    fn call(&self, number: usize, args: Vec<WorldValue>) -> Result<Vec<WorldValue>> {
        match &self.world.functions {
            None => {
                let block = self.world.program.funcs.get(number);
                self.block(block.ok_or_else(|| refused("a function"))?, &WorldEnv::new(), args)
            }
            Some(functions) => {
                let function = functions.get(number).ok_or_else(|| refused("a function"))?;
                let results = function.call((tensors(args),))?;
                Ok(results.into_iter().map(exact).collect())
            }
        }
    }

    fn gradient(
        &self,
        stmt: &Stmt,
        block: &ProgramBlock,
        env: &WorldEnv,
        args: Vec<WorldValue>,
    ) -> Result<Vec<WorldValue>> {
        let before = self.n_inexact.get();
        self.n_gradients.set(self.n_gradients.get() + 1);
        let tape = GradientTape::new();
        let options = GradientOptions { zero_unconnected: true, ..GradientOptions::default() };
        let by_variables = stmt.args.iter().any(|arg| matches!(arg, StatementOperand::Variable(_)));
        let are_exact = args.iter().all(|arg| arg.is_exact);
        let mut sources = args;
        if !by_variables {
            // Tensors of their own: an eager loop of no rounds returns what it was given.
            for source in &mut sources {
                source.tensor = ops::identity(&source.tensor)?;
            }
        }
        let args = if by_variables { Vec::new() } else { sources.clone() };
        let sources = tensors(sources);
        if !by_variables {
            tape.watch(&sources)?;
        }
        let target = self.block(block, env, args)?;
        let target = tensors(target);
        let gradients = tape.gradient_with(&target, &sources, &options)?;
        self.n_gradients.set(self.n_gradients.get() - 1);
        let is_exact = are_exact && before == self.n_inexact.get();
        let item = |gradient: Option<Tensor>| {
            let tensor = gradient.ok_or_else(|| refused("no gradient"))?;
            Ok(WorldValue { tensor, is_exact })
        };
        gradients.into_iter().map(item).collect()
    }

    fn custom(
        &self,
        factor: i64,
        block: &ProgramBlock,
        env: &WorldEnv,
        args: &[WorldValue],
    ) -> Result<Vec<WorldValue>> {
        let is_exact = Cell::new(true);
        let n = args.len();
        let inner: Vec<Tensor> = args.iter().map(|arg| arg.tensor.clone()).collect();
        let call = |inner: &[Tensor]| {
            let flags = args.iter().map(|arg| arg.is_exact);
            let items = inner.iter().cloned().zip(flags);
            let items = items.map(|(tensor, is_exact)| WorldValue { tensor, is_exact }).collect();
            let results = self.block(block, env, items)?;
            is_exact.set(results.iter().all(|item| item.is_exact));
            // A loop may have given argument and result different sizes.
            let like = inner[0].clone();
            let backward = move |dys: &[Tensor]| {
                let sum = ops::sum(&dys[0].reshape(&[-1])?, &Tensor::from(0))?;
                let mut gradients = vec![None; n];
                gradients[0] = Some((ops::zeros_like(&like)? + (&sum * factor as f64)?)?);
                Ok(gradients)
            };
            Ok((tensors(results), backward))
        };
        let results = custom_gradient(call, &inner)?;
        Ok(results
            .into_iter()
            .map(|tensor| WorldValue { tensor, is_exact: is_exact.get() })
            .collect())
    }

    fn rows(
        &self,
        head: &Head,
        block: &ProgramBlock,
        env: &WorldEnv,
        args: &[WorldValue],
    ) -> Result<Vec<WorldValue>> {
        let is_exact = Cell::new(args.iter().all(|arg| arg.is_exact));
        let step = |inputs: Vec<Tensor>| {
            let item = |tensor| WorldValue { tensor, is_exact: is_exact.get() };
            let results = self.block(block, env, inputs.into_iter().map(item).collect())?;
            let result = first(&results)?.clone();
            is_exact.set(is_exact.get() && result.is_exact);
            Ok(result.tensor)
        };
        let next = |state: Tensor, row: Tensor| step(vec![state, row]);
        let elements = &first(args)?.tensor;
        let initial = || {
            let item = args.get(1).ok_or_else(|| refused("a first value"));
            item.map(|item| item.tensor.clone())
        };
        let tensor = match head {
            Head::Map => map_fn(|row: Tensor| step(vec![row]), elements)?,
            Head::Fold => foldl(next, elements, initial()?)?,
            _ => scan(next, elements, initial()?)?,
        };
        Ok(vec![WorldValue { tensor, is_exact: is_exact.get() }])
    }
}

fn invariant_shape(invariant: Invariant, tensor: &Tensor) -> PartialShape {
    let shape = tensor.shape();
    match (invariant, shape.rank()) {
        (Invariant::Same, _) => shape,
        (Invariant::Rank, Some(rank)) => PartialShape::of_rank(rank),
        (Invariant::Rank, None) | (Invariant::Any, _) => PartialShape::Unknown,
    }
}

fn first(items: &[WorldValue]) -> Result<&WorldValue> {
    items.first().ok_or_else(|| refused("no value"))
}

fn value(env: &WorldEnv, id: Id) -> Result<WorldValue> {
    let item = env.get(id).cloned().flatten();
    item.ok_or_else(|| refused("a value that is not there"))
}

/// The shapes of the values that a statement reads.
fn shapes(stmt: &Stmt, env: &WorldEnv) -> OperandShapes {
    let values = stmt.args.iter().filter_map(|operand| match operand {
        StatementOperand::Value(id) => env.get(*id)?.as_ref(),
        StatementOperand::Const(_) | StatementOperand::Variable(_) => None,
    });
    values.map(|item| item.tensor.shape()).collect()
}

fn bind(env: &mut WorldEnv, id: Id, item: WorldValue) {
    if env.len() <= id {
        env.resize(id + 1, None);
    }
    env[id] = Some(item);
}

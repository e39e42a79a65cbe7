//! From an expression to the steps of a tile program.

use super::{
    codes::{binary_code, constant_bits, flushing, joined, store_code, unary_code},
    machine::{Code, TileStep},
};
use crate::{elementwise::loops::prim_loop, plan::broadcast::InputAccess};
use ferroflow_ir::{
    DType, Expr, Prim, StridedView,
    expr::{ExprId, ExprKind},
};
use smallvec::SmallVec;

/// Target of an entry of the frame's table.
#[derive(Debug, Clone)]
pub(super) enum TileSlot {
    /// The next elements of a contiguous input, of this width in bytes.
    Input(usize, usize),
    /// A tile of the program's own, by number, and what is in it.
    Own(usize, TileContent),
    /// The next elements of an output, by number.
    Output(usize),
}

/// Content of a tile of a program's own.
#[derive(Debug, Clone)]
pub(super) enum TileContent {
    /// Elements of a strided input, which have this width in bytes.
    Gathered(usize, StridedView, usize),
    /// The only element of an input.
    Scalar(usize),
    /// A constant, as bits.
    Constant(u32),
    /// A value set aside.
    Spill,
}

/// Operations of a program before they are fixed.
pub(super) struct UnscheduledProgram {
    pub(super) steps: Vec<TileStep>,
    pub(super) places: Vec<TileSlot>,
    /// Number of its own tiles.
    pub(super) n_own: usize,
}

/// The steps of an expression; `None` when machines do not have them.
pub(super) fn unscheduled(expr: &Expr, accesses: &[InputAccess]) -> Option<UnscheduledProgram> {
    let mut builder = Builder::new(expr, accesses);
    builder.translate()?;
    let Builder { steps, places, n_own, .. } = builder;
    Some(UnscheduledProgram { steps, places, n_own })
}

/// Makes a program of an expression.
struct Builder<'a> {
    expr: &'a Expr,
    accesses: &'a [InputAccess],
    steps: Vec<TileStep>,
    places: Vec<TileSlot>,
    n_own: usize,
    /// Where each value is in memory, if it is.
    memory: Vec<Option<u32>>,
    /// The values that are flushed when they are read from memory, where they are not.
    unflushed: Vec<bool>,
    /// Number of uses of each value that are still to come.
    unused: Vec<usize>,
    /// The value at hand.
    hand: Option<usize>,
    free_spills: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(expr: &'a Expr, accesses: &'a [InputAccess]) -> Builder<'a> {
        let n = expr.nodes().len();
        let mut unused = vec![0; n];
        for node in expr.nodes() {
            node.kind.args().iter().for_each(|arg| unused[arg.index()] += 1);
        }
        unused[expr.root().index()] += 1;
        let (steps, places, memory) = (Vec::new(), Vec::new(), vec![None; n]);
        let (n_own, hand, free_spills, unflushed) = (0, None, Vec::new(), vec![false; n]);
        Builder {
            expr,
            accesses,
            steps,
            places,
            n_own,
            memory,
            unflushed,
            unused,
            hand,
            free_spills,
        }
    }

    fn translate(&mut self) -> Option<()> {
        for index in 0..self.expr.nodes().len() {
            let node = &self.expr.nodes()[index];
            match &node.kind {
                ExprKind::Input(input) => self.input(index, *input, node.dtype)?,
                ExprKind::Const(constant) => {
                    let bits = constant_bits(*constant, node.dtype)?;
                    self.memory[index] = Some(self.own(TileContent::Constant(bits)));
                }
                ExprKind::Reduce(..) => return None,
                ExprKind::Apply(prim, args) => self.apply(index, *prim, args, node.dtype)?,
            }
            self.other_results(index)?;
        }
        let root = self.expr.root();
        let store = store_code(self.expr.dtype())?;
        if !matches!(self.expr.dtype(), DType::F16 | DType::BF16) {
            self.take(root.index());
        } else if self.hand != Some(root.index()) {
            return None; // Only the store can make 16-bit floats.
        }
        let output = self.slot(TileSlot::Output(0));
        self.push(store, output, 0);
        Some(())
    }

    /// Writes a value to the outputs after the first that it is the result for: floats that were computed.
    fn other_results(&mut self, index: usize) -> Option<()> {
        let results = self.expr.results().enumerate().skip(1);
        let outputs: SmallVec<[usize; 2]> =
            results.filter(|(_, id)| id.index() == index).map(|(output, _)| output).collect();
        if outputs.is_empty() {
            return Some(());
        }
        let node = &self.expr.nodes()[index];
        let is_computed = matches!(node.kind, ExprKind::Apply(..)) && node.dtype == DType::F32;
        is_computed.then_some(())?;
        if self.hand != Some(index) {
            self.load(index);
        }
        for output in outputs {
            let slot = self.slot(TileSlot::Output(output));
            self.push(Code::Spill, slot, 0);
            // It is not flushed there when it is read again: that was done before.
            self.memory[index] = Some(self.memory[index].unwrap_or(slot));
        }
        Some(())
    }

    fn slot(&mut self, place: TileSlot) -> u32 {
        self.places.push(place);
        self.places.len() as u32 - 1
    }

    fn own(&mut self, content: TileContent) -> u32 {
        self.n_own += 1;
        self.slot(TileSlot::Own(self.n_own - 1, content))
    }

    /// Adds an operation on the value at hand; joins it with the last if there is one that does
    /// both.
    fn push(&mut self, code: Code, a: u32, b: u32) {
        if let Some(TileStep::Own(last, first, _)) = self.steps.last_mut()
            && let Some(both) = joined(*last, code)
        {
            // The operands of both, of which flushing has none.
            let (first, second) = if *last == Code::Flush { (a, b) } else { (*first, a) };
            self.steps.pop();
            self.steps.push(TileStep::Own(both, first, second));
            return;
        }
        self.steps.push(TileStep::Own(code, a, b));
    }

    fn dtype(&self, id: ExprId) -> DType {
        self.expr.nodes()[id.index()].dtype
    }

    fn input(&mut self, index: usize, input: usize, dtype: DType) -> Option<()> {
        let width = dtype.size()?;
        let slot = match &self.accesses[input] {
            InputAccess::Contiguous => self.slot(TileSlot::Input(input, width)),
            InputAccess::Strided(view) => {
                self.own(TileContent::Gathered(input, view.clone(), width))
            }
            InputAccess::Scalar => self.own(TileContent::Scalar(input)),
        };
        match dtype {
            DType::F32 => self.memory[index] = Some(slot),
            DType::Bool => {
                self.put_aside();
                self.push(Code::LoadBool, slot, 0);
                self.hand = Some(index);
            }
            // Only loads that convert may use it.
            DType::F16 | DType::BF16 | DType::I32 => self.memory[index] = Some(slot),
            _ => return None,
        }
        Some(())
    }

    fn apply(&mut self, index: usize, prim: Prim, args: &[ExprId], dtype: DType) -> Option<()> {
        let from = self.dtype(args[0]);
        if prim == Prim::Cast {
            return self.cast(index, args[0].index(), from, dtype);
        }
        let known = |dtype: DType| matches!(dtype, DType::F32 | DType::Bool);
        if !known(dtype) || !args.iter().all(|&arg| known(self.dtype(arg))) {
            return None;
        }
        if prim == Prim::Flush && self.is_flushed_when_read(index, args[0]) {
            self.unused[args[0].index()] -= 1;
            self.memory[index] = self.memory[args[0].index()];
            self.unflushed[index] = true;
            return Some(());
        }
        if prim == Prim::Select {
            args.iter().for_each(|arg| self.settle(arg.index()));
            self.select(args);
        } else if let Some([divisor, reciprocal]) = self.inverted(prim, args) {
            self.unused[args[1].index()] -= 1;
            self.take(args[0].index());
            self.push(Code::DivBy, divisor, reciprocal);
        } else if let Some(run) = unary_code(prim, from) {
            self.take(args[0].index());
            self.push(run, 0, 0);
        } else if prim == Prim::Mul && from == DType::F32 && args[0] == args[1] {
            self.unused[args[0].index()] -= 1;
            self.take(args[0].index());
            self.push(Code::Square, 0, 0);
        } else if let Some((run, reversed)) = binary_code(prim, from) {
            let swap = self.hand == Some(args[1].index()) && self.hand != Some(args[0].index());
            let (run, first, second) = match (swap, reversed) {
                (true, Some(reversed)) => (reversed, args[1], args[0]),
                _ => (run, args[0], args[1]),
            };
            let flushing = flushing(run).filter(|_| self.unflushed[second.index()]);
            if flushing.is_none() {
                self.settle(second.index());
            }
            let second = self.prepare(first, second);
            self.push(flushing.unwrap_or(run), second, 0);
        } else {
            let run = prim_loop(prim, from, dtype)
                .filter(|_| (from, dtype) == (DType::F32, DType::F32))?;
            let other = match args {
                [only] => {
                    self.take(only.index());
                    self.own(TileContent::Constant(0))
                }
                [first, second] => {
                    self.settle(second.index());
                    self.prepare(*first, *second)
                }
                _ => return None,
            };
            self.steps.push(TileStep::Loop(run, other));
        }
        self.hand = Some(index);
        self.release(args);
        Some(())
    }

    /// Whether a value is an input that is flushed for one reader, which can do that by itself.
    fn is_flushed_when_read(&self, flushed: usize, input: ExprId) -> bool {
        let node = &self.expr.nodes()[input.index()];
        let is_input = matches!(node.kind, ExprKind::Input(_)) && node.dtype == DType::F32;
        is_input && self.hand != Some(input.index()) && self.unused[flushed] == 1
    }

    /// Flushes a value in memory that is not.
    fn settle(&mut self, value: usize) {
        if self.unflushed[value] && self.hand != Some(value) {
            self.load(value);
            self.set_aside(value);
        }
    }

    /// Brings a value from memory to hand.
    fn load(&mut self, value: usize) {
        self.put_aside();
        let slot = self.memory[value].expect("a value that is not at hand is in memory");
        self.push(Code::LoadF32, slot, 0);
        if std::mem::take(&mut self.unflushed[value]) {
            self.push(Code::Flush, 0, 0);
        }
        self.hand = Some(value);
    }

    /// The slots of a constant divisor and its reciprocal, where that is a normal number.
    fn inverted(&mut self, prim: Prim, args: &[ExprId]) -> Option<[u32; 2]> {
        let divisor = args.get(1).filter(|_| prim == Prim::Div)?;
        let ExprKind::Const(constant) = self.expr.nodes()[divisor.index()].kind else {
            return None;
        };
        let value = constant.to_f64() as f32;
        let fits = (f32::powi(2.0, -60)..f32::powi(2.0, 60)).contains(&value.abs());
        let divisor = self.memory[divisor.index()].filter(|_| fits)?;
        Some([divisor, self.own(TileContent::Constant((1.0 / value).to_bits()))])
    }

    /// Brings `first` to hand and `second` to memory; returns its slot. Both are used up once.
    fn prepare(&mut self, first: ExprId, second: ExprId) -> u32 {
        let (first, second) = (first.index(), second.index());
        if self.hand == Some(second) && self.memory[second].is_none() {
            self.set_aside(second);
        }
        self.unused[second] -= 1;
        self.take(first);
        self.memory[second].expect("a value that is not at hand is in memory")
    }

    /// Frees the tiles of values that are not used any more.
    fn release(&mut self, args: &[ExprId]) {
        for arg in args {
            if let (0, Some(place)) = (self.unused[arg.index()], self.memory[arg.index()])
                && matches!(self.places[place as usize], TileSlot::Own(_, TileContent::Spill))
            {
                self.memory[arg.index()] = None;
                self.free_spills.push(place);
            }
        }
    }

    fn select(&mut self, args: &[ExprId]) {
        let [condition, then, otherwise] = [args[0].index(), args[1].index(), args[2].index()];
        if let Some(hand) = self.hand
            && args.iter().filter(|arg| arg.index() == hand).count() > 1
            && self.memory[hand].is_none()
        {
            self.set_aside(hand);
        }
        let (run, hand, a, b) = match self.hand {
            Some(hand) if hand == then => (Code::SelectThen, then, condition, otherwise),
            Some(hand) if hand == otherwise => (Code::SelectElse, otherwise, condition, then),
            _ => (Code::SelectBy, condition, then, otherwise),
        };
        self.unused[a] -= 1;
        self.unused[b] -= 1;
        self.take(hand);
        let slot = |value: usize| self.memory[value].expect("a value not at hand is in memory");
        let (a, b) = (slot(a), slot(b));
        self.push(run, a, b);
    }

    fn cast(&mut self, index: usize, arg: usize, from: DType, to: DType) -> Option<()> {
        let load: Option<Code> = match (from, to) {
            (DType::F16, DType::F32) => Some(Code::LoadF16),
            (DType::BF16, DType::F32) => Some(Code::LoadBf16),
            (DType::I32, DType::F32) => Some(Code::LoadI32),
            _ => None,
        };
        let is_input = matches!(self.expr.nodes()[arg].kind, ExprKind::Input(_));
        if let (Some(load), true) = (load, is_input) {
            self.put_aside();
            self.unused[arg] -= 1;
            let slot = self.memory[arg]?;
            self.push(load, slot, 0);
            self.hand = Some(index);
            return Some(());
        }
        let is_root = index == self.expr.root().index();
        match (from, to) {
            (DType::F32, DType::F16 | DType::BF16) if is_root => self.take(arg),
            (DType::Bool, DType::F32) => {
                self.take(arg);
                self.push(Code::MaskToF32, 0, 0);
            }
            (DType::F32, DType::Bool) => {
                self.take(arg);
                self.push(Code::F32ToMask, 0, 0);
            }
            _ => return None,
        }
        self.hand = Some(index);
        Some(())
    }

    /// Brings a value to hand and uses it up once; it stays in memory if it is needed again.
    fn take(&mut self, value: usize) {
        self.unused[value] -= 1;
        if self.hand != Some(value) {
            self.load(value);
        } else if self.unused[value] > 0 && self.memory[value].is_none() {
            self.set_aside(value);
        }
    }

    /// Keeps the value at hand in memory if it will be used again.
    fn put_aside(&mut self) {
        if let Some(hand) = self.hand
            && self.unused[hand] > 0
            && self.memory[hand].is_none()
        {
            self.set_aside(hand);
        }
    }

    fn set_aside(&mut self, value: usize) {
        let slot = self.free_spills.pop().unwrap_or_else(|| self.own(TileContent::Spill));
        self.memory[value] = Some(slot);
        self.push(Code::Spill, slot, 0);
    }
}

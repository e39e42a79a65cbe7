//! Updates of stacks for those of their slices: nobody can tell from the results.

use crate::support::*;
use ferroflow_ir::{
    Attrs, DType, FunctionDef, HostTensor, Outlet, Result, Shape, ValueType, build::GraphBuilder,
};
use ferroflow_runtime::{CompileOptions, Context, ContextOptions, EagerTensor};

/// Numbers that look random.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

fn counted(dims: &[usize], first: usize) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let values: Vec<f32> = (0..shape.num_elements()).map(|n| (n + first) as f32).collect();
    HostTensor::from_slice(shape, &values).unwrap()
}

/// A program that takes a stack apart, updates slices, reads them here and there, and stacks them.
struct Program<'a> {
    draw: Draw,
    b: &'a mut GraphBuilder,
    /// Where windows begin.
    at: Outlet,
    /// A number that depends on what was read.
    read: Outlet,
    nodes: usize,
}

impl Program<'_> {
    fn name(&mut self, what: &str) -> String {
        self.nodes += 1;
        format!("{what}{}", self.nodes)
    }

    fn call(&mut self, op: &str, attrs: Attrs, inputs: &[Outlet]) -> Result<Vec<Outlet>> {
        let name = self.name(op);
        self.b.call_with(op, &name, attrs, inputs)
    }

    fn ints(&mut self, values: &[i32]) -> Result<Outlet> {
        let name = self.name("ints");
        self.b.constant(&name, HostTensor::vector(values)?)
    }

    /// The slice at an index of an axis, written in one of several ways.
    fn pick(&mut self, x: Outlet, dims: &[usize], axis: usize, index: usize) -> Result<Outlet> {
        if self.draw.below(3) == 0 {
            let attrs = Attrs::new().with("num", dims[axis] as i64).with("axis", axis as i64);
            return Ok(self.call("Unpack", attrs, &[x])?[index]);
        }
        let mut begin = vec![0; dims.len()];
        let mut end: Vec<i32> = dims.iter().map(|&size| size as i32).collect();
        (begin[axis], end[axis]) = (index as i32, index as i32 + 1);
        let (begin, end) = (self.ints(&begin)?, self.ints(&end)?);
        let step = self.ints(&vec![1; dims.len()])?;
        let attrs = Attrs::new().with("shrink_axis_mask", 1i64 << axis);
        Ok(self.call("StridedSlice", attrs, &[x, begin, end, step])?[0])
    }

    /// Reads a slice, or does not.
    fn read(&mut self, x: Outlet, rank: usize) -> Result<()> {
        let (x, rank) = match self.draw.below(4) {
            0 => return Ok(()),
            1 => {
                let flat = self.ints(&[-1])?;
                (self.call("Reshape", Attrs::new(), &[x, flat])?[0], 1)
            }
            _ => (x, rank),
        };
        let all = self.ints(&(0..rank as i32).collect::<Vec<i32>>())?;
        let sum = self.call("Sum", Attrs::new(), &[x, all])?[0];
        self.read = self.call("AddV2", Attrs::new(), &[self.read, sum])?[0];
        Ok(())
    }

    /// A slice with a window of another value, at a place that is computed or not.
    fn update(&mut self, x: Outlet, dims: &[usize]) -> Result<Outlet> {
        let window: Vec<usize> = dims.iter().map(|&size| 1 + self.draw.below(size)).collect();
        let room: Vec<i32> = dims.iter().zip(&window).map(|(a, b)| (a - b) as i32).collect();
        let room = self.ints(&room)?;
        let begin = self.call("Minimum", Attrs::new(), &[self.at, room])?[0];
        let size: Vec<i32> = window.iter().map(|&size| size as i32).collect();
        let size = self.ints(&size)?;
        let end = self.call("AddV2", Attrs::new(), &[begin, size])?[0];
        let step = self.ints(&vec![1; dims.len()])?;
        let first = self.draw.below(1000);
        let name = self.name("value");
        let value = self.b.constant(&name, counted(&window, first))?;
        let value = match self.draw.below(3) {
            0 => value,
            // Small, so that sums are exact.
            _ => {
                let most = self.b.constant(&format!("{name}/most"), HostTensor::scalar(50f32))?;
                let small = self.call("Minimum", Attrs::new(), &[self.read, most])?[0];
                self.call("AddV2", Attrs::new(), &[value, small])?[0]
            }
        };
        Ok(self.call("TensorStridedSliceUpdate", Attrs::new(), &[x, begin, end, step, value])?[0])
    }

    /// A slice of these sizes after updates.
    fn slice(&mut self, x: Outlet, dims: &[usize], depth: usize) -> Result<Outlet> {
        let stacks = depth < 2 && dims.len() > 1 && (depth == 0 || self.draw.below(2) == 0);
        if !stacks {
            let mut x = x;
            for _ in 0..self.draw.below(3) {
                // Windows have as many dimensions as there are numbers.
                if dims.len() == 2 {
                    x = self.update(x, dims)?;
                    self.read(x, dims.len())?;
                }
            }
            return Ok(x);
        }
        let axis = self.draw.below(dims.len());
        let mut rest = dims.to_vec();
        rest.remove(axis);
        let mut slices = Vec::new();
        for index in 0..dims[axis] {
            let slice = self.pick(x, dims, axis, index)?;
            let slice = self.slice(slice, &rest, depth + 1)?;
            self.read(slice, rest.len())?;
            slices.push(slice);
        }
        if self.draw.below(8) == 0 && slices.len() > 1 {
            slices.swap(0, 1);
        }
        let attrs = Attrs::new().with("axis", axis as i64);
        let stack = self.call("Pack", attrs, &slices)?[0];
        self.read(stack, dims.len())?;
        Ok(stack)
    }
}

const DIMS: &[&[usize]] = &[&[2, 3, 4], &[1, 3, 2, 2], &[3, 1, 4], &[2, 2, 3, 4]];

fn program(seed: usize) -> (FunctionDef, Vec<EagerTensor>) {
    let dims = DIMS[seed % DIMS.len()];
    let types = [
        ("x", ValueType::new(DType::F32, Shape::new(dims.iter().copied()).unwrap())),
        ("at", ValueType::new(DType::I32, Shape::new([2]).unwrap())),
    ];
    let def = function("f", &types, |b, args| {
        let read = b.constant("zero", HostTensor::scalar(0f32))?;
        let draw = Draw(seed as u64);
        let mut program = Program { draw, b, at: args[1], read, nodes: 0 };
        let stack = program.slice(args[0], dims, 0)?;
        let again = if seed.is_multiple_of(3) { program.slice(stack, dims, 0)? } else { stack };
        let mut results = vec![again, program.read];
        results.extend((seed.is_multiple_of(5)).then_some(args[0]));
        Ok(results)
    });
    let at = HostTensor::vector(&[(seed % 3) as i32, (seed % 2) as i32]).unwrap();
    (def, vec![counted(dims, 0).into(), at.into()])
}

/// A loop of three rounds over a stack that is so large that it is updated in place, and beside it another
/// value: the stack of the round before, the other one's exchange, or itself.
fn looped(seed: usize) -> (FunctionDef, Vec<FunctionDef>, Vec<EagerTensor>) {
    let dims: &[usize] = [&[2, 2, 16, 32][..], &[3, 16, 32]][seed % 2];
    let ty = |dtype: DType, dims: &[usize]| {
        ValueType::new(dtype, Shape::new(dims.iter().copied()).unwrap())
    };
    let variables = [
        ("i", ty(DType::I32, &[])),
        ("x", ty(DType::F32, dims)),
        ("y", ty(DType::F32, dims)),
        ("read", ty(DType::F32, &[])),
    ];
    let below = function("below", &variables, |b, args| {
        let n = b.constant("n", HostTensor::scalar(3i32))?;
        b.call("Less", "less", &[args[0], n])
    });
    let body = function("body", &variables, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let at = b.call_with("Pack", "at", Attrs::new(), &[args[0], one])?[0];
        let draw = Draw(seed as u64);
        let mut program = Program { draw, b, at, read: args[3], nodes: 0 };
        let stack = program.slice(args[1], dims, 0)?;
        let results = match seed % 4 {
            0 => [stack, args[1]],
            1 => [args[2], stack],
            2 => [stack, stack],
            _ => [stack, args[2]],
        };
        Ok([&[next], &results[..], &[program.read]].concat())
    });
    let run = function("run", &variables[1..3], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let read = b.constant("read", HostTensor::scalar(0f32))?;
        let types = vec![DType::I32, DType::F32, DType::F32, DType::F32];
        let attrs = Attrs::new().with("T", types).with("cond", func("below"));
        let inputs = [zero, args[0], args[1], read];
        b.call_with("StatelessWhile", "loop", attrs.with("body", func("body")), &inputs)
    });
    (run, vec![below, body], vec![counted(dims, 0).into(), counted(dims, 7).into()])
}

#[test]
fn loops_are_the_same() {
    for seed in 0..12 {
        let run = |donate: bool| {
            let compile = CompileOptions { fuse: donate, donate, ..Default::default() };
            let context = Context::with_options(ContextOptions { compile, ..Default::default() });
            let (def, library, args) = looped(seed);
            let results = concrete(&context, def, library, Vec::new()).call(&args).unwrap();
            (1..4).map(|index| values(&results, index)).collect::<Vec<_>>()
        };
        assert_eq!(run(true), run(false), "{seed}");
    }
}

#[test]
fn results_are_the_same() {
    for seed in 0..60 {
        let run = |fuse: bool| {
            let compile = CompileOptions { fuse, ..Default::default() };
            let context = Context::with_options(ContextOptions { compile, ..Default::default() });
            let (def, args) = program(seed);
            let f = concrete(&context, def, Vec::new(), Vec::new());
            let results = f.call(&args).unwrap();
            let again = f.call(&args).unwrap();
            let all = |results: &[EagerTensor]| -> Vec<Vec<f32>> {
                (0..results.len()).map(|index| values(results, index)).collect()
            };
            assert_eq!(all(&results), all(&again), "{seed}");
            all(&results)
        };
        assert_eq!(run(true), run(false), "{seed}");
    }
}

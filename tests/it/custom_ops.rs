//! Ops of the user's own: closures with state, and kernels.

use ferroflow::{
    GradientTape, Tensor, function,
    ir::{
        Attrs, DType, Gradient, HostTensor, Lowering, OpDef, PartialShape,
        gradient::grads,
        infer::{self, OpContext},
        op::arg_of,
    },
    kernels::{Io, Kernel},
    ops,
    runtime::{CompileOptions, Context, ContextOptions},
    tracer::{Result, with_context},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Adds a number to each element, in the memory of its operand.
struct AddEach {
    amount: f32,
    runs: Arc<AtomicUsize>,
    runs_in_place: Arc<AtomicUsize>,
}

impl Kernel for AddEach {
    fn run(&self, io: &mut Io<'_>) -> ferroflow::kernels::Result<()> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let (is_in_place, threads) = (io.is_in_place(0), io.threads());
        self.runs_in_place.fetch_add(usize::from(is_in_place), Ordering::Relaxed);
        let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
        if !is_in_place {
            y.copy_from_slice(x);
        }
        threads.for_each(y.chunks_mut(1000), |part| {
            part.iter_mut().for_each(|element| *element += self.amount);
        });
        Ok(())
    }

    fn in_place(&self, index: usize) -> bool {
        index == 0
    }
}

const ADD_EACH: OpDef = OpDef {
    name: "Acme>AddEach",
    summary: "Adds a number to each element.",
    inputs: &[arg_of("x", DType::F32)],
    outputs: &[arg_of("y", DType::F32)],
    infer: infer::unchanged,
    lowering: Lowering::Kernel,
    gradient: Gradient::Rule(|b| grads([b.dy(0) * 1.0])),
    ..OpDef::PURE
};

#[test]
fn kernels_share_threads_and_memory_of_the_plan() -> Result<()> {
    let context = Context::new();
    let (runs, in_place) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counters = (runs.clone(), in_place.clone());
    let add = context.register_kernel(ADD_EACH, move |call| {
        assert_eq!(call.inputs.len(), 1);
        let (runs, runs_in_place) = counters.clone();
        Ok(Some(Arc::new(AddEach { amount: 0.5, runs, runs_in_place })))
    })?;
    assert!(context.register_kernel(ADD_EACH, |_| Ok(None)).is_err());
    with_context(&context, || {
        let add = move |x: &Tensor| -> Result<Tensor> {
            Ok(ops::raw(add, Attrs::new(), &[x])?.remove(0))
        };
        let x = Tensor::from(vec![1.0f32; 5000]);
        assert_eq!(add(&x)?.to_vec::<f32>()?, vec![1.5; 5000]);
        let f = function(move |x: Tensor| add(&add(&x.square()?)?)?.square());
        let before = runs.load(Ordering::Relaxed);
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f.call((&x,))?;
        assert_eq!(y.to_vec::<f32>()?, vec![4.0; 5000]);
        assert_eq!(runs.load(Ordering::Relaxed) - before, 2);
        let slope = tape.gradient(&y, &x)?.expect("y depends on x");
        assert_eq!(slope.to_vec::<f32>()?, vec![8.0; 5000]);
        f.call((&x,))?;
        assert!(in_place.load(Ordering::Relaxed) > 0);
        Ok(())
    })
}

#[test]
fn shape_functions_of_kernels_are_asked_before_they_run() -> Result<()> {
    fn half(call: &mut OpContext<'_>) -> ferroflow::ir::Result<()> {
        let size = call.shape(0).dim(0).map(|size| size / 2);
        call.set_all(&PartialShape::vector(size));
        Ok(())
    }
    let op = OpDef { name: "Acme>FirstHalf", infer: half, gradient: Gradient::Missing, ..ADD_EACH };
    let context = Context::new();
    let other = OpDef { lowering: Lowering::Runtime, ..op };
    let error = context.register_kernel(other, |_| Ok(None)).unwrap_err().to_string();
    assert!(error.contains("lowering must be `Kernel`"), "{error}");
    let half = context.register_kernel(op, |_| {
        Ok(Some(Arc::new(|io: &mut Io<'_>| {
            let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
            y.copy_from_slice(&x[..y.len()]);
            Ok(())
        })))
    })?;
    with_context(&context, || {
        let f = function(move |x: Tensor| -> Result<Tensor> {
            Ok(ops::raw(half, Attrs::new(), &[&x])?.remove(0))
        });
        let y = f.call(([1.0f32, 2.0, 3.0, 4.0, 5.0],))?;
        assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
        Ok(())
    })
}

const SIGN_PARTS: OpDef = OpDef {
    name: "Acme>SignParts",
    summary: "Negative elements, and the others.",
    outputs: &[arg_of("negative", DType::F32), arg_of("others", DType::F32)],
    infer: |call| {
        call.set_all(&PartialShape::vector(None));
        Ok(())
    },
    gradient: Gradient::Missing,
    ..ADD_EACH
};

#[test]
fn kernels_may_leave_out_what_nothing_reads() -> Result<()> {
    let context = Context::new();
    let read = Arc::<AtomicUsize>::default();
    let told = read.clone();
    let parts = context.register_kernel(SIGN_PARTS, move |_| {
        let told = told.clone();
        Ok(Some(Arc::new(move |io: &mut Io<'_>| {
            let bits = (0..2).map(|output| usize::from(io.is_read(output)) << output).sum();
            told.store(bits, Ordering::Relaxed);
            let (x, is_read) = (io.input::<f32>(0), [io.is_read(0), io.is_read(1)]);
            for (output, negative) in [(0, true), (1, false)] {
                // The second is made even where nothing reads it.
                if output == 1 || is_read[output] {
                    let own: Vec<f32> =
                        x.iter().copied().filter(|x| (*x < 0.0) == negative).collect();
                    io.put(output, HostTensor::vector(&own)?)?;
                }
            }
            Ok(())
        })))
    })?;
    with_context(&context, || {
        let both = move |x: &Tensor| ops::raw(parts, Attrs::new(), &[x]);
        let x = Tensor::from(vec![1.0f32, -2.0, 3.0]);
        let bits = || read.load(Ordering::Relaxed);
        let eager = both(&x)?;
        assert_eq!(
            (eager[0].to_vec::<f32>()?, eager[1].to_vec::<f32>()?),
            (vec![-2.0], vec![1.0, 3.0])
        );
        assert_eq!(bits(), 0b11);
        for (wanted, expected) in [(0, vec![-2.0f32]), (1, vec![1.0, 3.0])] {
            let one = function(move |x: Tensor| -> Result<Tensor> { Ok(both(&x)?.remove(wanted)) });
            assert_eq!(one.call((&x,))?.to_vec::<f32>()?, expected, "of known shape");
            assert_eq!(bits(), 1 << wanted);
            // The sizes that the second call works on are not known ahead.
            let twice = function(move |x: Tensor| -> Result<Tensor> {
                let all = both(&x)?;
                Ok(both(&all[wanted])?.remove(wanted))
            });
            assert_eq!(twice.call((&x,))?.to_vec::<f32>()?, expected, "of unknown shape");
            assert_eq!(bits(), 1 << wanted);
        }
        let sums = function(move |x: Tensor| -> Result<Tensor> {
            let all = both(&x)?;
            all[0].sum_all()? - all[1].sum_all()?
        });
        assert_eq!(sums.call((&x,))?.to_scalar::<f32>()?, -6.0);
        assert_eq!(bits(), 0b11);
        Ok(())
    })
}

const ROLLED: OpDef = OpDef {
    name: "Acme>Rolled",
    summary: "Moves the rows of a vector on by a number of places.",
    inputs: &[arg_of("x", DType::F32), arg_of("shift", DType::I32).host()],
    gradient: Gradient::Missing,
    ..ADD_EACH
};

/// A kernel of a node whose shapes only data tells serves the next call of the same shapes and values.
#[test]
fn kernels_serve_the_next_call_like_theirs() -> Result<()> {
    let compile = CompileOptions { outline: false, ..Default::default() };
    let context = Context::with_options(ContextOptions { compile, ..Default::default() });
    let compiled = Arc::<AtomicUsize>::default();
    let counter = compiled.clone();
    let rolled = context.register_kernel(ROLLED, move |call| {
        counter.fetch_add(1, Ordering::Relaxed);
        let shift = call.inputs[1].value.as_ref().expect("a host input").to_i64s()?[0];
        let n = call.shape(0).num_elements();
        Ok(Some(Arc::new(move |io: &mut Io<'_>| {
            let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
            assert!(x.len() == n && y.len() == n);
            y.copy_from_slice(x);
            y.rotate_right(shift as usize % n.max(1));
            Ok(())
        })))
    })?;
    with_context(&context, || {
        let f = function(move |x: Tensor, shift: Tensor| -> Result<Tensor> {
            let positive = ops::where_(&x.greater(0.0f32)?)?;
            let kept = ops::gather_nd(&x, &positive)?;
            Ok(ops::raw(rolled, Attrs::new(), &[&kept, &shift])?.remove(0))
        });
        let calls = [(3, 1), (3, 1), (3, 2), (5, 2), (5, 2), (5, 2), (0, 2), (3, 1)];
        for (kept, shift) in calls {
            let x: Vec<f32> =
                (0..6).map(|n| if n < kept { n as f32 + 1.0 } else { -1.0 }).collect();
            let mut expected = x[..kept as usize].to_vec();
            let places = shift as usize % expected.len().max(1);
            expected.rotate_right(places);
            let found = f.call((&Tensor::from(x), &Tensor::from(shift)))?;
            assert_eq!(found.to_vec::<f32>()?, expected, "{kept} {shift}");
        }
        assert_eq!(compiled.load(Ordering::Relaxed), 5);
        Ok(())
    })
}

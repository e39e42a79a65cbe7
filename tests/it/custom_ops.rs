//! Ops of the user's own: closures with state, and kernels.

use ferroflow::{
    GradientTape, Tensor, function,
    ir::{
        Attrs, DType, Gradient, Lowering, OpDef, PartialShape,
        gradient::grads,
        infer::{self, OpContext},
        op::arg_of,
    },
    kernels::{Io, Kernel},
    ops,
    runtime::Context,
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

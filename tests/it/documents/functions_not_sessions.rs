//! "Functions, not Sessions", a design document of TensorFlow (2018).

use super::Outcome;
use ferroflow::{
    Checkpoint, Functions, HasFunctions, Tensor, Trackable, Variable, cond, control_dependencies,
    device, function,
    graph_def::{OtherEffects, graph_function, import_graph_def, to_graph_def, write_graph_def},
    ir::DType,
    load, ops, save, spec, summary,
    tracer::{
        Error, Nest, Result, literal,
        v1::{self, WrappedFunction, get_variable, wrap_function},
    },
};
use std::{
    cell::Cell,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

mod basic_idea {
    use super::*;

    #[function]
    fn compute_z1(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        x + y
    }

    #[function]
    fn compute_z0(x: &Tensor) -> Result<Tensor> {
        compute_z1(x, &x.square()?)
    }

    #[test]
    fn functions_stand_for_fetches() -> Outcome {
        let z0 = compute_z0(&Tensor::from(2.0))?;
        let z1 = compute_z1(&Tensor::from(2.0), &Tensor::from(2.0))?;
        assert_eq!((z0.to_string(), z1.to_string()), ("6.0".into(), "4.0".into()));
        Ok(())
    }
}

#[test]
fn state_is_captured() -> Outcome {
    let w = Variable::new([[0.5; 10]; 10])?;
    let b = Variable::new([0.0; 10])?;
    let c = Variable::new(0)?;
    let f = function({
        let (w, b, c) = (w.clone(), b.clone(), c.clone());
        move |x: Tensor| {
            c.assign_add(1)?;
            x.matmul(&w)? + &b
        }
    });
    assert_eq!(f(Tensor::from([[1.0; 10]]))?.to_string(), "[[5. 5. 5. 5. 5. 5. 5. 5. 5. 5.]]");
    assert_eq!(c.read()?.to_scalar::<i32>()?, 1);
    Ok(())
}

#[test]
fn effects_keep_the_order_of_the_program() -> Outcome {
    let v = Variable::new(1.0)?;
    let f = function(move || {
        v.assign(2.0)?;
        v.read()
    });
    assert_eq!(f()?.to_string(), "2.0");

    let (a, b) = (Variable::new(1.0)?, Variable::new(1.0)?);
    let f = function(move || {
        a.assign(2.0)?;
        b.assign(3.0)?;
        &a + &b
    });
    assert_eq!(f()?.to_string(), "5.0");
    Ok(())
}

mod functions_that_create_state {
    use super::*;

    static V: OnceLock<Variable> = OnceLock::new();

    #[function]
    fn f(x: &Tensor) -> Result<Tensor> {
        if V.get().is_none() {
            let _ = V.set(Variable::new(1.0f32)?);
        }
        x.cast(DType::F32)? + V.get().unwrap()
    }

    #[test]
    fn the_first_call_creates_it() -> Outcome {
        assert_eq!(f(&Tensor::from(1.0f32))?.to_string(), "2.0");
        assert_eq!(f(&Tensor::from(2))?.to_string(), "3.0");
        Ok(())
    }
}

#[test]
fn there_is_a_graph_for_each_dtype_and_number() -> Outcome {
    #[function]
    fn f(x: &Tensor) -> Result<Tensor> {
        x.square()
    }
    f(&Tensor::from(1))?;
    f(&Tensor::from(1.0))?;
    assert_eq!(f::tracing_count(), 2);

    #[function]
    fn of_number(x: f64) -> Result<Tensor> {
        Tensor::from(x).square()
    }
    of_number(1.0)?;
    of_number(2.0)?;
    assert_eq!(of_number::tracing_count(), 2);
    Ok(())
}

#[test]
fn there_is_a_graph_for_each_flag() -> Outcome {
    #[function]
    fn f(x: &Tensor, use_multiply: bool) -> Result<Tensor> {
        if use_multiply { x * x } else { x.square() }
    }
    f(&Tensor::from(2.0), true)?;
    f(&Tensor::from(2.0), false)?;
    assert_eq!(f::tracing_count(), 2);
    Ok(())
}

#[test]
fn there_is_a_graph_for_each_shape() -> Outcome {
    #[function]
    fn f(x: &Tensor) -> Result<Tensor> {
        x + 1.0
    }
    f(&Tensor::from([2.0]))?;
    f(&Tensor::from([2.0, 3.0]))?;
    f(&Tensor::from([[2.0]]))?;
    f(&Tensor::from([3.0]))?;
    f(&Tensor::from([4.0, 5.0]))?;
    assert_eq!(f::tracing_count(), 3);
    Ok(())
}

/// Devices share one graph, as the design of SavedModel and TensorFlow 2.21 have it; this document says two.
#[test]
fn scopes_of_devices_share_a_graph() -> Outcome {
    #[function]
    fn f(x: &Tensor) -> Result<Tensor> {
        x + 1.0
    }
    device("/device:CPU:0", || f(&Tensor::from(2.0)))?;
    f(&Tensor::from(2.0))?;
    assert_eq!(f::tracing_count(), 1);
    Ok(())
}

mod mutable_arguments {
    use super::*;
    use std::sync::Arc;

    struct Params {
        multiply: AtomicBool,
    }

    #[function]
    fn f(x: &Tensor, y: &Arc<Params>) -> Result<Tensor> {
        if y.multiply.load(Ordering::Relaxed) { x * 2.0 } else { x + 2.0 }
    }

    #[test]
    fn changes_are_not_seen() -> Outcome {
        let p = Arc::new(Params { multiply: AtomicBool::new(true) });
        assert_eq!(f(&Tensor::from(3.0), &p)?.to_string(), "6.0");
        p.multiply.store(false, Ordering::Relaxed);
        assert_eq!(f(&Tensor::from(3.0), &p)?.to_string(), "6.0");
        Ok(())
    }
}

mod input_signatures {
    use super::*;

    #[function(input_signature = [spec(float32, [None])])]
    fn f(x: &Tensor) -> Result<Tensor> {
        x + 1.0
    }

    #[test]
    fn one_graph_takes_all_lengths() -> Outcome {
        assert_eq!(f(&Tensor::from([2.0f32]))?.to_string(), "[3.]");
        assert_eq!(f(&Tensor::from([2.0f32, 3.0]))?.to_string(), "[3. 4.]");
        assert!(f(&Tensor::from([[2.0f32]])).is_err());
        assert!(f(&Tensor::from([2])).is_err());
        assert_eq!(f::tracing_count(), 1);
        Ok(())
    }

    #[function(input_signature = [any([None])])]
    fn square(x: &Tensor) -> Result<Tensor> {
        x.square()
    }

    #[test]
    fn dtypes_may_be_left_open() -> Outcome {
        assert_eq!(square(&Tensor::from([2.0]))?.to_string(), "[4.]");
        assert_eq!(square(&Tensor::from([2, 2]))?.to_string(), "[4 4]");
        Ok(())
    }
}

mod classes {
    use super::*;

    #[derive(HasFunctions)]
    struct ScalarModel {
        v: Variable,
        functions: Functions,
    }

    impl ScalarModel {
        fn new() -> Result<ScalarModel> {
            Ok(ScalarModel { v: Variable::new(0)?, functions: Functions::default() })
        }

        #[function]
        fn increment(&self, amount: &Tensor) -> Result<()> {
            self.v.assign_add(amount)
        }
    }

    #[test]
    fn each_object_has_its_state() -> Outcome {
        let model1 = ScalarModel::new()?;
        model1.increment(&Tensor::from(3))?;
        assert_eq!(model1.v.read()?.to_scalar::<i32>()?, 3);
        model1.increment(&Tensor::from(4))?;
        assert_eq!(model1.v.read()?.to_scalar::<i32>()?, 7);
        let model2 = ScalarModel::new()?;
        model2.increment(&Tensor::from(5))?;
        assert_eq!(model2.v.read()?.to_scalar::<i32>()?, 5);
        Ok(())
    }

    #[derive(Default, HasFunctions)]
    struct AnyShapeModel {
        v: OnceLock<Variable>,
        functions: Functions,
    }

    impl AnyShapeModel {
        #[function]
        fn increment(&self, amount: &Tensor) -> Result<()> {
            if self.v.get().is_none() {
                let _ = self.v.set(Variable::new(amount.zeros_like()?)?);
            }
            self.v.get().unwrap().assign_add(amount)
        }
    }

    #[test]
    fn each_object_creates_its_variables_once() -> Outcome {
        let model1 = AnyShapeModel::default();
        model1.increment(&Tensor::from(3))?;
        assert_eq!(model1.v.get().unwrap().read()?.to_string(), "3");
        model1.increment(&Tensor::from(4))?;
        assert_eq!(model1.v.get().unwrap().read()?.to_string(), "7");
        let model2 = AnyShapeModel::default();
        model2.increment(&Tensor::from([4, 5]))?;
        assert_eq!(model2.v.get().unwrap().read()?.to_string(), "[4 5]");
        Ok(())
    }
}

#[test]
fn wrapped_functions_keep_variables() -> Outcome {
    fn f(x: Tensor, do_add: bool) -> Result<Variable> {
        let v = Variable::new(5.0f32)?;
        if do_add {
            v.assign_add(x)?;
        } else {
            v.assign_sub(x)?;
        }
        Ok(v)
    }
    let float = |x: f32, f: &WrappedFunction| -> Result<f32> {
        f.call(&[Tensor::from(x).into()])?.tensor()?.to_scalar()
    };
    let f_add = wrap_function(f, [spec(DType::F32, []).into(), literal(true)])?;
    assert_eq!((float(1.0, &f_add)?, float(1.0, &f_add)?), (6.0, 7.0));
    let f_sub = wrap_function(f, [spec(DType::F32, []).into(), literal(false)])?;
    assert_eq!((float(1.0, &f_sub)?, float(1.0, &f_sub)?), (4.0, 3.0));
    Ok(())
}

fn filled(shape: &[usize], value: f32) -> Result<Tensor> {
    Tensor::from_slice(shape, &vec![value; shape.iter().product()])
}

#[test]
fn wrapped_functions_list_variables() -> Outcome {
    let f = |x: Tensor| {
        let w = get_variable("weight", &[10, 10], |shape| filled(shape, 0.1))?;
        let b = get_variable("bias", &[10], |shape| filled(shape, 0.0))?;
        let c = Variable::named("counter", 0)?;
        control_dependencies(&[&v1::assign_add(&c, 1)?], || x.matmul(&w)? + &b)
    };
    let f = wrap_function(f, [spec(DType::F32, [None, Some(10)])])?;
    println!("{:?}", f.call(&[Tensor::from([[1.0f32; 10]]).into()])?);
    assert_eq!(f.variables().len(), 3);
    assert_eq!(f.variables()[0].name(), "weight");
    Ok(())
}

#[test]
fn parameters_are_saved_without_the_computation() -> Outcome {
    let folder = tempfile::tempdir()?;
    let w = Variable::new([[0.5f32; 10]; 10])?;
    let train = function({
        let w = w.clone();
        move || w.assign_add(ops::ones_like(&w.read()?)?)
    });
    train()?;
    let checkpoint = Checkpoint::new().with("W", &w);
    let path = checkpoint.save(folder.path().join("checkpoint"))?;
    train()?;
    checkpoint.restore(path)?.assert_consumed()?;
    assert_eq!(w.read()?.to_vec::<f32>()?, [1.5; 100]);
    Ok(())
}

#[test]
fn graphs_are_exported_and_imported() -> Outcome {
    let folder = tempfile::tempdir()?;
    let w = Variable::new([[0.5f32; 10]; 10])?;
    let f = function(move |x: Tensor| x.matmul(&w));
    let concrete = f.concrete_for([spec(DType::F32, [None, Some(10)])])?;
    write_graph_def(&concrete, folder.path().join("graph.pb"))?;
    assert!(folder.path().join("graph.pb").exists());

    let f = function(|x: Tensor| x.square()).with_parameters(["x"]);
    let graph = to_graph_def(&f.concrete_for([spec(DType::F32, [])])?)?;
    let y = import_graph_def(&graph, &[("x:0", Tensor::from(3.0f32))], &["Identity:0"])?;
    assert_eq!(y[0].to_string(), "9.0");
    Ok(())
}

mod export {
    use super::*;

    #[derive(Trackable, HasFunctions)]
    struct Model {
        w: Variable,
        functions: Functions,
    }

    impl Model {
        #[function]
        fn f(&self, x: &Tensor) -> Result<Tensor> {
            x.matmul(&self.w)
        }
    }

    #[test]
    fn objects_are_exported_and_imported() -> Outcome {
        let folder = tempfile::tempdir()?;
        let w = Variable::new([[2.0f32, 0.0], [0.0, 3.0]])?;
        let m = Model { w, functions: Functions::default() };
        m.f(&Tensor::from([[1.0f32, 1.0]]))?;
        save(&m, folder.path(), &Default::default())?;
        let m = load(folder.path())?;
        let y: Tensor = m.call("f", (Tensor::from([[1.0f32, 1.0]]),))?;
        assert_eq!(y.to_string(), "[[2. 3.]]");
        Ok(())
    }
}

#[test]
fn subgraphs_are_carved_out() -> Outcome {
    let f = function(|x: Tensor| x.square()?.square());
    let graph = to_graph_def(&f.concrete_for([spec(DType::F32, [])])?)?;
    let f2 = graph_function(&graph, &["Square:0"], &["Square_1:0"], OtherEffects::Drop)?;
    assert_eq!(f2.call_flat(&[2.0f32.into()])?[0].to_string(), "4.0");
    Ok(())
}

mod extension {
    use super::*;

    #[function]
    fn f(x: &Tensor) -> Result<Tensor> {
        x.square()
    }

    #[function]
    fn g(x: &Tensor) -> Result<Tensor> {
        f(x)?.square()
    }

    #[test]
    fn graphs_are_extended_by_calls() -> Outcome {
        assert_eq!(g(&Tensor::from(2.0))?.to_string(), "16.0");
        Ok(())
    }
}

mod control_flow {
    use super::*;

    #[function]
    fn f(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        if y.eq(0.0)? {
            return Ok(y.clone());
        }
        x / y
    }

    #[function(autograph = false)]
    fn with_cond(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        cond(&y.eq(0.0)?, || Ok(y.clone()), || x / y)
    }

    #[test]
    fn autograph_converts_what_a_tensor_decides() -> Outcome {
        let (x, y) = (Tensor::from(2.0), Tensor::from(2.0));
        assert_eq!(f(&x, &y)?.to_string(), "1.0");
        assert_eq!(f(&x, &Tensor::from(0.0))?.to_string(), "0.0");
        assert_eq!(with_cond(&x, &y)?.to_string(), "1.0");
        assert_eq!((f::tracing_count(), with_cond::tracing_count()), (1, 1));
        Ok(())
    }

    /// Without AutoGraph, a tensor of a trace is no condition of Rust.
    #[test]
    fn a_tensor_of_a_trace_is_no_condition() -> Outcome {
        let df = function(|x: Tensor, y: Tensor| if y.eq(0.0)?.to_bool()? { Ok(y) } else { x / y });
        assert!(df(Tensor::from(2.0), Tensor::from(2.0)).is_err());
        Ok(())
    }
}

#[test]
fn summaries_are_written_where_a_writer_is() -> Outcome {
    fn f() -> Result<()> {
        summary::scalar("loss", &Tensor::from(0.5f32), 0)
    }
    let df = function(f);
    let size = |calls: usize, call: &dyn Fn() -> Result<()>| -> Outcome<u64> {
        let folder = tempfile::tempdir()?;
        let writer = summary::create_file_writer(folder.path())?;
        for _ in 0..calls {
            writer.with(|| summary::record_if(true, call))?;
        }
        writer.with(|| summary::record_if(false, call))?;
        writer.close()?;
        Ok(std::fs::metadata(writer.path())?.len())
    };
    let nothing = size(0, &f)?;
    assert!(size(1, &f)? > nothing);
    assert_eq!(size(1, &|| df())?, size(1, &f)?);
    assert_eq!(size(0, &|| df())?, nothing);
    Ok(())
}

/// The alternatives that the document considers: state of the call is refused, and state of the function
/// is what `wrap_function` has.
#[test]
fn functions_that_always_create_state_are_refused() -> Outcome {
    let f = |x: Tensor| {
        let v = Variable::new(1.0f32)?;
        v.assign_add(x)?;
        v.read()
    };
    assert_eq!(f(Tensor::from(1.0f32))?.to_string(), "2.0");
    assert_eq!(f(Tensor::from(1.0f32))?.to_string(), "2.0");
    assert!(function(f)(Tensor::from(1.0f32)).is_err());
    let lifted = |x: Tensor| {
        let v = Variable::new(1.0f32)?;
        v.assign_add(x)?;
        Ok::<_, Error>(v)
    };
    let df = wrap_function(lifted, [spec(DType::F32, [])])?;
    let call =
        || -> Result<String> { Ok(df.call(&[Tensor::from(1.0f32).into()])?.tensor()?.to_string()) };
    assert_eq!((call()?, call()?), ("2.0".into(), "3.0".into()));
    Ok(())
}

/// Signature by the first call, an idea at the end of the document.
#[test]
fn signatures_are_inferred_from_the_first_call() -> Outcome {
    #[function(infer_signature_from_first_call)]
    fn f(x: &Nested) -> Result<Tensor> {
        &x.a + &x.b
    }

    #[derive(Nest, Clone)]
    struct Nested {
        a: Tensor,
        b: Tensor,
    }

    let of = |a: f64, b: f64| Nested { a: a.into(), b: b.into() };
    assert_eq!(f(&of(1.0, 2.0))?.to_string(), "3.0");
    assert_eq!(f(&of(3.0, 4.0))?.to_string(), "7.0");
    let count = Cell::new(f::tracing_count());
    assert_eq!(count.take(), 1);
    Ok(())
}

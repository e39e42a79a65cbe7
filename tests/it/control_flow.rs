//! Control flow: by hand, and that of Rust in functions.

use crate::support::printed;
use ferroflow::{
    Function, Tensor, Trackable, cond, function,
    ir::{Code, DType, FunctionDef, FunctionLibrary, trace_type::Literal},
    ops, print, range,
    runtime::Context,
    save,
    saved_model::{LoadOptions, SaveOptions, load},
    tracer::{ConcreteFunction, Error, NestedValue, Result},
    while_loop,
};
use std::collections::BTreeMap;

/// The ops that a function and all it calls are made of.
fn ops_of(concrete: &ConcreteFunction) -> Vec<String> {
    fn visit(def: &FunctionDef, library: &FunctionLibrary, found: &mut Vec<String>) {
        for (_, node) in def.graph.iter() {
            found.push(node.op.name().into());
            for callee in ferroflow::ir::function::callees(&node.attrs) {
                let callee = library.get(&callee).expect("a function that is called is there");
                visit(&callee, library, found);
            }
        }
    }
    let mut found = Vec::new();
    visit(concrete.def(), concrete.library(), &mut found);
    found
}

fn count(concrete: &ConcreteFunction, op: &str) -> usize {
    ops_of(concrete).iter().filter(|found| *found == op).count()
}

/// The document's function, as Rust code that looks at a value.
fn divided(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if bool::try_from(&y.equal(0.0)?)? {
        return Ok(y.clone());
    }
    x / y
}

/// The same, with control flow as Rust writes it.
#[function]
fn df(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if y.equal(0.0)? {
        return Ok(y.clone());
    }
    x / y
}

fn twos() -> [Tensor; 2] {
    [Tensor::from(2.0f32), Tensor::from(2.0f32)]
}

// spec: 188, 189
#[test]
fn without_rewriting_a_trace_cannot_branch() -> Result<()> {
    let [x, y] = twos();
    assert_eq!(divided(&x, &y)?.to_scalar::<f32>()?, 1.0);
    let traced = function(|x: Tensor, y: Tensor| divided(&x, &y));
    let error = traced.call((&x, &y)).unwrap_err();
    assert!(matches!(error, Error::Symbolic { .. }), "{error:?}");
    assert_eq!(error.code(), Code::InvalidArgument);
    let text = error.to_string();
    assert!(text.contains("branching on it in Rust works on eager tensors only"), "{text}");

    #[function(autograph = false)]
    fn unrewritten(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        if y.equal(0.0)?.to_bool()? {
            return Ok(y.clone());
        }
        x / y
    }
    assert!(matches!(unrewritten(&x, &y), Err(Error::Symbolic { .. })));
    Ok(())
}

// spec: 190
#[test]
fn cond_of_a_division() -> Result<()> {
    let f = |x: Tensor, y: Tensor| cond(&y.equal(0.0)?, || Ok(y.clone()), || &x / &y);
    let [x, y] = twos();
    assert_eq!(f(x.clone(), y.clone())?.to_scalar::<f32>()?, 1.0);
    let df = function(f);
    assert_eq!(df.call((&x, &y))?.to_scalar::<f32>()?, 1.0);
    assert_eq!(df.call((2.0f32, 0.0f32))?.to_scalar::<f32>()?, 0.0);
    assert_eq!(df.tracing_count(), 1);
    assert_eq!(count(&df.concrete((&x, &y))?, "StatelessIf"), 1);
    Ok(())
}

// spec: 191
#[test]
fn cond_and_while_loop_are_functions() -> Result<()> {
    let collatz = |n: Tensor| {
        while_loop(
            |(n, _): &(Tensor, Tensor)| n.greater(1),
            |(n, steps)| {
                let is_even = (&n % 2)?.equal(0)?;
                Ok((cond(&is_even, || n.floor_div(2), || (&n * 3)? + 1)?, (steps + 1)?))
            },
            (n, Tensor::from(0)),
        )
    };
    let traced = function(collatz);
    for (start, expected) in [(1, 0), (6, 8), (27, 111)] {
        assert_eq!(collatz(Tensor::from(start))?.1.to_scalar::<i32>()?, expected);
        assert_eq!(traced.call((start,))?.1.to_scalar::<i32>()?, expected);
    }
    let concrete = traced.concrete((1,))?;
    assert_eq!((count(&concrete, "StatelessWhile"), count(&concrete, "StatelessIf")), (1, 1));
    Ok(())
}

// spec: 192, 195
#[test]
fn functions_are_rewritten_unless_they_say_no() -> Result<()> {
    let [x, y] = twos();
    assert_eq!(df(&x, &y)?.to_scalar::<f32>()?, 1.0);
    assert_eq!(df(&x, &Tensor::from(0.0f32))?.to_scalar::<f32>()?, 0.0);
    assert_eq!(df::tracing_count(), 1);

    #[function(autograph = true)]
    fn asked(x: &Tensor) -> Result<Tensor> {
        if x.less(0.0)? { x.neg() } else { Ok(x.clone()) }
    }
    assert_eq!(asked(&Tensor::from(-2.0f32))?.to_scalar::<f32>()?, 2.0);
    assert_eq!(count(&asked::concrete((&x,))?, "StatelessIf"), 1);
    Ok(())
}

// spec: 193, 199
#[test]
fn tensors_make_graphs_and_values_of_rust_run_as_usual() -> Result<()> {
    #[function]
    fn mixed(x: &Tensor, n: i64, limit: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let (mut x, mut counted) = (x.clone(), 0);
        for _ in 0..n {
            x = (x * 2)?;
            counted += 1;
        }
        if counted > 2 {
            x = (x + 1000)?;
        }
        while x.less(limit)? {
            x = (x + 7)?;
        }
        for row in rows {
            x = (x + row)?;
        }
        if x.greater(100)? {
            x = x.neg()?;
        }
        assert!(x.less(5000)?);
        Ok(x)
    }
    let (one, limit, rows) = (Tensor::from(1), Tensor::from(30), Tensor::from([1, 2, 3]));
    // 1, 4, 32, 38
    assert_eq!(mixed(&one, 2, &limit, &rows)?.to_scalar::<i32>()?, 38);
    assert_eq!(mixed(&one, 3, &limit, &rows)?.to_scalar::<i32>()?, -1014);
    let concrete = mixed::concrete((&one, 2, &limit, &rows))?;
    // What Rust loops over is unrolled, what tensors decide is one op each.
    assert_eq!(count(&concrete, "Mul"), 2);
    assert_eq!(count(&concrete, "StatelessWhile"), 2);
    assert_eq!(count(&concrete, "StatelessIf"), 1);
    assert_eq!(count(&concrete, "Assert"), 1);
    Ok(())
}

// spec: 194
#[test]
fn assert_fails_when_the_graph_runs() -> Result<()> {
    #[function]
    fn root(x: &Tensor) -> Result<Tensor> {
        assert!(x.greater_equal(0.0)?, "no root of a negative number");
        x.sqrt()
    }
    assert_eq!(root(&Tensor::from(9.0f32))?.to_scalar::<f32>()?, 3.0);
    let error = root(&Tensor::from(-1.0f32)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("no root of a negative number"), "{error}");
    assert_eq!(root(&Tensor::from(4.0f32))?.to_scalar::<f32>()?, 2.0);
    assert_eq!(root::tracing_count(), 1);
    assert_eq!(count(&root::concrete((Tensor::from(1.0f32),))?, "Assert"), 1);
    Ok(())
}

// spec: 196
#[test]
fn a_range_is_one_loop_whatever_its_length() -> Result<()> {
    #[function]
    fn powers(n: &Tensor) -> Result<Tensor> {
        let mut x = Tensor::from(1i64);
        for _ in range(n) {
            x = (x * 2)?;
        }
        Ok(x)
    }
    for n in [0, 1, 40] {
        assert_eq!(powers(&Tensor::from(n))?.to_scalar::<i64>()?, 1 << n);
    }
    assert_eq!(powers::tracing_count(), 1);
    let concrete = powers::concrete((Tensor::from(40),))?;
    assert_eq!((count(&concrete, "StatelessWhile"), count(&concrete, "Mul")), (1, 1));
    Ok(())
}

// spec: 197
#[test]
fn code_that_needs_values_is_no_graph() {
    #[function]
    fn looks(x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        while x.to_scalar::<f32>()? < 10.0 {
            x = (x * 2.0)?;
        }
        Ok(x)
    }
    let x = Tensor::from(3.0f32);
    let eager = looks::function().host_fn()((x.clone(),)).expect("eager tensors have values");
    assert_eq!(eager.to_scalar::<f32>().ok(), Some(12.0));
    let error = looks::concrete((&x,)).unwrap_err();
    assert!(matches!(error, Error::Symbolic { .. }), "{error:?}");

    #[function]
    fn differs(x: &Tensor) -> Result<Tensor> {
        if x.less(1.0)? { x.cast(DType::I32) } else { Ok(x.clone()) }
    }
    let error = differs::concrete((&x,)).unwrap_err();
    assert!(matches!(error, Error::Branches { .. }), "{error:?}");
}

/// The guide's `train`.
#[function]
fn train(num_steps: NestedValue) -> Result<()> {
    println!("Tracing with num_steps = {num_steps:?}");
    let steps = match num_steps {
        NestedValue::Literal(Literal::Int(steps)) => Tensor::from(steps as i32),
        NestedValue::Tensor(steps) => steps,
        other => return Err(other.is_not("a number of steps")),
    };
    print!("Executing with num_steps = ", steps)?;
    for _ in range(&steps) {
        train_one_step()?;
    }
    Ok(())
}

fn train_one_step() -> Result<()> {
    print!("a step")
}

// spec: 99, 100
#[test]
fn loops_of_training_share_a_trace_for_tensors() -> Result<()> {
    let text = printed(|_| {
        train(10.into())?;
        train(20.into())?;
        assert_eq!(train::tracing_count(), 2);
        train(Tensor::from(10).into())?;
        train(Tensor::from(20).into())?;
        assert_eq!(train::tracing_count(), 3);
        Ok(())
    })?;
    let expected: String = [10, 20, 10, 20]
        .map(|steps| format!("Executing with num_steps =  {steps}\n{}", "a step\n".repeat(steps)))
        .concat();
    assert_eq!(text, expected);
    let concrete = train::concrete((Tensor::from(1),))?;
    assert_eq!((count(&concrete, "While"), count(&concrete, "PrintV2")), (1, 2));
    Ok(())
}

// spec: 199
#[test]
fn each_construct_has_its_op() -> Result<()> {
    #[function]
    fn all(n: &Tensor) -> Result<Tensor> {
        let mut x = n.clone();
        while x.less(10)? {
            x = (x + 3)?;
        }
        for i in range(n) {
            x = (x + i)?;
        }
        if x.greater(20)? {
            x = (x - 20)?;
        }
        assert!(x.less(20)?);
        ops::identity(&x)
    }
    let n = Tensor::from(5);
    // 11, 21, 1
    assert_eq!(all(&n)?.to_scalar::<i32>()?, 1);
    let concrete = all::concrete((&n,))?;
    let of = |op| count(&concrete, op);
    assert_eq!((of("StatelessWhile"), of("StatelessIf"), of("Assert")), (2, 1, 1));
    Ok(())
}

/// Loops within loops, branches, all kinds of jumps, and what is captured through several levels.
#[function]
fn winding(x: &Tensor) -> Result<Tensor> {
    let (limit, step) = ((x * 3)?, Tensor::from(2));
    let (mut x, mut steps) = (x.clone(), Tensor::from(0));
    'outer: for i in range(Tensor::from(5)) {
        while x.less(&limit)? && !steps.greater(20)? {
            steps = (steps + 1)?;
            if (&x % 5)?.equal(0)? {
                x = (x + 1)?;
                continue;
            }
            x = (x + &step)?;
            if x.equal(17)? || steps.equal(13)? {
                break 'outer;
            }
            if x.greater(60)? {
                return x.neg();
            }
        }
        x = (x - &i)?;
    }
    (x * 100)? + steps
}

// spec: 193
#[test]
fn control_flow_is_saved_and_loaded() -> std::result::Result<(), Box<dyn std::error::Error>> {
    #[derive(Trackable)]
    struct Model {
        winding: Function<(Tensor,), Tensor>,
    }

    let model = Model { winding: winding::function().clone() };
    let inputs = [-7, 0, 1, 2, 4, 6, 9, 23, 40];
    let expected = [-1700, -397, -96, 206, 909, 1410, 2813, 4513, -63];
    let host = model.winding.host_fn();
    for (x, expected) in inputs.into_iter().zip(expected) {
        assert_eq!(host((Tensor::from(x),))?.to_scalar::<i32>()?, expected, "eager, {x}");
        assert_eq!(winding(&Tensor::from(x))?.to_scalar::<i32>()?, expected, "traced, {x}");
    }

    let folder = tempfile::tempdir()?;
    save(&model, folder.path(), &SaveOptions::default())?;
    let loaded = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    let loaded = loaded.root().ok_or("an object")?.get("winding")?.function()?;
    for (x, expected) in inputs.into_iter().zip(expected) {
        let x = Tensor::from(x).eager()?.clone();
        let y = loaded.call(&[x.into()], &BTreeMap::new())?;
        assert_eq!(y.tensor().ok_or("a tensor")?.host()?.as_scalar::<i32>()?, expected);
    }
    Ok(())
}

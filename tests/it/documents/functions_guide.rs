//! "Better performance with tf.function", a guide of TensorFlow.

use super::Outcome;
use crate::support::printed;
use ferroflow::{
    GradientTape, Nest, Tensor, TraceType, Variable, autograph, function,
    graph_def::to_graph_def,
    ir::DType,
    print, range, spec,
    tracer::{Result, literal},
};

fn ones(shape: &[usize]) -> Result<Tensor> {
    Tensor::from_slice(shape, &vec![1.0f32; shape.iter().product()])
}

mod usage {
    use super::*;

    #[function]
    fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
        a + b
    }

    #[function]
    fn dense_layer(x: &Tensor, w: &Tensor, b: &Tensor) -> Result<Tensor> {
        add(&x.matmul(w)?, b)
    }

    #[test]
    fn a_function_is_like_an_operation() -> Outcome {
        assert_eq!(add(&ones(&[2, 2])?, &ones(&[2, 2])?)?.to_string(), "[[2. 2.]\n [2. 2.]]");

        let v = Variable::new(1.0f32)?;
        let tape = GradientTape::new();
        let result = add(&v.read()?, &Tensor::from(1.0f32))?;
        assert_eq!(tape.gradient(&result, &v)?.unwrap().to_string(), "1.0");

        let y = dense_layer(&ones(&[3, 2])?, &ones(&[2, 2])?, &ones(&[2])?)?;
        assert_eq!(y.to_string(), "[[3. 3.]\n [3. 3.]\n [3. 3.]]");
        Ok(())
    }
}

mod tracing {
    use super::*;

    #[function]
    fn double(a: &Tensor) -> Result<Tensor> {
        println!("Tracing with {a:?}");
        a + a
    }

    #[test]
    fn each_type_is_traced_once() -> Outcome {
        assert_eq!(double(&Tensor::from(1))?.to_string(), "2");
        assert_eq!(double(&Tensor::from(1.1f32))?.to_string(), "2.2");
        assert_eq!(double(&Tensor::from("a"))?.to_text()?, "aa");
        assert_eq!(double(&Tensor::from("b"))?.to_text()?, "bb");
        assert_eq!(double::tracing_count(), 3);
        let listed = "Input Parameters:\n  \
                      a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.int32, name=None)\n\
                      Output Type:\n  TensorSpec(shape=(), dtype=tf.int32, name=None)\n\
                      Captures:\n  None\n\nInput Parameters:\n  \
                      a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.float32, name=None)";
        assert!(double::signatures().starts_with(listed), "{}", double::signatures());
        Ok(())
    }

    #[test]
    fn concrete_functions_are_at_hand() -> Outcome {
        let double_strings = double::concrete(("a",))?;
        let call = |text| -> Result<String> {
            double_strings.call(&[Tensor::from(text).into()])?.tensor()?.to_text()
        };
        assert_eq!(call("a")?, "aa");
        let by_name = double_strings.call_named(&[], &[("a", Tensor::from("b").into())])?;
        assert_eq!(by_name.tensor()?.to_text()?, "bb");
        let from_spec = double::function().concrete_for([spec(DType::String, [])])?;
        assert_eq!(from_spec.call(&[Tensor::from("c").into()])?.tensor()?.to_text()?, "cc");

        let string = "TensorSpec(shape=(), dtype=tf.string, name=None)";
        assert_eq!(
            double_strings.to_string(),
            format!(
                "ConcreteFunction Input Parameters:\n  a (POSITIONAL_OR_KEYWORD): {string}\n\
                 Output Type:\n  {string}\nCaptures:\n  None"
            )
        );
        assert_eq!(
            double_strings.function_type().to_string(),
            format!("(a: {string}) -> {string}")
        );
        assert!(double_strings.call(&[Tensor::from(1).into()]).is_err());

        let graph = to_graph_def(&double_strings)?;
        let nodes = graph.node.iter().map(|node| format!("{:?} -> {}", node.input, node.name));
        let expected = ["[] -> a", r#"["a", "a"] -> add"#, r#"["add"] -> Identity"#];
        assert_eq!(nodes.collect::<Vec<_>>(), expected);
        let atomic_fn = double_strings.inference_fn();
        assert_eq!(
            Tensor::from(atomic_fn.call(&[Tensor::from("a").eager()?.clone()])?.remove(0))
                .to_text()?,
            "aa"
        );
        Ok(())
    }

    #[function]
    fn pow(a: &Tensor, b: f64) -> Result<Tensor> {
        a.pow(b as f32)
    }

    #[test]
    fn numbers_of_the_host_are_part_of_the_type() -> Outcome {
        let unknown =
            ferroflow::ir::TraceType::tensor(DType::F32, ferroflow::ir::PartialShape::Unknown);
        let square = pow::function().concrete_for([unknown, literal(2.0)])?;
        assert!(square.to_string().contains("b (POSITIONAL_OR_KEYWORD): Literal[2.0]"), "{square}");
        let ten = || Tensor::from(10.0f32).into();
        assert_eq!(square.call(&[ten()])?.tensor()?.to_scalar::<f32>()?, 100.0);
        let error = square.call_named(&[ten()], &[("b", 3.0.into())]).unwrap_err().to_string();
        assert!(error.contains("Can not cast 3.0 to Literal[2.0]"), "{error}");
        assert!(error.contains("got unexpected keyword arguments: b"), "{error}");
        Ok(())
    }
}

mod controlling_retracing {
    use super::*;

    #[function(input_signature = [spec(int32, [None])])]
    fn next_collatz(x: &Tensor) -> Result<Tensor> {
        println!("Tracing with {x:?}");
        x.floor_mod(2)?.eq(0)?.select(&x.floor_div(2)?, &(3 * x + 1)?)
    }

    #[test]
    fn an_input_signature_is_one_type() -> Outcome {
        assert_eq!(next_collatz(&Tensor::from([1, 2]))?.to_string(), "[4 1]");
        let error = next_collatz(&Tensor::from([[1, 2], [3, 4]])).unwrap_err().to_string();
        assert!(error.contains("Can not cast TensorSpec(shape=(2, 2), dtype=tf.int32"), "{error}");
        let error = next_collatz(&Tensor::from([1.0f32, 2.0])).unwrap_err().to_string();
        assert!(error.contains("Can not cast TensorSpec(shape=(2,), dtype=tf.float32"), "{error}");
        Ok(())
    }

    #[function(input_signature = [spec(int32, [None])])]
    fn g(x: &Tensor) -> Result<Tensor> {
        println!("Tracing with {x:?}");
        Ok(x.clone())
    }

    #[function(reduce_retracing)]
    fn relaxed(x: &Tensor) -> Result<Tensor> {
        println!("Tracing with {x:?}");
        Ok(x.clone())
    }

    #[test]
    fn lengths_do_not_make_traces() -> Outcome {
        assert_eq!(g(&Tensor::from([1, 2, 3]))?.to_string(), "[1 2 3]");
        assert_eq!(g(&Tensor::from([1, 2, 3, 4, 5]))?.to_string(), "[1 2 3 4 5]");
        assert_eq!(g::tracing_count(), 1);

        for n in [3, 5, 7, 9] {
            let x = Tensor::from((1..=n).collect::<Vec<i32>>());
            assert_eq!(relaxed(&x)?.to_vec::<i32>()?.len(), n as usize);
        }
        assert_eq!(relaxed::tracing_count(), 2);
        Ok(())
    }
}

/// "Pass tensors instead of Python literals".
#[test]
fn tensors_share_a_trace_where_numbers_do_not() -> Outcome {
    fn train_one_step() {}

    let all = printed(|out| {
        let train = function({
            let out = out.clone();
            move |num_steps: i32| {
                out.line(format!("Tracing with num_steps = {num_steps}"));
                print!("Executing with num_steps = {}", num_steps)?;
                for _ in 0..num_steps {
                    train_one_step();
                }
                Ok::<_, ferroflow::tracer::Error>(())
            }
        });
        out.line("Retracing occurs for different Python arguments.");
        train(10)?;
        train(20)?;

        let train = function({
            let out = out.clone();
            autograph!(move |num_steps: Tensor| -> Result<()> {
                out.line(format!("Tracing with num_steps = {num_steps:?}"));
                print!("Executing with num_steps = {}", &num_steps)?;
                for _ in range(&num_steps) {
                    train_one_step();
                }
                Ok(())
            })
        });
        out.line("Traces are reused for Tensor arguments.");
        train(Tensor::from(10))?;
        train(Tensor::from(20))?;
        Ok(())
    })?;
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines[0], "Retracing occurs for different Python arguments.");
    assert_eq!(&lines[1..3], ["Tracing with num_steps = 10", "Executing with num_steps = 10"]);
    assert_eq!(&lines[3..5], ["Tracing with num_steps = 20", "Executing with num_steps = 20"]);
    assert_eq!(lines[5], "Traces are reused for Tensor arguments.");
    assert!(lines[6].starts_with("Tracing with num_steps = Tensor("), "{all}");
    assert_eq!(&lines[7..], ["Executing with num_steps = 10", "Executing with num_steps = 20"]);
    Ok(())
}

#[test]
fn functions_never_share_traces() -> Outcome {
    let all = printed(|out| {
        let f = {
            let out = out.clone();
            move || {
                out.line("Tracing!");
                print!("Executing")
            }
        };
        function(f.clone())()?;
        function(f)()
    })?;
    assert_eq!(all, "Tracing!\nExecuting\nTracing!\nExecuting\n");
    Ok(())
}

mod tracing_protocol {
    use super::*;

    #[derive(Clone, Nest)]
    enum Fruit {
        Apple,
        Mango,
    }

    impl Fruit {
        fn flavor(&self) -> Tensor {
            match self {
                Fruit::Apple => Tensor::from([1, 2]),
                Fruit::Mango => Tensor::from([3, 4]),
            }
        }
    }

    #[function]
    fn get_mixed_flavor(a: &Fruit, b: &Fruit) -> Result<Tensor> {
        a.flavor() + b.flavor()
    }

    #[derive(Clone, TraceType)]
    #[trace(by_type)]
    struct Apple;

    #[derive(Clone, TraceType)]
    #[trace(by_type)]
    struct Mango;

    #[function]
    fn mixed(_a: &Apple, _b: &Mango) -> Result<Tensor> {
        Tensor::from([1, 2]) + Tensor::from([3, 4])
    }

    #[test]
    fn a_kind_of_fruit_is_traced_once() -> Outcome {
        assert_eq!(get_mixed_flavor(&Fruit::Apple, &Fruit::Mango)?.to_string(), "[4 6]");
        assert_eq!(get_mixed_flavor(&Fruit::Apple, &Fruit::Mango)?.to_string(), "[4 6]");
        assert_eq!(get_mixed_flavor::tracing_count(), 1);
        assert_eq!(mixed(&Apple, &Mango)?.to_string(), "[4 6]");
        assert_eq!(mixed(&Apple, &Mango)?.to_string(), "[4 6]");
        assert_eq!(mixed::tracing_count(), 1);
        Ok(())
    }
}

#[test]
fn functions_run_eagerly_for_debugging() -> Outcome {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };
    let runs = Arc::new(AtomicU32::new(0));
    let f = function({
        let runs = runs.clone();
        move |x: Tensor| {
            runs.fetch_add(1, Ordering::Relaxed);
            x.square()
        }
    });
    ferroflow::tracer::context::with_functions_run_eagerly(true, || {
        f(Tensor::from(2.0))?;
        f(Tensor::from(3.0))
    })?;
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    Ok(())
}

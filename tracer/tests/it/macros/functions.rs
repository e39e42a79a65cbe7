//! `#[function]` on free functions.

use expect_test::expect;
use ferroflow_ir::{DType, TraceType, trace_type::Literal};
use ferroflow_tracer::{
    FunctionOptions, Nest, NestedValue, PolymorphicFunction, Result, Tensor, Variable,
    context::with_functions_run_eagerly, function, function_with, spec,
};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

// spec: 24, 25, 51
#[test]
fn there_is_one_graph_per_dtype() {
    #[function]
    fn square(x: &Tensor) -> Result<Tensor> {
        x.square()
    }
    assert_eq!(square::tracing_count(), 0);
    assert_eq!(square(&Tensor::from(3i32)).unwrap().to_scalar::<i32>().unwrap(), 9);
    assert_eq!(square(&Tensor::from(3.0f32)).unwrap().to_scalar::<f32>().unwrap(), 9.0);
    assert_eq!(square(&Tensor::from(4i32)).unwrap().to_scalar::<i32>().unwrap(), 16);
    assert_eq!(square::tracing_count(), 2);
    assert_eq!(square::function().concrete_functions().len(), 2);
}

// spec: 44, 169, 168, 170
#[test]
fn signatures_print_as_tensorflow_prints_them() {
    #[function]
    fn double(a: &Tensor) -> Result<Tensor> {
        a + a
    }
    assert_eq!(double(&Tensor::from(1i32)).unwrap().to_scalar::<i32>().unwrap(), 2);
    assert_eq!(double(&Tensor::from(1.1f32)).unwrap().to_scalar::<f32>().unwrap(), 2.2);
    assert_eq!(double(&Tensor::from("a")).unwrap().to_text().unwrap(), "aa");
    assert_eq!(double(&Tensor::from("b")).unwrap().to_text().unwrap(), "bb");
    expect![[r#"
        Input Parameters:
          a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.int32, name=None)
        Output Type:
          TensorSpec(shape=(), dtype=tf.int32, name=None)
        Captures:
          None

        Input Parameters:
          a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.float32, name=None)
        Output Type:
          TensorSpec(shape=(), dtype=tf.float32, name=None)
        Captures:
          None

        Input Parameters:
          a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.string, name=None)
        Output Type:
          TensorSpec(shape=(), dtype=tf.string, name=None)
        Captures:
          None"#]]
    .assert_eq(&double::signatures());
    let strings = double::concrete(("a",)).unwrap();
    assert_eq!(double::tracing_count(), 3);
    assert_eq!(
        strings.function_type().to_string(),
        "(a: TensorSpec(shape=(), dtype=tf.string, name=None)) -> \
         TensorSpec(shape=(), dtype=tf.string, name=None)"
    );
}

#[derive(Nest, Clone, Copy)]
enum Act {
    Relu,
    Leaky(f32),
}

/// A layer, as in the documentation.
#[function]
#[expect(clippy::needless_pass_by_value, reason = "attributes of users are kept")]
pub(crate) fn dense(x: &Tensor, w: &Variable, act: Act) -> Result<Tensor> {
    let y = x.matmul(w.read()?)?;
    match act {
        Act::Relu => y.relu(),
        Act::Leaky(slope) => y.greater(0.0)?.select(&y, &(&y * slope)?),
    }
}

// spec: 22
#[test]
fn values_of_rust_are_part_of_the_type() {
    let (x, w) = (Tensor::from([[1.0f32, -1.0]]), Variable::new([[2.0f32, 0.0], [0.0, 4.0]]));
    let w = w.unwrap();
    assert_eq!(floats(&dense(&x, &w, Act::Relu).unwrap()), [2.0, 0.0]);
    assert_eq!(floats(&dense(&x, &w, Act::Leaky(0.5)).unwrap()), [2.0, -2.0]);
    assert_eq!(floats(&dense::call((&x, &w, Act::Leaky(0.25))).unwrap()), [2.0, -1.0]);
    assert_eq!(dense::tracing_count(), 3);
    assert_eq!(floats(&dense(&x, &w, Act::Leaky(0.5)).unwrap()), [2.0, -2.0]);
    assert_eq!(dense::tracing_count(), 3);
    let traces = dense::function().concrete_functions();
    expect![
        "(x: TensorSpec(shape=(1, 2), dtype=tf.float32, name=None), w: VariableSpec(shape=(2, 2), dtype=tf.float32, trainable=True, alias_id=0), act: Act::Leaky[['0', Literal[0.5]]]) -> TensorSpec(shape=(1, 2), dtype=tf.float32, name=None)"
    ]
    .assert_eq(&traces[1].function_type().to_string());
    assert!(traces.iter().all(|trace| trace.captures().is_empty()));
}

// spec: 39
#[test]
fn functions_call_functions() {
    #[function]
    fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        x + y
    }
    #[function]
    fn dense_layer(x: &Tensor, w: &Tensor, b: &Tensor) -> Result<Tensor> {
        add(&x.matmul(w)?, b)
    }
    let ones =
        |shape: &[usize]| Tensor::from_slice(shape, &vec![1.0f32; shape.iter().product()]).unwrap();
    let y = dense_layer(&ones(&[3, 2]), &ones(&[2, 2]), &ones(&[2])).unwrap();
    assert_eq!(y.shape().to_string(), "[3,2]");
    assert_eq!(floats(&y), [3.0; 6]);
    assert_eq!((add::tracing_count(), dense_layer::tracing_count()), (1, 1));
    let graph = dense_layer::function().concrete_functions()[0].graph().clone();
    assert!(graph.iter().any(|(_, node)| node.op.name() == "PartitionedCall"));
}

// spec: 45, b24
#[test]
fn rust_code_runs_while_tracing_only() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    #[function]
    fn counted(x: Tensor) -> Result<Tensor> {
        RUNS.fetch_add(1, Ordering::Relaxed);
        x.square()
    }
    for x in [1.0f32, 2.0, 3.0] {
        counted(x.into()).unwrap();
    }
    assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    counted(Tensor::from([1.0f32])).unwrap();
    assert_eq!(RUNS.load(Ordering::Relaxed), 2);
    assert_eq!(counted::tracing_count(), 2);
}

type Several = (Tensor, Vec<Tensor>, BTreeMap<String, Tensor>, Option<Tensor>);

// spec: 11, b21
#[test]
fn results_are_any_nest() {
    #[function]
    fn nothing(_x: &Tensor) -> Result<()> {
        Ok(())
    }
    #[function]
    fn several(x: &Tensor) -> Result<Several> {
        let named = BTreeMap::from([("three".to_string(), (x + 2.0)?)]);
        Ok(((x + 1.0)?, vec![x.clone()], named, None))
    }
    #[function]
    fn answer() -> Result<Tensor> {
        Ok(Tensor::from(42i32))
    }
    let x = Tensor::from(1.0f32);
    nothing(&x).unwrap();
    let (next, list, named, none) = several(&x).unwrap();
    assert_eq!(floats(&next), [2.0]);
    assert_eq!(list.iter().flat_map(floats).collect::<Vec<_>>(), [1.0]);
    assert_eq!(floats(&named["three"]), [3.0]);
    assert!(none.is_none());
    assert_eq!(answer().unwrap().to_scalar::<i32>().unwrap(), 42);
    assert_eq!(answer::concrete(()).unwrap().n_args(), 0);
}

// spec: 9
#[test]
fn nodes_and_errors_know_the_lines_of_the_user() {
    #[function]
    fn squared(x: &Tensor) -> Result<Tensor> {
        x.square()
    }
    const SQUARE: u32 = line!() - 2;
    #[function]
    fn nested(x: &Tensor) -> Result<Tensor> {
        squared(x)
    }
    const CALL: u32 = line!() - 2;
    let line_of = |trace: ferroflow_tracer::ConcreteFunction, op: &str| {
        let graph = trace.graph();
        let (_, node) = graph.iter().find(|(_, node)| node.op.name() == op).unwrap();
        let location = node.location.unwrap();
        assert!(location.file().ends_with("functions.rs"));
        location.line()
    };
    assert_eq!(line_of(squared::concrete((1.0f32,)).unwrap(), "Square"), SQUARE);
    assert_eq!(line_of(nested::concrete((1.0f32,)).unwrap(), "PartitionedCall"), CALL);
    let tracing = squared(&Tensor::from("text")).unwrap_err().to_string();
    assert!(tracing.contains(&format!("functions.rs:{SQUARE}")), "{tracing}");
    #[function(input_signature = [spec(f32, [None]), spec(f32, [None])])]
    fn sum(x: &Tensor, y: &Tensor) -> Result<Tensor> {
        x + y
    }
    const ADD: u32 = line!() - 2;
    let running = sum(&Tensor::from([1.0f32; 2]), &Tensor::from([1.0f32; 3])).unwrap_err();
    let running = running.to_string();
    assert!(running.contains(&format!("functions.rs:{ADD}")), "{running}");
}

#[test]
fn a_function_that_calls_itself_is_told_so() {
    #[function]
    fn endless(x: &Tensor) -> Result<Tensor> {
        endless(&(x + 1.0)?)
    }
    let error = endless(&Tensor::from(1.0f32)).unwrap_err().to_string();
    assert!(error.starts_with("function `endless` calls itself"), "{error}");
}

#[test]
fn functions_run_eagerly_where_that_is_asked_for() {
    #[function]
    fn shown(x: &Tensor) -> Result<Tensor> {
        assert!(!x.is_symbolic());
        x.square()
    }
    let y = with_functions_run_eagerly(true, || shown(&Tensor::from(3.0f32)));
    assert_eq!(floats(&y.unwrap()), [9.0]);
    assert_eq!(shown::tracing_count(), 0);
}

/// The macro does what its parts do by hand.
#[test]
fn the_parts_work_without_the_macro() {
    let by_hand = function_with(
        FunctionOptions { name: "by_hand".into(), ..FunctionOptions::default() },
        |x: Tensor, n: i64| &x + n,
    )
    .with_parameters(["x", "n"]);
    #[function(name = "by_hand")]
    fn by_macro(x: &Tensor, n: i64) -> Result<Tensor> {
        x + n
    }
    let x = Tensor::from(1.0f32);
    assert_eq!(floats(&by_hand.call((&x, 2i64)).unwrap()), [3.0]);
    assert_eq!(floats(&by_macro(&x, 2).unwrap()), [3.0]);
    assert_eq!(by_macro::signatures(), by_hand.signatures());
    assert_eq!(by_macro::function().name(), by_hand.name());
}

mod elsewhere {
    use ferroflow_tracer::{Result, Tensor, function};

    #[function]
    #[must_use = "a result"]
    #[inline]
    pub(super) fn r#type(r#in: &Tensor) -> Result<Tensor> {
        r#in.square()
    }

    macro_rules! functions {
        ($($name:ident: $ty:ty => $result:ty;)*) => {$(
            #[function]
            pub(super) fn $name(x: $ty) -> $result {
                x.square()
            }
        )*};
    }

    functions! {
        first: &Tensor => Result<Tensor>;
        second: Tensor => ferroflow_tracer::Result<Tensor>;
    }

    #[function]
    #[cfg(any())]
    fn absent(x: NoSuchType) -> Result<Tensor> {}
}

#[test]
fn functions_are_found_where_they_are_visible() {
    let x = Tensor::from(3.0f32);
    assert_eq!(floats(&elsewhere::r#type(&x).unwrap()), [9.0]);
    let trace = elsewhere::r#type::concrete((&x,)).unwrap();
    assert!(trace.function_type().to_string().starts_with("(in: TensorSpec("));
    assert_eq!(elsewhere::r#type::function().name(), "type");
    assert_eq!(floats(&elsewhere::first(&x).unwrap()), [9.0]);
    assert_eq!(floats(&elsewhere::second(x).unwrap()), [9.0]);
    assert_eq!(elsewhere::first::tracing_count() + elsewhere::second::tracing_count(), 2);
}

// spec: 165
#[test]
fn a_trace_can_be_made_of_types_or_examples() {
    #[function]
    fn scaled(x: &Tensor, by: i64) -> Result<Tensor> {
        x * by
    }
    let types = [spec(DType::F32, [None]).into(), TraceType::Literal(Literal::Int(3))];
    let trace = scaled::function().concrete_for(types).unwrap();
    let y = trace.call(&[Tensor::from([1.0f32, 2.0]).into(), NestedValue::from(3i64)]).unwrap();
    assert_eq!(floats(y.tensor().unwrap()), [3.0, 6.0]);
    assert_eq!(floats(&scaled(&Tensor::from([5.0f32]), 3).unwrap()), [15.0]);
    assert_eq!(scaled::tracing_count(), 1);
    let example = scaled::concrete((Tensor::from([[1i32]]), 2i64)).unwrap();
    assert_eq!(
        example
            .call(&[Tensor::from([[7i32]]).into(), 2i64.into()])
            .unwrap()
            .tensor()
            .unwrap()
            .to_vec::<i32>()
            .unwrap(),
        [14]
    );
    assert_eq!(scaled::function().concrete_functions().len(), 2);
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(scaled::function());
    let polymorphic: &PolymorphicFunction = scaled::function().polymorphic();
    assert_eq!(polymorphic.name(), "scaled");
}

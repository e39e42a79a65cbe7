//! Input signatures, and how arguments find their parameters.

use crate::support::printed;
use ferroflow::{
    ir::{DType, PartialShape, function_type::ParameterKind},
    runtime::Context,
    tracer::{
        ArgSpec, Args, Error, Function, FunctionOptions, IntoArgs, NestedValue, ParameterSpec,
        Result, Tensor, function, function_with, spec, with_context,
    },
};

/// Calls `f` and checks the elements of the result and the number of graphs there are then.
fn check<A: Args + 'static>(
    f: &Function<A, Tensor>,
    args: impl IntoArgs<A>,
    expected: &[f64],
    n_graphs: usize,
) -> Result<()> {
    let y = f.call(args)?.cast(DType::F64)?;
    assert_eq!((&y.to_vec::<f64>()?[..], f.concrete_functions().len()), (expected, n_graphs));
    Ok(())
}

/// Checks that arguments do not fit, and for what reason.
fn refuses<A: Args + 'static>(f: &Function<A, Tensor>, args: impl IntoArgs<A>, expected: &str) {
    match f.call(args) {
        Err(Error::Binding { problem, .. }) => assert_eq!(&*problem, expected),
        other => panic!("{other:?} where arguments do not fit"),
    }
}

fn vector(dtype: DType) -> ArgSpec {
    spec(dtype, [None]).into()
}

// spec: 79
#[test]
fn without_a_signature_each_shape_has_a_graph() -> Result<()> {
    let f = function(|x: Tensor| x + 1.0);
    check(&f, (1.0f32,), &[2.0], 1)?;
    check(&f, ([1.0f32, 2.0],), &[2.0, 3.0], 2)?;
    check(&f, ([[3.0f32]],), &[4.0], 3)
}

// spec: 80, 81, 82
#[test]
fn a_signature_is_the_key() -> Result<()> {
    let f = function(|x: Tensor| x + 1.0).with_input_signature([vector(DType::F32)]);
    check(&f, ([2.0f32],), &[3.0], 1)?;
    check(&f, ([2.0f32, 3.0],), &[3.0, 4.0], 1)?;
    let asked = "TensorSpec(shape=(None,), dtype=tf.float32, name=None)";
    let matrix = "TensorSpec(shape=(1, 1), dtype=tf.float32, name=None)";
    refuses(&f, ([[2.0f32]],), &format!("Can not cast {matrix} to {asked}"));
    let integers = "TensorSpec(shape=(1,), dtype=tf.int32, name=None)";
    refuses(&f, ([2i32],), &format!("Can not cast {integers} to {asked}"));
    assert_eq!(f.tracing_count(), 1);
    let scalar = function(|x: Tensor| x + 1).with_input_signature([spec(DType::I32, [])]);
    check(&scalar, (2i32,), &[3.0], 1)?;
    let asked = "TensorSpec(shape=(), dtype=tf.int32, name=None)";
    refuses(&scalar, ([2i32],), &format!("Can not cast {integers} to {asked}"));
    Ok(())
}

// spec: 12, 83
#[test]
fn values_of_rust_become_the_tensors_that_are_declared() -> Result<()> {
    let f =
        function(|x: NestedValue| x.tensor()?.square()).with_input_signature([vector(DType::F32)]);
    let list = |items: &[i64]| NestedValue::list(items.iter().copied());
    check(&f, (list(&[2, 3]),), &[4.0, 9.0], 1)?;
    check(&f, (NestedValue::list([0.5]),), &[0.25], 1)?;
    check(&f, (NestedValue::from(Tensor::from([1.0f32, 2.0])),), &[1.0, 4.0], 1)?;
    assert_eq!(f.call((list(&[2]),))?.dtype(), DType::F32);
    let asked = "TensorSpec(shape=(None,), dtype=tf.float32, name=None)";
    refuses(&f, (NestedValue::from(2.0),), &format!("Can not cast 2.0 to {asked}"));
    refuses(&f, (NestedValue::from("a"),), &format!("Can not cast 'a' to {asked}"));
    let half =
        function(|x: NestedValue| x.tensor()?.square()).with_input_signature([vector(DType::I32)]);
    assert!(matches!(half.call((NestedValue::list([0.5]),)), Err(Error::Binding { .. })));
    Ok(())
}

// spec: 84
#[test]
fn a_list_has_one_pattern_for_its_elements() -> Result<()> {
    let of_length = |length| {
        let lists = ArgSpec::ListOf(Box::new(vector(DType::F32)), length);
        function(|list: Vec<Tensor>| {
            list.iter().try_fold(Tensor::from(0.0f32), |sum, item| sum + item.sum_all()?)
        })
        .with_input_signature([lists])
    };
    let list = |lengths: &[usize]| -> Vec<Tensor> {
        lengths.iter().map(|&length| Tensor::from(vec![1.0f32; length])).collect()
    };
    let any = of_length(None);
    check(&any, (list(&[1, 2]),), &[3.0], 1)?;
    check(&any, (list(&[3, 5]),), &[8.0], 1)?;
    check(&any, (list(&[3, 5, 7]),), &[15.0], 2)?;
    assert!(matches!(any.call((vec![Tensor::from(1.0f32)],)), Err(Error::Binding { .. })));
    let two = of_length(Some(2));
    check(&two, (list(&[1, 2]),), &[3.0], 1)?;
    refuses(
        &two,
        (list(&[1]),),
        "Can not cast List[TensorSpec(shape=(1,), dtype=tf.float32, name=None)] to \
         List[TensorSpec(shape=(None,), dtype=tf.float32, name=None); 2]",
    );
    Ok(())
}

// spec: 85, 86
#[test]
fn new_graphs_come_of_new_host_values_and_contexts_only() -> Result<()> {
    let f = function(|x: Tensor, negate: bool| if negate { x.neg() } else { x.square() })
        .with_input_signature([vector(DType::F32), ArgSpec::HostValue]);
    check(&f, ([2.0f32], false), &[4.0], 1)?;
    check(&f, ([2.0f32, 3.0], false), &[4.0, 9.0], 1)?;
    check(&f, ([2.0f32], true), &[-2.0], 2)?;
    check(&f, ([2.0f32, 3.0], true), &[-2.0, -3.0], 2)?;
    with_context(&Context::new(), || check(&f, ([2.0f32], true), &[-2.0], 3))
}

// spec: 87, 88
#[test]
fn an_argument_may_be_of_any_dtype() -> Result<()> {
    let any = ArgSpec::AnyDType(PartialShape::vector(None));
    let f = function(|x: Tensor| x.square()).with_input_signature([any]);
    check(&f, ([2.0f32],), &[4.0], 1)?;
    check(&f, ([2i32, 2],), &[4.0, 4.0], 2)?;
    check(&f, ([3i32],), &[9.0], 2)?;
    assert!(matches!(f.call((2.0f32,)), Err(Error::Binding { .. })));
    Ok(())
}

// spec: 89, 90, 91
#[test]
fn next_collatz_takes_vectors_of_integers() -> Result<()> {
    let text = printed(|out| {
        let next_collatz = {
            let out = out.clone();
            function(move |x: Tensor| {
                out.line(format!("Tracing with {x}"));
                (&x % 2)?.equal(0)?.select(x.floor_div(2)?, ((&x * 3)? + 1)?)
            })
        };
        let next_collatz = next_collatz
            .with_name("next_collatz")
            .with_parameters(["x"])
            .with_input_signature([vector(DType::I32)]);
        out.line(format!("{:?}", next_collatz.call(([1i32, 2],))?));
        out.line(next_collatz.call(([[1i32, 2], [3, 4]],)).unwrap_err());
        out.line(next_collatz.call(([1.0f32, 2.0],)).unwrap_err());
        assert_eq!(next_collatz.concrete_functions().len(), 1);
        Ok(())
    })?;
    let problem = |shape: &str, dtype: &str, arg: &str| {
        let asked = "TensorSpec(shape=(None,), dtype=tf.int32, name=None)";
        format!(
            "Binding inputs to function `next_collatz` failed due to `Can not cast \
             TensorSpec(shape={shape}, dtype=tf.{dtype}, name=None) to {asked}`. Received args: \
             (Tensor({arg}, shape={shape}, dtype={dtype}),) and kwargs: {{}} for signature: \
             (x: {asked}).\n"
        )
    };
    let expected = "Tracing with Tensor(\"x:0\", shape=(None,), dtype=int32)\n\
                    Tensor([4 1], shape=(2,), dtype=int32)\n";
    let expected = [
        expected.into(),
        problem("(2, 2)", "int32", "[[1 2]\n [3 4]]"),
        problem("(2,)", "float32", "[1. 2.]"),
    ];
    assert_eq!(text, expected.concat());
    Ok(())
}

// spec: 92
#[test]
fn types_of_rust_tell_tensors_from_host_values() -> Result<()> {
    let f = function(|x: Tensor, exponent: f32, all: Vec<Tensor>| {
        all.iter().try_fold(x.pow(exponent)?, |sum, item| sum + item)
    });
    let types = f.types_of(&(2.0f32.into(), 2.0, vec![1.0f32.into()]))?;
    let scalar = "TensorSpec(shape=(), dtype=tf.float32, name=None)";
    let expected = [scalar.to_string(), "Literal[2.0]".into(), format!("List[{scalar}]")];
    assert_eq!(types.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    let ones = || vec![Tensor::from(1.0f32)];
    check(&f, (2.0f32, 2.0f32, ones()), &[5.0], 1)?;
    check(&f, (3.0f32, 2.0f32, ones()), &[10.0], 1)?;
    check(&f, (3.0f32, 3.0f32, ones()), &[28.0], 2)
}

type Three = Function<(i64, i64, i64), Tensor>;

/// A function that gives the digits `x`, `y`, `z` as a number.
fn digits(parameters: Vec<ParameterSpec>) -> Three {
    let options = FunctionOptions { name: "digits".into(), parameters, ..Default::default() };
    function_with(options, |x: i64, y: i64, z: i64| Tensor::from(100 * x + 10 * y + z))
}

fn named(names: &[&str]) -> Vec<ParameterSpec> {
    names.iter().map(|name| ParameterSpec::new(name)).collect()
}

/// Result of `f` for arguments by position and name, or the fault of them.
fn bind(f: &Three, args: &[i64], kwargs: &[(&str, i64)]) -> Result<i64, String> {
    let args: Vec<NestedValue> = args.iter().map(|&arg| arg.into()).collect();
    let kwargs: Vec<(&str, NestedValue)> =
        kwargs.iter().map(|&(name, arg)| (name, arg.into())).collect();
    match f.call_named(&args, &kwargs) {
        Ok(y) => y.to_scalar().map_err(|error| error.to_string()),
        Err(Error::Binding { problem, .. }) => Err(problem.into()),
        Err(other) => panic!("{other} where arguments may not fit"),
    }
}

// spec: b1
#[test]
fn positions_and_names_lead_to_the_same_trace() {
    let f = digits(named(&["x", "y", "z"]));
    assert_eq!(bind(&f, &[1, 2, 3], &[]), Ok(123));
    assert_eq!(bind(&f, &[1, 2], &[("z", 3)]), Ok(123));
    assert_eq!(bind(&f, &[], &[("z", 3), ("y", 2), ("x", 1)]), Ok(123));
    let [concrete] = &f.concrete_functions()[..] else { panic!("one trace") };
    assert_eq!(
        concrete.function_type().to_string(),
        "(x: Literal[1], y: Literal[2], z: Literal[3]) -> \
         TensorSpec(shape=(), dtype=tf.int64, name=None)"
    );
}

// spec: b2, b3, b4, b5
#[test]
fn arguments_that_do_not_fit_are_named_and_nothing_is_traced() {
    let f = digits(named(&["x", "y", "z"]));
    let check = |args: &[i64], kwargs: &[(&str, i64)], expected: &str| {
        assert_eq!(bind(&f, args, kwargs), Err(expected.into()));
        assert_eq!(f.tracing_count(), 0);
    };
    check(&[1, 2, 3, 4], &[], "too many positional arguments");
    check(&[1], &[("z", 3)], "missing a required argument: 'y'");
    check(&[1, 2, 3], &[("x", 1)], "multiple values for argument 'x'");
    check(&[1, 2, 3], &[("w", 1)], "got an unexpected keyword argument 'w'");
}

// spec: b6
#[test]
fn a_default_is_the_value_itself() {
    let [x, y, z] = ["x", "y", "z"].map(ParameterSpec::new);
    let f = digits(vec![x, y.or(2), z.or(3)]);
    assert_eq!(bind(&f, &[1], &[]), Ok(123));
    assert_eq!(bind(&f, &[1, 2], &[("z", 3)]), Ok(123));
    assert_eq!(f.tracing_count(), 1);
    assert_eq!(bind(&f, &[1], &[("y", 5)]), Ok(153));
    assert_eq!(f.tracing_count(), 2);
}

// spec: b7
#[test]
fn further_positions_have_a_type_each() -> Result<()> {
    let parameters = vec![ParameterSpec::new("xs").of_kind(ParameterKind::VarPositional)];
    let options = FunctionOptions { parameters, ..Default::default() };
    let f = function_with(options, |xs: Vec<i64>| Tensor::from(xs.iter().sum::<i64>()));
    let sum = |args: &[i64]| -> Result<i64> {
        let args: Vec<NestedValue> = args.iter().map(|&arg| arg.into()).collect();
        f.call_named(&args, &[])?.to_scalar()
    };
    assert_eq!((sum(&[1, 2, 3])?, sum(&[1, 2])?, sum(&[1, 2, 3])?), (6, 3, 6));
    let types = f.concrete_functions();
    let types: Vec<String> = types.iter().map(|f| f.function_type().to_string()).collect();
    let output = "TensorSpec(shape=(), dtype=tf.int64, name=None)";
    assert_eq!(
        types,
        [
            format!("(xs_0: Literal[1], xs_1: Literal[2], xs_2: Literal[3], /) -> {output}"),
            format!("(xs_0: Literal[1], xs_1: Literal[2], /) -> {output}"),
        ]
    );
    Ok(())
}

// spec: b8
#[test]
fn keyword_only_arguments_are_in_the_type_by_name() {
    let keyword = |name| ParameterSpec::new(name).of_kind(ParameterKind::KeywordOnly);
    let f = digits(vec![ParameterSpec::new("x"), keyword("y"), keyword("z")]);
    assert_eq!(bind(&f, &[1], &[("z", 3), ("y", 2)]), Ok(123));
    let too_many = || Err("too many positional arguments".into());
    assert_eq!(bind(&f, &[1, 2], &[("z", 3)]), too_many());
    assert_eq!(bind(&f, &[1, 2], &[("y", 2), ("z", 3)]), too_many());
    assert_eq!(
        f.concrete_functions()[0].function_type().to_string(),
        "(x: Literal[1], *, y: Literal[2], z: Literal[3]) -> \
         TensorSpec(shape=(), dtype=tf.int64, name=None)"
    );
}

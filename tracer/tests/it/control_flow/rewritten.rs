//! Control flow in `#[function]`: the same eagerly and traced.

use ferroflow_ir::{PartialShape, TraceType};
use ferroflow_tracer::{
    DType, Function, Functions, HasFunctions, Nest, Result, Tensor, TensorArray, Variable,
    function, range, run_functions_eagerly,
};

fn t(value: f32) -> Tensor {
    Tensor::from(value)
}

/// The results of a program for each input, eager and traced, which must be the same.
fn both(function: &Function<(Vec<Tensor>,), Tensor>, inputs: &[&[f32]]) -> Vec<f32> {
    let check = |input: &&[f32]| {
        let args: Vec<Tensor> = input.iter().map(|&value| t(value)).collect();
        let eager = (function.host_fn())((args.clone(),)).unwrap().to_scalar::<f32>().unwrap();
        let traced = function.call((args,)).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(eager, traced, "{} of {input:?}", function.name());
        eager
    };
    let results = inputs.iter().map(check).collect();
    assert_eq!(function.tracing_count(), 1, "{}", function.name());
    results
}

macro_rules! programs {
    ($($name:ident: $inputs:expr => $expected:expr, |$a:ident| $body:block)*) => {$(
        #[test]
        fn $name() {
            #[function]
            fn program($a: &[Tensor]) -> Result<Tensor> $body

            assert_eq!(both(program::function(), &$inputs), $expected);
        }
    )*};
}

programs! {
    an_expression: [&[1.0, 2.0], &[3.0, 2.0]] => [2.0, 4.0], |a| {
        let y = if a[0].less(&a[1])? { (&a[0] + 1.0)? } else { (&a[1] * 2.0)? };
        Ok(y)
    }

    a_tail_of_results: [&[1.0, 2.0], &[3.0, 2.0]] => [2.0, 4.0], |a| {
        if a[0].less(&a[1])? { &a[0] + 1.0 } else { &a[1] * 2.0 }
    }

    a_while: [&[1.0, 20.0], &[9.0, 3.0]] => [37.0, 9.0], |a| {
        let (mut x, mut n) = (a[0].clone(), t(0.0));
        while x.less(&a[1])? {
            x = (&x * 2.0)?;
            n = (n + 1.0)?;
        }
        &x + &n
    }

    a_statement: [&[-2.0], &[2.0]] => [2.0, 2.0], |a| {
        let mut x = a[0].clone();
        if x.less(0.0)? {
            x = x.neg()?;
        }
        Ok(x)
    }

    early_returns: [&[-1.0], &[2.0], &[9.0]] => [-1.0, 6.0, 10.0], |a| {
        if a[0].less(0.0)? {
            return Ok(t(-1.0));
        }
        let y = (&a[0] * 3.0)?;
        if y.less(10.0)? {
            return Ok(y);
        }
        Ok(t(10.0))
    }

    a_break: [&[1.0, 16.0], &[1.0, 5.0], &[0.0, 7.0]] => [16.0, 105.0, 7.0], |a| {
        let mut x = a[0].clone();
        while x.less(100.0)? {
            x = (&x + 7.0)?;
            if x.equal(&a[1])? {
                break;
            }
            x = (x + 1.0)?;
        }
        Ok(x)
    }

    a_continue: [&[5.0], &[0.0]] => [8.0, 0.0], |a| {
        let mut sum = t(0.0);
        for i in range(a[0].cast(DType::I32)?) {
            if i.equal(2)? {
                continue;
            }
            sum = (sum + i.cast(DType::F32)?)?;
        }
        Ok(sum)
    }

    a_return_in_a_loop: [&[1.0], &[3.0], &[60.0]] => [-16.0, 96.0, 60.0], |a| {
        let mut x = a[0].clone();
        while x.less(50.0)? {
            x = (&x * 2.0)?;
            if x.equal(16.0)? {
                return Ok(t(-16.0));
            }
        }
        Ok(x)
    }

    a_loop: [&[0.0], &[30.0]] => [21.0, 33.0], |a| {
        let mut x = a[0].clone();
        loop {
            x = (&x + 3.0)?;
            if x.greater(20.0)? {
                break;
            }
        }
        Ok(x)
    }

    logic: [&[4.0, 5.0], &[4.0, 1.0], &[9.0, 0.0], &[6.0, 0.0], &[8.0, 1.0]]
        => [2.0, 1.0, 1.0, 2.0, 3.0], |a| {
        let mut x = a[0].clone();
        if x.less(5.0)? && !x.less(&a[1])? || x.equal(9.0)? {
            x = t(1.0)
        } else if x.less(7.0)? {
            x = t(2.0)
        } else {
            x = t(3.0)
        }
        Ok(x)
    }

    returns_from_unrolled_loops: [&[-1.0], &[0.0], &[5.0], &[0.5]] => [99.0, 100.5, 6.5, 101.0],
    |a| {
        let mut x = a[0].clone();
        for i in 0..3 {
            if x.less(i as f32)? {
                return &x + 100.0;
            }
            x = (x + 1.0)?;
            if i == 1 {
                x = (&x - 1.5)?;
            }
        }
        Ok(x)
    }

    elements_of_lists: [&[0.0], &[20.0]] => [20.0, 0.0], |a| {
        let mut v = vec![a[0].clone(), t(0.0)];
        while v[0].less(9.0)? {
            let old = v[0].clone();
            v[0] = (&v[0] + 2.0)?;
            v[1] = (&v[1] + old)?;
        }
        Ok(v[1].clone())
    }

    closures_return_early: [&[1.0, 2.0], &[2.0, 1.0]] => [3.0, 0.0], |a| {
        let x = a[0].clone();
        let f = |y: &Tensor| -> Result<Tensor> {
            if y.less(&x)? {
                return Ok(t(0.0));
            }
            y + 1.0
        };
        f(&a[1])
    }

    two_loops_with_all_jumps: [&[0.0, 2.0], &[0.0, 9.0], &[-60.0, 9.0], &[-8.0, 3.0]]
        => [52.0, 42.0, 1.0, 48.0], |a| {
        let mut x = a[0].clone();
        while x.less(40.0)? {
            let mut j = t(0.0);
            while j.less(5.0)? {
                j = (j + 1.0)?;
                if j.equal(&a[1])? {
                    x = (x + 10.0)?;
                    break;
                }
                if x.less(-50.0)? {
                    return Ok(j);
                }
            }
            x = (x + &j)?;
            if x.less(3.0)? {
                continue;
            }
            x = (x + 1.0)?;
        }
        Ok(x)
    }

    some_branches_return: [&[-1.0, 2.0], &[1.0, 2.0], &[3.0, 2.0]] => [7.0, 9.0, 8.0], |a| {
        if a[0].less(&a[1])? {
            if a[0].less(0.0)? {
                return Ok(t(7.0));
            }
        } else {
            return Ok(t(8.0));
        }
        Ok(t(9.0))
    }

    all_branches_return: [&[1.0, 2.0], &[2.0, 1.0]] => [1.0, 2.0], |a| {
        if a[0].less(&a[1])? {
            return Ok(t(1.0));
        } else {
            return Ok(t(2.0));
        }
    }

    labels: [&[0.0, 3.0], &[0.0, 7.0], &[0.0, 50.0]] => [3.0, 7.0, 30.0], |a| {
        let mut x = a[0].clone();
        let train = !a.is_empty();
        'outer: while x.less(30.0)? {
            for k in range(&Tensor::from(2)) {
                x = (x + (k + 1)?.cast(DType::F32)?)?;
                if x.equal(&a[1])? {
                    break 'outer;
                }
                if !train {
                    return Ok(x);
                }
            }
        }
        Ok(x)
    }

    three_loops: [&[3.0, 0.0], &[3.0, 4.0], &[3.0, 11.0]] => [36.0, -4.0, 111.0], |a| {
        let n = a[0].cast(DType::I32)?;
        let mut count = t(0.0);
        'first: for i in range(&n) {
            for j in range(&n) {
                let mut k = t(0.0);
                loop {
                    k = (k + 1.0)?;
                    count = (count + 1.0)?;
                    if count.equal(&a[1])? {
                        if count.less(10.0)? {
                            return count.neg();
                        }
                        count = (count + 100.0)?;
                        break 'first;
                    }
                    if k.greater(3.0)? {
                        break;
                    }
                }
                let later = j.greater(&i)?;
                if later {
                    continue;
                }
            }
        }
        Ok(count)
    }

    a_value_of_a_branch_that_jumps: [&[1.0], &[5.0]] => [11.0, -5.0], |a| {
        let y = if a[0].less(3.0)? { &a[0] + 10.0 } else { return a[0].neg() }?;
        Ok(y)
    }

    variables_that_end_branches: [&[1.0], &[-1.0]] => [2.0, -1.0], |a| {
        let (x, y) = (a[0].clone(), (&a[0] * 2.0)?);
        let z = if a[0].greater(0.0)? { y } else { x };
        Ok(z)
    }

    nested_choices_of_variables: [&[1.0], &[-1.0], &[7.0]] => [2.0, -1.0, 10.0], |a| {
        let (x, y, z) = (a[0].clone(), (&a[0] * 2.0)?, (&a[0] + 3.0)?);
        if a[0].greater(0.0)? {
            if a[0].greater(5.0)? { Ok(z) } else { Ok(y) }
        } else {
            Ok(x)
        }
    }

    a_range_that_grows_a_shape: [&[0.0], &[3.0]] => [1.0, 4.0], |a| {
        let mut x = Tensor::from([1.0f32]);
        for _ in range(a[0].cast(DType::I32)?) {
            x = ferroflow_tracer::ops::concat_v2(&[&x, &Tensor::from([1.0f32])], &Tensor::from(0))?;
        }
        x.sum_all()
    }

    arrays: [&[4.0]] => [14.0], |a| {
        let n = a[0].cast(DType::I32)?;
        let mut array = TensorArray::new(DType::I32, &n)?;
        for i in range(&n) {
            array = array.write(&i, i.square()?)?;
        }
        array.stack()?.sum_all()?.cast(DType::F32)
    }

    conditions_with_a_value_choose_at_once: [&[2.0]] => [6.0], |a| {
        let yes = Tensor::from(true);
        let mut x = a[0].clone();
        let mut count = 0;
        if yes {
            x = (x * 3.0)?;
        }
        while count < 3 {
            count += 1;
        }
        Ok(x)
    }
}

#[test]
fn rows_of_a_tensor() {
    #[function]
    fn rows(x: &Tensor) -> Result<Tensor> {
        let mut sum = t(0.0);
        for row in x {
            if row.less(2.0)? {
                continue;
            }
            sum = (sum + row)?;
        }
        Ok(sum)
    }
    let x = Tensor::from([1.0f32, 2.0, 3.0]);
    assert_eq!(rows(&x).unwrap().to_scalar::<f32>().unwrap(), 5.0);
    run_functions_eagerly(false);
    let unknown = TraceType::tensor(DType::F32, PartialShape::vector(None));
    let traced = rows::function().concrete_for([unknown]).unwrap();
    let sum = traced.call(&[Tensor::from([5.0f32, 0.0, 4.0]).into()]).unwrap();
    assert_eq!(sum.tensor().unwrap().to_scalar::<f32>().unwrap(), 9.0);
}

#[test]
fn structures_are_carried_field_by_field() {
    #[derive(Nest, Clone)]
    struct Sums {
        sum: Tensor,
        name: String,
    }

    struct Host {
        sums: Sums,
        calls: usize,
    }

    #[function]
    fn sums(n: &Tensor) -> Result<Sums> {
        let mut host = Host { sums: Sums { sum: Tensor::from(0), name: "all".into() }, calls: 0 };
        host.calls += 1;
        for i in range(n) {
            host.sums.sum = (&host.sums.sum + i)?;
        }
        assert_eq!(host.calls, 1);
        assert_eq!(host.sums.name, "all");
        if host.sums.sum.greater(5)? {
            host.sums = Sums { sum: (&host.sums.sum * 10)?, ..host.sums.clone() };
        }
        Ok(Sums { name: String::new(), ..host.sums })
    }
    let error = sums(&Tensor::from(3)).err().unwrap();
    assert!(error.to_string().contains("must return tensors"), "{error}");
}

#[test]
fn effects_happen_in_branches() {
    let v = Variable::new(0.0f32).unwrap();

    #[function]
    fn add(v: &Variable, x: &Tensor) -> Result<()> {
        if x.greater(0.0)? {
            v.assign_add(x)?;
        } else {
            v.assign(0.0)?;
        }
        Ok(())
    }
    add(&v, &t(2.0)).unwrap();
    add(&v, &t(3.0)).unwrap();
    assert_eq!(v.read().unwrap().to_scalar::<f32>().unwrap(), 5.0);
    add(&v, &t(-3.0)).unwrap();
    assert_eq!(v.read().unwrap().to_scalar::<f32>().unwrap(), 0.0);
}

#[test]
fn methods_have_control_flow() {
    #[derive(HasFunctions)]
    struct Clip {
        limit: Variable,
        names: Vec<String>,
        functions: Functions,
    }

    impl Clip {
        #[function]
        fn apply(&self, x: &Tensor, rounds: usize) -> Result<Tensor> {
            let mut x = x.clone();
            for name in &self.names {
                if name.is_empty() {
                    continue;
                }
                for _ in range(rounds) {
                    if x.greater(&self.limit)? {
                        return self.limit.read();
                    }
                    x = (x * 2.0)?;
                }
            }
            Ok(x)
        }
    }

    let clip = Clip {
        limit: Variable::new(10.0f32).unwrap(),
        names: vec!["a".into(), String::new(), "b".into()],
        functions: Functions::default(),
    };
    let apply = |x: f32| clip.apply(&t(x), 2).unwrap().to_scalar::<f32>().unwrap();
    assert_eq!([apply(0.5), apply(1.0), apply(2.0), apply(11.0)], [8.0, 16.0, 10.0, 10.0]);
    assert_eq!(clip.apply_function().tracing_count(), 1);
}

#[test]
fn loops_are_traced_once_and_leave_nothing_behind() {
    #[function]
    fn halves(x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        while x.greater(1.0)? && x.less(1000.0)? {
            x = (x / 2.0)?;
        }
        Ok(x)
    }
    assert_eq!(halves(&t(20.0)).unwrap().to_scalar::<f32>().unwrap(), 0.625);
    assert_eq!(halves(&t(2000.0)).unwrap().to_scalar::<f32>().unwrap(), 2000.0);
    let concrete = halves::concrete((t(1.0),)).unwrap();
    let names: Vec<&str> = concrete.graph().iter().map(|(_, node)| &*node.name).collect();
    assert_eq!(names, ["x", "while", "Identity"]);
}

#[test]
fn assertions_are_part_of_the_graph() {
    #[function]
    fn checked(x: &Tensor) -> Result<Tensor> {
        assert!(x.less(100.0)?, "{} is too large", "x");
        assert!(x.rank_is_known(), "never");
        x + 1.0
    }

    trait RankIsKnown {
        fn rank_is_known(&self) -> bool;
    }
    impl RankIsKnown for Tensor {
        fn rank_is_known(&self) -> bool {
            self.shape().rank().is_some()
        }
    }
    assert_eq!(checked(&t(1.0)).unwrap().to_scalar::<f32>().unwrap(), 2.0);
    let error = checked(&t(200.0)).unwrap_err().to_string();
    assert!(error.contains("x is too large"), "{error}");
    assert_eq!(checked(&t(2.0)).unwrap().to_scalar::<f32>().unwrap(), 3.0);
    assert_eq!(checked::tracing_count(), 1);
}

//! Functions that call themselves for host values that decrease.

use ferroflow_tracer::{
    DType, Error, Functions, GradientTape, HasFunctions, Result, Tensor, Variable, function,
};

#[function]
fn factorial(n: i64, unit: &Tensor) -> Result<Tensor> {
    if n <= 1 {
        return Ok(unit.clone());
    }
    factorial(n - 1, unit)? * n
}

#[test]
fn there_is_a_trace_for_each_host_value() -> Result<()> {
    assert_eq!(factorial(4, &Tensor::from(1))?.to_scalar::<i32>()?, 24);
    assert_eq!(factorial::tracing_count(), 4);
    assert_eq!(factorial(6, &Tensor::from(1))?.to_scalar::<i32>()?, 720);
    assert_eq!(factorial::tracing_count(), 6);
    assert_eq!(factorial(3, &Tensor::from(2))?.to_scalar::<i32>()?, 12);
    assert_eq!(factorial::tracing_count(), 6);
    assert_eq!(factorial(30, &Tensor::from(0))?.to_scalar::<i32>()?, 0);
    Ok(())
}

#[test]
fn gradients_go_through_recursion() -> Result<()> {
    #[function]
    fn power(x: &Tensor, n: usize) -> Result<Tensor> {
        match n {
            0 => x.ones_like(),
            n if n % 2 == 1 => x * power(x, n - 1)?,
            n => power(&x.square()?, n / 2),
        }
    }
    let x = Variable::new(2.0f32)?;
    let tape = GradientTape::new();
    let y = power(&x.read()?, 5)?;
    assert_eq!(y.to_scalar::<f32>()?, 32.0);
    let dx = tape.gradient(&y, &[&x])?;
    assert_eq!(dx[0].as_ref().unwrap().to_scalar::<f32>()?, 80.0);
    Ok(())
}

#[test]
fn functions_may_call_each_other_and_methods_themselves() -> Result<()> {
    #[function]
    fn is_even(n: u32) -> Result<Tensor> {
        if n == 0 { Ok(Tensor::from(true)) } else { is_odd(n - 1) }
    }

    #[function]
    fn is_odd(n: u32) -> Result<Tensor> {
        if n == 0 { Ok(Tensor::from(false)) } else { is_even(n - 1) }
    }
    assert_eq!(is_even(10)?.cast(DType::I32)?.to_scalar::<i32>()?, 1);
    assert_eq!(is_even(7)?.cast(DType::I32)?.to_scalar::<i32>()?, 0);

    #[derive(HasFunctions)]
    struct Tree {
        scale: Variable,
        functions: Functions,
    }

    impl Tree {
        #[function]
        fn grow(&self, x: &Tensor, depth: usize) -> Result<Tensor> {
            if depth == 0 {
                return x * &self.scale;
            }
            if x.less(10.0)? {
                self.grow(&(x * 2.0)?, depth - 1)
            } else {
                self.grow(&(x - 1.0)?, depth - 1)? + 0.5
            }
        }
    }
    let tree = Tree { scale: Variable::new(10.0f32)?, functions: Functions::default() };
    assert_eq!(tree.grow(&Tensor::from(3.0f32), 3)?.to_scalar::<f32>()?, 110.5);
    assert_eq!(tree.grow_function().tracing_count(), 4);
    Ok(())
}

#[test]
fn recursion_without_an_end_is_an_error() {
    #[function]
    fn same(x: &Tensor, n: i64) -> Result<Tensor> {
        same(&(x - 1)?, n)
    }

    #[function]
    fn more(x: &Tensor, n: i64) -> Result<Tensor> {
        more(x, n + 1)
    }
    let error = same(&Tensor::from(1), 3).unwrap_err();
    assert!(matches!(error, Error::Recursive { .. }), "{error}");
    let error = more(&Tensor::from(1), 0).unwrap_err();
    assert!(matches!(error, Error::TooDeep { .. }), "{error}");
    assert!(error.to_string().contains("`more` calls itself more than 64 times"), "{error}");
    let error = more(&Tensor::from(1), 0).unwrap_err();
    assert!(matches!(error, Error::TooDeep { .. }), "{error}");
}

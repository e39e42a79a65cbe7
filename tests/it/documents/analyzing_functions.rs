//! "Analyzing tf.function to discover AutoGraph strengths and subtleties", part 1, an article.

use super::Outcome;
use crate::support::{Out, printed};
use ferroflow::{
    Functions, HasFunctions, Tensor, Variable, function, print,
    tracer::{Error, Result},
};
use std::sync::{Arc, OnceLock};

const EXPECTED: &str = "[[22. 22.]\n [23. 13.]]";

#[test]
fn eager_code_is_a_function_of_rust() -> Outcome {
    fn f() -> Result<Tensor> {
        let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
        let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
        let b = Variable::new(12.0)?;
        a.matmul(&x)? + &b
    }
    assert_eq!(f()?.to_string(), EXPECTED);
    Ok(())
}

/// The first trace creates the variable, and the second one is refused.
#[test]
fn a_variable_for_each_call_is_refused() -> Outcome {
    let mut failure = None;
    let all = printed(|out| {
        let out = out.clone();
        let f = function(move || {
            let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
            let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
            let b = Variable::new(12.0)?;
            let y = (a.matmul(&x)? + &b)?;
            out.line(format!("PRINT: {y:?}"));
            print!("TF-PRINT: {}", &y)?;
            Ok::<_, Error>(y)
        });
        failure = f().err();
        Ok(())
    })?;
    assert!(all.starts_with("PRINT: Tensor(") && !all.contains("TF-PRINT"), "{all}");
    let failure = failure.expect("an error").to_string();
    assert!(failure.contains("in a call that is not its first"), "{failure}");
    Ok(())
}

/// All that a function of this article prints in two calls.
fn twice(f: &dyn Fn() -> Result<Tensor>, out: &Out) -> Result<()> {
    for _ in 0..2 {
        out.line(f()?);
    }
    Ok(())
}

fn check(all: &str) {
    let traced = all.matches("PRINT: Tensor(").count();
    assert!((1..=2).contains(&traced), "{all}");
    assert_eq!(all.matches("TF-PRINT: [[22 22]").count(), 2, "{all}");
    assert_eq!(all.matches(EXPECTED).count(), 2, "{all}");
}

#[test]
fn a_global_variable_is_created_if_it_is_missing() -> Outcome {
    static B: OnceLock<Variable> = OnceLock::new();
    let all = printed(|out| {
        let f = function({
            let out = out.clone();
            move || {
                let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
                let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
                if B.get().is_none() {
                    let _ = B.set(Variable::new(12.0)?);
                }
                let y = (a.matmul(&x)? + B.get().unwrap())?;
                out.line(format!("PRINT: {y:?}"));
                print!("TF-PRINT: {}", &y)?;
                Ok::<_, Error>(y)
            }
        });
        twice(&|| f(), out)
    })?;
    check(&all);
    Ok(())
}

mod object_oriented {
    use super::*;
    use ferroflow::print;

    #[derive(HasFunctions)]
    struct F {
        b: OnceLock<Variable>,
        out: Arc<Out>,
        functions: Functions,
    }

    impl F {
        #[function]
        fn call(&self) -> Result<Tensor> {
            let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
            let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
            if self.b.get().is_none() {
                let _ = self.b.set(Variable::new(12.0)?);
            }
            let y = a.matmul(&x)? + self.b.get().unwrap();
            let y = y?;
            self.out.line(format!("PRINT: {y:?}"));
            print!("TF-PRINT: {}", &y)?;
            Ok(y)
        }
    }

    #[test]
    fn a_field_is_set_if_it_is_missing() -> Outcome {
        let all = printed(|out| {
            let (b, functions) = (OnceLock::new(), Functions::default());
            let f = F { b, out: Arc::new(out.clone()), functions };
            twice(&|| f.call(), out)
        })?;
        check(&all);
        Ok(())
    }
}

#[test]
fn a_variable_is_passed() -> Outcome {
    let all = printed(|out| {
        let f = function({
            let out = out.clone();
            move |b: Variable| {
                let a = Tensor::from([[10.0, 10.0], [11.0, 1.0]]);
                let x = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
                let y = (a.matmul(&x)? + &b)?;
                out.line(format!("PRINT: {y:?}"));
                print!("TF-PRINT: {}", &y)?;
                Ok::<_, Error>(y)
            }
        });
        let b = Variable::new(12.0)?;
        twice(&|| f(b.clone()), out)
    })?;
    check(&all);
    Ok(())
}

mod passed_by_reference {
    use super::*;

    #[function]
    fn g(x: &Variable) -> Result<Tensor> {
        x.assign_add(1)?;
        x.read()
    }

    #[test]
    fn the_caller_sees_what_is_assigned() -> Outcome {
        let a = Variable::new(0)?;
        assert_eq!(g(&a)?.to_string(), "1");
        assert_eq!(g(&a)?.to_string(), "2");
        assert_eq!(g(&a)?.to_string(), "3");
        assert_eq!(a.read()?.to_string(), "3");
        Ok(())
    }
}

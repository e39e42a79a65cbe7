//! "Functions, not Sessions", a design document of TensorFlow (2018).

use super::Outcome;
use crate::support::printed;
use ferroflow::{
    Checkpoint, Functions, HasFunctions, Tensor, Trackable, TraceType, Variable, cond, device, function,
    graph_def, ir::DType, load, save, spec, summary, tracer::{Result, v1},
};
use std::{cell::OnceCell, sync::OnceLock};

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
    fn functions_are_called_as_functions() -> Outcome {
        let z0 = compute_z0(&Tensor::from(2.0))?;
        let z1 = compute_z1(&Tensor::from(2.0), &Tensor::from(2.0))?;
        assert_eq!(z0.to_string(), "6.0");
        assert_eq!(z1.to_string(), "4.0");
        Ok(())
    }
}

/// Variables that a function refers to.
#[test]
fn state_is_captured() -> Outcome {
    let w = Variable::new([[1.0; 10]; 10])?;
    let b = Variable::new([0.0; 10])?;
    let c = Variable::new(0)?;
    let f = function({
        let (w, b, c) = (w.clone(), b.clone(), c.clone());
        move |x: Tensor| {
            c.assign_add(1)?;
            x.matmul(&w)? + &b
        }
    });
    println!("{}", f(Tensor::from([[1.0; 10]]))?);
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

    let a = Variable::new(1.0)?;
    let b = Variable::new(1.0)?;
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
    fn the_first_call_creates_the_variable() -> Outcome {
        assert_eq!(f(&Tensor::from(1.0f32))?.to_string(), "2.0");
        assert_eq!(f(&Tensor::from(2))?.to_string(), "3.0");
        Ok(())
    }
}

mod trace_caches {
    use super::*;

    #[test]
    fn there_is_a_graph_for_each_dtype() -> Outcome {
        #[function]
        fn f(x: &Tensor) -> Result<Tensor> {
            x.square()
        }
        f(&Tensor::from(1))?;
        f(&Tensor::from(1.0))?;
        assert_eq!(f::tracing_count(), 2);
        Ok(())
    }

    #[test]
    fn there_is_a_graph_for_each_number_of_the_host() -> Outcome {
        #[function]
        fn f(x: f64) -> Result<Tensor> {
            Tensor::from(x).square()
        }
        f(1.0)?;
        f(2.0)?;
        assert_eq!(f::tracing_count(), 2);
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

    /// TensorFlow 2.21 traces once here, as the design of SavedModel asks.
    #[test]
    fn devices_share_graphs() -> Outcome {
        #[function]
        fn f(x: &Tensor) -> Result<Tensor> {
            x + 1.0
        }
        device("/device:CPU:0", || f(&Tensor::from(2.0)))?;
        f(&Tensor::from(2.0))?;
        assert_eq!(f::tracing_count(), 1);
        Ok(())
    }
}

//! Generic functions: one function for each choice of types and numbers.

use ferroflow_tracer::{Nest, Result, Tensor, autograph, function};

#[function]
fn repeated<const N: usize>(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    for _ in 0..N {
        y += &y.clone();
    }
    Ok(y)
}

trait Scale {
    const BY: f32;
}

#[derive(Nest, Clone)]
struct Half(Tensor);

#[derive(Nest, Clone)]
struct Double(Tensor, Tensor);

impl Scale for Half {
    const BY: f32 = 0.5;
}

impl Scale for Double {
    const BY: f32 = 2.0;
}

#[function]
fn scaled<'a, S>(x: &'a Tensor, by: &'a S) -> Result<(Tensor, S)>
where
    S: Scale + Nest + Clone,
{
    Ok(((x * S::BY)?, by.clone()))
}

#[test]
fn functions_are_generic_over_numbers() -> Result<()> {
    let x = Tensor::from(1.0f32);
    assert_eq!(repeated::<3>(&x)?.to_scalar::<f32>()?, 8.0);
    assert_eq!(repeated::<1>(&x)?.to_scalar::<f32>()?, 2.0);
    assert_eq!(repeated::<3>(&x)?.to_scalar::<f32>()?, 8.0);
    assert_eq!(repeated::<3>::tracing_count(), 1);
    assert_eq!(repeated::<2>::tracing_count(), 0);
    Ok(())
}

#[test]
fn functions_are_generic_over_types() -> Result<()> {
    let x = Tensor::from(3.0f32);
    let (half, _) = scaled(&x, &Half(x.clone()))?;
    let (double, Double(first, _)) = scaled(&x, &Double(x.clone(), x.clone()))?;
    assert_eq!(half.to_scalar::<f32>()?, 1.5);
    assert_eq!((double.to_scalar::<f32>()?, first.to_scalar::<f32>()?), (6.0, 3.0));
    assert_eq!(scaled::<Half>::tracing_count(), 1);
    assert!(
        scaled::<Double>::signatures().contains("Double"),
        "{}",
        scaled::<Double>::signatures()
    );
    Ok(())
}

#[test]
fn closures_have_control_flow_of_graphs() -> Result<()> {
    let slope = 0.5;
    let leaky = function(autograph!(move |x: Tensor| -> Result<Tensor> {
        let mut total = x.zeros_like()?;
        for row in &x {
            total += if row.lt(0.0)? { row * slope } else { row * 2.0 + 1.0 };
        }
        Ok(total)
    }));
    let x = Tensor::from([-2.0f32, 3.0]);
    assert_eq!(leaky.call((x,))?.to_vec::<f32>()?, [6.0, 6.0]);
    assert_eq!(leaky.call((Tensor::from([-2.0f32, -4.0]),))?.to_vec::<f32>()?, [-3.0, -3.0]);
    assert_eq!(leaky.tracing_count(), 1);
    Ok(())
}

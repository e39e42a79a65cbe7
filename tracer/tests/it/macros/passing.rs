//! Passing of arguments.

use ferroflow_tracer::{NestedValue, Result, Tensor, function};

#[function]
#[expect(clippy::too_many_arguments, reason = "all ways of passing, and as many as may be")]
fn joined<'a>(
    mut x: Tensor,
    name: &str,
    more: &'a [Tensor],
    one: Option<&'a Tensor>,
    label: Option<&str>,
    rows: Option<&[Tensor]>,
    pair: &(Tensor, i64),
    #[expect(unused_variables, reason = "attributes of users are kept")] rest: Vec<f64>,
) -> Result<Tensor> {
    for tensor in more.iter().chain(one).chain(rows.into_iter().flatten()) {
        x = (&x + tensor)?;
    }
    x = (&x + &pair.0)?;
    if name == "twice" && label == Some("please") {
        x = (&x + &x)?;
    }
    Ok(x)
}

#[test]
fn borrowed_arguments_are_owned_by_the_trace_and_lent_to_the_body() {
    let one = Tensor::from(1.0f32);
    let more = [one.clone(), one.clone()];
    let pair = (one.clone(), 7);
    let call = |name: &str, more: &[Tensor], label: Option<&str>| {
        let y = joined(one.clone(), name, more, Some(&one), label, Some(more), &pair, vec![0.5]);
        y.unwrap().to_scalar::<f32>().unwrap()
    };
    assert_eq!(call("once", &more, None), 7.0);
    assert_eq!(call("twice", &more, Some("please")), 14.0);
    assert_eq!(call("twice", &more[..1], Some("please")), 10.0);
    assert_eq!(joined::tracing_count(), 3);
    assert_eq!(call("twice", &more, Some("please")), 14.0);
    assert_eq!(joined::tracing_count(), 3);
    let y = joined(one.clone(), "", &[], None, None, None, &pair, Vec::new()).unwrap();
    assert_eq!(y.to_scalar::<f32>().unwrap(), 2.0);
    let types = joined::function().concrete_functions()[1].function_type().clone();
    let literals: Vec<String> = types.parameters[4..5]
        .iter()
        .map(|parameter| parameter.ty.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(literals, ["Literal['please']"]);
}

#[test]
fn callers_of_the_handle_may_give_values_or_references() {
    #[function]
    fn named(x: &Tensor, name: &str, parts: &[Tensor]) -> Result<Tensor> {
        let x = (x + name.len() as i64)?;
        parts.iter().try_fold(x, |sum, part| &sum + part)
    }
    let x = Tensor::from(1.0f32);
    let parts = vec![x.clone()];
    let by_handle = named::call((&x, "abc", &parts)).unwrap();
    let direct = named(&x, "abc", &parts).unwrap();
    assert_eq!(by_handle.to_scalar::<f32>().unwrap(), 5.0);
    assert_eq!(direct.to_scalar::<f32>().unwrap(), 5.0);
    assert_eq!(named::call((1.0f32, "abc", parts)).unwrap().to_scalar::<f32>().unwrap(), 5.0);
    assert_eq!(named::tracing_count(), 1);
}

#[function]
fn scaled(
    x: &Tensor,
    #[default(2.0)] scale: f64,
    #[default("plus")] how: &str,
    #[default(None)] offset: Option<&Tensor>,
) -> Result<Tensor> {
    let y = (x * scale)?;
    match (how, offset) {
        ("plus", Some(offset)) => &y + offset,
        ("minus", Some(offset)) => &y - offset,
        _ => Ok(y),
    }
}

// spec: b1, b3, b4, b5, b6
#[test]
fn parameters_have_names_and_defaults() {
    let x: NestedValue = Tensor::from(3.0f32).into();
    let offset: NestedValue = Tensor::from(1.0f32).into();
    let f = scaled::function();
    let call = |args: &[NestedValue], kwargs: &[(&str, NestedValue)]| {
        f.call_named(args, kwargs).map(|y: Tensor| y.to_scalar::<f32>().unwrap())
    };
    assert_eq!(call(std::slice::from_ref(&x), &[]).unwrap(), 6.0);
    assert_eq!(call(&[x.clone(), 2.0.into()], &[("how", "plus".into())]).unwrap(), 6.0);
    assert_eq!(call(&[], &[("scale", 2.0.into()), ("x", x.clone())]).unwrap(), 6.0);
    assert_eq!(scaled::tracing_count(), 1);
    let named = [("offset", offset), ("how", "minus".into()), ("scale", 10.0.into())];
    assert_eq!(call(std::slice::from_ref(&x), &named).unwrap(), 29.0);
    let problem = |args: &[NestedValue], kwargs: &[(&str, NestedValue)]| {
        call(args, kwargs).unwrap_err().to_string()
    };
    assert!(problem(&[], &[]).contains("missing a required argument: 'x'"));
    assert!(
        problem(std::slice::from_ref(&x), &[("x", x.clone())])
            .contains("multiple values for argument 'x'")
    );
    let unknown = problem(std::slice::from_ref(&x), &[("hwo", "plus".into())]);
    assert!(unknown.contains("unexpected keyword argument 'hwo'"), "{unknown}");
    assert_eq!(scaled::tracing_count(), 2);
}

#[test]
fn sixteen_parameters_are_passed() -> Result<()> {
    #[function]
    #[expect(clippy::too_many_arguments, reason = "that is what is tested")]
    #[rustfmt::skip]
    fn all(
        x: &Tensor, a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64,
        y: &Tensor, h: i64, i: i64, j: i64, k: i64, l: i64, m: i64, z: Option<&Tensor>,
    ) -> Result<Tensor> {
        let sum = ((x * (a + b + c + d + e + f + g))? + (y * (h + i + j + k + l + m))?)?;
        match z {
            Some(z) => sum + z,
            None => Ok(sum),
        }
    }
    let (x, y, z) = (Tensor::from(1), Tensor::from(100), Tensor::from(5000));
    let sum = all(&x, 1, 1, 1, 1, 1, 1, 1, &y, 1, 1, 1, 1, 1, 1, Some(&z))?;
    assert_eq!(sum.to_scalar::<i32>()?, 5607);
    let of = (&x, 1, 1, 1, 1, 1, 1, 2, &y, 1, 1, 1, 1, 1, 2, None);
    assert_eq!(all::call(of)?.to_scalar::<i32>()?, 708);
    Ok(())
}

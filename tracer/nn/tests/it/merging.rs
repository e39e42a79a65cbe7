//! Merged tensors have the numbers of Keras.

use crate::recorded::{check, numbers};
use ferroflow_nn::{LayerValue, Merge, merge};
use ferroflow_tracer::{DType, Error, Result, Tensor, function, ops, spec};

/// Three tensors, of which the last is an example without its second dimension.
fn three() -> Result<[Tensor; 3]> {
    let a = numbers(&[2, 3, 4])?;
    let b = (ops::reverse_v2(&a, &Tensor::from([0, 2]))? + 0.3)?;
    Ok([a, b, numbers(&[2, 4])?])
}

#[test]
fn tensors_are_merged() -> Result<()> {
    let [a, b, c] = &three()?;
    let xs = &[a, b, c];
    check("merge add", &merge::add(xs)?);
    check("merge multiply", &merge::multiply(xs)?);
    check("merge average", &merge::average(xs)?);
    check("merge maximum", &merge::maximum(xs)?);
    check("merge minimum", &merge::minimum(xs)?);
    check("merge subtract", &merge::subtract(a, c)?);
    check("merge concatenate", &merge::concatenate(&[a, b], 1)?);
    assert!(merge::add(&[]).is_err() && merge::add(&[a, &numbers(&[3, 4])?]).is_err());
    Ok(())
}

#[test]
fn dot_products_are_of_any_axes() -> Result<()> {
    let [a, b, c] = &three()?;
    check("merge dot", &merge::dot(a, b, [2, 2])?);
    check("merge dot first", &merge::dot(a, b, [1, 1])?);
    check("merge dot vector", &merge::dot(c, a, [1, 2])?);
    check("merge dot vectors", &merge::dot(c, &(c + 1.0)?, [-1, -1])?);
    let (x, y) = (numbers(&[2, 3, 2, 4])?, numbers(&[2, 4, 5])?);
    check("merge cosine", &merge::cosine(&x, &y, [3, 1])?);
    assert!(merge::dot(a, b, [0, 1]).is_err() && merge::dot(a, b, [3, 1]).is_err());
    assert!(merge::dot(a, b, [1, 2]).is_err());
    Ok(())
}

#[test]
fn dot_products_of_unknown_sizes() -> Result<()> {
    let [a, b, _] = three()?;
    let staged = function(|a: Tensor, b: Tensor| {
        let y = merge::dot(&a, &b, [2, 2])?;
        assert_eq!(y.shape().to_string(), "[?,?,3]");
        Ok::<_, Error>(y)
    });
    let any = spec(DType::F32, [None, None, Some(4)]);
    let staged = staged.with_input_signature([any, spec(DType::F32, [None, Some(3), Some(4)])]);
    check("merge dot", &staged.call((a, b))?);
    Ok(())
}

#[test]
fn masks_are_merged() -> Result<()> {
    let a = numbers(&[2, 5, 3])?;
    let b = (ops::reverse_v2(&a, &Tensor::from([0, 2]))? + 0.3)?;
    let t = [true, true, false, true, false, false, true, true, false, false];
    let u = [false, true, false, false, true, false, false, true, true, false];
    let [t, u] = [t, u].map(|mask| Tensor::from(mask).reshape(&[2, 5]).unwrap());
    for (name, by) in [
        ("add", Merge::Add),
        ("subtract", Merge::Subtract),
        ("multiply", Merge::Multiply),
        ("average", Merge::Average),
        ("maximum", Merge::Maximum),
        ("minimum", Merge::Minimum),
        ("concatenate", Merge::Concatenate(1)),
        ("concatenate last", Merge::Concatenate(-1)),
    ] {
        for (kind, [a_mask, b_mask]) in [
            ("both", [Some(&t), Some(&u)]),
            ("first", [Some(&t), None]),
            ("second", [None, Some(&u)]),
        ] {
            let value = |x: &Tensor, mask: Option<&Tensor>| LayerValue {
                mask: mask.cloned(),
                ..LayerValue::from(x)
            };
            let y = by.apply(&[&value(&a, a_mask), &value(&b, b_mask)])?;
            check(&format!("merge {name} {kind}"), &y.tensor);
            let mask = y.mask.map_or(Ok(Tensor::from(-1.0f32)), |mask| mask.cast(DType::F32))?;
            check(&format!("merge {name} {kind} mask"), &mask);
        }
    }
    let [a, b] = [LayerValue::masked(a, t), LayerValue::masked(b, u)];
    assert!(Merge::Dot([2, 2]).apply(&[&a, &b])?.mask.is_none());
    assert!(Merge::Subtract.apply(&[&a]).is_err() && Merge::Add.apply(&[]).is_err());
    Ok(())
}

#[test]
fn losses_of_branches_count_once() -> Result<()> {
    let [x, y] = [Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 5.0])];
    let shared = LayerValue::from(&x).with_loss(Tensor::from(1.0f32));
    let branch = shared.with_tensor(y).with_loss(Tensor::from(1.0f32));
    let merged = Merge::Add.apply(&[&shared, &branch, &branch])?;
    assert_eq!(merged.tensor.to_vec::<f32>()?, [7.0, 12.0]);
    assert_eq!(merged.losses.len(), 2);
    Ok(())
}
